/* onnx_map_moves.c - planners of the operators that move elements (see onnx.h). What ONNX does to
 * several axes or tensors at once becomes a chain of steps. */
#include "graph/onnx/onnx.h"

#include <string.h>

/* Whole numbers of a node: an attribute in older opsets, a known input in newer ones. */
typedef struct {
    const int64_t *items;
    uint32_t count;
    bool given; /* Maybe with no numbers. */
} number_list;

/* Number `i`; 0 past the last. */
static int64_t number_at(const number_list *list, uint32_t i)
{
    return i < list->count ? list->items[i] : 0;
}

static number_list read_list(graft_onnx_plan *plan, const char *name, uint32_t input,
                             int64_t first_opset_of_input)
{
    static const int64_t none[1] = {0};
    number_list list = {.items = none};
    if (plan->opset < first_opset_of_input) {
        const int64_t *items = graft_plan_ints(plan, name, &list.count);
        list.given = items != NULL;
        list.items = items == NULL ? none : items;
        list.count = items == NULL ? 0 : list.count;
    } else if (graft_plan_attribute(plan, name) != NULL) {
        graft_plan_refuse(plan, "an attribute of an older opset");
    } else if (graft_plan_has_input(plan, input)) {
        const graft_onnx_ints *ints = graft_plan_const_ints(plan, input);
        list.given = true;
        list.items = ints->items == NULL ? none : ints->items;
        list.count = ints->items == NULL ? 0 : ints->count;
    }
    return list;
}

/* ------------------------------------------------------------------------ concat, split */

graft_onnx_operand graft_plan_concat(graft_onnx_plan *plan)
{
    graft_onnx_operand all = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, all);
    graft_plan_refuse_if(plan, graft_plan_attribute(plan, "axis") == NULL, "no axis");
    int32_t axis = (int32_t)graft_plan_axis(plan, graft_plan_int(plan, "axis", 0), shape.rank);
    if (plan->node->n_input == 1) {
        all = graft_plan_add1(plan, GRAFT_OP_identity, NULL, all);
    }
    for (uint32_t k = 1; k < plan->node->n_input; k++) {
        all = graft_plan_add2(plan, GRAFT_OP_concat, &axis, all, graft_plan_input(plan, k));
    }
    return all;
}

/* Size of output `k` of `count` equal ones; since opset 18 the last may be smaller. */
static int64_t equal_share(graft_onnx_plan *plan, int64_t size, uint32_t count, uint32_t k)
{
    bool uneven = plan->opset >= 18;
    graft_plan_refuse_if(plan, uneven && graft_plan_int(plan, "num_outputs", count) != count,
                         "num_outputs that is not the number of outputs");
    graft_plan_refuse_if(plan, !uneven && size % count != 0, "parts that are not equal");
    int64_t share = (size + count - 1) / count;
    return k + 1 < count ? share : size - share * (count - 1);
}

/* Cuts one output after the other from what is left. */
graft_onnx_operand graft_plan_split(graft_onnx_plan *plan)
{
    graft_onnx_operand rest = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, rest);
    uint32_t axis = graft_plan_axis(plan, graft_plan_int(plan, "axis", 0), shape.rank);
    number_list sizes = read_list(plan, "split", 1, 13);
    uint32_t count = (uint32_t)plan->node->n_output;
    int64_t left = shape.dims[axis];
    GRAFT_RETURN_IF(count == 0 || (sizes.given && sizes.count != count),
                    graft_plan_refuse(plan, "not one size for each output"));
    for (uint32_t k = 0; k < count && plan->refusal == NULL; k++) {
        int64_t size = sizes.given ? sizes.items[k] : equal_share(plan, shape.dims[axis], count, k);
        if (size < 1 || size > left || (k + 1 == count && size != left)) {
            graft_plan_refuse(plan, "sizes that do not add up");
        } else if (k + 1 < count) {
            int32_t attrs[2];
            attrs[GRAFT_ATTR_split_axis] = (int32_t)axis;
            attrs[GRAFT_ATTR_split_at] = graft_plan_int32(plan, size);
            graft_onnx_operand cut = graft_plan_add1(plan, GRAFT_OP_split, attrs, rest);
            graft_plan_output(plan, k, cut);
            rest = cut;
            rest.slot = 1;
        } else {
            bool whole = count == 1;
            graft_plan_output(plan, k,
                              whole ? graft_plan_add1(plan, GRAFT_OP_identity, NULL, rest) : rest);
        }
        left -= size;
    }
    return plan->outputs[0];
}

