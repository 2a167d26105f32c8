/* world_training.c - see world_training.h. */
#include "train/world_training.h"

#include "train/losses.h"
#include "train/numeric.h"

#include <assert.h>
#include <math.h>
#include <string.h>

graft_world_weights graft_world_weights_default(void)
{
    return (graft_world_weights){1.0, 1.0, 1.0, 10.0, 1.0};
}

/* What one shard found out, sums over its steps. */
typedef struct {
    graft_world_loss loss;
    double *nll;   /* (latent), in delta units */
    double *still; /* (latent): the same of "nothing changes" */
    double reward_sum;
    double reward_squares;
    double reward_error_squares;
    double end_right;
    uint64_t changed_count;
    uint64_t changed_right;
    uint64_t right;
    double count_error;
} shard_report;

typedef struct {
    const graft_world_model *model;
    const graft_world_batch *batch;
    graft_world_weights weights;
    bool measuring;
    uint32_t step_total;
    uint32_t legal_total; /* Legality bits set in next states, whole batch. */
    shard_report report[GRAFT_SHARD_COUNT];
} world_job;

static const graft_trajectory *trajectory_at(const graft_world_batch *batch, uint32_t i)
{
    return &batch->trajectories[batch->index[i]];
}

static uint32_t first_of(const graft_world_batch *batch, uint32_t i)
{
    return batch->first == NULL ? 0 : batch->first[i];
}

/* Steps in window i. */
static uint32_t length_of(const graft_world_batch *batch, uint32_t i)
{
    uint32_t first = first_of(batch, i);
    uint32_t total = trajectory_at(batch, i)->step_count;
    uint32_t left = first < total ? total - first : 0;
    return batch->steps_most > 0 && left > batch->steps_most ? batch->steps_most : left;
}

/* ------------------------------------------------------------------------------------- assembly */

/* One shard's windows as arrays: inputs by padded row, targets by real step. */
typedef struct {
    graft_world_input input;
    float *state;      /* (rows, latent + xfers) or (rows, latent) */
    float *log_count;  /* (rows, xfers) */
    float *legality;   /* (rows, xfers) */
    uint32_t *xfer;    /* (rows) */
    uint32_t *bucket;  /* (rows) */
    uint32_t *place;   /* (rows) */
    uint32_t *valid;   /* (n) */
    float *delta;      /* (n, latent) */
    float *reward;     /* (n), standardised */
    float *end;        /* (n) */
    float *next_legal; /* (n, xfers), 0 or 1 */
    float *count_said; /* (n, xfers), what the counts' head should say */
    uint16_t *present; /* (n, xfers), counts before... */
    uint16_t *next;    /* (n, xfers) ...and after the step */
} shard_data;

static shard_data new_data(const world_job *job, graft_arena *arena, graft_span span)
{
    shard_data data = {.input = {.batch = span.count}};
    size_t latent = job->model->size.latent;
    size_t xfers = job->model->size.xfers;
    for (uint32_t i = 0; i < span.count; i++) {
        uint32_t length = length_of(job->batch, span.first + i);
        data.input.steps = length > data.input.steps ? length : data.input.steps;
        data.input.valid_count += length;
    }
    size_t rows = (size_t)data.input.batch * data.input.steps;
    size_t valid = data.input.valid_count;
    size_t state_cols = latent + (job->model->size.latent_only ? 0 : xfers);
    data.state = GRAFT_NEW(arena, float, rows *state_cols);
    data.log_count = GRAFT_NEW(arena, float, rows *xfers);
    data.legality = GRAFT_NEW(arena, float, rows *xfers);
    data.xfer = GRAFT_NEW(arena, uint32_t, rows);
    data.bucket = GRAFT_NEW(arena, uint32_t, rows);
    data.place = GRAFT_NEW(arena, uint32_t, rows);
    data.valid = GRAFT_NEW(arena, uint32_t, valid);
    data.delta = GRAFT_NEW(arena, float, valid *latent);
    data.reward = GRAFT_NEW(arena, float, valid);
    data.end = GRAFT_NEW(arena, float, valid);
    data.next_legal = GRAFT_NEW(arena, float, valid *xfers);
    data.count_said = GRAFT_NEW(arena, float, valid *xfers);
    data.present = GRAFT_NEW(arena, uint16_t, valid * xfers);
    data.next = GRAFT_NEW(arena, uint16_t, valid * xfers);
    return data;
}

