/* rebuild.c - see rebuild.h. */
#include "tests/support/rebuild.h"

#include "tests/support/build.h"

typedef struct {
    const graft_graph *from;
    graft_graph *to;
    bool *needed;       /* By value id of `from`: an output needs it. */
    graft_index *place; /* By value id of `from`: its id in `to`; GRAFT_NONE: not there yet. */
    graft_index cut;    /* A node of `from` whose outputs become inputs; GRAFT_NONE. */
    graft_index drop;   /* An output of `from` that is left out; GRAFT_NONE. */
    graft_index next_source;
} builder;

graft_limits rebuild_limits(const graft_graph *graph, graft_index more)
{
    return (graft_limits){graph->node_end + more, graph->value_end + 2 * more,
                          graph->edge_end + 4 * more, graph->output_count + 16};
}

graft_graph *rebuild_within(graft_arena *arena, const graft_graph *graph, graft_limits limits)
{
    graft_graph *copy = build_graph_within(arena, limits);
    CHECK_OK(graft_graph_copy(copy, graph));
    return copy;
}

/* --------------------------------------------------------------- what stays */

static void mark_needed(graft_arena *arena, builder *b)
{
    const graft_graph *graph = b->from;
    graft_order order = build_order(arena, graph);
    for (graft_index i = 0; i < graph->output_count; i++) {
        b->needed[graph->outputs[i]] = b->needed[graph->outputs[i]] || i != b->drop;
    }
    for (graft_index i = order.count; i-- > 0;) {
        graft_index n = order.order[i];
        bool needed = false;
        for (uint32_t o = 0; o < graph->nodes[n].output_count; o++) {
            needed = needed || b->needed[graft_node_output(graph, n, o)];
        }
        for (uint32_t k = 0; needed && k < graph->nodes[n].input_count; k++) {
            graft_index v = graft_node_input(graph, n, k);
            if (v != GRAFT_NONE) {
                b->needed[v] = true;
            }
        }
    }
}

/* ------------------------------------------------------------------ copying */

static bool is_cut(const builder *b, graft_index v)
{
    return b->cut != GRAFT_NONE && b->from->values[v].node == b->cut;
}

static bool is_source(const builder *b, graft_index v)
{
    return b->from->values[v].kind != GRAFT_VALUE_COMPUTED || is_cut(b, v);
}

/* Whether value v may be added now: it is wanted, not there yet, and what it needs is there. */
static bool is_ready(const builder *b, graft_index v)
{
    if (!b->needed[v] || b->place[v] != GRAFT_NONE) {
        return false;
    }
    graft_index n = b->from->values[v].node;
    for (uint32_t i = 0; !is_source(b, v) && i < b->from->nodes[n].input_count; i++) {
        graft_index input = graft_node_input(b->from, n, i);
        if (input != GRAFT_NONE && b->place[input] == GRAFT_NONE) {
            return false;
        }
    }
    return true;
}

static void copy_node(builder *b, graft_index n)
{
    const graft_node *node = &b->from->nodes[n];
    graft_index inputs[16];
    graft_shape shapes[16];
    graft_index copy = GRAFT_NONE;
    assert_in_range(node->input_count, 0, 16);
    assert_in_range(node->output_count, 0, 16);
    for (uint32_t i = 0; i < node->input_count; i++) {
        graft_index v = graft_node_input(b->from, n, i);
        inputs[i] = v == GRAFT_NONE ? GRAFT_NONE : b->place[v];
    }
    for (uint32_t o = 0; o < node->output_count; o++) {
        shapes[o] = b->from->values[graft_node_output(b->from, n, o)].shape;
    }
    graft_status status =
        node->op == GRAFT_OP_OPAQUE
            ? graft_graph_add_opaque(b->to, node->source, inputs, node->input_count, shapes,
                                     node->output_count, &copy)
            : graft_graph_add_node(b->to, node->op, node->attrs, inputs, node->source, &copy);
    CHECK_OK(status);
    for (uint32_t o = 0; o < node->output_count; o++) {
        b->place[graft_node_output(b->from, n, o)] = graft_node_output(b->to, copy, o);
    }
}

static void copy_value(builder *b, graft_index v)
{
    const graft_value *value = &b->from->values[v];
    if (!is_source(b, v)) {
        copy_node(b, value->node);
        return;
    }
    graft_index source = is_cut(b, v) ? b->next_source++ : value->source;
    b->place[v] = value->kind == GRAFT_VALUE_WEIGHT ? build_weight(b->to, value->shape, source)
                                                    : build_input(b->to, value->shape, source);
}

/* Adds the needed values, each time one of those that are ready: a random one, or the first. */
static void add_needed(graft_arena *arena, graft_rng *rng, builder *b)
{
    graft_index end = b->from->value_end;
    graft_index *ready = GRAFT_NEW(arena, graft_index, end);
    for (;;) {
        uint32_t count = 0;
        for (graft_index v = 0; v < end; v++) {
            if (is_ready(b, v)) {
                ready[count++] = v;
            }
        }
        if (count == 0) {
            return;
        }
        copy_value(b, ready[rng == NULL ? 0 : graft_rng_below(rng, count)]);
    }
}

