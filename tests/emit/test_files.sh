#!/bin/sh
# `graft optimize` from outside: arguments are judged before any work, what is printed is about the file,
# --check runs it, and what is measured lies where it belongs.
. tests/support/tap.sh

COSTS=$FOLDER/cpu.costs
CHECKOUT=$PWD
case $GRAFT in /*) ;; *) GRAFT=$CHECKOUT/$GRAFT ;; esac

# The model does not exist: it was not looked at.
refuses_at_once() { # TEXT ARGUMENT...
    text=$1
    shift
    error_is 2 "$text" "$GRAFT" --quiet optimize "$FOLDER/nonesuch.onnx" "$@" --database "$COSTS" && [ ! -e "$COSTS" ]
}
refuses_bad_arguments() {
    refuses_at_once "--search is auto, greedy, escape, annealing, iterated, backtracking, beam, guided, random, saturation or table, not 'fast'" "$FOLDER/x.onnx" --search fast &&
        refuses_at_once "--search table needs --table FILE" "$FOLDER/x.onnx" --search table &&
        refuses_at_once "--check needs a number from 1 to 1000, has 'some'" "$FOLDER/x.onnx" --check some &&
        refuses_at_once "--passes needs a number from 1 to 16, has '17'" "$FOLDER/x.onnx" --passes 17 &&
        refuses_at_once "--seconds needs a number from 1" "$FOLDER/x.onnx" --seconds 0 &&
        refuses_at_once "--width needs a number from 1" "$FOLDER/x.onnx" --width 0 &&
        refuses_at_once "--dequeues needs a number from 1" "$FOLDER/x.onnx" --dequeues -3 &&
        refuses_at_once "--size needs NAME=N,NAME=N..., has 'height'" "$FOLDER/x.onnx" --size height &&
        refuses_at_once "--freeze needs NAME=N,NAME=N..., has '3'" "$FOLDER/x.onnx" --freeze 3 &&
        refuses_at_once "--size needs a number from 1" "$FOLDER/x.onnx" --size height=3,width=0 &&
        refuses_at_once "--steps needs a search, not a policy" "$FOLDER/x.onnx" --steps --policy none &&
        refuses_at_once "nonesuch.graft: cannot open: No such file" "$FOLDER/x.onnx" --policy "$FOLDER/nonesuch.graft"
}
# Nor is anything measured before these files are read.
refuses_what_it_cannot_read() {
    : > "$FOLDER/file"
    refuses_at_once "$FOLDER/file: a policy of version 0" "$FOLDER/x.onnx" --policy "$FOLDER/file" &&
        refuses_at_once "$FOLDER/file: a policy of version 0" "$FOLDER/x.onnx" --guide "$FOLDER/file" &&
        refuses_at_once "$FOLDER/file: version: " "$FOLDER/x.onnx" --search table --table "$FOLDER/file"
}
refuses_what_nobody_would_read() {
    refuses_at_once "--width is for --search beam, not for greedy" "$FOLDER/x.onnx" --search greedy --width 3 &&
        refuses_at_once "--dequeues is for --search backtracking, not for auto" "$FOLDER/x.onnx" --dequeues 3 &&
        refuses_at_once "--table is for --search table, not for auto" "$FOLDER/x.onnx" --table a &&
        refuses_at_once "--guide is for --search auto|guided, not for --policy" "$FOLDER/x.onnx" --guide a --policy b &&
        refuses_at_once "--seed is for --search auto|guided|annealing|iterated|random, not for --simplify" "$FOLDER/x.onnx" --simplify --seed 3 &&
        refuses_at_once "--policy makes no search" "$FOLDER/x.onnx" --search beam --policy b
}
refuses_what_it_cannot_write() {
    : > "$FOLDER/file"
    refuses_at_once "cannot write $FOLDER/file/x.onnx: Not a directory" "$FOLDER/file/x.onnx" &&
        refuses_at_once "cannot write $FOLDER: Is a directory" "$FOLDER" &&
        refuses_at_once "cannot write $FOLDER: Is a directory" "$FOLDER/x.onnx" --report "$FOLDER" &&
        refuses_at_once "cannot write $FOLDER/none/x.onnx: there is no folder $FOLDER/none/" "$FOLDER/none/x.onnx" &&
        refuses_at_once "there is no folder $FOLDER/none/" "$FOLDER/none/x.onnx" --simplify && [ ! -e "$FOLDER/none" ] &&
        mkdir "$FOLDER/in-way.onnx.unchecked" &&
        error_is 2 "$FOLDER/in-way.onnx: cannot write: is a folder" "$GRAFT" --quiet optimize autoencoder \
            "$FOLDER/in-way.onnx" --device intel-xeon-6-207
}
# Nor is anything measured that could not be kept.
refuses_to_measure_in_vain() {
    gives 2 "$GRAFT" optimize resnet8 "$FOLDER/z.onnx" --database "$FOLDER/file/cpu.costs" &&
        grep -q "cannot write $FOLDER/file/cpu.costs: Not a directory" "$FOLDER/err" && grep -q -e '--database FILE' "$FOLDER/err" &&
        ! grep -q 'measuring: [1-9]' "$FOLDER/err"
}
# DS-CNN by recorded costs: every normalisation goes into a convolution, no activation leaves its own.
tells_about_the_file() {
    gives 0 "$GRAFT" --quiet optimize dscnn "$FOLDER/first.onnx" --device intel-xeon-6-207 --steps &&
        grep -q '^  BatchNormalization  *9 ->  *0$' "$FOLDER/out" && grep -q '^  Conv  *9 ->  *9$' "$FOLDER/out" &&
        grep -q '^  Relu  *9 ->  *9$' "$FOLDER/out" &&
        grep -q '^  parameters  *0.02[0-9] M ->  *0.02[0-9] M$' "$FOLDER/out" &&
        grep -q '^  flops  *5[0-9.]* M ->  *5[0-9.]* M$' "$FOLDER/out" && grep -q '^  Gemm  *1 ->  *1$' "$FOLDER/out" &&
        ! grep -q 'fill-max' "$FOLDER/out" &&
        grep -q '^dscnn: 31 operators, .* ms -> 22 operators, .* ms by [0-9]* rewrites: predicted time 100 -> [0-9]' "$FOLDER/out"
}
tells_programs() {
    gives 0 "$GRAFT" --quiet optimize dscnn "$FOLDER/x.onnx" --device intel-xeon-6-207 --json &&
        grep -q '^{"kind": "Conv", "before": 9, "after": 9}$' "$FOLDER/out" &&
        tail -n 1 "$FOLDER/out" | grep -q '"operators_before": 31, "operators_after": 22, ' &&
        cmp "$FOLDER/x.onnx" "$FOLDER/first.onnx"
}
# What came out has nothing left to take, and comes back byte for byte.
is_done() {
    gives 0 "$GRAFT" --quiet optimize "$FOLDER/x.onnx" "$FOLDER/y.onnx" --device intel-xeon-6-207 &&
        grep -q '22 operators, .* ms -> 22 operators, .* ms by 0 rewrites: predicted time 100 -> 100.0' "$FOLDER/out" &&
        cmp "$FOLDER/x.onnx" "$FOLDER/y.onnx"
}
checks() {
    gives 0 "$GRAFT" --quiet optimize resnet8 "$FOLDER/c.onnx" --database "$COSTS" --check 3 &&
        grep -q '^checked on 3 random inputs: outputs agree, largest difference [0-9]' "$FOLDER/out" &&
        gives 0 "$GRAFT" --quiet optimize autoencoder "$FOLDER/c.onnx" --database "$COSTS" --check 2 --json &&
        tail -n 1 "$FOLDER/out" | grep -q '"checks": 2, "difference": ' &&
        cp "$FOLDER/x.onnx" "$FOLDER/place.onnx" &&
        gives 0 "$GRAFT" --quiet optimize "$FOLDER/place.onnx" "$FOLDER/place.onnx" --database "$COSTS" --check 1 &&
        cp "$FOLDER/place.onnx" "$FOLDER/kept.onnx" &&
        gives 2 "$GRAFT" --quiet optimize "$FOLDER/x.onnx" "$FOLDER/place.onnx" --database "$COSTS" --report /dev/full &&
        grep -q '/dev/full' "$FOLDER/err" && cmp "$FOLDER/kept.onnx" "$FOLDER/place.onnx" && [ -z "$(find "$FOLDER" -name '*unchecked*')" ]
}
# Searches that would take minutes: what there is after a second is written, and it is said so.
stops_in_time() { # ARGUMENT...
    gives 0 timeout 900 "$GRAFT" --quiet optimize "$@" --seconds 1 &&
        grep -q '^stopped after 1 s: how far it got depends' "$FOLDER/out" && [ -s "$FOLDER/s.onnx" ]
}
bounds_searches() {
    stops_in_time resnet8 "$FOLDER/s.onnx" --device intel-xeon-6-207 --search backtracking --dequeues 10000000 &&
        stops_in_time nasnet "$FOLDER/s.onnx" --device intel-xeon-6-207 --search beam --width 64 &&
        gives 0 "$GRAFT" --quiet optimize resnet8 "$FOLDER/s.onnx" --device intel-xeon-6-207 --seconds 100 --json &&
        tail -n 1 "$FOLDER/out" | grep -q '"out_of_time": false'
}
# Of the hundred and more ways to run its convolutions the first few are measured, and the probes of a line that
# estimates the others.
bounds_measuring() {
    rm -f "$FOLDER/late.costs" &&
        stops_in_time resnet18 "$FOLDER/s.onnx" --database "$FOLDER/late.costs" &&
        [ "$(grep -c 'conv' "$FOLDER/late.costs")" -lt 90 ]
}
# Costs are those of records, outputs those of this processor.
checks_for_a_recorded_device() {
    gives 0 "$GRAFT" --quiet optimize dscnn "$FOLDER/there.onnx" --device intel-xeon-6-207 --search greedy --check 1 &&
        grep -q '^checked on 1 random inputs: outputs agree' "$FOLDER/out" && [ -e "$FOLDER/there.onnx" ]
}
keeps_costs_in_the_cache() {
    mkdir "$FOLDER/elsewhere" "$FOLDER/cache" && cd "$FOLDER/elsewhere" || return 1
    XDG_CACHE_HOME=$FOLDER/cache "$GRAFT" --quiet measure resnet8 --rounds 3 > "$FOLDER/out" &&
        XDG_CACHE_HOME=relative HOME=$FOLDER/home "$GRAFT" --quiet measure autoencoder --rounds 3 > "$FOLDER/out"
    status=$?
    cd "$CHECKOUT" && [ $status = 0 ] && [ -s "$FOLDER/cache/graft/costs/cpu.costs" ] &&
        [ -s "$FOLDER/home/.cache/graft/costs/cpu.costs" ] && [ -z "$(ls "$FOLDER/elsewhere")" ]
}

check "bad arguments before the model" refuses_bad_arguments
check "an option that the search does not read" refuses_what_nobody_would_read
check "files that it cannot read" refuses_what_it_cannot_read
check "an output that cannot be written" refuses_what_it_cannot_write
check "costs that cannot be kept" refuses_to_measure_in_vain
check "tells about the file" tells_about_the_file
check "--seconds bounds searches" bounds_searches
check "--seconds bounds measuring" bounds_measuring
check "the same for programs" tells_programs
check "once more changes nothing" is_done
check "runs the file" checks
check "runs it here for a device that is not here" checks_for_a_recorded_device
check "measurements in the user's cache" keeps_costs_in_the_cache
finish
