#!/bin/sh
# Rule sets that two to four ranks of mpirun make together: the bytes of one process. All ranks are on
# this machine, more of them than it has processors.
. tests/support/tap.sh

mkdir "$FOLDER/families"
cat > "$FOLDER/families/small.yaml" << 'END'
family: small
order: 1
sets:
  - set: products
    depth: 3
    inputs:
      x: [2, 3]
      y: [2, 3]
      w: [3, 3]
    operators:
      - {op: relu}
      - {op: mul, distinct: true}
      - {op: split, rank: 2, axis: [0, 1], at: [1, 2]}
      - {op: max, distinct: true}
      - {op: matmul}
      - {op: transpose}
      - {op: add, distinct: true}
      - {op: concat, rank: 2, axis: [0, 1], distinct: true}
END

root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
# ranks N COMMAND...: starts it N times; nothing but this machine is asked.
ranks() {
    count=$1
    shift
    # shellcheck disable=SC2086 # Empty, or an option.
    OMPI_MCA_plm=isolated mpirun $root --oversubscribe --bind-to none -n "$count" "$@" 2> "$FOLDER/log"
}
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
says_it_once() { [ "$(make_rules 3 said)" = "$FOLDER/said/graft.rules: $("$GRAFT" rules "$FOLDER/reference/graft.rules" --count)" ]; }

# What is counted, and candidates; not what it took.
gen() { "$GRAFT" gen --families "$FOLDER/families" "$@" | counted; }
counted() { sed 's/ memory_bytes .*//'; }
enumerates() {
    gen > "$FOLDER/alone"
    for count in 2 3 4; do
        ranks "$count" "$GRAFT" --threads 1 gen --families "$FOLDER/families" > "$FOLDER/gen" &&
            counted < "$FOLDER/gen" | cmp - "$FOLDER/alone" || return 1
    done
}
# Records go to disk, each rank's to files of its own.
spills() {
    ranks 3 "$GRAFT" gen --families "$FOLDER/families" --work "$FOLDER/spill" --memory 24 > "$FOLDER/gen" &&
        counted < "$FOLDER/gen" | cmp - "$FOLDER/alone"
}

# child_of: a rank but the first, once the log has the text.
begin() {
    rm -rf "$FOLDER/log" "$FOLDER/unfinished"
    make_rules 3 unfinished --work "$FOLDER/$1" --threads 1 > "$FOLDER/out" &
    run=$!
    tries=0
    while ! grep -qs "$2" "$FOLDER/log" && [ $tries -lt 6000 ] && kill -0 $run 2> /dev/null; do
        sleep 0.01
        tries=$((tries + 1))
    done
    for pid in $(pgrep -f "rules --generate $FOLDER/unfinished"); do
        if grep -qz "^OMPI_COMM_WORLD_RANK=$3\$" "/proc/$pid/environ" 2> /dev/null &&
            [ "$(cat "/proc/$(awk '{print $4}' "/proc/$pid/stat")/comm")" = mpirun ]; then
            kill -KILL "$pid"
        fi
    done
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
