/* device_cpu_matmul.c - matrix products through oneDNN, with bias and activation fused.
 *
 *   matmul         the general primitive; a second matrix without batch is multiplied by all rows
 * of the first at once inner_product  the primitive for linear layers, where the second matrix is a
 * weight */
#include "cost/cpu/program.h"

#include <string.h>

enum { LEFT = 0, RIGHT = 1, BIAS = 2, MATMUL_VARIANTS = 2 };

/* left (batch..., m, n), right (batch..., n, p), out (batch..., m, p), all of one rank. */
typedef struct {
    int64_t left[GRAFT_MAX_RANK];
    int64_t right[GRAFT_MAX_RANK];
    int64_t bias[GRAFT_MAX_RANK];
    int64_t out[GRAFT_MAX_RANK];
    uint32_t rank;
} matmul_dims;

static bool is_row_major(const graft_signature *s)
{
    return s->in_layouts[LEFT] == GRAFT_LAYOUT_ROW && s->in_layouts[RIGHT] == GRAFT_LAYOUT_ROW &&
           s->out_layouts[0] == GRAFT_LAYOUT_ROW;
}

static void widen(const graft_shape *shape, uint32_t rank, int64_t *dims)
{
    uint32_t added = rank - shape->rank;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i < added ? 1 : shape->dims[i - added];
    }
}

static bool right_is_matrix(const graft_shape *right)
{
    bool matrix = true;
    for (uint32_t i = 0; i + 2 < right->rank; i++) {
        matrix = matrix && right->dims[i] == 1;
    }
    return matrix;
}

static void measure_dims(const graft_kernel *kernel, matmul_dims *d)
{
    const graft_shape *left = &kernel->signature.inputs[LEFT];
    const graft_shape *right = &kernel->signature.inputs[RIGHT];
    const graft_shape *out = &kernel->outputs[0];
    int64_t columns = out->dims[out->rank - 1];
    d->rank = out->rank;
    widen(left, d->rank, d->left);
    widen(right, d->rank, d->right);
    widen(out, d->rank, d->out);
    if (right_is_matrix(right)) {
        int64_t inner = left->dims[left->rank - 1];
        int64_t rows = (int64_t)graft_shape_elements(left) / inner;
        *d = (matmul_dims){
            .left = {rows,  inner  },
              .right = {inner, columns},
              .out = {rows,  columns},
              .rank = 2
        };
    }
    for (uint32_t i = 0; i < d->rank; i++) {
        d->bias[i] = i + 1 == d->rank ? columns : 1;
    }
}

/* What both families do once a primitive is chosen; the forms are those that the operands have. */
typedef struct {
    dnnl_memory_desc_t left;
    dnnl_memory_desc_t right;
    dnnl_memory_desc_t bias;
    dnnl_memory_desc_t out;
} matmul_forms;

static graft_status build_product(graft_env *env, graft_kernel *kernel, const matmul_forms *forms,
                                  const_dnnl_primitive_desc_t pd)
{
    program_arg args[4] = {{.arg = DNNL_ARG_SRC}, {.arg = DNNL_ARG_WEIGHTS}, {.arg = DNNL_ARG_DST}};
    uint32_t count = 3;
    const dnnl_memory_desc_t *out = graft_program_query(pd, dnnl_query_dst_md, 0);
    GRAFT_PASS(graft_program_input(env, kernel, LEFT, &forms->left,
                                   graft_program_query(pd, dnnl_query_src_md, 0),
                                   &args[0].operand));
    GRAFT_PASS(graft_program_input(env, kernel, RIGHT, &forms->right,
                                   graft_program_query(pd, dnnl_query_weights_md, 0),
                                   &args[1].operand));
    args[2].operand = graft_program_output(kernel, &forms->out, out);
    if (kernel->signature.op == GRAFT_OP_matmul_bias) {
        args[count].arg = DNNL_ARG_BIAS;
        GRAFT_PASS(graft_program_input(env, kernel, BIAS, &forms->bias, &forms->bias,
                                       &args[count].operand));
        count++;
    }
    GRAFT_PASS(graft_program_stage(env, kernel, pd, args, count));
    return graft_program_deliver(env, kernel, &forms->out, args[2].operand);
}

