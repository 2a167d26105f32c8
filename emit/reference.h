/* reference.h - the policy's network in floats, as plain arrays and plain loops: what the integer
 * network approximates. It says how large each activation becomes, which fixes the integer units,
 * and what the float network would have decided.
 *
 * The formulas are those of train/encoder.h and train/controller.h; tests/emit compares them with
 * the training code. */
#ifndef GRAFT_REFERENCE_H
#define GRAFT_REFERENCE_H

#include "train/encoder.h"

/* y = x W + b: weight (inputs, outputs) row-major, bias (outputs) or NULL. */
typedef struct graft_float_layer {
    const float *weight;
    const float *bias;
    uint32_t inputs;
    uint32_t outputs;
} graft_float_layer;

typedef struct graft_float_round {
    graft_float_layer incoming; /* (hidden, hidden): of the far node; */
    graft_float_layer outgoing;
    graft_float_layer incoming_edge; /* (edge features, hidden), without bias */
    graft_float_layer outgoing_edge;
    graft_float_layer node; /* (3 hidden, hidden) */
} graft_float_round;

/* The arrays belong to whoever trained them. */
typedef struct graft_float_policy {
    uint32_t hidden;
    uint32_t latent;
    uint32_t round_count;
    uint32_t rule_count;
    uint32_t embedding_width;
    uint32_t global_features; /* 0 or rule_count */
    uint32_t count_features;  /* 0 or rule_count */
    uint32_t trunk_count;     /* 1 or 2 */
    graft_float_layer input;  /* (GRAFT_FEATURE_COUNT, hidden) */
    graft_float_round rounds[GRAFT_ENCODER_ROUNDS_MOST];
    graft_float_layer global; /* (2 hidden + global features, latent) */
    const float *latent_mean; /* (latent): z = (tanh - mean) scale; NULL: z = tanh */
    const float *latent_scale;
    graft_float_layer trunk[2];       /* (latent + count features or width, width) */
    graft_float_layer xfer;           /* (width, rule_count + 1) */
    const float *embeddings;          /* (rule_count, embedding_width) */
    graft_float_layer location_trunk; /* (width + embedding_width, width) */
    graft_float_layer location;       /* (width, locations) */
} graft_float_policy;

/* Largest magnitudes seen. */
typedef struct graft_ranges {
    float input;                               /* h before the first round */
    float h[GRAFT_ENCODER_ROUNDS_MOST];        /* after each */
    float incoming[GRAFT_ENCODER_ROUNDS_MOST]; /* means of messages */
    float outgoing[GRAFT_ENCODER_ROUNDS_MOST];
    float latent; /* standardised */
    float trunk[2];
    float place; /* hidden layer of the location head, over all rules with a location */
} graft_ranges;

typedef struct graft_float_scores {
    float *tanhs;  /* (latent) */
    float *latent; /* (latent): the same standardised */
    float *trunk;  /* (trunk width) */
    float *xfers;  /* (rule_count + 1) */
} graft_float_scores;

/* Runs the network on one state and its number of locations per rule; results lie in `arena`.
 * `ranges` may be NULL, else it is widened. */
graft_float_scores graft_reference_run(const graft_float_policy *policy, graft_arena *arena,
                                       const graft_graph_arrays *state, const uint16_t *counts,
                                       graft_ranges *ranges);
/* The logits of the locations of `rule`, in `arena`. `ranges` as above. */
float *graft_reference_locations(const graft_float_policy *policy, graft_arena *arena,
                                 const float *trunk, uint32_t rule, graft_ranges *ranges);
/* Widens `ranges` by one state: the network, and the location head of every rule with a location.
 */
void graft_ranges_add(graft_ranges *ranges, const graft_float_policy *policy, graft_arena *scratch,
                      const graft_graph_arrays *state, const uint16_t *counts);
/* Choices as graft_policy_scores makes them: the best rule with a location, NO-OP included; the
 * best of the first `count` locations. */
uint32_t graft_reference_rule(const graft_float_policy *policy, const float *xfers,
                              const uint16_t *counts);
uint32_t graft_reference_location(const float *locations, uint32_t count);

#endif
