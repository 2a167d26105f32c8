#!/bin/sh
# The program of `make gpu-check` where there is no GPU: it builds with what out/gpu-bundle holds and
# little else, stops with a clear message, and goes through all of its stages for a GPU that is only
# described, on the stand-in for the driver.
# shellcheck source=tests/support/tap.sh
. tests/support/tap.sh

# A compiler that finds none of the packages that a machine with a GPU may lack.
hidden_compiler() {
    cat > "$FOLDER/gcc" << 'EOF'
#!/bin/sh
case " $* " in
*' -l'z3* | *' -l'yaml* | *' -l'dnnl* | *' -l'openblas* | *' -l'protobuf-c* | *' -l'xxhash* | *' -l'cmocka*)
    echo "hidden library: $*" >&2
    exit 1
    ;;
esac
exec gcc -isystem "$(dirname "$0")/hidden" "$@"
EOF
    chmod +x "$FOLDER/gcc"
    mkdir -p "$FOLDER/hidden"
    for header in z3 yaml cblas dnnl cmocka; do
        echo "#error $header.h is hidden" > "$FOLDER/hidden/$header.h"
    done
}

no_gpu_is_said() {
    make -s gpu-check CC="$FOLDER/gcc" > "$FOLDER/text" 2>&1 && return 1
    cat "$FOLDER/text"
    grep -q 'gpu-check: no GPU' "$FOLDER/text"
}

dry_run_is_complete() {
    rm -rf out/gpu-dry out/gpu-dry.tar.gz
    "$GRAFT" --quiet cost close dscnn --device h200-fp16 --list "$FOLDER/list" || return 1
    make -s gpu-dry TYPES=fp16 MODELS=squeezenet,bert BATCHES=1,8 SECONDS_MOST=1200 LIST="$FOLDER/list" \
        STAGES="memory primitives ceilings costs models" || return 1
    grep -q '"planned": [1-9]' out/gpu-dry/primitives.jsonl &&
        grep -q '"planned": "' out/gpu-dry/ceilings.jsonl &&
        grep -q '"planned": [1-9]' out/gpu-dry/costs.jsonl &&
        grep -q '"model": "bert", "type": "fp16", "dry_before_signatures": [1-9]' out/gpu-dry/models.jsonl &&
        grep -q '"model": "bert@8", "type": "fp16", "dry_before_signatures": [1-9]' out/gpu-dry/models.jsonl &&
        ! grep -q '_ns"' out/gpu-dry/*.jsonl && tar -tzf out/gpu-dry.tar.gz > /dev/null
}

if ! [ -f "$(dirname "$GRAFT")/graft-cuda.so" ]; then
    skip "gpu-check" "built without CUDA"
elif nvidia-smi > /dev/null 2>&1; then
    skip "gpu-check" "there is a GPU here: run make gpu-check"
else
    hidden_compiler
    rm -rf out/gpu
    check "the bundle is complete" make -s gpu-bundle
    check "builds with little, and says that there is no GPU" no_gpu_is_said
    check "a dry run goes through every stage, and nothing in it is a time" dry_run_is_complete
fi
finish
