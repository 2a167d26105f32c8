/* sweep.c - see sweep.h. */
#include "verify/sweep/sweep.h"

#include "graph/base/bits.h"
#include "graph/meaning/algebra_real.h"
#include "graph/rule/ruletypes.h"
#include "verify/sweep/named.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

void graft_sweep_open(graft_sweeper *sweeper)
{
    static const double negative_shares[4] = {0.5, 0.9, 0.1, 0.0};
    sweeper->rounded = false;
    for (uint32_t p = 0; p < 4; p++) {
        graft_rng rng;
        graft_rng_derive(&rng, 0x73776565u, p < 3 ? p : 4);
        for (uint32_t i = 0; i < GRAFT_SWEEP_POOL; i++) {
            sweeper->pools[p][i] = graft_field_random(&rng, negative_shares[p]);
        }
    }
    graft_rng rng;
    graft_rng_derive(&rng, 0x73776565u, 3);
    for (uint32_t i = 0; i < GRAFT_SWEEP_POOL; i++) {
        static const int32_t units[] = {0, 0, 1, -1};
        static const int32_t small[] = {1, -1, 2, -2, 3};
        uint32_t draw = graft_rng_below(&rng, 2 * COUNT_OF(units));
        sweeper->special[0][i] = draw < COUNT_OF(units) ? graft_field_integer(units[draw])
                                                        : graft_field_random(&rng, 0.5);
        int32_t wide = (int32_t)graft_rng_below(&rng, UINT32_C(16) << graft_rng_below(&rng, 12));
        sweeper->wide[i] = graft_field_rational(graft_rng_below(&rng, 2) == 0 ? wide : -wide, 8);
        sweeper->special[1][i] = graft_field_integer(small[graft_rng_below(&rng, COUNT_OF(small))]);
    }
}

/* Samples of special, of positive, of wide and of named numbers have these bits in their seeds. */
static const uint64_t special_bit = UINT64_C(1) << 63;
static const uint64_t positive_bit = UINT64_C(1) << 62;
static const uint64_t wide_bit = UINT64_C(1) << 61;
static const uint64_t named_bit = UINT64_C(1) << 60;

/* A number at which what the rule says may change, or beside it. */
static graft_field draw_named(graft_rng *rng, const graft_named *named)
{
    return graft_field_float(named->reals[graft_rng_below(rng, named->real_count)]);
}

/* A boolean, or one of the 256 numbers of the type, the ends of the range more often. */
static graft_field byte_of(graft_field x, uint8_t type)
{
    static const uint8_t ends[] = {0, 1, 127, 128, 129, 254, 255, 64};
    uint32_t place = (uint32_t)(x.residue >> 8) & 0xffu;
    if (type == GRAFT_DTYPE_BOOL) {
        return graft_field_integer(place % 2);
    }
    place = (x.residue & 3u) == 0 ? ends[place % COUNT_OF(ends)] : place;
    return graft_field_integer((int64_t)place - (type == GRAFT_DTYPE_I8 ? 128 : 0));
}

/* Consecutive elements come from consecutive entries: no two are the same number, but for special
 * ones. */
void graft_sweep_inputs(const graft_sweeper *sweeper, const graft_rule *rule,
                        const graft_point *point, uint64_t seed, graft_field *const *values)
{
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    const graft_field *pool = (seed & special_bit) != 0              ? sweeper->special[seed % 2]
                              : (seed & positive_bit) != 0           ? sweeper->pools[3]
                              : (seed & (wide_bit | named_bit)) != 0 ? sweeper->wide
                                                                     : sweeper->pools[seed % 3];
    uint32_t at = graft_rng_below(&rng, GRAFT_SWEEP_POOL);
    uint8_t types[GRAFT_RULE_MAX_VARS];
    graft_named named = {.real_count = 0};
    if ((seed & named_bit) != 0) {
        graft_named_read(rule, &named);
    }
    graft_rule_types(rule, point->slots, UINT64_MAX, types);
    for (uint32_t v = 0; v < rule->var_count; v++) {
        uint64_t count = graft_shape_elements(&point->vars[v]);
        for (uint64_t i = 0; i < count; i++) {
            graft_field x = named.real_count > 0 ? draw_named(&rng, &named) : pool[at];
            values[v][i] = types[v] == GRAFT_DTYPE_F32 ? x : byte_of(pool[at], types[v]);
            at = at + 1 < GRAFT_SWEEP_POOL ? at + 1 : 0;
        }
    }
}

