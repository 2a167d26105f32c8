#!/bin/sh
# gpu_check.sh PROGRAM: the stages of `make gpu-check` in one folder, $OUT, and that folder as one
# archive, $OUT.tar.gz. Stops at once, with what is missing, where there is no GPU.
set -eu

program=$1
: "${OUT:=out/gpu-check}" "${SECONDS_MOST:=390}" "${SANITIZER_SECONDS:=60}"
status=0

# Where the toolkit puts it, on the path or not.
sanitizer=
for tool in compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" \
    /usr/local/cuda/bin/compute-sanitizer /usr/local/cuda/compute-sanitizer/compute-sanitizer; do
    if [ -z "$sanitizer" ] && command -v "$tool" > /dev/null; then
        sanitizer=$tool
    fi
done

# It makes everything many times slower: the program stops by itself, or is stopped.
check_memory() {
    if [ -z "$sanitizer" ]; then
        echo "gpu-check: no compute-sanitizer here: memory was not checked" | tee "$OUT/sanitizer.txt" >&2
        return 0
    fi
    echo "gpu-check: a short selection under compute-sanitizer" >&2
    result=0
    timeout -k 5 $((SANITIZER_SECONDS * 3 / 2)) "$sanitizer" --tool memcheck --error-exitcode 9 \
        --print-limit 20 "$program" --out "$OUT" --stage primitives --short \
        --seconds "$SANITIZER_SECONDS" > "$OUT/sanitizer.txt" 2>&1 || result=$?
    if grep -q 'ERROR SUMMARY: [1-9]' "$OUT/sanitizer.txt"; then
        echo "gpu-check: FAILED: compute-sanitizer; see $OUT/sanitizer.txt" >&2
        return 1
    elif grep -q 'ERROR SUMMARY: 0 errors' "$OUT/sanitizer.txt"; then
        grep 'gpu-check: ' "$OUT/sanitizer.txt" | tail -n 2 >&2
    elif [ $result = 124 ] || [ $result = 137 ]; then
        echo "gpu-check: compute-sanitizer took too long: memory was not checked to the end" >&2
    elif grep -qi 'device not supported' "$OUT/sanitizer.txt"; then
        echo "gpu-check: compute-sanitizer does not work here: memory was not checked" >&2
    else
        echo "gpu-check: FAILED: compute-sanitizer; see $OUT/sanitizer.txt" >&2
        return 1
    fi
}

mkdir -p "$OUT"
"$program" --out "$OUT" --stage none || exit 1
{
    date -u +%Y-%m-%d
    git describe --always --dirty 2> /dev/null || true
    uname -srm
    nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit --format=csv 2> /dev/null || true
} > "$OUT/provenance.txt"
check_memory || status=1
"$program" --out "$OUT" --seconds "$SECONDS_MOST" 2>&1 | tee "$OUT/log.txt" >&2
grep -q 'gpu-check: 0 failures' "$OUT/log.txt" || status=1
tar -czf "$OUT.tar.gz" -C "$(dirname "$OUT")" "$(basename "$OUT")" || echo "gpu-check: no $OUT.tar.gz" >&2
echo "gpu-check: results are in $OUT; docs/gpu.md says what to do with them" >&2
exit $status
