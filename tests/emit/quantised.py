"""Models of 8 bits for test_quantised.sh, and what is held against them.

    quantised.py small FOLDER          small models, each for one thing
    quantised.py device                a device of Graft where a model takes as long as it has nodes
    quantised.py compare BEFORE AFTER  the ONNX project's checker takes AFTER, and onnxruntime gives
                                       the same bits of both, with its own rewrites and without
    quantised.py whole FOLDER          whether onnxruntime's sums of uint8 times int8 are whole here: without
                                       VNNI it adds two products in 16 bits, which do not hold them
    quantised.py sums GRAFT FOLDER KIND  sums of products in int32: the same as onnxruntime's
    quantised.py table GRAFT FOLDER    rows of a table of bytes: the same as onnxruntime's
    quantised.py tiles GRAFT FOLDER    convolutions in a row: within a unit of onnxruntime's
    quantised.py changes GRAFT FOLDER  to and from 16 bits, by blocks, from 4 bits: the same as onnxruntime's
    quantised.py formats GRAFT FOLDER  a net as onnxruntime's quantiser writes it, in both of its formats, signed
                                       and not: within a unit of what onnxruntime makes of the one with changes
                                       between its operators when it computes these in binary32
    quantised.py integers GRAFT FOLDER KIND  products of integers in Graft's executor: onnxruntime
                                       gives the same bytes where scales are powers of two, else one
                                       unit apart in few places
"""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import nets
from onnx import TensorProto, helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static


def save(path, nodes, inputs, outputs, constants, opset=13):
    ports = [[helper.make_tensor_value_info(*port) for port in side] for side in (inputs, outputs)]
    model = nets.model(nodes, *ports, constants, opset, 8 if opset < 21 else 10, ["com.microsoft"])
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


def chain(path, steps, zero, shape, out_type, opset=13):
    """Operators one behind the other; Q and D change to and from 8 bits with one scale."""
    nodes = []
    for i, (op, attributes) in enumerate(steps):
        changes = op in ("Q", "D")
        name = {"Q": "QuantizeLinear", "D": "DequantizeLinear"}.get(op, op)
        reads = ["x" if i == 0 else f"t{i}"] + (["s", "z"] if changes else [])
        nodes.append(helper.make_node(name, reads, ["y" if i + 1 == len(steps) else f"t{i + 1}"], **attributes))
    constants = {"s": np.array(0.05, np.float32), "z": np.array(*zero)}
    save(path, nodes, [("x", TensorProto.FLOAT, shape)], [("y", out_type, None)], constants, opset)


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
              [1, 56, 56, 64], byte[zero[1]])
    chain(folder / "other.onnx", [("Relu", {}), ("Q", {}), ("D", {}), ("Relu", {})], (-100, np.int8), shape,
          TensorProto.FLOAT)
    for name, zero in (("wide", (300, np.uint16)), ("wide-signed", (-300, np.int16))):
        chain(folder / f"{name}.onnx", [("Q", {}), ("D", {}), turn, back, ("Q", {}), ("D", {})], zero, shape,
              TensorProto.FLOAT, 21)
    twins(folder / "twins.onnx")
    rng = np.random.default_rng(3)
    weights = {f"w{i}": rng.standard_normal((8, 8, 3, 3)).astype(np.float32) / 9 for i in range(2)}
    nodes = nets.nodes_of("""a = Conv<pads = [1, 1, 1, 1]>(x, w0) b = Relu(a) c = Transpose<perm = [0, 2, 3, 1]>(b)
        d = Transpose<perm = [0, 3, 1, 2]>(c) y = Conv<pads = [1, 1, 1, 1]>(d, w1)""")
    save(folder / "float.onnx", nodes, [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, None)], weights)
    quantize_static(folder / "float.onnx", folder / "qlinear.onnx", Reader(shape), quant_format=QuantFormat.QOperator)


def twins(path):
    """Two products that read the same, each by a Reshape and changes of its own."""
    nodes = nets.nodes_of("q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)")
    for i in "ab":
        nodes += nets.nodes_of(f"""r{i} = Reshape(d, shape) q{i} = QuantizeLinear(r{i}, s, z)
            d{i} = DequantizeLinear(q{i}, s, z) f{i} = DequantizeLinear(w{i}, s, wz) m{i} = MatMul(d{i}, f{i})
            y{i} = QuantizeLinear(m{i}, s, z)""")
    rng = np.random.default_rng(3)
    constants = {f"w{i}": rng.integers(-127, 128, (48, 16)).astype(np.int8) for i in "ab"}
    constants |= {"s": np.array(0.05, np.float32), "z": np.array(3, np.uint8), "wz": np.array(0, np.int8),
                  "shape": np.array([2, 48], np.int64)}
    save(path, nodes, [("x", TensorProto.FLOAT, [2, 6, 8])], [(f"y{i}", TensorProto.UINT8, None) for i in "ab"],
         constants)


