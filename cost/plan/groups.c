/* groups.c - finding attention and shuffles in graphs, and what they compute (see groups.h). */
#include "cost/plan/groups.h"

#include "graph/base/bits.h"
#include "graph/meaning/algebra_float.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* From (b,rows,h,columns) to what the products take. */
static const int32_t turns[3][4] = {
    {0, 2, 1, 3},
    {0, 2, 3, 1},
    {0, 2, 1, 3}
};

/* ------------------------------------------------------------------ finding */

typedef struct {
    const graft_graph *graph;
    const graft_order *order;
    const graft_model *model;
    graft_group *group;
} finder;

/* The node of operator `op` that makes a value which is read once, by a node. */
static graft_index find_maker(const finder *f, graft_index value, uint32_t op)
{
    const graft_value *v = &f->graph->values[value];
    bool inner = v->kind == GRAFT_VALUE_COMPUTED && !v->is_const && f->order->use_count[value] == 1;
    return inner && f->graph->nodes[v->node].op == op ? v->node : GRAFT_NONE;
}

/* Takes that node into the group; false when there is none. */
static bool take_maker(finder *f, graft_index value, uint32_t op, graft_index *node)
{
    *node = find_maker(f, value, op);
    if (*node != GRAFT_NONE) {
        f->group->nodes[f->group->node_count++] = *node;
    }
    return *node != GRAFT_NONE;
}

/* Goes through a mask; `*value` becomes what it is added to. */
static graft_index take_mask(finder *f, graft_index *value)
{
    static const uint32_t makers[3] = {GRAFT_OP_div, GRAFT_OP_mul, GRAFT_OP_matmul};
    graft_index node = find_maker(f, *value, GRAFT_OP_add);
    for (uint32_t i = 0; i < 6 && node != GRAFT_NONE; i++) {
        graft_index scores = graft_node_input(f->graph, node, i % 2);
        if (find_maker(f, scores, makers[i / 2]) != GRAFT_NONE) {
            (void)take_maker(f, *value, GRAFT_OP_add, &node);
            *value = scores;
            return graft_node_input(f->graph, node, 1 - i % 2);
        }
    }
    return GRAFT_NONE;
}

/* The first element of a constant; false: it is not known. */
static bool find_number(const finder *f, graft_index value, float *number)
{
    const graft_value *v = &f->graph->values[value];
    if (v->kind == GRAFT_VALUE_COMPUTED && f->graph->nodes[v->node].op == GRAFT_OP_fill) {
        memcpy(number, &f->graph->nodes[v->node].attrs[GRAFT_ATTR_fill_value], sizeof(*number));
        return true;
    }
    bool known = f->model != NULL && v->kind == GRAFT_VALUE_WEIGHT &&
                 v->shape.dtype == GRAFT_DTYPE_F32 && v->source < f->model->weight_count &&
                 f->model->weights[v->source].data != NULL;
    if (known) {
        memcpy(number, f->model->weights[v->source].data, sizeof(*number));
    }
    return known;
}

/* Goes through a factor or divisor; `*value` becomes what it scales. */
static float take_scale(finder *f, graft_index *value)
{
    graft_index node = GRAFT_NONE;
    for (uint32_t i = 0; i < 3; i++) { /* Factors on either side, a divisor on the right. */
        float number = 0.0F;
        uint32_t op = i == 2 ? GRAFT_OP_div : GRAFT_OP_mul;
        node = find_maker(f, *value, op);
        graft_index other = node == GRAFT_NONE ? 0 : graft_node_input(f->graph, node, i != 1);
        if (node == GRAFT_NONE || !f->graph->values[other].is_const ||
            graft_shape_elements(&f->graph->values[other].shape) != 1 ||
            !find_number(f, other, &number)) {
            continue;
        }
        number = i == 2 ? 1.0F / number : number;
        if (isfinite(number)) {
            (void)take_maker(f, *value, op, &node);
            *value = graft_node_input(f->graph, node, i == 1);
            return number;
        }
    }
    return 1.0F;
}

/* Goes through a transposition of input `k` of the group. */
static bool take_turn(finder *f, uint32_t k)
{
    graft_index *value = &f->group->inputs[k];
    graft_index node = find_maker(f, *value, GRAFT_OP_transpose);
    if (node == GRAFT_NONE ||
        memcmp(f->graph->nodes[node].attrs, turns[k], sizeof(turns[k])) != 0) {
        return false;
    }
    (void)take_maker(f, *value, GRAFT_OP_transpose, &node);
    *value = graft_node_input(f->graph, node, 0);
    return true;
}

