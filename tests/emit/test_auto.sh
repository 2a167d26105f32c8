#!/bin/sh
# What `graft optimize` finds by itself: steps that gain nothing alone are taken where they lead to
# what does.
. tests/support/tap.sh

optimize() { # MODEL OPTIONS...
    model=$1
    shift
    gives 0 "$GRAFT" optimize "$FOLDER/$model.onnx" "$FOLDER/out.onnx" --device amd-epyc-25-17 --json "$@"
}
told() { grep '"model"' "$FOLDER/out" | grep -q "$1"; }
# A normalisation in steps is one again before opset 17, so that putting it together gains nothing.
finds_nothing() { # MODEL
    optimize "$1" --search greedy && told '"rules_applied": 0,' && cmp "$FOLDER/$1.onnx" "$FOLDER/out.onnx"
}
cuts_in_front() { # MODEL
    optimize "$1" && told '"search": "guided"' && "$python" tests/emit/rows.py same "$FOLDER/$1.onnx" "$FOLDER/out.onnx" &&
        "$python" tests/emit/rows.py products "$FOLDER/out.onnx" > "$FOLDER/rows" && grep -qx 1 "$FOLDER/rows"
}

if python=$(sh cost/rival/python.sh "${OUT:-out/release}/../venv") && "$python" -c 'import onnxruntime' 2> "$FOLDER/log"; then
    for batch in 1 batch; do
        "$python" tests/emit/rows.py make "$FOLDER/$batch.onnx" $batch
        check "nothing gains alone, batch $batch" finds_nothing $batch
        check "rows are cut out in front of a normalisation in steps, batch $batch" cuts_in_front $batch
    done
else
    skip "files of others" "$(tail -1 "$FOLDER/log")"
fi
finish
