/* anchor.c - the two anchors of a measurement (see anchor.h). */
#include "cost/anchor.h"

#include "cost/clock.h"
#include "cost/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 64, FLOPS_PER_BYTE = 4, LEAST_QUIET = 5 };

/* A round is quiet when the anchor took at most this much longer than recorded. */
static const double quiet_factor = 0.93;

static const uint64_t batch_ns = 100000;

struct graft_anchors {
    graft_signature signatures[GRAFT_ANCHOR_COUNT];
    graft_trial trials[GRAFT_ANCHOR_COUNT];
    double samples[GRAFT_ANCHOR_COUNT][2 * GRAFT_KERNEL_MOST * ROUNDS];
    double reference_ns[GRAFT_ANCHOR_COUNT];
};

static graft_shape image_shape(int32_t channels, int32_t pixels)
{
    return (graft_shape){
        .dims = {1, channels, pixels, pixels},
          .rank = 4, .dtype = GRAFT_DTYPE_F32
    };
}

/* 3 by 3 on 64 channels: 14 million operations on a quarter of a megabyte. */
static void describe_compute(graft_signature *s)
{
    s->op = GRAFT_OP_conv;
    s->input_count = 2;
    s->const_mask = 2;
    s->inputs[0] = image_shape(64, 14);
    s->inputs[1] = image_shape(64, 3);
    s->inputs[1].dims[0] = 64;
    for (uint32_t i = 0; i < 2; i++) {
        s->attrs[GRAFT_ATTR_conv_stride_h + i] = 1;
        s->attrs[GRAFT_ATTR_conv_dilation_h + i] = 1;
        s->attrs[GRAFT_ATTR_conv_pad_top + i] = 1;
        s->attrs[GRAFT_ATTR_conv_pad_bottom + i] = 1;
    }
    s->attrs[GRAFT_ATTR_conv_groups] = 1;
    s->distance = GRAFT_DISTANCE_OWN;
}

/* Three megabytes in, three out. */
static void describe_stream(graft_signature *s)
{
    s->op = GRAFT_OP_relu;
    s->input_count = 1;
    s->inputs[0] = image_shape(256, 56);
    s->distance = GRAFT_DISTANCE_SHARED;
}

void graft_anchor_signature(graft_anchor_kind kind, graft_signature *signature)
{
    memset(signature, 0, sizeof(*signature));
    signature->output_count = 1;
    if (kind == GRAFT_ANCHOR_COMPUTE) {
        describe_compute(signature);
    } else {
        describe_stream(signature);
    }
    signature->in_layouts[0] = GRAFT_LAYOUT_NHWC;
    signature->out_layouts[0] = GRAFT_LAYOUT_NHWC;
}

graft_anchor_kind graft_anchor_of(const graft_signature *signature)
{
    uint64_t flops = graft_signature_flops(signature);
    uint64_t bytes = graft_signature_bytes(signature);
    return flops > FLOPS_PER_BYTE * bytes ? GRAFT_ANCHOR_COMPUTE : GRAFT_ANCHOR_STREAM;
}

static graft_status open_anchor(graft_env *env, graft_device *device, graft_anchors *a, uint32_t i)
{
    graft_status status = GRAFT_OK;
    graft_trial *trial = &a->trials[i];
    graft_anchor_signature((graft_anchor_kind)i, &a->signatures[i]);
    GRAFT_CHECK(graft_trial_open(env, device, &a->signatures[i], a->samples[i], ROUNDS, trial));
    GRAFT_CHECK(graft_trial_qualify(env, trial));
done:
    return status;
}

graft_status graft_anchors_open(graft_env *env, graft_device *device, graft_anchors **anchors)
{
    graft_status status = GRAFT_OK;
    graft_anchors *a = calloc(1, sizeof(*a));
    if (a == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for measuring");
    }
    for (uint32_t i = 0; i < GRAFT_ANCHOR_COUNT; i++) {
        GRAFT_CHECK(open_anchor(env, device, a, i));
    }
    *anchors = a;
done:
    if (status != GRAFT_OK) {
        graft_anchors_close(a);
    }
    return status;
}

void graft_anchors_close(graft_anchors *anchors)
{
    for (uint32_t i = 0; i < GRAFT_ANCHOR_COUNT && anchors != NULL; i++) {
        graft_trial_close(&anchors->trials[i]);
    }
    free(anchors);
}

/* Whatever is fastest elsewhere, an anchor is the library's favourite. */
static graft_status time_anchor(graft_env *env, graft_anchors *anchors, uint32_t kind)
{
    graft_trial *trial = &anchors->trials[kind];
    return graft_trial_round(env, trial, &trial->contestants[0], batch_ns, 1.0);
}

static void summarise(const graft_trial *trial, graft_cost_entry *entry)
{
    const graft_contestant *c = &trial->contestants[0];
    double median = 0.0;
    double spread = 0.0;
    memset(entry, 0, sizeof(*entry));
    graft_cost_median(c->samples, c->sample_count, &median, &spread); /* Sorts them. */
    entry->median_ns = graft_cost_round(c->samples[c->sample_count / 4]);
    entry->spread_ns = graft_cost_round(spread);
    entry->rounds = c->sample_count;
    entry->source = GRAFT_COST_MEASURED;
    entry->flops = graft_signature_flops(trial->signature);
    entry->bytes = graft_signature_bytes(trial->signature);
    memcpy(entry->implementation, c->name, sizeof(entry->implementation));
}

graft_status graft_anchors_measure(graft_env *env, graft_anchors *anchors,
                                   graft_cost_entry entries[GRAFT_ANCHOR_COUNT])
{
    graft_status status = GRAFT_OK;
    for (uint32_t i = 0; i < GRAFT_ANCHOR_COUNT; i++) {
        anchors->trials[i].contestants[0].sample_count = 0;
    }
    for (uint32_t i = 0; i < ROUNDS * GRAFT_ANCHOR_COUNT; i++) {
        GRAFT_CHECK(time_anchor(env, anchors, i % GRAFT_ANCHOR_COUNT));
    }
    for (uint32_t i = 0; i < GRAFT_ANCHOR_COUNT; i++) {
        summarise(&anchors->trials[i], &entries[i]);
    }
done:
    return status;
}

void graft_anchors_refer(graft_anchors *anchors, const graft_cost_entry entries[GRAFT_ANCHOR_COUNT])
{
    for (uint32_t i = 0; i < GRAFT_ANCHOR_COUNT; i++) {
        anchors->reference_ns[i] = entries[i].median_ns;
    }
}

graft_status graft_anchors_factor(graft_env *env, graft_anchors *anchors, graft_anchor_kind kind,
                                  double *factor)
{
    graft_contestant *contestant = &anchors->trials[kind].contestants[0];
    contestant->sample_count = 0;
    graft_status status = time_anchor(env, anchors, kind);
    if (status == GRAFT_OK) {
        *factor = anchors->reference_ns[kind] / contestant->samples[0];
    }
    return status;
}

/* ------------------------------------------------------------- quiet rounds */

uint32_t graft_anchors_quiet(const double *factors, uint32_t count)
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

uint32_t graft_anchors_summarise(graft_arena *scratch, const double *samples, const double *factors,
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