static graft_status open_product(graft_env *env, graft_kernel *kernel, const char *family,
                                 const matmul_forms *forms, const void *desc, uint32_t variant)
{
    PROGRAM_CHOSEN(pd);
    PROGRAM_ATTR(attr);
    GRAFT_PASS(
        graft_program_attr_activation(env, &attr, graft_signature_activation(&kernel->signature)));
    GRAFT_PASS(graft_program_attr_finish(env, &attr));
    GRAFT_PASS(graft_program_choose(env, kernel, desc, &attr, variant, &pd));
    graft_program_name(kernel, family, pd);
    if (!kernel->dry) {
        GRAFT_PASS(build_product(env, kernel, forms, pd));
    }
    return GRAFT_OK;
}

graft_status graft_cpu_open_matmul(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    if (!graft_signature_is_matmul(s) || !is_row_major(s) || variant >= MATMUL_VARIANTS) {
        return GRAFT_UNSUPPORTED;
    }
    matmul_dims d;
    matmul_forms forms;
    dnnl_memory_desc_t right;
    dnnl_matmul_desc_t desc;
    memset(&d, 0, sizeof(d));
    measure_dims(kernel, &d);
    graft_program_describe_dims(d.rank, d.left, false, &forms.left);
    graft_program_describe_dims(d.rank, d.right, false, &forms.right);
    graft_program_describe_dims(d.rank, d.bias, false, &forms.bias);
    graft_program_describe_dims(d.rank, d.out, false, &forms.out);
    graft_program_describe_dims(d.rank, d.right, (s->const_mask >> RIGHT & 1u) != 0, &right);
    GRAFT_PASS(graft_program_status(
        env,
        dnnl_matmul_desc_init(&desc, &forms.left, &right,
                              s->op == GRAFT_OP_matmul_bias ? &forms.bias : NULL, &forms.out),
        "describing a matrix product"));
    return open_product(env, kernel, "matmul", &forms, &desc, variant);
}

/* oneDNN's linear layers hold the weight as (p, n): our (n, p) data with its axes exchanged. */
static void describe_linear_weight(const matmul_dims *d, dnnl_memory_desc_t *desc)
{
    dnnl_dims_t dims = {d->right[1], d->right[0]};
    (void)dnnl_memory_desc_init_by_tag(desc, 2, dims, dnnl_f32, dnnl_ba);
}

graft_status graft_cpu_open_inner_product(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    matmul_dims d;
    matmul_forms forms;
    dnnl_memory_desc_t right;
    dnnl_inner_product_desc_t desc;
    if (!graft_signature_is_matmul(s) || !is_row_major(s) || variant >= MATMUL_VARIANTS ||
        (s->const_mask >> RIGHT & 1u) == 0 || !right_is_matrix(&s->inputs[RIGHT])) {
        return GRAFT_UNSUPPORTED;
    }
    memset(&d, 0, sizeof(d));
    measure_dims(kernel, &d);
    int64_t dims[2] = {d.right[1], d.right[0]};
    graft_program_describe_dims(2, d.left, false, &forms.left);
    describe_linear_weight(&d, &forms.right);
    graft_program_describe_dims(1, &d.bias[1], false, &forms.bias);
    graft_program_describe_dims(2, d.out, false, &forms.out);
    graft_program_describe_dims(2, dims, true, &right);
    GRAFT_PASS(graft_program_status(
        env,
        dnnl_inner_product_forward_desc_init(&desc, dnnl_forward_inference, &forms.left, &right,
                                             s->op == GRAFT_OP_matmul_bias ? &forms.bias : NULL,
                                             &forms.out),
        "describing a linear layer"));
    return open_product(env, kernel, "inner_product", &forms, &desc, variant);
}
