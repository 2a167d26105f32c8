#!/bin/sh
# Enumeration with little memory: the same candidates from records on disk, from any number of
# threads, and after the program was killed in the middle.
. tests/support/tap.sh

mkdir "$FOLDER/families"
cat > "$FOLDER/families/images.yaml" << 'END'
family: images
order: 1
sets:
  - set: kernels
    depth: 3
    outputs: 2
    sizes: {N: 1, C: 3, H: 8, W: 9}
    inputs:
      x: [N, C, H, W]
      y: [N, C, H, W]
      z: [N, C, H, W]
      w: [C, C, 3, 3]
      v: [C, C, 3, 3]
    operators:
      - {op: conv, pad: 1}
      - {op: conv, pad: [[0, 1, 0, 1], [1, 0, 1, 0]]}
      - {op: relu}
      - {op: add, rank: 4, distinct: true}
      - {op: mul, rank: 4, distinct: true}
      - {op: concat, rank: 4, axis: [0, 1], distinct: true}
      - {op: split, rank: 4, axis: [0, 1], at: [N, C]}
END
# gen THREADS [OPTION...]
gen() {
    threads=$1
    shift
    "$GRAFT" --json --threads "$threads" gen --families "$FOLDER/families" "$@" 2> "$FOLDER/log"
}
# Candidates, and what is counted of the graphs.
candidates() { sed 's/"memory_bytes.*//' "$1"; }
same() { candidates "$1" > "$FOLDER/left" && candidates "$2" | cmp - "$FOLDER/left"; }

one_thread() { gen 1 > "$FOLDER/reference" && [ -s "$FOLDER/reference" ]; }
two_threads() { gen 2 > "$FOLDER/two" && same "$FOLDER/reference" "$FOLDER/two"; }
stored_bytes() { sed -n 's/.*"stored_bytes": *\([0-9]*\).*/\1/p' "$1"; }
# Records take a small part of the memory that the rest leaves, so that they must have gone to disk.
little_memory() {
    gen 2 --work "$FOLDER/work" --memory 100 > "$FOLDER/little" &&
        same "$FOLDER/reference" "$FOLDER/little" &&
        [ "$(stored_bytes "$FOLDER/little")" -lt "$(stored_bytes "$FOLDER/reference")" ]
}
# What is done is not done again.
takes_laws_from_disk() {
    gen 2 --work "$FOLDER/work" > "$FOLDER/again" && same "$FOLDER/reference" "$FOLDER/again"
}

mark=$FOLDER/killed/images-kernels/mark
# Until it was not done already.
killed() {
    for _ in 1 2 3 4 5; do
        rm -rf "$FOLDER/killed"
        "$GRAFT" --json --threads 1 --quiet gen --families "$FOLDER/families" --work "$FOLDER/killed" \
            --memory 70 > "$FOLDER/unfinished" 2>&1 &
        run=$!
        await $run test -e "$mark"
        kill -9 $run
        wait $run 2> /dev/null
        [ ! -e "$mark" ] || return 0
    done
    return 1
}
goes_on() {
    gen 2 --work "$FOLDER/killed" --memory 100 > "$FOLDER/resumed" &&
        grep -q 'going on behind' "$FOLDER/log" && same "$FOLDER/reference" "$FOLDER/resumed"
}
# The limit is one of the whole: graphs, and then laws, do not fit.
too_little() {
    error_is 70 "--memory $1 is too little" "$GRAFT" --json --threads 1 --quiet gen \
        --families "$FOLDER/families" --work "$FOLDER/small" --memory "$1"
}
graphs_do_not_fit() { too_little 8 && [ ! -e "$FOLDER/small/images-kernels/mark" ]; }
laws_do_not_fit() { too_little 50 && [ -e "$FOLDER/small/images-kernels/mark" ]; }
# What was done is not done again.
fits_then() {
    gen 1 --work "$FOLDER/small" --memory 100 > "$FOLDER/resumed" &&
        grep -q 'going on behind' "$FOLDER/log" && same "$FOLDER/reference" "$FOLDER/resumed"
}
# Interrupted in its search for laws, it has said how far it had come. Until it was not done already.
trail=$FOLDER/interrupted/images-kernels/laws-1
has_come_far() { [ "$(stat -c %s "$trail")" -gt 10000 ]; }
interrupted() {
    for _ in 1 2 3 4 5; do
        rm -rf "$FOLDER/interrupted"
        "$GRAFT" --json --threads 2 --quiet gen --families "$FOLDER/families" \
            --work "$FOLDER/interrupted" > "$FOLDER/unfinished" 2> "$FOLDER/log" &
        run=$!
        await $run has_come_far
        kill -TERM $run
        ! wait $run && [ -s "$trail" ] && [ ! -s "$FOLDER/unfinished" ] && return 0
    done
    return 1
}
finds_the_other_laws() {
    gen 1 --work "$FOLDER/interrupted" > "$FOLDER/resumed" &&
        grep -q 'going on behind [1-9][0-9]* pairs' "$FOLDER/log" &&
        same "$FOLDER/reference" "$FOLDER/resumed" &&
        [ ! -e "$FOLDER/interrupted/images-kernels" ]
}
# A trail that was cut short, or is of other graphs, is not followed.
spoilt() {
    interrupted && truncate -s -1 "$trail" &&
        gen 1 --work "$FOLDER/interrupted" > "$FOLDER/resumed" &&
        ! grep -q 'going on behind [0-9]* pairs' "$FOLDER/log" &&
        same "$FOLDER/reference" "$FOLDER/resumed"
}
# A mark of other graphs is not taken for one of these.
starts_anew() {
    sed -i 's/W: 9/W: 10/' "$FOLDER/families/images.yaml"
    gen 2 --work "$FOLDER/killed" > "$FOLDER/other" &&
        ! grep -q 'going on behind' "$FOLDER/log"
}

check "one thread" one_thread
check "two threads give the same" two_threads
check "a small memory gives the same" little_memory
check "a finished set is taken from disk" takes_laws_from_disk
check "killed" killed
check "goes on where it was killed" goes_on
check "graphs that take more than the memory" graphs_do_not_fit
check "laws that take more than the memory" laws_do_not_fit
check "goes on with more memory" fits_then
check "interrupted in the search for laws" interrupted
check "goes on in the search for laws" finds_the_other_laws
check "a spoilt trail is not followed" spoilt
check "a mark of other graphs is not used" starts_anew
finish
