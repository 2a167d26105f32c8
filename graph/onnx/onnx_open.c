/* onnx_open.c - which nodes of a file depend on the sizes that it leaves open (see onnx.h).
 *
 * A file is read at two sets of sizes. What became of an ONNX node must be the same at both:
 * operators, attributes, wires, and the numbers that were worked out. A node of which it is not (a
 * Reshape to a computed shape, the Shape and Gather before it) depends on the open sizes, and so
 * does one that reads such numbers as a setting. These are kept as they are, so what is left in
 * rules' reach says the same at all sizes.
 *
 * Two samples do not see what repeats itself: a remainder of a size, or padding that makes up for
 * one. So what is calculated from sizes that differ counts as different whatever comes out, as do
 * windows that are padded according to the size and slices of an open axis. Numbers that are only
 * moved (Gather, Concat) are sizes themselves, and sizes that do not differ are not open. What
 * sizes choose among other numbers, as the bound of a slice, is calculated.
 *
 * Nor do they see what a node of which nothing is known makes of an open axis: a cut to the size,
 * or strides, may come out alike at both. The sizes of what it makes, and of what follows from
 * that, are not sure then, whatever they were; only what the file declares is. No number is taken
 * from such sizes: neither their list nor the shape that a node is read with. */
#include "graph/onnx/onnx.h"

#include <string.h>

static bool are_ints_equal(const graft_onnx_ints *a, const graft_onnx_ints *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return a->count == b->count && a->rank == b->rank && a->dtype == b->dtype &&
           (a->count == 0 || memcmp(a->items, b->items, a->count * sizeof(a->items[0])) == 0);
}

/* Tensors that were worked out; those of the file are the same anyway. */
static bool is_known_equal(const graft_model_weight *a, const graft_model_weight *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return graft_shape_equal(&a->shape, &b->shape) && a->data_bytes == b->data_bytes &&
           memcmp(a->data, b->data, a->data_bytes) == 0;
}

/* The numbers that a name stands for, or that it is a weight; a weight's own numbers are in the
 * file. */
static bool is_entry_equal(const graft_onnx *a, const graft_onnx *b, const char *name)
{
    const graft_onnx_entry *x = graft_onnx_entry_named(a, name);
    const graft_onnx_entry *y = graft_onnx_entry_named(b, name);
    return x == NULL || y == NULL || x->kind != GRAFT_ONNX_COMPUTED ||
           (are_ints_equal(x->ints, y->ints) && is_known_equal(x->known, y->known));
}

static bool is_operand_equal(const graft_onnx_operand *x, const graft_onnx_operand *y)
{
    return x->kind == y->kind && x->slot == y->slot &&
           (x->index == y->index || x->kind == GRAFT_ONNX_OPERAND_WEIGHT);
}

static bool is_part_equal(const graft_onnx_part *x, const graft_onnx_part *y)
{
    bool equal = x->op == y->op && memcmp(x->attrs, y->attrs, sizeof(x->attrs)) == 0;
    for (uint32_t i = 0; equal && i < GRAFT_MAX_INPUTS; i++) {
        equal = is_operand_equal(&x->inputs[i], &y->inputs[i]);
    }
    return equal;
}

static bool is_group_equal(const graft_onnx *a, const graft_onnx *b, uint32_t index)
{
    const graft_onnx_group *x = &a->groups[index];
    const graft_onnx_group *y = &b->groups[index];
    const Onnx__NodeProto *node = a->proto->graph->node[index];
    bool equal = x->is_opaque == y->is_opaque && x->part_count == y->part_count;
    for (uint32_t p = 0; equal && p < x->part_count; p++) {
        equal = is_part_equal(&x->parts[p], &y->parts[p]);
    }
    for (size_t k = 0; equal && k < node->n_output; k++) {
        equal = is_entry_equal(a, b, node->output[k]) &&
                (x->part_count == 0 || is_operand_equal(&x->outputs[k], &y->outputs[k]));
    }
    return equal;
}

/* ------------------------------------------------------------------ what repeats itself */

/* Whether a node only moves the numbers of input `k`; places and bounds choose among others. */
static bool is_moved(const Onnx__NodeProto *node, size_t k)
{
    static const char moves[] = "Shape Gather Slice Concat Squeeze Reshape Unsqueeze Identity Cast";
    return graft_onnx_lists(moves, node->op_type) && (k == 0 || graft_onnx_is(node, "Concat"));
}

