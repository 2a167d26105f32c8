#!/bin/sh
# gpu_check.sh PROGRAM: the stages of `make gpu-check` in one folder, $OUT. Stops at once, with what
# is missing, where there is no GPU.
set -eu

program=$1
: "${OUT:=out/gpu-check}"
status=0

mkdir -p "$OUT"
"$program" --out "$OUT" --stage none || exit 1
{
    date -u +%Y-%m-%d
    git describe --always --dirty 2> /dev/null || true
    uname -srm
    nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit --format=csv 2> /dev/null || true
} > "$OUT/provenance.txt"
if command -v compute-sanitizer > /dev/null; then
    echo "gpu-check: a short selection under compute-sanitizer" >&2
    compute-sanitizer --tool memcheck --error-exitcode 9 "$program" --out "$OUT" --stage primitives --short \
        > "$OUT/sanitizer.txt" 2>&1 || {
        echo "gpu-check: FAILED: compute-sanitizer; see $OUT/sanitizer.txt" >&2
        status=1
    }
else
    echo "gpu-check: no compute-sanitizer here: memory was not checked" | tee "$OUT/sanitizer.txt" >&2
fi
"$program" --out "$OUT" --seconds "${SECONDS_MOST:-420}" 2>&1 | tee "$OUT/log.txt" >&2
grep -q 'gpu-check: 0 failures' "$OUT/log.txt" || status=1
echo "gpu-check: results are in $OUT; docs/gpu.md says what to do with them" >&2
exit $status
