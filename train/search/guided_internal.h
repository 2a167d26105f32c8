/* guided_internal.h - what the files of guided search share: guided.c has its phases, guided_roll.c
 * estimates, prices and rollouts, guided_local.c the search around the best graph. */
#pragma once

#include "graph/base/log.h"
#include "train/search/appraisal.h"
#include "train/search/guided.h"
#include "train/search/ledger.h"
#include "train/search/walker.h"

enum { GRAFT_GUIDED_BLURS = 16 };

/* An action with what it is believed to change, in parts of the first graph's cost. */
typedef struct graft_guided_option {
    graft_action action;
    double change;
} graft_guided_option;

typedef struct graft_guided {
    const graft_search_choice *choice;
    const graft_environment *environment;
    graft_plan_found *found;
    graft_walker first; /* Stays at the first graph. */
    graft_walker best;
    graft_walker now;
    graft_ledger ledger;
    graft_appraisal appraisal; /* Of `now`. */
    graft_rng rng;
    double first_cost; /* By the ledger, in its units. */
    bool rows_only;    /* There is no fallback. */
    bool *is_always;   /* By rule: it is taken where it costs nothing, too (rulefile.h). */
    graft_blur
        blurs[GRAFT_GUIDED_BLURS + 1]; /* Those that led to better graphs, and one that is tried. */
    uint32_t blur_count;
    graft_tried tried; /* Priced at the best graph. */
    double *changes;   /* By index of now's matches: what was estimated, ... */
    uint32_t *looked;  /* ...at which call, and by which rows: */
    uint32_t *looked_by;
    uint32_t looked_count;
    uint32_t rows_number; /* Goes up when rows change. */
    uint64_t last_hash;   /* Of the graph priced last. */
    graft_arena *kept;    /* Where `refined` goes; NULL: it is not wanted. */
    graft_tariff refined; /* What led to the best graph. */
    graft_progress progress;
} graft_guided;

/* No graph may be priced any more, or the time is over. */
bool graft_guided_is_over(graft_guided *g);
/* Prices `now`. */
GRAFT_MUST_USE graft_status graft_guided_price(graft_env *env, graft_guided *g);
/* Rows learn from a graph that has been priced. */
GRAFT_MUST_USE graft_status graft_guided_learn(graft_env *env, graft_guided *g,
                                               const graft_state *state);
/* Estimates are made anew, in scratch: rows, or how they are blurred, have changed. */
GRAFT_MUST_USE graft_status graft_guided_reopen(graft_env *env, graft_guided *g,
                                                const graft_blur *blurs, uint32_t count);
/* Lists the actions of `now`, those that `since` gives (see graft_walker_list), with estimates, in
 * scratch. An estimate is made anew only where something has changed beside its match: what a
 * rewrite changes elsewhere, by nodes becoming equal, is seen when the action is about to be taken
 * in a rollout. */
GRAFT_MUST_USE graft_status graft_guided_list(graft_env *env, graft_guided *g, uint32_t since,
                                              graft_guided_option **list, uint32_t *count);
/* Draws one of at least one with a probability of about exp(-change / temperature), all that gain
 * alike when `level`. */
graft_guided_option *graft_guided_draw(graft_guided *g, graft_guided_option *list, uint32_t count,
                                       double temperature, bool level);
graft_guided_option *graft_guided_lowest(graft_guided_option *list, uint32_t count);
/* For qsort: the lowest first. */
int graft_guided_compare(const void *a, const void *b);
/* Goes on from `now`, through what `since` gives, until the table knows of no gain: by the greatest
 * (temperature 0), or drawn. */
GRAFT_MUST_USE graft_status graft_guided_roll(graft_env *env, graft_guided *g, uint32_t since,
                                              double temperature);
/* A rollout from `now`, priced unless it ends at the graph that was priced last; the best graph
 * when it is. Rows learn from it. */
GRAFT_MUST_USE graft_status graft_guided_roll_out(graft_env *env, graft_guided *g,
                                                  const graft_blur *blurs, uint32_t count,
                                                  double temperature, bool *better);
/* Prices single rewrites of `now`, the best graph, most promising first, and takes each that
 * gains. */
GRAFT_MUST_USE graft_status graft_guided_sweep(graft_env *env, graft_guided *g, uint64_t most);
/* Iterated local search from the best graph, until it is over. */
GRAFT_MUST_USE graft_status graft_guided_iterate(graft_env *env, graft_guided *g);
