/* foresight.h - the world model of the candidate-scoring agent: an MDN-RNN (Ha and Schmidhuber 2018)
 * over scenes of latents. The engine computes what a rewrite gains at once; this predicts what comes
 * after it, without graph or matcher:
 *
 *      x = [z, p, facts] of the scene and the chosen candidate
 *      h = LSTM(x)                        f = relu([h, x] W + b)
 *      next latent      mixture of Gaussians over (z' - z) / scale         mixture.h
 *      reward           what it brings beyond the computed gain; does the episode end?
 *      candidate i      closes?  else how do its gain and the number of
 *                       those like it change?                              from p_i, facts_i, f, and
 *                       what part of its nodes the chosen one matches
 *      rule r           how many candidates of it open, and what they are: a mixture over
 *                       [p, facts], from f and e_r                          scorer.h
 *
 * Rules are known by their embeddings: there is no output per rule. */
#pragma once

#include "train/agent/story.h"
#include "train/nn/lstm.h"
#include "train/nn/mixture.h"

/* Facts besides the shared parts that a candidate's heads see. */
enum { GRAFT_SHARED_COUNT = 2 };
/* What is said of each candidate: the logit of closing, and how two facts change. */
enum graft_foresight_column {
    GRAFT_SAYS_CLOSES,
    GRAFT_SAYS_GAIN,
    GRAFT_SAYS_ALIKE,
    GRAFT_SAYS_COUNT
};

typedef struct graft_foresight {
    uint32_t latent;
    uint32_t width; /* Of places and rules. */
    uint32_t hidden;
    uint32_t pair; /* Width of the heads over candidates and rules. */
    graft_mixture next;
    graft_mixture content;
    graft_parameters parameters; /* Named "foresight". */
    graft_layer gates;
    uint32_t recurrent;
    graft_layer features;
    graft_layer next_head;
    graft_layer reward_head;
    graft_layer end_head;
    graft_layer candidate_of_feature;
    graft_layer candidate_of_place;
    graft_layer candidate_of_facts;
    graft_layer candidate_head; /* Columns: graft_foresight_column. */
    graft_layer rule_of_feature;
    graft_layer rule_of_rule;
    graft_layer count_head;
    graft_layer content_head;
    /* Fixed by graft_foresight_calibrate. */
    float *latent_scale;  /* (latent): of its change */
    float *content_mean;  /* (width + GRAFT_FACT_COUNT): of candidates that open */
    float *content_scale; /* (width + GRAFT_FACT_COUNT) */
    float reward_mean;    /* Beyond the computed gain. */
    float reward_scale;
    float *gain_low;  /* (GRAFT_REPERTOIRE_MOST): of GRAFT_FACT_GAIN of each rule's candidates, */
    float *gain_high; /* the range in the stories, to which dreams are held... */
    float beyond_range[2]; /* ...as they are to that of rewards beyond the computed gain. */
} graft_foresight;

/* Random weights from `seed`, in `arena`, for stories by this scorer. */
void graft_foresight_init(graft_foresight *model, graft_arena *arena, const graft_scorer *scorer,
                          const graft_agent_settings *settings, uint64_t seed);
/* Scales of what is predicted, from stories; before the first update, never after. */
void graft_foresight_calibrate(graft_foresight *model, const graft_story *stories, uint32_t count);

/* Of one step: what it is told of the chosen candidate. */
uint32_t graft_foresight_inputs(const graft_foresight *model);
void graft_foresight_input(const graft_foresight *model, const float *latent, const float *place,
                           const float *facts, float *out);

/* A candidate as the mixture of what opens has it: place and facts, standardised. */
void graft_foresight_describe(const graft_foresight *model, const float *place, const float *facts,
                              float *out);

/* Steps one after the other, with h and f for each. `inputs` is (steps, inputs). */
typedef struct graft_foreseen {
    const graft_matrix *next;    /* (steps, mixture width) */
    const graft_matrix *reward;  /* (steps, 1), standardised */
    const graft_matrix *end;     /* (steps, 1), logits */
    const graft_matrix *feature; /* (steps, hidden): f */
} graft_foreseen;
graft_foreseen graft_foresight_apply(const graft_foresight *model, graft_tape *tape,
                                     const float *inputs, uint32_t steps,
                                     const graft_lstm_state *initial,
                                     const graft_lstm_state *final);
/* Candidates, each of a step. */
typedef struct graft_foresight_rows {
    uint32_t count;
    const uint32_t *step;
    const float *places; /* (count, width) */
    const float *facts;  /* (count, GRAFT_FACT_COUNT) */
    const float *shared; /* (count, GRAFT_SHARED_COUNT) */
} graft_foresight_rows;
/* (rows, GRAFT_SAYS_COUNT) */
const graft_matrix *graft_foresight_candidates(const graft_foresight *model, graft_tape *tape,
                                               const graft_matrix *feature,
                                               const graft_foresight_rows *rows);
/* Pairs of a step and a rule of the repertoire. */
typedef struct graft_foresight_pairs {
    uint32_t count;
    const uint32_t *step;
    const uint32_t *rule;
} graft_foresight_pairs;
/* Counts (pairs, 1), and with `content` the mixture of what opens, standardised. */
const graft_matrix *graft_foresight_openings(const graft_foresight *model, graft_tape *tape,
                                             const graft_matrix *feature,
                                             const graft_repertoire *repertoire,
                                             const graft_foresight_pairs *pairs,
                                             const graft_matrix **content);

/* Means over what there is of each in a batch. */
typedef struct graft_foresight_loss {
    double next;
    double reward;
    double end;
    double closing;
    double change;
    double counts;
    double content;
    double total; /* Weighted: what is minimised. */
} graft_foresight_loss;

/* The losses of stories picked by index, one for each shard, and the gradient of their sum.
 * `shards` was opened with the model's parameters alone. */
graft_foresight_loss graft_foresight_differentiate(const graft_foresight *model,
                                                   graft_shards *shards,
                                                   const graft_repertoire *repertoire,
                                                   const graft_story *stories,
                                                   const uint32_t index[GRAFT_SHARD_COUNT]);
