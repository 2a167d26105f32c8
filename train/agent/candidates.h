/* candidates.h - the agent that scores candidates (scorer.h), trained without a model of the world:
 * proximal policy optimisation (Schulman et al. 2017) of episodes in environments.
 *
 * Environments are deterministic: what was done once can be done again. So each update also looks
 * at the best episode that was ever played, and does more often what did better than the value
 * expected there (self-imitation, Oh et al. 2018).
 *
 * It starts as greedy over the tariff and can only learn to deviate. An environment's price may be
 * that of recorded costs or the tariff's own estimate (graft_estimator_price: the engine as a
 * simulator, which asks for no price); the agent does not know which, nor how many there are, nor
 * what rules they have.
 *
 * Reward: what a rewrite takes off the cost, in percent of the first graph (the dissertation's
 * relative form, telescoping to the percentage saved), of which the part `reward_end` is paid at
 * the end of the episode instead; bytes, FLOPs and launches count as much as their weights say. */
#pragma once

#include "train/agent/agent_settings.h"
#include "train/agent/scorer.h"
#include "train/nn/shards.h"
#include "train/search/appraisal.h"
#include "train/search/search.h"

/* Most that an update plays in. */
enum { GRAFT_CANDIDATES_ENVIRONMENTS = 64 };

/* The best episode that was played in an environment. */
typedef struct graft_best {
    double saved;   /* Percent. */
    uint32_t count; /* Steps; 0: none yet. */
    uint32_t *choices;
} graft_best;

typedef struct graft_candidates {
    const graft_agent_settings *settings;
    graft_arena *arena;
    graft_scorer scorer;
    graft_shards shards;
    uint64_t seed;
    uint64_t updates;      /* Done. */
    uint64_t episodes;     /* Played, for the random numbers. */
    uint64_t interactions; /* Steps taken in environments. */
    graft_best best[GRAFT_CANDIDATES_ENVIRONMENTS];
} graft_candidates;

/* An untrained agent, in `arena`; the settings are kept. It stays where it is: shards point to
 * it. */
void graft_candidates_open(graft_arena *arena, const graft_agent_settings *settings, uint64_t seed,
                           uint32_t thread_count, graft_candidates *agent);
void graft_candidates_close(graft_candidates *agent);
graft_scene_options graft_candidates_scenes(const graft_agent_settings *settings);

/* What happened in an update: means over episodes, and over minibatches. */
typedef struct graft_candidates_report {
    double saved; /* Percent, of the environments' prices. */
    double saved_each[GRAFT_CANDIDATES_ENVIRONMENTS];
    double length; /* Steps of an episode. */
    uint32_t episodes;
    uint32_t transitions; /* Learnt from. */
    double policy_loss;
    double value_loss;
    double entropy;
    double kl;
    double explained; /* Variance of the returns that the values told. */
    double play_seconds;
    double learn_seconds;
} graft_candidates_report;

/* Plays episodes in each environment, and the best one so far once more, then learns from them. The
 * observers are the same at each call. Fails as environments do, and with
 * GRAFT_INTERRUPTED. */
GRAFT_MUST_USE graft_status graft_candidates_update(graft_env *env, graft_candidates *agent,
                                                    graft_observer *const observers[],
                                                    uint32_t count,
                                                    graft_candidates_report *report);

/* One episode of the most likely actions, or, with `rng`, of drawn ones; the plan is in `arena`,
 * and its graph the environment's state. A graph that the tariff calls dearer than the first one is
 * not returned: the plan is empty then. */
GRAFT_MUST_USE graft_status graft_candidates_play(graft_env *env, graft_arena *arena,
                                                  graft_candidates *agent, graft_observer *observer,
                                                  graft_rng *rng, graft_plan_found *found);

/* One step of an episode as learning needs it. */
typedef struct graft_transition {
    graft_scene scene;
    uint32_t choice;
    float log_p;
    float value;
    float reward;
    float advantage;
    float gain;    /* Return: advantage + value. */
    bool repeated; /* Of the best episode; else it was drawn by the policy. */
} graft_transition;

/* Losses of some transitions and their gradient in the networks' parameters: what
 * graft_candidates_update repeats, and what tests check. Returns the sum that is minimised. */
double graft_candidates_differentiate(graft_candidates *agent,
                                      const graft_transition *const transitions[], uint32_t count,
                                      graft_candidates_report *report);

/* ------------------------------------------- what the files of the agent and the dream share */

/* An episode. */
typedef struct graft_episode_kept {
    uint32_t count;
    graft_transition *steps; /* (count + 1): the last one has its scene, and at most a choice. */
    double saved;            /* Percent. */
    double next_value;       /* Of the state afterwards; 0 where it has ended. */
} graft_episode_kept;

#define GRAFT_CHOICE_DRAWN     UINT32_MAX
#define GRAFT_CHOICE_LIKELIEST (UINT32_MAX - 1)
/* Chooses a candidate of the step's scene: draws one, takes the most likely one, or leaves the
 * choice as it is when it is neither. Tells its log-probability and the scene's value. `rng` may be
 * NULL unless one is drawn. */
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
