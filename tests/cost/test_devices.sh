#!/bin/sh
# Devices that are programs, in good order and with every fault that they may have.
set -u

. tests/support/tap.sh
DB="$FOLDER/fake.costs"
FAKE="$FOLDER/fake"
export GRAFT_DEVICE_SECONDS=20

# It answers by the operator that it is asked for, and runs whole models that have fewer Relu faster, or
# slower, all alike, with noise, or faster the larger the file, the fewer its sums and products or the more
# Sum it has, as its option says. Otherwise its option is WHEN=WHAT: WHAT instead of
# the answer when it is asked hello, models or for the operator WHEN.
cat > "$FAKE" << 'END'
#!/bin/sh
when=${1%%=*}
what=${1#*=}
id_of() { echo "$1" | sed 's/.*"id": \([0-9]*\).*/\1/'; }
say() { echo "{\"id\": $id, $1}"; }
while read -r line; do
    id=$(id_of "$line")
    case $line in
    *'"ask": "hello"'*)
        asked=hello
        name=fake
        [ "$when" = named ] && name=onnxruntime
        answer="\"protocol\": 1, \"name\": \"$name\", "'"version": "1.0", "hardware": "a board", "threads": 3, "times_models": '
        [ "$when" = modest ] && answer="${answer}false" || answer="${answer}true"
        rule='relu(conv_bias#1(a,b,c,activation=none)) = conv_bias#1(a,b,c,activation=relu)'
        [ "$what" = wrongly ] && rule='relu(a) = nothing#'
        [ "$when" = fusing ] && answer="$answer, \"fuses\": [\"$rule\"]"
        [ "$when" = poor ] && answer="$answer, \"operators\": [\"relu\", \"conv\"]"
        ;;
    *'"ask": "time_models"'*)
        asked=models
        rounds=$(echo "$line" | sed 's/.*"rounds": \([0-9]*\).*/\1/')
        lists=
        for file in $(echo "$line" | sed 's/.*"models": \[\([^]]*\)\].*/\1/' | tr -d '",'); do
            relus=$(LC_ALL=C grep -a -o "$(printf '"\004Relu')" "$file" | wc -l) # As ONNX writes a node's kind.
            step=1
            [ "$when" = noisy ] && [ "$relus" -lt 7 ] && step=290
            case $when$step in
            noisy290) took=700 ;;
            noisy1) took=1000 ;;
            slower1) took=$((2000 - 10 * relus)) ;;
            alike1) took=1000 ;;
            named1) took=$((1000 + 1000 * $(LC_ALL=C grep -a -o -E "$(printf '"(\003(Mul|Add|Sub|Div)|\004Clip)')" "$file" | wc -l))) ;;
            sum1) took=$((2000 - 100 * $(LC_ALL=C grep -a -o "$(printf '"\003Sum')" "$file" | wc -l))) ;;
            larger1) took=$((10000000000 / $(wc -c < "$file"))) ;;
            *) took=$((1000 + 10 * relus)) ;;
            esac
            times=$(i=0; while [ $((i += 1)) -le "$rounds" ]; do printf '%s, ' $((took + i % 3 * step)); done)
            lists="$lists[${times%, }], "
        done
        answer="\"rounds_ns\": [${lists%, }]"
        ;;
    *)
        asked=$(echo "$line" | sed 's/.*"operator": "\([a-z_0-9]*\)".*/\1/')
        file=$(echo "$line" | sed 's/.*"model": "\([^"]*\)".*/\1/')
        size=$(wc -c < "$file")
        [ "$asked" = max ] && size=-99000
        answer="\"median_ns\": $((1000 + size / 100)).5, \"spread_ns\": 10, \"rounds\": 7"
        ;;
    esac
    [ -z "${FAKE_LOG:-}" ] || echo "$asked" >> "$FAKE_LOG"
    [ "$when" = all ] && [ "$asked" != hello ] && when=$asked
    if [ "$asked" = "$when" ]; then
        case $what in
        hang) sleep 600 ;;
        die) exit 3 ;;
        deaf) exec < /dev/null; say "$answer"; sleep 600 ;;
        cut) printf '{"id": %s, "median' "$id"; exit 0 ;;
        garbage) echo 'segmentation fault' ;;
        two) printf '{"id": %s, %s}\n{"id": %s, %s}\n' "$id" "$answer" "$id" "$answer" ;; # At once.
        huge) head -c 1000000 /dev/zero | tr '\0' x; echo ;;
        wrong) id=999; say "$answer" ;;
        unsupported) say '"unsupported": "there is no such thing"' ;;
        leak) ls -l "/proc/$$/fd" > "$FAKE_LOG"; say "$answer" ;;
        *) say "\"median_ns\": $what, \"spread_ns\": 1, \"rounds_ns\": [[$what], [$what], [$what]]" ;;
        esac
    else
        say "$answer"
    fi
