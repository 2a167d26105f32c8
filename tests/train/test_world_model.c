/* The world model: gradients through time, padding, windows, masks, and its use as an environment.
 */
#include "tests/support/check.h"
#include "tests/support/gradient.h"
#include "tests/train/counter.h"
#include "train/blas.h"
#include "train/numeric.h"
#include "train/optimiser.h"
#include "train/world_state.h"
#include "train/world_training.h"

#include <math.h>
#include <string.h>

enum { EPISODES = 13 };

typedef struct {
    graft_world_model model;
    graft_shards shards;
    graft_parameters *sets[1];
    graft_trajectory trajectories[EPISODES];
    uint32_t index[EPISODES];
    graft_world_batch batch;
} fixture;

static fixture *open_fixture(graft_env *env, uint32_t thread_count, bool latent_only)
{
    fixture *f = GRAFT_NEW(env->life, fixture, 1);
    graft_rng rng;
    graft_rng_seed(&rng, 6);
    for (uint32_t i = 0; i < EPISODES; i++) {
        f->trajectories[i] = counter_record(env->life, &rng);
        f->index[i] = i;
    }
    graft_world_size size = graft_world_defaults((graft_world_size){.latent = COUNTER_LATENT,
                                                                    .xfers = COUNTER_XFERS,
                                                                    .locations = 8,
                                                                    .hidden = 12,
                                                                    .features = 16,
                                                                    .components = 3,
                                                                    .xfer_embedding = 5,
                                                                    .location_embedding = 3,
                                                                    .latent_only = latent_only});
    graft_world_model_init(&f->model, env->life, &size, 1);
    graft_world_model_calibrate(&f->model, f->trajectories, EPISODES);
    f->sets[0] = &f->model.parameters;
    graft_shards_open(&f->shards, env->life, thread_count, f->sets, 1);
    f->batch = (graft_world_batch){f->trajectories, f->index, NULL, EPISODES, 0};
    return f;
}

static double weigh(const graft_world_loss *loss)
{
    graft_world_weights w = graft_world_weights_default();
    return w.latent * loss->latent + w.reward * loss->reward + w.end * loss->end +
           w.legality * loss->legality + w.counts * loss->counts;
}

static double lose_all(void *context)
{
    fixture *f = context;
    graft_world_loss loss = graft_world_model_differentiate(&f->model, &f->shards, &f->batch, NULL);
    return weigh(&loss);
}

static void test_gradients(void **state)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        fixture *f = open_fixture(*state, 1, kind == 1);
        (void)lose_all(f);
        assert_true(gradient_worst_slope(&f->model.parameters, lose_all, f) < 1.0);
        graft_shards_close(&f->shards);
    }
}

/* A short and a long episode together lose what they lose apart, weighted by their steps: the
 * padding of the short one adds nothing, to the loss or to the gradient. */
static void test_padding_contributes_nothing(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    const graft_parameters *set = &f->model.parameters;
    double sum = 0.0;
    double *gradient = GRAFT_NEW(env->life, double, set->size);
    double steps = 0.0;
    for (uint32_t i = 0; i < EPISODES; i++) {
        graft_world_batch one = {f->trajectories, &f->index[i], NULL, 1, 0};
        graft_world_weights equal = {1.0, 1.0, 1.0, 1.0, 0.0}; /* Counts average over legal bits. */
        graft_world_loss loss =
            graft_world_model_differentiate(&f->model, &f->shards, &one, &equal);
        double length = f->trajectories[i].step_count;
        assert_int_equal(loss.step_count, f->trajectories[i].step_count);
        sum += length * (loss.latent + loss.reward + loss.end + loss.legality);
        steps += length;
        for (size_t k = 0; k < set->size; k++) {
            gradient[k] += length * (double)set->gradient[k];
        }
    }
    graft_world_weights equal = {1.0, 1.0, 1.0, 1.0, 0.0};
    graft_world_loss all =
        graft_world_model_differentiate(&f->model, &f->shards, &f->batch, &equal);
    assert_true(fabs(all.latent + all.reward + all.end + all.legality - sum / steps) < 1e-5);
    for (size_t k = 0; k < set->size; k++) {
        assert_true(fabs((double)set->gradient[k] - gradient[k] / steps) < 1e-5);
    }
    graft_shards_close(&f->shards);
}

