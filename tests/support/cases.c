/* cases.c - see cases.h. Each operator has a way to propose inputs and attributes; what does not
 * fit is drawn again, so proposals need only be right often. */
#include "tests/support/cases.h"

#include "graph/meaning/algebra_float.h"
#include "tests/support/check.h"
#include "tests/support/proposal.h"

#include <string.h>

static int32_t draw_between(graft_rng *rng, int32_t least, int32_t most)
{
    return least + (int32_t)graft_rng_below(rng, (uint32_t)(most - least + 1));
}

int32_t check_bits(float value)
{
    int32_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A multiple of 1/4 in -4..4, which every algebra holds exactly. */
static int32_t draw_float(graft_rng *rng)
{
    return check_bits((float)draw_between(rng, -16, 16) / 4.0F);
}

static graft_shape draw_shape(graft_rng *rng, uint32_t rank)
{
    graft_shape shape = {.rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_F32};
    for (uint32_t i = 0; i < rank; i++) {
        shape.dims[i] = draw_between(rng, 1, 4);
    }
    return shape;
}

static graft_shape vector_of(int32_t size)
{
    return (graft_shape){.dims = {size}, .rank = 1, .dtype = GRAFT_DTYPE_F32};
}

/* --------------------------------------------------------------- proposals */

static void propose_any(graft_rng *rng, check_case *c)
{
    c->in[0] = draw_shape(rng, graft_rng_below(rng, 5));
}

static void propose_image(graft_rng *rng, check_case *c)
{
    c->in[0] = draw_shape(rng, 4);
    c->in[0].dims[2] = draw_between(rng, 1, 6);
    c->in[0].dims[3] = draw_between(rng, 1, 6);
}

static void propose_conv(graft_rng *rng, check_case *c)
{
    int32_t groups = draw_between(rng, 1, 3);
    propose_image(rng, c);
    c->in[1] = draw_shape(rng, 4);
    for (uint32_t i = 0; i < 2; i++) {
        c->in[1].dims[2 + i] = draw_between(rng, 1, 3);
        c->attrs[GRAFT_ATTR_conv_stride_h + i] = draw_between(rng, 1, 3);
        c->attrs[GRAFT_ATTR_conv_pad_top + i] = draw_between(rng, 0, 2);
        c->attrs[GRAFT_ATTR_conv_pad_bottom + i] = draw_between(rng, 0, 3);
        c->attrs[GRAFT_ATTR_conv_dilation_h + i] = draw_between(rng, 1, 3);
    }
    c->attrs[GRAFT_ATTR_conv_groups] = groups;
    c->in[1].dims[0] = groups * draw_between(rng, 1, 2);
    c->in[0].dims[1] = groups * c->in[1].dims[1];
    c->in[2] = vector_of(c->in[1].dims[0]);
}

static void propose_conv_bias(graft_rng *rng, check_case *c)
{
    propose_conv(rng, c);
    c->attrs[GRAFT_ATTR_conv_bias_activation] = draw_between(rng, 0, GRAFT_ACT_COUNT - 1);
    /* The residual has the convolution's output shape; where there is none, no drawing fits. */
    int32_t attrs[GRAFT_MAX_ATTRS];
    memcpy(attrs, c->attrs, sizeof attrs);
    attrs[GRAFT_ATTR_conv_bias_activation] = 0;
    (void)!graft_infer_shapes(GRAFT_OP_conv, attrs, c->in, &c->in[3]);
}

/* Makes the second shape broadcast with the first by setting sizes of either to 1 and dropping
 * leading axes; the last `kept` axes stay. */
static void loosen_shapes(graft_rng *rng, check_case *c, uint32_t kept)
{
    c->in[1] = c->in[0];
    for (uint32_t i = 0; i + kept < c->in[0].rank; i++) {
        uint32_t choice = graft_rng_below(rng, 4);
        if (choice < 2) {
            c->in[choice].dims[i] = 1;
        }
    }
    graft_shape *shorter = &c->in[graft_rng_below(rng, 2)];
    uint32_t dropped = graft_rng_below(rng, shorter->rank - kept + 1u);
    memmove(shorter->dims, shorter->dims + dropped, sizeof(int32_t) * (shorter->rank - dropped));
    memset(shorter->dims + shorter->rank - dropped, 0, sizeof(int32_t) * dropped);
    shorter->rank = (uint8_t)(shorter->rank - dropped);
}

static void propose_pair(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    loosen_shapes(rng, c, 0);
}

static void propose_matmul(graft_rng *rng, check_case *c)
{
    c->in[0] = draw_shape(rng, 2 + graft_rng_below(rng, 3));
    loosen_shapes(rng, c, 2);
    int32_t *dims = c->in[1].dims + c->in[1].rank - 2;
    dims[0] = c->in[0].dims[c->in[0].rank - 1];
    dims[1] = draw_between(rng, 1, 5);
    c->in[2] = vector_of(dims[1]);
}

static void propose_matmul_bias(graft_rng *rng, check_case *c)
{
    propose_matmul(rng, c);
    c->attrs[GRAFT_ATTR_matmul_bias_activation] = draw_between(rng, 0, GRAFT_ACT_COUNT - 1);
}

static void propose_scale_shift(graft_rng *rng, check_case *c)
{
    c->in[0] = draw_shape(rng, 2 + graft_rng_below(rng, 3));
    c->in[1] = vector_of(c->in[0].dims[1]);
    c->in[2] = c->in[1];
}

static void propose_clip(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->attrs[GRAFT_ATTR_clip_low] =
        graft_rng_below(rng, 4) == 0 ? check_bits(-__builtin_inff()) : draw_float(rng);
    c->attrs[GRAFT_ATTR_clip_high] =
        graft_rng_below(rng, 4) == 0 ? check_bits(__builtin_inff()) : draw_float(rng);
}

static int32_t draw_axis(graft_rng *rng, const check_case *c)
{
    return (int32_t)graft_rng_below(rng, c->in[0].rank + 1u);
}

static void propose_concat(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->in[1] = c->in[0];
    c->attrs[GRAFT_ATTR_concat_axis] = draw_axis(rng, c);
    c->in[1].dims[c->attrs[GRAFT_ATTR_concat_axis]] = draw_between(rng, 1, 4);
}

static void propose_split(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->attrs[GRAFT_ATTR_split_axis] = draw_axis(rng, c);
    c->attrs[GRAFT_ATTR_split_at] = draw_between(rng, 1, 3);
}

static void propose_slice(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->attrs[GRAFT_ATTR_slice_axis] = draw_axis(rng, c);
    c->attrs[GRAFT_ATTR_slice_start] = draw_between(rng, 0, 3);
    c->attrs[GRAFT_ATTR_slice_end] = draw_between(rng, 1, 4);
}

static void propose_pad(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->attrs[GRAFT_ATTR_pad_axis] = draw_axis(rng, c);
    c->attrs[GRAFT_ATTR_pad_before] = draw_between(rng, 0, 2);
    c->attrs[GRAFT_ATTR_pad_after] = draw_between(rng, 0, 2);
    c->attrs[GRAFT_ATTR_pad_value] = draw_float(rng);
}

static void propose_transpose(graft_rng *rng, check_case *c)
{
    c->in[0] = draw_shape(rng, graft_rng_below(rng, 6));
    for (int32_t i = 0; i < c->in[0].rank; i++) {
        c->attrs[i] = i;
    }
    proposal_shuffle(rng, c->attrs, c->in[0].rank);
}

/* The same sizes in another order, two of them joined, or an axis of 1 added. */
static void propose_reshape(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    uint32_t rank = c->in[0].rank;
    memcpy(c->attrs, c->in[0].dims, rank * sizeof(int32_t));
    if (rank > 1 && graft_rng_below(rng, 2) == 0) {
        c->attrs[rank - 2] *= c->attrs[rank - 1];
        c->attrs[--rank] = 0;
    } else {
        c->attrs[rank++] = 1;
    }
    proposal_shuffle(rng, c->attrs, rank);
}

static void propose_pool(graft_rng *rng, check_case *c)
{
    propose_image(rng, c);
    for (uint32_t i = 0; i < 2; i++) {
        c->attrs[GRAFT_ATTR_max_pool_kernel_h + i] = draw_between(rng, 1, 3);
        c->attrs[GRAFT_ATTR_max_pool_stride_h + i] = draw_between(rng, 1, 3);
        c->attrs[GRAFT_ATTR_max_pool_pad_top + i] = draw_between(rng, 0, 2);
        c->attrs[GRAFT_ATTR_max_pool_pad_bottom + i] = draw_between(rng, 0, 2);
    }
}

static void propose_max_pool(graft_rng *rng, check_case *c)
{
    propose_pool(rng, c);
    c->attrs[GRAFT_ATTR_max_pool_dilation_h] = draw_between(rng, 1, 3);
    c->attrs[GRAFT_ATTR_max_pool_dilation_w] = draw_between(rng, 1, 3);
}

static void propose_avg_pool(graft_rng *rng, check_case *c)
{
    propose_pool(rng, c);
    c->attrs[GRAFT_ATTR_avg_pool_count_pad] = draw_between(rng, 0, 1);
}

static void propose_softmax(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->attrs[GRAFT_ATTR_softmax_axis] = draw_axis(rng, c);
}

static void propose_reduce_mean(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->attrs[GRAFT_ATTR_reduce_mean_axes] = draw_between(rng, 1, 15);
    c->attrs[GRAFT_ATTR_reduce_mean_keep] = draw_between(rng, 0, 1);
}

static void propose_fill(graft_rng *rng, check_case *c)
{
    graft_shape shape = draw_shape(rng, graft_rng_below(rng, 5));
    c->attrs[GRAFT_ATTR_fill_value] = draw_float(rng);
    memcpy(&c->attrs[GRAFT_ATTR_fill_dim_0], shape.dims, sizeof shape.dims);
}

static void propose_leaky_relu(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->attrs[GRAFT_ATTR_leaky_relu_slope] = check_bits((float)draw_between(rng, 0, 8) / 4.0F);
}

static void propose_layer_norm(graft_rng *rng, check_case *c)
{
    c->in[0] = draw_shape(rng, 1 + graft_rng_below(rng, 4));
    for (uint32_t i = 1; i < 3; i++) {
        c->in[i] = draw_shape(rng, 1);
        c->in[i].dims[0] = c->in[0].dims[c->in[0].rank - 1];
    }
    c->attrs[GRAFT_ATTR_layer_norm_epsilon] = check_bits((float)draw_between(rng, 1, 8) / 4.0F);
}

static void propose_function(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    for (uint32_t i = 0; i < graft_op(c->op)->attr_count; i++) {
        c->attrs[i] = check_bits((float)draw_between(rng, 1, 8) / 4.0F);
    }
}

static void propose_rms_norm(graft_rng *rng, check_case *c)
{
    propose_layer_norm(rng, c);
    c->in[2] = (graft_shape){.dtype = GRAFT_DTYPE_F32};
}

static void propose_instance_norm(graft_rng *rng, check_case *c)
{
    propose_layer_norm(rng, c);
    c->in[0] = draw_shape(rng, 3 + graft_rng_below(rng, 2));
    c->in[1].dims[0] = c->in[2].dims[0] = c->in[0].dims[1];
}

static void propose_cumsum(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->attrs[GRAFT_ATTR_cumsum_axis] = draw_axis(rng, c);
    c->attrs[GRAFT_ATTR_cumsum_exclusive] = draw_between(rng, 0, 1);
}

static void propose_repeat(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    c->attrs[GRAFT_ATTR_repeat_axis] = draw_axis(rng, c);
    c->attrs[GRAFT_ATTR_repeat_times] = draw_between(rng, 1, 3);
}

static void propose_pick(graft_rng *rng, check_case *c)
{
    propose_slice(rng, c);
    c->attrs[GRAFT_ATTR_pick_step] = draw_between(rng, 1, 3);
}

static void propose_conv_transpose(graft_rng *rng, check_case *c)
{
    c->in[0] = draw_shape(rng, 4);
    c->in[1] = draw_shape(rng, 4);
    c->in[1].dims[0] = c->in[0].dims[1] = draw_between(rng, 1, 2);
    c->in[1].dims[1] = c->in[0].dims[0] = draw_between(rng, 1, 2);
    for (uint32_t i = 0; i < 2; i++) {
        c->in[0].dims[2 + i] = draw_between(rng, 1, 3);
        c->in[1].dims[2 + i] = draw_between(rng, 1, 3);
        c->attrs[GRAFT_ATTR_conv_transpose_stride_h + i] = draw_between(rng, 1, 2);
        c->attrs[GRAFT_ATTR_conv_transpose_pad_top + i] = draw_between(rng, 0, 1);
        c->attrs[GRAFT_ATTR_conv_transpose_pad_bottom + i] = draw_between(rng, 0, 1);
        c->attrs[GRAFT_ATTR_conv_transpose_extra_h + i] = draw_between(rng, 0, 1);
    }
}

#define propose_reduce_min  propose_reduce_mean
#define propose_log_softmax propose_softmax
#define propose_reverse     propose_softmax

static void make_boolean(graft_shape *shape) { shape->dtype = GRAFT_DTYPE_BOOL; }

static void propose_logical_not(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    make_boolean(&c->in[0]);
}

/* Of a pair, the condition being like one of them. */
static void propose_select(graft_rng *rng, check_case *c)
{
    propose_pair(rng, c);
    c->in[2] = c->in[1];
    c->in[1] = c->in[0];
    c->in[0] = c->in[1 + graft_rng_below(rng, 2)];
    make_boolean(&c->in[0]);
}
/* Scales such that no quotient of eighths lies at a half. */
static void propose_quantise(graft_rng *rng, check_case *c)
{
    propose_any(rng, c);
    int32_t least = graft_rng_below(rng, 2) == 0 ? 0 : -128;
    c->attrs[GRAFT_ATTR_quantise_scale] = check_bits(3.0F / (float)(8 << draw_between(rng, 0, 7)));
    c->attrs[GRAFT_ATTR_quantise_zero] = draw_between(rng, least, least + 255);
    c->attrs[GRAFT_ATTR_quantise_least] = least;
}

static void propose_dequantise(graft_rng *rng, check_case *c)
{
    propose_quantise(rng, c);
    c->in[0].dtype = c->attrs[GRAFT_ATTR_quantise_least] == 0 ? GRAFT_DTYPE_U8 : GRAFT_DTYPE_I8;
}

#define propose_identity        propose_any
#define propose_relu            propose_any
#define propose_sigmoid         propose_any
#define propose_tanh            propose_any
#define propose_exp             propose_any
#define propose_sqrt            propose_any
#define propose_erf             propose_any
#define propose_gelu            propose_any
#define propose_reduce_sum      propose_reduce_mean
#define propose_reduce_max      propose_reduce_mean
#define propose_add             propose_pair
#define propose_sub             propose_pair
#define propose_mul             propose_pair
#define propose_div             propose_pair
#define propose_max             propose_pair
#define propose_min             propose_pair
#define propose_less            propose_pair
#define propose_equal_to        propose_pair
#define propose_remainder       propose_pair
#define propose_conv_bias_add   propose_conv_bias
#define propose_global_avg_pool propose_image

static void (*const proposals[GRAFT_OP_COUNT])(graft_rng *, check_case *) = {
#define OP(id, name, inputs, outputs, attributes, flags, onnx)         [GRAFT_OP_##name] = propose_##name,
#define FUNCTION(id, name, attributes, flags, work, since, onnx, body) [id] = propose_function,
#include "graft/operators.def"
};

/* ----------------------------------------------------------------- drawing */

void check_case_draw(graft_rng *rng, uint32_t op, check_case *drawn)
{
    for (uint32_t attempt = 0; attempt < 1000; attempt++) {
        *drawn = (check_case){.op = op};
        proposals[op](rng, drawn);
        if (graft_infer_shapes(op, drawn->attrs, drawn->in, drawn->out) == GRAFT_OK) {
            return;
        }
    }
    check_case_print(drawn);
    fail_msg("no case of %s fits; the last: %s", graft_op(op)->name,
             graft_infer_explain(op, drawn->attrs, drawn->in));
}

bool check_case_is_lowered(uint32_t op)
{
    return op == GRAFT_OP_quantise || op == GRAFT_OP_dequantise || op == GRAFT_OP_less ||
           op == GRAFT_OP_equal_to || op == GRAFT_OP_logical_not || op == GRAFT_OP_select;
}

graft_call check_case_call(const check_case *drawn)
{
    return (graft_call){drawn->attrs, drawn->in, drawn->out};
}

static void print_shape(const char *label, const graft_shape *shape)
{
    print_message(" %s(", label);
    for (uint32_t i = 0; i < shape->rank; i++) {
        print_message("%s%d", i > 0 ? "," : "", shape->dims[i]);
    }
    print_message(")");
}

void check_case_print(const check_case *drawn)
{
    const graft_op_info *info = graft_op(drawn->op);
    print_message("# %s", info->name);
    for (uint32_t i = 0; i < info->attr_count; i++) {
        print_message(" %s=%d", graft_op_attr(drawn->op, i)->name, drawn->attrs[i]);
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        print_shape("in", &drawn->in[i]);
    }
    for (uint32_t i = 0; i < info->output_count; i++) {
        print_shape("out", &drawn->out[i]);
    }
    print_message("\n");
}

/* ------------------------------------------------------------------ running */

void check_case_run_field(graft_field_state *k, const check_case *c, const check_fields *in,
                          check_fields *out)
{
    const graft_field *from[GRAFT_MAX_INPUTS];
    graft_field *to[GRAFT_MAX_OUTPUTS];
    const graft_call call = check_case_call(c);
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        from[i] = in[i];
    }
    for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS; o++) {
        to[o] = memset(out[o], 0xff, sizeof out[o]);
    }
    graft_field_run(k, c->op, &call, from, to);
}

