/* numeric.c - see numeric.h. */
#include "verify/sweep/numeric.h"

#include "graph/base/rng.h"
#include "graph/meaning/algebra_float.h"

#include <assert.h>
#include <string.h>

/* Binary32 bits of numbers that arithmetic treats differently. */
static const uint32_t awkward[] = {
    0x00000000u, 0x80000000u, 0x3f800000u, 0xbf800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
    0x00000001u, 0x80000001u, 0x7f7fffffu, 0xff7fffffu, 0x3dcccccdu, 0xc0490fdbu, 0x4b7fffffu,
};

static bool same_float(float a, float b)
{
    uint32_t bits_a = 0;
    uint32_t bits_b = 0;
    memcpy(&bits_a, &a, sizeof bits_a);
    memcpy(&bits_b, &b, sizeof bits_b);
    return bits_a == bits_b || (a != a && b != b);
}

#define NUM                       float
#define ALG(f)                    f##_float
#define RUN(k, op, call, in, out) ((void)(k), graft_float_run((op), (call), (in), (out)))
#define DIFFERS(k, a, b)          ((void)(k), !same_float(a, b))
#include "verify/instances/sides.inc"

/* Awkward numbers, or ordinary ones, which show a change of order. */
static float draw_float(graft_rng *rng, bool is_awkward)
{
    float value = 0.0F;
    if (!is_awkward) {
        return (float)graft_rng_normal(rng);
    }
    memcpy(&value, &awkward[graft_rng_below(rng, sizeof awkward / sizeof awkward[0])],
           sizeof value);
    return value;
}

/* Of 8 bits, or a boolean. */
static bool is_whole(uint8_t dtype) { return dtype != GRAFT_DTYPE_F32; }

static float draw_whole(graft_rng *rng, uint8_t dtype)
{
    return dtype == GRAFT_DTYPE_BOOL
               ? (float)graft_rng_below(rng, 2)
               : (float)graft_rng_below(rng, 256) - (dtype == GRAFT_DTYPE_I8 ? 128.0F : 0.0F);
}

static bool floats_agree(graft_env *env, const graft_instance *instance, uint64_t seed)
{
    GRAFT_SCOPED(env->scratch);
    const float *vars[GRAFT_RULE_MAX_VARS] = {0};
    const float *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const float *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    uint32_t output = 0;
    uint64_t element = 0;
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        uint8_t dtype = instance->vars[v].dtype;
        float *tensor = GRAFT_NEW(env->scratch, float, count);
        for (size_t i = 0; i < count; i++) {
            tensor[i] = is_whole(dtype) ? draw_whole(&rng, dtype) : draw_float(&rng, seed % 2 == 0);
        }
        vars[v] = tensor;
    }
    evaluate_side_float(NULL, env->scratch, instance, &instance->source, vars, left);
    evaluate_side_float(NULL, env->scratch, instance, &instance->target, vars, right);
    return !find_difference_float(NULL, instance, left, right, &output, &element);
}

enum { FLOAT_SAMPLES = 4 };

/* Whether no sample of an instance tells the sides apart. */
static bool samples_agree(graft_env *env, const graft_rule *rule, const graft_point *point,
                          uint64_t seed)
{
    graft_instance instance;
    bool agree = graft_instance_build(&instance, rule, point) == GRAFT_FIT_OK;
    for (uint32_t s = 0; s < FLOAT_SAMPLES && agree; s++) {
        agree = floats_agree(env, &instance, seed * FLOAT_SAMPLES + s);
    }
    return agree;
}

/* Whether a side changes to or from 8 bits, and beside that moves elements and chooses among
 * them. */
static bool is_of_bytes(const graft_pattern *side, bool *changes)
{
    bool others = false;
    for (uint32_t n = 0; n < side->node_count; n++) {
        uint32_t op = side->nodes[n].op;
        bool change = op == GRAFT_OP_quantise || op == GRAFT_OP_dequantise;
        bool free = (graft_op(op)->flags & (GRAFT_FLAG_MOVES | GRAFT_FLAG_PIECEWISE)) != 0;
        *changes = *changes || change;
        others = others || !(change || free || op == GRAFT_OP_fill || op == GRAFT_OP_pad);
    }
    return !others;
}

static bool is_exact_integer(const graft_rule *rule)
{
    bool changes = false;
    bool both = is_of_bytes(&rule->source, &changes) && is_of_bytes(&rule->target, &changes);
    return both && changes;
}

graft_numeric graft_numeric_classify(graft_env *env, graft_symbolic *symbolic,
                                     const graft_rule *rule, const graft_point *points,
                                     uint32_t count, const graft_prove_options *options)
{
    bool exact = true;
    for (uint32_t i = 0; i < count && exact; i++) {
        exact = samples_agree(env, rule, &points[i], i);
    }
    if (exact) {
        graft_symbolic_result result;
        graft_symbolic_try_exact(symbolic, rule, options, &result);
        return result.same              ? GRAFT_NUMERIC_EXACT
               : is_exact_integer(rule) ? GRAFT_NUMERIC_EXACT_INTEGER
                                        : GRAFT_NUMERIC_REASSOCIATING;
    }
    return GRAFT_NUMERIC_REASSOCIATING;
}
