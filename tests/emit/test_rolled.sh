#!/bin/sh
# Recurrent nets written step by step, as one node where a device is faster by that (graph/rolled.h), held against
# onnxruntime.
. tests/support/tap.sh
export GRAFT_DEVICE_SECONDS=600 # It is a Python that starts, on whatever machine.

device() { # NAME [OPTION]
    printf '#!/bin/sh\nexec "%s" "%s/tests/emit/rolled.py" device %s\n' "$python" "$PWD" "${2:-}" > "$FOLDER/$1" && chmod +x "$FOLDER/$1"
}
optimize() { # NAME OPTION...
    name=$1
    shift
    gives 0 "$GRAFT" optimize "$FOLDER/$name.onnx" "$FOLDER/$name.out.onnx" --device "$FOLDER/nodes" --database "$FOLDER/x.costs" \
        --search greedy "$@"
}
# Each by itself: what the log says of it, and what was written.
rolls() {
    for form in $("$python" tests/emit/rolled.py names rolled); do
        optimize "$form" && grep -q '[48] recurrent cells as whole nets: 0\..*, taken' "$FOLDER/err" &&
            grep -q 'operators are written by other algorithms' "$FOLDER/out" || return 1
    done
    "$python" tests/emit/rolled.py rolled "$FOLDER"
}
leaves() {
    for form in $("$python" tests/emit/rolled.py names left); do
        optimize "$form" && ! grep -q 'recurrent cells' "$FOLDER/err" || return 1
    done
    "$python" tests/emit/rolled.py left "$FOLDER"
}
# Where a device is no faster by it, and where results are to be exact, files come out as they came.
keeps() {
    device nodes alike && optimize two_products_alone && grep -q '4 recurrent cells .* left out' "$FOLDER/err" &&
        cmp "$FOLDER/two_products_alone.onnx" "$FOLDER/two_products_alone.out.onnx" && device nodes &&
        optimize two_products_alone --exact && ! grep -q 'recurrent cells' "$FOLDER/err"
}

need_runtime "recurrent nets rolled"
device nodes && "$python" tests/emit/rolled.py make "$FOLDER"
check "rolls nets in all forms" rolls
check "leaves what is none" leaves
check "keeps what is no faster" keeps

finish
