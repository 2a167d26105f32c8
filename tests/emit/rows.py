"""One row of a linear layer that is normalised in steps, as exporters wrote it before opset 17
(test_auto.sh).

    rows.py make MODEL BATCH      the row is cut out behind the normalisation; BATCH: a size or a name
    rows.py same BEFORE AFTER     both give onnxruntime the same outputs
    rows.py products MODEL        how many rows the matrix product computes
"""

import sys

import numpy as np
import nets
import onnx

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
    nodes = nets.nodes_of("""product = MatMul(x, kernel) sum = Add(product, bias) mean = ReduceMean<axes = [-1]>(sum)
        apart = Sub(sum, mean) square = Pow(apart, two) variance = ReduceMean<axes = [-1]>(square)
        positive = Add(variance, epsilon) deviation = Sqrt(positive) normal = Div(apart, deviation)
        scaled = Mul(normal, scale) all = Add(scaled, shift) y = Slice(all, start, end, axis)""")
    batch = int(batch) if batch.isdigit() else batch
    ports = [nets.value("x", [batch, ROWS, UNITS])], [nets.value("y", [batch, 1, UNITS])]
    onnx.save(nets.model(nodes, *ports, weights, opset=13), path)


def same(before, after):
    x = np.random.default_rng(2).standard_normal((1, ROWS, UNITS)).astype("float32")
    return np.allclose(*(nets.run(path, {"x": x})["y"] for path in (before, after)), atol=1e-4)


def products(path):
    model = onnx.load(path)
    names = [node.output[0] for node in model.graph.node if node.op_type in ("MatMul", "Gemm")]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    made = nets.run(model, {"x": np.zeros((1, ROWS, UNITS), "float32")})
    return [made[name].size // UNITS for name in names]


if sys.argv[1] == "make":
    make(*sys.argv[2:])
elif sys.argv[1] == "products":
    print(*products(sys.argv[2]), sep="\n")
else:
    sys.exit(not same(sys.argv[2], sys.argv[3]))
