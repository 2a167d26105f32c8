#!/bin/sh
# Proves that a policy decides alike on the host and on a Cortex-M4, and on other processors.
#
#   sh tests/firmware/run.sh FOLDER
#
# FOLDER holds graft_policy.h and graft_graph.h, as `graft policy` writes them. The same program
# (main.c) is built with the host's C compiler as C99 and, with ids of 16 bits, for a Cortex-M4 that QEMU
# emulates; where the tools are there, also for those that `others` lists. What they print must be equal.
# Builds go to FOLDER. Prints sizes, and which of the others are missing; exit status 77 when a tool of the
# first two is missing, 1 when something differs or fails.
set -eu

folder=$1
here=$(dirname "$0")
include=$here/../../include
warnings="-Wall -Wextra -Werror -pedantic"
small="-DGRAFT_SMALL_GRAPHS -DGRAFT_WITHOUT_TEXTS"
bare="-ffreestanding -fno-builtin -fno-tree-loop-distribute-patterns -ffunction-sections -fdata-sections"

has() { command -v "$1" > /dev/null; }
for tool in gcc arm-none-eabi-gcc arm-none-eabi-size qemu-system-arm; do
    if ! has $tool; then
        echo "the firmware proof needs $tool (packages gcc gcc-arm-none-eabi qemu-system-arm)"
        exit 77
    fi
done

# NAME; packages; how it runs ("board": as the Cortex-M4); compiler, options and platform.
others() {
    cat << END
host_slow;;;gcc -std=c99 -O0 $here/host.c
host_small;;;gcc -std=c99 -Os $small $here/host.c
host_fast;;;gcc -std=c99 -O3 $here/host.c
host_clang;clang;;clang -std=c99 -O2 $here/host.c
host_cpp;g++;;g++ -std=c++11 -O2 -x c++ $here/host.c
cortex_m0plus;gcc-arm-none-eabi;board;arm-none-eabi-gcc -std=c99 -Os $small $bare -mcpu=cortex-m0plus -mthumb -nostdlib -Wl,--gc-sections -T $here/mps2_an386.ld $here/mps2_an386.c
armhf;gcc-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user;qemu-arm;arm-linux-gnueabihf-gcc -std=c99 -O2 -static $here/host.c
aarch64;gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user;qemu-aarch64;aarch64-linux-gnu-gcc -std=c99 -O3 -static $here/host.c
riscv64;gcc-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user;qemu-riscv64;riscv64-linux-gnu-gcc -std=c99 -O2 -static $here/host.c
riscv32;gcc-riscv64-unknown-elf qemu-user;qemu-riscv32;riscv64-unknown-elf-gcc -std=c99 -Os $small $bare -march=rv32imac -mabi=ilp32 -nostdlib -Wl,--no-relax,--no-warn-rwx-segments $here/linux_rv32.c
big_endian;gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user;qemu-s390x;s390x-linux-gnu-gcc -std=c99 -O2 -static $here/host.c
END
}

run_board() { # NAME
    timeout 900 qemu-system-arm -M mps2-an386 -display none -monitor none -serial none \
        -icount shift=0 -chardev "file,id=output,path=$folder/$1.txt" \
        -semihosting-config enable=on,target=native,chardev=output \
        -kernel "$folder/$1.elf" < /dev/null
}

# Into NAME.elf and NAME.txt; 77 when a tool is missing.
# shellcheck disable=SC2086 # The lists are split into words on purpose.
build() { # NAME RUNNER COMPILER...
    name=$1
    runner=$2
    shift 2
    has "$1" || return 77
    [ -z "$runner" ] || [ "$runner" = board ] || has "$runner" || return 77
    libgcc=
    case " $* " in *" -nostdlib "*) libgcc=-lgcc ;; esac
    "$@" $warnings -I"$folder" -I"$include" "$here/main.c" -o "$folder/$name.elf" $libgcc
    if [ "$runner" = board ]; then
        run_board "$name"
    else
        $runner "$folder/$name.elf" > "$folder/$name.txt"
    fi
}

# shellcheck disable=SC2086
build_firmware() {
    flags="-std=c99 $warnings $small -mcpu=cortex-m4 -mthumb -Os $bare -fstack-usage"
    arm-none-eabi-gcc $flags -I"$folder" -I"$include" -c "$here/main.c" -o "$folder/firmware.o"
    arm-none-eabi-gcc $flags -c "$here/mps2_an386.c" -o "$folder/startup.o"
    arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -nostdlib -Wl,--gc-sections \
        -T "$here/mps2_an386.ld" "$folder/firmware.o" "$folder/startup.o" -lgcc \
        -o "$folder/firmware.elf"
    run_board firmware
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
missing=
build host "" gcc -std=c99 -O2 "$here/host.c"
build_firmware
others > "$folder/others"
while IFS=';' read -r name packages runner command; do
    status=0
    # shellcheck disable=SC2086
    build "$name" "$runner" $command || status=$?
    case $status in
    0) names="$names $name" ;;
    77) missing="$missing; $name needs $packages" ;;
    *) exit 1 ;;
    esac
done < "$folder/others"
for name in $names; do
    grep -a -v '^#' "$folder/$name.txt" > "$folder/$name.decisions" || true
    if ! cmp -s "$folder/host.decisions" "$folder/$name.decisions"; then
        echo "host and $name decide differently:"
        diff "$folder/host.decisions" "$folder/$name.decisions"
        exit 1
    fi
done
[ -z "$missing" ] || echo "left out: ${missing#; }"
grep -a -c '^rule' "$folder/host.decisions" | sed "s/\$/ decisions are the same for: $names/"
print_sizes
