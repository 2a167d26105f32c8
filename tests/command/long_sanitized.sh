#!/bin/sh
# All that `make test` runs, once more with the address and undefined-behaviour sanitizers.
. tests/support/tap.sh

passes() {
    make --no-print-directory test MODE=asan ONLY= > "$FOLDER/out" 2>&1 && return 0
    grep -v '^compile \|^link \|^ok ' "$FOLDER/out"
    return 1
}

if [ "$MODE" = asan ]; then
    skip "every test under sanitizers" "MODE=asan: make test is that"
else
    check "every test under sanitizers" passes
fi
finish
