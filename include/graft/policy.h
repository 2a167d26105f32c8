/* policy.h - the learned policy: what it sees, what it holds, how it decides; and the loop that
 * optimises a graph with it. Included by graft.h; declarations only.
 *
 * The network is the float network of train/encoder.h and train/controller.h in int8 weights:
 * integers in, integers out, every rounding spelled out. Equal graphs give equal decisions on every
 * processor.
 *
 *      nodes, edges ──► encoder (graph network) ──► latent ──► trunk ──┬──► logits of rules, NO-OP
 *                                     locations per rule ────────┘     └──► logits of the locations
 *                                                                           of the chosen rule
 *
 * Which rules and locations exist is not the network's to say: a rule is open when it has a
 * location in the graph, and the locations of a rule are numbered 0, 1, ... in canonical order: by
 * the anchor's place in topological order, then in the matcher's order, only those where
 * graft_match_try succeeds, at most `location_limit`. */
#ifndef GRAFT_POLICY_H
#define GRAFT_POLICY_H

/* ---------------------------------------------------------------- features */

/* Stands for 1.0: the float network is given entry / GRAFT_FEATURE_SCALE. */
#define GRAFT_FEATURE_SCALE 64

/* Where each feature begins in a row; features.def says what it is. */
enum {
#define FEATURE(name, width)                                                                       \
    GRAFT_FEATURE_##name, GRAFT_FEATURE_END_##name = GRAFT_FEATURE_##name + (width)-1,
#include "features.def"
    GRAFT_FEATURE_COUNT
};
enum {
#define EDGE_FEATURE(name, width)                                                                  \
    GRAFT_EDGE_FEATURE_##name,                                                                     \
        GRAFT_EDGE_FEATURE_END_##name = GRAFT_EDGE_FEATURE_##name + (width)-1,
#include "features.def"
    GRAFT_EDGE_FEATURE_COUNT
};

/* FNV-1a over the rows of features.def and operators.def; a generated header compiles only with the
 * number it was made for. tests/emit computes it anew. */
#define GRAFT_FEATURE_HASH 0x8a2fa704u

/* The policy's graph: its nodes are the nodes that run at each inference (not is_const) in the
 * order of `order`; an edge runs from producer to reader for each operand of a node that
 * graft_edge_exists. `out` has GRAFT_FEATURE_COUNT entries. */
void graft_node_features(const graft_graph *graph, const graft_order *order, graft_index node,
                         int8_t *out);
/* Whether operand `operand` of `node` is computed by a node of the policy's graph. */
bool graft_edge_exists(const graft_graph *graph, graft_index node, uint32_t operand);
/* Features of that edge; `out` has GRAFT_EDGE_FEATURE_COUNT entries. */
void graft_edge_features(const graft_graph *graph, graft_index node, uint32_t operand, int8_t *out);
/* Features of the whole graph, from the number of locations of each rule: log of 1 + count, b = 4
 * (see features.def). `counts` and `out` have `rule_count` entries. */
void graft_global_features(const uint16_t *counts, uint32_t rule_count, int8_t *out);

/* log(1 + count) in units of log 256 / GRAFT_ACTIVATION_MOST; counts over 255 count as 255. What
 * the trunk sees of each rule. */
int16_t graft_log_count(uint32_t count);

/* ----------------------------------------------------------------- network */

/* Weights are int8; activations are int16 within GRAFT_ACTIVATION_MOST: a latent moves so little
 * from one rewrite to the next that int8 activations would change one choice in twenty. Most inputs
 * of a layer and largest bias: 2048 * 127 * 4095 + 2^30 < 2^31, so no sum overflows. */
#define GRAFT_ACTIVATION_MOST  4095
#define GRAFT_DENSE_MAX_INPUTS 2048
#define GRAFT_DENSE_MAX_BIAS   (1 << 30)

/* Multiplies by multiplier / 2^shift and rounds to nearest, halves away from zero. Sixteen bits are
 * more than an activation has, and make four bytes of a row's scale. */
typedef struct graft_scale {
    uint16_t multiplier; /* 0, or 2^15 to 2^16 - 1. */
    uint8_t shift;       /* 0 to 62 */
} graft_scale;

