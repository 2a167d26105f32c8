/* scorer.c - see scorer.h. */
#include "train/agent/scorer.h"

#include "train/nn/kernels.h"
#include "train/nn/ragged.h"

#include <string.h>

static const float relu_gain = 1.41421356F;

#define LAYER(scorer, name, inputs, outputs, gain)                                                 \
    graft_parameters_layer(&(scorer)->parameters,                                                  \
                           (const char *const[]){name ".weight", name ".bias"}, inputs, outputs,   \
                           gain)

void graft_scorer_init(graft_scorer *scorer, graft_arena *arena, const graft_scorer_size *size,
                       uint64_t seed)
{
    const graft_encoder_size encoder = {.node_features = GRAFT_SCENE_NODE_FEATURES,
                                        .edge_features = GRAFT_EDGE_FEATURE_COUNT,
                                        .global_features = GRAFT_SCENE_GLOBALS,
                                        .hidden = size->hidden,
                                        .latent = size->latent,
                                        .rounds = size->rounds};
    const uint32_t width = size->width;
    const float part = relu_gain * 0.45F; /* Five parts add up. */
    *scorer = (graft_scorer){.size = *size};
    graft_encoder_init(&scorer->encoder, arena, &encoder, seed);
    graft_parameters_init(&scorer->parameters, "scorer");
    scorer->rule = LAYER(scorer, "rule", 2 * size->latent, width, relu_gain);
    scorer->identities =
        graft_parameters_add(&scorer->parameters, "identities", GRAFT_RULE_BUCKETS, width, 0.3F);
    scorer->mean = LAYER(scorer, "mean", size->hidden, width, part);
    scorer->most = LAYER(scorer, "most", size->hidden, width, part);
    scorer->of_rule = LAYER(scorer, "of_rule", width, width, part);
    scorer->of_scene = LAYER(scorer, "of_scene", size->latent, width, part);
    scorer->facts = LAYER(scorer, "facts", GRAFT_FACT_SEEN, width, part);
    scorer->second = LAYER(scorer, "second", width, width, relu_gain);
    scorer->score = LAYER(scorer, "score", width, 1, 0.0F);
    scorer->value[0] = LAYER(scorer, "value0", size->latent, width, relu_gain);
    scorer->value[1] = LAYER(scorer, "value1", width, 1, 0.1F);
    graft_parameters_seal(&scorer->parameters, arena, seed + 1);
}

static const graft_matrix *apply_rules(const graft_scorer *scorer, graft_tape *tape,
                                       const graft_scene_batch *batch, const graft_matrix *latent)
{
    const graft_parameters *set = &scorer->parameters;
    const graft_matrix *sides[2] = {
        graft_gather_rows(tape, latent, batch->source_rows, batch->rule_count),
        graft_gather_rows(tape, latent, batch->target_rows, batch->rule_count),
    };
    const graft_matrix *known =
        graft_gather_rows(tape, graft_tape_parameter(tape, set, scorer->identities), batch->buckets,
                          batch->rule_count);
    const graft_matrix *seen =
        graft_layer_apply(tape, set, scorer->rule, graft_concat(tape, sides, 2));
    return graft_relu(tape, graft_add(tape, seen, known));
}

/* What a candidate's place and rule say: the first layer's part of it. */
static const graft_matrix *apply_places(const graft_scorer *scorer, graft_tape *tape,
                                        const graft_scene_batch *batch, const graft_matrix *nodes,
                                        const graft_matrix *of_rules)
{
    const graft_parameters *set = &scorer->parameters;
    const graft_matrix *members =
        graft_gather_rows(tape, nodes, batch->member_nodes, batch->member_count);
    const graft_matrix *mean =
        graft_segment_mean(tape, members, batch->member_rows, batch->row_count);
    const graft_matrix *most =
        graft_segment_max(tape, members, batch->member_rows, batch->row_count);
    const graft_matrix *sum = graft_add(tape, graft_layer_apply(tape, set, scorer->mean, mean),
                                        graft_layer_apply(tape, set, scorer->most, most));
    return graft_add(tape, sum,
                     graft_gather_rows(tape, of_rules, batch->row_rule, batch->row_count));
}

/* Of each row's facts those that the engine computes. */
static const float *see_facts(graft_tape *tape, const float *facts, uint32_t rows)
{
    float *seen = GRAFT_NEW(tape->arena, float, (size_t)rows *GRAFT_FACT_SEEN);
    for (size_t i = 0; i < rows; i++) {
        memcpy(&seen[i * GRAFT_FACT_SEEN], &facts[i * GRAFT_FACT_COUNT],
               GRAFT_FACT_SEEN * sizeof(float));
    }
    return seen;
}

