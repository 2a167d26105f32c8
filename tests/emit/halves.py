"""Models of float16 and bfloat16 for test_halves.sh, and what is held against them.

    halves.py convert IN.onnx OUT.onnx TYPE      all binary32 of a model as float16 or bfloat16
    halves.py small FOLDER                       small models, each for one thing
    halves.py compare BEFORE AFTER TOLERANCE [SINGLE.onnx]
    halves.py run MODEL INPUTS.npz OUTPUTS.npz   random inputs and what onnxruntime makes of them
    halves.py same A.npz B.npz TOLERANCE

`compare`: AFTER passes the ONNX project's checker, has BEFORE's inputs and outputs, types included,
and no tensor of binary32 that BEFORE has not; onnxruntime, or for bfloat16 the ONNX project's
reference, gives the same outputs of both up to the tolerance (of each output's largest element),
and AFTER is no further from what SINGLE, the model in binary32, makes of these inputs than
BEFORE is, but for that tolerance.
"""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from nets import model as make_model, nodes_of, run as run_model, value
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HALVES = {"float16": (TensorProto.FLOAT16, np.float16),
          "bfloat16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}


def half_tensor(tensor, kind, dtype):
    if tensor.data_type == TensorProto.FLOAT:
        with np.errstate(over="ignore"):  # Masks of the least binary32 become infinities.
            array = numpy_helper.to_array(tensor).astype(dtype)
        raw = array.view(np.uint16).tobytes()
        tensor.CopyFrom(helper.make_tensor(tensor.name, kind, array.shape, raw, raw=True))


def convert(path, out, name):
    model = onnx.load(path)
    kind, dtype = HALVES[name]
    for tensor in model.graph.initializer:
        half_tensor(tensor, kind, dtype)
    for port in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        if port.type.tensor_type.elem_type == TensorProto.FLOAT:
            port.type.tensor_type.elem_type = kind
    for node in model.graph.node:
        for attribute in node.attribute:
            half_tensor(attribute.t, kind, dtype)
            if node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = kind
    onnx.save(model, out)


class Net:
    """A model that grows by nodes. Convolutions of bfloat16 came with opset 22."""

    def __init__(self, name="float16"):
        self.kind, self.dtype = HALVES[name]
        self.opset = 17 if name == "float16" else 22
        self.nodes, self.weights, self.inputs = [], [], []

    def weight(self, name, numbers, single=False):
        array = np.asarray(numbers, np.float32 if single else self.dtype)
        raw = array.tobytes()
        kind = TensorProto.FLOAT if single else self.kind
        self.weights.append(helper.make_tensor(name, kind, array.shape, raw, raw=True))

    def feed(self, name, *shape, single=False):
        self.inputs.append(value(name, shape, TensorProto.FLOAT if single else self.kind))

    def add(self, text):
        self.nodes += nodes_of(text)

    def save(self, path, *outputs):
        ports = [value(name, shape, kind) for name, kind, shape in outputs]
        onnx.save(make_model(self.nodes, self.inputs, ports, self.weights, self.opset), path)


def batch_normed(folder, name, scale, kind="float16"):
    """A convolution and a batch normalisation that a rule folds into its weights."""
    rng = np.random.default_rng(3)
    net = Net(kind)
    net.feed("x", 1, 3, 8, 8)
    net.weight("w", rng.uniform(-200, 200, (4, 3, 3, 3)))
    for k, values in {"s": [scale] * 4, "b": [0.5] * 4, "m": [0.25] * 4, "v": [1] * 4}.items():
        net.weight(k, values)
    net.add("c = Conv<kernel_shape = [3, 3]>(x, w) n = BatchNormalization(c, s, b, m, v) y = Relu(n)")
    net.save(folder / f"{name}.onnx", ("y", net.kind, (1, 4, 6, 6)))
    return net


def overflows(folder):
    """Batch normalisation that cannot be folded, before moves that undo each other."""
    net = batch_normed(folder, "overflows", 1000)
    net.add("t = Transpose<perm = [0, 2, 3, 1]>(y) u = Transpose<perm = [0, 3, 1, 2]>(t) z = Concat<axis = 1>(u, u)")
    net.save(folder / "overflows.onnx", ("z", net.kind, (1, 8, 6, 6)))


def mixed(folder):
    """Float16 around a layer norm in binary32, with a chain of moves in each."""
    rng = np.random.default_rng(5)
    net = Net()
    net.feed("x", 4, 16)
    for name in "ab":
        net.weight(f"w{name}", rng.normal(0, 0.2, (16, 16)))
        net.weight(f"b{name}", rng.normal(0, 0.2, 16))
    net.weight("scale", np.ones(16), single=True)
    net.weight("shift", np.zeros(16), single=True)
    net.add(f"""ma = MatMul(x, wa) sa = Add(ma, ba) ra = Relu(sa)
        t1 = Transpose<perm = [1, 0]>(ra) t2 = Transpose<perm = [1, 0]>(t1) wide = Cast<to = {TensorProto.FLOAT}>(t2)
        t3 = Transpose<perm = [1, 0]>(wide) t4 = Transpose<perm = [1, 0]>(t3) ln = LayerNormalization(t4, scale, shift)
        h = Cast<to = {net.kind}>(ln) mb = MatMul(h, wb) sb = Add(mb, bb) rb = Relu(sb)""")
    net.save(folder / "mixed.onnx", ("rb", net.kind, (4, 16)))


def constants(folder):
    """Nodes of constants, and operators that are read as others with constants of their own."""
    net = Net()
    net.feed("x", 2, 8)
    net.weight("one", 1)
    net.weight("third", np.linspace(0.1, 3.3, 8))
    net.weight("six", 6)
    net.weight("zero", 0)
    net.add("""inverse = Div(one, third) minus = Neg(inverse) p = Mul(x, minus) n = Neg(p) a = Abs(n)
        h = HardSigmoid<alpha = 0.2, beta = 0.5>(a) k = Clip(h, zero, six) y = Clip(k, zero, six)""")
    net.save(folder / "constants.onnx", ("y", net.kind, (2, 8)))


def parts(folder, name, kind):
    """Gelu and layer normalisation in pieces, their numbers as tensors of the type."""
    net = Net(kind)
    net.opset = 22
    net.feed("x", 2, 4, 16)
    numbers = {"root": 2**0.5, "one": 1, "half": 0.5, "two": 2, "epsilon": 1e-3}
    for number, known in numbers.items():
        net.weight(number, known)
    net.weight("axes", 0)
    net.weights[-1] = helper.make_tensor("axes", TensorProto.INT64, [1], [2])
    net.weight("scale", np.linspace(0.5, 1.5, 16))
    net.weight("shift", np.linspace(-1, 1, 16))
    net.add("""h = Mul(x, half) d = Div(x, root) e = Erf(d) p = Add(one, e) g = Mul(h, p) m = ReduceMean(g, axes)
        c = Sub(g, m) q = Pow(c, two) v = ReduceMean(q, axes) w = Add(v, epsilon) s = Sqrt(w) n = Div(c, s)
        t = Mul(n, scale) y = Add(t, shift)""")
    net.save(folder / f"{name}.onnx", ("y", net.kind, (2, 4, 16)))


def island(folder):
    """Mostly float16, with a normalisation in binary32 as exporters leave it, in pieces."""
    rng = np.random.default_rng(7)
    net = Net()
    net.feed("x", 4, 16)
    for k in range(4):
        net.weight(f"w{k}", rng.normal(0, 0.2, (16, 16)))
    net.weight("epsilon", 1e-5, single=True)
    net.add(f"""a = MatMul(x, w0) b = MatMul(a, w1) wide = Cast<to = {TensorProto.FLOAT}>(b) q = Mul(wide, wide)
        v = ReduceMean<axes = [1]>(q) e = Add(v, epsilon) s = Sqrt(e) n = Div(wide, s) h = Cast<to = {net.kind}>(n)
        c = MatMul(h, w2) y = MatMul(c, w3)""")
    net.save(folder / "island.onnx", ("y", net.kind, (4, 16)))


def wrong_size(folder):
    """Raw data of three bytes for two numbers of two."""
    for name, (kind, _) in HALVES.items():
        net = Net(name)
        net.feed("x", 2)
        net.weight("w", [1, 2])
        net.weights[0].raw_data = net.weights[0].raw_data[:3]
        net.add("y = Add(x, w)")
        net.save(folder / f"wrong-{name}.onnx", ("y", kind, (2,)))


def small(folder):
    folder = Path(folder)
    batch_normed(folder, "fits", 2)
    batch_normed(folder, "bfits", 1000, "bfloat16")
    overflows(folder)
    mixed(folder)
    constants(folder)
    parts(folder, "parts", "float16")
    parts(folder, "bparts", "bfloat16")
    island(folder)
    wrong_size(folder)


def dtype_of(port):
    return onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)


