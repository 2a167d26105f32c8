/* tariff_search.h - greedy over a tariff alone, and the walks that meet what rewriting reaches.
 *
 * Greedy over a tariff takes the match whose estimated change is the lowest until none is below 0.
 * It asks for no price. A walk goes through a model's rewrites in one of several ways and notes in
 * a book what the graphs on its way cost, and those that are one rewrite away, as far as they have
 * forms that were met in few contexts. */
#pragma once

#include "train/search/search.h"
#include "train/tariff/tariff.h"

typedef struct graft_tariff_plan {
    graft_plan_found found; /* evaluations: 0. */
    graft_estimated first;  /* Of the graph as given... */
    graft_estimated last;   /* ...and of the one found. */
    uint64_t estimates;     /* Matches looked at. */
    uint32_t guessed_steps; /* Steps whose estimated change rests on the fallback in part. */
} graft_tariff_plan;

/* The environment's state is the found graph afterwards; its limits on steps and costs hold.
 * Fails as the environment's steps do, and with GRAFT_INTERRUPTED. */
GRAFT_MUST_USE graft_status graft_search_tariff(graft_env *env, graft_arena *arena,
                                                graft_environment *environment,
                                                const graft_tariff *tariff,
                                                graft_tariff_plan *plan);

typedef enum graft_walk_kind {
    GRAFT_WALK_RANDOM = 0,   /* Any rule, any of its matches. */
    GRAFT_WALK_TARIFF = 1,   /* As graft_search_tariff. */
    GRAFT_WALK_ANNEALED = 2, /* Any match, unless its estimated change is too dear; cooling. */
    GRAFT_WALK_PLAN = 3      /* Given actions. */
} graft_walk_kind;

typedef struct graft_walk {
    graft_walk_kind kind;
    const graft_tariff *tariff;      /* Of the two in the middle. */
    const graft_plan_found *actions; /* Of the last. */
    uint32_t steps_most;
    uint32_t contexts_most; /* Of graphs on the way, and of those beside it. */
    uint32_t beside_most;
    uint32_t model; /* In the book. */
    uint64_t seed;
    uint64_t end_ns; /* A time of graft_clock_ns at which to stop; 0: none. */
} graft_walk;

/* Walks from the environment's first graph, priced by `cost`. Fails as graft_book_note and steps
 * do, and with GRAFT_INTERRUPTED. */
GRAFT_MUST_USE graft_status graft_tariff_walk(graft_env *env, graft_environment *environment,
                                              graft_cost *cost, graft_book *book,
                                              const graft_walk *walk);
