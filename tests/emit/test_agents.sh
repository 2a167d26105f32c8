#!/bin/sh
# `graft bench agents`: a small agent trained on a small model, its metrics, and the gates of the world
# model that its dreams come from.
. tests/support/tap.sh

SETTINGS=$FOLDER/settings.yaml
sed -e '/^candidates:/,/^foresight:/s/^  updates: .*/  updates: 2/' \
    -e '/^foresight:/,/^search:/s/^  updates: .*/  updates: 5/' \
    -e '/^foresight:/,/^search:/s/^  episodes: [0-9]*/  episodes: 3/' \
    -e 's/^  dream_updates: .*/  dream_updates: 1/' train/settings.yaml > "$SETTINGS"
agents() {
    wanted=$1
    shift
    gives "$wanted" timeout 900 "$GRAFT" --quiet bench agents dscnn --device intel-xeon-6-207 \
        --settings "$SETTINGS" --metrics "$FOLDER/metrics" "$@"
}

# An untrained agent does what greedy over the tariff does.
cost_of() { sed -n "s/^$1  *dscnn  *\\([0-9.]*\\) %.*/\\1/p" "$FOLDER/out"; }
trains() {
    agents 0 && [ -n "$(cost_of 'greedy over the tariff')" ] &&
        [ "$(cost_of 'greedy over the tariff')" = "$(cost_of 'candidates, untrained')" ] &&
        [ -n "$(cost_of candidates)" ]
}
writes_metrics() {
    [ "$(grep -c '"kind": *"update"' "$FOLDER/metrics")" = 2 ] &&
        grep -q '"update": *2, *"interactions": *[1-9]' "$FOLDER/metrics"
}
# So little training cannot pass the gates, and that is a failure.
fails_loudly() {
    agents 1 --dreams && grep -q 'F1 of candidates closed [0-9.]*, opened' "$FOLDER/out" &&
        grep -q 'FAILS' "$FOLDER/out" && grep -q 'does not pass its gates' "$FOLDER/err" &&
        [ -n "$(cost_of 'candidates, dreams')" ]
}
# What is in the file becomes a part of an evaluation's page; half a file does not.
is_evaluated() {
    greedy=$(cost_of 'greedy over prices')
    mkdir -p "$FOLDER/eval/dreams" && cp "$FOLDER/metrics" "$FOLDER/eval/dreams/dscnn-1.jsonl" &&
        grep -v '"gates"' "$FOLDER/metrics" > "$FOLDER/eval/dreams/dscnn-2.jsonl"
    gives 0 "$GRAFT" --quiet eval --models dscnn --device amd-epyc-25-1-avx2 --methods 'as given' --out "$FOLDER/eval" &&
        python3 emit/bench/evaluation.py "$FOLDER/eval" "$FOLDER/page.md" here &&
        grep -q '^| dscnn | 1 | [-0-9.]* | .* | 0 of 1 |$' "$FOLDER/page.md" &&
        grep -q '^With every seed they hold on 0 of 1 models' "$FOLDER/page.md" &&
        [ "$(grep '^| dscnn |' "$FOLDER/page.md" | tail -n 1 | cut -d'|' -f3 | tr -d ' ')" = "$greedy" ] &&
        [ "$(wc -l < "$FOLDER/eval/rewards.dat")" = "$(($(grep -c '"reward"' "$FOLDER/metrics") + 2))" ] &&
        grep -q "index 1 using 1:3" "$FOLDER/eval/training.gp"
}
learns_from_estimates() { agents 0 --learn-from estimates && [ -n "$(cost_of candidates)" ]; }

check "an agent is trained" trains
check "each update is a line of metrics" writes_metrics
check "a world model that is not faithful fails" fails_loudly
check "which a page of evaluation tells" is_evaluated
check "rewards may be the tariff's estimates" learns_from_estimates
finish
