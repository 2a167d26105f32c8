#!/bin/sh
# Rule sets whose making was interrupted, and by any number of processes: the same bytes.
. tests/support/tap.sh

mkdir "$FOLDER/families"
cp tests/verify/families/small.yaml "$FOLDER/families"
# make_rules TO [OPTION...]
make_rules() {
    to=$FOLDER/$1
    shift
    "$GRAFT" rules --generate "$to" --families "$FOLDER/families" "$@" 2> "$FOLDER/log"
}
same() {
    for file in graft.rules derivations.txt; do
        cmp "$FOLDER/reference/$file" "$FOLDER/$1/$file" || return 1
    done
}
took_answers() { grep -q '[1-9][0-9]* answers of a run that was interrupted' "$FOLDER/log"; }
answers() { echo "$FOLDER/$1"/*/answers; }
# begin WORK TEXT SIGNAL: begins to make rules, sends the signal once the log has the text.
begin() {
    rm -f "$FOLDER/log"
    "$GRAFT" --threads 2 rules --generate "$FOLDER/unfinished" --families "$FOLDER/families" \
        --work "$FOLDER/$1" > "$FOLDER/out" 2> "$FOLDER/log" &
    run=$!
    await $run grep -qs "$2" "$FOLDER/log"
    kill "$3" $run
}
# Until it was not done already.
begin_until() {
    for _ in 1 2 3 4 5; do
        rm -rf "$FOLDER/unfinished"
        begin "$@"
        ! wait $run 2> /dev/null && [ ! -e "$FOLDER/unfinished/graft.rules" ] &&
            [ -s "$(answers "$1")" ] && return 0
    done
    return 1
}

one_process() { make_rules reference --threads 1; }
three_processes() { make_rules three --threads 3 --work "$FOLDER/work" && same three; }
leaves_nothing() { [ ! -e "$FOLDER/work" ]; }
interrupted() { begin_until lifting 'lift: [1-9]0 %' -TERM && grep -q ': interrupted' "$FOLDER/log"; }
goes_on() {
    make_rules resumed --work "$FOLDER/lifting" && took_answers && same resumed &&
        [ ! -e "$FOLDER/lifting" ]
}
killed() { begin_until proving 'prove: [1-9]0 %' -KILL; }
# The last record is cut short; one in the middle is not what it was.
damage() {
    file=$(answers proving)
    sleep 0.2 # The children are gone.
    cp "$file" "$FOLDER/whole"
    truncate -s -1 "$file"
    printf X | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") * 3 / 4)) conv=notrunc 2> /dev/null
}
goes_on_with_less() {
    damage && make_rules resumed --work "$FOLDER/proving" && took_answers && same resumed
}
# What cannot be written is not lost.
cannot_be_written() {
    touch "$FOLDER/file"
    ! make_rules file --work "$FOLDER/kept" && [ -s "$(answers kept)" ] &&
        make_rules resumed --work "$FOLDER/kept" && took_answers && same resumed &&
        [ ! -e "$FOLDER/kept" ]
}
in_use() {
    begin both 'lift: [1-9]0 %' -STOP
    ! make_rules second --work "$FOLDER/both" && grep -q 'another run has it open' "$FOLDER/log"
    found=$?
    kill -KILL $run
    return $found
}
no_folder() {
    error_is 2 "--work" "$GRAFT" rules --memory 10 --generate "$FOLDER" &&
        error_is 2 "--generate" "$GRAFT" rules --work "$FOLDER/work"
}

check "one process" one_process
check "three processes make the same" three_processes
check "nothing is left of a run that ended" leaves_nothing
check "interrupted while it lifts" interrupted
check "goes on" goes_on
check "killed while it proves" killed
check "goes on with damaged answers" goes_on_with_less
check "keeps answers until the rules are written" cannot_be_written
check "two at a time" in_use
check "options that need others" no_folder
finish
