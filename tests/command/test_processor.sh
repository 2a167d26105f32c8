#!/bin/sh
# A program that was built for newer processors says so instead of dying of an unknown instruction.
. tests/support/tap.sh

cat > "$FOLDER/newer.c" << 'END'
#include "graph/base/processor.h"
#include <stdio.h>
int main(void)
{
    graft_processor_check(GRAFT_PROCESSOR_NEEDS);
    (void)printf("ran\n");
    return 0;
}
END
# XOP was in a few processors of one maker, and is no more.
refuses_xop() {
    gcc -I. -march=x86-64 -mxop "$FOLDER/newer.c" graph/base/processor.c -o "$FOLDER/newer" &&
        error_is 1 "built for processors with " "$FOLDER/newer" && grep -q 'which this one lacks; build Graft' "$FOLDER/err"
}
runs_anywhere() {
    gcc -I. -march=x86-64 "$FOLDER/newer.c" graph/base/processor.c -o "$FOLDER/any" &&
        gives 0 "$FOLDER/any" && [ "$(cat "$FOLDER/out")" = ran ]
}
refuses_in_an_emulator() { error_is 1 "built for processors with AVX, which this one lacks" qemu-x86_64 -cpu Nehalem "$GRAFT" version; }

if [ "$(uname -m)" != x86_64 ]; then
    skip "refusing" "not an x86-64 machine"
    finish
    exit
fi
if grep -qw xop /proc/cpuinfo; then
    skip "a processor that lacks something" "this one has XOP"
else
    check "a processor that lacks something" refuses_xop
fi
check "one that lacks nothing" runs_anywhere
if [ "$MODE" = release ] && command -v qemu-x86_64 > /dev/null && grep -qw avx /proc/cpuinfo; then
    check "the program on an older processor" refuses_in_an_emulator
else
    skip "the program on an older processor" "no qemu-x86_64 here (package qemu-user), or not a release build with AVX"
fi
finish
