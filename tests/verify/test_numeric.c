/* Numeric classes: binary16 is rounded as the compiler rounds it; rules that change bits for some
 * sizes, attributes or inputs are not `exact`, others are; those of the committed set give the same
 * bits on zeros of both signs, infinities, NaN, subnormals, huge and ordinary numbers; measured
 * errors of reassociating rules are what they can be worked out to be. */
#include "graph/base/bits.h"
#include "verify/sweep/numeric.h"

#include "graph/base/rng.h"
#include "graph/meaning/algebra_half.h"
#include "graph/rule/rounding.h"
#include "tests/support/check.h"
#include "tests/support/exact.h"
#include "tests/support/rows.h"
#include "verify/check.h"
#include "verify/sweep/cover.h"
#include "verify/sweep/rounding.h"

#include <math.h>
#include <string.h>

enum { HALVES = 65536, DRAWS = 200000 };

/* ----------------------------------------------------------------- binary16 */

#ifdef __FLT16_MANT_DIG__
static void check_half(double x)
{
    float want = (float)(_Float16)x;
    float got = graft_half_round(x);
    if (graft_bits_of_float(got) != graft_bits_of_float(want) && !(got != got && want != want)) {
        fail_msg("%a: %a, the compiler rounds to %a", x, (double)got, (double)want);
    }
}

CHECK_CASE(test_half)
{
    graft_rng rng = check_rng(1);
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
CHECK_CASE(test_half) { CHECK_SKIP("this compiler has no _Float16 to compare with"); }
#endif

/* -------------------------------------------------------------------- exact */

enum { SAMPLES = 24, ONE_IN = 6, BEYOND = 24, CORPUS_EVERY = 12 };

/* How many of the samples tell the sides of a rule apart. */
static uint32_t count_differing(graft_env *env, const graft_rule_entry *e, const graft_point *point,
                                uint32_t dtype)
{
    graft_instance instance;
    uint32_t count = 0;
    assert_int_equal(graft_instance_build(&instance, &e->rule, point), GRAFT_FIT_OK);
    for (uint32_t s = 0; s < SAMPLES; s++) {
        const exact_inputs kind = (exact_inputs)(s % EXACT_KINDS);
        count += exact_compare(env, &instance, kind, e->id + s, dtype) >= 0;
    }
    return count;
}

/* The instances of an exact rule's certificate, in env->unit, which begins anew; NULL of others. */
static const graft_point *exact_points(graft_env *env, const graft_rule_entry *e)
{
    graft_point *points = NULL;
    if (e->numeric == GRAFT_NUMERIC_EXACT) {
        graft_arena_reset(env->unit);
        assert_true(graft_cover_unpack(env->unit, &e->rule, e->cover_points, e->cover_bytes,
                                       e->cover, &points));
    }
    return points;
}

/* Exact rules of the committed set, at the instances of their certificates, and some at others. */
CHECK_CASE(test_committed)
{
    const graft_ruleset set = rows_committed(env);
    uint32_t tried = 0;
    uint32_t beyond = 0;
    uint32_t rules = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        const graft_rule_entry *e = &set.entries[i];
        const graft_point *points = exact_points(env, e);
        if (points == NULL) {
            continue;
        }
        for (uint32_t k = 0; k < e->cover; k++) {
            if (count_differing(env, e, &points[k], GRAFT_DTYPE_F32) > 0) {
                fail_msg("%s is not exact", e->name);
            }
            tried += SAMPLES;
        }
        beyond += rules++ % ONE_IN == 0 ? exact_try_beyond(env, e, BEYOND) : 0;
    }
    print_message("# %u samples, and %u past the bounds\n", tried, beyond);
    assert_true(tried > 0 && beyond > 0);
}

/* Of those that are exact in 16 bits no sample tells the sides apart where operators compute in
 * binary32 and round once; of the others some do. */
CHECK_CASE(test_halves)
{
    static const uint32_t types[] = {GRAFT_DTYPE_F16, GRAFT_DTYPE_BF16};
    const graft_ruleset set = rows_committed(env);
    uint32_t alike = 0;
    uint32_t others = 0;
    uint32_t apart = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        const graft_rule_entry *e = &set.entries[i];
        const bool holds = graft_rule_rounds_alike(&e->rule);
        uint32_t differing = 0;
        const graft_point *points = exact_points(env, e);
        if (points == NULL) {
            continue;
        }
        for (uint32_t k = 0; k < e->cover; k++) {
            differing += count_differing(env, e, &points[k], types[k % 2]);
        }
        if (holds && differing > 0) {
            fail_msg("%s is not exact in 16 bits", e->name);
        }
        alike += holds;
        others += !holds;
        apart += differing > 0;
    }
    print_message("# %u exact in 16 bits; of %u others %u differ\n", alike, others, apart);
    assert_true(alike > 0 && apart > 0);
}

/* In float16 2048 + 1 is 2048, so what is computed of numbers alone rounds with them; a result that
 * is rounded once more or less, or a sum with 0 that is left out, may be another. */
