#!/bin/sh
# Models whose sizes depend on data, held against onnxruntime on data of which there is much, less and nothing.
. tests/support/tap.sh

DB=$FOLDER/x.costs

agrees() { # MODEL CASE
    gives 0 "$GRAFT" --quiet --threads 1 run "$FOLDER/$1.onnx" --inputs "$FOLDER/$1.$2.in.npz" --outputs "$FOLDER/have.npz" \
        --database "$DB" &&
        "$python" tests/emit/stages.py compare "$FOLDER/$1.$2.want.npz" "$FOLDER/have.npz"
}

if python=$(sh cost/rival/python.sh "${OUT:-out/release}/../venv") && "$python" -c 'import onnxruntime' 2> "$FOLDER/log"; then
    "$python" tests/emit/stages.py make "$FOLDER" > "$FOLDER/names"
    while read -r name case; do
        if [ "$case" = 2 ] && [ "${LIBONNX:-1}" = 0 ]; then
            skip "agrees on $name, data $case" "tensors without elements need ONNX' own library"
            continue
        fi
        check "agrees on $name, data $case" agrees "$name" "$case"
    done < "$FOLDER/names"
    check "does not say which NaN are equal" error_is 2 "(Unique) cannot be run" "$GRAFT" --quiet run "$FOLDER/found.onnx" \
        --inputs "$FOLDER/found.nan.in.npz" --database "$DB"
    check "made all models" [ "$(wc -l < "$FOLDER/names")" = 21 ]
else
    skip "models whose sizes depend on data" "no onnxruntime here"
fi

finish
