/* device_cpu_panels.c - products by a const matrix of our own: linear layers, the cells of
 * recurrent networks, and convolutions of 1x1 on small images, channels last, whose rows are pixels.
 *
 * Such a product takes what reading the matrix takes. So it is packed in panels of 64 columns,
 * which are read from begin to end; a panel's sums stay in registers, and bias, residual and
 * activation follow while they are near. "panels:ahead" fetches what it reads soon, for matrices
 * beyond the second-level cache; "panels:plain" does not, for the way from that cache is busy as it
 * is, and it is up to a sixth faster there. Several rows are multiplied as inside Winograd's
 * convolution, which fetches the next panel. Many rows are taken in blocks: without AVX-512 the
 * library packs the matrix in each run. There is nothing else in a run: the library's call alone
 * takes a tenth to a half of a microsecond, and longer in a network, where its objects have left
 * the caches since the last run. */
#include "cost/cpu/lanes.h"
#include "cost/cpu/panels.h"
#include "cost/cpu/program.h"
#include "cost/cpu/winograd.h"
#include "cost/plan/nest.h"
#include "graph/base/approximate.h"
#include "graph/base/share.h"

#include <math.h>
#include <string.h>

enum { LEFT = 0, RIGHT = 1, BIAS = 2, RESIDUAL = 3 };
enum { WIDTH = GRAFT_WINOGRAD_PANEL, ROWS_FEW = 16, BLOCK_ROWS = 64, ROWS_AHEAD = 8 };
enum { ALIGNMENT = 64 };

/* Of every image of a convolution with strides, the pixels that are read. */
typedef struct {
    int64_t images;
    int64_t rows; /* Of the result. */
    int64_t columns;
    int64_t row_step; /* In the image, in floats. */
    int64_t column_step;
    int64_t image_step;
} pixel_grid;

typedef struct {
    bool is_conv; /* Its filter's rows are the matrix' columns. */
    bool has_bias;
    bool has_residual;
    bool gathers; /* Pixels lie apart. */
    bool ahead;
    int64_t rows;
    int64_t depth;
    int64_t columns;
    int32_t activation;
    pixel_grid pixels;
    uint32_t panels; /* Operands. */
    uint32_t gathered;
} panels_state;

/* What a run reads and writes. */
typedef struct {
    const panels_state *state;
    const float *panels;
    const float *left; /* (rows, depth) */
    graft_panel_end end;
} panels_data;

/* ---------------------------------------------------------------------- run */

/* Rows of `width` sums, of which `count` count; of the result, `step` apart. */
typedef struct {
    const float *sums;
    int64_t rows;
    int64_t width;
    int64_t count;
    int64_t step;
} panel_rows;

/* What sums become on their way out; `residual` lies as `out` does. */
typedef struct {
    const float *bias;
    const float *residual;
    float most;
    bool biased;
    bool added;
    bool clamps; /* To 0..most. */
} panel_finish;

/* Of `count` sums, at most a vector, column `at` of a row on. */
LANES_INLINE lanes finish(const panel_finish *f, const float *sums, const float *residual,
                          int64_t at, int64_t count)
{
    lanes v = lanes_load(sums + at);
    v = f->biased ? v + lanes_load_some(f->bias + at, count) : v;
    v = f->added ? v + lanes_load_some(residual + at, count) : v;
    return f->clamps ? lanes_clamp(v, lanes_of(0.0F), lanes_of(f->most)) : v;
}

/* A last vector that is not whole overlaps the one before it; it is finished first, since the
 * residual may lie where the result goes. */
LANES_INLINE void deliver_rows(const panel_finish f, const panel_rows *rows, float *out)
{
    const float *residual = f.residual;
    const float *sums = rows->sums;
    const int64_t last = rows->count - LANES;
    for (int64_t row = 0; row < rows->rows; row++, sums += rows->width, out += rows->step) {
        if (last < 0) {
            const lanes few = finish(&f, sums, residual, 0, rows->count);
            memcpy(out, &few, (size_t)rows->count * sizeof(float));
        } else {
            const lanes end = finish(&f, sums, residual, last, LANES);
            for (int64_t i = 0; i < last; i += LANES) {
                lanes_store(out + i, finish(&f, sums, residual, i, LANES));
            }
            lanes_store(out + last, end);
        }
        residual += f.added ? rows->step : 0;
    }
}

