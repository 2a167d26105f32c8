/* device_cpu_norm.c - layer normalisation, through oneDNN and in plain C.
 *
 * Both read rows of the last axis. The plain one adds in eight lanes, as a vector unit does, and
 * makes two passes over a row that lies in the first-level cache after the first. */
#include "cost/cpu/program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DATA = 0, SCALE = 1, SHIFT = 2, LEAST_RANK = 2, MOST_RANK = 5 };

static float epsilon_of(const graft_kernel *kernel)
{
    float value = 0.0F;
    memcpy(&value, &kernel->signature.attrs[GRAFT_ATTR_layer_norm_epsilon], sizeof(value));
    return value;
}

static bool is_row_major(const graft_signature *s)
{
    return graft_layout_same(&s->inputs[DATA], s->in_layouts[DATA], GRAFT_LAYOUT_ROW) &&
           graft_layout_same(&s->inputs[DATA], s->out_layouts[0], GRAFT_LAYOUT_ROW);
}

/* ------------------------------------------------------------------ oneDNN */

static graft_status build_norm(graft_env *env, graft_kernel *kernel, const dnnl_memory_desc_t *form,
                               const_dnnl_primitive_desc_t pd)
{
    graft_status status = GRAFT_OK;
    int64_t columns = kernel->signature.inputs[SCALE].dims[0];
    program_arg args[4] = {{.arg = DNNL_ARG_SRC},
                           {.arg = DNNL_ARG_DST},
                           {.arg = DNNL_ARG_SCALE},
                           {.arg = DNNL_ARG_SHIFT}};
    dnnl_memory_desc_t row;
    graft_program_describe_dims(1, &columns, false, &row);
    GRAFT_CHECK(graft_program_input(env, kernel, DATA, form, form, &args[0].operand));
    args[1].operand = graft_program_output(kernel, form, form);
    GRAFT_CHECK(graft_program_input(env, kernel, SCALE, &row, &row, &args[2].operand));
    GRAFT_CHECK(graft_program_input(env, kernel, SHIFT, &row, &row, &args[3].operand));
    GRAFT_CHECK(graft_program_stage(env, kernel, pd, args, 4));
done:
    return status;
}

graft_status graft_cpu_open_layer_norm(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    graft_status status = GRAFT_OK;
    const graft_signature *s = &kernel->signature;
    dnnl_memory_desc_t form;
    dnnl_layer_normalization_desc_t desc;
    dnnl_primitive_desc_t pd = NULL;
    program_attr attr;
    if (s->op != GRAFT_OP_layer_norm || variant > 0 || s->inputs[DATA].rank < LEAST_RANK ||
        s->inputs[DATA].rank > MOST_RANK || !is_row_major(s)) {
        return GRAFT_UNSUPPORTED;
    }
    graft_program_attr_open(&attr);
    graft_program_describe(&s->inputs[DATA], GRAFT_LAYOUT_ROW, &form);
    GRAFT_CHECK(graft_program_attr_finish(env, &attr));
    GRAFT_CHECK(
        graft_program_status(env,
                             dnnl_layer_normalization_forward_desc_init(
                                 &desc, dnnl_forward_inference, &form, NULL, epsilon_of(kernel),
                                 (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift),
                             "describing a layer normalisation"));
    GRAFT_CHECK(graft_program_choose(env, kernel, &desc, &attr, 0, &pd));
    graft_program_name(kernel, "layer_norm", pd);
    if (!kernel->dry) {
        GRAFT_CHECK(build_norm(env, kernel, &form, pd));
    }
done:
    (void)dnnl_primitive_desc_destroy(pd);
    graft_program_attr_close(&attr);
    return status;
}

/* ------------------------------------------------------------------- plain */

enum { LANES = 16 };

static float add_lanes(const float *lanes)
{
    float total = 0.0F;
    for (int lane = 0; lane < LANES; lane++) {
        total += lanes[lane];
    }
    return total;
}

static float sum_row(const float *in, int64_t count)
{
    float lanes[LANES] = {0.0F};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (int64_t lane = 0; lane < LANES; lane++) {
            lanes[lane] += in[i + lane];
        }
    }
    for (; i < count; i++) {
        lanes[0] += in[i];
    }
    return add_lanes(lanes);
}

/* out = in - mean; the sum of its squares. */
static float centre_row(const float *restrict in, float mean, int64_t count, float *restrict out)
{
    float lanes[LANES] = {0.0F};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (int64_t lane = 0; lane < LANES; lane++) {
            float d = in[i + lane] - mean;
            out[i + lane] = d;
            lanes[lane] += d * d;
        }
    }
    for (; i < count; i++) {
        out[i] = in[i] - mean;
        lanes[0] += out[i] * out[i];
    }
    return add_lanes(lanes);
}

static void run_layer_norm(const graft_kernel *kernel)
{
    const graft_signature *s = &kernel->signature;
    int64_t columns = s->inputs[SCALE].dims[0];
    int64_t rows = (int64_t)graft_shape_elements(&s->inputs[DATA]) / columns;
    float epsilon = epsilon_of(kernel);
    for (int64_t row = 0; row < rows; row++) {
        const float *in = kernel->in[DATA] + row * columns;
        float *restrict out = kernel->out[0] + row * columns;
        float mean = sum_row(in, columns) / (float)columns;
        float variance = centre_row(in, mean, columns, out) / (float)columns;
        float factor = 1.0F / sqrtf(variance + epsilon);
        for (int64_t i = 0; i < columns; i++) {
            out[i] = out[i] * factor * kernel->in[SCALE][i] + kernel->in[SHIFT][i];
        }
    }
}

graft_status graft_cpu_open_plain_norm(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    (void)env;
    const graft_signature *s = &kernel->signature;
    if (s->op != GRAFT_OP_layer_norm || variant > 0 || !is_row_major(s)) {
        return GRAFT_UNSUPPORTED;
    }
    (void)snprintf(kernel->name, sizeof(kernel->name), "plain");
    kernel->plain = run_layer_norm;
    return GRAFT_OK;
}
