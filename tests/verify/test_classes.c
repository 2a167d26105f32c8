/* Classes of cases (verify/export/symclass.h): an instance of any case of a class, cut along its
 * idle axes, is an instance of the class's first case, and both sides compute the same there. */
#include "verify/export/symclass.h"

#include "graph/meaning/algebra_field.h"
#include "tests/support/check.h"
#include "tests/support/rows.h"
#include "verify/instances/instance.h"

#include <string.h>

/* Every operator that has idle axes, and the ways in which a rule may hold on to an axis. Whether a
 * rule is true does not matter. */
static const char *const rules[] = {
    "add(matmul(a, b), mul(c, d)) = mul(c, add(matmul(a, b), d))",
    "matmul(matmul(a, b), c) = matmul(a, matmul(b, c))",
    "matmul_bias#1(a, b, c) = matmul_bias#1(a, b, c)",
    "concat#1(add(a, b), c) = add(concat#1(a, c), concat#1(b, c))",
    "[split#1(matmul(a, b)).0, split#1(matmul(a, b)).1] = "
    "[matmul(split#1(a).0, b), matmul(split#1(a).1, b)]",
    "slice#1(pad#2(a)) = pad#2(slice#1(a))",
    "softmax#1(add(a, b)) = add(softmax#1(a), b)",
    "mul(a, transpose#1(mul(b, c))) = mul(mul(a, b), transpose#1(c)) where rank(b) = 0",
    "add(a, transpose#1(a)) = mul(a, transpose#1(a)) where dim(a,-1) = 2",
    "transpose#1(concat#2(a, b)) = concat(transpose#1(a), transpose#1(b), axis=#1.axis_0)",
    "reduce_sum#1(mul(a, b)) = mul(b, reduce_sum#1(a))",
    "reduce_max#1(relu(a)) = relu(reduce_mean#1(a))",
    "layer_norm#1(add(a, b), c, d) = add(layer_norm#1(a, c, d), b)",
    "scale_shift(concat#1(a, b), c, d) = concat#1(scale_shift(a, c, d), scale_shift(b, c, d))",
    "[max_pool#1(a), matmul(b, relu(c))] = [max_pool#1(a), relu(matmul(b, c))]",
    "concat#1(add(a, b), add(c, d)) = add(concat#1(a, c), concat#1(b, d)) "
    "where same_shape(a, b) and dim(c,0) = 2",
    "transpose#1(a) = relu(a)",
    "concat#1(relu(a), relu(b)) = relu(concat#1(a, b)) where dim(b,-1) = #1.axis + 1",
    "add(matmul(a, b), c) = add(c, matmul(a, b)) where not same_shape(a, c)",
    "matmul(add(a, b), c) = add(matmul(a, c), matmul(b, c)) where rank(a) = 4 or dim(b,-3) = 2",
    "add(reduce_sum#1(clip#2(a)), b) = add(b, clip#2(reduce_sum#1(a))) "
    "where rank(a) = 3",
};

enum { ATTEMPTS = 60, FIRSTS_MOST = 4096, SIZES_MOST = 4 };

typedef struct {
    graft_sym_case c;
    graft_sym_class class;
} member;

typedef struct {
    graft_env *env;
    graft_rule rule;
    graft_rng rng;
    graft_field_state field;
    member *firsts; /* Of each class, the case met first. */
    uint32_t first_count;
    uint32_t cases;
    uint32_t compared;
    uint32_t at[GRAFT_SYM_BUSY]; /* The index along each idle set. */
} workspace;

#define NUM                       graft_field
#define ALG(f)                    f##_field
#define RUN(k, op, call, in, out) graft_field_run((k), (op), (call), (in), (out))
#include "verify/instances/sides.inc"

/* ---------------------------------------------------------------- instances */

