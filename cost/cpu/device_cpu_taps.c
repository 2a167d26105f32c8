/* device_cpu_taps.c - convolutions of our own, channels last, a tap after the other: a block of
 * output rows stays near while every tap that meets the image adds its product, pixels by channels
 * times channels by outputs. What a window reads outside of the image costs nothing, so this is for
 * dilated convolutions whose windows lie there in large part, as those of DeepLab do (Chen et al.,
 * IEEE TPAMI 40, 2018, section 3.1), and for which the library has no loops without AVX-512; and for groups of
 * channels, as ShuffleNet's, with which these are slow. The filter is packed as in
 * device_cpu_panels.c, tap by tap; a group's last panel has as many vectors as it needs. */
#include "cost/cpu/lanes.h"
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
    int64_t depth;         /* Channels of a group that are read, */
    int64_t outputs;       /* and made. */
    int64_t outputs_whole; /* In whole vectors. */
    int64_t panels_each;   /* Of a group. */
    int64_t blocks;        /* Of an image. */
    int64_t block_rows;    /* Of the output, at a time. */
    int64_t block_sums;    /* Floats. */
    bool flat;             /* One tap, and pixels that are read lie as those that are made do. */
    int32_t activation;
    bool has_bias;
    bool has_residual;
    uint32_t panels; /* Operands. */
    uint32_t sums;   /* A block's for each thread. */
} taps_state;

/* Columns of the panel that begins at output `from` of a group. */
static int64_t panel_width(const taps_state *s, int64_t from)
{
    const int64_t left = (s->outputs - from + LANES - 1) / LANES * LANES;
    return left < WIDTH ? left : WIDTH;
}

/* Floats of a group's panels before output `from`: all of them at the end. */
static int64_t panel_place(const taps_state *s, int64_t from)
{
    return s->down.kernel * s->along.kernel * s->depth * from;
}

/* ---------------------------------------------------------------------- run */

/* What is computed at a time: rows of an image by one panel. */
typedef struct {
    const taps_state *state;
    const float *image; /* From the group's first channel on. */
    const float *panel;
    graft_range rows;
    int64_t width;
    float *sums;
} taps_block;

/* A tap's product, for `pixels` of the output from sum `at` on. */
static void multiply(const taps_block *b, const float *left, const float *tap, int64_t at,
                     int64_t pixels)
{
    const taps_state *s = b->state;
    const graft_winograd_product product = {
        .left = left,
        .left_step = s->along.stride * s->groups * s->depth,
        .right = tap,
        .next = tap,
        .out = b->sums + at * b->width,
        .rows = pixels,
        .depth = s->depth,
        .width = b->width,
        .adds = !s->flat,
    };
    graft_winograd_multiply(&product);
}

/* Adds what column `j` of the window reads of one row of the image, for the row `y` of the block. */
static void add_tap(const taps_block *b, const float *row, const float *tap, int64_t j, int64_t y)
{
    const taps_state *s = b->state;
    int64_t pixels[2];
    graft_window_positions(&s->along, j, pixels);
    if (pixels[0] < pixels[1]) {
        const int64_t first = graft_window_at(&s->along, pixels[0], j);
        multiply(b, row + first * s->groups * s->depth, tap, y * s->along.count + pixels[0],
                 pixels[1] - pixels[0]);
    }
}

static void sum_taps(const taps_block *b)
{
    const taps_state *s = b->state;
    const int64_t step = s->along.size * s->groups * s->depth;
    const int64_t pixels = (b->rows.to - b->rows.from) * s->along.count;
    if (s->flat) {
        multiply(b, b->image + b->rows.from * step, b->panel, 0, pixels);
        return;
    }
    memset(b->sums, 0, (size_t)(pixels * b->width) * sizeof(float));
    for (int64_t i = 0; i < s->down.kernel; i++) {
        for (int64_t j = 0; j < s->along.kernel; j++) {
            const float *tap = b->panel + (i * s->along.kernel + j) * s->depth * b->width;
            for (int64_t y = b->rows.from; y < b->rows.to; y++) {
                const int64_t at = graft_window_at(&s->down, y, i);
                if (at >= 0 && at < s->down.size) {
                    add_tap(b, b->image + at * step, tap, j, y - b->rows.from);
                }
            }
        }
    }
}

