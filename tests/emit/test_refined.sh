#!/bin/sh
# `graft policy MODEL`, and `graft report` after it: a policy for one model that begins with the one for
# many, or with one of the model alone; `graft optimize --search guided`; `graft eval`.
set -u

. tests/support/tap.sh
KNOWN=intel-xeon-6-167 # rules/policies has one of this device,
OTHER=h200-bf16        # and none of this.
UNLIKE=cortex-m4       # Nor of anything like this.
COSTS=$FOLDER/own.costs # What was measured here is not to be mixed with what was recorded.

# Of a row of results.json, by method and how: what is behind a key.
value_of() { # FOLDER METHOD HOW KEY
    sed -n "/\"method\": \"$2\", \"how\": \"$3\"/s/.*\"$4\": *\([^,}]*\).*/\1/p" "$FOLDER/$1/results.json" | head -1
}
at_most() { awk "BEGIN { exit !($1 <= $2) }"; }
make_one() { gives 0 "$GRAFT" --quiet policy resnet8 --out "$FOLDER/$1" --device "$2" --database "$COSTS"; }

# At most 64 graphs priced, and not behind greedy search, which prices more.
refines() {
    make_one known $KNOWN && [ ! -e "$FOLDER/known/start" ] &&
        [ "$(value_of known generalist alone interactions)" = 0 ] &&
        at_most "$(value_of known policy alone interactions)" 64 &&
        at_most "$(value_of known policy alone cost_ns)" "$(value_of known greedy search cost_ns)" &&
        at_most "$(value_of known policy alone cost_ns)" "$(value_of known generalist alone cost_ns)" &&
        grep -q '"method": "random table", "how": "alone"' "$FOLDER/known/results.json"
}
repeats() { make_one again $KNOWN && cmp "$FOLDER/known/graft_policy.h" "$FOLDER/again/graft_policy.h"; }
# What walks asked for is counted, too.
starts_from_itself() {
    make_one other $OTHER && [ -s "$FOLDER/other/start/policy.graft" ] &&
        at_most 200 "$(value_of other generalist alone interactions)" &&
        at_most "$(value_of other policy alone cost_ns)" "1.0001 * $(value_of other greedy search cost_ns)"
}
# The compiled header alone does what its row says.
reports() {
    gcc -std=c99 -Wall -Wextra -Werror -pedantic -O1 -Iinclude "-I$FOLDER/known" emit/firmware/rewrite.c \
        -o "$FOLDER/rewrite" && "$FOLDER/rewrite" > "$FOLDER/known/decisions.txt" &&
        gives 0 "$GRAFT" report resnet8 --out "$FOLDER/known" --device $KNOWN --database "$COSTS" --rounds 3 &&
        grep -q "outputs agree\|not run" "$FOLDER/out" && [ -s "$FOLDER/known/resnet8.opt.onnx" ]
}

# guided DEVICE GRAPHS: the number of graphs that were priced, and the cost afterwards.
guided() {
    gives 0 "$GRAFT" --quiet --json optimize resnet8 "$FOLDER/g.onnx" --device "$1" --database "$COSTS" --search guided --graphs "$2" &&
        sed -n 's/.*"cost_ns_after": *\([0-9.]*\).*"graphs": *\([0-9]*\).*/\1 \2/p' "$FOLDER/out" > "$FOLDER/guided"
}
searches() {
    guided $KNOWN 300 && read -r cost graphs < "$FOLDER/guided" &&
        gives 0 "$GRAFT" --quiet --json optimize resnet8 "$FOLDER/g.onnx" --device $KNOWN --database "$COSTS" &&
        greedy=$(sed -n 's/.*"cost_ns_after": *\([0-9.]*\).*"graphs".*/\1/p' "$FOLDER/out") &&
        at_most "$cost" "1.002 * $greedy" && at_most 250 "$graphs"
}
searches_near() {
    gives 0 "$GRAFT" --verbose optimize resnet8 "$FOLDER/g.onnx" --device $OTHER --database "$COSTS" --graphs 50 &&
        grep -q 'guided by .*/h200-' "$FOLDER/err"
}
searches_without() {
    guided $UNLIKE 50 && read -r _ graphs < "$FOLDER/guided" && at_most 50 "$graphs" &&
        gives 0 "$GRAFT" --verbose optimize resnet8 "$FOLDER/g.onnx" --device $UNLIKE --database "$COSTS" --graphs 50 &&
        grep -q 'no table of costs of' "$FOLDER/err"
}

