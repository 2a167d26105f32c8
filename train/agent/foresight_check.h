/* foresight_check.h - whether the world model over candidates earns its place: held against stories
 * that no training has seen.
 *
 * Three gates, which are printed with what they ask for:
 *   reward     variance of rewards explained, at least 0.3 above what the mean of each rule explains,
 *              or 0.99 of it
 *   changes    F1 of the candidates that close and open one step ahead, at least 0.9; stated for 2, 4
 *              and 8 steps of the recorded actions in a dream without a look at what happened
 *   return     of dreams and of episodes by the same policy, within 10 % */
#pragma once

#include "graph/base/json.h"
#include "train/agent/foresight_dream.h"

enum { GRAFT_FORESIGHT_HORIZONS = 4 };
extern const uint32_t graft_foresight_horizons[GRAFT_FORESIGHT_HORIZONS]; /* 1, 2, 4, 8 */

/* What the model says of a step, and what it brought; percent of the first graph's cost. */
typedef struct graft_foresight_reward {
    double said;
    double real;
} graft_foresight_reward;

typedef struct graft_foresight_report {
    uint32_t steps;
    const graft_foresight_reward *rewards; /* (steps), in env->life */
    double explained;                      /* Of the variance of rewards: by the model... */
    double computed;                       /* ...by the computed gain alone... */
    double of_rules; /* ...and by the mean of each rule in the stories learnt from. */
    struct {
        double closed; /* F1 */
        double opened;
        double changed; /* Both together. */
    } ahead[GRAFT_FORESIGHT_HORIZONS];
    double dreamed; /* Percent saved, mean of dreams from the held-out stories' first scenes... */
    double real;    /* ...and of those stories. */
} graft_foresight_report;

typedef struct graft_stories {
    const graft_story *items;
    uint32_t count;
} graft_stories;

/* Holds a model against stories; `learnt` are those it was trained on. */
graft_foresight_report graft_foresight_check(graft_env *env, const graft_foresight *model,
                                             const graft_repertoire *repertoire,
                                             const graft_candidates *agent, graft_stories learnt,
                                             graft_stories held);
bool graft_foresight_holds(const graft_foresight_report *report);
/* Adds its figures to an object; names are made in `arena`. */
void graft_foresight_write(const graft_foresight_report *report, graft_arena *arena,
                           graft_json *json);
/* Prints it; true when all gates hold. */
bool graft_foresight_print(const graft_foresight_report *report, FILE *out);