static graft_shape shape_of_input(const graft_model *model, const Onnx__NodeProto *node, size_t k)
{
    const graft_onnx_entry *entry = graft_onnx_input(model->onnx, node, k);
    return entry == NULL || entry->value == GRAFT_NONE ? (graft_shape){.rank = GRAFT_RANK_UNKNOWN}
                                                       : model->graph.values[entry->value].shape;
}

static bool has_equal_dims(const graft_shape *x, const graft_shape *y, uint32_t first)
{
    bool equal = x->rank == y->rank && x->rank <= GRAFT_MAX_RANK;
    for (uint32_t i = first; equal && i < x->rank; i++) {
        equal = x->dims[i] == y->dims[i];
    }
    return equal;
}

/* A window whose padding makes up for the size of an image that is not the same. */
static bool is_padded_by_size(const graft_model *a, const graft_model *b,
                              const Onnx__NodeProto *node)
{
    bool padded = false;
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = node->attribute[i];
        const char *name = attribute->name == NULL ? "" : attribute->name;
        padded = padded ||
                 (strcmp(name, "auto_pad") == 0 && attribute->s.len > 4 &&
                  memcmp(attribute->s.data, "SAME", 4) == 0) ||
                 (strcmp(name, "ceil_mode") == 0 && attribute->i != 0);
    }
    graft_shape x = shape_of_input(a, node, 0);
    graft_shape y = shape_of_input(b, node, 0);
    return padded &&
           (x.rank != y.rank || x.rank != 4 || x.dims[2] != y.dims[2] || x.dims[3] != y.dims[3]);
}

/* A list of a node: an attribute in older opsets, a known input in newer ones. */
static const int64_t *find_list(const graft_model *model, const Onnx__NodeProto *node,
                                const char *name, size_t k, size_t *count)
{
    const graft_onnx_entry *entry = graft_onnx_input(model->onnx, node, k);
    if (entry != NULL && entry->ints != NULL) {
        *count = entry->ints->count;
        return entry->ints->items;
    }
    const Onnx__AttributeProto *attribute = graft_onnx_attribute(node, name);
    if (attribute != NULL) {
        *count = attribute->n_ints;
        return attribute->ints;
    }
    *count = 0;
    return NULL;
}

/* Whether a slice that takes all at both sizes names an axis that is not the same. */
static bool names_open_axis(const graft_model *model, const Onnx__NodeProto *node,
                            const graft_shape *x, const graft_shape *y)
{
    size_t start_count = 0;
    size_t axis_count = 0;
    const int64_t *axes = find_list(model, node, "axes", 3, &axis_count);
    bool open = find_list(model, node, "starts", 1, &start_count) == NULL ||
                (axes != NULL && axis_count != start_count) || x->rank != y->rank ||
                x->rank > GRAFT_MAX_RANK;
    for (size_t i = 0; i < start_count && !open; i++) {
        int64_t axis = axes == NULL ? (int64_t)i : axes[i] + (axes[i] < 0 ? x->rank : 0);
        open = axis < 0 || axis >= x->rank || x->dims[axis] != y->dims[axis];
    }
    return open;
}

/* A slice of an axis that is not the same, or not sure: ONNX cuts its bounds to the size. */
static bool is_cut_by_size(const graft_model *a, const graft_model *b, const Onnx__NodeProto *node,
                           const graft_onnx_group *group, bool unsure)
{
    graft_shape x = shape_of_input(a, node, 0);
    graft_shape y = shape_of_input(b, node, 0);
    bool cut = false;
    if (!graft_onnx_is(node, "Slice")) {
        return false;
    }
    if (unsure) {
        return true;
    }
    for (uint32_t p = 0; p < group->part_count; p++) {
        const graft_onnx_part *part = &group->parts[p];
        uint32_t axis = (uint32_t)part->attrs[GRAFT_ATTR_slice_axis];
        cut = cut || (part->op == GRAFT_OP_slice ? x.dims[axis] != y.dims[axis]
                                                 : names_open_axis(a, node, &x, &y));
    }
    return cut;
}

/* --------------------------------------------------------------------------- all of them */

