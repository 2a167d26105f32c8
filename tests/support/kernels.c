/* kernels.c - see kernels.h. */
#include "tests/support/kernels.h"

#include "cost/cpu/device_cpu.h"
#include "cost/plan/groups.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static void close_device(void *device) { graft_device_close(device); }

graft_device *check_device_named(graft_env *env, const char *name, uint32_t threads)
{
    graft_device *device = NULL;
    CHECK_OK(graft_device_open(env, name, threads, &device));
    check_at_end(close_device, device);
    return device;
}

graft_device *check_device_open(graft_env *env) { return check_device_named(env, "cpu", 1); }

typedef struct {
    graft_env *env;
    graft_cost *cost;
} open_cost;

static void close_cost(void *object)
{
    const open_cost *open = object;
    CHECK_OK(graft_cost_close(open->env, open->cost));
}

graft_cost *check_cost_open(graft_env *env, graft_device *device, const char *path)
{
    open_cost *open = GRAFT_NEW(env->life, open_cost, 1);
    open->env = env;
    CHECK_OK(graft_cost_open(env, device, path, &open->cost));
    check_at_end(close_cost, open);
    return open->cost;
}

graft_database *check_database_open(graft_env *env, const char *path, const char *device,
                                    const char *library)
{
    graft_database *database = NULL;
    CHECK_OK(graft_database_open(env, path, &database));
    graft_database_select(database, device, library);
    return database;
}

void check_database_save(graft_env *env, graft_database *database)
{
    CHECK_OK(graft_database_save(env, database));
    graft_database_close(database);
}

/* A graph of one node, so that layouts are chosen by the code that chooses them for models. */
graft_signature check_signature(graft_env *env, uint32_t op, const int32_t *attrs,
                                const graft_shape *shapes, uint32_t const_mask,
                                uint32_t image_layout)
{
    graft_signature s;
    graft_graph graph;
    graft_limits limits = {2, 16, 16, 2};
    graft_index inputs[GRAFT_MAX_INPUTS];
    uint8_t layouts[16] = {0};
    graft_layout_choice choices[GRAFT_LAYOUT_COUNT];
    const graft_layout_choice *choice = choices;
    graft_index node = 0;
    GRAFT_SCOPED(env->scratch);
    size_t bytes = graft_graph_bytes(&limits);
    CHECK_OK(graft_graph_init(&graph, &limits, graft_arena_alloc(env->scratch, bytes), bytes));
    for (uint32_t k = 0; k < graft_op(op)->input_count; k++) {
        bool is_const = (const_mask >> k & 1u) != 0;
        CHECK_OK(is_const ? graft_graph_add_weight(&graph, &shapes[k], k, &inputs[k])
                          : graft_graph_add_input(&graph, &shapes[k], k, &inputs[k]));
        bool image = shapes[k].rank == 4 && !is_const;
        image = image && graft_layout_fits(&shapes[k], image_layout);
        layouts[inputs[k]] = (uint8_t)(1U << (image ? image_layout : GRAFT_LAYOUT_ROW));
    }
    CHECK_OK(graft_graph_add_node(&graph, op, attrs, inputs, GRAFT_NONE, &node));
    uint32_t count = graft_layout_alternatives(&graph, node, layouts, choices);
    if (image_layout == GRAFT_LAYOUT_BLOCKED) { /* Listed last, if at all. */
        choice = &choices[count - 1];
    }
    graft_signature_of_node(&graph, node, choice, false, &s);
    return s;
}

/* ------------------------------------------------------------------ tensors */

size_t check_place(const graft_shape *shape, uint32_t layout, size_t i)
{
    if (layout == GRAFT_LAYOUT_ROW) {
        return i;
    }
    size_t channels = (size_t)shape->dims[1];
    size_t pixels = (size_t)shape->dims[2] * (size_t)shape->dims[3];
    size_t block = layout == GRAFT_LAYOUT_BLOCKED ? 16 : channels;
    size_t n = i / (channels * pixels);
    size_t c = i / pixels % channels;
    size_t p = i % pixels;
    return (n * channels + c / block * block) * pixels + p * block + c % block;
}

