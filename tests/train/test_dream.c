/* The agent as a whole on the counter environment (counter.h): a world model learnt from random
 * episodes, a controller learnt in its dreams alone, judged in the true environment. */
#include "tests/support/check.h"
#include "tests/train/counter.h"
#include "train/blas.h"
#include "train/dream.h"
#include "train/optimiser.h"
#include "train/ppo.h"
#include "train/world_training.h"

enum { EPISODES = 400, HELD_OUT = 50, WORLD_UPDATES = 600, WORLD_BATCH = 24, JUDGED = 200 };
enum { DREAM_UPDATES = 120, DREAMS = 96 };

typedef struct {
    graft_trajectory trajectories[EPISODES + HELD_OUT];
    float *starts_z;
    uint16_t *starts_counts;
    uint32_t start_count;
    graft_world_model model;
    graft_controller controller;
    graft_shards world_shards;
    graft_shards controller_shards;
} agent;

static void record_data(agent *a, graft_env *env)
{
    graft_rng rng;
    graft_rng_seed(&rng, 11);
    a->starts_z = GRAFT_NEW(env->life, float, EPISODES *COUNTER_LATENT);
    a->starts_counts = GRAFT_NEW(env->life, uint16_t, EPISODES * COUNTER_XFERS);
    for (uint32_t i = 0; i < EPISODES + HELD_OUT; i++) {
        a->trajectories[i] = counter_record(env->life, &rng);
        if (i < EPISODES) { /* Dreams start where episodes started. */
            memcpy(a->starts_z + (size_t)i * COUNTER_LATENT, a->trajectories[i].z,
                   COUNTER_LATENT * sizeof(float));
            memcpy(a->starts_counts + (size_t)i * COUNTER_XFERS, a->trajectories[i].location_counts,
                   COUNTER_XFERS * sizeof(uint16_t));
        }
    }
    a->start_count = EPISODES;
}

static agent *open_agent(graft_env *env, uint32_t thread_count)
{
    agent *a = GRAFT_NEW(env->life, agent, 1);
    record_data(a, env);
    graft_world_size world = graft_world_defaults((graft_world_size){.latent = COUNTER_LATENT,
                                                                     .xfers = COUNTER_XFERS,
                                                                     .locations = 8,
                                                                     .hidden = 48,
                                                                     .features = 64,
                                                                     .components = 4,
                                                                     .xfer_embedding = 8,
                                                                     .location_embedding = 4});
    graft_world_model_init(&a->model, env->life, &world, 1);
    graft_world_model_calibrate(&a->model, a->trajectories, EPISODES);
    graft_controller_size size =
        graft_controller_defaults((graft_controller_size){.latent = COUNTER_LATENT,
                                                          .xfers = COUNTER_XFERS,
                                                          .locations = 8,
                                                          .hidden = 32,
                                                          .xfer_embedding = 8});
    graft_controller_init(&a->controller, env->life, &size, 2);
    graft_parameters *world_set = &a->model.parameters;
    graft_parameters *controller_set = &a->controller.parameters;
    graft_shards_open(&a->world_shards, env->life, thread_count, &world_set, 1);
    graft_shards_open(&a->controller_shards, env->life, thread_count, &controller_set, 1);
    return a;
}

static void close_agent(agent *a)
{
    graft_shards_close(&a->world_shards);
    graft_shards_close(&a->controller_shards);
}

static void train_world(agent *a, uint32_t updates)
{
    graft_rng rng;
    graft_rng_seed(&rng, 21);
    for (uint32_t i = 0; i < updates; i++) {
        uint32_t index[WORLD_BATCH];
        for (uint32_t k = 0; k < WORLD_BATCH; k++) {
            index[k] = graft_rng_below(&rng, EPISODES);
        }
        graft_world_batch batch = {a->trajectories, index, NULL, WORLD_BATCH, 0};
        (void)graft_world_model_differentiate(&a->model, &a->world_shards, &batch, NULL);
        double rate = 3e-3 * (1.0 - (double)i / updates) + 1e-4;
        assert_true(graft_adam_step(a->world_shards.sets, 1, rate, 1.0));
    }
}

static graft_world_metrics evaluate_world(agent *a, graft_env *env)
{
    uint32_t index[HELD_OUT];
    for (uint32_t k = 0; k < HELD_OUT; k++) {
        index[k] = EPISODES + k;
    }
    graft_world_batch batch = {a->trajectories, index, NULL, HELD_OUT, 0};
    return graft_world_model_evaluate(&a->model, &a->world_shards, env->life, &batch);
}

