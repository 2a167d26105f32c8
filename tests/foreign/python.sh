#!/bin/sh
# Prints the paths of two Pythons for the benchmark of foreign models, and installs what they need:
# one with onnx, onnxruntime, onnxsim and onnxslim, one with PyTorch's models and exporter. Versions are
# pinned. PyTorch is Debian's (134 MB; the wheels on PyPI bring CUDA, 4 GB).
#
#   sh tests/foreign/python.sh out/foreign
set -u
FOLDER=$1
log=$FOLDER/install.log
mkdir -p "$FOLDER" || exit 1
: > "$log"

fail() {
    echo "$1 (see $log)" >&2
    exit 1
}

# install VENV PYTHON OPTION PACKAGES...: a virtual environment, made once.
install() {
    venv=$1 python=$2 option=$3
    shift 3
    [ -f "$venv/done" ] && return 0
    rm -rf "$venv"
    { "$python" -m venv "$option" "$venv" &&
        timeout 900 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" &&
        touch "$venv/done"; } >> "$log" 2>&1
}

install "$FOLDER/venv" python3 --clear onnx==1.23.2 onnxruntime==1.32.0 onnxsim==0.8.1 onnxslim==0.1.98 ||
    fail "onnx, onnxruntime, onnxsim and onnxslim cannot be installed from PyPI"
/usr/bin/python3 -c 'import torch, torchvision' > /dev/null 2>&1 ||
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        python3-torch python3-torchvision python3-venv >> "$log" 2>&1 ||
    fail "PyTorch is missing; as root: apt-get install python3-torch python3-torchvision python3-venv"
install "$FOLDER/venv-export" /usr/bin/python3 --system-site-packages timm==0.9.16 transformers==4.30.2 ||
    fail "timm and transformers cannot be installed from PyPI"
echo "$FOLDER/venv/bin/python $FOLDER/venv-export/bin/python"