/* The state and action at step t of a trajectory, as row `row`. */
static void put_input(const graft_world_model *model, shard_data *data, size_t row,
                      const graft_trajectory *trajectory, size_t t)
{
    size_t latent = model->size.latent;
    size_t xfers = model->size.xfers;
    size_t state_cols = latent + (model->size.latent_only ? 0 : xfers);
    const uint16_t *counts = trajectory->location_counts + t * xfers;
    assert(trajectory->xfer[t] <= xfers);
    memcpy(data->state + row * state_cols, trajectory->z + t * latent, latent * sizeof(float));
    for (size_t x = 0; x < xfers; x++) {
        data->log_count[row * xfers + x] = graft_log(1.0F + (float)counts[x]);
        data->legality[row * xfers + x] = counts[x] > 0 ? 1.0F : -1.0F;
    }
    if (!model->size.latent_only) {
        memcpy(data->state + row * state_cols + latent, data->log_count + row * xfers,
               xfers * sizeof(float));
    }
    data->xfer[row] = trajectory->xfer[t];
    data->bucket[row] = graft_location_bucket(trajectory->location[t]);
    data->place[row] = graft_location_place(
        trajectory->location[t], trajectory->xfer[t] < xfers ? counts[trajectory->xfer[t]] : 1);
}

/* What followed step t, as target n. */
static void put_target(const graft_world_model *model, shard_data *data, size_t n,
                       const graft_trajectory *trajectory, size_t t)
{
    size_t latent = model->size.latent;
    size_t xfers = model->size.xfers;
    const float *z = trajectory->z + t * latent;
    const uint16_t *present = trajectory->location_counts + t * xfers;
    const uint16_t *next = present + xfers;
    for (size_t d = 0; d < latent; d++) {
        data->delta[n * latent + d] = (z[latent + d] - z[d]) / model->delta_scale[d];
    }
    data->reward[n] = (trajectory->reward[t] - model->reward_means[trajectory->xfer[t]]) /
                      model->reward_scales[trajectory->xfer[t]];
    data->end[n] = trajectory->end[t] != 0 ? 1.0F : 0.0F;
    for (size_t x = 0; x < xfers; x++) {
        data->next_legal[n * xfers + x] = next[x] > 0 ? 1.0F : 0.0F;
        data->count_said[n * xfers + x] = graft_world_count_target(model, present[x], next[x]);
    }
    memcpy(data->present + n * xfers, present, xfers * sizeof *present);
    memcpy(data->next + n * xfers, next, xfers * sizeof *next);
}

/* The whole shard; time is the slow index of rows and of real steps. */
static shard_data assemble(const world_job *job, graft_arena *arena, graft_span span)
{
    shard_data data = new_data(job, arena, span);
    uint32_t n = 0;
    for (uint32_t t = 0; t < data.input.steps; t++) {
        for (uint32_t i = 0; i < span.count; i++) {
            uint32_t row = t * span.count + i;
            if (t >= length_of(job->batch, span.first + i)) {
                continue; /* Padding stays zero. */
            }
            const graft_trajectory *trajectory = trajectory_at(job->batch, span.first + i);
            size_t step = (size_t)first_of(job->batch, span.first + i) + t;
            put_input(job->model, &data, row, trajectory, step);
            put_target(job->model, &data, n, trajectory, step);
            data.valid[n++] = row;
        }
    }
    data.input.state = data.state;
    data.input.xfer = data.xfer;
    data.input.bucket = data.bucket;
    data.input.place = data.place;
    data.input.valid = data.valid;
    data.input.log_count = job->model->size.latent_only ? NULL : data.log_count;
    data.input.legality = job->model->size.latent_only ? NULL : data.legality;
    return data;
}

/* ---------------------------------------------------------------------------------------- loss */

static graft_world_loss lose(const world_job *job, graft_tape *tape, const shard_data *data,
                             const graft_world_prediction *predicted)
{
    const graft_world_model *model = job->model;
    const graft_world_weights *weights = &job->weights;
    float each = 1.0F / (float)job->step_total;
    float per_xfer = each / (float)model->size.xfers;
    float per_legal = 1.0F / (float)(job->legal_total > 0 ? job->legal_total : 1);
    graft_world_loss loss = {.step_count = data->input.valid_count};
    const graft_matrix *part = graft_loss_mixture(
        tape, predicted->latent, data->delta, &model->mixture, each / (float)model->size.latent);
    loss.latent = graft_loss_use(tape, part, (float)weights->latent);
    part =
        graft_loss_huber(tape, predicted->reward, &(graft_target){data->reward, NULL, each}, 1.0F);
    loss.reward = graft_loss_use(tape, part, (float)weights->reward);
    part = graft_loss_binary(tape, predicted->end, &(graft_target){data->end, NULL, each});
    loss.end = graft_loss_use(tape, part, (float)weights->end);
    part = graft_loss_binary(tape, predicted->legality,
                             &(graft_target){data->next_legal, NULL, per_xfer});
    loss.legality = graft_loss_use(tape, part, (float)weights->legality);
    part = graft_loss_huber(tape, predicted->counts,
                            &(graft_target){data->count_said, data->next_legal, per_legal}, 1.0F);
    loss.counts = graft_loss_use(tape, part, (float)weights->counts);
    return loss;
}