def device():
    """So short a model gains by what leaves a node away, and nothing is noise."""
    def answer(question):
        if question["ask"] == "time":
            return {"median_ns": 1000, "spread_ns": 1}
        took = [1000 * len(onnx.load(path).graph.node) for path in question["models"]]
        return {"rounds_ns": [[ns + i % 3 for i in range(question["rounds"])] for ns in took]}
    nets.serve("counts", {"fuses": ["relu(add(a,b)) = add(a,b)"]}, answer)


def run(path, inputs, optimised=False):
    return list(nets.run(path, inputs, optimised).values())


def execute(graft, path, fed):
    return nets.execute(graft, path, fed, "--threads", "1")


KINDS = {  # operator, image or rows, filter or columns, attributes, what stands behind it
    "pointwise": ("Conv", [1, 32, 7, 9], [48, 32, 1, 1], {}, "Relu"),
    "stem": ("Conv", [1, 3, 21, 20], [16, 3, 5, 5], {"strides": [2, 2], "pads": [2, 1, 2, 1]}, "Clip"),
    "depthwise": ("Conv", [2, 24, 9, 9], [24, 1, 3, 3], {"group": 24, "pads": [1, 1, 1, 1]}, None),
    "grouped": ("Conv", [1, 16, 8, 8], [32, 8, 3, 3], {"group": 2, "dilations": [2, 2]}, "Relu"),
    "gemm": ("Gemm", [5, 40], [24, 40], {"transB": 1}, "Relu"),
    "matmul": ("MatMul", [2, 6, 31], [31, 17], {}, None),
    "residual": ("Conv", [1, 16, 8, 8], [16, 16, 3, 3], {"pads": [1, 1, 1, 1]}, "Add"),
    "qlinearconv": ("QLinearConv", [1, 16, 8, 8], [24, 16, 3, 3], {"pads": [0, 1, 1, 0]}, None),
    "qlinearmatmul": ("QLinearMatMul", [6, 31], [31, 17], {}, None),
}


def product(path, kind, rng, powers):
    """One product: of bytes with or without a sign, of a scale a filter, or one for all."""
    op, left, right, attributes, behind = KINDS[kind]
    types, turned = [(np.uint8, 256, 0), (np.int8, 256, -128)], op == "Gemm"
    (x_type, _, x_least), (y_type, _, y_least) = types[rng.integers(2)], types[rng.integers(2)]
    y_type, y_least = (x_type, x_least) if behind == "Add" or "QLinear" in op else (y_type, y_least)
    is_conv, columns = "Conv" in op, right[0] if "Conv" in op or turned else right[1]
    channels = columns if rng.integers(2) and op != "QLinearMatMul" else 1

    def scale(count, exponent):
        values = 2.0 ** rng.integers(exponent - 2, exponent, count)
        return np.array(values if powers else values * rng.uniform(0.6, 1, count), np.float32)

    xs, ys, ws = scale(1, -4)[0], scale(1, -3)[0], scale(channels, -6)
    constants = {
        "xs": np.array(xs), "xz": np.array(rng.integers(256) + x_least, x_type), "ys": np.array(ys),
        "yz": np.array(rng.integers(256) + y_least, y_type), "ws": ws if channels > 1 else ws.reshape(()),
        "wz": np.zeros(channels if channels > 1 else (), np.int8), "w": rng.integers(-127, 128, right).astype(np.int8),
        "b": rng.integers(-3000, 3000, columns).astype(np.int32), "bs": (xs * np.broadcast_to(ws, columns)).astype(np.float32),
        "bz": np.zeros(columns, np.int32), "low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    axis = {"axis": 0 if is_conv or turned else 1} if channels > 1 else {}
    if "QLinear" in op:
        nodes = [helper.make_node(op, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"] + ["b"] * is_conv, ["y"], **attributes)]
    else:
        nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
                 helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], **axis),
                 helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bf"], axis=0),
                 helper.make_node(op, ["xf", "wf"] + ["bf"] * (op != "MatMul"), ["t"], **attributes)]
        if behind == "Add":  # The sum of what is dequantised twice.
            nodes += [helper.make_node("QuantizeLinear", ["t", "ys", "yz"], ["tq"]),
                      helper.make_node("DequantizeLinear", ["tq", "ys", "yz"], ["td"]), helper.make_node("Add", ["td", "xf"], ["u"])]
        elif behind is not None:
            nodes.append(helper.make_node(behind, ["t"] + ["low", "high"] * (behind == "Clip"), ["u"]))
        nodes.append(helper.make_node("QuantizeLinear", ["t" if behind is None else "u", "ys", "yz"], ["y"]))
    read = {name for node in nodes for name in node.input}
    number = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}
    save(path, nodes, [("x", number[x_type], left)], [("y", number[y_type], None)],
         {name: array for name, array in constants.items() if name in read})
    return (rng.integers(0, 256, left) + x_least).astype(x_type)


