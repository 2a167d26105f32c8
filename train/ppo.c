/* ppo.c - see ppo.h. */
#include "train/ppo.h"

#include "train/kernels.h"
#include "train/losses.h"
#include "train/optimiser.h"

#include <assert.h>
#include <math.h>
#include <string.h>

graft_ppo_settings graft_ppo_defaults(void)
{
    return (graft_ppo_settings){
        .learning_rate = 3e-4,
        .discount = 0.99,
        .lambda = 0.95,
        .clip = 0.2F,
        .target_kl = 0.05,
        .norm_most = 0.5,
        .value_weight = 0.5F,
        .entropy_weight = 0.01F,
        .epochs = 4,
        .minibatch = 256,
    };
}

/* Transitions to learn from: one minibatch, or all. */
typedef struct {
    const graft_controller *controller;
    const graft_rollout *rollout;
    const uint32_t *row;
    uint32_t count;
    const graft_ppo_settings *settings;
    graft_ppo_report report[GRAFT_SHARD_COUNT];
} ppo_job;

/* The transitions of one shard. */
typedef struct {
    graft_controller_states states;
    uint32_t *xfer;
    uint32_t *location;
    float *old_log_p;
    float *advantage;
    float *gain; /* In units of value_scale. */
} ppo_rows;

static ppo_rows collect_rows(const ppo_job *job, graft_arena *arena, graft_span span)
{
    const graft_rollout *rollout = job->rollout;
    size_t latent = rollout->latent;
    size_t xfers = rollout->xfers;
    float scale = *job->controller->value_scale > 0.0F ? *job->controller->value_scale : 1.0F;
    float *z = GRAFT_NEW(arena, float, span.count *latent);
    uint16_t *counts = GRAFT_NEW(arena, uint16_t, span.count * xfers);
    ppo_rows rows = {
        .states = {span.count, z, counts}
    };
    rows.xfer = GRAFT_NEW(arena, uint32_t, span.count);
    rows.location = GRAFT_NEW(arena, uint32_t, span.count);
    rows.old_log_p = GRAFT_NEW(arena, float, span.count);
    rows.advantage = GRAFT_NEW(arena, float, span.count);
    rows.gain = GRAFT_NEW(arena, float, span.count);
    for (size_t i = 0; i < span.count; i++) {
        size_t from = job->row[span.first + i];
        memcpy(z + i * latent, rollout->z + from * latent, latent * sizeof(float));
        memcpy(counts + i * xfers, rollout->counts + from * xfers, xfers * sizeof(uint16_t));
        rows.xfer[i] = rollout->xfer[from];
        rows.location[i] = rollout->location[from];
        rows.old_log_p[i] = rollout->log_p[from];
        rows.advantage[i] = rollout->advantage[from];
        rows.gain[i] = rollout->gain[from] / scale;
    }
    return rows;
}

/* Schulman's estimate of the divergence, and how many ratios are out of range. */
static void measure_shift(const ppo_job *job, const graft_matrix *log_p, const ppo_rows *rows,
                          graft_ppo_report *report)
{
    for (uint32_t i = 0; i < log_p->rows; i++) {
        double shift = (double)(log_p->value[i] - rows->old_log_p[i]);
        double ratio = exp(shift);
        report->kl += (ratio - 1.0 - shift) / job->count;
        report->clipped += fabs(ratio - 1.0) > (double)job->settings->clip ? 1.0 / job->count : 0.0;
    }
}

static void work_on_shard(void *context, uint32_t shard, graft_tape *tape)
{
    ppo_job *job = context;
    graft_span span = graft_shards_span(job->count, shard);
    if (span.count == 0) {
        return;
    }
    ppo_rows rows = collect_rows(job, tape->arena, span);
    graft_ppo_report *report = &job->report[shard];
    float each = 1.0F / (float)job->count;
    graft_controller_view view = graft_controller_apply(job->controller, tape, &rows.states);
    graft_location_view where =
        graft_controller_locate(job->controller, tape, &rows.states, view.trunk, rows.xfer);
    const graft_matrix *log_p = graft_add(tape, graft_pick(tape, view.log_p, rows.xfer),
                                          graft_pick(tape, where.log_p, rows.location));
    graft_surrogate surrogate = {rows.old_log_p, rows.advantage, job->settings->clip, each};
    report->policy_loss = graft_loss_use(tape, graft_loss_policy(tape, log_p, &surrogate), 1.0F);
    const graft_matrix *entropy = graft_add(tape, graft_entropy(tape, view.log_p, view.mask),
                                            graft_entropy(tape, where.log_p, where.mask));
    report->entropy = graft_loss_use(tape, graft_weighted_sum(tape, entropy, NULL, each),
                                     -job->settings->entropy_weight);
    graft_target gain = {rows.gain, NULL, each};
    report->value_loss = graft_loss_use(tape, graft_loss_squared(tape, view.value, &gain),
                                        job->settings->value_weight);
    measure_shift(job, log_p, &rows, report);
    if (tape->recording) {
        graft_tape_backward(tape);
    }
}