CHECK_CASE(test_rounded_alike)
{
    static const struct {
        const char *text;
        bool alike;
    } rows[] = {
        {"mul(a, sub(add(fill(value=2048.0, dim=[]), fill(value=1.0, dim=[])), "
         "fill(value=2048.0, dim=[]))) = mul(a, sub(add(fill(value=1.0, dim=[]), "
         "fill(value=0.0, dim=[])), fill(value=0.0, dim=[])))",               false},
        {"mul(a, add(reshape(fill(value=2048.0, dim=[1]), dim=[]), fill(value=1.0, dim=[]))) = "
         "mul(a, add(fill(value=2048.0, dim=[]), fill(value=1.0, dim=[])))",  false},
        {"mul(mul(pad#1(a, value=60000.0), pad#1(b, value=2.0)), pad#1(c, value=0.5)) = "
         "pad#1(mul(mul(a, b), c), value=60000.0)",                           false},
        {"add(concat(a, fill(value=2048.0, dim=[1]), axis=0), "
         "concat(b, fill(value=1.0, dim=[1]), axis=0)) = "
         "concat(add(a, b), fill(value=2049.0, dim=[1]), axis=0)",            false},
        {"tanh(matmul_bias(tanh(a), b, c, activation=none)) = "
         "matmul_bias(tanh(a), b, c, activation=tanh)",                       false},
        {"add(tanh(d), tanh(conv_bias#1(a, b, c, activation=none))) = "
         "add(tanh(d), conv_bias#1(a, b, c, activation=tanh))",               false},
        {"add(matmul(a, b), add(matmul_bias(a, b, c, activation=none), "
         "matmul_bias(a, d, c, activation=none))) = add(matmul(a, b), "
         "add(matmul_bias(a, b, c, activation=none), add(matmul(a, d), c)))", false},
        {"mul(add(matmul(a, b), fill#1(value=0.0)), add(c, fill#2())) = "
         "mul(matmul(a, b), add(c, fill#2()))",                               false},
        {"mul(a, relu(fill(value=2.0, dim=[]))) = mul(a, fill(value=2.0, dim=[]))",    true },
        {"add(a, fill(value=2.0, dim=[])) = add(fill(value=2.0, dim=[]), a)",          true },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const graft_rule rule = rows_parse(env, rows[i].text);
        assert_int_equal(graft_rule_rounds_alike(&rule), rows[i].alike);
    }
}

/* --------------------------------------------------------------- classifying */

/* The class, and whether the proof says so alone: the samples are there to take it away. */
CHECK_CASE(test_classified)
{
    const graft_check_options options = graft_check_defaults();
    const rule_rows classified = rows_read(env, "exact");
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < classified.count; i++) {
        const graft_rule *rule = &classified.rules[i];
        graft_prover prover;
        graft_prove_result counts;
        graft_symbolic_result alone;
        const graft_domain_options few = {.points = 20, .attempts = 20000};
        const graft_domain domain = graft_domain_find(env, env->unit, rule, &few);
        assert_true(domain.count > 0);
        graft_prover_open(&prover, &options.prove, &counts);
        graft_symbolic *symbolic = graft_symbolic_open(env, &prover);
        graft_symbolic_try_exact(symbolic, rule, &options.prove, &alone);
        graft_numeric class = graft_numeric_classify(env, symbolic, rule, domain.points,
                                                     domain.count, &options.prove);
        graft_symbolic_close(symbolic);
        graft_prover_close(&prover);
        if (alone.same != classified.holds[i] ||
            (class == GRAFT_NUMERIC_EXACT) != classified.holds[i]) {
            print_message("# %s: %s; the proof: %s\n", classified.texts[i],
                          graft_numeric_name(class), alone.same ? "exact" : alone.reason);
            wrong++;
        }
        graft_arena_reset(env->unit);
    }
    assert_int_equal(wrong, 0);
}

/* Through 8 bits numbers stay equal where they are moved and chosen, not where others are made. No
 * instance is looked at, and none need tell: the sides of the second differ for small scales. */
CHECK_CASE(test_bytes)
{
    static const struct {
        const char *text;
        graft_numeric class;
    } rules[] = {
        {"max_pool#1(dequantise#2(a)) = dequantise#2(max_pool#1(a))",                     GRAFT_NUMERIC_EXACT_INTEGER},
        {"hard_sigmoid(hard_sigmoid(dequantise#1(a), alpha=3000001.0, beta=0.0), alpha=3.0, "
         "beta=0.0) = hard_sigmoid(dequantise#1(a), alpha=9000003.0, beta=0.0)", GRAFT_NUMERIC_REASSOCIATING},
        {"leaky_relu(leaky_relu(dequantise#1(a), slope=0.1), slope=0.1) = "
         "leaky_relu(dequantise#1(a), slope=0.01)",                              GRAFT_NUMERIC_REASSOCIATING},
    };
    const graft_prove_options options = graft_prove_defaults();
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const graft_rule rule = rows_parse(env, rules[i].text);
        graft_prover prover;
        graft_prove_result counts;
        graft_prover_open(&prover, &options, &counts);
        graft_symbolic *symbolic = graft_symbolic_open(env, &prover);
        assert_int_equal(graft_numeric_classify(env, symbolic, &rule, NULL, 0, &options),
                         rules[i].class);
        graft_symbolic_close(symbolic);
        graft_prover_close(&prover);
    }
}

/* A part of the adversarial corpus. */
CHECK_CASE(test_corpus)
{
    for (uint32_t f = 0; f < CORPUS_FILES; f++) {
        exact_try_corpus(env, &corpus_files[f], f, CORPUS_EVERY);
    }
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
    rule = rows_parse(env, text);
    graft_check_sweep(&(graft_checking){env, sweeper, &options, &rule, NULL}, &check);
    assert_int_equal(check.outcome, GRAFT_CHECK_SWEPT);
    graft_rounding_measure(env, &rule, check.instances, check.cover, &rounding);
    return rounding;
}

CHECK_CASE(test_measured)
{
    /* One correctly rounded operation on halves: none is lost in binary32, where products and sums
     * of halves of like size are exact; in binary16 at most half a unit. */
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
