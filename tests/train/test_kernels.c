/* Every kernel's gradient by finite differences, and what their values must be. */
#include "tests/support/check.h"
#include "tests/support/gradient.h"
#include "train/nn/blas.h"
#include "train/nn/kernels.h"
#include "train/nn/lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ten times the error that gradient.h derives; mistakes show at 1e-2 and above. */
static const double tolerance = 1e-4;

static const uint32_t index6[6] = {3, 0, 3, 1, 3, 0};
static const uint32_t segment5[5] = {2, 0, 2, 2, 0}; /* Segment 1 and 3 stay empty. */

typedef const graft_matrix *const *leaf_list;
#define CASE(function) static const graft_matrix *function(graft_tape *t, leaf_list x)
CASE(apply_linear) { return graft_linear(t, x[0], x[1], x[2]); }
CASE(apply_linear_bare) { return graft_linear(t, x[0], x[1], NULL); }
CASE(apply_relu) { return graft_relu(t, x[0]); }
CASE(apply_tanh) { return graft_tanh_of(t, x[0]); }
CASE(apply_add) { return graft_add(t, x[0], x[1]); }
CASE(apply_concat) { return graft_concat(t, x, 3); }
CASE(apply_gather) { return graft_gather_rows(t, x[0], index6, 6); }
CASE(apply_segment_mean) { return graft_segment_mean(t, x[0], segment5, 4); }
CASE(apply_segment_max) { return graft_segment_max(t, x[0], segment5, 4); }
CASE(apply_lstm) { return graft_lstm(t, x[0], x[1], 2, NULL, NULL); }
CASE(apply_lstm_started)
{
    static float hidden[6] = {0.1F, -0.2F, 0.3F, 0.4F, -0.5F, 0.6F};
    static float cell[6] = {-0.3F, 0.2F, 0.1F, 0.5F, 0.9F, -0.8F};
    return graft_lstm(t, x[0], x[1], 2, &(graft_lstm_state){hidden, cell}, NULL);
}
/* A weight that is used twice. */
CASE(apply_linear_shared)
{
    return graft_add(t, graft_linear(t, x[0], x[1], x[2]), graft_linear(t, x[3], x[1], x[2]));
}
/* A matrix that is used twice, on the way of a deeper expression. */
CASE(apply_chain)
{
    const graft_matrix *a = graft_tanh_of(t, graft_linear(t, x[0], x[1], x[2]));
    return graft_add(t, a, graft_tanh_of(t, graft_add(t, a, a)));
}

