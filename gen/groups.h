/* groups.h - the graphs of a space that compute the same, group by group.
 *
 * A graph is given by its roots: the nodes (or inputs) that its outputs come from. Only groups of
 * which no renaming comes earlier are listed; in a listed group all graphs stand, renamed ones
 * included, because a graph that equals its own renaming is a law (associativity is one).
 *
 * Left out are graphs of weights alone: they are run once, when a model is loaded, and no rule is
 * applied there. Inside other graphs their equalities are taken for granted.
 *
 * Graphs with two outputs. Where each output can be computed alone, the graph says nothing that two
 * graphs with one output do not; such a graph stands in a group only once, as the partner of graphs
 * whose outputs hang together: both come from one split, directly or through operators behind it.
 * Two sinks that merely share an inner value are two laws with one output, applied one after the
 * other. */
#pragma once

#include "gen/law.h"

typedef struct graft_gen_graph {
    graft_gen_roots roots;              /* In ascending order of value. */
    uint32_t values[GRAFT_MAX_OUTPUTS]; /* GRAFT_GEN_NONE past the outputs. */
    uint32_t hub;                       /* First graph of its group: the cheapest. */
    uint8_t size;                       /* Operators; 0 for an input. */
    uint8_t var_count;                  /* Inputs it reads. */
    uint8_t live_count;                 /* Operators that depend on an activation. */
    bool is_separate;                   /* Two outputs, each computed alone. */
} graft_gen_graph;

typedef struct graft_gen_groups {
    const graft_gen_space *space;
    graft_arena *arena;
    graft_gen_graph *graphs; /* Group by group. */
    uint32_t count;
    uint32_t capacity;
    uint32_t output_count;
    uint64_t key_count;      /* Groups, those with a single graph included. */
    uint32_t *graph_of_root; /* One output: by node * 2 + slot; GRAFT_GEN_NONE when in no group. */
} graft_gen_groups;

/* Lists the groups with at least two graphs of 1 or 2 outputs; they live in `arena`. */
void graft_gen_groups_build(const graft_gen_space *space, graft_arena *arena, uint32_t output_count,
                            graft_gen_groups *groups);
/* The graph of `from`'s group with these roots, whose values are the group's (a root of
 * GRAFT_GEN_NONE stands for any way to compute its value); GRAFT_GEN_NONE when it is not listed. */
uint32_t graft_gen_groups_find(const graft_gen_groups *groups, uint32_t from,
                               const graft_gen_roots *roots);
