"""Recurrent cells written step by step, in the forms in which they come (test_rolled.sh).

    rolled.py make FOLDER            a file for each form: NAME.onnx
    rolled.py rolled FOLDER          makes each with NAME.out.onnx: it has one node for each layer, and no cell
                                     is left; the ONNX project's checker takes it, and onnxruntime computes the same
    rolled.py left FOLDER            likewise, but of forms that are no such nets: there is no such node
    rolled.py names rolled|left
    rolled.py device [alike]         a device (docs/devices.md) that takes a microsecond for each node, or one in all
"""

import sys

import numpy as np
import nets
import onnx
from onnx import helper, numpy_helper

STEPS, FEATURES, UNITS = 4, 3, 5


class Net:
    """A model that grows by nodes. Weights of a name are made once; `seed` makes others."""

    def __init__(self, batch=2, steps=STEPS, opset=17):
        self.batch, self.steps, self.opset = batch, steps, opset
        self.nodes, self.weights, self.inputs, self.outputs = [], {}, [], []
        self.layer, self.width = 0, FEATURES

    def add(self, op, *inputs, count=1, **attributes):
        names = [f"{op}{len(self.nodes)}_{k}" for k in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0] if count == 1 else names

    def weight(self, name, *shape, seed=1):
        seed += 10 * self.layer
        value = np.random.default_rng([seed, *name.encode()]).uniform(-0.8, 0.8, shape).astype("float32")
        return self.constant(name if seed == 1 else f"{name}.{seed}", value)

    def constant(self, name, value):
        self.weights[name] = np.asarray(value)
        return name

    def feed(self, name, *shape):
        self.inputs.append(nets.value(name, [*shape]))
        return name

    def put_out(self, name, *axes):
        self.outputs.append(nets.value(name, [*axes, self.batch, UNITS]))

    def split(self, x, parts, axis=1):
        sizes = [] if self.opset < 13 else [self.constant(f"parts{parts}", [UNITS] * parts)]
        return self.add("Split", x, *sizes, count=parts, axis=axis, **({} if sizes else {"split": [UNITS] * parts}))

    def squeeze(self, x, axis):
        return self.add("Squeeze", x, axes=[axis]) if self.opset < 13 else self.add("Squeeze", x, self.constant(f"axis{axis}", [axis]))

    def model(self):
        return nets.model(self.nodes, self.inputs, self.outputs, self.weights, self.opset, 8 if self.opset > 8 else 3)


# ------------------------------------------------------------------------------------ cells


def combine(net, i, f, g, o, c, function="Tanh"):
    """c' = f c + i g and h' = o tanh(c') of gates before their functions."""
    i, f, o = (net.add("Sigmoid", gate) for gate in (i, f, o))
    c = net.add("Add", net.add("Mul", f, c), net.add("Mul", i, net.add(function, g)))
    return net.add("Mul", o, net.add(function, c)), c


def four_products(net, x, h, c, seed=1, function="Tanh"):
    """A product of the input and one of the state for each gate, as the zoo has it."""
    gates = []
    for gate in "ifgo":
        before = net.add("Add", net.add("MatMul", x, net.weight("W" + gate, net.width, UNITS, seed=seed)), net.weight("b" + gate, UNITS))
        gates.append(net.add("Add", before, net.add("MatMul", h, net.weight("R" + gate, UNITS, UNITS))))
    return combine(net, *gates, c, function)


def two_products(net, x, h, c, seed=1):
    """LSTMCell of PyTorch: two Gemm with transposed weights, and a bias each."""
    a = net.add("Gemm", x, net.weight("W", 4 * UNITS, net.width, seed=seed), net.weight("b", 4 * UNITS), transB=1)
    b = net.add("Gemm", h, net.weight("R", 4 * UNITS, UNITS), net.weight("d", 4 * UNITS), transB=1)
    i, f, g, o = net.split(net.add("Add", a, b), 4)
    return combine(net, i, f, g, o, c)


def sliced(net, x, h, c):
    """Keras with implementation 2: gates are slices."""
    z = net.add("Add", net.add("MatMul", x, net.weight("W", net.width, 4 * UNITS)), net.add("MatMul", h, net.weight("R", UNITS, 4 * UNITS)))
    z = net.add("Add", z, net.weight("b", 4 * UNITS))
    parts = [net.add("Slice", z, *(net.constant(f"at{k}", [k]) for k in (g * UNITS, (g + 1) * UNITS, 1))) for g in range(4)]
    return combine(net, *parts, c)


def beside(net, x, h, c):
    """BasicLSTMCell of TensorFlow: input and state side by side, gates i, j, f, o, and a 1 for f."""
    z = net.add("MatMul", net.add("Concat", x, h, axis=1), net.weight("K", net.width + UNITS, 4 * UNITS))
    i, g, f, o = net.split(net.add("Add", z, net.weight("b", 4 * UNITS)), 4)
    return combine(net, i, net.add("Add", f, net.constant("one", np.float32(1))), g, o, c)


