/* plot.h - one side of a rule at one point as a graph of the engine, for asking what rules make of
 * it. Small: the two sides of a rule and a few rewrites fit. */
#pragma once

#include "verify/instances/instance.h"

enum { GRAFT_PLOT_NODES = 40 }; /* That fit into one. */

/* A graph and the room to work on it. */
typedef struct graft_plot {
    graft_graph graph;
    graft_order order; /* Since the last graft_plot_sort or graft_plot_hash. */
    void *order_memory;
    void *scratch; /* For graft_apply. */
    uint64_t *hashes;
} graft_plot;

/* An empty plot; memory lies in `arena`. */
graft_plot graft_plot_new(graft_arena *arena);
/* Makes it one side of an instance: variables are inputs, numbered as in the rule. False when it
 * does not fit. */
bool graft_plot_build(graft_plot *p, const graft_instance *instance, const graft_side *side);
/* Brings the order up to date; false when there is none. */
bool graft_plot_sort(graft_plot *p);
/* Makes `apart` what `plot`, whose order is up to date, computes, with a node of its own for each
 * reading of an inner value, and sorts it. False when it does not fit, or no value has two readers.
 */
bool graft_plot_part(graft_plot *apart, const graft_plot *plot);
/* Stands for what the outputs compute, whatever the order of commutative operands and however often
 * a subterm is written; brings the order up to date. 0 when there is none. */
uint64_t graft_plot_hash(graft_plot *p);
/* Makes `to` what the rule makes of `from`, whose order is up to date, at a match. False when it
 * does not fit. */
bool graft_plot_apply(graft_plot *to, const graft_plot *from, const graft_rule *rule,
                      const graft_match *match);
/* Whether `count` rules, each applied once and wherever it matches, lead from the first plot to a
 * graph with the hash `wanted`; there are `count` more plots to work in. */
bool graft_plot_leads(graft_plot *plots, const graft_rule *rules, uint32_t count, uint64_t wanted);
