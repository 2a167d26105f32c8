#!/bin/sh
# What less flash costs in quality, as a table: policies of two models for a Cortex-M4 whose rules and costs
# fit in so many bytes.
#
#   GRAFT=out/release/graft sh tests/firmware/flash.sh FOLDER
#
# Takes two minutes of a processor; what is made goes to FOLDER.
set -eu

: "${GRAFT:=out/release/graft}"
cat << 'END'

## What less flash costs

`graft policy dscnn,resnet8 --device cortex-m4 --max-flash N`: what the models cost by recorded instructions
after the policy, in percent of the graph as given. Greedy search, which knows every cost, is what a policy
can hope for.

| flash, KiB | rules | rows of costs | dscnn | resnet8 |
|---|---|---|---|---|
END
for kib in 16 40 112; do
    "$GRAFT" policy dscnn,resnet8 --device cortex-m4 --out "$1/flash$kib" --max-flash $((kib * 1024)) --quiet > "$1/flash$kib.txt"
    awk -v kib=$kib '
        / rules in / { rules = $2; rows = $7 }
        $1 == "dscnn" || $1 == "resnet8" { greedy[$1] = $2; policy[$1] = $4 }
        END {
            printf "| %s | %s | %s | %s %% | %s %% |\n", kib, rules, rows, policy["dscnn"], policy["resnet8"]
            if (kib == 112) printf "| greedy search | | | %s %% | %s %% |\n", greedy["dscnn"], greedy["resnet8"]
        }' "$1/flash$kib.txt"
done
cat << 'END'

The rules that these models use fit into the least of them; more rules are for other models. Above 100 % the
policy made the model dearer than it was.
END
