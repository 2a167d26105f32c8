/* numeric.c - trees of floating-point operations, as an algebra. */
#include "verify/numeric.h"

#include "graph/algebra_float.h"
#include "graph/rng.h"

#include <assert.h>
#include <string.h>

/* -------------------------------------------------------------------- trees */

/* A tree as a 64-bit hash of its operation and operands; and, of a maximum or minimum, the hash of
 * its operation and second operand, so that the same one again is seen. */
typedef struct {
    uint64_t hash;
    uint64_t chosen;
} tree;

enum {
    KIND_FLOAT = 1,
    KIND_SUM,
    KIND_DIFFERENCE,
    KIND_PRODUCT,
    KIND_QUOTIENT,
    KIND_MAX,
    KIND_MIN,
    KIND_EXP,
    KIND_SQRT,
    KIND_ERF,
    KIND_SIGMOID,
    KIND_TANH,
    KIND_SHIFT,
    KIND_VAR
};

static uint64_t mix(uint64_t kind, uint64_t a, uint64_t b)
{
    uint64_t z = kind * UINT64_C(0x9e3779b97f4a7c15) ^ a * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 29)) + b * UINT64_C(0x94d049bb133111eb);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static tree make_tree(uint64_t kind, uint64_t a, uint64_t b) { return (tree){mix(kind, a, b), 0}; }

static tree make_sorted(uint64_t kind, tree a, tree b)
{
    return a.hash < b.hash ? make_tree(kind, a.hash, b.hash) : make_tree(kind, b.hash, a.hash);
}

static tree lift_float_tree(void *k, int32_t bits)
{
    (void)k;
    return make_tree(KIND_FLOAT, (uint32_t)bits, 0);
}

static tree lift_tree(void *k, int32_t value)
{
    float number = (float)value;
    int32_t bits = 0;
    memcpy(&bits, &number, sizeof bits);
    return lift_float_tree(k, bits);
}

static tree sum_tree(void *k, tree a, tree b)
{
    (void)k;
    return make_sorted(KIND_SUM, a, b);
}

static tree difference_tree(void *k, tree a, tree b)
{
    (void)k;
    return make_tree(KIND_DIFFERENCE, a.hash, b.hash);
}

static tree product_tree(void *k, tree a, tree b)
{
    uint64_t one = lift_tree(k, 1).hash;
    return a.hash == one ? b : b.hash == one ? a : make_sorted(KIND_PRODUCT, a, b);
}

static tree quotient_tree(void *k, tree a, tree b)
{
    return b.hash == lift_tree(k, 1).hash ? a : make_tree(KIND_QUOTIENT, a.hash, b.hash);
}

/* max(max(x, y), y) = max(x, y), and max(x, x) = x. */
static tree choose_tree(uint64_t kind, tree a, tree b)
{
    uint64_t chosen = mix(kind, b.hash, 1);
    return a.hash == b.hash || a.chosen == chosen ? a : (tree){mix(kind, a.hash, b.hash), chosen};
}

static tree max_tree(void *k, tree a, tree b)
{
    (void)k;
    return choose_tree(KIND_MAX, a, b);
}

static tree min_tree(void *k, tree a, tree b)
{
    (void)k;
    return choose_tree(KIND_MIN, a, b);
}

#define TREE_FUNCTION(name, kind)                                                                  \
    static tree name##_tree(void *k, tree x)                                                       \
    {                                                                                              \
        (void)k;                                                                                   \
        return make_tree(kind, x.hash, 0);                                                         \
    }
TREE_FUNCTION(exp, KIND_EXP)
TREE_FUNCTION(sqrt, KIND_SQRT)
TREE_FUNCTION(erf, KIND_ERF)
TREE_FUNCTION(sigmoid, KIND_SIGMOID)
TREE_FUNCTION(tanh, KIND_TANH)