static const gradient_case cases[] = {
    {"linear",                3, {4, 3, 1},    {3, 5, 5},    apply_linear       },
    {"linear without bias",   2, {2, 3},       {3, 2},       apply_linear_bare  },
    {"linear, weight shared", 4, {3, 3, 1, 3}, {3, 2, 2, 3}, apply_linear_shared},
    {"relu",                  1, {3},          {4},          apply_relu         },
    {"tanh",                  1, {3},          {4},          apply_tanh         },
    {"add",                   2, {3, 3},       {2, 2},       apply_add          },
    {"concat",                3, {3, 3, 3},    {2, 1, 4},    apply_concat       },
    {"gather rows",           1, {4},          {3},          apply_gather       },
    {"segment mean",          1, {5},          {3},          apply_segment_mean },
    {"segment max",           1, {5},          {3},          apply_segment_max  },
    {"lstm",                  2, {8, 3},       {12, 12},     apply_lstm         },
    {"lstm from a state",     2, {6, 3},       {12, 12},     apply_lstm_started },
    {"chain with reuse",      3, {3, 2, 1},    {2, 3, 3},    apply_chain        },
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

/* --------------------------------------------------------------------------------------- values */

static graft_tape open_tape(graft_env *env, bool recording)
{
    graft_tape tape;
    graft_tape_init(&tape, env->unit, recording);
    return tape;
}

static void check_values(const graft_matrix *is, const float *want)
{
    for (size_t i = 0; i < graft_matrix_size(is); i++) {
        if (is->value[i] != want[i]) {
            fail_msg("element %zu is %g, not %g", i, (double)is->value[i], (double)want[i]);
        }
    }
}

CHECK_CASE(test_segments)
{
    graft_tape tape = open_tape(env, false);
    const float x[5 * 2] = {1, -8, 2, 5, 3, -6, 3, -7, 4, 5};
    const graft_matrix *m = graft_tape_constant(&tape, x, 5, 2);
    check_values(graft_segment_mean(&tape, m, segment5, 4),
                 (float[]){3, 5, 0, 0, 7.0F * (1.0F / 3.0F), -7, 0, 0});
    check_values(graft_segment_max(&tape, m, segment5, 4), (float[]){4, 5, 0, 0, 3, -6, 0, 0});
}

/* The first of equal maxima gets all of the gradient. */
CHECK_CASE(test_segment_max_tie)
{
    graft_tape tape = open_tape(env, true);
    graft_matrix *x = graft_tape_matrix(&tape, 3, 1);
    memcpy(x->value, (float[]){2, 5, 5}, 3 * sizeof(float));
    const uint32_t segment[3] = {0, 0, 0};
    graft_tape_seed(&tape, graft_segment_max(&tape, x, segment, 1), 1.0F);
    graft_tape_backward(&tape);
    assert_true(x->gradient[0] == 0.0F && x->gradient[1] == 1.0F && x->gradient[2] == 0.0F);
}

CHECK_CASE(test_relu_at_zero)
{
    graft_tape tape = open_tape(env, true);
    graft_matrix *x = graft_tape_matrix(&tape, 1, 2);
    x->value[1] = NAN;
    const graft_matrix *y = graft_relu(&tape, x);
    assert_true(y->value[0] == 0.0F && isnan(y->value[1]));
    graft_tape_seed(&tape, y, 1.0F);
    graft_tape_backward(&tape);
    assert_true(x->gradient[0] == 0.0F);
}

CHECK_CASE(test_not_recording_keeps_nothing)
{
    graft_tape tape = open_tape(env, false);
    const float x[4] = {1, 2, 3, 4};
    const graft_matrix *y = graft_tanh_of(&tape, graft_tape_constant(&tape, x, 2, 2));
    assert_null(y->gradient);
    assert_null(tape.last);
}

/* The LSTM in one go, and step by step with its state carried over: the same numbers. */
CHECK_CASE(test_lstm_state_carries_over)
{
    enum { STEPS = 4, BATCH = 2, HIDDEN = 3, ROW = 4 * HIDDEN };
    graft_tape tape = open_tape(env, false);
    float gates[STEPS * BATCH * ROW];
    float weight[HIDDEN * ROW];
    graft_rng rng = check_rng(3);
    for (size_t i = 0; i < sizeof gates / sizeof gates[0]; i++) {
        gates[i] = (float)graft_rng_normal(&rng);
    }
    for (size_t i = 0; i < sizeof weight / sizeof weight[0]; i++) {
        weight[i] = (float)graft_rng_normal(&rng);
    }
    const graft_matrix *w = graft_tape_constant(&tape, weight, HIDDEN, ROW);
    const graft_matrix *all = graft_lstm(
        &tape, graft_tape_constant(&tape, gates, STEPS * BATCH, ROW), w, BATCH, NULL, NULL);
    float hidden[BATCH * HIDDEN] = {0};
    float cell[BATCH * HIDDEN] = {0};
    graft_lstm_state carried = {hidden, cell};
    for (size_t step = 0; step < STEPS; step++) {
        const graft_matrix *one =
            graft_tape_constant(&tape, gates + step * BATCH * ROW, BATCH, ROW);
        const graft_matrix *h = graft_lstm(&tape, one, w, BATCH, &carried, &carried);
        assert_memory_equal(h->value, hidden, sizeof hidden);
        for (size_t k = 0; k < BATCH * HIDDEN; k++) {
            assert_true(fabsf(hidden[k] - all->value[step * BATCH * HIDDEN + k]) < 1e-6F);
        }
    }
}

/* ----------------------------------------------------------------------------------------- BLAS */

typedef struct {
    uint32_t rows;
    uint32_t inner;
    uint32_t cols;
    bool transposed[2];
    float beta;
} product_row;

/* Integers small enough that every order of summation gives the same float. */
static void check_product(graft_env *env, const product_row *row)
{
    GRAFT_SCOPED(env->scratch);
    float *a = GRAFT_NEW(env->scratch, float, (size_t)row->rows * row->inner);
    float *b = GRAFT_NEW(env->scratch, float, (size_t)row->inner * row->cols);
    float *out = GRAFT_NEW(env->scratch, float, (size_t)row->rows * row->cols);
    for (uint32_t i = 0; i < row->rows * row->inner; i++) {
        a[i] = (float)(i % 7) - 3.0F;
    }
    for (uint32_t i = 0; i < row->inner * row->cols; i++) {
        b[i] = (float)(i % 5) - 2.0F;
    }
    for (uint32_t i = 0; i < row->rows * row->cols; i++) {
        out[i] = row->beta == 0.0F ? NAN : 2.0F;
    }
    uint32_t m = row->rows;
    uint32_t n = row->inner;
    uint32_t p = row->cols;
    graft_factor left = {a, row->transposed[0] ? n : m, row->transposed[0] ? m : n,
                         row->transposed[0]};
    graft_factor right = {b, row->transposed[1] ? p : n, row->transposed[1] ? n : p,
                          row->transposed[1]};
    graft_blas_multiply(left, right, row->beta, out);
    for (uint32_t i = 0; i < m; i++) {
        for (uint32_t j = 0; j < p; j++) {
            float want = row->beta == 0.0F ? 0.0F : row->beta * 2.0F;
            for (uint32_t k = 0; k < n; k++) {
                want += a[row->transposed[0] ? k * m + i : i * n + k] *
                        b[row->transposed[1] ? j * n + k : k * p + j];
            }
            assert_true(out[i * p + j] == want);
        }
    }
}

CHECK_CASE(test_products)
{
    static const product_row rows[] = {
        {3,   4,   5,   {false, false}, 0.0F},
        {3,   4,   5,   {true, false},  1.0F},
        {3,   4,   5,   {false, true},  0.0F},
        {3,   4,   5,   {true, true},   2.0F},
        {1,   300, 1,   {false, false}, 0.0F},
        {0,   4,   5,   {false, false}, 0.0F},
        {3,   0,   5,   {false, false}, 0.0F},
        {3,   0,   5,   {false, false}, 0.5F},
        {3,   0,   5,   {true, true},   0.0F},
        {7,   29,  9,   {false, false}, 1.0F},
        {8,   16,  33,  {false, false}, 0.0F},
        {13,  16,  33,  {false, false}, 0.5F},
        {3,   4,   0,   {false, false}, 1.0F},
        {70,  90,  110, {false, true},  1.0F},
        {200, 130, 150, {true, false},  0.0F},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_product(env, &rows[i]);
    }
}

/* On a processor with wide vectors the library's slowest kernels must not be the ones in use. */
CHECK_CASE(test_core_is_chosen)
{
    if (getenv("OPENBLAS_CORETYPE") != NULL) {
        CHECK_SKIP("OPENBLAS_CORETYPE is set");
    }
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        assert_string_not_equal(graft_blas_core(), "Prescott");
        return;
    }
#endif
    CHECK_SKIP("this processor has no AVX2");
}

int main(void)
{
    graft_blas_open();
    return check_run_cases();
}
