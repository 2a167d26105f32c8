/* grounding.h - what the encoder is trained on before it is frozen: linear heads that must read the
 * facts of the graph off its latent. Per xfer (a rule as the agent sees it): has it a location, how
 * many, what is the best gain among them; per graph: its cost and how often each operator occurs.
 *
 * A latent that carries these facts cannot collapse, and is what world model and controller need.
 */
#ifndef GRAFT_GROUNDING_H
#define GRAFT_GROUNDING_H

#include "train/encoder.h"
#include "train/shards.h"

typedef struct {
    graft_parameters parameters; /* Named "grounding". */
    uint32_t xfers;
    uint32_t operators;
    graft_layer legality;  /* (latent, xfers): logits */
    graft_layer counts;    /* (latent, xfers): log(1 + locations) */
    graft_layer gain;      /* (latent, xfers) */
    graft_layer cost;      /* (latent, 1) */
    graft_layer histogram; /* (latent, operators) */
} graft_grounding;

/* Heads on latents of `latent` numbers; random weights from `seed`, in `arena`. */
void graft_grounding_init(graft_grounding *grounding, graft_arena *arena, uint32_t latent,
                          uint32_t xfers, uint32_t operators, uint64_t seed);

/* Stands for the gain of an xfer that was not tried. */
#define GRAFT_GAIN_UNKNOWN (-1e30F)

/* One graph and the facts about it. Scale cost and gain to about unit variance over the data. */
typedef struct {
    graft_graph_arrays graph;
    const uint16_t *location_counts; /* (xfers); 0: not legal */
    const float *gain; /* (xfers), read only where there is a location; NULL: not known, left out */
    float cost;
    const float *histogram; /* (operators), e.g. log(1 + occurrences) */
} graft_grounding_sample;

/* The samples of one step: samples[index[0]] ... samples[index[count - 1]]. */
typedef struct {
    const graft_grounding_sample *samples;
    const uint32_t *index;
    uint32_t count;
} graft_grounding_batch;

/* Means over the batch: nats for legality, half squared errors for the rest. */
typedef struct {
    double legality;
    double counts;
    double gain;
    double cost;
    double histogram;
    double legal_right; /* Share of the legality bits that the sign of the logit gets right. */
} graft_grounding_loss;

/* The loss of the sum of all five terms, and its gradients in encoder and heads: the caller goes on
 * with graft_adam_step. `shards` was opened with both parameter sets. */
graft_grounding_loss graft_grounding_differentiate(const graft_encoder *encoder,
                                                   const graft_grounding *grounding,
                                                   graft_shards *shards,
                                                   const graft_grounding_batch *batch);
/* The loss alone. */
graft_grounding_loss graft_grounding_evaluate(const graft_encoder *encoder,
                                              const graft_grounding *grounding,
                                              graft_shards *shards,
                                              const graft_grounding_batch *batch);

#endif