static void train_controller(agent *a, graft_env *env, uint32_t updates)
{
    graft_rng rng;
    graft_rng_seed(&rng, 31);
    graft_rollout rollout =
        graft_rollout_new(env->life, DREAMS, COUNTER_STEPS_MOST, COUNTER_LATENT, COUNTER_XFERS);
    graft_dream_starts starts = {a->start_count, a->starts_z, a->starts_counts};
    graft_ppo_settings settings = graft_ppo_defaults();
    for (uint32_t i = 0; i < updates; i++) {
        graft_dream_settings dream = {.temperature = 1.0F, .seed = 1000 + i};
        double left = 1.0 - (double)i / updates;
        settings.learning_rate = 3e-3 * left + 1e-4;
        settings.entropy_weight = 0.03F * (float)left;
        graft_dream(&a->model, &a->controller, &a->controller_shards, &starts, &dream, &rollout);
        (void)graft_ppo_update(&a->controller, &a->controller_shards, env->scratch, &rollout,
                               &settings, &rng);
    }
}

/* Mean return in the true environment over the mean of the best returns. */
static double judge(const agent *a, graft_env *env)
{
    graft_rng rng;
    graft_rng_seed(&rng, 41);
    double total = 0.0;
    double best = 0.0;
    for (uint32_t episode = 0; episode < JUDGED; episode++) {
        counter_state state = counter_start(&rng);
        best += (double)counter_best(&state);
        for (uint32_t step = 0; step < COUNTER_STEPS_MOST && !counter_is_over(&state); step++) {
            float z[COUNTER_LATENT];
            uint16_t action[2];
            float numbers[2];
            counter_encode(&state, z);
            graft_controller_states states = {1, z, state.left};
            graft_controller_choice choice = {&action[0], &action[1], &numbers[0], &numbers[1]};
            graft_controller_act(&a->controller, env->scratch, &states, NULL, &choice);
            if (action[0] == COUNTER_XFERS) {
                break;
            }
            assert_true(action[1] < state.left[action[0]]);
            total += (double)counter_apply(&state, action[0], action[1]);
        }
    }
    return total / best;
}

/* --------------------------------------------------------------------------------------- dreams */

static graft_rollout dream_some(agent *a, graft_env *env, float temperature, uint32_t count,
                                uint32_t horizon)
{
    graft_rollout rollout =
        graft_rollout_new(env->life, count, horizon, COUNTER_LATENT, COUNTER_XFERS);
    graft_dream_starts starts = {a->start_count, a->starts_z, a->starts_counts};
    graft_dream_settings settings = {.temperature = temperature, .seed = 5};
    graft_dream(&a->model, &a->controller, &a->controller_shards, &starts, &settings, &rollout);
    return rollout;
}

static graft_rollout dream_once(agent *a, graft_env *env, float temperature)
{
    return dream_some(a, env, temperature, DREAMS, COUNTER_STEPS_MOST);
}

static bool is_start(const float *z, const float *starts, size_t start)
{
    uint32_t equal = 0;
    for (uint32_t d = 0; d < COUNTER_LATENT; d++) {
        equal += z[d] == starts[start * COUNTER_LATENT + d] ? 1U : 0U;
    }
    return equal == COUNTER_LATENT;
}

/* Starts are recorded states, actions are legal under the masks beside them, dreams end after NO-OP
 * and have a value beyond their end only when the horizon cut them off. */
static void test_dreams_keep_the_rules(void **state)
{
    graft_env *env = *state;
    agent *a = open_agent(env, 2);
    train_world(a, 30);
    graft_rollout r = dream_once(a, env, 1.0F);
    uint32_t cut_off = 0;
    for (uint32_t e = 0; e < DREAMS; e++) {
        const size_t first = (size_t)e * COUNTER_STEPS_MOST;
        uint32_t start = 0;
        while (start < a->start_count &&
               !is_start(r.z + first * COUNTER_LATENT, a->starts_z, start)) {
            start++;
        }
        assert_true(start < a->start_count);
        assert_in_range(r.length[e], 1, COUNTER_STEPS_MOST);
        for (uint32_t t = 0; t < r.length[e]; t++) {
            uint16_t xfer = r.xfer[first + t];
            bool noop = xfer == COUNTER_XFERS;
            assert_true(!noop || t + 1 == r.length[e]);
            assert_true(noop ||
                        r.location[first + t] < r.counts[(first + t) * COUNTER_XFERS + xfer]);
        }
        bool last_noop = r.xfer[first + r.length[e] - 1] == COUNTER_XFERS;
        assert_true(!last_noop || r.bootstrap[e] == 0.0F);
        assert_true(r.length[e] == COUNTER_STEPS_MOST || r.bootstrap[e] == 0.0F);
        cut_off += r.bootstrap[e] != 0.0F ? 1U : 0U;
    }
    assert_true(cut_off < DREAMS);
    graft_rollout brief = dream_some(a, env, 1.0F, DREAMS, 1);
    cut_off = 0;
    for (uint32_t e = 0; e < DREAMS; e++) {
        cut_off += brief.bootstrap[e] != 0.0F ? 1U : 0U;
    }
    assert_true(cut_off > DREAMS / 3);
    close_agent(a);
}

/* A dream does not depend on the others: the last of a few is the same as among many. Latents may
 * differ by rounding, as the products then have other sizes. */
