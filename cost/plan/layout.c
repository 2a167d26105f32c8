/* layout.c - strides of layouts, and what operators can work with (see layout.h). */
#include "cost/plan/layout.h"

#include <assert.h>
#include <string.h>

const char *graft_layout_name(uint32_t layout)
{
    static const char *const names[GRAFT_LAYOUT_COUNT] = {"row", "nhwc", "nchw16c"};
    return layout < GRAFT_LAYOUT_COUNT ? names[layout] : "unknown";
}

bool graft_layout_fits(const graft_shape *shape, uint32_t layout)
{
    return layout == GRAFT_LAYOUT_ROW ||
           (shape->rank == 4 &&
            (layout == GRAFT_LAYOUT_NHWC || shape->dims[1] % GRAFT_LAYOUT_BLOCK == 0));
}

void graft_layout_strides(const graft_shape *shape, uint32_t layout,
                          int64_t strides[GRAFT_MAX_RANK])
{
    static const uint8_t nhwc[4] = {1, 3, 2, 0}; /* Fastest axis first. */
    int64_t step = 1;
    assert(layout != GRAFT_LAYOUT_BLOCKED);
    memset(strides, 0, GRAFT_MAX_RANK * sizeof(strides[0]));
    for (uint32_t i = 0; i < shape->rank && i < GRAFT_MAX_RANK; i++) {
        uint32_t axis = layout == GRAFT_LAYOUT_NHWC ? nhwc[i & 3u] : shape->rank - 1u - i;
        strides[axis] = step;
        step *= shape->dims[axis];
    }
}

size_t graft_layout_place(const graft_shape *shape, uint32_t layout, size_t i)
{
    if (layout != GRAFT_LAYOUT_NHWC || shape->rank != 4) {
        return i;
    }
    size_t channels = (size_t)shape->dims[1];
    size_t pixels = (size_t)shape->dims[2] * (size_t)shape->dims[3];
    return (i / (channels * pixels) * pixels + i % pixels) * channels + i / pixels % channels;
}

bool graft_layout_same(const graft_shape *shape, uint32_t from, uint32_t to)
{
    bool one_block =
        from != GRAFT_LAYOUT_ROW && to != GRAFT_LAYOUT_ROW && shape->dims[1] == GRAFT_LAYOUT_BLOCK;
    return from == to || shape->rank != 4 || shape->dims[1] == 1 || one_block ||
           (shape->dims[2] == 1 && shape->dims[3] == 1);
}

uint32_t graft_layout_canonical(const graft_shape *shape, uint32_t layout)
{
    for (uint32_t first = 0; first < layout; first++) {
        if (graft_layout_same(shape, first, layout)) {
            return first;
        }
    }
    return layout;
}

/* ------------------------------------------------------------- alternatives */

typedef enum layout_rule {
    RULE_FOLLOW, /* All operands as one of them that is an image. */
    RULE_CONV,   /* Channels last or blocked; row-major in where channels are too few to block, in
                    and out of transposed ones. */
    RULE_POOL,   /* Channels last or blocked. */
    RULE_ROW,    /* Row-major. */
    RULE_TO_ROW /* Takes row-major or channels last, gives row-major, or a view of channels last. */
} layout_rule;

bool graft_layout_is_closed(const graft_node *node)
{
    return node->op == GRAFT_OP_OPAQUE && node->attrs[0] != GRAFT_LAYOUT_POINTWISE;
}

/* Whether a transposed convolution makes rows or columns that nothing reaches, a stride or more of
 * them: libraries refuse these, and the body is row-major. */
static bool goes_beyond(const graft_node *node)
{
    const int32_t *a = node->attrs;
    return a[GRAFT_ATTR_conv_transpose_extra_h] - a[GRAFT_ATTR_conv_transpose_pad_bottom] >=
               a[GRAFT_ATTR_conv_transpose_stride_h] ||
           a[GRAFT_ATTR_conv_transpose_extra_w] - a[GRAFT_ATTR_conv_transpose_pad_right] >=
               a[GRAFT_ATTR_conv_transpose_stride_w];
}

static layout_rule rule_of(const graft_node *node)
{
    switch (node->op) {
    case GRAFT_OP_conv:
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
        return RULE_CONV;
    case GRAFT_OP_conv_transpose:
        return goes_beyond(node) ? RULE_ROW : RULE_CONV;
    case GRAFT_OP_max_pool:
    case GRAFT_OP_avg_pool:
    case GRAFT_OP_global_avg_pool:
        return RULE_POOL;
    case GRAFT_OP_matmul:
    case GRAFT_OP_matmul_bias:
    case GRAFT_OP_layer_norm:
    case GRAFT_OP_reshape:
    case GRAFT_OP_rms_norm:
        return RULE_ROW;
    case GRAFT_OP_OPAQUE:
        return graft_layout_is_closed(node) ? RULE_ROW : RULE_FOLLOW;
    case GRAFT_OP_transpose:
        return RULE_TO_ROW;
    default:
        return RULE_FOLLOW;
    }
}

