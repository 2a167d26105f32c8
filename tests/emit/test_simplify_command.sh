#!/bin/sh
# `graft optimize --simplify` from outside: it asks no costs, its rules are those that are proved.
. tests/support/tap.sh

# No database, no device: of the cache and the recorded costs nothing is touched.
asks_no_costs() {
    gives 0 env XDG_CACHE_HOME="$FOLDER/cache" "$GRAFT" optimize nasnet "$FOLDER/x.onnx" --simplify \
        --device nonesuch && [ ! -e "$FOLDER/cache" ] && ! grep -q measure "$FOLDER/err" &&
        grep -q '^nasnet: [0-9]* operators -> [0-9]* operators by [0-9]* rewrites$' "$FOLDER/out"
}
is_done_at_once() {
    "$GRAFT" --quiet optimize "$FOLDER/x.onnx" "$FOLDER/y.onnx" --simplify > "$FOLDER/out" &&
        grep -q ' by 0 rewrites$' "$FOLDER/out" && cmp "$FOLDER/x.onnx" "$FOLDER/y.onnx"
}
tells_programs() {
    gives 0 "$GRAFT" --quiet --json optimize "$FOLDER/x.onnx" "$FOLDER/y.onnx" --simplify &&
        tail -n 1 "$FOLDER/out" | grep -q '"operators_before": [0-9]*, "operators_after": [0-9]*, "rules_applied": 0'
}
goes_alone() {
    for other in "--search beam" "--passes 2" "--check 1" "--steps" "--policy x" "--unroll 4"; do
        # shellcheck disable=SC2086
        error_is 2 "--simplify asks no costs" "$GRAFT" --quiet optimize dscnn "$FOLDER/z.onnx" --simplify $other || return 1
    done
}
# The committed set is what proving the text gives.
rules_are_proved() { # SET
    printf '\010\001\022\013z3 4.8.12.0' > "$FOLDER/made.rules"
    gives 0 "$GRAFT" --quiet verify "rules/$1.yaml" --merge --rules "$FOLDER/made.rules" &&
        cmp "rules/$1.rules" "$FOLDER/made.rules"
}

check "asks no costs" asks_no_costs
check "once more changes nothing" is_done_at_once
check "the same for programs" tells_programs
check "no search, policy or check beside it" goes_alone
check "its rules are proved" rules_are_proved simplify
check "those for a runtime, too" rules_are_proved onnxruntime
finish
