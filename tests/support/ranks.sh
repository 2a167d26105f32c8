# shellcheck shell=sh
# ranks.sh - for scripts behind tap.sh whose program runs as several ranks, all on this machine, more
# of them than it has processors.
root=
[ "$(id -u)" != 0 ] || root=--allow-run-as-root
# ranks N COMMAND...: starts it N times; nothing but this machine is asked. A sanitizer does not look
# for leaks: Open MPI leaves memory behind.
ranks() {
    count=$1
    shift
    # shellcheck disable=SC2086 # Empty, or an option.
    OMPI_MCA_plm=isolated ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 \
        mpirun $root --oversubscribe --bind-to none -n "$count" "$@" 2> "$FOLDER/log"
}

children_of() { cat /proc/"${1% }"/task/*/children; }
# kill_rank NUMBER PID: kills the rank of that number which the shell PID has started with `ranks`.
kill_rank() {
    for pid in $(children_of "$(children_of "$2")"); do
        tr '\0' '\n' < "/proc/$pid/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1" && kill -KILL "$pid"
    done
}

# need_ranks NAME: skips the case of that name, and ends the script, where ranks cannot be started.
need_ranks() {
    if [ ! -e "${GRAFT%/*}/graft-mpi.so" ]; then
        skip "$1" "no Open MPI when it was built (make deps)"
    elif ! ranks 2 true; then
        skip "$1" "mpirun does not start here: $(grep -m 1 '[a-z]' "$FOLDER/log")"
    else
        return 0
    fi
    finish
    exit
}