/* --------------------------------------------------------------------------- slice, pad */

/* A bound of a slice, counted from the front and no further than `least` and `most`. */
static int64_t bound_within(int64_t bound, int64_t size, int64_t least, int64_t most)
{
    bound += bound < 0 ? size : 0;
    return bound < least ? least : bound > most ? most : bound;
}

/* Every step-th element of [start, end). */
static graft_onnx_operand plan_cut(graft_onnx_plan *plan, graft_onnx_operand x, uint32_t axis,
                                   const int64_t range[2], int64_t step)
{
    int32_t attrs[4] = {0, 0, 0, graft_plan_int32(plan, step)}; /* A pick has one more. */
    attrs[GRAFT_ATTR_slice_axis] = (int32_t)axis;
    attrs[GRAFT_ATTR_slice_start] = (int32_t)range[0];
    attrs[GRAFT_ATTR_slice_end] = (int32_t)range[1];
    const bool whole = range[0] == 0 && range[1] == graft_plan_shape(plan, x).dims[axis];
    return whole && step == 1
               ? x
               : graft_plan_add1(plan, step > 1 ? GRAFT_OP_pick : GRAFT_OP_slice, attrs, x);
}

/* From `first` on, and before `behind`; what goes backwards is cut and then turned around. */
static graft_onnx_operand plan_stepped(graft_onnx_plan *plan, graft_onnx_operand x, uint32_t axis,
                                       const int64_t bounds[2], int64_t step)
{
    const int64_t size = graft_plan_shape(plan, x).dims[axis];
    const bool back = step < 0;
    int64_t range[2];
    for (uint32_t i = 0; i < 2; i++) {
        range[i] = back ? 1 + bound_within(bounds[1 - i], size, -1, size - 1)
                        : bound_within(bounds[i], size, 0, size);
    }
    GRAFT_RETURN_IF(step == 0 || step < -INT32_MAX || range[0] >= range[1],
                    graft_plan_refuse(plan, "a slice that is empty"));
    if (!back) {
        return plan_cut(plan, x, axis, range, step);
    }
    const int32_t attrs[1] = {(int32_t)axis};
    const int64_t all[2] = {0, range[1] - range[0]};
    x = graft_plan_add1(plan, GRAFT_OP_reverse, attrs, plan_cut(plan, x, axis, range, 1));
    return plan_cut(plan, x, axis, all, -step);
}

graft_onnx_operand graft_plan_slice(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    number_list starts = read_list(plan, "starts", 1, 10);
    number_list ends = read_list(plan, "ends", 2, 10);
    number_list axes = read_list(plan, "axes", 3, 10);
    number_list steps = read_list(plan, "", 4, 10);
    uint32_t seen = 0;
    uint32_t first_part = plan->part_count;
    GRAFT_RETURN_IF(!starts.given || !ends.given || starts.count != ends.count ||
                        (axes.given && axes.count != starts.count) ||
                        (steps.given && steps.count != starts.count) || starts.count > shape.rank,
                    graft_plan_refuse(plan, "bounds that do not fit the axes"));
    for (uint32_t i = 0; i < starts.count && plan->refusal == NULL; i++) {
        uint32_t axis = graft_plan_axis(plan, axes.given ? axes.items[i] : i, shape.rank);
        const int64_t bounds[2] = {starts.items[i], ends.items[i]};
        x = (seen & 1U << axis) != 0
                ? graft_plan_refuse(plan, "a slice that names an axis twice")
                : plan_stepped(plan, x, axis, bounds, steps.given ? steps.items[i] : 1);
        seen |= 1U << axis;
    }
    if (plan->part_count == first_part) {
        x = graft_plan_add1(plan, GRAFT_OP_identity, NULL, x);
    }
    return x;
}

