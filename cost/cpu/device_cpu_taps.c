/* device_cpu_taps.c - convolutions of our own, channels last, a tap after the other: a block of
 * output rows stays near while every tap that meets the image adds its product, pixels by channels
 * times channels by outputs. What a window reads outside of the image costs nothing, so this is for
 * dilated convolutions whose windows lie there in large part, as those of DeepLab do (Chen et al.,
 * IEEE TPAMI 40, 2018, section 3.1), and for which the library has no loops without AVX-512. The
 * filter is packed as in device_cpu_panels.c, tap by tap. */
#include "cost/cpu/panels.h"
#include "cost/cpu/program.h"
#include "cost/cpu/winograd.h"
#include "graph/base/share.h"
#include "graph/meaning/algebra.h"

#include <string.h>

enum { IMAGE = 0, FILTER = 1, BIAS = 2, RESIDUAL = 3 };
enum { WIDTH = GRAFT_WINOGRAD_PANEL, BLOCK_PIXELS = 64, LEAST_OUTPUTS = 32 };

typedef struct {
    graft_window down;  /* The window's rows... */
    graft_window along; /* ...and its columns. */
    int64_t images;
    int64_t groups;
    int64_t depth;      /* Channels of a group that are read, */
    int64_t outputs;    /* and made. */
    int64_t block_rows; /* Of the output, at a time. */
    int64_t block_sums; /* Floats. */
    int32_t activation;
    bool has_bias;
    bool has_residual;
    uint32_t panels; /* Operands. */
    uint32_t sums;   /* A block's for each thread. */
} taps_state;

static int64_t panel_size(const taps_state *s)
{
    return s->down.kernel * s->along.kernel * s->depth * WIDTH;
}

/* ---------------------------------------------------------------------- run */

/* Adds what column `j` of the window reads of one row of the image. */
static void add_tap(const taps_state *s, const float *row, const float *tap, int64_t j, float *sums)
{
    const int64_t channels = s->groups * s->depth;
    int64_t pixels[2];
    graft_window_positions(&s->along, j, pixels);
    if (pixels[0] >= pixels[1]) {
        return;
    }
    const graft_winograd_product product = {
        .left = row + graft_window_at(&s->along, pixels[0], j) * channels,
        .left_step = s->along.stride * channels,
        .right = tap,
        .next = tap,
        .out = sums + pixels[0] * WIDTH,
        .rows = pixels[1] - pixels[0],
        .depth = s->depth,
        .width = WIDTH,
        .adds = true,
    };
    graft_winograd_multiply(&product);
}

/* The output's `rows` by one panel. */
static void sum_taps(const taps_state *s, const float *image, const float *panel, graft_range rows,
                     float *sums)
{
    const int64_t step = s->along.size * s->groups * s->depth;
    for (int64_t i = 0; i < s->down.kernel; i++) {
        for (int64_t j = 0; j < s->along.kernel; j++) {
            const float *tap = panel + (i * s->along.kernel + j) * s->depth * WIDTH;
            for (int64_t y = rows.from; y < rows.to; y++) {
                const int64_t at = graft_window_at(&s->down, y, i);
                if (at >= 0 && at < s->down.size) {
                    add_tap(s, image + at * step, tap, j,
                            sums + (y - rows.from) * s->along.count * WIDTH);
                }
            }
        }
    }
}

static void run_block(const graft_kernel *kernel, int64_t image, graft_range rows, float *sums)
{
    const taps_state *s = kernel->state;
    const int64_t made = s->groups * s->outputs;
    const int64_t pixels = (rows.to - rows.from) * s->along.count;
    const int64_t first = (image * s->down.count + rows.from) * s->along.count * made;
    const float *read =
        kernel->in[IMAGE] + image * s->down.size * s->along.size * s->groups * s->depth;
    const float *panel = graft_program_place(kernel, s->panels);
    const graft_panel_end end = {
        .bias = s->has_bias ? kernel->in[BIAS] : NULL,
        .residual = s->has_residual ? kernel->in[RESIDUAL] + first : NULL,
        .out = kernel->out[0] + first,
        .step = made,
        .activation = s->activation,
    };
    for (int64_t group = 0; group < s->groups; group++) {
        for (int64_t from = 0; from < s->outputs; from += WIDTH, panel += panel_size(s)) {
            const int64_t count = s->outputs - from < WIDTH ? s->outputs - from : WIDTH;
            memset(sums, 0, (size_t)(pixels * WIDTH) * sizeof(float));
            sum_taps(s, read + group * s->depth, panel, rows, sums);
            graft_panel_deliver(&end, pixels, group * s->outputs + from, count, sums);
        }
    }
}

