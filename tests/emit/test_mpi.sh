#!/bin/sh
# Policies and searches over several models that two to four ranks of mpirun share: the bytes of one
# process, but for the seconds that it took.
. tests/support/tap.sh
. tests/support/ranks.sh
KNOWN=intel-xeon-6-167 # rules/policies has one of this device,
OTHER=intel-xeon-6-207 # and none of this.
COSTS=$FOLDER/own.costs

# Without times: of a table's columns, and of JSON.
timeless() { sed 's/ *[0-9.]* ms / /; s/\("[a-z_]*seconds"\): [0-9.e+-]*/\1/g' "$1"; }
# same FOLDER FILE...: those files of the folder are as those of $FOLDER/alone.
same() {
    other=$1
    shift
    for file in "$@"; do
        timeless "$FOLDER/alone/$file" > "$FOLDER/expected"
        timeless "$FOLDER/$other/$file" | cmp - "$FOLDER/expected" || { cat "$FOLDER/log"; return 1; }
    done
}
graft() { "$GRAFT" --threads 1 "$@" --database "$COSTS"; }
shared() { # RANKS COMMAND...
    count=$1
    shift
    ranks "$count" "$GRAFT" --threads 1 "$@" --database "$COSTS" && grep -q "$count ranks share the work" "$FOLDER/log"
}

# Of several models, one held out; one of them is not learnt from.
several() { # FOLDER
    echo policy dscnn,autoencoder,resnet8,squeezenet --hold-out branching --device $OTHER --out "$FOLDER/$1"
}
# shellcheck disable=SC2046 # Words.
one_process() { mkdir "$FOLDER/alone" && graft $(several alone) > "$FOLDER/alone/printed" 2> "$FOLDER/log"; }
# shellcheck disable=SC2046
policy_of_several() { # RANKS
    mkdir "$FOLDER/by$1" && shared "$1" $(several "by$1") > "$FOLDER/by$1/out" &&
        sed "s|/by$1/|/alone/|" "$FOLDER/by$1/out" > "$FOLDER/by$1/printed" &&
        same "by$1" printed graft_policy.h policy.graft results.json
}
# A model's own, begun with a table of the model; its baselines are shared.
policy_of_one() { # RANKS
    rm -rf "$FOLDER/alone" "$FOLDER/one$1"
    graft policy dscnn --device $OTHER --out "$FOLDER/alone" > "$FOLDER/out" 2> "$FOLDER/log" &&
        shared "$1" policy dscnn --device $OTHER --out "$FOLDER/one$1" > "$FOLDER/out" &&
        sed -i "s|/one$1/|/alone/|" "$FOLDER/one$1/graft_policy.h" &&
        same "one$1" results.json graft_graph.h
}
evaluate() { echo eval --models dscnn,autoencoder --methods greedy,guided --seeds 2 --device $KNOWN; }
# shellcheck disable=SC2046
evaluations() { # RANKS
    rm -rf "$FOLDER/alone" "$FOLDER/eval$1"
    graft $(evaluate) --out "$FOLDER/alone" 2> "$FOLDER/log" &&
        shared "$1" $(evaluate) --out "$FOLDER/eval$1" && same "eval$1" cells.jsonl best.plans
}
# dies_once FILE COMMAND...: two ranks run it, and one is killed once the file has something. What was
# done by then stays.
dies_once() {
    file=$1
    shift
    shared 2 "$@" > "$FOLDER/out" &
    run=$!
    await $run test -s "$file"
    kill_rank 1 $run
    ! wait $run && [ -s "$file" ]
}
# The next run goes on.
long_evaluation() {
    echo eval --models dscnn,autoencoder,resnet8 --methods guided,annealing --seeds 2 --device $KNOWN --out "$FOLDER/dead"
}
# shellcheck disable=SC2046
dies() {
    dies_once "$FOLDER/dead/cells.jsonl" $(long_evaluation) && [ "$(wc -l < "$FOLDER/dead/cells.jsonl")" -lt 12 ]
}
# shellcheck disable=SC2046
goes_on() {
    kept=$(head -4 "$FOLDER/dead/cells.jsonl") && shared 2 $(long_evaluation) &&
        [ "$(wc -l < "$FOLDER/dead/cells.jsonl")" = 12 ] && [ "$(head -4 "$FOLDER/dead/cells.jsonl")" = "$kept" ]
}
plans_there() { # prints the models whose plans are in the file, which hold.
    graft --quiet eval --device $KNOWN --check "$FOLDER/h.plans" > "$FOLDER/checked" &&
        sed -n 's/ .* as found by .*//p' "$FOLDER/checked"
}
dies_searching() {
    dies_once "$FOLDER/h.plans" eval --models dscnn,resnet8,squeezenet,resnet18 --methods 'greedy,guided,annealing' --seconds 1 \
        --out "$FOLDER/died" --plans "$FOLDER/h.plans" --device $KNOWN && plans_there > "$FOLDER/kept" && grep -qx dscnn "$FOLDER/kept" && ! grep -qx resnet18 "$FOLDER/kept"
}
# Whatever is found within a time depends on the machine: of each model there is all of it. Plans that
# were kept stay.
searches() { # RANKS
    shared "$1" eval --models dscnn,autoencoder --methods 'greedy,beam 8,backtracking equal time' --seconds 1 --json \
        --out "$FOLDER/headroom$1" --plans "$FOLDER/h.plans" --device $KNOWN > "$FOLDER/out" &&
        [ "$(grep -c '"model": "dscnn"' "$FOLDER/out")" = 3 ] && [ "$(grep -c '"model": "autoencoder"' "$FOLDER/out")" = 3 ] &&
        [ "$(grep -n '"model": "autoencoder"' "$FOLDER/out" | head -1 | cut -d: -f1)" = 4 ] &&
        plans_there > "$FOLDER/there" && grep -qx autoencoder "$FOLDER/there" &&
        ! grep -vxFf "$FOLDER/there" "$FOLDER/kept"
}

measures_nothing() {
    ! ranks 2 "$GRAFT" policy dscnn,resnet8 --out "$FOLDER/none" --database "$COSTS" &&
        grep -q "'cpu' is here and would be measured while other ranks work" "$FOLDER/log" && [ ! -e "$FOLDER/none" ]
}
fails_once() {
    ! ranks 3 "$GRAFT" --threads 1 policy dscnn,nonesuch --device $OTHER --out "$FOLDER/none" &&
        grep -q 'graft: error: .*nonesuch' "$FOLDER/log" && [ ! -e "$FOLDER/none" ]
}

need_ranks "policies and searches of several ranks"
check "one process" one_process
check "a policy of several models by two ranks" policy_of_several 2
check "by four" policy_of_several 4
check "a policy of one model" policy_of_one 2
check "an evaluation" evaluations 3
check "an evaluation of which a rank dies" dies
check "goes on" goes_on
check "searches of which a rank dies" dies_searching
check "searches, others kept" searches 2
check "nothing is measured" measures_nothing
check "a model that is not there" fails_once
finish
