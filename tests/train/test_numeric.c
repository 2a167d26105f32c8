/* The plain-arithmetic functions against libm in double, over their whole range. */
#include "tests/support/check.h"
#include "train/nn/numeric.h"

#include <math.h>

typedef struct {
    const char *name;
    float (*is)(float);
    double (*want)(double);
    float low;
    float high;
    double relative; /* Allowed error relative to the value, */
    double absolute; /* plus this. */
} numeric_row;

static float run_exp(float x) { return graft_exp(x); }
static float run_log(float x) { return graft_ln(x); }
static float run_tanh(float x) { return graft_tanh(x); }
static float run_logistic(float x) { return graft_logistic(x); }
static float run_softplus(float x) { return graft_softplus(x); }
static double want_logistic(double x) { return 1.0 / (1.0 + exp(-x)); }
static double want_softplus(double x) { return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

/* Two or three roundings of 6e-8 each; log loses relative accuracy where it crosses 0. */
static const numeric_row rows[] = {
    {"exp",          run_exp,      exp,           -86.9F,   87.9F, 2e-7, 0.0 },
    {"log of large", run_log,      log,           1e-3F,    1e6F,  2e-7, 1e-7},
    {"log of tiny",  run_log,      log,           1.2e-38F, 1e-3F, 2e-7, 0.0 },
    {"tanh",         run_tanh,     tanh,          -20.0F,   20.0F, 0.0,  2e-7},
    {"logistic",     run_logistic, want_logistic, -80.0F,   80.0F, 3e-7, 0.0 },
    {"softplus",     run_softplus, want_softplus, -80.0F,   80.0F, 2e-7, 2e-7},
};

CHECK_CASE(test_accuracy)
{
    const uint32_t count = 200001;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const numeric_row *row = &rows[r];
        for (uint32_t i = 0; i < count; i++) {
            float x = row->low + (row->high - row->low) * (float)i / (float)(count - 1);
            double want = row->want((double)x);
            double error = fabs((double)row->is(x) - want);
            if (!(error <= row->relative * fabs(want) + row->absolute)) {
                fail_msg("%s(%a) is %a, not %a", row->name, (double)x, (double)row->is(x), want);
            }
        }
    }
}

CHECK_CASE(test_special_values)
{
    assert_true(isnan(graft_exp(NAN)));
    assert_true(isnan(graft_tanh(NAN)));
    assert_true(isnan(graft_logistic(NAN)));
    assert_true(graft_exp(INFINITY) > 1e38F && isfinite(graft_exp(INFINITY)));
    assert_true(graft_exp(-INFINITY) > 0.0F && graft_exp(-INFINITY) < 2e-38F);
    assert_true(graft_exp(0.0F) == 1.0F);
    assert_true(graft_ln(1.0F) == 0.0F);
    assert_true(graft_tanh(0.0F) == 0.0F);
    assert_true(graft_tanh(100.0F) == 1.0F && graft_tanh(-100.0F) == -1.0F);
    assert_true(graft_logistic(0.0F) == 0.5F);
}

/* What round-tripping a count of locations through its logarithm relies on. */
CHECK_CASE(test_counts_survive_logarithm)
{
    for (uint32_t count = 0; count <= 65535; count++) {
        float back = graft_exp(graft_ln(1.0F + (float)count)) - 0.5F;
        assert_int_equal((uint32_t)back, count);
    }
}
