/* roofline.c - fitting the roofline and estimating with it (see roofline.h).
 *
 * The fit is a weighted least-squares problem in three unknowns that may not be negative. With
 * three there are seven sets of unknowns that may be positive: each is solved exactly, and the best
 * solution without a negative coefficient is the answer. */
#include "cost/database/roofline.h"

#include "cost/measure/clock.h"

#include <math.h>
#include <string.h>

enum { TERMS = 3, SUBSETS = 1 << TERMS };

static bool is_product(uint32_t op)
{
    const graft_signature s = {.op = (uint8_t)op};
    return graft_signature_is_product(&s) || graft_signature_is_attention(&s) ||
           op == GRAFT_COST_INTEGER_CONV || op == GRAFT_COST_INTEGER_MATMUL;
}

static void terms_of(const graft_cost_entry *point, double terms[TERMS])
{
    terms[0] = 1.0;
    terms[1] = (double)point->bytes;
    terms[2] = (double)point->flops;
}

static double predict(const double x[TERMS], const graft_cost_entry *point)
{
    double terms[TERMS];
    terms_of(point, terms);
    return x[0] * terms[0] + x[1] * terms[1] + x[2] * terms[2];
}

/* Sums of products of the terms, each point divided by its time: A x = b minimises the relative
 * errors. */
static void sum_products(const graft_cost_entry *points, uint32_t count, double a[TERMS][TERMS],
                         double b[TERMS])
{
    memset(a, 0, TERMS * sizeof(a[0]));
    memset(b, 0, TERMS * sizeof(b[0]));
    for (uint32_t p = 0; p < count; p++) {
        double terms[TERMS];
        terms_of(&points[p], terms);
        for (uint32_t i = 0; i < TERMS; i++) {
            b[i] += terms[i] / points[p].median_ns;
            for (uint32_t j = 0; j < TERMS; j++) {
                a[i][j] += terms[i] / points[p].median_ns * (terms[j] / points[p].median_ns);
            }
        }
    }
}

bool graft_cost_solve(double *equations, uint32_t count, double *x)
{
    const size_t width = (size_t)count + 1;
    for (uint32_t i = 0; i < count; i++) {
        const double *given = equations + i * width;
        if (!(given[i] > 0.0)) {
            return false;
        }
        for (uint32_t row = 0; row < count; row++) {
            double *changed = equations + row * width;
            double factor = row == i ? 0.0 : changed[i] / given[i];
            for (uint32_t j = 0; j <= count; j++) {
                changed[j] -= factor * given[j];
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        x[i] = equations[i * width + count] / equations[i * width + i];
    }
    return true;
}

/* The unknowns in `subset`; the others are 0. False when singular. */
static bool solve_subset(double a[TERMS][TERMS], const double b[TERMS], uint32_t subset,
                         double x[TERMS])
{
    double m[TERMS][TERMS + 1];
    for (uint32_t i = 0; i < TERMS; i++) {
        bool used = (subset >> i & 1u) != 0;
        for (uint32_t j = 0; j < TERMS; j++) {
            bool both = used && (subset >> j & 1u) != 0;
            m[i][j] = both ? a[i][j] : (i == j ? 1.0 : 0.0);
        }
        m[i][TERMS] = used ? b[i] : 0.0;
    }
    return graft_cost_solve(&m[0][0], TERMS, x);
}

static double square_error(const double x[TERMS], const graft_cost_entry *points, uint32_t count)
{
    double error = 0.0;
    for (uint32_t p = 0; p < count; p++) {
        double relative = predict(x, &points[p]) / points[p].median_ns - 1.0;
        error += relative * relative;
    }
    return error;
}

static double median_error(graft_env *env, const double x[TERMS], const graft_cost_entry *points,
                           uint32_t count)
{
    GRAFT_SCOPED(env->scratch);
    double *errors = GRAFT_NEW(env->scratch, double, count);
    for (uint32_t p = 0; p < count; p++) {
        errors[p] = fabs(predict(x, &points[p]) / points[p].median_ns - 1.0);
    }
    return graft_cost_quantile(errors, count, 0.5);
}

graft_roofline_line graft_roofline_fit_line(graft_env *env, const graft_cost_entry *points,
                                            uint32_t count)
{
    graft_roofline_line line = {.points = 0};
    double a[TERMS][TERMS];
    double b[TERMS];
    double best[TERMS] = {0.0};
    double best_error = (double)INFINITY;
    if (count < GRAFT_ROOFLINE_LEAST_POINTS) {
        return line;
    }
    sum_products(points, count, a, b);
    for (uint32_t subset = 1; subset < SUBSETS; subset++) {
        double x[TERMS] = {0.0};
        bool solved = solve_subset(a, b, subset, x) && x[0] >= 0.0 && x[1] >= 0.0 && x[2] >= 0.0;
        if (solved && square_error(x, points, count) < best_error) {
            best_error = square_error(x, points, count);
            memcpy(best, x, sizeof(best));
        }
    }
    line.launch_ns = best[0];
    line.ns_per_byte = best[1];
    line.ns_per_flop = best[2];
    line.error = median_error(env, best, points, count);
    line.points = count;
    return line;
}

static graft_roofline_line fit_class(graft_env *env, const graft_database *database, bool products)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t count = 0;
    graft_cost_entry *points =
        GRAFT_NEW(env->scratch, graft_cost_entry, graft_database_count(database));
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        const graft_database_record *record = graft_database_at(database, i);
        if (is_product(record->signature.op) == products &&
            record->signature.op != GRAFT_COST_FACTOR &&
            !graft_signature_is_quantised(&record->signature) && /* As slow as their loops. */
            !graft_signature_is_integer(&record->signature) &&   /* Several times as fast. */
            record->entry.source == GRAFT_COST_MEASURED &&
            graft_database_selects(database, record)) {
            points[count++] = record->entry;
        }
    }
    return graft_roofline_fit_line(env, points, count);
}

