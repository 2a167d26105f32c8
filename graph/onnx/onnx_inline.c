/* onnx_inline.c - an If whose condition is known becomes the branch that it chooses, in the
 * message, before a model is read for good (see onnx.h).
 *
 * Exporters leave such nodes where a shape decides: a branch for a batch of one and another for
 * more. What a branch defines gets new names, which nothing else has, and its outputs those of the
 * If. */
#include "graph/onnx/onnx_inline.h"

#include <assert.h>

/* Before IR_SETTABLE an initializer has to be an input. */
enum { NODES_MOST = 1 << 20, IR_SETTABLE = 4 };

/* ---------------------------------------------------------------------------- what is chosen */

static Onnx__GraphProto *find_branch(const Onnx__NodeProto *node, const char *name)
{
    const Onnx__AttributeProto *branch = graft_onnx_attribute(node, name);
    return branch == NULL ? NULL : branch->g;
}

/* The data of a condition that is known. */
static const uint8_t *find_condition(const graft_model *model, const Onnx__NodeProto *node)
{
    const graft_onnx_entry *entry = graft_onnx_input(model->onnx, node, 0);
    const graft_model_weight *known =
        entry == NULL ? NULL : graft_onnx_known_of(entry, model->weights);
    return known != NULL && known->data != NULL && known->data_bytes == 1 &&
                   known->shape.dtype == GRAFT_DTYPE_BOOL
               ? known->data
               : NULL;
}

static bool has_named_outputs(const Onnx__GraphProto *branch)
{
    bool named = branch->n_output > 0;
    for (size_t k = 0; k < branch->n_output; k++) {
        named = named && text_or_empty(branch->output[k]->name)[0] != '\0';
    }
    return named;
}

/* The branch that replaces a node; NULL when it stays. */
static Onnx__GraphProto *choose_branch(const graft_model *model, const Onnx__NodeProto *node)
{
    if (!graft_onnx_is(node, "If") || text_or_empty(node->domain)[0] != '\0' ||
        model->onnx->keep_all) {
        return NULL;
    }
    const uint8_t *condition = find_condition(model, node);
    Onnx__GraphProto *branch =
        condition == NULL ? NULL
                          : find_branch(node, *condition != 0 ? "then_branch" : "else_branch");
    const bool fits = branch != NULL && branch->n_input == 0 && branch->n_sparse_initializer == 0 &&
                      branch->n_output == node->n_output && has_named_outputs(branch) &&
                      (branch->n_initializer == 0 || model->onnx->proto->ir_version >= IR_SETTABLE);
    return fits ? branch : NULL;
}

/* --------------------------------------------------------------------------------- new names */

void graft_inlining_rename(graft_inlining *in, const char *old, char *name)
{
    const uint32_t at = graft_names_find(in->renamed, old);
    if (at != GRAFT_NONE) {
        assert(in->names != NULL && at < in->count);
        in->names[at] = name;
        return;
    }
    in->names =
        graft_arena_grow(in->arena, in->names, in->count, &in->capacity, 16, sizeof(in->names[0]));
    in->names[in->count] = name;
    (void)graft_names_add(in->renamed, old, in->count++);
}

void graft_inlining_rename_anew(graft_inlining *in, const char *within, const char *old)
{
    if (text_or_empty(old)[0] == '\0' || graft_names_find(in->renamed, old) != GRAFT_NONE) {
        return;
    }
    char *name = graft_arena_printf(in->arena, "%s/%s", within, old);
    for (uint32_t i = 1; graft_names_find(in->taken, name) != GRAFT_NONE; i++) {
        name = graft_arena_printf(in->arena, "%s/%s_%u", within, old, i);
    }
    (void)graft_names_add(in->taken, name, 0);
    graft_inlining_rename(in, old, name);
}

