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
    ! grep -vx 'libz3\|libm\|libc\|libpthread\|lib[atu]*b*san' "$FOLDER/needed"
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
# What is in the list and not in verify/core is of the engine, or says what operators mean.
is_a_folder() {
    sed '/what a proof rests on/q' "$FOLDER/list" | awk 'NF == 2 { print $2 }' > "$FOLDER/core" || return 1
    ! grep -v '^verify/core/\|^include/graft/\|^graph/meaning/\(reading\|operator_scalars\).inc$' "$FOLDER/core" |
        grep -vx 'graph/base/exits\.h\|graph/rule/\(pattern\|rulecode\)\.[ch]' &&
        for file in verify/core/*; do
            grep -qx "$file" "$FOLDER/core" || { echo "# $file is not linked"; return 1; }
        done
}
includes_no_more() {
    ! grep -h '^#include "' verify/core/* |
        grep -v '"verify/core/\|"graft/\|"graph/base/exits.h"\|"graph/rule/\(pattern\|rulecode\).h"' |
        grep -v '"graph/meaning/\(reading\|operator_scalars\).inc"'
}
# A field called so is set in one place; other words have other names.
proves_in_one_place() {
    grep -rnE '(->|\.)proved *=[^=]' verify --include='*.[ch]' > "$FOLDER/out"
    sed 's/^/# /' "$FOLDER/out"
    [ "$(wc -l < "$FOLDER/out")" = 1 ] && grep -q '^verify/core/core.c:' "$FOLDER/out" || return 1
    # What Z3 found unsatisfiable is noted where it is asked.
    [ "$(grep -rlE 'Z3_ast_map_insert\([^,]*, [^,]*unsatisfiable' verify --include='*.[ch]')" = verify/core/prover.c ]
}
adds_up() {
    total=$(tail -n 1 "$FOLDER/list" | awk '{ print $1 }')
    [ "$total" = "$(awk 'NF == 2 && $2 != "lines" { n += $1 } END { print n }' "$FOLDER/list")" ] || return 1
    told=$(tr '\n' ' ' < docs/verification.md | sed 's/.* some \([0-9]*\),\([0-9]*\) lines.*/\1\2/')
    core=$(awk '/what a proof rests on/ { print $1 }' "$FOLDER/list")
    [ $((core - told)) -lt 200 ] && [ $((told - core)) -lt 200 ]
}
# The page's table: each row's files have as many lines as it says, give or take a hundred; each
# file that is counted stands in one row.
parts_are_told() {
    # shellcheck disable=SC2016
    sed -n 's/^| .* | \(`.*`\) | \([0-9]*\),*\([0-9]*\) |$/\2\3 \1/p' docs/verification.md | tr -d '`' > "$FOLDER/rows"
    sed '/what a proof rests on/q' "$FOLDER/list" | awk '
        NR == FNR { told[NR] = $1; for (i = 2; i <= NF; i++) row[$i] = NR; rows = NR; next }
        NF == 2 { name = $2; sub(/.*\//, "", name); sub(/\..*/, "", name)
            if (!(name in row)) { print "# " $2 " is in no row"; bad = 1 }
            lines[row[name]] += $1 }
        END { for (r = 1; r <= rows; r++) {
                difference = lines[r] - told[r]
                if (difference > 100 || difference < -100) { print "# " told[r] " are " lines[r] + 0; bad = 1 } }
            exit bad || rows < 5 }' "$FOLDER/rows" -
}
# Each mutation of long_body_mutants.sh changes text that is there.
mutations_are_current() {
    grep -v '^#' tests/verify/body_mutations.txt | awk -F ' ==> ' '
        !($1 in text) { while ((getline line < $1) > 0) text[$1] = text[$1] line "\n" }
        index(text[$1], $2) == 0 { print "# not in " $1 ": " $2; bad = 1 }
        END { exit bad || NR < 90 }'
}
check "make trusted" is_listed
check "the core links with Z3 and libc alone" needs_the_solver_alone
check "it proves what is true and not what is false" proves
check "it includes the engine's headers and its own" includes_no_more
check "a rule becomes proved in one place" proves_in_one_place
check "mutations change what is there" mutations_are_current
if [ "$MODE" = release ]; then
    check "operators, sizes, byte code and reading are counted" lists include/graft/operators.def \
        include/graft/shapes.def include/graft/engine/code.h \
        graph/meaning/operator_scalars.inc graph/meaning/reading.inc verify/core/symread.c verify/core/symfold.c verify/core/prover.c verify/core/limits.def
    check "the rest is one folder" is_a_folder
    check "the total is the sum, and what the documentation says" adds_up
    check "its parts are what the documentation says" parts_are_told
else
    skip "what is counted" "the pages count what the release build links"
fi
finish