graft_onnx_operand graft_plan_cumsum(graft_onnx_plan *plan)
{
    const graft_onnx_operand x = graft_plan_input(plan, 0);
    const number_list axis = read_list(plan, "axis", 1, 0);
    const bool from_end = graft_plan_int(plan, "reverse", 0) != 0;
    int32_t attrs[2] = {0, graft_plan_int(plan, "exclusive", 0) != 0};
    GRAFT_RETURN_IF(axis.count != 1, graft_plan_refuse(plan, "an axis that is not known"));
    attrs[GRAFT_ATTR_cumsum_axis] =
        (int32_t)graft_plan_axis(plan, axis.items[0], graft_plan_shape(plan, x).rank);
    const int32_t *turned = &attrs[GRAFT_ATTR_cumsum_axis]; /* A reverse has no other attribute. */
    graft_onnx_operand sums = from_end ? graft_plan_add1(plan, GRAFT_OP_reverse, turned, x) : x;
    sums = graft_plan_add1(plan, GRAFT_OP_cumsum, attrs, sums);
    return from_end ? graft_plan_add1(plan, GRAFT_OP_reverse, turned, sums) : sums;
}

/* Whether place o of the output is place o / times of the input, for whole times. */
static bool is_nearest_below(graft_onnx_plan *plan)
{
    const char *places = "coordinate_transformation_mode";
    bool floor = graft_onnx_says(plan->node, "nearest_mode", "floor", false);
    bool ceil = graft_onnx_says(plan->node, "nearest_mode", "ceil", false);
    bool below = plan->opset < 11 || /* Then there is no other way. */
                 (floor && graft_onnx_says(plan->node, places, "asymmetric", false)) ||
                 (!floor && !ceil && graft_onnx_says(plan->node, places, "half_pixel", true));
    return below && graft_onnx_says(plan->node, "mode", "nearest", true) &&
           graft_plan_int(plan, "antialias", 0) == 0 &&
           graft_onnx_says(plan->node, "keep_aspect_ratio_policy", "stretch", true);
}

/* To the nearest element, whole numbers of times larger. */
graft_onnx_operand graft_plan_resize(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_shape shape = graft_plan_shape(plan, x);
    const bool sized = graft_plan_has_input(plan, 3);
    const number_list sizes = read_list(plan, "sizes", 3, 0);
    uint64_t count = sizes.count;
    const float *scales =
        sized ? NULL : graft_plan_const_floats(plan, plan->opset < 11 ? 1 : 2, &count);
    GRAFT_RETURN_IF(plan->refusal != NULL || count != shape.rank || !is_nearest_below(plan),
                    graft_plan_refuse(plan, "another resizing than to the nearest"));
    for (uint32_t i = 0; i < shape.rank && plan->refusal == NULL; i++) {
        const double times =
            sized ? (double)sizes.items[i] / (double)shape.dims[i] : (double)scales[i];
        const int32_t attrs[2] = {(int32_t)i, (int32_t)(times < 1024.0 ? times : 0.0)};
        if (!(times >= 1.0) || (double)attrs[GRAFT_ATTR_repeat_times] != times) {
            graft_plan_refuse(plan, "a size that is not a multiple");
        } else if (times > 1.0 || (i + 1U == shape.rank && plan->part_count == 0)) {
            x = graft_plan_add1(plan, GRAFT_OP_repeat, attrs, x);
        }
    }
    return x;
}

