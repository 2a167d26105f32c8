#!/bin/sh
# The Python wheel: it is built, installed into an environment of its own, and each function is called.
. tests/support/tap.sh

if [ "$MODE" != release ] || ! python3 -c 'import ensurepip, venv' 2> /dev/null || ! command -v strip > /dev/null; then
    skip "the Python wheel" "not a release build, or no python3 with venv here (package python3-venv)"
    finish
    exit
fi
MAKE="make --no-print-directory OUT=$(dirname "$GRAFT") MODE=$MODE"
PYTHON=$FOLDER/venv/bin/python
TOOLS=out/venv-wheel/bin

# shellcheck disable=SC2086 # Words.
builds() { gives 0 $MAKE wheel-pack PACKAGES="$FOLDER/wheel" && [ -s "$(tail -n 1 "$FOLDER/out")" ]; }
installs() {
    python3 -m venv "$FOLDER/venv" && find "$FOLDER/venv" | sort > "$FOLDER/before" &&
        "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile "$FOLDER"/wheel/*.whl
}
works() {
    device=$(sed -n '2s/.*"device": *"\([^"]*\)".*/\1/p' rules/costs/intel-xeon-6-207-avx512.costs)
    mkdir -p "$FOLDER/elsewhere"
    cp tests/packaging/use_wheel.py "$FOLDER/elsewhere" &&
        (cd "$FOLDER/elsewhere" && env -i PATH=/usr/bin:/bin HOME="$FOLDER" "$PYTHON" -B use_wheel.py "$device")
}
is_program() { gives 0 env -i "$FOLDER/venv/bin/graft" version && [ "$(cat "$FOLDER/out")" = "$("$GRAFT" version)" ]; }
# Nothing of the program comes from a library that the machine may lack.
brings_libraries() {
    program=$(echo "$FOLDER"/venv/lib/python3*/site-packages/graft/bin/graft)
    ! ldd "$program" | grep -v "$FOLDER\|linux-vdso\|ld-linux\|lib\(c\|m\|gcc_s\|stdc++\)\.so"
}
leaves() {
    "$PYTHON" -m pip uninstall --quiet --disable-pip-version-check -y graft-onnx &&
        find "$FOLDER/venv" -not -name '*.pyc' -not -name __pycache__ | sort > "$FOLDER/after" &&
        ! grep -i graft-onnx "$FOLDER/after" && ! comm -13 "$FOLDER/before" "$FOLDER/after" | grep .
}
checkers() { "$TOOLS/twine" check --strict "$FOLDER"/wheel/*.whl && "$TOOLS/check-wheel-contents" "$FOLDER"/wheel/*.whl; }

check "builds" builds
check "installs" installs
check "its functions work from another folder" works
check "its program does" is_program
check "it brings the libraries along" brings_libraries
check "and leaves no trace" leaves
if [ -x "$TOOLS/twine" ] && [ -x "$TOOLS/check-wheel-contents" ]; then
    check "twine and check-wheel-contents have nothing against it" checkers
else
    skip "twine and check-wheel-contents have nothing against it" "not here; make wheel-tools installs them from PyPI"
fi
if [ -x "$TOOLS/mypy" ]; then
    check "its types hold" env MYPYPATH=packaging/python "$TOOLS/mypy" --strict --cache-dir="$FOLDER/mypy" packaging/wheel.py \
        tests/packaging/use_wheel.py
else
    skip "its types hold" "no mypy here; make wheel-tools installs it from PyPI"
fi
finish
