#!/bin/sh
# The style laws, as a test: format, lengths of functions and files, words that may not be in a file,
# clang-tidy, cppcheck, and gcc's -fanalyzer.
#
#   ONLY=text JOBS=2 CPPFLAGS=... sh tests/tidy.sh           checks the files whose path has the text
#   sh tests/tidy.sh format                                  reformats instead, pages too
#
# Prints what breaks a law and ends with the number of laws broken; exit status 0 when none is.
set -u

: "${ONLY:=}" "${JOBS:=1}" "${LEFT_OUT:=}" "${CPPFLAGS:=-D_GNU_SOURCE -I. -Iinclude}"
FUNCTION_LINES=60
FILE_LINES=900
broken=0

# Our C files: everything but what a generator wrote.
c_files() {
    find main.c graph gen verify cost train emit models gpu include tests examples \
        \( -name '*.c' -o -name '*.h' -o -name '*.inc' \) -print 2> /dev/null |
        grep -F -- "$ONLY" | sort
}

# What people read.
pages() { find README.md CHANGELOG.md CONTRIBUTING.md docs rules -name '*.md' | sort; }

if [ "${1:-}" = format ]; then
    ONLY=
    c_files | xargs clang-format -i
    pages | xargs python3 tests/docs/wrap.py
    exit
fi

law() {
    name=$1
    shift
    if text=$("$@" 2>&1); then
        echo "ok   $name"
    else
        printf '%s\n' "$text" | sed 's/^/     | /'
        echo "FAIL $name"
        broken=$((broken + 1))
    fi
}

# law_with TOOL NAME COMMAND...: the law, when the tool is installed; without it, it is broken.
law_with() {
    if command -v "$1" > /dev/null; then
        shift
        law "$@"
    else
        echo "FAIL $2: $1 is not installed; 'make deps DEV=1' installs it"
        broken=$((broken + 1))
    fi
}

format_is_right() { c_files | xargs -r clang-format --dry-run -Werror; }

