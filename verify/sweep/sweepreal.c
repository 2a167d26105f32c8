/* sweepreal.c - see sweepreal.h. */
#include "verify/sweep/sweepreal.h"

#include "graph/meaning/algebra_real.h"

#include <assert.h>
#include <math.h>

/* Differences below this share of the larger number (or of 1) may be rounding, as long as no
 * number is larger than that. */
static const double tolerance = 1e-7;
static const double magnitude_most = 1e6;

typedef struct {
    bool undefined; /* Some number of some tensor is none. */
    bool large;
} tensors_seen;

/* Looks at every tensor: a maximum hides what it was made of. */
static void run_and_look(tensors_seen *seen, uint32_t op, const graft_call *call,
                         const double *const in[], double *const out[])
{
    graft_real_run(op, call, in, out);
    for (uint32_t o = 0; o < graft_op(op)->output_count; o++) {
        uint64_t count = graft_shape_elements(&call->out[o]);
        for (uint64_t i = 0; i < count; i++) {
            seen->undefined = seen->undefined || !isfinite(out[o][i]);
            seen->large = seen->large || (isfinite(out[o][i]) && fabs(out[o][i]) > magnitude_most);
        }
    }
}

#define NUM                       double
#define ALG(f)                    f##_real
#define RUN(k, op, call, in, out) run_and_look((k), (op), (call), (in), (out))
#include "verify/instances/sides.inc"

static void note_difference(const graft_instance *instance, uint32_t output, uint64_t element,
                            double source, double target, graft_counterexample *found)
{
    if (found != NULL) {
        found->point = *instance->point;
        found->output = output;
        found->element = element;
        found->source = source;
        found->target = target;
    }
}

static bool find_difference(const graft_instance *instance, const double *const *left,
                            const double *const *right, graft_counterexample *found)
{
    for (uint32_t o = 0; o < instance->rule->output_count; o++) {
        uint64_t count = graft_shape_elements(graft_instance_shape(
            instance, &instance->source, instance->source.pattern->outputs[o]));
        assert(left[o] != NULL && right[o] != NULL);
        for (uint64_t i = 0; i < count; i++) {
            double x = left[o][i];
            double y = right[o][i];
            if (!(fabs(x - y) <= tolerance * (1.0 + fmax(fabs(x), fabs(y))))) {
                note_difference(instance, o, i, x, y, found);
                return true;
            }
        }
    }
    return false;
}

graft_sweep_verdict graft_sweep_real(graft_env *env, const graft_instance *instance,
                                     const graft_field *const *inputs, graft_counterexample *found)
{
    GRAFT_SCOPED(env->scratch);
    const double *vars[GRAFT_RULE_MAX_VARS] = {0};
    const double *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const double *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    graft_sweep_verdict verdict = GRAFT_SWEEP_UNDECIDED;
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        uint64_t count = graft_shape_elements(&instance->point->vars[v]);
        double *tensor = GRAFT_NEW(env->scratch, double, count);
        for (uint64_t i = 0; i < count; i++) {
            tensor[i] = inputs[v][i].shadow;
        }
        vars[v] = tensor;
    }
    tensors_seen seen = {false, false};
    evaluate_side_real(&seen, env->scratch, instance, &instance->source, vars, left);
    if (!seen.undefined && !seen.large) {
        evaluate_side_real(&seen, env->scratch, instance, &instance->target, vars, right);
        if (!seen.large) {
            bool differs = find_difference(instance, left, right, found);
            verdict = differs ? GRAFT_SWEEP_DIFFERS : GRAFT_SWEEP_AGREES;
        }
    }
    return verdict;
}
