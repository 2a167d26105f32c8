#!/bin/sh
# `graft policy MODEL --agent dream` and `graft report` on DS-CNN with small networks: the same bytes
# whatever the number of threads and however often training is interrupted; a trained run is not trained
# again; the header compiles, decides as the tools do, also on a microcontroller; bad input leaves nothing
# behind. Costs are recorded ones, so that nothing hangs on the machine.
. tests/support/tap.sh

SETTINGS=$FOLDER/settings.yaml
COSTS=$FOLDER/own.costs
DEVICE=intel-xeon-6-167
sed -e 's/^  seed: 1 /  seed: 3 /; s/^  step_limit: .*/  step_limit: 40/; s/^  hidden: 32 .*/  hidden: 12/' \
    -e 's/^  latent: .*/  latent: 12/; s/^  width: .*/  width: 8/; s/^  hidden: 64 .*/  hidden: 24/' \
    -e 's/^  pair: .*/  pair: 16/; s/^  episodes: 72 .*/  episodes: 6/; s/^  updates: 2400 .*/  updates: 120/' \
    -e 's/^  dream_updates: .*/  dream_updates: 15/; s/^  dequeues: .*/  dequeues: 300/' train/settings.yaml > "$SETTINGS"

# Rules for this model: folding, fusing, and a pair that leads nowhere.
RULES=$FOLDER/test.rules
cat > "$FOLDER/rules.yaml" << 'END'
rules:
  - name: fold
    source: scale_shift(conv_bias#1(a, b, c, activation=none), d, e)
    target: conv_bias#1(a, mul(b, reshape(d, dim=[dim(b,0), 1, 1, 1])), add(mul(c, d), e), activation=none)
    where: ["const(b)", "const(c)", "const(d)", "const(e)"]
  - name: turn
    source: relu(a)
    target: clip(a, low=0.0, high=inf)
  - name: back
    source: clip(a, low=0.0, high=inf)
    target: relu(a)
END
cp rules/graft.rules "$RULES"
"$GRAFT" --quiet verify "$FOLDER/rules.yaml" --merge --rules "$RULES" > /dev/null

# policy FOLDER OPTION...: its messages go to $FOLDER/messages.
policy() {
    folder=$1
    shift
    "$GRAFT" policy dscnn --agent dream --out "$FOLDER/$folder" --settings "$SETTINGS" --device $DEVICE --database "$COSTS" \
        --rules "$RULES" "$@" > "$FOLDER/printed" 2> "$FOLDER/messages"
}
trained() { policy "$@" || { cat "$FOLDER/messages"; return 1; }; }
same_header() { cmp "$FOLDER/$1/graft_policy.h" "$FOLDER/$2/graft_policy.h"; }

first_run() {
    trained one --threads 1 && grep -q "^policy  *alone " "$FOLDER/printed" &&
        grep -q "^dreamt  *alone " "$FOLDER/printed" && grep -q "^table  *alone " "$FOLDER/printed" &&
        grep -q "on .* steps of held-out episodes" "$FOLDER/printed" && grep -q '"dream_steps"' "$FOLDER/one/agent.json" &&
        grep -q '"dreams": {"interactions": ' "$FOLDER/one/report.html"
}
threads_alike() { trained two --threads 2 && same_header one two; }

mkfifo "$FOLDER/fifo"
# stopped PHASE: the run "resumed" is interrupted in that phase, which its messages name.
stopped() {
    : > "$FOLDER/messages"
    "$GRAFT" policy dscnn --agent dream --out "$FOLDER/resumed" --settings "$SETTINGS" --device $DEVICE --database "$COSTS" \
        --rules "$RULES" > "$FOLDER/printed" 2> "$FOLDER/fifo" &
    job=$!
    sent=no
    while read -r line; do
        echo "$line" >> "$FOLDER/messages"
        case $sent:$line in
        "no:graft: $1: "*) sent=yes && kill -INT $job ;;
        esac
    done < "$FOLDER/fifo"
    status=0
    wait $job || status=$?
    # Searching is short: on a busy machine it may be done before the signal comes.
    [ "$1 $status" != 'backtracking 0' ] || return 0
    if [ $status != 130 ] || [ "$(grep -c 'error: .*interrupted' "$FOLDER/messages")" != 1 ] ||
        [ -e "$FOLDER/resumed/graft_policy.h" ]; then
        echo "exit status $status"
        cat "$FOLDER/messages"
        return 1
    fi
}
keeps_going() { stopped "$1" && grep -q "going on from" "$FOLDER/messages"; }
curve_of() { sed 's/.*"curve": \(.*\), "rewards".*/\1/' "$FOLDER/$1/agent.json"; }
resumed_alike() {
    trained resumed && same_header one resumed && [ "$(curve_of one)" = "$(curve_of resumed)" ] &&
        [ "$(curve_of one | tr -cd '[' | wc -c)" = 17 ] && grep -q "going on from" "$FOLDER/messages"
}
# Trained to the end, it is only made again.
repeated_alike() {
    cp "$FOLDER/one/checkpoint.bin" "$FOLDER/before" && trained one &&
        cmp "$FOLDER/one/checkpoint.bin" "$FOLDER/before" && same_header one two &&
        grep -q "going on from" "$FOLDER/messages"
}
# Another seed: the checkpoint is not for it.
other_settings() {
    sed -i 's/seed: 3/seed: 4/' "$SETTINGS" && trained one && ! cmp "$FOLDER/one/agent.json" "$FOLDER/two/agent.json" &&
        ! grep -q "going on from" "$FOLDER/messages"
}

