/* fit.h - gives a graph's header limits that fit into a budget of memory, or refuses.
 *
 * What loses nothing is lowered, in this order, until it fits: ids to 16 bits; steps to those that
 * the policy takes on this graph; room for rewriting, as long as its decisions here stay what they
 * were. That is not argued but tried: the engine rewrites the graph at the lowered limits, with new
 * weights and without. */
#pragma once

#include "emit/header/identifier.h"
#include "emit/header/ram.h"

/* Of --max-ram: less than one call in progress takes, and what no budget needs to be. */
enum { GRAFT_FIT_LEAST = 1 << 10, GRAFT_FIT_MOST = 1 << 30 };

typedef struct graft_fit_options {
    const char *model; /* For messages. */
    const graft_policy *policy;
    size_t budget;        /* Bytes; 0: there is none. */
    size_t pointer_bytes; /* That the budget counts with: 4 or 8. */
} graft_fit_options;

enum { GRAFT_FIT_LOWERED = 3 };

/* Points into its options and into env->life. */
typedef struct graft_fit {
    graft_fit_options options;
    graft_limits limits;
    uint32_t step_limit;
    bool small;    /* It fits with GRAFT_SMALL_GRAPHS only. */
    graft_ram ram; /* At all of that. */
    const char *lowered[GRAFT_FIT_LOWERED];
    uint32_t lowered_count;
} graft_fit;

/* GRAFT_CAPACITY with need, budget and the largest part when what loses nothing is not enough. What
 * is lowered is logged. */
GRAFT_MUST_USE graft_status graft_fit_make(graft_env *env, const graft_graph *graph,
                                           const graft_fit_options *options, graft_fit *fit);
/* The same refusal of what cannot fit whatever is lowered, before there is a policy: the one in
 * `options` only has a number of rules. */
GRAFT_MUST_USE graft_status graft_fit_foresee(graft_env *env, const graft_graph *graph,
                                              const graft_fit_options *options);
/* The comment on memory and the macros of a graph's header. */
GRAFT_MUST_USE graft_status graft_fit_print(graft_env *env, const graft_fit *fit,
                                            const graft_identifier *name, graft_buffer *text);