def draw(model, seed):
    """Random inputs that every type represents."""
    rng = np.random.default_rng(seed)
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for port in model.graph.input:
        if port.name not in weights:
            shape = [dim.dim_value or 1 for dim in port.type.tensor_type.shape.dim]
            dtype = dtype_of(port)
            inputs[port.name] = (rng.integers(0, 2, shape).astype(dtype) if np.dtype(dtype).kind == "i"
                                 else rng.normal(size=shape).astype(ml_dtypes.bfloat16).astype(dtype))
    return inputs


def evaluate(path, inputs):
    model = onnx.load(path)
    kinds = {port.type.tensor_type.elem_type for port in model.graph.input}
    if TensorProto.BFLOAT16 in kinds:
        return ReferenceEvaluator(model).run(None, inputs)
    return list(run_model(path, inputs, optimised=False).values())


def apart(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    finite = np.isfinite(a)
    return np.abs(a[finite] - b[finite]).max(initial=0) / max(1e-30, np.abs(a[finite]).max(initial=0))


def ports(model):
    weights = {tensor.name for tensor in model.graph.initializer}
    return [(port.name, port.type.SerializeToString()) for port in [*model.graph.input, *model.graph.output]
            if port.name not in weights]


def singles(model):
    return sum(tensor.data_type == TensorProto.FLOAT for tensor in model.graph.initializer)


def compare(before, after, tolerance, single=None):
    old, new = onnx.load(before), onnx.load(after)
    onnx.checker.check_model(new, full_check=True)
    if ports(old) != ports(new) or singles(new) > singles(old):
        return f"{after}: other ports or types"
    inputs = draw(old, 7)
    want, have = evaluate(before, inputs), evaluate(after, inputs)
    worst = max(apart(a, b) for a, b in zip(want, have))
    line = f"{len(old.graph.node)} -> {len(new.graph.node)} nodes, {worst:.2e} apart"
    tolerance = float(tolerance)
    fault = not worst <= tolerance
    if single:
        exact = evaluate(single, {name: np.asarray(x, np.float32) if np.dtype(x.dtype).kind not in "iu" else x
                                  for name, x in inputs.items()})
        off = [max(apart(a, b) for a, b in zip(exact, side)) for side in (want, have)]
        line += f"; from binary32 {off[0]:.2e} and {off[1]:.2e}"
        fault = fault or not off[1] <= off[0] + tolerance
    print(f"{Path(after).name}: {line}")
    return "too far" if fault else None


def run(path, inputs, outputs):
    """For `graft run`: bfloat16 has no place in an archive, so float16 only."""
    model = onnx.load(path)
    drawn = draw(model, 7)
    np.savez(inputs, **drawn)
    np.savez(outputs, **{port.name: x for port, x in zip(model.graph.output, evaluate(path, drawn))})


def same(a, b, tolerance):
    a, b = np.load(a), np.load(b)
    if sorted(a) != sorted(b) or any(a[name].dtype != b[name].dtype for name in a):
        return "other names or types"
    worst = max(apart(a[name], b[name]) for name in a)
    print(f"{worst:.2e} apart")
    return None if worst <= float(tolerance) else "too far"


if __name__ == "__main__":
    sys.exit({"convert": convert, "small": small, "compare": compare, "run": run, "same": same}[sys.argv[1]](*sys.argv[2:]))
