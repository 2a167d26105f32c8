#!/bin/sh
# Operators that come apart where a model is run, and others that rules do not know: ONNX's own cases of them, and
# those of com.microsoft held against onnxruntime.
. tests/support/tap.sh

agrees() { # CASES: FOLDER/CASES.onnx
    gives 0 "$GRAFT" --quiet --threads 1 run "$FOLDER/$1.onnx" --inputs "$FOLDER/$1.in.npz" --outputs "$FOLDER/$1.have.npz" \
        --database "$FOLDER/x.costs" &&
        "$python" tests/emit/apart.py compare "$FOLDER/$1.want.npz" "$FOLDER/$1.have.npz"
}
agrees_on() { # cases | forms
    "$python" tests/emit/apart.py "$1" "$FOLDER" > "$FOLDER/names" && [ -s "$FOLDER/names" ] || return 1
    while read -r name; do
        agrees "$name" || return 1
    done < "$FOLDER/names"
}
# What a file has comes back whole.
stays() {
    gives 0 "$GRAFT" optimize "$FOLDER/forms.onnx" "$FOLDER/out.onnx" --device intel-xeon-6-167 &&
        cmp "$FOLDER/forms.onnx" "$FOLDER/out.onnx"
}

if python=$(sh cost/rival/python.sh "${OUT:-out/release}/../venv") && "$python" -c 'import onnxruntime' 2> "$FOLDER/log"; then
    check "gives what ONNX's cases say" agrees_on cases
    check "agrees with onnxruntime" agrees_on forms
    check "comes back whole" stays
else
    skip "operators that come apart" "no onnxruntime here"
fi

finish
