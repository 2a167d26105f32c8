#!/bin/sh
# `graft run`: its outputs are those of onnxruntime, its files those of numpy, and what it lacks it names.
. tests/support/tap.sh

DB=$FOLDER/x.costs

# A model with its weights, whatever else it may be given.
asks_for_inputs() {
    error_is 2 "missing: input 'input_1' f32[1,3,32,32]" "$GRAFT" run resnet8 --database "$DB" &&
        error_is 2 'none.npz: cannot open' "$GRAFT" run resnet8 --inputs none.npz &&
        error_is 2 'README.md: not an .npz file' "$GRAFT" run resnet8 --inputs README.md &&
        error_is 2 "tests/fuzz/corpus/npz/deflated.npz: input 'a': the model has none of this name" \
            "$GRAFT" run resnet8 --inputs tests/fuzz/corpus/npz/deflated.npz --database "$DB" &&
        error_is 2 "cannot write $FOLDER: Is a directory" "$GRAFT" run resnet8 --outputs "$FOLDER" &&
        [ ! -e "$DB" ]
}
# With kernels that are known, outputs are the same to the bit.
benches() {
    gives 0 "$GRAFT" --threads 1 run autoencoder --tune --bench --rounds 3 --json --outputs "$FOLDER/a.npz" --database "$DB" &&
        grep -q '"output": "[^"]*", "shape": "f32\[1,640\]"' "$FOLDER/out" &&
        grep -q '"device": ".*, 1 thread", "median_ns": [0-9.e+]*, "spread_ns": [0-9.e+-]*, "rounds": 3' "$FOLDER/out" &&
        gives 0 "$GRAFT" --threads 1 run autoencoder --tune --bench --rounds 3 --outputs "$FOLDER/b.npz" --database "$DB" &&
        cmp "$FOLDER/a.npz" "$FOLDER/b.npz" &&
        gives 0 "$GRAFT" --threads 1 run autoencoder --tune --bench --rounds 3 --seed 2 --outputs "$FOLDER/b.npz" --database "$DB" &&
        ! cmp -s "$FOLDER/a.npz" "$FOLDER/b.npz"
}

# Every step once, the slowest first.
lists_steps() {
    gives 0 "$GRAFT" run autoencoder --steps --rounds 3 --json --database "$DB" &&
        [ "$(grep -c '"step"' "$FOLDER/out")" -ge 10 ] &&
        [ "$(grep -o '"step": [0-9]*' "$FOLDER/out" | sort | uniq -d)" = '' ] &&
        grep '"step"' "$FOLDER/out" | sed 's/.*"ns": \([0-9.e+-]*\),.*/\1/' | sort -g -r -c &&
        gives 0 "$GRAFT" run autoencoder --steps --rounds 3 --database "$DB" &&
        grep -q ' us .* matmul_bias(activation=[01]) f32\[1,640\]' "$FOLDER/out"
}

# compares OPTION...: the outputs of model.onnx, on random inputs, with those of onnxruntime.
compares() {
    "$python" - "$FOLDER" "$GRAFT" "$DB" "$@" << 'END'
import sys

import numpy as np
import onnxruntime
from nets import execute, run

folder, graft, database, *options = sys.argv[1:]
model = folder + "/model.onnx"
random = np.random.default_rng(3)
inputs = {}
for port in onnxruntime.InferenceSession(model).get_inputs():
    if port.type == "tensor(float)":
        inputs[port.name] = random.standard_normal(port.shape).astype("float32")
    else:
        inputs[port.name] = random.integers(0, 2, port.shape).astype(port.type[7:-1])
have = execute(graft, model, inputs, "--database", database, *options)
wanted = run(model, inputs)
assert list(have) == list(wanted), list(have)
for name, want in wanted.items():
    assert have[name].shape == want.shape and have[name].dtype == want.dtype, name
    # Of the largest: rounding grows over the layers (emit/report/outputs.h), and a policy reassociates.
    apart = np.abs(have[name] - want).max() / np.abs(want).max()
    print(name, apart)
    assert apart <= 1e-4, apart
END
}

