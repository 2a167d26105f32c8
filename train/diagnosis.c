/* diagnosis.c - see diagnosis.h. */
#include "train/diagnosis.h"

#include "train/agent_internal.h"
#include "train/blas.h"
#include "train/dream.h"

#include <inttypes.h>

enum { HELD_OUT_EPISODES = 6, DREAMS = 64 };

/* Random numbers that no phase of training uses. */
#define STREAM_DIAGNOSIS (UINT64_C(8) << 32)

typedef struct examiner {
    graft_env *env;
    graft_agent *agent;
    graft_environment *environment;
    graft_arena *arena; /* Everything that is played; freed at the end. */
    double *rule_means; /* (xfers + 1): mean reward of each rule in the training data */
} examiner;

/* ------------------------------------------------------------ world model */

static void find_rule_means(examiner *x)
{
    const graft_agent *agent = x->agent;
    double *counts = GRAFT_NEW(x->arena, double, (size_t)agent->xfers + 1);
    x->rule_means = GRAFT_NEW(x->arena, double, (size_t)agent->xfers + 1);
    for (uint32_t e = 0; e < agent->episode_count; e++) {
        const graft_episode *episode = &agent->episodes[e];
        for (uint32_t i = 0; i < episode->step_count; i++) {
            x->rule_means[episode->xfers[i]] += (double)episode->rewards[i];
            counts[episode->xfers[i]] += 1;
        }
    }
    for (uint32_t r = 0; r <= agent->xfers; r++) {
        x->rule_means[r] /= counts[r] > 0 ? counts[r] : 1;
    }
}

/* How well the mean reward of its rule predicts each reward. */
static double explain_by_rule(const examiner *x, const graft_trajectory *trajectories,
                              uint32_t count)
{
    double sum = 0;
    double squares = 0;
    double errors = 0;
    double steps = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t t = 0; t < trajectories[i].step_count; t++) {
            double reward = (double)trajectories[i].reward[t];
            double error = reward - x->rule_means[trajectories[i].xfer[t]];
            sum += reward;
            squares += reward * reward;
            errors += error * error;
            steps += 1;
        }
    }
    double mean = steps > 0 ? sum / steps : 0;
    double variance = steps > 0 ? squares / steps - mean * mean : 0;
    return variance > 1e-12 ? 1 - errors / steps / variance : 0;
}

static void examine_world(const examiner *x, const graft_trajectory *trajectories, uint32_t count,
                          graft_faithfulness *result)
{
    graft_parameters *set = &x->agent->world.parameters;
    graft_shards shards;
    uint32_t *index = GRAFT_NEW(x->arena, uint32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        index[i] = i;
    }
    const graft_world_batch batch = {.trajectories = trajectories,
                                     .index = index,
                                     .count = count,
                                     .steps_most = (uint32_t)x->agent->settings->world_window};
    graft_shards_open(&shards, x->arena, x->agent->thread_count, &set, 1);
    graft_world_metrics metrics =
        graft_world_model_evaluate(&x->agent->world, &shards, x->arena, &batch);
    graft_shards_close(&shards);
    *result = (graft_faithfulness){.step_count = metrics.loss.step_count,
                                   .live_count = metrics.live_count,
                                   .latent_gain = metrics.latent_gain,
                                   .reward_explained = metrics.reward_explained,
                                   .rule_explained = explain_by_rule(x, trajectories, count),
                                   .bit_count = metrics.bit_count,
                                   .right = metrics.right,
                                   .changed_count = metrics.changed_count,
                                   .changed_right = metrics.changed_right};
}

/* Plays held-out episodes and holds the world model against them. */
static graft_status examine_chooser(examiner *x, const graft_chooser *chooser,
                                    graft_data_agent *data, uint64_t stream,
                                    graft_episode *episodes, graft_faithfulness *result)
{
    graft_status status = GRAFT_OK;
    graft_trajectory *trajectories = GRAFT_NEW(x->arena, graft_trajectory, HELD_OUT_EPISODES);
    uint32_t kept = 0;
    for (uint32_t e = 0; e < HELD_OUT_EPISODES; e++) {
        graft_rng rng;
        graft_rng_derive(&rng, (uint64_t)x->agent->settings->environment_seed, stream + e);
        if (data != NULL) {
            graft_data_agent_draw(data, &rng);
        }
        GRAFT_CHECK(
            graft_episode_record(x->env, x->arena, x->environment, chooser, &rng, &episodes[e]));
        if (episodes[e].step_count > 0) {
            trajectories[kept++] = graft_agent_trajectory(x->env, x->arena, x->agent, &episodes[e]);
        }
    }
    if (kept > 0) {
        examine_world(x, trajectories, kept, result);
    }
done:
    return status;
}

/* ----------------------------------------------------------------- dreams */

/* The best controller's dreams from the first graph. */
static void dream_from_first(const examiner *x, graft_diagnosis *d)
{
    const graft_agent *agent = x->agent;
    const graft_agent_settings *settings = agent->settings;
    const graft_snapshot *first = &agent->episodes[0].snapshots[0];
    float *z = GRAFT_NEW(x->arena, float, agent->encoder.size.latent);
    graft_parameters *set = &x->agent->best.parameters;
    graft_shards shards;
    graft_agent_encode(agent, x->env->scratch, first, 1, z);
    const graft_dream_starts starts = {.count = 1, .z = z, .counts = first->location_counts};
    const graft_dream_settings dream = {.temperature = (float)settings->controller_temperature,
                                        .seed = STREAM_DIAGNOSIS +
                                                (uint64_t)settings->environment_seed};
    graft_rollout rollout =
        graft_rollout_new(x->arena, DREAMS, d->horizon, agent->encoder.size.latent, agent->xfers);
    graft_shards_open(&shards, x->arena, agent->thread_count, &set, 1);
    graft_dream(&agent->world, &agent->best, &shards, &starts, &dream, &rollout);
    graft_shards_close(&shards);
    graft_rollout_estimate(&rollout, settings->controller_discount, settings->controller_lambda);
    d->dreams = DREAMS;
    d->dream_return = graft_rollout_mean_return(&rollout);
    d->dream_length = graft_rollout_mean_length(&rollout);
    d->critic_explained = graft_rollout_explained(&rollout);
}

