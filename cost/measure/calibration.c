/* calibration.c - fitting and applying what networks add to operators (see calibration.h). */
#include "cost/measure/calibration.h"

#include "cost/database/roofline.h"
#include "cost/measure/clock.h"

#include <math.h>
#include <string.h>

enum { ITERATIONS = 60, PERMILLE = 1000 };

/* Prior: how far factors and steps stray by themselves. One graph that is off by as much as
 * `tolerance` weighs as much as one factor that strays by its `width`. */
static const double width[GRAFT_FACTOR_COUNT] = {0.1, 0.5, 0.5, 200.0, 0.1, 0.5};
static const double tolerance = 0.05;
/* Of a sum: what may rest on estimates. */
static const double unsure_share = 0.02;
/* About what a second-level cache holds; a constant for the same reason as graft_distance's. */
static const uint64_t cold_bytes = (uint64_t)2 << 20;
/* Below this relative error a graph is hit: it does not pull any harder. */
static const double least_error = 0.005;

graft_calibration graft_calibration_none(void)
{
    return (graft_calibration){
        .values = {1.0, 1.0, 1.0, 0.0, 1.0, 1.0}
    };
}

/* Whether a loop finds all operands in the second-level cache, but not a network. */
static bool is_cold(const graft_signature *s)
{
    return (s->distance == GRAFT_DISTANCE_SHARED || s->distance == GRAFT_DISTANCE_FAR ||
            s->distance == GRAFT_DISTANCE_MEMORY) &&
           s->op != GRAFT_OP_OPAQUE && graft_signature_bytes(s) <= cold_bytes;
}

/* A convolution of one channel by one filter reads and writes as much as it computes. */
static bool is_depthwise(const graft_signature *s)
{
    return s->inputs[1].rank == 4 && s->inputs[1].dims[1] == 1 && s->inputs[0].dims[1] > 1;
}

graft_factor graft_factor_of(const graft_signature *signature)
{
    if (signature->op == GRAFT_COST_REORDER) {
        return GRAFT_FACTOR_CONVERSIONS;
    }
    if (graft_signature_is_product(signature) && !is_depthwise(signature)) {
        return signature->out_layouts[0] == GRAFT_LAYOUT_BLOCKED ? GRAFT_FACTOR_BLOCKED
                                                                 : GRAFT_FACTOR_PRODUCTS;
    }
    return is_cold(signature) ? GRAFT_FACTOR_COLD : GRAFT_FACTOR_OTHERS;
}

void graft_calibration_add(graft_calibration_sample *sample, const graft_signature *signature,
                           const graft_cost_entry *entry)
{
    sample->parts[graft_factor_of(signature)] += entry->median_ns;
    sample->parts[GRAFT_FACTOR_STEP] += 1.0;
    sample->estimated_ns += entry->source == GRAFT_COST_ESTIMATED ? entry->median_ns : 0.0;
}

bool graft_calibration_unsure(const graft_calibration_sample *sample)
{
    const graft_calibration none = graft_calibration_none();
    return sample->estimated_ns > unsure_share * graft_calibration_predict(&none, sample);
}

double graft_calibration_predict(const graft_calibration *calibration,
                                 const graft_calibration_sample *sample)
{
    double ns = 0.0;
    for (uint32_t i = 0; i < GRAFT_FACTOR_COUNT; i++) {
        ns += calibration->values[i] * sample->parts[i];
    }
    return ns;
}

/* --------------------------------------------------------------------- fit */

/* Normal equations of one weighted step, in corrections to "nothing", scaled by their widths. */
typedef struct {
    double a[GRAFT_FACTOR_COUNT][GRAFT_FACTOR_COUNT + 1];
} equations;

static void add_sample(equations *e, const graft_calibration_sample *sample, double weight)
{
    const graft_calibration none = graft_calibration_none();
    double rest = 1.0 - graft_calibration_predict(&none, sample) / sample->whole_ns;
    for (uint32_t i = 0; i < GRAFT_FACTOR_COUNT; i++) {
        double x = sample->parts[i] * width[i] / sample->whole_ns;
        for (uint32_t j = 0; j < GRAFT_FACTOR_COUNT; j++) {
            e->a[i][j] += weight * x * sample->parts[j] * width[j] / sample->whole_ns;
        }
        e->a[i][GRAFT_FACTOR_COUNT] += weight * x * rest;
    }
}

