/* The float and field algebras: arithmetic, agreement with each other on every operator and
 * attribute, the promises of the operator table's flags, and whole graphs. */
#include "graph/base/bits.h"
#include "graph/meaning/algebra_field.h"
#include "graph/meaning/algebra_float.h"
#include "tests/support/build.h"
#include "tests/support/cases.h"

#include <math.h>

static const uint64_t prime = GRAFT_FIELD_PRIME;

/* One application in both algebras, large enough for every drawn case. */
typedef struct {
    graft_field field_in[GRAFT_MAX_INPUTS][CHECK_CASE_ELEMENTS];
    graft_field field_out[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];
    float float_in[GRAFT_MAX_INPUTS][CHECK_CASE_ELEMENTS];
    float float_out[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];
    graft_field_state state;
    check_case drawn;
} workspace;

static const graft_op_info *info_of(const workspace *w) { return graft_op(w->drawn.op); }

static size_t output_count(const workspace *w, uint32_t i) { return graft_count(&w->drawn.out[i]); }

/* Multiples of 1/8 in -4..4, never 0: sums and products of a few are exact in binary32. */
static void draw_inputs(graft_rng *rng, workspace *w)
{
    for (uint32_t i = 0; i < info_of(w)->input_count; i++) {
        for (size_t j = 0; j < graft_count(&w->drawn.in[i]); j++) {
            int32_t eighths = 1 + (int32_t)graft_rng_below(rng, 32);
            bool negative = w->drawn.op != GRAFT_OP_sqrt && w->drawn.op != GRAFT_OP_log &&
                            graft_rng_below(rng, 2) == 0;
            eighths = negative ? -eighths : eighths;
            w->field_in[i][j] = graft_field_rational(eighths, 8);
            w->float_in[i][j] = (float)eighths / 8.0F;
        }
    }
}

static void run_field(workspace *w)
{
    check_case_run_field(&w->state, &w->drawn, w->field_in, w->field_out);
}

static void draw_case(graft_rng *rng, uint32_t op, workspace *w)
{
    check_case_draw(rng, op, &w->drawn);
    draw_inputs(rng, w);
    w->state = (graft_field_state){0};
}

/* -------------------------------------------------------------- arithmetic */

static uint64_t slow_product(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b % prime);
}

static graft_field apply(graft_field_state *k, uint32_t op, graft_field a, graft_field b)
{
    return check_scalar_field(k, op, a, b);
}

CHECK_CASE(test_field_arithmetic)
{
    const uint64_t edges[] = {0, 1, 2, prime / 2, prime / 2 + 1, prime - 2, prime - 1};
    graft_field_state k = {0};
    graft_rng rng = check_rng(21);
    for (uint32_t i = 0; i < 2000; i++) {
        uint64_t x = i < 49 ? edges[i / 7] : graft_rng_next(&rng) % prime;
        uint64_t y = i < 49 ? edges[i % 7] : graft_rng_next(&rng) % prime;
        graft_field a = {x, 0.0};
        graft_field b = {y, 0.0};
        assert_true(apply(&k, GRAFT_OP_add, a, b).residue == (x + y) % prime);
        assert_true(apply(&k, GRAFT_OP_sub, a, b).residue == (x + prime - y) % prime);
        assert_true(apply(&k, GRAFT_OP_mul, a, b).residue == slow_product(x, y));
        if (y != 0) {
            uint64_t quotient = apply(&k, GRAFT_OP_div, a, b).residue;
            assert_true(quotient < prime && slow_product(quotient, y) == x);
        }
    }
    assert_int_equal(k.invalid_count, 0);
}

