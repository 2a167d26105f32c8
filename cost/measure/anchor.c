/* anchor.c - the anchor of a measurement (see anchor.h). */
#include "cost/measure/anchor.h"

#include "cost/cpu/winograd.h"
#include "cost/measure/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A product of (ROWS, DEPTH) by (DEPTH, WIDTH): 28 kB, 0.2 million operations, PRODUCTS times. */
enum { ROWS = 24, DEPTH = 64, WIDTH = GRAFT_WINOGRAD_PANEL, PRODUCTS = 8, ALIGNMENT = 64 };
enum { LOOKS = 8192, QUIET_PART = 16, POLLS = 20, LEAST_QUIET = 5, MORE_SLICES = 3 };

/* A look is quiet when the anchor took at most this much longer than recorded. */
static const double quiet_factor = 0.92;

struct graft_anchor {
    float *operands;
    double reference_ns;
    double samples[LOOKS];
};

void graft_anchor_signature(graft_signature *signature)
{
    memset(signature, 0, sizeof(*signature));
    signature->op = GRAFT_COST_FACTOR;
    signature->attrs[0] = GRAFT_COST_ANCHOR;
}

graft_status graft_anchor_open(graft_env *env, graft_anchor **anchor)
{
    enum { COUNT = ROWS * DEPTH + DEPTH * WIDTH + ROWS * WIDTH };
    graft_anchor *a = calloc(1, sizeof(*a));
    float *operands = aligned_alloc(ALIGNMENT, COUNT * sizeof(float));
    if (a == NULL || operands == NULL) {
        free(a);
        free(operands);
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for measuring");
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        operands[i] = 1.0F;
    }
    a->operands = operands;
    *anchor = a;
    return GRAFT_OK;
}

void graft_anchor_close(graft_anchor *anchor)
{
    if (anchor != NULL) {
        free(anchor->operands);
        free(anchor);
    }
}

static double time_anchor(const graft_anchor *anchor)
{
    const graft_winograd_product product = {
        .left = anchor->operands,
        .left_step = DEPTH,
        .right = anchor->operands + ROWS * DEPTH,
        .next = anchor->operands + ROWS * DEPTH,
        .out = anchor->operands + ROWS * DEPTH + DEPTH * WIDTH,
        .rows = ROWS,
        .depth = DEPTH,
        .width = WIDTH,
    };
    graft_winograd_multiply(&product); /* Brings its data back into the caches. */
    uint64_t start_ns = graft_cost_clock_ns(1);
    for (uint32_t i = 0; i < PRODUCTS; i++) {
        graft_winograd_multiply(&product);
    }
    return (double)(graft_cost_clock_ns(1) - start_ns);
}

void graft_anchor_measure(graft_anchor *anchor, graft_cost_entry *entry)
{
    graft_signature signature;
    double median = 0.0;
    double spread = 0.0;
    for (uint32_t i = 0; i < LOOKS; i++) {
        anchor->samples[i] = time_anchor(anchor);
    }
    graft_anchor_signature(&signature);
    graft_cost_median(anchor->samples, LOOKS, &median, &spread); /* Sorts them. */
    *entry =
        graft_cost_measured(&signature, anchor->samples[LOOKS / QUIET_PART], spread, LOOKS, "");
}

void graft_anchor_refer(graft_anchor *anchor, const graft_cost_entry *entry)
{
    anchor->reference_ns = entry->median_ns;
}

double graft_anchor_look(graft_anchor *anchor)
{
    double factor = anchor->reference_ns / time_anchor(anchor);
    return factor >= quiet_factor ? 1.0 : factor;
}

double graft_anchor_wait(graft_anchor *anchor)
{
    double factor = graft_anchor_look(anchor);
    for (uint32_t i = 1; i < POLLS && factor < quiet_factor; i++) {
        factor = graft_anchor_look(anchor);
    }
    return factor;
}

/* -------------------------------------------------------------------- slices */

void graft_slices_begin(graft_slices *slices, graft_anchor *anchor, double wanted_ns)
{
    *slices = (graft_slices){
        .anchor = anchor, .wanted_ns = wanted_ns, .before = graft_anchor_wait(anchor)};
}

bool graft_slices_want_more(const graft_slices *slices)
{
    return slices->quiet_ns < slices->wanted_ns && slices->all_ns < MORE_SLICES * slices->wanted_ns;
}

void graft_slices_add(graft_slices *slices, double run_ns, double runs)
{
    double after = graft_anchor_look(slices->anchor);
    double factor = fmin(slices->before, after);
    slices->all_ns += run_ns * runs;
    if (factor >= quiet_factor) {
        slices->quiet_ns += run_ns * runs;
        slices->quiet_runs += runs;
    } else {
        slices->slow_ns += run_ns * runs * factor;
        slices->slow_runs += runs;
        slices->slow_factors += factor * runs;
    }
    slices->before = after >= quiet_factor ? after : graft_anchor_wait(slices->anchor);
}

double graft_slices_result(const graft_slices *slices, double *factor)
{
    bool quiet = slices->quiet_runs > 0.0;
    *factor = quiet ? 1.0 : slices->slow_factors / slices->slow_runs;
    return quiet ? slices->quiet_ns / slices->quiet_runs : slices->slow_ns / slices->slow_runs;
}

/* ------------------------------------------------------------- quiet rounds */

uint32_t graft_anchor_quiet(const double *factors, uint32_t count)
{
    uint32_t quiet = 0;
    for (uint32_t i = 0; i < count; i++) {
        quiet += factors[i] >= quiet_factor;
    }
    return quiet;
}

/* The factor from which on rounds count. */
static double find_limit(graft_arena *scratch, const double *factors, uint32_t count)
{
    double *sorted = GRAFT_NEW(scratch, double, count);
    memcpy(sorted, factors, count * sizeof(sorted[0]));
    (void)graft_cost_quantile(sorted, count, 0.5); /* Sorts them. */
    double least = sorted[count - (count < LEAST_QUIET ? count : LEAST_QUIET)];
    return least < quiet_factor ? least : quiet_factor;
}

uint32_t graft_anchor_summarise(graft_arena *scratch, const double *samples, const double *factors,
                                uint32_t count, double *first, double *spread)
{
    GRAFT_SCOPED(scratch);
    double *kept = GRAFT_NEW(scratch, double, count);
    double limit = count == 0 ? 0.0 : find_limit(scratch, factors, count);
    uint32_t kept_count = 0;
    double median = 0.0;
    *first = (double)INFINITY;
    *spread = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        if (factors[i] >= limit) {
            kept[kept_count++] = samples[i];
        }
    }
    if (kept_count > 0) {
        graft_cost_median(kept, kept_count, &median, spread); /* Sorts them. */
        *first = graft_cost_quantile(kept, kept_count, 0.25);
    }
    return kept_count;
}
