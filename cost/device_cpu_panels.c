/* device_cpu_panels.c - products of a few rows by a const matrix of our own: linear layers at batch
 * 1, and the cells of recurrent networks.
 *
 * Such a product takes what reading the matrix takes. So it is packed in panels of 64 columns,
 * which are read from begin to end; a panel's sums stay in registers, and bias and activation
 * follow while they are near. "panels:ahead" fetches what it reads soon, for matrices beyond the
 * second-level cache; "panels:plain" does not, for the way from that cache is busy as it is, and it
 * is up to a sixth faster there. Several rows are multiplied as inside Winograd's convolution,
 * which fetches the next panel. There is nothing else in a run: the library's call alone takes a
 * tenth to a half of a microsecond, and longer in a network, where its objects have left the caches
 * since the last run. */
#include "cost/approximate.h"
#include "cost/lanes.h"
#include "cost/program.h"
#include "cost/winograd.h"

#include <stdlib.h>
#include <string.h>

enum { LEFT = 0, RIGHT = 1, BIAS = 2 };
enum { WIDTH = GRAFT_WINOGRAD_PANEL, ROWS_MOST = 16, ROWS_AHEAD = 8, ALIGNMENT = 64 };

typedef struct {
    bool has_bias;
    bool ahead;
    int64_t rows;
    int64_t depth;
    int64_t columns;
    int32_t activation;
    uint32_t panels; /* Operand. */
} panels_state;

/* ---------------------------------------------------------------------- run */

/* In place, over `count` sums. */
static void activate(int32_t activation, int64_t count, float *sums)
{
    switch (activation) {
    case GRAFT_ACT_RELU:
        for (int64_t i = 0; i < count; i++) {
            sums[i] = sums[i] > 0.0F ? sums[i] : 0.0F;
        }
        break;
    case GRAFT_ACT_RELU6:
        for (int64_t i = 0; i < count; i++) {
            float raised = sums[i] > 0.0F ? sums[i] : 0.0F;
            sums[i] = raised < 6.0F ? raised : 6.0F;
        }
        break;
    case GRAFT_ACT_SIGMOID:
        for (int64_t i = 0; i < count; i++) {
            sums[i] = approximate_sigmoid(sums[i]);
        }
        break;
    case GRAFT_ACT_TANH:
        for (int64_t i = 0; i < count; i++) {
            sums[i] = approximate_tanh(sums[i]);
        }
        break;
    default:
        break;
    }
}

/* `sums` has rows of WIDTH, of which `count` are the columns from `from` on. */
static void deliver(const panels_state *p, const float *bias, int64_t from, int64_t count,
                    float *sums, float *out)
{
    for (int64_t row = 0; row < p->rows; row++) {
        float *row_sums = sums + row * WIDTH;
        for (int64_t i = 0; bias != NULL && i < count; i++) {
            row_sums[i] += bias[from + i];
        }
        activate(p->activation, count, row_sums);
        memcpy(out + row * p->columns + from, row_sums, (size_t)count * sizeof(float));
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

static void multiply_panel(const panels_state *p, const float *left, const float *panel,
                           const float *next, float *sums)
{
    if (p->rows == 1 && p->ahead) {
        multiply_row(left, panel, p->depth, ROWS_AHEAD, sums);
    } else if (p->rows == 1) {
        multiply_row(left, panel, p->depth, 0, sums);
    } else {
        const graft_winograd_product product = {
            .left = left,
            .left_step = p->depth,
            .right = panel,
            .next = next,
            .out = sums,
            .rows = p->rows,
            .depth = p->depth,
            .width = WIDTH,
        };
        graft_winograd_multiply(&product);
    }
}

static void run_panels(const graft_kernel *kernel)
{
    const panels_state *p = kernel->state;
    const float *panels = graft_program_place(kernel, p->panels);
    const float *bias = p->has_bias ? kernel->in[BIAS] : NULL;
    _Alignas(ALIGNMENT) float sums[ROWS_MOST * WIDTH];
    for (int64_t from = 0; from < p->columns; from += WIDTH) {
        const float *panel = panels + from * p->depth;
        bool is_last = from + WIDTH >= p->columns;
        const float *next = is_last ? panel : panel + WIDTH * p->depth;
        multiply_panel(p, kernel->in[LEFT], panel, next, sums);
        deliver(p, bias, from, is_last ? p->columns - from : WIDTH, sums, kernel->out[0]);
    }
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
            memcpy(to, given + k * p->columns + from, (size_t)count * sizeof(float));
        }
    }
}

static bool is_row_major(const graft_signature *s)
{
    return s->in_layouts[LEFT] == GRAFT_LAYOUT_ROW && s->in_layouts[RIGHT] == GRAFT_LAYOUT_ROW &&
           s->out_layouts[0] == GRAFT_LAYOUT_ROW;
}

/* All but the operand. */
static bool plan_panels(const graft_kernel *kernel, panels_state *p)
{
    const graft_signature *s = &kernel->signature;
    const graft_shape *left = &s->inputs[LEFT];
    const graft_shape *right = &s->inputs[RIGHT];
    p->has_bias = s->op == GRAFT_OP_matmul_bias;
    if ((s->op != GRAFT_OP_matmul && !p->has_bias) || !is_row_major(s) || left->rank < 2 ||
        right->rank != 2 || (s->const_mask >> RIGHT & 1u) == 0) {
        return false;
    }
    p->depth = right->dims[0];
    p->columns = right->dims[1];
    p->rows = (int64_t)graft_shape_elements(left) / p->depth;
    p->activation = p->has_bias ? s->attrs[GRAFT_ATTR_matmul_bias_activation] : GRAFT_ACT_NONE;
    return p->rows <= ROWS_MOST && p->columns >= WIDTH;
}

graft_status graft_cpu_open_panels(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    panels_state plan;
    memset(&plan, 0, sizeof(plan));
    if (!plan_panels(kernel, &plan) || variant > (plan.rows == 1 ? 1U : 0U)) {
        return GRAFT_UNSUPPORTED;
    }
    plan.ahead = variant == 1;
    (void)snprintf(kernel->name, sizeof(kernel->name), "panels:%s", plan.ahead ? "ahead" : "plain");
    if (kernel->dry) {
        return GRAFT_OK;
    }
    panels_state *state = malloc(sizeof(*state));
    if (state == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a kernel");
    }
    *state = plan;
    kernel->state = state;
    kernel->plain = run_panels;
    int64_t panels = (plan.columns + WIDTH - 1) / WIDTH;
    return graft_program_packed(env, kernel, RIGHT, (size_t)(panels * WIDTH * plan.depth),
                                fill_panels, &state->panels);
}
