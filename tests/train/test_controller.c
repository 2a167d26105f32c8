/* The controller and PPO: masks in acting and in learning, gradients, early stopping, and that it
 * finds the better arm of a bandit. */
#include "tests/support/check.h"
#include "tests/support/gradient.h"
#include "train/blas.h"
#include "train/numeric.h"
#include "train/ppo.h"

#include <math.h>
#include <string.h>

enum { LATENT = 4, XFERS = 5, LOCATIONS = 6, EPISODES = 9, HORIZON = 7, ROWS = EPISODES * HORIZON };

typedef struct {
    graft_controller controller;
    graft_parameters *sets[1];
    graft_shards shards;
    graft_rollout rollout;
    graft_ppo_settings settings;
    uint32_t row[ROWS];
} fixture;

/* A rollout of random states, in which the controller itself acted. */
static void fill_rollout(fixture *f, graft_env *env, uint64_t seed)
{
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    f->rollout = graft_rollout_new(env->life, EPISODES, HORIZON, LATENT, XFERS);
    for (uint32_t e = 0; e < EPISODES; e++) {
        f->rollout.length[e] = HORIZON;
    }
    graft_rng *rngs = GRAFT_NEW(env->life, graft_rng, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        f->row[i] = i;
        graft_rng_derive(&rngs[i], seed, i);
        for (uint32_t x = 0; x < XFERS; x++) {
            bool legal = graft_rng_below(&rng, 3) > 0;
            f->rollout.counts[i * XFERS + x] =
                (uint16_t)(legal ? 1 + graft_rng_below(&rng, LOCATIONS + 3) : 0);
        }
        for (uint32_t d = 0; d < LATENT; d++) {
            f->rollout.z[i * LATENT + d] = (float)graft_rng_normal(&rng);
        }
        f->rollout.reward[i] = (float)graft_rng_normal(&rng);
    }
    graft_controller_states states = {ROWS, f->rollout.z, f->rollout.counts};
    graft_controller_choice choice = {f->rollout.xfer, f->rollout.location, f->rollout.log_p,
                                      f->rollout.value};
    graft_controller_act(&f->controller, env->scratch, &states, rngs, &choice);
    graft_rollout_estimate(&f->rollout, 0.99, 0.95);
}

static fixture *open_fixture(graft_env *env, uint32_t thread_count, bool counts_input)
{
    fixture *f = GRAFT_NEW(env->life, fixture, 1);
    graft_controller_size size =
        graft_controller_defaults((graft_controller_size){.latent = LATENT,
                                                          .xfers = XFERS,
                                                          .locations = LOCATIONS,
                                                          .hidden = 12,
                                                          .xfer_embedding = 3,
                                                          .counts_input = counts_input});
    graft_controller_init(&f->controller, env->life, &size, 3);
    /* Heads start small; larger ones make the tests of probabilities mean more. */
    const graft_layer heads[2] = {f->controller.xfer_head, f->controller.location_head};
    for (uint32_t k = 0; k < 2; k++) {
        const graft_parameter *item = &f->controller.parameters.items[heads[k].weight];
        for (size_t i = 0; i < (size_t)item->rows * item->cols; i++) {
            f->controller.parameters.value[item->offset + i] *= 20.0F;
        }
    }
    *f->controller.value_scale = 2.0F;
    f->sets[0] = &f->controller.parameters;
    graft_shards_open(&f->shards, env->life, thread_count, f->sets, 1);
    f->settings = graft_ppo_defaults();
    fill_rollout(f, env, 9);
    return f;
}

/* ---------------------------------------------------------------------------------------- acting
 */

