/* anchor.c - the anchor of a measurement (see anchor.h). */
#include "cost/anchor.h"

#include "cost/clock.h"
#include "cost/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 64, LEAST_QUIET = 5 };

static const uint64_t batch_ns = 100000;
/* A round is quiet when the anchor took at most this much longer than recorded. */
static const double quiet_factor = 0.93;

struct graft_anchor {
    graft_signature signature;
    graft_trial trial;
    double samples[2 * GRAFT_KERNEL_MOST * ROUNDS];
    double reference_ns;
};

static graft_shape image_shape(int32_t channels, int32_t pixels)
{
    return (graft_shape){
        .dims = {1, channels, pixels, pixels},
          .rank = 4, .dtype = GRAFT_DTYPE_F32
    };
}

/* 3 by 3 on 64 channels: 14 million operations on a quarter of a megabyte. */
void graft_anchor_signature(graft_signature *signature)
{
    memset(signature, 0, sizeof(*signature));
    signature->op = GRAFT_OP_conv;
    signature->input_count = 2;
    signature->output_count = 1;
    signature->const_mask = 2;
    signature->inputs[0] = image_shape(64, 14);
    signature->inputs[1] = image_shape(64, 3);
    signature->inputs[1].dims[0] = 64;
    for (uint32_t i = 0; i < 2; i++) {
        signature->attrs[GRAFT_ATTR_conv_stride_h + i] = 1;
        signature->attrs[GRAFT_ATTR_conv_dilation_h + i] = 1;
        signature->attrs[GRAFT_ATTR_conv_pad_top + i] = 1;
        signature->attrs[GRAFT_ATTR_conv_pad_bottom + i] = 1;
    }
    signature->attrs[GRAFT_ATTR_conv_groups] = 1;
    signature->distance = GRAFT_DISTANCE_OWN;
    signature->in_layouts[0] = GRAFT_LAYOUT_NHWC;
    signature->out_layouts[0] = GRAFT_LAYOUT_NHWC;
}

graft_status graft_anchor_open(graft_env *env, graft_device *device, graft_anchor **anchor)
{
    graft_status status = GRAFT_OK;
    graft_anchor *a = calloc(1, sizeof(*a));
    if (a == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for measuring");
    }
    graft_anchor_signature(&a->signature);
    GRAFT_CHECK(graft_trial_open(env, device, &a->signature, a->samples, ROUNDS, &a->trial));
    GRAFT_CHECK(graft_trial_qualify(env, &a->trial));
    *anchor = a;
done:
    if (status != GRAFT_OK) {
        graft_anchor_close(a);
    }
    return status;
}

void graft_anchor_close(graft_anchor *anchor)
{
    if (anchor != NULL) {
        graft_trial_close(&anchor->trial);
        free(anchor);
    }
}

/* Whatever is fastest elsewhere, the anchor is the library's favourite. */
static graft_status time_anchor(graft_env *env, graft_anchor *anchor)
{
    return graft_trial_round(env, &anchor->trial, &anchor->trial.contestants[0], batch_ns, 1.0);
}

graft_status graft_anchor_measure(graft_env *env, graft_anchor *anchor, graft_cost_entry *entry)
{
    graft_status status = GRAFT_OK;
    graft_contestant *c = &anchor->trial.contestants[0];
    double median = 0.0;
    double spread = 0.0;
    c->sample_count = 0;
    while (c->sample_count < ROUNDS) {
        GRAFT_CHECK(time_anchor(env, anchor));
    }
    memset(entry, 0, sizeof(*entry));
    graft_cost_median(c->samples, c->sample_count, &median, &spread); /* Sorts them. */
    entry->median_ns = graft_cost_round(c->samples[c->sample_count / 4]);
    entry->spread_ns = graft_cost_round(spread);
    entry->rounds = c->sample_count;
    entry->source = GRAFT_COST_MEASURED;
    entry->flops = graft_signature_flops(&anchor->signature);
    entry->bytes = graft_signature_bytes(&anchor->signature);
    memcpy(entry->implementation, c->name, sizeof(entry->implementation));
done:
    return status;
}

void graft_anchor_refer(graft_anchor *anchor, const graft_cost_entry *entry)
{
    anchor->reference_ns = entry->median_ns;
}

graft_status graft_anchor_factor(graft_env *env, graft_anchor *anchor, double *factor)
{
    graft_status status = GRAFT_OK;
    graft_contestant *c = &anchor->trial.contestants[0];
    c->sample_count = 0;
    GRAFT_CHECK(time_anchor(env, anchor));
    GRAFT_CHECK(time_anchor(env, anchor));
    *factor = anchor->reference_ns / c->samples[1];
    *factor = *factor >= quiet_factor ? 1.0 : *factor;
done:
    return status;
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
    double median = 0.0;
    double spread = 0.0;
    memcpy(sorted, factors, count * sizeof(sorted[0]));
    graft_cost_median(sorted, count, &median, &spread); /* Sorts them. */
    double least = sorted[count - (count < LEAST_QUIET ? count : LEAST_QUIET)];
    return least < quiet_factor ? least : quiet_factor;
}

uint32_t graft_anchor_summarise(graft_arena *scratch, const double *samples, const double *factors,
                                uint32_t count, double *median, double *spread)
{
    graft_mark mark = graft_arena_mark(scratch);
    double *kept = GRAFT_NEW(scratch, double, count);
    double limit = count == 0 ? 0.0 : find_limit(scratch, factors, count);
    uint32_t kept_count = 0;
    *median = (double)INFINITY;
    *spread = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        if (factors[i] >= limit) {
            kept[kept_count++] = samples[i];
        }
    }
    if (kept_count > 0) {
        graft_cost_median(kept, kept_count, median, spread);
    }
    graft_arena_release(scratch, mark);
    return kept_count;
}