def integers(graft, folder, kind):
    for draw in range(8):
        rng, powers = np.random.default_rng(draw), draw % 2 == 0
        path = folder / f"{kind}.onnx"
        x = product(path, kind, rng, powers)
        ours, (theirs,) = execute(graft, path, {"x": x})["y"].astype(int), run(path, {"x": x}, optimised=True)
        apart = np.abs(ours - theirs)
        print(kind, draw, x.dtype, theirs.dtype, "exact" if powers else "any", apart.max(), (apart > 0).mean(), len(np.unique(theirs)))
        if len(np.unique(theirs)) < 4 or apart.max() > (0 if powers else 1) or (apart > 0).mean() > 0.01:
            sys.exit(1)


def draw_bytes(rng, kind, shape):
    return (rng.integers(0, 256, shape) + np.iinfo(kind).min).astype(kind)


def draw_zero(rng, kind, forms):
    """None, or zero points of one of the forms."""
    which = rng.integers(len(forms) + 1)
    return None if which == len(forms) else draw_bytes(rng, kind, forms[which])


def whole(folder):
    fed = {"x": np.full((2, 8), 255, np.uint8)}
    ports = [("x", TensorProto.UINT8, [2, 8])], [("y", TensorProto.INT32, [2, 4])]
    save(folder / "whole.onnx", [helper.make_node("MatMulInteger", ["x", "w"], ["y"])], *ports,
         {"w": np.full((8, 4), 127, np.int8)})
    (sums,) = run(folder / "whole.onnx", fed)
    return None if (sums == 8 * 255 * 127).all() else "sums of uint8 times int8 are cut to 16 bits here"


def matmul_sum(rng, fed, constants):
    left, right = (rng.choice([np.uint8, np.int8]) for _ in range(2))
    rows, depth, columns = (int(rng.integers(1, most)) for most in (30, 90, 80))
    batch = [(), (2,), (2, 3)][rng.integers(3)]
    fed["x"] = draw_bytes(rng, left, (*batch, rows, depth))
    where = fed if rng.integers(2) else constants  # A second operand that is packed once, or in each run.
    where["w"] = draw_bytes(rng, right, ((), batch)[rng.integers(2)] + (depth, columns))
    zeros = {"xz": draw_zero(rng, left, [()]), "wz": draw_zero(rng, right, [(), (columns,)] if where["w"].ndim == 2 else [()])}
    return "MatMulInteger", {}, zeros


def conv_sum(rng, fed, constants):
    right, axes = rng.choice([np.uint8, np.int8]), int(rng.integers(1, 3))
    groups, channels, filters = ((int(rng.integers(2, 40)), 1, 1) if rng.integers(4) == 0 else
                                 (int(most) for most in rng.integers(1, [4, 12, 40])))
    kernel, steps, dilations = (rng.integers(1, most, axes).tolist() for most in (5, 4, 3))
    pads = rng.integers(0, 4, 2 * axes).tolist()
    sizes = [int(rng.integers((k - 1) * d + 1, 20)) for k, d in zip(kernel, dilations)]
    fed["x"] = draw_bytes(rng, np.uint8, (int(rng.integers(1, 3)), groups * channels, *sizes))
    constants["w"] = draw_bytes(rng, right, (groups * filters, channels, *kernel))
    zeros = {"xz": draw_zero(rng, np.uint8, [()]), "wz": draw_zero(rng, right, [(), (groups * filters,)])}
    return "ConvInteger", {"group": groups, "strides": steps, "dilations": dilations, "pads": pads}, zeros


