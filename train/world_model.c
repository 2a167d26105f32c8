/* world_model.c - see world_model.h: parameters, constants, forward pass. */
#include "train/world_model.h"

#include "train/kernels.h"
#include "train/numeric.h"

#include <assert.h>
#include <math.h>

graft_world_size graft_world_defaults(graft_world_size size)
{
    size.locations = size.locations == 0 ? GRAFT_LOCATIONS_DEFAULT : size.locations;
    size.hidden = size.hidden == 0 ? 256 : size.hidden;
    size.features = size.features == 0 ? 256 : size.features;
    size.components = size.components == 0 ? 8 : size.components;
    size.xfer_embedding = size.xfer_embedding == 0 ? 32 : size.xfer_embedding;
    size.location_embedding = size.location_embedding == 0 ? 16 : size.location_embedding;
    size.sigma_floor = size.sigma_floor <= 0.0F ? 0.05F : size.sigma_floor;
    return size;
}

uint32_t graft_location_bucket(uint32_t location)
{
    if (location < 16) {
        return location;
    }
    uint32_t octave = 31U - (uint32_t)__builtin_clz(location);
    uint32_t bucket = 16 + (octave - 4) * 4 + ((location >> (octave - 2)) & 3U);
    return bucket < GRAFT_LOCATION_BUCKETS ? bucket : GRAFT_LOCATION_BUCKETS - 1;
}

uint32_t graft_location_place(uint32_t location, uint32_t count)
{
    return location < count ? location * GRAFT_LOCATION_PLACES / count : 0;
}

/* Both head layers of a row in this table start small: the first predictions are the mean. */
static const float head_gain = 0.1F;

static graft_layer add_head(graft_world_model *model, const char *const names[2], uint32_t outputs)
{
    return graft_parameters_layer(&model->parameters, names, model->size.features, outputs,
                                  head_gain);
}

static void add_parameters(graft_world_model *model)
{
    static const char *const names[7][2] = {
        {"gates.weight",    "gates.bias"   },
        {"features.weight", "features.bias"},
        {"latent.weight",   "latent.bias"  },
        {"reward.weight",   "reward.bias"  },
        {"end.weight",      "end.bias"     },
        {"legality.weight", "legality.bias"},
        {"counts.weight",   "counts.bias"  },
    };
    const graft_world_size *size = &model->size;
    graft_parameters *set = &model->parameters;
    uint32_t inputs = size->latent + (size->latent_only ? 0 : size->xfers) + size->xfer_embedding +
                      2 * size->location_embedding;
    model->xfer_table =
        graft_parameters_add(set, "xfers", size->xfers + 1, size->xfer_embedding, 1.0F);
    model->location_table = graft_parameters_add(set, "locations", GRAFT_LOCATION_BUCKETS,
                                                 size->location_embedding, 0.5F);
    model->place_table =
        graft_parameters_add(set, "places", GRAFT_LOCATION_PLACES, size->location_embedding, 0.5F);
    model->gates = graft_parameters_layer(set, names[0], inputs, 4 * size->hidden, 1.0F);
    model->recurrent = graft_parameters_add(set, "recurrent", size->hidden, 4 * size->hidden,
                                            sqrtf(3.0F / (float)size->hidden));
    model->features =
        graft_parameters_layer(set, names[1], size->hidden + inputs, size->features, 1.41421356F);
    model->latent_head = add_head(model, names[2], graft_mixture_width(&model->mixture));
    model->reward_head = add_head(model, names[3], 1);
    model->end_head = add_head(model, names[4], 1);
    model->legality_head = add_head(model, names[5], size->xfers);
    model->counts_head = add_head(model, names[6], size->xfers);
    model->legality_keep = graft_parameters_add(set, "legality.keep", 1, size->xfers, 0.0F);
    model->legality_effect =
        graft_parameters_add(set, "legality.effect", size->xfers + 1, size->xfers, 0.0F);
    model->counts_effect =
        graft_parameters_add(set, "counts.effect", size->xfers + 1, size->xfers, 0.0F);
}

static void fill(float *value, size_t count, float with)
{
    for (size_t i = 0; i < count; i++) {
        value[i] = with;
    }
}

/* Starting values that are not random: a forget gate that remembers (Gers et al. 2000), mixture
 * means spread over the usual changes, next masks like the present ones, and a rewrite that uses up
 * its place. */
static void set_biases(graft_world_model *model)
{
    const graft_parameters *set = &model->parameters;
    const graft_world_size *size = &model->size;
    fill(graft_parameters_value(set, model->gates.bias) + size->hidden, size->hidden, 1.0F);
    float *means = graft_parameters_value(set, model->latent_head.bias) +
                   (size_t)size->components * size->latent;
    for (uint32_t k = 0; k < size->components; k++) {
        float place = ((float)k + 0.5F) / (float)size->components;
        fill(means + (size_t)k * size->latent, size->latent, 2.0F * place - 1.0F);
    }
    fill(graft_parameters_value(set, model->legality_keep), size->xfers, 3.0F);
    float *effect = graft_parameters_value(set, model->counts_effect);
    for (size_t x = 0; x < size->xfers && !size->latent_only; x++) {
        effect[x * size->xfers + x] = -1.0F;
    }
}