done
END
chmod +x "$FAKE"

measure() { # OPTION: of a new database.
    rm -f "$DB"
    gives 0 "$GRAFT" measure resnet8 --device "$FAKE:$1" --database "$DB" --rounds 3 --json
}
entries_of() { "$GRAFT" cost show "$DB" | grep -c " $1("; }

measures() {
    measure good && grep -q '"whole_ns": 1071,' "$FOLDER/out" && [ "$(entries_of relu)" -gt 0 ] &&
        grep -q '"device": "fake on a board, 3 threads"' "$FOLDER/out" &&
        "$GRAFT" cost show "$DB" > "$FOLDER/entries" && ! grep -q '@nhwc\|estimated\|reorder' "$FOLDER/entries" &&
        grep -q '  7 measured  fake .*, fake 1.0, device program 1\]' "$FOLDER/entries"
}
# Once: what is known is not asked for again.
asks_once() {
    export FAKE_LOG="$FOLDER/asked"
    rm -f "$FAKE_LOG"
    gives 0 "$GRAFT" --quiet measure resnet8 --device "$FAKE:good" --database "$DB" --rounds 3 || return 1
    unset FAKE_LOG
    [ "$(tr '\n' ' ' < "$FOLDER/asked")" = 'hello models ' ]
}
# Its costs are there when it is not.
is_recorded() {
    measure good
    sum=$(sed -n 's/.*\("sum_ns": [0-9.]*\),.*/\1/p' "$FOLDER/out")
    gives 0 "$GRAFT" measure resnet8 --device 'fake on a board' --database "$DB" --rounds 3 --json &&
        grep -qF "$sum," "$FOLDER/out" &&
        grep -q '"estimated": 0,' "$FOLDER/out" && grep -q '"whole_ns": null' "$FOLDER/out"
}
# Whatever it does wrong for one operator: a message with the device and the question, no entry, and an
# estimate that is marked.
survives() { # WHAT MESSAGE
    measure "relu=$1" && [ "$(entries_of relu)" = 0 ] && [ "$(entries_of conv_bias)" -gt 0 ] &&
        grep -q "device 'fake': time of relu(.*: .*$2" "$FOLDER/err" &&
        ! grep -q '"estimated": 0,' "$FOLDER/out" && return 0
    cat "$FOLDER/err"
    return 1
}
survives_hanging() { GRAFT_DEVICE_SECONDS=1 survives hang 'no answer in 1 s'; }
# It closes its input and answers; the next question breaks the pipe.
survives_deafness() {
    GRAFT_DEVICE_SECONDS=2 measure relu=deaf && grep -q "device 'fake': time of .*: \(it has ended\|no answer in 2 s\)" "$FOLDER/err"
}
# Too fast for any machine.
survives_wonders() {
    rm -f "$DB"
    gives 0 "$GRAFT" measure resnet18 --device "$FAKE:conv=1" --database "$DB" --rounds 3 --json &&
        grep -q "device 'fake': time of conv(.*: its answer: 1 ns for [0-9]* operations cannot be" "$FOLDER/err"
}
takes_a_refusal() {
    measure relu=unsupported && [ "$(entries_of relu)" = 0 ] && ! grep -q "device 'fake': time" "$FOLDER/err" &&
        ! grep -q '"estimated": 0,' "$FOLDER/out" || return 1
    gives 0 "$GRAFT" --verbose measure resnet8 --device "$FAKE:relu=unsupported" --database "$DB" --rounds 3 &&
        grep -q "device 'fake' does not have relu(.*: there is no such thing" "$FOLDER/err"
}
# All questions are answered so: nothing can be estimated either.
gives_up() {
    rm -f "$DB"
    gives 2 "$GRAFT" optimize resnet8 "$FOLDER/none.onnx" --device "$FAKE:all=die" --database "$DB" || return 1
    grep -q "is given up after 3 faults in a row" "$FOLDER/err" && [ ! -e "$FOLDER/none.onnx" ] &&
        grep -q "error: .*too few measured costs" "$FOLDER/err" && [ "$(grep -c 'it has ended' "$FOLDER/err")" = 3 ]
}
refuses_hello() { # WHAT MESSAGE
    GRAFT_DEVICE_SECONDS=1 error_is 2 "$2" "$GRAFT" --quiet optimize resnet8 "$FOLDER/none.onnx" \
        --device "$FAKE:hello=$1" --database "$FOLDER/none.costs" &&
        grep -q "device '$FAKE:hello=$1': hello: " "$FOLDER/err" &&
        [ ! -e "$FOLDER/none.onnx" ] && [ ! -e "$FOLDER/none.costs" ]
}
# As many threads as the user says, or none of it.
refuses_other_threads() {
    gives 0 "$GRAFT" --quiet --threads 3 measure resnet8 --device "$FAKE" --database "$DB" --rounds 3 &&
        error_is 2 "device '$FAKE': hello: it has 3 threads, not 2" "$GRAFT" --quiet --threads 2 measure resnet8 \
            --device "$FAKE" --database "$DB" &&
        error_is 2 "it has 3 threads, not 2" "$GRAFT" --quiet --threads 2 optimize resnet8 "$FOLDER/none.onnx" \
            --device "$FAKE" --database "$DB"
}
refuses_what_is_no_program() {
    echo 'no program' > "$FOLDER/text" && chmod +x "$FOLDER/text" &&
        error_is 2 "cannot be started" "$GRAFT" measure resnet8 --device "$FOLDER/text" --database "$DB" || return 1
    chmod -x "$FOLDER/text"
    error_is 2 "device '$FOLDER/text' is neither" "$GRAFT" measure resnet8 --device "$FOLDER/text" --database "$DB" &&
        error_is 2 "device '../tests' is neither" "$GRAFT" measure resnet8 --device ../tests --database "$DB" &&
        GRAFT_DEVICE_SECONDS=0 error_is 2 "GRAFT_DEVICE_SECONDS is '0'" "$GRAFT" measure resnet8 --device "$FAKE" --database "$DB"
}
# No shell between: a name is a name. Of what Graft has open the program gets nothing.
starts_it_alone() {
    cp "$FAKE" "$FOLDER/a b;touch $(basename "$FOLDER")" &&
        gives 0 "$GRAFT" --quiet measure resnet8 --device "$FOLDER/a b;touch $(basename "$FOLDER")" --database "$DB" --rounds 3 &&
        [ ! -e "$(basename "$FOLDER")" ] || return 1
    export FAKE_LOG="$FOLDER/open"
    gives 0 "$GRAFT" --quiet measure resnet8 --device "$FAKE:hello=leak" --database "$DB" --rounds 3 7< "$FAKE" 8< "$FAKE" || return 1
    unset FAKE_LOG
    ! grep -q ' [78] ->\|\.costs\|socket' "$FOLDER/open" && grep -q ' 0 -> pipe' "$FOLDER/open"
}