static void test_only_legal_actions(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    bool chosen[XFERS + 1] = {false};
    for (uint32_t seed = 0; seed < 20; seed++) {
        fill_rollout(f, env, seed);
        for (uint32_t i = 0; i < ROWS; i++) {
            uint16_t xfer = f->rollout.xfer[i];
            chosen[xfer] = true;
            uint32_t count = xfer == XFERS ? 1 : f->rollout.counts[i * XFERS + xfer];
            assert_true(count > 0);
            assert_true(f->rollout.location[i] < (count < LOCATIONS ? count : LOCATIONS));
            assert_true(f->rollout.log_p[i] <= 0.0F && isfinite(f->rollout.log_p[i]));
        }
    }
    for (uint32_t x = 0; x <= XFERS; x++) {
        assert_true(chosen[x]);
    }
    graft_shards_close(&f->shards);
}

/* Actions come up as often as their probability says. */
static void test_frequencies(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    enum { DRAWS = 20000, CELLS = (XFERS + 1) * LOCATIONS };
    static float z[DRAWS * LATENT];
    static uint16_t counts[DRAWS * XFERS];
    static uint16_t xfer[DRAWS];
    static uint16_t location[DRAWS];
    static float log_p[DRAWS];
    static float value[DRAWS];
    graft_rng *rngs = GRAFT_NEW(env->life, graft_rng, DRAWS);
    for (uint32_t i = 0; i < DRAWS; i++) {
        memcpy(z + i * LATENT, (float[]){0.5F, -1, 0.2F, 1}, LATENT * sizeof(float));
        memcpy(counts + i * XFERS, (uint16_t[]){2, 0, 1, 9, 0}, XFERS * sizeof(uint16_t));
        graft_rng_derive(&rngs[i], 1, i);
    }
    graft_controller_states states = {DRAWS, z, counts};
    graft_controller_act(&f->controller, env->scratch, &states, rngs,
                         &(graft_controller_choice){xfer, location, log_p, value});
    double seen[CELLS] = {0};
    double said[CELLS] = {0};
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint32_t cell = (uint32_t)xfer[i] * LOCATIONS + location[i];
        seen[cell] += 1.0 / DRAWS;
        said[cell] = exp((double)log_p[i]);
    }
    double total = 0.0;
    for (uint32_t cell = 0; cell < CELLS; cell++) {
        assert_true(fabs(seen[cell] - said[cell]) < 0.015);
        total += said[cell];
    }
    assert_true(fabs(total - 1.0) < 1e-5); /* 2 + 1 + 6 locations and NO-OP, all seen */
    graft_shards_close(&f->shards);
}

/* Without random numbers: the most likely action, the lowest number of equals. */
static void test_greedy(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    memset(f->controller.parameters.value, 0, f->controller.parameters.size * sizeof(float));
    const float z[LATENT] = {1, 2, 3, 4};
    const uint16_t counts[XFERS] = {0, 0, 3, 9, 1};
    float *bias = graft_parameters_value(&f->controller.parameters, f->controller.xfer_head.bias);
    float *where =
        graft_parameters_value(&f->controller.parameters, f->controller.location_head.bias);
    static const struct {
        float xfer[XFERS + 1];
        float location[LOCATIONS];
        uint16_t want[2];
    } rows[] = {
        {{0},                {0},                      {2, 0}}, /* All equal. */
        {{9, 9, 0, 1, 0, 0}, {0, 0, 0, 0, 0, 1},       {3, 5}}, /* 0 and 1 are not legal. */
        {{0, 0, 2, 1, 0, 0}, {0, 0.5F, 0.5F, 7, 0, 0}, {2, 1}}, /* 3 locations only. */
        {{0, 0, 2, 1, 0, 3}, {0, 0, 0, 0, 7, 0},       {5, 0}}, /* NO-OP. */
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        uint16_t action[2];
        float numbers[2];
        memcpy(bias, rows[r].xfer, sizeof rows[r].xfer);
        memcpy(where, rows[r].location, sizeof rows[r].location);
        graft_controller_act(
            &f->controller, env->scratch, &(graft_controller_states){1, z, counts}, NULL,
            &(graft_controller_choice){&action[0], &action[1], &numbers[0], &numbers[1]});
        assert_int_equal(action[0], rows[r].want[0]);
        assert_int_equal(action[1], rows[r].want[1]);
    }
    graft_shards_close(&f->shards);
}

