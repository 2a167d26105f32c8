#!/bin/sh
# graft model and graft convert: what they write, what they refuse, and that nothing is left half
# written.
. tests/support/tap.sh

lists() {
    gives 0 "$GRAFT" model && grep -q '^resnet50 ' "$FOLDER/out" && grep -q '^dscnn ' "$FOLDER/out"
}
lists_json() {
    gives 0 "$GRAFT" --json model &&
        grep -q '^{"name": "resnet50",.*"parameters": 25557032,' "$FOLDER/out"
}
writes() {
    gives 0 "$GRAFT" model dscnn "$FOLDER/a.onnx" && gives 0 "$GRAFT" model dscnn "$FOLDER/b.onnx" &&
        cmp "$FOLDER/a.onnx" "$FOLDER/b.onnx" &&
        gives 0 "$GRAFT" model dscnn "$FOLDER/b.onnx" --seed 7 &&
        ! cmp -s "$FOLDER/a.onnx" "$FOLDER/b.onnx"
}
converts() {
    gives 0 "$GRAFT" convert "$FOLDER/a.onnx" "$FOLDER/new/c.onnx" &&
        cmp "$FOLDER/a.onnx" "$FOLDER/new/c.onnx" && grep -q '31 nodes in the file, 0 of them opaque' "$FOLDER/out"
}
converts_names() {
    gives 0 "$GRAFT" --json convert dscnn "$FOLDER/c.onnx" && cmp "$FOLDER/a.onnx" "$FOLDER/c.onnx" &&
        grep -q '"nodes": 31, "const_nodes": 1, "opaque": 0' "$FOLDER/out"
}
stores_weights_outside() {
    gives 0 "$GRAFT" convert "$FOLDER/a.onnx" "$FOLDER/e/d.onnx" --external-data &&
        [ "$(wc -c < "$FOLDER/e/d.onnx")" -lt 30000 ] && ls "$FOLDER/e/d.onnx."*.data &&
        gives 0 "$GRAFT" convert "$FOLDER/e/d.onnx" "$FOLDER/back.onnx" &&
        cmp "$FOLDER/a.onnx" "$FOLDER/back.onnx"
}
refuses_cut_file() {
    head -c 50000 "$FOLDER/a.onnx" > "$FOLDER/cut.onnx"
    error_is 2 "cut.onnx: byte " "$GRAFT" convert "$FOLDER/cut.onnx" "$FOLDER/none.onnx" &&
        [ ! -e "$FOLDER/none.onnx" ]
}
keeps_old_file() {
    cp "$FOLDER/a.onnx" "$FOLDER/old.onnx"
    gives 2 "$GRAFT" convert "$FOLDER/cut.onnx" "$FOLDER/old.onnx" &&
        cmp "$FOLDER/a.onnx" "$FOLDER/old.onnx"
}

check "model lists the zoo" lists
check "model lists the zoo as JSON" lists_json
check "model writes the same bytes for the same seed" writes
check "convert copies byte for byte" converts
check "convert takes a name of the zoo" converts_names
check "convert stores weights outside and takes them back" stores_weights_outside
check "convert refuses a file that is cut off" refuses_cut_file
check "convert leaves what was there" keeps_old_file
check "an unknown model" error_is 2 "no model 'resnet51': it is neither a file nor one of resnet18," \
    "$GRAFT" model resnet51 "$FOLDER/x.onnx"
check "an unknown model without a file" error_is 2 "no model 'x'" "$GRAFT" model x
check "no file" error_is 2 "usage: graft model NAME OUT.onnx" "$GRAFT" model dscnn
check "too many words" error_is 2 "model does not understand 'more'" "$GRAFT" model dscnn a more
check "a seed that is no number" error_is 2 "--seed needs a number" "$GRAFT" model dscnn a --seed -1
check "convert without output" error_is 2 "usage: graft convert" "$GRAFT" convert dscnn
check "convert what is not there" error_is 2 "none.onnx: cannot open" "$GRAFT" convert none.onnx x
check "a size without a value" error_is 2 "--size needs NAME=N" \
    "$GRAFT" convert dscnn x.onnx --size N
check "a size that the model does not have" error_is 2 "has no open size 'N'" \
    "$GRAFT" convert dscnn x.onnx --size N=2
check "an output that cannot be written" error_is 2 "cannot write: is a folder" \
    "$GRAFT" convert dscnn "$FOLDER"
finish
