/* trace.h - which rewrite removed which node of a model, and which one made which of the result. */
#pragma once

#include "graph/model.h"
#include "train/search/search.h"

/* Stands for the step before all others, in which the session simplified the model. */
#define GRAFT_TRACE_SIMPLIFIED UINT32_MAX

typedef struct graft_trace_step {
    const graft_rule *rule; /* Borrowed, as is its name. */
    const char *name;
    const char *place; /* The name in the file of a node that it matched; "" when rules made all. */
    double ns;         /* What the graph that it leaves costs. */
    uint32_t *roots;   /* Numbers of the earlier steps whose nodes it matched or removed. */
    uint32_t root_count;
} graft_trace_step;

/* Steps are numbered from 1 on; 0 is the model as it was given. */
typedef struct graft_trace {
    graft_arena *arena;
    const graft_model *model;
    graft_trace_step *steps;
    uint32_t step_count;
    uint32_t step_capacity;
    graft_index node_most;
    uint32_t *removed;    /* By record of the model: the step that removed its node; 0: none did. */
    uint32_t *born;       /* By node of the graph now: the step that made it. */
    graft_index *sources; /* By node of the graph now: its record; GRAFT_NONE: it has none. */
    bool *there;          /* By node. */
} graft_trace;

/* A trace of what becomes of `first`, which is the model's graph or a simplified copy. */
void graft_trace_open(graft_arena *arena, const graft_model *model, const graft_graph *first,
                      graft_trace *trace);
/* Notes a rewrite after which the graph is `graph`; `nodes` are those matched, as numbered before.
 */
void graft_trace_add(graft_trace *trace, const graft_graph *graph, const graft_trace_step *step,
                     const graft_index *nodes, uint32_t node_count);
/* As graft_plan_replay, noting each step. */
GRAFT_MUST_USE graft_status graft_trace_replay(graft_env *env, graft_trace *trace,
                                               graft_environment *environment,
                                               const graft_action *steps, uint32_t step_count);
