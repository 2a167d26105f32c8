/* refute.c - see refute.h; refuteprint.c prints. */
#include "verify/sweep/refute.h"

#include "graph/base/bits.h"
#include "graph/base/rng.h"
#include "graph/meaning/algebra_float.h"
#include "verify/sweep/named.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 6, ROUNDS_MOST = 40, MEMBERS_MOST = 96 };

/* ------------------------------------------------------------------- replay */

/* More than rounding: a target that is not a number where the source is one counts. */
static bool differs(float a, float b)
{
    if (!isfinite(a)) {
        return false; /* The source itself is not defined there. */
    }
    float scale = fmaxf(1.0f, fmaxf(fabsf(a), isfinite(b) ? fabsf(b) : 1.0f));
    return !isfinite(b) || fabsf(a - b) > 1e-3f * scale;
}

#define NUM                       float
#define ALG(f)                    f##_float
#define RUN(k, op, call, in, out) ((void)(k), graft_float_run((op), (call), (in), (out)))
#define DIFFERS(k, a, b)          ((void)(k), differs(a, b))
#include "verify/instances/sides.inc"

static bool replay_instance(graft_env *env, const graft_instance *instance,
                            const float *const *values, graft_refutation *r)
{
    GRAFT_SCOPED(env->scratch);
    const float *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const float *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    evaluate_side_float(NULL, env->scratch, instance, &instance->source, values, left);
    evaluate_side_float(NULL, env->scratch, instance, &instance->target, values, right);
    bool found = find_difference_float(NULL, instance, left, right, &r->output, &r->element);
    if (found) {
        r->source = left[r->output][r->element];
        r->target = right[r->output][r->element];
    }
    return found;
}

bool graft_refutation_replay(graft_env *env, const graft_rule *rule, graft_refutation *r)
{
    graft_instance instance;
    return graft_instance_build(&instance, rule, &r->point) == GRAFT_FIT_OK &&
           replay_instance(env, &instance, r->values, r);
}

/* ------------------------------------------------------------------- inputs */

static bool uses_functions(const graft_pattern *side)
{
    bool uses = false;
    for (uint32_t n = 0; n < side->node_count; n++) {
        const graft_pattern_node *node = &side->nodes[n];
        uses = uses || (graft_op(node->op)->flags & GRAFT_FLAG_UNKNOWN_FN) != 0;
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            const graft_term *term = &node->attrs[i];
            uses = uses || (graft_op_attr(node->op, i)->kind == GRAFT_ATTR_ACTIVATION &&
                            !(term->kind == GRAFT_TERM_CONST && term->value <= GRAFT_ACT_RELU6));
        }
    }
    return uses;
}

bool graft_refute_needs_laws(const graft_rule *rule)
{
    return uses_functions(&rule->source) || uses_functions(&rule->target);
}

/* How numbers are drawn: whole multiples of a unit, mostly small ones at first. Some differences
 * show among tiny numbers alone, or huge ones, or where no number is positive. Among tiny and huge
 * ones rounding shows as well: there a difference must be one in another arithmetic too, and huge
 * ones are not put into functions, which overflow. */
typedef enum { SIGNS_ANY, SIGNS_MINUS, SIGNS_PLUS, SIGNS_NAMED } draw_signs;
typedef enum { EXTENT_USUAL, EXTENT_TINY, EXTENT_HUGE } draw_extent;

static const struct {
    uint32_t draws;
    uint32_t most;
    float unit;
    uint8_t signs;  /* draw_signs */
    uint8_t extent; /* draw_extent */
} draw_kinds[] = {
    {48, 2,    1.0F,     SIGNS_ANY,   EXTENT_USUAL},
    {24, 9,    1.0F,     SIGNS_ANY,   EXTENT_USUAL},
    {24, 40,   0.125F,   SIGNS_ANY,   EXTENT_USUAL},
    {8,  9,    1.0F,     SIGNS_MINUS, EXTENT_USUAL},
    {8,  9,    1.0F,     SIGNS_PLUS,  EXTENT_USUAL},
    {48, 9,    1.0F,     SIGNS_NAMED, EXTENT_HUGE },
    {16, 5000, 1.0F,     SIGNS_ANY,   EXTENT_HUGE },
    {24, 4,    0x1p-10F, SIGNS_ANY,   EXTENT_TINY },
    {24, 4,    0x1p-14F, SIGNS_ANY,   EXTENT_TINY },
    {24, 4,    0x1p-20F, SIGNS_ANY,   EXTENT_TINY },
    {16, 4,    0x1p20F,  SIGNS_ANY,   EXTENT_HUGE },
};