static uint32_t find_longest(const fixture *f)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < EPISODES; i++) {
        longest = f->trajectories[i].step_count > f->trajectories[longest].step_count ? i : longest;
    }
    return longest;
}

/* Windows are the same as trajectories cut to size. */
static void test_windows(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    const uint32_t longest = find_longest(f);
    const graft_trajectory *whole = &f->trajectories[longest];
    assert_true(whole->step_count >= 6);
    const uint32_t first = 2;
    graft_world_batch window = {f->trajectories, &longest, &first, 1, 3};
    graft_world_loss a = graft_world_model_differentiate(&f->model, &f->shards, &window, NULL);
    graft_trajectory cut = {3,
                            whole->z + 2 * COUNTER_LATENT,
                            whole->xfer + 2,
                            whole->location + 2,
                            whole->reward + 2,
                            whole->end + 2,
                            whole->location_counts + 2 * COUNTER_XFERS};
    const uint32_t zero = 0;
    graft_world_batch direct = {&cut, &zero, NULL, 1, 0};
    graft_world_loss b = graft_world_model_differentiate(&f->model, &f->shards, &direct, NULL);
    assert_true(weigh(&a) == weigh(&b) && a.latent == b.latent && a.counts == b.counts);
    assert_int_equal(a.step_count, 3);
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
    fixture *f = open_fixture(*state, 1, false);
    for (uint32_t i = 0; i < 3; i++) {
        (void)lose_all(f);
        assert_true(graft_adam_step(f->sets, 1, 1e-2, 1.0));
    }
    graft_world_loss loss = graft_world_model_differentiate(&f->model, &f->shards, &f->batch, NULL);
    check_golden("latent", loss.latent, 0x1.3403828p+0);
    check_golden("reward", loss.reward, 0x1.1bcf98p-4);
    check_golden("end", loss.end, 0x1.258925p-1);
    check_golden("legality", loss.legality, 0x1.c0ce9f4p-3);
    check_golden("counts", loss.counts, 0x1.3503c5ep-6);
    graft_shards_close(&f->shards);
}

static void test_threads_change_nothing(void **state)
{
    fixture *f[2] = {open_fixture(*state, 1, false), open_fixture(*state, 2, false)};
    for (uint32_t i = 0; i < 8; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            (void)lose_all(f[k]);
            assert_true(graft_adam_step(f[k]->sets, 1, 1e-2, 1.0));
        }
    }
    assert_memory_equal(f[0]->model.parameters.value, f[1]->model.parameters.value,
                        f[0]->model.parameters.size * sizeof(float));
    graft_shards_close(&f[0]->shards);
    graft_shards_close(&f[1]->shards);
}

/* -------------------------------------------------------------------------------------- reports */

/* Root mean square difference of the rewards from the mean of their xfer. */
static double find_error_of_means(const fixture *f)
{
    double errors = 0;
    double steps = 0;
    for (uint32_t i = 0; i < EPISODES; i++) {
        const graft_trajectory *t = &f->trajectories[i];
        for (uint32_t k = 0; k < t->step_count; k++) {
            double error = (double)(t->reward[k] - f->model.reward_means[t->xfer[k]]);
            errors += error * error;
            steps += 1;
        }
    }
    return sqrt(errors / steps);
}