def gru_torch(net, x, h, _):
    """GRUCell of PyTorch: n + z (h - n)."""
    xr, xz, xn = net.split(net.add("Gemm", x, net.weight("W", 3 * UNITS, net.width), net.weight("b", 3 * UNITS), transB=1), 3)
    hr, hz, hn = net.split(net.add("Gemm", h, net.weight("R", 3 * UNITS, UNITS), net.weight("d", 3 * UNITS), transB=1), 3)
    r, z = net.add("Sigmoid", net.add("Add", xr, hr)), net.add("Sigmoid", net.add("Add", xz, hz))
    n = net.add("Tanh", net.add("Add", xn, net.add("Mul", r, hn)))
    return net.add("Add", n, net.add("Mul", z, net.add("Sub", h, n))), None


def gru_keras(net, x, h, _, reset_after=False):
    """GRU of Keras with reset_after or not: z h + (1 - z) n."""
    xz, xr, xn = (net.add("Add", net.add("MatMul", x, net.weight("W" + gate, net.width, UNITS)), net.weight("b" + gate, UNITS)) for gate in "zrn")
    z, r = (net.add("Sigmoid", net.add("Add", a, net.add("MatMul", h, net.weight("R" + gate, UNITS, UNITS)))) for a, gate in ((xz, "z"), (xr, "r")))
    if reset_after:
        inner = net.add("Add", net.add("MatMul", h, net.weight("Rn", UNITS, UNITS)), net.weight("dn", UNITS))
        inner = net.add("Mul", r, inner)
    else:
        inner = net.add("MatMul", net.add("Mul", r, h), net.weight("Rn", UNITS, UNITS))
    n = net.add("Tanh", net.add("Add", xn, inner))
    rest = net.add("Sub", net.constant("one", np.float32(1)), z)
    return net.add("Add", net.add("Mul", z, h), net.add("Mul", rest, n)), None


def gru_beside(net, x, h, _):
    """GRUCell of TensorFlow: input and state side by side."""
    both = net.add("MatMul", net.add("Concat", x, h, axis=1), net.weight("K", net.width + UNITS, 2 * UNITS))
    r, z = net.split(net.add("Sigmoid", net.add("Add", both, net.weight("b", 2 * UNITS))), 2)
    n = net.add("MatMul", net.add("Concat", x, net.add("Mul", r, h), axis=1), net.weight("L", net.width + UNITS, UNITS))
    n = net.add("Tanh", net.add("Add", n, net.weight("d", UNITS)))
    rest = net.add("Sub", net.constant("one", np.float32(1)), z)
    return net.add("Add", net.add("Mul", z, h), net.add("Mul", rest, n)), None


# ------------------------------------------------------------------------------------- nets


def inputs_of(net, form):
    """The input of each step."""
    steps = range(net.steps)
    if form == "apart":
        return [net.feed(f"x{t}", net.batch, FEATURES) for t in steps]
    if form == "second":
        x = net.feed("x", net.batch, net.steps, FEATURES)
        ones = [] if net.opset < 13 else [net.constant("ones", [1] * net.steps)]
        parts = net.add("Split", x, *ones, count=net.steps, axis=1, **({} if ones else {"split": [1] * net.steps}))
        return [net.squeeze(part, 1) for part in parts]
    axis = 1 if form == "picked" else 0
    x = net.feed("x", *((net.batch, net.steps) if axis == 1 else (net.steps, net.batch)), FEATURES)
    return [net.add("Gather", x, net.constant(f"t{t}", np.int64(t)), axis=axis) for t in steps]


def states_of(net, form):
    if form == "zeros":
        zeros = net.constant("zeros", np.zeros((net.batch, UNITS), "float32"))
        return zeros, zeros
    return net.feed("h", net.batch, UNITS), net.feed("c", net.batch, UNITS)


def unroll(cell, inputs="first", states="given", backwards=False, every=False, cell_state=True, layers=1, **more):
    net = Net(**more)
    xs = inputs_of(net, inputs)
    net.joins = (inputs == "apart" or net.batch == "N") + every
    h, c = states_of(net, states)
    for layer in range(layers):
        hs = []
        for x in reversed(xs) if backwards else xs:
            h, c = cell(net, x, h, c)
            hs.append(h)
        net.layer, net.width, xs = layer + 1, UNITS, hs
    if every:
        axis = [] if net.opset < 13 else [net.constant("axis0", [0])]
        rows = [net.add("Unsqueeze", name, *axis, **({} if axis else {"axes": [0]})) for name in hs]
        net.put_out(net.add("Concat", *rows, axis=0), net.steps)
    net.put_out(h)
    if cell_state and c is not None:
        net.put_out(c)
    if c is None:
        net.inputs = [port for port in net.inputs if port.name != "c"]
    return net


