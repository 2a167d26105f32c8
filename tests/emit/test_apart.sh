#!/bin/sh
# Operators that come apart where a model is run, and others that rules do not know: ONNX's own cases of them, and
# those of com.microsoft held against onnxruntime.
. tests/support/tap.sh

agrees_on() { # cases | forms
    "$python" tests/emit/apart.py "$1" "$FOLDER" > "$FOLDER/names" && [ -s "$FOLDER/names" ] || return 1
    while read -r name; do
        runs_like "$FOLDER/$name.onnx" "$FOLDER/$name.in.npz" "$FOLDER/$name.want.npz" || return 1
    done < "$FOLDER/names"
}
# What a file has comes back whole.
stays() {
    gives 0 "$GRAFT" optimize "$FOLDER/forms.onnx" "$FOLDER/out.onnx" --device intel-xeon-6-167 &&
        cmp "$FOLDER/forms.onnx" "$FOLDER/out.onnx"
}

need_runtime "operators that come apart"
check "gives what ONNX's cases say" agrees_on cases
check "agrees with onnxruntime" agrees_on forms
check "comes back whole" stays

finish
