/* agent_training.c - the phases of training, see agent.h. Each phase is a loop over updates that
 * can stop after any of them and go on later: what an update does depends on the networks, the
 * recorded episodes and the update's number only. */
#include "train/agent_internal.h"

#include "graph/log.h"
#include "train/blas.h"
#include "train/dream.h"
#include "train/optimiser.h"

#include <string.h>

/* Streams of random numbers of the phases; an update's number is added. */
#define STREAM_ENCODER    (UINT64_C(2) << 32)
#define STREAM_WORLD      (UINT64_C(3) << 32)
#define STREAM_CONTROLLER (UINT64_C(4) << 32)

static const double gradient_norm_most = 1.0;
static const float gain_most = 2.0F; /* In percent, for the encoder's heads. */
static const uint64_t save_every_ns = UINT64_C(15) * 1000000000;

/* What every phase works with. */
typedef struct run {
    graft_env *env;
    graft_arena *arena; /* Keeps episodes and trajectories. */
    graft_agent *agent;
    graft_environment *environment;
    const char *path;
    uint64_t saved_ns;
    uint64_t phase_ns; /* Clock when the phase's time was last booked. */
} run;

static uint64_t stream_of(const run *r, uint64_t phase_stream)
{
    return phase_stream + (r->agent->progress.round << 24) + r->agent->progress.update;
}

static void derive(const run *r, uint64_t phase_stream, graft_rng *rng)
{
    graft_rng_derive(rng, (uint64_t)r->agent->settings->environment_seed,
                     stream_of(r, phase_stream));
}

/* Adds what happened since the last call to the accounts: the environment's steps, and the time to
 * that of the present phase. */
static void book(run *r)
{
    graft_agent_progress *progress = &r->agent->progress;
    uint64_t *accounts[] = {&progress->encoder_ms, &progress->world_ms, &progress->controller_ms,
                            &progress->record_ms};
    uint64_t now = graft_clock_ns();
    if (progress->phase < GRAFT_PHASE_DONE) {
        *accounts[progress->phase] += (now - r->phase_ns) / 1000000;
    }
    r->phase_ns = now;
    progress->interactions += r->environment->interactions;
    r->environment->interactions = 0;
}

static graft_status save(run *r)
{
    book(r);
    r->saved_ns = graft_clock_ns();
    return r->path != NULL ? graft_agent_save(r->env, r->agent, r->path) : GRAFT_OK;
}

/* After an update: counts it, saves now and then, stops when asked to. */
static graft_status finish_update(run *r)
{
    graft_status status = GRAFT_OK;
    r->agent->progress.update++;
    if (graft_interrupted()) {
        GRAFT_CHECK(save(r));
        return GRAFT_FAIL(r->env, GRAFT_INTERRUPTED, "interrupted; the checkpoint is kept%s%s",
                          r->path != NULL ? " in " : "", r->path != NULL ? r->path : "");
    }
    if (graft_clock_ns() - r->saved_ns > save_every_ns) {
        GRAFT_CHECK(save(r));
    }
done:
    return status;
}

static graft_status finish_phase(run *r, graft_agent_phase next)
{
    book(r);
    r->agent->progress.phase = next;
    r->agent->progress.update = 0;
    return save(r);
}

/* --------------------------------------------------------------- encoder */

/* The gain of the action that was taken is known, that of others is not. */
static const float *list_gains(graft_arena *arena, const graft_agent *agent,
                               const graft_episode *episode, uint32_t step)
{
    float *gains = GRAFT_NEW(arena, float, agent->xfers);
    for (uint32_t x = 0; x < agent->xfers; x++) {
        gains[x] = GRAFT_GAIN_UNKNOWN;
    }
    if (step < episode->step_count && episode->xfers[step] < agent->xfers) {
        float gain = episode->rewards[step]; /* Squared errors: the few huge ones would be all. */
        gains[episode->xfers[step]] = gain > gain_most    ? gain_most
                                      : gain < -gain_most ? -gain_most
                                                          : gain;
    }
    return gains;
}