static int32_t read_pad_value(graft_onnx_plan *plan)
{
    float value = 0.0F;
    uint64_t count = 0;
    if (plan->opset < 11) {
        value = graft_plan_float(plan, "value", 0.0F);
    } else if (graft_plan_has_input(plan, 2)) {
        const float *data = graft_plan_const_floats(plan, 2, &count);
        if (data == NULL || count != 1) {
            graft_plan_refuse(plan, "a padding value that is not one number");
            return 0;
        }
        value = data[0];
    }
    return graft_bits_of_float(value);
}

/* Constant padding; `pads` holds all the numbers before the axes, then all those behind. */
graft_onnx_operand graft_plan_pad(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    number_list pads = read_list(plan, "pads", 1, 11);
    number_list axes = {.count = shape.rank};
    if (plan->opset >= 18 && graft_plan_has_input(plan, 3)) {
        axes = read_list(plan, "axes", 3, 18);
    }
    int32_t value = read_pad_value(plan);
    uint32_t first_part = plan->part_count;
    uint32_t seen = 0;
    if (!pads.given || pads.count != 2 * axes.count || axes.count > shape.rank ||
        !graft_onnx_says(plan->node, "mode", "constant", true)) {
        return graft_plan_refuse(plan, "padding that is not a constant on each side of the axes");
    }
    for (uint32_t i = 0; i < axes.count && plan->refusal == NULL; i++) {
        uint32_t axis = graft_plan_axis(plan, axes.given ? axes.items[i] : i, shape.rank);
        int64_t before = number_at(&pads, i);
        int64_t after = number_at(&pads, axes.count + i);
        if (before < 0 || after < 0 || (seen & 1U << axis) != 0) {
            graft_plan_refuse(plan, "padding that removes elements");
        } else if (before > 0 || after > 0) {
            int32_t attrs[4];
            attrs[GRAFT_ATTR_pad_axis] = (int32_t)axis;
            attrs[GRAFT_ATTR_pad_before] = graft_plan_int32(plan, before);
            attrs[GRAFT_ATTR_pad_after] = graft_plan_int32(plan, after);
            attrs[GRAFT_ATTR_pad_value] = value;
            x = graft_plan_add1(plan, GRAFT_OP_pad, attrs, x);
        }
        seen |= 1U << axis;
    }
    if (plan->part_count == first_part) {
        x = graft_plan_add1(plan, GRAFT_OP_identity, NULL, x);
    }
    return x;
}

/* -------------------------------------------------------------------- transpose, reshape */

graft_onnx_operand graft_plan_transpose(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    uint32_t count = 0;
    const int64_t *axes = graft_plan_ints(plan, "perm", &count);
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    GRAFT_RETURN_IF(axes != NULL && count != shape.rank,
                    graft_plan_refuse(plan, "a permutation of another number of axes"));
    for (uint32_t i = 0; i < shape.rank; i++) {
        int64_t axis = axes == NULL ? shape.rank - 1 - (int64_t)i : axes[i];
        attrs[GRAFT_ATTR_transpose_axis_0 + i] = (int32_t)graft_plan_axis(plan, axis, shape.rank);
    }
    return graft_plan_add1(plan, GRAFT_OP_transpose, attrs, x);
}

/* Reshaped to six axes, permuted, and reshaped. */
static graft_onnx_operand plan_blocks(graft_onnx_plan *plan, graft_onnx_operand x,
                                      const int32_t split[6], const int32_t order[6],
                                      const int32_t joined[4])
{
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    memcpy(&attrs[GRAFT_ATTR_transpose_axis_0], order, 6 * sizeof(order[0]));
    x = graft_plan_reshape(plan, x, split, 6);
    x = graft_plan_add1(plan, GRAFT_OP_transpose, attrs, x);
    return graft_plan_reshape(plan, x, joined, 4);
}

/* The size of blocks; 0 where they are refused. */
static int32_t read_blocks(graft_onnx_plan *plan, const graft_shape *s)
{
    int64_t b = graft_plan_int(plan, "blocksize", 0);
    graft_plan_refuse_if(plan, s->rank != 4 || b < 1 || b > 1024,
                         "blocks that are not of an image");
    return plan->refusal == NULL ? (int32_t)b : 0;
}