/* Untrained, with zeroed heads, the model says "as before": that is what persistence gets right. */
static void test_metrics_of_persistence(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    const graft_world_model *m = &f->model;
    const graft_layer heads[2] = {m->legality_head, m->reward_head};
    for (uint32_t k = 0; k < 2; k++) {
        const graft_parameter *item = &m->parameters.items[heads[k].weight];
        memset(graft_parameters_value(&m->parameters, heads[k].weight), 0,
               (size_t)item->rows * item->cols * sizeof(float));
    }
    graft_world_metrics metrics = graft_world_model_evaluate(m, &f->shards, env->life, &f->batch);
    uint64_t bits = 0;
    uint64_t changed = 0;
    for (uint32_t i = 0; i < EPISODES; i++) {
        const graft_trajectory *t = &f->trajectories[i];
        for (uint32_t k = 0; k < t->step_count * COUNTER_XFERS; k++) {
            bits++;
            changed += (t->location_counts[k] > 0) != (t->location_counts[k + COUNTER_XFERS] > 0);
        }
    }
    assert_true(changed > 0);
    assert_int_equal(metrics.bit_count, bits);
    assert_int_equal(metrics.changed_count, changed);
    assert_int_equal(metrics.changed_right, 0);
    assert_int_equal(metrics.right, bits - changed);
    assert_int_equal(metrics.live_count, COUNTER_LATENT);
    /* It says the mean of each xfer in this very data. */
    assert_true(fabs(metrics.reward_error - find_error_of_means(f)) < 1e-4);
    assert_true(metrics.reward_explained > 0.1);
    graft_shards_close(&f->shards);
}

/* A dimension that never changes is left out of the gain; a model whose mixture is one Gaussian of
 * mean 0 and sigma 1 gains nothing on the rest. */
static void test_gain_of_nothing_changes(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    for (uint32_t i = 0; i < EPISODES; i++) {
        for (uint32_t t = 0; t <= f->trajectories[i].step_count; t++) {
            f->trajectories[i].z[t * COUNTER_LATENT + 4] = 0.25F;
        }
    }
    graft_world_model *m = &f->model;
    graft_world_model_calibrate(m, f->trajectories, EPISODES);
    const graft_parameter *weight = &m->parameters.items[m->latent_head.weight];
    memset(graft_parameters_value(&m->parameters, m->latent_head.weight), 0,
           (size_t)weight->rows * weight->cols * sizeof(float));
    float *bias = graft_parameters_value(&m->parameters, m->latent_head.bias);
    uint32_t part = m->size.components * COUNTER_LATENT;
    for (uint32_t k = 0; k < part; k++) {
        bias[k] = 0.0F;
        bias[part + k] = 0.0F;
        bias[2 * part + k] = logf(1.0F - m->size.sigma_floor);
    }
    graft_world_metrics metrics = graft_world_model_evaluate(m, &f->shards, env->life, &f->batch);
    assert_int_equal(metrics.live_count, COUNTER_LATENT - 1);
    assert_true(fabs(metrics.latent_gain) < 1e-5);
    assert_true(metrics.variance[4] < 1e-9 && metrics.variance[0] > 0.1);
    graft_shards_close(&f->shards);
}

static void test_buckets(void **state)
{
    (void)state;
    uint32_t before = 0;
    for (uint32_t location = 0; location < 65536; location++) {
        uint32_t bucket = graft_location_bucket(location);
        assert_true(bucket < GRAFT_LOCATION_BUCKETS);
        assert_true(bucket == before || bucket == before + 1);
        assert_true(location > 15 || bucket == location);
        before = bucket;
    }
    assert_int_equal(graft_location_bucket(199), 30);
    assert_int_equal(graft_location_place(0, 200), 0);
    assert_int_equal(graft_location_place(199, 200), GRAFT_LOCATION_PLACES - 1);
    assert_int_equal(graft_location_place(3, 4), 12);
    assert_int_equal(graft_location_place(0, 1), 0);
    assert_int_equal(graft_location_place(5, 0), 0); /* A dream may name what is not there. */
}

/* What the constants of the rewards say of three steps: two with xfer 1, one with xfer 0. */
static void test_reward_constants(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    graft_world_model *m = &f->model;
    graft_trajectory t = graft_trajectory_new(env->life, 3, COUNTER_LATENT, COUNTER_XFERS);
    const uint16_t xfers[3] = {1, 0, 1};
    const float rewards[3] = {2.0F, -7.0F, 4.0F};
    memcpy(t.xfer, xfers, sizeof xfers);
    memcpy(t.reward, rewards, sizeof rewards);
    graft_world_model_calibrate_rewards(m, &t, 1);
    assert_true(fabsf(m->reward_means[1] - 3.0F) < 1e-6F);
    assert_true(fabsf(m->reward_means[0] + 7.0F) < 1e-6F);
    assert_true(m->reward_lows[1] == 2.0F && m->reward_highs[1] == 4.0F);
    assert_true(m->reward_lows[0] == -7.0F && m->reward_highs[0] == -7.0F);
    assert_true(m->reward_means[5] == 0.0F && m->reward_highs[5] == 0.0F); /* Never taken. */
    /* Two steps 1 off their mean and four that count for the common variance, 2/3. */
    assert_true(fabsf(m->reward_scales[1] - sqrtf((2.0F + 4.0F * 2.0F / 3.0F) / 6.0F)) < 1e-5F);
    graft_shards_close(&f->shards);
}