static void add_report(graft_ppo_report *sum, const graft_ppo_report *part, double weight)
{
    sum->policy_loss += weight * part->policy_loss;
    sum->value_loss += weight * part->value_loss;
    sum->entropy += weight * part->entropy;
    sum->kl += weight * part->kl;
    sum->clipped += weight * part->clipped;
}

graft_ppo_report graft_ppo_differentiate(const graft_controller *controller, graft_shards *shards,
                                         const graft_rollout *rollout, const uint32_t *row,
                                         uint32_t count, const graft_ppo_settings *settings)
{
    assert(count > 0);
    ppo_job job = {.controller = controller,
                   .rollout = rollout,
                   .row = row,
                   .count = count,
                   .settings = settings};
    graft_shards_differentiate(shards, work_on_shard, &job);
    graft_ppo_report sum = {.minibatches = 1};
    for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
        add_report(&sum, &job.report[s], 1.0);
    }
    sum.stopped = sum.kl > 1.5 * settings->target_kl;
    return sum;
}

/* --------------------------------------------------------------------------------------- update */

/* Rows of the rollout that hold a step, into `row`; returns how many. */
static uint32_t list_rows(const graft_rollout *rollout, uint32_t *row)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e < rollout->episodes; e++) {
        for (uint32_t t = 0; t < rollout->length[e]; t++) {
            row[count++] = e * rollout->horizon + t;
        }
    }
    return count;
}

static void shuffle(uint32_t *row, uint32_t count, graft_rng *rng)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = graft_rng_below(rng, i);
        uint32_t held = row[i - 1];
        row[i - 1] = row[j];
        row[j] = held;
    }
}

static void normalise_advantages(graft_rollout *rollout, const uint32_t *row, uint32_t count)
{
    double sum = 0.0;
    double squares = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        double advantage = (double)rollout->advantage[row[i]];
        sum += advantage;
        squares += advantage * advantage;
    }
    double mean = sum / count;
    double variance = squares / count - mean * mean;
    double scale = variance > 1e-16 ? 1.0 / sqrt(variance) : 1.0;
    for (uint32_t i = 0; i < count; i++) {
        rollout->advantage[row[i]] = (float)(((double)rollout->advantage[row[i]] - mean) * scale);
    }
}

static void fix_value_scale(graft_controller *controller, const graft_rollout *rollout,
                            const uint32_t *row, uint32_t count)
{
    double squares = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        squares += (double)rollout->gain[row[i]] * (double)rollout->gain[row[i]];
    }
    double scale = sqrt(squares / count);
    *controller->value_scale = scale > 1e-6 ? (float)scale : 1.0F;
}

/* One pass over the shuffled rows of `all`. False when the target was exceeded: that minibatch and
 * the rest are left out. */
static bool run_epoch(const ppo_job *all, graft_shards *shards, graft_ppo_report *report)
{
    const graft_ppo_settings *settings = all->settings;
    for (uint32_t first = 0; first < all->count; first += settings->minibatch) {
        uint32_t left = all->count - first;
        uint32_t size = left < settings->minibatch ? left : settings->minibatch;
        graft_ppo_report part = graft_ppo_differentiate(all->controller, shards, all->rollout,
                                                        all->row + first, size, settings);
        if (part.stopped) {
            report->stopped = true;
            return false;
        }
        add_report(report, &part, 1.0);
        report->minibatches++;
        (void)graft_adam_step(shards->sets, shards->set_count, settings->learning_rate,
                              settings->norm_most);
    }
    return true;
}

graft_ppo_report graft_ppo_update(graft_controller *controller, graft_shards *shards,
                                  graft_arena *scratch, graft_rollout *rollout,
                                  const graft_ppo_settings *settings, graft_rng *rng)
{
    graft_mark mark = graft_arena_mark(scratch);
    graft_ppo_report report = {0};
    uint32_t *row = GRAFT_NEW(scratch, uint32_t, (size_t)rollout->episodes * rollout->horizon);
    graft_rollout_estimate(rollout, settings->discount, settings->lambda);
    uint32_t count = list_rows(rollout, row);
    if (count > 0) {
        if (!(*controller->value_scale > 0.0F)) {
            fix_value_scale(controller, rollout, row, count);
        }
        normalise_advantages(rollout, row, count);
        ppo_job all = {.controller = controller,
                       .rollout = rollout,
                       .row = row,
                       .count = count,
                       .settings = settings};
        for (uint32_t epoch = 0; epoch < settings->epochs; epoch++) {
            shuffle(row, count, rng);
            if (!run_epoch(&all, shards, &report)) {
                break;
            }
        }
    }
    graft_ppo_report mean = {.minibatches = report.minibatches, .stopped = report.stopped};
    add_report(&mean, &report, report.minibatches > 0 ? 1.0 / report.minibatches : 0.0);
    graft_arena_release(scratch, mark);
    return mean;
}