# ---------------------------------------------------------------- optimising

optimize() { # OPTION
    rm -f "$DB" "$FOLDER/out.onnx"
    [ -e "$FOLDER/in.onnx" ] || "$GRAFT" --quiet model resnet8 "$FOLDER/in.onnx" || return 1
    gives 0 "$GRAFT" optimize "$FOLDER/in.onnx" "$FOLDER/out.onnx" --device "$FAKE:$1" --database "$DB" --json
}
# What whole models say, not what operators cost: here that all Relu go, in one bundle after the other.
confirms() {
    optimize good && ! cmp -s "$FOLDER/in.onnx" "$FOLDER/out.onnx" &&
        grep -q '"kind": "Relu", "before": 7, "after": 0' "$FOLDER/out" && grep -q '"confirmed": "faster", ' "$FOLDER/out" &&
        grep -q 'relu=>fill-max: 0.9.* of the time in turns (before against itself: 1.0000), taken' "$FOLDER/err" &&
        grep -q 'whole models in turns: 0.9' "$FOLDER/err"
}
# Faster in the median by a hundredth, with a spread of half.
leaves_out_noise() {
    optimize noisy=x && cmp "$FOLDER/in.onnx" "$FOLDER/out.onnx" && grep -q '"rules_applied": 0,' "$FOLDER/out" &&
        grep -q 'relu=>fill-max: 0.9.* of the time in turns .* not beyond noise: left out' "$FOLDER/err"
}
leaves_out_what_is_alike() {
    optimize alike=x && cmp "$FOLDER/in.onnx" "$FOLDER/out.onnx" && grep -q '"rules_applied": 0,' "$FOLDER/out" &&
        grep -q 'bundles were timed as whole models, none is faster beyond noise' "$FOLDER/err"
}
# What a device does not have no rule makes.
keeps_to_its_operators() {
    refused='s/.*not for this device or numeric class: \([0-9]*\),.*/\1/p'
    optimize good && all=$(sed -n "$refused" "$FOLDER/err") && optimize poor && few=$(sed -n "$refused" "$FOLDER/err") &&
        echo "$all rules are left out, and $few" && [ "$few" -gt $((all + 500)) ]
}
# An activation within a convolution takes what the device says that both take; else nothing.
prices_what_is_fused() {
    count_fused() { "$GRAFT" cost show "$DB" | grep -c ' conv_bias.*activation=1'; }
    optimize slower=x && [ "$(count_fused)" = 0 ] && optimize fusing=x && [ "$(count_fused)" -gt 0 ] &&
        error_is 2 "while reading what the device 'fake on a board, 3 threads' fuses" "$GRAFT" --quiet \
            optimize "$FOLDER/in.onnx" "$FOLDER/none.onnx" --device "$FAKE:fusing=wrongly" --database "$DB"
}
leaves_out_what_is_slower() {
    optimize slower=x && cmp "$FOLDER/in.onnx" "$FOLDER/out.onnx" && grep -q '"rules_applied": 0,' "$FOLDER/out" &&
        ! grep -q ', taken' "$FOLDER/err"
}
leaves_out_what_is_not_confirmed() {
    for what in die garbage 0 -1 unsupported; do
        optimize "models=$what" && cmp "$FOLDER/in.onnx" "$FOLDER/out.onnx" &&
            grep -q '"confirmed": "failed"' "$FOLDER/out" &&
            grep -q 'whole models could not be timed (.*): the model is written as it was' "$FOLDER/err" || return 1
    done
}
# Algorithms: where larger files are faster, all that there are, and none when results are to be exact.
takes_algorithms() {
    optimize larger=x && grep -q '[1-9] operators by other algorithms: 0\..* of the time in turns (before against itself: 1.0000), taken' "$FOLDER/err" &&
        grep -q '"kind": "MatMul", "before": 0, "after": [1-9]' "$FOLDER/out" &&
        grep -q '"other_algorithms": [1-9].*"confirmed": "faster", ' "$FOLDER/out" &&
        gives 0 "$GRAFT" --quiet optimize "$FOLDER/in.onnx" "$FOLDER/again.onnx" --device "$FAKE:larger=x" --database "$DB" --check 1 &&
        grep -q 'outputs agree' "$FOLDER/out" && grep -q '^[1-9] operators are written by other algorithms' "$FOLDER/out" &&
        cmp "$FOLDER/out.onnx" "$FOLDER/again.onnx" &&
        gives 0 "$GRAFT" optimize "$FOLDER/in.onnx" "$FOLDER/again.onnx" --device "$FAKE:larger=x" --database "$DB" --exact --json &&
        ! grep -q 'other algorithms' "$FOLDER/err"
}
# A device of a name for which there are rules gets them; here they find no place.
takes_its_own_rules() {
    rules_of() { sed -n 's/^graft: \([0-9]*\) rules; .*/\1/p' "$FOLDER/err"; }
    optimize good && all=$(rules_of) && optimize named=x && more=$(rules_of) && own=$(grep -c -- '- name:' rules/onnxruntime.yaml) &&
        echo "$all rules, $more with $own" && [ "$more" = $((all + own)) ]
}
# One that does not time whole models confirms nothing, and that is said.
says_what_is_not_confirmed() {
    optimize modest=x && ! cmp -s "$FOLDER/in.onnx" "$FOLDER/out.onnx" && ! grep -q '"confirmed"' "$FOLDER/out" &&
        grep -q "device 'fake on a board, 3 threads' does not time whole models here: nothing is confirmed" "$FOLDER/err" &&
        gives 0 "$GRAFT" measure resnet8 --device "$FAKE:modest=x" --database "$DB" --rounds 3 &&
        grep -q 'whole graph: not run: the device does not time whole models' "$FOLDER/out"
}
# Outputs are compared on this processor, whatever the device is.
checks() {
    optimize good && gives 0 "$GRAFT" --quiet optimize "$FOLDER/in.onnx" "$FOLDER/out.onnx" --device "$FAKE:good" \
        --database "$DB" --check 1 && grep -q '^checked on 1 random inputs: outputs agree' "$FOLDER/out"
}
# Killed while it asks: nothing is half written, and the device ends with its input.
survives_kills() {
    for wait in 0.05 0.3 0.6 1; do
        rm -f "$DB" "$FOLDER/out.onnx"
        "$GRAFT" --quiet optimize "$FOLDER/in.onnx" "$FOLDER/out.onnx" --device "$FAKE:models=hang" --database "$DB" \
            > "$FOLDER/text" 2>&1 &
        pid=$!
        sleep $wait
        kill -9 $pid
        wait $pid 2> "$FOLDER/log"
        [ ! -e "$FOLDER/out.onnx" ] || return 1
        [ ! -e "$DB" ] || "$GRAFT" cost show "$DB" > "$FOLDER/text" || return 1
    done
    rm -rf "$FOLDER"/graft-device-*
}
# An interruption ends the run and its device, and leaves no files.
is_interrupted() {
    rm -f "$DB" "$FOLDER/out.onnx"
    "$GRAFT" --quiet optimize "$FOLDER/in.onnx" "$FOLDER/out.onnx" --device "$FAKE:models=hang" --database "$DB" \
        > "$FOLDER/text" 2>&1 &
    pid=$!
    sleep 1
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ "$status" = 130 ] && [ ! -e "$FOLDER/out.onnx" ] && [ -z "$(find "$FOLDER" -name 'graft-device-*')" ]
}

