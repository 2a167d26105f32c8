"""One row of a linear layer that is normalised in steps, as exporters wrote it before opset 17
(test_auto.sh).

    rows.py make MODEL BATCH      the row is cut out behind the normalisation; BATCH: a size or a name
    rows.py same BEFORE AFTER     both give onnxruntime the same outputs
    rows.py products MODEL        how many rows the matrix product computes
"""

import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROWS, UNITS = 64, 256


def make(path, batch):
    random = np.random.default_rng(1)
    weights = {
        "kernel": random.uniform(-0.1, 0.1, (UNITS, UNITS)).astype("float32"),
        "bias": random.uniform(-1, 1, UNITS).astype("float32"),
        "scale": random.uniform(0.5, 1.5, UNITS).astype("float32"),
        "shift": random.uniform(-1, 1, UNITS).astype("float32"),
        "epsilon": np.float32(1e-5), "two": np.float32(2.0),
        "start": np.array([0]), "end": np.array([1]), "axis": np.array([1]),
    }
    steps = ["MatMul x kernel > product", "Add product bias > sum", "ReduceMean sum > mean",
             "Sub sum mean > apart", "Pow apart two > square", "ReduceMean square > variance",
             "Add variance epsilon > positive", "Sqrt positive > deviation",
             "Div apart deviation > normal", "Mul normal scale > scaled", "Add scaled shift > all",
             "Slice all start end axis > y"]
    nodes = []
    for step in steps:
        op, *names = step.split()
        axes = {"axes": [-1]} if op == "ReduceMean" else {}
        nodes.append(helper.make_node(op, names[:-2], names[-1:], **axes))
    batch = int(batch) if batch.isdigit() else batch
    graph = helper.make_graph(
        nodes, "rows", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, ROWS, UNITS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 1, UNITS])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)


def same(before, after):
    x = np.random.default_rng(2).standard_normal((1, ROWS, UNITS)).astype("float32")
    have = [onnxruntime.InferenceSession(path).run(None, {"x": x})[0] for path in (before, after)]
    return np.allclose(have[0], have[1], atol=1e-4)


def products(path):
    model = onnx.load(path)
    names = [node.output[0] for node in model.graph.node if node.op_type in ("MatMul", "Gemm")]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    x = np.zeros((1, ROWS, UNITS), "float32")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return [y.size // UNITS for y in session.run(names, {"x": x})]


if sys.argv[1] == "make":
    make(*sys.argv[2:])
elif sys.argv[1] == "products":
    print(*products(sys.argv[2]), sep="\n")
else:
    sys.exit(not same(sys.argv[2], sys.argv[3]))
