#!/bin/sh
# trusted.sh PROGRAM MAP OUT - the files that a proof rests on, with their lines; the total last.
#
# PROGRAM proves rules and is linked with nothing but archives of OUT, Z3 and libc, unused functions
# of the engine left out; MAP is the linker's account. Counted are the sources of every object in the
# program, whole, and what these include. Of the engine's files, which are one object, those count
# that a function in the program comes from.
#
# Then, by name, what the word `exact` rests on beside, with whose functions the core can be told of
# bits; and what says the verdict on: it decides when the core is asked, and writes, reads and prints
# the answer. A mistake there is a false word, though no false proof.
set -eu
program=$1 map=$2 out=$3

members() { sed -n "s|^$out/lib\([a-z]*\)\.a(\(.*\)\.o).*|\1/\2|p" "$map" | sort -u; }
includes() {
    for member in $(members); do
        [ "$member" = graph/engine ] || # In the folder or in one of its rooms.
            find "$out/${member%/*}" -name "${member#*/}.d" | while read -r file; do
                source=${file#"$out"/} # What is left of a source that was moved is not read.
                [ ! -e "${source%.d}.c" ] || cat "$file"
            done | tr -s ' ' '\n'
    done | sed 's/:$//' | grep -E '^(include|graph|verify|gen)/' | grep -v '^include/graft/engine/'
}
engine() {
    nm -l "$program" | sed -n 's|.*/\(include/graft/engine/[^:]*\):[0-9]*$|\1|p' |
        sed 's|engine/\.\./||'
}
exact() {
    printf '%s\n' verify/sizes/symbits.[ch] verify/sizes/symsame.[ch] verify/sweep/numeric.[ch] \
        verify/core/readings.h graph/meaning/algebra_float.[ch] graph/meaning/ieee.inc \
        graph/meaning/operator_bodies.inc
}
carriers() {
    grep -lE 'GRAFT_(PROOF_UNBOUNDED|RULE_PROVED|CHECK_PROVED|VERDICT_PROVED)' -r --include='*.c' verify graph
    echo verify/pool.c # Answers of the process that proves.
}
count() { xargs wc -l | awk '$2 != "total" { printf "%6d  %s\n", $1, $2 }'; }
sum() { awk '{ n += $1 } END { printf "%6d  %s\n", n, text }' text="$1"; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
{ includes; engine; } | sort -u > "$folder/core"
exact | sort -u | comm -23 - "$folder/core" > "$folder/exact"
carriers | sort -u | comm -23 - "$folder/core" | comm -23 - "$folder/exact" > "$folder/word"
say() {
    count < "$folder/$1" > "$folder/$1.lines"
    cat "$folder/$1.lines"
    sum "in $(wc -l < "$folder/$1") files: $2" < "$folder/$1.lines"
}
say core 'what a proof rests on, beside Z3 and libc'
say exact 'what the word exact rests on beside'
say word 'what says its verdict on'
cat "$folder"/*.lines | sum "lines"
