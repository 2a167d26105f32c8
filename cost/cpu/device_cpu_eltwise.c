/* device_cpu_eltwise.c - elementwise functions, binary operators and channel scale-and-shift
 * through oneDNN.
 *
 * Operands of one shape and layout are treated as one long row, so that no layout is slow. */
#include "cost/cpu/program.h"

#include <string.h>

/* ------------------------------------------------------------- one operand */

static float float_of_bits(int32_t bits)
{
    float value = 0.0F;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static bool find_function(const graft_signature *s, program_function *f)
{
    *f = (program_function){.alpha = 0.0F, .beta = 0.0F};
    switch (s->op) {
    case GRAFT_OP_relu:
        f->kind = dnnl_eltwise_relu;
        return true;
    case GRAFT_OP_leaky_relu:
        f->kind = dnnl_eltwise_relu;
        f->alpha = float_of_bits(s->attrs[GRAFT_ATTR_leaky_relu_slope]);
        return true;
    case GRAFT_OP_clip:
        f->kind = dnnl_eltwise_clip;
        f->alpha = float_of_bits(s->attrs[GRAFT_ATTR_clip_low]);
        f->beta = float_of_bits(s->attrs[GRAFT_ATTR_clip_high]);
        return f->alpha <= f->beta;
    case GRAFT_OP_sigmoid:
        f->kind = dnnl_eltwise_logistic;
        return true;
    case GRAFT_OP_tanh:
        f->kind = dnnl_eltwise_tanh;
        return true;
    case GRAFT_OP_exp:
        f->kind = dnnl_eltwise_exp;
        return true;
    case GRAFT_OP_sqrt:
        f->kind = dnnl_eltwise_sqrt;
        return true;
    case GRAFT_OP_gelu:
        f->kind = dnnl_eltwise_gelu_erf;
        return true;
    case GRAFT_OP_abs:
        f->kind = dnnl_eltwise_abs;
        return true;
    case GRAFT_OP_swish:
        f->kind = dnnl_eltwise_swish;
        f->alpha = float_of_bits(s->attrs[GRAFT_ATTR_swish_alpha]);
        return true;
    case GRAFT_OP_hard_swish:
        f->kind = dnnl_eltwise_hardswish;
        return true;
    case GRAFT_OP_elu:
        f->kind = dnnl_eltwise_elu;
        f->alpha = float_of_bits(s->attrs[GRAFT_ATTR_elu_alpha]);
        return true;
    case GRAFT_OP_gelu_tanh:
        f->kind = dnnl_eltwise_gelu_tanh;
        return true;
    case GRAFT_OP_mish:
        f->kind = dnnl_eltwise_mish;
        return true;
    case GRAFT_OP_log:
        f->kind = dnnl_eltwise_log;
        return true;
    default:
        return false;
    }
}

static void describe_row(const graft_shape *shape, dnnl_memory_desc_t *desc)
{
    int64_t elements = (int64_t)graft_shape_elements(shape);
    graft_program_describe_dims(1, &elements, false, desc);
}

static graft_status build_unary(graft_env *env, graft_kernel *kernel,
                                const dnnl_memory_desc_t *desc, const_dnnl_primitive_desc_t pd)
{
    program_arg args[2] = {{.arg = DNNL_ARG_SRC}, {.arg = DNNL_ARG_DST}};
    GRAFT_PASS(graft_program_input(env, kernel, 0, desc, desc, &args[0].operand));
    args[1].operand = graft_program_output(kernel, desc, desc);
    return graft_program_stage(env, kernel, pd, args, 2);
}

graft_status graft_cpu_open_eltwise(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    graft_status status = GRAFT_OK;
    const graft_signature *s = &kernel->signature;
    program_function f;
    dnnl_memory_desc_t row;
    dnnl_eltwise_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    program_attr attr;
    if (!find_function(s, &f) || variant > 0 ||
        !graft_layout_same(&s->inputs[0], s->in_layouts[0], s->out_layouts[0])) {
        return GRAFT_UNSUPPORTED;
    }
    graft_program_attr_open(&attr);
    describe_row(&s->inputs[0], &row);
    GRAFT_CHECK(graft_program_attr_finish(env, &attr));
    GRAFT_CHECK(graft_program_status(env,
                                     dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference,
                                                                    f.kind, &row, f.alpha, f.beta),
                                     "describing an elementwise function"));
    GRAFT_CHECK(graft_program_choose(env, kernel, &desc, &attr, 0, &pd));
    graft_program_name(kernel, "eltwise", pd);
    if (!kernel->dry) {
        GRAFT_CHECK(build_unary(env, kernel, &row, pd));
    }
done:
    (void)dnnl_primitive_desc_destroy(pd);
    graft_program_attr_close(&attr);
    return status;
}