# A function begins with a line "{" in column 0 (the house's brace style) and ends with "}". Tables
# and types have their brace elsewhere.
functions_are_short() {
    # shellcheck disable=SC2016 # awk expands its own.
    c_files | xargs -r awk -v most=$FUNCTION_LINES '
        FNR == 1    { begin = 0; head = "" }
        /^[a-zA-Z_].*[(]/ { head = $0 }
        /^\{$/      { begin = FNR }
        /^\}$/ && begin {
            lines = FNR - begin - 1
            if (lines > most) {
                printf "%s:%d: %d lines, %d are the most: %s\n", FILENAME, begin, lines, most, head
                bad = 1
            }
            begin = 0
        }
        END { exit bad }'
}

files_are_short() {
    c_files | xargs -r awk -v most=$FILE_LINES '
        FNR == most + 1 { print FILENAME ": more than " most " lines"; bad = 1 }
        END { exit bad }'
}

# Every file says at its head what it is for; the runtime headers may have a licence line first.
files_have_heads() {
    c_files | xargs -r awk '
        FNR == 1 && !/^\/\*/ { print FILENAME ": no comment at its head"; bad = 1 }
        END { exit bad }'
}

# What a proof rests on. Its bounds stand in verify/core/limits.def, each with what happens past it. Found
# here are constants that are called a bound, and arrays whose size is a number above 4: operands, the
# two sides of a rule and the axes of an image are fewer.
proof_files() {
    find verify/core graph/rule/pattern.* -name '*.[chi]*' \
        ! -name 'symmodel.*' ! -name 'symplain.*' ! -name 'opensizes.*' -print | # They prove no rule.
        grep -F -- "$ONLY" | sort
}
limits_are_in_the_table() {
    # shellcheck disable=SC2016 # awk expands its own.
    proof_files | xargs -r awk '
        /(MOST|MAX_|LIMIT|DEPTH|DEEP)[A-Z0-9_]* *=[^=]/ || /^ *# *define +[A-Z0-9_]+ +[(]?[0-9]/ ||
            /[a-z_0-9]\[([5-9]|[1-9][0-9]+|[0-9]+ *[*<+]+ *[0-9]+)\]( *=[^=]|[;,)[])/ {
            printf "%s:%d: a bound that is not in verify/core/limits.def: %s\n", FILENAME, FNR, $0
            bad = 1
        }
        END { exit bad }'
}

# One file per run: clang-tidy 14 carries state of va_list from one file to the next. Here and below
# without the firmware and the examples: they include headers that only tests generate, and a linker's symbols.
# LEFT_OUT is a folder of which the library is not there.
clang_tidy_is_silent() {
    # shellcheck disable=SC2016 # Expanded by the inner shell.
    c_files | grep '\.c$' | grep -v "^tests/firmware/\|^emit/firmware/\|^examples/\|^${LEFT_OUT:-none}/*" | xargs -r -n 1 -P "$JOBS" sh -c '
        text=$(clang-tidy --quiet "$1" -- -std=gnu11 $0 2> /dev/null) && exit 0
        printf "%s\n" "$text"
        exit 1' "$CPPFLAGS"
}

# cppcheck gets no system headers, only its own description of POSIX; hence no generated headers
# either, which ask for a version. It calls readdir unsafe, but glibc's is safe on different streams
# and its readdir_r is deprecated. It does not see arrays being filled by a function that is given
# them: whether they are is clang-tidy's matter. Across files it takes the functions that one .inc
# defines in several for each other. Unused values are gcc's.
cppcheck_is_silent() {
    # shellcheck disable=SC2086 # The flags are split into words on purpose.
    c_files | grep '\.c$' | grep -v '^tests/firmware/\|^emit/firmware/\|^examples/' | xargs -r cppcheck -q -j "$JOBS" --std=c11 --error-exitcode=1 \
        --enable=warning,performance,portability --inline-suppr --suppress=missingIncludeSystem \
        --suppress=unknownMacro --suppress=preprocessorErrorDirective --suppress=readdirCalled \
        --suppress=uninitvar --suppress=ctuuninitvar --suppress=ctunullpointer --suppress=constStatement --library=posix $CPPFLAGS
}

# The library code only: a cmocka assertion looks like a return to the analyser. Arrays that are
# filled in a loop look uninitialised to gcc 12; clang-tidy sees them better.
analyzer_is_silent() {
    # shellcheck disable=SC2016 # Expanded by the inner shell.
    c_files | grep '\.c$' | grep -v "^tests/\|^gpu/\|^emit/firmware/\|^examples/\|^${LEFT_OUT:-none}/*" | xargs -r -n 1 -P "$JOBS" sh -c '
        gcc -std=gnu11 -O1 -fanalyzer -Wno-analyzer-use-of-uninitialized-value \
            -fanalyzer-verbosity=0 -fdiagnostics-plain-output -Werror $0 -c "$1" -o /dev/null' "$CPPFLAGS"
}

scripts_are_sound() { find .ci tests cost gpu packaging verify examples -type f \( -name '*.sh' -o -path .ci/run \) -exec shellcheck -x {} +; }

# Tables and what stands in fences (programs print long lines) are as wide as they must be.
pages_are_narrow() {
    # shellcheck disable=SC2016 # awk expands its own.
    pages | grep -F -- "$ONLY" | xargs -r env LC_ALL=C.UTF-8 grep -nHE '^ *```|^[^|].{100,}' | awk -F: '
        $3 ~ /^ *```/ { if (file == $1) inside = !inside; else { file = $1; inside = 1 } next }
        !(file == $1 && inside) { print $1 ":" $2 ": more than 100 characters; make format"; bad = 1 }
        END { exit bad }'
}

law_with clang-format "clang-format" format_is_right
law "functions of at most $FUNCTION_LINES lines" functions_are_short
law "files of at most $FILE_LINES lines" files_are_short
law "a comment at the head of every file" files_have_heads
law "lines of pages of at most 100 characters" pages_are_narrow
law "limits of proofs in verify/core/limits.def" limits_are_in_the_table
law_with clang-tidy "clang-tidy" clang_tidy_is_silent
law_with cppcheck "cppcheck" cppcheck_is_silent
law_with gcc "gcc -fanalyzer" analyzer_is_silent
law_with shellcheck "shellcheck" scripts_are_sound
if [ "$broken" = 0 ]; then
    echo "tidy: no law is broken"
else
    echo "tidy: $broken laws are broken"
    exit 1
fi
