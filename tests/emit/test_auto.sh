#!/bin/sh
# What `graft optimize` finds by itself: what searches find, and what the device's policy makes where
# that is cheaper.
. tests/support/tap.sh

optimize() { # OPTIONS...
    gives 0 "$GRAFT" optimize "$FOLDER/rows.onnx" "$FOLDER/out.onnx" --device amd-epyc-25-17 --json "$@"
}
told() { grep '"model"' "$FOLDER/out" | grep -q "$1"; }
# A normalisation in steps is one again before opset 17, so that searches gain nothing by joining it.
finds_nothing() { optimize --search "$1" && told '"rules_applied": 0,' && cmp "$FOLDER/rows.onnx" "$FOLDER/out.onnx"; }
follows() {
    optimize && told '"policy": "rules/policies/amd-epyc-25-17-avx512.graft"' && told '"graphs": [1-9]' &&
        "$python" tests/emit/rows.py same "$FOLDER/rows.onnx" "$FOLDER/out.onnx" &&
        "$python" -c 'import onnx, sys
m = onnx.shape_inference.infer_shapes(onnx.load(sys.argv[1])).graph
p = [n.output[0] for n in m.node if n.op_type in ("MatMul", "Gemm")]
s = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in m.value_info}
sys.exit(not (p and all(64 not in s[x] for x in p)))' "$FOLDER/out.onnx"
}
# Its rules are those that were asked for, and what is printed step by step is a search.
stays_within() {
    optimize --rules rules/simplify.rules && told '"search": ' && optimize --steps && told '"search": '
}
takes_what_is_cheaper() {
    gives 0 "$GRAFT" optimize resnet8 "$FOLDER/out.onnx" --device intel-xeon-6-167 --json && told '"cost_ns_after"' &&
        cost=$(sed -n 's/.*"cost_ns_after": \([0-9]*\).*/\1/p' "$FOLDER/out" | tail -1) &&
        gives 0 "$GRAFT" optimize resnet8 "$FOLDER/out.onnx" --device intel-xeon-6-167 --json \
            --policy rules/policies/intel-xeon-6-167-avx512.graft &&
        [ "$cost" -le "$(sed -n 's/.*"cost_ns_after": \([0-9]*\).*/\1/p' "$FOLDER/out" | tail -1)" ]
}

check "the cheaper one of what is searched and what a policy makes" takes_what_is_cheaper
if python=$(sh cost/rival/python.sh "${OUT:-out/release}/../venv") && "$python" -c 'import onnxruntime' 2> "$FOLDER/log"; then
    "$python" tests/emit/rows.py make "$FOLDER/rows.onnx"
    for search in greedy guided; do
        check "nothing by $search" finds_nothing $search
    done
    check "a policy reaches through a normalisation in steps" follows
    check "only rules that were asked for" stays_within
else
    skip "files of others" "$(tail -1 "$FOLDER/log")"
fi
finish
