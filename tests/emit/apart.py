"""Operators that come apart where a model is run, and others that rules do not know (test_apart.sh).

    apart.py cases FOLDER        ONNX's own cases of these, those of one opset as one model: N.onnx with N.in.npz and,
                                 as ONNX has them, N.want.npz; prints each N
    apart.py forms FOLDER        the same of forms of com.microsoft, by onnxruntime: one model
"""

import importlib
import sys
import warnings

import numpy as np
import nets
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = ("Attention RotaryEmbedding TensorScatter DFT STFT HannWindow HammingWindow BlackmanWindow MelWeightMatrix "
         "LpNormalization LpPool Hardmax Mod").split()
FED = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.UINT8}


class Whole:
    """Models side by side as one, each name behind the model's own."""

    def __init__(self):
        self.graph, self.fed, self.want, self.sets = onnx.GraphProto(name="whole"), {}, {}, None

    def add(self, name, model, inputs, outputs):
        def within(value):
            return f"{name}/{value}" if value else ""
        graph = model.graph
        for node in graph.node:
            copy = self.graph.node.add()
            copy.CopyFrom(node)
            copy.name = name
            del copy.input[:], copy.output[:]
            copy.input.extend(map(within, node.input))
            copy.output.extend(map(within, node.output))
        for port, value in zip(graph.input, inputs):
            if value.ndim == 0:  # Shapes may depend on it.
                self.graph.initializer.append(numpy_helper.from_array(value, within(port.name)))
            else:
                self.graph.input.add().CopyFrom(port)
                self.graph.input[-1].name = within(port.name)
                self.fed[within(port.name)] = value
        for port, value in zip(graph.output, outputs):
            self.graph.output.add().CopyFrom(port)
            self.graph.output[-1].name = within(port.name)
            self.want[within(port.name)] = value
        self.sets = model.opset_import

    def write(self, path):
        model = helper.make_model(self.graph, opset_imports=self.sets, ir_version=10)
        onnx.save(model, path + ".onnx")
        np.savez(path + ".in.npz", **self.fed)
        np.savez(path + ".want.npz", **self.want)


def is_fed(graph):
    return all(port.type.tensor_type.elem_type in FED for port in [*graph.input, *graph.output])


def cases(folder):
    warnings.simplefilter("ignore")
    for op_type in CASES:
        importlib.import_module(f"onnx.backend.test.case.node.{op_type.lower()}")
    wholes = {}
    for case in onnx.backend.test.case.node._NodeTestCases:
        graph = case.model.graph
        if len(graph.node) == 1 and graph.node[0].op_type in CASES and is_fed(graph):
            inputs, outputs = ([numpy_helper.to_array(x) if isinstance(x, TensorProto) else np.asarray(x) for x in side]
                               for side in case.data_sets[0])
            opset = case.model.opset_import[0].version
            wholes.setdefault(opset, Whole()).add(case.name, case.model, inputs, outputs)
    for opset, whole in wholes.items():
        whole.write(f"{folder}/{opset}")
        print(opset)


B, S, T, H, D, MOST = 2, 3, 5, 4, 16, 16  # A batch, queries, keys, heads, their sizes, the longest sequence
W = H * D
RAGGED = {0: True, 1: False, 2: False}  # Outputs, and whether they are compared: a cache is anything behind an item
random = np.random.default_rng(1)


def real(*shape):
    return random.uniform(-1, 1, shape).astype("float32")


def angles(*shape):
    x = random.uniform(0, 3, shape)
    return np.cos(x).astype("float32"), np.sin(x).astype("float32")


def whole(values, kind="int32"):
    return np.asarray(values, kind)