/* What follows encoding: from (rows, width) places and (scenes, latent) latents. */
static graft_scored score_rows(const graft_scorer *scorer, graft_tape *tape,
                               const graft_matrix *places, const graft_matrix *latent,
                               const graft_latent_rows *rows)
{
    const graft_parameters *set = &scorer->parameters;
    graft_scored scored = {.latent = latent, .places = places};
    const graft_matrix *facts = graft_tape_constant(
        tape, see_facts(tape, rows->facts, places->rows), places->rows, GRAFT_FACT_SEEN);
    const graft_matrix *of_scenes = graft_layer_apply(tape, set, scorer->of_scene, latent);
    const graft_matrix *sum =
        graft_add(tape, places, graft_layer_apply(tape, set, scorer->facts, facts));
    sum = graft_add(tape, sum, graft_gather_rows(tape, of_scenes, rows->scene, places->rows));
    scored.first = graft_relu(tape, sum);
    scored.second = graft_relu(tape, graft_layer_apply(tape, set, scorer->second, scored.first));
    const graft_matrix *priors = graft_tape_constant(tape, rows->priors, places->rows, 1);
    scored.logits =
        graft_add(tape, priors, graft_layer_apply(tape, set, scorer->score, scored.second));
    scored.log_p = graft_ragged_log_softmax(tape, scored.logits, rows->scene, latent->rows);
    const graft_matrix *valued =
        graft_relu(tape, graft_layer_apply(tape, set, scorer->value[0], latent));
    scored.value = graft_layer_apply(tape, set, scorer->value[1], valued);
    return scored;
}

graft_scored graft_scorer_apply(const graft_scorer *scorer, graft_tape *tape,
                                const graft_scene_batch *batch)
{
    const graft_latent_rows rows = {batch->row_scene, batch->facts, batch->priors};
    graft_encoding encoding = graft_encoder_apply(&scorer->encoder, tape, &batch->graphs);
    const graft_matrix *rules = apply_rules(scorer, tape, batch, encoding.latent);
    const graft_matrix *added =
        graft_layer_apply(tape, &scorer->parameters, scorer->of_rule, rules);
    const graft_matrix *latent =
        graft_gather_rows(tape, encoding.latent, batch->scene_rows, batch->scene_count);
    graft_scored scored = score_rows(
        scorer, tape, apply_places(scorer, tape, batch, encoding.nodes, added), latent, &rows);
    scored.encoding = encoding;
    scored.rules = rules;
    scored.added = added;
    return scored;
}

/* Scenes without graphs, side by side. */
static graft_scored look_at_dreams(const graft_scorer *scorer, graft_tape *tape,
                                   const graft_scene *const scenes[], uint32_t count,
                                   uint32_t *first, uint32_t **row_scene)
{
    const size_t width = scorer->size.width;
    const size_t latent = scorer->size.latent;
    for (uint32_t s = 0; s < count; s++) {
        first[s + 1] = first[s] + scenes[s]->count;
    }
    const size_t rows = first[count];
    float *places = GRAFT_NEW(tape->arena, float, rows *width);
    float *latents = GRAFT_NEW(tape->arena, float, count *latent);
    float *facts = GRAFT_NEW(tape->arena, float, rows *GRAFT_FACT_COUNT);
    float *priors = GRAFT_NEW(tape->arena, float, rows);
    *row_scene = GRAFT_NEW(tape->arena, uint32_t, rows);
    for (uint32_t s = 0; s < count; s++) {
        const size_t at = first[s];
        const size_t size = scenes[s]->count;
        memcpy(&latents[s * latent], scenes[s]->latent, latent * sizeof(float));
        memcpy(&places[at * width], scenes[s]->places, size * width * sizeof(float));
        memcpy(&facts[at * GRAFT_FACT_COUNT], scenes[s]->facts,
               size * GRAFT_FACT_COUNT * sizeof(float));
        memcpy(&priors[at], scenes[s]->priors, size * sizeof(float));
        for (size_t i = 0; i < size; i++) {
            (*row_scene)[at + i] = s;
        }
    }
    return score_rows(scorer, tape,
                      graft_tape_constant(tape, places, (uint32_t)rows, (uint32_t)width),
                      graft_tape_constant(tape, latents, count, (uint32_t)latent),
                      &(graft_latent_rows){*row_scene, facts, priors});
}

graft_scored graft_scorer_look(const graft_scorer *scorer, graft_tape *tape,
                               const graft_scene *const scenes[], uint32_t count,
                               const uint32_t **first, const uint32_t **row_scene)
{
    if (scenes[0]->places != NULL) {
        uint32_t *starts = GRAFT_NEW(tape->arena, uint32_t, count + 1);
        uint32_t *rows = NULL;
        graft_scored scored = look_at_dreams(scorer, tape, scenes, count, starts, &rows);
        *first = starts;
        *row_scene = rows;
        return scored;
    }
    graft_scene_batch *batch = GRAFT_NEW(tape->arena, graft_scene_batch, 1);
    *batch = graft_scene_batch_join(tape->arena, scenes, count);
    *first = batch->first;
    *row_scene = batch->row_scene;
    return graft_scorer_apply(scorer, tape, batch);
}