static void test_dreams_do_not_mix(void **state)
{
    graft_env *env = *state;
    agent *a = open_agent(env, 1);
    train_world(a, 30);
    graft_rollout many = dream_once(a, env, 1.0F);
    for (uint32_t e = 0; e < DREAMS; e += 7) {
        graft_rollout few = dream_some(a, env, 1.0F, e + 1, COUNTER_STEPS_MOST);
        size_t first = (size_t)e * COUNTER_STEPS_MOST;
        assert_int_equal(few.length[e], many.length[e]);
        assert_memory_equal(few.xfer + first, many.xfer + first, few.length[e] * sizeof(uint16_t));
        assert_memory_equal(few.counts + first * COUNTER_XFERS, many.counts + first * COUNTER_XFERS,
                            (size_t)few.length[e] * COUNTER_XFERS * sizeof(uint16_t));
        for (size_t k = 0; k < (size_t)few.length[e] * COUNTER_LATENT; k++) {
            float other = many.z[first * COUNTER_LATENT + k];
            assert_true(fabsf(few.z[first * COUNTER_LATENT + k] - other) < 1e-3F);
        }
    }
    close_agent(a);
}

static void assert_same_dreams(const graft_rollout *a, const graft_rollout *b)
{
    size_t rows = (size_t)a->episodes * a->horizon;
    assert_memory_equal(a->length, b->length, a->episodes * sizeof(uint32_t));
    assert_memory_equal(a->bootstrap, b->bootstrap, a->episodes * sizeof(float));
    assert_memory_equal(a->z, b->z, rows * a->latent * sizeof(float));
    assert_memory_equal(a->counts, b->counts, rows * a->xfers * sizeof(uint16_t));
    assert_memory_equal(a->xfer, b->xfer, rows * sizeof(uint16_t));
    assert_memory_equal(a->location, b->location, rows * sizeof(uint16_t));
    assert_memory_equal(a->log_p, b->log_p, rows * sizeof(float));
    assert_memory_equal(a->reward, b->reward, rows * sizeof(float));
}

/* World model, dreams and controller, trained a little with one thread and with several. */
static void test_threads_change_nothing(void **state)
{
    graft_env *env = *state;
    agent *one = open_agent(env, 1);
    agent *many = open_agent(env, 3);
    agent *both[2] = {one, many};
    for (uint32_t k = 0; k < 2; k++) {
        train_world(both[k], 10);
        train_controller(both[k], env, 3);
    }
    assert_memory_equal(one->model.parameters.value, many->model.parameters.value,
                        one->model.parameters.size * sizeof(float));
    assert_memory_equal(one->controller.parameters.value, many->controller.parameters.value,
                        one->controller.parameters.size * sizeof(float));
    graft_rollout a = dream_once(one, env, 1.0F);
    graft_rollout b = dream_once(many, env, 1.0F);
    assert_same_dreams(&a, &b);
    close_agent(one);
    close_agent(many);
}

/* What the temperature is for: the same start and the same numbers, other dreams. */
static void test_temperature_matters(void **state)
{
    graft_env *env = *state;
    agent *a = open_agent(env, 1);
    graft_rollout cold = dream_once(a, env, 0.25F);
    graft_rollout hot = dream_once(a, env, 2.0F);
    assert_memory_equal(cold.z, hot.z, COUNTER_LATENT * sizeof(float));
    assert_memory_not_equal(cold.z, hot.z,
                            (size_t)DREAMS * COUNTER_STEPS_MOST * COUNTER_LATENT * sizeof(float));
    close_agent(a);
}

/* -------------------------------------------------------------------------------------- learning
 */

/* Other seeds reach 0.99 to 1.00 of the best return, and before training 0.44 to 0.52. */
static void test_agent_learns_in_dreams(void **state)
{
    graft_env *env = *state;
    agent *a = open_agent(env, 2);
    double before = judge(a, env);
    train_world(a, WORLD_UPDATES);
    graft_world_metrics metrics = evaluate_world(a, env);
    assert_true(metrics.latent_gain > 2.0);
    assert_true(metrics.reward_explained > 0.9);
    assert_true(metrics.end_right > 0.95);
    assert_true((double)metrics.changed_right > 0.9 * (double)metrics.changed_count);
    assert_true(metrics.count_error < 0.25);
    train_controller(a, env, DREAM_UPDATES);
    double after = judge(a, env);
    assert_true(before < 0.7);
    assert_true(after > 0.9);
    close_agent(a);
}

int main(void)
{
    graft_blas_open();
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_dreams_keep_the_rules),  CHECK_TEST(test_dreams_do_not_mix),
        CHECK_TEST(test_threads_change_nothing), CHECK_TEST(test_temperature_matters),
        CHECK_TEST(test_agent_learns_in_dreams),
    };
    return cmocka_run_group_tests_name("dream", tests, NULL, NULL);
}
