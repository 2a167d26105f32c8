#!/bin/sh
# What the checker that shares nothing with the prover says: of a sample of the committed rules, of rules
# known to be false, and of what it cannot judge.
. tests/support/tap.sh

python=$(sh cost/rival/python.sh out/venv)
if ! "$python" -c 'import onnx.reference' > /dev/null 2>&1; then
    skip "a second checker" "no ONNX reference implementation: $python"
    finish
    exit
fi

second() { "$python" verify/export/second_check.py "$@" --jobs 2; }

# one_rule SOURCE TARGET WHERE: a file with this rule.
one_rule() {
    printf 'rules:\n  - name: mine\n    source: "%s"\n    target: "%s"\n    where: "%s"\n' "$@" > "$FOLDER/one.yaml"
}

agrees_with_the_set() {
    "$GRAFT" rules --json > "$FOLDER/rules.json" &&
        gives 0 second "$FOLDER/rules.json" --sample 60 --count 3 && cat "$FOLDER/out" &&
        grep -q ': 60 rules at 1[78][0-9] instances, .* ranks to 6: 0 differ, 0 without an instance' "$FOLDER/out"
}
# finds LEAST FILE: of 40 false rules it tells at least so many.
finds() {
    gives 1 second "tests/verify/corpus/$2" --sample 40 --count 12 && cat "$FOLDER/out" || return 1
    [ "$(grep -c '^  DIFFERS  ' "$FOLDER/out")" -ge "$1" ]
}
names_what_it_finds() {
    one_rule "sub(a, b)" "sub(b, a)" "same_shape(a, b)"
    gives 1 second "$FOLDER/one.yaml" && grep -q '^  DIFFERS  mine: a: .*: output 0 at ' "$FOLDER/out"
}
# True up to 10, and it looks further; a number that the rule names.
looks_past_the_bounds() {
    one_rule "relu(a)" "pad(slice(relu(a), axis=0, start=0, end=min(dim(a,0), 10)), axis=0, before=0,\
 after=dim(a,0) - min(dim(a,0), 10), value=0.0)" "rank(a) = 1"
    gives 1 second "$FOLDER/one.yaml" --count 30 && grep -q '^  DIFFERS  ' "$FOLDER/out" || return 1
    one_rule "leaky_relu#1(a)" "relu(a)" "fle(#1.slope, 0.01)"
    gives 1 second "$FOLDER/one.yaml" --count 30 && grep -q '^  DIFFERS  ' "$FOLDER/out"
}
# An infinity is a value for a maximum; a / (b / 0) is not one, and nothing is said there.
knows_what_is_undefined() {
    one_rule "relu(div(a, b))" "relu(div(mul(a, b), mul(b, b)))" ""
    gives 1 second "$FOLDER/one.yaml" --count 20 && grep -q '^  DIFFERS  ' "$FOLDER/out" || return 1
    one_rule "div(a, div(b, c))" "mul(div(a, mul(b, c)), mul(c, c))" ""
    gives 0 second "$FOLDER/one.yaml" --count 20 || return 1
    one_rule "mul(div(a, b), b)" "a" "same_shape(a, b)"
    gives 0 second "$FOLDER/one.yaml" --count 20
}
# Paddings that the reference implementation would take in another order.
pads_pools_as_we_do() {
    one_rule "relu(max_pool#1(a, stride_h=1, stride_w=1, dilation_h=1, dilation_w=1))" \
        "max_pool#1(relu(a), stride_h=1, stride_w=1, dilation_h=1, dilation_w=1)" ""
    gives 0 second "$FOLDER/one.yaml" --count 40
}
fails_without_an_instance() {
    one_rule "relu(a)" "relu(relu(a))" "rank(a) = 2 and rank(a) = 3"
    gives 1 second "$FOLDER/one.yaml" && grep -q '^  0 instances  mine$' "$FOLDER/out" &&
        grep -q ': 0 differ, 1 without an instance' "$FOLDER/out"
}
refuses_what_it_cannot_read() {
    one_rule "relu(a" "a" ""
    error_is 2 "mine: expected ','" second "$FOLDER/one.yaml" || return 1
    one_rule "soften(a)" "a" ""
    error_is 2 "mine: no operator 'soften'" second "$FOLDER/one.yaml" &&
        error_is 2 "No such file" second "$FOLDER/none.json"
}

check "it agrees with a sample of the committed rules" agrees_with_the_set
check "it finds rules that are false within the prover's bounds" finds 37 false.yaml
check "it finds rules that are false beyond them" finds 34 beyond.yaml
check "it says where the sides differ" names_what_it_finds
check "it looks past the bounds, and at numbers that a rule names" looks_past_the_bounds
check "it knows what is undefined" knows_what_is_undefined
check "it pads pools as Graft does" pads_pools_as_we_do
check "a rule that is never tried fails" fails_without_an_instance
check "what it cannot read it refuses" refuses_what_it_cannot_read
finish