static uint32_t collect_samples(graft_arena *arena, const graft_agent *agent,
                                graft_grounding_sample **samples)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e < agent->episode_count; e++) {
        count += agent->episodes[e].step_count + 1;
    }
    *samples = GRAFT_NEW(arena, graft_grounding_sample, count);
    uint32_t filled = 0;
    for (uint32_t e = 0; e < agent->episode_count; e++) {
        const graft_episode *episode = &agent->episodes[e];
        for (uint32_t i = 0; i <= episode->step_count; i++) {
            const graft_snapshot *snapshot = &episode->snapshots[i];
            (*samples)[filled++] =
                (graft_grounding_sample){.graph = snapshot->arrays,
                                         .location_counts = snapshot->location_counts,
                                         .gain = list_gains(arena, agent, episode, i),
                                         .cost = 10.0F * (snapshot->cost - 1.0F),
                                         .histogram = snapshot->histogram};
        }
    }
    return count;
}

/* Freezes the encoder: fixes the scale of its latents over everything recorded. */
static void standardise(run *r, const graft_grounding_sample *samples, uint32_t count)
{
    graft_agent *agent = r->agent;
    uint32_t latent = agent->encoder.size.latent;
    graft_mark mark = graft_arena_mark(r->env->scratch);
    float *z = GRAFT_NEW(r->env->scratch, float, (size_t)count *latent);
    for (uint32_t i = 0; i < count; i++) {
        graft_encoder_run(&agent->encoder, r->env->scratch, &samples[i].graph, 1,
                          &z[(size_t)i * latent]);
    }
    agent->standardiser = graft_standardiser_fit(r->arena, z, count, latent);
    graft_arena_release(r->env->scratch, mark);
}

static graft_status train_encoder(run *r)
{
    graft_status status = GRAFT_OK;
    graft_agent *agent = r->agent;
    const graft_agent_settings *settings = agent->settings;
    graft_mark mark = graft_arena_mark(r->env->unit);
    graft_grounding_sample *samples = NULL;
    graft_shards shards;
    graft_progress progress;
    graft_parameters *sets[] = {&agent->encoder.parameters, &agent->grounding.parameters};
    uint32_t count = collect_samples(r->env->unit, agent, &samples);
    uint32_t *index = GRAFT_NEW(r->env->unit, uint32_t, (size_t)settings->encoder_batch);
    graft_grounding_batch batch = {samples, index, (uint32_t)settings->encoder_batch};
    graft_shards_open(&shards, r->env->unit, agent->thread_count, sets, 2);
    graft_progress_start(&progress, r->env, "encoder", "updates",
                         (uint64_t)settings->encoder_updates);
    while (agent->progress.update < (uint64_t)settings->encoder_updates) {
        graft_rng rng;
        derive(r, STREAM_ENCODER, &rng);
        for (uint32_t i = 0; i < batch.count; i++) {
            index[i] = graft_rng_below(&rng, count);
        }
        char note[64];
        graft_grounding_loss loss =
            graft_grounding_differentiate(&agent->encoder, &agent->grounding, &shards, &batch);
        (void)graft_adam_step(sets, 2, settings->encoder_learning_rate, gradient_norm_most);
        GRAFT_CHECK(finish_update(r));
        (void)snprintf(note, sizeof note, "legal %.2f %%, gain %.3f", 100.0 * loss.legal_right,
                       loss.gain);
        graft_progress_update(&progress, agent->progress.update, note);
    }
    graft_progress_finish(&progress);
    standardise(r, samples, count);
    GRAFT_CHECK(finish_phase(r, GRAFT_PHASE_WORLD));
done:
    graft_shards_close(&shards);
    graft_arena_release(r->env->unit, mark);
    return status;
}

/* ----------------------------------------------------------- world model */

/* Draws windows: an episode by its length, then a place in it. */
static void draw_windows(const graft_agent *agent, graft_rng *rng, graft_world_batch *batch,
                         uint32_t *index, uint32_t *first)
{
    uint32_t total = 0;
    for (uint32_t e = 0; e < agent->episode_count; e++) {
        total += agent->episodes[e].step_count;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t step = graft_rng_below(rng, total);
        uint32_t e = 0;
        while (step >= agent->episodes[e].step_count) {
            step -= agent->episodes[e++].step_count;
        }
        /* Windows may start a little before the episode's first step, so that it is seen often. */
        index[i] = e;
        first[i] = step > batch->steps_most / 2 ? step - batch->steps_most / 2 : 0;
    }
}

