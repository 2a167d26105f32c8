#!/bin/sh
# One policy for many models, from outside: what it holds, what it makes of models that it never saw.
set -u

. tests/support/tap.sh
DEVICE=intel-xeon-6-207-avx512
OUT="$FOLDER/two"

# The number behind "KEY": in the line of a model.
value_of() { # MODEL KEY FILE
    sed -n "/\"model\": *\"$1\"/s/.*\"$2\": *\([^,}]*\).*/\1/p" "$3"
}
at_most() { awk "BEGIN { exit !($1 <= $2) }"; }

# As good as greedy over prices, without asking for one.
makes_one() {
    gives 0 "$GRAFT" --quiet policy dscnn,resnet8 --out "$OUT" --device $DEVICE &&
        [ -s "$OUT/graft_policy.h" ] && [ -s "$OUT/policy.graft" ] && grep -q '^dscnn .*ms' "$FOLDER/out" || return 1
    for model in dscnn resnet8; do
        at_most "$(value_of $model policy_ns "$OUT/results.json")" \
            "1.0001 * $(value_of $model greedy_ns "$OUT/results.json")" &&
            [ "$(value_of $model guessed "$OUT/results.json")" = 0 ] &&
            [ "$(value_of $model unseen "$OUT/results.json")" = false ] || return 1
    done
}
makes_the_same_again() {
    gives 0 "$GRAFT" --quiet --threads 1 policy dscnn,resnet8 --out "$FOLDER/again" --device $DEVICE &&
        cmp "$OUT/graft_policy.h" "$FOLDER/again/graft_policy.h" && cmp "$OUT/policy.graft" "$FOLDER/again/policy.graft"
}
# Nothing beside the header and the engine; all rules take part.
compiles() {
    printf '#define GRAFT_IMPLEMENTATION\n#include "graft_policy.h"\nint main(void) { return GRAFT_POLICY.rule_count < 1000; }\n' \
        > "$FOLDER/one.c" &&
        gcc -std=c99 -pedantic -Wall -Wextra -Werror -O1 -Iinclude "-I$OUT" "$FOLDER/one.c" -o "$FOLDER/one" &&
        "$FOLDER/one"
}
# Of the rules those that give the same bits are marked, as many as the set has.
counts_exact() { # FOLDER, which has a header
    printf '%s\n' '#include <stdio.h>' '#define GRAFT_IMPLEMENTATION' '#include "graft_policy.h"' 'int main(void)' '{' \
        '    unsigned count = 0;' '    for (unsigned r = 0; r < GRAFT_POLICY.rule_count; r++) {' \
        '        count += (GRAFT_POLICY.rule_flags[r] & GRAFT_RULE_EXACT) != 0;' '    }' \
        '    return printf("%u\n", count) < 0;' '}' > "$FOLDER/exact.c"
    gcc -std=c99 -O1 -Iinclude "-I$1" "$FOLDER/exact.c" -o "$FOLDER/exact" && marked=$("$FOLDER/exact") &&
        gives 0 "$GRAFT" rules --json && [ "$marked" = "$(grep -c '"numeric": "exact' "$FOLDER/out")" ] && [ "$marked" -gt 300 ]
}
marks_exact() { counts_exact "$OUT"; }
rewrites_another() {
    gives 0 "$GRAFT" --quiet optimize mobilenetv1 "$FOLDER/x.onnx" --device $DEVICE --policy "$OUT/policy.graft" &&
        grep -q '^mobilenetv1: 85 operators' "$FOLDER/out" && "$GRAFT" --quiet convert "$FOLDER/x.onnx" "$FOLDER/y.onnx"
}
# A policy of another device: of what leads to a dearer graph no rewrite is made, and rules that lose are left out.
takes_what_pays() {
    gives 0 "$GRAFT" --verbose optimize resnet8 "$FOLDER/x.onnx" --device intel-xeon-6-207-avx512 \
        --policy rules/policies/amd-epyc-25-17-avx512.graft && grep -q "policy's [1-9][0-9]* rewrites cost [1-9]" "$FOLDER/err" &&
        grep -q 'by 0 rewrites: predicted time 100 -> 100.0' "$FOLDER/out" &&
        gives 0 "$GRAFT" --verbose optimize resnet8 "$FOLDER/x.onnx" --device intel-xeon-6-207-avx512 \
            --policy rules/policies/amd-epyc-25-1-avx2.graft &&
        [ "$(grep -c "policy's [1-9][0-9]* rewrites cost 0[.]99" "$FOLDER/err")" = 2 ] &&
        grep -q 'by 13 rewrites: predicted time 100 -> 99[.]6' "$FOLDER/out"
}
# What is held out is judged, and nothing is learnt from it.
holds_out() {
    gives 0 "$GRAFT" --quiet policy dscnn,squeezenet --out "$FOLDER/held" --device $DEVICE --hold-out branching --name 'Two nets' &&
        grep -q '^const graft_policy graft_policy_two_nets = ' "$FOLDER/held/graft_policy.h" &&
        [ "$(value_of squeezenet unseen "$FOLDER/held/results.json")" = true ] &&
        [ "$(value_of dscnn unseen "$FOLDER/held/results.json")" = false ] &&
        at_most 0.9 "$(value_of squeezenet guessed "$FOLDER/held/results.json")" &&
        grep -q '^squeezenet *unseen ' "$FOLDER/out"
}
# What is learnt from without being named is said: of the one device there are samples, of the other none,
# and in a file of another device none.
tells() { # TEXT DEVICE [OPTION...]
    said=$1
    shift
    gives 0 "$GRAFT" policy dscnn,autoencoder --out "$FOLDER/told" --device "$@" && grep -q "$said" "$FOLDER/err"
}
tells_what_it_learns_from() {
    tells "models and from [1-9][0-9]* operators of .* in .*rules/samples/" intel-xeon-6-167 &&
        tells "no file of '.*': the fallback learns from models alone" h200-fp16 &&
        tells "models and from 0 operators of" h200-fp16 --measured rules/samples/intel-xeon-6-167-avx512.costs
}
keeps_to_flash() {
    gives 0 "$GRAFT" --quiet policy dscnn,resnet8 --out "$FOLDER/small" --device $DEVICE --max-flash 12000 &&
        [ "$(sed -n 's/.* rules in \([0-9]*\) bytes.* fallback in \([0-9]*\)$/\1 \2/p' "$FOLDER/out" |
            awk '{ print ($1 + $2 <= 12000 && $1 + $2 > 11000) }')" = 1 ] &&
        at_most "$(value_of dscnn policy_ns "$FOLDER/small/results.json")" \
            "1.05 * $(value_of dscnn greedy_ns "$FOLDER/small/results.json")"
}

# The one that comes with Graft: of these rules, features and engine.
uses_the_committed_one() {
    for policy in rules/policies/*.graft; do
        name=$(basename "$policy" .graft)
        gives 0 "$GRAFT" --quiet optimize dscnn "$FOLDER/c.onnx" --device "${name%-avx512}" --policy "$policy" || return 1
        mkdir -p "$FOLDER/$name" && gives 0 "$GRAFT" --quiet emit-policy "$policy" "$FOLDER/$name/graft_policy.h" &&
            counts_exact "$FOLDER/$name" || return 1
    done
}

check "as good as greedy over prices" makes_one
check "the same bytes again" makes_the_same_again
check "the header compiles by itself" compiles
check "rules that give the same bits are marked" marks_exact
check "another model" rewrites_another
check "what pays of what does not" takes_what_pays
check "a family held out" holds_out
check "what it learns from is said" tells_what_it_learns_from
check "little flash" keeps_to_flash
check "the committed policies" uses_the_committed_one
check "a family that there is not" error_is 2 "--hold-out: nonesuch is the family of no model" \
    "$GRAFT" --quiet policy dscnn,resnet8 --out "$FOLDER/none" --device $DEVICE --hold-out nonesuch
check "every family" error_is 2 "is the family of every model" \
    "$GRAFT" --quiet policy dscnn,resnet8 --out "$FOLDER/none" --device $DEVICE --hold-out microcontroller
check "one model has no families" error_is 2 "--max-flash, --hold-out and --measured are for a policy of several models" \
    "$GRAFT" --quiet policy dscnn --out "$FOLDER/none" --device $DEVICE --hold-out recurrent
check "no model" error_is 2 "',' names no model" "$GRAFT" --quiet policy , --out "$FOLDER/none" --device $DEVICE
check "a model that is not there" error_is 2 "nonesuch" \
    "$GRAFT" --quiet policy dscnn,nonesuch --out "$FOLDER/none" --device $DEVICE
finish