static const graft_value *input_of(const graft_graph *graph, graft_index node, uint32_t k)
{
    return &graph->values[graft_node_input(graph, node, k)];
}

static const graft_shape *output_of(const graft_graph *graph, graft_index node, uint32_t k)
{
    return &graph->values[graft_node_output(graph, node, k)].shape;
}

/* Whether every operand is an image of whole blocks; of one shape, if `alike`; none is const. */
static bool all_blocked(const graft_graph *graph, graft_index node, bool alike)
{
    const graft_node *n = &graph->nodes[node];
    const graft_shape *first = output_of(graph, node, 0);
    bool all = true;
    for (uint32_t k = 0; k < n->output_count; k++) {
        all = all && graft_layout_fits(output_of(graph, node, k), GRAFT_LAYOUT_BLOCKED);
    }
    for (uint32_t k = 0; k < n->input_count; k++) {
        const graft_value *value = input_of(graph, node, k);
        const graft_shape *shape = &value->shape;
        all = all && !value->is_const && graft_layout_fits(shape, GRAFT_LAYOUT_BLOCKED) &&
              (!alike || memcmp(shape->dims, first->dims, sizeof(first->dims)) == 0);
    }
    return all;
}

/* Whether an operator of RULE_FOLLOW can work on blocked images. Pieces along batch or channels are
 * then pieces of whole blocks. */
static bool follows_blocked(const graft_graph *graph, graft_index node)
{
    const graft_node *n = &graph->nodes[node];
    bool whole_blocks = true;
    switch (n->op) {
    case GRAFT_OP_scale_shift:
    case GRAFT_OP_instance_norm:
    case GRAFT_OP_OPAQUE:
        return graft_layout_fits(output_of(graph, node, 0), GRAFT_LAYOUT_BLOCKED);
    case GRAFT_OP_slice:
        whole_blocks = n->attrs[GRAFT_ATTR_slice_start] % GRAFT_LAYOUT_BLOCK == 0;
        return n->attrs[GRAFT_ATTR_slice_axis] <= 1 && whole_blocks &&
               all_blocked(graph, node, false);
    case GRAFT_OP_concat:
        return n->attrs[GRAFT_ATTR_concat_axis] <= 1 && all_blocked(graph, node, false);
    case GRAFT_OP_split:
        return n->attrs[GRAFT_ATTR_split_axis] <= 1 && all_blocked(graph, node, false);
    case GRAFT_OP_cumsum:
    case GRAFT_OP_repeat:
    case GRAFT_OP_reverse:
    case GRAFT_OP_pick: /* The axis is the first attribute. */
        return n->attrs[0] != 1 && all_blocked(graph, node, false);
    default:
        return (graft_op(n->op)->flags & GRAFT_FLAG_ELEMENTWISE) != 0 &&
               all_blocked(graph, node, true);
    }
}

static int32_t groups_of(const graft_node *conv)
{
    return conv->op == GRAFT_OP_conv_transpose ? 1 : conv->attrs[GRAFT_ATTR_conv_groups];
}

/* Groups of less than a block make libraries fall back to reference code, but for depthwise ones.
 */
static bool conv_blocks(const graft_graph *graph, graft_index node)
{
    const graft_shape *image = &input_of(graph, node, 0)->shape;
    const graft_shape *output = output_of(graph, node, 0);
    int32_t groups = groups_of(&graph->nodes[node]);
    bool depthwise = groups == image->dims[1] && groups == output->dims[1];
    return image->dims[1] % GRAFT_LAYOUT_BLOCK == 0 && output->dims[1] % GRAFT_LAYOUT_BLOCK == 0 &&
           (depthwise || (image->dims[1] / groups % GRAFT_LAYOUT_BLOCK == 0 &&
                          output->dims[1] / groups % GRAFT_LAYOUT_BLOCK == 0));
}

/* The first layers of networks: too few channels to block, one group, blocked out. */
static bool conv_enters(const graft_graph *graph, graft_index node)
{
    return input_of(graph, node, 0)->shape.dims[1] % GRAFT_LAYOUT_BLOCK != 0 &&
           output_of(graph, node, 0)->dims[1] % GRAFT_LAYOUT_BLOCK == 0 &&
           groups_of(&graph->nodes[node]) == 1;
}

/* The layouts that the operands can be had in: of the first image for which it makes a difference
 * in `leader`, of all in the result. */
