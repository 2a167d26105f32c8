/* application.h - one application of a rule under everything the engine promises about it. */
#pragma once

#include "graph/base/env.h"
#include "graph/base/rng.h"
#include "tests/support/evaluate.h"

/* A graph with what is derived from it. */
typedef struct application_state {
    const graft_graph *graph;
    graft_order order;
    evaluate_tensors tensors; /* NULL: the sample says nothing. */
    uint64_t sample;
    uint64_t hash;
} application_state;

application_state application_open(graft_arena *arena, const graft_graph *graph, uint64_t sample);

typedef enum application_result {
    APPLICATION_DONE,    /* Both graphs compute the same. */
    APPLICATION_REFUSED, /* The rule does not apply there. */
    APPLICATION_FULL,    /* It would, had there been room: the capacities were chosen tight. */
    APPLICATION_SKIPPED  /* Applied, but the sample says nothing about the new graph. */
} application_result;

typedef struct application_outcome {
    const char *fault; /* NULL, or a promise that was broken, as static text; else: */
    application_result result;
    application_state after; /* The state before when nothing was applied. */
} application_outcome;

/* Tries and applies `rule` at `match` on a copy in `arena`, with capacities and a limit of weights
 * that are sometimes tight. Checks that try and apply agree and neither touches a graph that it
 * refuses; that the new graph is sound, has the outputs of the old one, computes the same, is the
 * one that the naive application makes and hashes the same whatever its ids; and what is reported
 * about it. */
application_outcome application_check(graft_arena *arena, graft_rng *rng,
                                      const application_state *before, const graft_rule *rule,
                                      const graft_match *match);
