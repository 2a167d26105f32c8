/* views.c - which concatenations, splits, slices and transposes need no copy (see views.h). */
#include "cost/plan/views.h"

/* ---------------------------------------------------------------- geometry */

/* What a concatenation, split or slice cuts: the whole, the axis, where the second piece (the only
 * one, of a slice) begins. */
typedef struct {
    const graft_shape *whole;
    uint32_t axis;
    uint32_t start;
} cut;

static bool is_move(uint32_t op)
{
    return op == GRAFT_OP_concat || op == GRAFT_OP_split || op == GRAFT_OP_slice;
}

static const graft_shape *input_shape(const graft_graph *graph, graft_index node)
{
    return &graph->values[graft_node_input(graph, node, 0)].shape;
}

static cut cut_of(const graft_graph *graph, graft_index node)
{
    const graft_node *n = &graph->nodes[node];
    cut c = {.whole = input_shape(graph, node)};
    if (n->op == GRAFT_OP_concat) {
        c.axis = (uint32_t)n->attrs[GRAFT_ATTR_concat_axis];
        c.start = (uint32_t)c.whole->dims[c.axis];
        c.whole = &graph->values[graft_node_output(graph, node, 0)].shape;
    } else if (n->op == GRAFT_OP_split) {
        c.axis = (uint32_t)n->attrs[GRAFT_ATTR_split_axis];
        c.start = (uint32_t)n->attrs[GRAFT_ATTR_split_at];
    } else {
        c.axis = (uint32_t)n->attrs[GRAFT_ATTR_slice_axis];
        c.start = (uint32_t)n->attrs[GRAFT_ATTR_slice_start];
    }
    return c;
}

/* Elements from one index of the axis to the next when pieces along it lie one behind the other;
 * 0 when they do not. */
static uint64_t contiguous_step(const cut *c, uint32_t layout)
{
    static const uint8_t orders[GRAFT_LAYOUT_COUNT][4] = {
        [GRAFT_LAYOUT_NHWC] = {0, 2, 3, 1},
          [GRAFT_LAYOUT_BLOCKED] = {0, 1, 2, 3}
    };
    const graft_shape *shape = c->whole;
    uint64_t step = 1;
    bool inside = false;
    if (layout == GRAFT_LAYOUT_BLOCKED && c->axis > 1) {
        return 0; /* Blocks of channels lie inside of all others. */
    }
    for (uint32_t i = 0; i < shape->rank; i++) {
        uint32_t axis = layout == GRAFT_LAYOUT_ROW ? i : orders[layout][i & 3U];
        if (axis == c->axis) {
            inside = true;
        } else if (inside) {
            step *= (uint64_t)shape->dims[axis];
        } else if (shape->dims[axis] != 1) {
            return 0;
        }
    }
    return step;
}

static uint64_t start_bytes(const cut *c, uint32_t layout)
{
    return contiguous_step(c, layout) * c->start * sizeof(float);
}

static bool cuts_in(const cut *c, uint32_t layout)
{
    bool blocks =
        layout != GRAFT_LAYOUT_BLOCKED || c->axis != 1 || c->start % GRAFT_LAYOUT_BLOCK == 0;
    return graft_dtype_is_real(c->whole->dtype) && graft_layout_fits(c->whole, layout) && blocks &&
           contiguous_step(c, layout) > 0 && start_bytes(c, layout) % GRAFT_VIEW_ALIGNMENT == 0;
}

static bool cuts_somewhere(const graft_graph *graph, graft_index node)
{
    const cut c = cut_of(graph, node);
    bool somewhere = false;
    for (uint32_t layout = 0; layout < GRAFT_LAYOUT_COUNT; layout++) {
        somewhere = somewhere || cuts_in(&c, layout);
    }
    return somewhere;
}

/* Whether a transpose that reads `in` and gives `out` leaves every element where it is. */
static bool stays(const graft_graph *graph, graft_index node, uint32_t in, uint32_t out)
{
    const graft_shape *from = input_shape(graph, node);
    const graft_shape *to = &graph->values[graft_node_output(graph, node, 0)].shape;
    const int32_t *axes = &graph->nodes[node].attrs[GRAFT_ATTR_transpose_axis_0];
    int64_t steps[2][GRAFT_MAX_RANK];
    bool stay = graft_dtype_is_real(from->dtype) && in != GRAFT_LAYOUT_BLOCKED &&
                out != GRAFT_LAYOUT_BLOCKED && graft_layout_fits(from, in) &&
                graft_layout_fits(to, out);
    if (!stay) {
        return false;
    }
    graft_layout_strides(from, in, steps[0]);
    graft_layout_strides(to, out, steps[1]);
    for (uint32_t i = 0; i < to->rank; i++) {
        stay = stay && (to->dims[i] == 1 || steps[1][i] == steps[0][axes[i]]);
    }
    return stay;
}

