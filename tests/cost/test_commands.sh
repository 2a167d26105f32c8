#!/bin/sh
# graft measure and graft cost from outside: a database recorded here, read as another machine's.
set -u

. tests/support/tap.sh
OWN="$FOLDER/own.costs"

value_of() { # KEY FILE
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2" | tail -n 1
}

# Names of devices have commas in them.
device_of() { tail -n 1 "$1" | sed 's/.*"device": *"\([^"]*\)".*/\1/'; }

measures() {
    "$GRAFT" --quiet measure resnet8 --rounds 3 --database "$OWN" --plot "$FOLDER/roof.svg" --json \
        > "$FOLDER/own.json" && [ -s "$OWN" ] && [ "$(value_of estimated "$FOLDER/own.json")" = 0 ] &&
        grep -q '"of_roofline"' "$FOLDER/own.json"
}
plots() {
    head -n 1 "$FOLDER/roof.svg" | grep -q '^<svg ' && tail -n 1 "$FOLDER/roof.svg" | grep -q '</svg>' &&
        [ "$(grep -c '<circle' "$FOLDER/roof.svg")" -ge 3 ] &&
        ! grep -q 'nan\|inf' "$FOLDER/roof.svg"
}
# The same sum without measuring anything, and the file stays as it is.
reads_a_recorded_device() {
    cp "$OWN" "$FOLDER/before" &&
        "$GRAFT" --quiet measure resnet8 --device "$(device_of "$FOLDER/own.json")" --database "$OWN" \
            --json > "$FOLDER/recorded.json" &&
        [ "$(value_of sum_ns "$FOLDER/own.json")" = "$(value_of sum_ns "$FOLDER/recorded.json")" ] &&
        [ "$(value_of measured_now "$FOLDER/recorded.json")" = 0 ] &&
        grep -q '"whole_ns": *null' "$FOLDER/recorded.json" && cmp "$OWN" "$FOLDER/before"
}
# Of another model little was recorded: the rest is estimated, and said to be.
estimates_what_it_lacks() {
    "$GRAFT" measure resnet18 --device "$(device_of "$FOLDER/own.json")" --database "$OWN" \
        > "$FOLDER/text" 2> "$FOLDER/log" && grep -q '~.*(estimated)' "$FOLDER/text" &&
        grep -q 'steps are estimates, marked ~' "$FOLDER/text" &&
        grep -q 'are estimates: its records lack them' "$FOLDER/log"
}
refuses_an_unknown_device() {
    ! "$GRAFT" measure resnet8 --device nonesuch --database "$OWN" 2> "$FOLDER/log" &&
        grep -q "device 'nonesuch' is neither this machine's" "$FOLDER/log"
}
merges() {
    "$GRAFT" --quiet measure autoencoder --rounds 3 --database "$FOLDER/other.costs" > "$FOLDER/text" &&
        "$GRAFT" cost merge "$FOLDER/both.costs" "$OWN" "$FOLDER/other.costs" &&
        [ "$("$GRAFT" cost show "$FOLDER/both.costs" | wc -l)" -gt \
            "$("$GRAFT" cost show "$OWN" | wc -l)" ]
}
shows_differences() {
    "$GRAFT" cost diff "$OWN" "$OWN" > "$FOLDER/text" && [ ! -s "$FOLDER/text" ] &&
        "$GRAFT" cost diff "$OWN" "$FOLDER/both.costs" > "$FOLDER/text" &&
        grep -q '^> ' "$FOLDER/text" && ! grep -q '^< ' "$FOLDER/text"
}
calibrates() {
    "$GRAFT" --quiet cost calibrate --models autoencoder,dscnn --database "$FOLDER/both.costs" \
        > "$FOLDER/text" && grep -q '^factors: products' "$FOLDER/text" &&
        [ "$("$GRAFT" cost show "$FOLDER/both.costs" | grep -c 'factor(')" = 7 ] &&
        "$GRAFT" --quiet measure autoencoder --rounds 3 --database "$FOLDER/both.costs" |
        grep -q 'corrected by factors fitted to'
}
# Two searches, each graph timed as a whole; what comes out is a model.
searches_in_passes() {
    "$GRAFT" optimize dscnn "$FOLDER/out.onnx" --passes 2 --database "$FOLDER/passes.costs" --json \
        > "$FOLDER/json" 2> "$FOLDER/log" && grep -q '"operators_before": 31, "operators_after": [12][0-9],' "$FOLDER/json" &&
        grep -q 'pass 1: predicted 0.* costs confirmed' "$FOLDER/log" &&
        grep -q 'pass 1: its graph takes 0\.[0-9]* +- ' "$FOLDER/log" && [ -s "$FOLDER/passes.costs" ] &&
        "$GRAFT" --quiet convert "$FOLDER/out.onnx" "$FOLDER/again.onnx"
}
refuses_passes() { # MESSAGE ARGUMENTS: nothing is written.
    message=$1
    shift
    ! "$GRAFT" --quiet optimize dscnn "$FOLDER/none.onnx" "$@" 2> "$FOLDER/log" && grep -q -- "$message" "$FOLDER/log" &&
        [ ! -e "$FOLDER/none.onnx" ]
}
refuses_passes_that_make_no_sense() {
    refuses_passes "needs a number from 1 to 16, has '0'" --passes 0 --database "$FOLDER/passes.costs" &&
        refuses_passes "not a policy" --passes 2 --policy nothing --database "$FOLDER/passes.costs" &&
        refuses_passes "is not here" --passes 2 --database "$OWN" --device "$(device_of "$FOLDER/own.json")"
}
# A benchmark keeps the figures of the models that it has when one fails.
keeps_figures() {
    ! "$GRAFT" --quiet bench order --models dscnn,nonesuch --out "$FOLDER/bench" > "$FOLDER/text" 2> "$FOLDER/log" &&
        grep -q 'in model nonesuch' "$FOLDER/log" && grep -q '"order.dscnn.right"' "$FOLDER/bench/order.json" &&
        cmp "$FOLDER/text" "$FOLDER/bench/order.json" &&
        ! "$GRAFT" --quiet bench numerics --models dscnn --out "$FOLDER/bench" 2> "$FOLDER/log" &&
        grep -q 'no models to choose' "$FOLDER/log"
}
# The same entries, factors as they were; what has no kin keeps its time.
confirms() {
    cp "$FOLDER/passes.costs" "$FOLDER/confirmed.costs" &&
        "$GRAFT" --quiet cost confirm --database "$FOLDER/confirmed.costs" > "$FOLDER/text" &&
        grep -q '^[1-9][0-9]* of [0-9]* costs measured again' "$FOLDER/text" &&
        [ "$("$GRAFT" cost show "$FOLDER/confirmed.costs" | wc -l)" = "$("$GRAFT" cost show "$FOLDER/passes.costs" | wc -l)" ] &&
        ! cmp -s "$FOLDER/passes.costs" "$FOLDER/confirmed.costs" && [ ! -e "$FOLDER/confirmed.costs.confirming" ]
}
refuses_to_confirm_nothing() {
    ! "$GRAFT" --quiet cost confirm --database "$FOLDER/none.costs" > "$FOLDER/text" 2> "$FOLDER/log" &&
        grep -q 'none.costs: there is no such database' "$FOLDER/log" && [ ! -e "$FOLDER/none.costs" ]
}
# Killed at any moment: the file is whole, and nobody else waits for the lock.
survives_kills() {
    for hundredths in 05 10 20 35 50 70; do
        "$GRAFT" --quiet measure mobilenetv1 --rounds 3 --database "$FOLDER/other.costs" > "$FOLDER/text" &
        pid=$!
        sleep "0.$hundredths"
        kill -9 "$pid" 2> "$FOLDER/log"
        wait "$pid" 2> "$FOLDER/log"
        "$GRAFT" cost show "$FOLDER/other.costs" > "$FOLDER/text" || return 1
    done
    timeout 20 "$GRAFT" cost merge "$FOLDER/other.costs" "$OWN"
}

check "measures" measures
check "plots" plots
check "reads a recorded device" reads_a_recorded_device
check "estimates what it lacks" estimates_what_it_lacks
check "refuses an unknown device" refuses_an_unknown_device
check "merges" merges
check "shows differences" shows_differences
check "calibrates" calibrates
check "searches in passes" searches_in_passes
check "refuses passes that make no sense" refuses_passes_that_make_no_sense
check "confirms" confirms
check "refuses to confirm nothing" refuses_to_confirm_nothing
check "keeps figures" keeps_figures
check "survives kills" survives_kills
finish
