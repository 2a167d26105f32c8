/* pipeline.h - what the stages of graft_generate hand on to one another. For verify/generate*.c
 * alone. */
#pragma once

#include "verify/generate.h"
#include "verify/pool.h"
#include "verify/set/derivations.h"

typedef enum graft_rule_state {
    GRAFT_RULE_OPEN,
    GRAFT_RULE_SELECTED, /* For the solver. */
    GRAFT_RULE_PROVED,
    GRAFT_RULE_NARROWED, /* Refuted, restricted to what it was found at, not swept again yet. */
    GRAFT_RULE_GONE,     /* Rejected. */
    GRAFT_RULE_FOLLOWS   /* From proved rules. */
} graft_rule_state;

/* A rule on its way into the set. */
typedef struct graft_lifted {
    graft_rule rule;
    graft_point origin;
    uint64_t id;
    uint32_t candidate; /* The first one that was lifted to it. */
    int32_t gain;
    graft_rule_state state;
    bool is_narrowed;   /* To where it was found, after it was refuted or restricted. */
    bool is_restricted; /* To what was proved for all sizes. */
    bool is_weakened;   /* Narrowed, and what is not needed of that left out again. */
    /* From other rules, as far as these are proved; a step is twice the number of a rule, and 1
     * more when that is read from right to left. Instance i is the check's. */
    graft_derivation derivations[GRAFT_DERIVED_INSTANCES];
    uint32_t derivation_count;
    graft_check check;
} graft_lifted;

typedef struct graft_pipeline {
    graft_env *env;
    graft_arena *arena;
    const graft_candidates *candidates;
    const graft_generate_options *options;
    const graft_sweeper *sweeper;
    graft_generate_counts *counts;
    graft_kept *kept;    /* What lifting, sweeping and proving found; NULL: nothing is kept. */
    graft_pool *provers; /* NULL when there is nothing more to prove. */
    graft_lifted *rules;
    uint32_t rule_count;
} graft_pipeline;

/* Starts the processes that ask the solver: before anything whose traces in memory differ from run
 * to run. */
GRAFT_MUST_USE graft_status graft_pipeline_open_provers(graft_pipeline *p);
/* Candidates to rules: fills `rules`. */
GRAFT_MUST_USE graft_status graft_pipeline_lift(graft_pipeline *p);
/* Keeps the rules that are proved and do not follow from others. */
GRAFT_MUST_USE graft_status graft_pipeline_prove(graft_pipeline *p);
/* Whether one of the rules has this id. */
bool graft_pipeline_has(const graft_pipeline *p, uint64_t id);
/* Processor time of this process and of the children that ended. */
uint64_t graft_pipeline_clock_ns(void);
/* Fails when an item ran out of time: a verdict must not depend on a clock. `what` names the
 * stage. */
GRAFT_MUST_USE graft_status graft_pipeline_judge(const graft_pipeline *p,
                                                 const graft_pool_result *results, uint32_t count,
                                                 const char *what);
