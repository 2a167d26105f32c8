/* gradient.h - central finite differences against the tape, for kernels, losses and networks. */
#pragma once

#include "train/nn/tape.h"

enum { GRADIENT_LEAVES_MOST = 4 };

/* A differentiable function of up to four matrices. */
typedef struct {
    const char *name;
    uint32_t leaf_count;
    uint32_t rows[GRADIENT_LEAVES_MOST];
    uint32_t cols[GRADIENT_LEAVES_MOST];
    const graft_matrix *(*apply)(graft_tape *tape, const graft_matrix *const leaves[]);
} gradient_case;

/* The worst |tape - difference| / (1 + |difference|) over every element of every leaf. The result
 * is projected on fixed random numbers. Differences use four points at +-h and +-2h with h = 1/64,
 * so that the error of the formula is of order h^4 = 6e-8 and float rounding contributes about 1e-7
 * / h = 6e-6. Leaf values are distinct, 0.1 apart and at least 0.15 from 0, so that neither a kink
 * at 0 nor a change of maximum lies within 2h. */
double gradient_worst(const gradient_case *row);

/* Networks have kinks everywhere, so single elements say little. Instead, for each parameter of
 * `set`: the derivative of `lose` along the parameter's own gradient and along a random direction,
 * against `set->gradient`. Returns the worst of
 *     |difference - slope| / (0.01 |gradient of this parameter| + noise)
 * with noise = 2e-4: below 1 is agreement to one per cent. */
typedef double gradient_lose(void *context);
double gradient_worst_slope(graft_parameters *set, gradient_lose *lose, void *context);
