/* device_cpu_eltwise.c - elementwise functions, binary operators and channel scale-and-shift
 * through oneDNN.
 *
 * Operands of one shape and layout, and single numbers, are treated as one long row, so that no
 * layout is slow. */
#include "cost/cpu/program.h"
#include "graph/base/bits.h"

/* ------------------------------------------------------------- one operand */

/* Functions whose two numbers are the first attributes, as far as they have some; of those that
 * plain.c computes in vectors, or of the others. */
static bool find_function(const graft_signature *s, bool in_vectors, program_function *f)
{
    static const struct {
        uint32_t op;
        dnnl_alg_kind_t kind;
        uint32_t numbers;
        bool in_vectors; /* By plain.c; the others it asks libm for. */
    } table[] = {
        {GRAFT_OP_relu,       dnnl_eltwise_relu,      0, true },
        {GRAFT_OP_leaky_relu, dnnl_eltwise_relu,      1, true },
        {GRAFT_OP_clip,       dnnl_eltwise_clip,      2, true },
        {GRAFT_OP_sigmoid,    dnnl_eltwise_logistic,  0, true },
        {GRAFT_OP_tanh,       dnnl_eltwise_tanh,      0, true },
        {GRAFT_OP_exp,        dnnl_eltwise_exp,       0, false},
        {GRAFT_OP_sqrt,       dnnl_eltwise_sqrt,      0, false},
        {GRAFT_OP_gelu,       dnnl_eltwise_gelu_erf,  0, true },
        {GRAFT_OP_abs,        dnnl_eltwise_abs,       0, true },
        {GRAFT_OP_swish,      dnnl_eltwise_swish,     1, true },
        {GRAFT_OP_hard_swish, dnnl_eltwise_hardswish, 0, true },
        {GRAFT_OP_elu,        dnnl_eltwise_elu,       1, false},
        {GRAFT_OP_gelu_tanh,  dnnl_eltwise_gelu_tanh, 0, true },
        {GRAFT_OP_mish,       dnnl_eltwise_mish,      0, false},
        {GRAFT_OP_log,        dnnl_eltwise_log,       0, false},
    };
    _Static_assert((int)GRAFT_ATTR_clip_low == 0 && (int)GRAFT_ATTR_clip_high == 1 &&
                       (int)GRAFT_ATTR_leaky_relu_slope == 0 && (int)GRAFT_ATTR_swish_alpha == 0 &&
                       (int)GRAFT_ATTR_elu_alpha == 0,
                   "numbers come first");
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].op == s->op && table[i].in_vectors == in_vectors) {
            *f = (program_function){.kind = table[i].kind};
            f->alpha = table[i].numbers > 0 ? graft_float_of_bits(s->attrs[0]) : 0.0F;
            f->beta = table[i].numbers > 1 ? graft_float_of_bits(s->attrs[1]) : 0.0F;
            return table[i].numbers < 2 || f->alpha <= f->beta;
        }
    }
    return false;
}

static void describe_row(const graft_shape *shape, dnnl_memory_desc_t *desc)
{
    int64_t elements = (int64_t)graft_shape_elements(shape);
    graft_program_describe_dims(1, &elements, false, desc);
}

static graft_status open_eltwise(graft_env *env, graft_kernel *kernel, bool in_vectors,
                                 uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    program_function f;
    dnnl_memory_desc_t row;
    dnnl_eltwise_desc_t desc;
    if (!find_function(s, in_vectors, &f) || variant > 0 ||
        !graft_layout_same(&s->inputs[0], s->in_layouts[0], s->out_layouts[0])) {
        return GRAFT_UNSUPPORTED;
    }
    describe_row(&s->inputs[0], &row);
    GRAFT_PASS(graft_program_status(env,
                                    dnnl_eltwise_forward_desc_init(&desc, dnnl_forward_inference,
                                                                   f.kind, &row, f.alpha, f.beta),
                                    "describing an elementwise function"));
    const program_use uses[] = {
        {DNNL_ARG_SRC, 0,              &row, &row},
        {DNNL_ARG_DST, PROGRAM_RESULT, &row, &row}
    };
    const program_one one = {"eltwise", &desc, 0, uses, 2};
    return graft_program_open_one(env, kernel, &one);
}

graft_status graft_cpu_open_eltwise(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    return open_eltwise(env, kernel, false, variant);
}