void check_case_run_float(const check_case *c, const check_floats *in, check_floats *out)
{
    const float *from[GRAFT_MAX_INPUTS];
    float *to[GRAFT_MAX_OUTPUTS];
    const graft_call call = check_case_call(c);
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        from[i] = in[i];
    }
    for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS; o++) {
        to[o] = memset(out[o], 0xff, sizeof out[o]);
    }
    graft_float_run(c->op, &call, from, to);
}

static const int32_t no_attrs[GRAFT_MAX_ATTRS];
static const graft_shape scalars[2] = {{.dtype = GRAFT_DTYPE_F32}, {.dtype = GRAFT_DTYPE_F32}};

graft_field check_scalar_field(graft_field_state *k, uint32_t op, graft_field a, graft_field b)
{
    const graft_call call = {no_attrs, scalars, scalars};
    const graft_field *const in[] = {&a, &b};
    graft_field result = {0, 0.0};
    graft_field *const out[] = {&result};
    graft_field_run(k, op, &call, in, out);
    return result;
}

float check_scalar_float(uint32_t op, const int32_t *attrs, float a, float b)
{
    const graft_call call = {attrs == NULL ? no_attrs : attrs, scalars, scalars};
    const float *const in[] = {&a, &b};
    float result = 0.0F;
    float *const out[] = {&result};
    graft_float_run(op, &call, in, out);
    return result;
}