/* Activations that are no bounds, in place. */
static void activate(int32_t activation, int64_t count, float *out)
{
    for (int64_t i = 0; i < count && activation == GRAFT_ACT_SIGMOID; i++) {
        out[i] = approximate_sigmoid(out[i]);
    }
    for (int64_t i = 0; i < count && activation == GRAFT_ACT_TANH; i++) {
        out[i] = approximate_tanh(out[i]);
    }
}

void graft_panel_deliver(const graft_panel_end *end, int64_t rows, int64_t width, int64_t from,
                         int64_t count, const float *sums)
{
    const panel_rows r = {sums, rows, width, count, end->step};
    panel_finish f = {.most = end->activation == GRAFT_ACT_RELU6 ? 6.0F : INFINITY};
    float *out = end->out + from;
    f.biased = end->bias != NULL;
    f.bias = f.biased ? end->bias + from : NULL;
    f.added = end->residual != NULL;
    f.residual = f.added ? end->residual + from : NULL;
    f.clamps = end->activation == GRAFT_ACT_RELU || end->activation == GRAFT_ACT_RELU6;
    if (f.biased && !f.added && f.clamps) { /* The rows of most networks, with nothing to ask. */
        f.biased = f.clamps = true;
        f.added = false;
        deliver_rows(f, &r, out);
    } else if (f.biased && !f.added) {
        deliver_rows(f, &r, out);
    } else {
        deliver_rows(f, &r, out);
    }
    for (int64_t row = 0; row < rows && end->activation > GRAFT_ACT_RELU6; row++) {
        activate(end->activation, count, out + row * end->step);
    }
}

/* One row by one panel; `ahead` rows of it are fetched beforehand. */
LANES_INLINE void multiply_row(const float *left, const float *panel, int64_t depth,
                               const int64_t ahead, float *sums)
{
    enum { VECTORS = WIDTH / LANES };
    lanes sum[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        sum[v] = lanes_of(0.0F);
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < depth; k++) {
        const float *row = panel + k * WIDTH;
        lanes a = lanes_of(left[k]);
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++) {
            if (ahead > 0) {
                __builtin_prefetch(row + ahead * WIDTH + v * LANES);
            }
            sum[v] = lanes_fused(a, lanes_load(row + v * LANES), sum[v]);
        }
    }
    for (int v = 0; v < VECTORS; v++) {
        lanes_store(sums + v * LANES, sum[v]);
    }
}

static void multiply_panel(const panels_state *p, const float *left, graft_range rows,
                           const float *panel, const float *next, float *sums)
{
    if (p->rows == 1 && p->ahead) {
        multiply_row(left, panel, p->depth, ROWS_AHEAD, sums);
    } else if (p->rows == 1) {
        multiply_row(left, panel, p->depth, 0, sums);
    } else {
        const graft_winograd_product product = {
            .left = left + rows.from * p->depth,
            .left_step = p->depth,
            .right = panel,
            .next = next,
            .out = sums,
            .rows = rows.to - rows.from,
            .depth = p->depth,
            .width = WIDTH,
        };
        graft_winograd_multiply(&product);
    }
}

/* The pixels that are read, one behind the other. */
static const float *gather_pixels(const panels_state *p, const float *image, float *gathered)
{
    const pixel_grid *g = &p->pixels;
    float *to = gathered;
    for (int64_t i = 0; i < g->images; i++) {
        for (int64_t row = 0; row < g->rows; row++) {
            for (int64_t column = 0; column < g->columns; column++, to += p->depth) {
                memcpy(to, image + i * g->image_step + row * g->row_step + column * g->column_step,
                       (size_t)p->depth * sizeof(float));
            }
        }
    }
    return gathered;
}