def rotations():
    yield "RotaryEmbedding", [real(B, S, W), whole([2], "int64"), *angles(MOST, D // 2)], {}, 1
    yield "RotaryEmbedding", [real(B, H, S, D), whole([[0, 1, 2], [3, 4, 6]], "int64"), *angles(MOST, D // 2)], \
        {"interleaved": 1}, 1
    yield "RotaryEmbedding", [real(B, S, W), whole([[0, 1, 2], [3, 4, 6]], "int64"), *angles(MOST, 2)], \
        {"num_heads": H, "rotary_embedding_dim": 4}, 1


def activations():
    yield "Gelu", [real(B, W)], {}, 1
    yield "BiasGelu", [real(B, S, W), real(W)], {}, 1
    yield "FastGelu", [real(B, S, W), real(W)], {}, 1
    yield "FastGelu", [real(B, S, W)], {}, 1
    yield "QuickGelu", [real(B, S, W)], {"alpha": 1.5}, 1


def normalisations():
    yield "SkipLayerNormalization", [real(B, S, W), real(B, S, W), real(W), real(W), real(W)], {"epsilon": 0.1}, 1
    yield "SkipLayerNormalization", [real(B, S, W), real(1, S, W), real(W)], {}, 1
    yield "SkipLayerNormalization", [real(B, S, W), real(B, S, W), real(W), real(W), real(W)], {}, [0, 3]
    yield "SkipSimplifiedLayerNormalization", [real(B, S, W), real(B, S, W), real(W)], {"epsilon": 0.1}, [0, 3]
    yield "SkipSimplifiedLayerNormalization", [real(B, S, W), real(B, S, W), real(W), real(W)], {"epsilon": 0.1}, 1
    yield "SimplifiedLayerNormalization", [real(B, S, W), real(W)], {"axis": -1, "epsilon": 0.1}, 1
    words = whole(random.integers(0, 9, (B, S)))
    segments = whole(random.integers(0, 2, (B, S)))
    yield "EmbedLayerNormalization", [words, segments, real(9, W), real(MOST, W), real(2, W), real(W), real(W),
                                      whole([[1, 1, 0], [1, 1, 1]])], {"epsilon": 0.1}, 3
    yield "EmbedLayerNormalization", [words, None, real(9, W), real(MOST, W), None, real(W), real(W), None,
                                      whole([[2, 1, 0], [1, 1, 4]])], {"epsilon": 0.1}, 2


def products():
    for turned in ({}, {"transA": 1, "transB": 1, "alpha": 0.5}):
        yield "FusedMatMul", [real(2, 3, 3), real(2, 3, 3)], turned, 1
    image, filters = real(1, 4, 5, 5), real(4, 2, 3, 3)
    for name, *numbers in (("Relu",), ("Tanh",), ("Sigmoid",), ("LeakyRelu", 0.25), ("Clip", -0.5, 0.75),
                           ("HardSigmoid", 0.3, 0.4)):
        params = {"activation_params": numbers} if numbers else {}
        yield "FusedConv", [image, filters, real(4)], {"activation": name, "group": 2, "pads": [1, 1, 1, 1], **params}, 1
    yield "FusedConv", [image, filters, real(4), real(1, 4, 3, 3)], {"activation": "Relu", "group": 2}, 1
    yield "FusedGemm", [real(4, 3), real(5, 4), real(5)], {"activation": "LeakyRelu", "activation_alpha": 0.25,
                                                           "transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}, 1


def attentions():
    x, w, b = real(B, S, 7), real(7, 3 * W), real(3 * W)
    for more, mask in (({}, None), ({"unidirectional": 1}, None), ({"scale": 0.25}, whole([2, 3])),
                       ({}, whole([[1, 0, 1], [1, 1, 0]])), ({"mask_filter_value": -3.0}, whole(np.tri(S)[None].repeat(B, 0)))):
        yield "Attention", [x, w, b, mask], {"num_heads": H, **more}, 1
    yield "Attention", [x, w, b, None, None, real(1, H, S, S)], {"num_heads": H}, 1
    yield "Attention", [x, real(7, 2 * W + 8), real(2 * W + 8)], {"num_heads": H, "qkv_hidden_sizes": [W, W, 8]}, 1
    yield "Attention", [x, w, b, None, real(2, B, H, 2, D)], {"num_heads": H, "unidirectional": 1}, 2
    q, k, v = real(B, S, W), real(B, T, W), real(B, T, 2 * W)
    for bias, mask, scores in ((None, None, None), (real(4 * W), None, None), (None, whole([[1, 0, 1, 1, 1], [1] * T]), None),
                               (None, None, real(B, 1, S, T)), (None, whole([3, 5]), real(1, H, S, T))):
        yield "MultiHeadAttention", [q, k, v, bias, mask, scores], {"num_heads": H, "scale": 0.5}, 1
    yield "MultiHeadAttention", [q, real(B, H, T, D), real(B, H, T, D)], {"num_heads": H}, 1
    yield "MultiHeadAttention", [q, real(B, S, W), real(B, S, W), None, None, None, real(B, H, 2, D), real(B, H, 2, D)], \
        {"num_heads": H, "unidirectional": 1}, 3


def bytes_of():
    a = whole(random.integers(0, 255, (B, S, 8)), "uint8")
    b = whole(random.integers(-63, 63, (8, 3 * W)), "int8")  # Of more bits onnxruntime's sums overflow without VNNI.
    scale, columns = real(1) ** 2 / 9, real(3 * W) ** 2 / 9
    yield "MatMulIntegerToFloat", [a, b, scale, columns, whole([7], "uint8")], {}, 1
    yield "MatMulIntegerToFloat", [a, b, scale, scale, whole([7], "uint8"), whole([3], "int8"), real(3 * W)], {}, 1
    yield "DynamicQuantizeMatMul", [real(B, S, 8), b, columns, None, real(3 * W)], {}, 1
    yield "QAttention", [a, b, real(3 * W), scale / 9, scale / 9, whole([2, 3]), whole([7], "uint8"), whole([0], "int8")], \
        {"num_heads": H}, 1


def packed():
    for depth, block, bits in ((40, 16, 4), (96, 32, 8), (64, 16, 2)):
        blocks, sizes = -(-depth // block), {"bits": bits, "block_size": block}
        scales, zeros = real(9, blocks), whole(random.integers(0, 256, (9, -(-blocks * bits // 8))), "uint8")
        columns = whole(random.integers(0, 256, (9, blocks, block * bits // 8)), "uint8")
        for rows, more in ((1, []), (11, [zeros]), (2, [zeros, None, real(9)])):
            yield "MatMulNBits", [real(rows, depth), columns, scales, *more], {"K": depth, "N": 9, **sizes}, 1
        table = whole(random.integers(0, 256, (9, depth * bits // 8)), "uint8")
        for more in [], [zeros]:
            yield "GatherBlockQuantized", [table, whole([[0, 8], [-9, 3]], "int64"), scales, *more], sizes, 1


def grouped():
    kv, rotary = 2, angles(MOST, D // 2)
    size = kv * D

    def past(batch, count):
        return [real(batch, kv, count, D), real(batch, kv, count, D)]
    for more in ({}, {"scale": 0.25, "softcap": 2.0}, {"local_window_size": 2}, {"do_rotary": 1, "rotary_interleaved": 1}):
        turned = rotary if "do_rotary" in more else []
        heads = {"num_heads": H, "kv_num_heads": kv, **more}
        yield "GroupQueryAttention", [real(1, S, W), real(1, S, size), real(1, S, size), *past(1, 4), whole([6]), whole(7),
                                      *turned], heads, 3
        for lengths, count in (([4, 4], 3), ([4, 2], RAGGED)):
            yield "GroupQueryAttention", [real(B, 1, W), real(B, 1, size), real(B, 1, size), *past(B, 4), whole(lengths),
                                          whole(5), *turned], heads, count
        yield "GroupQueryAttention", [real(B, 1, W), real(B, 1, size), real(B, 1, size), *past(B, 8), whole([4, 2]),
                                      whole(5), *turned], heads, RAGGED
        yield "GroupQueryAttention", [real(B, S, W + 2 * size), None, None, *past(B, 8), whole([2, 2]), whole(3),
                                      *turned], heads, RAGGED


def signals():
    for more in ({}, {"onesided": 1}, {"inverse": 1}):
        yield "DFT", [real(2, 9, 2 if "inverse" in more else 1)], more, 1
        yield "DFT", [real(2, 3, 8, 1), whole(12, "int64")], {"axis": 2, **more}, 1
        yield "DFT", [real(2, 9, 3, 1), whole(6, "int64")], {"axis": 1, **more}, 1
    yield "DFT", [real(2, 9, 3, 2), whole(7, "int64")], {"axis": -2}, 1
    step, length = whole(8, "int64"), whole(20, "int64")
    yield "STFT", [real(2, 53, 1), step, real(20)], {}, 1
    yield "STFT", [real(2, 53, 1), step, None, length], {"onesided": 0}, 1
    yield "STFT", [real(1, 60, 1), whole(7, "int64"), real(20), length], {}, 1
    yield "STFT", [real(2, 53, 2), step, real(20), length], {"onesided": 0}, 1
    for p in (1, 2, 3):
        yield "GlobalLpPool", [real(2, 3, 4, 5)], {"p": p}, 1
        yield "LpPool", [real(2, 3, 9, 7)], {"p": p, "kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}, 1
    yield "LpNormalization", [real(2, 3, 4)], {"p": 1, "axis": 1}, 1
    yield "Hardmax", [real(2, 3, 4)], {"axis": 1}, 1


def tables():
    x, row = real(5, 4), [0.5, -1.0, 2.0, 0.25]
    yield "Scaler", [x], {"offset": row, "scale": [3.0] * 4}, 1
    yield "Scaler", [whole(random.integers(0, 9, (5, 4)), "int64")], {"offset": row, "scale": row}, 1
    holes = np.where(x > 0, x, np.float32("nan"))
    yield "Imputer", [holes], {"imputed_value_floats": row, "replaced_value_float": float("nan")}, 1
    yield "Imputer", [np.maximum(x, 0)], {"imputed_value_floats": [7.0], "replaced_value_float": 0.0}, 1
    for norm in ("L1", "L2", "MAX"):
        yield "Normalizer", [np.vstack([np.abs(x), np.zeros((1, 4), "float32")])], {"norm": norm}, 1
    weights = [float(w) for w in real(12)]
    yield "LinearRegressor", [x], {"coefficients": weights, "intercepts": [1.0, 2.0, 3.0], "targets": 3}, 1
    yield "LinearRegressor", [x], {"coefficients": weights[:4]}, 1
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        yield "LinearClassifier", [x], {"classlabels_ints": [7, 3, -2], "coefficients": weights, "multi_class": 1,
                                        "intercepts": [0.5, 0.0, -0.5], "post_transform": transform}, 2


TABLES = ("Scaler", "Imputer", "Normalizer", "LinearRegressor", "LinearClassifier")
IMAGES = ("GridSample", "Resize", "RoiAlign", "Det")


def images():
    grid = real(2, 4, 7, 2)
    for padding in ("zeros", "border", "reflection"):
        for corners in (0, 1):
            yield "GridSample", [real(2, 3, 5, 6), grid], {"mode": "bicubic", "padding_mode": padding,
                                                          "align_corners": corners}, 1
    for mode in ("linear", "cubic"):
        for sizes, outside in (([2, 3, 3, 9], 0), ([2, 3, 7, 1], 1), ([2, 3, 12, 4], 0)):
            yield "Resize", [real(2, 3, 9, 11), None, None, whole(sizes, "int64")], \
                {"mode": mode, "antialias": 1, "exclude_outside": outside}, 1
    regions = np.array([[1, 1, 8, 9], [-2, 3, 20, 11], [0, 0, 4, 4]], "float32")
    for ratio in (0, 2):
        yield "RoiAlign", [real(2, 3, 12, 12), regions, whole([0, 1, 1], "int64")], \
            {"mode": "max", "output_height": 3, "output_width": 4, "sampling_ratio": ratio, "spatial_scale": 0.5}, 1
    yield "Det", [real(3, 2, 5, 5)], {}, 1
    yield "Det", [real(2, 2)], {}, 1


def forms(folder):
    """Numbers that a shape depends on are weights, and what a Gemm has to know."""
    nodes, inputs, outputs, weights, fed, left = [], [], [], {}, {}, []
    kinds = (rotations, activations, normalisations, products, attentions, bytes_of, packed, grouped, signals, images,
             tables)
    for i, (kind, given, attributes, count) in enumerate(form for some in kinds for form in some()):
        names = []
        for k, array in enumerate(given):
            name = f"{i}{kind}.{k}" if array is not None else ""
            names.append(name)
            if array is not None and (array.ndim == 0 or (kind in ("FusedGemm", "Resize") and k > 0)):
                weights[name] = array
            elif array is not None:
                inputs.append(nets.value(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype)))
                fed[name] = array
        wanted = count if isinstance(count, dict) else dict.fromkeys(count if isinstance(count, list) else range(count), True)
        made = [f"{i}{kind}.y{k}" if k in wanted else "" for k in range(max(wanted) + 1)]
        left += [made[k] for k, compared in wanted.items() if not compared]
        domain = "ai.onnx.ml" if kind in TABLES else "" if kind in (*CASES[2:], *IMAGES, "GlobalLpPool", "SimplifiedLayerNormalization") else "com.microsoft"
        nodes.append(helper.make_node(kind, names, made, f"{i}{kind}", domain=domain, **attributes))
        outputs += [nets.value(name, None, TensorProto.INT32 if kind.startswith("Embed") and name.endswith("1") else
                               TensorProto.INT64 if kind.endswith("Classifier") and name.endswith("0")
                               else TensorProto.FLOAT) for name in made if name]
    onnx.save(nets.model(nodes, inputs, outputs, weights, opset=18, domains=["com.microsoft", "ai.onnx.ml"]), folder + "/forms.onnx")
    np.savez(folder + "/forms.in.npz", **fed)
    want = nets.run(folder + "/forms.onnx", fed, optimised=False)
    np.savez(folder + "/forms.want.npz", **{name: array for name, array in want.items() if name not in left})
    print("forms")


if __name__ == "__main__":
    {"cases": cases, "forms": forms}[sys.argv[1]](*sys.argv[2:])
