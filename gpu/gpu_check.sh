#!/bin/sh
# gpu_check.sh PROGRAM: the stages of `make gpu-check` in one folder, $OUT, and that folder as one
# archive, $OUT.tar.gz, which is made anew every half minute: whatever ends the run, what there was by
# then is in it. Stops at once, with what is missing, where there is no GPU.
#
#   STAGES="memory primitives ceilings models"  TYPES=fp16,bf16  MODELS=resnet50,bert
#   LIST=FILE           signatures, one a line, that the stage costs measures
#   BATCHES=1,8,32      how many inputs models are built for (1)
#   SECONDS_MOST=390    of primitives, ceilings and models together, 35, 20 and 45 hundredths of it when all
#                       are chosen; costs takes 20 hundredths on top of that then
#   DESCRIBED=FILE      a dry run: a GPU that is not here; nothing is measured
#   SOURCES_HASH=...    what the program was made of; results of another one are put aside
set -eu

program=$1
: "${OUT:=out/gpu-check}" "${SECONDS_MOST:=390}" "${SANITIZER_SECONDS:=60}" "${SOURCES_HASH:=}"
: "${STAGES:=memory primitives ceilings models}" "${TYPES:=}" "${MODELS:=}" "${BATCHES:=}" "${LIST:=}" "${DESCRIBED:=}" "${HANG:=120}"
status=0

# Where the toolkit puts it, on the path or not.
sanitizer=
for tool in compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" \
    /usr/local/cuda/bin/compute-sanitizer /usr/local/cuda/compute-sanitizer/compute-sanitizer; do
    if [ -z "$sanitizer" ] && command -v "$tool" > /dev/null; then
        sanitizer=$tool
    fi
done

pack() {
    tar -czf "$OUT.tar.gz.new" -C "$(dirname "$OUT")" "$(basename "$OUT")" 2> /dev/null || true
    mv "$OUT.tar.gz.new" "$OUT.tar.gz" || echo "gpu-check: no $OUT.tar.gz" >&2
}

# It makes everything many times slower: the program stops by itself, or is stopped.
check_memory() {
    if [ -n "$DESCRIBED" ]; then
        echo "gpu-check: a dry run: memory is not checked" | tee "$OUT/sanitizer.txt" >&2
        return 0
    fi
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

# run STAGE SECONDS: all of what it says goes to the end of STAGE.log, the program's own lines to the
# terminal.
run() {
    set -- "$program" --out "$OUT" --stage "$1" --seconds "$2" --hang "$HANG" --verbose \
        ${SOURCES_HASH:+--sources "$SOURCES_HASH"} ${TYPES:+--types "$TYPES"} \
        ${MODELS:+--models "$MODELS"} ${BATCHES:+--batches "$BATCHES"} ${LIST:+--list "$LIST"} ${DESCRIBED:+--described "$DESCRIBED"}
    stage=$5
    touch "$OUT/$stage.log"
    from=$(($(wc -l < "$OUT/$stage.log") + 1))
    "$@" >> "$OUT/$stage.log" 2>&1 &
    child=$!
    trap 'kill $child 2> /dev/null; pack; exit 143' TERM INT
    tail -f -n +$from --pid=$child "$OUT/$stage.log" 2> /dev/null | grep --line-buffered '^gpu-check: ' >&2 &
    seconds=0
    while kill -0 $child 2> /dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        [ $((seconds % 30)) != 0 ] || pack
    done
    wait $child || status=1
    trap - TERM INT
    tail -n +$from "$OUT/$stage.log" | grep -q 'gpu-check: 0 failures' || status=1
    pack
}

for stage in $STAGES; do
    case $stage in
    memory | primitives | ceilings | costs | models) ;;
    *)
        echo "gpu-check: no stage is called $stage" >&2
        exit 2
        ;;
    esac
done

# What a program of other sources found is not mixed with what this one finds.
if [ -d "$OUT" ] && [ "$(cat "$OUT/sources" 2> /dev/null || true)" != "$SOURCES_HASH" ]; then
    rm -rf "$OUT.before"
    mv "$OUT" "$OUT.before"
fi
mkdir -p "$OUT"
echo "$SOURCES_HASH" > "$OUT/sources"
"$program" --out "$OUT" --stage none ${TYPES:+--types "$TYPES"} ${MODELS:+--models "$MODELS"} \
    ${DESCRIBED:+--described "$DESCRIBED"} || exit 1
{
    date -u +%Y-%m-%d
    git describe --always --dirty 2> /dev/null || true
    uname -srm
    nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,power.limit --format=csv 2> /dev/null || true
} > "$OUT/provenance.txt"

# A stage that is alone has all of the time.
share() {
    case $STAGES in
    *primitives*ceilings*models*) echo $((SECONDS_MOST * $1 / 100)) ;;
    *' '*) echo $((SECONDS_MOST / 2)) ;;
    *) echo "$SECONDS_MOST" ;;
    esac
}
for stage in $STAGES; do
    case $stage in
    memory) check_memory || status=1 ;;
    primitives) run primitives "$(share 35)" ;;
    ceilings) run ceilings "$(share 20)" ;;
    costs) run costs "$(share 20)" ;;
    models) run models "$(share 45)" ;;
    esac
done
pack
echo "gpu-check: results are in $OUT and $OUT.tar.gz; docs/gpu.md says what to do with them" >&2
exit $status
