/* onnx_order.c - which nodes depend on which: sorting, and what subgraphs read from outside (see
 * onnx.h). */
#include "graph/onnx/onnx.h"

#include <assert.h>

/* -------------------------------------------------------------------------------- sorting */

typedef struct {
    const uint32_t *first;
    const uint32_t *items;
    uint32_t *next;  /* By item: the dependency to look at next. */
    uint8_t *state;  /* By item: 0 new, 1 on the stack, 2 placed. */
    uint32_t *stack; /* The chain of items that wait for the one on top. */
    uint32_t *order;
    uint32_t placed;
} sort_walk;

enum { ITEM_NEW = 0, ITEM_WAITS = 1, ITEM_PLACED = 2 };

/* Places `root` and what it depends on. False with the item that depends on itself. */
static bool place_with_dependencies(sort_walk *walk, uint32_t root, uint32_t *on_cycle)
{
    uint32_t depth = 0;
    walk->stack[depth++] = root;
    walk->state[root] = ITEM_WAITS;
    while (depth > 0) {
        uint32_t item = walk->stack[depth - 1];
        if (walk->next[item] == walk->first[item + 1]) {
            walk->state[item] = ITEM_PLACED;
            walk->order[walk->placed++] = item;
            depth--;
            continue;
        }
        uint32_t other = walk->items[walk->next[item]++];
        if (walk->state[other] == ITEM_WAITS) {
            *on_cycle = other;
            return false;
        }
        if (walk->state[other] == ITEM_NEW) {
            walk->state[other] = ITEM_WAITS;
            walk->stack[depth++] = other;
        }
    }
    return true;
}

bool graft_onnx_sort(graft_arena *scratch, uint32_t count, const uint32_t *first,
                     const uint32_t *items, uint32_t *order, uint32_t *on_cycle)
{
    GRAFT_SCOPED(scratch);
    sort_walk walk = {.first = first, .items = items};
    walk.order = order;
    walk.next = GRAFT_NEW(scratch, uint32_t, count);
    walk.state = GRAFT_NEW(scratch, uint8_t, count);
    walk.stack = GRAFT_NEW(scratch, uint32_t, count);
    bool sorted = true;
    for (uint32_t i = 0; i < count; i++) {
        walk.next[i] = first[i];
    }
    for (uint32_t i = 0; i < count && sorted; i++) {
        if (walk.state[i] == ITEM_NEW) {
            sorted = place_with_dependencies(&walk, i, on_cycle);
        }
    }
    return sorted;
}

/* ------------------------------------------------------------------------------ subgraphs */

Onnx__GraphProto *graft_onnx_subgraph(const Onnx__NodeProto *node, size_t i)
{
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__AttributeProto *attribute = node->attribute[a];
        const size_t single = attribute->g != NULL;
        if (i < single + attribute->n_graphs) {
            return i < single ? attribute->g : attribute->graphs[i - single];
        }
        i -= single + attribute->n_graphs;
    }
    return NULL;
}

void graft_onnx_definitions(const Onnx__GraphProto *graph,
                            void (*visit)(void *context, char **name), void *context)
{
    for (size_t i = 0; i < graph->n_input; i++) {
        visit(context, &graph->input[i]->name);
    }
    for (size_t i = 0; i < graph->n_initializer; i++) {
        visit(context, &graph->initializer[i]->name);
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        if (graph->sparse_initializer[i]->values != NULL) {
            visit(context, &graph->sparse_initializer[i]->values->name);
        }
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        for (size_t k = 0; k < graph->node[i]->n_output; k++) {
            visit(context, &graph->node[i]->output[k]);
        }
    }
}

/* ------------------------------------------------------------------------- captured names */

typedef struct {
    graft_arena *scratch;
    const graft_onnx *onnx;
    const char *undefined; /* The first name that is read and stands for nothing. */
    graft_names *defined;  /* Number: how many graphs around the current place define the name. */
    graft_names *seen;
    uint32_t *captured; /* Grows in scratch. */
    uint32_t count;
    uint32_t capacity;
    uint32_t depth;
    bool leaves; /* The graph whose names are being counted. */
} scope_walk;

static void count_definition(void *context, char **name)
{
    scope_walk *walk = context;
    if (text_or_empty(*name)[0] != '\0') {
        uint32_t depth = graft_names_find(walk->defined, *name);
        depth = depth == GRAFT_NONE ? 0 : depth;
        graft_names_set(walk->defined, *name, walk->leaves ? depth - 1 : depth + 1);
        (void)graft_names_add(walk->onnx->inner, *name, 0);
    }
}

static void count_definitions(scope_walk *walk, const Onnx__GraphProto *graph, bool leaves)
{
    walk->leaves = leaves;
    graft_onnx_definitions(graph, count_definition, walk);
}

static void note_reading(scope_walk *walk, const char *name)
{
    uint32_t depth = graft_names_find(walk->defined, name);
    if (name[0] == '\0' || (depth != GRAFT_NONE && depth > 0)) {
        return;
    }
    uint32_t entry = graft_names_find(walk->onnx->names, name);
    if (entry == GRAFT_NONE && walk->undefined == NULL) {
        walk->undefined = name;
    }
    if (entry != GRAFT_NONE && graft_names_add(walk->seen, name, entry)) {
        GRAFT_PUSH(walk->scratch, walk->captured, walk->count, walk->capacity, 8) = entry;
    }
}

static void walk_subgraphs(scope_walk *walk, const Onnx__NodeProto *node);

static void walk_graph(scope_walk *walk, const Onnx__GraphProto *graph)
{
    walk->depth++;
    assert(walk->depth <= GRAFT_WIRE_DEPTH); /* Decoding allows fewer. */
    count_definitions(walk, graph, false);
    for (size_t i = 0; i < graph->n_node; i++) {
        for (size_t k = 0; k < graph->node[i]->n_input; k++) {
            note_reading(walk, graph->node[i]->input[k]);
        }
        walk_subgraphs(walk, graph->node[i]);
    }
    for (size_t i = 0; i < graph->n_output; i++) {
        note_reading(walk, text_or_empty(graph->output[i]->name));
    }
    count_definitions(walk, graph, true);
    walk->depth--;
}

static void walk_subgraphs(scope_walk *walk, const Onnx__NodeProto *node)
{
    const Onnx__GraphProto *graph = NULL;
    for (size_t g = 0; (graph = graft_onnx_subgraph(node, g)) != NULL; g++) {
        walk_graph(walk, graph);
    }
}

graft_onnx_captured graft_onnx_find_captured(graft_arena *arena, graft_arena *scratch,
                                             const graft_onnx *onnx, const Onnx__NodeProto *node)
{
    graft_onnx_captured found = {.count = 0};
    if (graft_onnx_subgraph(node, 0) == NULL) {
        return found;
    }
    GRAFT_SCOPED(scratch);
    scope_walk walk = {.scratch = scratch,
                       .onnx = onnx,
                       .defined = graft_names_new(scratch),
                       .seen = graft_names_new(scratch)};
    walk_subgraphs(&walk, node);
    found.undefined = walk.undefined;
    found.entries = GRAFT_COPY(arena, walk.captured, walk.count);
    found.count = walk.count;
    return found;
}