static graft_status update_world(run *r, graft_shards *shards, graft_world_batch *batch,
                                 uint32_t *index, uint32_t *first, graft_progress *progress)
{
    graft_status status = GRAFT_OK;
    graft_agent *agent = r->agent;
    graft_parameters *set = &agent->world.parameters;
    while (agent->progress.update < (uint64_t)agent->settings->world_updates) {
        char note[64];
        graft_rng rng;
        derive(r, STREAM_WORLD, &rng);
        draw_windows(agent, &rng, batch, index, first);
        graft_world_loss loss = graft_world_model_differentiate(&agent->world, shards, batch, NULL);
        (void)graft_adam_step(&set, 1, agent->settings->world_learning_rate, gradient_norm_most);
        GRAFT_CHECK(finish_update(r));
        (void)snprintf(note, sizeof note, "nll %.3f reward %.3f", loss.latent, loss.reward);
        graft_progress_update(progress, agent->progress.update, note);
    }
done:
    return status;
}

static graft_status train_world(run *r)
{
    graft_status status = GRAFT_OK;
    graft_agent *agent = r->agent;
    const graft_agent_settings *settings = agent->settings;
    graft_mark mark = graft_arena_mark(r->env->unit);
    uint32_t batch_size = (uint32_t)settings->world_batch;
    uint32_t *index = GRAFT_NEW(r->env->unit, uint32_t, batch_size);
    uint32_t *first = GRAFT_NEW(r->env->unit, uint32_t, batch_size);
    graft_world_batch batch = {.trajectories = agent->trajectories,
                               .index = index,
                               .first = first,
                               .count = batch_size,
                               .steps_most = (uint32_t)settings->world_window};
    graft_parameters *set = &agent->world.parameters;
    graft_shards shards;
    graft_progress progress;
    graft_shards_open(&shards, r->env->unit, agent->thread_count, &set, 1);
    graft_agent_trace(r->env, r->arena, agent);
    if (agent->progress.round == 0 && agent->progress.update == 0) {
        graft_world_model_calibrate(&agent->world, agent->trajectories, agent->episode_count);
    } else if (agent->progress.update == 0) {
        graft_world_model_calibrate_rewards(&agent->world, agent->trajectories,
                                            agent->episode_count);
    }
    graft_progress_start(&progress, r->env, "world model", "updates",
                         (uint64_t)settings->world_updates);
    GRAFT_CHECK(update_world(r, &shards, &batch, index, first, &progress));
    graft_progress_finish(&progress);
    GRAFT_CHECK(finish_phase(r, GRAFT_PHASE_CONTROLLER));
done:
    graft_shards_close(&shards);
    graft_arena_release(r->env->unit, mark);
    return status;
}

/* ------------------------------------------------------------ controller */

/* Starts of dreams are recorded states: a quarter of them the first graph, where the policy that
 * ships begins; the states that the controller came to count thrice those of the data agent. */
enum { FIRST_GRAPH_SHARE = 4, CONTROLLER_WEIGHT = 3 };

/* Copies one recorded state. */
static void put_start(float *z, uint16_t *counts, const graft_trajectory *trajectory, size_t step,
                      size_t latent, size_t xfers)
{
    memcpy(z, &trajectory->z[step * latent], latent * sizeof *z);
    memcpy(counts, &trajectory->location_counts[step * xfers], xfers * sizeof *counts);
}

