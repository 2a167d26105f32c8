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
# Faults, one after the other, between rules that have none; the last holds within bounds only.
cat > "$FOLDER/faulty.yaml" << 'END'
rules:
  - name: broken
    source: relu(a
    target: a
  - name: twice
    source: relu(relu(a))
    target: relu(a)
  - name: misfit
    source: transpose(a, axis=[1, 0])
    target: a
    where: dim(a,0) = 2 and dim(a,1) = 3
  - name: wrong
    source: add(split#2(a).0, split#1(b).1)
    target: add(split#2(a).0, split#1(b).0)
  - source: relu(a)
    target: a
  - name: limited
    source: reshape#1(reshape#2(a))
    target: reshape#1(reshape(a, dim=[#1.dim_0, dim(a,1) * dim(a,2)]))
END
printf 'rules:\n  - name: x\n    source: [relu(a)\n' > "$FOLDER/broken.yaml"

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
        grep -q '1 of 2 rules are not proved: 1 refuted' "$FOLDER/err"
}
# Each rule has its verdict whatever the others are, in the order of the file; what cannot be tried
# says where and why, with the numbers that its author gave to operators.
goes_on() {
    gives 2 "$GRAFT" --quiet verify "$FOLDER/faulty.yaml" --json && [ "$(wc -l < "$FOLDER/out")" = 6 ] || return 1
    sed 's/^{"name": \([^,]*\), "verdict": "\([a-z-]*\)", .*/\1 \2/' "$FOLDER/out" | tr -d '"' > "$FOLDER/verdicts"
    printf '%s\n' "broken error" "twice proved" "misfit error" "wrong refuted" "null error" "limited within-bounds" |
        cmp - "$FOLDER/verdicts" || return 1
    grep -q 'faulty.yaml:3: source: column 7: expected' "$FOLDER/out" &&
        grep -q "faulty.yaml:10: rule 'misfit': the target does not fit" "$FOLDER/out" &&
        grep -q 'faulty.yaml:15: ' "$FOLDER/out" && grep -q '"attributes": {"#2.axis": ' "$FOLDER/out" &&
        grep -q '"proof": "within-bounds".*"bounds": {"instances": 2000, .*"proved": 64, "size": 4, ' "$FOLDER/out"
}
# The exit status of each kind of verdict alone, in the order in which they win.
only() {
    gives "$2" "$GRAFT" --quiet verify "$FOLDER/faulty.yaml" --only "$1" && [ "$(grep -c "^$1: " "$FOLDER/out")" = 1 ]
}
exit_statuses() { only twice 0 && only wrong 1 && only broken 2 && only misfit 2 && only limited 3; }
says_bounds() {
    only limited 3 && grep -q '^limited: holds within bounds (reassociating; 2000 instances swept with sizes to 4 ' "$FOLDER/out" &&
        ! grep -q 'limited: proved' "$FOLDER/out"
}
# What stood before an interrupt is there: the first rule's verdict comes long before the last's.
keeps_what_it_said() {
    {
        sed -n '1p;5,7p' "$FOLDER/faulty.yaml"
        for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
            sed -n '/name: limited/,$p' "$FOLDER/faulty.yaml" | sed "s/limited/limited-$i/"
        done
    } > "$FOLDER/long.yaml"
    : > "$FOLDER/out" # Else what the test before left there is taken for this run's.
    "$GRAFT" --quiet verify "$FOLDER/long.yaml" > "$FOLDER/out" 2> "$FOLDER/err" &
    pid=$!
    await $pid grep -q '^twice: proved' "$FOLDER/out"
    kill -"$1" $pid
    status=0
    wait $pid || status=$?
    [ $status = 130 ] && grep -q 'interrupted' "$FOLDER/err" && grep -q '^twice: proved' "$FOLDER/out" &&
        ! grep -q '^limited-16' "$FOLDER/out"
}
merges_within_bounds() {
    printf '\010\001\022\002z3' > "$FOLDER/bounds.rules"
    gives 3 "$GRAFT" verify "$FOLDER/faulty.yaml" --only limited --merge --rules "$FOLDER/bounds.rules" &&
        grep -q '1 rules that hold within bounds are not merged' "$FOLDER/err" &&
        [ "$("$GRAFT" rules "$FOLDER/bounds.rules" --json | wc -l)" = 0 ] &&
        gives 3 "$GRAFT" --quiet verify "$FOLDER/faulty.yaml" --only limited --merge --accept-within-bounds \
            --rules "$FOLDER/bounds.rules" &&
        "$GRAFT" rules "$FOLDER/bounds.rules" --json | grep -q '"proof": "within-bounds"'
}
# Obligations of one rule of a set.
emits_one() {
    gives 0 "$GRAFT" --quiet verify --emit-smt "$FOLDER/smt" --only limited --rules "$FOLDER/bounds.rules" &&
        [ "$(wc -l < "$FOLDER/smt/index.tsv")" = 2 ] && grep -q 'within-bounds' "$FOLDER/smt/index.tsv"
}
# With little memory the program ends, and says for want of what; it never hangs. OpenBLAS starts its
# threads when it is loaded, and interrupts the program where it cannot.
has_little() { # KIBIBYTES
    status=0
    # shellcheck disable=SC2016 # Expanded by the inner shell.
    timeout -s KILL 300 sh -c 'ulimit -v "$1" && shift && exec "$@"' sh "$1" "$GRAFT" --quiet verify \
        "$FOLDER/true.yaml" > "$FOLDER/out" 2> "$FOLDER/err" || status=$?
    case $status in
    0) [ "$(grep -c ': proved' "$FOLDER/out")" = 2 ] ;;
    3) grep -q 'unknown.*: the solver \(ran out of memory\|crashed\)' "$FOLDER/out" ;;
    70 | 127) grep -q 'memory\|cannot allocate\|failed to map' "$FOLDER/err" ;;
    130) grep -q 'pthread_create failed' "$FOLDER/err" ;;
    *) cat "$FOLDER/out" "$FOLDER/err" && echo "exit status $status" && false ;;
    esac
}
ends_with_little() {
    for kibibytes in 100000 125000 150000 200000 400000; do
        has_little $kibibytes || { echo "with $kibibytes KiB"; return 1; }
    done
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
# At some of its instances a slice is of all that there is, and the rule does there what the other one does.
merges_what_sometimes_follows() {
    printf 'rules:\n  - {name: whole, source: "slice#1(a, start=0)", target: "a"}\n' > "$FOLDER/whole.yaml"
    printf '\010\001\022\002z3' > "$FOLDER/cut.rules"
    gives 0 "$GRAFT" --quiet verify "$FOLDER/whole.yaml" --merge --rules "$FOLDER/cut.rules" &&
        gives 0 "$GRAFT" --quiet verify rules/general.yaml --only cut-conv-sequence --merge --rules "$FOLDER/cut.rules" &&
        [ "$("$GRAFT" rules "$FOLDER/cut.rules" --json | wc -l)" = 2 ]
}
has_what_is_stated() {
    cp rules/graft.rules "$FOLDER/stated.rules" &&
        gives 0 "$GRAFT" --quiet verify rules/general.yaml --merge --rules "$FOLDER/stated.rules" &&
        cmp rules/graft.rules "$FOLDER/stated.rules"
}

check "true rules are proved" proves_all
check "a wrong rule is refuted and mended" refutes_one
check "the same in text" refutes_in_text
check "the number of children does not matter" same_with_one_child
check "merging, and merging again" merges
check "merging into an empty set" merges_into_another
check "merging what follows at some instances" merges_what_sometimes_follows
check "rules/general.yaml is in the set" has_what_is_stated
check "XLA's rewrites, as far as they can be stated, are proved" gives 0 "$GRAFT" --quiet verify tests/verify/corpus/xla.yaml
check "so are rules as compilers have them" gives 0 "$GRAFT" --quiet verify tests/verify/corpus/compilers.yaml
check "and as writers of optimisers have them" gives 0 "$GRAFT" --quiet verify tests/verify/corpus/optimisers.yaml
check "a fault of one rule leaves the others" goes_on
check "exit statuses" exit_statuses
check "within bounds is not proved, and the bounds are printed" says_bounds
check "interrupted, it keeps what it said" keeps_what_it_said INT
check "and when it is terminated" keeps_what_it_said TERM
check "merging what holds within bounds" merges_within_bounds
check "obligations of one rule" emits_one
case $(realpath "$GRAFT") in # A sanitiser takes terabytes of address space.
*/asan/*) skip "little memory ends with a message" "sanitisers" ;;
*) check "little memory ends with a message" ends_with_little ;;
esac
check "a file that is no YAML" error_is 2 "broken.yaml:" "$GRAFT" verify "$FOLDER/broken.yaml"
check "a rule that is not there" error_is 2 "no rule with the name or id 'nix'" "$GRAFT" verify "$FOLDER/true.yaml" --only nix
check "accepting what is not merged" error_is 2 "needs --merge" "$GRAFT" verify "$FOLDER/true.yaml" --accept-within-bounds
check "a file that is not there" error_is 2 "no/such.yaml" "$GRAFT" verify no/such.yaml
check "no file" error_is 2 "FILE is missing" "$GRAFT" verify
finish
