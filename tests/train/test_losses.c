/* Losses and distributions: gradients by finite differences, values against numbers computed
 * independently (reference.py), and what masks and samples must obey. */
#include "tests/support/check.h"
#include "tests/support/gradient.h"
#include "tests/train/reference.inc"
#include "train/agent/candidates.h"
#include "train/nn/blas.h"
#include "train/nn/kernels.h"
#include "train/nn/losses.h"
#include "train/nn/lstm.h"
#include "train/nn/mixture.h"
#include "train/nn/ragged.h"

#include <math.h>
#include <string.h>

/* As in test_kernels.c. */
static const double tolerance = 1e-4;

static const float targets12[12] = {0, 1, 0.25F, 1, 0, 1, 0.5F, 0, 1, 0, 1, 1};
static const float weights12[12] = {1, 2, 0, 1, 0.5F, 1, 1, 0, 3, 1, 1, 0.25F};
/* The leaf's values lie within 0.35 of 0: the first three rows are inside the clip range or on its
 * worse side, the last two are clipped. */
static const float old5[5] = {0.3F, -0.7F, 0.55F, -0.9F, 1.0F};
static const float advantage5[5] = {1.5F, -2.0F, 0.7F, 1.0F, -1.0F};
static const graft_mixture mixture2x3 = {2, 3, 0.05F};
static const float mixture_target[6] = {0.3F, -0.8F, 1.1F, 0.1F, -0.4F, 2.0F};

typedef const graft_matrix *const *leaf_list;
#define CASE(function) static const graft_matrix *function(graft_tape *t, leaf_list x)
CASE(apply_weighted_sum) { return graft_weighted_sum(t, x[0], weights12, 0.3F); }
CASE(apply_binary)
{
    return graft_loss_binary(t, x[0], &(graft_target){targets12, weights12, 0.5F});
}
CASE(apply_squared)
{
    return graft_loss_squared(t, x[0], &(graft_target){targets12, weights12, 0.5F});
}
CASE(apply_huber)
{
    return graft_loss_huber(t, x[0], &(graft_target){targets12, NULL, 0.5F}, 0.875F);
}
CASE(apply_mixture) { return graft_loss_mixture(t, x[0], mixture_target, &mixture2x3, 0.5F); }
CASE(apply_policy)
{
    static graft_surrogate terms = {old5, advantage5, 0.2F, 0.5F};
    return graft_loss_policy(t, x[0], &terms);
}

static const gradient_case cases[] = {
    {"weighted sum", 1, {3}, {4},  apply_weighted_sum},
    {"binary",       1, {3}, {4},  apply_binary      },
    {"squared",      1, {3}, {4},  apply_squared     },
    {"huber",        1, {3}, {4},  apply_huber       },
    {"mixture",      1, {3}, {18}, apply_mixture     },
    {"policy",       1, {5}, {1},  apply_policy      },
};

CHECK_CASE(test_gradients)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double worst = gradient_worst(&cases[i]);
        if (!(worst <= tolerance)) {
            fail_msg("%s: off by %g", cases[i].name, worst);
        }
    }
}

/* ------------------------------------------------------------------------ independent references
 */

static const float *as_floats(graft_arena *arena, const double *value, size_t count)
{
    float *out = GRAFT_NEW(arena, float, count);
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)value[i];
    }
    return out;
}
#define FLOATS(arena, array) as_floats((arena), (array), sizeof(array) / sizeof(array)[0])

/* A few float roundings on numbers of order 1. */
static void check_close(const char *what, const float *is, const double *want, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!(fabs((double)is[i] - want[i]) <= 2e-6 * (1.0 + fabs(want[i])))) {
            fail_msg("%s[%zu] is %.9g, not %.9g", what, i, (double)is[i], want[i]);
        }
    }
}

static graft_tape open_tape(graft_env *env, bool recording)
{
    graft_tape tape;
    graft_tape_init(&tape, env->unit, recording);
    return tape;
}

