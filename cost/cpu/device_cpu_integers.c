/* device_cpu_integers.c - products and sums of 8-bit integers (cost/plan/integers.h): products
 * through oneDNN, which sums them in int32, takes each sum times its factor, applies the
 * activation, adds the zero point, rounds and saturates in one pass; sums in a loop of ours.
 *
 * Only implementations that sum exactly: those for processors without VNNI add two products in 16
 * bits first. What the library rounds is the sum with the zero point; ONNX rounds before that. The
 * two differ for halves where the zero point is odd, and just beyond a half, as 8.500006 + 122 is
 * not in binary32, so that a rounding stands before it. */
#include "cost/cpu/program.h"

#include "cost/plan/integers.h"
#include "cost/plan/nest.h"
#include "graph/base/share.h"

#include <math.h>
#include <string.h>

enum { LEFT = 0, RIGHT = 1, NUMBERS = 2, SEARCH_LIMIT = 12 };

typedef struct {
    dnnl_memory_desc_t left; /* As the signature has them. */
    dnnl_memory_desc_t right;
    dnnl_memory_desc_t bias;
    dnnl_memory_desc_t output;
    union {
        dnnl_convolution_desc_t conv;
        dnnl_matmul_desc_t matmul;
    } op;
    const float *numbers;
    dnnl_primitive_desc_t pd;
} product;

/* The filter or matrix as the library has it, in its own form or row-major. */
static void describe_right(const graft_kernel *kernel, bool any, dnnl_memory_desc_t *desc)
{
    const graft_shape *f = &kernel->signature.inputs[RIGHT];
    const int64_t groups = kernel->signature.attrs[GRAFT_ATTR_conv_groups];
    int64_t dims[5] = {groups, f->dims[0] / (groups == 0 ? 1 : groups), f->dims[1], f->dims[2],
                       f->dims[3]};
    if (f->rank == 2) {
        dims[0] = f->dims[0];
        dims[1] = f->dims[1];
        graft_program_describe_dims(2, dims, any, desc);
    } else {
        graft_program_describe_dims(groups == 1 ? 4 : 5, dims + (groups == 1), any, desc);
    }
    desc->data_type = dnnl_s8;
}

/* All rows of a matrix product at once. */
static void describe_rows(const graft_shape *shape, dnnl_memory_desc_t *desc)
{
    graft_shape rows = {.rank = 2, .dtype = shape->dtype};
    rows.dims[1] = shape->dims[shape->rank - 1];
    rows.dims[0] = (int32_t)(graft_shape_elements(shape) / (uint64_t)rows.dims[1]);
    graft_program_describe(&rows, GRAFT_LAYOUT_ROW, desc);
}

static graft_status describe_conv(graft_env *env, const graft_kernel *kernel, product *p)
{
    const int32_t *a = kernel->signature.attrs;
    const int64_t channels = graft_integers_channels(&kernel->signature);
    dnnl_dims_t strides = {a[GRAFT_ATTR_conv_stride_h], a[GRAFT_ATTR_conv_stride_w]};
    dnnl_dims_t dilates = {a[GRAFT_ATTR_conv_dilation_h] - 1, a[GRAFT_ATTR_conv_dilation_w] - 1};
    dnnl_dims_t before = {a[GRAFT_ATTR_conv_pad_top], a[GRAFT_ATTR_conv_pad_left]};
    dnnl_dims_t after = {a[GRAFT_ATTR_conv_pad_bottom], a[GRAFT_ATTR_conv_pad_right]};
    dnnl_memory_desc_t filter;
    describe_right(kernel, true, &filter);
    graft_program_describe_input(kernel, LEFT, &p->left);
    graft_program_describe_output(kernel, 0, &p->output);
    graft_program_describe_dims(1, &channels, false, &p->bias);
    return graft_program_status(env,
                                dnnl_dilated_convolution_forward_desc_init(
                                    &p->op.conv, dnnl_forward_inference, dnnl_convolution_direct,
                                    &p->left, &filter, &p->bias, &p->output, strides, dilates,
                                    before, after),
                                "describing a convolution");
}

static graft_status describe_matmul(graft_env *env, const graft_kernel *kernel, product *p)
{
    const int64_t bias[2] = {1, graft_integers_channels(&kernel->signature)};
    dnnl_memory_desc_t matrix;
    describe_right(kernel, true, &matrix);
    describe_rows(&kernel->signature.inputs[LEFT], &p->left);
    describe_rows(&kernel->outputs[0], &p->output);
    graft_program_describe_dims(2, bias, false, &p->bias);
    return graft_program_status(
        env, dnnl_matmul_desc_init(&p->op.matmul, &p->left, &matrix, &p->bias, &p->output),
        "describing a matrix product");
}

