#!/bin/sh
# What is inside of If, Loop and Scan is rewritten, and computes the same in onnxruntime.
. tests/support/tap.sh

json=
see() { "$python" tests/interop/bodies.py "$@"; }
count() { see count "$@"; }
optimize() { # NAME OPTIONS...
    model=$1
    shift
    # shellcheck disable=SC2086
    gives 0 "$GRAFT" $json optimize "$FOLDER/$model.onnx" "$FOLDER/$model.out.onnx" "$@" &&
        [ -z "$(find "$FOLDER" -name '*.body*')" ] &&
        see compare "$FOLDER/$model.onnx" "$FOLDER/$model.out.onnx" "$FOLDER/$model.npz"
}
recorded() { # NAME KIND COUNT: so many of that kind are left in the bodies
    optimize "$1" --device intel-xeon-6-207 && [ "$(count "$FOLDER/$1.out.onnx" "$2")" = "$3" ]
}
simplified() { # NAME KIND COUNT
    optimize "$1" --simplify && [ "$(count "$FOLDER/$1.out.onnx" "$2")" = "$3" ]
}
simplifies() {
    simplified decoder Transpose 18 && simplified open Transpose 18 && simplified scan Identity 1 &&
        simplified loop Transpose 0 && simplified nested Transpose 0
}
says_so() {
    json=--json
    optimize nested --device intel-xeon-6-207 || return 1
    json=
    grep -q '"body": "then_branch of node .round_n3. (If) in body of node .rounds. (Loop)".*"rules_applied"' "$FOLDER/out" &&
        optimize nested --device intel-xeon-6-207 &&
        grep -q "^body of node 'rounds' (Loop): 5 operators, .* by 0 rewrites: .*, each time that it runs$" "$FOLDER/out"
}
# What both branches made of the same weights is stored once; what only one made is left.
does_not_grow() {
    recorded twins Gemm 2 && see outside "$FOLDER/twins.out.onnx" 2 && recorded rivals MatMul 4 &&
        grep -q 'would make the file grow: they are rewritten again without new weights' "$FOLDER/err" &&
        [ "$(grep -c '^[a-z]*_branch of node' "$FOLDER/out")" = 2 ]
}
conforms() { see cases "$GRAFT" "$FOLDER" "${ONNX_DATA:-/usr/share/libonnx-testdata/data}"; }
is_nested() {
    see deep 30 "$FOLDER/deep.onnx" && gives 0 "$GRAFT" optimize "$FOLDER/deep.onnx" "$FOLDER/out.onnx" --simplify &&
        [ "$(grep -c "node 'n29' (If): 2 operators" "$FOLDER/out")" = 29 ] && [ "$(count "$FOLDER/out.onnx" If)" = 29 ] &&
        see deep 1000 "$FOLDER/deep.onnx" &&
        error_is 2 "deep.onnx: byte" "$GRAFT" --quiet optimize "$FOLDER/deep.onnx" "$FOLDER/out.onnx" --simplify
}
runs() {
    for model in decoder scan loop nested until twins; do
        see ran "$GRAFT" "$FOLDER/$model" "$FOLDER/x.costs" || return 1
    done
}
is_checked() {
    gives 0 "$GRAFT" --quiet optimize "$FOLDER/decoder.onnx" "$FOLDER/out.onnx" --check 3 --database "$FOLDER/x.costs" &&
        grep -q 'checked on 3 random inputs: outputs agree' "$FOLDER/out"
}
# What a body became rounds otherwise, which shows that it was run.
is_entered() {
    for model in asked first second; do
        gives 0 "$GRAFT" --quiet --json optimize "$FOLDER/$model.onnx" "$FOLDER/out.onnx" --check 2 --database "$FOLDER/x.costs" &&
            grep -q '"model".*"difference": [1-9]' "$FOLDER/out" || return 1
    done
}
runs_in_stages() {
    see sized "$FOLDER" && for model in grows counts differ; do
        see ran "$GRAFT" "$FOLDER/$model" "$FOLDER/x.costs" || return 1
    done
}
says_where() {
    see twice "$FOLDER/twice.onnx" &&
        error_is 2 "the name 'a' is given twice, by output 0 of node 1 '' (Exp), in then_branch of node 'choice' (If) of $FOLDER/twice.onnx" \
            "$GRAFT" --quiet optimize "$FOLDER/twice.onnx" "$FOLDER/out.onnx" --simplify
}

need_runtime "bodies of If, Loop and Scan"
check "makes models" see make "$FOLDER"
check "are simplified" simplifies
check "of a decoder are rewritten" recorded decoder Transpose 18
check "of a scan are rewritten" recorded scan Gemm 4
check "of a loop are rewritten" recorded loop Gemm 2
check "are spoken of" says_so
check "do not make the file grow" does_not_grow
check "of the conformance cases compute the same" conforms
check "inside of one another" is_nested
check "run" runs
check "are part of what is checked" is_checked
check "are run by a check, whatever decides it" is_entered
check "whose sizes depend on data run" runs_in_stages
check "with faults are named" says_where

finish
