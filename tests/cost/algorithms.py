"""Other algorithms for operators (graph/algorithms.h), for test_devices.sh.

    algorithms.py make FILE OPSET      a model of operators that have some
    algorithms.py compare BEFORE AFTER the ONNX project's checker takes AFTER, it has no operator of
                                       the kinds that were to go, and onnxruntime computes the same
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

CHANNELS = 12
KERNELS = [((3, 3), (1, 1, 1, 1)), ((3, 1), (1, 0, 1, 0)), ((1, 3), (0, 1, 0, 1)), ((5, 5), (2, 2, 2, 2)),
           ((3, 3), (0, 2, 1, 0)), ((1, 5), (0, 2, 0, 2)), ((5, 3), (2, 1, 2, 1))]


def make(path, opset):
    rng = np.random.default_rng(7)
    constants, nodes, name = {}, [], "x"
    for i, (kernel, pads) in enumerate(KERNELS):
        constants[f"w{i}"] = rng.standard_normal((CHANNELS, CHANNELS, *kernel)) / np.sqrt(CHANNELS * np.prod(kernel))
        constants.update({f"b{i}": rng.standard_normal(CHANNELS)} if i % 2 else {})
        constants[f"s{i}"] = rng.uniform(-0.5, 1.5, (CHANNELS, 1, 1))
        nodes.append(helper.make_node("Conv", [name, f"w{i}"] + [f"b{i}"] * (i % 2), [f"c{i}"], pads=pads))
        nodes.append(helper.make_node("PRelu", [f"c{i}", f"s{i}"], [f"p{i}"]))
        name = f"p{i}"
    nodes.append(helper.make_node("LRN", [name], ["n"], size=5, alpha=0.2, beta=0.75, bias=1.5))
    nodes.append(helper.make_node("LRN", ["n"], ["y"], size=3, alpha=0.1, beta=0.5))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, CHANNELS, 13, 18])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, CHANNELS, 12, 18])],
        [numpy_helper.from_array(value.astype(np.float32), key) for key, value in constants.items()])
    if opset < 9:  # Of a time when every initializer was an input.
        graph.input.extend(helper.make_tensor_value_info(tensor.name, TensorProto.FLOAT, tensor.dims)
                           for tensor in graph.initializer)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset > 8 else 3), path)


def compare(before, after):
    model = onnx.load(after)
    onnx.checker.check_model(model, full_check=True)
    kinds = {node.op_type for node in model.graph.node}
    kernels = [tensor.dims for tensor in model.graph.initializer if len(tensor.dims) == 4]
    assert not kinds & {"LRN", "PRelu"} and "AveragePool" in kinds, kinds
    assert not any(dims[1] == CHANNELS and dims[2] * dims[3] > 1 for dims in kernels), kernels
    onnxruntime.set_default_logger_severity(4)
    data = {"x": np.random.default_rng(1).standard_normal((2, CHANNELS, 13, 18)).astype(np.float32)}
    one, other = (onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, data)[0]
                  for path in (before, after))
    difference = np.abs(one - other).max() / np.abs(one).max()
    assert difference < 1e-4, difference


if __name__ == "__main__":
    make(sys.argv[2], int(sys.argv[3])) if sys.argv[1] == "make" else compare(*sys.argv[2:])
