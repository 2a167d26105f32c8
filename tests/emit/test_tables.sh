#!/bin/sh
# Tables of node costs and databases that hold what rewriting reaches, from outside.
set -u

. tests/support/tap.sh
DEVICE=intel-xeon-6-207-avx512
TABLE="$FOLDER/two.tariff"
COSTS="$FOLDER/own.costs"

value_of() { # KEY FILE
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | tail -n 1
}

# Greedy over the table alone finds what greedy over prices finds.
makes_a_table() {
    gives 0 "$GRAFT" --quiet --json cost table dscnn,resnet8 --device $DEVICE --out "$TABLE" &&
        [ "$(wc -l < "$FOLDER/out")" -eq 2 ] && [ -s "$TABLE" ] &&
        [ "$(value_of table_ns "$FOLDER/out")" = "$(value_of greedy_ns "$FOLDER/out")" ] &&
        [ "$(value_of table_guessed "$FOLDER/out")" = 0 ]
}
makes_the_same_again() {
    gives 0 "$GRAFT" --quiet --threads 1 cost table dscnn,resnet8 --device $DEVICE --out "$FOLDER/again" &&
        cmp "$TABLE" "$FOLDER/again" && grep -q "^cost by the database of '$DEVICE'" "$FOLDER/out" &&
        grep -q '^dscnn .*%' "$FOLDER/out"
}
keeps_to_bytes() {
    gives 0 "$GRAFT" --quiet cost table dscnn --device $DEVICE --bytes 240 --out "$FOLDER/small" &&
        grep -q 'rows and a fallback, \(23[0-9]\|240\) bytes' "$FOLDER/out"
}
searches_by_it() {
    gives 0 "$GRAFT" optimize dscnn "$FOLDER/x.onnx" --device $DEVICE --search table --table "$TABLE" &&
        grep -q '^  BatchNormalization  *9 ->  *0$' "$FOLDER/out" &&
        grep -q 'of which 0 of [0-9]* and 0 of [0-9]* are estimates' "$FOLDER/out" &&
        grep -q 'graft: table .*"dscnn", "resnet8".* 0 of [0-9]* steps rest on its fallback' "$FOLDER/err"
}
refuses_damage() {
    head -c 300 "$TABLE" > "$FOLDER/half"
    error_is 2 "half: byte" "$GRAFT" --quiet optimize dscnn "$FOLDER/none.onnx" --device $DEVICE \
        --search table --table "$FOLDER/half" &&
        gives 2 "$GRAFT" --quiet optimize dscnn "$FOLDER/none.onnx" --device $DEVICE --search table \
            --table "$FOLDER/x.onnx" && [ ! -e "$FOLDER/none.onnx" ]
}
# A recorded device cannot be measured: what it lacks is counted.
counts_estimates() {
    gives 0 "$GRAFT" --quiet --json cost close mobilenetv2 --device h200-bf16 --seconds 1000 &&
        [ "$(value_of reached "$FOLDER/out")" -gt 0 ] && [ "$(value_of measured "$FOLDER/out")" = 0 ] &&
        [ "$(value_of estimates "$FOLDER/out")" = "$(value_of reached "$FOLDER/out")" ] &&
        [ "$(value_of cut_short "$FOLDER/out")" = false ]
}
# Here it can; what has been measured is not measured again.
closes() {
    gives 0 "$GRAFT" --quiet --json cost close autoencoder --signatures 12 --database "$COSTS" &&
        [ "$(head -n 1 "$FOLDER/out" | sed 's/.*"estimates": \([0-9]*\).*/\1/')" = 0 ] &&
        cp "$COSTS" "$FOLDER/before" && "$GRAFT" cost show "$COSTS" > "$FOLDER/shown" &&
        [ "$(wc -l < "$FOLDER/shown")" -ge 12 ]
}
goes_on() {
    entries=$(value_of entries "$FOLDER/out")
    gives 0 "$GRAFT" --quiet --json cost close autoencoder --database "$COSTS" &&
        [ "$(value_of estimates "$FOLDER/out")" = 0 ] &&
        [ "$(value_of entries "$FOLDER/out")" -ge "$entries" ] &&
        gives 0 "$GRAFT" --quiet --json cost close autoencoder --database "$COSTS" &&
        [ "$(wc -l < "$FOLDER/out")" = 1 ] && [ "$(value_of reached "$FOLDER/out")" = 0 ]
}
refuses_nonsense() {
    error_is 2 "--seconds needs a number from 1" "$GRAFT" cost close dscnn --seconds 0 &&
        error_is 2 "no model" "$GRAFT" --quiet cost close nonesuch --device $DEVICE
}

# Whatever goes through a list of models for minutes looks at every name first.
looks_at_names_first() {
    for command in 'cost close' 'cost table' "policy --out $FOLDER/none" 'bench agents' \
        "bench order --out $FOLDER/none --models" "eval --out $FOLDER/none --models" 'cost calibrate --models'; do
        for name in nonesuch "$FOLDER/none.onnx" "$FOLDER"; do
            # shellcheck disable=SC2086 # A command and its option.
            error_is 2 "$(case $name in nonesuch) echo "graft: error: no model 'nonesuch'" ;; *) echo "graft: error: $name: cannot" ;; esac)" \
                timeout 60 "$GRAFT" --quiet $command "bert,vit,$name" || return 1
        done
    done
    error_is 2 "graft: error: --methods: no method 'beam_8': it is none of as given, policy" \
        timeout 60 "$GRAFT" --quiet eval --models bert --methods greedy,beam_8
}

check "makes a table" makes_a_table
check "looks at names first" looks_at_names_first
check "makes the same again" makes_the_same_again
check "keeps to bytes" keeps_to_bytes
check "searches by it" searches_by_it
check "refuses damage" refuses_damage
check "counts estimates" counts_estimates
check "closes" closes
check "goes on" goes_on
check "refuses nonsense" refuses_nonsense
finish