/* Notes where an instance differs; `found` may be NULL. */
static graft_sweep_verdict note_difference(const graft_instance *instance, uint32_t output,
                                           uint64_t element, double source, double target,
                                           graft_counterexample *found)
{
    if (found != NULL) {
        found->point = *instance->point;
        found->output = output;
        found->element = element;
        found->source = source;
        found->target = target;
    }
    return GRAFT_SWEEP_DIFFERS;
}

/* ------------------------------------------------------------------ exactly */

/* What is known of a sample besides its numbers. */
typedef struct {
    graft_field_state state;
    bool
        may_be_undefined; /* The source; without a division by 0 it is not: shadows may overflow. */
    bool defined;         /* The source is, somewhere. */
} exact_sample;

/* Undefined numbers are told by their shadows. One that went into a maximum counts as ambiguous. */
static bool differs_exactly(exact_sample *sample, graft_field source, graft_field target)
{
    if (sample->may_be_undefined && isnan(source.shadow)) {
        return false;
    }
    sample->defined = true;
    return source.residue != target.residue || (isnan(target.shadow) && !isnan(source.shadow));
}

#define NUM                       graft_field
#define ALG(f)                    f##_field
#define RUN(k, op, call, in, out) graft_field_run(&((exact_sample *)(k))->state, op, call, in, out)
#define DIFFERS(k, a, b)          differs_exactly(k, a, b)
#include "verify/instances/sides.inc"

static graft_sweep_verdict compare_exactly(graft_env *env, const graft_instance *instance,
                                           const graft_field *const *vars,
                                           graft_counterexample *found)
{
    exact_sample sample = {.defined = false};
    const graft_field *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const graft_field *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    uint32_t o = 0;
    uint64_t i = 0;
    evaluate_side_field(&sample, env->scratch, instance, &instance->source, vars, left);
    if (sample.state.ambiguous_count > 0) {
        return GRAFT_SWEEP_UNDECIDED;
    }
    sample.may_be_undefined = sample.state.invalid_count > 0;
    evaluate_side_field(&sample, env->scratch, instance, &instance->target, vars, right);
    if (sample.state.ambiguous_count > 0) {
        return GRAFT_SWEEP_UNDECIDED;
    }
    if (find_difference_field(&sample, instance, left, right, &o, &i)) {
        return note_difference(instance, o, i, left[o][i].shadow, right[o][i].shadow, found);
    }
    return sample.defined ? GRAFT_SWEEP_AGREES : GRAFT_SWEEP_UNDECIDED;
}

/* --------------------------------------------------------------- in binary64 */

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

static bool differs_really(double x, double y)
{
    return !(fabs(x - y) <= tolerance * (1.0 + fmax(fabs(x), fabs(y))));
}

#define NUM                       double
#define ALG(f)                    f##_real
#define RUN(k, op, call, in, out) run_and_look((k), (op), (call), (in), (out))
#define DIFFERS(k, a, b)          ((k) != NULL ? (a) != (b) : differs_really(a, b))
#include "verify/instances/sides.inc"

static bool only_chooses(const graft_pattern *side)
{
    bool only = true;
    for (uint32_t n = 0; n < side->node_count; n++) {
        const uint32_t flags = graft_op(side->nodes[n].op)->flags;
        only = only && (flags & (GRAFT_FLAG_MOVES | GRAFT_FLAG_PIECEWISE)) != 0;
    }
    return only;
}

/* Where variable v is `inputs[v]`, rounded. UNDECIDED where the source is not defined or numbers
 * are so large that rounding hides differences. Where both sides only move and choose, nothing is
 * rounded behind that: `exact`ly. */
