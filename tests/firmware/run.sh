#!/bin/sh
# Proves that a policy decides alike on the host and on a Cortex-M4.
#
#   sh tests/firmware/run.sh FOLDER
#
# FOLDER holds graft_policy.h and graft_graph.h, as `graft policy` writes them. The same program
# (main.c) is built with the host's C compiler as C99 and, with ids of 16 bits, for a Cortex-M4 that QEMU
# emulates; where the tools are there, also with the host's C++ compiler (package g++) and for a big-endian processor
# (gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user). What they print must be equal. Builds go to
# FOLDER. Prints sizes; exit status 77 when a tool is missing, 1 when something differs or fails.
set -eu

folder=$1
here=$(dirname "$0")
include=$here/../../include
warnings="-Wall -Wextra -Werror -pedantic"

has() { command -v "$1" > /dev/null; }
for tool in gcc arm-none-eabi-gcc arm-none-eabi-size qemu-system-arm; do
    if ! has $tool; then
        echo "the firmware proof needs $tool (packages gcc gcc-arm-none-eabi qemu-system-arm)"
        exit 77
    fi
done

# shellcheck disable=SC2086 # The lists are split into words on purpose.
build_host() { # NAME COMPILER...
    name=$1
    shift
    "$@" $warnings -O2 -I"$folder" -I"$include" -c "$here/main.c" -o "$folder/$name.o"
    gcc -std=c99 $warnings -c "$here/host.c" -o "$folder/platform.o"
    "$1" "$folder/$name.o" "$folder/platform.o" -o "$folder/$name"
    "$folder/$name" > "$folder/$name.txt"
}

# shellcheck disable=SC2086
build_big_endian() {
    s390x-linux-gnu-gcc -std=c99 $warnings -O2 -static -I"$folder" -I"$include" "$here/main.c" \
        "$here/host.c" -o "$folder/big_endian"
    qemu-s390x "$folder/big_endian" > "$folder/big_endian.txt"
}

# shellcheck disable=SC2086
build_firmware() {
    flags="-std=c99 $warnings -DGRAFT_SMALL_GRAPHS -DGRAFT_WITHOUT_TEXTS -mcpu=cortex-m4 -mthumb -Os -ffreestanding -fno-builtin
        -fno-tree-loop-distribute-patterns -ffunction-sections -fdata-sections -fstack-usage"
    arm-none-eabi-gcc $flags -I"$folder" -I"$include" -c "$here/main.c" -o "$folder/firmware.o"
    arm-none-eabi-gcc $flags -c "$here/mps2_an386.c" -o "$folder/startup.o"
    arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -nostdlib -Wl,--gc-sections \
        -T "$here/mps2_an386.ld" "$folder/firmware.o" "$folder/startup.o" -lgcc \
        -o "$folder/firmware.elf"
}

run_firmware() {
    timeout 900 qemu-system-arm -M mps2-an386 -display none -monitor none -serial none \
        -icount shift=0 -chardev "file,id=output,path=$folder/firmware.txt" \
        -semihosting-config enable=on,target=native,chardev=output \
        -kernel "$folder/firmware.elf" < /dev/null
}

# Where the flash goes, by the names of symbols; the largest stack frames; what the image says.
print_sizes() {
    arm-none-eabi-size "$folder/firmware.elf" |
        awk 'NR == 2 { print "flash of the whole image: " $1 + $2 " bytes" }'
    arm-none-eabi-nm -S "$folder/firmware.elf" | awk '
        function decimal(hex,    i, sum) {
            for (i = 1; i <= length(hex); i++) sum = sum * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return sum
        }
        NF == 4 && $3 ~ /[tT]/ { code += decimal($2) }
        NF == 4 && $3 ~ /[rR]/ {
            if ($4 ~ /^graft_graph_/) graph += decimal($2)
            else if ($4 ~ /^graft_/) policy += decimal($2)
            else tables += decimal($2)
        }
        END { print "of that: code " code ", policy " policy ", graph " graph ", other tables " tables " bytes" }'
    sort -t "$(printf '\t')" -k 2 -n -r "$folder/firmware.su" | head -3 |
        awk -F '\t' '{ sub(/.*:/, "", $1); print "stack frame of " $1 ": " $2 " bytes" }'
    grep -a '^#' "$folder/firmware.txt" | sed 's/^# //'
}

names="host firmware"
build_host host gcc -std=c99
build_firmware
run_firmware
if has g++; then
    build_host host_cpp g++ -x c++ -std=c++11
    names="$names host_cpp"
fi
if has s390x-linux-gnu-gcc && has qemu-s390x; then
    build_big_endian
    names="$names big_endian"
fi
for name in $names; do
    grep -a -v '^#' "$folder/$name.txt" > "$folder/$name.decisions" || true
    if ! cmp -s "$folder/host.decisions" "$folder/$name.decisions"; then
        echo "host and $name decide differently:"
        diff "$folder/host.decisions" "$folder/$name.decisions"
        exit 1
    fi
done
grep -a -c '^rule' "$folder/host.decisions" | sed "s/\$/ decisions are the same for: $names/"
print_sizes
