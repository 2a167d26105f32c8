#!/bin/sh
# LSTM, GRU and RNN by their steps: `graft run` and `graft optimize --unroll`, held against onnxruntime.
. tests/support/tap.sh

DB=$FOLDER/x.costs
DEVICE=intel-xeon-6-167

# Directions, layouts, states, biases, lengths, linear_before_reset: all of them in one model.
runs() {
    "$python" tests/emit/recurrent.py make "$FOLDER" &&
        runs_like "$FOLDER/all.onnx" "$FOLDER/in.npz" "$FOLDER/want.npz"
}
# What does not come apart: sequences of several lengths, long ones, an RNN of Relu.
runs_whole() {
    runs_like "$FOLDER/whole.onnx" "$FOLDER/wholein.npz" "$FOLDER/wholewant.npz" &&
        error_is 2 "sequence 1 of a recurrent node has 5 steps, of 4" "$GRAFT" --quiet --threads 1 run "$FOLDER/whole.onnx" \
            --inputs "$FOLDER/long.npz" --outputs "$FOLDER/have.npz" --database "$DB"
}
count() { # KIND FILE
    "$python" -c 'import onnx, sys; print(sum(n.op_type == sys.argv[1] for n in onnx.load(sys.argv[2]).graph.node))' "$@"
}
# Rewritten by their steps, for a device that runs these faster, a file computes the same.
optimizes() {
    printf '#!/bin/sh\nexec "%s" "%s/tests/emit/recurrent.py" device\n' "$python" "$PWD" > "$FOLDER/steps" && chmod +x "$FOLDER/steps" &&
        gives 0 "$GRAFT" optimize "$FOLDER/plain.onnx" "$FOLDER/out.onnx" --device "$FOLDER/steps" --unroll 4 --check 1 \
            --database "$FOLDER/steps.costs" &&
        [ "$(count LSTM "$FOLDER/out.onnx")" = 0 ] && [ "$(count GRU "$FOLDER/out.onnx")" = 0 ] &&
        "$python" tests/emit/recurrent.py run "$FOLDER/plain.onnx" "$FOLDER/plain.npz" "$FOLDER/want.npz" &&
        "$python" tests/emit/recurrent.py run "$FOLDER/out.onnx" "$FOLDER/plain.npz" "$FOLDER/have.npz" &&
        "$python" tests/support/nets.py compare "$FOLDER/want.npz" "$FOLDER/have.npz"
}
# Not asked for, or for fewer steps, they come back as they were.
stays_whole() {
    gives 0 "$GRAFT" optimize "$FOLDER/plain.onnx" "$FOLDER/out.onnx" --device $DEVICE &&
        cmp "$FOLDER/plain.onnx" "$FOLDER/out.onnx" &&
        gives 0 "$GRAFT" optimize "$FOLDER/plain.onnx" "$FOLDER/out.onnx" --device $DEVICE --unroll 3 &&
        cmp "$FOLDER/plain.onnx" "$FOLDER/out.onnx"
}
refuses() { # WHAT REASON
    gives 0 "$GRAFT" --verbose optimize "$FOLDER/$1.onnx" "$FOLDER/out.onnx" --device $DEVICE --unroll 4 &&
        grep -q "(LSTM) is opaque: $2" "$FOLDER/err" && cmp "$FOLDER/$1.onnx" "$FOLDER/out.onnx" && return 0
    grep LSTM "$FOLDER/err"
    return 1
}
refuses_all() {
    "$python" tests/emit/recurrent.py refused "$FOLDER" && refuses lengths 'sequences of several lengths' &&
        refuses peephole 'a peephole' && refuses clip 'an attribute that is not known' &&
        refuses steps 'more steps than are unrolled' && refuses activations 'activations other than the usual ones' &&
        refuses coupled 'a form that is not known' &&
        error_is 2 "peephole.onnx: node 'n0' (LSTM) cannot be run: it is an operator that Graft does not know, or a form of one (a peephole); all of these in the model: LSTM" "$GRAFT" --quiet run "$FOLDER/peephole.onnx" --bench --database "$DB"
}

need_runtime "recurrent nodes by their steps"
check "runs by their steps" runs
check "runs whole" runs_whole
check "optimizes by their steps" optimizes
check "stays whole" stays_whole
check "refuses what does not come apart" refuses_all

finish
