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
# A processor without recorded costs: what happens is said once, and the nearest recorded is named.
names_the_nearest() {
    rm -f "$FOLDER/first.costs" && "$GRAFT" measure autoencoder --rounds 3 --database "$FOLDER/first.costs" \
        > "$FOLDER/text" 2> "$FOLDER/log" && grep -q "first.costs has no costs of this machine ('" "$FOLDER/log" &&
        grep -q 'they are measured here, and kept there' "$FOLDER/log" &&
        grep -q "^graft: --device '.*1 thread' takes those of the nearest recorded device instead" "$FOLDER/log" &&
        "$GRAFT" measure autoencoder --rounds 3 --database "$FOLDER/first.costs" > "$FOLDER/text" 2> "$FOLDER/log" &&
        ! grep -q 'has no costs' "$FOLDER/log" || return 1
    "$GRAFT" measure resnet8 --device 'AMD EPYC (99-9-9), avx2' --database "$OWN" 2> "$FOLDER/log"
    grep -q "where the nearest is 'AMD EPYC (25-1-1), " "$FOLDER/log" || { cat "$FOLDER/log"; return 1; }
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
# Two searches, each graph timed as a whole; what comes out is a model. On a busy machine the noise may be more than
# any gain: then there is nothing to time.
searches_in_passes() {
    "$GRAFT" optimize dscnn "$FOLDER/out.onnx" --passes 2 --database "$FOLDER/passes.costs" --json \
        > "$FOLDER/json" 2> "$FOLDER/log" && grep -q '"operators_before": 31, "operators_after": [123][0-9],' "$FOLDER/json" &&
        [ -s "$FOLDER/passes.costs" ] && "$GRAFT" --quiet convert "$FOLDER/out.onnx" "$FOLDER/again.onnx" || return 1
    grep -q '"rules_applied": 0,' "$FOLDER/json" || {
        grep -q 'pass 1: predicted [01]\.[0-9]* .* costs confirmed' "$FOLDER/log" &&
            grep -q 'pass 1: its graph takes [01]\.[0-9]* +- ' "$FOLDER/log"
    }
}
# Rules that hold within bounds are used only when that is asked for.
leaves_out_unproved() {
    printf '\010\001\022\002z3' > "$FOLDER/bounds.rules"
    cat > "$FOLDER/bounds.yaml" << 'END'
rules:
  - name: limited
    source: reshape#1(reshape#2(a))
    target: reshape#1(reshape(a, dim=[#1.dim_0, dim(a,1) * dim(a,2)]))
  - name: proved
    source: relu(relu(a))
    target: relu(a)
END
    cp "$FOLDER/passes.costs" "$FOLDER/bounds.costs" || return 1
    "$GRAFT" --quiet verify "$FOLDER/bounds.yaml" --merge --accept-within-bounds --rules "$FOLDER/bounds.rules"
    "$GRAFT" optimize dscnn "$FOLDER/out.onnx" --rules "$FOLDER/bounds.rules" --database "$FOLDER/bounds.costs" \
        > "$FOLDER/json" 2> "$FOLDER/log" &&
        grep -q '1 rules hold within bounds only and are left out' "$FOLDER/log" &&
        "$GRAFT" optimize dscnn "$FOLDER/out.onnx" --rules "$FOLDER/bounds.rules" --accept-within-bounds \
            --database "$FOLDER/bounds.costs" > "$FOLDER/json" 2> "$FOLDER/log" &&
        ! grep -q 'left out' "$FOLDER/log" && grep -q '2 rules; not for this device or numeric class: 0' "$FOLDER/log"
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
    echo damage > "$FOLDER/broken.onnx"
    ! "$GRAFT" --quiet bench order --models "dscnn,$FOLDER/broken.onnx" --out "$FOLDER/bench" > "$FOLDER/text" 2> "$FOLDER/log" &&
        grep -q 'in model .*broken.onnx' "$FOLDER/log" && grep -q '"order.dscnn.right"' "$FOLDER/bench/order.json" &&
        cmp "$FOLDER/text" "$FOLDER/bench/order.json"
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
    timeout 300 "$GRAFT" cost merge "$FOLDER/other.costs" "$OWN"
}
# A database that comes with Graft is of one device, and is read where that is meant: a damaged one
# harms nobody else.
reads_what_is_meant() {
    for file in rules/costs/*.costs; do
        [ "$(sed -n 's/^{"device":"\([^"]*\)".*/\1/p' "$file" | uniq | wc -l)" = 1 ] || { echo "$file"; return 1; }
    done
    mkdir -p "$FOLDER/data/rules/costs" && cp rules/costs/cortex-m4.costs "$FOLDER/data/rules/costs" &&
        head -n 3 rules/costs/h200-fp16.costs > "$FOLDER/data/rules/costs/cut.costs" &&
        GRAFT_DATA=$FOLDER/data gives 0 "$GRAFT" --quiet measure dscnn_int8 --device Cortex-M4F &&
        GRAFT_DATA=$FOLDER/data error_is 2 "cut.costs: the cost database is cut off" \
            "$GRAFT" --quiet measure dscnn --device h200-fp16
}

check "measures" measures
check "plots" plots
check "reads a recorded device" reads_a_recorded_device
check "reads the databases that are meant" reads_what_is_meant
check "estimates what it lacks" estimates_what_it_lacks
check "refuses an unknown device" refuses_an_unknown_device
check "names the nearest recorded device" names_the_nearest
check "merges" merges
check "shows differences" shows_differences
check "calibrates" calibrates
check "searches in passes" searches_in_passes
check "leaves out rules that are not proved" leaves_out_unproved
check "refuses passes that make no sense" refuses_passes_that_make_no_sense
check "confirms" confirms
check "refuses to confirm nothing" refuses_to_confirm_nothing
check "keeps figures" keeps_figures
check "survives kills" survives_kills
finish