def sum_differences(path, node, fed):
    """By a Conv of binary32, exact below 2^24: onnxruntime's ConvInteger takes no zero points of filters."""
    x, w, x_zero, w_zero = (np.float32(fed.get(name, 0)) for name in ("x", "w", "xz", "wz"))
    fed = {"x": x - x_zero, "w": w - w_zero.reshape(-1, *[1] * (w.ndim - 1))}
    ports = [(name, TensorProto.FLOAT, array.shape) for name, array in fed.items()]
    node = helper.make_node("Conv", ["x", "w"], ["y"], **node)
    save(path, [node], ports, [("y", TensorProto.FLOAT, None)], {})
    return [run(path, fed)[0].astype(np.int32)]


def sums(graft, folder, kind):
    if kind == "steps":
        return steps(graft, folder)
    for draw in range(16):
        rng, fed, constants = np.random.default_rng(draw), {}, {}
        op, attributes, zeros = (matmul_sum if kind == "matmulinteger" else conv_sum)(rng, fed, constants)
        constants.update({name: zero for name, zero in zeros.items() if zero is not None})
        reads = ["x", "w"] + [name if zero is not None else "" for name, zero in zeros.items()]
        path = folder / f"{kind}.onnx"
        ports = [(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in fed.items()]
        save(path, [helper.make_node(op, reads, ["y"], **attributes)], ports, [("y", TensorProto.INT32, None)], constants)
        many = op == "ConvInteger" and constants.get("wz", np.zeros(())).ndim > 0
        (theirs,) = (sum_differences(folder / "differences.onnx", attributes, {**fed, **constants}) if many else
                     run(path, fed))
        ours = execute(graft, path, fed)["y"]
        print(kind, draw, {name: (array.dtype, array.shape) for name, array in {**fed, **constants}.items()}, attributes)
        if ours.dtype != theirs.dtype or not np.array_equal(ours, theirs) or not theirs.any():
            sys.exit(1)


def steps(graft, folder):
    """An LSTM of weights of 8 bits, both ways: all three results."""
    for draw in range(6):
        rng, kind = np.random.default_rng(draw), (np.int8, np.uint8)[draw % 2]
        count, batch, features, units, ways = (int(n) for n in rng.integers(1, [7, 4, 40, 40, 3]))
        scale = (ways,) if draw < 4 else (ways, 4 * units)
        fed = {"x": rng.standard_normal((count, batch, features)).astype(np.float32)}
        constants = {"b": rng.standard_normal((ways, 8 * units)), "h": rng.standard_normal((ways, batch, units)),
                     "c": rng.standard_normal((ways, batch, units))}
        for name, size in (("w", features), ("r", units)):
            constants[name] = draw_bytes(rng, kind, (ways, size, 4 * units))
            constants[name + "s"] = rng.uniform(0.002, 0.01, scale)
            constants[name + "z"] = np.full(scale, 128 if kind == np.uint8 else 0, kind)  # What the runtime takes.
        constants = {name: array.astype(np.float32) if array.dtype == float else array for name, array in constants.items()}
        path = folder / "steps.onnx"
        node = helper.make_node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "h", "c", "", "ws", "wz", "rs", "rz"],
                                ["y", "last", "cell"], domain="com.microsoft", hidden_size=units,
                                direction=("forward", "bidirectional")[ways - 1])
        last = (TensorProto.FLOAT, [ways, batch, units])
        save(path, [node], [("x", TensorProto.FLOAT, fed["x"].shape)],
             [("y", TensorProto.FLOAT, [count, ways, batch, units]), ("last", *last), ("cell", *last)], constants)
        ours = execute(graft, path, fed)
        apart = [float(np.abs(ours[name] - theirs).max())
                 for name, theirs in zip(("y", "last", "cell"), run(path, fed))]
        print("steps", draw, kind.__name__, ways, batch, apart)
        if max(apart) > 1e-5:
            sys.exit(1)


def table(graft, folder):
    """Rows of a table of bytes, as dynamic quantisation leaves embeddings at places that are known."""
    rng = np.random.default_rng(7)
    path = folder / "table.onnx"
    fed = {"x": rng.standard_normal((3, 8)).astype(np.float32)}
    constants = {"t": draw_bytes(rng, np.uint8, (5, 8)), "i": np.array([3, 0, 4]), "s": np.array(0.25, np.float32),
                 "z": np.array(127, np.uint8)}
    nodes = nets.nodes_of("r = Gather(t, i) d = DequantizeLinear(r, s, z) y = Add(x, d)")
    save(path, nodes, [("x", TensorProto.FLOAT, [3, 8])], [("y", TensorProto.FLOAT, [3, 8])], constants)
    (theirs,) = run(path, fed)
    return None if np.array_equal(execute(graft, path, fed)["y"], theirs) else "rows differ"