# ---------------------------------------------------------------- those that are shipped

times_with_onnxruntime() {
    rm -f "$DB"
    gives 0 "$GRAFT" measure dscnn --device onnxruntime --database "$DB" --rounds 3 --json &&
        grep -q '"estimated": 0,' "$FOLDER/out" && ! grep -q '"whole_ns": null' "$FOLDER/out" &&
        grep -q '"device": "onnxruntime on .*, 1 thread", "library": "onnxruntime [0-9.]*, level all, device program 1"' "$FOLDER/out" &&
        gives 0 "$GRAFT" --threads 2 measure dscnn --device onnxruntime:level=basic --database "$DB" --rounds 3 --json &&
        grep -q '"device": "onnxruntime on .*, 2 threads", "library": "onnxruntime [0-9.]*, level basic, device' "$FOLDER/out"
}
# Whichever is faster here: what is said is what comes out.
optimizes_for_onnxruntime() {
    "$GRAFT" --quiet model dscnn "$FOLDER/dscnn.onnx" &&
        gives 0 "$GRAFT" optimize "$FOLDER/dscnn.onnx" "$FOLDER/out.onnx" --device onnxruntime --database "$DB" --json &&
        grep -q 'bundles were timed as whole models' "$FOLDER/err" || return 1
    if grep -q '"confirmed": "\(faster\|same\)"' "$FOLDER/out"; then
        ! cmp -s "$FOLDER/dscnn.onnx" "$FOLDER/out.onnx"
    else # Slower, or nothing to ask about.
        cmp "$FOLDER/dscnn.onnx" "$FOLDER/out.onnx"
    fi
}
refuses_options() {
    error_is 2 'it says: options are level=disabled|basic|extended|all and threads=N' "$GRAFT" --quiet measure dscnn \
        --device onnxruntime:level=high --database "$DB"
}

