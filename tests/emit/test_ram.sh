#!/bin/sh
# `--max-ram`: what a graph's header says of memory is what compilers say, what it lowers loses nothing, and
# what does not fit is refused.
. tests/support/tap.sh

POLICY=rules/policies/intel-xeon-6-167-avx512.graft
emit() { # MODEL OPTIONS...
    model=$1
    shift
    gives 0 "$GRAFT" emit-graph "$model" "$FOLDER/graft_graph.h" --name net --policy $POLICY "$@"
}
needs() { # The bytes that a refusal names.
    sed -n 's/.*needs \([0-9]*\) bytes of RAM.*/\1/p' "$FOLDER/err"
}
says() { # MODEL OPTIONS...
    status=0
    emit "$@" || return 1
    sh tests/firmware/ram.sh "$FOLDER" || status=$?
    [ "$status" = 0 ] || [ "$status" = 77 ]
}
checked() { # NAME MODEL OPTIONS...
    check "$@"
    if [ "$status" = 77 ]; then
        skip "$1, on a Cortex-M4" "this needs packages gcc-arm-none-eabi and qemu-system-arm"
    fi
}
total() { # COLUMN of what the header says: pointers of 32 bits and ids of 32, of 16; of 64 and 32...
    awk -v column="$1" '/^ \*   in all/ { print $(column + 3) }' "$FOLDER/graft_graph.h"
}
tells() {
    emit dscnn --json && grep -q "^graft: it takes $(total 1) bytes of RAM with pointers of 32 bits$" "$FOLDER/err" &&
        grep -q '^ \* No budget was given' "$FOLDER/graft_graph.h" && grep -q "\"ram\": *$(total 1)}" "$FOLDER/out" &&
        emit dscnn --json --pointers 64 && grep -q "\"ram\": *$(total 3)}" "$FOLDER/out" &&
        [ "$(total 3)" -gt "$(total 1)" ] && [ "$(total 1)" -gt "$(total 2)" ]
}
# What is not too much is not touched; a little too much costs ids alone.
lowers_ids() {
    emit dscnn || return 1
    enough=$(total 1)
    less=$((enough - $(total 2)))
    emit dscnn --max-ram "$enough" && ! grep -q 'bytes less' "$FOLDER/err" &&
        emit dscnn --max-ram $((enough - 1)) && [ "$(grep -c 'bytes less' "$FOLDER/err")" = 1 ] &&
        grep -q "^graft: dscnn: ids of 16 bits: $less bytes less; the whole program defines GRAFT_SMALL_GRAPHS$" \
            "$FOLDER/err" &&
        grep -q "^ \* The budget is $((enough - 1)) bytes with pointers of 32 bits" "$FOLDER/graft_graph.h" &&
        grep -q "^ \*   ids of 16 bits: $less bytes less" "$FOLDER/graft_graph.h" &&
        ! gcc -Iinclude -I"$FOLDER" -c tests/firmware/ram.c -o "$FOLDER/large.o" 2> "$FOLDER/err" &&
        grep -q "this graph fits into its $((enough - 1)) bytes with GRAFT_SMALL_GRAPHS" "$FOLDER/err"
}
# The largest part with pointers of 32 bits and ids of 16, and its bytes.
largest() {
    sed -n '/^ \*   graph  /,/^ \*   network/s/^ \*   \(.*[a-z]\)  *[0-9]*  *\([0-9]*\) .*/\2 \1/p' "$FOLDER/graft_graph.h" |
        sort -rn | sed -n "1s/\([0-9]*\) \(.*\)/the largest part is '\2', \1 bytes/p"
}
# One byte less than it needs is refused, and nothing is written.
refuses() { # MODEL
    rm -f "$FOLDER/none.h"
    error_is 2 "the largest part is '" "$GRAFT" emit-graph "$1" "$FOLDER/none.h" --policy $POLICY \
        --max-ram 9000 && grep -q "$1: needs .* and the budget is 9000 (--max-ram)" "$FOLDER/err" || return 1
    least=$(needs)
    part=$(sed -n "s/.*\(the largest part is .*\)/\1/p" "$FOLDER/err")
    error_is 2 "needs $least bytes" "$GRAFT" emit-graph "$1" "$FOLDER/none.h" --policy $POLICY \
        --max-ram $((least - 1)) && [ ! -e "$FOLDER/none.h" ] && emit "$1" --max-ram "$least" &&
        grep -q "it takes $least bytes" "$FOLDER/err" && [ "$(grep -c 'bytes less' "$FOLDER/err")" = 3 ] &&
        [ "$part" = "$(largest)" ]
}
# The least that it needs is enough to decide as with all room, with new weights and without.
decides_alike() { # MODEL STEPS: so many without new weights at least, with them two
    steps=$2
    for weights in 0 UINT64_MAX; do
        for room in all least; do
            budget=
            [ $room = all ] || budget="--max-ram $least"
            # shellcheck disable=SC2086
            emit "$1" $budget || return 1
            sed "s/weight_bytes_limit = UINT64_MAX/weight_bytes_limit = $weights/" emit/firmware/rewrite.c \
                > "$FOLDER/rewrite.c"
            gcc -std=c99 -O2 -DGRAFT_SMALL_GRAPHS -Iinclude -I"$FOLDER" "$FOLDER/rewrite.c" -o "$FOLDER/rewrite" &&
                "$FOLDER/rewrite" > "$FOLDER/$room" || return 1
        done
        [ "$(grep -c '^step' "$FOLDER/all")" -ge "$steps" ] && cmp "$FOLDER/all" "$FOLDER/least" || return 1
        steps=2
    done
}

"$GRAFT" --quiet emit-policy $POLICY "$FOLDER/graft_policy.h" --name zoo
check "tells what it takes" tells
checked "dscnn: as the compilers say" says dscnn
checked "resnet50: as the compilers say" says resnet50
check "lowers ids first" lowers_ids
check "dscnn: refuses less than it needs" refuses dscnn
check "dscnn: decides alike with the least" decides_alike dscnn 1
checked "dscnn: the least, as the compilers say" says dscnn --max-ram "$least"
check "resnet8: refuses less than it needs" refuses resnet8
check "resnet8: decides alike with the least" decides_alike resnet8 2
check "a budget without a policy" error_is 2 "--max-ram needs --policy" "$GRAFT" emit-graph dscnn "$FOLDER/x.h" \
    --max-ram 20000
check "several models" error_is 2 "--max-ram is for a policy of one model" "$GRAFT" --quiet policy dscnn,resnet8 \
    --out "$FOLDER/several" --device intel-xeon-6-167 --max-ram 20000
check "no policy is trained for what cannot fit" error_is 2 "dscnn: needs" "$GRAFT" --quiet policy dscnn \
    --out "$FOLDER/one" --device intel-xeon-6-167 --max-ram 8000
check "an impossible number" error_is 2 "--max-ram needs a number from 1024" "$GRAFT" emit-graph dscnn "$FOLDER/x.h" \
    --max-ram 1
finish