typedef struct {
    const graft_model *a;
    const graft_model *b;
    bool *bound;      /* By node. */
    bool *calculated; /* By node: from sizes that differ. */
    bool *derived;    /* By node: what is known of it rests on what depends on the sizes. */
    bool *unsure;     /* By node: sizes of what it makes may be others at other sizes. */
} search;

/* Whether a part reads input `k` of the ONNX node; else it is a setting. */
static bool is_operand(const graft_onnx_group *group, size_t k)
{
    bool found = false;
    for (uint32_t p = 0; p < group->part_count && !found; p++) {
        for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
            const graft_onnx_operand *operand = &group->parts[p].inputs[i];
            found = found || (operand->kind == GRAFT_ONNX_OPERAND_INPUT && operand->index == k);
        }
    }
    return found;
}

/* Whether a node gives a short list of whole numbers, which may be a list of sizes. */
static bool is_list(const graft_onnx *onnx, const Onnx__NodeProto *node)
{
    const graft_onnx_entry *entry =
        node->n_output == 0 ? NULL : graft_onnx_entry_named(onnx, node->output[0]);
    return entry != NULL && entry->ints != NULL;
}

/* Whether a tensor that a node reads has sizes that are not the same, or not sure. */
static bool reads_open(const search *s, const Onnx__NodeProto *node, bool *unsure)
{
    bool open = false;
    *unsure = false;
    for (size_t k = 0; k < node->n_input; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(s->a->onnx, node, k);
        if (entry != NULL && entry->ints == NULL) {
            graft_shape x = shape_of_input(s->a, node, k);
            graft_shape y = shape_of_input(s->b, node, k);
            *unsure = *unsure || (entry->kind == GRAFT_ONNX_COMPUTED && s->unsure[entry->index]);
            open = open || (entry->value != GRAFT_NONE && !has_equal_dims(&x, &y, 0));
        }
    }
    return open;
}

/* Whether windows over an axis that is not the same come out at the same size. */
static bool is_window_alike(const search *s, const Onnx__NodeProto *node)
{
    const bool window = graft_onnx_lists("Conv MaxPool AveragePool", node->op_type);
    const graft_onnx_entry *p =
        node->n_output == 0 ? NULL : graft_onnx_entry_named(s->a->onnx, node->output[0]);
    const graft_onnx_entry *q =
        node->n_output == 0 ? NULL : graft_onnx_entry_named(s->b->onnx, node->output[0]);
    if (!window || p == NULL || q == NULL || p->value == GRAFT_NONE || q->value == GRAFT_NONE) {
        return window;
    }
    const graft_shape x = shape_of_input(s->a, node, 0);
    const graft_shape y = shape_of_input(s->b, node, 0);
    return !has_equal_dims(&x, &y, 2) && has_equal_dims(&s->a->graph.values[p->value].shape,
                                                        &s->b->graph.values[q->value].shape, 2);
}

/* Whether each size of what a node makes is one that it reads, or is not the same where that is
 * not: nothing is cut. Windows may have strides beyond an axis (is_window_alike). */
static bool keeps_sizes(const Onnx__NodeProto *node)
{
    static const char keeps[] =
        "And Cast Equal Gather Greater Less Not Or Pow Softmax Where QuantizeLinear "
        "DequantizeLinear Conv MaxPool AveragePool";
    return graft_onnx_lists(keeps, node->op_type);
}

/* Whether a node is read as operators that name sizes of what it reads. */
static bool names_sizes(const graft_onnx_group *group)
{
    for (uint32_t p = 0; p < group->part_count; p++) {
        for (uint32_t k = 0; k < graft_op(group->parts[p].op)->attr_count; k++) {
            const uint8_t role = graft_op_attr(group->parts[p].op, k)->role;
            if ((role == GRAFT_ROLE_EXTENT || role == GRAFT_ROLE_POSITION) &&
                group->parts[p].attrs[k] != 0) {
                return true;
            }
        }
    }
    return false;
}

