"""What tests of ONNX models in Python share: models of nodes, onnxruntime and Graft's executor on them, and
devices that answer questions. tests/support/tap.sh says where Python finds it."""
import json
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights, opset=17, ir=8, domains=()):
    """`weights` are tensors, or arrays by name."""
    if isinstance(weights, dict):
        weights = [array if isinstance(array, TensorProto) else numpy_helper.from_array(np.asarray(array), name)
                   for name, array in weights.items()]
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(helper.make_graph(nodes, "net", inputs, outputs, weights), opset_imports=opsets, ir_version=ir)


def run(what, fed, optimised=True):
    """What onnxruntime makes of a model or a file, by name."""
    import onnxruntime  # The checker and what is written do without.
    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    what = what.SerializeToString() if isinstance(what, onnx.ModelProto) else str(what)
    session = onnxruntime.InferenceSession(what, options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    return dict(zip(names, session.run(names, fed)))


def execute(graft, path, fed, *options):
    """What Graft's executor makes of a file, by name. Inputs and outputs lie beside it."""
    inputs, outputs = (f"{str(path).removesuffix('.onnx')}.{end}.npz" for end in ("in", "ran"))
    np.savez(inputs, **fed)
    subprocess.run([graft, "--quiet", "run", path, "--inputs", inputs, "--outputs", outputs, *options],
                   check=True, stdout=subprocess.DEVNULL)
    return dict(np.load(outputs))


def serve(name, hello, answer):
    """A device (docs/devices.md) that times whole models; `answer` is asked for all but hello."""
    for line in sys.stdin:
        question = json.loads(line)
        told = answer(question) if question["ask"] != "hello" else {
            "protocol": 1, "name": name, "version": "1", "hardware": "none", "threads": 1, "times_models": True, **hello}
        print(json.dumps({"id": question["id"], **told}), flush=True)
