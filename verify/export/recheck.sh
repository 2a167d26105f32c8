#!/bin/sh
# Rechecks the obligations in a folder with solvers that did not prove them: Debian's cvc5 and a later Z3
# from PyPI.
#
#   JOBS=2 sh verify/export/recheck.sh FOLDER VENV           both; fails when one is not to be had
#   sh verify/export/recheck.sh --which VENV                 the solvers that there are, as NAME=PATH
#
# The Z3 is installed into the folder VENV when it is not there. Exit status as of recheck.py.
set -u
# Pinned: answers are those of this version.
Z3_PACKAGE=z3-solver==4.13.4.0

find_cvc5() {
    command -v cvc5 || {
        echo "cvc5 is not installed; 'make deps DEV=1' installs it" >&2
        return 1
    }
}

find_z3() {
    if ! "$1/bin/z3" --version > /dev/null 2>&1; then
        mkdir -p "$(dirname "$1")"
        { python3 -m venv "$1" && timeout 300 "$1/bin/python" -m pip install --quiet \
            --disable-pip-version-check "$Z3_PACKAGE"; } > "$1.log" 2>&1
    fi
    if ! "$1/bin/z3" --version > /dev/null 2>&1; then
        echo "$Z3_PACKAGE cannot be installed from PyPI (see $1.log)" >&2
        return 1
    fi
    echo "$1/bin/z3"
}

if [ "$1" = --which ]; then
    status=0
    if path=$(find_cvc5); then echo "cvc5=$path"; else status=1; fi
    if path=$(find_z3 "$2"); then echo "z3=$path"; else status=1; fi
    exit $status
fi

if ! solvers=$(sh "$0" --which "$2"); then
    echo "recheck: not done, for want of a solver" >&2
    exit 2
fi
options=
for solver in $solvers; do
    options="$options --solver $solver"
done
# shellcheck disable=SC2086 # Split into words on purpose.
exec nice python3 verify/export/recheck.py "$1" --jobs "${JOBS:-1}" $options
