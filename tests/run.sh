#!/bin/sh
# Runs test programs and counts their cases.
#
#   OUT=out/release JOBS=2 sh tests/run.sh PROGRAM...
#
# A program prints TAP (cmocka does so with CMOCKA_MESSAGE_OUTPUT=TAP; a script prints its own): a
# plan "1..N" per group, then "ok" or "not ok" lines. A case that is skipped says why in a line
# "# skip: reason" before it. A program that dies, runs out of time or reports fewer cases than it
# planned has failed: every missing case counts, and at least one.
#
# One line per program, the whole output of those that failed, every reason for skipping; at the end
# "N passed, N failed" alone on a line (", N skipped" may follow). Exit status 0 when none failed.
set -u

: "${OUT:?}" "${JOBS:=1}" "${TEST_SECONDS:=1800}"
RESULTS=$OUT/tests/results.$$ # Of this run: another may be under way.
export TEST_SECONDS OUT
export CMOCKA_MESSAGE_OUTPUT=TAP
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"

# out/release/tests/graph/test_arena and tests/command/test_main.sh become graph/test_arena, ...
short_name() {
    name=${1#"$OUT"/}
    name=${name#tests/}
    echo "${name%.sh}"
}

run_one() {
    log=$RESULTS/$(short_name "$1" | tr / .)
    start=$(date +%s%N)
    case $1 in
    *.sh) timeout "$TEST_SECONDS" sh "$1" ;;
    *) timeout "$TEST_SECONDS" "$1" ;;
    esac > "$log.log" 2>&1 < /dev/null
    status=$?
    milliseconds=$((($(date +%s%N) - start) / 1000000))
    times > "$log.times" # Not in a pipe, which would be another process.
    cpu=$(awk -F '[ms ]+' 'NR == 2 { printf "%.1f", 60 * ($1 + $3) + $2 + $4 }' "$log.times")
    awk -v status=$status -v name="$(short_name "$1")" -v ms=$milliseconds -v cpu="$cpu" -v limit="$TEST_SECONDS" '
        /^1\.\.[0-9]+/                  { planned += substr($1, 4) }
        /^(not )?ok .*# SKIP/          { skipped++; next } # cmocka 1.1 writes "not ok".
        /^ok /                          { passed++ }
        /^not ok /                      { failed++ }
        END {
            missing = planned - passed - failed - skipped
            if (missing > 0) failed += missing
            if ((status != 0 || planned == 0) && failed == 0) failed = 1
            why = status == 124 ? ", stopped after " limit " s" : status > 128 ? ", killed by signal " status - 128 : ""
            if (planned == 0 && why == "") why = ", reported no test"
            tally = sprintf("%d passed", passed)
            if (failed) tally = tally sprintf(", %d failed%s", failed, why)
            if (skipped) tally = tally sprintf(", %d skipped", skipped)
            printf "%s %-36s %s (%.2f s, %s of processors)\n", failed ? "FAIL" : "ok  ", name, tally, ms / 1000, cpu
            printf "%d %d %d\n", passed, failed, skipped > counts
        }' counts="$log.counts" "$log.log"
    if read -r _ failed _ < "$log.counts" && [ "$failed" -gt 0 ]; then
        sed 's/^/     | /' "$log.log"
    else
        sed -n 's/^# skip: /     skipped: /p' "$log.log"
    fi
}

if [ "${1:-}" = --one ]; then # One program, for xargs below; printed in one piece.
    RESULTS=$2
    text=$(run_one "$3")
    printf '%s\n' "$text"
    exit 0
fi

mkdir -p "$RESULTS"
trap 'rm -rf "$OUT/tests/results"; mv "$RESULTS" "$OUT/tests/results"' EXIT
printf '%s\n' "$@" | xargs -r -n 1 -P "$JOBS" sh "$0" --one "$RESULTS"

cat "$RESULTS"/*.counts 2>/dev/null | awk '
    { passed += $1; failed += $2; skipped += $3 }
    END {
        printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : ""
        exit failed > 0 || passed + skipped == 0
    }'
