#!/bin/sh
# `graft eval`: every search on a model, the best plan in a file, and that file checked.
. tests/support/tap.sh

PLANS=$FOLDER/h.plans
SEARCHES='greedy,escape,beam 8,beam 64,annealing,iterated,guided,backtracking 1000,backtracking 50000,backtracking equal time'
headroom() { # STATUS MODEL DEVICE OPTION...
    status=$1 model=$2 device=$3
    shift 3
    gives "$status" timeout 900 "$GRAFT" --quiet --json eval --models "$model" --device "$device" --methods "$SEARCHES" --seeds 3 \
        --seconds 1 --out "$FOLDER/$device" "$@"
}
finds_plans() {
    headroom 0 dscnn intel-xeon-6-207 --plans "$PLANS" && [ "$(grep -c '"model": "dscnn"' "$FOLDER/out")" = 16 ] &&
        grep -q '"method": "backtracking equal time", .*"estimates": 0, ' "$FOLDER/out" &&
        [ "$(wc -l < "$PLANS")" = 1 ] && grep -q '"estimates": 0, ' "$PLANS"
}
# Another model is added; what is known of the first one stays.
keeps_plans() {
    cp "$PLANS" "$FOLDER/first" && headroom 0 autoencoder intel-xeon-6-207 --plans "$PLANS" && [ "$(wc -l < "$PLANS")" = 2 ] &&
        grep -qFf "$FOLDER/first" "$PLANS"
}
checks() { gives "$1" "$GRAFT" --quiet eval --device intel-xeon-6-207 --check "$2"; }
replays_plans() {
    checks 0 "$PLANS" && grep -q '^dscnn  *[0-9.]*% in [0-9]* steps, as found by' "$FOLDER/out"
}
# refuses TEXT SCRIPT: the file, as the script of sed changes it.
refuses() {
    sed "$2" "$PLANS" > "$FOLDER/changed" && ! cmp -s "$PLANS" "$FOLDER/changed" &&
        ! checks 0 "$FOLDER/changed" > "$FOLDER/why" && grep -q "$1" "$FOLDER/err"
}
refuses_changed_plans() {
    refuses 'the file says' 's/"cost_ns": \([0-9]\)/"cost_ns": 1\1/' &&
        refuses 'of other rules or costs' 's/"rules": "[0-9a-f]*"/"rules": "1"/' &&
        refuses 'of other rules or costs' 's/"costs": "[0-9a-f]*"/"costs": "1"/' &&
        refuses 'is not legal here' 's/"plan": \[[0-9]*, [0-9]*/"plan": [0, 60000/' &&
        refuses 'must list rules and locations' 's/"plan": \[/"plan": [7, /' &&
        refuses "'rules' must be a hash" 's/"rules": "/"rules": "x/'
}
# With estimates let through a graph may rest on more of them than the one given: no plan to keep.
rests_on_more() { sed -n 's/.*"first_estimates": \([0-9]*\), "estimates": \([0-9]*\),.*/\1 \2/p' "$FOLDER/out" | awk '$2 > $1 { more++ } END { exit !more }'; }
marks_estimates() {
    headroom 0 mobilenetv2 h200-bf16 --estimates && rests_on_more &&
        python3 emit/bench/evaluation.py "$FOLDER/h200-bf16" "$FOLDER/page.md" here &&
        grep -q '^| greedy | .*(e)' "$FOLDER/page.md" &&
        ! awk -F'[:,]' '{ for (i = 1; i < NF; i++) { if ($i ~ /"first_estimates"/) f = $(i + 1); if ($i ~ /"estimates"/) e = $(i + 1) }; if (e + 0 > f + 0) found = 1 } END { exit !found }' \
            "$FOLDER/h200-bf16/best.plans" && headroom 0 mobilenetv2 h200-bf16 && ! rests_on_more
}

check "the best of all searches" finds_plans
check "plans are kept" keeps_plans
check "plans are replayed" replays_plans
check "changed plans are refused" refuses_changed_plans
check "graphs of more estimates are marked" marks_estimates
finish
