/* ahead.h - what pairs of graphs give as laws, found out on several threads before their turn
 * comes.
 *
 * Whether a pair's law holds on fresh samples, and which graphs it joins, depends on the space
 * alone; what is made of it depends on the pairs before it. So the search guesses which pairs ahead
 * it will have to try, threads try them, and the search takes the results in order. A guess may be
 * wrong: then the work was for nothing, or is done when the turn comes. The results are the same
 * either way, with any number of threads. Ranks (graph/base/ranks.h) share what is tried at a
 * time. */
#pragma once

#include "gen/apply.h"

/* What to find out. */
typedef enum graft_gen_task {
    GRAFT_GEN_NO_TASK,
    GRAFT_GEN_MAKE_LAW,  /* The pair's law: made and checked, */
    GRAFT_GEN_TRY_LAW,   /* and applied. */
    GRAFT_GEN_TRY_LEMMA, /* The pair as drawn: applied. */
    GRAFT_GEN_TRY_GIVEN  /* A law that is known to hold: applied. */
} graft_gen_task;

typedef struct graft_gen_trial {
    uint32_t number; /* Of the pair, or whatever the caller counts. */
    uint8_t task;
    bool holds;      /* There is such a law: it passed its samples and is not too large. */
    bool is_refuted; /* It leads to an unequal graph. */
    uint32_t told;   /* Where there is no such law: a draw on which the graphs differ (check.h), or
                        GRAFT_GEN_NONE. */
    graft_gen_law law;
    graft_gen_joins joins; /* As of law 0; the caller's until the next call. */
    const graft_gen_roots *roots[2];
    const graft_gen_law *given;
} graft_gen_trial;

typedef struct graft_gen_ahead graft_gen_ahead;

/* Where guesses come from: fills in task, and roots or given, for what is to be tried at `number`,
 * or leaves GRAFT_GEN_NO_TASK. */
typedef void graft_gen_guess(void *context, uint32_t number, graft_gen_trial *trial);

/* Starts the threads of env->thread_count; fewer when the system gives no more. `site` and what it
 * points to must outlive it. */
graft_gen_ahead *graft_gen_ahead_open(graft_env *env, const graft_gen_site *site);
void graft_gen_ahead_close(graft_gen_ahead *ahead);
/* What it holds, between two calls. */
uint64_t graft_gen_ahead_bytes(const graft_gen_ahead *ahead);
/* Forgets what has been tried. */
void graft_gen_ahead_forget(graft_gen_ahead *ahead);
/* The result of `wanted` (number, task, roots or given), whose turn it is; numbers ascend between
 * two calls of ..._forget. When it has not been tried, guesses are asked for the numbers behind it,
 * up to `end`, and all are tried. */
const graft_gen_trial *graft_gen_ahead_take(graft_gen_ahead *ahead, const graft_gen_trial *wanted,
                                            graft_gen_guess *guess, void *context, uint32_t end);