void graft_roofline_fit(graft_env *env, const graft_database *database, graft_roofline *roofline)
{
    roofline->products = fit_class(env, database, true);
    roofline->others = fit_class(env, database, false);
    if (roofline->products.points == 0) {
        roofline->products = roofline->others;
    }
    if (roofline->others.points == 0) {
        roofline->others = roofline->products;
    }
}

bool graft_roofline_estimate(const graft_roofline *roofline, uint32_t op, uint64_t flops,
                             uint64_t bytes, graft_cost_entry *entry)
{
    const graft_roofline_line *line = is_product(op) ? &roofline->products : &roofline->others;
    if (line->points == 0) {
        return false;
    }
    memset(entry, 0, sizeof(*entry));
    double ns =
        line->launch_ns + line->ns_per_byte * (double)bytes + line->ns_per_flop * (double)flops;
    entry->median_ns = graft_cost_round(ns);
    entry->spread_ns = graft_cost_round(ns * line->error);
    entry->flops = flops;
    entry->bytes = bytes;
    entry->source = GRAFT_COST_ESTIMATED;
    return true;
}

/* ------------------------------------------------------------------ probes */

typedef struct {
    int32_t channels;
    int32_t pixels; /* Height and width. */
    int32_t filters;
    int32_t taps; /* Height and width of the filter; odd. */
} probe_size;

static graft_shape image_shape(int32_t channels, int32_t pixels)
{
    return (graft_shape){
        .dims = {1, channels, pixels, pixels},
          .rank = 4, .dtype = GRAFT_DTYPE_F32
    };
}

static void probe_conv(const probe_size *size, graft_signature *s)
{
    memset(s, 0, sizeof(*s));
    s->op = GRAFT_OP_conv;
    s->input_count = 2;
    s->output_count = 1;
    s->const_mask = 2;
    s->inputs[0] = image_shape(size->channels, size->pixels);
    s->inputs[1] = image_shape(size->channels, size->taps);
    s->inputs[1].dims[0] = size->filters;
    s->in_layouts[0] = GRAFT_LAYOUT_NHWC;
    s->out_layouts[0] = GRAFT_LAYOUT_NHWC;
    for (uint32_t i = 0; i < 2; i++) {
        s->attrs[GRAFT_ATTR_conv_stride_h + i] = 1;
        s->attrs[GRAFT_ATTR_conv_dilation_h + i] = 1;
        s->attrs[GRAFT_ATTR_conv_pad_top + i] = size->taps / 2;
        s->attrs[GRAFT_ATTR_conv_pad_bottom + i] = size->taps / 2;
    }
    s->attrs[GRAFT_ATTR_conv_groups] = 1;
}

static void probe_image(uint32_t op, const probe_size *size, graft_signature *s)
{
    memset(s, 0, sizeof(*s));
    s->op = (uint8_t)op;
    s->input_count = op == GRAFT_OP_add ? 2 : 1;
    s->output_count = 1;
    for (uint32_t k = 0; k < s->input_count; k++) {
        s->inputs[k] = image_shape(size->channels, size->pixels);
        s->in_layouts[k] = GRAFT_LAYOUT_NHWC;
    }
    s->out_layouts[0] = GRAFT_LAYOUT_NHWC;
}

graft_signature *graft_roofline_probes(graft_arena *arena, uint32_t *count)
{
    static const probe_size sizes[] = {
        {8,   8,  8,   1},
        {32,  16, 32,  3},
        {64,  28, 128, 1},
        {64,  28, 64,  3},
        {128, 28, 128, 3},
        {256, 14, 512, 1},
        {256, 56, 64,  1},
        {512, 7,  512, 3},
    };
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), KINDS = 4 };
    graft_signature *probes = GRAFT_NEW(arena, graft_signature, SIZES * KINDS);
    *count = 0;
    for (uint32_t i = 0; i < SIZES; i++) {
        graft_shape shape = image_shape(sizes[i].channels, sizes[i].pixels);
        probe_conv(&sizes[i], &probes[(*count)++]);
        probe_image(GRAFT_OP_relu, &sizes[i], &probes[(*count)++]);
        probe_image(GRAFT_OP_add, &sizes[i], &probes[(*count)++]);
        graft_signature_of_reorder(&shape, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC,
                                   &probes[(*count)++]);
    }
    return probes;
}
