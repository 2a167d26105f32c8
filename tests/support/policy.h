/* policy.h - a policy without training: random networks, a handful of rules, a small
 * keyword-spotting graph, and states recorded from it. */
#ifndef TESTS_POLICY_H
#define TESTS_POLICY_H

#include "emit/calibrate.h"
#include "emit/contents.h"
#include "emit/trained.h"
#include "tests/support/build.h"
#include "train/recording.h"

enum {
    KIT_FOLD_SCALE,
    KIT_FUSE_RELU,
    KIT_DROP_IDENTITY, /* Marked "always". */
    KIT_MERGE_MATMUL,
    KIT_SWAP_ADD,    /* add(a, b) = add(b, a): goes round in circles. */
    KIT_DOUBLE_RELU, /* relu(x) = relu(relu(x)): fits for ever. */
    KIT_SINGLE_RELU, /* relu(relu(x)) = relu(x) */
    KIT_RULES
};

typedef struct policy_kit_options {
    uint64_t seed;
    uint32_t trunk_layers; /* 1 or 2 */
    bool counts_input;
    float noop_bias;    /* Of the logit of NO-OP. */
    float head_gain;    /* The heads' weights are multiplied by this: untrained ones are nearly
                           equal. */
    uint32_t favourite; /* This rule's logit is raised by 1000; KIT_RULES: none. */
} policy_kit_options;

typedef struct policy_kit {
    graft_rule rules[KIT_RULES];
    graft_xfers xfers;
    graft_graph *graph;
    graft_environment environment;
    graft_encoder encoder;
    graft_controller controller;
    graft_standardiser standardiser;
    graft_float_policy network;
    graft_states states; /* Calibrated on. */
    graft_states others; /* Not calibrated on. */
    graft_policy policy; /* Quantised, with rules, without plans. */
} policy_kit;

extern const char *const policy_kit_names[KIT_RULES];
extern const policy_kit_options
    policy_kit_plain; /* Seed 1, two layers, no counts, no stopping, no favourite. */

/* Draws any legal action. */
extern const graft_chooser policy_kit_chooser;

/* In env->life. The networks are standardised and calibrated on random episodes. */
policy_kit *policy_kit_open(graft_env *env, const policy_kit_options *options);
/* Keyword spotting after DS-CNN: a convolution, depthwise separable blocks with a residual sum, two
 * classifiers on one vector; identities in between. */
graft_graph *policy_kit_graph(graft_arena *arena);
/* A policy over the kit's rules that decides by a tariff and has no network; the tariff has a row
 * for every form that rewriting meets, priced by its work, and no fallback. In env->life. */
graft_policy policy_kit_by_tariff(graft_env *env, const policy_kit *kit);
/* A copy of the kit's graph with room for rewriting. */
graft_graph *policy_kit_copy(graft_env *env, const policy_kit *kit);

#endif