/* ------------------------------------------------------------ two operands */

static dnnl_alg_kind_t find_binary(uint32_t op)
{
    static const struct {
        uint32_t op;
        dnnl_alg_kind_t kind;
    } table[] = {
        {GRAFT_OP_add, dnnl_binary_add},
        {GRAFT_OP_sub, dnnl_binary_sub},
        {GRAFT_OP_mul, dnnl_binary_mul},
        {GRAFT_OP_div, dnnl_binary_div},
        {GRAFT_OP_max, dnnl_binary_max},
        {GRAFT_OP_min, dnnl_binary_min},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].op == op) {
            return table[i].kind;
        }
    }
    return dnnl_alg_kind_undef;
}

/* The library repeats its second operand only: which input is the first, or 2 when neither can be.
 */
static uint32_t find_whole(const graft_kernel *kernel)
{
    const graft_signature *s = &kernel->signature;
    bool commutes = (graft_op(s->op)->flags & GRAFT_FLAG_COMMUTES) != 0;
    uint64_t elements = graft_shape_elements(&kernel->outputs[0]);
    if (graft_shape_elements(&s->inputs[0]) == elements) {
        return 0;
    }
    return commutes && graft_shape_elements(&s->inputs[1]) == elements ? 1 : 2;
}

/* What a binary operator's operands are (as the primitive numbers them) and should be: a const one
 * takes the output's layout. */
typedef struct {
    dnnl_memory_desc_t have[2];
    dnnl_memory_desc_t want[3]; /* Operands, output. */
} binary_forms;

static uint32_t layout_wanted(const graft_signature *s, uint32_t k)
{
    bool image = s->inputs[k].rank == 4 && (s->const_mask >> k & 1u) != 0;
    return image ? s->out_layouts[0] : s->in_layouts[k];
}

static void describe_binary(const graft_kernel *kernel, uint32_t whole, binary_forms *forms)
{
    const graft_signature *s = &kernel->signature;
    const graft_shape *out = &kernel->outputs[0];
    uint32_t rank = out->rank == 0 ? 1 : out->rank;
    bool one_row = true;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t k = i == 0 ? whole : 1 - whole;
        uint32_t layout = layout_wanted(s, k);
        graft_program_describe_ranked(&s->inputs[k], s->in_layouts[k], rank, &forms->have[i]);
        graft_program_describe_ranked(&s->inputs[k], layout, rank, &forms->want[i]);
        one_row = one_row && graft_shape_elements(&s->inputs[k]) == graft_shape_elements(out) &&
                  s->in_layouts[k] == layout && graft_layout_same(out, layout, s->out_layouts[0]);
    }
    graft_program_describe_ranked(out, s->out_layouts[0], rank, &forms->want[2]);
    if (one_row) {
        describe_row(out, &forms->have[0]);
        forms->have[1] = forms->have[0];
        for (uint32_t i = 0; i < 3; i++) {
            forms->want[i] = forms->have[0];
        }
    }
}

static graft_status build_binary(graft_env *env, graft_kernel *kernel, uint32_t whole,
                                 const binary_forms *forms, const_dnnl_primitive_desc_t pd)
{
    program_arg args[3] = {{.arg = DNNL_ARG_SRC_0}, {.arg = DNNL_ARG_SRC_1}, {.arg = DNNL_ARG_DST}};
    for (uint32_t i = 0; i < 2; i++) {
        GRAFT_PASS(graft_program_input(env, kernel, i == 0 ? whole : 1 - whole, &forms->have[i],
                                       &forms->want[i], &args[i].operand));
    }
    args[2].operand = graft_program_output(kernel, &forms->want[2], &forms->want[2]);
    return graft_program_stage(env, kernel, pd, args, 3);
}

