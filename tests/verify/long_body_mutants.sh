#!/bin/sh
# Operator bodies and laws of functions changed on purpose (body_mutations.txt): the programs that
# hold them are built anew from a changed copy of the sources under out/body-mutants, and some test
# must fail: of the adversarial corpus, of the bodies against other implementations, or of the terms.
# A mutation that nobody notices is a hole in what is trusted. Prints TAP, and a table of who noticed.
#
#   MUTATIONS="12 13"   only these, by number
set -u
: "${JOBS:=2}"
list=tests/verify/body_mutations.txt
scratch=out/body-mutants
programs="graph/test_bodies graph/test_algebras verify/test_term verify/test_check verify/test_corpus"
count=$(grep -vc '^#' "$list")
numbers=${MUTATIONS:-$(seq 1 "$count")}

# The sources, without what was built.
mkdir -p "$scratch"
tar -cf - --exclude=./out --exclude=./.git . | tar -xf - -C "$scratch" || exit 1
build() {
    targets=
    for p in $programs; do targets="$targets out/release/tests/$p"; done
    # shellcheck disable=SC2086
    make -C "$scratch" -s -j"$JOBS" MODE=release CUDA=0 CFLAGS_EXTRA='-O1 -Wno-error' $targets
}
# Names of the programs that fail.
run() {
    noticed=
    for p in $programs; do
        (cd "$scratch" && CMOCKA_MESSAGE_OUTPUT=TAP timeout 900 "out/release/tests/$p") \
            > "$scratch/log" 2>&1 || noticed="$noticed ${p#*/test_}"
    done
    echo "$noticed"
}

echo "1..$(($(echo "$numbers" | wc -w) + 1))"
if build > "$scratch/build.log" 2>&1 && [ -z "$(run)" ]; then
    echo "ok 1 - the sources as they are pass"
else
    echo "not ok 1 - the sources as they are do not build or pass"
    cat "$scratch/build.log"
    exit 1
fi
case_number=1
for n in $numbers; do
    case_number=$((case_number + 1))
    line=$(grep -v '^#' "$list" | sed -n "${n}p")
    file=${line%% ==> *}
    what=${line##* ==> }
    cp -p "$scratch/$file" "$scratch/original"
    # Texts are fixed, not patterns.
    LINE=$line awk '
        BEGIN { split(ENVIRON["LINE"], part, " ==> "); from = part[2]; to = part[3] }
        {
            while ((at = index($0, from)) > 0) {
                printf "%s%s", substr($0, 1, at - 1), to
                $0 = substr($0, at + length(from))
                changed = 1
            }
            print
        }
        END { exit !changed }' "$scratch/original" > "$scratch/$file"
    if [ $? -ne 0 ]; then
        noticed=
        why="the text to replace is not there"
    elif ! build > "$scratch/build.log" 2>&1; then
        noticed=
        why="it does not build: $(tail -n 3 "$scratch/build.log" | tr '\n' ' ')"
    else
        noticed=$(run)
        why="nobody noticed"
    fi
    if [ -n "$noticed" ]; then
        echo "ok $case_number - $what:$noticed"
    else
        echo "not ok $case_number - $what: $why"
    fi
    cp "$scratch/original" "$scratch/$file"
done
