/* Parameters, Adam and shards: numbers against an independent reference, and the promise that the
 * thread count changes nothing. */
#include "tests/support/check.h"
#include "tests/train/reference.inc"
#include "train/nn/blas.h"
#include "train/nn/kernels.h"
#include "train/nn/losses.h"
#include "train/nn/optimiser.h"
#include "train/nn/shards.h"

#include <math.h>

CHECK_CASE(test_layout)
{
    graft_parameters set;
    graft_parameters_init(&set, "net");
    assert_int_equal(graft_parameters_add(&set, "a", 3, 5, 1.0F), 0);
    assert_int_equal(graft_parameters_add(&set, "empty", 0, 5, 1.0F), 1);
    assert_int_equal(graft_parameters_add(&set, "b", 1, 17, 0.0F), 2);
    graft_parameters_seal(&set, env->life, 1);
    assert_int_equal(set.size, 16 + 0 + 32);
    float most = 0.0F;
    for (size_t i = 0; i < set.size; i++) {
        assert_true(i < 15 ? set.value[i] != 0.0F && fabsf(set.value[i]) <= 1.0F
                           : set.value[i] == 0.0F);
        most = fmaxf(most, fabsf(set.value[i]));
    }
    assert_true(most > 0.5F);
}

/* A parameter's first values depend on the seed and its place, not on what is added after it. */
CHECK_CASE(test_initial_values)
{
    graft_parameters sets[3];
    for (uint32_t k = 0; k < 3; k++) {
        graft_parameters_init(&sets[k], "net");
        (void)graft_parameters_add(&sets[k], "a", 4, 4, 1.0F);
        if (k == 1) {
            (void)graft_parameters_add(&sets[k], "b", 4, 4, 1.0F);
        }
        graft_parameters_seal(&sets[k], env->life, k == 2 ? 6 : 5);
    }
    assert_memory_equal(sets[0].value, sets[1].value, 16 * sizeof(float));
    assert_memory_not_equal(sets[0].value, sets[2].value, 16 * sizeof(float));
    assert_memory_not_equal(sets[1].value, sets[1].value + 16, 16 * sizeof(float));
}

static graft_parameters make_set(graft_env *env, uint32_t count)
{
    graft_parameters set;
    graft_parameters_init(&set, "net");
    (void)graft_parameters_add(&set, "a", 1, count, 0.0F);
    graft_parameters_seal(&set, env->life, 1);
    return set;
}

/* The same numbers whether they are in one set or in two that are clipped together. */
CHECK_CASE(test_adam_reference)
{
    graft_parameters whole = make_set(env, 4);
    graft_parameters halves[2] = {make_set(env, 2), make_set(env, 2)};
    graft_parameters *const one[1] = {&whole};
    graft_parameters *const two[2] = {&halves[0], &halves[1]};
    for (uint32_t k = 0; k < 4; k++) {
        whole.value[k] = (float)reference_adam_start[k];
        halves[k / 2].value[k % 2] = whole.value[k];
    }
    for (uint32_t t = 0; t < 5; t++) {
        for (uint32_t k = 0; k < 4; k++) {
            whole.gradient[k] = (float)reference_adam_gradients[4 * t + k];
            halves[k / 2].gradient[k % 2] = whole.gradient[k];
        }
        assert_true(graft_adam_step(one, 1, 0.0625, 1.5));
        assert_true(graft_adam_step(two, 2, 0.0625, 1.5));
    }
    for (uint32_t k = 0; k < 4; k++) {
        assert_true(fabs((double)whole.value[k] - reference_adam_end[k]) < 1e-6);
        assert_true(fabs((double)halves[k / 2].value[k % 2] - reference_adam_end[k]) < 1e-6);
    }
    assert_int_equal(whole.step, 5);
}

CHECK_CASE(test_bad_gradient_changes_nothing)
{
    static const float bad[3] = {NAN, INFINITY, -INFINITY};
    for (uint32_t i = 0; i < 3; i++) {
        graft_parameters set = make_set(env, 3);
        graft_parameters *const sets[1] = {&set};
        set.gradient[0] = 1.0F;
        set.gradient[2] = bad[i];
        assert_false(graft_adam_step(sets, 1, 0.1, 1.0));
        assert_true(set.value[0] == 0.0F && set.moment[0] == 0.0F && set.step == 0);
    }
}

/* -------------------------------------------------------------------------------------- shards */

