#!/bin/sh
# `graft emit-graph`: what it writes compiles and loads; what it refuses.
. tests/support/tap.sh

CC="gcc -std=c99 -pedantic -Wall -Wextra -Werror -Iinclude"

# loads MODEL NODES: its table gives a graph of so many nodes.
loads() {
    gives 0 "$GRAFT" emit-graph "$1" "$FOLDER/graph.h" --name some-model || return 1
    cat > "$FOLDER/load.c" << 'END'
#define GRAFT_IMPLEMENTATION
#include "graft/graft.h"
#include "graph.h"
#include <stdio.h>
static uint64_t memory[1 << 17];
int main(void)
{
    const graft_limits limits = GRAFT_GRAPH_SOME_MODEL_LIMITS;
    graft_graph graph;
    if (graft_graph_init(&graph, &limits, memory, sizeof memory) != GRAFT_OK ||
        graft_graph_load(&graph, graft_graph_some_model,
                         sizeof graft_graph_some_model / sizeof graft_graph_some_model[0]) !=
            GRAFT_OK) {
        return 1;
    }
    printf("%u\n", graft_graph_node_count(&graph));
    return 0;
}
END
    $CC -I"$FOLDER" "$FOLDER/load.c" -o "$FOLDER/load" && [ "$("$FOLDER/load")" = "$2" ]
}
repeats() {
    gives 0 "$GRAFT" emit-graph dscnn "$FOLDER/a.h" && gives 0 "$GRAFT" emit-graph dscnn "$FOLDER/b.h" &&
        cmp "$FOLDER/a.h" "$FOLDER/b.h" && grep -q 'graft_graph_dscnn\[\]' "$FOLDER/a.h"
}
tells() {
    gives 0 "$GRAFT" --json emit-graph dscnn "$FOLDER/a.h" &&
        grep -qx '{"file": *".*/a.h", *"nodes": *32, *"opaque": *0}' "$FOLDER/out"
}

check "dscnn loads" loads dscnn 32
check "resnet50 loads" loads resnet50 176
check "the same bytes again, named after the model" repeats
check "says what it wrote" tells
check "no model" error_is 2 "emit-graph: MODEL is missing; usage: graft emit-graph MODEL OUT.h" "$GRAFT" emit-graph
check "one word too many" error_is 2 "does not understand 'c'" "$GRAFT" emit-graph a b c
check "an unknown model" error_is 2 "no model 'nonsense'" "$GRAFT" emit-graph nonsense "$FOLDER/x.h"
check "a long name" error_is 2 "a name has 1 to 63 characters" "$GRAFT" emit-graph dscnn "$FOLDER/x.h" --name "$(printf 'x%063d' 0)"
check "a bad name" error_is 2 "emit-graph: --name is empty" "$GRAFT" emit-graph dscnn "$FOLDER/x.h" --name ''
check "a folder that cannot be" error_is 2 "/dev/null/x.h" "$GRAFT" emit-graph dscnn /dev/null/x.h
finish