/* Row-major `from` to `layout`, or back. */
static void arrange(const graft_shape *shape, uint32_t layout, bool back, const float *from,
                    float *to)
{
    size_t count = (size_t)graft_shape_elements(shape);
    for (size_t i = 0; i < count; i++) {
        size_t at = check_place(shape, layout, i);
        to[back ? i : at] = from[back ? at : i];
    }
}

static float *draw_input(graft_env *env, graft_rng *rng, const graft_signature *s, uint32_t k)
{
    size_t count = (size_t)graft_shape_elements(&s->inputs[k]);
    float *data = GRAFT_NEW(env->scratch, float, count);
    bool positive =
        s->op == GRAFT_OP_sqrt || s->op == GRAFT_OP_log || (s->op == GRAFT_OP_div && k == 1);
    for (size_t i = 0; i < count; i++) {
        float x = (float)graft_rng_normal(rng);
        data[i] = positive ? fabsf(x) + 0.5F : x;
    }
    return data;
}

/* Behind the elements stand some more that must stay NaN. */
enum { GUARD_COUNT = 64 };

static float *draw_nan(graft_env *env, size_t count)
{
    float *data = GRAFT_NEW(env->scratch, float, count + GUARD_COUNT);
    for (size_t i = 0; i < count + GUARD_COUNT; i++) {
        data[i] = NAN;
    }
    return data;
}

static void check_guard(const float *data, size_t count, const char *what)
{
    for (size_t i = count; i < count + GUARD_COUNT; i++) {
        if (!isnan(data[i])) {
            fail_msg("%s: writes %zu elements past its end", what, i - count + 1);
        }
    }
}

/* What counts as equal for an implementation: 3e-5 covers other orders of summation of up to a few
 * thousand products and the library's exponentials; the library's Winograd transforms lose up to
 * two digits more (1e-3), ours nothing for F(2x2, 3x3) and less than one (1e-4) for F(4x4, 3x3). */
static double tolerance_of(const char *implementation)
{
    static const struct {
        const char *begin;
        double tolerance;
    } table[] = {
        {"winograd:plain_2", 3e-5},
        {"winograd:plain_4", 1e-4},
        {"winograd",         1e-3},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strncmp(implementation, table[i].begin, strlen(table[i].begin)) == 0) {
            return table[i].tolerance;
        }
    }
    return 3e-5;
}

void check_close(const float *got, const float *want, size_t count, double relative,
                 const char *what)
{
    double largest = 1.0;
    for (size_t i = 0; i < count; i++) {
        largest = isfinite(want[i]) ? fmax(largest, 1.0 + fabs((double)want[i])) : largest;
    }
    for (size_t i = 0; i < count; i++) {
        bool same = isnan(want[i]) ? isnan(got[i])
                                   : got[i] == want[i] || fabs((double)got[i] - (double)want[i]) <=
                                                              relative * largest;
        if (!same) {
            fail_msg("%s: element %zu of %zu is %.9g, should be %.9g", what, i, count,
                     (double)got[i], (double)want[i]);
        }
    }
}

/* ------------------------------------------------------------------ kernels */

typedef struct {
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    const float *rows[GRAFT_MAX_INPUTS];     /* Row-major. */
    const float *arranged[GRAFT_MAX_INPUTS]; /* In the signature's layouts. */
    float *want[GRAFT_MAX_OUTPUTS];
} trial;

static void prepare_trial(graft_env *env, graft_rng *rng, const graft_signature *s, trial *t)
{
    CHECK_OK(graft_signature_outputs(s, t->outputs));
    for (uint32_t k = 0; k < s->input_count; k++) {
        size_t count = (size_t)graft_shape_elements(&s->inputs[k]);
        float *arranged = GRAFT_NEW(env->scratch, float, count);
        t->rows[k] = draw_input(env, rng, s, k);
        arrange(&s->inputs[k], s->in_layouts[k], false, t->rows[k], arranged);
        t->arranged[k] = (s->const_mask >> k & 1u) != 0 ? t->rows[k] : arranged;
    }
    for (uint32_t k = 0; k < s->output_count; k++) {
        t->want[k] = GRAFT_NEW(env->scratch, float, (size_t)graft_shape_elements(&t->outputs[k]));
    }
    graft_signature_run(env->scratch, s, t->outputs, t->rows, t->want);
}