CHECK_CASE(test_lstm_reference)
{
    graft_tape tape = open_tape(env, false);
    const graft_matrix *gates =
        graft_tape_constant(&tape, FLOATS(env->life, reference_lstm_gates), 6, 8);
    const graft_matrix *weight =
        graft_tape_constant(&tape, FLOATS(env->life, reference_lstm_weight), 2, 8);
    const graft_matrix *h = graft_lstm(&tape, gates, weight, 2, NULL, NULL);
    check_close("h", h->value, reference_lstm_out, 12);
}

CHECK_CASE(test_mixture_reference)
{
    graft_tape tape = open_tape(env, false);
    const graft_mixture mixture = {4, 3, 0.0625F};
    const graft_matrix *raw =
        graft_tape_constant(&tape, FLOATS(env->life, reference_mixture_raw), 1, 36);
    const float *target = FLOATS(env->life, reference_mixture_target);
    const graft_matrix *loss = graft_loss_mixture(&tape, raw, target, &mixture, 1.0F);
    check_close("nll", loss->value, reference_mixture_nll, 1);
}

/* Of six options two are not there. */
CHECK_CASE(test_log_softmax_reference)
{
    graft_tape tape = open_tape(env, false);
    static const uint32_t there[4] = {0, 1, 3, 5};
    static const uint32_t chooser[4] = {0};
    const graft_matrix *all = graft_tape_constant(&tape, FLOATS(env->life, reference_logits), 6, 1);
    const graft_matrix *x = graft_gather_rows(&tape, all, there, 4);
    const graft_matrix *y = graft_ragged_log_softmax(&tape, x, chooser, 1);
    for (uint32_t i = 0; i < 4; i++) {
        check_close("log p", &y->value[i], &reference_log_p[there[i]], 1);
    }
}

CHECK_CASE(test_advantage_reference)
{
    enum { STEPS = 5 };
    const graft_agent_settings settings = {.candidates_discount = 0.99, .candidates_lambda = 0.95};
    const graft_candidates agent = {.settings = &settings};
    graft_transition steps[STEPS];
    memset(steps, 0, sizeof steps);
    for (uint32_t t = 0; t < STEPS; t++) {
        steps[t].reward = (float)reference_gae_reward[t];
        steps[t].value = (float)reference_gae_value[t];
    }
    const graft_episode_kept kept = {.count = STEPS, .steps = steps, .next_value = 0.75};
    graft_candidates_credit(&agent, &kept);
    for (uint32_t t = 0; t < STEPS; t++) {
        double gain = reference_gae_advantage[t] + reference_gae_value[t];
        check_close("advantage", &steps[t].advantage, &reference_gae_advantage[t], 1);
        check_close("return", &steps[t].gain, &gain, 1);
    }
}

/* --------------------------------------------------------------------------------------- extremes
 */

/* Logits of any size, one option alone: finite, and exactly certain. */
CHECK_CASE(test_extreme_logits)
{
    graft_tape tape = open_tape(env, true);
    graft_matrix *x = graft_tape_matrix(&tape, 4, 1);
    memcpy(x->value, (float[]){1e4F, -1e4F, 9e3F, -3e4F}, 4 * sizeof(float));
    static const uint32_t chooser[4] = {0, 0, 0, 1};
    const graft_matrix *y = graft_ragged_log_softmax(&tape, x, chooser, 2);
    assert_true(y->value[0] == 0.0F && y->value[1] == -2e4F && y->value[3] == 0.0F);
    const graft_matrix *entropy = graft_ragged_entropy(&tape, y, chooser, 2);
    assert_true(fabsf(entropy->value[0]) < 1e-20F && entropy->value[1] == 0.0F);
    graft_tape_seed(&tape, graft_weighted_sum(&tape, entropy, NULL, 1.0F), 1.0F);
    graft_tape_backward(&tape);
    for (uint32_t k = 0; k < 4; k++) {
        assert_true(isfinite(x->gradient[k]));
    }
}

