/* gradient.c - see gradient.h. */
#include "tests/support/gradient.h"

#include "tests/support/check.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double step = 1.0 / 64.0;

/* Distinct values +-(0.15 + 0.1 k), in random order. */
static void fill_leaf(graft_rng *rng, float *value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        size_t pair = i / 2;
        float magnitude = 0.15F + 0.1F * (float)pair;
        value[i] = i % 2 == 0 ? magnitude : -magnitude;
    }
    for (size_t i = size; i > 1; i--) {
        size_t j = graft_rng_below(rng, (uint32_t)i);
        float held = value[i - 1];
        value[i - 1] = value[j];
        value[j] = held;
    }
}

/* The projection of the result for leaf values `values`; with `gradients`, also the way back. */
static double project(const gradient_case *row, graft_arena *arena, float *const values[],
                      float *const gradients[])
{
    graft_arena_reset(arena);
    graft_tape tape;
    graft_tape_init(&tape, arena, gradients != NULL);
    const graft_matrix *leaves[GRADIENT_LEAVES_MOST];
    for (uint32_t k = 0; k < row->leaf_count; k++) {
        graft_matrix *leaf = graft_tape_matrix(&tape, row->rows[k], row->cols[k]);
        memcpy(leaf->value, values[k], graft_matrix_size(leaf) * sizeof(float));
        leaves[k] = leaf;
    }
    const graft_matrix *out = row->apply(&tape, leaves);
    graft_rng rng = check_rng(99);
    double sum = 0.0;
    size_t size = graft_matrix_size(out);
    for (size_t i = 0; i < size; i++) {
        double weight = graft_rng_uniform(&rng) * 2.0 - 1.0;
        bool masked = out->value[i] < -1e20F; /* The log of probability 0 */
        sum += masked ? 0.0 : weight * (double)out->value[i];
        if (gradients != NULL) {
            out->gradient[i] = masked ? 0.0F : (float)weight;
        }
    }
    if (gradients != NULL) {
        graft_tape_backward(&tape);
        for (uint32_t k = 0; k < row->leaf_count; k++) {
            memcpy(gradients[k], leaves[k]->gradient, graft_matrix_size(leaves[k]) * sizeof(float));
        }
    }
    return sum;
}

/* d projection / d values[k][i]. */
static double differentiate(const gradient_case *row, graft_arena *arena, float *const values[],
                            float *place)
{
    static const double offsets[4] = {1.0, -1.0, 2.0, -2.0};
    static const double weights[4] = {8.0, -8.0, -1.0, 1.0};
    float kept = *place;
    double sum = 0.0;
    for (uint32_t p = 0; p < 4; p++) {
        *place = kept + (float)(offsets[p] * step);
        sum += weights[p] * project(row, arena, values, NULL);
    }
    *place = kept;
    return sum / (12.0 * step);
}

double gradient_worst(const gradient_case *row)
{
    graft_arena *life = graft_arena_new(1 << 16);
    graft_arena *arena = graft_arena_new(1 << 16);
    graft_rng rng = check_rng(7);
    float *values[GRADIENT_LEAVES_MOST] = {0};
    float *gradients[GRADIENT_LEAVES_MOST] = {0};
    for (uint32_t k = 0; k < row->leaf_count; k++) {
        size_t size = (size_t)row->rows[k] * row->cols[k];
        values[k] = GRAFT_NEW(life, float, size);
        gradients[k] = GRAFT_NEW(life, float, size);
        fill_leaf(&rng, values[k], size);
    }
    (void)project(row, arena, values, gradients);
    double worst = 0.0;
    for (uint32_t k = 0; k < row->leaf_count; k++) {
        assert(gradients[k] != NULL);
        size_t size = (size_t)row->rows[k] * row->cols[k];
        for (size_t i = 0; i < size; i++) {
            double want = differentiate(row, arena, values, &values[k][i]);
            double error = fabs((double)gradients[k][i] - want) / (1.0 + fabs(want));
            worst = error > worst || isnan(error) ? error : worst;
        }
    }
    graft_arena_free(arena);
    graft_arena_free(life);
    return isnan(worst) ? HUGE_VAL : worst;
}

/* (lose(value + h d) - lose(value - h d)) / 2h along the unit vector `direction`. */
static double slope_along(const graft_parameter *item, float *value, const double *direction,
                          gradient_lose *lose, void *context)
{
    const double h = 1.0 / 256.0;
    size_t size = (size_t)item->rows * item->cols;
    float *kept = malloc(size * sizeof(float));
    memcpy(kept, value, size * sizeof(float));
    double sides[2];
    for (uint32_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < size; i++) {
            value[i] = kept[i] + (float)((side == 0 ? h : -h) * direction[i]);
        }
        sides[side] = lose(context);
    }
    memcpy(value, kept, size * sizeof(float));
    free(kept);
    return (sides[0] - sides[1]) / (2.0 * h);
}

double gradient_worst_slope(graft_parameters *set, gradient_lose *lose, void *context)
{
    const double noise = 2e-4;
    float *gradient = malloc(set->size * sizeof(float)); /* `lose` may overwrite the set's own. */
    memcpy(gradient, set->gradient, set->size * sizeof(float));
    double worst = 0.0;
    graft_rng rng = check_rng(5);
    for (uint32_t p = 0; p < set->count; p++) {
        const graft_parameter *item = &set->items[p];
        size_t size = (size_t)item->rows * item->cols;
        double *direction = malloc((size + 1) * sizeof(double));
        double length = 0.0;
        for (size_t i = 0; i < size; i++) {
            length += (double)gradient[item->offset + i] * (double)gradient[item->offset + i];
        }
        length = sqrt(length);
        for (uint32_t kind = 0; kind < 2 && size > 0; kind++) {
            double slope = 0.0;
            for (size_t i = 0; i < size; i++) {
                double g = (double)gradient[item->offset + i];
                bool up = graft_rng_below(&rng, 2) == 1;
                double random = (up ? 1.0 : -1.0) / sqrt((double)size);
                direction[i] = kind == 0 && length > 0.0 ? g / length : random;
                slope += g * direction[i];
            }
            double seen = slope_along(item, set->value + item->offset, direction, lose, context);
            double error = fabs(seen - slope) / (0.01 * length + noise);
            if (!(error < 1.0)) {
                (void)fprintf(stderr, "%s.%s: slope %g, difference %g (gradient %g)\n", set->name,
                              item->name, slope, seen, length);
            }
            worst = error > worst || isnan(error) ? error : worst;
        }
        free(direction);
    }
    free(gradient);
    return isnan(worst) ? HUGE_VAL : worst;
}