/* y = x W + b, one row of weights per output: sum, then the row's scale. */
typedef struct graft_dense {
    const int8_t *weights;     /* (outputs, inputs), -127 to 127 */
    const int32_t *bias;       /* (outputs), in units of the sum */
    const graft_scale *scales; /* (outputs) */
    uint16_t inputs;
    uint16_t outputs;
} graft_dense;

/* One round of message passing. Messages are sums over [h, edge] and leave their scale in units of
 * 1/16 of the mean's; `node` maps [h, mean in, mean out] and adds the old h, scaled by `keep`, both
 * in units of 1/16 of the new h's. */
typedef struct graft_policy_round {
    graft_dense incoming; /* (hidden, hidden + edge features) */
    graft_dense outgoing; /* (hidden, hidden + edge features) */
    graft_dense node;     /* (hidden, 3 hidden) */
    graft_scale keep;
} graft_policy_round;

/* Rewrites known to be good for one graph. A location is the place among all matches of the rule,
 * whatever the limit on new weights; each step is matched anew and the plan dropped when one fails.
 */
typedef struct graft_plan_step {
    uint16_t rule;
    uint16_t location;
} graft_plan_step;

typedef struct graft_recorded_plan {
    uint64_t graph_hash;  /* Of the graph it begins with... */
    uint64_t result_hash; /* ...and of the one it ends with. */
    const graft_plan_step *steps;
    uint16_t step_count;
} graft_recorded_plan;

/* The rule never makes a graph worse and removes at least one node: graft_simplify applies it. */
#define GRAFT_RULE_ALWAYS 1u

/* Everything a generated header holds; all tables are const. */
typedef struct graft_policy {
    uint32_t abi;          /* GRAFT_ABI */
    uint32_t feature_hash; /* GRAFT_FEATURE_HASH */
    const char *metadata;  /* JSON: model, versions, seed, device. */

    const uint8_t *rules;         /* Packed, one behind the other. */
    const uint32_t *rule_offsets; /* (rule_count + 1) into `rules` */
    const uint8_t *rule_flags;    /* (rule_count), GRAFT_RULE_... */
    uint16_t rule_count;
    uint16_t location_limit;

    uint16_t hidden;
    uint16_t latent;
    uint16_t trunk_width;
    uint16_t embedding_width;
    uint16_t global_features; /* 0 or rule_count: those of the encoder. */
    uint16_t count_features;  /* 0 or rule_count: those of the trunk. */
    uint16_t round_count;
    uint16_t trunk_count; /* 1 or 2 */
    graft_dense input;    /* (hidden, GRAFT_FEATURE_COUNT), relu */
    const graft_policy_round *rounds;
    graft_dense global; /* (latent, 2 hidden + global features): [mean h, max h, u] in units
                           of 1/256, then tanh */
    const int32_t *latent_centres;    /* (latent), in units of 2^-26: taken off the tanh... */
    const graft_scale *latent_scales; /* (latent): ...which then gets the unit of the trunk */
    graft_dense trunk[2];       /* (trunk_width, latent + count features or trunk_width), relu */
    graft_dense xfer;           /* (rule_count + 1, trunk_width), logits */
    const int8_t *embeddings;   /* (rule_count, embedding_width) */
    graft_dense location_trunk; /* (trunk_width, trunk_width + embedding_width), relu */
    graft_dense location;       /* (location_limit, trunk_width), logits */

    const graft_recorded_plan *plans; /* By graph hash, ascending. */
    uint16_t plan_count;
} graft_policy;

/* Logits are in units of 1 / 65536. */
#define GRAFT_LOGIT_ONE 65536

/* --------------------------------------------------------------- deciding */

typedef struct graft_optimize_options {
    uint64_t weight_bytes_limit; /* As in graft_apply_options; 0 unless the product can run a weight
                                    program. */
    uint32_t step_limit;         /* Most rewrites of one call, simplifications included. */
    bool use_plans;              /* Replay a recorded plan when the graph has one. */
    bool simplify;               /* Apply the rules marked "always" first and after each step. */
    bool guard;                  /* Stop when a graph comes back. */
} graft_optimize_options;

/* No new weights, 256 steps, everything switched on. */
graft_optimize_options graft_optimize_options_default(void);

typedef enum graft_decision_origin {
    GRAFT_FROM_POLICY = 0,
    GRAFT_FROM_PLAN = 1,
    GRAFT_FROM_SIMPLIFY = 2
} graft_decision_origin;