def tiles(graft, folder):
    """A pointwise convolution of an image with a zero point before a depthwise one: AMX has kernels of its own."""
    rng = np.random.default_rng(0)
    path = folder / "tiles.onnx"
    fed = {"x": np.abs(rng.standard_normal((1, 64, 6, 6))).astype(np.float32)}
    constants = {"s": np.array(0.05, np.float32), "z": np.array(124, np.uint8), "ws": np.array(0.001, np.float32),
                 "wz": np.array(0, np.int8), "ys": np.array(0.01, np.float32)}
    nodes, x = [], "x"
    for i, (shape, group) in enumerate((((64, 64, 1, 1), 1), ((64, 1, 3, 3), 64))):
        constants[f"w{i}"] = rng.integers(-127, 127, shape).astype(np.int8)
        s = "ys" if i else "s"
        nodes += nets.nodes_of(f"""q{i} = QuantizeLinear({x}, {s}, z) d{i} = DequantizeLinear(q{i}, {s}, z)
            f{i} = DequantizeLinear(w{i}, ws, wz) c{i} = Conv<group = {group}, pads = {[i] * 4}>(d{i}, f{i})""")
        x = f"c{i}"
    nodes += nets.nodes_of(f"y = QuantizeLinear({x}, ys, z)")
    save(path, nodes, [("x", TensorProto.FLOAT, [1, 64, 6, 6])], [("y", TensorProto.UINT8, [1, 64, 6, 6])], constants)
    (theirs,) = run(path, fed)
    apart = np.abs(execute(graft, path, fed)["y"].astype(int) - theirs)
    return None if apart.max() <= 1 else f"{apart.max()} units apart"


def changes(graft, folder):
    """Activations of 16 bits; weights in blocks, of 4 bits too, the last block shorter; what of 4 bits cannot be told."""
    rng = np.random.default_rng(2)
    path = folder / "changes.onnx"
    limits = {np.uint16: (0, 65536), np.int16: (-32768, 32768), np.uint8: (0, 256), np.int8: (-128, 128),
              ml_dtypes.uint4: (0, 16), ml_dtypes.int4: (-8, 8)}
    x = (40 * rng.standard_normal((5, 7))).astype(np.float32)
    draw = lambda kind, shape: rng.integers(*limits[kind], shape).astype(kind)
    scales = lambda shape: rng.uniform(0.001, 0.1, shape).astype(np.float32)
    cases = []
    for kind in (np.uint16, np.int16):
        for domain, opset in (("", 21), ("com.microsoft", 13)):
            for count, axis in (((), 1), ((5,), 0), ((7,), -1)):
                cases.append((kind, domain, opset, {"axis": axis}, count, True))
    for kind in limits:
        for axis, block, count in ((0, 2, (3, 7)), (1, 3, (5, 3)), (-1, 7, (5, 1))):
            both = kind in (np.uint8, np.int8, np.uint16, np.int16)
            cases.append((kind, "", 21, {"axis": axis, "block_size": block}, count, both))
        cases.append((kind, "", 21, {"axis": 0}, (5,), False))
    for kind, domain, opset, attributes, count, both in cases:
        for zero in ([draw(kind, count)], []):
            constants = {"s": scales(count), "w": draw(kind, (5, 7)), **{"z": z for z in zero}}
            reads, nodes, out = ["s"] + ["z"] * len(zero), [], "x"
            number = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
            if not zero:  # Not as raw bytes.
                constants["w"] = helper.make_tensor("w", number, (5, 7), constants["w"].astype(int).flatten())
            if both and zero:
                nodes = [helper.make_node("QuantizeLinear", ["x", *reads], ["q"], domain=domain, **attributes),
                         helper.make_node("DequantizeLinear", ["q", *reads], ["d"], domain=domain, **attributes)]
                out = "d"
            nodes += [helper.make_node("DequantizeLinear", ["w", *reads], ["f"], domain=domain, **attributes),
                      helper.make_node("Add", [out, "f"], ["y"])]
            ports = [("y", TensorProto.FLOAT, None)] + [("q", number, [5, 7])] * (out == "d")
            save(path, nodes, [("x", TensorProto.FLOAT, [5, 7])], ports, constants, opset)
            made = execute(graft, path, {"x": x})
            for port, theirs in zip(ports, run(path, {"x": x})):
                ours = made[port[0]]
                if ours.dtype != theirs.dtype or not np.array_equal(ours, theirs):
                    return f"{port[0]} differs: {np.dtype(kind)} {domain} {attributes} {count}"
    for zero in ([np.zeros((), ml_dtypes.uint4)], []):  # That it saturates at 15 is not known when it has 8 bits.
        attributes = {} if zero else {"output_dtype": TensorProto.UINT4}
        nodes = [helper.make_node("QuantizeLinear", ["x", "s"] + ["z"] * len(zero), ["q"], **attributes),
                 helper.make_node("DequantizeLinear", ["q", "s"] + ["z"] * len(zero), ["y"])]
        save(path, nodes, [("x", TensorProto.FLOAT, [5, 7])], [("y", TensorProto.FLOAT, None)],
             {"s": np.float32(0.1), **{"z": z for z in zero}}, 21)
        told = subprocess.run([graft, "--quiet", "run", path, "--inputs", path.with_suffix(".in.npz"),
                               "--outputs", folder / "none.npz"], capture_output=True, text=True)
        if told.returncode != 2 or "QuantizeLinear" not in told.stderr:
            return f"4 bits are not refused: {told.returncode} {told.stderr}"
    return None


