"""A network as another tool would write it: batch normalisation apart, residuals, one operator that
Graft does not know.

    foreign.py write MODEL          writes it
    foreign.py check MODEL OTHER    checks OTHER, runs both, exits with 1 when outputs differ
"""
import sys

import numpy as np
import nets
import onnx
from onnx import helper, numpy_helper

CHANNELS = 16


def build():
    rng = np.random.default_rng(1)
    weights, nodes = [], []

    def weight(name, *shape, positive=False):
        value = rng.normal(0, 0.1, shape).astype(np.float32)
        value = np.abs(value) + np.float32(0.5) if positive else value
        weights.append(numpy_helper.from_array(value, name))
        return name

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    x, skip = "image", None
    for b in range(4):
        width = 8 if b == 0 else CHANNELS
        y = add("Conv", [x, weight(f"w{b}", CHANNELS, width, 3, 3)], f"c{b}", pads=[1] * 4)
        norm = [weight(f"{name}{b}", CHANNELS, positive=True) for name in ("s", "b", "m", "v")]
        y = add("BatchNormalization", [y] + norm, f"n{b}")
        y = add("Add", [y, skip], f"a{b}") if b % 2 == 1 else y
        x = skip = add("Relu", [y], f"r{b}")
    x = add("LpNormalization", [x], "odd", axis=1, p=2)
    add("Flatten", [add("GlobalAveragePool", [x], "pooled")], "scores")
    ports = [nets.value("image", [1, 8, 12, 12])], [nets.value("scores", [1, CHANNELS])]
    model = nets.model(nodes, *ports, weights, opset=13)
    onnx.checker.check_model(model, full_check=True)
    return model


def check(path, other):
    onnx.checker.check_model(other, full_check=True)
    image = np.random.default_rng(2).normal(size=(1, 8, 12, 12)).astype(np.float32)
    want, have = (nets.run(file, {"image": image})["scores"] for file in (path, other))
    apart = np.abs(have - want).max() / np.abs(want).max()
    if apart > 1e-4:
        sys.exit(f"outputs differ by {apart}")


if sys.argv[1] == "write":
    onnx.save(build(), sys.argv[2])
else:
    check(sys.argv[2], sys.argv[3])