CHECK_CASE(test_field_numbers)
{
    assert_true(graft_field_integer(-1).residue == prime - 1);
    assert_true(graft_field_integer(INT64_MIN).residue == prime - 4); /* -2^63 = -4 */
    assert_true(graft_field_rational(-3, 6).residue == graft_field_rational(1, -2).residue);
    assert_true(slow_product(graft_field_rational(5, 7).residue, 7) == 5);
    const struct {
        float value;
        int64_t numerator;
        int64_t denominator;
    } rows[] = {
        {0.0F,             0,                1      },
        {-0.0F,            0,                1      },
        {1.0F,             1,                1      },
        {-2.5F,            -5,               2      },
        {0.1F,             13421773,         1 << 27},
        {16777215.0F,      16777215,         1      },
        {1099511627776.0F, INT64_C(1) << 40, 1      }
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        graft_field got = graft_field_float(graft_bits_of_float(rows[i].value));
        graft_field want = graft_field_rational(rows[i].numerator, rows[i].denominator);
        assert_true(got.residue == want.residue);
        assert_true(got.shadow == (double)rows[i].value);
    }
    /* The smallest subnormal, 2^-149: 2^149 is 2^(149 mod 61) = 2^27. */
    assert_true(slow_product(graft_field_float(1).residue, UINT64_C(1) << 27) == 1);
    assert_true(graft_field_float(1).shadow == ldexp(1.0, -149));
    /* The largest finite, (2^24 - 1) 2^104: 2^104 is 2^43. */
    assert_true(graft_field_float(0x7f7fffff).residue == slow_product(0xffffff, UINT64_C(1) << 43));
}

CHECK_CASE(test_field_random_numbers)
{
    graft_rng rng = check_rng(22);
    uint32_t negative = 0;
    uint32_t small = 0;
    uint32_t whole = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        graft_field x = graft_field_random(&rng, 0.25);
        bool found = false;
        for (int64_t d = 17; d <= 255 && !found; d++) {
            double numerator = x.shadow * (double)d;
            found = fabs(numerator - nearbyint(numerator)) < 1e-9 &&
                    graft_field_rational((int64_t)nearbyint(numerator), d).residue == x.residue;
        }
        assert_true(found);
        assert_true(x.residue != 0 && fabs(x.shadow) <= 8.0);
        negative += x.shadow < 0.0;
        small += fabs(x.shadow) < 1.0;
        whole += x.shadow == nearbyint(x.shadow);
    }
    assert_in_range(negative, 850, 1150);
    assert_in_range(small, 350, 650);
    assert_in_range(whole, 0, 200);
}

/* What algebra_field.h says that the functions keep. */
CHECK_CASE(test_field_laws)
{
    graft_field_state k = {0};
    graft_rng rng = check_rng(23);
    graft_field zero = graft_field_integer(0);
    graft_field one = graft_field_integer(1);
    for (uint32_t i = 0; i < 200; i++) {
        graft_field x = graft_field_random(&rng, 0.5);
        graft_field minus = apply(&k, GRAFT_OP_sub, zero, x);
        graft_field exp_x = apply(&k, GRAFT_OP_exp, x, zero);
        graft_field exp_minus = apply(&k, GRAFT_OP_exp, minus, zero);
        assert_true(apply(&k, GRAFT_OP_mul, exp_x, exp_minus).residue == 1);
        graft_field sigmoid = apply(&k, GRAFT_OP_sigmoid, x, zero);
        graft_field beyond = apply(&k, GRAFT_OP_add, one, exp_minus);
        assert_true(apply(&k, GRAFT_OP_mul, sigmoid, beyond).residue == 1);
        graft_field twice = apply(&k, GRAFT_OP_sigmoid, apply(&k, GRAFT_OP_add, x, x), zero);
        graft_field tanh_x = apply(&k, GRAFT_OP_tanh, x, zero);
        assert_true(apply(&k, GRAFT_OP_add, tanh_x, one).residue ==
                    apply(&k, GRAFT_OP_add, twice, twice).residue);
        const uint32_t odd[] = {GRAFT_OP_tanh, GRAFT_OP_erf};
        for (uint32_t f = 0; f < 2; f++) {
            graft_field total =
                apply(&k, GRAFT_OP_add, apply(&k, odd[f], x, zero), apply(&k, odd[f], minus, zero));
            assert_true(total.residue == 0);
        }
        graft_field a = graft_field_random(&rng, 0.0);
        graft_field b = graft_field_random(&rng, 0.0);
        graft_field root = apply(&k, GRAFT_OP_sqrt, apply(&k, GRAFT_OP_mul, a, b), zero);
        assert_true(root.residue == apply(&k, GRAFT_OP_mul, apply(&k, GRAFT_OP_sqrt, a, zero),
                                          apply(&k, GRAFT_OP_sqrt, b, zero))
                                        .residue);
    }
    assert_true(apply(&k, GRAFT_OP_exp, zero, zero).residue == 1);
    assert_true(apply(&k, GRAFT_OP_tanh, zero, zero).residue == 0);
    assert_int_equal(k.invalid_count, 0);
}