/* Sizes near each other, so that they often fit. */
static graft_point draw_point(workspace *w, const graft_sym_case *c)
{
    static const int32_t infinities[3] = {INT32_MIN + 0x7f800000, 0, 0x7f800000};
    graft_point point;
    memset(&point, 0, sizeof point);
    int32_t common = 2 + (int32_t)graft_rng_below(&w->rng, 2);
    for (uint32_t v = 0; v < w->rule.var_count; v++) {
        point.vars[v].dtype = GRAFT_DTYPE_F32;
        point.vars[v].rank = (uint8_t)c->ranks[v];
        for (uint32_t i = 0; i < point.vars[v].rank; i++) {
            bool other = graft_rng_below(&w->rng, 6) == 0;
            int32_t size = 1 + (int32_t)graft_rng_below(&w->rng, SIZES_MOST);
            point.vars[v].dims[i] = other ? size : common;
        }
    }
    for (uint32_t i = 0; i < w->rule.slot_count; i++) {
        point.slots[i] = c->chosen[i]          ? c->slots[i]
                         : c->infinite[i] != 0 ? infinities[c->infinite[i] + 1]
                                               : (int32_t)graft_rng_below(&w->rng, 3);
    }
    return point;
}

/* The instance of the first case whose core is that of `point`. */
static graft_point core_point(const workspace *w, const graft_point *point, const member *of,
                              const member *first)
{
    graft_point core = *point;
    for (uint32_t v = 0; v < w->rule.var_count; v++) {
        uint32_t from = 0;
        core.vars[v] = (graft_shape){.dtype = GRAFT_DTYPE_F32, .rank = (uint8_t)first->c.ranks[v]};
        for (uint32_t i = 0; i < core.vars[v].rank; i++) {
            core.vars[v].dims[i] = 1;
            if (first->class.var_sets[v][i] == GRAFT_SYM_BUSY) {
                while (of->class.var_sets[v][from] != GRAFT_SYM_BUSY) {
                    from++;
                }
                assert_true((int32_t)from < point->vars[v].rank);
                core.vars[v].dims[i] = point->vars[v].dims[from++];
            }
        }
    }
    for (uint32_t i = 0; i < w->rule.slot_count; i++) {
        core.slots[i] = of->c.chosen[i] ? first->c.slots[i] : point->slots[i];
    }
    return core;
}

/* ------------------------------------------------------------------ elements */

/* Copies the elements of a tensor at the indices chosen for idle sets, of which it has no two axes.
 */
static const graft_field *slice(const workspace *w, const graft_shape *shape, const uint16_t *sets,
                                const graft_field *from)
{
    size_t count = (size_t)graft_shape_elements(shape);
    graft_field *out = GRAFT_NEW(w->env->unit, graft_field, count);
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        size_t rest = i;
        bool taken = true;
        for (int32_t axis = shape->rank; axis-- > 0;) {
            size_t size = (size_t)shape->dims[axis];
            for (int32_t k = 0; k < axis; k++) {
                assert_true(sets[k] == GRAFT_SYM_BUSY || sets[k] != sets[axis]);
            }
            if (sets[axis] != GRAFT_SYM_BUSY) {
                size_t wanted = w->at[sets[axis]] < size ? w->at[sets[axis]] : size - 1;
                taken = taken && rest % size == wanted;
            }
            rest /= size;
        }
        if (taken) {
            out[made++] = from[i];
        }
    }
    return out;
}

static const graft_field *draw_tensor(workspace *w, const graft_shape *shape)
{
    size_t count = (size_t)graft_shape_elements(shape);
    graft_field *out = GRAFT_NEW(w->env->unit, graft_field, count);
    for (size_t i = 0; i < count; i++) {
        out[i] = graft_field_random(&w->rng, 0.3);
    }
    return out;
}

static void compare_sides(workspace *w, const graft_instance *whole, const graft_instance *core,
                          const member *of)
{
    const graft_field *vars[GRAFT_RULE_MAX_VARS];
    const graft_field *slices[GRAFT_RULE_MAX_VARS];
    for (uint32_t v = 0; v < w->rule.var_count; v++) {
        vars[v] = draw_tensor(w, &whole->point->vars[v]);
        slices[v] = slice(w, &whole->point->vars[v], of->class.var_sets[v], vars[v]);
    }
    for (uint32_t side = 0; side < 2; side++) {
        const graft_side *a = side == 0 ? &whole->source : &whole->target;
        const graft_side *b = side == 0 ? &core->source : &core->target;
        const graft_field *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
        const graft_field *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
        evaluate_side_field(&w->field, w->env->unit, whole, a, vars, left);
        evaluate_side_field(&w->field, w->env->unit, core, b, slices, right);
        for (uint32_t i = 0; i < w->rule.output_count; i++) {
            const graft_shape *shape = graft_instance_shape(whole, a, a->pattern->outputs[i]);
            const graft_shape *small = graft_instance_shape(core, b, b->pattern->outputs[i]);
            if (left[i] == NULL || right[i] == NULL) {
                fail_msg("output %u was not evaluated", i);
                return;
            }
            left[i] = slice(w, shape, of->class.output_sets[i], left[i]);
            for (size_t k = 0; k < (size_t)graft_shape_elements(small); k++) {
                assert_true(left[i][k].residue == right[i][k].residue);
            }
        }
    }
}

