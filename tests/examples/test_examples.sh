#!/bin/sh
# The programs in examples/: each is built as its reader would, runs, and says that outputs are the same.
. tests/support/tap.sh

POLICY=rules/policies/intel-xeon-6-167-avx512.graft
STRICT="-Wall -Wextra -Werror -pedantic"
has() { command -v "$1" > /dev/null; }

# The nodes of XNNPACK's graphs before and after, and what outputs are apart.
runs_with_xnnpack() { # MODEL
    gives 0 "$GRAFT" --quiet model "$1" "$FOLDER/$1.onnx" && gives 0 "$OUT/examples/xnnpack/run" "$FOLDER/$1.onnx" &&
        sed 's/^/# /' "$FOLDER/out" >&3 &&
        [ "$(sed -n 's/^xnnpack .*: \([0-9]*\) nodes.*/\1/p' "$FOLDER/out" | sort -n -u | wc -l)" = 2 ] &&
        grep -q 'rewrites in .* ms, 31 operators -> 14$\|rewrites in .* ms, 30 operators -> 14$' "$FOLDER/out"
}
refuses_with_xnnpack() {
    "$GRAFT" --quiet model squeezenet "$FOLDER/squeezenet.onnx" &&
        error_is 2 "(Concat): there is no such node in a subgraph of XNNPACK" "$OUT/examples/xnnpack/run" "$FOLDER/squeezenet.onnx"
}
runs_on_cortex_m() {
    mkdir "$FOLDER/m" && gives 0 sh examples/cortex-m/run.sh "$FOLDER/m" && sed 's/^/# /' "$FOLDER/out" >&3 &&
        grep -q '^nodes 31, ' "$FOLDER/out" && grep -q '^nodes 14, ' "$FOLDER/out" &&
        [ "$(sed -n 's/^nodes .* instructions \([0-9]*\),.*/\1/p' "$FOLDER/out" | sort -n | tail -1)" = \
            "$(sed -n 's/^nodes 31, instructions \([0-9]*\),.*/\1/p' "$FOLDER/out")" ]
}
# shellcheck disable=SC2086 # Words.
runs_in_cpp() {
    mkdir "$FOLDER/cpp" && gives 0 "$GRAFT" --quiet emit-policy $POLICY "$FOLDER/cpp/graft_policy.h" --name zoo --amalgamate &&
        cp examples/cpp/main.cc "$FOLDER/cpp" &&
        (cd "$FOLDER/cpp" && g++ -std=c++17 $STRICT main.cc -o main) && gives 0 "$FOLDER/cpp/main" &&
        grep -q '^nodes 1$' "$FOLDER/out"
}
# shellcheck disable=SC2086
runs_installed() {
    gives 0 make --no-print-directory OUT="$OUT" MODE="$MODE" PREFIX="$FOLDER/root" install &&
        cp -r examples/pkg-config "$FOLDER/elsewhere" &&
        gives 0 env PKG_CONFIG_PATH="$FOLDER/root/share/pkgconfig" make -C "$FOLDER/elsewhere" &&
        gives 0 "$FOLDER/elsewhere/spotter" && grep -q '^[0-9]* rules$' "$FOLDER/out"
}

exec 3>&1
if [ -x "$OUT/examples/xnnpack/run" ]; then
    check "XNNPACK runs DS-CNN" runs_with_xnnpack dscnn
    check "XNNPACK runs ResNet-8" runs_with_xnnpack resnet8
    check "what XNNPACK lacks is refused" refuses_with_xnnpack
else
    skip "XNNPACK" "the runtime on XNNPACK needs packages libxnnpack-dev and libpthreadpool-dev"
fi
if has arm-none-eabi-gcc && has qemu-system-arm; then
    check "a Cortex-M4" runs_on_cortex_m
else
    skip "a Cortex-M4" "the microcontroller's example needs packages gcc-arm-none-eabi and qemu-system-arm"
fi
if has g++; then
    check "C++17, one file" runs_in_cpp
else
    skip "C++17, one file" "it needs package g++"
fi
if has pkg-config; then
    check "an installed Graft" runs_installed
else
    skip "an installed Graft" "it needs package pkg-config"
fi
finish
