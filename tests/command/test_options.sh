#!/bin/sh
# What the tables of commands and options say: suggestions, exit statuses of every command, the manual
# page and the completion.
. tests/support/tap.sh

check "a mistyped command" error_is 2 "no command 'optimise'; did you mean 'optimize'?" "$GRAFT" optimise a b
check "a mistyped command of two words" error_is 2 "did you mean 'cost show'?" "$GRAFT" cost shwo a
check "the first of two words" error_is 2 "no command 'cost'; " "$GRAFT" cost
check "a mistyped option" error_is 2 "optimize does not understand '--devise'; did you mean --device?" \
    "$GRAFT" optimize a b --devise x
check "one without its dashes" error_is 2 "does not understand 'device'; did you mean --device?" \
    "$GRAFT" optimize a b device x
check "one cut short" error_is 2 "did you mean --accept-within-bounds?" "$GRAFT" optimize a b --accept
check "an option of every command" error_is 2 "did you mean --json?" "$GRAFT" rules --josn
check "one that is like none" error_is 2 "rules does not understand '--zzz'; see graft help rules" "$GRAFT" rules --zzz
check "a choice that is none" error_is 2 "NAME is cost, search or order" "$GRAFT" bench none
check "a flag with a value" error_is 2 "rules: --count takes no value" "$GRAFT" rules --count=1
check "a missing word" error_is 2 "optimize: OUT.onnx is missing; usage: graft optimize MODEL OUT.onnx [options]" \
    "$GRAFT" optimize dscnn
check "a missing option" error_is 2 "--out is missing; usage: graft policy MODEL --out FOLDER" "$GRAFT" policy dscnn
one_form() { "$GRAFT" policy dscnn 2>&1 | grep -q -- 'usage: graft policy MODEL --out FOLDER$'; }
check "of several forms it shows the first" one_form
check "too few of many words" error_is 2 "usage: graft cost diff FILE FILE" "$GRAFT" cost diff rules/costs/none
check "too many of them" error_is 2 "'c' is one too many" "$GRAFT" cost diff a b c
check "an option given twice" error_is 2 "optimize: --seed is given twice" "$GRAFT" optimize a b --seed 1 --seed 2
check "one of every command given twice" error_is 2 "graft: --threads is given twice" "$GRAFT" --threads 1 help --threads 1
check "an empty word" error_is 2 "optimize: MODEL is empty" "$GRAFT" optimize "" b
check "an empty value" error_is 2 "policy: --out is empty" "$GRAFT" policy a,b --out ""
words_only() {
    "$GRAFT" rules --count > "$FOLDER/count"
    gives 0 "$GRAFT" rules --count -- rules/graft.rules && cmp "$FOLDER/out" "$FOLDER/count" &&
        error_is 2 "--count: cannot open" "$GRAFT" rules -- --count
}
with_equals() { gives 0 "$GRAFT" rules --proof=proved --count && grep -q '^all ' "$FOLDER/out"; }
# What is written takes no place of what is read, by whatever name.
keeps_what_it_reads() {
    cp rules/policies/intel-xeon-6-167-avx512.graft "$FOLDER/mine.graft" && ln -s mine.graft "$FOLDER/link.h" &&
        error_is 2 "emit-policy: OUT.h would take the place of POLICY.graft, '$FOLDER/mine.graft'" \
            "$GRAFT" emit-policy "$FOLDER/mine.graft" "$FOLDER/link.h" &&
        error_is 2 "emit-graph: --weights would take the place of --policy, " \
            "$GRAFT" emit-graph dscnn "$FOLDER/new.h" --policy "$FOLDER/mine.graft" --weights "$FOLDER/link.h" &&
        error_is 2 "emit-graph: OUT.h would take the place of --weights, '$FOLDER/new.h'" \
            "$GRAFT" emit-graph dscnn "$FOLDER/new.h" --weights "$FOLDER/new.h" &&
        cmp "$FOLDER/mine.graft" rules/policies/intel-xeon-6-167-avx512.graft && [ ! -e "$FOLDER/new.h" ] &&
        gives 0 "$GRAFT" emit-graph dscnn "$FOLDER/named" --name "$FOLDER/named" --quiet &&
        gives 0 "$GRAFT" emit-graph dscnn "$FOLDER/named" --name "$FOLDER/named" --quiet
}
# A place that cannot be written is no reason to work for hours first.
judges_outputs() {
    error_is 2 "cannot write $FOLDER: Is a directory" "$GRAFT" measure "$FOLDER/none.onnx" --plot "$FOLDER" &&
        error_is 2 "cannot write rules/graft.rules/graft_policy.h: Not a directory" \
            "$GRAFT" policy "$FOLDER/none.onnx" --out rules/graft.rules
}
check "no output in an input's place" keeps_what_it_reads
check "outputs are judged first" judges_outputs
check "an agent of several models" error_is 2 "--agent dream is for a policy of one model" "$GRAFT" policy a,b --out c --agent dream
check "pointers of several models" error_is 2 "--pointers is for a policy of one model" "$GRAFT" policy a,b --out c --pointers 64
check "pointers of no policy" error_is 2 "--pointers needs --policy" "$GRAFT" emit-graph dscnn "$FOLDER/x.h" --pointers 64
if [ -c /dev/zero ]; then
    check "an input without an end" error_is 2 "/dev/zero: cannot read: is a device" "$GRAFT" convert /dev/zero "$FOLDER/x.onnx"