/* ------------------------------------------------------------------------- use as an environment
 */

/* Stepping an imagined state through recorded actions gives the predictions of the whole sequence:
 * training and dreaming are one forward pass. */
static void test_steps_match_the_sequence(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    const graft_world_model *m = &f->model;
    const uint32_t longest = find_longest(f);
    const graft_trajectory *t = &f->trajectories[longest];
    assert_true(t->step_count > 2);
    const graft_parameter *head = &m->parameters.items[m->reward_head.weight];
    for (uint32_t i = 0; i < head->rows; i++) { /* Heads start small; this one has to tell. */
        m->parameters.value[head->offset + i] *= 50.0F;
    }
    for (uint32_t x = 0; x <= COUNTER_XFERS; x++) { /* The report does not hold rewards in range. */
        m->reward_lows[x] = -1e9F;
        m->reward_highs[x] = 1e9F;
    }
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    graft_world_state s = graft_world_state_new(m, env->life, 1);
    graft_world_state_start(m, &s, t->z, t->location_counts, &rng);
    double squares = 0.0;
    for (uint32_t k = 0; k < t->step_count; k++) {
        /* Back to what was recorded; only the memory is carried over. */
        memcpy(s.z, t->z + k * COUNTER_LATENT, COUNTER_LATENT * sizeof(float));
        memcpy(s.counts, t->location_counts + k * COUNTER_XFERS, COUNTER_XFERS * sizeof(uint16_t));
        float reward;
        uint8_t end;
        graft_world_state_step(m, env->scratch, &s,
                               (graft_world_action){t->xfer + k, t->location + k}, 1.0F,
                               &(graft_world_outcome){&reward, &end});
        squares += (double)((reward - t->reward[k]) * (reward - t->reward[k]));
    }
    graft_world_batch batch = {f->trajectories, &longest, NULL, 1, 0};
    graft_world_metrics metrics = graft_world_model_evaluate(m, &f->shards, env->life, &batch);
    double error = sqrt(squares / t->step_count);
    assert_true(fabs(error - metrics.reward_error) < 1e-4 * error);
    graft_shards_close(&f->shards);
}

/* Ends come up as often as the model says. */
static void test_ends_are_sampled(void **state)
{
    graft_env *env = *state;
    enum { STATES = 4000 };
    fixture *f = open_fixture(env, 1, false);
    graft_world_model *m = &f->model;
    const graft_parameter *item = &m->parameters.items[m->end_head.weight];
    memset(graft_parameters_value(&m->parameters, m->end_head.weight), 0,
           (size_t)item->rows * item->cols * sizeof(float));
    graft_parameters_value(&m->parameters, m->end_head.bias)[0] = logf(0.25F / 0.75F);
    graft_world_state s = graft_world_state_new(m, env->life, STATES);
    uint16_t *zeros = GRAFT_NEW(env->life, uint16_t, STATES);
    float *reward = GRAFT_NEW(env->life, float, STATES);
    uint8_t *end = GRAFT_NEW(env->life, uint8_t, STATES);
    for (uint32_t i = 0; i < STATES; i++) {
        graft_rng rng;
        graft_rng_derive(&rng, 3, i);
        graft_world_state_start(m, &s, f->trajectories[0].z, f->trajectories[0].location_counts,
                                &rng);
    }
    graft_world_state_step(m, env->scratch, &s, (graft_world_action){zeros, zeros}, 1.0F,
                           &(graft_world_outcome){reward, end});
    double share = 0.0;
    for (uint32_t i = 0; i < STATES; i++) {
        share += end[i] != 0 ? 1.0 / STATES : 0.0;
    }
    assert_true(fabs(share - 0.25) < 0.03); /* Four standard errors. */
    graft_shards_close(&f->shards);
}