enum { DRAW_KINDS = sizeof draw_kinds / sizeof draw_kinds[0] };

/* A real number that the rule names, or one near it. */
static float draw_named(graft_rng *rng, const graft_named *named)
{
    float value = 0.0F;
    memcpy(&value, &named->reals[graft_rng_below(rng, named->real_count)], sizeof value);
    return value;
}

static uint64_t elements_of(const graft_instance *instance, uint32_t v)
{
    return v < instance->rule->var_count ? graft_shape_elements(&instance->point->vars[v]) : 0;
}

/* A real number, or what a whole one is in another type: a boolean, or one of 8 bits. */
static float of_type(uint8_t dtype, int32_t number, float real)
{
    return dtype == GRAFT_DTYPE_F32    ? real
           : dtype == GRAFT_DTYPE_BOOL ? (float)(number & 1)
                                       : (float)((number & 255) - 128);
}

/* Of tiny numbers the first tensor is made, and of the others one in four: what is tiny may have to
 * be multiplied by what is not. */
static void draw_inputs(graft_rng *rng, const graft_named *named, uint32_t kind,
                        const graft_instance *instance, float *const *values)
{
    const uint32_t most = draw_kinds[kind].most;
    const draw_signs signs = (draw_signs)draw_kinds[kind].signs;
    const bool tiny = draw_kinds[kind].extent == EXTENT_TINY;
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS; v++) {
        bool usual = tiny && v > 0 && graft_rng_below(rng, 4) != 0;
        for (uint64_t i = 0; i < elements_of(instance, v); i++) {
            int32_t number = (int32_t)graft_rng_below(rng, 2 * most + 1) - (int32_t)most;
            number = signs == SIGNS_MINUS ? -1 - abs(number) : number;
            number = signs == SIGNS_PLUS ? 1 + abs(number) : number;
            values[v][i] = (float)number * (usual ? 1.0F : draw_kinds[kind].unit);
            if (signs == SIGNS_NAMED && named->real_count > 0 && graft_rng_below(rng, 2) == 0) {
                values[v][i] = draw_named(rng, named);
            }
            values[v][i] = of_type(instance->vars[v].dtype, number, values[v][i]);
        }
    }
}

/* Makes elements 0, or else 1, one after the other, as long as some element differs. */
static void simplify_inputs(graft_env *env, const graft_instance *instance, float *const *values,
                            graft_refutation *r)
{
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS; v++) {
        for (uint64_t i = 0; i < elements_of(instance, v); i++) {
            float kept = values[v][i];
            bool done = kept == 0.0f;
            for (int32_t t = 0; t < 2 && !done; t++) {
                values[v][i] = (float)t;
                done = replay_instance(env, instance, r->values, r);
            }
            values[v][i] = done ? values[v][i] : kept;
        }
    }
    (void)replay_instance(env, instance, r->values, r);
}

/* Whether the sides differ on these inputs in an arithmetic other than binary32. */
static bool is_confirmed(graft_env *env, const graft_instance *instance, const graft_refutation *r)
{
    GRAFT_SCOPED(env->scratch);
    const graft_field *fields[GRAFT_RULE_MAX_VARS] = {0};
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        uint64_t count = elements_of(instance, v);
        graft_field *tensor = GRAFT_NEW(env->scratch, graft_field, count);
        for (uint64_t i = 0; i < count; i++) {
            tensor[i] = graft_field_float(graft_bits_of_float(r->values[v][i]));
        }
        fields[v] = tensor;
    }
    bool rounded = graft_refute_needs_laws(instance->rule);
    return graft_sweep_given(env, instance, fields, rounded, NULL) == GRAFT_SWEEP_DIFFERS;
}

/* Takes the inputs if the float executor differs on them by more than rounding. */
static bool take_inputs(graft_env *env, const graft_instance *instance, draw_extent extent,
                        float *const *values, graft_refutation *r)
{
    bool usual = extent == EXTENT_USUAL;
    r->replayed =
        replay_instance(env, instance, r->values, r) && (usual || is_confirmed(env, instance, r));
    if (r->replayed && usual) { /* Of others the difference could become one of rounding. */
        simplify_inputs(env, instance, values, r);
    }
    return r->replayed;
}