/* ----------------------------------------------------------------------------------- measuring */

static void measure_latent(const world_job *job, graft_arena *scratch, const shard_data *data,
                           const graft_world_prediction *predicted, shard_report *report)
{
    size_t latent = job->model->size.latent;
    graft_mixture_measure(&job->model->mixture, scratch, predicted->latent, data->delta,
                          report->nll);
    for (size_t k = 0; k < data->input.valid_count * latent; k++) {
        double change = (double)data->delta[k];
        report->still[k % latent] += 0.918938533204672742 + 0.5 * change * change;
    }
}

static void measure_scalars(const world_job *job, const shard_data *data,
                            const graft_world_prediction *predicted, shard_report *report)
{
    const graft_world_model *model = job->model;
    for (uint32_t n = 0; n < data->input.valid_count; n++) {
        uint32_t xfer = data->xfer[data->valid[n]];
        double scale = (double)model->reward_scales[xfer];
        double reward = (double)model->reward_means[xfer] + scale * (double)data->reward[n];
        double error = scale * (double)(predicted->reward->value[n] - data->reward[n]);
        report->reward_sum += reward;
        report->reward_squares += reward * reward;
        report->reward_error_squares += error * error;
        bool ends = predicted->end->value[n] > 0.0F;
        report->end_right += ends == (data->end[n] > 0.5F) ? 1.0 : 0.0;
    }
}

static void measure_masks(const world_job *job, const shard_data *data,
                          const graft_world_prediction *predicted, shard_report *report)
{
    size_t xfers = job->model->size.xfers;
    for (size_t n = 0; n < data->input.valid_count; n++) {
        for (size_t x = 0; x < xfers; x++) {
            bool before = data->legality[data->valid[n] * xfers + x] > 0.0F;
            bool after = data->next_legal[n * xfers + x] > 0.5F;
            bool right = (predicted->legality->value[n * xfers + x] > 0.0F) == after;
            report->right += right ? 1 : 0;
            report->changed_count += before != after ? 1 : 0;
            report->changed_right += before != after && right ? 1 : 0;
            if (after) {
                float said = graft_world_count(job->model, data->present[n * xfers + x],
                                               predicted->counts->value[n * xfers + x]);
                report->count_error += fabs((double)said - (double)data->next[n * xfers + x]);
            }
        }
    }
}

static void work_on_shard(void *context, uint32_t shard, graft_tape *tape)
{
    world_job *job = context;
    graft_span span = graft_shards_span(job->batch->count, shard);
    shard_data data = assemble(job, tape->arena, span);
    if (data.input.valid_count == 0) {
        return;
    }
    graft_world_prediction predicted =
        graft_world_model_apply(job->model, tape, &data.input, NULL, NULL);
    shard_report *report = &job->report[shard];
    report->loss = lose(job, tape, &data, &predicted);
    if (tape->recording) {
        graft_tape_backward(tape);
    }
    if (job->measuring) {
        measure_latent(job, tape->arena, &data, &predicted, report);
        measure_scalars(job, &data, &predicted, report);
        measure_masks(job, &data, &predicted, report);
    }
}

/* ------------------------------------------------------------------------------------- the batch
 */

static world_job start_job(const graft_world_model *model, const graft_world_batch *batch)
{
    world_job job = {.model = model, .batch = batch, .weights = graft_world_weights_default()};
    size_t xfers = model->size.xfers;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t length = length_of(batch, i);
        const uint16_t *next =
            trajectory_at(batch, i)->location_counts + ((size_t)first_of(batch, i) + 1) * xfers;
        job.step_total += length;
        for (size_t k = 0; k < length * xfers; k++) {
            job.legal_total += next[k] > 0 ? 1U : 0U;
        }
    }
    assert(job.step_total > 0);
    return job;
}

