#!/bin/sh
# `make install` into a folder of its own: the installed program runs from elsewhere, a program compiles
# against the installed headers, another runs a
# model by the installed library, and nothing is left when it is removed. `make dist` gives the same
# bytes twice.
. tests/support/tap.sh

ROOT=$FOLDER/root
MAKE="make --no-print-directory OUT=$(dirname "$GRAFT") MODE=$MODE PREFIX=/opt/graft DESTDIR=$ROOT"
PROGRAM=$ROOT/opt/graft/bin/graft
ELSEWHERE=$FOLDER/elsewhere
device=$(sed -n '2s/.*"device": *"\([^"]*\)".*/\1/p' rules/costs/intel-xeon-6-207-avx512.costs)
mkdir "$ELSEWHERE"
printf 'rules:\n  - name: twice\n    source: relu(relu(a))\n    target: relu(a)\n' > "$ELSEWHERE/my.yaml"
cat > "$ELSEWHERE/product.c" << 'END'
#define GRAFT_IMPLEMENTATION
#include <graft/graft.h>
#include <stdio.h>
int main(void)
{
    (void)printf("%s %s\n", GRAFT_VERSION, graft_status_name(GRAFT_OK));
    return 0;
}
END
cat > "$ELSEWHERE/run.c" << 'END'
#include <graft/run.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    static float in[640], out[640];
    graft_run *run = NULL;
    graft_status status = graft_run_open(argv[argc - 1], NULL, &run);
    if (status == GRAFT_OK) {
        graft_run_tensor input = *graft_run_input(run, 0), output = *graft_run_output(run, 0);
        input.data = in;
        output.data = out;
        status = graft_run_once(run, &input, 1, &output, 1);
    }
    (void)printf("%s: %s %d\n", graft_status_name(status), graft_run_message(run), out[0] != 0);
    graft_run_close(run);
    return 0;
}
END

# What the program keeps goes to a folder of the test's.
away() { (cd "$ELSEWHERE" && XDG_CACHE_HOME=$FOLDER/cache && export XDG_CACHE_HOME && "$@"); }
# shellcheck disable=SC2086 # Words.
installs() {
    gives 0 $MAKE install && for file in bin/graft include/graft/graft.h include/graft/engine/match.h \
        share/graft/rules/graft.rules share/graft/train/settings.yaml share/pkgconfig/graft.pc \
        share/man/man1/graft.1 lib/libgraft_run.so share/bash-completion/completions/graft share/doc/graft/LICENSE; do
        [ -s "$ROOT/opt/graft/$file" ] || { echo "no $file"; return 1; }
    done
    [ -x "$ROOT/opt/graft/share/graft/devices/onnxruntime" ] || return 1
    [ ! -x "${GRAFT%/*}/examples/xnnpack/device" ] || away gives 0 "$PROGRAM" measure dscnn --rounds 3 --device xnnpack
}
lists() { away gives 0 "$PROGRAM" rules --count && grep -q '^all ' "$FOLDER/out"; }
optimizes() {
    away gives 0 "$PROGRAM" optimize autoencoder out.onnx --device "$device" && [ -s "$ELSEWHERE/out.onnx" ] &&
        grep -q 'predicted time 100 -> ' "$FOLDER/out"
}
verifies() { away gives 0 "$PROGRAM" verify my.yaml && grep -q '^twice: proved' "$FOLDER/out"; }
# A checkout of other sources in the working folder changes nothing.
keeps_its_own() {
    mkdir -p "$ELSEWHERE/rules" && echo nonsense > "$ELSEWHERE/rules/graft.rules" && lists
}
takes_others() {
    away error_is 2 "$ELSEWHERE/rules/graft.rules: " env GRAFT_DATA="$ELSEWHERE" "$PROGRAM" rules
}
refuses_relative() { error_is 2 "it has to begin with /" env PREFIX=here VERSION=1 sh packaging/install.sh install; }
MOVED="$ROOT/opt/moved there"
moves() { mv "$ROOT/opt/graft" "$MOVED" && PROGRAM=$MOVED/bin/graft && lists; }
moves_back() { mv "$MOVED" "$ROOT/opt/graft"; }
# compiles WHERE: what pkg-config says is quoted for a shell.
compiles() {
    flags=$(PKG_CONFIG_PATH=$1/share/pkgconfig pkg-config --cflags graft) &&
        eval "gcc -std=c99 -Wall -Wextra -Werror $flags" '"$ELSEWHERE/product.c" -o "$FOLDER/product"' &&
        [ "graft $("$FOLDER/product")" = "$("$GRAFT" version) ok" ]
}
# shellcheck disable=SC2086 # Words.
runs_models() {
    flags=$(PKG_CONFIG_PATH=$ROOT/opt/graft/share/pkgconfig pkg-config --cflags --libs graft-run) &&
        case $MODE in asan) flags="$flags -fsanitize=address,undefined" ;; esac &&
        gcc -std=c99 -Wall -Wextra -Werror "$ELSEWHERE/run.c" $flags -o "$FOLDER/run" &&
        LD_LIBRARY_PATH=$ROOT/opt/graft/lib && export LD_LIBRARY_PATH &&
        [ "$(away "$FOLDER/run" autoencoder)" = "ok:  1" ] &&
        [ "$(away "$FOLDER/run" none.onnx)" = "input/output error: none.onnx: cannot open: No such file or directory 0" ]
}
touch "$ELSEWHERE/mine"
# shellcheck disable=SC2086
uninstalls() {
    cp "$ELSEWHERE/mine" "$ROOT/opt/graft/bin/mine" && gives 0 $MAKE uninstall &&
        [ "$(find "$ROOT" ! -type d)" = "$ROOT/opt/graft/bin/mine" ] && [ -z "$(find "$ROOT" -name 'graft?*')" ] &&
        [ "$(find "$ROOT" -name graft)" = "$ROOT/opt/graft" ]
}
# shellcheck disable=SC2086
packs() {
    gives 0 $MAKE dist TARBALL="$FOLDER/one.tar.gz" && gives 0 $MAKE dist TARBALL="$FOLDER/two.tar.gz" &&
        cmp "$FOLDER/one.tar.gz" "$FOLDER/two.tar.gz" &&
        tar -tzf "$FOLDER/one.tar.gz" | grep -q '^graft-[0-9.]*/packaging/install.sh$'
}

check "install" installs
check "the installed program lists its rules" lists
check "optimises a model for a recorded device" optimizes
check "and proves a rule" verifies
check "a checkout in the working folder is not taken" keeps_its_own
check "GRAFT_DATA is" takes_others
check "the tree can be moved" moves
command -v pkg-config > /dev/null && check "and programs compile against it" compiles "$MOVED"
check "and back" moves_back
check "a relative prefix is refused" refuses_relative
if command -v pkg-config > /dev/null; then
    check "a program compiles through pkg-config" compiles "$ROOT/opt/graft"
    check "and one runs models by the library" runs_models
else
    skip "a program compiles through pkg-config" "no pkg-config here"
fi
check "uninstall leaves what is not its own, and nothing else" uninstalls
if git rev-parse HEAD > /dev/null 2>&1; then
    check "dist twice gives the same bytes" packs
else
    skip "dist twice gives the same bytes" "no git checkout here"
fi
finish
