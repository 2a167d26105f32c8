#!/bin/sh
# Operator bodies and laws of functions changed on purpose (body_mutations.txt): the programs that
# hold them are built anew from a changed copy of the sources under out/body-mutants, and one of them
# must fail: of the bodies, of the terms and laws, of the checker, of the proof for all sizes, or the
# adversarial corpus.
# A mutation that nobody notices is a hole in what is trusted. Prints TAP that says who noticed first.
#
#   MUTATIONS="12 13"   only these, by number
set -u
: "${JOBS:=2}"
list=tests/verify/body_mutations.txt
scratch=out/body-mutants
programs="graph/test_reading graph/test_bodies graph/test_algebras verify/test_term verify/test_check verify/test_symbolic \
    verify/test_numeric verify/test_corpus verify/test_definedness verify/test_hints"
count=$(grep -vc '^#' "$list")
numbers=${MUTATIONS:-$(seq 1 "$count")}

# The sources, without what was built.
mkdir -p "$scratch"
tar -cf - --exclude=./out --exclude=./.git . | tar -xf - -C "$scratch" || exit 1
# What an interrupted run has built of a mutation is older than this.
grep -v '^#' "$list" | sed 's/ ==> .*//' | sort -u | while read -r file; do touch "$scratch/$file"; done
# Builds and runs one program after another; names the first that fails, nothing when all pass.
notice() {
    for p in $programs; do
        make -C "$scratch" -s -j"$JOBS" MODE=release CUDA=0 CFLAGS_EXTRA='-O1 -Wno-error' \
            "out/release/tests/$p" > "$scratch/build.log" 2>&1 || { echo "no build"; return; }
        (cd "$scratch" && CMOCKA_MESSAGE_OUTPUT=TAP timeout 900 "out/release/tests/$p") \
            > "$scratch/log" 2>&1 || { echo "$p"; return; }
    done
}

echo "1..$(($(echo "$numbers" | wc -w) + 1))"
first=$(notice)
if [ -n "$first" ]; then
    echo "not ok 1 - the sources as they are pass: $first"
    cat "$scratch/build.log"
    exit 1
fi
echo "ok 1 - the sources as they are pass"
case_number=1
for n in $numbers; do
    case_number=$((case_number + 1))
    line=$(grep -v '^#' "$list" | sed -n "${n}p")
    file=${line%% ==> *}
    what=${line##* ==> }
    cp -p "$scratch/$file" "$scratch/original"
    # Texts are fixed, not patterns.
    noticed="nothing to change"
    if LINE=$line awk '
        BEGIN { split(ENVIRON["LINE"], part, " ==> "); from = part[2]; to = part[3] }
        {
            while ((at = index($0, from)) > 0) {
                printf "%s%s", substr($0, 1, at - 1), to
                $0 = substr($0, at + length(from))
                changed = 1
            }
            print
        }
        END { exit !changed }' "$scratch/original" > "$scratch/$file"; then
        noticed=$(notice)
    fi
    case $noticed in
    "" | no\ build | nothing*) echo "not ok $case_number - $what: ${noticed:-nobody noticed}" ;;
    *) echo "ok $case_number - $what: $noticed" ;;
    esac
    cp "$scratch/original" "$scratch/$file"
done
