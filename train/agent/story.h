/* story.h - an episode as the world model of the candidate-scoring agent sees it: latents, and what
 * each rewrite closed and opened.
 *
 * A scene is its latent and a set of candidates, each a place (scorer.h) with its facts. Rows of
 * all scenes of an episode stand one after the other. Which candidates a rewrite closes and opens
 * is told by the keys of the matches; nothing of the graph is left. */
#pragma once

#include "train/agent/candidates.h"

enum { GRAFT_REPERTOIRE_MOST = 512 };

/* The rules that were ever on offer, NO-OP among them, as the scorer's encoder reads them. */
typedef struct graft_repertoire {
    uint32_t count;
    uint32_t width;
    uint64_t ids[GRAFT_REPERTOIRE_MOST];
    const graft_sheet *sheets[GRAFT_REPERTOIRE_MOST];
    float *rules; /* (GRAFT_REPERTOIRE_MOST, width) */
} graft_repertoire;

typedef struct graft_story {
    uint32_t steps;
    uint32_t row_count;
    float saved;       /* Percent, of the whole episode. */
    float *latents;    /* (steps + 1, latent) */
    uint32_t *first;   /* (steps + 2): first row of each scene */
    float *places;     /* (rows, width) */
    float *facts;      /* (rows, GRAFT_FACT_COUNT) */
    float *priors;     /* (rows) */
    uint32_t *rules;   /* (rows): in the repertoire */
    uint64_t *keys;    /* (rows) */
    uint32_t *chosen;  /* (steps): row */
    uint32_t *members; /* (rows, GRAFT_RULE_MAX_NODES): nodes matched, rows of the scene's graph;
                          UINT32_MAX behind the last one */
    float *costs;      /* (steps + 1): estimated, as parts of the first graph's */
    float *shared; /* (rows, 2): part of its nodes that the chosen one matches, and the reverse */
    float *closed; /* (rows): 1 when its match is gone in the next scene */
    float *alike_change; /* (rows): of GRAFT_FACT_ALIKE to the next scene, */
    float *gain_change;  /* (rows): of GRAFT_FACT_GAIN to the next scene... */
    float *gain_known;   /* (rows): 1 where that is known: on offer in both */
    float *opened;       /* (rows): 1 when its match was not there in the scene before */
    float *computed;     /* (steps): percent that the tariff expects of the chosen one... */
    float *beyond;       /* (steps): ...and what it brought beyond that */
    float *ends;         /* (steps): 1 when the episode ended though NO-OP was not chosen */
} graft_story;

/* What two candidates have in common: the part of the first one's nodes that the second one
 * matches, and the reverse. */
void graft_story_share(const uint32_t *members, const uint32_t *others, float shared[2]);
/* An empty repertoire in `arena`. */
void graft_repertoire_open(graft_arena *arena, const graft_scorer *scorer,
                           graft_repertoire *repertoire);
/* Plays an episode by the agent, drawn, and tells it, in `arena`. Rules that are new join the
 * repertoire; GRAFT_CAPACITY when there is no room. */
GRAFT_MUST_USE graft_status graft_story_play(graft_env *env, graft_arena *arena,
                                             graft_candidates *agent, graft_observer *observer,
                                             graft_repertoire *repertoire, graft_story *story);
