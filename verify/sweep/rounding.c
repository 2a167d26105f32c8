/* rounding.c - see rounding.h. */
#include "verify/sweep/rounding.h"

#include "graph/base/rng.h"
#include "graph/meaning/algebra_float.h"
#include "graph/meaning/algebra_half.h"
#include "graph/meaning/algebra_real.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    POINTS_MOST = 6,
    SAMPLES = 8,
    KINDS = 4,
    WORK_MOST = 20000,
    ELEMENTS_MOST = 8192,
    HUNDREDTHS = 100
};

#define NUM                       float
#define ALG(f)                    f##_f32
#define RUN(k, op, call, in, out) ((void)(k), graft_float_run((op), (call), (in), (out)))
#include "verify/instances/sides.inc"

#define NUM                       float
#define ALG(f)                    f##_f16
#define RUN(k, op, call, in, out) ((void)(k), graft_half_run((op), (call), (in), (out)))
#include "verify/instances/sides.inc"

#define NUM                       double
#define ALG(f)                    f##_f64
#define RUN(k, op, call, in, out) ((void)(k), graft_real_run((op), (call), (in), (out)))
#include "verify/instances/sides.inc"

typedef struct {
    graft_env *env;
    const graft_instance *instance;
    const float *vars[GRAFT_RULE_MAX_VARS];
    const double *exact[GRAFT_RULE_MAX_VARS];
    double largest;                                                 /* Of the inputs. */
    uint32_t *errors[GRAFT_ROUNDING_FORMATS][GRAFT_ROUNDING_SIDES]; /* Hundredths of an ulp. */
    uint32_t counts[GRAFT_ROUNDING_FORMATS][GRAFT_ROUNDING_SIDES];
    graft_rounding *rounding;
} meter;

/* ------------------------------------------------------------------- inputs */

static double draw_input(graft_rng *rng, uint32_t kind)
{
    static const double few[] = {1.0, 1.5, 1.0 / 3.0, 0.1};
    double sign = graft_rng_below(rng, 2) == 0 ? 1.0 : -1.0;
    switch (kind) {
    case 0:
        return graft_rng_normal(rng);
    case 1:
        return 0.25 + graft_rng_uniform(rng);
    case 2:
        return sign * ldexp(1.0 + graft_rng_uniform(rng), (int)graft_rng_below(rng, 6) - 3);
    default: /* A few halves next to one of few values. */
        return sign * few[graft_rng_below(rng, 4)] *
               (1.0 + (double)graft_rng_below(rng, 3) * ldexp(1.0, -10));
    }
}

/* Every number is a half, so that both formats start from the same. */
static void draw_inputs(meter *m, uint64_t seed, uint32_t kind)
{
    m->largest = 0.0;
    for (uint32_t v = 0; v < m->instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&m->instance->point->vars[v]);
        float *halves = GRAFT_NEW(m->env->scratch, float, count);
        double *doubles = GRAFT_NEW(m->env->scratch, double, count);
        graft_rng rng;
        graft_rng_derive(&rng, seed, v);
        for (size_t i = 0; i < count; i++) {
            halves[i] = graft_half_round(draw_input(&rng, kind));
            doubles[i] = (double)halves[i];
            m->largest = fmax(m->largest, fabs(doubles[i]));
        }
        m->vars[v] = halves;
        m->exact[v] = doubles;
    }
}

/* ------------------------------------------------------------------- errors */