/* What the same controller got in the real environment over the same number of steps. */
static void sum_real(const graft_episode *episodes, graft_diagnosis *d)
{
    d->episodes = HELD_OUT_EPISODES;
    for (uint32_t e = 0; e < HELD_OUT_EPISODES; e++) {
        uint32_t steps = episodes[e].step_count < d->horizon ? episodes[e].step_count : d->horizon;
        d->real_length += (double)steps / HELD_OUT_EPISODES;
        for (uint32_t t = 0; t < steps; t++) {
            d->real_return += (double)episodes[e].rewards[t] / HELD_OUT_EPISODES;
        }
    }
}

graft_status graft_agent_diagnose(graft_env *env, graft_agent *agent,
                                  graft_environment *environment, graft_diagnosis *diagnosis)
{
    graft_status status = GRAFT_OK;
    const graft_agent_settings *settings = agent->settings;
    uint64_t before = environment->interactions;
    graft_data_agent data;
    examiner x = {.env = env,
                  .agent = agent,
                  .environment = environment,
                  .arena = graft_arena_new((size_t)16 << 20)};
    if (x.arena == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory for held-out episodes");
    }
    graft_blas_open();
    *diagnosis = (graft_diagnosis){.horizon = (uint32_t)settings->controller_horizon};
    graft_episode *episodes = GRAFT_NEW(x.arena, graft_episode, HELD_OUT_EPISODES);
    find_rule_means(&x);
    graft_data_agent_open(x.arena, agent->xfers, settings->data_noop, settings->data_preference,
                          &data);
    const graft_chooser random = graft_data_agent_chooser(&data);
    const graft_chooser drawn = graft_agent_chooser(x.arena, agent, &agent->best, true);
    GRAFT_CHECK(
        examine_chooser(&x, &random, &data, STREAM_DIAGNOSIS, episodes, &diagnosis->random));
    GRAFT_CHECK(examine_chooser(&x, &drawn, NULL, STREAM_DIAGNOSIS + HELD_OUT_EPISODES, episodes,
                                &diagnosis->controller));
    sum_real(episodes, diagnosis);
    dream_from_first(&x, diagnosis);
    diagnosis->interactions = environment->interactions - before;
done:
    graft_arena_free(x.arena);
    return status;
}

/* --------------------------------------------------------------- printing */

static void print_faithfulness(const char *whose, const graft_faithfulness *f, FILE *out)
{
    (void)fprintf(
        out,
        "  on %u steps by %s: latent %+.2f nats a dimension over \"nothing changes\" "
        "(%u move); reward %.0f %% explained (mean of its rule: %.0f %%); masks %.2f %% "
        "right, of %" PRIu64 " changed bits %.0f %% (persistence: none)\n",
        f->step_count, whose, f->latent_gain, f->live_count, 100 * f->reward_explained,
        100 * f->rule_explained,
        f->bit_count > 0 ? 100.0 * (double)f->right / (double)f->bit_count : 0.0, f->changed_count,
        f->changed_count > 0 ? 100.0 * (double)f->changed_right / (double)f->changed_count : 0.0);
}

void graft_diagnosis_print(const graft_diagnosis *d, FILE *out)
{
    (void)fprintf(out, "the dream beside held-out episodes (%" PRIu64 " further interactions):\n",
                  d->interactions);
    print_faithfulness("the data agent", &d->random, out);
    print_faithfulness("the policy", &d->controller, out);
    (void)fprintf(out,
                  "  return of the policy, drawn, over %u steps: dreamed %.2f %% in %.1f steps, "
                  "real %.2f %% in %.1f; the critic explains %.0f %% of dreamed returns\n",
                  d->horizon, d->dream_return, d->dream_length, d->real_return, d->real_length,
                  100 * d->critic_explained);
}

static void write_faithfulness(const char *name, const graft_faithfulness *f, FILE *out)
{
    (void)fprintf(out,
                  "\"%s\": {\"steps\": %u, \"latent_gain_nats\": %.4f, \"live_dimensions\": %u, "
                  "\"reward_explained\": %.4f, \"rule_mean_explained\": %.4f, \"mask_bits\": "
                  "%" PRIu64 ", \"mask_bits_right\": %" PRIu64 ", \"changed_bits\": %" PRIu64
                  ", \"changed_bits_right\": %" PRIu64 "}, ",
                  name, f->step_count, f->latent_gain, f->live_count, f->reward_explained,
                  f->rule_explained, f->bit_count, f->right, f->changed_count, f->changed_right);
}

void graft_diagnosis_write(const graft_diagnosis *d, FILE *out)
{
    (void)fprintf(out, "{");
    write_faithfulness("random", &d->random, out);
    write_faithfulness("policy", &d->controller, out);
    (void)fprintf(out,
                  "\"horizon\": %u, \"dreams\": %u, \"dream_return\": %.4f, \"dream_length\": "
                  "%.2f, \"episodes\": %u, \"real_return\": %.4f, \"real_length\": %.2f, "
                  "\"critic_explained\": %.4f, \"interactions\": %" PRIu64 "}\n",
                  d->horizon, d->dreams, d->dream_return, d->dream_length, d->episodes,
                  d->real_return, d->real_length, d->critic_explained, d->interactions);
}