/* (N, b b C, H, W) -> (N, C, b H, b W); the blocks' channels come first, or last in mode CRD. */
graft_onnx_operand graft_plan_depth_to_space(graft_onnx_plan *plan)
{
    static const int32_t orders[2][6] = {
        {0, 3, 4, 1, 5, 2},
        {0, 1, 4, 2, 5, 3}
    };
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape s = graft_plan_shape(plan, x);
    int32_t b = read_blocks(plan, &s);
    bool last = graft_onnx_says(plan->node, "mode", "CRD", false);
    GRAFT_RETURN_IF(b == 0 || s.dims[1] % (b * b) != 0 ||
                        (!last && !graft_onnx_says(plan->node, "mode", "DCR", true)),
                    graft_plan_refuse(plan, "blocks that do not divide the channels"));
    int32_t c = s.dims[1] / (b * b);
    const int32_t first[6] = {s.dims[0], b, b, c, s.dims[2], s.dims[3]};
    const int32_t behind[6] = {s.dims[0], c, b, b, s.dims[2], s.dims[3]};
    const int32_t joined[4] = {s.dims[0], c, graft_plan_int32(plan, (int64_t)b * s.dims[2]),
                               graft_plan_int32(plan, (int64_t)b * s.dims[3])};
    return plan_blocks(plan, x, last ? behind : first, orders[last ? 1 : 0], joined);
}

/* (N, C, b H, b W) -> (N, b b C, H, W); the blocks' channels come first, or last in mode CRD. */
graft_onnx_operand graft_plan_space_to_depth(graft_onnx_plan *plan)
{
    static const int32_t orders[2][6] = {
        {0, 3, 5, 1, 2, 4},
        {0, 1, 3, 5, 2, 4}
    };
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape s = graft_plan_shape(plan, x);
    int32_t b = read_blocks(plan, &s);
    bool last = graft_onnx_says(plan->node, "mode", "CRD", false);
    GRAFT_RETURN_IF(b == 0 || s.dims[2] % b != 0 || s.dims[3] % b != 0 ||
                        (!last && !graft_onnx_says(plan->node, "mode", "DCR", true)),
                    graft_plan_refuse(plan, "blocks that do not divide the image"));
    const int32_t split[6] = {s.dims[0], s.dims[1], s.dims[2] / b, b, s.dims[3] / b, b};
    const int32_t joined[4] = {s.dims[0], graft_plan_int32(plan, (int64_t)b * b * s.dims[1]),
                               s.dims[2] / b, s.dims[3] / b};
    return plan_blocks(plan, x, split, orders[last ? 1 : 0], joined);
}

/* A size of 0 is that of the input at the same place; one -1 is what remains. */
static void resolve_target(graft_onnx_plan *plan, const graft_shape *x,
                           const graft_onnx_ints *target, int32_t *dims)
{
    int64_t known = 1;
    uint32_t open = GRAFT_MAX_RANK;
    int64_t elements = (int64_t)graft_shape_elements(x);
    bool zero_means_zero = graft_plan_int(plan, "allowzero", 0) != 0;
    for (uint32_t i = 0; i < target->count; i++) {
        int64_t size = target->items[i];
        if (size == 0 && !zero_means_zero && i < x->rank) {
            size = x->dims[i];
        }
        if (size == -1 && open == GRAFT_MAX_RANK) {
            open = i;
            continue;
        }
        if (size < 1 || size > INT32_MAX || known > INT32_MAX) {
            graft_plan_refuse(plan, "a target size that is not possible");
            return;
        }
        dims[i] = (int32_t)size;
        known *= size;
    }
    if (open < GRAFT_MAX_RANK) {
        if (elements % known != 0) {
            graft_plan_refuse(plan, "a target with another number of elements");
            return;
        }
        dims[open] = graft_plan_int32(plan, elements / known);
    }
}

