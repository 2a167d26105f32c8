#!/bin/sh
# Graphs made at random, rewritten at random, with some sizes left open: onnxruntime computes the same of
# what comes back. Others than these: GRAPHS=FIRST,COUNT.
. tests/support/tap.sh

GRAPHS=${GRAPHS:-1,60}

computes_the_same() {
    "$python" -W ignore tests/interop/random_graphs.py "$GRAFT" intel-xeon-6-207 "$FOLDER" "${GRAPHS%,*}" "${GRAPHS#*,}" \
        > "$FOLDER/log" 2>&1 && return 0
    tail -n 20 "$FOLDER/log"
    return 1
}

need_runtime "random graphs in onnxruntime"
check "random graphs compute the same in onnxruntime" computes_the_same

finish