static tree softmax_shift_tree(void *k, const tree *row, size_t count, size_t step)
{
    tree shift = row[0];
    (void)k;
    for (size_t i = 1; i < count; i++) {
        shift = make_tree(KIND_SHIFT, shift.hash, row[i * step].hash);
    }
    return shift;
}

#define NUM                       tree
#define ALG(f)                    f##_tree
#define RUN(k, op, call, in, out) run_tree[op](k, call, in, out)
#include "graph/operator_bodies.inc"
#include "verify/sides.inc"
#undef NUM
#undef ALG
#undef RUN

static bool trees_agree(graft_env *env, const graft_instance *instance)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    const tree *vars[GRAFT_RULE_MAX_VARS] = {0};
    const tree *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const tree *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        tree *tensor = GRAFT_NEW(env->scratch, tree, count);
        for (size_t i = 0; i < count; i++) {
            tensor[i] = make_tree(KIND_VAR, v, i);
        }
        vars[v] = tensor;
    }
    evaluate_side_tree(NULL, env->scratch, instance, &instance->source, vars, left);
    evaluate_side_tree(NULL, env->scratch, instance, &instance->target, vars, right);
    bool agree = true;
    for (uint32_t o = 0; o < instance->rule->output_count && agree; o++) {
        assert(left[o] != NULL && right[o] != NULL);
        graft_operand x = instance->source.pattern->outputs[o];
        size_t count =
            (size_t)graft_shape_elements(graft_instance_shape(instance, &instance->source, x));
        for (size_t i = 0; i < count && agree; i++) {
            agree = left[o][i].hash == right[o][i].hash;
        }
    }
    graft_arena_release(env->scratch, mark);
    return agree;
}

/* ------------------------------------------------------------------- floats */

#define NUM                       float
#define ALG(f)                    f##_float
#define RUN(k, op, call, in, out) ((void)(k), graft_float_run((op), (call), (in), (out)))
#include "verify/sides.inc"

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

static bool floats_agree(graft_env *env, const graft_instance *instance, uint64_t seed)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    const float *vars[GRAFT_RULE_MAX_VARS] = {0};
    const float *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const float *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        float *tensor = GRAFT_NEW(env->scratch, float, count);
        for (size_t i = 0; i < count; i++) {
            uint32_t bits = awkward[graft_rng_below(&rng, sizeof awkward / sizeof awkward[0])];
            memcpy(&tensor[i], &bits, sizeof bits);
        }
        vars[v] = tensor;
    }
    evaluate_side_float(NULL, env->scratch, instance, &instance->source, vars, left);
    evaluate_side_float(NULL, env->scratch, instance, &instance->target, vars, right);
    bool agree = true;
    for (uint32_t o = 0; o < instance->rule->output_count; o++) {
        assert(left[o] != NULL && right[o] != NULL);
        graft_operand x = instance->source.pattern->outputs[o];
        size_t count =
            (size_t)graft_shape_elements(graft_instance_shape(instance, &instance->source, x));
        for (size_t i = 0; i < count && agree; i++) {
            agree = same_float(left[o][i], right[o][i]);
        }
    }
    graft_arena_release(env->scratch, mark);
    return agree;
}

enum { FLOAT_SAMPLES = 4 };

graft_numeric graft_numeric_classify(graft_env *env, const graft_rule *rule,
                                     const graft_point *points, uint32_t count)
{
    bool exact = count > 0;
    for (uint32_t i = 0; i < count && exact; i++) {
        graft_instance instance;
        exact = graft_instance_build(&instance, rule, &points[i]) == GRAFT_FIT_OK &&
                trees_agree(env, &instance);
        for (uint32_t s = 0; s < FLOAT_SAMPLES && exact; s++) {
            exact = floats_agree(env, &instance, (uint64_t)i * FLOAT_SAMPLES + s);
        }
    }
    return exact ? GRAFT_NUMERIC_EXACT : GRAFT_NUMERIC_REASSOCIATING;
}
