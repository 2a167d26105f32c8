"""Decoders with a past that may be empty (test_decoders.sh).

    decoders.py FOLDER     models N.onnx, inputs N.K.in.npz and, by onnxruntime, N.K.want.npz; prints each N and K
"""

import sys

import nets
import numpy as np
import onnx

HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\ngraph (%s) => (%s) '
LOOP = """{
    heads = Constant<value_ints = [0, 0, 2, 4]>() whole = Constant<value_ints = [0, 0, 8]>()
    first = Constant<value_int = 0>() third = Constant<value_int = 2>() one = Constant<value_int = 1>()
    ends = Constant<value_ints = [-1]>() hidden = Constant<value_float = -1e9>()
    q0 = MatMul(x, wq) q1 = Reshape(q0, heads) q = Transpose<perm = [0, 2, 1, 3]>(q1)
    k0 = MatMul(x, wk) k1 = Reshape(k0, heads) k2 = Transpose<perm = [0, 2, 1, 3]>(k1) key = Concat<axis = 2>(past_key, k2)
    v0 = MatMul(x, wv) v1 = Reshape(v0, heads) v2 = Transpose<perm = [0, 2, 1, 3]>(v1) value = Concat<axis = -2>(past_value, v2)
    turned = Transpose<perm = [0, 1, 3, 2]>(key) scores = MatMul(q, turned)
    before = Shape(past_key) p = Gather(before, third) now = Shape(key) t = Gather(now, third)
    rows = Range(p, t, one) columns = Range(first, t, one) row = Unsqueeze(rows, ends) later = Greater(columns, row)
    masked = Where(later, hidden, scores) shares = Softmax<axis = -1>(masked) mixed = MatMul(shares, value)
    back = Transpose<perm = [0, 2, 1, 3]>(mixed) z = Reshape(back, whole) y = Tanh(z)
    }"""
PAST = "float[1, 2, p, 4] past_key, float[1, 2, p, 4] past_value"
MODELS = {
    "loop": ("float[1, s, 8] x, " + PAST, "float[1, s, 8] y, float[1, 2, t, 4] key, float[1, 2, t, 4] value", LOOP),
    # What is made of nothing but sizes and nothing: tensors without elements, and sums of none.
    "nothing": (PAST, "float[1, 2, p, 4] copy, int64 size, int64[4] shape, float[1, 2, p, 4] soft, float[1, 2, 4, 4] product, "
                "float[1, 2, 4] sum, float[1, 2, c, 4] cut, float[1, p, 8] wide, float[1, 2, p, 4] scaled", """{
        copy = Identity(past_key) size = Size(past_value) shape = Shape(past_key) soft = Softmax(past_key)
        turned = Transpose<perm = [0, 1, 3, 2]>(past_key) product = MatMul(turned, past_value)
        axis = Constant<value_ints = [2]>() sum = ReduceSum<keepdims = 0>(past_value, axis)
        none = Constant<value_ints = [0]>() two = Constant<value_ints = [2]>() cut = Slice(past_key, none, two, axis)
        moved = Transpose<perm = [0, 2, 1, 3]>(past_key) to = Constant<value_ints = [1, -1, 8]>()
        count = Shape<start = 2, end = 3>(past_key) first = Constant<value_ints = [1]>() last = Constant<value_ints = [8]>()
        sizes = Concat<axis = 0>(first, count, last) wide = Reshape<allowzero = 1>(moved, sizes)
        half = Constant<value_float = 0.5>() scaled = Mul(past_key, half)
        }"""),
    # As onnxruntime-genai writes them.
    "grouped": ("float[1, s, 64] q, float[1, s, 32] k, float[1, s, 32] v, float[1, 2, p, 16] past_key, "
                "float[1, 2, p, 16] past_value, int64[1, t] mask",
                "float[1, s, 64] y, float[1, 2, t, 16] key, float[1, 2, t, 16] value", """{
        one = Constant<value_ints = [1]>() n = ReduceSum<keepdims = 0>(mask, one) m = Sub(n, one) lengths = Cast<to = 6>(m)
        all = Shape(mask) at = Constant<value_int = 1>() l = Gather(all, at) total = Cast<to = 6>(l)
        y, key, value = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, do_rotary = 1>(
            q, k, v, past_key, past_value, lengths, total, cosines, sines)
        }"""),
    # As optimum merges them: a flag chooses between a step with a past and one without.
    "merged": ("float[1, 2, s, 4] x, float[1, 2, p, 4] past, bool[1] cached", "float[1, 2, t, 4] y", """{
        y = If<then_branch = a () => (float[1, 2, m, 4] b) { b = Concat<axis = 2>(past, x) },
               else_branch = c () => (float[1, 2, n, 4] d) { d = Relu(x) }>(cached)
        }"""),
}
RANDOM = np.random.default_rng(3)
ANGLES = np.arange(16)[:, None] * 0.5 ** np.arange(8)
WEIGHTS = {"loop": {name: RANDOM.standard_normal((8, 8)) for name in ("wq", "wk", "wv")},
           "grouped": {"cosines": np.cos(ANGLES), "sines": np.sin(ANGLES)}}


def inputs(model):
    """Without a past, with one, and with one behind a single row."""
    for past, rows in ((0, 3), (5, 3), (0, 1), (2, 1)):
        random = np.random.default_rng(past + rows)
        sizes = {"p": past, "s": rows, "t": past + rows}
        fed = {}
        for port in model.graph.input:
            shape = [sizes.get(d.dim_param, d.dim_value) for d in port.type.tensor_type.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
            fed[port.name] = random.standard_normal(shape).astype(dtype) if dtype == "float32" else np.ones(shape, dtype)
            if dtype == "bool":
                fed[port.name][:] = past > 0
        yield fed


if __name__ == "__main__":
    for name, (given, made, body) in MODELS.items():
        nets.write_case(sys.argv[1], name, HEAD % (given, made) + body, WEIGHTS.get(name, {}), inputs)