agrees() {
    model=$1
    shift
    "$GRAFT" --quiet model "$model" "$FOLDER/model.onnx" && compares "$@"
}

# Functions and a normalisation in parts, between layouts, are what they are without being put together.
agrees_on_parts() {
    "$python" - "$FOLDER/parts.onnx" << 'END' &&
import sys

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

text = """<ir_version: 8, opset_import: ["" : 13]> net (float[2, 6, 5, 16] x) => (float[2, 6, 5, 16] y)
<float r = {1.4142135}, float one = {1.0}, float half = {0.5}, float three = {3.0}, float six = {6.0},
 float o = {0.0}, float eps = {0.00001}> {
    p = Transpose<perm = [0, 3, 1, 2]>(x)
    c = Conv(p, w)
    q = Transpose<perm = [0, 2, 3, 1]>(c)
    m = ReduceMean<axes = [-1]>(q)
    d = Sub(q, m)
    s = Mul(d, d)
    v = ReduceMean<axes = [-1]>(s)
    u = Add(v, eps)
    t = Sqrt(u)
    n = Div(d, t)
    g = Mul(n, f)
    l = Add(g, b)
    i = Div(l, r)
    e = Erf(i)
    a = Add(e, one)
    h = Mul(l, a)
    k = Mul(h, half)
    z = Add(k, three)
    j = Clip(z, o, six)
    w1 = Mul(k, j)
    w2 = Div(w1, six)
    y = Softmax<axis = 1>(w2)
}"""
random = np.random.default_rng(5)
model = onnx.parser.parse_model(text)
for name, shape in (("w", (16, 16, 1, 1)), ("f", (16,)), ("b", (16,))):
    weight = random.standard_normal(shape).astype("float32")
    model.graph.initializer.append(numpy_helper.from_array(weight, name))
onnx.save(model, sys.argv[1])
END
        gives 0 "$GRAFT" --quiet run "$FOLDER/parts.onnx" --steps --rounds 3 --database "$DB" &&
        grep -q ' layer_norm(' "$FOLDER/out" && grep -q ' gelu()' "$FOLDER/out" && grep -q ' hard_swish()' "$FOLDER/out" &&
        ! grep -q 'transpose\|reorder' "$FOLDER/out" &&
        cp "$FOLDER/parts.onnx" "$FOLDER/model.onnx" && compares
}

# Products in all orders of their letters; those of one letter in one operand alone, or twice, run as they are.
agrees_on_einsum() {
    "$python" - "$FOLDER/model.onnx" << 'END' &&
import sys

import onnx
from onnx import helper

EQUATIONS = ["bihd,bjhd->bhij", "bij,kj->bik", "ij,jk->ik", "ij,jk->ki", "i,j->ji", "bhij,bjhd->bihd", "abc, cd -> adb",
             "ab,ab->a", "ij,ij->", "bic,bcj->ij", "ij,klj->lik", "aB,Bc->ca", "ijkl,klm->mij", "ii,ij->ij", "ij,jk->i"]
SIZES = {letter: 2 + place for place, letter in enumerate("abcdhijklmB")}
nodes, inputs, outputs = [], [], []
for n, equation in enumerate(EQUATIONS):
    terms, made = equation.replace(" ", "").split("->")
    names = []
    for k, term in enumerate(terms.split(",")):
        names.append(f"x{n}_{k}")
        inputs.append(helper.make_tensor_value_info(names[-1], 1, [SIZES[letter] for letter in term]))
    outputs.append(helper.make_tensor_value_info(f"y{n}", 1, [SIZES[letter] for letter in made]))
    nodes.append(helper.make_node("Einsum", names, [f"y{n}"], equation=equation))
graph = helper.make_graph(nodes, "net", inputs, outputs)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
END
        compares &&
        gives 0 "$GRAFT" --quiet run "$FOLDER/model.onnx" --steps --rounds 3 --database "$DB" &&
        [ "$(grep -c ' Einsum ' "$FOLDER/out")" -eq 2 ]
}