# All other algorithms at once; onnxruntime says whether they compute the same.
computes_the_same() { # OPSET
    "$python" tests/cost/algorithms.py make "$FOLDER/many.onnx" "$1" &&
        gives 0 "$GRAFT" --quiet optimize "$FOLDER/many.onnx" "$FOLDER/out.onnx" --device "$FAKE:larger=x" --database "$DB" &&
        "$python" tests/cost/algorithms.py compare "$FOLDER/many.onnx" "$FOLDER/out.onnx" LRN PRelu Conv3
}
# A sum that is normalised is Sum where that makes the whole faster, and Add elsewhere.
takes_sums() {
    "$python" tests/cost/algorithms.py sums "$FOLDER/sums.onnx" 17 || return 1
    whole() { gives 0 "$GRAFT" optimize "$FOLDER/sums.onnx" "$FOLDER/out.onnx" --device "$FAKE:$1" --database "$DB" --json; }
    whole sum=x && grep -q '2 operators by other algorithms: 0.* taken' "$FOLDER/err" &&
        grep -q '"kind": "Sum", "before": 0, "after": 2' "$FOLDER/out" && grep -q '"other_algorithms": 2,' "$FOLDER/out" &&
        "$python" tests/cost/algorithms.py compare "$FOLDER/sums.onnx" "$FOLDER/out.onnx" Add &&
        whole alike=x && grep -q '2 operators by other algorithms: .* left out' "$FOLDER/err" &&
        grep -q '"other_algorithms": 0,' "$FOLDER/out" && ! grep -q '"kind": "Sum"' "$FOLDER/out"
}
# All of a device's own rules at once, where what is simpler is faster.
computes_the_same_by_rules() { # OPSET
    "$python" tests/cost/algorithms.py parts "$FOLDER/parts.onnx" "$1" &&
        gives 0 "$GRAFT" optimize "$FOLDER/parts.onnx" "$FOLDER/out.onnx" --device "$FAKE:named=x" --database "$DB" &&
        grep -q "the device's own rules: 0.* taken" "$FOLDER/err" &&
        "$python" tests/cost/algorithms.py compare "$FOLDER/parts.onnx" "$FOLDER/out.onnx" Clip Div Sub Add
}

