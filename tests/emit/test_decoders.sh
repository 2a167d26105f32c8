#!/bin/sh
# Decoders that are fed a past, which is empty at first, held against onnxruntime.
. tests/support/tap.sh

DB=$FOLDER/x.costs

agrees() { runs_like "$FOLDER/$1.onnx" "$FOLDER/$1.$2.in.npz" "$FOLDER/$1.$2.want.npz"; } # MODEL CASE
# Sizes of 0 that are said, and an operator that nobody knows of nothing.
takes_sizes() {
    gives 0 "$GRAFT" --quiet run "$FOLDER/loop.onnx" --bench --rounds 3 --size p=0,s=4 --database "$DB" &&
        grep -q 'key *f32\[1,2,4,4\]' "$FOLDER/out"
}
names_the_node() {
    printf '%s' '<ir_version: 8, opset_import: ["" : 17]> graph (float[1, 2, p, 4] x) => (float[1, 2, 1, 1] y)
        { y = GlobalMaxPool(x) }' > "$FOLDER/most.text" &&
        "$python" -c 'import onnx, sys; onnx.save(onnx.parser.parse_model(open(sys.argv[1]).read()), sys.argv[2])' \
            "$FOLDER/most.text" "$FOLDER/most.onnx" &&
        error_is 2 "node 'y' (GlobalMaxPool) cannot be run" "$GRAFT" --quiet run "$FOLDER/most.onnx" --bench --size p=0 \
            --database "$DB"
}

need_runtime "decoders with an empty past"
"$python" tests/emit/decoders.py "$FOLDER" > "$FOLDER/names"
while read -r name case; do
    if [ "$name" = nothing ] && [ "${LIBONNX:-1}" = 0 ]; then
        skip "agrees on $name, inputs $case" "tensors without elements need ONNX' own library"
        continue
    fi
    check "agrees on $name, inputs $case" agrees "$name" "$case"
done < "$FOLDER/names"
check "takes sizes of 0" takes_sizes
check "names a node that needs elements" names_the_node
check "made all models" [ "$(wc -l < "$FOLDER/names")" = 16 ]

finish
