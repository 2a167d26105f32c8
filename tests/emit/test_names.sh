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
lists_all_names() {
    mkdir "$FOLDER/names" && sh emit/header/engine_names.sh "$FOLDER/names" &&
        for file in names.h names_end.h; do
            cmp "$FOLDER/names/$file" include/graft/engine/$file || { echo "run: sh emit/header/engine_names.sh FOLDER"; return 1; }
        done
}
# With the warnings that products use, for ids of both widths.
# shellcheck disable=SC2086 # Words.
compiles() { # COMPILER...
    for width in -UGRAFT_SMALL_GRAPHS -DGRAFT_SMALL_GRAPHS; do
        "$@" -pedantic -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wundef -Wdouble-promotion -Werror \
            $width $INCLUDE "$FOLDER/one.c" -o "$FOLDER/one" && "$FOLDER/one" || return 1
    done
}
# A number behind a name: a static of one function.
nothing_is_left() {
    nm "$FOLDER/one.o" | awk '$3 ~ /^[a-z]/ && $3 !~ /^graft_/ && $3 !~ /[.][0-9]+$/ { print; left = 1 } END { exit left }'
}
check "every name is listed" lists_all_names
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
gcc -std=c99 -I"$FOLDER" -c "$FOLDER/alone.c" -o "$FOLDER/one.o"
check "all symbols have the prefix" nothing_is_left

# Files that disagree about the width of ids.
cat > "$FOLDER/reader.c" << 'END'
#include "graft_policy.h"
int main(void) { static graft_graph graph; return graft_node_input(&graph, 0, 0) == GRAFT_NONE; }
END
links_if_alike() {
    for width in -UGRAFT_SMALL_GRAPHS -DGRAFT_SMALL_GRAPHS; do
        gcc -std=c99 $width -I"$FOLDER" -c "$FOLDER/reader.c" -o "$FOLDER/reader.o" || return 1
        gcc "$FOLDER/reader.o" "$FOLDER/one.o" -o "$FOLDER/both" 2> "$FOLDER/err" && echo "$width"
    done > "$FOLDER/linked"
    [ "$(cat "$FOLDER/linked")" = -UGRAFT_SMALL_GRAPHS ] && grep -q graft_node_input_small "$FOLDER/err"
}
check "widths that differ do not link" links_if_alike
finish