# net NAME TEXT [OPSET]: a model in ONNX's own words.
net() {
    "$python" -c 'import sys, onnx.parser; onnx.save(onnx.parser.parse_model(sys.argv[2]), sys.argv[1])' "$FOLDER/$1.onnx" \
        "<ir_version: 8, opset_import: [\"\" : ${3:-17}]> net $2"
}
# Opset 28 gave blocks a second order.
agrees_on_opset_28() {
    net model '(float[1, 4, 6, 6] x) => (float[1, 16, 3, 3] y, float[1, 16, 3, 3] z) {
            d = SpaceToDepth<blocksize = 2>(x)
            y = Relu(d)
            z = SpaceToDepth<blocksize = 2, mode = "CRD">(x) }' 28 &&
        compares
}
# fails NAME MESSAGE: when it is run.
fails() { error_is 2 "$2" "$GRAFT" --quiet run "$FOLDER/$1.onnx" --bench --database "$DB"; }
refuses_binary64() {
    net double '(double[2] x) => (double[2] y) { y = Exp(x) }' &&
        fails double "double.onnx: node 'y' (Exp) cannot be run: its numbers are binary64; all of these in the model: Exp"
}
# What only lacks the sizes that such a node would give is not among those named.
names_causes() {
    net drawn '(float[2, 3] x) => (int32[n, 2] y) { p = Multinomial(x) y = Transpose(p) }' &&
        fails drawn "drawn.onnx: node 'p' (Multinomial) cannot be run: it is an operator that Graft does not know, or a form of one (an operator that is not known); all of these in the model: Multinomial"
}
# Why reading left a node; an input without elements, unless its size is said.
names_reasons() {
    net inner '(float[2, 3] a, float[2, 3] b) => (float[2, 3] y) { y = MatMul(a, b) }' &&
        fails inner "does not know, or a form of one (inner dimensions differ); all" &&
        net type '(int16[2, 3] x) => (int16[2, 3] y) { y = Neg(x) }' &&
        fails type "does not know, or a form of one (an input that is not binary32, float16 or bfloat16); all" &&
        net none '(float[0, 3] x) => (float[n, 3] y) { y = Relu(x) }' &&
        gives 0 "$GRAFT" --quiet run "$FOLDER/none.onnx" --bench --rounds 3 --database "$DB" &&
        grep -q 'f32\[0,3\]' "$FOLDER/out" &&
        gives 0 "$GRAFT" --quiet run "$FOLDER/none.onnx" --size x.0=4 --bench --rounds 3 --database "$DB" &&
        grep -q 'f32\[4,3\]' "$FOLDER/out"
}
names_the_node() {
    net pads '(float[4] x, int64[2] p) => (float[80] y) { y = Pad(x, p) }' &&
        fails pads "implementations differ on, in node 'y' of $FOLDER/pads.onnx"
}

check "asks for inputs" asks_for_inputs
check "times, on the inputs of a seed" benches
check "lists its steps" lists_steps
need_runtime "agrees with onnxruntime"
check "agrees on a convolutional net" agrees resnet8
check "agrees with two threads" agrees dscnn --threads 2
check "agrees with a policy" agrees resnet8 --policy rules/policies/intel-xeon-6-167-avx512.graft
check "agrees on a recurrent net" agrees lstm
check "agrees on a transformer" agrees bert
check "agrees on functions in parts" agrees_on_parts
check "agrees on products by letters" agrees_on_einsum
check "agrees in opset 28" agrees_on_opset_28
check "says that numbers are of binary64" refuses_binary64
check "names what cannot be run" names_causes
check "names reasons" names_reasons
check "names the node that fails" names_the_node
check "agrees when tuned" agrees dscnn --tune --threads 1

finish