static void run_part(const void *work, uint32_t part, uint32_t parts)
{
    const graft_kernel *kernel = work;
    const taps_state *s = kernel->state;
    float *sums = (float *)graft_program_place(kernel, s->sums) + part * s->block_sums;
    const graft_range own = graft_range_part(s->down.count, s->block_rows, part, parts);
    for (int64_t image = 0; image < s->images; image++) {
        for (int64_t y = own.from; y < own.to; y += s->block_rows) {
            const int64_t to = y + s->block_rows < own.to ? y + s->block_rows : own.to;
            run_block(kernel, image, (graft_range){y, to}, sums);
        }
    }
}

static void run_taps(const graft_kernel *kernel)
{
    graft_share(kernel->thread_count, run_part, kernel);
}

/* -------------------------------------------------------------------- build */

/* Columns beyond a group's last one are 0. */
static void fill_taps(const graft_kernel *kernel, const float *given, void *packed)
{
    const taps_state *s = kernel->state;
    const int64_t taps = s->down.kernel * s->along.kernel;
    float *to = packed;
    for (int64_t group = 0; group < s->groups; group++) {
        for (int64_t from = 0; from < s->outputs; from += WIDTH) {
            const int64_t count = s->outputs - from < WIDTH ? s->outputs - from : WIDTH;
            const float *filters = given + (group * s->outputs + from) * s->depth * taps;
            for (int64_t tap = 0; tap < taps; tap++) {
                for (int64_t k = 0; k < s->depth; k++, to += WIDTH) {
                    memset(to, 0, WIDTH * sizeof(float));
                    for (int64_t i = 0; i < count; i++) {
                        to[i] = filters[(i * s->depth + k) * taps + tap];
                    }
                }
            }
        }
    }
}

static taps_state plan_taps(const graft_kernel *kernel)
{
    const graft_signature *s = &kernel->signature;
    const graft_call call = {s->attrs, s->inputs, kernel->outputs};
    const graft_window windows[2] = {graft_window_of_conv(&call, 0),
                                     graft_window_of_conv(&call, 1)};
    /* An image of width 1 lies in memory as one of height 1. */
    const uint32_t along = windows[1].size * windows[1].count * windows[1].kernel == 1 ? 0 : 1;
    const int64_t groups = s->attrs[GRAFT_ATTR_conv_groups];
    taps_state plan = {
        .down = windows[1 - along],
        .along = windows[along],
        .images = s->inputs[IMAGE].dims[0],
        .groups = groups,
        .depth = s->inputs[FILTER].dims[1],
        .outputs = s->inputs[FILTER].dims[0] / groups,
        .activation = graft_signature_activation(s),
        .has_bias = s->op != GRAFT_OP_conv,
        .has_residual = s->op == GRAFT_OP_conv_bias_add,
    };
    plan.block_rows = plan.along.count >= BLOCK_PIXELS ? 1 : BLOCK_PIXELS / plan.along.count;
    plan.block_sums = plan.block_rows * plan.along.count * WIDTH;
    return plan;
}

graft_status graft_cpu_open_conv_taps(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    if (variant != 0 || !graft_signature_is_conv(s) || !graft_panel_takes(s) ||
        (s->const_mask >> FILTER & 1U) == 0 ||
        s->inputs[FILTER].dims[0] / s->attrs[GRAFT_ATTR_conv_groups] < LEAST_OUTPUTS ||
        !graft_cpu_conv_reaches_far(env, kernel)) {
        return GRAFT_UNSUPPORTED;
    }
    const taps_state plan = plan_taps(kernel);
    GRAFT_PASS(graft_program_plain(env, kernel, "taps:plain", run_taps, &plan, sizeof(plan)));
    if (kernel->dry) {
        return GRAFT_OK;
    }
    taps_state *state = kernel->state;
    const int64_t panels = (plan.outputs + WIDTH - 1) / WIDTH * plan.groups;
    /* A float more for each group: a filter that is read in other groups has another form. */
    const size_t packed = (size_t)(panels * panel_size(&plan) + plan.groups);
    GRAFT_PASS(graft_program_packed(env, kernel, FILTER, packed, fill_taps, &state->panels));
    state->sums = graft_program_workspace(kernel, (size_t)(kernel->thread_count * plan.block_sums));
    return GRAFT_OK;
}