/* The group that ends with a product, if it is one. */
static bool match_group(finder *f, graft_index last)
{
    const graft_graph *graph = f->graph;
    graft_group *g = f->group;
    graft_index softmax = GRAFT_NONE;
    graft_index product = GRAFT_NONE;
    uint32_t turned = 0;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    *g = (graft_group){.nodes = {last}, .node_count = 1};
    const graft_shape *out = &graph->values[graft_node_output(graph, last, 0)].shape;
    if (graph->nodes[last].op != GRAFT_OP_matmul || graph->nodes[last].is_const || out->rank != 4 ||
        !take_maker(f, graft_node_input(graph, last, 0), GRAFT_OP_softmax, &softmax) ||
        graph->nodes[softmax].attrs[GRAFT_ATTR_softmax_axis] != 3) {
        return false;
    }
    graft_index value = graft_node_input(graph, softmax, 0);
    g->inputs[3] = take_mask(f, &value);
    float scale = take_scale(f, &value);
    if (!take_maker(f, value, GRAFT_OP_matmul, &product)) {
        return false;
    }
    g->inputs[0] = graft_node_input(graph, product, 0);
    g->inputs[1] = graft_node_input(graph, product, 1);
    g->inputs[2] = graft_node_input(graph, last, 1);
    for (uint32_t k = 0; k < 3; k++) {
        turned |= (uint32_t)take_turn(f, k) << k;
    }
    graft_signature_of_attention(graph, g->inputs, scale, turned, &g->signature);
    return graft_signature_outputs(&g->signature, outputs) == GRAFT_OK &&
           memcmp(outputs[0].dims, out->dims, sizeof(out->dims)) == 0;
}

/* Whether a node between the first of the group and its last overwrites something. */
static bool is_disturbed(const graft_group *g, const graft_order *order, const bool *overwrites,
                         graft_index last)
{
    uint32_t left = g->node_count;
    bool disturbed = false;
    for (graft_index i = last + 1; i-- > 0 && left > 0;) {
        disturbed = disturbed || overwrites[order->order[i]];
        for (uint32_t k = 0; k < g->node_count; k++) {
            left -= g->nodes[k] == order->order[i];
        }
    }
    return disturbed;
}

void graft_group_add(graft_arena *arena, const graft_graph *graph, const graft_group *group,
                     graft_groups *groups)
{
    if (groups->of == NULL) { /* Most graphs have none. */
        groups->of = GRAFT_NEW(arena, uint32_t, graph->node_end);
        groups->list = GRAFT_NEW(arena, graft_group, graph->node_end);
    }
    groups->list[groups->count++] = *group;
    for (uint32_t k = 0; k < group->node_count; k++) {
        groups->of[group->nodes[k]] = groups->count;
    }
}

const graft_group *graft_group_of(const graft_groups *groups, graft_index node)
{
    return groups->of == NULL || groups->of[node] == 0 ? NULL : &groups->list[groups->of[node] - 1];
}

void graft_groups_find(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                       const bool *overwrites, const graft_model *model, graft_groups *groups)
{
    graft_group found;
    finder f = {.graph = graph, .order = order, .model = model, .group = &found};
    *groups = (graft_groups){.list = NULL};
    for (graft_index i = 0; i < order->count; i++) {
        if (match_group(&f, order->order[i]) && !is_disturbed(&found, order, overwrites, i)) {
            graft_group_add(arena, graph, &found, groups);
        }
    }
}

/* ----------------------------------------------------------------- shuffles */

static const graft_shape *shape_of(const finder *f, graft_index value)
{
    return &f->graph->values[value].shape;
}

/* Whether a convolution makes an image, but for what works on it in any layout. */
static bool is_convolved(const graft_graph *graph, graft_index value, uint32_t depth)
{
    const graft_value *v = &graph->values[value];
    if (v->kind != GRAFT_VALUE_COMPUTED || v->is_const || v->shape.rank != 4) {
        return false;
    }
    const graft_node *n = &graph->nodes[v->node];
    const graft_op_info *info = graft_op(n->op);
    bool found =
        n->op == GRAFT_OP_conv || n->op == GRAFT_OP_conv_bias || n->op == GRAFT_OP_conv_bias_add;
    const bool passes =
        info != NULL && (n->op == GRAFT_OP_concat || n->op == GRAFT_OP_scale_shift ||
                         (info->flags & GRAFT_FLAG_ELEMENTWISE) != 0);
    for (uint32_t k = 0; passes && depth > 0 && !found && k < n->input_count; k++) {
        found = is_convolved(graph, graft_node_input(graph, v->node, k), depth - 1);
    }
    return found;
}

