"""What tests of ONNX models in Python share: models of nodes, onnxruntime and Graft's executor on them, and
devices that answer questions. tests/support/tap.sh says where Python finds it.

    nets.py compare WANT.npz HAVE.npz     all that is wanted is there: the same types, sizes and numbers
"""
import json
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def nodes_of(text):
    """Nodes in ONNX's own words: y = Relu(x) z = Transpose<perm = [1, 0]>(y)"""
    return list(onnx.parser.parse_graph(f"net () => () {{ {text} }}").node)


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


def write_case(folder, name, text, weights, inputs):
    """A model of text and arrays as NAME.onnx; each of `inputs` of it as NAME.K.in.npz and what onnxruntime makes of
    it as NAME.K.want.npz, and prints name and K."""
    made = onnx.parser.parse_model(text)
    made.graph.initializer.extend(numpy_helper.from_array(data.astype("float32"), weight) for weight, data in weights.items())
    nodes = sorted(made.graph.node, key=lambda node: node.op_type != "Constant")
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    onnx.save(made, f"{folder}/{name}.onnx")
    for k, fed in enumerate(inputs(made)):
        np.savez(f"{folder}/{name}.{k}.in.npz", **fed)
        np.savez(f"{folder}/{name}.{k}.want.npz", **run(f"{folder}/{name}.onnx", fed, optimised=False))
        print(name, k)


def compare(want, have):
    """Up to rounding: of an output's largest number."""
    want, have = np.load(want), np.load(have)
    bad = sorted(set(want.files) - set(have.files))
    for name in set(want.files) & set(have.files):
        w, h = want[name], have[name]
        if w.shape != h.shape or w.dtype != h.dtype:
            bad.append(f"{name} is {h.dtype} {h.shape}, not {w.dtype} {w.shape}")
        elif w.dtype.kind != "f":
            bad += [] if np.array_equal(w, h) else [f"{name} is {h}, not {w}"]
        else:
            w, h, seen = w.astype("float64"), h.astype("float64"), np.isfinite(w)
            apart = np.abs(w[seen] - h[seen]).max(initial=0) / max(1e-30, np.abs(w[seen]).max(initial=0))
            if not np.array_equal(w[~seen], h[~seen], equal_nan=True) or apart > (2e-3 if want[name].dtype == "float16" else 1e-5):
                bad.append(f"{name} is apart by {apart}")
    print(f"{len(want.files)} outputs,", *(bad or ["which agree"]), sep="\n")
    return bool(bad)


def serve(name, hello, answer):
    """A device (docs/devices.md) that times whole models; `answer` is asked for all but hello."""
    for line in sys.stdin:
        question = json.loads(line)
        told = answer(question) if question["ask"] != "hello" else {
            "protocol": 1, "name": name, "version": "1", "hardware": "none", "threads": 1, "times_models": True, **hello}
        print(json.dumps({"id": question["id"], **told}), flush=True)


if __name__ == "__main__":
    sys.exit({"compare": compare}[sys.argv[1]](*sys.argv[2:]))
