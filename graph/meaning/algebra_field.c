/* algebra_field.c - arithmetic modulo 2^61 - 1 with a shadow real, and the operator bodies over it.
 */
#include "algebra_field.h"

#include <assert.h>
#include <math.h>

static const uint64_t prime = GRAFT_FIELD_PRIME;

/* Shadows of numbers that differ are taken to be in the right order when they are this far apart,
 * relative to their size: ten million times the rounding error of one operation. */
static const double order_tolerance = 1e-9;
static const double remainder_tolerance = 1e-6; /* How near to a whole number a ratio may be. */

/* --------------------------------------------------------------- residues */

static inline uint64_t add_residues(uint64_t a, uint64_t b)
{
    uint64_t s = a + b;
    return s >= prime ? s - prime : s;
}

static inline uint64_t negate_residue(uint64_t a) { return a == 0 ? 0 : prime - a; }

/* 2^61 is 1: the product's high part is added to its low part. */
static inline uint64_t multiply_residues(uint64_t a, uint64_t b)
{
    unsigned __int128 wide = (unsigned __int128)a * b;
    uint64_t s = ((uint64_t)wide & prime) + (uint64_t)(wide >> 61);
    return s >= prime ? s - prime : s;
}

static uint64_t square_residue(uint64_t a, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        a = multiply_residues(a, a);
    }
    return a;
}

/* The inverse of a small number d: with s p = 1 modulo d, (1 - s p) / d times d is 1 modulo p. */
static uint64_t invert_small(uint64_t d)
{
    int64_t remainders[2] = {(int64_t)d, (int64_t)(prime % d)};
    int64_t factors[2] = {0, 1}; /* remainder = factor p, modulo d. */
    while (remainders[1] > 1) {
        int64_t quotient = remainders[0] / remainders[1];
        int64_t remainder = remainders[0] - quotient * remainders[1];
        int64_t factor = factors[0] - quotient * factors[1];
        remainders[0] = remainders[1];
        remainders[1] = remainder;
        factors[0] = factors[1];
        factors[1] = factor;
    }
    uint64_t s = (uint64_t)(factors[1] < 0 ? factors[1] + (int64_t)d : factors[1]);
    return prime - (uint64_t)(((unsigned __int128)s * prime - 1) / d);
}

/* a^(p-2), with p - 2 = 2^61 - 3 = 4 (2^59 - 1) + 1. The power 2^59 - 1 is built from runs of ones:
 * 2^(m+n) - 1 = (2^m - 1) 2^n + (2^n - 1). */
static uint64_t invert_residue(uint64_t a)
{
    if (a >> 16 == 0 && a > 1) {
        return invert_small(a);
    }
    uint64_t ones_2 = multiply_residues(square_residue(a, 1), a);
    uint64_t ones_3 = multiply_residues(square_residue(ones_2, 1), a);
    uint64_t ones_6 = multiply_residues(square_residue(ones_3, 3), ones_3);
    uint64_t ones_7 = multiply_residues(square_residue(ones_6, 1), a);
    uint64_t ones_14 = multiply_residues(square_residue(ones_7, 7), ones_7);
    uint64_t ones_28 = multiply_residues(square_residue(ones_14, 14), ones_14);
    uint64_t ones_29 = multiply_residues(square_residue(ones_28, 1), a);
    uint64_t ones_58 = multiply_residues(square_residue(ones_29, 29), ones_29);
    uint64_t ones_59 = multiply_residues(square_residue(ones_58, 1), a);
    return multiply_residues(square_residue(ones_59, 2), a);
}

/* A fixed random function onto [1, p). The finaliser is splitmix64's. */
static uint64_t scramble_residue(uint64_t a, uint64_t key)
{
    uint64_t z = a + key;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z = (z ^ (z >> 31)) >> 3;
    return z % (prime - 1) + 1;
}

static uint64_t sigmoid_residue(uint64_t a)
{
    const uint64_t key = UINT64_C(0x9e3779b97f4a7c15);
    if (a == 0) {
        return (prime + 1) / 2;
    }
    return a <= prime / 2 ? scramble_residue(a, key)
                          : add_residues(1, negate_residue(scramble_residue(prime - a, key)));
}

/* Both sides of a rule divide by much the same numbers, and broadcasting repeats them. */
static uint64_t recall_inverse(graft_field_state *state, uint64_t a)
{
    uint32_t at = (uint32_t)a % GRAFT_FIELD_INVERSES;
    if (state->divisors[at] != a) {
        state->divisors[at] = a;
        state->inverses[at] = invert_residue(a);
    }
    return state->inverses[at];
}

/* s / (1 - s) for s = sigmoid(x), which is 1 with a chance of 1 / p; that is passed over. */
static uint64_t exp_residue(graft_field_state *state, uint64_t a)
{
    uint64_t s = sigmoid_residue(a);
    return multiply_residues(s, recall_inverse(state, add_residues(1, negate_residue(s))));
}