static uint32_t gather_offers(const graft_graph *graph, graft_index node, const uint8_t *offered,
                              uint32_t *leader)
{
    uint32_t all = 0;
    uint32_t fallback = 0;
    *leader = 0;
    for (uint32_t k = 0; k < graph->nodes[node].input_count; k++) {
        graft_index v = graft_node_input(graph, node, k);
        const graft_value *value = v == GRAFT_NONE ? NULL : &graph->values[v];
        if (value == NULL || value->is_const || value->shape.rank != 4) {
            continue;
        }
        fallback = fallback == 0 ? offered[v] : fallback;
        if (!graft_layout_same(&value->shape, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC)) {
            *leader = *leader == 0 ? offered[v] : *leader;
            all |= offered[v];
        }
    }
    if (all == 0) { /* Nothing but single pixels or channels. */
        all = fallback == 0 ? 1U << GRAFT_LAYOUT_ROW : fallback & (~fallback + 1);
        *leader = all;
    }
    return all;
}

/* Filters that are computed at each run stay row-major, whatever the images do. */
static uint8_t fit_input(const graft_graph *graph, graft_index node, uint32_t k, uint32_t layout)
{
    const graft_value *value = input_of(graph, node, k);
    bool filter = rule_of(&graph->nodes[node]) == RULE_CONV && k == 1;
    return (uint8_t)(value->shape.rank == 4 && !value->is_const && !filter ? layout
                                                                           : GRAFT_LAYOUT_ROW);
}

/* Input 0 in layout `in`, everything else in layout `out`, where that applies. */
static void fill_choice(const graft_graph *graph, graft_index node, uint32_t in, uint32_t out,
                        graft_layout_choice *choice)
{
    const graft_node *n = &graph->nodes[node];
    memset(choice, GRAFT_LAYOUT_ROW, sizeof(*choice));
    for (uint32_t k = 0; k < n->input_count && k < GRAFT_MAX_INPUTS; k++) {
        if (graft_node_input(graph, node, k) != GRAFT_NONE) {
            choice->inputs[k] = fit_input(graph, node, k, k == 0 ? in : out);
        }
    }
    for (uint32_t k = 0; k < n->output_count && k < GRAFT_MAX_OUTPUTS; k++) {
        bool image = output_of(graph, node, k)->rank == 4;
        choice->outputs[k] = (uint8_t)(image ? out : GRAFT_LAYOUT_ROW);
    }
}

void graft_layout_uniform(const graft_graph *graph, graft_index node, uint32_t layout,
                          graft_layout_choice *choice)
{
    fill_choice(graph, node, layout, layout, choice);
}

/* Whether two choices mean the same order of elements of every operand. */
static bool same_choice(const graft_graph *graph, graft_index node, const graft_layout_choice *a,
                        const graft_layout_choice *b)
{
    const graft_node *n = &graph->nodes[node];
    bool same = true;
    for (uint32_t k = 0; k < n->input_count && same; k++) {
        bool given = graft_node_input(graph, node, k) != GRAFT_NONE;
        same = !given ||
               graft_layout_same(&input_of(graph, node, k)->shape, a->inputs[k], b->inputs[k]);
    }
    for (uint32_t k = 0; k < n->output_count && same; k++) {
        same = graft_layout_same(output_of(graph, node, k), a->outputs[k], b->outputs[k]);
    }
    return same;
}

typedef struct {
    const graft_graph *graph;
    graft_index node;
    graft_layout_choice *choices;
    uint32_t count;
} lister;

static void list_choice(lister *l, uint32_t in, uint32_t out)
{
    graft_layout_choice *choice = &l->choices[l->count];
    bool known = l->count == GRAFT_LAYOUT_COUNT;
    if (!known) {
        fill_choice(l->graph, l->node, in, out, choice);
    }
    for (uint32_t i = 0; i < l->count && !known; i++) {
        known = same_choice(l->graph, l->node, &l->choices[i], choice);
    }
    l->count += !known;
}

/* Of those offered, in the order of preference when nothing is known about costs. */
static void list_layouts(lister *l, uint32_t offers, bool blocked)
{
    static const uint8_t order[GRAFT_LAYOUT_COUNT] = {GRAFT_LAYOUT_NHWC, GRAFT_LAYOUT_ROW,
                                                      GRAFT_LAYOUT_BLOCKED};
    for (uint32_t i = 0; i < GRAFT_LAYOUT_COUNT; i++) {
        if ((offers >> order[i] & 1U) != 0 && (order[i] != GRAFT_LAYOUT_BLOCKED || blocked)) {
            list_choice(l, order[i], order[i]);
        }
    }
}