static graft_status set_zero(graft_env *env, program_attr *attr, int arg, float number)
{
    const int32_t zero = (int32_t)number;
    return zero == 0 ? GRAFT_OK
                     : graft_program_status(
                           env, dnnl_primitive_attr_set_zero_points(attr->attr, arg, 1, 0, &zero),
                           "zero points");
}

static graft_status add_function(graft_env *env, program_attr *attr, dnnl_alg_kind_t kind,
                                 float alpha, float beta)
{
    return graft_program_status(
        env, dnnl_post_ops_append_eltwise(attr->post_ops, 1.0F, kind, alpha, beta), "activation");
}

static graft_status describe_fusion(graft_env *env, const graft_kernel *kernel, const product *p,
                                    program_attr *attr)
{
    const graft_signature *s = &kernel->signature;
    const int32_t activation = graft_signature_activation(s);
    const float *n = p->numbers;
    GRAFT_PASS(graft_program_status(
        env,
        dnnl_primitive_attr_set_output_scales(attr->attr, graft_integers_channels(s), 1 << 1,
                                              n + GRAFT_PRODUCT_NUMBERS),
        "scales"));
    GRAFT_PASS(set_zero(env, attr, DNNL_ARG_SRC, n[GRAFT_PRODUCT_ZERO]));
    if (activation == GRAFT_ACT_RELU) {
        GRAFT_PASS(add_function(env, attr, dnnl_eltwise_relu, 0.0F, 0.0F));
    } else if (activation == GRAFT_ACT_RELU6) {
        GRAFT_PASS(add_function(env, attr, dnnl_eltwise_clip, 0.0F, n[GRAFT_PRODUCT_MOST]));
    }
    if (graft_signature_result(s) != GRAFT_DTYPE_F32) {
        GRAFT_PASS(set_zero(env, attr, DNNL_ARG_DST, n[GRAFT_PRODUCT_RESULT_ZERO]));
        if (n[GRAFT_PRODUCT_RESULT_ZERO] != 0.0F) {
            GRAFT_PASS(add_function(env, attr, dnnl_eltwise_round, 0.0F, 0.0F));
        }
    }
    return graft_program_attr_finish(env, attr);
}

/* Without instructions that add products of bytes in 32 bits the library adds pairs of them in 16,
 * and halves the weights beforehand where these could overflow. */
static bool sums_exactly(void)
{
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni;
}

/* Those for older processors saturate on newer ones, too. That of convolutions of one tap in tiles
 * (AMX) takes a zero point of the image for the first 32 filters only, at some sizes. */
static bool is_sound(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    (void)dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return strstr(name, "avx2") == NULL && strstr(name, "sse41") == NULL &&
           strstr(name, "1x1:avx512_core_amx") == NULL;
}

/* The `variant`-th implementation that is sound. */
static graft_status choose(graft_env *env, graft_kernel *kernel, uint32_t variant, product *p)
{
    PROGRAM_ATTR(attr);
    GRAFT_PASS(kernel->signature.op == GRAFT_COST_INTEGER_CONV ? describe_conv(env, kernel, p)
                                                               : describe_matmul(env, kernel, p));
    GRAFT_PASS(describe_fusion(env, kernel, p, &attr));
    uint32_t seen = 0;
    for (uint32_t i = 0; i < SEARCH_LIMIT; i++) {
        GRAFT_PASS(graft_program_choose(env, kernel, &p->op, &attr, i, &p->pd));
        if (is_sound(p->pd) && seen++ == variant) {
            return GRAFT_OK;
        }
        (void)dnnl_primitive_desc_destroy(p->pd);
        p->pd = NULL;
    }
    return GRAFT_UNSUPPORTED;
}

static graft_status build(graft_env *env, graft_kernel *kernel, const product *p)
{
    program_arg args[4] = {{.arg = DNNL_ARG_SRC},
                           {.arg = DNNL_ARG_WEIGHTS},
                           {.arg = DNNL_ARG_BIAS},
                           {.arg = DNNL_ARG_DST}};
    dnnl_memory_desc_t right;
    describe_right(kernel, false, &right);
    GRAFT_PASS(graft_program_input(env, kernel, LEFT, &p->left,
                                   graft_program_query(p->pd, dnnl_query_src_md, 0),
                                   &args[0].operand));
    GRAFT_PASS(graft_program_input(env, kernel, RIGHT, &right,
                                   graft_program_query(p->pd, dnnl_query_weights_md, 0),
                                   &args[1].operand));
    GRAFT_PASS(graft_program_fixed(env, kernel, &p->bias,
                                   p->numbers + GRAFT_PRODUCT_NUMBERS +
                                       graft_integers_channels(&kernel->signature),
                                   &args[2].operand));
    args[3].operand =
        graft_program_output(kernel, &p->output, graft_program_query(p->pd, dnnl_query_dst_md, 0));
    GRAFT_PASS(graft_program_stage(env, kernel, p->pd, args, 4));
    return graft_program_deliver(env, kernel, &p->output, args[3].operand);
}