static graft_world_loss add_losses(const world_job *job)
{
    graft_world_loss sum = {0};
    for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
        const graft_world_loss *loss = &job->report[s].loss;
        sum.latent += loss->latent;
        sum.reward += loss->reward;
        sum.end += loss->end;
        sum.legality += loss->legality;
        sum.counts += loss->counts;
        sum.step_count += loss->step_count;
    }
    return sum;
}

graft_world_loss graft_world_model_differentiate(const graft_world_model *model,
                                                 graft_shards *shards,
                                                 const graft_world_batch *batch,
                                                 const graft_world_weights *weights)
{
    world_job job = start_job(model, batch);
    if (weights != NULL) {
        job.weights = *weights;
    }
    graft_shards_differentiate(shards, work_on_shard, &job);
    return add_losses(&job);
}

/* Adds everything up into the first report. */
static shard_report *add_reports(world_job *job)
{
    shard_report *sum = &job->report[0];
    for (uint32_t s = 1; s < GRAFT_SHARD_COUNT; s++) {
        const shard_report *part = &job->report[s];
        for (uint32_t d = 0; d < job->model->size.latent; d++) {
            sum->nll[d] += part->nll[d];
            sum->still[d] += part->still[d];
        }
        sum->reward_sum += part->reward_sum;
        sum->reward_squares += part->reward_squares;
        sum->reward_error_squares += part->reward_error_squares;
        sum->end_right += part->end_right;
        sum->changed_count += part->changed_count;
        sum->changed_right += part->changed_right;
        sum->right += part->right;
        sum->count_error += part->count_error;
    }
    return sum;
}

/* Variance of one latent dimension over all states that the windows touch. */
static double find_variance(const world_job *job, size_t d)
{
    size_t latent = job->model->size.latent;
    double sum = 0.0;
    double squares = 0.0;
    double states = 0.0;
    for (uint32_t i = 0; i < job->batch->count; i++) {
        const float *z = trajectory_at(job->batch, i)->z + first_of(job->batch, i) * latent + d;
        for (size_t t = 0; t <= length_of(job->batch, i); t++) {
            double value = (double)z[t * latent];
            sum += value;
            squares += value * value;
            states += 1.0;
        }
    }
    double mean = sum / states;
    return squares / states - mean * mean;
}

static void report_latent(const world_job *job, const shard_report *sum, graft_arena *arena,
                          graft_world_metrics *metrics)
{
    uint32_t latent = job->model->size.latent;
    double *gain = GRAFT_NEW(arena, double, latent);
    double *variance = GRAFT_NEW(arena, double, latent);
    for (uint32_t d = 0; d < latent; d++) {
        variance[d] = find_variance(job, d);
        if (job->model->delta_scale[d] > GRAFT_DELTA_LEAST) {
            gain[d] = (sum->still[d] - sum->nll[d]) / (double)job->step_total;
            metrics->latent_gain += gain[d];
            metrics->live_count++;
        }
    }
    metrics->latent_gain /= metrics->live_count > 0 ? (double)metrics->live_count : 1.0;
    metrics->gain = gain;
    metrics->variance = variance;
}

graft_world_metrics graft_world_model_evaluate(const graft_world_model *model, graft_shards *shards,
                                               graft_arena *arena, const graft_world_batch *batch)
{
    world_job job = start_job(model, batch);
    job.measuring = true;
    for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
        job.report[s].nll = GRAFT_NEW(arena, double, model->size.latent);
        job.report[s].still = GRAFT_NEW(arena, double, model->size.latent);
    }
    graft_shards_run(shards, work_on_shard, &job);
    graft_world_metrics metrics = {.loss = add_losses(&job)};
    const shard_report *sum = add_reports(&job);
    report_latent(&job, sum, arena, &metrics);
    double steps = (double)job.step_total;
    double mean = sum->reward_sum / steps;
    double variance = sum->reward_squares / steps - mean * mean;
    double error = sum->reward_error_squares / steps;
    metrics.reward_error = sqrt(error);
    metrics.reward_explained = variance > 1e-12 ? 1.0 - error / variance : 0.0;
    metrics.end_right = sum->end_right / steps;
    metrics.bit_count = (uint64_t)job.step_total * model->size.xfers;
    metrics.changed_count = sum->changed_count;
    metrics.changed_right = sum->changed_right;
    metrics.right = sum->right;
    metrics.count_error = job.legal_total > 0 ? sum->count_error / (double)job.legal_total : 0.0;
    return metrics;
}