times_with_xnnpack() {
    rm -f "$DB"
    gives 0 "$GRAFT" measure dscnn --device xnnpack:threads=2 --database "$DB" --rounds 3 --json &&
        grep -q '"device": "xnnpack on .*, 2 threads"' "$FOLDER/out" &&
        gives 0 "$GRAFT" measure dscnn --device xnnpack --database "$DB" --rounds 3 --json &&
        grep -q '"estimated": 0,' "$FOLDER/out" && ! grep -q '"whole_ns": null' "$FOLDER/out" &&
        grep -q '"device": "xnnpack on .*, 1 thread", "library": "xnnpack 0[^ ]*, device program 1"' "$FOLDER/out"
}
# Of one thread the sum of operators is the whole, about: copies have no part of what a run takes besides.
adds_up() {
    sed -n 's/.*"sum_ns": \([0-9.e+]*\),.*"whole_ns": \([0-9.e+]*\),.*/\1 \2/p' "$FOLDER/out" > "$FOLDER/sums"
    cat "$FOLDER/sums" && awk '{ exit !($1 < 2 * $2 && $2 < 2 * $1) }' "$FOLDER/sums" && [ -s "$FOLDER/sums" ]
}
optimizes_for_xnnpack() {
    "$GRAFT" --quiet model resnet8 "$FOLDER/in.onnx" &&
        gives 0 "$GRAFT" optimize "$FOLDER/in.onnx" "$FOLDER/out.onnx" --device xnnpack --database "$DB" --json &&
        grep -q 'bundles were timed as whole models' "$FOLDER/err"
}
asks_xnnpack() { # QUESTION ANSWER
    answer=$(echo "{\"id\": 7, $1}" | devices/xnnpack) && echo "$answer" && [ "${answer#"{\"id\": 7, $2"}" != "$answer" ]
}
refuses_with_xnnpack() {
    "$GRAFT" --quiet model lstm "$FOLDER/lstm.onnx" && "$GRAFT" --quiet model bert "$FOLDER/bert.onnx" &&
        asks_xnnpack "\"ask\": \"time_models\", \"models\": [\"$FOLDER/lstm.onnx\"], \"rounds\": 1" \
            "\"unsupported\": \"$FOLDER/lstm.onnx: node '" &&
        asks_xnnpack "\"ask\": \"time_models\", \"models\": [\"$FOLDER/bert.onnx\"], \"rounds\": 1" \
            "\"unsupported\": \"$FOLDER/bert.onnx: input '" &&
        asks_xnnpack '"ask": "time_models", "models": [], "rounds": 1' "\"unsupported\": \"'models' is no list" &&
        asks_xnnpack '"ask": "time", "model": "none.onnx", "apart_bytes": 0' '"unsupported": "none.onnx: cannot open' &&
        asks_xnnpack '"ask": "dance"' '"unsupported": "there is no such question"' &&
        error_is 2 'it says: the option is threads=N' "$GRAFT" --quiet measure dscnn --device xnnpack:threads=0 --database "$DB"
}
# Where it is not built, it says so.
says_what_it_needs() {
    cp devices/xnnpack "$FOLDER/alone" &&
        error_is 2 'it says: it is not built' "$GRAFT" --quiet measure dscnn --device "$FOLDER/alone" --database "$DB"
}

export TMPDIR="$FOLDER"
check "measures" measures
check "asks once" asks_once
check "is recorded" is_recorded
check "takes a refusal" takes_a_refusal
check "survives a hanging device" survives_hanging
check "survives a deaf one" survives_deafness
check "survives one that dies" survives die 'it has ended'
check "survives an answer cut off" survives cut 'it has ended within its answer'
check "survives garbage" survives garbage 'its answer is no JSON object'
check "survives two answers" survives two 'it answers more than one line'
check "survives a huge line" survives huge 'longer than 262144 bytes'
check "survives a wrong number" survives wrong 'its answer is to question 999'
check "survives a time of zero" survives 0 "'median_ns' is '0'"
check "survives wonders" survives_wonders
check "gives up" gives_up
check "refuses a dead device" refuses_hello die 'it has ended'
check "refuses one that hangs" refuses_hello hang 'no answer in 1 s'
check "refuses one that says garbage" refuses_hello garbage 'no JSON object'
check "refuses one that cannot" refuses_hello unsupported 'it says: there is no such thing'
check "refuses other threads" refuses_other_threads
check "refuses what is no program" refuses_what_is_no_program
check "starts it alone" starts_it_alone
check "confirms" confirms
check "keeps to its operators" keeps_to_its_operators
check "prices what is fused" prices_what_is_fused
check "leaves out what is slower" leaves_out_what_is_slower
check "leaves out noise" leaves_out_noise
check "leaves out what is alike" leaves_out_what_is_alike
check "leaves out what is not confirmed" leaves_out_what_is_not_confirmed
check "says what is not confirmed" says_what_is_not_confirmed
check "takes algorithms" takes_algorithms
check "takes the rules of its name" takes_its_own_rules
check "checks" checks
check "survives kills" survives_kills
check "is interrupted" is_interrupted
if python=$(sh cost/rival/python.sh "${OUT:-out/release}/../venv") && "$python" -c 'import onnxruntime' 2> "$FOLDER/log"; then
    PATH=$(cd "$(dirname "$python")" && pwd):$PATH
    check "times with onnxruntime" times_with_onnxruntime
    check "optimizes for onnxruntime" optimizes_for_onnxruntime
    check "refuses options that there are not" refuses_options
    check "algorithms compute what onnxruntime's do" computes_the_same 17
    check "takes sums" takes_sums
    check "algorithms in an old file compute what onnxruntime's do" computes_the_same 8
    check "so does what its own rules make" computes_the_same_by_rules 13
    check "so it does in an old file" computes_the_same_by_rules 10
else
    skip "times with onnxruntime" "no onnxruntime here"
fi
check "XNNPACK says what it needs" says_what_it_needs
if [ -x out/release/examples/xnnpack/device ]; then
    check "times with XNNPACK" times_with_xnnpack
    check "its operators add up" adds_up
    check "optimizes for XNNPACK" optimizes_for_xnnpack
    check "what XNNPACK lacks is refused" refuses_with_xnnpack
else
    skip "times with XNNPACK" "no libxnnpack-dev here, or no release build"
fi
finish
