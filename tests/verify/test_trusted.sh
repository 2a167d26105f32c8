#!/bin/sh
# What a proof rests on: a program of it links with the solver alone, proves, and is counted.
. tests/support/tap.sh

# Without what make says while it builds.
is_listed() {
    make --no-print-directory OUT="$OUT" MODE="$MODE" trusted > "$FOLDER/out" &&
        grep '^ *[0-9]' "$FOLDER/out" > "$FOLDER/list"
}
needs_the_solver_alone() {
    readelf -d "$OUT/trusted" | sed -n 's/.*NEEDED.*\[\(lib[a-z0-9]*\).*/\1/p' > "$FOLDER/needed"
    ! grep -vx 'libz3\|libxxhash\|libm\|libc\|libpthread\|lib[atu]*b*san' "$FOLDER/needed"
}
proves() {
    "$OUT/trusted" > "$FOLDER/out" && cat "$FOLDER/out" &&
        [ "$(grep -c ': proved$' "$FOLDER/out")" = 1 ] &&
        [ "$(grep -c ': not proved$' "$FOLDER/out")" = 2 ]
}
# lists FILE...: among what a proof rests on.
lists() {
    for file in "$@"; do
        sed '/what a proof rests on/q' "$FOLDER/list" | grep -q " $file\$" || return 1
    done
}
leaves_out() {
    ! grep -q 'verify/sweep/sweep.c\|verify/sweep/polynomial.c\|verify/sizes/symmodel.c\|engine/match.h\|verify/sizes/symbits.c\|verify/sizes/symplain.c\|verify/instances/claim.c' "$FOLDER/list"
}
adds_up() {
    total=$(tail -n 1 "$FOLDER/list" | awk '{ print $1 }')
    [ "$total" = "$(awk 'NF == 2 && $2 != "lines" { n += $1 } END { print n }' "$FOLDER/list")" ] || return 1
    told=$(tr '\n' ' ' < docs/verification.md | sed 's/.* some \([0-9]*\),\([0-9]*\) lines.*/\1\2/')
    core=$(awk '/what a proof rests on/ { print $1 }' "$FOLDER/list")
    [ $((core - told)) -lt 1000 ] && [ $((told - core)) -lt 1000 ]
}
check "make trusted" is_listed
check "the core links with Z3, xxHash and libc alone" needs_the_solver_alone
check "it proves what is true and not what is false" proves
check "operators, sizes, byte code and reading are counted" lists include/graft/operators.def \
    include/graft/shapes.def include/graft/engine/code.h \
    graph/meaning/operator_scalars.inc graph/meaning/reading.inc verify/sizes/symread.c verify/sizes/symfold.c verify/instances/prover.c verify/limits.def
check "sweeps, polynomials, matching, instances, bits and the plain reading are not" leaves_out
check "the total is the sum, and what the documentation says" adds_up
finish
