#!/bin/sh
# Rule sets that two to four ranks of mpirun make together: the bytes of one process. All ranks are on
# this machine, more of them than it has processors.
. tests/support/tap.sh
. tests/support/ranks.sh

mkdir "$FOLDER/families"
cp tests/verify/families/small.yaml "$FOLDER/families"

# make_rules RANKS TO [OPTION...]
make_rules() {
    count=$1
    to=$FOLDER/$2
    shift 2
    ranks "$count" "$GRAFT" rules --generate "$to" --families "$FOLDER/families" "$@"
}
same() {
    for file in graft.rules derivations.txt; do
        cmp "$FOLDER/reference/$file" "$FOLDER/$1/$file" || { cat "$FOLDER/log"; return 1; }
    done
}
one_process() {
    "$GRAFT" rules --generate "$FOLDER/reference" --families "$FOLDER/families" 2> "$FOLDER/log"
}
many() { make_rules "$1" "$2" --threads "$3" && grep -q "$1 ranks share the work" "$FOLDER/log" && same "$2"; }
says_it_once() {
    make_rules 3 said > "$FOLDER/out" && [ "$(wc -l < "$FOLDER/out")" = 1 ] &&
        [ "$(grep -c 'small/products: .* graphs' "$FOLDER/log")" = 1 ]
}

# What is counted, and candidates; not what it took.
counted() { sed 's/ memory_bytes .*//'; }
# enumerates RANKS OPTION...: as one process does. The second of these families has equal samples of
# graphs that are not equal.
enumerates() {
    count=$1
    shift
    "$GRAFT" --threads 1 gen "$@" | counted > "$FOLDER/alone"
    ranks "$count" "$GRAFT" --threads 1 gen "$@" > "$FOLDER/gen" &&
        counted < "$FOLDER/gen" | cmp - "$FOLDER/alone"
}
small_set() { enumerates "$1" --families "$FOLDER/families"; }
refined_sets() { enumerates 3 --family dense && grep -q 'refuted [1-9]' "$FOLDER/alone"; }
# Records go to disk, each rank's to files of its own.
spills() { enumerates 3 --families "$FOLDER/families" --work "$FOLDER/spill" --memory 8; }

# begin WORK TEXT RANK: begins to make rules with three ranks, kills one once the log has the text.
begin() {
    rm -rf "$FOLDER/log" "$FOLDER/unfinished"
    make_rules 3 unfinished --threads 1 --work "$FOLDER/$1" > "$FOLDER/out" &
    run=$!
    await $run grep -qs "$2" "$FOLDER/log"
    kill_rank "$3" $run
}
# Until it was not done already.
killed() {
    for _ in 1 2 3 4 5; do
        begin "$@"
        ! wait $run && [ ! -e "$FOLDER/unfinished/graft.rules" ] && ls "$FOLDER/$1"/*/answers && return 0
    done
    return 1
}
goes_on() {
    make_rules "$1" "$2" --work "$FOLDER/$3" &&
        grep -q '[1-9][0-9]* answers of a run that was interrupted' "$FOLDER/log" && same "$2" &&
        [ ! -e "$FOLDER/$3" ]
}

fails_once() {
    ! ranks 2 "$GRAFT" rules --generate "$FOLDER/none" --families "$FOLDER/nowhere" &&
        grep -q 'graft: error: .*nowhere' "$FOLDER/log"
}
not_shared() {
    ! ranks 2 "$GRAFT" rules --families "$FOLDER" && ! ranks 2 "$GRAFT" model &&
        grep -q 'model does not share its work over ranks' "$FOLDER/log"
}
no_library() {
    ! GRAFT_MPI_LIBRARY=/nowhere/graft-mpi.so ranks 2 "$GRAFT" gen --families "$FOLDER/families" &&
        grep -q '/nowhere/graft-mpi.so is missing; build with Open MPI' "$FOLDER/log"
}

need_ranks "rules made by several ranks"
check "one process" one_process
check "two ranks make the same" many 2 two 1
check "three make the same" many 3 three 1
check "four with two children each make the same" many 4 four 2
check "only the first prints" says_it_once
check "an enumeration shared by two" small_set 2
check "by four" small_set 4
check "a family of several sets, with samples added" refined_sets
check "one that does not fit in memory" spills
check "a rank is killed while they lift" killed lifting 'lift: [1-9]0 %' 2
check "two go on" goes_on 2 two_more lifting
check "the first is killed while they prove" killed proving 'prove: [1-9]0 %' 0
check "three go on" goes_on 3 three_more proving
check "families that are not there" fails_once
check "what is not shared" not_shared
check "no library" no_library
finish