evaluate() {
    gives 0 "$GRAFT" eval --models dscnn --device $KNOWN --database "$COSTS" --out "$FOLDER/eval" --seeds 2 "$@" &&
        python3 emit/bench/evaluation.py "$FOLDER/eval" "$FOLDER/page.md" $KNOWN
}
evaluates() {
    evaluate --methods 'as given,policy,refined,greedy,sampled 1' &&
        [ "$(wc -l < "$FOLDER/eval/cells.jsonl")" = 7 ] && grep -q '^| refined | 7[0-9.]* |' "$FOLDER/page.md" &&
        [ -s "$FOLDER/eval/costs.gp" ] && [ "$(grep -c 'dscnn, ' "$FOLDER/err")" = 7 ]
}
# Only what is missing is done; what rests on other costs is done anew.
goes_on() {
    sed -i '/"method": "policy"/d; /"method": "greedy"/s/"inputs": "./"inputs": "x/; s/"inputs": "x/"inputs": "0/' \
        "$FOLDER/eval/cells.jsonl" &&
        evaluate --methods 'as given,policy,refined,greedy,sampled 1' &&
        at_most "$(grep -c 'dscnn, ' "$FOLDER/err")" 2 && grep -q 'dscnn, policy' "$FOLDER/err" &&
        [ "$(wc -l < "$FOLDER/eval/cells.jsonl")" = 7 ] &&
        gives 0 "$GRAFT" --quiet --json eval --models dscnn --device $KNOWN --database "$COSTS" --out "$FOLDER/eval" --methods greedy &&
        [ "$(cat "$FOLDER/out")" = "$(grep '"greedy"' "$FOLDER/eval/cells.jsonl")" ] &&
        gives 0 "$GRAFT" --quiet eval --device $KNOWN --database "$COSTS" --check "$FOLDER/eval/best.plans" &&
        grep -q '^dscnn  *7[0-9.]*% in ' "$FOLDER/out"
}
# On a device that is here graphs take turns with the one as given, once.
measures() {
    mkdir -p "$FOLDER/folds/microcontroller" &&
        cp rules/policies/intel-xeon-6-167-avx512.graft "$FOLDER/folds/microcontroller/policy.graft" &&
        set -- "$GRAFT" eval --models dscnn --database "$FOLDER/here.costs" --out "$FOLDER/here" --methods policy,unseen \
            --policy rules/policies/intel-xeon-6-167-avx512.graft --folds "$FOLDER/folds" --rounds 3 &&
        gives 0 "$@" && python3 emit/bench/evaluation.py "$FOLDER/here" "$FOLDER/here.md" here && [ "$(grep -c '"measured": [0-9]*\.[0-9]*[1-9]' "$FOLDER/here/cells.jsonl")" = 2 ] &&
        sed -n '/^## Measured/,/^## Peak/p' "$FOLDER/here.md" | grep -q '^| unseen | [0-9.]* ± [0-9.]* |' &&
        gives 0 "$@" && [ "$(grep -c 'dscnn, ' "$FOLDER/err")" = 0 ]
}
# What bounds episodes does not cut the engine's own loop, which ends by itself.
runs_to_its_end() {
    sed 's/^  step_limit: .*/  step_limit: 3/' train/settings.yaml > "$FOLDER/short.yaml" &&
        gives 0 "$GRAFT" --quiet --json eval --models dscnn --device $KNOWN --database "$COSTS" --out "$FOLDER/short" \
            --settings "$FOLDER/short.yaml" --methods policy,greedy &&
        steps() { sed -n "/\"method\": \"$1\"/s/.*\"steps\": \([0-9]*\).*/\1/p" "$FOLDER/out"; } &&
        [ "$(steps greedy)" = 3 ] && [ "$(steps policy)" -gt 10 ]
}
refuses_broken() {
    printf '{"model": "dscnn"}\n' > "$FOLDER/eval/cells.jsonl"
    error_is 2 "cells.jsonl" "$GRAFT" --quiet eval --models dscnn --device $KNOWN --database "$COSTS" --out "$FOLDER/eval" --methods policy
}

check "a policy refined on its model" refines
check "the same bytes again" repeats
check "without a policy for many models" starts_from_itself
check "the header does what is reported" reports
check "guided search" searches
check "guided search by the policy of the nearest device" searches_near
check "guided search that learns its costs" searches_without
check "an evaluation" evaluates
check "an evaluation goes on" goes_on
check "whole graphs in turns" measures
check "a policy in a model of many steps" runs_to_its_end
check "a family without a policy" error_is 2 "residual/policy.graft" "$GRAFT" --quiet eval --models resnet18 --device $KNOWN \
    --database "$COSTS" --folds "$FOLDER/folds" --out "$FOLDER/none" --methods unseen
check "a broken file of results" refuses_broken
check "no policy to evaluate" error_is 2 "has no policy of 'h200-bf16'" \
    "$GRAFT" --quiet eval --models dscnn --device h200-bf16 --out "$FOLDER/none" --methods policy
finish
