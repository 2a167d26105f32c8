#!/bin/sh
# Obligations in files: the same bytes every time, and what other solvers say of a sample of them.
. tests/support/tap.sh

export SAMPLE=24
SMT=$FOLDER/smt
emit() { "$GRAFT" --quiet --threads "$1" verify --emit-smt "$2" --sample "$SAMPLE"; }
checks_in() { awk -F '\t' 'NR > 1 { n += $5 } END { print n + 0 }' "$1/index.tsv"; }
obligations_in() {
    awk -F '\t' '$6 == "instances" || $6 == "questions" { n += $5 } END { print n + 0 }' "$1/index.tsv"
}
# line_of KIND: the first of its files, in the index.
line_of() { awk -F '\t' -v kind="$1" '$6 == kind' "$SMT/index.tsv" | head -n 1; }

writes_a_sample() {
    emit 2 "$SMT" && [ "$(sed 1d "$SMT/index.tsv" | cut -f 1 | sort -u | wc -l)" = "$SAMPLE" ] &&
        [ "$(cat "$SMT"/*.smt2 | grep -c '^(check-sat)$')" = "$(checks_in "$SMT")" ]
}
writes_the_same() { emit 1 "$FOLDER/again" && diff -r "$SMT" "$FOLDER/again"; }

solvers=$(sh verify/export/recheck.sh --which out/venv-z3 2> "$FOLDER/why")
recheck() { python3 verify/export/recheck.py "$@"; }

