#!/bin/sh
# `graft bench headroom`: every search on a model, the best plan in a file, and that file checked.
. tests/support/tap.sh

PLANS=$FOLDER/h.plans
headroom() { gives "$1" timeout 900 "$GRAFT" --quiet bench headroom "$2" --device intel-xeon-6-207 --seconds 1 --plans "$PLANS"; }

finds_plans() {
    headroom 0 dscnn && [ "$(grep -c '^dscnn .*%' "$FOLDER/out")" = 17 ] &&
        grep -q '^dscnn  *backtracking, equal time  *[0-9.]*%' "$FOLDER/out" &&
        ! grep -q 'no result' "$FOLDER/out" &&
        [ "$(wc -l < "$PLANS")" = 1 ] && grep -q '"estimates": 0, ' "$PLANS"
}
# Another model is added; what is known of the first one stays.
keeps_plans() {
    cp "$PLANS" "$FOLDER/first" && headroom 0 autoencoder && [ "$(wc -l < "$PLANS")" = 2 ] &&
        grep -qFf "$FOLDER/first" "$PLANS"
}
checks() { gives "$1" "$GRAFT" --quiet bench headroom zoo --device intel-xeon-6-207 --check "$2"; }
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
marks_estimates() {
    gives 0 "$GRAFT" --quiet bench headroom resnet18 --device amd-epyc-26 --seconds 1 --estimates --plans "$FOLDER/none" &&
        grep -q 'no result: more estimates than before' "$FOLDER/out" &&
        ! grep -q 'no result' "$FOLDER/none"
}

check "the best of all searches" finds_plans
check "plans are kept" keeps_plans
check "plans are replayed" replays_plans
check "changed plans are refused" refuses_changed_plans
check "graphs of more estimates are marked" marks_estimates
finish