/* Predicted numbers of locations are rounded, and kept from 1 to the limit; latents stay in range.
 */
static void test_predictions_are_held_in_range(void **state)
{
    graft_env *env = *state;
    fixture *f = open_fixture(env, 1, false);
    graft_world_model *m = &f->model;
    float *said = graft_parameters_value(&m->parameters, m->counts_head.bias);
    float *legal = graft_parameters_value(&m->parameters, m->legality_head.bias);
    static const float counts[COUNTER_XFERS] = {-0.8F, 2.0F, 3.0F, 900.0F, 3.0F, 1.0F};
    static const uint16_t want[COUNTER_XFERS] = {1, 2, 3, 8, 0, 1};
    const graft_layer heads[2] = {m->counts_head, m->legality_head};
    for (uint32_t k = 0; k < 2; k++) {
        const graft_parameter *item = &m->parameters.items[heads[k].weight];
        memset(graft_parameters_value(&m->parameters, heads[k].weight), 0,
               (size_t)item->rows * item->cols * sizeof(float));
    }
    for (uint32_t x = 0; x < COUNTER_XFERS; x++) {
        graft_parameters_value(&m->parameters, m->legality_keep)[x] = 0.0F;
        said[x] = counts[x] - (float)f->trajectories[0].location_counts[x];
        legal[x] = want[x] > 0 ? 0.1F : -0.1F;
    }
    float *means = graft_parameters_value(&m->parameters, m->latent_head.bias) +
                   m->size.components * COUNTER_LATENT;
    for (uint32_t k = 0; k < m->size.components * COUNTER_LATENT; k++) {
        means[k] = k % 2 == 0 ? 1e6F : -1e6F;
    }
    const graft_trajectory *t = &f->trajectories[0];
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    graft_world_state s = graft_world_state_new(m, env->life, 2);
    graft_world_state_start(m, &s, t->z, t->location_counts, &rng);
    float reward;
    uint8_t end;
    const uint16_t noop[2] = {COUNTER_XFERS, 0};
    graft_world_state_step(m, env->scratch, &s, (graft_world_action){&noop[0], &noop[1]}, 1.0F,
                           &(graft_world_outcome){&reward, &end});
    assert_memory_equal(s.counts, want, sizeof want);
    for (uint32_t d = 0; d < COUNTER_LATENT; d++) {
        assert_true(s.z[d] == m->low[d] || s.z[d] == m->high[d]);
    }
    m->reward_lows[2] = 0.25F; /* Whatever the head says of xfer 2, it lies between these. */
    m->reward_highs[2] = 0.5F;
    for (uint32_t k = 0; k < 2; k++) {
        const uint16_t action[2] = {2, 0};
        m->reward_means[2] = k == 0 ? -1e6F : 1e6F;
        graft_world_state_step(m, env->scratch, &s, (graft_world_action){&action[0], &action[1]},
                               1.0F, &(graft_world_outcome){&reward, &end});
        assert_true(reward == (k == 0 ? 0.25F : 0.5F));
    }
    graft_shards_close(&f->shards);
}

int main(void)
{
    graft_blas_open();
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_gradients),
        CHECK_TEST(test_padding_contributes_nothing),
        CHECK_TEST(test_windows),
        CHECK_TEST(test_golden),
        CHECK_TEST(test_threads_change_nothing),
        CHECK_TEST(test_metrics_of_persistence),
        CHECK_TEST(test_gain_of_nothing_changes),
        cmocka_unit_test(test_buckets),
        CHECK_TEST(test_reward_constants),
        CHECK_TEST(test_steps_match_the_sequence),
        CHECK_TEST(test_ends_are_sampled),
        CHECK_TEST(test_predictions_are_held_in_range),
    };
    return cmocka_run_group_tests_name("world model", tests, NULL, NULL);
}
