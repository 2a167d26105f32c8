"""Random graphs, rewritten at random by `graft optimize`, held against onnxruntime (test_random.sh).

    random_graphs.py GRAFT DEVICE FOLDER FIRST COUNT

One graph a number. A file that differs stays in FOLDER with what it was made of, and its number is
printed. Graphs grow by nodes that onnxruntime has run: it says what shape comes out, and a node that
it refuses is left out, so nothing here knows how an operator infers its shape. Half of the graphs
leave their first axis open; those are also run at another size, where the original can be. What
Graft does not know as an operator stands among what it does, and has to survive.
"""

import os
import subprocess
import sys

import numpy as np
import nets
import onnx
from onnx import helper, numpy_helper

TOLERANCE = 2e-3  # Of the largest element: rewrites take sums in another order, ten operators in a row.
LARGEST = 4096    # Elements of a tensor.
OPSETS = (11, 13, 14, 17, 18, 20, 21)


def run(model, fed):
    return nets.run(model, fed, optimised=False)


class Graph:
    def __init__(self, number):
        self.random = np.random.default_rng(number)
        self.opset = int(self.pick(OPSETS))
        self.nodes, self.weights, self.values, self.inputs = [], [], {}, []
        image = self.chance(0.6)
        for i in range(self.pick((1, 1, 2))):
            shape = ([self.pick((1, 2)), self.pick((2, 4, 6)), self.pick((5, 8, 9)), self.pick((5, 7, 8))] if image
                     else [self.pick((1, 2, 3, 4, 6)) for _ in range(self.pick((1, 2, 3, 3, 4)))])
            if i and self.chance(0.7):
                shape = self.values["x0"].shape
            self.inputs.append(f"x{i}")
            self.values[f"x{i}"] = self.numbers(*shape)

    def pick(self, choices):
        return choices[self.random.integers(len(choices))]

    def chance(self, share):
        return self.random.random() < share

    def numbers(self, *shape):
        return self.random.uniform(-1, 1, shape).astype("float32")

    def model(self, nodes, inputs, outputs, weights, open_axis=False):
        def info(name):
            shape = list(self.values[name].shape)
            shape[:1] = ["N"] if open_axis and shape and name in inputs else shape[:1]
            return nets.value(name, shape)
        ranks = [self.values[o].ndim if o in self.values else None for o in outputs]
        made = [nets.value(o, r if r is None else [None] * r) for o, r in zip(outputs, ranks)]
        return nets.model(nodes, [info(i) for i in inputs], made, weights, self.opset)

    def add(self, kind, x, *more, outputs=1, **attributes):
        """A node; arrays among the operands are weights. Nothing is added where it cannot be run."""
        weights, names = [], []
        for operand in (x, *more):
            if not isinstance(operand, str):
                weights.append(numpy_helper.from_array(np.asarray(operand), f"w{len(self.weights) + len(weights)}"))
                operand = weights[-1].name
            names.append(operand)
        made = [f"t{len(self.values) + i}" for i in range(outputs)]
        node = helper.make_node(kind, names, made, name=self.pick(("", "n" + made[0])), **attributes)
        known = [n for n in dict.fromkeys(names) if n in self.values]
        try:
            got = run(self.model([node], known, made, weights), {n: self.values[n] for n in known})
            onnx.defs.get_schema(kind, self.opset, "")
        except Exception:  # What onnxruntime or the schemas refuse, in whatever words.
            return
        if all(v.dtype == np.float32 and 0 < v.size <= LARGEST and np.abs(v).max() < 1e4 for v in got.values()):
            self.nodes.append(node)
            self.weights += weights
            self.values.update(got)

    def grow(self):
        x = self.pick(list(self.values)[-5:])
        if self.values[x].ndim:
            self.pick(MAKERS)(self, x, self.values[x].shape)

    def whole(self):
        read = {i for n in self.nodes for i in n.input}
        made = [o for n in self.nodes for o in n.output]
        outputs = [o for o in made if o not in read] + ([self.pick(made)] if made and self.chance(0.3) else [])
        return self.model(self.nodes, self.inputs, list(dict.fromkeys(outputs)), self.weights, self.chance(0.5))

    def axes(self, kind, x, axes, since, **attributes):
        """An operator whose axes were an attribute before opset `since`, and are an operand now."""
        if self.opset < since:
            self.add(kind, x, axes=axes, **attributes)
        else:
            self.add(kind, x, np.array(axes, "int64"), **attributes)


def unary(g, x, shape):
    g.add(g.pick(("Relu", "Relu", "Sigmoid", "Tanh", "Erf", "Identity", "LeakyRelu", "Abs", "Neg", "Softplus", "Floor",
                  "Elu", "HardSigmoid", "HardSwish", "Sign", "Exp", "Gelu", "Mish", "Selu", "Softsign", "Round")), x)


