#!/bin/sh
# Functions that a file brings along are inlined: what comes back has none, and the model runs.
. tests/support/tap.sh

see() { "$python" tests/interop/functions.py "$@"; }
optimized() { # OPTIONS...
    gives 0 "$GRAFT" optimize "$FOLDER/model.onnx" "$FOLDER/out.onnx" --device intel-xeon-6-207 "$@" &&
        grep -q '11 calls of functions of the file become their bodies' "$FOLDER/err" &&
        see compare "$FOLDER/model.onnx" "$FOLDER/out.onnx" "$FOLDER/in.npz"
}
runs() {
    gives 0 "$GRAFT" run "$FOLDER/plain.onnx" --inputs "$FOLDER/in.npz" --outputs "$FOLDER/found.npz" &&
        see ran "$FOLDER/plain.onnx" "$FOLDER/in.npz" "$FOLDER/found.npz"
}

need_runtime "functions of a file"
check "makes models" see make "$FOLDER/model.onnx" "$FOLDER/plain.onnx" "$FOLDER/in.npz"
check "come back as their bodies" optimized
check "also where nothing is priced" optimized --simplify
check "run" runs

finish
