/* Numeric classes: binary16 is rounded as the compiler rounds it; `exact` rules of the committed
 * set give the same bits on zeros of both signs, infinities, NaN, subnormals and huge numbers;
 * measured errors of reassociating rules are what they can be worked out to be. */
#include "verify/numeric.h"

#include "graph/algebra_float.h"
#include "graph/algebra_half.h"
#include "graph/rng.h"
#include "graph/ruleparse.h"
#include "tests/support/check.h"
#include "verify/check.h"
#include "verify/rounding.h"

#include <math.h>
#include <string.h>

#define NUM                       float
#define ALG(f)                    f##_f32
#define RUN(k, op, call, in, out) ((void)(k), graft_float_run((op), (call), (in), (out)))
#include "verify/sides.inc"

enum { SAMPLES = 24, HALVES = 65536, DRAWS = 200000 };

/* ----------------------------------------------------------------- binary16 */

static uint32_t bits_of(float x)
{
    uint32_t bits = 0;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#ifdef __FLT16_MANT_DIG__
static void check_half(double x)
{
    float want = (float)(_Float16)x;
    float got = graft_half_round(x);
    if (bits_of(got) != bits_of(want) && !(got != got && want != want)) {
        fail_msg("%a: %a, the compiler rounds to %a", x, (double)got, (double)want);
    }
}

static void test_half(void **state)
{
    graft_rng rng;
    (void)state;
    graft_rng_seed(&rng, 1);
    for (uint32_t i = 0; i < HALVES; i++) {
        uint16_t bits = (uint16_t)i;
        _Float16 half;
        memcpy(&half, &bits, sizeof half);
        check_half((double)half);
        /* Halfway to the next one, and a little to both sides. */
        double unit = ldexp(1.0, -25);
        check_half((double)half + unit);
        check_half((double)half * (1.0 + ldexp(1.0, -11)));
        check_half((double)half * (1.0 + ldexp(1.0, -11) + ldexp(1.0, -40)));
    }
    for (uint32_t i = 0; i < DRAWS; i++) {
        check_half(ldexp(graft_rng_uniform(&rng) - 0.5, (int)graft_rng_below(&rng, 48) - 30));
    }
}
#else
static void test_half(void **state)
{
    (void)state;
    CHECK_SKIP("this compiler has no _Float16 to compare with");
}
#endif

/* -------------------------------------------------------------------- exact */

static const uint32_t specials[] = {
    0x00000000u, 0x80000000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x00000001u, 0x80000001u,
    0x007fffffu, 0x00800000u, 0x7f7fffffu, 0xff7fffffu, 0x3f800000u, 0xbf800000u, 0x3dcccccdu,
};

/* Element by element; the first output that differs, or -1. */
static int compare_sample(graft_env *env, const graft_instance *instance, uint64_t seed)
{
    const float *vars[GRAFT_RULE_MAX_VARS] = {0};
    const float *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const float *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    /* Some samples of two values only, so that equal ones meet. */
    uint32_t first = graft_rng_below(&rng, sizeof specials / sizeof specials[0]);
    uint32_t kinds = seed % 2 == 0 ? (uint32_t)(sizeof specials / sizeof specials[0]) : 2;
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        float *tensor = GRAFT_NEW(env->scratch, float, count);
        for (size_t i = 0; i < count; i++) {
            uint32_t k = (first + graft_rng_below(&rng, kinds)) %
                         (uint32_t)(sizeof specials / sizeof specials[0]);
            memcpy(&tensor[i], &specials[k], sizeof tensor[i]);
        }
        vars[v] = tensor;
    }
    evaluate_side_f32(NULL, env->scratch, instance, &instance->source, vars, left);
    evaluate_side_f32(NULL, env->scratch, instance, &instance->target, vars, right);
    for (uint32_t o = 0; o < instance->rule->output_count; o++) {
        size_t count = (size_t)graft_shape_elements(graft_instance_shape(
            instance, &instance->source, instance->source.pattern->outputs[o]));
        if (left[o] == NULL || right[o] == NULL) {
            return (int)o;
        }
        for (size_t i = 0; i < count; i++) {
            bool both_nan = left[o][i] != left[o][i] && right[o][i] != right[o][i];
            if (!both_nan && bits_of(left[o][i]) != bits_of(right[o][i])) {
                return (int)o;
            }
        }
    }
    return -1;
}