def branches(path, shape):
    """Two branches of convolutions and a BatchNormalization, joined, added to, pooled and multiplied."""
    rng = np.random.default_rng(6)
    draw = lambda *sizes: (rng.standard_normal(sizes) / np.sqrt(np.prod(sizes[1:]))).astype(np.float32)
    weights = {"w0": draw(16, shape[1], 3, 3), "w1": draw(16, 16, 1, 1), "w2": draw(16, 1, 3, 3), "w3": draw(32, 32, 3, 3),
               "b3": draw(32), "v": draw(32, 10), "scale": rng.uniform(0.5, 2, 16).astype(np.float32), "shift": draw(16),
               "mean": draw(16), "variance": rng.uniform(0.5, 2, 16).astype(np.float32)}
    nodes = nets.nodes_of("""a0 = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w0)
        a1 = BatchNormalization(a0, scale, shift, mean, variance) a = Relu(a1)
        p = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(a)
        c = Conv(p, w1) d = Conv<group = 16, pads = [1, 1, 1, 1]>(p, w2) e = LeakyRelu<alpha = 0.1>(d)
        f = Concat<axis = 1>(c, e) g = Conv<pads = [1, 1, 1, 1]>(f, w3, b3) h = Add(f, g)
        m = GlobalAveragePool(h) n = Flatten(m) y = MatMul(n, v)""")
    save(path, nodes, [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, None)], weights)


def formats(graft, folder):
    shape, path = [2, 3, 29, 23], folder / "branches.onnx"
    branches(path, shape)
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    for kind in (QuantType.QUInt8, QuantType.QInt8):
        made = {}
        for form in (QuantFormat.QDQ, QuantFormat.QOperator):
            file = folder / f"branches-{form.name}.onnx"
            quantize_static(path, file, Reader(shape), quant_format=form, per_channel=True, activation_type=kind,
                            weight_type=QuantType.QInt8)
            made[form] = execute(graft, file, {"x": x})["y"]
        unit = next(onnx.numpy_helper.to_array(i).item() for i in onnx.load(file).graph.initializer if i.name == "y_scale")
        (theirs,) = run(folder / "branches-QDQ.onnx", {"x": x})
        apart = {form.name: np.abs(ours - theirs).max() / unit for form, ours in made.items()}
        print(kind, apart, len(np.unique(theirs)))
        if max(apart.values()) > 1.01 or len(np.unique(theirs)) < 10:
            return f"{kind} differs"
    return None


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
        for optimised in (False, True):
            for a, b in zip(run(before, inputs, optimised), run(after, inputs, optimised)):
                if a.dtype != b.dtype or not np.array_equal(a, b):
                    return f"outputs differ at {scale} by {np.abs(a.astype(float) - b.astype(float)).max()}"
    return None


if __name__ == "__main__":
    sys.exit(globals()[sys.argv[1]](*(Path(word) if Path(word).is_dir() else word for word in sys.argv[2:])))