/* The ratio of a runaway policy is clamped: a large gradient, not infinity. */
CHECK_CASE(test_runaway_policy)
{
    graft_tape tape = open_tape(env, true);
    graft_matrix *x = graft_tape_matrix(&tape, 2, 1);
    memcpy(x->value, (float[]){500, -500}, 2 * sizeof(float));
    static const float old[2] = {0, 0};
    static const float advantage[2] = {-1, 1};
    const graft_matrix *loss =
        graft_loss_policy(&tape, x, &(graft_surrogate){old, advantage, 0.2F, 1.0F});
    graft_tape_seed(&tape, loss, 1.0F);
    graft_tape_backward(&tape);
    assert_true(isfinite(loss->value[0]) && x->gradient[0] > 1e8F && x->gradient[0] < 5e8F);
}

/* Far-off targets and collapsed widths: the floor keeps everything finite. */
CHECK_CASE(test_extreme_mixture)
{
    graft_tape tape = open_tape(env, true);
    graft_matrix *raw = graft_tape_matrix(&tape, 1, 18);
    for (uint32_t k = 0; k < 6; k++) {
        raw->value[k] = k % 2 == 0 ? 200.0F : -200.0F;
        raw->value[6 + k] = k % 3 == 0 ? 1e3F : 0.0F;
        raw->value[12 + k] = k % 2 == 0 ? -500.0F : 20.0F;
    }
    const graft_matrix *loss = graft_loss_mixture(&tape, raw, mixture_target, &mixture2x3, 1.0F);
    graft_tape_seed(&tape, loss, 1.0F);
    graft_tape_backward(&tape);
    assert_true(isfinite(loss->value[0]));
    for (uint32_t k = 0; k < 18; k++) {
        assert_true(isfinite(raw->gradient[k]));
    }
}

/* --------------------------------------------------------------------------------------- sampling
 */

/* One dimension: weights 0.25 and 0.75, means -1 and 2, sigmas 0.5 and 0.1. */
static const graft_mixture two_bumps = {1, 2, 0.05F};
static const float two_bumps_raw[6] = {0, 1.0986123F, -1, 2, -0.79850770F, -2.9957323F};

typedef struct {
    float temperature;
    double weight; /* Of the second component. */
    double sigma;  /* Of the first component. */
} sample_row;

/* 40,000 samples: three standard errors are below the tolerances. */
CHECK_CASE(test_samples)
{
    static const sample_row rows[] = {
        {1.0F,  0.75,       0.5       },
        {2.0F,  0.63397460, 0.70710678}, /* sqrt 3 / (1 + sqrt 3), 0.5 sqrt 2 */
        {0.25F, 0.98780488, 0.25      }, /* 81 / 82 */
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        enum { COUNT = 40000 };
        graft_rng rng = check_rng(17);
        double second = 0.0;
        double sum = 0.0;
        double squares = 0.0;
        for (uint32_t i = 0; i < COUNT; i++) {
            float x;
            graft_mixture_sample(&two_bumps, two_bumps_raw, rows[r].temperature, &rng, &x);
            if (x > 1.25F) { /* The bumps hardly overlap here. */
                second += 1.0;
            } else {
                sum += (double)x + 1.0;
                squares += ((double)x + 1.0) * ((double)x + 1.0);
            }
        }
        double first = COUNT - second;
        assert_true(fabs(second / COUNT - rows[r].weight) < 0.01);
        assert_true(fabs(sum / first) < 0.06 * rows[r].sigma * sqrt(10000.0 / first) + 0.01);
        assert_true(fabs(sqrt(squares / first) / rows[r].sigma - 1.0) < 0.1);
    }
}

CHECK_CASE(test_sample_without_temperature)
{
    graft_rng rng = check_rng(1);
    float x;
    graft_mixture_sample(&two_bumps, two_bumps_raw, 0.0F, &rng, &x);
    assert_true(x == 2.0F);
    graft_mixture_mean(&two_bumps, two_bumps_raw, &x);
    assert_true(fabsf(x - 1.25F) < 1e-6F);
}

int main(void)
{
    graft_blas_open();
    return check_run_cases();
}
