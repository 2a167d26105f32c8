# shellcheck shell=sh
# tap.sh - for tests that are shell scripts: `. tests/support/tap.sh`, then `check NAME COMMAND...`
# for each case and `finish` at the end. GRAFT is the binary under test; FOLDER is a new folder for
# this script's files, removed at the end.
: "${GRAFT:?set by tests/run.sh}"
FOLDER=$(mktemp -d "${TMPDIR:-/tmp}/graft-test-XXXXXX")
trap 'rm -rf "$FOLDER"' EXIT
export PYTHONPATH="$PWD/tests/support" # nets.py, browser.py
tap_count=0
tap_failed=0

# The case passes when the command succeeds; what it printed is shown when it does not.
check() {
    tap_name=$1
    shift
    tap_count=$((tap_count + 1))
    if "$@" > "$FOLDER/.tap" 2>&1; then
        echo "ok $tap_count - $tap_name"
    else
        echo "not ok $tap_count - $tap_name"
        sed 's/^/# /' "$FOLDER/.tap"
        tap_failed=$((tap_failed + 1))
    fi
}

# skip NAME REASON: one case that cannot be run here.
skip() {
    tap_count=$((tap_count + 1))
    echo "# skip: $2"
    echo "ok $tap_count - $1 # SKIP"
}

# gives STATUS COMMAND...: runs it with stdout in $FOLDER/out, stderr in $FOLDER/err, and succeeds
# when its exit status is STATUS.
gives() {
    tap_want=$1
    shift
    tap_status=0
    "$@" > "$FOLDER/out" 2> "$FOLDER/err" || tap_status=$?
    [ "$tap_status" = "$tap_want" ] && return 0
    echo "exit status $tap_status, expected $tap_want: $*"
    cat "$FOLDER/out" "$FOLDER/err"
    return 1
}

# error_is STATUS TEXT COMMAND...: the command fails with that exit status, prints nothing on stdout
# and exactly one line on stderr, which contains the text.
error_is() {
    tap_want=$1
    tap_text=$2
    shift 2
    gives "$tap_want" "$@" || return 1
    if [ -s "$FOLDER/out" ] || [ "$(wc -l < "$FOLDER/err")" != 1 ] ||
        ! grep -qF -- "$tap_text" "$FOLDER/err"; then
        echo "expected nothing on stdout and one line with '$tap_text' on stderr:"
        cat "$FOLDER/out" "$FOLDER/err"
        return 1
    fi
}

# await PID COMMAND...: until the command succeeds, the process has ended or ten minutes are over.
await() {
    tap_pid=$1
    shift
    tap_tries=0
    while ! "$@" 2> /dev/null && [ $tap_tries -lt 60000 ] && kill -0 "$tap_pid" 2> /dev/null; do
        sleep 0.01
        tap_tries=$((tap_tries + 1))
    done
}

# need_runtime NAME: `python` is one that has onnx and onnxruntime; where there is none, skips the
# case of that name and ends the script.
need_runtime() {
    python=$(sh cost/rival/python.sh "${OUT:-out/release}/../venv") &&
        "$python" -c 'import onnxruntime' 2> "$FOLDER/log" && return
    skip "$1" "no onnxruntime here"
    finish
    exit
}

# runs_like MODEL IN.npz WANT.npz: `graft run` makes of these inputs what is wanted.
runs_like() {
    gives 0 "$GRAFT" --quiet --threads 1 run "$1" --inputs "$2" --outputs "$FOLDER/have.npz" \
        --database "$FOLDER/x.costs" &&
        "$python" tests/support/nets.py compare "$3" "$FOLDER/have.npz"
}

finish() {
    echo "1..$tap_count"
    [ "$tap_failed" = 0 ]
}