CHECK_CASE(test_spans)
{
    for (uint32_t total = 0; total <= 3 * GRAFT_SHARD_COUNT + 1; total++) {
        uint32_t next = 0;
        for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
            graft_span span = graft_shards_span(total, s);
            assert_int_equal(span.first, next);
            assert_in_range(span.count, total / GRAFT_SHARD_COUNT, total / GRAFT_SHARD_COUNT + 1);
            next += span.count;
        }
        assert_int_equal(next, total);
    }
}

enum { ROWS = 37, INPUTS = 19, OUTPUTS = 11, TENSORS = 40 };

typedef struct {
    graft_parameters set;
    graft_layer layer;
    float x[ROWS * INPUTS];
    float y[ROWS * OUTPUTS];
} regression;

static void regress_shard(void *context, uint32_t shard, graft_tape *tape)
{
    regression *r = context;
    graft_span span = graft_shards_span(ROWS, shard);
    const graft_matrix *x =
        graft_tape_constant(tape, r->x + (size_t)span.first * INPUTS, span.count, INPUTS);
    const graft_matrix *p = graft_tanh_of(tape, graft_layer_apply(tape, &r->set, r->layer, x));
    graft_target target = {r->y + (size_t)span.first * OUTPUTS, NULL, 1.0F / ROWS};
    (void)graft_loss_use(tape, graft_loss_squared(tape, p, &target), 1.0F);
    for (uint32_t k = 0; k < TENSORS; k++) { /* Outgrow the arena's first block. */
        (void)graft_tape_matrix(tape, 100, 100);
    }
    graft_tape_backward(tape);
}

static regression *run_regression(graft_env *env, uint32_t thread_count)
{
    regression *r = GRAFT_NEW(env->life, regression, 1);
    graft_rng rng = check_rng(8);
    for (uint32_t i = 0; i < ROWS * INPUTS; i++) {
        r->x[i] = (float)graft_rng_normal(&rng);
    }
    for (uint32_t i = 0; i < ROWS * OUTPUTS; i++) {
        r->y[i] = (float)graft_rng_normal(&rng);
    }
    graft_parameters_init(&r->set, "net");
    r->layer =
        graft_parameters_layer(&r->set, (const char *const[]){"w", "b"}, INPUTS, OUTPUTS, 1.0F);
    graft_parameters_seal(&r->set, env->life, 3);
    graft_parameters *const sets[1] = {&r->set};
    graft_shards shards;
    graft_shards_open(&shards, env->life, thread_count, sets, 1);
    for (uint32_t i = 0; i < 20; i++) {
        graft_shards_differentiate(&shards, regress_shard, r);
        assert_true(graft_adam_step(sets, 1, 0.01, 1.0));
    }
    graft_shards_close(&shards);
    return r;
}

/* The shards' gradients add up to the gradient of the whole batch. */
CHECK_CASE(test_shards_add_up)
{
    regression *r = run_regression(env, 1);
    graft_parameters *const sets[1] = {&r->set};
    graft_shards shards;
    graft_shards_open(&shards, env->life, 1, sets, 1);
    graft_shards_differentiate(&shards, regress_shard, r);
    graft_shards_close(&shards);
    graft_tape tape;
    graft_tape_init(&tape, env->unit, true);
    float *whole = GRAFT_NEW(env->life, float, r->set.size);
    graft_tape_bind(&tape, &r->set, whole);
    const graft_matrix *x = graft_tape_constant(&tape, r->x, ROWS, INPUTS);
    const graft_matrix *p = graft_tanh_of(&tape, graft_layer_apply(&tape, &r->set, r->layer, x));
    graft_target target = {r->y, NULL, 1.0F / ROWS};
    (void)graft_loss_use(&tape, graft_loss_squared(&tape, p, &target), 1.0F);
    graft_tape_backward(&tape);
    float most = 0.0F;
    for (size_t i = 0; i < r->set.size; i++) {
        assert_true(fabsf(whole[i] - r->set.gradient[i]) < 1e-5F);
        most = fmaxf(most, fabsf(whole[i]));
    }
    assert_true(most > 1e-2F);
}

CHECK_CASE(test_threads_change_nothing)
{
    const regression *one = run_regression(env, 1);
    for (uint32_t threads = 2; threads <= 9; threads += 2) {
        const regression *many = run_regression(env, threads);
        assert_memory_equal(one->set.value, many->set.value, one->set.size * sizeof(float));
    }
}

int main(void)
{
    graft_blas_open();
    return check_run_cases();
}