static void replace_name(void *context, char **name)
{
    const graft_inlining *in = context;
    const uint32_t at =
        text_or_empty(*name)[0] == '\0' ? GRAFT_NONE : graft_names_find(in->renamed, *name);
    *name = at == GRAFT_NONE ? *name : in->names[at];
}

static void replace_infos(graft_inlining *in, Onnx__ValueInfoProto **infos, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        replace_name(in, &infos[i]->name);
    }
}

static void push_graph(graft_arena *arena, graft_graph_list *list, Onnx__GraphProto *graph)
{
    GRAFT_PUSH(arena, list->items, list->count, list->capacity, 8) = graph;
}

graft_graph_list graft_inlining_graphs(graft_arena *arena, Onnx__GraphProto *graph)
{
    graft_graph_list list = {.items = NULL};
    push_graph(arena, &list, graph);
    for (uint32_t g = 0; g < list.count; g++) {
        for (size_t i = 0; i < list.items[g]->n_node; i++) {
            const Onnx__NodeProto *node = list.items[g]->node[i];
            for (size_t k = 0; (graph = graft_onnx_subgraph(node, k)) != NULL; k++) {
                push_graph(arena, &list, graph);
            }
        }
    }
    return list;
}

static void take_name(void *taken, char **name)
{
    (void)graft_names_add(taken, text_or_empty(*name), 0);
}

graft_inlining graft_inlining_new(graft_arena *arena, Onnx__GraphProto *graph)
{
    graft_inlining in = {.arena = arena, .taken = graft_names_new(arena)};
    const graft_graph_list graphs = graft_inlining_graphs(arena, graph);
    for (uint32_t g = 0; g < graphs.count; g++) {
        graft_onnx_definitions(graphs.items[g], take_name, in.taken);
    }
    return in;
}

void graft_inlining_into(graft_inlining *in, const Onnx__GraphProto *graph)
{
    in->called = graft_names_new(in->arena);
    in->nodes = NULL;
    in->node_count = in->node_capacity = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        (void)graft_names_add(in->called, text_or_empty(graph->node[i]->name), 0);
    }
}

void graft_inlining_push(graft_inlining *in, Onnx__NodeProto *node)
{
    GRAFT_PUSH(in->arena, in->nodes, in->node_count, in->node_capacity, 64) = node;
}

void graft_inlining_settle(graft_inlining *in, Onnx__GraphProto *graph)
{
    graph->node = in->nodes;
    graph->n_node = in->node_count;
}

void graft_inlining_start(graft_inlining *in)
{
    in->renamed = graft_names_new(in->arena);
    in->count = 0;
}

static void replace_in_graph(graft_inlining *in, Onnx__GraphProto *graph)
{
    graft_onnx_definitions(graph, replace_name, in);
    for (size_t i = 0; i < graph->n_node; i++) {
        for (size_t k = 0; k < graph->node[i]->n_input; k++) {
            replace_name(in, &graph->node[i]->input[k]);
        }
    }
    replace_infos(in, graph->output, graph->n_output);
    replace_infos(in, graph->value_info, graph->n_value_info);
}

void graft_inlining_replace(graft_inlining *in, Onnx__GraphProto *graph)
{
    const graft_graph_list graphs = graft_inlining_graphs(in->arena, graph);
    for (uint32_t g = 0; g < graphs.count; g++) {
        replace_in_graph(in, graphs.items[g]);
    }
}

/* -------------------------------------------------------------------------------- one branch */

static Onnx__NodeProto *make_identity(graft_arena *arena, const char *from, const char *to)
{
    Onnx__NodeProto *node = graft_onnx_make_node(arena, "Identity", &from, 1, &to, 1);
    node->name = graft_arena_printf(arena, "%s/Identity", to);
    return node;
}