/* -------------------------------------------------------------------------------------- learning
 */

static double lose_all(void *context)
{
    fixture *f = context;
    graft_ppo_report report = graft_ppo_differentiate(&f->controller, &f->shards, &f->rollout,
                                                      f->row, ROWS, &f->settings);
    return report.policy_loss + (double)f->settings.value_weight * report.value_loss -
           (double)f->settings.entropy_weight * report.entropy;
}

static void test_gradients(void **state)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        fixture *f = open_fixture(*state, 1, kind == 1);
        f->settings.entropy_weight = 0.5F;
        for (uint32_t i = 0; i < ROWS; i++) { /* Off the kinks at ratio 1 and 1 +- clip. */
            f->rollout.log_p[i] += i % 3 == 0 ? 0.08F : i % 3 == 1 ? -0.1F : 0.5F;
        }
        (void)lose_all(f);
        assert_true(gradient_worst_slope(&f->controller.parameters, lose_all, f) < 1.0);
        graft_shards_close(&f->shards);
    }
}

/* Replayed under the stored masks, the untouched policy has ratio 1 everywhere. */
static void test_update_sees_the_masks_of_acting(void **state)
{
    fixture *f = open_fixture(*state, 1, false);
    graft_ppo_report report = graft_ppo_differentiate(&f->controller, &f->shards, &f->rollout,
                                                      f->row, ROWS, &f->settings);
    assert_true(fabs(report.kl) < 1e-9 && report.clipped == 0.0 && !report.stopped);
    double mean = 0.0;
    for (uint32_t i = 0; i < ROWS; i++) {
        mean += (double)f->rollout.advantage[i] / ROWS;
    }
    assert_true(fabs(report.policy_loss + mean) < 1e-5);
    double squares = 0.0; /* Half the squared error, in units of value_scale = 2. */
    for (uint32_t i = 0; i < ROWS; i++) {
        double error = ((double)f->rollout.gain[i] - (double)f->rollout.value[i]) / 2.0;
        squares += 0.5 * error * error / ROWS;
    }
    assert_true(fabs(report.value_loss - squares) < 1e-5);
    /* A mask that says otherwise changes the probabilities. */
    for (uint32_t i = 0; i < ROWS * XFERS; i++) {
        f->rollout.counts[i]++;
    }
    report = graft_ppo_differentiate(&f->controller, &f->shards, &f->rollout, f->row, ROWS,
                                     &f->settings);
    assert_true(report.kl > 1e-3);
    graft_shards_close(&f->shards);
}

static void test_stops_when_far_off(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    f->settings.learning_rate = 0.05;
    f->settings.epochs = 50;
    f->settings.minibatch = 32;
    graft_ppo_report report =
        graft_ppo_update(&f->controller, &f->shards, env->scratch, &f->rollout, &f->settings, &rng);
    assert_true(report.stopped && report.minibatches >= 1 && report.minibatches < 20);
    assert_int_equal(f->controller.parameters.step, report.minibatches);
    graft_shards_close(&f->shards);
}

static void test_empty_rollout(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    memset(f->rollout.length, 0, EPISODES * sizeof(uint32_t));
    graft_ppo_report report =
        graft_ppo_update(&f->controller, &f->shards, env->scratch, &f->rollout, &f->settings, &rng);
    assert_int_equal(report.minibatches, 0);
    assert_int_equal(f->controller.parameters.step, 0);
    graft_shards_close(&f->shards);
}

/* Recorded losses: they move when seeds, initial values or architecture do, which is to be noticed.
 * One part in 10,000 is left to the order in which a processor's products add up. */
static void check_golden(const char *what, double is, double want)
{
    if (!(fabs(is - want) <= 1e-4 * (0.01 + fabs(want)))) {
        fail_msg("%s is %a (%g), not %a", what, is, is, want);
    }
}

