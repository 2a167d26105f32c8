/* algebra_field.h - operators over exact residues: fingerprints and differential tests.
 *
 * A number is a rational modulo the prime p = 2^61 - 1, beside a shadow real that only decides
 * signs and order (relu, max, min, clip, leaky_relu). Two expressions that are equal over the
 * rationals have equal residues, always; two that differ have equal residues with a chance of about
 * n / p at random arguments, n the degree of the difference. Shadows are never compared for
 * equality and are no part of a fingerprint.
 *
 * Functions. sigmoid is a fixed random function of the residue that keeps sigmoid(0) = 1/2 and
 * sigmoid(-x) = 1 - sigmoid(x). exp(x) is sigmoid(x) / (1 - sigmoid(x)) and tanh(x) is
 * 2 sigmoid(2x) - 1, so that exp(0) = 1, exp(-x) = 1 / exp(x), sigmoid(x) = 1 / (1 + exp(-x)) and
 * tanh(-x) = -tanh(x) hold; only exp inverts a residue, which takes as long as a hundred products.
 * erf is a fixed odd random function; log, sin and cos are fixed random functions.
 * sqrt(x) is x^((p+1)/4), which keeps sqrt(a) sqrt(b) = sqrt(ab), sqrt(0) = 0 and sqrt(1) = 1.
 * Lost, that is, true but not seen:
 *  - exp(a + b) = exp(a) exp(b), and with it that a softmax ignores a shift of its input. To keep
 * it a number needs a second residue modulo a divisor of p - 1 (as in Mirage, OSDI 2025), half
 * as much memory and time again for every family, exponentials or not;
 *  - sqrt(x)^2 = x where x is not a square modulo p, and sqrt(x^2) = |x|;
 *  - everything that relates erf, log, sin or cos to other functions.
 *
 * Numbers 2^n and 2^(n + 61) have the same residue: attributes that far apart are not told apart.
 */
#pragma once

#include "algebra.h"
#include "graph/base/rng.h"

#define GRAFT_FIELD_PRIME ((UINT64_C(1) << 61) - 1)

typedef struct graft_field {
    uint64_t residue; /* less than the prime */
    double shadow;
} graft_field;

enum { GRAFT_FIELD_INVERSES = 256 };

/* What went wrong since it was set to zero; one per thread. */
typedef struct graft_field_state {
    uint64_t
        ambiguous_count; /* Order asked of unequal numbers whose shadows are too close to tell, or
                            have overflowed. */
    uint64_t invalid_count; /* Divisions by zero, square roots and logarithms of what has none: the
                               shadow of what they reach is NaN, and its residue says nothing. */
    uint64_t asked_count;   /* How often more than ring operations decided: orders, square roots. */
    uint64_t divisors[GRAFT_FIELD_INVERSES]; /* Residues that were inverted, by their last bits; */
    uint64_t inverses[GRAFT_FIELD_INVERSES]; /* 0: none was. An inverse takes a hundred products. */
} graft_field_state;

/* Runs one operator. `call` holds shapes that graft_infer_shapes accepts; `in` and `out` point to
 * row-major tensors of these shapes that do not overlap. When `ambiguous_count` has grown, the
 * results say nothing: draw another sample. */
void graft_field_run(graft_field_state *k, uint32_t op, const graft_call *call,
                     const graft_field *const in[], graft_field *const out[]);

graft_field graft_field_integer(int64_t value);
/* `denominator` is not 0. */
graft_field graft_field_rational(int64_t numerator, int64_t denominator);
/* The exact value of a finite binary32 given by its bits. */
graft_field graft_field_float(int32_t bits);
/* A rational of magnitude at most 8, never 0, with a denominator from 17 to 255; negative with the
 * probability `negative_share`. */
graft_field graft_field_random(graft_rng *rng, double negative_share);