static void run_part(const void *context, uint32_t part, uint32_t parts)
{
    const panels_data *data = context;
    const panels_state *p = data->state;
    const graft_range own = graft_range_part(p->columns, WIDTH, part, parts);
    _Alignas(ALIGNMENT) float sums[BLOCK_ROWS * WIDTH];
    for (int64_t from = own.from; from < own.to; from += WIDTH) {
        const float *panel = data->panels + from * p->depth;
        bool is_last = from + WIDTH >= own.to;
        for (int64_t top = 0; top < p->rows; top += BLOCK_ROWS) {
            const bool ends = top + BLOCK_ROWS >= p->rows;
            const graft_range rows = {top, ends ? p->rows : top + BLOCK_ROWS};
            const float *next = is_last || !ends ? panel : panel + WIDTH * p->depth;
            multiply_panel(p, data->left, rows, panel, next, sums);
            graft_panel_end end = data->end;
            end.out += top * p->columns;
            end.residual += end.residual == NULL ? 0 : top * p->columns;
            graft_panel_deliver(&end, rows.to - rows.from, WIDTH, from,
                                is_last ? own.to - from : WIDTH, sums);
        }
    }
}

static void run_panels(const graft_kernel *kernel)
{
    const panels_state *p = kernel->state;
    const panels_data data = {
        .state = p,
        .panels = graft_program_place(kernel, p->panels),
        .left = p->gathers
                    ? gather_pixels(p, kernel->in[LEFT], graft_program_place(kernel, p->gathered))
                    : kernel->in[LEFT],
        .end = {.bias = p->has_bias ? kernel->in[BIAS] : NULL,
                .residual = p->has_residual ? kernel->in[RESIDUAL] : NULL,
                .out = kernel->out[0],
                .step = p->columns,
                .activation = p->activation},
    };
    graft_share(kernel->thread_count, run_part, &data);
}

/* -------------------------------------------------------------------- build */

/* Columns beyond the last one are 0. */
static void fill_panels(const graft_kernel *kernel, const float *given, void *packed)
{
    const panels_state *p = kernel->state;
    float *to = packed;
    for (int64_t from = 0; from < p->columns; from += WIDTH) {
        int64_t count = p->columns - from < WIDTH ? p->columns - from : WIDTH;
        for (int64_t k = 0; k < p->depth; k++, to += WIDTH) {
            memset(to, 0, WIDTH * sizeof(float));
            for (int64_t i = 0; i < count; i++) {
                to[i] = p->is_conv ? given[(from + i) * p->depth + k]
                                   : given[k * p->columns + from + i];
            }
        }
    }
}

static bool is_row_major(const graft_signature *s)
{
    return s->in_layouts[LEFT] == GRAFT_LAYOUT_ROW && s->in_layouts[RIGHT] == GRAFT_LAYOUT_ROW &&
           s->out_layouts[0] == GRAFT_LAYOUT_ROW;
}

/* All but the operands. */
static bool plan_product(const graft_signature *s, panels_state *p)
{
    const graft_shape *left = &s->inputs[LEFT];
    const graft_shape *right = &s->inputs[RIGHT];
    p->has_bias = s->op == GRAFT_OP_matmul_bias;
    if ((s->op != GRAFT_OP_matmul && !p->has_bias) || !is_row_major(s) || left->rank < 2 ||
        right->rank != 2) {
        return false;
    }
    p->depth = right->dims[0];
    p->columns = right->dims[1];
    p->rows = (int64_t)graft_shape_elements(left) / p->depth;
    p->activation = graft_signature_activation(s);
    return true;
}

bool graft_panel_takes(const graft_signature *s)
{
    bool last = s->in_layouts[LEFT] == GRAFT_LAYOUT_NHWC && s->out_layouts[0] == GRAFT_LAYOUT_NHWC;
    return last &&
           (s->op != GRAFT_OP_conv_bias_add || (s->in_layouts[RESIDUAL] == GRAFT_LAYOUT_NHWC &&
                                                (s->const_mask >> RESIDUAL & 1U) == 0));
}