static void list_followers(lister *l, const uint8_t *offered)
{
    uint32_t leader = 0;
    uint32_t all = gather_offers(l->graph, l->node, offered, &leader);
    bool blocked = (all >> GRAFT_LAYOUT_BLOCKED & 1U) != 0 && follows_blocked(l->graph, l->node);
    list_layouts(l, leader, blocked);
    list_layouts(l, all, blocked);
    if (l->count == 0) { /* Offered blocked only, which it cannot. */
        list_choice(l, GRAFT_LAYOUT_NHWC, GRAFT_LAYOUT_NHWC);
    }
}

uint32_t graft_layout_alternatives(const graft_graph *graph, graft_index node,
                                   const uint8_t *offered,
                                   graft_layout_choice choices[GRAFT_LAYOUT_COUNT])
{
    lister l = {.graph = graph, .node = node, .choices = choices};
    layout_rule rule = rule_of(&graph->nodes[node]);
    switch (rule) {
    case RULE_CONV:
    case RULE_POOL:
        list_choice(&l, GRAFT_LAYOUT_NHWC, GRAFT_LAYOUT_NHWC);
        if (graph->nodes[node].op == GRAFT_OP_conv_transpose) {
            list_choice(&l, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_ROW);
        }
        if (rule == RULE_POOL ? all_blocked(graph, node, false) : conv_blocks(graph, node)) {
            list_choice(&l, GRAFT_LAYOUT_BLOCKED, GRAFT_LAYOUT_BLOCKED);
        } else if (rule == RULE_CONV && l.count == 1 && conv_enters(graph, node)) {
            list_choice(&l, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_BLOCKED);
        }
        break;
    case RULE_TO_ROW:
        if (graft_layout_fits(&input_of(graph, node, 0)->shape, GRAFT_LAYOUT_NHWC) &&
            (offered[graft_node_input(graph, node, 0)] >> GRAFT_LAYOUT_NHWC & 1U) != 0) {
            list_choice(&l, GRAFT_LAYOUT_NHWC, GRAFT_LAYOUT_ROW);
        }
        list_choice(&l, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_ROW);
        if (graft_layout_fits(output_of(graph, node, 0), GRAFT_LAYOUT_NHWC)) {
            list_choice(&l, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC);
        }
        break;
    case RULE_ROW:
        list_choice(&l, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_ROW);
        break;
    case RULE_FOLLOW:
        list_followers(&l, offered);
        break;
    }
    return l.count;
}

bool graft_layout_is_for_views(const graft_graph *graph, graft_index node,
                               const graft_layout_choice *choice)
{
    return rule_of(&graph->nodes[node]) == RULE_TO_ROW && choice->outputs[0] != GRAFT_LAYOUT_ROW;
}

uint32_t graft_layout_drop_blocked(graft_layout_choice *choices, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const graft_layout_choice *c = &choices[i];
        if (memchr(c->inputs, GRAFT_LAYOUT_BLOCKED, sizeof(c->inputs)) == NULL &&
            memchr(c->outputs, GRAFT_LAYOUT_BLOCKED, sizeof(c->outputs)) == NULL) {
            choices[kept++] = *c;
        }
    }
    return kept;
}

/* What is listed first is channels last wherever an operand is. */
static const graft_layout_choice *prefer(const graft_layout_choice *listed, uint32_t count,
                                         uint32_t layout)
{
    const graft_layout_choice *chosen = listed;
    for (uint32_t i = count; i-- > 1 && layout != GRAFT_LAYOUT_NHWC;) {
        chosen = listed[i].outputs[0] == layout ? &listed[i] : chosen;
    }
    return chosen;
}

void graft_layout_assign(const graft_graph *graph, const graft_order *order, uint32_t layout,
                         uint8_t *layouts, graft_layout_choice *choices)
{
    graft_layout_choice listed[GRAFT_LAYOUT_COUNT];
    for (graft_index v = 0; v < graph->value_end; v++) {
        layouts[v] = 1U << GRAFT_LAYOUT_ROW; /* As masks, at first. */
    }
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        const graft_node *n = &graph->nodes[node];
        if (n->is_const) {
            continue;
        }
        if (layout == GRAFT_LAYOUT_PLAIN) {
            fill_choice(graph, node, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_ROW, &choices[node]);
        } else {
            uint32_t count = graft_layout_alternatives(graph, node, layouts, listed);
            choices[node] = *prefer(listed, count, layout);
        }
        for (uint32_t k = 0; k < n->output_count && k < GRAFT_MAX_OUTPUTS; k++) {
            layouts[graft_node_output(graph, node, k)] = (uint8_t)(1U << choices[node].outputs[k]);
        }
    }
    for (graft_index v = 0; v < graph->value_end; v++) {
        layouts[v] = (uint8_t)(layouts[v] >> 1); /* 1, 2, 4 to 0, 1, 2. */
    }
}
