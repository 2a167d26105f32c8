/* world_state.c - see world_state.h. */
#include "train/world_state.h"

#include "train/numeric.h"

#include <assert.h>
#include <string.h>

graft_world_state graft_world_state_new(const graft_world_model *model, graft_arena *arena,
                                        uint32_t capacity)
{
    const graft_world_size *size = &model->size;
    size_t rows = capacity;
    graft_world_state state = {.capacity = capacity};
    state.z = GRAFT_NEW(arena, float, rows * size->latent);
    state.counts = GRAFT_NEW(arena, uint16_t, rows * size->xfers);
    state.memory.hidden = GRAFT_NEW(arena, float, rows * size->hidden);
    state.memory.cell = GRAFT_NEW(arena, float, rows * size->hidden);
    state.rng = GRAFT_NEW(arena, graft_rng, rows);
    return state;
}

void graft_world_state_start(const graft_world_model *model, graft_world_state *state,
                             const float *z, const uint16_t *counts, const graft_rng *rng)
{
    assert(state->rows < state->capacity);
    const graft_world_size *size = &model->size;
    size_t row = state->rows++;
    memcpy(state->z + row * size->latent, z, size->latent * sizeof(float));
    memcpy(state->counts + row * size->xfers, counts, size->xfers * sizeof(uint16_t));
    memset(state->memory.hidden + row * size->hidden, 0, size->hidden * sizeof(float));
    memset(state->memory.cell + row * size->hidden, 0, size->hidden * sizeof(float));
    state->rng[row] = *rng;
}

void graft_world_state_move(const graft_world_model *model, graft_world_state *state, uint32_t to,
                            uint32_t from)
{
    assert(to <= from && from < state->rows);
    if (to == from) {
        return;
    }
    const graft_world_size *size = &model->size;
    size_t a = to;
    size_t b = from;
    memcpy(state->z + a * size->latent, state->z + b * size->latent, size->latent * sizeof(float));
    memcpy(state->counts + a * size->xfers, state->counts + b * size->xfers,
           size->xfers * sizeof(uint16_t));
    memcpy(state->memory.hidden + a * size->hidden, state->memory.hidden + b * size->hidden,
           size->hidden * sizeof(float));
    memcpy(state->memory.cell + a * size->hidden, state->memory.cell + b * size->hidden,
           size->hidden * sizeof(float));
    state->rng[a] = state->rng[b];
}

/* The states and actions as the network's input; every array in `arena`. */
static graft_world_input describe(const graft_world_model *model, graft_arena *arena,
                                  const graft_world_state *state, graft_world_action action)
{
    size_t latent = model->size.latent;
    size_t xfers = model->size.xfers;
    size_t cols = latent + (model->size.latent_only ? 0 : xfers);
    float *features = GRAFT_NEW(arena, float, state->rows *cols);
    float *log_count = GRAFT_NEW(arena, float, state->rows *xfers);
    float *legality = GRAFT_NEW(arena, float, state->rows *xfers);
    uint32_t *xfer = GRAFT_NEW(arena, uint32_t, state->rows);
    uint32_t *bucket = GRAFT_NEW(arena, uint32_t, state->rows);
    uint32_t *place = GRAFT_NEW(arena, uint32_t, state->rows);
    for (size_t i = 0; i < state->rows; i++) {
        for (size_t x = 0; x < xfers; x++) {
            uint16_t count = state->counts[i * xfers + x];
            log_count[i * xfers + x] = graft_log(1.0F + (float)count);
            legality[i * xfers + x] = count > 0 ? 1.0F : -1.0F;
        }
        memcpy(features + i * cols, state->z + i * latent, latent * sizeof(float));
        memcpy(features + i * cols + latent, log_count + i * xfers,
               (cols - latent) * sizeof(float));
        assert(action.xfer[i] <= xfers);
        xfer[i] = action.xfer[i];
        bucket[i] = graft_location_bucket(action.location[i]);
        place[i] = graft_location_place(
            action.location[i],
            action.xfer[i] < xfers ? state->counts[i * xfers + action.xfer[i]] : 1);
    }
    return (graft_world_input){
        .batch = state->rows,
        .steps = 1,
        .state = features,
        .log_count = model->size.latent_only ? NULL : log_count,
        .legality = model->size.latent_only ? NULL : legality,
        .xfer = xfer,
        .bucket = bucket,
        .place = place,
        .valid_count = state->rows,
    };
}

/* One state's latent: sampled change, kept in range. `change` (latent) is work space. */
static void move_latent(const graft_world_model *model, const float *raw, float temperature,
                        graft_rng *rng, float *change, float *z)
{
    graft_mixture_sample(&model->mixture, raw, temperature, rng, change);
    for (uint32_t d = 0; d < model->size.latent; d++) {
        float moved = z[d] + model->delta_scale[d] * change[d];
        moved = moved < model->low[d] ? model->low[d] : moved;
        z[d] = moved > model->high[d] ? model->high[d] : moved;
    }
}

/* One state's masks. What is left over of a count is drawn, or a count that falls by a little less
 * than one would never fall at all, and a rule would pay for ever. */
static void predict_counts(const graft_world_model *model, const float *legality, const float *said,
                           graft_rng *rng, uint16_t *counts)
{
    float most = (float)model->size.locations;
    for (uint32_t x = 0; x < model->size.xfers; x++) {
        if (legality[x] <= 0.0F) {
            counts[x] = 0;
            continue;
        }
        float count = graft_world_count(model, counts[x], said[x]);
        count += (float)graft_rng_uniform(rng);
        count = count > most ? most : count;
        counts[x] = count < 1.0F ? 1 : (uint16_t)count;
    }
}

/* The reward of an xfer from what the head says, kept in the range of what was recorded. */
static float predict_reward(const graft_world_model *model, uint16_t xfer, float said)
{
    float reward = model->reward_means[xfer] + model->reward_scales[xfer] * said;
    reward = reward < model->reward_lows[xfer] ? model->reward_lows[xfer] : reward;
    return reward > model->reward_highs[xfer] ? model->reward_highs[xfer] : reward;
}

void graft_world_state_step(const graft_world_model *model, graft_arena *scratch,
                            graft_world_state *state, graft_world_action action, float temperature,
                            const graft_world_outcome *outcome)
{
    graft_mark mark = graft_arena_mark(scratch);
    const graft_world_size *size = &model->size;
    graft_tape tape;
    graft_tape_init(&tape, scratch, false);
    graft_tape_bind(&tape, &model->parameters, NULL);
    graft_world_input input = describe(model, scratch, state, action);
    graft_world_prediction next =
        graft_world_model_apply(model, &tape, &input, &state->memory, &state->memory);
    float *change = GRAFT_NEW(scratch, float, size->latent);
    for (size_t i = 0; i < state->rows; i++) {
        graft_rng *rng = &state->rng[i];
        move_latent(model, next.latent->value + i * next.latent->cols, temperature, rng, change,
                    state->z + i * size->latent);
        predict_counts(model, next.legality->value + i * size->xfers,
                       next.counts->value + i * size->xfers, rng, state->counts + i * size->xfers);
        outcome->reward[i] = predict_reward(model, action.xfer[i], next.reward->value[i]);
        double ends = (double)graft_logistic(next.end->value[i]);
        outcome->end[i] = graft_rng_uniform(rng) < ends ? 1 : 0;
    }
    graft_arena_release(scratch, mark);
}
