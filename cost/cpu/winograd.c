/* winograd.c - Winograd's convolution: what it can run, and in which order (see winograd.h). */
#include "cost/cpu/winograd.h"

#include "cost/cpu/lanes.h"
#include "cost/plan/nest.h"
#include "graph/base/share.h"

#include <math.h>

enum { IMAGE = 0, FILTER = 1, RESIDUAL = 3 };
enum { LINE = 16, ALIGNMENT = 64 };

/* Patches and products of a strip, in floats, that the second-level cache holds beside the filter
 * that streams through it; the least patches, so that the filter is not read too often; and a
 * filter that it holds. */
enum { STRIP_COUNT = 5 << 16, LEAST_STRIP = 49, FILTER_COUNT = 1 << 19 };

/* -------------------------------------------------------------------- planning */

static int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

/* An odd number of cache lines, so that the elements of a patch do not all fall into the same lines
 * of the cache. */
static int64_t odd_lines(int64_t count) { return ((count + LINE - 1) / LINE | 1) * LINE; }

static graft_winograd_image image_of(const graft_shape *shape, uint32_t layout)
{
    graft_winograd_image image = {
        .channels = shape->dims[1], .height = shape->dims[2], .width = shape->dims[3]};
    bool blocked = layout == GRAFT_LAYOUT_BLOCKED;
    image.pixel_step = blocked ? GRAFT_LAYOUT_BLOCK : image.channels;
    image.row_step = image.width * image.pixel_step;
    image.block_step = blocked ? image.height * image.row_step : GRAFT_LAYOUT_BLOCK;
    image.batch_step = image.channels * image.height * image.width;
    return image;
}

static bool is_image_layout(uint32_t layout)
{
    return layout == GRAFT_LAYOUT_NHWC || layout == GRAFT_LAYOUT_BLOCKED;
}

/* Whether layouts, types and operands are what this can read. */
static bool operands_fit(const graft_signature *s, const graft_shape *output)
{
    bool alike = s->op != GRAFT_OP_conv_bias_add || s->in_layouts[RESIDUAL] == s->out_layouts[0];
    bool real = output->dtype == GRAFT_DTYPE_F32;
    for (uint32_t k = 0; k < s->input_count; k++) {
        real = real && s->inputs[k].dtype == GRAFT_DTYPE_F32;
    }
    return alike && real && (s->const_mask >> FILTER & 1U) != 0 &&
           (s->const_mask >> RESIDUAL & 1U) == 0 && is_image_layout(s->in_layouts[IMAGE]) &&
           is_image_layout(s->out_layouts[0]) && graft_shape_elements(output) > 0 &&
           s->inputs[IMAGE].dims[1] > 0;
}

static bool window_fits(const graft_signature *s)
{
    const int32_t *a = s->attrs;
    const graft_shape *filter = &s->inputs[FILTER];
    return filter->dims[2] == GRAFT_WINOGRAD_FILTER && filter->dims[3] == GRAFT_WINOGRAD_FILTER &&
           a[GRAFT_ATTR_conv_stride_h] == 1 && a[GRAFT_ATTR_conv_stride_w] == 1 &&
           a[GRAFT_ATTR_conv_dilation_h] == 1 && a[GRAFT_ATTR_conv_dilation_w] == 1 &&
           a[GRAFT_ATTR_conv_groups] == 1;
}

static bool set_activation(const graft_signature *s, graft_winograd *plan)
{
    int32_t activation = graft_signature_activation(s);
    plan->low = activation == GRAFT_ACT_NONE ? -INFINITY : 0.0F;
    plan->high = activation == GRAFT_ACT_RELU6 ? 6.0F : INFINITY;
    return activation == GRAFT_ACT_NONE || activation == GRAFT_ACT_RELU ||
           activation == GRAFT_ACT_RELU6;
}

/* Threads share out strips where there are enough, or where each can hold the whole filter in its
 * cache; else the panels of each strip, so that each reads a part of the filter. */