void graft_world_model_init(graft_world_model *model, graft_arena *arena,
                            const graft_world_size *size, uint64_t seed)
{
    assert(size->latent > 0 && size->xfers > 0 && size->hidden > 0 && size->components > 0);
    model->size = *size;
    model->mixture = (graft_mixture){size->latent, size->components, size->sigma_floor};
    graft_parameters_init(&model->parameters, "world");
    add_parameters(model);
    graft_parameters_seal(&model->parameters, arena, seed);
    set_biases(model);
    model->constants = GRAFT_NEW(arena, float, graft_world_model_constant_count(model));
    model->delta_scale = model->constants;
    model->low = model->delta_scale + size->latent;
    model->high = model->low + size->latent;
    model->reward_means = model->high + size->latent;
    model->reward_scales = model->reward_means + size->xfers + 1;
    model->reward_lows = model->reward_scales + size->xfers + 1;
    model->reward_highs = model->reward_lows + size->xfers + 1;
    fill(model->delta_scale, size->latent, 1.0F);
    fill(model->low, size->latent, -INFINITY);
    fill(model->high, size->latent, INFINITY);
    fill(model->reward_scales, size->xfers + 1, 1.0F);
    fill(model->reward_lows, size->xfers + 1, -INFINITY);
    fill(model->reward_highs, size->xfers + 1, INFINITY);
}

uint32_t graft_world_model_constant_count(const graft_world_model *model)
{
    return 3 * model->size.latent + 4 * (model->size.xfers + 1);
}

/* ------------------------------------------------------------------------------------ constants */

static void calibrate_dimension(graft_world_model *model, const graft_trajectory *trajectories,
                                uint32_t count, uint32_t d)
{
    size_t latent = model->size.latent;
    double squares = 0.0;
    double steps = 0.0;
    float low = INFINITY;
    float high = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        const float *z = trajectories[i].z + d;
        for (size_t t = 0; t <= trajectories[i].step_count; t++) {
            low = z[t * latent] < low ? z[t * latent] : low;
            high = z[t * latent] > high ? z[t * latent] : high;
        }
        for (size_t t = 0; t < trajectories[i].step_count; t++) {
            double change = (double)z[(t + 1) * latent] - (double)z[t * latent];
            squares += change * change;
            steps += 1.0;
        }
    }
    double scale = steps > 0.0 ? sqrt(squares / steps) : 1.0;
    model->delta_scale[d] = scale > (double)GRAFT_DELTA_LEAST ? (float)scale : GRAFT_DELTA_LEAST;
    model->low[d] = low - 0.5F * (high - low);
    model->high[d] = high + 0.5F * (high - low);
}

/* Sums over the steps with one xfer. */
typedef struct {
    double steps;
    double sum;
    double squares;
    double low;
    double high;
} reward_sums;

static reward_sums add_rewards(const graft_trajectory *trajectories, uint32_t count, uint32_t xfer)
{
    reward_sums sums = {0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t t = 0; t < trajectories[i].step_count; t++) {
            if (trajectories[i].xfer[t] == xfer) {
                double reward = (double)trajectories[i].reward[t];
                sums.low = sums.steps > 0.0 ? fmin(sums.low, reward) : reward;
                sums.high = sums.steps > 0.0 ? fmax(sums.high, reward) : reward;
                sums.steps += 1.0;
                sums.sum += reward;
                sums.squares += reward * reward;
            }
        }
    }
    return sums;
}

/* Sum of squared differences from the xfer's mean. */
static double spread_of(const reward_sums *s)
{
    double spread = s->steps > 0.0 ? s->squares - s->sum * s->sum / s->steps : 0.0;
    return spread > 0.0 ? spread : 0.0;
}

void graft_world_model_calibrate_rewards(graft_world_model *model,
                                         const graft_trajectory *trajectories, uint32_t count)
{
    const double drawn = 4.0; /* Steps that the common deviation counts for. */
    double spread = 0.0;
    double steps = 0.0;
    for (uint32_t x = 0; x <= model->size.xfers; x++) {
        reward_sums s = add_rewards(trajectories, count, x);
        spread += spread_of(&s);
        steps += s.steps;
    }
    double common = steps > 0.0 && spread / steps > 1e-12 ? spread / steps : 1.0;
    for (uint32_t x = 0; x <= model->size.xfers; x++) {
        reward_sums s = add_rewards(trajectories, count, x);
        double variance = (spread_of(&s) + drawn * common) / (s.steps + drawn);
        model->reward_means[x] = s.steps > 0.0 ? (float)(s.sum / s.steps) : 0.0F;
        model->reward_scales[x] = (float)sqrt(fmax(variance, 1e-4 * common));
        model->reward_lows[x] = (float)s.low;
        model->reward_highs[x] = (float)s.high;
    }
}