graft_status graft_cpu_open_binary(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    graft_status status = GRAFT_OK;
    dnnl_alg_kind_t kind = find_binary(kernel->signature.op);
    uint32_t whole = kind == dnnl_alg_kind_undef ? 2 : find_whole(kernel);
    binary_forms forms;
    dnnl_binary_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    program_attr attr;
    if (whole > 1 || variant > 0) {
        return GRAFT_UNSUPPORTED;
    }
    graft_program_attr_open(&attr);
    describe_binary(kernel, whole, &forms);
    GRAFT_CHECK(graft_program_attr_finish(env, &attr));
    GRAFT_CHECK(graft_program_status(
        env, dnnl_binary_desc_init(&desc, kind, &forms.want[0], &forms.want[1], &forms.want[2]),
        "describing a binary operator"));
    GRAFT_CHECK(graft_program_choose(env, kernel, &desc, &attr, 0, &pd));
    graft_program_name(kernel, "binary", pd);
    if (!kernel->dry) {
        GRAFT_CHECK(build_binary(env, kernel, whole, &forms, pd));
    }
done:
    (void)dnnl_primitive_desc_destroy(pd);
    graft_program_attr_close(&attr);
    return status;
}

/* --------------------------------------------------------- scale and shift */

enum { DATA = 0, SCALE = 1, SHIFT = 2, BATCH_NORM_MOST_RANK = 5 };

/* Mean 0, variance 1 and epsilon 0 leave x s + t. */
static graft_status build_batch_norm(graft_env *env, graft_kernel *kernel,
                                     const dnnl_memory_desc_t *form, const_dnnl_primitive_desc_t pd)
{
    int64_t channels = kernel->signature.inputs[DATA].dims[1];
    program_arg args[6] = {{.arg = DNNL_ARG_SRC},   {.arg = DNNL_ARG_DST},
                           {.arg = DNNL_ARG_SCALE}, {.arg = DNNL_ARG_SHIFT},
                           {.arg = DNNL_ARG_MEAN},  {.arg = DNNL_ARG_VARIANCE}};
    dnnl_memory_desc_t row;
    GRAFT_SCOPED(env->scratch);
    float *zeros = GRAFT_NEW(env->scratch, float, (size_t)channels);
    float *ones = GRAFT_NEW(env->scratch, float, (size_t)channels);
    for (int64_t i = 0; i < channels; i++) {
        ones[i] = 1.0F;
    }
    graft_program_describe_dims(1, &channels, false, &row);
    GRAFT_PASS(graft_program_input(env, kernel, DATA, form, form, &args[0].operand));
    args[1].operand = graft_program_output(kernel, form, form);
    GRAFT_PASS(graft_program_input(env, kernel, SCALE, &row, &row, &args[2].operand));
    GRAFT_PASS(graft_program_input(env, kernel, SHIFT, &row, &row, &args[3].operand));
    GRAFT_PASS(graft_program_fixed(env, kernel, &row, zeros, &args[4].operand));
    GRAFT_PASS(graft_program_fixed(env, kernel, &row, ones, &args[5].operand));
    return graft_program_stage(env, kernel, pd, args, 6);
}

graft_status graft_cpu_open_batch_norm(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    graft_status status = GRAFT_OK;
    const graft_signature *s = &kernel->signature;
    dnnl_memory_desc_t form;
    dnnl_batch_normalization_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    program_attr attr;
    if (s->op != GRAFT_OP_scale_shift || variant > 0 || s->inputs[DATA].rank < 2 ||
        s->inputs[DATA].rank > BATCH_NORM_MOST_RANK || s->in_layouts[DATA] != s->out_layouts[0]) {
        return GRAFT_UNSUPPORTED;
    }
    graft_program_attr_open(&attr);
    graft_program_describe_input(kernel, DATA, &form);
    GRAFT_CHECK(graft_program_attr_finish(env, &attr));
    GRAFT_CHECK(graft_program_status(
        env,
        dnnl_batch_normalization_forward_desc_init(
            &desc, dnnl_forward_inference, &form, 0.0F,
            (unsigned)dnnl_use_global_stats | (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift),
        "describing scale and shift"));
    GRAFT_CHECK(graft_program_choose(env, kernel, &desc, &attr, 0, &pd));
    graft_program_name(kernel, "batch_norm", pd);
    if (!kernel->dry) {
        GRAFT_CHECK(build_batch_norm(env, kernel, &form, pd));
    }
done:
    (void)dnnl_primitive_desc_destroy(pd);
    graft_program_attr_close(&attr);
    return status;
}
