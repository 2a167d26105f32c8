#!/bin/sh
# Prints the path of a Python that can import onnx, better still onnxruntime too.
#
#   sh cost/rival/python.sh out/venv
#
# Both are installed from PyPI into that folder when they are not there yet, by whoever comes first:
# others wait. Versions are pinned. Where that does not work, a Python that has onnx (Debian's
# python3-onnx) is good for the checker alone. Without any the exit status is 1 and the reason is
# printed instead.
set -u
FOLDER=$1
log=$FOLDER.log

works() {
    [ -x "$1" ] && "$1" -c "$2" > /dev/null 2>&1
}

both='import numpy, onnx, onnxruntime'
if ! works "$FOLDER/bin/python" "$both"; then
    mkdir -p "$(dirname "$FOLDER")"
    exec 9> "$FOLDER.lock"
    flock 9
    works "$FOLDER/bin/python" "$both" || { python3 -m venv "$FOLDER" &&
        timeout 300 "$FOLDER/bin/python" -m pip install --quiet --disable-pip-version-check \
            onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6; } > "$log" 2>&1
    exec 9>&-
fi
if works "$FOLDER/bin/python" "$both"; then
    echo "$FOLDER/bin/python"
    exit 0
fi
for candidate in /usr/bin/python3 "$(command -v python3)"; do
    if works "$candidate" 'import numpy, onnx'; then
        echo "$candidate"
        exit 0
    fi
done
echo "onnx and onnxruntime cannot be installed from PyPI (see $log), and python3-onnx is not here"
exit 1