/* Everything that the dreams know of the environment: recorded latents and masks. */
static graft_dream_starts collect_starts(graft_arena *arena, const graft_agent *agent)
{
    size_t latent = agent->encoder.size.latent;
    size_t xfers = agent->xfers;
    uint32_t random = (uint32_t)agent->settings->data_random_episodes;
    size_t count = 0;
    for (uint32_t e = 0; e < agent->episode_count; e++) {
        count += (size_t)agent->trajectories[e].step_count * (e < random ? 1 : CONTROLLER_WEIGHT);
    }
    size_t all = count + count / (FIRST_GRAPH_SHARE - 1) + 1;
    float *z = GRAFT_NEW(arena, float, all *latent);
    uint16_t *counts = GRAFT_NEW(arena, uint16_t, all * xfers);
    size_t filled = 0;
    for (uint32_t e = 0; e < agent->episode_count; e++) {
        const graft_trajectory *trajectory = &agent->trajectories[e];
        size_t times = e < random ? 1 : CONTROLLER_WEIGHT;
        for (size_t k = 0; k < times * trajectory->step_count; k++, filled++) {
            put_start(&z[filled * latent], &counts[filled * xfers], trajectory, k / times, latent,
                      xfers);
        }
    }
    for (; filled < all; filled++) {
        put_start(&z[filled * latent], &counts[filled * xfers], &agent->trajectories[0], 0, latent,
                  xfers);
    }
    return (graft_dream_starts){.count = (uint32_t)all, .z = z, .counts = counts};
}

/* Plays the most likely actions in the real environment and keeps the best controller so far. */
static graft_status try_controller(run *r)
{
    graft_status status = GRAFT_OK;
    graft_agent *agent = r->agent;
    graft_mark mark = graft_arena_mark(r->env->unit);
    graft_chooser chooser = graft_agent_chooser(r->env->unit, agent, &agent->controller, false);
    graft_episode episode;
    graft_rng rng;
    graft_rng_seed(&rng, 0); /* Not used: nothing is drawn. */
    GRAFT_CHECK(
        graft_episode_record(r->env, r->env->unit, r->environment, &chooser, &rng, &episode));
    agent->progress.trial_count++;
    uint64_t cost = (uint64_t)(episode.cost_ns * 1000.0);
    if (cost < agent->progress.best_cost) {
        agent->progress.best_cost = cost;
        memcpy(agent->best.parameters.value, agent->controller.parameters.value,
               agent->controller.parameters.size * sizeof(float));
        *agent->best.value_scale = *agent->controller.value_scale;
    }
    graft_log(r->env, 2, "trial: %u steps, cost %.1f %%", episode.step_count,
              100.0 * episode.cost_ns / r->environment->first_ns);
done:
    graft_arena_release(r->env->unit, mark);
    return status;
}

/* One dream and what PPO learns from it. The environment is sealed meanwhile: touching it aborts.
 */
static void dream_and_update(run *r, graft_shards *shards, const graft_dream_starts *starts,
                             graft_rollout *rollout)
{
    graft_agent *agent = r->agent;
    const graft_agent_settings *settings = agent->settings;
    graft_rng rng;
    derive(r, STREAM_CONTROLLER, &rng);
    graft_dream_settings dream = {.temperature = (float)settings->controller_temperature,
                                  .step_cost = (float)settings->controller_step_cost,
                                  .seed = graft_rng_next(&rng)};
    graft_ppo_settings ppo = graft_ppo_defaults();
    ppo.learning_rate = settings->controller_learning_rate;
    ppo.discount = settings->controller_discount;
    ppo.lambda = settings->controller_lambda;
    ppo.entropy_weight = (float)settings->controller_entropy;
    r->environment->sealed = true;
    graft_dream(&agent->world, &agent->controller, shards, starts, &dream, rollout);
    (void)graft_ppo_update(&agent->controller, shards, r->env->scratch, rollout, &ppo, &rng);
    r->environment->sealed = false;
    agent->dream_return = graft_rollout_mean_return(rollout);
    for (uint32_t e = 0; e < rollout->episodes; e++) {
        agent->progress.dream_steps += rollout->length[e];
    }
}

/* Mean return of the last dreams, their rewrites' costs taken off, and what the best trial saved.
 */
static void describe_progress(const run *r, char *note, size_t bytes)
{
    const graft_agent *agent = r->agent;
    if (agent->progress.trial_count == 0) {
        (void)snprintf(note, bytes, "dreamed %.2f %%, no trial yet", agent->dream_return);
        return;
    }
    (void)snprintf(note, bytes, "dreamed %.2f %%, best trial %.2f %%", agent->dream_return,
                   100.0 - (double)agent->progress.best_cost / 10.0 / r->environment->first_ns);
}

