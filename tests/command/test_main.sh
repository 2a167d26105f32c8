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
commands() { "$GRAFT" help | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'; }
explains_all() {
    for command in $(commands); do
        gives 0 "$GRAFT" "$command" --help && [ ! -s "$FOLDER/err" ] &&
            grep -q "^graft $command: " "$FOLDER/out" && grep -q "^graft $command" "$FOLDER/out" || return 1
        cat "$FOLDER/out" >> "$FOLDER/explained"
    done
    [ "$(grep -c '^graft [a-z-]*: ' "$FOLDER/explained")" = 14 ]
}
# Options are parsed from tables.
explains_every_option() {
    grep -rhoE '\.name = "--[a-z-]+"' --include='*.c' gen verify models cost emit main.c | cut -d'"' -f2 |
        sort -u > "$FOLDER/options"
    while read -r option; do
        grep -qw -e "$option" "$FOLDER/explained" || { echo "no help for $option"; return 1; }
    done < "$FOLDER/options"
    [ "$(wc -l < "$FOLDER/options")" -gt 30 ]
}
same_help() {
    gives 0 "$GRAFT" help rules && cp "$FOLDER/out" "$FOLDER/once" && gives 0 "$GRAFT" -h rules FILE &&
        cmp -s "$FOLDER/out" "$FOLDER/once"
}
check "--help explains each command" explains_all
check "and every option" explains_every_option
check "wherever it stands" same_help
check "help for an unknown command" error_is 1 "no command 'nonsense'" "$GRAFT" help nonsense
check "version" prints_version version
check "--version is version" prints_version --version
check "no command shows the usage" shows_usage
check "an unknown command" error_is 2 "no command 'nonsense'; 'graft help' lists them" "$GRAFT" nonsense
check "an empty command" error_is 2 "no command ''" "$GRAFT" ''
check "common options before the command" prints --json --quiet --threads 3 help
check "common options after the command" prints help --verbose --threads 1024
check "threads without a number" error_is 2 "--threads needs a number from 1 to 1024, has ''" "$GRAFT" help --threads
check "threads that are none" error_is 2 "has '0'" "$GRAFT" help --threads 0
check "threads with a tail" error_is 2 "has '2x'" "$GRAFT" --threads 2x help
check "too many threads" error_is 2 "has '1025'" "$GRAFT" --threads 1025 help
program=$(realpath "$GRAFT")
from_elsewhere() { (cd "$FOLDER" && gives 0 "$program" rules --count) && grep -q '^all ' "$FOLDER/out"; }
from_nowhere() {
    (cd "$FOLDER" && GRAFT_HOME=$FOLDER error_is 1 "rules/graft.rules: cannot open" "$program" rules)
}
check "rules are found from another folder" from_elsewhere
check "GRAFT_HOME says where" from_nowhere
if [ -c /dev/full ]; then
    check "a full disk behind stdout" into_full_disk
else
    skip "a full disk behind stdout" "no /dev/full here"
fi
finish
