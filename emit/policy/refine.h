/* refine.h - searching more than once, with the costs that the last graph rests on measured anew.
 *
 * Of many costs with some noise a search picks those that were measured too low ("the winner's
 * curse"; Capen, Clapp and Campbell, J. Petroleum Technology 23, 1971). So each pass searches, and
 * then measures the costs that its graph rests on once more, side by side with those of its
 * alternatives (graft_cost_confirm); the next pass searches with these. In the end the graphs of
 * all passes are timed as wholes, in turns, and the fastest is the result, where a gain within
 * noise is none: a pass that was misled costs time and nothing else. The graph as given takes part.
 * Where the model has operators that Graft cannot run, predicted costs decide. */
#pragma once

#include "emit/command/session.h"
#include "train/search/search.h"

enum { GRAFT_REFINE_PASSES_MOST = 16 };

typedef struct graft_refine_options {
    /* Searches `session->environment`; the plan in env->life. */
    graft_status (*search)(graft_env *env, void *context, graft_plan_found *found);
    void *context;
    uint32_t passes; /* 1 to GRAFT_REFINE_PASSES_MOST searches; fewer when a plan comes again. */
    uint32_t rounds; /* Of each comparison of two graphs. */
} graft_refine_options;

typedef struct graft_refine_pass {
    double predicted;   /* Cost of the graph found / of the graph as given, when it was found. */
    uint32_t confirmed; /* Costs measured once more afterwards. */
    double measured;    /* Whole graphs: the fastest of the passes before / this one's, paired... */
    double spread;      /* ...and between the quartiles. Pass 0's is against the graph as given. */
    bool better;        /* By more than noise (graft_comparison_is_gain). */
} graft_refine_pass;

typedef struct graft_refine_report {
    graft_refine_pass passes[GRAFT_REFINE_PASSES_MOST];
    uint32_t count;
    uint32_t best; /* The pass whose graph won; `count` when it was the graph as given. */
} graft_refine_report;

/* Leaves the best graph as the session's environment's state, its plan in `best` (no steps: the
 * graph as given) and its cost there by the costs of the last pass. What was measured is in the
 * session's database. GRAFT_UNSUPPORTED when the device is not here; otherwise fails as its parts
 * do. */
GRAFT_MUST_USE graft_status graft_refine(graft_env *env, graft_session *session,
                                         const graft_refine_options *options,
                                         graft_plan_found *best, graft_refine_report *report);
