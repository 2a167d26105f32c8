/* foresight_dream.h - dreams of the candidate-scoring agent: scenes of latents that the world model
 * rolls on. A dream begins with a scene of a story. From then on it reads networks and its own
 * random numbers alone: no graph, no matcher, no environment, no price.
 *
 * Candidates close and open as foresight.h predicts. Those that open are at the place of the one
 * that was chosen: they have its nodes, as far as it goes which candidates share nodes. Of those
 * that are alike only some are on offer, as in scene.h: when one closes, another takes its turn as
 * long as some of the first scene's are waiting, and shares nodes with none. */
#pragma once

#include "train/agent/candidates.h"
#include "train/agent/foresight.h"

enum { GRAFT_DREAM_CANDIDATES = 256 };
/* Rows of candidates that were not in the scene that a dream began with. */
#define GRAFT_DREAM_OPENED UINT32_MAX
#define GRAFT_DREAM_TURN   (UINT32_MAX - 1) /* One that was there, but not on offer. */

typedef struct graft_dreamt {
    const graft_foresight *model;
    const graft_repertoire *repertoire;
    graft_scene_options scenes;
    uint32_t count;
    float *latent;     /* (latent) */
    float *places;     /* (GRAFT_DREAM_CANDIDATES, width) */
    float *facts;      /* (GRAFT_DREAM_CANDIDATES, GRAFT_FACT_COUNT) */
    float *priors;     /* (GRAFT_DREAM_CANDIDATES) */
    uint32_t *rules;   /* (GRAFT_DREAM_CANDIDATES) */
    uint32_t *members; /* (GRAFT_DREAM_CANDIDATES, GRAFT_RULE_MAX_NODES) */
    uint32_t *rows;    /* (GRAFT_DREAM_CANDIDATES): of the story, or one of the two above */
    uint32_t *kinds;   /* (GRAFT_DREAM_CANDIDATES): equal for those that are alike */
    uint32_t kind_count;
    uint32_t *waiting; /* (GRAFT_DREAM_CANDIDATES): of the first scene's kinds, not on offer yet */
    double cost;       /* Estimated, as a part of the first graph's. */
    graft_lstm_state memory;
} graft_dreamt;

void graft_dreamt_open(graft_arena *arena, const graft_foresight *model,
                       const graft_repertoire *repertoire, const graft_scene_options *scenes,
                       graft_dreamt *dream);
/* Begins at step t of a story, having seen the steps before it. */
void graft_dreamt_begin(graft_dreamt *dream, graft_arena *scratch, const graft_story *story,
                        uint32_t t);

/* What a step brought. */
typedef struct graft_dreamt_step {
    float beyond; /* Percent, beyond the computed gain. */
    bool end;
} graft_dreamt_step;
/* Goes on with a candidate. With `rng` everything is drawn at the temperature, without it the most
 * likely happens. */
graft_dreamt_step graft_dreamt_take(graft_dreamt *dream, graft_arena *scratch, uint32_t choice,
                                    float temperature, graft_rng *rng);

/* Plays an episode of the agent in a dream that begins with a story's first scene, into `arena`, as
 * learning needs it (candidates.h). Stream `stream` of the agent's seed decides it. */
graft_episode_kept graft_dreamt_play(graft_arena *arena, graft_arena *scratch,
                                     const graft_candidates *agent, graft_dreamt *dream,
                                     const graft_story *story, uint64_t stream);