/* Whether an instance is one of a case: reshapes and fills make its ranks. */
static bool is_of_case(const graft_instance *instance, const graft_sym_case *c)
{
    bool same = true;
    for (uint32_t side = 0; side < 2; side++) {
        const graft_side *s = side == 0 ? &instance->source : &instance->target;
        for (uint32_t n = 0; n < s->pattern->node_count; n++) {
            same = same && s->shapes[n][0].rank == (uint8_t)c->node_ranks[side][n];
        }
    }
    return same;
}

static void try_member(workspace *w, const member *of, const member *first)
{
    for (uint32_t i = 0; i < ATTEMPTS; i++) {
        graft_mark mark = graft_arena_mark(w->env->unit);
        graft_instance whole;
        graft_instance core;
        graft_point point = draw_point(w, &of->c);
        if (graft_instance_build(&whole, &w->rule, &point) == GRAFT_FIT_OK &&
            is_of_case(&whole, &of->c)) {
            graft_point small = core_point(w, &point, of, first);
            for (uint32_t k = 0; k < GRAFT_SYM_BUSY; k++) {
                w->at[k] = graft_rng_below(&w->rng, SIZES_MOST);
            }
            if (graft_instance_build(&core, &w->rule, &small) != GRAFT_FIT_OK) {
                fail_msg("%s: %s is no instance: %s",
                         graft_point_print(w->env->unit, &w->rule, &point),
                         graft_point_print(w->env->unit, &w->rule, &small),
                         graft_instance_explain(w->env->unit, &w->rule, &small, NULL));
            }
            compare_sides(w, &whole, &core, of);
            w->compared++;
            i = ATTEMPTS;
        }
        graft_arena_release(w->env->unit, mark);
    }
}

static bool visit_case(void *context, const graft_sym_case *c)
{
    workspace *w = context;
    member m = {.c = *c};
    w->cases++;
    if (!graft_sym_class_of(&w->rule, c, &m.class)) {
        return true;
    }
    for (uint32_t i = 0; i < w->first_count; i++) {
        const graft_sym_class *known = &w->firsts[i].class;
        if (known->length == m.class.length &&
            memcmp(known->key, m.class.key, known->length) == 0) {
            if (graft_rng_below(&w->rng, 1 + w->cases / 100) == 0) {
                try_member(w, &m, &w->firsts[i]);
            }
            return true;
        }
    }
    if (w->first_count < FIRSTS_MOST) {
        w->firsts[w->first_count++] = m;
    }
    return w->cases < 20000;
}

CHECK_CASE(test_classes)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        graft_mark mark = graft_arena_mark(env->life);
        workspace w = {.env = env,
                       .rule = rows_parse(env, rules[i]),
                       .rng = check_rng(i + 1),
                       .firsts = GRAFT_NEW(env->life, member, FIRSTS_MOST)};
        (void)graft_sym_cases(&w.rule, visit_case, &w);
        print_message("# %s: %u cases, %u classes, %u instances\n", rules[i], w.cases,
                      w.first_count, w.compared);
        assert_true(w.compared > 0);
        graft_arena_release(env->life, mark);
    }
}

/* An axis of 1 where the source's is 1, and one of more than 32 bits elsewhere. */
static const char wide_attribute[] =
    "softmax#1(a) = softmax(a, axis=(1 - #1.axis) * 65536 * 65536 + #1.axis)";

static bool visit_wide_attribute(void *context, const graft_sym_case *c)
{
    workspace *w = context;
    graft_sym_class class;
    bool known = graft_sym_class_of(&w->rule, c, &class);
    assert_true(!known || c->slots[0] == 1);
    w->cases += known ? 1 : 0;
    return true;
}

/* The engine refuses such an attribute, and its lower bits say nothing of the case. */
CHECK_CASE(test_wide_attribute)
{
    workspace w = {.env = env, .rule = rows_parse(env, wide_attribute)};
    assert_true(graft_sym_cases(&w.rule, visit_wide_attribute, &w));
    assert_true(w.cases > 0);
}