static void fail_kernel(graft_env *env, const graft_signature *s, const char *what)
{
    graft_buffer text = {.arena = env->scratch};
    graft_signature_print(s, &text);
    fail_msg("%s: %s", text.data, what);
}

/* Runs the kernel `name` of the device on a trial; `out` is the caller's. */
static void run_trial(graft_env *env, graft_device *device, const graft_signature *s,
                      const trial *t, const char *name, float *out[GRAFT_MAX_OUTPUTS])
{
    graft_kernel *kernel = NULL;
    const float *in[GRAFT_MAX_INPUTS];
    graft_buffer what = {.arena = env->scratch};
    graft_signature_print(s, &what);
    graft_buffer_printf(&what, " by %s", name);
    if (graft_kernel_open(env, device, s, name, t->rows, &kernel) != GRAFT_OK) {
        fail_kernel(env, s, env->message);
    }
    float *workspace =
        draw_nan(env, graft_kernel_facts_of(kernel)->workspace_bytes / sizeof(float) + 1);
    memcpy(in, t->arranged, sizeof(in));
    for (uint32_t k = 0; k < s->output_count; k++) {
        out[k] = draw_nan(env, (size_t)graft_shape_elements(&t->outputs[k]));
        if (s->in_place != 0) {
            memcpy(out[k], in[3], (size_t)graft_shape_bytes(&t->outputs[k]));
            in[3] = out[k];
        }
    }
    CHECK_OK(graft_kernel_bind(env, kernel, in, out, workspace));
    CHECK_OK(graft_kernel_run(env, kernel));
    for (uint32_t k = 0; k < s->output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        float *got = GRAFT_NEW(env->scratch, float, count);
        arrange(&t->outputs[k], s->out_layouts[k], true, out[k], got);
        check_close(got, t->want[k], count, tolerance_of(name), what.data);
        check_guard(out[k], count, what.data);
    }
    check_guard(workspace, graft_kernel_facts_of(kernel)->workspace_bytes / sizeof(float) + 1,
                what.data);
    graft_kernel_close(kernel);
}

uint32_t check_kernels(graft_env *env, graft_device *device, graft_rng *rng,
                       const graft_signature *s)
{
    const graft_mark mark = graft_arena_mark(env->scratch);
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    trial t;
    CHECK_OK(graft_kernel_list(env, device, s, names, &count));
    prepare_trial(env, rng, s, &t);
    for (uint32_t i = 0; i < count; i++) {
        float *out[GRAFT_MAX_OUTPUTS];
        GRAFT_SCOPED(env->scratch);
        run_trial(env, device, s, &t, names[i].text, out);
    }
    graft_arena_release(env->scratch, mark);
    return count;
}

/* What is not the library's, whose sums may depend on the number of threads. */
static bool is_ours(const char *name)
{
    return strncmp(name, "plain", 5) == 0 || strncmp(name, "panels:", 7) == 0 ||
           strncmp(name, "winograd:plain", 14) == 0;
}

uint32_t check_kernels_shared(graft_env *env, graft_device *one, graft_device *several,
                              graft_rng *rng, const graft_signature *s)
{
    GRAFT_SCOPED(env->scratch);
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    uint32_t ours = 0;
    trial t;
    CHECK_OK(graft_kernel_list(env, several, s, names, &count));
    prepare_trial(env, rng, s, &t);
    for (uint32_t i = 0; i < count; i++) {
        float *out[2][GRAFT_MAX_OUTPUTS];
        run_trial(env, several, s, &t, names[i].text, out[0]);
        if (is_ours(names[i].text)) {
            run_trial(env, one, s, &t, names[i].text, out[1]);
            for (uint32_t k = 0; k < s->output_count; k++) {
                assert_memory_equal(out[0][k], out[1][k], graft_shape_bytes(&t.outputs[k]));
            }
            ours++;
        }
    }
    return ours;
}

graft_device *check_device_shared(graft_env *env)
{
    graft_device *device = check_device_named(env, "cpu", 3);
    device->shared_from = 0;
    return device;
}