static void plan_strips(graft_winograd *plan)
{
    int64_t elements = (int64_t)plan->side * plan->side;
    int64_t width =
        plan->out.channels > GRAFT_WINOGRAD_HALF ? GRAFT_WINOGRAD_PANEL : GRAFT_WINOGRAD_HALF;
    int64_t most = STRIP_COUNT / elements / (plan->patch_channels + width);
    most = most < LEAST_STRIP ? LEAST_STRIP : most;
    int64_t strips = (plan->tile_count + most - 1) / most;
    plan->by_strips = strips >= 2 * (int64_t)plan->thread_count ||
                      plan->out.channels <= width * (plan->thread_count - 1) ||
                      graft_winograd_filter_count(plan) <= FILTER_COUNT;
    strips = plan->by_strips ? round_up(strips, plan->thread_count) : strips;
    plan->strip = (plan->tile_count + strips - 1) / strips; /* Shared out evenly. */
    plan->patch_step = odd_lines(plan->strip * plan->patch_channels);
    plan->product_step = odd_lines(plan->strip * width);
}

bool graft_winograd_plan(const graft_signature *signature, const graft_shape *output, uint32_t tile,
                         uint32_t thread_count, graft_winograd *plan)
{
    const graft_signature *s = signature;
    if (!graft_signature_is_conv(s) || !operands_fit(s, output) || !window_fits(s) ||
        !set_activation(s, plan)) {
        return false;
    }
    plan->tile = tile;
    plan->thread_count = thread_count;
    plan->side = tile + 2;
    plan->pad_top = s->attrs[GRAFT_ATTR_conv_pad_top];
    plan->pad_left = s->attrs[GRAFT_ATTR_conv_pad_left];
    plan->in = image_of(&s->inputs[IMAGE], s->in_layouts[IMAGE]);
    plan->out = image_of(output, s->out_layouts[0]);
    plan->tiles_high = (plan->out.height + tile - 1) / tile;
    plan->tiles_wide = (plan->out.width + tile - 1) / tile;
    plan->tile_count = output->dims[0] * plan->tiles_high * plan->tiles_wide;
    plan->patch_channels = round_up(plan->in.channels, LANES);
    plan_strips(plan);
    return true;
}

/* --------------------------------------------------------------------- packing */

/* Outputs in whole and half panels. */
static int64_t panel_width(const graft_winograd *plan, int64_t from)
{
    return plan->out.channels - from > GRAFT_WINOGRAD_HALF ? GRAFT_WINOGRAD_PANEL
                                                           : GRAFT_WINOGRAD_HALF;
}

size_t graft_winograd_filter_count(const graft_winograd *plan)
{
    return (size_t)(round_up(plan->out.channels, GRAFT_WINOGRAD_HALF) * plan->in.channels *
                    (int64_t)plan->side * plan->side);
}

size_t graft_winograd_work_bytes(const graft_winograd *plan)
{
    const int64_t threads = plan->thread_count;
    return (size_t)((int64_t)plan->side * plan->side *
                    ((plan->by_strips ? threads : 1) * plan->patch_step +
                     threads * plan->product_step)) *
           sizeof(float);
}

/* As (panel, element, channel, output within the panel): the order in which a run reads it. Outputs
 * beyond the last are 0. */
void graft_winograd_pack(const graft_winograd *plan, const float *filter, float *packed)
{
    int64_t elements = (int64_t)plan->side * plan->side;
    memset(packed, 0, graft_winograd_filter_count(plan) * sizeof(float));
    for (int64_t from = 0; from < plan->out.channels; from += GRAFT_WINOGRAD_PANEL) {
        int64_t width = panel_width(plan, from);
        float *panel = packed + from * plan->in.channels * elements;
        for (int64_t o = 0; o < width && from + o < plan->out.channels; o++) {
            for (int64_t c = 0; c < plan->in.channels; c++) {
                float g[GRAFT_WINOGRAD_SIDE * GRAFT_WINOGRAD_SIDE];
                graft_winograd_transform_filter(
                    plan->tile, filter + ((from + o) * plan->in.channels + c) * 9, g);
                for (int64_t e = 0; e < elements; e++) {
                    panel[(e * plan->in.channels + c) * width + o] = g[e];
                }
            }
        }
    }
}

/* --------------------------------------------------------------------- running */

