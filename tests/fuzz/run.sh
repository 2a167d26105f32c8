#!/bin/sh
# The libFuzzer side of tests/fuzz (the other side is replay.c).
#
#   sh tests/fuzz/run.sh check              fails with a reason when clang cannot build a fuzzer
#   sh tests/fuzz/run.sh run NAME...        fuzzes each target for SECONDS_EACH seconds
#
# New inputs that reach new code go to out/fuzz/corpus/NAME; one that breaks the target goes to
# out/fuzz/found/NAME-*: copy it into tests/fuzz/corpus/NAME with the fix.
set -eu

if [ "${1:-}" = check ]; then
    if ! command -v clang > /dev/null ||
        ! echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d == 0 && n < 0; }' |
            clang -x c -fsanitize=fuzzer,address - -o /dev/null 2> /dev/null; then
        echo "fuzz: clang with its run-time libraries is not here; 'make deps DEV=1' installs it" >&2
        exit 1
    fi
    exit 0
fi

shift
: "${OUT:?}" "${SECONDS_EACH:=60}"
for name in "$@"; do
    mkdir -p "$OUT/corpus/$name" "$OUT/found"
    echo "fuzz: $name for $SECONDS_EACH s"
    "$OUT/tests/fuzz/fuzz_$name" -max_total_time="$SECONDS_EACH" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$OUT/found/$name-" \
        "$OUT/corpus/$name" "tests/fuzz/corpus/$name" 2> "$OUT/found/$name.log" || {
        tail -n 40 "$OUT/found/$name.log"
        exit 1
    }
    grep -E '^(stat::number_of_executed_units|stat::new_units_added|Done)' "$OUT/found/$name.log"
done