/* Finds inputs for which the float executor differs at r->point. */
static bool find_inputs(graft_env *env, const graft_rule *rule, graft_refutation *r)
{
    graft_instance instance;
    graft_rng rng;
    graft_named named;
    float *values[GRAFT_RULE_MAX_VARS] = {0};
    if (graft_instance_build(&instance, rule, &r->point) != GRAFT_FIT_OK) {
        return false;
    }
    graft_named_read(rule, &named);
    graft_rng_seed(&rng, 1);
    for (uint32_t v = 0; v < rule->var_count; v++) {
        values[v] = GRAFT_NEW(env->unit, float, elements_of(&instance, v));
        r->values[v] = values[v];
    }
    for (uint32_t kind = 0; kind < DRAW_KINDS; kind++) {
        draw_extent extent = (draw_extent)draw_kinds[kind].extent;
        bool fits = extent != EXTENT_HUGE || !graft_refute_needs_laws(rule);
        for (uint32_t draw = 0; draw < draw_kinds[kind].draws && fits; draw++) {
            draw_inputs(&rng, &named, kind, &instance, values);
            if (take_inputs(env, &instance, extent, values, r)) {
                return true;
            }
        }
    }
    return false;
}

/* The sample of the sweep itself, rounded. */
static void take_sample(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                        const graft_counterexample *found, graft_refutation *r)
{
    GRAFT_SCOPED(env->scratch);
    graft_field *fields[GRAFT_RULE_MAX_VARS] = {0};
    for (uint32_t v = 0; v < rule->var_count; v++) {
        fields[v] =
            GRAFT_NEW(env->scratch, graft_field, graft_shape_elements(&found->point.vars[v]));
    }
    graft_sweep_inputs(sweeper, rule, &found->point, found->seed, fields);
    for (uint32_t v = 0; v < rule->var_count; v++) {
        uint64_t count = graft_shape_elements(&found->point.vars[v]);
        float *values = GRAFT_NEW(env->unit, float, count);
        for (uint64_t i = 0; i < count; i++) {
            values[i] = (float)fields[v][i].shadow;
        }
        r->values[v] = values;
    }
    r->output = found->output;
    r->element = found->element;
    r->source = (float)found->source;
    r->target = (float)found->target;
    r->replayed = false;
}

/* Makes the inputs that are there simple if the float executor differs on them as the exact algebra
 * does, and still does so then. */
static void replay_sample(graft_env *env, const graft_rule *rule, graft_refutation *r)
{
    graft_instance instance;
    float *values[GRAFT_RULE_MAX_VARS] = {0};
    if (graft_instance_build(&instance, rule, &r->point) != GRAFT_FIT_OK) {
        return;
    }
    r->replayed = is_confirmed(env, &instance, r) && replay_instance(env, &instance, r->values, r);
    if (r->replayed) {
        graft_refutation simple = *r;
        for (uint32_t v = 0; v < rule->var_count; v++) {
            uint64_t count = elements_of(&instance, v);
            values[v] = GRAFT_NEW(env->unit, float, count);
            memcpy(values[v], r->values[v], count * sizeof *values[v]);
            simple.values[v] = values[v];
        }
        simplify_inputs(env, &instance, values, &simple);
        *r = is_confirmed(env, &instance, &simple) ? simple : *r;
    }
}

/* ---------------------------------------------------------------- shrinking */

/* A number of a point: a size of a variable, or a slot. */
typedef struct {
    bool is_slot;
    uint8_t index;
    uint8_t axis;
    int32_t least;
} member;

typedef struct {
    graft_env *env;
    const graft_sweeper *sweeper;
    const graft_rule *rule;
    graft_counterexample best;
    member members[MEMBERS_MOST];
    uint32_t count;
} shrinker;

static int32_t *number_at(graft_point *point, const member *m)
{
    return m->is_slot ? &point->slots[m->index] : &point->vars[m->index].dims[m->axis];
}

static void add_member(shrinker *s, member m)
{
    if (s->count < MEMBERS_MOST) {
        s->members[s->count++] = m;
    }
}

static void list_members(shrinker *s)
{
    uint64_t seen = 0;
    s->count = 0;
    for (uint32_t v = 0; v < s->rule->var_count; v++) {
        for (uint32_t i = 0; i < s->best.point.vars[v].rank; i++) {
            add_member(s, (member){false, (uint8_t)v, (uint8_t)i, 1});
        }
    }
    for (uint32_t n = 0; n < s->rule->source.node_count; n++) {
        const graft_pattern_node *node = &s->rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            const graft_term *term = &node->attrs[i];
            const graft_attr_info *info = graft_op_attr(node->op, i);
            if (term->kind == GRAFT_TERM_SLOT && info->kind != GRAFT_ATTR_FLOAT &&
                (seen >> term->value & 1u) == 0) {
                seen |= UINT64_C(1) << term->value;
                add_member(s, (member){true, (uint8_t)term->value, 0, info->least});
            }
        }
    }
}