static graft_status train_controller(run *r)
{
    graft_status status = GRAFT_OK;
    graft_agent *agent = r->agent;
    const graft_agent_settings *settings = agent->settings;
    graft_mark mark = graft_arena_mark(r->env->unit);
    graft_agent_trace(r->env, r->arena, agent);
    graft_dream_starts starts = collect_starts(r->env->unit, agent);
    graft_rollout rollout = graft_rollout_new(r->env->unit, (uint32_t)settings->controller_dreams,
                                              (uint32_t)settings->controller_horizon,
                                              agent->encoder.size.latent, agent->xfers);
    graft_parameters *set = &agent->controller.parameters;
    graft_shards shards;
    graft_progress progress;
    graft_shards_open(&shards, r->env->unit, agent->thread_count, &set, 1);
    graft_progress_start(&progress, r->env, "controller", "updates",
                         (uint64_t)settings->controller_updates);
    while (agent->progress.update < (uint64_t)settings->controller_updates) {
        char note[64];
        dream_and_update(r, &shards, &starts, &rollout);
        if ((agent->progress.update + 1) % (uint64_t)settings->controller_evaluate_every == 0) {
            GRAFT_CHECK(try_controller(r));
        }
        GRAFT_CHECK(finish_update(r));
        describe_progress(r, note, sizeof note);
        graft_progress_update(&progress, agent->progress.update, note);
    }
    graft_progress_finish(&progress);
    GRAFT_CHECK(finish_phase(r, GRAFT_PHASE_RECORD));
done:
    graft_shards_close(&shards);
    graft_arena_release(r->env->unit, mark);
    return status;
}

/* ------------------------------------------------------------------- all */

static graft_status record_round(run *r)
{
    graft_status status = GRAFT_OK;
    graft_agent *agent = r->agent;
    if (agent->progress.round + 1 >= (uint64_t)agent->settings->data_rounds) {
        return finish_phase(r, GRAFT_PHASE_DONE);
    }
    GRAFT_CHECK(graft_agent_record_policy(r->env, r->arena, agent, r->environment));
    book(r);
    agent->progress.round++;
    agent->progress.phase = GRAFT_PHASE_WORLD;
    agent->progress.update = 0;
    GRAFT_CHECK(save(r));
done:
    return status;
}

static graft_status run_phase(run *r)
{
    switch ((graft_agent_phase)r->agent->progress.phase) {
    case GRAFT_PHASE_ENCODER:
        return train_encoder(r);
    case GRAFT_PHASE_WORLD:
        return train_world(r);
    case GRAFT_PHASE_CONTROLLER:
        return train_controller(r);
    case GRAFT_PHASE_RECORD:
        return record_round(r);
    case GRAFT_PHASE_DONE:
        break;
    }
    return GRAFT_OK;
}

graft_status graft_agent_train(graft_env *env, graft_arena *arena, graft_agent *agent,
                               graft_environment *environment, const char *path)
{
    graft_status status = GRAFT_OK;
    run r = {.env = env, .arena = arena, .agent = agent, .environment = environment, .path = path};
    bool resumed = false;
    graft_blas_open();
    if (path != NULL) {
        graft_agent_load(env, agent, path, &resumed);
    }
    r.saved_ns = graft_clock_ns();
    r.phase_ns = r.saved_ns;
    environment->interactions = 0;
    GRAFT_CHECK(graft_agent_record_random(env, arena, agent, environment));
    if (resumed) {
        GRAFT_CHECK(graft_agent_replay(env, arena, agent, environment));
        environment->interactions = 0; /* They were counted when they were first played. */
        graft_log(env, 1, "%s %s",
                  agent->progress.phase == GRAFT_PHASE_DONE ? "trained already:" : "going on from",
                  path);
    }
    while (agent->progress.phase != GRAFT_PHASE_DONE) {
        GRAFT_CHECK(run_phase(&r));
    }
done:
    return status;
}