CHECK_CASE(test_field_faults_are_counted)
{
    graft_field_state k = {0};
    graft_field zero = graft_field_integer(0);
    graft_field one = graft_field_integer(1);
    (void)apply(&k, GRAFT_OP_div, one, zero);
    assert_int_equal(k.invalid_count, 1);
    (void)apply(&k, GRAFT_OP_sqrt, graft_field_integer(-2), zero);
    assert_int_equal(k.invalid_count, 2);
    (void)apply(&k, GRAFT_OP_sqrt, zero, zero);
    assert_int_equal(k.invalid_count, 2);
    /* Equal numbers have an order whatever their shadows; different ones need shadows apart. */
    graft_field near = {1, 1.0 + 1e-14};
    (void)apply(&k, GRAFT_OP_max, one, near);
    assert_int_equal(k.ambiguous_count, 0);
    near.residue = 2;
    (void)apply(&k, GRAFT_OP_max, one, near);
    (void)apply(&k, GRAFT_OP_min, one, near);
    assert_int_equal(k.ambiguous_count, 2);
    near.shadow = (double)NAN;
    (void)apply(&k, GRAFT_OP_max, one, near);
    assert_int_equal(k.ambiguous_count, 3);
    /* Of e^1000 / e^1000, whose shadow is inf / inf, nobody knows the sign. */
    graft_field_state fresh = {0};
    graft_field huge = apply(&fresh, GRAFT_OP_exp, graft_field_integer(1000), zero);
    graft_field overflowed = apply(&fresh, GRAFT_OP_div, huge, huge);
    (void)apply(&fresh, GRAFT_OP_sqrt, overflowed, zero);
    assert_int_equal(fresh.ambiguous_count, 1);
    (void)apply(&fresh, GRAFT_OP_log, overflowed, zero);
    assert_int_equal(fresh.ambiguous_count, 2);
    assert_int_equal(fresh.invalid_count, 0);
}

CHECK_CASE(test_order_follows_shadows)
{
    graft_field_state k = {0};
    graft_field low = graft_field_rational(-7, 3);
    graft_field high = graft_field_rational(2, 5);
    assert_true(apply(&k, GRAFT_OP_max, low, high).residue == high.residue);
    assert_true(apply(&k, GRAFT_OP_max, high, low).residue == high.residue);
    assert_true(apply(&k, GRAFT_OP_min, low, high).residue == low.residue);
    assert_true(apply(&k, GRAFT_OP_relu, low, low).residue == 0);
    assert_true(apply(&k, GRAFT_OP_relu, high, low).residue == high.residue);
    assert_int_equal(k.ambiguous_count, 0);
}

/* --------------------------------------------------------------- agreement */

/* Divides, or calls a function: then binary32 rounds. */
static bool is_rounded(const check_case *drawn)
{
    const graft_op_info *info = graft_op(drawn->op);
    bool rounded = drawn->op == GRAFT_OP_div || drawn->op == GRAFT_OP_avg_pool ||
                   drawn->op == GRAFT_OP_global_avg_pool || drawn->op == GRAFT_OP_reduce_mean ||
                   (info->flags & (GRAFT_FLAG_UNKNOWN_FN | GRAFT_FLAG_COMPOSED)) != 0;
    for (uint32_t i = 0; i < info->attr_count; i++) {
        if (graft_op_attr(drawn->op, i)->kind == GRAFT_ATTR_ACTIVATION) {
            rounded = drawn->attrs[i] == GRAFT_ACT_SIGMOID || drawn->attrs[i] == GRAFT_ACT_TANH;
        }
    }
    return rounded;
}

/* The exact result is a number of the float algebra, and both shadow and residue are that number.
 */
static bool agree_exactly(graft_field field, float number)
{
    return field.shadow == (double)number &&
           field.residue == graft_field_float(graft_bits_of_float(number)).residue;
}

static void check_agreement(const workspace *w)
{
    bool rounded = is_rounded(&w->drawn);
    /* Small differences of numbers up to 4 lose digits. */
    double slack =
        w->drawn.op == GRAFT_OP_layer_norm || w->drawn.op == GRAFT_OP_instance_norm ? 4e-6 : 1e-7;
    for (uint32_t i = 0; i < info_of(w)->output_count; i++) {
        for (size_t j = 0; j < output_count(w, i); j++) {
            graft_field field = w->field_out[i][j];
            float number = w->float_out[i][j];
            bool near = fabs(field.shadow - (double)number) <= 1e-6 * fabs(field.shadow) + slack;
            if (rounded ? !near : !agree_exactly(field, number)) {
                check_case_print(&w->drawn);
                fail_msg("output %u, element %zu: field %.17g, float %.9g", i, j, field.shadow,
                         (double)number);
            }
        }
    }
}

