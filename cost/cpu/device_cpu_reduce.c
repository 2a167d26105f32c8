/* device_cpu_reduce.c - pooling, softmax, sums and extremes through oneDNN: operators that read
 * many elements for one. */
#include "cost/cpu/program.h"

#include <string.h>

/* The second pool is that of older processors, recorded as the faster one for some small images, but
 * five times as slow as the first for others: (1,64,56,56), 3x3. */
enum { POOL_VARIANTS = 1, SOFTMAX_VARIANTS = 2 };

/* From source to destination, both in the forms that the operands have. */
static graft_status open_simple(graft_env *env, graft_kernel *kernel, const char *family,
                                const dnnl_memory_desc_t forms[2], const void *desc,
                                uint32_t variant)
{
    const program_use uses[] = {
        {DNNL_ARG_SRC, 0,              &forms[0], &forms[0]},
        {DNNL_ARG_DST, PROGRAM_RESULT, &forms[1], &forms[1]}
    };
    const program_one one = {family, desc, variant, uses, 2};
    return graft_program_open_one(env, kernel, &one);
}

/* --------------------------------------------------------------- pooling */

typedef struct {
    dnnl_alg_kind_t kind;
    dnnl_dims_t kernel;
    dnnl_dims_t strides;
    dnnl_dims_t dilates; /* 0: none. */
    dnnl_dims_t before;
    dnnl_dims_t after;
} pool_window;

static bool find_window(const graft_signature *s, pool_window *w)
{
    const int32_t *a = s->attrs;
    memset(w, 0, sizeof(*w));
    if (s->op == GRAFT_OP_global_avg_pool) {
        w->kind = dnnl_pooling_avg_include_padding;
        w->kernel[0] = s->inputs[0].dims[2];
        w->kernel[1] = s->inputs[0].dims[3];
        w->strides[0] = 1;
        w->strides[1] = 1;
        return true;
    }
    if (s->op != GRAFT_OP_max_pool && s->op != GRAFT_OP_avg_pool) {
        return false;
    }
    w->kind = dnnl_pooling_max;
    if (s->op == GRAFT_OP_avg_pool) {
        w->kind = a[GRAFT_ATTR_avg_pool_count_pad] != 0 ? dnnl_pooling_avg_include_padding
                                                        : dnnl_pooling_avg_exclude_padding;
    }
    for (int i = 0; i < 2; i++) { /* The attributes stand at the same places in both pools. */
        w->kernel[i] = a[GRAFT_ATTR_max_pool_kernel_h + i];
        w->strides[i] = a[GRAFT_ATTR_max_pool_stride_h + i];
        w->before[i] = a[GRAFT_ATTR_max_pool_pad_top + i];
        w->after[i] = a[GRAFT_ATTR_max_pool_pad_bottom + i];
        if (s->op == GRAFT_OP_max_pool) {
            w->dilates[i] = a[GRAFT_ATTR_max_pool_dilation_h + i] - 1;
        }
    }
    return true;
}

graft_status graft_cpu_open_pool(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    pool_window w;
    dnnl_memory_desc_t forms[2];
    dnnl_pooling_v2_desc_t desc;
    if (variant >= POOL_VARIANTS || !find_window(&kernel->signature, &w)) {
        return GRAFT_UNSUPPORTED;
    }
    graft_program_describe_input(kernel, 0, &forms[0]);
    graft_program_describe_output(kernel, 0, &forms[1]);
    GRAFT_PASS(graft_program_status(env,
                                    dnnl_pooling_v2_forward_desc_init(
                                        &desc, dnnl_forward_inference, w.kind, &forms[0], &forms[1],
                                        w.strides, w.kernel, w.dilates, w.before, w.after),
                                    "describing a pool"));
    return open_simple(env, kernel, "pool", forms, &desc, variant);
}

/* --------------------------------------------------------------- softmax */

graft_status graft_cpu_open_softmax(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    dnnl_memory_desc_t forms[2];
    dnnl_softmax_v2_desc_t desc;
    const bool is_log = s->op == GRAFT_OP_log_softmax; /* Its attribute is the same. */
    if ((s->op != GRAFT_OP_softmax && !is_log) || variant >= SOFTMAX_VARIANTS) {
        return GRAFT_UNSUPPORTED;
    }
    graft_program_describe_input(kernel, 0, &forms[0]);
    graft_program_describe_output(kernel, 0, &forms[1]);
    GRAFT_PASS(graft_program_status(
        env,
        dnnl_softmax_v2_forward_desc_init(&desc, dnnl_forward_inference,
                                          is_log ? dnnl_softmax_log : dnnl_softmax_accurate,
                                          &forms[0], &forms[1], s->attrs[GRAFT_ATTR_softmax_axis]),
        "describing a softmax"));
    return open_simple(env, kernel, "softmax", forms, &desc, variant);
}

/* ------------------------------------------------------------ reductions */

/* The output with its reduced axes kept as 1, in the memory order of the output. */
static void describe_kept(const graft_kernel *kernel, dnnl_memory_desc_t *desc)
{
    const graft_signature *s = &kernel->signature;
    graft_shape kept = s->inputs[0];
    for (uint32_t i = 0; i < kept.rank; i++) {
        if (((uint32_t)s->attrs[GRAFT_ATTR_reduce_mean_axes] >> i & 1u) != 0) {
            kept.dims[i] = 1;
        }
    }
    graft_program_describe(&kept, s->out_layouts[0], desc);
}

/* All reductions have the same attributes. The largest of what is all infinite, as masks are, is
 * the largest finite number to oneDNN: it has only the layouts that plain loops lack. */
static dnnl_alg_kind_t find_reduction(const graft_signature *s)
{
    const bool blocked = s->in_layouts[0] == GRAFT_LAYOUT_BLOCKED;
    return s->op == GRAFT_OP_reduce_mean             ? dnnl_reduction_mean
           : s->op == GRAFT_OP_reduce_sum            ? dnnl_reduction_sum
           : s->op == GRAFT_OP_reduce_max && blocked ? dnnl_reduction_max
           : s->op == GRAFT_OP_reduce_min && blocked ? dnnl_reduction_min
                                                     : dnnl_alg_kind_undef;
}

graft_status graft_cpu_open_reduction(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    dnnl_memory_desc_t forms[2];
    dnnl_reduction_desc_t desc;
    dnnl_alg_kind_t kind = find_reduction(s);
    if (kind == dnnl_alg_kind_undef || variant > 0) {
        return GRAFT_UNSUPPORTED;
    }
    graft_program_describe_input(kernel, 0, &forms[0]);
    describe_kept(kernel, &forms[1]);
    GRAFT_PASS(graft_program_status(
        env, dnnl_reduction_desc_init(&desc, kind, &forms[0], &forms[1], 0.0F, 0.0F),
        "describing a reduction"));
    return open_simple(env, kernel, "reduction", forms, &desc, variant);
}
