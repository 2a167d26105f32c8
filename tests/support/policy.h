/* policy.h - a policy without training: a random network, a handful of rules, a small
 * keyword-spotting graph, and states met in rewriting it. */
#pragma once

#include "emit/command/contents.h"
#include "emit/header/compile.h"
#include "emit/header/quantise.h"
#include "tests/support/build.h"

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

/* What a kit's policy wants whatever it sees: some rule, to stop (KIT_RULES), any rule rather than
 * to stop, or what its network says. */
enum { KIT_GOES_ON = KIT_RULES + 1, KIT_FREE };

typedef struct policy_kit_options {
    uint64_t seed;
    uint32_t rounds; /* Of message passing. */
    uint32_t favourite;
} policy_kit_options;

/* A graph that occurred in an episode, and all that is on offer there. */
typedef struct policy_kit_state {
    graft_graph *graph;
    graft_scene scene;
} policy_kit_state;

typedef struct policy_kit {
    graft_rule rules[KIT_RULES];
    graft_xfers xfers;
    graft_graph *graph;
    graft_policy table; /* By a tariff that has a row, priced by its work, for every form that
                           rewriting meets, without a network. */
    graft_agent_settings settings;
    graft_environment environment; /* By the table's estimates. */
    graft_estimator estimating;
    graft_observer observer; /* That offers everything. */
    graft_candidates agent;  /* Of random weights. */
    graft_policy policy;     /* Its own, quantised, without plans, but for the favourite. */
    uint32_t state_count;
    policy_kit_state *states;
} policy_kit;

extern const char *const policy_kit_names[KIT_RULES];
extern const policy_kit_options policy_kit_plain; /* Seed 1, two rounds, goes on. */

/* In env->life. */
policy_kit *policy_kit_open(graft_env *env, const policy_kit_options *options);
/* Keyword spotting after DS-CNN: a convolution, depthwise separable blocks with a residual sum, two
 * classifiers on one vector; identities in between. */
graft_graph *policy_kit_graph(graft_arena *arena);
enum { POLICY_DECISIONS_MOST = 512 };

/* One call of graft_optimize, and everything that came of it. */
typedef struct policy_run {
    graft_graph *graph;
    graft_status status;
    graft_report report;
    graft_decision decisions[POLICY_DECISIONS_MOST];
} policy_run;

policy_run *policy_kit_optimize(graft_env *env, graft_graph *graph, const graft_policy *policy,
                                const graft_optimize_options *options);
/* A copy of the kit's graph with room for rewriting. */
graft_graph *policy_kit_copy(graft_env *env, const policy_kit *kit);
