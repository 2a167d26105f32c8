/* dream.c - see dream.h. Each shard dreams its share of the episodes side by side, one product per
 * step for all of them; finished ones are dropped and the gaps closed in order. */
#include "train/dream.h"

#include <assert.h>
#include <string.h>

typedef struct {
    const graft_world_model *model;
    const graft_controller *controller;
    const graft_dream_starts *starts;
    const graft_dream_settings *settings;
    graft_rollout *rollout;
} dream_job;

/* The dreams of one shard that are still going; row i belongs to episode episode[i]. */
typedef struct {
    graft_world_state state;
    uint32_t *episode;
    graft_controller_choice choice;
    graft_world_outcome outcome;
} dreamers;

static dreamers start_dreamers(const dream_job *job, graft_arena *arena, graft_span span)
{
    dreamers all = {.state = graft_world_state_new(job->model, arena, span.count)};
    all.episode = GRAFT_NEW(arena, uint32_t, span.count);
    all.choice.xfer = GRAFT_NEW(arena, uint16_t, span.count);
    all.choice.location = GRAFT_NEW(arena, uint16_t, span.count);
    all.choice.log_p = GRAFT_NEW(arena, float, span.count);
    all.choice.value = GRAFT_NEW(arena, float, span.count);
    all.outcome.reward = GRAFT_NEW(arena, float, span.count);
    all.outcome.end = GRAFT_NEW(arena, uint8_t, span.count);
    for (uint32_t i = 0; i < span.count; i++) {
        graft_rng rng;
        graft_rng_derive(&rng, job->settings->seed, span.first + i);
        size_t start = graft_rng_below(&rng, job->starts->count);
        graft_world_state_start(job->model, &all.state,
                                job->starts->z + start * job->model->size.latent,
                                job->starts->counts + start * job->model->size.xfers, &rng);
        all.episode[i] = span.first + i;
    }
    return all;
}

static void act(const dream_job *job, graft_arena *scratch, dreamers *all)
{
    graft_controller_states states = {all->state.rows, all->state.z, all->state.counts};
    graft_controller_act(job->controller, scratch, &states, all->state.rng, &all->choice);
}

/* Writes states and actions of step t; the reward follows when it is known. */
static void record_actions(const dream_job *job, const dreamers *all, uint32_t t)
{
    graft_rollout *rollout = job->rollout;
    size_t latent = rollout->latent;
    size_t xfers = rollout->xfers;
    for (size_t i = 0; i < all->state.rows; i++) {
        size_t row = (size_t)all->episode[i] * rollout->horizon + t;
        memcpy(rollout->z + row * latent, all->state.z + i * latent, latent * sizeof(float));
        memcpy(rollout->counts + row * xfers, all->state.counts + i * xfers,
               xfers * sizeof(uint16_t));
        rollout->xfer[row] = all->choice.xfer[i];
        rollout->location[row] = all->choice.location[i];
        rollout->log_p[row] = all->choice.log_p[i];
        rollout->value[row] = all->choice.value[i];
    }
}

/* Rewards and ends of step t; finished dreams leave. */
static void record_outcomes(const dream_job *job, dreamers *all, uint32_t t)
{
    graft_rollout *rollout = job->rollout;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all->state.rows; i++) {
        uint32_t episode = all->episode[i];
        bool noop = all->choice.xfer[i] == job->model->size.xfers;
        rollout->reward[(size_t)episode * rollout->horizon + t] =
            all->outcome.reward[i] - (noop ? 0.0F : job->settings->step_cost);
        rollout->length[episode] = t + 1;
        if (noop || all->outcome.end[i] != 0) {
            rollout->bootstrap[episode] = 0.0F;
            continue;
        }
        graft_world_state_move(job->model, &all->state, kept, i);
        all->episode[kept++] = episode;
    }
    all->state.rows = kept;
}

static void dream_shard(void *context, uint32_t shard, graft_tape *tape)
{
    const dream_job *job = context;
    graft_span span = graft_shards_span(job->rollout->episodes, shard);
    dreamers all = start_dreamers(job, tape->arena, span);
    for (uint32_t t = 0; t < job->rollout->horizon && all.state.rows > 0; t++) {
        act(job, tape->arena, &all);
        record_actions(job, &all, t);
        graft_world_action action = {all.choice.xfer, all.choice.location};
        graft_world_state_step(job->model, tape->arena, &all.state, action,
                               job->settings->temperature, &all.outcome);
        record_outcomes(job, &all, t);
    }
    if (all.state.rows > 0) { /* Cut off by the horizon: what would have followed is estimated. */
        act(job, tape->arena, &all);
        for (uint32_t i = 0; i < all.state.rows; i++) {
            job->rollout->bootstrap[all.episode[i]] = all.choice.value[i];
        }
    }
}

void graft_dream(const graft_world_model *model, const graft_controller *controller,
                 graft_shards *shards, const graft_dream_starts *starts,
                 const graft_dream_settings *settings, graft_rollout *rollout)
{
    assert(starts->count > 0 && model->size.latent == controller->size.latent);
    assert(model->size.xfers == controller->size.xfers);
    assert(rollout->latent == model->size.latent && rollout->xfers == model->size.xfers);
    dream_job job = {model, controller, starts, settings, rollout};
    graft_shards_run(shards, dream_shard, &job);
}
