#!/bin/sh
# Models of 8 bits: what rules make of them gives the same bits in onnxruntime. By costs alone none are
# taken where a runtime looks for groups of 8 bits; a device that times whole models says by itself
# what they gain.
. tests/support/tap.sh

DEVICE="$FOLDER/counts"

optimize() { # MODEL OPTIONS...
    model=$1
    shift
    gives 0 "$GRAFT" optimize "$FOLDER/$model.onnx" "$FOLDER/$model.opt.onnx" --device "$DEVICE" --database "$FOLDER/counts.costs" "$@"
}
same() { "$python" tests/emit/quantised.py compare "$FOLDER/$1.onnx" "$FOLDER/$1.opt.onnx"; }
becomes() { # MODEL, then OPERATOR BEFORE AFTER of each kind that changes
    model=$1
    shift
    optimize "$model" --exact && while [ $# -gt 0 ]; do
        grep -Eq "^ *$1 +$2 -> +$3\$" "$FOLDER/out" || { cat "$FOLDER/out"; return 1; }
        shift 3
    done && same "$model"
}
# An activation before a change to 8 bits whose zero point is the least number does nothing.
zoo() { # MODEL ACTIVATIONS LEFT (an expression)
    gives 0 "$GRAFT" model "$1_int8" "$FOLDER/$1.onnx" && becomes "$1" Relu "$2" "$3"
}
# In Graft's own executor.
runs() {
    gives 0 "$GRAFT" --quiet --threads 1 optimize "$FOLDER/$1.onnx" "$FOLDER/out.onnx" --check 2 --database "$FOLDER/x.costs" &&
        grep -q 'outputs agree' "$FOLDER/out"
}
# Bytes, against those of onnxruntime's integer kernels.
integers() { "$python" tests/emit/quantised.py integers "$GRAFT" "$FOLDER" "$1"; }
# Sums of products in int32, and an LSTM of them, against onnxruntime's.
sums() { "$python" tests/emit/quantised.py sums "$GRAFT" "$FOLDER" "$1"; }
# What onnxruntime's sums are not whole for, on processors without VNNI.
against() { # NAME FUNCTION KIND
    if [ -z "$cut" ]; then check "$1: $3" "$2" "$3"; else skip "$1: $3" "$cut"; fi
}
table() { "$python" tests/emit/quantised.py table "$GRAFT" "$FOLDER"; }
changes() { "$python" tests/emit/quantised.py changes "$GRAFT" "$FOLDER"; }
formats() { "$python" tests/emit/quantised.py formats "$GRAFT" "$FOLDER"; }
tiles() { "$python" tests/emit/quantised.py tiles "$GRAFT" "$FOLDER"; }
untouched() { optimize other --exact && cmp "$FOLDER/other.onnx" "$FOLDER/other.opt.onnx"; }
kept() { # MODEL
    gives 0 "$GRAFT" optimize "$FOLDER/$1.onnx" "$FOLDER/$1.opt.onnx" --device intel-xeon-6-207 && cmp "$FOLDER/$1.onnx" "$FOLDER/$1.opt.onnx" &&
        gives 0 "$GRAFT" optimize "$FOLDER/$1.onnx" "$FOLDER/$1.opt.onnx" --simplify && cmp "$FOLDER/$1.onnx" "$FOLDER/$1.opt.onnx"
}

if python=$(sh cost/rival/python.sh "${OUT:-out/release}/../venv") &&
    "$python" -c 'import onnxruntime.quantization' 2> "$FOLDER/log" && "$python" tests/emit/quantised.py small "$FOLDER" 2> "$FOLDER/log"; then
    printf '#!/bin/sh\nexec "%s" "%s/tests/emit/quantised.py" device\n' "$python" "$PWD" > "$DEVICE" && chmod +x "$DEVICE"
    gives 0 "$GRAFT" model dscnn_int8 "$FOLDER/dscnn.onnx"
    for model in dscnn signed moves-signed twins; do
        check "costs alone change nothing about groups of 8 bits: $model" kept $model
    done
    check "changes to 16 bits are no changes to 8" becomes wide
    check "neither are those with a sign" becomes wide-signed
    check "a separable net loses its activations" zoo dscnn 9 0
    check "so does a residual one, of most" zoo resnet8 7 "[0-5]"
    check "so does a deep separable one, of many" zoo mobilenetv1 27 "[0-9]+"
    check "so does one of products" zoo autoencoder 9 0
    check "activations on either side of int8" becomes signed Relu 2 0
    check "activations on either side of uint8" becomes unsigned Relu 2 0
    check "another zero point keeps them" untouched
    check "moves go past changes to int8, which cancel" becomes moves-signed DequantizeLinear 2 0
    check "moves go past changes to uint8, which cancel" becomes moves-unsigned DequantizeLinear 2 0
    check "bytes are moved by the executor, too" runs moves-signed
    check "and without a sign" runs moves-unsigned
    check "copies of bytes between QLinearConv cancel" becomes qlinear Transpose 2 0
    check "a table of bytes is read at known places" table
    check "numbers of 16 bits, in blocks, and weights of 4 bits change as they should" changes
    check "a net in both formats of onnxruntime's quantiser" formats
    check "an image with a zero point is multiplied as it should" tiles
    for kind in pointwise stem depthwise grouped gemm matmul; do
        check "the executor multiplies integers: $kind" integers $kind
    done
    check "bytes are multiplied: convinteger" sums convinteger
    cut=$("$python" tests/emit/quantised.py whole "$FOLDER" 2>&1) || cut="onnxruntime: $cut"
    for kind in residual qlinearconv qlinearmatmul; do
        against "the executor multiplies integers" integers $kind
    done
    for kind in matmulinteger steps; do
        against "bytes are multiplied" sums $kind
    done
else
    cat "$FOLDER/log"
    skip "models of 8 bits" "no onnxruntime here, or without its quantiser"
fi
finish
