/* onnx_inline.c - an If whose condition is known becomes the branch that it chooses, in the message,
 * before a model is read for good (see onnx.h).
 *
 * Exporters leave such nodes where a shape decides: a branch for a batch of one and another for
 * more. What a branch defines gets new names, which nothing else has, and its outputs those of the
 * If. */
#include "graph/base/log.h"
#include "graph/onnx/onnx.h"

#include <assert.h>
#include <string.h>

/* Before IR_SETTABLE an initializer has to be an input. */
enum { NODES_MOST = 1 << 20, IR_SETTABLE = 4 };

typedef struct {
    graft_arena *arena;
    const graft_onnx *onnx;
    graft_names *renamed; /* Of the branch: numbers of `names`. */
    char **names;
    uint32_t count;
    uint32_t capacity;
    graft_names *given; /* All that were given to branches of this round. */
} inlining;

static const char *text_or_empty(const char *text) { return text == NULL ? "" : text; }

/* ---------------------------------------------------------------------------- what is chosen */

static Onnx__GraphProto *find_branch(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (strcmp(text_or_empty(node->attribute[i]->name), name) == 0) {
            return node->attribute[i]->g;
        }
    }
    return NULL;
}

/* The data of a condition that is known. */
static const uint8_t *find_condition(const graft_model *model, const Onnx__NodeProto *node)
{
    const graft_onnx_entry *entry = graft_onnx_input(model->onnx, node, 0);
    const graft_model_weight *known = entry == NULL          ? NULL
                                      : entry->known != NULL ? entry->known
                                      : entry->weight == GRAFT_NONE
                                          ? NULL
                                          : &model->weights[entry->weight];
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
    if (strcmp(text_or_empty(node->op_type), "If") != 0 || text_or_empty(node->domain)[0] != '\0' ||
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

static bool is_taken(const inlining *in, const char *name)
{
    return graft_names_find(in->onnx->names, name) != GRAFT_NONE ||
           graft_names_find(in->onnx->inner, name) != GRAFT_NONE ||
           graft_names_find(in->given, name) != GRAFT_NONE;
}

static void rename_to(inlining *in, const char *old, char *name)
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

static void rename_anew(inlining *in, const char *within, const char *old)
{
    if (text_or_empty(old)[0] == '\0') {
        return;
    }
    char *name = graft_arena_printf(in->arena, "%s/%s", within, old);
    for (uint32_t i = 1; is_taken(in, name); i++) {
        name = graft_arena_printf(in->arena, "%s/%s_%u", within, old, i);
    }
    (void)graft_names_add(in->given, name, 0);
    rename_to(in, old, name);
}

static void replace_name(const inlining *in, char **name)
{
    const uint32_t at =
        text_or_empty(*name)[0] == '\0' ? GRAFT_NONE : graft_names_find(in->renamed, *name);
    *name = at == GRAFT_NONE ? *name : in->names[at];
}

static void replace_infos(const inlining *in, Onnx__ValueInfoProto **infos, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        replace_name(in, &infos[i]->name);
    }
}

/* Graphs whose names are still to be replaced. */
typedef struct {
    Onnx__GraphProto **items;
    uint32_t count;
    uint32_t capacity;
} graph_list;

static void push_graph(graft_arena *arena, graph_list *list, Onnx__GraphProto *graph)
{
    list->items = graft_arena_grow(arena, list->items, list->count, &list->capacity, 8,
                                   sizeof(list->items[0]));
    list->items[list->count++] = graph;
}

static void replace_in_node(const inlining *in, Onnx__NodeProto *node, graph_list *inner)
{
    for (size_t k = 0; k < node->n_input; k++) {
        replace_name(in, &node->input[k]);
    }
    for (size_t k = 0; k < node->n_output; k++) {
        replace_name(in, &node->output[k]);
    }
    for (size_t a = 0; a < node->n_attribute; a++) {
        if (node->attribute[a]->g != NULL) {
            push_graph(in->arena, inner, node->attribute[a]->g);
        }
        for (size_t g = 0; g < node->attribute[a]->n_graphs; g++) {
            push_graph(in->arena, inner, node->attribute[a]->graphs[g]);
        }
    }
}

/* Everywhere in a branch: a graph inside that defines a name once more means its own as before. */
static void replace_names(const inlining *in, Onnx__GraphProto *branch)
{
    graph_list todo = {.items = NULL};
    push_graph(in->arena, &todo, branch);
    while (todo.count > 0) {
        Onnx__GraphProto *graph = todo.items[--todo.count];
        for (size_t i = 0; i < graph->n_node; i++) {
            replace_in_node(in, graph->node[i], &todo);
        }
        for (size_t i = 0; i < graph->n_initializer; i++) {
            replace_name(in, &graph->initializer[i]->name);
        }
        for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
            if (graph->sparse_initializer[i]->values != NULL) {
                replace_name(in, &graph->sparse_initializer[i]->values->name);
            }
        }
        replace_infos(in, graph->input, graph->n_input);
        replace_infos(in, graph->output, graph->n_output);
        replace_infos(in, graph->value_info, graph->n_value_info);
    }
}

