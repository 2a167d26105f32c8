"""Models of 8 bits for test_quantised.sh, and what is held against them.

    quantised.py small FOLDER          small models, each for one thing
    quantised.py compare BEFORE AFTER  the ONNX project's checker takes AFTER, and onnxruntime gives
                                       the same bits of both, with its own rewrites and without
"""

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

onnxruntime.set_default_logger_severity(4)
OPTIONS = onnxruntime.GraphOptimizationLevel


def save(path, nodes, inputs, outputs, constants):
    ports = [[helper.make_tensor_value_info(*port) for port in side] for side in (inputs, outputs)]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", *ports, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


def chain(path, steps, zero, shape, out_type):
    """Operators one behind the other; Q and D change to and from 8 bits with one scale."""
    nodes = []
    for i, (op, attributes) in enumerate(steps):
        changes = op in ("Q", "D")
        name = {"Q": "QuantizeLinear", "D": "DequantizeLinear"}.get(op, op)
        reads = ["x" if i == 0 else f"t{i}"] + (["s", "z"] if changes else [])
        nodes.append(helper.make_node(name, reads, ["y" if i + 1 == len(steps) else f"t{i + 1}"], **attributes))
    constants = {"s": np.array(0.05, np.float32), "z": np.array(*zero)}
    save(path, nodes, [("x", TensorProto.FLOAT, shape)], [("y", out_type, None)], constants)


class Reader(CalibrationDataReader):
    def __init__(self, shape):
        rng = np.random.default_rng(5)
        self.items = iter([{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(4)])

    def get_next(self):
        return next(self.items, None)


def small(folder):
    signed, unsigned, turn = (-128, np.int8), (0, np.uint8), ("Transpose", {"perm": [0, 2, 3, 1]})
    back = ("Transpose", {"perm": [0, 3, 1, 2]})
    pool = ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]})
    shape, byte = [1, 8, 6, 6], {np.int8: TensorProto.INT8, np.uint8: TensorProto.UINT8}
    for name, zero in (("signed", signed), ("unsigned", unsigned)):
        chain(folder / f"{name}.onnx", [("Relu", {}), ("Q", {}), ("D", {}), ("Relu", {})], zero, shape, TensorProto.FLOAT)
        chain(folder / f"moves-{name}.onnx", [("Q", {}), ("D", {}), turn, ("Q", {}), ("D", {}), pool, ("Q", {})], zero,
              [1, 6, 6, 8], byte[zero[1]])
    chain(folder / "other.onnx", [("Relu", {}), ("Q", {}), ("D", {}), ("Relu", {})], (-100, np.int8), shape,
          TensorProto.FLOAT)
    rng = np.random.default_rng(3)
    weights = {f"w{i}": rng.standard_normal((8, 8, 3, 3)).astype(np.float32) / 9 for i in range(2)}
    conv = {"pads": [1, 1, 1, 1]}
    nodes = [helper.make_node("Conv", ["x", "w0"], ["a"], **conv), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node(turn[0], ["b"], ["c"], **turn[1]), helper.make_node(back[0], ["c"], ["d"], **back[1]),
             helper.make_node("Conv", ["d", "w1"], ["y"], **conv)]
    save(folder / "float.onnx", nodes, [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, None)], weights)
    quantize_static(folder / "float.onnx", folder / "qlinear.onnx", Reader(shape), quant_format=QuantFormat.QOperator)


def run(path, level, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, inputs)


def compare(before, after):
    old, new = onnx.load(before), onnx.load(after)
    onnx.checker.check_model(new, full_check=True)
    print(f"{Path(after).name}: {len(old.graph.node)} -> {len(new.graph.node)} nodes")
    rng = np.random.default_rng(11)
    for scale in (0.1, 1, 10):
        inputs = {}
        for port in old.graph.input:
            shape = [d.dim_value or 1 for d in port.type.tensor_type.shape.dim]
            inputs[port.name] = (scale * rng.standard_normal(shape)).astype(np.float32)
        for level in (OPTIONS.ORT_DISABLE_ALL, OPTIONS.ORT_ENABLE_ALL):
            for a, b in zip(run(before, level, inputs), run(after, level, inputs)):
                if a.dtype != b.dtype or not np.array_equal(a, b):
                    return f"outputs differ at {scale} by {np.abs(a.astype(float) - b.astype(float)).max()}"
    return None


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    sys.exit(small(Path(rest[0])) if what == "small" else compare(*rest))