/* How many samples were tried, none of which tells the sides of an exact rule apart. */
static uint32_t try_samples(graft_env *env, const graft_rule_entry *e, const graft_point *point)
{
    graft_instance instance;
    assert_int_equal(graft_instance_build(&instance, &e->rule, point), GRAFT_FIT_OK);
    for (uint32_t s = 0; s < SAMPLES; s++) {
        graft_mark mark = graft_arena_mark(env->scratch);
        if (compare_sample(env, &instance, e->id + s) >= 0) {
            fail_msg("%s is not exact", e->name);
        }
        graft_arena_release(env->scratch, mark);
    }
    return SAMPLES;
}

static void test_exact(void **state)
{
    graft_env *env = *state;
    graft_ruleset set;
    uint32_t tried = 0;
    if (graft_rulefile_read(env, env->life, "rules/graft.rules", &set) != GRAFT_OK) {
        CHECK_SKIP("rules/graft.rules has not been generated");
    }
    for (uint32_t i = 0; i < set.count; i++) {
        const graft_rule_entry *e = &set.entries[i];
        graft_point *points = NULL;
        if (e->numeric != GRAFT_NUMERIC_EXACT) {
            continue;
        }
        graft_arena_reset(env->unit);
        assert_true(graft_cover_unpack(env->unit, &e->rule, e->cover_points, e->cover_bytes,
                                       e->cover, &points));
        for (uint32_t k = 0; k < e->cover; k++) {
            tried += try_samples(env, e, &points[k]);
        }
    }
    print_message("# %u samples\n", tried);
    assert_true(tried > 0);
}

/* ----------------------------------------------------------------- measured */

static graft_rounding measure(graft_env *env, const char *text)
{
    graft_rule rule;
    graft_rounding rounding;
    graft_check check;
    graft_check_options options = graft_check_defaults();
    graft_sweeper *sweeper = GRAFT_NEW(env->unit, graft_sweeper, 1);
    options.points = 100;
    options.cover = 6;
    graft_sweep_open(sweeper);
    if (graft_rule_parse(env, "rule", text, &rule) != GRAFT_OK) {
        fail_msg("%s", env->message);
    }
    graft_check_sweep(env, sweeper, &rule, NULL, &options, &check);
    assert_int_equal(check.outcome, GRAFT_CHECK_SWEPT);
    graft_rounding_measure(env, &rule, check.instances, check.cover, &rounding);
    return rounding;
}

static void test_measured(void **state)
{
    /* One correctly rounded operation on halves: none is lost in binary32, where products and sums
     * of halves of like size are exact; in binary16 at most half a unit. */
    graft_env *env = *state;
    graft_rounding one = measure(env, "mul(a, b) = mul(b, a)");
    assert_true(one.elements > 0);
    for (uint32_t s = 0; s < GRAFT_ROUNDING_SIDES; s++) {
        assert_int_equal(one.sides[GRAFT_ROUNDING_F32][s].most, 0);
        assert_true(one.sides[GRAFT_ROUNDING_F16][s].most <= 50);
        assert_true(one.sides[GRAFT_ROUNDING_F16][s].most > 25);
        assert_int_equal(one.sides[GRAFT_ROUNDING_F16][s].overflows, 0);
    }
    /* Two roundings, each of half a unit of something up to twice as large; in binary32 the product
     * of the target is exact. */
    graft_rounding two = measure(env, "mul(a, div(b, c)) = div(mul(a, b), c)");
    for (uint32_t f = 0; f < GRAFT_ROUNDING_FORMATS; f++) {
        for (uint32_t s = 0; s < GRAFT_ROUNDING_SIDES; s++) {
            assert_true(two.sides[f][s].median > 0 && two.sides[f][s].median <= 60);
            assert_true(two.sides[f][s].most > 25 && two.sides[f][s].most <= 200);
        }
    }
    assert_true(two.sides[GRAFT_ROUNDING_F16][GRAFT_ROUNDING_TARGET].most > 50);
    assert_true(two.sides[GRAFT_ROUNDING_F32][GRAFT_ROUNDING_TARGET].most <= 50);
    /* Overflow: squares of exponentials in binary16. */
    graft_rounding large = measure(env, "exp(add(a, a)) = exp(mul(a, fill(value=2.0, dim=[])))");
    assert_true(large.sides[GRAFT_ROUNDING_F16][GRAFT_ROUNDING_SOURCE].overflows > 0);
    assert_int_equal(large.sides[GRAFT_ROUNDING_F32][GRAFT_ROUNDING_SOURCE].overflows, 0);
    graft_rounding again = measure(env, "mul(a, div(b, c)) = div(mul(a, b), c)");
    assert_memory_equal(&two, &again, sizeof two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_half),
        CHECK_TEST(test_exact),
        CHECK_TEST(test_measured),
    };
    return cmocka_run_group_tests_name("numeric classes", tests, NULL, NULL);
}
