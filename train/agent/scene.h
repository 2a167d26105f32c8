/* scene.h - a state as the candidate-scoring agent sees it: the graph, and the rewrites on offer.
 *
 *      environment ──► every (rule, match), with what the engine computes exactly there
 *          │                 │  alike ones grouped, some of each kept
 *          ▼                 ▼
 *        graph  +  candidates: action, matched nodes, rule, facts, prior     = scene
 *
 * A candidate's prior is the logit that the tariff alone would give it: it rises with the estimated
 * gain, is 0 for NO-OP, the last candidate of every scene, and lower for what gains nothing. A policy
 * of these logits alone does what greedy over the tariff does. What the tariff calls dearer than the
 * first graph is not on offer. All of it is computed by the engine, as where the policy ships.
 *
 * Nothing here depends on how many rules there are: a rule is its sheet, the graphs of its two
 * patterns. Nodes and rules may be numbered in any way; candidates that the engine cannot tell apart
 * (`alike` of each are kept) are the first ones in the matcher's order. */
#pragma once

#include "train/nn/encoder.h"
#include "train/search/environment.h"

/* Of nodes: what the engine tells the network (graft_scene_node), and whether it is a node of a
 * pattern. */
enum { GRAFT_SCENE_PATTERN = GRAFT_SCENE_FEATURES, GRAFT_SCENE_NODE_FEATURES };

/* Of candidates: the engine's facts (graft_candidate_facts), which the scorer sees, and what only
 * the world model does. */
enum {
    GRAFT_FACT_ALIKE = GRAFT_FACT_SEEN, /* How many there are like it, as a logarithm. */
    GRAFT_FACT_RECENT, /* 1 when it, or what is beside it, changed with the last rewrite. */
    GRAFT_FACT_COUNT
};

/* A graph of a scene or a pattern in bytes, scaled by GRAFT_FEATURE_SCALE. */
typedef struct graft_sketch {
    uint32_t node_count;
    uint32_t edge_count;
    int8_t *nodes; /* (node_count, GRAFT_SCENE_NODE_FEATURES) */
    int8_t *edges; /* (edge_count, GRAFT_EDGE_FEATURE_COUNT) */
    uint32_t *senders;
    uint32_t *receivers;
} graft_sketch;

/* A rule: its patterns. That of NO-OP has one node of zeros on each side, and the id 0. */
typedef struct graft_sheet {
    uint64_t id;
    graft_sketch source;
    graft_sketch target;
} graft_sheet;

typedef struct graft_scene {
    graft_sketch graph;
    float globals[GRAFT_SCENE_GLOBALS];
    uint32_t count; /* Of candidates, NO-OP included. */
    graft_action *actions;
    const graft_sheet **sheets;
    float *facts;  /* (count, GRAFT_FACT_COUNT) */
    float *priors; /* (count) */
    uint32_t member_count;
    uint32_t *member_nodes;      /* Rows of the graph... */
    uint32_t *member_candidates; /* ...and the candidates that match them. */
    uint64_t *keys; /* (count): what each match is known by as long as it is there; 0: NO-OP. */
    uint32_t present_count;
    uint64_t *present; /* Those of all matches, on offer or not, ascending. */
    bool nameless;     /* Operators and rules are known by their traits alone. */
    graft_estimated estimated;
    /* Of a dreamed scene (foresight.h), which has no graph; else NULL. */
    const float *latent; /* (latent) */
    const float *places; /* (count, width) */
} graft_scene;

typedef struct graft_scene_options {
    uint32_t limit;   /* Most candidates of a scene besides NO-OP. */
    uint32_t alike;   /* Most of a kind. */
    double sharpness; /* Of priors: logits per e-fold of gain. */
    double reserve;   /* What the prior of a candidate that gains nothing is lower by. */
} graft_scene_options;

/* The part of the whole that a fact's logarithm stands for. */
double graft_fact_part(float logarithm);
/* The prior of a candidate by its facts. */
float graft_fact_prior(const graft_scene_options *options, const float *facts);
/* The same as numbers for a policy: logit units for each unit of graft_part_log, and the
 * reserve. */
uint32_t graft_prior_slope(const graft_scene_options *options);
uint32_t graft_prior_reserve(const graft_scene_options *options);

/* Whether the tariff would take it. */
bool graft_fact_gains(const float *facts);

/* An environment with what it takes to see it. */
typedef struct graft_observer {
    graft_environment *environment;
    graft_scene_options options;
    graft_estimator estimator;
    graft_sheet *sheets; /* By rule; that of NO-OP last. */
    graft_estimated first;
    uint32_t *row_of; /* By node id. */
} graft_observer;

/* Opens an observer in `arena`; environment and tariff are kept. The environment is reset. */
GRAFT_MUST_USE graft_status graft_observer_open(graft_env *env, graft_arena *arena,
                                                graft_environment *environment,
                                                const graft_tariff *tariff,
                                                const graft_scene_options *options,
                                                graft_observer *observer);
/* Takes the environment's state into `arena`. */
GRAFT_MUST_USE graft_status graft_scene_take(graft_env *env, graft_arena *arena,
                                             graft_observer *observer, bool nameless,
                                             graft_scene *scene);

/* Scenes side by side. Graphs are the scenes', then the sources of all rules in them, then their
 * targets. Rows of choices are the scenes' candidates one after the other. */
typedef struct graft_scene_batch {
    graft_graph_batch graphs;
    uint32_t scene_count;
    uint32_t rule_count;
    uint32_t row_count;
    uint32_t member_count;
    uint32_t *first;        /* (scene_count + 1): row of each scene's first candidate */
    uint32_t *row_scene;    /* (row_count) */
    uint32_t *row_rule;     /* (row_count) */
    float *facts;           /* (row_count, GRAFT_FACT_COUNT) */
    float *priors;          /* (row_count) */
    uint32_t *member_nodes; /* (member_count): of the batch */
    uint32_t *member_rows;  /* (member_count) */
    uint32_t *scene_rows;   /* Graphs of the scenes, */
    uint32_t *source_rows;  /* of the sources */
    uint32_t *target_rows;  /* and of the targets. */
    uint32_t *buckets;      /* (rule_count): of the rules' identities; 0: none */
} graft_scene_batch;
enum { GRAFT_RULE_BUCKETS = 512 };

graft_scene_batch graft_scene_batch_join(graft_arena *arena, const graft_scene *const scenes[],
                                         uint32_t count);