CHECK_CASE(test_float_and_field_agree)
{
    workspace *w = GRAFT_NEW(env->unit, workspace, 1);
    graft_rng rng = check_rng(24);
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        for (uint32_t i = 0; i < 150; i++) {
            draw_case(&rng, op, w);
            run_field(w);
            check_case_run_float(&w->drawn, w->float_in, w->float_out);
            assert_int_equal(w->state.ambiguous_count, 0);
            assert_int_equal(w->state.invalid_count, 0);
            check_agreement(w);
        }
    }
}

/* ------------------------------------------------------------------- flags */

static void swap_first_inputs(workspace *w)
{
    graft_shape shape = w->drawn.in[0];
    w->drawn.in[0] = w->drawn.in[1];
    w->drawn.in[1] = shape;
    for (size_t i = 0; i < CHECK_CASE_ELEMENTS; i++) {
        graft_field x = w->field_in[0][i];
        w->field_in[0][i] = w->field_in[1][i];
        w->field_in[1][i] = x;
    }
}

/* out(a + s b) = out(a) + s out(b), other inputs fixed. No linear operator has two outputs. */
static void check_linear(graft_rng *rng, workspace *w, workspace *other)
{
    *other = *w;
    graft_field_state k = {0};
    graft_field scale = graft_field_rational(-5, 3);
    for (size_t i = 0; i < graft_count(&w->drawn.in[0]); i++) {
        other->field_in[0][i] = graft_field_random(rng, 0.5);
    }
    run_field(w);
    run_field(other);
    for (size_t i = 0; i < graft_count(&w->drawn.in[0]); i++) {
        graft_field part = apply(&k, GRAFT_OP_mul, scale, other->field_in[0][i]);
        other->field_in[0][i] = apply(&k, GRAFT_OP_add, w->field_in[0][i], part);
    }
    for (size_t i = 0; i < output_count(w, 0); i++) {
        graft_field part = apply(&k, GRAFT_OP_mul, scale, other->field_out[0][i]);
        w->field_out[0][i] = apply(&k, GRAFT_OP_add, w->field_out[0][i], part);
    }
    run_field(other);
    for (size_t i = 0; i < output_count(w, 0); i++) {
        assert_true(w->field_out[0][i].residue == other->field_out[0][i].residue);
    }
}

static void check_moves(const workspace *w)
{
    for (uint32_t i = 0; i < info_of(w)->output_count; i++) {
        for (size_t j = 0; j < output_count(w, i); j++) {
            bool found = false;
            for (uint32_t in = 0; in < info_of(w)->input_count && !found; in++) {
                for (size_t from = 0; from < graft_count(&w->drawn.in[in]) && !found; from++) {
                    found = w->field_in[in][from].residue == w->field_out[i][j].residue;
                }
            }
            assert_true(found);
        }
    }
}

/* Growing one element of a monotone selection's input shrinks no output. */
static void check_monotone(graft_rng *rng, workspace *w, workspace *other)
{
    *other = *w;
    graft_field_state k = {0};
    size_t place = graft_rng_below(rng, (uint32_t)graft_count(&w->drawn.in[0]));
    other->field_in[0][place] =
        apply(&k, GRAFT_OP_add, w->field_in[0][place], graft_field_rational(7, 3));
    run_field(w);
    run_field(other);
    for (size_t i = 0; i < output_count(w, 0); i++) {
        assert_true(other->field_out[0][i].shadow >= w->field_out[0][i].shadow);
    }
}

/* Another element of the only input changes no output element but its own. */
static void check_elementwise(graft_rng *rng, workspace *w, workspace *other)
{
    *other = *w;
    size_t place = graft_rng_below(rng, (uint32_t)graft_count(&w->drawn.in[0]));
    other->field_in[0][place] = graft_field_random(rng, 0.0);
    run_field(w);
    run_field(other);
    for (size_t i = 0; i < output_count(w, 0); i++) {
        assert_true(i == place || w->field_out[0][i].residue == other->field_out[0][i].residue);
    }
}