static graft_sweep_verdict compare_really(graft_env *env, const graft_instance *instance,
                                          const graft_field *const *inputs, bool exact,
                                          graft_counterexample *found)
{
    GRAFT_SCOPED(env->scratch);
    const double *vars[GRAFT_RULE_MAX_VARS] = {0};
    const double *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const double *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    tensors_seen seen = {false, false};
    uint32_t o = 0;
    uint64_t i = 0;
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        uint64_t count = graft_shape_elements(&instance->point->vars[v]);
        double *tensor = GRAFT_NEW(env->scratch, double, count);
        for (uint64_t k = 0; k < count; k++) {
            tensor[k] = inputs[v][k].shadow;
        }
        vars[v] = tensor;
    }
    evaluate_side_real(&seen, env->scratch, instance, &instance->source, vars, left);
    if (seen.undefined || seen.large) {
        return GRAFT_SWEEP_UNDECIDED;
    }
    evaluate_side_real(&seen, env->scratch, instance, &instance->target, vars, right);
    if (seen.large) {
        return GRAFT_SWEEP_UNDECIDED;
    }
    return find_difference_real(exact ? &exact : NULL, instance, left, right, &o, &i)
               ? note_difference(instance, o, i, left[o][i], right[o][i], found)
               : GRAFT_SWEEP_AGREES;
}

/* ---------------------------------------------------------------- instances */

graft_sweep_verdict graft_sweep_given(graft_env *env, const graft_instance *instance,
                                      const graft_field *const *values, bool rounded,
                                      graft_counterexample *counterexample)
{
    return rounded ? compare_really(env, instance, values, false, counterexample)
                   : compare_exactly(env, instance, values, counterexample);
}

/* Where numbers are too close for the exact arithmetic to order, those that are only moved and
 * chosen can be compared as they are. */
static bool differs_closely(graft_env *env, const graft_instance *instance,
                            const graft_field *const *values, graft_counterexample *found)
{
    return only_chooses(&instance->rule->source) && only_chooses(&instance->rule->target) &&
           compare_really(env, instance, values, true, found) == GRAFT_SWEEP_DIFFERS;
}

static graft_sweep_verdict compare_sides(graft_env *env, const graft_sweeper *sweeper,
                                         const graft_instance *instance, uint64_t seed,
                                         graft_counterexample *found)
{
    GRAFT_SCOPED(env->scratch);
    graft_field *values[GRAFT_RULE_MAX_VARS] = {0};
    const graft_field *vars[GRAFT_RULE_MAX_VARS] = {0};
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        uint64_t count = graft_shape_elements(&instance->point->vars[v]);
        values[v] = GRAFT_NEW(env->scratch, graft_field, count);
        vars[v] = values[v];
    }
    graft_sweep_inputs(sweeper, instance->rule, instance->point, seed, values);
    graft_sweep_verdict verdict = graft_sweep_given(env, instance, vars, sweeper->rounded, found);
    if (verdict == GRAFT_SWEEP_UNDECIDED && differs_closely(env, instance, vars, found)) {
        verdict = GRAFT_SWEEP_DIFFERS;
    }
    if (verdict == GRAFT_SWEEP_DIFFERS && found != NULL) {
        found->seed = seed;
    }
    return verdict;
}

enum { REDRAWS_MOST = 4 };

/* Whether the target may be undefined somewhere. */
static bool has_bounds(const graft_rule *rule)
{
    bool has = false;
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        uint32_t op = rule->target.nodes[n].op;
        has = has || op == GRAFT_OP_div || op == GRAFT_OP_sqrt;
    }
    return has;
}

/* Whether a real attribute is larger than the numbers of the usual samples. */
static bool is_wide(const graft_side *side)
{
    bool wide = false;
    for (uint32_t n = 0; n < side->pattern->node_count; n++) {
        uint32_t op = side->pattern->nodes[n].op;
        for (uint32_t i = 0; i < graft_op(op)->attr_count; i++) {
            const float value = graft_float_of_bits(side->attrs[n][i]);
            wide = wide || (graft_op_attr(op, i)->kind == GRAFT_ATTR_FLOAT && isfinite(value) &&
                            fabsf(value) > 7.0F);
        }
    }
    return wide;
}