/* Looks at one node; those that it reads from have been looked at. */
static void look_at(search *s, uint32_t index)
{
    const graft_onnx *onnx = s->a->onnx;
    const Onnx__NodeProto *node = onnx->proto->graph->node[index];
    bool folded = !onnx->groups[index].is_opaque && onnx->groups[index].part_count == 0;
    bool differs = !is_group_equal(onnx, s->b->onnx, index);
    bool reads_bound = false;
    bool calculates = false; /* From what is bound. */
    bool reads_calculated = false;
    bool reads_derived = false;    /* Of known tensors... */
    bool settings_derived = false; /* ...such as are read as something else. */
    bool reads_unsure = false;
    const bool open = reads_open(s, node, &reads_unsure);
    for (size_t k = 0; k < node->n_input; k++) {
        const graft_onnx_entry *entry = graft_onnx_input(onnx, node, k);
        if (entry != NULL && entry->kind == GRAFT_ONNX_COMPUTED && entry->ints != NULL) {
            reads_bound = reads_bound || s->bound[entry->index];
            calculates = calculates || (s->bound[entry->index] && !is_moved(node, k));
            reads_calculated = reads_calculated || s->calculated[entry->index];
        } else if (entry != NULL && entry->kind == GRAFT_ONNX_COMPUTED && entry->known != NULL &&
                   (s->bound[entry->index] || s->derived[entry->index])) {
            reads_derived = true;
            settings_derived = settings_derived || !is_operand(&onnx->groups[index], k);
        }
    }
    s->calculated[index] =
        reads_calculated || (folded && (reads_unsure || reads_derived || calculates));
    s->derived[index] = reads_derived || reads_bound;
    s->bound[index] = differs || s->calculated[index] || settings_derived ||
                      (reads_bound && !(folded && is_list(onnx, node))) ||
                      (reads_unsure && names_sizes(&onnx->groups[index])) ||
                      is_padded_by_size(s->a, s->b, node) ||
                      is_cut_by_size(s->a, s->b, node, &onnx->groups[index], reads_unsure);
    s->unsure[index] =
        reads_unsure || reads_calculated || (reads_bound && graft_onnx_is(node, "Slice")) ||
        (open && (((s->bound[index] || onnx->groups[index].is_opaque) && !keeps_sizes(node)) ||
                  is_window_alike(s, node)));
}

graft_onnx_open graft_onnx_find_open(graft_arena *arena, const graft_model *a, const graft_model *b)
{
    uint32_t count = 0;
    search s = {.a = a,
                .b = b,
                .bound = GRAFT_NEW(arena, bool, a->onnx->node_count),
                .calculated = GRAFT_NEW(arena, bool, a->onnx->node_count),
                .derived = GRAFT_NEW(arena, bool, a->onnx->node_count),
                .unsure = GRAFT_NEW(arena, bool, a->onnx->node_count)};
    for (uint32_t i = 0; i < a->onnx->node_count; i++) {
        look_at(&s, a->onnx->order[i]);
        count += s.bound[a->onnx->order[i]];
    }
    return (graft_onnx_open){s.bound, s.unsure, count};
}

/* ---------------------------------------------------------------------------- single axes */

static const Onnx__TensorShapeProto__Dimension *declared_axis(const graft_onnx_entry *entry,
                                                              uint32_t axis)
{
    const Onnx__TensorShapeProto *shape =
        entry == NULL ? NULL : graft_onnx_declared_shape(entry->type);
    return shape == NULL || axis >= shape->n_dim ? NULL : shape->dim[axis];
}

graft_model_axis graft_model_axis_of(const graft_model *model, const graft_graph *graph,
                                     graft_index value, uint32_t axis)
{
    const graft_shape *shape = &graph->values[value].shape;
    const char *name = graft_model_value_name(model, graph, value);
    const graft_onnx_entry *entry = graft_onnx_entry_named(model->onnx, name);
    const graft_onnx_entry *other = graft_onnx_entry_named(model->other->onnx, name);
    const Onnx__TensorShapeProto__Dimension *declared = declared_axis(entry, axis);
    if (declared != NULL && declared->dim_param != NULL && declared->dim_param[0] != '\0') {
        return (graft_model_axis){.name = declared->dim_param};
    }
    if (entry == NULL || other == NULL || other->value == GRAFT_NONE) {
        return (graft_model_axis){.fixed = false};
    }
    const graft_shape *second = &model->other->graph.values[other->value].shape;
    const bool same = second->rank == shape->rank && second->dims[axis] == shape->dims[axis];
    const bool sure = entry->kind != GRAFT_ONNX_COMPUTED || !model->unsure[entry->index] ||
                      (declared != NULL && declared->has_dim_value);
    return (graft_model_axis){.fixed = same && sure};
}