/* -------------------------------------------------------------- primitives */

static inline graft_field lift_field(void *k, int32_t value)
{
    (void)k;
    uint64_t magnitude = value < 0 ? (uint64_t) - (int64_t)value : (uint64_t)value;
    return (graft_field){value < 0 ? negate_residue(magnitude) : magnitude, value};
}

static inline graft_field lift_float_field(void *k, int32_t bits)
{
    (void)k;
    return graft_field_float(bits);
}

static inline graft_field sum_field(void *k, graft_field a, graft_field b)
{
    (void)k;
    return (graft_field){add_residues(a.residue, b.residue), a.shadow + b.shadow};
}

static inline graft_field difference_field(void *k, graft_field a, graft_field b)
{
    (void)k;
    return (graft_field){add_residues(a.residue, negate_residue(b.residue)), a.shadow - b.shadow};
}

static inline graft_field product_field(void *k, graft_field a, graft_field b)
{
    (void)k;
    return (graft_field){multiply_residues(a.residue, b.residue), a.shadow * b.shadow};
}

static graft_field quotient_field(void *k, graft_field a, graft_field b)
{
    graft_field_state *state = k;
    if (b.residue == 0) {
        state->invalid_count++;
        return (graft_field){0, (double)NAN};
    }
    return (graft_field){multiply_residues(a.residue, recall_inverse(state, b.residue)),
                         a.shadow / b.shadow};
}

/* Whether a is above b. Equal residues are equal numbers, whatever their shadows say; what is
 * undefined has no order. */
static inline bool is_above(graft_field_state *state, graft_field a, graft_field b)
{
    double tolerance = order_tolerance * (1.0 + fabs(a.shadow) + fabs(b.shadow));
    bool apart = fabs(a.shadow - b.shadow) > tolerance; /* False for NaN. */
    state->asked_count++;
    if (!apart && (a.residue != b.residue || isnan(a.shadow) || isnan(b.shadow))) {
        state->ambiguous_count++;
    }
    return a.shadow > b.shadow;
}

static inline graft_field max_field(void *k, graft_field a, graft_field b)
{
    return is_above(k, a, b) ? a : b;
}

static inline graft_field min_field(void *k, graft_field a, graft_field b)
{
    return is_above(k, a, b) ? b : a;
}

static inline graft_field less_field(void *k, graft_field a, graft_field b)
{
    return graft_field_integer(is_above(k, b, a) && a.residue != b.residue ? 1 : 0);
}

/* Numbers that differ by less than shadows tell are not the same, as their residues say. */
static inline graft_field equal_field(void *k, graft_field a, graft_field b)
{
    graft_field_state *state = k;
    state->asked_count++;
    state->ambiguous_count += isnan(a.shadow) || isnan(b.shadow) ? 1 : 0;
    return graft_field_integer(a.residue == b.residue ? 1 : 0);
}

/* a less as many b as shadows say, if they tell. */
static graft_field remainder_field(void *k, graft_field a, graft_field b)
{
    graft_field_state *state = k;
    const double ratio = a.shadow / b.shadow;
    const double nearest = round(ratio);
    graft_field times = lift_field(k, 0);
    if (b.residue == 0) {
        return quotient_field(k, a, b);
    }
    state->asked_count++;
    if (!(fabs(ratio) < INT32_MAX)) {
        state->ambiguous_count++;
        return times;
    }
    times = lift_field(k, (int32_t)nearest);
    if (a.residue == multiply_residues(times.residue, b.residue)) {
        return lift_field(k, 0);
    }
    state->ambiguous_count += fabs(ratio - nearest) < remainder_tolerance ? 1 : 0;
    return difference_field(k, a, product_field(k, lift_field(k, (int32_t)ratio), b));
}

static inline graft_field choose_field(void *k, graft_field c, graft_field a, graft_field b)
{
    (void)k;
    return c.residue != 0 ? a : b;
}

static graft_field exp_field(void *k, graft_field x)
{
    return (graft_field){exp_residue(k, x.residue), exp(x.shadow)};
}

static graft_field sigmoid_field(void *k, graft_field x)
{
    (void)k;
    return (graft_field){sigmoid_residue(x.residue), 1.0 / (1.0 + exp(-x.shadow))};
}

static graft_field tanh_field(void *k, graft_field x)
{
    (void)k;
    uint64_t s = sigmoid_residue(add_residues(x.residue, x.residue));
    return (graft_field){add_residues(add_residues(s, s), prime - 1), tanh(x.shadow)};
}

