"""Other algorithms for operators (graph/algorithms.h), and onnxruntime's own rules, for test_devices.sh.

    algorithms.py make FILE OPSET             a model of operators that have other algorithms
    algorithms.py sums FILE OPSET             one of sums that are normalised, like those of a transformer
    algorithms.py parts FILE OPSET            one of what the rules are for
    algorithms.py compare BEFORE AFTER KIND...  the ONNX project's checker takes AFTER, it has no
                                              operator of the kinds that were to go, nor filters of
                                              more than a tap when Conv3 is one, and onnxruntime
                                              computes the same
"""

import sys

import numpy as np
import nets
import onnx
from onnx import helper

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
    nodes.append(helper.make_node("LRN", [name], ["y"], size=5, alpha=0.2, beta=0.75, bias=1.5))
    save(path, opset, nodes, constants, [CHANNELS, 12, 18])


def sums(path, opset):
    constants = {"g": np.linspace(0.5, 1.5, 18), "b": np.linspace(-1.0, 1.0, 18)}
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Add", ["x", "s"], ["a"]),
             helper.make_node("LayerNormalization", ["a", "g", "b"], ["n"]), helper.make_node("Relu", ["n"], ["r"]),
             helper.make_node("Add", ["r", "n"], ["c"]), helper.make_node("LayerNormalization", ["c", "g"], ["y"])]
    save(path, opset, nodes, constants, [CHANNELS, 13, 18])


def parts(path, opset):
    """Factors and summands of one element around convolutions, HardSwish in parts, depthwise convolutions, and
    what stands behind a transposition."""
    rng = np.random.default_rng(8)
    constants = {"three": np.float32(3), "six": np.float32(6), "zero": np.float32(0)}
    nodes, name = [], "x"

    def add(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def constant(*shape):
        constants[f"k{len(constants)}"] = rng.uniform(0.5, 1.5, shape)
        return f"k{len(constants) - 1}"

    for _ in range(3):
        name = add("Conv", name, constant(CHANNELS, CHANNELS, 1, 1), constant(CHANNELS))
        name = add("Add", add("Mul", constant(1), name), constant(1))
        gate = add("Clip", add("Add", name, "three"), *([] if opset < 11 else ["zero", "six"]),
                   **({"min": 0.0, "max": 6.0} if opset < 11 else {}))
        name = add("Div", add("Mul", name, gate), "six")
        name = add("Add", add("Mul", constant(1), name), constant(1))
        name = add("Conv", name, constant(CHANNELS, 1, 3, 3), constant(CHANNELS), group=CHANNELS, pads=[1, 1, 1, 1])
        name = add("Transpose", add("Conv", name, constant(CHANNELS, CHANNELS, 1, 1)), perm=[0, 2, 3, 1])
        name = add("Add", name, constant(1, 1, 1, CHANNELS))
        name = add("Mul", add("Sub", name, constant(1, 1, 1, CHANNELS)), constant(1, 1, 1, CHANNELS))
        name = add("Transpose", add("Add", name, constant(1, 1, 1, CHANNELS)), perm=[0, 3, 1, 2])
    nodes[-1].output[0] = "y"
    save(path, opset, nodes, constants, [CHANNELS, 13, 18])


def save(path, opset, nodes, constants, shape):
    model = nets.model(nodes, [nets.value("x", ["N", CHANNELS, 13, 18])], [nets.value("y", ["N", *shape])],
                       {key: np.asarray(array, np.float32) for key, array in constants.items()}, opset, 8 if opset > 8 else 3)
    if opset < 9:  # Of a time when every initializer was an input.
        model.graph.input.extend(nets.value(tensor.name, tensor.dims) for tensor in model.graph.initializer)
    onnx.save(model, path)


def compare(before, after, *kinds):
    model = onnx.load(after)
    onnx.checker.check_model(model, full_check=True)
    left = {node.op_type for node in model.graph.node}
    left |= {"Conv3" for tensor in model.graph.initializer if len(tensor.dims) == 4 and tensor.dims[1] == CHANNELS and
             tensor.dims[2] * tensor.dims[3] > 1}
    assert not left & set(kinds), left
    for images in (1, 3):
        data = {"x": np.random.default_rng(images).standard_normal((images, CHANNELS, 13, 18)).astype(np.float32)}
        one, other = (nets.run(path, data)["y"] for path in (before, after))
        difference = np.abs(one - other).max() / np.abs(one).max()
        assert one.shape == other.shape and difference < 1e-4, (images, difference)


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        compare(*sys.argv[2:])
    else:
        {"make": make, "parts": parts, "sums": sums}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
