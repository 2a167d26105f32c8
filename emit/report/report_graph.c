/* report_graph.c - see report_graph.h. Graphviz gets numbers and sizes only: no text from
 * outside. */
#include "emit/report/report_graph.h"

#include "emit/report/trace.h"

#include <string.h>

/* What takes a place in the list. */
typedef struct {
    const char *kind; /* "input", "node", "output" */
    const char *op;
    const char *name;
    const graft_shape *shape; /* NULL: it has no output. */
    uint32_t step;
} listed;

typedef struct {
    graft_env *env;
    const graft_model *model;
    const graft_graph *graph;
    graft_buffer nodes;
    graft_buffer *dot;
    uint32_t *place; /* By value: of what makes it. */
    uint32_t count;
} lister;

static const char *print_shape(graft_arena *arena, const graft_shape *shape)
{
    graft_buffer text = {.arena = arena};
    graft_buffer_append(&text, "", 0);
    if (shape != NULL && shape->rank != GRAFT_RANK_UNKNOWN) {
        for (uint32_t i = 0; i < shape->rank; i++) {
            graft_buffer_printf(&text, "%s%d", i > 0 ? "x" : "", shape->dims[i]);
        }
    }
    return text.data;
}

/* Inches that a label takes; graph/base/page/report.js shortens what is longer. */
static double width_of(const listed *item, const char *shape)
{
    enum { CHARACTERS_LEAST = 6, CHARACTERS_MOST = 22 };
    const double per_character = 0.095;
    size_t most = strlen(item->op) > strlen(shape) ? strlen(item->op) : strlen(shape);
    most = most < CHARACTERS_LEAST ? CHARACTERS_LEAST : most;
    return per_character * (double)(most > CHARACTERS_MOST ? CHARACTERS_MOST : most) + 0.2;
}

/* `values` are read, of which those that are const are not drawn. */
static void add_listed(lister *l, const listed *item, const graft_index *values, uint32_t count)
{
    graft_mark mark = graft_arena_mark(l->env->scratch);
    graft_buffer in = {.arena = l->env->scratch};
    const char *shape = print_shape(l->env->scratch, item->shape);
    graft_json json;
    graft_buffer_printf(l->dot, "n%u[width=%.2f]\n", l->count, width_of(item, shape));
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] != GRAFT_NONE && !l->graph->values[values[i]].is_const) {
            const uint32_t from = l->place[values[i]];
            graft_buffer_printf(&in, "%s%u", in.size > 0 ? "," : "", from);
            graft_buffer_printf(l->dot, "n%u->n%u\n", from, l->count);
        }
    }
    graft_json_begin(&json, l->env->scratch);
    graft_json_string(&json, "kind", item->kind);
    graft_json_string(&json, "op", item->op);
    graft_json_string(&json, "name", item->name);
    graft_json_string(&json, "shape", shape);
    graft_json_list(&json, "in", &in);
    graft_json_integer(&json, "step",
                       item->step == GRAFT_TRACE_SIMPLIFIED ? -1 : (int64_t)item->step);
    graft_json_append(&json, &l->nodes);
    graft_arena_release(l->env->scratch, mark);
    l->count++;
}

static void add_input(lister *l, graft_index value)
{
    const graft_value *v = &l->graph->values[value];
    const bool known = v->source < l->model->input_count;
    const listed item = {.kind = "input",
                         .op = "input",
                         .name = known ? l->model->inputs[v->source].name : "",
                         .shape = &v->shape};
    l->place[value] = l->count;
    add_listed(l, &item, NULL, 0);
}

static void add_node(lister *l, graft_index id, uint32_t step)
{
    const graft_node *node = &l->graph->nodes[id];
    const graft_index *values = &l->graph->edges[node->first_edge];
    const listed item = {.kind = "node",
                         .op = node->op == GRAFT_OP_OPAQUE ? graft_model_node_type(l->model, node)
                                                           : graft_op(node->op)->name,
                         .name = graft_model_node_name(l->model, node),
                         .shape = node->output_count == 0
                                      ? NULL
                                      : &l->graph->values[values[node->input_count]].shape,
                         .step = step};
    for (uint32_t o = 0; o < node->output_count; o++) {
        l->place[values[node->input_count + o]] = l->count;
    }
    add_listed(l, &item, values, node->input_count);
}

static void add_output(lister *l, uint32_t number)
{
    const graft_index value = l->graph->outputs[number];
    const bool known = number < l->model->output_count;
    const listed item = {.kind = "output",
                         .op = "output",
                         .name = known ? l->model->outputs[number].name : "",
                         .shape = &l->graph->values[value].shape};
    add_listed(l, &item, &value, 1);
}

graft_status graft_report_graph_add(graft_env *env, const graft_report_graph *report,
                                    const char *key, graft_json *json, graft_buffer *dot)
{
    GRAFT_SCOPED(env->unit);
    const graft_graph *graph = report->graph;
    graft_state state;
    lister l = {.env = env,
                .model = report->model,
                .graph = graph,
                .nodes = {.arena = env->unit},
                .dot = dot,
                .place = GRAFT_NEW(env->unit, uint32_t, graph->value_end)};
    GRAFT_PASS(graft_state_make(env, env->unit, graph, &state));
    graft_buffer_printf(dot, "strict digraph{nodesep=0.18;ranksep=0.3;node[shape=box,"
                             "fixedsize=true,height=0.5]"
                             "edge[arrowsize=0.5]\n");
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graph->values[v].kind == GRAFT_VALUE_INPUT) {
            add_input(&l, v);
        }
    }
    for (graft_index i = 0; i < state.order.count; i++) {
        const graft_index node = state.order.order[i];
        if (!graph->nodes[node].is_const) {
            add_node(&l, node, report->steps[node]);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        add_output(&l, i);
    }
    graft_buffer_printf(dot, "}\n");
    graft_json_list(json, key, &l.nodes);
    return GRAFT_OK;
}
