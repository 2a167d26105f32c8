/* One element of an operator's output as graph/meaning/reading.inc has it, against the loops of
 * operator_bodies.inc that compute it faster: the same operations in the same order, so the same
 * bits. Operators without loops are held against ONNX's conformance cases (test_onnx_conformance),
 * as all are. */
/* NOLINTNEXTLINE(bugprone-suspicious-include): for what it does not export. */
#include "graph/meaning/algebra_float.c"

#include "tests/support/cases.h"
#include "tests/support/check.h"

static float in_data[GRAFT_MAX_INPUTS][CHECK_CASE_ELEMENTS];
static float by_body[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];
static float by_reading[GRAFT_MAX_OUTPUTS][CHECK_CASE_ELEMENTS];

static void compare(const check_case *drawn)
{
    const float *in[GRAFT_MAX_INPUTS];
    float *body[GRAFT_MAX_OUTPUTS];
    float *reading[GRAFT_MAX_OUTPUTS];
    graft_call call = check_case_call(drawn);
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        in[i] = in_data[i];
    }
    for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS; o++) {
        body[o] = by_body[o];
        reading[o] = by_reading[o];
    }
    run_f32[drawn->op](NULL, &call, in, body);
    read_all_f32(NULL, drawn->op, &call, in, reading);
    for (uint32_t o = 0; o < graft_op(drawn->op)->output_count; o++) {
        size_t bytes = graft_count(&drawn->out[o]) * sizeof(float);
        if (memcmp(by_body[o], by_reading[o], bytes) != 0) {
            check_case_print(drawn);
            fail_msg("%s: the body is not the reading", graft_op(drawn->op)->name);
        }
    }
}

CHECK_CASE(test_bodies_are_the_reading)
{
    graft_rng rng = check_rng(21);
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        for (uint32_t j = 0; j < CHECK_CASE_ELEMENTS; j++) {
            in_data[i][j] = (float)((int32_t)graft_rng_below(&rng, 4001) - 2000) / 512.0F;
        }
    }
    for (uint32_t i = 0; i < 120 * GRAFT_OP_COUNT; i++) {
        check_case drawn;
        check_case_draw(&rng, 1 + i % (GRAFT_OP_COUNT - 1), &drawn);
        compare(&drawn);
    }
}