/* Where only the name is wanted the numbers are not known: any will do that need all there is. */
static const float *find_numbers(graft_env *env, const graft_kernel *kernel)
{
    const uint32_t count = graft_integers_numbers(&kernel->signature);
    if (kernel->constants[NUMBERS] != NULL) {
        return kernel->constants[NUMBERS];
    }
    float *numbers = GRAFT_NEW(env->scratch, float, count);
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = 1.0F;
    }
    return numbers;
}

graft_status graft_cpu_open_integers(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    graft_status status = GRAFT_OK;
    const graft_signature *s = &kernel->signature;
    product p = {.pd = NULL};
    if (!graft_signature_is_integer(s) || s->op == GRAFT_COST_INTEGER_ADD || !sums_exactly()) {
        return GRAFT_UNSUPPORTED;
    }
    GRAFT_SCOPED(env->scratch);
    kernel->alone = true;
    p.numbers = find_numbers(env, kernel);
    GRAFT_CHECK(choose(env, kernel, variant, &p));
    graft_program_name(kernel, "integers", p.pd);
    if (!kernel->dry) {
        GRAFT_CHECK(build(env, kernel, &p));
    }
done:
    (void)dnnl_primitive_desc_destroy(p.pd);
    return status;
}

/* --------------------------------------------------------------------- sums */

/* Bytes are signed where `signs` says so: of the operands, then of the result. Where it is called
 * with constants the compiler makes vectors of it; rounded as quantised.c does. */
static inline __attribute__((always_inline)) void sum_bytes(const graft_kernel *kernel,
                                                            graft_range own, bool sign_a,
                                                            bool sign_b, bool sign,
                                                            int32_t activation)
{
    const void *const in[2] = {kernel->in[LEFT], kernel->in[RIGHT]};
    const float *n = kernel->in[NUMBERS];
    const float floor = activation == GRAFT_ACT_NONE ? -HUGE_VALF : 0.0F;
    const float least = sign ? -128.0F : 0.0F;
    uint8_t *out = (uint8_t *)kernel->out[0];
    for (int64_t i = own.from; i < own.to; i++) {
        const int a = sign_a ? ((const int8_t *)in[0])[i] : ((const uint8_t *)in[0])[i];
        const int b = sign_b ? ((const int8_t *)in[1])[i] : ((const uint8_t *)in[1])[i];
        float x = ((float)a - n[1]) * n[0] + ((float)b - n[3]) * n[2];
        x = x > floor ? x : floor;
        if (activation == GRAFT_ACT_RELU6) {
            x = x < n[GRAFT_SUM_MOST] ? x : n[GRAFT_SUM_MOST];
        }
        x = rintf(x / n[4]) + n[5];
        x = x > least ? x : least;
        x = x < least + 255.0F ? x : least + 255.0F;
        out[i] = (uint8_t)(int32_t)x;
    }
}

static void sum_part(const void *context, uint32_t part, uint32_t parts)
{
    enum { LINE = 64 };
    const graft_kernel *k = context;
    const graft_signature *s = &k->signature;
    const graft_range own =
        graft_range_part((int64_t)graft_shape_elements(&k->outputs[0]), LINE, part, parts);
    const bool sign_a = s->inputs[LEFT].dtype == GRAFT_DTYPE_I8;
    const bool sign_b = s->inputs[RIGHT].dtype == GRAFT_DTYPE_I8;
    const bool sign = graft_signature_result(s) == GRAFT_DTYPE_I8;
    const int32_t activation = graft_signature_activation(s);
    if (sign_a != sign_b || sign_a != sign || activation > GRAFT_ACT_RELU) {
        sum_bytes(k, own, sign_a, sign_b, sign, activation);
    } else if (activation == GRAFT_ACT_RELU) {
        sign ? sum_bytes(k, own, true, true, true, GRAFT_ACT_RELU)
             : sum_bytes(k, own, false, false, false, GRAFT_ACT_RELU);
    } else {
        sign ? sum_bytes(k, own, true, true, true, GRAFT_ACT_NONE)
             : sum_bytes(k, own, false, false, false, GRAFT_ACT_NONE);
    }
}

static void run_sum(const graft_kernel *kernel)
{
    graft_share(kernel->thread_count, sum_part, kernel);
}

graft_status graft_cpu_open_integer_sum(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    return kernel->signature.op != GRAFT_COST_INTEGER_ADD || variant > 0
               ? GRAFT_UNSUPPORTED
               : graft_program_plain(env, kernel, "plain", run_sum, NULL, 0);
}