def binary(g, x, shape):
    like = [v for v in g.values if g.values[v].shape == shape]
    part = [g.pick((d, 1)) for d in shape][g.random.integers(len(shape) + 1):]
    pair = [x, g.pick(like) if g.chance(0.5) else g.numbers(*part)]
    g.random.shuffle(pair)
    g.add(g.pick(("Add", "Sub", "Mul", "Max", "Min")), *pair)


def scalar(g, x, shape):
    pair = [x, np.float32(g.pick((0, 1, -1, 2, 0.5)))]
    kind = g.pick(("Add", "Sub", "Mul", "Max", "Min", "Div"))
    if kind != "Div":
        g.random.shuffle(pair)
    g.add(kind, *pair)  # By 0, it is not finite and left out.


def convolution(g, x, shape):
    groups = g.pick((1, 1, 2, shape[1] if len(shape) == 4 else 1))
    if len(shape) != 4 or shape[1] % groups:
        return
    kernel, made = g.pick(((1, 1), (3, 3), (1, 3), (2, 2))), groups * g.pick((1, 2, 3))
    bias = [g.numbers(made)] if g.chance(0.5) else []
    g.add("Conv", x, g.numbers(made, shape[1] // groups, *kernel), *bias, group=groups, strides=[g.pick((1, 1, 2))] * 2,
          pads=[int(p) for p in g.random.integers(0, 2, 4)], dilations=[g.pick((1, 1, 2))] * 2, kernel_shape=kernel)


def transposed(g, x, shape):
    if len(shape) == 4:
        g.add("ConvTranspose", x, g.numbers(shape[1], g.pick((1, 2)), 3, 3), strides=[g.pick((1, 2))] * 2)


def normalise(g, x, shape):
    if len(shape) > 1:
        c = shape[1]
        g.add(g.pick(("BatchNormalization",) * 3 + ("InstanceNormalization",)), x, g.numbers(c), g.numbers(c),
              *((g.numbers(c), abs(g.numbers(c)) + 0.5) if g.chance(0.7) else ()))
    if shape[-1] > 1:
        g.add("LayerNormalization", x, g.numbers(shape[-1]), g.numbers(shape[-1]))


def pool(g, x, shape):
    kind, size = g.pick(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")), g.pick((1, 2, 3))
    if kind.startswith("Global"):
        return g.add(kind, x)
    count = {"count_include_pad": g.pick((0, 1))} if kind == "AveragePool" else {}
    g.add(kind, x, kernel_shape=[size] * 2, strides=[g.pick((1, 2))] * 2, ceil_mode=g.pick((0, 0, 1)),
          pads=[g.pick((0, size // 2)) for _ in range(4)], **count)


def product(g, x, shape):
    if g.chance(0.3):
        like = [v for v in g.values if g.values[v].ndim > 1 and g.values[v].shape[-2] == shape[-1]]
        g.add("MatMul", x, g.pick(like) if like else g.numbers(shape[-1], 2))
    elif len(shape) == 2 and g.chance(0.5):
        across = g.pick((0, 1))
        g.add("Gemm", x, g.numbers(*((3, shape[1]) if across else (shape[1], 3))), g.numbers(3), transB=across,
              alpha=g.pick((1.0, 0.5)), beta=g.pick((1.0, 2.0)))
    else:
        g.add("MatMul", x, g.numbers(shape[-1], g.pick((2, 3))))


def join(g, x, shape):
    axis = int(g.random.integers(len(shape)))
    like = [v for v in g.values if g.values[v].ndim == len(shape)
            and np.delete(g.values[v].shape, axis).tolist() == np.delete(shape, axis).tolist()]
    g.add("Concat", x, *[g.pick(like) for _ in range(g.pick((1, 2)))], axis=axis - g.pick((0, len(shape))))


def cut(g, x, shape):
    axis = int(g.random.integers(len(shape)))
    at = int(g.random.integers(shape[axis] + 1))
    if g.chance(0.5):
        parts = [at, shape[axis] - at]
        if g.opset < 13:
            g.add("Split", x, outputs=2, axis=axis, split=parts)
        else:
            g.add("Split", x, np.array(parts), outputs=2, axis=axis)
    else:
        end = g.pick((shape[axis], 2**31 - 1, -1, at + 2))
        g.add("Slice", x, *[np.array([v]) for v in (at - g.pick((0, shape[axis])), end, axis, g.pick((1, 1, 2)))])


def move(g, x, shape):
    kind = g.random.integers(7)
    if kind < 2:
        g.add("Transpose", x, perm=[int(i) for i in g.random.permutation(len(shape))])
    elif kind < 4:
        size = int(np.prod(shape))
        part = int(g.pick([d for d in range(1, size + 1) if size % d == 0]))
        to = list(g.pick(((part, size // part), (size,), (part, 1, size // part), (0, -1))))
        if g.chance(0.3):
            to[int(g.random.integers(len(to)))] = -1
        g.add("Reshape", x, np.array(to))
    elif kind == 4:
        g.axes("Unsqueeze", x, [int(g.random.integers(len(shape) + 1))], 13)
    elif kind == 5:
        g.axes("Squeeze", x, [int(g.random.integers(len(shape)))], 13)
    else:
        g.add("Flatten", x, axis=int(g.random.integers(len(shape) + 1)))


def widen(g, x, shape):
    kind = g.random.integers(4)
    if kind < 2:
        g.add("Pad", x, g.random.choice([0, 0, 1, 2], 2 * len(shape)), np.float32(g.pick((0, 0, 1))))
    elif kind == 2:
        g.add("Expand", x, np.array([g.pick((1, 2)), *[g.pick((1, d)) for d in shape]]))
    else:
        g.add("Resize", x, np.zeros(0, "float32"), np.array([1, 1, 2, 2][:len(shape)], "float32"), mode="nearest",
              coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def reduce(g, x, shape):
    axes = sorted(int(a) for a in g.random.permutation(len(shape))[:g.random.integers(1, len(shape) + 1)])
    kind = g.pick(("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"))
    g.axes(kind, x, axes, 13 if kind == "ReduceSum" else 18, keepdims=g.pick((0, 1)))


def others(g, x, shape):
    axis = int(g.random.integers(len(shape)))
    kind = g.random.integers(6)
    if kind < 2:
        g.add("Softmax", x, axis=axis)
    elif kind < 4:
        g.add("Clip", x, *[np.float32(b) for b in g.pick(((0, 6), (-1, 1), (0, 1), (0, np.inf), (1, -1)))])
    elif kind == 4:
        g.add("CumSum", x, np.array(axis))
    else:
        g.add("Gather", x, g.random.integers(0, shape[axis], g.pick((1, 2, 3))), axis=axis)


MAKERS = (unary, unary, binary, binary, scalar, convolution, convolution, normalise, pool, pool, product, product,
          join, join, cut, cut, move, move, widen, reduce, others, transposed)


def differ(want, have):
    """Why the outputs of two files differ; nothing where they do not."""
    if list(want) != list(have):
        return f"outputs {list(want)}, then {list(have)}"
    for name, a in want.items():
        b = have[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{name}: {a.dtype} {a.shape}, then {b.dtype} {b.shape}"
        scale = max(1, np.abs(a).max(initial=0, where=np.isfinite(a)))
        if not np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True):
            return f"{name}: apart by {np.nanmax(abs(a - b))} of {scale}"
    return None


def one(graft, device, folder, number):
    """(why it differs or None, rewrites) of one graph; None where no graph came about."""
    g = Graph(number)
    for _ in range(g.random.integers(4, 20)):
        g.grow()
    if not g.nodes:
        return None
    model = g.whole()
    fed = {i: g.values[i] for i in g.inputs}
    source, target = (os.path.join(folder, f"{number}.{end}onnx") for end in ("", "out."))
    try:
        want = run(model, fed)
    except Exception:  # Shapes that do not fit, seen with an open axis alone.
        return None
    onnx.save(model, source)
    done = subprocess.run([graft, "optimize", source, target, "--device", device, "--search", "random", "--seed",
                           str(number + 1), "--steps"], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"exit status {done.returncode}: {done.stderr.strip()}", 0
    made = onnx.load(target)
    try:
        onnx.checker.check_model(made)
        why = differ(want, run(made, fed))
    except Exception as error:
        why = str(error)
    if why is None and any(i.type.tensor_type.shape.dim[0].dim_param for i in model.graph.input):
        fed = {i: g.numbers(v.shape[0] + 2, *v.shape[1:]) for i, v in fed.items()}
        try:
            want = run(model, fed)
        except Exception:  # A size that the graph cannot have.
            want = None
        why = differ(want, run(made, fed)) if want else None
    if why is None:
        os.remove(source)
        os.remove(target)
    return why, done.stdout.count("=>")


def main():
    graft, device, folder, first, count = *sys.argv[1:4], *map(int, sys.argv[4:])
    graphs = rewrites = wrong = 0
    for number in range(first, first + count):
        result = one(graft, device, folder, number)
        if result is not None:
            graphs, rewrites = graphs + 1, rewrites + result[1]
            if result[0]:
                wrong += 1
                print(f"graph {number}: {result[0]}")
    print(f"{graphs} graphs, {rewrites} rewrites, {wrong} differ")
    return 0 if graphs > count // 2 and rewrites > graphs and not wrong else 1


sys.exit(main())
