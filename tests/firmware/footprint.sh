#!/bin/sh
# What the engine takes on a Cortex-M4 with the committed policy, as a page, held against budgets.
#
#   GRAFT=out/release/graft sh tests/firmware/footprint.sh FOLDER > docs/footprint.md
#
# Runs in the root of the project; builds go to FOLDER. Exit status 1 when a budget is passed, each named
# on stderr; 77 when a tool is missing.
set -eu

: "${GRAFT:=out/release/graft}"
folder=$1
here=tests/firmware
policy=rules/policies/intel-xeon-6-167-avx512.graft
passed=0
USUAL="-DGRAFT_WITHOUT_NETWORK -DGRAFT_SMALL_GRAPHS -DGRAFT_WITHOUT_TEXTS"
OPTIONS="$USUAL -DGRAFT_WITHOUT_CHECKS -DGRAFT_WITHOUT_KEEPING -DGRAFT_WITHOUT_PLANS -DGRAFT_NEAR_WEIGHTS"
# What a runtime of convolutional nets on a microcontroller has.
OPERATORS="--operators conv,conv_bias,conv_bias_add,matmul,matmul_bias,scale_shift,relu,clip,add,mul,max_pool,avg_pool,global_avg_pool,reduce_mean,reshape,transpose,softmax"
# What may not be passed, and what is aimed at.
TEXT_MOST=16384 TEXT_AIM=16384
STACK_MOST=1024 STACK_AIM=2048
DSCNN_MOST=21952 DSCNN_AIM=24576
RESNET_MOST=65536 RESNET_AIM=65536
DECISION_MOST=700000

for tool in arm-none-eabi-gcc qemu-system-arm; do
    if ! command -v $tool > /dev/null; then
        echo "the footprint needs $tool (packages gcc-arm-none-eabi qemu-system-arm)" >&2
        exit 77
    fi
done

# build NAME MODEL SOURCE: the program SOURCE with the graph of MODEL.
# shellcheck disable=SC2086 # The options are split into words on purpose.
build() {
    mkdir -p "$folder/$1"
    "$GRAFT" --quiet emit-policy $policy "$folder/$1/graft_policy.h" --name zoo $OPERATORS
    "$GRAFT" --quiet emit-graph "$2" "$folder/$1/graft_graph.h" --name net
    for source in "$3" mps2_an386.c; do
        arm-none-eabi-gcc -std=c99 -mcpu=cortex-m4 -mthumb -Os -g $OPTIONS -ffreestanding -fno-builtin \
            -fno-tree-loop-distribute-patterns -ffunction-sections -fdata-sections -fcallgraph-info=su \
            -I"$folder/$1" -Iinclude -c "$here/$source" -o "$folder/$1/${source%.c}.o"
    done
    arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -nostdlib -Wl,--gc-sections -T $here/mps2_an386.ld \
        "$folder/$1/${3%.c}.o" "$folder/$1/mps2_an386.o" -lgcc -o "$folder/$1/image.elf"
    timeout 900 qemu-system-arm -M mps2-an386 -display none -monitor none -serial none -icount shift=0 \
        -chardev "file,id=output,path=$folder/$1/output.txt" \
        -semihosting-config enable=on,target=native,chardev=output -kernel "$folder/$1/image.elf" < /dev/null
}

# Bytes of the symbols of graft's own of these types.
symbols() { # TYPES PATTERN [NAME]
    arm-none-eabi-nm -S "$folder/${3:-run}/image.elf" | awk -v types="$1" -v pattern="$2" '
        function decimal(hex,    i, sum) {
            for (i = 1; i <= length(hex); i++) sum = sum * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return sum
        }
        NF == 4 && index(types, $3) && $4 ~ pattern { sum += decimal($2) }
        END { print sum + 0 }'
}