/* The distance of |x| from the next number of the format above. */
static double unit_of(double x, uint32_t format)
{
    int exponent = 0;
    int bits = format == GRAFT_ROUNDING_F32 ? 24 : 11;
    int least = format == GRAFT_ROUNDING_F32 ? -126 : -14;
    (void)frexp(x, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    return ldexp(1.0, exponent - (bits - 1));
}

static void record(meter *m, uint32_t format, uint32_t side, double got, double want)
{
    if (!isfinite(got)) {
        m->rounding->sides[format][side].overflows++;
        return;
    }
    if (m->counts[format][side] < ELEMENTS_MOST) {
        double base = fmax(fabs(want), fmin(m->largest, 1.0));
        double error = fabs(got - want) / unit_of(base, format) * HUNDREDTHS;
        m->errors[format][side][m->counts[format][side]++] =
            error < (double)UINT32_MAX ? (uint32_t)error : UINT32_MAX;
    }
}

/* Both sides of one sample in one format against `want`. */
static void compare_format(meter *m, uint32_t format, const double *const *want)
{
    for (uint32_t s = 0; s < GRAFT_ROUNDING_SIDES; s++) {
        const graft_instance *x = m->instance;
        const graft_side *side = s == GRAFT_ROUNDING_SOURCE ? &x->source : &x->target;
        const float *got[GRAFT_RULE_MAX_OUTPUTS] = {0};
        if (format == GRAFT_ROUNDING_F32) {
            evaluate_side_f32(NULL, m->env->scratch, x, side, m->vars, got);
        } else {
            evaluate_side_f16(NULL, m->env->scratch, x, side, m->vars, got);
        }
        for (uint32_t o = 0; o < x->rule->output_count; o++) {
            size_t count = (size_t)graft_shape_elements(graft_instance_output(x, o));
            assert(want[o] != NULL); /* Sides have equal outputs. */
            for (size_t i = 0; i < count; i++) {
                if (isfinite(want[o][i])) {
                    record(m, format, s, (double)got[o][i], want[o][i]);
                }
            }
        }
    }
}

static void measure_sample(meter *m, uint64_t seed, uint32_t kind)
{
    GRAFT_SCOPED(m->env->scratch);
    const double *want[GRAFT_RULE_MAX_OUTPUTS] = {0};
    draw_inputs(m, seed, kind);
    evaluate_side_f64(NULL, m->env->scratch, m->instance, &m->instance->source, m->exact, want);
    for (uint32_t f = 0; f < GRAFT_ROUNDING_FORMATS; f++) {
        compare_format(m, f, want);
    }
}

/* ------------------------------------------------------------------ summary */

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;
    return (*x > *y) - (*x < *y);
}

static void summarise(meter *m)
{
    for (uint32_t f = 0; f < GRAFT_ROUNDING_FORMATS; f++) {
        for (uint32_t s = 0; s < GRAFT_ROUNDING_SIDES; s++) {
            uint32_t count = m->counts[f][s];
            if (count > 0) {
                qsort(m->errors[f][s], count, sizeof(uint32_t), compare_numbers);
                m->rounding->sides[f][s].median = m->errors[f][s][count / 2];
                m->rounding->sides[f][s].most = m->errors[f][s][count - 1];
            }
        }
    }
    m->rounding->elements = m->counts[GRAFT_ROUNDING_F32][GRAFT_ROUNDING_SOURCE];
}

void graft_rounding_measure(graft_env *env, const graft_rule *rule, const graft_point *points,
                            uint32_t count, graft_rounding *rounding)
{
    GRAFT_SCOPED(env->scratch);
    meter m = {.env = env, .rounding = rounding};
    uint64_t id = graft_rule_id(rule);
    uint32_t measured = 0;
    memset(rounding, 0, sizeof *rounding);
    for (uint32_t k = 0; k < GRAFT_ROUNDING_FORMATS * GRAFT_ROUNDING_SIDES; k++) {
        m.errors[k / 2][k % 2] = GRAFT_NEW(env->scratch, uint32_t, ELEMENTS_MOST);
    }
    for (uint32_t i = 0; i < count && measured < POINTS_MOST; i++) {
        graft_instance instance;
        if (graft_instance_build(&instance, rule, &points[i]) != GRAFT_FIT_OK ||
            graft_instance_work(&instance) > WORK_MOST) {
            continue;
        }
        m.instance = &instance;
        for (uint32_t s = 0; s < SAMPLES; s++) {
            measure_sample(&m, id + (uint64_t)i * SAMPLES + s, s % KINDS);
        }
        measured++;
    }
    summarise(&m);
}
