#!/bin/sh
# The promises of docs/versions.md: the first files of each kind are read, with the ids that they have;
# files of a version that does not exist yet are refused.
. tests/support/tap.sh

device=$(sed -n '2s/.*"device": *"\([^"]*\)".*/\1/p' rules/costs/intel-xeon-6-207-avx512.costs)
# What the first rule file held, by id.
reads_rules() {
    gives 0 "$GRAFT" rules tests/versions/1.rules --json || return 1
    sed 's/^{"id": "\([0-9a-f]*\)".*"source": "\([^"]*\)".*/\1 \2/' "$FOLDER/out" > "$FOLDER/ids"
    diff - "$FOLDER/ids" << 'END'
91a9aee239477631 scale_shift(conv#1(a, b), c, d)
db48edff130a2ca0 relu(conv_bias#1(a, b, c, activation=none))
221e0caf50f6e785 add(conv_bias#1(a, b, c, activation=none), d)
3342b90a6a49d7e1 relu(conv_bias_add#1(a, b, c, d, activation=none))
e9f02c5b7f4b34dc identity(a)
END
}
reads_costs() { gives 0 "$GRAFT" cost show tests/versions/1.costs && [ "$(wc -l < "$FOLDER/out")" = 3 ]; }
reads_policy() {
    gives 0 "$GRAFT" --quiet optimize dscnn "$FOLDER/out.onnx" --policy tests/versions/1.policy.graft --device "$device" \
        --database "$FOLDER/a.costs"
}
# Rule and policy files begin with field 1, the version.
later() { { printf '%b' "\\0010\\0$3" && tail -c +3 "$1"; } > "$2"; }
refuses_rules() {
    later tests/versions/1.rules "$FOLDER/3.rules" 003 &&
        error_is 2 "3.rules: rule file version 3, this program reads 2" "$GRAFT" rules "$FOLDER/3.rules"
}
# From version 2 on a file says where it ends.
refuses_cut_off() {
    later tests/versions/1.rules "$FOLDER/2.rules" 002 &&
        error_is 2 "2.rules: cut off behind 5 rules" "$GRAFT" rules "$FOLDER/2.rules"
}
refuses_policy() {
    later tests/versions/1.policy.graft "$FOLDER/2.graft" 002 &&
        gives 2 "$GRAFT" --quiet optimize dscnn "$FOLDER/out.onnx" --policy "$FOLDER/2.graft" --device "$device" \
            --database "$FOLDER/a.costs" && grep -q 'version 2; this program reads version 1' "$FOLDER/err"
}
refuses_costs() {
    sed '1s/1/2/' tests/versions/1.costs > "$FOLDER/2.costs" &&
        error_is 2 "a cost database of version 2; this program reads version 1" "$GRAFT" cost show "$FOLDER/2.costs"
}
# The page's numbers are those of the sources.
tells_the_truth() {
    grep -qF "| $("$GRAFT" version | cut -d' ' -f2) |" docs/versions.md || return 1
    abi=$(sed -n 's/^#define GRAFT_ABI //p' include/graft/graft.h)
    grep -qF "GRAFT_ABI\` in graft.h | $abi |" docs/versions.md
}

check "the first rule file is read" reads_rules
check "the first cost database" reads_costs
check "the first policy" reads_policy
check "a rule file of the next version is refused" refuses_rules
check "one that is cut off" refuses_cut_off
check "a policy" refuses_policy
check "a cost database" refuses_costs
check "docs/versions.md has the numbers of now" tells_the_truth
finish
