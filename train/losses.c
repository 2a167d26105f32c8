/* losses.c - see losses.h; forward and backward passes side by side. */
#include "train/losses.h"

#include "train/numeric.h"

#include <assert.h>
#include <math.h>

/* ------------------------------------------------------------------------------------- choices */

static bool is_legal(const uint8_t *mask, size_t k) { return mask == NULL || mask[k] != 0; }

/* One row of `cols` elements starting at element `first`. */
static void normalise_row(const graft_matrix *logits, const uint8_t *mask, size_t first, float *out)
{
    float most = -INFINITY;
    uint32_t cols = logits->cols;
    for (uint32_t j = 0; j < cols; j++) {
        float x = logits->value[first + j];
        most = is_legal(mask, first + j) && !(x <= most) ? x : most;
    }
    assert(most != -INFINITY);
    float sum = 0.0F;
    for (uint32_t j = 0; j < cols; j++) {
        sum += is_legal(mask, first + j) ? graft_exp(logits->value[first + j] - most) : 0.0F;
    }
    float log_sum = most + graft_ln(sum);
    for (uint32_t j = 0; j < cols; j++) {
        out[first + j] =
            is_legal(mask, first + j) ? logits->value[first + j] - log_sum : GRAFT_LOG_ZERO;
    }
}

static graft_backward back_log_softmax;
graft_matrix *graft_log_softmax(graft_tape *tape, const graft_matrix *logits, const uint8_t *mask)
{
    graft_matrix *out = graft_tape_matrix(tape, logits->rows, logits->cols);
    for (uint32_t i = 0; i < logits->rows; i++) {
        normalise_row(logits, mask, (size_t)i * logits->cols, out->value);
    }
    graft_tape_record(
        tape,
        (graft_entry){.backward = back_log_softmax, .out = out, .in = {logits}, .data = mask});
    return out;
}

/* dx_j = dy_j - p_j sum_k dy_k over legal k. */
static void back_log_softmax(const graft_entry *entry)
{
    const graft_matrix *logits = entry->in[0];
    const graft_matrix *out = entry->out;
    const uint8_t *mask = entry->data;
    for (uint32_t i = 0; i < logits->rows && logits->gradient != NULL; i++) {
        size_t first = (size_t)i * logits->cols;
        float sum = 0.0F;
        for (size_t k = first; k < first + logits->cols; k++) {
            sum += is_legal(mask, k) ? out->gradient[k] : 0.0F;
        }
        for (size_t k = first; k < first + logits->cols; k++) {
            if (is_legal(mask, k)) {
                logits->gradient[k] += out->gradient[k] - graft_exp(out->value[k]) * sum;
            }
        }
    }
}

static graft_backward back_pick;
graft_matrix *graft_pick(graft_tape *tape, const graft_matrix *x, const uint32_t *index)
{
    graft_matrix *out = graft_tape_matrix(tape, x->rows, 1);
    for (uint32_t i = 0; i < x->rows; i++) {
        assert(index[i] < x->cols);
        out->value[i] = x->value[(size_t)i * x->cols + index[i]];
    }
    graft_tape_record(tape,
                      (graft_entry){.backward = back_pick, .out = out, .in = {x}, .data = index});
    return out;
}

static void back_pick(const graft_entry *entry)
{
    const graft_matrix *x = entry->in[0];
    const uint32_t *index = entry->data;
    for (uint32_t i = 0; i < x->rows && x->gradient != NULL; i++) {
        x->gradient[(size_t)i * x->cols + index[i]] += entry->out->gradient[i];
    }
}

static graft_backward back_entropy;
graft_matrix *graft_entropy(graft_tape *tape, const graft_matrix *log_p, const uint8_t *mask)
{
    graft_matrix *out = graft_tape_matrix(tape, log_p->rows, 1);
    for (uint32_t i = 0; i < log_p->rows; i++) {
        size_t first = (size_t)i * log_p->cols;
        for (size_t k = first; k < first + log_p->cols; k++) {
            if (is_legal(mask, k)) {
                out->value[i] -= graft_exp(log_p->value[k]) * log_p->value[k];
            }
        }
    }
    graft_tape_record(
        tape, (graft_entry){.backward = back_entropy, .out = out, .in = {log_p}, .data = mask});
    return out;
}

/* d(- e^l l)/dl = - e^l (1 + l). */
static void back_entropy(const graft_entry *entry)
{
    const graft_matrix *log_p = entry->in[0];
    const uint8_t *mask = entry->data;
    for (uint32_t i = 0; i < log_p->rows && log_p->gradient != NULL; i++) {
        size_t first = (size_t)i * log_p->cols;
        for (size_t k = first; k < first + log_p->cols; k++) {
            if (is_legal(mask, k)) {
                float l = log_p->value[k];
                log_p->gradient[k] -= entry->out->gradient[i] * graft_exp(l) * (1.0F + l);
            }
        }
    }
}

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
    graft_tape_record(
        tape,
        (graft_entry){
            .backward = back_weighted_sum, .out = out, .in = {x}, .data = weight, .number = scale});
    return out;
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

graft_matrix *graft_loss_choice(graft_tape *tape, const graft_matrix *logits, const uint8_t *mask,
                                const uint32_t *index, const float *weight, float scale)
{
    const graft_matrix *log_p = graft_log_softmax(tape, logits, mask);
    return graft_weighted_sum(tape, graft_pick(tape, log_p, index), weight, -scale);
}

/* --------------------------------------------------------------------- losses with local slopes */

/* These compute each element's slope during the forward pass; `saved` holds it, scaled. */
static graft_backward back_slopes;
static graft_matrix *record_slopes(graft_tape *tape, const graft_matrix *x, double loss,
                                   float *slope)
{
    graft_matrix *out = scalar(tape, loss);
    graft_tape_record(
        tape, (graft_entry){.backward = back_slopes, .out = out, .in = {x}, .saved = slope});
    return out;
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
    return record_slopes(tape, logits, sum, slope);
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
    return record_slopes(tape, prediction, sum, slope);
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
    return record_slopes(tape, log_p, sum, slope);
}