static void keep_output(builder *b, graft_index v)
{
    CHECK_OK(graft_graph_add_output(b->to, b->place[v]));
}

/* The values that the node cut out has read. */
static void keep_inputs(builder *b)
{
    const graft_node *node = &b->from->nodes[b->cut];
    for (uint32_t i = 0; i < node->input_count; i++) {
        graft_index v = graft_node_input(b->from, b->cut, i);
        if (v != GRAFT_NONE && b->place[v] != GRAFT_NONE && !is_source(b, v)) {
            keep_output(b, v);
        }
    }
}

static graft_graph *rebuild(graft_arena *arena, graft_rng *rng, builder *b)
{
    graft_index end = b->from->value_end;
    b->to = build_graph_within(arena, rebuild_limits(b->from, 30));
    b->needed = GRAFT_NEW(arena, bool, end);
    b->place = GRAFT_NEW(arena, graft_index, end);
    for (graft_index v = 0; v < end; v++) {
        b->place[v] = GRAFT_NONE;
        graft_index source = b->from->values[v].source;
        b->next_source =
            source != GRAFT_NONE && source >= b->next_source ? source + 1 : b->next_source;
    }
    mark_needed(arena, b);
    add_needed(arena, rng, b);
    for (graft_index i = 0; i < b->from->output_count; i++) {
        if (i != b->drop && !is_cut(b, b->from->outputs[i])) {
            keep_output(b, b->from->outputs[i]);
        }
    }
    if (b->cut != GRAFT_NONE) {
        keep_inputs(b);
    }
    return b->to;
}

graft_graph *rebuild_shuffled(graft_arena *arena, graft_rng *rng, const graft_graph *graph)
{
    builder b = {.from = graph, .cut = GRAFT_NONE, .drop = GRAFT_NONE};
    return rebuild(arena, rng, &b);
}

graft_graph *rebuild_without_node(graft_arena *arena, const graft_graph *graph, graft_index node)
{
    builder b = {.from = graph, .cut = node, .drop = GRAFT_NONE};
    return rebuild(arena, NULL, &b);
}

graft_graph *rebuild_without_output(graft_arena *arena, const graft_graph *graph,
                                    graft_index output)
{
    builder b = {.from = graph, .cut = GRAFT_NONE, .drop = output};
    return rebuild(arena, NULL, &b);
}

/* ----------------------------------------------------------------- printing */

static void print_shape(graft_buffer *out, const graft_shape *shape)
{
    graft_buffer_printf(out, "(");
    for (uint32_t i = 0; shape->rank <= GRAFT_MAX_RANK && i < shape->rank; i++) {
        graft_buffer_printf(out, "%s%d", i > 0 ? "," : "", shape->dims[i]);
    }
    graft_buffer_printf(out, shape->rank == GRAFT_RANK_UNKNOWN ? "?)" : ")");
}

static void print_node(graft_buffer *out, const graft_graph *graph, graft_index n)
{
    const graft_node *node = &graph->nodes[n];
    const graft_op_info *info = graft_op(node->op);
    graft_buffer_printf(out, "  node %u:", n);
    for (uint32_t i = 0; i < node->output_count; i++) {
        graft_index v = graft_node_output(graph, n, i);
        graft_buffer_printf(out, " v%u", v);
        print_shape(out, &graph->values[v].shape);
    }
    if (info == NULL) {
        graft_buffer_printf(out, " = opaque[%u]", node->source);
    } else {
        graft_buffer_printf(out, " = %s", info->name);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        graft_index v = graft_node_input(graph, n, i);
        if (v == GRAFT_NONE) {
            graft_buffer_printf(out, " -");
        } else {
            graft_buffer_printf(out, " v%u", v);
        }
    }
    for (uint32_t i = 0; info != NULL && i < info->attr_count; i++) {
        graft_buffer_printf(out, " %s=%d", graft_op_attr(node->op, i)->name, node->attrs[i]);
    }
    graft_buffer_printf(out, node->is_const ? " (const)\n" : "\n");
}

const char *rebuild_print(graft_arena *arena, const graft_graph *graph)
{
    graft_buffer out = {.arena = arena};
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        if (value->kind == GRAFT_VALUE_INPUT || value->kind == GRAFT_VALUE_WEIGHT) {
            graft_buffer_printf(&out, "  v%u", v);
            print_shape(&out, &value->shape);
            graft_buffer_printf(&out, " = %s %u\n",
                                value->kind == GRAFT_VALUE_INPUT ? "input" : "weight",
                                value->source);
        }
    }
    graft_order order = build_order(arena, graph);
    for (graft_index i = 0; i < order.count; i++) {
        print_node(&out, graph, order.order[i]);
    }
    graft_buffer_printf(&out, "  outputs:");
    for (graft_index i = 0; i < graph->output_count; i++) {
        graft_buffer_printf(&out, " v%u", graph->outputs[i]);
    }
    graft_buffer_printf(&out, "\n");
    return out.data;
}
