/* cases.h - random small applications of every operator, for tests that hold operators against one
 * another: attributes over their whole range of meanings, unequal sizes, ranks 0 to 4. */
#pragma once

#include "graph/base/rng.h"
#include "graph/meaning/algebra.h"

typedef struct check_case {
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    uint32_t op;
} check_case;

/* Draws attributes and inputs that fit together and infers the outputs. Fails the test when none of
 * many drawings fits. */
void check_case_draw(graft_rng *rng, uint32_t op, check_case *drawn);
/* The case as the bodies read it. */
graft_call check_case_call(const check_case *drawn);
/* Prints operator, attributes and shapes, for failures. */
void check_case_print(const check_case *drawn);

/* Most elements that an input or output of a drawn case has. */
enum { CHECK_CASE_ELEMENTS = 4096 };

/* The bits of a binary32, as attributes hold them. */
int32_t check_bits(float value);
