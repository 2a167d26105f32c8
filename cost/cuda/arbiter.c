/* arbiter.c - results against the float reference (see arbiter.h). */
#include "cost/cuda/arbiter.h"

#include "cost/plan/groups.h"
#include "cost/plan/layout.h"

#include <math.h>
#include <string.h>

/* Plain loops do about a billion products a second. */
static const uint64_t flops_most = 15000000;
static const uint64_t elements_most = 1 << 24;

/* Results further apart than this, relative to the largest, are not roundings: bfloat16 has 8 bits,
 * and two implementations may round every sum. */
static const float wrong_difference = 0.03F;
/* In binary32 throughout: of products, which have one way to be summed but for the order, and of
 * what may be Winograd's algorithm. Factors of 10 bits make a difference of 3e-4. */
static const float wrong_product = 1e-4F;
static const float wrong_binary32 = 3e-3F;

bool cuda_results_agree(const float *got, const float *want, size_t count)
{
    float largest = 0.0F;
    float furthest = 0.0F;
    for (size_t i = 0; i < count; i++) {
        float difference = fabsf(got[i] - want[i]);
        if (isnan(difference)) {
            return false;
        }
        largest = fmaxf(largest, fabsf(want[i]));
        furthest = fmaxf(furthest, difference);
    }
    return furthest <= wrong_difference * largest;
}

/* --------------------------------------------------------------------- part */

/* Positions spread from the first to the last. */
static void pick(cuda_arbiter *a, uint32_t axis, int32_t size, uint64_t flops)
{
    uint64_t most = flops == 0 ? 1 : flops_most * (uint64_t)size / flops;
    most = most < 2 ? 2 : most > CUDA_PICKS ? CUDA_PICKS : most;
    if (flops <= flops_most || (uint64_t)size <= most) {
        return;
    }
    a->axis = axis;
    a->pick_count = (uint32_t)most;
    for (uint32_t i = 0; i < a->pick_count; i++) {
        a->picks[i] = (int32_t)((int64_t)i * (size - 1) / (int64_t)(a->pick_count - 1));
    }
}

static uint32_t cut_boxes(const graft_signature *s) { return s->inputs[0].dims[0] > 1 ? 0 : 1; }

/* Which axis of input `k` is cut as the output is; the rank: none. */
static uint32_t cut_axis(const graft_signature *s, uint32_t k)
{
    uint32_t rank = s->inputs[k].rank;
    if (graft_signature_is_attention(s)) { /* Boxes: batches, or heads where there is one batch. */
        uint32_t axis = cut_boxes(s);
        bool turned = ((uint32_t)s->attrs[1] >> k & 1U) != 0;
        uint32_t own = k == 3 ? axis + rank - 4 : axis == 1 && turned ? 2 : axis;
        return k == 3 && (axis + rank < 4 || s->inputs[3].dims[own] == 1) ? rank : own;
    }
    if (graft_signature_is_conv(s)) {
        return k == 0 ? rank : k == 3 ? 1 : 0; /* Filters, bias; residual. */
    }
    return k == 0 ? rank - 2 : rank; /* Rows of the left factor. */
}

static void choose_part(cuda_arbiter *a, const graft_signature *s)
{
    uint64_t flops = graft_signature_flops(s);
    a->part = *s;
    if (graft_signature_is_conv(s) && s->attrs[GRAFT_ATTR_conv_groups] == 1) {
        pick(a, 1, a->outputs[0].dims[1], flops);
    } else if (graft_signature_is_matmul(s)) {
        pick(a, a->outputs[0].rank - 2U, a->outputs[0].dims[a->outputs[0].rank - 2], flops);
    }
    if (graft_signature_is_attention(s)) {
        pick(a, cut_boxes(s), a->outputs[0].dims[cut_boxes(s)], flops);
    }
    for (uint32_t k = 0; k < s->input_count && a->pick_count > 0; k++) {
        uint32_t axis = cut_axis(s, k);
        if (axis < s->inputs[k].rank) {
            a->part.inputs[k].dims[axis] = (int32_t)a->pick_count;
        }
    }
}

