#!/bin/sh
# How much of the engine tests reach: lines and branches of include/graft, by file.
#
#   OUT=out/cov sh tests/coverage.sh PROGRAM...
#
# PROGRAM are tests of MODE=cov; what they reach is counted anew. Exit status 1 when a line or branch is not
# reached and not in tests/unreached.txt, which says why, or is there and reached. Run in the root of the project.
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

# Branches that were never taken, as FILE|BRANCHES|CODE; a line that was never run counts as one.
awk '
    function tell() {
        if (mine && missing) print file "|" missing "|" code
        missing = 0
    }
    /^ *-: *0:Source:/ { tell(); mine = /:Source:include\/graft\//; file = $0; sub(/.*\//, "", file) }
    /^branch .*(never executed|taken 0)/ { missing++ }
    /^ *[0-9#=*-]+\*?: *[0-9]+:/ {
        tell()
        code = $0
        sub(/^[^:]*: *[0-9]+: */, "", code)
        if ($0 ~ /^ *#####:/) missing = 1
    }
    END { tell() }' "$OUT"/coverage/*.gcov | sort > "$OUT/coverage/missing.txt"
grep -v '^#' tests/unreached.txt | cut -d '|' -f 1-3 | sort > "$OUT/coverage/listed.txt"
diff "$OUT/coverage/listed.txt" "$OUT/coverage/missing.txt" > "$OUT/coverage/differences.txt" || {
    sed -n 's/^> /not reached, and not in tests\/unreached.txt: /p; s/^< /in tests\/unreached.txt, but not so: /p' \
        "$OUT/coverage/differences.txt"
    exit 1
}
echo "what is not reached is in tests/unreached.txt, $(wc -l < "$OUT/coverage/listed.txt") rows"
