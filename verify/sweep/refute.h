/* refute.h - a counterexample that a person can check: the smallest shapes, attributes and inputs
 * for which the two sides of a rule differ, found from the first difference that the sweep met.
 *
 * Shapes and attributes are shrunk greedily as long as the exact algebra sees a difference. Then
 * small whole numbers are tried as inputs of the float executor until it shows a difference that is
 * none of rounding, and made 0 or 1 one after the other as long as it stays. */
#pragma once

#include "graph/base/file.h"
#include "verify/sweep/sweep.h"

typedef struct graft_refutation {
    graft_point point;
    uint32_t output;  /* Which output of the rule, */
    uint64_t element; /* which element of it, in row-major order: the first that differs. */
    float source;     /* The element on both sides; NaN or infinite where it is not defined. */
    float target;
    bool replayed; /* Both are the float executor's. Otherwise it shows no difference beyond
                      rounding, and they are the exact algebra's, rounded. */
    const float *values[GRAFT_RULE_MAX_VARS]; /* By variable: its elements. */
} graft_refutation;

/* Whether an operator computes a function that the exact algebra and the solver know by some laws
 * only: what they tell apart may be equal. */
bool graft_refute_needs_laws(const graft_rule *rule);

/* Shrinks a difference that the sweep found. Memory lies in env->unit. */
void graft_refute(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                  const graft_counterexample *found, graft_refutation *refutation);
/* Looks for inputs that differ at a point where the solver says that there are some. False when
 * none are found. */
bool graft_refute_point(graft_env *env, const graft_rule *rule, const graft_point *point,
                        graft_refutation *refutation);

/* Runs both sides in the float executor on the refutation's inputs, and sets what it says of the
 * first element that differs by more than rounding. False when none does, or the point is no
 * instance. */
bool graft_refutation_replay(graft_env *env, const graft_rule *rule, graft_refutation *refutation);

/* Appends it as text, indented by four blanks, */
void graft_refutation_print(graft_buffer *out, const graft_rule *rule,
                            const graft_refutation *refutation);
/* or as a JSON object. */
void graft_refutation_json(graft_buffer *out, const graft_rule *rule,
                           const graft_refutation *refutation);