# Bytes of the engine's text by the file of the function, by name. What is only called from one place is part
# of its caller.
parts() {
    arm-none-eabi-nm -S -l "$folder/run/image.elf" | awk '
        function decimal(hex,    i, sum) {
            for (i = 1; i <= length(hex); i++) sum = sum * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return sum
        }
        $3 ~ /[tT]/ && $4 ~ /^graft_/ {
            file = $5
            sub(/:.*/, "", file)
            sub(/.*\//, "", file)
            sum[file] += decimal($2)
        }
        END { for (file in sum) print sum[file], file }' | sort -k2 | awk '{ print "| " $2 " | " $1 " |" }'
}

# The deepest path from graft_optimize by the compiler's frames. An indirect call goes to a row of a
# table: any function that nothing calls by name.
stack() {
    awk -F '"' '
        /^node:/ { if (match($0, /[0-9]+ bytes/)) frame[$2] = substr($0, RSTART, RLENGTH) + 0 }
        /^edge:/ { calls[$2] = calls[$2] " " $4; called[$4] = 1 }
        function deepest(f,    list, count, i, below, most) {
            if (f in known) return known[f]
            known[f] = 0 # There is no recursion; a cycle would show as too little.
            count = split(calls[f], list, " ")
            for (i = 1; i <= count; i++) {
                below = list[i] == "__indirect_call" ? indirect : deepest(list[i])
                if (below > most) most = below
            }
            return known[f] = most + frame[f]
        }
        END {
            for (f in frame) if (!(f in called) && f ~ /:graft_own_/ && frame[f] > indirect) indirect = deepest(f)
            for (f in frame) if (f ~ /(^|:)graft_optimize(_small)?$/) print deepest(f)
        }' "$folder/run/main.ci"
}

value() { sed -n "s/^$1 //p" "$folder/$2/output.txt"; }
row() { # WHAT NUMBER MOST AIM
    printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "$4"
    if ! [ "$2" -le "$3" ]; then # Nothing measured is no pass, either.
        echo "footprint: $1: '$2', the budget is $3" >&2
        passed=1
    fi
}

# What the engine with every operator calls and is not its own: no division of 64 bits, for which a compiler's
# library has 0.9 KB.
calls_little() {
    printf '#define GRAFT_IMPLEMENTATION\n#include "graft/graft.h"\n' > "$folder/engine.c"
    arm-none-eabi-gcc -std=c99 -mcpu=cortex-m4 -mthumb -Os -ffreestanding -fno-builtin -Iinclude -c "$folder/engine.c" -o "$folder/engine.o"
    called=$(arm-none-eabi-nm -u "$folder/engine.o" | awk '{ print $2 }' | tr '\n' ' ')
    if [ "$called" != "memcpy memset " ]; then
        echo "footprint: the engine calls $called" >&2
        passed=1
    fi
}

# The smallest build decides as the host's.
decides_alike() {
    gcc -std=c99 -O2 -I"$folder/run" -Iinclude $here/main.c $here/host.c -o "$folder/host"
    "$folder/host" | grep -a -v '^#' > "$folder/host.txt"
    grep -a -v '^#' "$folder/run/output.txt" > "$folder/firmware.txt"
    if ! diff "$folder/host.txt" "$folder/firmware.txt" >&2; then
        echo "footprint: the host decides otherwise" >&2
        passed=1
    fi
}

build run dscnn main.c
decides_alike
calls_little
smallest=$OPTIONS some=$OPERATORS
OPERATORS=
build whole dscnn main.c
OPTIONS=$USUAL
build usual dscnn main.c
OPTIONS=$smallest OPERATORS=$some
build dscnn dscnn sizes.c
build resnet50 resnet50 sizes.c
first=$(grep -a '^# instructions' "$folder/run/output.txt" | tail -1)
asked=${first##* }
instructions=${first#*: }
instructions=${instructions%%,*}
cat << 'END'
# Footprint

What the header takes on a Cortex-M4, built by Debian's arm-none-eabi-gcc with -Os and the seven macros of [embedding.md](embedding.md#memory)
that make it smaller, for a product with seventeen operators (`graft emit-policy --operators`), run in QEMU. `make footprint` writes this page and fails when a budget is passed or the host
decides otherwise; so does `make test`. The budget is what has
been reached, with some room; the aim is where it should be. Where the budget is above the aim, the gap is open.

| | now | budget | aim |
|---|---|---|---|
END
row "engine text, bytes" "$(symbols tT '^graft_')" $TEXT_MOST $TEXT_AIM
row "worst stack below graft_optimize, bytes" "$(stack)" $STACK_MOST $STACK_AIM
row "memory of DS-CNN's graph and workspace, bytes" $(($(value graph dscnn) + $(value workspace dscnn))) $DSCNN_MOST $DSCNN_AIM
row "memory of ResNet-50's graph and workspace, bytes" $(($(value graph resnet50) + $(value workspace resnet50))) $RESNET_MOST $RESNET_AIM
row "instructions of a decision on DS-CNN" $((instructions / asked)) $DECISION_MOST none
printf '\nWith every operator the text has %s bytes; with GRAFT_WITHOUT_NETWORK, GRAFT_SMALL_GRAPHS and GRAFT_WITHOUT_TEXTS alone %s.\n' \
    "$(symbols tT '^graft_' whole)" "$(symbols tT '^graft_' usual)"
printf '\nThe policy (rules, costs and its struct) takes %s bytes of flash, with every operator %s; tables of the engine take %s.\n' \
    "$(symbols rR '^graft_(zoo|policy)')" "$(symbols rR '^graft_(zoo|policy)' whole)" "$(symbols rR '^graft_own')"
printf "Of the compiler's library the engine calls memcpy and memset alone, whatever the macros.\n"
printf 'With %s bytes of workspace more, DS-CNN keeps from one decision to the next where rules do not fit; ResNet-50 with %s.\n' \
    $(($(value most dscnn) - $(value workspace dscnn))) $(($(value most resnet50) - $(value workspace resnet50)))
cat << 'END'

Where the text is, by the file in `include/graft/engine`:

| file | bytes |
|---|---|
END
parts
cat << 'END'

The stack is the sum of the compiler's frames along the deepest path of the call graph. Instructions are those of
the emulator: flash wait states and caches are not in them. Memory is for the limits that `graft emit-graph` writes,
half as many nodes again as the model has, and 64 steps.
END
exit $passed