static bool stays_somewhere(const graft_graph *graph, graft_index node)
{
    bool somewhere = false;
    for (uint32_t in = 0; in < GRAFT_LAYOUT_COUNT; in++) {
        for (uint32_t out = 0; out < GRAFT_LAYOUT_COUNT; out++) {
            somewhere = somewhere || stays(graph, node, in, out);
        }
    }
    return somewhere;
}

/* ------------------------------------------------------------------ claims */

bool graft_views_is_alias(uint32_t op) { return op == GRAFT_OP_identity || op == GRAFT_OP_reshape; }

static graft_index behind_aliases(const graft_graph *graph, graft_index value)
{
    const graft_value *v = &graph->values[value];
    while (v->kind == GRAFT_VALUE_COMPUTED && graft_views_is_alias(graph->nodes[v->node].op)) {
        value = graft_node_input(graph, v->node, 0);
        v = &graph->values[value];
    }
    return value;
}

/* Whether a step makes the value, and nothing has taken it yet. */
static bool is_claimable(const graft_graph *graph, const graft_views *views, graft_index value)
{
    const graft_value *v = &graph->values[value];
    if (v->kind != GRAFT_VALUE_COMPUTED || v->is_const || views->claimed[value]) {
        return false;
    }
    uint32_t op = graph->nodes[v->node].op;
    bool piece = op == GRAFT_OP_split || op == GRAFT_OP_slice;
    return op != GRAFT_OP_OPAQUE && !(piece && cuts_somewhere(graph, v->node)) &&
           !(op == GRAFT_OP_transpose && stays_somewhere(graph, v->node));
}

static void claim_operands(const graft_graph *graph, graft_index node, graft_views *views)
{
    graft_index first = graft_node_input(graph, node, 0);
    graft_index second = graft_node_input(graph, node, 1);
    graft_index made[2] = {behind_aliases(graph, first), behind_aliases(graph, second)};
    if (made[0] != made[1] && cuts_somewhere(graph, node) && is_claimable(graph, views, made[0]) &&
        is_claimable(graph, views, made[1])) {
        views->joins[node] = true;
        views->claimed[made[0]] = true;
        views->claimed[made[1]] = true;
    }
}

void graft_views_find(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                      graft_views *views)
{
    *views = (graft_views){.turns = true};
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        if (!is_move(graph->nodes[node].op) || graph->nodes[node].is_const) {
            continue;
        }
        if (views->joins == NULL) { /* Many graphs have none. */
            views->joins = GRAFT_NEW(arena, bool, graph->node_end);
            views->claimed = GRAFT_NEW(arena, bool, graph->value_end);
        }
        if (graph->nodes[node].op == GRAFT_OP_concat) {
            claim_operands(graph, node, views);
        }
    }
}

/* ----------------------------------------------------------------- choices */

static bool may_be_view(const graft_graph *graph, graft_index node, const graft_views *views)
{
    const graft_node *n = &graph->nodes[node];
    return views->joins != NULL && is_move(n->op) && !n->is_const &&
           (n->op != GRAFT_OP_concat || views->joins[node]);
}

bool graft_views_possible(const graft_graph *graph, graft_index node, const graft_views *views,
                          const graft_layout_choice *choice)
{
    if (graph->nodes[node].op == GRAFT_OP_transpose) {
        return views->turns && !graph->nodes[node].is_const &&
               stays(graph, node, choice->inputs[0], choice->outputs[0]);
    }
    if (!may_be_view(graph, node, views)) {
        return false;
    }
    const cut c = cut_of(graph, node);
    return cuts_in(&c, choice->outputs[0]);
}

bool graft_views_somewhere(const graft_graph *graph, graft_index node, const graft_views *views)
{
    return graph->nodes[node].op == GRAFT_OP_transpose
               ? views->turns && stays_somewhere(graph, node)
               : may_be_view(graph, node, views) && cuts_somewhere(graph, node);
}

uint64_t graft_views_offset(const graft_graph *graph, graft_index node,
                            const graft_layout_choice *choice, uint32_t k)
{
    const cut c = cut_of(graph, node);
    bool first = k == 0 && graph->nodes[node].op != GRAFT_OP_slice;
    return first ? 0 : start_bytes(&c, choice->outputs[0]);
}
