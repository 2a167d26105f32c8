/* mixture.c - see mixture.h. Components are the outer loop and dimensions the inner one, so that
 * every loop runs over contiguous floats. */
#include "train/nn/mixture.h"

#include "train/nn/losses.h"
#include "train/nn/numeric.h"

#include <assert.h>
#include <math.h>

static const float half_log_two_pi = 0.918938533F;

/* Work space of one row; arrays of (components, dims), the last four of (dims). */
typedef struct {
    float *inverse; /* 1 / sigma */
    float *z;       /* (target - mean) / sigma */
    float *joint;   /* log of weight and density, then the posterior. */
    float *prior;   /* e^(logit - most), then the weight. */
    float *joint_most;
    float *joint_sum;
    float *prior_most;
    float *prior_sum;
} mixture_row;

static mixture_row new_row(graft_arena *arena, size_t dims, size_t components)
{
    size_t size = dims * components;
    float *block = GRAFT_NEW(arena, float, 4 * size + 4 * dims);
    float *tail = block + 4 * size;
    return (mixture_row){block, block + size, block + 2 * size, block + 3 * size,
                         tail,  tail + dims,  tail + 2 * dims,  tail + 3 * dims};
}

/* Densities of each component, and the largest over components. */
static void weigh_row(const graft_mixture *mixture, const float *restrict raw,
                      const float *restrict target, const mixture_row *row)
{
    size_t dims = mixture->dims;
    size_t size = dims * mixture->components;
    for (size_t k = 0; k < mixture->components; k++) {
        const float *restrict logit = raw + k * dims;
        const float *restrict mean = logit + size;
        const float *restrict s = mean + size;
        float *restrict inverse = row->inverse + k * dims;
        float *restrict z = row->z + k * dims;
        float *restrict joint = row->joint + k * dims;
        for (size_t d = 0; d < dims; d++) {
            float sigma = mixture->sigma_floor + graft_exp(s[d]);
            inverse[d] = 1.0F / sigma;
            z[d] = (target[d] - mean[d]) * inverse[d];
            joint[d] = logit[d] - graft_ln(sigma) - 0.5F * z[d] * z[d];
        }
        for (size_t d = 0; d < dims; d++) {
            float a = row->joint_most[d];
            float b = row->prior_most[d];
            row->joint_most[d] = k == 0 || joint[d] > a ? joint[d] : a;
            row->prior_most[d] = k == 0 || logit[d] > b ? logit[d] : b;
        }
    }
}

/* out = e^(in - most) per component, sums over components. */
static void exponentiate(const graft_mixture *mixture, const float *in, const float *restrict most,
                         float *out, float *restrict sum)
{
    size_t dims = mixture->dims;
    for (size_t d = 0; d < dims; d++) {
        sum[d] = 0.0F;
    }
    for (size_t k = 0; k < mixture->components; k++) {
        for (size_t d = 0; d < dims; d++) {
            float e = graft_exp(in[k * dims + d] - most[d]);
            out[k * dims + d] = e;
            sum[d] += e;
        }
    }
}

/* d/dlogit = prior - posterior; d/dmean = - posterior z / sigma;
 * d/ds = posterior (1 - z^2) / sigma * e^s. `slope` (3 components dims). */
static void slope_row(const graft_mixture *mixture, const mixture_row *row, float scale,
                      float *restrict slope)
{
    size_t dims = mixture->dims;
    size_t size = dims * mixture->components;
    for (size_t k = 0; k < mixture->components; k++) {
        for (size_t d = 0; d < dims; d++) {
            size_t m = k * dims + d;
            float posterior = scale * row->joint[m] / row->joint_sum[d];
            float prior = scale * row->prior[m] / row->prior_sum[d];
            float spread = 1.0F - mixture->sigma_floor * row->inverse[m]; /* e^s / sigma */
            slope[m] = prior - posterior;
            slope[size + m] = -posterior * row->z[m] * row->inverse[m];
            slope[2 * size + m] = posterior * (1.0F - row->z[m] * row->z[m]) * spread;
        }
    }
}

