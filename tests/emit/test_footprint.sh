#!/bin/sh
# The engine on a Cortex-M4 keeps to its budgets, and docs/footprint.md has the rows of today.
. tests/support/tap.sh

keeps_to_budgets() {
    mkdir "$FOLDER/f" && sh tests/firmware/footprint.sh "$FOLDER/f" > "$FOLDER/page.md"
}
# Compilers differ in bytes: what is compared is what is measured.
is_committed() {
    grep '^|' "$FOLDER/page.md" | cut -d'|' -f2 > "$FOLDER/now"
    sed '/^## /,$d' docs/footprint.md | grep '^|' | cut -d'|' -f2 | cmp - "$FOLDER/now"
}
if command -v arm-none-eabi-gcc > /dev/null && command -v qemu-system-arm > /dev/null; then
    check "budgets" keeps_to_budgets
    check "docs/footprint.md" is_committed
else
    skip "budgets" "the footprint needs packages gcc-arm-none-eabi and qemu-system-arm"
fi
finish
