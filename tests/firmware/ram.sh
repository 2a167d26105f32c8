#!/bin/sh
# Whether a graph's header says of memory what compilers say: on this computer and on a Cortex-M4, with ids
# of 32 and of 16 bits.
#
#   sh tests/firmware/ram.sh FOLDER [FLAGS]
#
# FOLDER holds graft_policy.h and graft_graph.h, the latter by `graft emit-graph --policy`. Builds go there.
# FLAGS are for all compilers. Exit status 77 when tools for the Cortex-M4 are missing: this computer was
# asked all the same; 1 when a figure differs, which is printed.
set -eu

folder=$1
flags="-std=c99 -Wall -Wextra -Werror -pedantic -Os ${2:-}"
here=$(dirname "$0")
bare="-mcpu=cortex-m4 -mthumb -ffreestanding -fno-builtin -fno-tree-loop-distribute-patterns -ffunction-sections -fdata-sections"

# `agrees LESS`: the program's line in FOLDER/line against the header, of which LESS bytes may be too many.
agrees() {
    awk -v less="$1" '
        NR == FNR { if (/^ \*   bits/) for (i = 6; i < 14; i += 2) key[++columns] = $i $(i + 1)
                    if (/^ \*   in all/) for (i = 1; i <= columns; i++) all[key[i]] = $(i + 3)
                    next }
        { total = all[$1 "," $2]; found = 1
          if ($4 != $6 || $7 - $5 < 0 || $7 - $5 > less || total - $3 - $4 - $5 != $7 - $5 || $8 != "ok") {
              print "takes, and is said to take: " $0 "; in all " total; bad = 1
          } }
        END { exit bad || !found }' "$folder/graft_graph.h" "$folder/line"
}

# shellcheck disable=SC2086 # Options are split into words on purpose.
on_host() { # FLAGS
    gcc $flags $1 -I"$folder" -I"$here/../../include" "$here/ram.c" "$here/host.c" -o "$folder/ram"
    "$folder/ram" > "$folder/line"
    agrees 0
}

# shellcheck disable=SC2086
on_board() { # FLAGS LESS
    arm-none-eabi-gcc $flags $1 $bare -nostdlib -Wl,--gc-sections,--no-enum-size-warning -I"$folder" -I"$here/../../include" \
        -T "$here/mps2_an386.ld" "$here/ram.c" "$here/mps2_an386.c" -lgcc -o "$folder/ram.elf"
    timeout 900 qemu-system-arm -M mps2-an386 -display none -monitor none -serial none \
        -chardev "file,id=output,path=$folder/output" \
        -semihosting-config enable=on,target=native,chardev=output -kernel "$folder/ram.elf" < /dev/null
    grep -a -v '^#' "$folder/output" | head -n 1 > "$folder/line"
    agrees "$2"
}

large=
grep -q '^#error .*GRAFT_SMALL_GRAPHS' "$folder/graft_graph.h" || large=1
on_host -DGRAFT_SMALL_GRAPHS
[ -z "$large" ] || on_host ""
for tool in arm-none-eabi-gcc qemu-system-arm; do
    command -v $tool > /dev/null || exit 77
done
# With short enums, which are this compiler's default, a report is 8 bytes smaller.
on_board "-DGRAFT_SMALL_GRAPHS -fno-short-enums" 0
on_board -DGRAFT_SMALL_GRAPHS 8
[ -z "$large" ] || on_board -fno-short-enums 0
