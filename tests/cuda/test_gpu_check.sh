#!/bin/sh
# The script and the rules of `make gpu-check`, without a GPU: which processor is built for, what is
# passed on, and that results are packed whatever ends a run.
# shellcheck source=tests/support/tap.sh
. tests/support/tap.sh

builds_for_the_named_processor() {
    make -n -B gpu-build CUDA=0 ARCH=x86-64-v3 > "$FOLDER/commands" 2> "$FOLDER/errors"
    grep -q 'march=x86-64-v3.*-c gpu/main.c' "$FOLDER/commands" && ! grep -q 'march=native' "$FOLDER/commands"
}

# A program that does as told: it notes its arguments, writes a result, and hangs in the last stage.
make_program() {
    cat > "$FOLDER/program" << 'END'
#!/bin/sh
echo "$@" >> "$(dirname "$0")/arguments"
stage=$4
echo '{"found":1}' > "$2/$stage.jsonl"
[ "$stage" != models ] || exec sleep 100
echo "gpu-check: 0 failures"
END
    chmod +x "$FOLDER/program"
}

# In the place of the shell that calls it, which can be signalled then.
run_check() {
    exec > "$FOLDER/text" 2>&1
    exec env OUT="$FOLDER/results" STAGES="primitives models" TYPES=fp16,bf16 MODELS=bert BATCHES=1,8 LIST=some/list \
        SOURCES_HASH="$1" SECONDS_MOST=10 sh gpu/gpu_check.sh "$FOLDER/program"
}

what_ended_is_packed() {
    run_check one &
    child=$!
    await $child test -s "$FOLDER/results/models.jsonl"
    kill -TERM $child
    ! wait $child || return 1
    tar -tzf "$FOLDER/results.tar.gz" > "$FOLDER/list"
    grep -q results/primitives.jsonl "$FOLDER/list" && grep -q results/models.jsonl "$FOLDER/list"
}

choices_are_passed_on() {
    grep -q -e '--stage primitives --seconds 5 .*--sources one --types fp16,bf16 --models bert --batches 1,8 --list some/list' \
        "$FOLDER/arguments"
}

other_sources_begin_anew() {
    sed -i 's/ || exec sleep 100//' "$FOLDER/program"
    (run_check two) || return 1
    [ -f "$FOLDER/results.before/primitives.jsonl" ] && [ "$(cat "$FOLDER/results/sources")" = two ]
}

# Before anything is measured, the device looked for among it.
names_are_looked_at_first() {
    error_is 2 "gpu-check: --models: there is no 'resnet5'" \
        "$OUT/tests/cuda/gpu_links" --out "$FOLDER" --types fp16,tf32 --models bert,resnet5,vit &&
        error_is 2 "gpu-check: --types: there is no 'fp61'" "$OUT/tests/cuda/gpu_links" --out "$FOLDER" --types bf16,fp61 &&
        STAGES="primitives modles" OUT="$FOLDER/results" SOURCES_HASH=one \
            error_is 2 "gpu-check: no stage is called modles" sh gpu/gpu_check.sh false
}

make_program
check "the GPU's program is built for the processor that ARCH names" builds_for_the_named_processor
check "what ends a run leaves what there was in the archive" what_ended_is_packed
check "stages, types and models are passed on" choices_are_passed_on
check "results of other sources are put aside" other_sources_begin_anew
check "names are looked at first" names_are_looked_at_first
finish