graft_onnx_operand graft_plan_to_shape(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    const graft_onnx_ints *target = graft_plan_const_ints(plan, 1);
    int32_t dims[GRAFT_MAX_RANK] = {0};
    graft_plan_refuse_if(plan, target->count > GRAFT_MAX_RANK || target->rank != 1,
                         "a target of more than 6 axes");
    if (plan->refusal == NULL) {
        resolve_target(plan, &shape, target, dims);
    }
    return graft_plan_reshape(plan, x, dims, target->count);
}

graft_onnx_operand graft_plan_flatten(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    int64_t axis = graft_plan_int(plan, "axis", 1);
    if (axis != shape.rank) {
        axis = graft_plan_axis(plan, axis, shape.rank);
    }
    uint64_t sizes[2] = {1, 1};
    for (uint32_t i = 0; i < shape.rank; i++) {
        sizes[i >= axis] *= (uint64_t)shape.dims[i]; /* At most INT32_MAX elements in all. */
    }
    int32_t dims[2] = {graft_plan_int32(plan, (int64_t)sizes[0]),
                       graft_plan_int32(plan, (int64_t)sizes[1])};
    return graft_plan_reshape(plan, x, dims, 2);
}

/* The axes as a mask over `rank`; refuses axes that are named twice. */
static uint32_t read_axes(graft_onnx_plan *plan, const number_list *list, uint32_t rank)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t bit = 1U << graft_plan_axis(plan, list->items[i], rank);
        graft_plan_refuse_if(plan, (mask & bit) != 0, "an axis that is named twice");
        mask |= bit;
    }
    return mask;
}

graft_onnx_operand graft_plan_squeeze(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    number_list axes = read_list(plan, "axes", 1, 13);
    uint32_t mask = read_axes(plan, &axes, shape.rank);
    int32_t dims[GRAFT_MAX_RANK] = {0};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < shape.rank; i++) {
        bool named = axes.given ? (mask >> i & 1U) != 0 : shape.dims[i] == 1;
        graft_plan_refuse_if(plan, named && shape.dims[i] != 1, "an axis that is not 1");
        if (!named) {
            dims[rank++] = shape.dims[i];
        }
    }
    return graft_plan_reshape(plan, x, dims, rank);
}

graft_onnx_operand graft_plan_unsqueeze(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    number_list axes = read_list(plan, "axes", 1, 13);
    uint32_t rank = shape.rank + axes.count;
    GRAFT_RETURN_IF(!axes.given || axes.count > GRAFT_MAX_RANK || rank > GRAFT_MAX_RANK,
                    graft_plan_refuse(plan, "a tensor of more than 6 axes"));
    uint32_t mask = read_axes(plan, &axes, rank);
    int32_t dims[GRAFT_MAX_RANK] = {0};
    uint32_t from = 0;
    for (uint32_t i = 0; i < rank && plan->refusal == NULL; i++) {
        dims[i] = (mask >> i & 1U) != 0 ? 1 : shape.dims[from++];
    }
    return graft_plan_reshape(plan, x, dims, rank);
}

/* ----------------------------------------------------------------------------- constants */

/* The element that ConstantOfShape repeats; its type is the plan's. */
static int32_t read_fill_value(graft_onnx_plan *plan)
{
    const Onnx__AttributeProto *attribute = graft_plan_attribute(plan, "value");
    graft_model_weight weight = {.data = NULL};
    int32_t bits = 0;
    plan->dtype = GRAFT_DTYPE_F32;
    if (attribute == NULL) {
        return 0; /* 0.0 */
    }
    if (attribute->t == NULL || !graft_dtype_is_real((uint32_t)attribute->t->data_type) ||
        graft_onnx_weight_of_tensor(plan->reader, attribute->t, "tensor", &weight) != GRAFT_OK ||
        weight.data_bytes != sizeof(bits)) {
        graft_env_clear(plan->reader->env);
        graft_plan_refuse(plan, "a value that is not one real number");
        return 0;
    }
    memcpy(&bits, weight.data, sizeof(bits));
    plan->dtype = weight.shape.dtype;
    return bits;
}