static void append_initializers(graft_arena *arena, Onnx__GraphProto *graph,
                                const Onnx__GraphProto *branch)
{
    const size_t count = graph->n_initializer + branch->n_initializer;
    Onnx__TensorProto **all = GRAFT_NEW(arena, Onnx__TensorProto *, count);
    for (size_t i = 0; i < count; i++) {
        all[i] = i < graph->n_initializer ? graph->initializer[i]
                                          : branch->initializer[i - graph->n_initializer];
    }
    graph->initializer = all;
    graph->n_initializer = count;
}

/* New names for all that the branch defines. What one of its nodes makes and is its output gets the
 * name of the If's; `named` says of which that is so. */
static void rename_all(graft_inlining *in, const Onnx__NodeProto *node,
                       const Onnx__GraphProto *branch, bool *named)
{
    graft_names *made = graft_names_new(in->arena);
    for (size_t i = 0; i < branch->n_initializer; i++) {
        graft_inlining_rename_anew(in, node->output[0], branch->initializer[i]->name);
    }
    for (size_t i = 0; i < branch->n_node; i++) {
        for (size_t k = 0; k < branch->node[i]->n_output; k++) {
            graft_inlining_rename_anew(in, node->output[0], branch->node[i]->output[k]);
            (void)graft_names_add(made, branch->node[i]->output[k], 1);
        }
    }
    for (size_t k = 0; k < branch->n_output; k++) {
        named[k] =
            node->output[k][0] != '\0' && graft_names_find(made, branch->output[k]->name) == 1;
        if (named[k]) {
            graft_names_set(made, branch->output[k]->name, 0); /* It has a name now. */
            graft_inlining_rename(in, branch->output[k]->name, node->output[k]);
        }
    }
}

/* Pushes a node under a name of its own: runtimes refuse two nodes of one. */
static void push_apart(graft_inlining *in, const char *within, Onnx__NodeProto *node)
{
    const char *old = text_or_empty(node->name);
    for (uint32_t i = 1; old[0] != '\0' && !graft_names_add(in->called, node->name, 0); i++) {
        node->name = i == 1 ? graft_arena_printf(in->arena, "%s/%s", within, old)
                            : graft_arena_printf(in->arena, "%s/%s_%u", within, old, i);
    }
    graft_inlining_push(in, node);
}

void graft_inlining_branch(graft_inlining *in, Onnx__GraphProto *graph, const Onnx__NodeProto *node,
                           Onnx__GraphProto *branch)
{
    bool *named = GRAFT_NEW(in->arena, bool, branch->n_output);
    rename_all(in, node, branch, named);
    graft_inlining_replace(in, branch);
    for (size_t i = 0; i < branch->n_node; i++) {
        push_apart(in, node->output[0], branch->node[i]);
    }
    for (size_t k = 0; k < branch->n_output; k++) {
        if (!named[k] && node->output[k][0] != '\0') {
            push_apart(in, node->output[0],
                       make_identity(in->arena, branch->output[k]->name, node->output[k]));
        }
    }
    if (branch->n_initializer > 0) {
        append_initializers(in->arena, graph, branch);
    }
}

uint32_t graft_onnx_inline(graft_arena *arena, Onnx__ModelProto *proto, const graft_model *model)
{
    Onnx__GraphProto *graph = proto->graph;
    size_t room = graph->n_node;
    uint32_t chosen = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__GraphProto *branch = choose_branch(model, graph->node[i]);
        room += branch == NULL ? 0 : branch->n_node + branch->n_output;
        chosen += branch != NULL;
    }
    if (chosen == 0 || room > NODES_MOST) {
        return 0;
    }
    graft_inlining in = graft_inlining_new(arena, graph);
    graft_inlining_into(&in, graph);
    for (size_t i = 0; i < graph->n_node; i++) {
        Onnx__NodeProto *node = graph->node[i];
        Onnx__GraphProto *branch = choose_branch(model, node);
        if (branch == NULL) {
            graft_inlining_push(&in, node);
        } else {
            graft_inlining_start(&in);
            graft_inlining_branch(&in, graph, node, branch);
        }
    }
    graft_inlining_settle(&in, graph);
    return chosen;
}
