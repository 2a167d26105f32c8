#!/bin/sh
# `graft rules`: listing, searching, counting, explaining. The set is the committed one.
. tests/support/tap.sh

SET=rules/graft.rules
count_of() { "$GRAFT" rules "$@" --json | wc -l; }
name_of() { "$GRAFT" rules --json | sed -n "$1s/.*\"name\": \"\([^\"]*\)\".*/\1/p"; }
id_of() { "$GRAFT" rules --json | sed -n "$1s/^{\"id\": \"\([^\"]*\)\".*/\1/p"; }

# Every line of JSON has the members that scripts rely on.
has_members() {
    "$GRAFT" rules "$SET" --json > "$FOLDER/all" || return 1
    for member in id name source target where numeric proof axioms points cover; do
        [ "$(grep -c "\"$member\": " "$FOLDER/all")" = "$(wc -l < "$FOLDER/all")" ] || return 1
    done
}
# The parts that a search splits the set into are the whole set.
parts_are_whole() {
    all=$(count_of)
    sum=0
    for part in within-bounds proved; do
        sum=$((sum + $(count_of --proof $part)))
    done
    [ "$all" -gt 0 ] && [ "$sum" = "$all" ]
}
finds_operators() {
    "$GRAFT" rules --uses relu --json > "$FOLDER/found" && [ -s "$FOLDER/found" ] &&
        ! grep -v 'relu(' "$FOLDER/found"
}
counts_all() {
    "$GRAFT" rules --count --json > "$FOLDER/counts" &&
        [ "$(sed -n 's/^{"family": "all", "rules": \([0-9]*\),.*/\1/p' "$FOLDER/counts")" = "$(count_of)" ]
}
explains() {
    "$GRAFT" rules --explain "$1" --dot "$FOLDER/rule.dot" > "$FOLDER/words" || return 1
    for part in 'It replaces' 'by' 'It holds wherever' 'Proof: ' 'Which way it pays' 'FLOPs'; do
        grep -q "$part" "$FOLDER/words" || return 1
    done
    grep -q 'subgraph cluster_source' "$FOLDER/rule.dot" &&
        grep -q 'subgraph cluster_target' "$FOLDER/rule.dot"
}
# Zeros at the end of a list of sizes say nothing; the value of a fill, which stands before them, does.
tells_zero() { "$GRAFT" rules --explain 'add-min=>fill-min-add' | grep -qx '    t1 = fill() with value = 0'; }
explains_in_json() {
    "$GRAFT" rules --explain "$(name_of 1)" --json > "$FOLDER/words" &&
        grep -q '"before": {"operators": ' "$FOLDER/words" && grep -q '"flops": [1-9]' "$FOLDER/words"
}

# What ships is proved, all of it.
all_proved() { [ "$(count_of --proof proved)" = "$(count_of)" ] && [ "$(count_of --proof within-bounds)" = 0 ]; }

# A set of three rules of our own: one saves an operator either way, one cannot be turned round.
printf '\010\001\022\002z3' > "$FOLDER/own.rules"
cat > "$FOLDER/own.yaml" << 'END'
rules:
  - name: merge
    source: add(matmul(a, c), matmul(b, c))
    target: matmul(add(a, b), c)
    where: same_shape(a, b)
  - name: drop
    source: tanh(identity(a))
    target: tanh(a)
  - name: relu-of-a-join
    source: relu(concat#1(a, b))
    target: concat#1(relu(a), relu(b))
END
own_set() { "$GRAFT" --quiet verify "$FOLDER/own.yaml" --merge --rules "$FOLDER/own.rules"; }
turns_round() {
    "$GRAFT" --quiet rules "$FOLDER/own.rules" --both "$FOLDER/both.rules" || return 1
    "$GRAFT" rules "$FOLDER/both.rules" --json > "$FOLDER/turned"
    [ "$(wc -l < "$FOLDER/turned")" -ge 5 ] &&
        grep -q '"source": "matmul(add(a, b), c)"' "$FOLDER/turned" &&
        "$GRAFT" --quiet rules "$FOLDER/both.rules" --both "$FOLDER/again.rules" &&
        cmp "$FOLDER/both.rules" "$FOLDER/again.rules"
}
judges_taso() {
    gives 0 "$GRAFT" --quiet rules --taso "tests/fuzz/corpus/taso/$1.pb" --json &&
        grep -q "^{\"rule\": 0, \"finding\": \"$2\"" "$FOLDER/out" &&
        grep -q '^{"rules": 1, "implied": ' "$FOLDER/out"
}

check "JSON has every member" has_members
check "the parts of a search are the whole" parts_are_whole
check "operators are found" finds_operators
check "counts add up" counts_all
check "a rule by name" explains "$(name_of 1)"
check "a rule by id" explains "$(id_of 2)"
check "a rule by the beginning of its id" explains "$(id_of 2 | cut -c1-10)"
check "a fill with 0" tells_zero
check "words in JSON" explains_in_json
check "what was left out follows" "$GRAFT" rules --check-derivations rules/derivations.txt
check "a set of our own" own_set
check "the other direction" turns_round
check "a wrong rule of TASO's" judges_taso wrong refuted
check "a merge that forgets groups" judges_taso merge refuted
check "a file of TASO's that is cut off" error_is 2 "cut.pb: byte " "$GRAFT" rules --taso tests/fuzz/corpus/taso/cut.pb
check "an operator that does not exist" error_is 2 "--uses: no operator 'cnov'" "$GRAFT" rules --uses cnov
check "the committed rules are proved for all sizes" all_proved
check "a level that does not exist" error_is 2 "--proof is proved or within-bounds, not 'none'" "$GRAFT" rules --proof none
check "a class that does not exist" error_is 2 "--numeric is exact, reassociating or exact-integer" "$GRAFT" rules --numeric fast
check "a family that is not there" error_is 2 "no family 'x'" "$GRAFT" rules --family x
check "a rule that is not there" error_is 2 "no rule with the name or id 'ffff'" "$GRAFT" rules --explain ffff
check "a rule of which the name is a beginning" error_is 2 "names that begin so: conv_bias-relu=>conv_bias~" \
    "$GRAFT" rules --explain 'conv_bias-relu=>'
check "two actions" error_is 2 "--count does not go with --explain" "$GRAFT" rules --explain x --count
check "a filter that nothing goes by" error_is 2 "--html takes no filter" "$GRAFT" rules --html "$FOLDER/x" --family dense
check "a picture of nothing" error_is 2 "--dot needs --explain" "$GRAFT" rules --dot "$FOLDER/x"
check "a file that is not there" error_is 2 "no/such" "$GRAFT" rules no/such
finish
