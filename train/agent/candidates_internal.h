/* candidates_internal.h - what the files of the candidate-scoring agent share. */
#pragma once

#include "train/agent/candidates.h"

/* An episode. */
typedef struct graft_episode_kept {
    uint32_t count;
    graft_transition *steps; /* (count + 1): the last one has its scene, and at most a choice. */
    double saved;            /* Percent. */
    double next_value;       /* Of the state afterwards; 0 where it has ended. */
} graft_episode_kept;

#define GRAFT_CHOICE_DRAWN     UINT32_MAX
#define GRAFT_CHOICE_LIKELIEST (UINT32_MAX - 1)
/* Chooses a candidate of the step's scene: draws one, takes the most likely one, or leaves the choice
 * as it is when it is neither. Tells its log-probability and the scene's value. `rng` may be NULL
 * unless one is drawn. */
void graft_candidates_choose(const graft_candidates *agent, graft_arena *scratch, graft_rng *rng,
                             graft_transition *step);

/* Plays one of drawn actions, or of those of `best`, into `arena`. */
GRAFT_MUST_USE graft_status graft_candidates_episode(graft_env *env, graft_arena *arena,
                                                     graft_candidates *agent, graft_observer *o,
                                                     const graft_best *best,
                                                     graft_episode_kept *kept);
/* Rewards that are paid at the end, and advantages, of an episode, which learning needs. */
void graft_candidates_credit(const graft_candidates *agent, const graft_episode_kept *kept);
/* Learns from episodes of `stride` environments in turn, the last of which may be repeated ones. */
void graft_candidates_learn(graft_env *env, graft_candidates *agent, const graft_episode_kept *kept,
                            uint32_t episodes, uint32_t stride, graft_candidates_report *report);