/* Takes a smaller point when it is an instance where the sides still differ. */
static bool take(shrinker *s, const graft_point *point)
{
    graft_instance instance;
    graft_counterexample found;
    if (graft_instance_build(&instance, s->rule, point) != GRAFT_FIT_OK) {
        return false;
    }
    for (uint64_t seed = 0; seed < 2; seed++) {
        if (graft_sweep_instance(s->env, s->sweeper, &instance, SAMPLES, seed, &found) ==
            GRAFT_SWEEP_DIFFERS) {
            found.point = *point;
            s->best = found;
            return true;
        }
    }
    return false;
}

/* Lowers the member by `step`, alone or with all others of the same value. */
static bool lower(shrinker *s, uint32_t i, int32_t step, bool together)
{
    graft_point point = s->best.point;
    int32_t value = *number_at(&point, &s->members[i]);
    for (uint32_t k = 0; k < s->count; k++) {
        int32_t *number = number_at(&point, &s->members[k]);
        if (k == i || (together && *number == value)) {
            if (*number - step < s->members[k].least) {
                return false;
            }
            *number -= step;
        }
    }
    return take(s, &point);
}

/* Lowers two members by 1: sums and differences stay what they are. */
static bool lower_pairs(shrinker *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->count; i++) {
        for (uint32_t k = i + 1; k < s->count; k++) {
            graft_point point = s->best.point;
            int32_t *a = number_at(&point, &s->members[i]);
            int32_t *b = number_at(&point, &s->members[k]);
            if (*a > s->members[i].least && *b > s->members[k].least) {
                (*a)--;
                (*b)--;
                any = take(s, &point) || any;
            }
        }
    }
    return any;
}

/* Leaves an axis out of one variable, or of all that have it. */
static bool drop_axes(shrinker *s)
{
    for (uint32_t v = 0; v <= s->rule->var_count; v++) {
        for (uint32_t axis = 0; axis < GRAFT_MAX_RANK; axis++) {
            graft_point point = s->best.point;
            bool changed = false;
            for (uint32_t w = 0; w < s->rule->var_count; w++) {
                graft_shape *shape = &point.vars[w];
                if ((v != w && v != s->rule->var_count) || axis >= shape->rank) {
                    continue;
                }
                memmove(&shape->dims[axis], &shape->dims[axis + 1],
                        (GRAFT_MAX_RANK - 1 - axis) * sizeof shape->dims[0]);
                shape->dims[GRAFT_MAX_RANK - 1] = 0;
                shape->rank--;
                changed = true;
            }
            if (changed && take(s, &point)) {
                return true;
            }
        }
    }
    return false;
}

/* Real attributes of 1: what differs by a tiny scale differs by less than binary32 shows. */
static bool make_units(shrinker *s)
{
    static const int32_t one = 0x3f800000;
    uint8_t kinds[GRAFT_RULE_MAX_SLOTS];
    bool any = false;
    graft_named_slots(s->rule, kinds);
    for (uint32_t i = 0; i < s->rule->slot_count; i++) {
        graft_point point = s->best.point;
        point.slots[i] = one;
        any = (kinds[i] == GRAFT_SLOT_REAL && s->best.point.slots[i] != one && take(s, &point)) ||
              any;
    }
    return any;
}

static bool shrink_once(shrinker *s)
{
    bool any = make_units(s);
    any = drop_axes(s) || any;
    list_members(s);
    for (uint32_t i = 0; i < s->count; i++) {
        graft_point point = s->best.point;
        int32_t over = *number_at(&point, &s->members[i]) - s->members[i].least;
        bool lowered = false;
        for (int32_t step = over; step > 0 && !lowered; step /= 2) {
            lowered = lower(s, i, step, false) || lower(s, i, step, true);
        }
        any = lowered || any;
    }
    return lower_pairs(s) || any;
}

void graft_refute(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                  const graft_counterexample *found, graft_refutation *refutation)
{
    shrinker s = {.env = env, .sweeper = sweeper, .rule = rule, .best = *found};
    for (uint32_t round = 0; round < ROUNDS_MOST && shrink_once(&s); round++) {
    }
    memset(refutation, 0, sizeof *refutation);
    refutation->point = s.best.point;
    if (find_inputs(env, rule, refutation)) {
        return;
    }
    /* What is smallest may differ by less than binary32 shows. */
    refutation->point = found->point;
    if (!find_inputs(env, rule, refutation)) {
        refutation->point = s.best.point;
        take_sample(env, sweeper, rule, &s.best, refutation);
        replay_sample(env, rule, refutation);
    }
}

bool graft_refute_point(graft_env *env, const graft_rule *rule, const graft_point *point,
                        graft_refutation *refutation)
{
    memset(refutation, 0, sizeof *refutation);
    refutation->point = *point;
    return find_inputs(env, rule, refutation);
}
