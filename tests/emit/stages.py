"""Models whose sizes depend on data (test_stages.sh).

    stages.py FOLDER     models N.onnx, inputs N.K.in.npz and, by onnxruntime, N.K.want.npz; prints each N and K
"""

import sys

import nets
import numpy as np
import onnx

HEAD = '<ir_version: 8, opset_import: ["" : %d]>\ngraph (%s) => (%s) '
MODELS = {
    # What finds sizes, what goes by sizes that were found, and both once more.
    "found": (17, "float[6, 4] x", "int64[n, 2] p, float[m] v, float[a, 4] rows, float[b] flat, float[c] u, int64[d] i, "
              "int64[e] j, int64[f] k, float[g] w, float[h, 4] parts, float[o] best, int64[q] at, float[r, 3] wide, "
              "float[s] twice, float[t, 2] ones, float[y, 4] first, float[z, 4] padded, int64[l] counted", """{
        zero = Constant<value_float = 0.0>() one = Constant<value_ints = [1]>() two = Constant<value_ints = [2]>()
        none = Constant<value_ints = [0]>() none1 = Constant<value_int = 0>() all = Constant<value_ints = [-1]>()
        n = NonZero(x) p = Transpose<perm = [1, 0]>(n) v = GatherND(x, p)
        sums = ReduceSum<keepdims = 0>(x, one) positive = Greater(sums, zero)
        rows = Compress<axis = 0>(x, positive)
        flags = Greater(x, zero) list = Reshape(flags, all) flat = Compress(x, list)
        rounded = Round(x) u, i, j, k = Unique(rounded) w = Unique<sorted = 0>(rounded)
        signs = Sign(x) parts = Unique<axis = 0>(signs)
        shape = Shape(v) half = Div(shape, two) best, at = TopK(v, half)
        three = Constant<value_ints = [3]>() to = Concat<axis = 0>(shape, three)
        column = Unsqueeze(v, one) wide = Expand(column, to)
        twice = Tile(v, two) size = Concat<axis = 0>(half, two) ones = ConstantOfShape(size)
        many = Squeeze(half) limit = Shape<start = 0, end = 1>(x) fit = Min(half, limit)
        first = Slice(x, none, fit) ends = Concat<axis = 0>(none, none, fit, none) padded = Pad(x, ends)
        counted = Range(none1, many, unit) unit = Constant<value_int = 1>()
        }"""),
    # A head as detectors have it: boxes that others do not overlap, and what stands behind them.
    "boxes": (13, "float[1, 3, 8, 8] x", "float[n, 4] boxes, float[n] scores, int64[n] labels, float[n, 5] features", """{
        h = Conv<kernel_shape = [1, 1]>(x, weight) f = Constant<value_ints = [1, 12, 64]>() r = Reshape(h, f)
        corner, size, logits, deep = Split<axis = 1>(r, parts) parts = Constant<value_ints = [2, 2, 3, 5]>()
        wide = Constant<value_float = 4.0>() s = Sigmoid(size) e = Mul(s, wide) low = Sub(corner, e) high = Add(corner, e)
        both = Concat<axis = 1>(low, high) all = Transpose<perm = [0, 2, 1]>(both) each = Sigmoid(logits)
        most = Constant<value_ints = [5]>() overlap = Constant<value_float = 0.3>() least = Constant<value_float = 0.6>()
        chosen = NonMaxSuppression(all, each, most, overlap, least)
        one = Constant<value_ints = [1]>() first = Constant<value_ints = [0]>() place = Constant<value_ints = [2]>()
        at = Gather<axis = 1>(chosen, place) class = Gather<axis = 1>(chosen, one) where = Squeeze(at, one)
        labels = Squeeze(class, one) table = Squeeze(all, first) boxes = Gather(table, where)
        pairs = Concat<axis = 1>(class, at) grid = Squeeze(each, first) scores = GatherND(grid, pairs)
        across = Transpose<perm = [0, 2, 1]>(deep) ground = Squeeze(across, first) few = Gather(ground, where)
        m = MatMul(few, mix) features = Softmax(m)
        }"""),
    # Products between, so that sizes are found twice; regions of an image.
    "regions": (16, "float[1, 4, 12, 12] x, float[5, 4] r", "float[n, 4, 3, 3] y, float[m, 4, 2, 2] z, float[k] w", """{
        zero = Constant<value_float = 0.0>() axis = Constant<value_ints = [1]>() first = Gather<axis = 1>(r, at)
        at = Constant<value_int = 0>() p = Greater(first, zero) some = Compress<axis = 0>(r, p)
        count = Shape<start = 0, end = 1>(some) image = ConstantOfShape<value = int64[1] {0}>(count)
        y = RoiAlign<output_height = 3, output_width = 3, sampling_ratio = 2, spatial_scale = 0.5>(x, some, image)
        c = Conv<kernel_shape = [2, 2], strides = [1, 1]>(y, kernel) means = ReduceMean<axes = [1, 2, 3], keepdims = 0>(c)
        q = Greater(means, zero) few = Compress<axis = 0>(some, q) others = Compress<axis = 0>(image, q)
        z = RoiAlign<coordinate_transformation_mode = "output_half_pixel", output_height = 2, output_width = 2>(x, few, others)
        w = Compress(means, q)
        }"""),
    # Regions of which there may be none, before what counts their coordinates had a name.
    "older": (13, "float[1, 4, 12, 12] x, float[5, 4] r", "float[n, 4, 3, 3] y", """{
        zero = Constant<value_float = 0.0>() first = Gather<axis = 1>(r, at) at = Constant<value_int = 0>()
        p = Greater(first, zero) some = Compress<axis = 0>(r, p) all = Shape(some) count = Slice(all, none, one)
        none = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>()
        image = ConstantOfShape<value = int64[1] {0}>(count)
        a = RoiAlign<output_height = 3, output_width = 3, sampling_ratio = 2>(x, some, image) y = Relu(a)
        }"""),
    # Many that stay.
    "many": (13, "float[1, 300, 4] x, float[1, 2, 300] s", "int64[n, 3] y, float[k, 300] z", """{
        most = Constant<value_ints = [300]>() overlap = Constant<value_float = 0.3>() least = Constant<value_float = 0.0>()
        y = NonMaxSuppression(x, s, most, overlap, least)
        one = Constant<value_ints = [1]>() class = Gather<axis = 1>(y, one) flat = Squeeze(class, one)
        grid = Squeeze(s, first) first = Constant<value_ints = [0]>() z = Gather(grid, flat)
        }"""),
    # Rounds as many as were found, whose state and results change their sizes; a branch that makes less.
    "rounds": (17, "float[6] x", "float[n] grown, float[m, 2] rows, float[k] last, float[b] chosen", """{
        zero = Constant<value_float = 0.0>() n = NonZero(x) s = Shape<start = 1>(n) count = Squeeze(s)
        yes = Constant<value = bool[1] {1}>() always = Squeeze(yes)
        grown, rows = Loop<body = b (int64 i, bool g, float[t] h) => (bool g2, float[u] h2, float[2] row) {
            g2 = Identity(g) start = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>()
            k = Gather<axis = 1>(n, i) flat = Reshape(k, one) v = Gather(x, flat) h2 = Concat<axis = 0>(h, v, v)
            row = Concat<axis = 0>(v, v)
        }>(count, always, x)
        last = Loop<body = c (int64 i, bool g, float[t] h) => (bool g2, float[u] h2) {
            least = Constant<value_ints = [2]>() a = Constant<value_ints = [1]>() z = Constant<value_ints = [9]>()
            h2 = Slice(h, a, z) left = Size(h2) two = Squeeze(least) g2 = Greater(left, two)
        }>("", always, grown)
        sum = ReduceSum<keepdims = 0>(x) c = Greater(sum, zero)
        chosen = If<then_branch = t () => (float[p] a) { a = Identity(grown) },
                    else_branch = e () => (float[q] d) { d = Identity(x) }>(c)
        }"""),
    "halves": (17, "float16[8] x", "float16[n] y", "{ zero = Constant<value = float16[1] {0}>() p = Greater(x, zero) "
               "c = Compress(x, p) e = Exp(c) y = Add(e, e) }"),
}
RANDOM = np.random.default_rng(1)
WEIGHTS = {
    "boxes": {"weight": RANDOM.standard_normal((12, 3, 1, 1)), "mix": RANDOM.standard_normal((5, 5))},
    "regions": {"kernel": RANDOM.standard_normal((4, 4, 2, 2))},
}


def inputs(name, model):
    """Many, other ones, and such that nothing is found."""
    for k in range(3):
        fed = {}
        for port in model.graph.input:
            x = np.random.default_rng(k).standard_normal([d.dim_value for d in port.type.tensor_type.shape.dim])
            if name == "boxes":
                x = x * 3 if k < 2 else x * 1e-3
            elif name in ("regions", "older"):
                x = np.abs(x) * 3 + np.array([0, 0, 4, 4]) if port.name == "r" and k < 2 else x if k < 2 else -np.abs(x)
            elif k == 2:
                x = x * 0
            else:
                x = x * (np.random.default_rng(k + 9).random(x.shape) < 0.6)
            fed[port.name] = x.astype(onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type))
        yield fed


if __name__ == "__main__":
    folder = sys.argv[1]
    for name, (opset, given, made, body) in MODELS.items():
        nets.write_case(folder, name, HEAD % (opset, given, made) + body, WEIGHTS.get(name, {}), lambda model: inputs(name, model))
    np.savez(f"{folder}/found.nan.in.npz", x=np.full((6, 4), np.nan, "float32"))