/* One of all blocks of rows, each by one of all panels. */
static void run_block(const graft_kernel *kernel, int64_t number, float *sums)
{
    const taps_state *s = kernel->state;
    const int64_t made = s->groups * s->outputs;
    const int64_t from = number % s->panels_each * WIDTH;
    const int64_t group = number / s->panels_each % s->groups;
    const int64_t block = number / s->panels_each / s->groups;
    const int64_t image = block / s->blocks;
    const int64_t top = block % s->blocks * s->block_rows;
    const int64_t bottom =
        top + s->block_rows < s->down.count ? top + s->block_rows : s->down.count;
    const int64_t read = s->groups * s->depth;
    const int64_t first = (image * s->down.count + top) * s->along.count * made;
    const float *panels = graft_program_place(kernel, s->panels);
    const taps_block b = {
        .state = s,
        .image = kernel->in[IMAGE] + image * s->down.size * s->along.size * read + group * s->depth,
        .panel = panels + group * panel_place(s, s->outputs_whole) + panel_place(s, from),
        .rows = {top, bottom},
        .width = panel_width(s, from),
        .sums = sums,
    };
    const graft_panel_end end = {
        .bias = s->has_bias ? kernel->in[BIAS] : NULL,
        .residual = s->has_residual ? kernel->in[RESIDUAL] + first : NULL,
        .out = kernel->out[0] + first,
        .step = made,
        .activation = s->activation,
    };
    sum_taps(&b);
    graft_panel_deliver(&end, (bottom - top) * s->along.count, b.width, group * s->outputs + from,
                        s->outputs - from < WIDTH ? s->outputs - from : WIDTH, sums);
}

static void run_part(const void *work, uint32_t part, uint32_t parts)
{
    const graft_kernel *kernel = work;
    const taps_state *s = kernel->state;
    float *sums = (float *)graft_program_place(kernel, s->sums) + part * s->block_sums;
    const graft_range own =
        graft_range_part(s->images * s->blocks * s->groups * s->panels_each, 1, part, parts);
    for (int64_t number = own.from; number < own.to; number++) {
        run_block(kernel, number, sums);
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
            const int64_t width = panel_width(s, from);
            const float *filters = given + (group * s->outputs + from) * s->depth * taps;
            for (int64_t row = 0; row < taps * s->depth; row++, to += width) {
                const float *column = filters + row % s->depth * taps + row / s->depth;
                for (int64_t i = 0; i < width; i++) {
                    to[i] = from + i < s->outputs ? column[i * s->depth * taps] : 0.0F;
                }
            }
        }
    }
}

static bool is_flat(const graft_window *w)
{
    return w->kernel == 1 && w->stride == 1 && w->count == w->size && graft_window_at(w, 0, 0) == 0;
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
    plan.outputs_whole = (plan.outputs + LANES - 1) / LANES * LANES;
    plan.panels_each = (plan.outputs + WIDTH - 1) / WIDTH;
    plan.block_rows = plan.along.count >= BLOCK_PIXELS ? 1 : BLOCK_PIXELS / plan.along.count;
    plan.blocks = (plan.down.count + plan.block_rows - 1) / plan.block_rows;
    plan.block_sums = plan.block_rows * plan.along.count * WIDTH;
    plan.flat = is_flat(&plan.down) && is_flat(&plan.along);
    return plan;
}

static graft_status open_taps(graft_env *env, graft_kernel *kernel, const taps_state *plan)
{
    GRAFT_PASS(graft_program_plain(env, kernel, "taps:plain", run_taps, plan, sizeof(*plan)));
    if (kernel->dry) {
        return GRAFT_OK;
    }
    taps_state *state = kernel->state;
    /* A float more for each group: a filter that is read in other groups has another form. */
    const int64_t packed = plan->groups * (panel_place(plan, plan->outputs_whole) + 1);
    GRAFT_PASS(
        graft_program_packed(env, kernel, FILTER, (size_t)packed, fill_taps, &state->panels));
    state->sums =
        graft_program_workspace(kernel, (size_t)(kernel->thread_count * plan->block_sums));
    return GRAFT_OK;
}

static bool is_for_taps(const graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    return variant == 0 && graft_signature_is_conv(s) && graft_panel_takes(s) &&
           (s->const_mask >> FILTER & 1U) != 0;
}

/* Where the library lacks loops. */
graft_status graft_cpu_open_conv_taps(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    if (!is_for_taps(kernel, variant)) {
        return GRAFT_UNSUPPORTED;
    }
    const taps_state plan = plan_taps(kernel);
    return plan.outputs >= LEAST_OUTPUTS && graft_cpu_conv_reaches_far(env, kernel)
               ? open_taps(env, kernel, &plan)
               : GRAFT_UNSUPPORTED;
}

/* Groups of channels, for which it has slow ones. */
graft_status graft_cpu_open_conv_groups(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    if (!is_for_taps(kernel, variant)) {
        return GRAFT_UNSUPPORTED;
    }
    const taps_state plan = plan_taps(kernel);
    return plan.groups > 1 && plan.outputs >= LANES ? open_taps(env, kernel, &plan)
                                                    : GRAFT_UNSUPPORTED;
}
