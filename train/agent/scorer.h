/* scorer.h - the networks of the candidate-scoring agent.
 *
 *      graphs of scenes and of rules' patterns ── encoder.h ──► z (graph), h (node)
 *      rule   e = relu([z source, z target] W + b + T[identity])
 *      place  p = [mean h, max h of the matched nodes, e] W_p
 *      candidate  c = relu(W_c relu(p + [z scene, facts] W + b))
 *      logit  = prior + w c            one softmax over the candidates of a scene, NO-OP among them
 *      value  = relu(z W + b) w
 *
 * w starts at zero, so that a fresh scorer is the tariff's policy. All sums, means and maxima are over
 * sets: how nodes and rules are numbered does not matter. */
#pragma once

#include "train/agent/scene.h"

typedef struct graft_scorer_size {
    uint32_t hidden; /* Of nodes. */
    uint32_t latent; /* Of graphs. */
    uint32_t rounds; /* Of message passing. */
    uint32_t width;  /* Of rules and candidates. */
} graft_scorer_size;

typedef struct graft_scorer {
    graft_scorer_size size;
    graft_encoder encoder;
    graft_parameters parameters; /* Named "scorer". */
    graft_layer rule;
    uint32_t identities; /* (GRAFT_RULE_BUCKETS, width) */
    graft_layer mean;    /* The first layer, by part of its input. */
    graft_layer most;
    graft_layer of_rule;
    graft_layer of_scene;
    graft_layer facts;
    graft_layer second;
    graft_layer score;
    graft_layer value[2];
} graft_scorer;

/* Random weights from `seed`, in `arena`. */
void graft_scorer_init(graft_scorer *scorer, graft_arena *arena, const graft_scorer_size *size,
                       uint64_t seed);

typedef struct graft_scored {
    graft_encoding encoding;    /* Of all graphs of the batch; not of dreams. */
    const graft_matrix *latent; /* (scenes, latent) */
    const graft_matrix *rules;  /* (rules of the batch, width): e... */
    const graft_matrix *added;  /* ...and what it adds to a place: e W + b */
    const graft_matrix *places; /* (rows, width): what place and rule add to the first layer */
    const graft_matrix *first;  /* (rows, width): the hidden layers of candidates... */
    const graft_matrix *second; /* (rows, width) */
    const graft_matrix *logits; /* (rows, 1) */
    const graft_matrix *log_p;  /* (rows, 1) */
    const graft_matrix *value;  /* (scenes, 1) */
} graft_scored;

/* Candidates of scenes of which only latents are left, row by row. */
typedef struct graft_latent_rows {
    const uint32_t *scene;
    const float *facts; /* (rows, GRAFT_FACT_COUNT) */
    const float *priors;
} graft_latent_rows;

/* Both sets are bound to `tape`; `batch` outlives the tape's use. */
graft_scored graft_scorer_apply(const graft_scorer *scorer, graft_tape *tape,
                                const graft_scene_batch *batch);

/* Scores scenes, which are all of graphs or all dreamed: `first` receives each scene's first row,
 * and `row_scene` the scene of each row; both lie in the tape's arena. */
graft_scored graft_scorer_look(const graft_scorer *scorer, graft_tape *tape,
                               const graft_scene *const scenes[], uint32_t count,
                               const uint32_t **first, const uint32_t **row_scene);