static graft_field erf_field(void *k, graft_field x)
{
    (void)k;
    const uint64_t key = UINT64_C(0xd1b54a32d192ed03);
    uint64_t r = x.residue;
    if (r != 0) {
        r = r <= prime / 2 ? scramble_residue(r, key)
                           : negate_residue(scramble_residue(prime - r, key));
    }
    return (graft_field){r, erf(x.shadow)};
}

/* (p + 1) / 4 = 2^59. */
static graft_field sqrt_field(void *k, graft_field x)
{
    graft_field_state *state = k;
    state->asked_count++;
    if (isnan(x.shadow)) {
        state->ambiguous_count += state->invalid_count == 0 ? 1 : 0; /* Shadows overflowed. */
        return x;
    }
    if (x.residue != 0 && x.shadow < -order_tolerance) {
        state->invalid_count++;
        return (graft_field){0, (double)NAN};
    }
    state->ambiguous_count += x.residue != 0 && !(x.shadow > 0.0) ? 1 : 0;
    return (graft_field){square_residue(x.residue, 59), sqrt(fabs(x.shadow))};
}

/* A fixed random function of the residue, by its key. */
static graft_field random_field(graft_field x, uint64_t key, double shadow)
{
    return (graft_field){scramble_residue(x.residue, key), shadow};
}

static graft_field log_field(void *k, graft_field x)
{
    graft_field_state *state = k;
    state->asked_count++;
    if (x.residue == 0 || x.shadow < -order_tolerance) {
        state->invalid_count++;
        return (graft_field){0, (double)NAN};
    }
    bool overflowed = isnan(x.shadow) && state->invalid_count == 0;
    state->ambiguous_count += overflowed || x.shadow < order_tolerance ? 1 : 0;
    return random_field(x, UINT64_C(0xa0761d6478bd642f), log(x.shadow));
}

static graft_field sin_field(void *k, graft_field x)
{
    (void)k;
    return random_field(x, UINT64_C(0xe7037ed1a0b428db), sin(x.shadow));
}

static graft_field cos_field(void *k, graft_field x)
{
    (void)k;
    return random_field(x, UINT64_C(0x8ebc6af09c88c6e3), cos(x.shadow));
}

static graft_field softmax_shift_field(void *k, const graft_field *row, size_t count, size_t step)
{
    (void)row, (void)count, (void)step;
    return lift_field(k, 0);
}

/* The whole number is known by the shadow, but next to a half. */
static graft_field round_field(void *k, graft_field a, graft_field b)
{
    graft_field_state *state = k;
    double x = quotient_field(k, a, b).shadow;
    double apart = fabs(fabs(x - rint(x)) - 0.5);
    state->asked_count++;
    state->ambiguous_count += isnan(x) || apart < order_tolerance * (1.0 + fabs(x)) ? 1 : 0;
    return fabs(x) < 0x1p53 ? graft_field_integer((int64_t)rint(x)) : (graft_field){0, (double)NAN};
}

#define NUM    graft_field
#define ALG(f) f##_field
#include "operator_bodies.inc"

void graft_field_run(graft_field_state *k, uint32_t op, const graft_call *call,
                     const graft_field *const in[], graft_field *const out[])
{
    assert(graft_op(op) != NULL);
    run_field[op](k, call, in, out);
}

/* ------------------------------------------------------------------ making */

graft_field graft_field_integer(int64_t value)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t residue = magnitude % prime;
    return (graft_field){value < 0 ? negate_residue(residue) : residue, (double)value};
}

graft_field graft_field_rational(int64_t numerator, int64_t denominator)
{
    graft_field_state state = {0};
    assert(denominator != 0);
    return quotient_field(&state, graft_field_integer(numerator), graft_field_integer(denominator));
}

/* significand 2^exponent; powers of two repeat after 61. */
graft_field graft_field_float(int32_t bits)
{
    uint32_t magnitude = (uint32_t)bits & 0x7fffffffu;
    int32_t exponent = (int32_t)(magnitude >> 23);
    uint32_t significand = magnitude & 0x7fffffu;
    assert(exponent < 255);
    if (exponent > 0) {
        significand |= 0x800000u;
    } else {
        exponent = 1; /* Subnormal. */
    }
    exponent -= 150;
    uint32_t rotation = (uint32_t)((exponent + 183) % 61);
    uint64_t residue = multiply_residues(significand, UINT64_C(1) << rotation);
    double value = ldexp(significand, exponent);
    return (graft_field){bits < 0 ? negate_residue(residue) : residue, bits < 0 ? -value : value};
}

graft_field graft_field_random(graft_rng *rng, double negative_share)
{
    bool negative = graft_rng_uniform(rng) < negative_share;
    int64_t denominator = 17 + (int64_t)graft_rng_below(rng, 239);
    int64_t numerator = 1 + (int64_t)graft_rng_below(rng, (uint32_t)(8 * denominator));
    return graft_field_rational(negative ? -numerator : numerator, denominator);
}
