#!/bin/sh
# The header beside a product's own names: statics and macros of names that engines and tables like to
# use. Names of members, parameters and locals (node, count, i) are no header's to protect.
. tests/support/tap.sh

POLICY=rules/policies/intel-xeon-6-167-avx512.graft
cat > "$FOLDER/user.h" << 'END'
#define OP(x) ((x) + 1)
#define ATTR 7
#define FEATURE 8
#define EDGE_FEATURE 9
#define PACK_SLOT "mine"
#define HASH_NODE 10
#define TANH_LIMIT 11
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) MIN(a, b)
#define max(a, b) MAX(a, b)
#define ABS(a) ((a) < 0 ? -(a) : (a))
#define BIT(n) (1u << (n))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define decide(x) ((x) + 2)
#define heap_push 12
#define zero_bytes(p) 13
enum { ESTIMATE_DEAD = 20, KEEP = 21, N = 22, ERROR = 23, SUCCESS = 24 };
typedef int node_t;
static int carve(void) { return 1; }
static int copy_bytes(void) { return 2; }
static int rewrite(void) { return 3; }
static int hash_key(void) { return 4; }
static int swap(void) { return 5; }
static int check_node(void) { return 6; }
static int read_byte(void) { return 7; }
static const int op_table[2] = {8, 9};
END
cat > "$FOLDER/one.c" << 'END'
#include "user.h"
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"
#include <string.h>
int main(void)
{
    int sum = carve() + copy_bytes() + rewrite() + hash_key() + swap() + check_node() + read_byte() + op_table[1];
    node_t left = ATTR + FEATURE + EDGE_FEATURE + HASH_NODE + TANH_LIMIT + decide(1) + heap_push + zero_bytes(0);
    int kept = OP(1) + min(1, 2) + max(1, 2) + ABS(-1) + (int)BIT(2) + (int)ARRAY_SIZE(op_table);
    return sum == 37 && left == 73 && kept == 12 && strcmp(PACK_SLOT, "mine") == 0 && ESTIMATE_DEAD == 20 &&
                   KEEP + N + ERROR + SUCCESS == 90 && GRAFT_POLICY.rule_count > 0 ? 0 : 1;
}
END
# With the warnings that products use, for ids of both widths.
# shellcheck disable=SC2086 # Words.
compiles() { # COMPILER...
    for width in -UGRAFT_SMALL_GRAPHS -DGRAFT_SMALL_GRAPHS; do
        "$@" -pedantic -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wundef -Wdouble-promotion -Werror \
            $width $INCLUDE "$FOLDER/one.c" -o "$FOLDER/one" && "$FOLDER/one" || return 1
    done
}
# What the engine names for all of a file: statics, types and numbers in its debugging information, and
# macros. A number behind a name: a static of one function.
has_the_prefix() {
    gcc -std=c99 -O0 -g -fkeep-static-functions -fkeep-static-consts -fno-eliminate-unused-debug-symbols \
        -fno-eliminate-unused-debug-types -I"$FOLDER" -c "$FOLDER/alone.c" -o "$FOLDER/alone.o" || return 1
    {
        nm "$FOLDER/alone.o" | awk '$2 != "U" && $3 !~ /[.][0-9]+$/ { print $3 }'
        readelf --debug-dump=info "$FOLDER/alone.o" | awk '/DW_TAG_/ { named = /DW_TAG_(enumerator|typedef|structure_type|enumeration_type)/ }
            named && /DW_AT_name/ { print $NF }'
        printf '#include <limits.h>\n#include <stdint.h>\n#include <stddef.h>\n#include <stdbool.h>\n' > "$FOLDER/none.c"
        for file in none alone; do
            gcc -std=c99 -I"$FOLDER" -dM -E "$FOLDER/$file.c" | awk '{ sub(/[(].*/, "", $2); print $2 }' | sort > "$FOLDER/$file.macros"
        done
        comm -13 "$FOLDER/none.macros" "$FOLDER/alone.macros"
    } > "$FOLDER/all"
    [ "$(grep -c '^graft_\|^GRAFT_' "$FOLDER/all")" -gt 500 ] && ! grep -v '^graft_\|^GRAFT_\|_t$\|^__\|^_' "$FOLDER/all"
}
for form in "" --amalgamate; do
    INCLUDE="-I$FOLDER ${form:+-I$FOLDER}"
    [ -n "$form" ] || INCLUDE="-I$FOLDER -Iinclude"
    # shellcheck disable=SC2086
    check "emit-policy $form" "$GRAFT" --quiet emit-policy $POLICY "$FOLDER/graft_policy.h" $form
    for compiler in gcc clang; do
        if command -v $compiler > /dev/null; then
            check "$compiler, C99 $form" compiles $compiler -std=c99
            check "$compiler, C++17 $form" compiles $compiler -x c++ -std=c++17
        else
            skip "$compiler $form" "it needs package $compiler"
        fi
    done
done
printf '#define GRAFT_IMPLEMENTATION\n#include "graft_policy.h"\n' > "$FOLDER/alone.c"
check "all names have the prefix" has_the_prefix

# Files that disagree about the width of ids.
cat > "$FOLDER/reader.c" << 'END'
#include "graft_policy.h"
int main(void) { static graft_graph graph; return graft_node_input(&graph, 0, 0) == GRAFT_NONE; }
END
links_if_alike() {
    for width in -UGRAFT_SMALL_GRAPHS -DGRAFT_SMALL_GRAPHS; do
        gcc -std=c99 $width -I"$FOLDER" -c "$FOLDER/reader.c" -o "$FOLDER/reader.o" || return 1
        gcc "$FOLDER/reader.o" "$FOLDER/alone.o" -o "$FOLDER/both" 2> "$FOLDER/err" && echo "$width"
    done > "$FOLDER/linked"
    [ "$(cat "$FOLDER/linked")" = -UGRAFT_SMALL_GRAPHS ] && grep -q graft_node_input_small "$FOLDER/err"
}
check "widths that differ do not link" links_if_alike
finish