/* The row-major element of the whole that element `i` of the part is, `axis` being cut. */
static size_t whole_element(const cuda_arbiter *a, const graft_shape *whole, uint32_t axis,
                            size_t i)
{
    size_t inner = 1;
    if (a->pick_count == 0 || axis >= whole->rank) {
        return i;
    }
    for (uint32_t k = axis + 1; k < whole->rank; k++) {
        inner *= (size_t)whole->dims[k];
    }
    size_t at = i / inner % a->pick_count;
    return (i / inner / a->pick_count * (size_t)whole->dims[axis] + (size_t)a->picks[at]) * inner +
           i % inner;
}

/* ---------------------------------------------------------------- reference */

static float *take_input(graft_env *env, const cuda_arbiter *a, const graft_signature *s,
                         uint32_t k, cuda_type type, const float *host)
{
    size_t count = (size_t)graft_shape_elements(&a->part.inputs[k]);
    bool is_const = (s->const_mask >> k & 1U) != 0;
    uint32_t layout = is_const ? (uint32_t)GRAFT_LAYOUT_ROW : s->in_layouts[k];
    float *row = GRAFT_NEW(env->scratch, float, count);
    for (size_t i = 0; i < count; i++) {
        size_t at = whole_element(a, &s->inputs[k], cut_axis(s, k), i);
        float x = host[graft_layout_place(&s->inputs[k], layout, at)];
        row[i] = cuda_from_bits(type, cuda_to_bits(type, x));
    }
    return row;
}

static bool is_small_enough(const cuda_arbiter *a)
{
    uint64_t elements = 0;
    for (uint32_t k = 0; k < a->part.input_count; k++) {
        elements += graft_shape_elements(&a->part.inputs[k]);
    }
    for (uint32_t k = 0; k < a->part.output_count; k++) {
        elements += graft_shape_elements(&a->parts[k]);
    }
    return elements <= elements_most && graft_signature_flops(&a->part) <= 4 * flops_most;
}

static float find_tolerance(const graft_signature *s, cuda_type type)
{
    return type != CUDA_F32               ? wrong_difference
           : graft_signature_is_matmul(s) ? wrong_product
                                          : wrong_binary32;
}

graft_status cuda_arbiter_open(graft_env *env, const graft_signature *signature, cuda_type type,
                               float *const *host, cuda_arbiter *arbiter)
{
    const float *in[GRAFT_MAX_INPUTS] = {NULL};
    memset(arbiter, 0, sizeof(*arbiter));
    arbiter->tolerance = find_tolerance(signature, type);
    memcpy(arbiter->out_layouts, signature->out_layouts, sizeof(arbiter->out_layouts));
    GRAFT_PASS(graft_signature_outputs(signature, arbiter->outputs));
    choose_part(arbiter, signature);
    GRAFT_PASS(graft_signature_outputs(&arbiter->part, arbiter->parts));
    if ((signature->op != GRAFT_COST_REORDER && !graft_signature_is_attention(signature) &&
         signature->op >= GRAFT_OP_COUNT) ||
        !is_small_enough(arbiter)) {
        return GRAFT_OK;
    }
    for (uint32_t k = 0; k < signature->input_count; k++) {
        in[k] = take_input(env, arbiter, signature, k, type, host[k]);
    }
    for (uint32_t k = 0; k < signature->output_count; k++) {
        arbiter->wants[k] =
            GRAFT_NEW(env->scratch, float, (size_t)graft_shape_elements(&arbiter->parts[k]));
    }
    graft_signature_run(env->scratch, &arbiter->part, arbiter->parts, in, arbiter->wants);
    arbiter->is_there = true;
    return GRAFT_OK;
}

bool cuda_arbiter_agrees(const cuda_arbiter *arbiter, uint32_t k, const float *got)
{
    const graft_shape *whole = &arbiter->outputs[k];
    size_t all = (size_t)graft_shape_elements(whole);
    size_t count = (size_t)graft_shape_elements(&arbiter->parts[k]);
    float largest = 0.0F;
    float furthest = 0.0F;
    for (size_t i = 0; i < all; i++) {
        if (isnan(got[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < count && arbiter->is_there; i++) {
        size_t at = whole_element(arbiter, whole, arbiter->axis, i);
        float x = got[graft_layout_place(whole, arbiter->out_layouts[k], at)];
        largest = fmaxf(largest, fabsf(arbiter->wants[k][i]));
        furthest = fmaxf(furthest, fabsf(x - arbiter->wants[k][i]));
    }
    return furthest <= arbiter->tolerance * largest || !arbiter->is_there;
}
