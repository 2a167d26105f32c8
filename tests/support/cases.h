/* cases.h - random small applications of every operator, for tests that hold operators against one
 * another: attributes over their whole range of meanings, unequal sizes, ranks 0 to 5. */
#pragma once

#include "graph/base/rng.h"
#include "graph/meaning/algebra_field.h"

typedef struct check_case {
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    uint32_t op;
} check_case;

/* Whether an operator makes or reads other numbers than real ones: before costs are asked for it is
 * made opaque (graph/opaque.h). */
bool check_case_is_lowered(uint32_t op);
/* Draws attributes and inputs that fit together and infers the outputs. Fails the test when none of
 * many drawings fits. */
void check_case_draw(graft_rng *rng, uint32_t op, check_case *drawn);
/* Infers the outputs of a case that was changed; false when it does not fit any more, or not in
 * CHECK_CASE_ELEMENTS. */
bool check_case_infer(check_case *drawn);
/* The case as the bodies read it. */
graft_call check_case_call(const check_case *drawn);
/* Prints operator, attributes and shapes, for failures. */
void check_case_print(const check_case *drawn);

/* Most elements that an input or output of a drawn case has. */
enum { CHECK_CASE_ELEMENTS = 4096 };

/* Runs the case in an algebra; of the outputs no element is a number before. */
typedef graft_field check_fields[CHECK_CASE_ELEMENTS];
typedef float check_floats[CHECK_CASE_ELEMENTS];
void check_case_run_field(graft_field_state *k, const check_case *c, const check_fields *in,
                          check_fields *out);
void check_case_run_float(const check_case *c, const check_floats *in, check_floats *out);
/* An operator of scalars, on one number or two. */
graft_field check_scalar_field(graft_field_state *k, uint32_t op, graft_field a, graft_field b);
float check_scalar_float(uint32_t op, const int32_t *attrs, float a, float b);
