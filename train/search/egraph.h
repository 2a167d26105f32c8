/* egraph.h - an e-graph: every graph that rewrites were seen to lead to, at once (Nelson, "Techniques
 * for program verification", 1980; Willsey et al., "egg", POPL 2021).
 *
 *      a ──► relu ──► b        Rewriting adds nodes and takes none away. Values that are proved
 *      a ──► clip ──► c        equal, as b and c, form a class: whoever reads one may read any.
 *
 * The nodes lie in a graph of the engine, which has no cycle: a node reads values that were there
 * when it was made. So shapes, attributes, new weights and cycles are judged by the engine
 * (graft_match_plan), and what is known of a class is what is known of its first value. Nodes of
 * equal operators, attributes and classes of operands are twins: their results are equal, too. */
#pragma once

#include "train/search/environment.h"

/* An application that brought something new. */
typedef struct graft_egraph_step {
    uint32_t rule;
    graft_match match;
    graft_index targets[GRAFT_RULE_MAX_NODES]; /* Nodes of the target pattern. */
} graft_egraph_step;

typedef struct graft_egraph {
    const graft_xfers *xfers;
    const graft_apply_options *options;
    graft_arena *arena;
    graft_state state;   /* All nodes; the order is that of the last graft_egraph_rebuild. */
    graft_index *parent; /* By value: one of its class, nearer to the first, which has itself. */
    graft_index *next;   /* By value: another one of its class, in a ring. */
    graft_index *twin;   /* By node: an older twin, or itself. */
    uint32_t *maker;     /* By node: the step that made it; GRAFT_NONE: it was there. */
    graft_index *table;  /* Nodes by what they compute, open addressing. */
    uint64_t *seen;      /* Keys of matches that were tried, likewise; 0 is empty. */
    uint32_t table_mask;
    uint32_t seen_count;
    graft_egraph_step *steps;
    graft_match *matches; /* What graft_egraph_match found. */
    uint32_t step_count, step_capacity;
    uint32_t match_count, match_capacity;
    bool changed; /* Since the last rebuilding. */
} graft_egraph;

/* Begins with a graph, in `arena`, with room for `nodes` more; the rules and options of the
 * environment are kept. Fails as graft_state_set does. */
GRAFT_MUST_USE graft_status graft_egraph_open(graft_env *env, graft_arena *arena,
                                              const graft_graph *graph,
                                              const graft_environment *environment, uint32_t nodes,
                                              graft_egraph *g);
/* Finds twins and makes the order anew: what was applied since is to be seen by matching. Fails as
 * graft_state_refresh does. */
GRAFT_MUST_USE graft_status graft_egraph_rebuild(graft_env *env, graft_egraph *g);
/* Adds the matches of a rule to g->matches; none when there are more than `most`. That nobody else
 * reads their inner values is not asked: others go on reading what is there. */
void graft_egraph_match(graft_egraph *g, uint32_t rule, uint32_t most);
/* Adds what a match leads to; nothing where it was tried before or the engine refuses it. False
 * when the e-graph is full. */
bool graft_egraph_apply(graft_egraph *g, uint32_t rule, const graft_match *match);

/* The first value of a value's class; the oldest one of a node's twins. */
graft_index graft_egraph_class(const graft_egraph *g, graft_index value);
graft_index graft_egraph_twin(const graft_egraph *g, graft_index node);
/* The node that computes what `node`, of any graph, does from operands of these classes; or
 * GRAFT_NONE. */
graft_index graft_egraph_find(const graft_egraph *g, const graft_node *node,
                              const graft_index *classes);
/* What tells matches apart, by their nodes and the classes of variables. */
uint64_t graft_egraph_key(const graft_egraph *g, uint32_t rule, const graft_match *match);