static double error_of(const graft_calibration *c, const graft_calibration_sample *sample)
{
    return fabs(graft_calibration_predict(c, sample) / sample->whole_ns - 1.0);
}

static bool is_used(const graft_calibration_sample *sample, uint32_t left_out)
{
    return sample->model != left_out && !graft_calibration_unsure(sample);
}

static double median_error(graft_env *env, const graft_calibration *c,
                           const graft_calibration_sample *samples, uint32_t count,
                           uint32_t left_out)
{
    GRAFT_SCOPED(env->scratch);
    double *errors = GRAFT_NEW(env->scratch, double, count);
    uint32_t used = 0;
    for (uint32_t s = 0; s < count; s++) {
        if (is_used(&samples[s], left_out)) {
            errors[used++] = error_of(c, &samples[s]);
        }
    }
    return used == 0 ? 0.0 : graft_cost_quantile(errors, used, 0.5);
}

graft_calibration graft_calibration_fit(graft_env *env, const graft_calibration_sample *samples,
                                        uint32_t count, uint32_t left_out)
{
    graft_calibration c = graft_calibration_none();
    for (uint32_t iteration = 0; iteration < ITERATIONS; iteration++) {
        equations e;
        double x[GRAFT_FACTOR_COUNT];
        memset(&e, 0, sizeof(e));
        c.graphs = 0;
        for (uint32_t i = 0; i < GRAFT_FACTOR_COUNT; i++) {
            e.a[i][i] = 1.0 / tolerance;
        }
        for (uint32_t s = 0; s < count; s++) {
            if (is_used(&samples[s], left_out)) {
                double error = fmax(error_of(&c, &samples[s]), least_error);
                add_sample(&e, &samples[s], 1.0 / (tolerance * error));
                c.graphs++;
            }
        }
        if (!graft_cost_solve(&e.a[0][0], GRAFT_FACTOR_COUNT, x)) {
            break; /* Not of numbers: the prior makes it definite. */
        }
        for (uint32_t i = 0; i < GRAFT_FACTOR_COUNT; i++) {
            double nothing = i == GRAFT_FACTOR_STEP ? 0.0 : 1.0;
            c.values[i] = fmax(nothing + x[i] * width[i], 0.5 * nothing);
        }
    }
    c.error = median_error(env, &c, samples, count, left_out);
    return c;
}

/* ------------------------------------------------------------------- apply */

void graft_calibration_apply(const graft_calibration *calibration, const graft_signature *signature,
                             graft_cost_entry *entry)
{
    double factor = calibration->values[graft_factor_of(signature)];
    double step_ns = calibration->values[GRAFT_FACTOR_STEP];
    entry->median_ns = graft_cost_round(entry->median_ns * factor + step_ns);
    entry->spread_ns = graft_cost_round(entry->spread_ns * factor);
}

/* ---------------------------------------------------------------- database */

static void describe(uint32_t factor, graft_signature *signature)
{
    memset(signature, 0, sizeof(*signature));
    signature->op = GRAFT_COST_FACTOR;
    signature->attrs[0] = (int32_t)factor;
}

graft_calibration graft_calibration_read(const graft_database *database)
{
    graft_calibration c = graft_calibration_none();
    for (uint32_t i = 0; i < GRAFT_FACTOR_COUNT; i++) {
        graft_signature signature;
        describe(i, &signature);
        const graft_cost_entry *entry = graft_database_find(database, &signature);
        if (entry == NULL) {
            return graft_calibration_none();
        }
        c.values[i] = entry->median_ns / (i == GRAFT_FACTOR_STEP ? 1.0 : PERMILLE);
        c.error = entry->spread_ns / PERMILLE;
        c.graphs = entry->rounds;
    }
    return c;
}

void graft_calibration_write(const graft_calibration *calibration, const char *provenance,
                             graft_database *database)
{
    for (uint32_t i = 0; i < GRAFT_FACTOR_COUNT; i++) {
        graft_signature signature;
        graft_cost_entry entry = {.rounds = calibration->graphs};
        describe(i, &signature);
        entry.median_ns =
            graft_cost_round(calibration->values[i] * (i == GRAFT_FACTOR_STEP ? 1.0 : PERMILLE));
        entry.spread_ns = graft_cost_round(calibration->error * PERMILLE);
        (void)snprintf(entry.implementation, sizeof(entry.implementation), "%s", provenance);
        graft_database_add(database, &signature, &entry);
    }
}