/* The shuffle that ends with a node, if it is one. */
static bool match_shuffle(finder *f, graft_index last)
{
    enum { DEPTH = 4 };
    const graft_graph *graph = f->graph;
    graft_group *g = f->group;
    graft_index turn = GRAFT_NONE;
    graft_index first = GRAFT_NONE;
    *g = (graft_group){.nodes = {last}, .node_count = 1, .last = true};
    if (graph->nodes[last].op != GRAFT_OP_reshape || graph->nodes[last].is_const ||
        !take_maker(f, graft_node_input(graph, last, 0), GRAFT_OP_transpose, &turn) ||
        !take_maker(f, graft_node_input(graph, turn, 0), GRAFT_OP_reshape, &first)) {
        return false;
    }
    g->inputs[0] = graft_node_input(graph, first, 0);
    const graft_shape *image = shape_of(f, g->inputs[0]);
    const graft_shape *apart = shape_of(f, graft_node_input(graph, turn, 0));
    const int32_t *axes = graph->nodes[turn].attrs;
    bool fits = image->rank == 4 && apart->rank >= 4 && apart->dims[0] == image->dims[0] &&
                apart->dims[1] * apart->dims[2] == image->dims[1] && axes[1] == 2 && axes[2] == 1 &&
                memcmp(image->dims, shape_of(f, graft_node_output(graph, last, 0))->dims,
                       sizeof(image->dims)) == 0;
    for (int32_t i = 3; i < apart->rank; i++) {
        fits = fits && axes[i] == i;
    }
    if (!fits || !is_convolved(graph, g->inputs[0], DEPTH)) {
        return false;
    }
    const graft_shape pixels = {
        .rank = 3,
        .dtype = image->dtype,
        .dims = {image->dims[0] * image->dims[2] * image->dims[3], apart->dims[1], apart->dims[2]}
    };
    static const int32_t within[3] = {0, 2, 1};
    memset(&g->signature, 0, sizeof(g->signature));
    g->signature.op = GRAFT_OP_transpose;
    g->signature.input_count = 1;
    g->signature.output_count = 1;
    memcpy(g->signature.attrs, within, sizeof(within));
    graft_signature_set_input(&g->signature, 0, &pixels);
    return true;
}

void graft_groups_find_shuffles(graft_arena *arena, const graft_graph *graph,
                                const graft_order *order, const bool *overwrites,
                                const graft_distances *distances, graft_groups *groups)
{
    graft_group found;
    finder f = {.graph = graph, .order = order, .group = &found};
    for (graft_index i = 0; i < order->count; i++) {
        if (match_shuffle(&f, order->order[i]) && !is_disturbed(&found, order, overwrites, i)) {
            found.signature.distance = distances->others;
            graft_group_add(arena, graph, &found, groups);
        }
    }
}

uint32_t graft_group_layout(const graft_group *group, uint32_t k)
{
    return group->last ? GRAFT_LAYOUT_NHWC : group->signature.in_layouts[k];
}

uint32_t graft_group_result(const graft_group *group)
{
    return group->last ? GRAFT_LAYOUT_NHWC : group->signature.out_layouts[0];
}

/* ---------------------------------------------------------------- reference */

typedef struct {
    graft_shape shape;
    const float *data;
} tensor;

static tensor run_op(graft_arena *arena, uint32_t op, const int32_t *attrs, tensor a,
                     const tensor *b)
{
    int32_t own[GRAFT_MAX_ATTRS] = {0};
    const graft_shape shapes[GRAFT_MAX_INPUTS] = {a.shape, b == NULL ? a.shape : b->shape};
    const float *in[GRAFT_MAX_INPUTS] = {a.data, b == NULL ? NULL : b->data};
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    if (attrs != NULL) {
        memcpy(own, attrs, 4 * sizeof(own[0]));
    }
    graft_status status = graft_infer_shapes(op, own, shapes, outputs);
    assert(status == GRAFT_OK); /* A signature's sizes fit together. */
    (void)status;
    float *out[GRAFT_MAX_OUTPUTS] = {
        GRAFT_NEW(arena, float, (size_t)graft_shape_elements(&outputs[0]))};
    const graft_call call = {own, shapes, outputs};
    graft_float_run(op, &call, in, out);
    return (tensor){outputs[0], out[0]};
}

/* An attention, by the operators that it stands for. */
static void run_attention(graft_arena *arena, const graft_signature *signature,
                          const float *const in[], float *out)
{
    static const int32_t last[4] = {[GRAFT_ATTR_softmax_axis] = 3};
    const float scale = graft_float_of_bits(signature->attrs[0]);
    const tensor number = {
        {.rank = 1, .dtype = GRAFT_DTYPE_F32, .dims = {1}},
        &scale
    };
    tensor t[4];
    for (uint32_t k = 0; k < signature->input_count; k++) {
        t[k] = (tensor){signature->inputs[k], in[k]};
        if (((uint32_t)signature->attrs[1] >> k & 1U) != 0) {
            t[k] = run_op(arena, GRAFT_OP_transpose, turns[k], t[k], NULL);
        }
    }
    tensor x = run_op(arena, GRAFT_OP_matmul, NULL, t[0], &t[1]);
    x = run_op(arena, GRAFT_OP_mul, NULL, x, &number);
    x = signature->input_count == 4 ? run_op(arena, GRAFT_OP_add, NULL, x, &t[3]) : x;
    x = run_op(arena, GRAFT_OP_softmax, last, x, NULL);
    x = run_op(arena, GRAFT_OP_matmul, NULL, x, &t[2]);
    memcpy(out, x.data, (size_t)graft_shape_bytes(&x.shape));
}

void graft_signature_run(graft_arena *arena, const graft_signature *signature,
                         const graft_shape *outputs, const float *const in[], float *const out[])
{
    const graft_call call = {signature->attrs, signature->inputs, outputs};
    if (signature->op == GRAFT_COST_REORDER) {
        memcpy(out[0], in[0], (size_t)graft_shape_bytes(outputs));
    } else if (graft_signature_is_attention(signature)) {
        run_attention(arena, signature, in, out[0]);
    } else {
        graft_float_run(signature->op, &call, in, out);
    }
}