static void multiply_panel(const graft_winograd *plan, const graft_winograd_data *data,
                           const graft_winograd_panel *panel, const float *patches, float *products)
{
    int64_t elements = (int64_t)plan->side * plan->side;
    int64_t filter_step = plan->in.channels * panel->width;
    const float *filter = data->filter + panel->from * plan->in.channels * elements;
    const float *end = data->filter + graft_winograd_filter_count(plan);
    for (int64_t e = 0; e < elements; e++) {
        graft_winograd_product product = {
            .left = patches + e * plan->patch_step,
            .left_step = plan->patch_channels,
            .right = filter + e * filter_step,
            .next = filter + (e + 1) * filter_step,
            .rows = panel->count,
            .depth = plan->in.channels,
            .width = panel->width,
        };
        product.out = products + e * plan->product_step;
        product.next = product.next + filter_step > end ? data->filter : product.next;
        graft_winograd_multiply(&product);
    }
}

/* What threads share: one strip by turns, or all strips. */
typedef struct {
    const graft_winograd *plan;
    const graft_winograd_data *data;
    graft_winograd_panel strip;
    float *patches;
    float *products; /* Of the first thread. */
} winograd_work;

static float *own_products(const winograd_work *w, uint32_t thread)
{
    const graft_winograd *plan = w->plan;
    return w->products + (int64_t)plan->side * plan->side * plan->product_step * thread;
}

/* Patches [own.from, own.to) of the strip. */
static void transform_patches(const winograd_work *w, graft_range own)
{
    graft_winograd_transform_in(w->plan, w->data->image, w->strip.first + own.from,
                                own.to - own.from, w->patches + own.from * w->plan->patch_channels);
}

static void transform_part(const void *work, uint32_t part, uint32_t parts)
{
    const winograd_work *w = work;
    transform_patches(w, graft_range_part(w->strip.count, 1, part, parts));
}

/* Outputs [own.from, own.to) of the strip, which begin with a panel. */
static void multiply_panels(const winograd_work *w, graft_range own, float *products)
{
    graft_winograd_panel panel = w->strip;
    for (panel.from = own.from; panel.from < own.to; panel.from += panel.width) {
        panel.width = panel_width(w->plan, panel.from);
        multiply_panel(w->plan, w->data, &panel, w->patches, products);
        graft_winograd_transform_out(w->plan, w->data, &panel, products);
    }
}

static void multiply_part(const void *work, uint32_t part, uint32_t parts)
{
    const winograd_work *w = work;
    multiply_panels(w, graft_range_part(w->plan->out.channels, GRAFT_WINOGRAD_PANEL, part, parts),
                    own_products(w, part));
}

static void set_strip(winograd_work *w, int64_t first)
{
    const int64_t left = w->plan->tile_count - first;
    w->strip.first = first;
    w->strip.count = left < w->plan->strip ? left : w->plan->strip;
}

/* Every so many strips, one after the other. */
static void run_strips(const void *work, uint32_t part, uint32_t parts)
{
    winograd_work w = *(const winograd_work *)work;
    const graft_winograd *plan = w.plan;
    w.patches += (int64_t)plan->side * plan->side * plan->patch_step * part;
    for (int64_t first = plan->strip * part; first < plan->tile_count;
         first += plan->strip * parts) {
        set_strip(&w, first);
        transform_patches(&w, (graft_range){0, w.strip.count});
        multiply_panels(&w, (graft_range){0, plan->out.channels}, own_products(&w, part));
    }
}

void graft_winograd_run(const graft_winograd *plan, const graft_winograd_data *data)
{
    const int threads = (int)plan->thread_count;
    winograd_work w = {.plan = plan, .data = data, .patches = data->work};
    w.products = data->work + (int64_t)plan->side * plan->side * plan->patch_step *
                                  (plan->by_strips ? threads : 1);
    if (plan->by_strips) {
        graft_share(threads, run_strips, &w);
        return;
    }
    for (int64_t first = 0; first < plan->tile_count; first += plan->strip) {
        set_strip(&w, first);
        graft_share(threads, transform_part, &w);
        graft_share(threads, multiply_part, &w);
    }
}