def rolled_forms():
    yield "four_products", unroll(four_products, batch=1)
    yield "four_products_all", unroll(four_products, every=True, cell_state=False)
    yield "two_products", unroll(two_products, inputs="second", states="zeros")
    yield "two_products_alone", unroll(two_products, inputs="apart", batch=1)
    yield "two_products_layers", unroll(two_products, every=True, layers=2)
    yield "two_products_old", unroll(two_products, inputs="second", opset=8)
    yield "two_products_open", unroll(two_products, inputs="picked", every=True, batch="N")
    yield "sliced", unroll(sliced, backwards=True, every=True)
    yield "sliced_open", unroll(sliced, inputs="apart", batch="N")
    yield "beside", unroll(beside, inputs="picked", states="zeros", cell_state=False)
    yield "gru_torch", unroll(gru_torch, inputs="second", every=True)
    yield "gru_torch_open", unroll(gru_torch, batch="N")
    yield "gru_keras", unroll(gru_keras, states="zeros")
    yield "gru_keras_after", unroll(lambda *step: gru_keras(*step, reset_after=True), backwards=True)
    yield "gru_beside", unroll(gru_beside, inputs="second", opset=11)


def left_forms():
    def by_step(change):
        count = iter(range(100))
        return lambda net, x, h, c: change(next(count), net, x, h, c)

    def read_gate(t, net, x, h, c):
        made = two_products(net, x, h, c)
        if t == 1:
            net.put_out(next(node.output[0] for node in reversed(net.nodes) if node.op_type == "Sigmoid"))
        return made

    def read_state(t, net, x, h, c):
        made = four_products(net, x, h, c)
        if t == 1:
            net.put_out(made[1])
        return made

    def skip(t, net, x, h, c):
        return four_products(net, x, "h" if t == 1 else h, c)

    def feed_back(net, x, h, c):
        scale = net.weight("scale", UNITS, FEATURES)
        return two_products(net, net.add("Add", x, net.add("MatMul", net.add("Relu", h), scale)), h, c)

    yield "other_weights", unroll(by_step(lambda t, *step: four_products(*step, seed=2 if t == 1 else 1)), steps=3)
    yield "gate_read", unroll(by_step(read_gate))
    yield "state_read", unroll(by_step(read_state))
    yield "other_function", unroll(lambda *step: four_products(*step, function="Relu"))
    yield "skips", unroll(by_step(skip), steps=2)
    yield "fed_back", unroll(feed_back)
    yield "one_step", unroll(two_products, steps=1)


FORMS = {"rolled": rolled_forms, "left": left_forms}


def make(folder):
    for forms in FORMS.values():
        for name, net in forms():
            onnx.save(net.model(), f"{folder}/{name}.onnx")


def count(model, *kinds):
    return sum(node.op_type in kinds for node in model.graph.node)


def compare(name, folder, net):
    model = onnx.load(f"{folder}/{name}.out.onnx")
    onnx.checker.check_model(model, full_check=True)
    for batch in (1, 3) if net.batch == "N" else (net.batch,):
        random = np.random.default_rng(batch)
        fed = {port.name: random.uniform(-1, 1, [dim.dim_value or batch for dim in port.type.tensor_type.shape.dim]).astype("float32")
               for port in net.inputs}
        want, have = nets.run(net.model(), fed), nets.run(model, fed)
        assert list(want) == list(have), name
        for output in want:
            apart = np.abs(want[output] - have[output]).max()
            assert want[output].shape == have[output].shape and apart < 2e-6, (name, output, apart)
    return model


def rolled(folder):
    for name, net in rolled_forms():
        model = compare(name, folder, net)
        assert count(model, "LSTM", "GRU") == net.layer, (name, [node.op_type for node in model.graph.node])
        assert count(model, "Concat") == net.joins, name  # Steps of one tensor are not cut out and joined again.
        assert count(model, "Sigmoid", "Tanh", "MatMul", "Gemm") == 0, (name, [node.op_type for node in model.graph.node])


def left(folder):
    for name, net in left_forms():
        assert count(compare(name, folder, net), "LSTM", "GRU") == 0, name


def device(alike=""):
    def answer(question):
        if question["ask"] == "time":
            return {"median_ns": 1000, "spread_ns": 1, "rounds": 5}
        nodes = [len(onnx.load(path).graph.node) for path in question["models"]]
        return {"rounds_ns": [[1000 * (1 if alike else count) + i % 3 for i in range(question["rounds"])] for count in nodes]}
    nets.serve("nodes" + alike, {}, answer)


def main():
    what, *rest = sys.argv[1:]
    if what == "names":
        print(*(name for name, _ in FORMS[rest[0]]()))
    else:
        {"make": make, "rolled": rolled, "left": left, "device": device}[what](*rest)


if __name__ == "__main__":
    main()
