#!/bin/sh
# Models of float16 and bfloat16: rewritten as in binary32, held against onnxruntime and the ONNX
# project's checker and reference; run in binary32; what does not fit is refused.
. tests/support/tap.sh

DEVICE=intel-xeon-6-167
POLICY=rules/policies/intel-xeon-6-167-avx512.graft

optimize() { # MODEL OPTIONS...
    model=$1
    shift
    gives 0 "$GRAFT" optimize "$FOLDER/$model.onnx" "$FOLDER/$model.opt.onnx" --device $DEVICE "$@"
}
halves() { "$python" tests/emit/halves.py "$@"; }
compare() { # MODEL TOLERANCE [SINGLE]
    halves compare "$FOLDER/$1.onnx" "$FOLDER/$1.opt.onnx" "$2" ${3:+"$FOLDER/$3.onnx"}
}
# What is printed of a model, but for its name, its weights and the line that says what its costs are.
told() { sed -n '/operators, /s/^[^ ]* //p; / -> /p' "$FOLDER/out" | grep -v parameters; }

# The same rewrites as in binary32, by a search and by a policy.
twin() { # MODEL TYPE
    gives 0 "$GRAFT" model "$1" "$FOLDER/$1.onnx" && halves convert "$FOLDER/$1.onnx" "$FOLDER/$1.$2.onnx" "$2" &&
        for how in "" "--policy $POLICY"; do
            # shellcheck disable=SC2086 # Two words, or none.
            optimize "$1" $how && told > "$FOLDER/want" && ! grep 'cost here' "$FOLDER/out" &&
                optimize "$1.$2" $how && told > "$FOLDER/have" && diff "$FOLDER/want" "$FOLDER/have" &&
                grep -q '^float16 and bfloat16 cost here what binary32' "$FOLDER/out" || return 1
        done
}
agrees() { twin "$1" float16 && optimize "$1.float16" && compare "$1.float16" 0.005 "$1"; }
folds() { # MODEL TOLERANCE
    optimize "$1" && grep -q 'BatchNormalization *1 -> *0' "$FOLDER/out" && compare "$1" "$2" && optimize "$1" --exact &&
        grep -q 'BatchNormalization *1 -> *1' "$FOLDER/out" && cmp "$FOLDER/$1.onnx" "$FOLDER/$1.opt.onnx"
}
# By a policy: in float16 a sum that a convolution takes up is one rounding less.
exact_policy() {
    optimize resnet8 --policy $POLICY --exact && grep -q 'BatchNormalization *7 -> *7' "$FOLDER/out" &&
        grep -q 'by 6 rewrites' "$FOLDER/out" && optimize resnet8.float16 --policy $POLICY --exact &&
        grep -q 'by 0 rewrites' "$FOLDER/out"
}
refuses_overflow() {
    optimize overflows --steps &&
        grep -q "'graft_mul_1' does not fit into float16: searching again without new weights" "$FOLDER/err" &&
        grep -q 'BatchNormalization *1 -> *1' "$FOLDER/out" && grep -q 'Transpose *2 -> *0' "$FOLDER/out" &&
        compare overflows 0
}
# Each type is rewritten by itself; the casts between them stay.
mixes() {
    optimize mixed && grep -q 'Cast *2 -> *2' "$FOLDER/out" && grep -q 'Transpose *4 -> *0' "$FOLDER/out" &&
        grep -q 'Gemm *0 -> *2' "$FOLDER/out" && compare mixed 0.005
}
# Constants of the file and of what operators are read as.
constants() { optimize constants && grep -q 'Clip *2 -> *1' "$FOLDER/out" && compare constants 0.005; }
# Rules name numbers: of a Gelu its root of 2, which these types round, of a normalisation its epsilon.
puts_together() { # MODEL TOLERANCE
    optimize "$1" --accept-rounded-numbers && grep -q 'Gelu *0 -> *1' "$FOLDER/out" &&
        grep -q 'LayerNormalization *0 -> *1' "$FOLDER/out" && grep -q 'rounded, which is not what was proved' "$FOLDER/err" &&
        grep -q 'Erf *1 -> *0' "$FOLDER/out" && compare "$1" "$2" && optimize "$1" && grep -q 'Erf *1 -> *1' "$FOLDER/out" &&
        grep -q 'LayerNormalization *0 -> *1' "$FOLDER/out" && ! grep -q rounded "$FOLDER/err" && compare "$1" "$2" &&
        error_is 2 "--accept-rounded-numbers does not go with --exact" "$GRAFT" optimize "$FOLDER/$1.onnx" \
            "$FOLDER/out.onnx" --device $DEVICE --exact --accept-rounded-numbers
}
reads_islands() { optimize island && compare island 0.005; }
untouched() {
    gives 0 "$GRAFT" optimize "$FOLDER/constants.opt.onnx" "$FOLDER/again.onnx" --device $DEVICE &&
        cmp "$FOLDER/constants.opt.onnx" "$FOLDER/again.onnx"
}
refuses_data() {
    for type in float16 bfloat16; do
        error_is 2 "wrong-$type.onnx: initializer 'w' has 3 bytes where its shape needs 4" \
            "$GRAFT" --quiet optimize "$FOLDER/wrong-$type.onnx" "$FOLDER/out.onnx" --device $DEVICE || return 1
    done
}
checks() { # MODEL
    gives 0 "$GRAFT" --quiet --threads 1 optimize "$FOLDER/$1.onnx" "$FOLDER/out.onnx" --check 2 --database "$FOLDER/x.costs" &&
        grep -q 'outputs agree' "$FOLDER/out"
}
runs() {
    halves run "$FOLDER/resnet8.float16.onnx" "$FOLDER/in.npz" "$FOLDER/want.npz" &&
        gives 0 "$GRAFT" --quiet --threads 1 run "$FOLDER/resnet8.float16.onnx" --inputs "$FOLDER/in.npz" \
            --outputs "$FOLDER/have.npz" --database "$FOLDER/x.costs" &&
        grep -q 'f16\[1,10\]' "$FOLDER/out" && halves same "$FOLDER/want.npz" "$FOLDER/have.npz" 0.005 &&
        gives 0 "$GRAFT" --quiet --threads 1 run "$FOLDER/bfits.onnx" --bench --rounds 3 --database "$FOLDER/x.costs" &&
        grep -q 'bf16\[1,4,6,6\]' "$FOLDER/out"
}
refuses_header() {
    error_is 2 "headers of graphs are for binary32, and most of this one is not" \
        "$GRAFT" --quiet emit-graph "$FOLDER/fits.onnx" "$FOLDER/graph.h" &&
        error_is 2 "fits.onnx: has float16 or bfloat16: train on the model in binary32" \
            "$GRAFT" --quiet policy "$FOLDER/fits.onnx" --device $DEVICE --out "$FOLDER/policy"
}

need_runtime "models of float16 and bfloat16"
check "makes models" halves small "$FOLDER"
check "a residual net agrees, and is rewritten as in binary32" agrees resnet8
check "so is a separable one" agrees dscnn
check "so is a recurrent one, of bfloat16" twin nasrnn bfloat16
check "folds batch normalisation in float16" folds fits 0.005
check "folds batch normalisation in bfloat16" folds bfits 0.03
check "keeps to exact rules by a policy, too" exact_policy
check "refuses weights that overflow, and keeps the rest" refuses_overflow
check "rewrites both types of a mixed model" mixes
check "works out constants" constants
check "puts Gelu and layer normalisation together in float16" puts_together parts 0.005
check "puts Gelu and layer normalisation together in bfloat16" puts_together bparts 0.03
check "reads an island of binary32 with numbers" reads_islands
check "leaves whole what it cannot better" untouched
check "refuses data of a wrong size" refuses_data
check "compares outputs" checks fits
check "compares outputs of a mixed model" checks mixed
check "runs in binary32" runs
check "refuses a header" refuses_header

finish
