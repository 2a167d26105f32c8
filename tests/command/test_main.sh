#!/bin/sh
# The command line: what is printed where, and the exit status.
. tests/support/tap.sh

prints() {
    gives 0 "$GRAFT" "$@" && grep -q '^usage: graft ' "$FOLDER/out" && [ ! -s "$FOLDER/err" ]
}
lists_help() { prints help && grep -q '^  help  *list the commands, or explain one$' "$FOLDER/out"; }
prints_version() {
    gives 0 "$GRAFT" "$1" && grep -qx 'graft [0-9]*\.[0-9]*\.[0-9]*' "$FOLDER/out"
}
tells_version() { gives 0 "$GRAFT" --json version && grep -qx '{"version": "[0-9.]*"}' "$FOLDER/out"; }
shows_usage() {
    gives 2 "$GRAFT" && [ ! -s "$FOLDER/out" ] && grep -q '^usage: graft ' "$FOLDER/err"
}
into_full_disk() {
    # shellcheck disable=SC2016 # Expanded by the inner shell.
    gives 1 sh -c '"$1" help > /dev/full' sh "$GRAFT" &&
        grep -qx 'graft: error: cannot write to standard output' "$FOLDER/err"
}

check "help lists the commands" lists_help
check "--help is help" prints --help
check "-h is help" prints -h
# One a line; some are two words.
commands() { "$GRAFT" help | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\( [a-z]\{1,\}\)\{0,1\}\)  *[a-z].*/\1/p'; }
explains_all() {
    commands > "$FOLDER/commands"
    while read -r command; do
        # shellcheck disable=SC2086 # Words.
        gives 0 "$GRAFT" $command --help && [ ! -s "$FOLDER/err" ] &&
            grep -q "^graft $command: " "$FOLDER/out" && grep -q "^graft $command" "$FOLDER/out" || return 1
        cat "$FOLDER/out" >> "$FOLDER/explained"
    done < "$FOLDER/commands"
    [ "$(grep -c '^graft [a-z -]*: ' "$FOLDER/explained")" = 26 ] && ! grep -E '.{101}' "$FOLDER/explained"
}
same_help() {
    gives 0 "$GRAFT" help rules && cp "$FOLDER/out" "$FOLDER/once" && gives 0 "$GRAFT" -h rules FILE &&
        cmp -s "$FOLDER/out" "$FOLDER/once"
}
check "--help explains each command" explains_all
check "wherever it stands" same_help
check "help for an unknown command" error_is 2 "no command 'nonsense'" "$GRAFT" help nonsense
check "version" prints_version version
check "--version is version" prints_version --version
check "the version for scripts" tells_version
check "no command shows the usage" shows_usage
check "an unknown command" error_is 2 "no command 'nonsense'; 'graft help' lists them" "$GRAFT" nonsense
check "an empty command" error_is 2 "no command ''" "$GRAFT" ''
check "common options before the command" prints --json --quiet --threads 3 help
check "common options after the command" prints help --verbose --threads 1024
check "threads without a number" error_is 2 "--threads needs a number from 1 to 1024, has ''" "$GRAFT" help --threads
check "threads that are none" error_is 2 "has '0'" "$GRAFT" help --threads 0
check "threads with a tail" error_is 2 "has '2x'" "$GRAFT" --threads 2x help
check "too many threads" error_is 2 "has '1025'" "$GRAFT" --threads 1025 help

refuses_missing_files() {
    none=$FOLDER/none
    while read -r line; do
        # shellcheck disable=SC2086 # Words.
        error_is 2 "" "$GRAFT" --quiet $line || { echo "graft $line"; return 1; }
    done << END
help none
version none
gen --families $none
rules $none
rules --generate $FOLDER --families $none
rules --taso $none
rules --check-derivations $none
verify $none
verify --emit-smt $FOLDER/smt --rules $none
verify --unbounded --rules $none
model none $FOLDER/none.onnx
convert $none $FOLDER/none.onnx
measure $none
cost show $none
cost merge $FOLDER/merged $none
cost diff $none $none
cost renew $none
optimize $none $FOLDER/none.onnx
optimize dscnn $FOLDER/none.onnx --rules $none
policy $none --out $FOLDER/policy
report $none --out $FOLDER/policy
emit-graph $none $FOLDER/none.h
bench none
END
}
says_exit_statuses() {
    prints help || return 1
    for number in 0 1 2 3 70 130; do
        grep -q "^  $number  *[a-z]" "$FOLDER/out" &&
            tr '\n' ' ' < README.md | grep -Eq "[ ,]$number [a-z]" || return 1
    done
}
check "help and README.md list the exit statuses" says_exit_statuses
check "what is not there gives 2 of every command" refuses_missing_files
program=$(realpath "$GRAFT")
from_elsewhere() { (cd "$FOLDER" && gives 0 "$program" rules --count) && grep -q '^all ' "$FOLDER/out"; }
from_nowhere() {
    (cd "$FOLDER" && GRAFT_DATA=$FOLDER error_is 2 "$FOLDER/rules/graft.rules: cannot open" "$program" rules)
}
check "rules are found from another folder" from_elsewhere
check "GRAFT_DATA says where" from_nowhere
if [ -c /dev/full ]; then
    check "a full disk behind stdout" into_full_disk
else
    skip "a full disk behind stdout" "no /dev/full here"
fi
finish