# agrees NAME=PATH: nothing is sat, nearly everything is unsat.
agrees() {
    gives 0 recheck "$SMT" --solver "$1" --jobs 2 || return 1
    cat "$FOLDER/out"
    unsat=$(sed -n 's/^.* rules: \([0-9]*\) unsat, 0 sat, .*/\1/p' "$FOLDER/out")
    [ "$unsat" -gt $(($(obligations_in "$SMT") * 8 / 10)) ] || return 1
    steps=$(grep -c '^(check-sat)$' verify/export/laws.smt2)
    grep -q ": $steps of $steps steps of the laws" "$FOLDER/out" || return 1
    open=$(sed -n 's/^.* theorems .* proved, \([0-9]*\) open; .*/\1/p' "$FOLDER/out")
    [ "$open" -lt $((SAMPLE / 2)) ]
}
# What was found is not asked again: the solver is gone, its name and version stay.
remembers() {
    # shellcheck disable=SC2016 # The stand-in expands its own.
    printf '#!/bin/sh\n[ "$1" != --version ] || exec "%s" --version\nexit 1\n' "${1#*=}" > "$FOLDER/absent"
    chmod +x "$FOLDER/absent"
    cp "$FOLDER/out" "$FOLDER/before"
    gives 0 recheck "$SMT" --solver "${1%%=*}=$FOLDER/absent" && cmp "$FOLDER/before" "$FOLDER/out"
}
# A claim that is false is named, and the exit status says so; so does one that got lost.
finds_a_lie() {
    line=$(line_of instances)
    mkdir "$FOLDER/lie" && { sed -n 1p "$SMT/index.tsv" && echo "$line"; } > "$FOLDER/lie/index.tsv" || return 1
    file=$(echo "$line" | cut -f 4)
    sed '0,/(or false/s//(or true/' "$SMT/$file" > "$FOLDER/lie/$file" || return 1
    gives 1 recheck "$FOLDER/lie" --solver "$1" && grep -q '1 sat' "$FOLDER/out" &&
        grep -q "^  SAT  *$(echo "$line" | cut -f 2) " "$FOLDER/out"
}
# A theorem that says nothing of sums, functions and all indices, its goal made true, has a model.
finds_a_lie_about_a_theorem() {
    for file in "$SMT"/*.theorem*.smt2; do
        grep -q 'define-fun-rec\|declare-fun fn_\|(forall ' "$file" || break
    done
    file=$(basename "$file")
    mkdir "$FOLDER/lie3" &&
        awk -F '\t' -v file="$file" 'NR == 1 || $4 == file' "$SMT/index.tsv" > "$FOLDER/lie3/index.tsv" &&
        sed 's/(assert (or false ; the goal/(assert (or true/' "$SMT/$file" > "$FOLDER/lie3/$file" || return 1
    gives 1 recheck "$FOLDER/lie3" --solver "$1" && grep -q '^  SAT ' "$FOLDER/out" &&
        grep -q ' 1 open; ' "$FOLDER/out"
}
# So is a question of a proof for all sizes. The sample has some with questions.
finds_a_lie_about_sizes() {
    line=$(awk -F '\t' '$4 ~ /sizes/ && $5 > 1' "$SMT/index.tsv" | head -n 1)
    file=$(echo "$line" | cut -f 4)
    mkdir "$FOLDER/lie2" && { sed -n 1p "$SMT/index.tsv" && echo "$line"; } > "$FOLDER/lie2/index.tsv" &&
        sed '0,/(or false/s//(or true/' "$SMT/$file" > "$FOLDER/lie2/$file" || return 1
    gives 1 recheck "$FOLDER/lie2" --solver "$1" && grep -q ' 1 sat' "$FOLDER/out" &&
        grep -q '^  SAT .*: question 0$' "$FOLDER/out"
}
notices_a_loss() {
    mkdir "$FOLDER/loss" && awk -F '\t' -v OFS='\t' '$6 == "instances" && !done { $5 = 1; done = 1 } { print }' \
        "$SMT/index.tsv" > "$FOLDER/loss/index.tsv" &&
        cp "$SMT"/*.smt2 "$FOLDER/loss" &&
        error_is 2 "not as many obligations" recheck "$FOLDER/loss" --solver "$1"
}
# z3 would go on behind what it cannot read, and say sat.
notices_what_cannot_be_read() {
    file=$(basename "$(grep -l '^(declare-fun x0 ' "$SMT"/*.theorem*.smt2 | head -n 1)")
    mkdir "$FOLDER/lie4" &&
        awk -F '\t' -v file="$file" 'NR == 1 || $4 == file' "$SMT/index.tsv" > "$FOLDER/lie4/index.tsv" &&
        sed '/^(declare-fun x0 /d' "$SMT/$file" > "$FOLDER/lie4/$file" &&
        error_is 2 "cannot read it" recheck "$FOLDER/lie4" --solver "$1"
}

check "a sample is written, with its index" writes_a_sample
check "with one child the same" writes_the_same
for name in cvc5 z3; do
    solver=$(printf '%s\n' "$solvers" | grep "^$name=")
    if [ -z "$solver" ]; then
        skip "$name agrees" "$(grep -i "$name" "$FOLDER/why")"
        continue
    fi
    check "$name agrees" agrees "$solver"
    check "$name is not asked again" remembers "$solver"
    check "a false claim is found by $name" finds_a_lie "$solver"
    if awk -F '\t' '$4 ~ /sizes/ && $5 > 1 { n++ } END { exit !n }' "$SMT/index.tsv"; then
        check "a false claim about sizes is found by $name" finds_a_lie_about_sizes "$solver"
    else
        skip "a false claim about sizes is found by $name" "the sample has no questions about sizes"
    fi
    check "a false theorem is found by $name" finds_a_lie_about_a_theorem "$solver"
    check "a lost claim is noticed" notices_a_loss "$solver"
    check "a claim that $name cannot read is noticed" notices_what_cannot_be_read "$solver"
    rm -rf "$FOLDER"/lie* "$FOLDER/loss"
done
check "no folder" error_is 2 "--emit-smt needs a value" "$GRAFT" verify --emit-smt
check "users' rules are not written" error_is 2 "takes no file" "$GRAFT" verify x.yaml --emit-smt "$SMT"
finish