void graft_world_model_calibrate(graft_world_model *model, const graft_trajectory *trajectories,
                                 uint32_t count)
{
    assert(count > 0);
    for (uint32_t d = 0; d < model->size.latent; d++) {
        calibrate_dimension(model, trajectories, count, d);
    }
    graft_world_model_calibrate_rewards(model, trajectories, count);
}

/* -------------------------------------------------------------------------------------- forward */

/* x, (rows, inputs). */
static const graft_matrix *embed_input(const graft_world_model *model, graft_tape *tape,
                                       const graft_world_input *input)
{
    const graft_parameters *set = &model->parameters;
    const graft_world_size *size = &model->size;
    uint32_t rows = input->batch * input->steps;
    uint32_t state_cols = size->latent + (size->latent_only ? 0 : size->xfers);
    const graft_matrix *action[3] = {
        graft_gather_rows(tape, graft_tape_parameter(tape, set, model->xfer_table), input->xfer,
                          rows),
        graft_gather_rows(tape, graft_tape_parameter(tape, set, model->location_table),
                          input->bucket, rows),
        graft_gather_rows(tape, graft_tape_parameter(tape, set, model->place_table), input->place,
                          rows),
    };
    const graft_matrix *parts[2] = {
        graft_tape_constant(tape, input->state, rows, state_cols),
        graft_concat(tape, action, 3),
    };
    return graft_concat(tape, parts, 2);
}

static const graft_matrix *keep_valid(graft_tape *tape, const graft_world_input *input,
                                      const graft_matrix *m)
{
    return input->valid == NULL ? m : graft_gather_rows(tape, m, input->valid, input->valid_count);
}

/* A per-xfer head: f W + b, plus the effects of the actions. */
static const graft_matrix *apply_xfer_head(const graft_world_model *model, graft_tape *tape,
                                           const graft_world_input *input, const graft_matrix *f,
                                           graft_layer head, uint32_t effects)
{
    const graft_parameters *set = &model->parameters;
    const graft_matrix *effect = graft_gather_rows(tape, graft_tape_parameter(tape, set, effects),
                                                   input->xfer, input->batch * input->steps);
    return graft_add(tape, graft_layer_apply(tape, set, head, f), keep_valid(tape, input, effect));
}

/* The logits' head, beside the present state if that is known. */
static const graft_matrix *apply_legality(const graft_world_model *model, graft_tape *tape,
                                          const graft_world_input *input, const graft_matrix *f)
{
    const graft_matrix *change =
        apply_xfer_head(model, tape, input, f, model->legality_head, model->legality_effect);
    if (input->legality == NULL) {
        return change;
    }
    const graft_matrix *state =
        graft_tape_constant(tape, input->legality, input->batch * input->steps, model->size.xfers);
    const graft_matrix *kept =
        graft_scale_columns(tape, keep_valid(tape, input, state),
                            graft_tape_parameter(tape, &model->parameters, model->legality_keep));
    return graft_add(tape, change, kept);
}

float graft_world_count_target(const graft_world_model *model, uint32_t present, uint32_t next)
{
    return model->size.latent_only ? graft_log(1.0F + (float)next) : (float)next - (float)present;
}

float graft_world_count(const graft_world_model *model, uint32_t present, float said)
{
    return model->size.latent_only ? graft_exp(said) - 1.0F : (float)present + said;
}

graft_world_prediction graft_world_model_apply(const graft_world_model *model, graft_tape *tape,
                                               const graft_world_input *input,
                                               const graft_lstm_state *initial,
                                               const graft_lstm_state *final)
{
    const graft_parameters *set = &model->parameters;
    const graft_matrix *x = embed_input(model, tape, input);
    const graft_matrix *gates = graft_layer_apply(tape, set, model->gates, x);
    const graft_matrix *h =
        graft_lstm(tape, gates, graft_tape_parameter(tape, set, model->recurrent), input->batch,
                   initial, final);
    const graft_matrix *parts[2] = {keep_valid(tape, input, h), keep_valid(tape, input, x)};
    const graft_matrix *f = graft_relu(
        tape, graft_layer_apply(tape, set, model->features, graft_concat(tape, parts, 2)));
    return (graft_world_prediction){
        .latent = graft_layer_apply(tape, set, model->latent_head, f),
        .reward = graft_layer_apply(tape, set, model->reward_head, f),
        .end = graft_layer_apply(tape, set, model->end_head, f),
        .legality = apply_legality(model, tape, input, f),
        .counts = apply_xfer_head(model, tape, input, f, model->counts_head, model->counts_effect),
    };
}