# What `make policy` does after `graft policy`.
report() {
    "$GRAFT" report dscnn --out "$FOLDER/$1" --settings "$SETTINGS" --database "$COSTS" --rules "$RULES" --rounds 3 \
        > "$FOLDER/printed" 2> "$FOLDER/messages"
}
reports() {
    gcc -std=c99 -Wall -Wextra -Werror -pedantic -O1 -Iinclude -I"$FOLDER/one" \
        emit/firmware/rewrite.c -o "$FOLDER/one/rewrite" &&
        "$FOLDER/one/rewrite" > "$FOLDER/one/decisions.txt" && report one &&
        grep -q "outputs agree" "$FOLDER/printed" && [ -s "$FOLDER/one/dscnn.opt.onnx" ] &&
        [ -s "$FOLDER/one/report.json" ]
}
reports_foul_play() {
    sed -i 's/^hash ./hash z/' "$FOLDER/one/decisions.txt"
    ! report one && [ "$(grep -c 'error:' "$FOLDER/messages")" = 1 ]
}

# A file from elsewhere with an operator that Graft does not know goes all the way.
goes_through() {
    own="--out $FOLDER/foreign --settings $SETTINGS --device $DEVICE --database $COSTS --rules $RULES"
    # shellcheck disable=SC2086 # The options are split into words on purpose.
    gives 0 "$PYTHON" tests/emit/foreign.py write "$FOLDER/foreign.onnx" &&
        gives 0 "$GRAFT" policy "$FOLDER/foreign.onnx" --agent dream $own &&
        gcc -std=c99 -O1 -Iinclude -I"$FOLDER/foreign" emit/firmware/rewrite.c -o "$FOLDER/rewrite" &&
        "$FOLDER/rewrite" > "$FOLDER/foreign/decisions.txt" &&
        gives 0 "$GRAFT" report "$FOLDER/foreign.onnx" $own &&
        grep -q "not run, so outputs were not compared .* that Graft does not know" "$FOLDER/out" &&
        gives 0 "$PYTHON" tests/emit/foreign.py check "$FOLDER/foreign.onnx" \
            "$FOLDER/foreign/foreign.opt.onnx"
}

