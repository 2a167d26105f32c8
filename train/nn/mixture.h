/* mixture.h - mixtures of Gaussians, one per latent dimension (Bishop 1994; per dimension as in
 * Ha & Schmidhuber 2018): dimension d has `components` weights, means and widths of its own, and
 * dimensions are independent given the network's state. One joint mixture over the vector would
 * need far more components to express that a few dimensions move while the others stay.
 *
 * A network outputs a row of 3 * components * dims numbers. Component k of dimension d is
 *     logit of the weight  row[k * dims + d]
 *     mean                 row[(components + k) * dims + d]
 *     s                    row[(2 * components + k) * dims + d],  sigma = sigma_floor + e^s
 * The floor keeps the likelihood of a dimension that hardly moves from growing without bound. */
#pragma once

#include "graph/base/rng.h"
#include "train/nn/tape.h"

typedef struct {
    uint32_t dims;
    uint32_t components;
    float sigma_floor;
} graft_mixture;

static inline uint32_t graft_mixture_width(const graft_mixture *mixture)
{
    return 3 * mixture->components * mixture->dims;
}

/* scale * sum over rows and dimensions of - log p(target), in nats. `raw` is (n, width), `target`
 * (n, dims). */
graft_matrix *graft_loss_mixture(graft_tape *tape, const graft_matrix *raw, const float *target,
                                 const graft_mixture *mixture, float scale);

/* Draws `out` (dims) from one row. Temperature t divides the weights' logits and multiplies sigma
 * by sqrt(t) (Ha & Schmidhuber 2018, A.1); 0 gives the mean of the heaviest component. Without
 * `rng` it is the mean of the mixture. */
void graft_mixture_sample(const graft_mixture *mixture, const float *raw, float temperature,
                          graft_rng *rng, float *out);
/* The mean of the mixture, `out` (dims). */
void graft_mixture_mean(const graft_mixture *mixture, const float *raw, float *out);
