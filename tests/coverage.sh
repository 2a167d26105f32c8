#!/bin/sh
# How much of the engine tests reach: lines and branches of include/graft, by file, and then every line that
# none does.
#
#   OUT=out/cov sh tests/coverage.sh PROGRAM...
#
# PROGRAM are tests of MODE=cov; what they reach is counted anew. Run in the root of the project.
set -eu
: "${OUT:?}"

rm -rf "$OUT/coverage" "$OUT/graph/engine.gcda"
mkdir -p "$OUT/coverage"
for program in "$@"; do
    "$program" > "$OUT/coverage/output.txt" 2>&1 || {
        cat "$OUT/coverage/output.txt"
        exit 1
    }
done
gcov --branch-probabilities --branch-counts -o "$OUT/graph" "$OUT/graph/engine.o" > "$OUT/coverage/summary.txt"
mv ./*.gcov "$OUT/coverage/"
awk -F "[:%' ]+" '
    function row(name, lines, line, branches, branch) {
        printf "%-16s %6.2f %% of %4d lines %7.2f %% of %4d branches\n", name, line, lines, branch, branches
    }
    function tell() {
        if (!mine) return
        row(name, lines, line, branches, branch)
        all_lines += lines
        all_branches += branches
        reached_lines += lines * line / 100
        reached_branches += branches * branch / 100
    }
    /^File/ { mine = $2 ~ /^include\/graft/; name = $2; sub(/.*\//, "", name); branches = 0 }
    /^Lines executed/ { line = $3; lines = $5 }
    /^Taken at least once/ { branch = $5; branches = $7 }
    /^Creating/ { tell(); mine = 0 }
    END {
        row("all", all_lines, 100 * reached_lines / all_lines, all_branches, 100 * reached_branches / all_branches)
    }' "$OUT/coverage/summary.txt"
for file in "$OUT"/coverage/*.gcov; do
    grep '#####' "$file" | sed "s|^ *#####: *|$(basename "$file" .gcov):|" || true
done