/* The row's - log p, per dimension and in total. */
static double lose_row(const graft_mixture *mixture, const float *raw, const float *target,
                       const mixture_row *row, double *per_dimension)
{
    weigh_row(mixture, raw, target, row);
    exponentiate(mixture, row->joint, row->joint_most, row->joint, row->joint_sum);
    exponentiate(mixture, raw, row->prior_most, row->prior, row->prior_sum);
    double sum = 0.0;
    for (uint32_t d = 0; d < mixture->dims; d++) {
        float log_prior = row->prior_most[d] + graft_ln(row->prior_sum[d]);
        float log_joint = row->joint_most[d] + graft_ln(row->joint_sum[d]);
        per_dimension[d] = (double)(log_prior - log_joint + half_log_two_pi);
        sum += per_dimension[d];
    }
    return sum;
}

graft_matrix *graft_loss_mixture(graft_tape *tape, const graft_matrix *raw, const float *target,
                                 const graft_mixture *mixture, float scale)
{
    assert(raw->cols == graft_mixture_width(mixture));
    float *slope = tape->recording ? GRAFT_NEW(tape->arena, float, graft_matrix_size(raw)) : NULL;
    mixture_row row = new_row(tape->arena, mixture->dims, mixture->components);
    double *each = GRAFT_NEW(tape->arena, double, mixture->dims);
    double sum = 0.0;
    for (size_t i = 0; i < raw->rows; i++) {
        const float *wanted = target + i * mixture->dims;
        sum += lose_row(mixture, raw->value + i * raw->cols, wanted, &row, each);
        if (slope != NULL) {
            slope_row(mixture, &row, scale, slope + i * raw->cols);
        }
    }
    return graft_loss_of_slopes(tape, raw, sum * (double)scale, slope);
}

/* ------------------------------------------------------------------------------------- sampling */

/* Largest logit of dimension d; the first of equals. */
static uint32_t find_heaviest(const graft_mixture *mixture, const float *raw, uint32_t d)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < mixture->components; k++) {
        if (raw[(size_t)k * mixture->dims + d] > raw[(size_t)best * mixture->dims + d]) {
            best = k;
        }
    }
    return best;
}

/* A component of dimension d, drawn by its weight at the temperature. */
static uint32_t draw_component(const graft_mixture *mixture, const float *raw, uint32_t d,
                               float temperature, graft_rng *rng)
{
    uint32_t heaviest = find_heaviest(mixture, raw, d);
    float most = raw[(size_t)heaviest * mixture->dims + d];
    float sum = 0.0F;
    for (uint32_t k = 0; k < mixture->components; k++) {
        sum += graft_exp((raw[(size_t)k * mixture->dims + d] - most) / temperature);
    }
    float left = (float)graft_rng_uniform(rng) * sum;
    for (uint32_t k = 0; k < mixture->components; k++) {
        left -= graft_exp((raw[(size_t)k * mixture->dims + d] - most) / temperature);
        if (left < 0.0F) {
            return k;
        }
    }
    return heaviest; /* Only by rounding. */
}

void graft_mixture_sample(const graft_mixture *mixture, const float *raw, float temperature,
                          graft_rng *rng, float *out)
{
    if (rng == NULL) {
        graft_mixture_mean(mixture, raw, out);
        return;
    }
    size_t dims = mixture->dims;
    size_t size = dims * mixture->components;
    float widening = sqrtf(temperature);
    for (uint32_t d = 0; d < mixture->dims; d++) {
        if (temperature <= 0.0F) {
            out[d] = raw[size + find_heaviest(mixture, raw, d) * dims + d];
            continue;
        }
        size_t k = draw_component(mixture, raw, d, temperature, rng);
        float sigma = mixture->sigma_floor + graft_exp(raw[2 * size + k * dims + d]);
        float noise = (float)graft_rng_normal(rng);
        out[d] = raw[size + k * dims + d] + sigma * widening * noise;
    }
}

void graft_mixture_mean(const graft_mixture *mixture, const float *raw, float *out)
{
    size_t dims = mixture->dims;
    size_t size = dims * mixture->components;
    for (uint32_t d = 0; d < mixture->dims; d++) {
        float most = raw[find_heaviest(mixture, raw, d) * dims + d];
        float sum = 0.0F;
        float mean = 0.0F;
        for (size_t k = 0; k < mixture->components; k++) {
            float weight = graft_exp(raw[k * dims + d] - most);
            sum += weight;
            mean += weight * raw[size + k * dims + d];
        }
        out[d] = mean / sum;
    }
}