graft_onnx_operand graft_plan_fill(graft_onnx_plan *plan)
{
    const graft_onnx_ints *sizes = graft_plan_const_ints(plan, 0);
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    GRAFT_RETURN_IF(sizes->count > GRAFT_MAX_RANK,
                    graft_plan_refuse(plan, "a tensor of more than 6 axes"));
    attrs[GRAFT_ATTR_fill_value] = read_fill_value(plan);
    for (uint32_t i = 0; i < sizes->count; i++) {
        attrs[GRAFT_ATTR_fill_dim_0 + i] = graft_plan_int32(plan, sizes->items[i]);
        graft_plan_refuse_if(plan, sizes->items[i] < 1, "a tensor without elements");
    }
    return graft_plan_add(plan, GRAFT_OP_fill, attrs, NULL);
}

/* ------------------------------------------------------------- gather, expand, cast */

/* Known places that lie behind one another: a slice. A single place without an axis of its own
 * removes the axis. */
graft_onnx_operand graft_plan_gather(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    graft_shape shape = graft_plan_shape(plan, x);
    const graft_onnx_ints *places = graft_plan_const_ints(plan, 1);
    uint32_t axis = graft_plan_axis(plan, graft_plan_int(plan, "axis", 0), shape.rank);
    GRAFT_RETURN_IF(plan->refusal != NULL, graft_plan_refuse(plan, plan->refusal));
    int64_t first = places->count == 0 ? -1 : places->items[0];
    first += first < 0 ? shape.dims[axis] : 0;
    bool in_order = places->count > 0 && first >= 0 && first < shape.dims[axis];
    for (uint32_t i = 1; in_order && i < places->count; i++) {
        in_order = places->items[i] == first + i && first + i < shape.dims[axis];
    }
    GRAFT_RETURN_IF(!in_order, graft_plan_refuse(plan, "places that are not behind one another"));
    int32_t attrs[3];
    attrs[GRAFT_ATTR_slice_axis] = (int32_t)axis;
    attrs[GRAFT_ATTR_slice_start] = (int32_t)first;
    attrs[GRAFT_ATTR_slice_end] = (int32_t)(first + places->count);
    x = graft_plan_add1(plan, GRAFT_OP_slice, attrs, x);
    if (places->rank == 0) {
        for (uint32_t i = axis; i + 1U < shape.rank; i++) {
            shape.dims[i] = shape.dims[i + 1];
        }
        x = graft_plan_reshape(plan, x, shape.dims, shape.rank - 1U);
    }
    return x;
}

/* x times ones of the target's shape. */
graft_onnx_operand graft_plan_expand(graft_onnx_plan *plan)
{
    graft_onnx_operand x = graft_plan_input(plan, 0);
    const graft_onnx_ints *target = graft_plan_const_ints(plan, 1);
    int32_t dims[GRAFT_MAX_RANK] = {0};
    GRAFT_RETURN_IF(target->count > GRAFT_MAX_RANK || target->rank != 1,
                    graft_plan_refuse(plan, "a target of more than 6 axes"));
    for (uint32_t i = 0; i < target->count; i++) {
        dims[i] = graft_plan_int32(plan, target->items[i]);
        graft_plan_refuse_if(plan, dims[i] < 1, "a tensor without elements");
    }
    graft_onnx_operand ones = graft_plan_constant(plan, 1.0F, dims, target->count);
    return graft_plan_add2(plan, GRAFT_OP_mul, NULL, x, ones);
}

/* To the type that it has; others are opaque. */
graft_onnx_operand graft_plan_cast(graft_onnx_plan *plan)
{
    if (graft_onnx_dtype(plan->reader, graft_plan_int(plan, "to", 0)) != plan->dtype) {
        graft_plan_refuse(plan, "another type of element");
    }
    return graft_plan_add1(plan, GRAFT_OP_identity, NULL, graft_plan_input(plan, 0));
}