static void test_golden(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    f->settings.epochs = 2;
    graft_ppo_report report =
        graft_ppo_update(&f->controller, &f->shards, env->scratch, &f->rollout, &f->settings, &rng);
    check_golden("policy loss", report.policy_loss, -0x1.3fb06a8p-10);
    check_golden("value loss", report.value_loss, 0x1.b9e337p-3);
    check_golden("entropy", report.entropy, 0x1.1b72e4p+1);
    graft_shards_close(&f->shards);
}

static void test_threads_change_nothing(void **state)
{
    graft_env *env = *state;
    fixture *f[2] = {open_fixture(env, 1, true), open_fixture(env, 2, true)};
    for (uint32_t k = 0; k < 2; k++) {
        graft_rng rng;
        graft_rng_seed(&rng, 1);
        f[k]->settings.minibatch = 20;
        (void)graft_ppo_update(&f[k]->controller, &f[k]->shards, env->scratch, &f[k]->rollout,
                               &f[k]->settings, &rng);
    }
    assert_memory_equal(f[0]->controller.parameters.value, f[1]->controller.parameters.value,
                        f[0]->controller.parameters.size * sizeof(float));
    graft_shards_close(&f[0]->shards);
    graft_shards_close(&f[1]->shards);
}

/* One-step episodes: xfer 3 pays 1 at location 2, anything else nothing. The state's masks offer
 * it half of the time; otherwise NO-OP, which pays 0.2, is best. */
static void test_bandit(void **state)
{
    graft_env *env = *state;
    enum { ARMS = 64 };
    fixture *f = open_fixture(env, 2, false);
    graft_rng rng;
    graft_rng_seed(&rng, 2);
    graft_rng rngs[ARMS];
    for (uint32_t i = 0; i < ARMS; i++) {
        graft_rng_derive(&rngs[i], 5, i);
    }
    graft_rollout rollout = graft_rollout_new(env->life, ARMS, 1, LATENT, XFERS);
    graft_controller_states states = {ARMS, rollout.z, rollout.counts};
    graft_controller_choice choice = {rollout.xfer, rollout.location, rollout.log_p, rollout.value};
    f->settings.learning_rate = 3e-3;
    double last = 0.0;
    for (uint32_t update = 0; update < 150; update++) {
        for (uint32_t i = 0; i < ARMS; i++) {
            uint16_t offered = (uint16_t)(i % 2 == 0 ? 4 : 0);
            memcpy(rollout.counts + (size_t)i * XFERS, (uint16_t[]){2, 1, 0, offered, 3},
                   XFERS * sizeof(uint16_t));
            rollout.z[(size_t)i * LATENT] = i % 2 == 0 ? 1.0F : -1.0F;
            rollout.length[i] = 1;
        }
        graft_controller_act(&f->controller, env->scratch, &states, rngs, &choice);
        for (uint32_t i = 0; i < ARMS; i++) {
            bool best = rollout.xfer[i] == 3 && rollout.location[i] == 2;
            rollout.reward[i] = best ? 1.0F : rollout.xfer[i] == XFERS ? 0.2F : 0.0F;
        }
        last = graft_rollout_mean_return(&rollout);
        (void)graft_ppo_update(&f->controller, &f->shards, env->scratch, &rollout, &f->settings,
                               &rng);
    }
    assert_true(last > 0.55); /* 0.6 at best */
    graft_shards_close(&f->shards);
}

int main(void)
{
    graft_blas_open();
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_only_legal_actions),
        CHECK_TEST(test_frequencies),
        CHECK_TEST(test_greedy),
        CHECK_TEST(test_gradients),
        CHECK_TEST(test_update_sees_the_masks_of_acting),
        CHECK_TEST(test_stops_when_far_off),
        CHECK_TEST(test_empty_rollout),
        CHECK_TEST(test_golden),
        CHECK_TEST(test_threads_change_nothing),
        CHECK_TEST(test_bandit),
    };
    return cmocka_run_group_tests_name("controller", tests, NULL, NULL);
}
