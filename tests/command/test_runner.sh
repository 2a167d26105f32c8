#!/bin/sh
# The test runner itself: what it counts, for programs that pass, fail, die, hang or say nothing.
. tests/support/tap.sh

# program NAME BODY: a script that stands in for a test program.
program() {
    mkdir -p "$FOLDER/tests/x"
    printf '#!/bin/sh\n%s\n' "$2" > "$FOLDER/tests/x/$1"
    chmod +x "$FOLDER/tests/x/$1"
}

# counts STATUS LINE NAME...: running these programs ends with that line and exit status.
counts() {
    want=$1
    line=$2
    shift 2
    programs=
    for name in "$@"; do
        programs="$programs $FOLDER/tests/x/$name"
    done
    # shellcheck disable=SC2086 # A list of words.
    OUT=$FOLDER TEST_SECONDS=${LIMIT:-60} gives "$want" sh tests/run.sh $programs || return 1
    [ "$(tail -n 1 "$FOLDER/out")" = "$line" ] && return 0
    echo "expected the last line '$line':"
    cat "$FOLDER/out"
    return 1
}
shows() { grep -qF -- "$1" "$FOLDER/out"; }
shows_reason() { counts 0 "1 passed, 0 failed, 2 skipped" skips && shows "skipped: no such machine"; }
shows_output() { counts 1 "1 passed, 1 failed" fails && shows "| # because of this"; }
shows_silence() { counts 1 "0 passed, 1 failed" silent && shows "reported no test"; }
shows_signal() { counts 1 "1 passed, 2 failed" dies && shows "killed by signal 11"; }
shows_hang() { LIMIT=1 counts 1 "0 passed, 1 failed" hangs && shows "stopped after 1 s"; }

program passes 'echo 1..2; echo "ok 1 - a"; echo "ok 2 - b"'
program two_groups 'echo 1..1; echo "ok 1 - a"; echo 1..1; echo "ok 1 - b"'
program fails 'echo 1..2; echo "ok 1 - a"; echo "# because of this"; echo "not ok 2 - b"; exit 1'
program skips 'echo 1..3; echo "# skip: no such machine"; echo "not ok 1 # SKIP a"; echo "ok 2 # SKIP"; echo "ok 3 - c"'
program dies 'echo 1..3; echo "ok 1 - a"; kill -SEGV $$'
program hangs 'echo 1..1; exec sleep 20'
program silent 'exit 0'
program lies 'echo 1..1; echo "ok 1 - a"; exit 3'
program short 'echo 1..3; echo "ok 1 - a"'
program bare 'exit 1'

check "passing" counts 0 "2 passed, 0 failed" passes
check "two groups in one program" counts 0 "2 passed, 0 failed" two_groups
check "several programs" counts 0 "4 passed, 0 failed" passes two_groups
check "failing shows its output" shows_output
check "skipping shows its reason" shows_reason
check "dying counts the missing cases" shows_signal
check "hanging" shows_hang
check "saying nothing" shows_silence
check "an exit status without a failed case" counts 1 "1 passed, 1 failed" lies
check "fewer cases than planned" counts 1 "1 passed, 2 failed" short
check "failing before the plan" counts 1 "0 passed, 1 failed" bare
check "a failure among others" counts 1 "3 passed, 1 failed" fails passes
check "nothing to run" counts 1 "0 passed, 0 failed"
finish