graft_status graft_cpu_open_vector_eltwise(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    return open_eltwise(env, kernel, true, variant);
}

/* ------------------------------------------------------------ two operands */

static const dnnl_alg_kind_t binaries[GRAFT_OP_COUNT] = {
    [GRAFT_OP_add] = dnnl_binary_add, [GRAFT_OP_sub] = dnnl_binary_sub,
    [GRAFT_OP_mul] = dnnl_binary_mul, [GRAFT_OP_div] = dnnl_binary_div,
    [GRAFT_OP_max] = dnnl_binary_max, [GRAFT_OP_min] = dnnl_binary_min,
};

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
        const bool alike = graft_shape_elements(&s->inputs[k]) == graft_shape_elements(out) &&
                           s->in_layouts[k] == layout &&
                           graft_layout_same(out, layout, s->out_layouts[0]);
        one_row = one_row && (alike || graft_shape_elements(&s->inputs[k]) == 1);
    }
    graft_program_describe_ranked(out, s->out_layouts[0], rank, &forms->want[2]);
    if (one_row) {
        for (uint32_t i = 0; i < 2; i++) {
            describe_row(&s->inputs[i == 0 ? whole : 1 - whole], &forms->have[i]);
            forms->want[i] = forms->have[i];
        }
        describe_row(out, &forms->want[2]);
    }
}

graft_status graft_cpu_open_binary(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const uint32_t op = kernel->signature.op;
    dnnl_alg_kind_t kind = op < GRAFT_OP_COUNT ? binaries[op] : dnnl_alg_kind_undef;
    uint32_t whole = kind == dnnl_alg_kind_undef ? 2 : find_whole(kernel);
    binary_forms f;
    dnnl_binary_desc_t desc;
    if (whole > 1 || variant > 0) {
        return GRAFT_UNSUPPORTED;
    }
    describe_binary(kernel, whole, &f);
    GRAFT_PASS(graft_program_status(
        env, dnnl_binary_desc_init(&desc, kind, &f.want[0], &f.want[1], &f.want[2]),
        "describing a binary operator"));
    const program_use uses[] = {
        {DNNL_ARG_SRC_0, whole,          &f.have[0], &f.want[0]},
        {DNNL_ARG_SRC_1, 1 - whole,      &f.have[1], &f.want[1]},
        {DNNL_ARG_DST,   PROGRAM_RESULT, &f.want[2], &f.want[2]}
    };
    const program_one one = {"binary", &desc, 0, uses, 3};
    return graft_program_open_one(env, kernel, &one);
}

/* --------------------------------------------------------- scale and shift */

enum { DATA = 0, SCALE = 1, SHIFT = 2, BATCH_NORM_MOST_RANK = 5 };

/* Mean 0, variance 1 and epsilon 0 leave x s + t. */
graft_status graft_cpu_open_batch_norm(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    dnnl_memory_desc_t form;
    dnnl_memory_desc_t row;
    dnnl_batch_normalization_desc_t desc;
    if (s->op != GRAFT_OP_scale_shift || variant > 0 || s->inputs[DATA].rank < 2 ||
        s->inputs[DATA].rank > BATCH_NORM_MOST_RANK || s->in_layouts[DATA] != s->out_layouts[0]) {
        return GRAFT_UNSUPPORTED;
    }
    const int64_t channels = s->inputs[DATA].dims[1];
    graft_program_describe_input(kernel, DATA, &form);
    graft_program_describe_dims(1, &channels, false, &row);
    GRAFT_PASS(graft_program_status(
        env,
        dnnl_batch_normalization_forward_desc_init(
            &desc, dnnl_forward_inference, &form, 0.0F,
            (unsigned)dnnl_use_global_stats | (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift),
        "describing scale and shift"));
    const program_use uses[] = {
        {DNNL_ARG_SRC,      DATA,           &form, &form},
        {DNNL_ARG_DST,      PROGRAM_RESULT, &form, &form},
        {DNNL_ARG_SCALE,    SCALE,          &row,  &row },
        {DNNL_ARG_SHIFT,    SHIFT,          &row,  &row },
        {DNNL_ARG_MEAN,     PROGRAM_ZEROS,  &row,  &row },
        {DNNL_ARG_VARIANCE, PROGRAM_ONES,   &row,  &row }
    };
    const program_one one = {"batch_norm", &desc, 0, uses, 6};
    return graft_program_open_one(env, kernel, &one);
}
