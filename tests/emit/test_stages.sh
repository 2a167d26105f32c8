#!/bin/sh
# Models whose sizes depend on data, held against onnxruntime on data of which there is much, less and nothing.
. tests/support/tap.sh

DB=$FOLDER/x.costs

agrees() { runs_like "$FOLDER/$1.onnx" "$FOLDER/$1.$2.in.npz" "$FOLDER/$1.$2.want.npz"; } # MODEL CASE

need_runtime "models whose sizes depend on data"
"$python" tests/emit/stages.py "$FOLDER" > "$FOLDER/names"
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

finish