refuses() { # STATUS TEXT MODEL [SETTINGS [RULES]]
    error_is "$1" "$2" "$GRAFT" --quiet policy "$3" --out "$FOLDER/nothing" \
        --settings "${4:-$SETTINGS}" --device $DEVICE --database "$FOLDER/nothing.costs" --rules "${5:-$RULES}" &&
        [ ! -e "$FOLDER/nothing" ] && [ ! -e "$FOLDER/nothing.costs" ]
}
# The only rule wants an operator that the model lacks.
refuses_without_place() {
    printf 'rules:\n  - name: lonely\n    source: tanh(identity(a))\n    target: tanh(a)\n' > "$FOLDER/lonely.yaml"
    printf '\010\001' > "$FOLDER/lonely.rules" # A set of version 1 without a rule.
    gives 0 "$GRAFT" --quiet verify "$FOLDER/lonely.yaml" --merge --rules "$FOLDER/lonely.rules" &&
        refuses 2 "none of the 1 rules finds a place" dscnn "$SETTINGS" "$FOLDER/lonely.rules"
}
# What was learnt on DS-CNN, on MobileNet.
rewrites_another() {
    gives 0 "$GRAFT" --json --quiet optimize resnet8 "$FOLDER/other.onnx" --policy "$FOLDER/two/policy.graft" \
        --settings "$SETTINGS" --device $DEVICE --database "$COSTS" --rules "$RULES" &&
        grep -q '"policy": .*"operators_before": 30,.*"rules_applied": [1-9]' "$FOLDER/out" &&
        gives 0 "$GRAFT" --quiet convert "$FOLDER/other.onnx" "$FOLDER/again.onnx"
}
refuses_damaged() {
    head -c 2000 "$FOLDER/two/policy.graft" > "$FOLDER/half.graft"
    error_is 2 "half.graft: byte" "$GRAFT" --quiet optimize resnet8 "$FOLDER/none.onnx" --policy "$FOLDER/half.graft" \
        --settings "$SETTINGS" --device $DEVICE --database "$COSTS" --rules "$RULES" && [ ! -e "$FOLDER/none.onnx" ]
}
refuses_truncated() {
    gives 0 "$GRAFT" model dscnn "$FOLDER/whole.onnx" &&
        head -c 20000 "$FOLDER/whole.onnx" > "$FOLDER/half.onnx" &&
        refuses 2 "$FOLDER/half.onnx" "$FOLDER/half.onnx"
}
refuses_settings() { # TEXT SED
    sed "$2" "$SETTINGS" > "$FOLDER/bad.yaml" && refuses 2 "$1" dscnn "$FOLDER/bad.yaml"
}

check "trains, compares and looks into the dream" first_run
check "one thread or two" threads_alike
check "interrupted while searching" stopped backtracking
check "interrupted while training the world model" stopped "world model"
check "interrupted in a dream" keeps_going dreams
check "interrupted or not" resumed_alike
check "once or twice" repeated_alike
check "other settings begin anew" other_settings
check "the header decides as the tools do" reports
check "decisions of another header" reports_foul_play
check "a policy rewrites another model" rewrites_another
check "a damaged policy is refused" refuses_damaged
sh tests/firmware/run.sh "$FOLDER/two" > "$FOLDER/firmware" 2>&1 || status=$?
if [ "${status:-0}" = 77 ]; then
    skip "the same decisions on a microcontroller" "$(cat "$FOLDER/firmware")"
else
    check "the same decisions on a microcontroller" grep "decisions are the same" "$FOLDER/firmware"
fi
if PYTHON=$(sh cost/rival/python.sh out/venv) && "$PYTHON" -c 'import onnxruntime' 2> /dev/null; then
    check "a model from elsewhere" goes_through
else
    skip "a model from elsewhere" "$PYTHON"
fi
check "an unknown model" refuses 2 "no model 'nonsense'" nonsense
check "a truncated model" refuses_truncated
check "a missing model" refuses 2 "missing.onnx" "$FOLDER/missing.onnx"
check "settings that are no YAML" refuses_settings "bad.yaml" 's/^search:/search: [/'
check "settings without a number" refuses_settings "pair" '/^  pair:/d'
check "settings out of range" refuses_settings "discount" 's/discount: 0.99/discount: 1.5/'
check "settings nobody knows" refuses_settings "bogus" 's/^search:/search:\n  bogus: 1/'
check "a model without a place for any rule" refuses_without_place
check "a missing rule set" refuses 2 "missing.rules" dscnn "$SETTINGS" "$FOLDER/missing.rules"
finish
