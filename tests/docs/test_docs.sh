#!/bin/sh
# Runs the commands of the pages that a newcomer reads, compiles their code, and compares what they
# print with what the pages show (tests/docs/blocks.py says how).
: "${GRAFT:?set by tests/run.sh}"
PAGES="README.md docs/tour.md docs/devices.md docs/run.md docs/tutorial-rule.md docs/embedding.md docs/faq.md docs/report.md"

if [ "${MODE:-release}" != release ]; then
    echo "# skip: the pages show what the release build prints"
    echo "ok 1 - pages # SKIP"
    echo 1..1
elif ! command -v python3 > /dev/null || ! command -v pkg-config > /dev/null; then
    echo "# skip: no python3 or no pkg-config here"
    echo "ok 1 - pages # SKIP"
    echo 1..1
else
    # shellcheck disable=SC2086 # Words.
    exec python3 tests/docs/blocks.py "$GRAFT" $PAGES
fi
