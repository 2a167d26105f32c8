#!/bin/sh
# Initializers that are inputs too: a caller may set them in what comes back, unless they are said to be
# constants.
. tests/support/tap.sh

optimize() { # OPTIONS...
    gives 0 "$GRAFT" optimize "$FOLDER/model.onnx" "$FOLDER/out.onnx" --device intel-xeon-6-207 "$@"
}
compare() { "$python" tests/interop/settable.py compare "$FOLDER/model.onnx" "$FOLDER/out.onnx"; }
stays() {
    optimize "$@" && grep -q '2 initializers are inputs too' "$FOLDER/err" && grep -q 'Transpose *2 -> *0' "$FOLDER/out" &&
        grep -q 'Mul *2 -> *2' "$FOLDER/out" && compare
}
becomes_constant() {
    optimize --constants "$@" && grep -q 'Mul *2 -> *1' "$FOLDER/out" && ! compare 2> "$FOLDER/log" &&
        grep -q AssertionError "$FOLDER/log"
}

need_runtime "initializers that can be set"
check "makes models" "$python" tests/interop/settable.py make "$FOLDER/model.onnx"
check "stays one that can be set" stays
check "also where nothing is priced" stays --simplify
check "is a constant where that is said" becomes_constant
check "also where nothing is priced" becomes_constant --simplify

finish