graft_sweep_verdict graft_sweep_instance(graft_env *env, const graft_sweeper *sweeper,
                                         const graft_instance *instance, uint32_t samples,
                                         uint64_t seed, graft_counterexample *counterexample)
{
    graft_sweep_verdict verdict = GRAFT_SWEEP_UNDECIDED;
    for (uint32_t s = 0; s < samples; s++) {
        graft_sweep_verdict one = GRAFT_SWEEP_UNDECIDED;
        for (uint32_t t = 0; t < REDRAWS_MOST && one == GRAFT_SWEEP_UNDECIDED; t++) {
            /* Of seed, sample and draw; samples differ modulo 3, so in their signs. */
            uint64_t draw = (seed * REDRAWS_MOST + t) * 3 + (s + seed) % 3 + 3 * s * 0x100000000u;
            draw |= t + 1 == REDRAWS_MOST ? positive_bit : 0;
            one = compare_sides(env, sweeper, instance, draw, counterexample);
        }
        if (one == GRAFT_SWEEP_DIFFERS) {
            return one;
        }
        verdict = one == GRAFT_SWEEP_AGREES ? one : verdict;
    }
    if (has_bounds(instance->rule) && compare_sides(env, sweeper, instance, seed | special_bit,
                                                    counterexample) == GRAFT_SWEEP_DIFFERS) {
        return GRAFT_SWEEP_DIFFERS;
    }
    const bool wide = is_wide(&instance->source) || is_wide(&instance->target);
    const uint64_t bits[] = {wide_bit, named_bit};
    for (uint32_t i = 0; wide && i < COUNT_OF(bits); i++) {
        if (compare_sides(env, sweeper, instance, seed | bits[i], counterexample) ==
            GRAFT_SWEEP_DIFFERS) {
            return GRAFT_SWEEP_DIFFERS;
        }
    }
    return verdict;
}

/* ------------------------------------------------------------------ domains */

typedef struct {
    uint64_t size;
    uint32_t point;
} ranked_point;

static int compare_ranked(const void *a, const void *b)
{
    const ranked_point *x = a;
    const ranked_point *y = b;
    if (x->size != y->size) {
        return x->size < y->size ? -1 : 1;
    }
    return x->point < y->point ? -1 : 1;
}

/* Points by the number of elements of their variables, then as they come. */
static const ranked_point *rank_points(graft_env *env, const graft_rule *rule,
                                       const graft_domain *domain)
{
    ranked_point *ranked = GRAFT_NEW(env->scratch, ranked_point, domain->count);
    for (uint32_t i = 0; i < domain->count; i++) {
        ranked[i].point = i;
        for (uint32_t v = 0; v < rule->var_count; v++) {
            ranked[i].size += graft_shape_elements(&domain->points[i].vars[v]);
        }
    }
    qsort(ranked, domain->count, sizeof *ranked, compare_ranked);
    return ranked;
}

void graft_sweep_domain(graft_env *env, const graft_sweeper *sweeper, const graft_rule *rule,
                        const graft_domain *domain, uint32_t samples, graft_sweep_result *result)
{
    GRAFT_SCOPED(env->scratch);
    const ranked_point *ranked = rank_points(env, rule, domain);
    memset(result, 0, sizeof *result);
    for (uint32_t i = 0; i < domain->count && !result->refuted; i++) {
        graft_instance instance;
        const graft_point *point = &domain->points[ranked[i].point];
        graft_fit fit = graft_instance_build(&instance, rule, point);
        assert(fit == GRAFT_FIT_OK);
        (void)fit;
        switch (
            graft_sweep_instance(env, sweeper, &instance, samples, i, &result->counterexample)) {
        case GRAFT_SWEEP_AGREES:
            result->agreed++;
            break;
        case GRAFT_SWEEP_UNDECIDED:
            result->undecided++;
            break;
        case GRAFT_SWEEP_DIFFERS:
            result->refuted = true;
            break;
        }
    }
}