/* -------------------------------------------------------------------------------- one branch */

static Onnx__NodeProto *make_identity(graft_arena *arena, char *from, char *to)
{
    Onnx__NodeProto *node = GRAFT_NEW(arena, Onnx__NodeProto, 1);
    onnx__node_proto__init(node);
    node->op_type = graft_arena_strdup(arena, "Identity");
    node->name = graft_arena_printf(arena, "%s/Identity", to);
    node->input = GRAFT_NEW(arena, char *, 1);
    node->output = GRAFT_NEW(arena, char *, 1);
    node->input[0] = from;
    node->output[0] = to;
    node->n_input = 1;
    node->n_output = 1;
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
static void rename_all(inlining *in, const Onnx__NodeProto *node, const Onnx__GraphProto *branch,
                       bool *named)
{
    graft_names *made = graft_names_new(in->arena);
    in->renamed = graft_names_new(in->arena);
    in->count = 0;
    for (size_t i = 0; i < branch->n_initializer; i++) {
        rename_anew(in, node->output[0], branch->initializer[i]->name);
    }
    for (size_t i = 0; i < branch->n_node; i++) {
        for (size_t k = 0; k < branch->node[i]->n_output; k++) {
            rename_anew(in, node->output[0], branch->node[i]->output[k]);
            (void)graft_names_add(made, branch->node[i]->output[k], 1);
        }
    }
    for (size_t k = 0; k < branch->n_output; k++) {
        named[k] =
            node->output[k][0] != '\0' && graft_names_find(made, branch->output[k]->name) == 1;
        if (named[k]) {
            graft_names_set(made, branch->output[k]->name, 0); /* It has a name now. */
            rename_to(in, branch->output[k]->name, node->output[k]);
        }
    }
}

/* The nodes that stand for the If are pushed; what else the branch has becomes the graph's. */
static void inline_branch(inlining *in, Onnx__GraphProto *graph, const Onnx__NodeProto *node,
                          Onnx__GraphProto *branch, Onnx__NodeProto **nodes, size_t *count)
{
    bool *named = GRAFT_NEW(in->arena, bool, branch->n_output);
    rename_all(in, node, branch, named);
    replace_names(in, branch);
    for (size_t i = 0; i < branch->n_node; i++) {
        nodes[(*count)++] = branch->node[i];
    }
    for (size_t k = 0; k < branch->n_output; k++) {
        if (!named[k] && node->output[k][0] != '\0') {
            nodes[(*count)++] = make_identity(in->arena, branch->output[k]->name, node->output[k]);
        }
    }
    append_initializers(in->arena, graph, branch);
}

uint32_t graft_onnx_inline(graft_arena *arena, Onnx__ModelProto *proto, const graft_model *model)
{
    Onnx__GraphProto *graph = proto->graph;
    inlining in = {.arena = arena, .onnx = model->onnx, .given = graft_names_new(arena)};
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
    Onnx__NodeProto **nodes = GRAFT_NEW(arena, Onnx__NodeProto *, room);
    size_t count = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        Onnx__NodeProto *node = graph->node[i];
        Onnx__GraphProto *branch = choose_branch(model, node);
        if (branch == NULL) {
            nodes[count++] = node;
        } else {
            inline_branch(&in, graph, node, branch, nodes, &count);
        }
    }
    graph->node = nodes;
    graph->n_node = count;
    return chosen;
}