/* One rewrite, as applied: node ids are those before it. */
typedef struct graft_decision {
    graft_index nodes[GRAFT_RULE_MAX_NODES]; /* Matched nodes, in pattern order. */
    uint16_t rule;                           /* rule_count: NO-OP; all else is 0 then. */
    uint16_t location;
    uint16_t location_count; /* Locations that the rule had; 0 when they were not counted. */
    uint8_t node_count;
    uint8_t origin; /* graft_decision_origin */
} graft_decision;

typedef enum graft_stop {
    GRAFT_STOP_NO_OP = 0,   /* The policy chose to stop. */
    GRAFT_STOP_NO_RULE = 1, /* No rule has a location. */
    GRAFT_STOP_STEP_LIMIT = 2,
    GRAFT_STOP_REPEATED = 3, /* The graph is one that has been before. */
    GRAFT_STOP_PLAN = 4      /* A recorded plan came to its end. */
} graft_stop;

typedef struct graft_report {
    graft_decision *decisions; /* The caller's, may be NULL: where the first `decision_limit`
                                  rewrites are written. */
    uint32_t decision_limit;
    uint32_t step_count; /* Rewrites in all; of those: */
    uint32_t plan_step_count;
    uint32_t simplify_step_count;
    graft_stop stop;
    bool plan_dropped;     /* A recorded plan did not fit; the policy went on from there. */
    uint64_t weight_bytes; /* New weights created by all rewrites together. */
    uint64_t hash_before;
    uint64_t hash_after;
    graft_index active_before; /* Nodes that run at each inference. */
    graft_index active_after;
} graft_report;

/* What the policy thinks of a graph; arrays lie in the workspace until its next use. */
typedef struct graft_scores {
    const uint16_t *counts;         /* (rule_count): locations of each rule */
    const int32_t *tanhs;           /* (latent), in units of 2^-26 */
    const int16_t *latent;          /* (latent), standardised, in the unit of the trunk's input */
    const int32_t *xfer_logits;     /* (rule_count + 1), the last one NO-OP; not masked */
    const int32_t *location_logits; /* (location_limit), of the chosen rule; NULL for NO-OP */
    uint16_t rule;                  /* The choice; rule_count: NO-OP. */
    uint16_t location;
} graft_scores;

/* Bytes for the calls below on graphs with these limits; a `step_limit` for graft_optimize. */
size_t graft_optimize_workspace_bytes(const graft_policy *policy, const graft_limits *limits,
                                      uint32_t step_limit);

/* Decides without applying: the open rule of the largest logit, the location of the largest logit
 * among those it has; the lowest index on ties. GRAFT_BAD_INPUT when the policy was made for
 * another build of Graft or is damaged, or the graph has a cycle; GRAFT_NO_MEMORY when the
 * workspace is too small; GRAFT_CAPACITY beyond 65535 nodes. */
GRAFT_MUST_USE graft_status graft_policy_scores(const graft_graph *graph,
                                                const graft_policy *policy,
                                                const graft_optimize_options *options,
                                                void *workspace, size_t workspace_bytes,
                                                graft_scores *scores);
/* Decides and applies one rewrite; `decision->rule` is rule_count when it was NO-OP. */
GRAFT_MUST_USE graft_status graft_policy_step(graft_graph *graph, const graft_policy *policy,
                                              const graft_optimize_options *options,
                                              void *workspace, size_t workspace_bytes,
                                              graft_decision *decision);
/* Applies the rules marked "always" until none fits. `report` as below. */
GRAFT_MUST_USE graft_status graft_simplify(graft_graph *graph, const graft_policy *policy,
                                           const graft_optimize_options *options, void *workspace,
                                           size_t workspace_bytes, graft_report *report);
/* Simplifies, replays a plan or follows the policy until it stops; at most options->step_limit
 * rewrites. `report` may be NULL; its `decisions` and `decision_limit` are read, all else is
 * written. Every status but GRAFT_OK leaves the graph as it was. */
GRAFT_MUST_USE graft_status graft_optimize(graft_graph *graph, const graft_policy *policy,
                                           const graft_optimize_options *options, void *workspace,
                                           size_t workspace_bytes, graft_report *report);

#endif