static void check_commutes(workspace *w, workspace *other)
{
    *other = *w;
    run_field(w);
    swap_first_inputs(other);
    run_field(other);
    for (size_t i = 0; i < output_count(w, 0); i++) {
        assert_true(w->field_out[0][i].residue == other->field_out[0][i].residue);
    }
}

/* Each flag of a row is true of its body. */
CHECK_CASE(test_flags_hold)
{
    workspace *w = GRAFT_NEW(env->unit, workspace, 2);
    graft_rng rng = check_rng(25);
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        uint32_t flags = graft_op(op)->flags;
        for (uint32_t i = 0; i < 20; i++) {
            draw_case(&rng, op, w);
            if ((flags & GRAFT_FLAG_COMMUTES) != 0) {
                check_commutes(w, &w[1]);
            }
            if ((flags & GRAFT_FLAG_LINEAR) != 0) {
                check_linear(&rng, w, &w[1]);
            }
            if ((flags & GRAFT_FLAG_ELEMENTWISE) != 0 && graft_op(op)->input_count == 1) {
                check_elementwise(&rng, w, &w[1]);
            }
            if ((flags & GRAFT_FLAG_PIECEWISE) != 0) {
                check_monotone(&rng, w, &w[1]);
            }
            if ((flags & GRAFT_FLAG_MOVES) != 0) {
                run_field(w);
                check_moves(w);
            }
        }
    }
}

/* ------------------------------------------------------------ float values */

static float apply_float(uint32_t op, float a, float b)
{
    return check_scalar_float(op, NULL, a, b);
}

CHECK_CASE(test_float_special_values)
{
    const float infinity = (float)INFINITY;
    const float nan = (float)NAN;
    assert_true(apply_float(GRAFT_OP_relu, infinity, 0.0F) == infinity);
    assert_true(apply_float(GRAFT_OP_relu, -infinity, 0.0F) == 0.0F);
    assert_true(isnan(apply_float(GRAFT_OP_relu, nan, 0.0F)));
    const uint32_t order[] = {GRAFT_OP_max, GRAFT_OP_min};
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(isnan(apply_float(order[i], nan, 1.0F)));
        assert_true(isnan(apply_float(order[i], 1.0F, nan)));
        assert_true(isnan(apply_float(order[i], -infinity, nan)));
    }
    assert_true(apply_float(GRAFT_OP_div, 1.0F, 0.0F) == infinity);
    assert_true(apply_float(GRAFT_OP_sigmoid, -infinity, 0.0F) == 0.0F);
    assert_true(apply_float(GRAFT_OP_sigmoid, 200.0F, 0.0F) == 1.0F);
    assert_true(apply_float(GRAFT_OP_tanh, -infinity, 0.0F) == -1.0F);
    assert_true(apply_float(GRAFT_OP_exp, 89.0F, 0.0F) == infinity);
}

/* A softmax of large elements neither overflows nor loses them. */
CHECK_CASE(test_softmax_is_stable)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_shape shape = SHAPE(3);
    const float x[] = {1000.0F, 999.0F, -1000.0F};
    float y[3] = {0};
    const float *const in[] = {x};
    float *const out[] = {y};
    const graft_call call = {attrs, &shape, &shape};
    graft_float_run(GRAFT_OP_softmax, &call, in, out);
    assert_true(fabsf(y[0] - 0.7310586F) < 1e-6F && fabsf(y[1] - 0.2689414F) < 1e-6F);
    assert_true(y[2] == 0.0F);
}

/* ------------------------------------------------------------------ graphs */

CHECK_CASE(test_graph_refusals)
{
    const graft_graph *graph = build_text(env->unit, "x = input 4; y = relu x; out y").graph;
    graft_order order = build_order(env->unit, graph);
    const float **values = GRAFT_NEW(env->unit, const float *, graph->value_end);
    graft_status status = graft_float_model(env, env->unit, NULL, graph, &order, values);
    check_failed(env, status, GRAFT_BAD_INPUT, "which has no data");
    const graft_graph *other = build_text(env->unit, "x = input 2; y = opaque x").graph;
    order = build_order(env->unit, other);
    status = graft_float_model(env, env->unit, NULL, other, &order, values);
    check_failed(env, status, GRAFT_UNSUPPORTED, "node 0 is opaque");
}
