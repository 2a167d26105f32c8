/* foresight.c - see foresight.h: the networks. What they are trained by is in foresight_training.c.
 */
#include "train/agent/foresight.h"

#include "train/nn/kernels.h"

#include <math.h>
#include <string.h>

static const float relu_gain = 1.41421356F;
static const float sigma_floor = 0.05F;

#define LAYER(model, name, inputs, outputs, gain)                                                  \
    graft_parameters_layer(&(model)->parameters,                                                   \
                           (const char *const[]){name ".weight", name ".bias"}, inputs, outputs,   \
                           gain)

uint32_t graft_foresight_inputs(const graft_foresight *model)
{
    return model->latent + model->width + GRAFT_FACT_COUNT;
}

static void add_candidate_heads(graft_foresight *m)
{
    const float part = relu_gain * 0.6F; /* Two or three parts add up. */
    m->candidate_of_feature = LAYER(m, "candidate.feature", m->hidden, m->pair, part);
    m->candidate_of_place = LAYER(m, "candidate.place", m->width, m->pair, part);
    m->candidate_of_facts =
        LAYER(m, "candidate.facts", GRAFT_FACT_COUNT + GRAFT_SHARED_COUNT, m->pair, part);
    m->candidate_head = LAYER(m, "candidate.head", m->pair, GRAFT_SAYS_COUNT, 1.0F);
    m->rule_of_feature = LAYER(m, "rule.feature", m->hidden, m->pair, part);
    m->rule_of_rule = LAYER(m, "rule.rule", m->width, m->pair, part);
    m->count_head = LAYER(m, "count", m->pair, 1, 1.0F);
    m->content_head = LAYER(m, "content", m->pair, graft_mixture_width(&m->content), 1.0F);
}

void graft_foresight_init(graft_foresight *model, graft_arena *arena, const graft_scorer *scorer,
                          const graft_agent_settings *settings, uint64_t seed)
{
    graft_foresight *m = model;
    *m = (graft_foresight){.latent = scorer->size.latent,
                           .width = scorer->size.width,
                           .hidden = (uint32_t)settings->foresight_hidden,
                           .pair = (uint32_t)settings->foresight_pair,
                           .reward_scale = 1.0F};
    const uint32_t inputs = graft_foresight_inputs(m);
    const uint32_t content = m->width + GRAFT_FACT_COUNT;
    const uint32_t components = (uint32_t)settings->foresight_components;
    m->next = (graft_mixture){m->latent, components, sigma_floor};
    m->content = (graft_mixture){content, components, sigma_floor};
    graft_parameters_init(&m->parameters, "foresight");
    m->gates = LAYER(m, "gates", inputs, 4 * m->hidden, 1.0F);
    m->recurrent = graft_parameters_add(&m->parameters, "recurrent", m->hidden, 4 * m->hidden,
                                        sqrtf(3.0F / (float)m->hidden));
    m->features = LAYER(m, "features", m->hidden + inputs, m->hidden, relu_gain);
    m->next_head = LAYER(m, "next", m->hidden, graft_mixture_width(&m->next), 1.0F);
    m->reward_head = LAYER(m, "reward", m->hidden, 1, 0.1F);
    m->end_head = LAYER(m, "end", m->hidden, 1, 1.0F);
    add_candidate_heads(m);
    graft_parameters_seal(&m->parameters, arena, seed);
    m->latent_scale = GRAFT_NEW(arena, float, m->latent);
    m->content_mean = GRAFT_NEW(arena, float, content);
    m->content_scale = GRAFT_NEW(arena, float, content);
    m->gain_low = GRAFT_NEW(arena, float, GRAFT_REPERTOIRE_MOST);
    m->gain_high = GRAFT_NEW(arena, float, GRAFT_REPERTOIRE_MOST);
}

void graft_foresight_input(const graft_foresight *model, const float *latent, const float *place,
                           const float *facts, float *out)
{
    memcpy(out, latent, model->latent * sizeof(float));
    memcpy(out + model->latent, place, model->width * sizeof(float));
    memcpy(out + model->latent + model->width, facts, GRAFT_FACT_COUNT * sizeof(float));
}

graft_foreseen graft_foresight_apply(const graft_foresight *model, graft_tape *tape,
                                     const float *inputs, uint32_t steps,
                                     const graft_lstm_state *initial, const graft_lstm_state *final)
{
    const graft_parameters *set = &model->parameters;
    graft_foreseen seen;
    const graft_matrix *x = graft_tape_constant(tape, inputs, steps, graft_foresight_inputs(model));
    const graft_matrix *h =
        graft_lstm(tape, graft_layer_apply(tape, set, model->gates, x),
                   graft_tape_parameter(tape, set, model->recurrent), 1, initial, final);
    const graft_matrix *parts[2] = {h, x};
    seen.feature = graft_relu(
        tape, graft_layer_apply(tape, set, model->features, graft_concat(tape, parts, 2)));
    seen.next = graft_layer_apply(tape, set, model->next_head, seen.feature);
    seen.reward = graft_layer_apply(tape, set, model->reward_head, seen.feature);
    seen.end = graft_layer_apply(tape, set, model->end_head, seen.feature);
    return seen;
}

const graft_matrix *graft_foresight_candidates(const graft_foresight *model, graft_tape *tape,
                                               const graft_matrix *feature,
                                               const graft_foresight_rows *rows)
{
    const graft_parameters *set = &model->parameters;
    const graft_matrix *known[2] = {
        graft_tape_constant(tape, rows->facts, rows->count, GRAFT_FACT_COUNT),
        graft_tape_constant(tape, rows->shared, rows->count, GRAFT_SHARED_COUNT),
    };
    const graft_matrix *of_feature =
        graft_layer_apply(tape, set, model->candidate_of_feature, feature);
    const graft_matrix *sum = graft_add(
        tape, graft_gather_rows(tape, of_feature, rows->step, rows->count),
        graft_layer_apply(tape, set, model->candidate_of_place,
                          graft_tape_constant(tape, rows->places, rows->count, model->width)));
    sum = graft_add(
        tape, sum,
        graft_layer_apply(tape, set, model->candidate_of_facts, graft_concat(tape, known, 2)));
    return graft_layer_apply(tape, set, model->candidate_head, graft_relu(tape, sum));
}

const graft_matrix *graft_foresight_openings(const graft_foresight *model, graft_tape *tape,
                                             const graft_matrix *feature,
                                             const graft_repertoire *repertoire,
                                             const graft_foresight_pairs *pairs,
                                             const graft_matrix **content)
{
    const graft_parameters *set = &model->parameters;
    const graft_matrix *rules =
        graft_tape_constant(tape, repertoire->rules, repertoire->count, model->width);
    const graft_matrix *of_rules = graft_layer_apply(tape, set, model->rule_of_rule, rules);
    const graft_matrix *of_feature = graft_layer_apply(tape, set, model->rule_of_feature, feature);
    const graft_matrix *both = graft_relu(
        tape, graft_add(tape, graft_gather_rows(tape, of_feature, pairs->step, pairs->count),
                        graft_gather_rows(tape, of_rules, pairs->rule, pairs->count)));
    if (content != NULL) {
        *content = graft_layer_apply(tape, set, model->content_head, both);
    }
    return graft_layer_apply(tape, set, model->count_head, both);
}
