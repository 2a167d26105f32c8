/* losses.c - see losses.h; forward and backward passes side by side. */
#include "train/nn/losses.h"

#include "train/nn/numeric.h"

#include <assert.h>
#include <math.h>

/* ---------------------------------------------------------------------------------------- sums */

static float weight_of(const float *weight, size_t k) { return weight == NULL ? 1.0F : weight[k]; }

/* A (1, 1) matrix. */
static graft_matrix *scalar(graft_tape *tape, double value)
{
    graft_matrix *out = graft_tape_matrix(tape, 1, 1);
    out->value[0] = (float)value;
    return out;
}

static graft_backward back_weighted_sum;
graft_matrix *graft_weighted_sum(graft_tape *tape, const graft_matrix *x, const float *weight,
                                 float scale)
{
    double sum = 0.0;
    size_t size = graft_matrix_size(x);
    for (size_t k = 0; k < size; k++) {
        sum += (double)(weight_of(weight, k) * x->value[k]);
    }
    graft_matrix *out = scalar(tape, sum * (double)scale);
    return graft_tape_record(
        tape,
        (graft_entry){
            .backward = back_weighted_sum, .out = out, .in = {x}, .data = weight, .number = scale});
}

static void back_weighted_sum(const graft_entry *entry)
{
    const graft_matrix *x = entry->in[0];
    float factor = entry->out->gradient[0] * entry->number;
    size_t size = graft_matrix_size(x);
    for (size_t k = 0; k < size && x->gradient != NULL; k++) {
        x->gradient[k] += factor * weight_of(entry->data, k);
    }
}

double graft_loss_use(graft_tape *tape, const graft_matrix *loss, float weight)
{
    assert(loss->rows == 1 && loss->cols == 1);
    if (tape->recording) {
        graft_tape_seed(tape, loss, weight);
    }
    return (double)loss->value[0];
}

/* --------------------------------------------------------------------- losses with local slopes */

/* These compute each element's slope during the forward pass; `saved` holds it, scaled. */
static graft_backward back_slopes;
graft_matrix *graft_loss_of_slopes(graft_tape *tape, const graft_matrix *x, double loss,
                                   float *slope)
{
    graft_matrix *out = scalar(tape, loss);
    return graft_tape_record(
        tape, (graft_entry){.backward = back_slopes, .out = out, .in = {x}, .saved = slope});
}

static void back_slopes(const graft_entry *entry)
{
    const graft_matrix *x = entry->in[0];
    size_t size = graft_matrix_size(x);
    for (size_t k = 0; k < size && x->gradient != NULL; k++) {
        x->gradient[k] += entry->out->gradient[0] * entry->saved[k];
    }
}

/* -(t log s(x) + (1 - t) log(1 - s(x))) = softplus(x) - t x; slope s(x) - t. */
graft_matrix *graft_loss_binary(graft_tape *tape, const graft_matrix *logits,
                                const graft_target *target)
{
    size_t size = graft_matrix_size(logits);
    float *slope = GRAFT_NEW(tape->arena, float, size);
    double sum = 0.0;
    for (size_t k = 0; k < size; k++) {
        float x = logits->value[k];
        float t = target->value[k];
        float weight = target->scale * weight_of(target->weight, k);
        sum += (double)(weight * (graft_softplus(x) - t * x));
        slope[k] = weight * (graft_logistic(x) - t);
    }
    return graft_loss_of_slopes(tape, logits, sum, slope);
}

graft_matrix *graft_loss_squared(graft_tape *tape, const graft_matrix *prediction,
                                 const graft_target *target)
{
    return graft_loss_huber(tape, prediction, target, INFINITY);
}

/* Slope: the error, clamped to [-delta, delta]. */
graft_matrix *graft_loss_huber(graft_tape *tape, const graft_matrix *prediction,
                               const graft_target *target, float delta)
{
    size_t size = graft_matrix_size(prediction);
    float *slope = GRAFT_NEW(tape->arena, float, size);
    double sum = 0.0;
    for (size_t k = 0; k < size; k++) {
        float error = prediction->value[k] - target->value[k];
        float weight = target->scale * weight_of(target->weight, k);
        float magnitude = fabsf(error);
        bool inside = !(magnitude > delta);
        float loss = inside ? 0.5F * error * error : delta * (magnitude - 0.5F * delta);
        sum += (double)(weight * loss);
        slope[k] = weight * (inside ? error : copysignf(delta, error));
    }
    return graft_loss_of_slopes(tape, prediction, sum, slope);
}

/* Slope: -A r where the unclipped term is the smaller one, else 0. The log-ratio is clamped to
 * +-20, far outside every clip range: a runaway policy gets a large gradient, never infinity. */
graft_matrix *graft_loss_policy(graft_tape *tape, const graft_matrix *log_p,
                                const graft_surrogate *terms)
{
    assert(log_p->cols == 1);
    float *slope = GRAFT_NEW(tape->arena, float, log_p->rows);
    double sum = 0.0;
    for (uint32_t i = 0; i < log_p->rows; i++) {
        float log_ratio = log_p->value[i] - terms->old_log_p[i];
        log_ratio = log_ratio > 20.0F ? 20.0F : log_ratio;
        log_ratio = log_ratio < -20.0F ? -20.0F : log_ratio;
        float ratio = graft_exp(log_ratio);
        float advantage = terms->advantage[i];
        float clipped = ratio > 1.0F + terms->clip ? 1.0F + terms->clip : ratio;
        clipped = clipped < 1.0F - terms->clip ? 1.0F - terms->clip : clipped;
        bool free = ratio * advantage <= clipped * advantage;
        sum -= (double)(terms->scale * (free ? ratio : clipped) * advantage);
        slope[i] = free ? -terms->scale * advantage * ratio : 0.0F;
    }
    return graft_loss_of_slopes(tape, log_p, sum, slope);
}