/* One tap, one group, no padding. */
static bool is_pointwise(const graft_signature *s)
{
    const int32_t *a = s->attrs;
    const graft_shape *filter = &s->inputs[RIGHT];
    bool padded = false;
    for (uint32_t i = 0; i < 4; i++) {
        padded = padded || a[GRAFT_ATTR_conv_pad_top + i] != 0;
    }
    return filter->dims[2] == 1 && filter->dims[3] == 1 && a[GRAFT_ATTR_conv_groups] == 1 &&
           !padded;
}

static bool plan_conv(const graft_signature *s, const graft_shape *out, panels_state *p)
{
    const graft_shape *image = &s->inputs[LEFT];
    p->is_conv = graft_signature_is_conv(s);
    if (!p->is_conv || !graft_panel_takes(s) || !is_pointwise(s)) {
        return false;
    }
    p->has_bias = s->op != GRAFT_OP_conv;
    p->has_residual = s->op == GRAFT_OP_conv_bias_add;
    p->depth = image->dims[1];
    p->columns = out->dims[1];
    p->activation = graft_signature_activation(s);
    p->pixels = (pixel_grid){
        .images = out->dims[0],
        .rows = out->dims[2],
        .columns = out->dims[3],
        .row_step = s->attrs[GRAFT_ATTR_conv_stride_h] * image->dims[3] * p->depth,
        .column_step = s->attrs[GRAFT_ATTR_conv_stride_w] * p->depth,
        .image_step = (int64_t)image->dims[2] * image->dims[3] * p->depth,
    };
    p->rows = p->pixels.images * p->pixels.rows * p->pixels.columns;
    p->gathers = s->attrs[GRAFT_ATTR_conv_stride_h] != 1 || s->attrs[GRAFT_ATTR_conv_stride_w] != 1;
    return p->rows <= BLOCK_ROWS;
}

static graft_status open_panels(graft_env *env, graft_kernel *kernel, const panels_state *plan)
{
    GRAFT_PASS(graft_program_plain(env, kernel, plan->ahead ? "panels:ahead" : "panels:plain",
                                   run_panels, plan, sizeof(*plan)));
    if (kernel->dry) {
        return GRAFT_OK;
    }
    panels_state *state = kernel->state;
    int64_t panels = (plan->columns + WIDTH - 1) / WIDTH;
    GRAFT_PASS(graft_program_packed(env, kernel, RIGHT, (size_t)(panels * WIDTH * plan->depth),
                                    fill_panels, &state->panels));
    if (plan->gathers) {
        state->gathered = graft_program_workspace(kernel, (size_t)(plan->rows * plan->depth));
    }
    return GRAFT_OK;
}

static bool plan_panels(const graft_kernel *kernel, panels_state *plan)
{
    const graft_signature *s = &kernel->signature;
    memset(plan, 0, sizeof(*plan));
    return (plan_product(s, plan) || plan_conv(s, &kernel->outputs[0], plan)) &&
           (s->const_mask >> RIGHT & 1U) != 0 && plan->columns >= WIDTH;
}

/* Of few rows, and all that are pixels. */
graft_status graft_cpu_open_panels(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    panels_state plan;
    if (!plan_panels(kernel, &plan) || (!plan.is_conv && plan.rows > ROWS_FEW) ||
        variant > (plan.rows == 1 ? 1U : 0U)) {
        return GRAFT_UNSUPPORTED;
    }
    plan.ahead = variant == 1;
    return open_panels(env, kernel, &plan);
}

graft_status graft_cpu_open_tall_panels(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    panels_state plan;
    const bool fits =
        variant == 0 && plan_panels(kernel, &plan) && !plan.is_conv && plan.rows > ROWS_FEW;
    return fits ? open_panels(env, kernel, &plan) : GRAFT_UNSUPPORTED;
}