else
    skip "an input without an end" "no /dev/zero here"
fi
check "behind -- all are words" words_only
check "--name=value" with_equals

# Exit statuses: a row for each command with those that its help names beside 0, 1, 2, 70 and 130, and
# a command line that ends with 0, where one is quick; those without are run by the tests of their
# folders. @ is the test's folder, & a device whose costs come with Graft.
cat << 'END' > "$FOLDER/rows"
help||help
version||version
gen||gen --families @/families --counts
rules||rules --count
verify|3|verify @/ok.yaml
model||model
convert||convert dscnn @/out.onnx
measure||measure dscnn --device & --database @/a.costs
cost show||cost show @/one.costs
cost merge||cost merge @/two.costs @/one.costs
cost diff||cost diff @/one.costs @/one.costs
cost calibrate||
cost confirm||
cost renew||
cost random||
cost close||cost close autoencoder --device & --database @/a.costs --seconds 1
cost table||
optimize||optimize dscnn @/out.onnx --device & --database @/a.costs
run||run autoencoder --bench --rounds 3 --database @/run.costs
policy||
report||
eval||
emit-graph||emit-graph dscnn @/out.h
emit-policy||emit-policy rules/policies/intel-xeon-6-167-avx512.graft @/out.h
bench agents||
bench||
END
device=$(sed -n '2s/.*"device": *"\([^"]*\)".*/\1/p' rules/costs/intel-xeon-6-207-avx512.costs)
mkdir "$FOLDER/families" && cp rules/families/activation.yaml "$FOLDER/families"
cp rules/costs/amd-epyc-26-2-avx512.costs "$FOLDER/one.costs"
printf 'rules:\n  - name: twice\n    source: relu(relu(a))\n    target: relu(a)\n' > "$FOLDER/ok.yaml"
# each_row FUNCTION: with the command, its statuses and the command line as arguments.
each_row() {
    while IFS='|' read -r command more line; do
        set -f
        # shellcheck disable=SC2086 # Words.
        set -- "$1" $line
        set +f
        count=$#
        function=$1
        shift
        while [ "$count" -gt 1 ]; do
            word=$1
            shift
            case $word in
            '&') word=$device ;;
            @*) word=$FOLDER${word#@} ;;
            esac
            set -- "$@" "$word"
            count=$((count - 1))
        done
        "$function" "$@" || return 1
        set -- "$function"
    done < "$FOLDER/rows"
}
names_its_statuses() {
    # shellcheck disable=SC2086 # Words.
    gives 0 "$GRAFT" help $command || return 1
    said=$(sed -n '/^exit status:/,$s/^  \([0-9]\{1,\}\) .*/\1/p' "$FOLDER/out" | tr '\n' ' ')
    # shellcheck disable=SC2086
    expected=$(printf '%s\n' 0 1 2 $more 70 130 | tr '\n' ' ')
    [ "$said" = "$expected" ] || { echo "$command: $said, not $expected"; return 1; }
}
has_all_rows() { [ "$(cut -d'|' -f1 "$FOLDER/rows")" = "$("$GRAFT" help | sed -n '/^commands:/,/^$/s/^  \(.\{14\}\) .*/\1/p' | sed 's/ *$//')" ]; }
ends_with_0() { [ $# = 0 ] || gives 0 "$GRAFT" --quiet "$@"; }
# What prints nothing cannot fail to print.
ends_with_1() {
    [ $# != 0 ] && [ "$command" != "cost diff" ] && [ "$command" != "cost merge" ] && [ "${command#emit-}" = "$command" ] || return 0
    # shellcheck disable=SC2016 # Expanded by the inner shell.
    error_is 1 "cannot write to standard output" sh -c '"$@" > /dev/full' sh "$GRAFT" --quiet "$@"
}
# shellcheck disable=SC2086 # Words.
ends_with_2() { error_is 2 "does not understand '--bogus'" "$GRAFT" $command --bogus; }
check "each command names its exit statuses" each_row names_its_statuses
check "and there is no other command" has_all_rows
check "0 of each command" each_row ends_with_0
if [ -c /dev/full ]; then
    check "1, when it cannot be printed" each_row ends_with_1
else
    skip "1, when it cannot be printed" "no /dev/full here"
fi
check "2, of what it does not understand" each_row ends_with_2

# The manual page and the completion hold every command and every option.
options_of() { "$GRAFT" help "$@" | sed -n 's/^  \(--[a-z-]*\).*/\1/p'; }
has_all() { # FILE OPTIONS... with every option as it is written there
    while read -r name; do
        # shellcheck disable=SC2086 # Words.
        options_of $name > "$FOLDER/options"
        grep -qF -- "$name" "$1" || { echo "no $name"; return 1; }
        while read -r option; do
            sed 's/\\-/-/g' "$1" | grep -qw -e "$option" || { echo "no $name $option"; return 1; }
        done < "$FOLDER/options"
    done < "$FOLDER/names"
}
cut -d'|' -f1 "$FOLDER/rows" > "$FOLDER/names"
prints_manual() { gives 0 "$GRAFT" help --man && cp "$FOLDER/out" "$FOLDER/graft.1" && has_all "$FOLDER/graft.1"; }
formats_manual() { LC_ALL=C man --warnings -l "$FOLDER/graft.1" > "$FOLDER/page" 2> "$FOLDER/warnings" && [ ! -s "$FOLDER/warnings" ]; }
prints_completion() { gives 0 "$GRAFT" help --completion && cp "$FOLDER/out" "$FOLDER/completion" && has_all "$FOLDER/completion"; }
# completes LINE WORD...: the line is completed to exactly these words, as bash would do it.
completes() {
    line=$1
    shift
    # shellcheck disable=SC2016 # Expanded by bash.
    PATH=$(dirname "$(realpath "$GRAFT")"):$PATH bash -c '
        . "$1"
        COMP_WORDS=($2)
        [[ $2 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _graft
        printf "%s\n" "${COMPREPLY[@]}"' bash "$FOLDER/completion" "$line" > "$FOLDER/out"
    [ "$(sort "$FOLDER/out" | tr '\n' ' ')" = "$(printf '%s\n' "$@" | sort | tr '\n' ' ')" ] || {
        echo "$line:"
        cat "$FOLDER/out"
        return 1
    }
}
completes_all() {
    completes "graft op" optimize && completes "graft cost c" calibrate confirm close &&
        completes "graft cost show --j" --json && completes "graft optimize --se" --settings --search --seed --seconds &&
        completes "graft optimize --search b" backtracking beam && completes "graft rules --proof " proved within-bounds &&
        completes "graft --threads 2 measure --device cpu dscnn_" dscnn_int8 && completes "graft help me" measure &&
        completes "graft cost show $FOLDER/one" "$FOLDER/one.costs" && completes "graft rules --work $FOLDER/fam" "$FOLDER/families"
}
check "the manual page has all commands and options" prints_manual
if command -v man > /dev/null; then
    check "man formats it" formats_manual
else
    skip "man formats it" "no man here"
fi
check "the completion has all commands and options" prints_completion
if command -v bash > /dev/null; then
    check "bash completes with it" completes_all
else
    skip "bash completes with it" "no bash here"
fi
finish
