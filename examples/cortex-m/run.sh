#!/bin/sh
# Builds the keyword spotter for a Cortex-M4 and runs it in QEMU, which counts its instructions.
#
#   GRAFT=out/release/graft sh examples/cortex-m/run.sh FOLDER [MODEL]
#
# Runs in the root of the project; builds go to FOLDER. Exit status 77 when a tool is missing.
set -eu

: "${GRAFT:=out/release/graft}"
folder=$1
model=${2:-dscnn}
firmware=tests/firmware # Start-up code, memory map and output of the board.
for tool in arm-none-eabi-gcc qemu-system-arm; do
    if ! command -v $tool > /dev/null; then
        echo "the microcontroller's example needs $tool (packages gcc-arm-none-eabi qemu-system-arm)"
        exit 77
    fi
done

"$GRAFT" --quiet emit-policy rules/policies/intel-xeon-6-167-avx512.graft "$folder/graft_policy.h" --name zoo
"$GRAFT" --quiet emit-graph "$model" "$folder/graft_graph.h" --name net --weights "$folder/graft_weights.h"
flags="-std=c99 -Wall -Wextra -Werror -pedantic -O2 -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard
    -ffreestanding -ffunction-sections -fdata-sections -fno-tree-loop-distribute-patterns"
for source in examples/cortex-m/main.c $firmware/mps2_an386.c; do
    # shellcheck disable=SC2086 # Words.
    arm-none-eabi-gcc $flags -I"$folder" -Iinclude -I. -c $source -o "$folder/$(basename $source .c).o"
done
arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -nostdlib -Wl,--gc-sections \
    -T $firmware/mps2_an386.ld "$folder/main.o" "$folder/mps2_an386.o" -lgcc \
    -o "$folder/spotter.elf"
arm-none-eabi-size "$folder/spotter.elf" | awk 'NR == 2 { print "flash " $1 + $2 " bytes" }'
timeout 900 qemu-system-arm -M mps2-an386 -display none -monitor none -serial none -icount shift=0 \
    -chardev "file,id=output,path=$folder/output.txt" \
    -semihosting-config enable=on,target=native,chardev=output -kernel "$folder/spotter.elf" < /dev/null
cat "$folder/output.txt"
