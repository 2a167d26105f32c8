#!/bin/sh
# `graft verify`: verdicts, exit status, JSON, merging into a rule set.
. tests/support/tap.sh

cat > "$FOLDER/true.yaml" << 'END'
rules:
  - name: twice
    source: relu(relu(a))
    target: relu(a)
  - name: distribute
    source: matmul(add(a, b), c)
    target: add(matmul(a, c), matmul(b, c))
    where: ["same_shape(a, b)", "rank(c) = 2"]
END
cat > "$FOLDER/mixed.yaml" << 'END'
rules:
  - name: wrong
    source: "[conv#1(a, b), conv#1(a, c)]"
    target: "[split(conv#1(a, concat(b, c, axis=0)), axis=1, at=dim(b,0)).0, split(conv#1(a, concat(b, c, axis=0)), axis=1, at=dim(b,0)).1]"
  - name: right
    source: tanh(identity(a))
    target: tanh(a)
END
printf 'rules:\n  - name: x\n    source: relu(a\n    target: a\n' > "$FOLDER/broken.yaml"
printf 'rules:\n  - name: x\n    source: transpose(a, axis=[1, 0])\n    target: a\n    where: dim(a,0) = 2 and dim(a,1) = 3\n' > "$FOLDER/misfit.yaml"

proves() { gives 0 "$GRAFT" --quiet verify "$FOLDER/true.yaml" --json; }
has_verdict() { grep -q "^{\"name\": \"$1\", \"verdict\": \"$2\", " "$FOLDER/out"; }
proves_all() {
    proves && has_verdict twice proved && has_verdict distribute proved &&
        [ "$(grep -c '"counterexample": null, "ms": ' "$FOLDER/out")" = 2 ]
}
refutes_one() {
    gives 1 "$GRAFT" --quiet verify "$FOLDER/mixed.yaml" --json && has_verdict wrong refuted &&
        has_verdict right proved && grep -q '"replayed": true}' "$FOLDER/out" &&
        grep -q '"suggestion": "#1.groups = 1"' "$FOLDER/out" &&
        grep -q '1 of 2 rules are not proved' "$FOLDER/err"
}
refutes_in_text() {
    gives 1 "$GRAFT" --quiet verify "$FOLDER/mixed.yaml" &&
        grep -q '^    it would be true where #1.groups = 1$' "$FOLDER/out" &&
        grep -q '^    output [01], element [0-9]*: source ' "$FOLDER/out"
}
# Verdicts do not depend on the number of children.
same_with_one_child() {
    "$GRAFT" --quiet --threads 1 verify "$FOLDER/mixed.yaml" --json | sed 's/"ms": [^,]*,//' > "$FOLDER/a"
    "$GRAFT" --quiet --threads 2 verify "$FOLDER/mixed.yaml" --json | sed 's/"ms": [^,]*,//' > "$FOLDER/b"
    [ -s "$FOLDER/a" ] && cmp "$FOLDER/a" "$FOLDER/b"
}
merges() {
    cp rules/graft.rules "$FOLDER/set.rules" || return 1
    before=$("$GRAFT" rules "$FOLDER/set.rules" --json | wc -l)
    gives 0 "$GRAFT" --quiet verify "$FOLDER/true.yaml" --merge --rules "$FOLDER/set.rules" || return 1
    after=$("$GRAFT" rules "$FOLDER/set.rules" --json | wc -l)
    cp "$FOLDER/set.rules" "$FOLDER/once.rules"
    gives 0 "$GRAFT" --quiet verify "$FOLDER/true.yaml" --merge --rules "$FOLDER/set.rules" || return 1
    [ "$after" -ge "$before" ] && [ "$after" -le $((before + 2)) ] &&
        cmp "$FOLDER/once.rules" "$FOLDER/set.rules"
}
# Into a set that has neither, both come, and the file is read again with its ids.
merges_into_another() {
    "$GRAFT" rules --uses conv_bias_add --json > "$FOLDER/x" || return 1
    printf '\010\001\022\002z3' > "$FOLDER/empty.rules"
    gives 0 "$GRAFT" --quiet verify "$FOLDER/true.yaml" --merge --rules "$FOLDER/empty.rules" &&
        "$GRAFT" rules "$FOLDER/empty.rules" --json > "$FOLDER/merged" &&
        [ "$(wc -l < "$FOLDER/merged")" = 2 ] && grep -q '"family": "user"' "$FOLDER/merged"
}

check "true rules are proved" proves_all
check "a wrong rule is refuted and mended" refutes_one
check "the same in text" refutes_in_text
check "the number of children does not matter" same_with_one_child
check "merging, and merging again" merges
check "merging into an empty set" merges_into_another
check "a fault of syntax" error_is 1 "broken.yaml:3: source: column 7: expected ','" "$GRAFT" verify "$FOLDER/broken.yaml"
check "a fault of shapes" error_is 1 "misfit.yaml:4: rule 'x': the target does not fit" "$GRAFT" verify "$FOLDER/misfit.yaml"
check "a file that is not there" error_is 1 "no/such.yaml" "$GRAFT" verify no/such.yaml
check "no file" error_is 1 "FILE is missing" "$GRAFT" verify
finish
