/* nearest.c - the nearest operator that was measured (see nearest.h). */
#include "cost/database/nearest.h"

#include "cost/measure/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Octaves for what is not a size. The estimates of the recorded devices hardly change when one of
 * these is three times as large, or a third. */
static const double of_attribute = 1.0;
static const double of_layouts = 1.0;
static const double of_constness = 1.0;
static const double of_fusion = 0.3;
static const double of_step = 0.25;        /* From one place of weights to the next. */
static const double of_next_to_none = 0.1; /* Activations, and results in place. */

/* Octaves between two shapes; HUGE_VAL when they have no sizes to compare. */
static double between_shapes(const graft_shape *a, const graft_shape *b)
{
    double far = 0.0;
    if (a->rank != b->rank || a->dtype != b->dtype) {
        return HUGE_VAL;
    }
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) {
            far += fabs(log2((double)a->dims[i] / (double)b->dims[i]));
        }
    }
    return far;
}

static bool is_same_product(const graft_signature *a, const graft_signature *b)
{
    return (graft_signature_is_conv(a) && graft_signature_is_conv(b)) ||
           (graft_signature_is_matmul(a) && graft_signature_is_matmul(b));
}

/* The attributes that two operators differ in. Those of a product come first in every fused form of
 * it, and what is fused is compared apart. */
static double between_attributes(const graft_signature *a, const graft_signature *b)
{
    uint32_t count = graft_signature_is_conv(a)     ? GRAFT_ATTR_conv_groups + 1
                     : graft_signature_is_matmul(a) ? 0
                                                    : GRAFT_MAX_ATTRS;
    double far = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        far += a->attrs[i] != b->attrs[i] ? of_attribute : 0.0;
    }
    return far;
}

static bool have_same_layouts(const graft_signature *a, const graft_signature *b, uint32_t inputs)
{
    return memcmp(a->in_layouts, b->in_layouts, inputs * sizeof(a->in_layouts[0])) == 0 &&
           memcmp(a->out_layouts, b->out_layouts, sizeof(a->out_layouts)) == 0;
}

/* How far apart two operators are, HUGE_VAL when one says nothing about the other. Of products only
 * the factors are compared: bias and residual take next to nothing beside them. */
static double between_operators(const graft_signature *a, const graft_signature *b)
{
    bool product = is_same_product(a, b);
    if (!product && (a->op != b->op || a->input_count != b->input_count)) {
        return HUGE_VAL;
    }
    uint32_t inputs = product ? 2 : a->input_count;
    uint32_t constness = (a->const_mask ^ b->const_mask) & ((1u << inputs) - 1);
    double far = between_attributes(a, b);
    for (uint32_t k = 0; k < inputs; k++) {
        far += between_shapes(&a->inputs[k], &b->inputs[k]);
    }
    far += a->op != b->op ? of_fusion : 0.0;
    far += have_same_layouts(a, b, inputs) ? 0.0 : of_layouts;
    far += constness != 0 ? of_constness : 0.0;
    far += of_step * abs(graft_distance_place(a->distance) - graft_distance_place(b->distance));
    far += graft_signature_activation(a) != graft_signature_activation(b) ? of_next_to_none : 0.0;
    return far + (a->in_place != b->in_place ? of_next_to_none : 0.0);
}

/* Whether what ran the one may run the other. */
static bool run_alike(const graft_signature *a, const graft_signature *b)
{
    return a->op == b->op && a->const_mask == b->const_mask &&
           have_same_layouts(a, b, GRAFT_MAX_INPUTS);
}

typedef struct {
    const graft_database_record *record; /* NULL: none. */
    double far;
} nearest;

/* Of equally near ones the first in the order of signatures, whatever the order of records is. */
static void offer(nearest *best, const graft_database_record *record,
                  const graft_signature *signature)
{
    double far = between_operators(&record->signature, signature);
    if (far < best->far ||
        (far == best->far && best->record != NULL &&
         graft_signature_compare(&record->signature, &best->record->signature) < 0)) {
        *best = (nearest){record, far};
    }
}

void graft_nearest_correct(const graft_database *database, const graft_roofline *roofline,
                           const graft_signature *signature, graft_cost_entry *entry)
{
    nearest best = {NULL, HUGE_VAL};
    graft_cost_entry line;
    graft_signature other = {.op = 0};
    for (uint32_t op = 0; op <= UINT8_MAX; op++) {
        uint32_t count = 0;
        const uint32_t *places = graft_database_of(database, (uint8_t)op, &count);
        other.op = (uint8_t)op;
        const bool tells = op == signature->op || is_same_product(&other, signature);
        for (uint32_t i = 0; i < count && tells; i++) {
            const graft_database_record *record = graft_database_at(database, places[i]);
            if (record->entry.source == GRAFT_COST_MEASURED &&
                graft_database_selects(database, record)) {
                offer(&best, record, signature);
            }
        }
    }
    if (best.record == NULL ||
        !graft_roofline_estimate(roofline, best.record->signature.op, best.record->entry.flops,
                                 best.record->entry.bytes, &line) ||
        !(line.median_ns > 0.0) || !(entry->median_ns > 0.0)) {
        return;
    }
    double error = entry->spread_ns / entry->median_ns; /* Of the line. */
    double ns = entry->median_ns * best.record->entry.median_ns / line.median_ns;
    entry->median_ns = graft_cost_round(ns);
    entry->spread_ns = graft_cost_round(ns * error * best.far / (1.0 + best.far));
}

const char *graft_nearest_implementation(const graft_database *database, const char *device,
                                         const graft_signature *signature)
{
    nearest best = {NULL, HUGE_VAL};
    uint32_t count = 0;
    const uint32_t *places = graft_database_of(database, signature->op, &count);
    for (uint32_t i = 0; i < count; i++) {
        const graft_database_record *record = graft_database_at(database, places[i]);
        if (record->entry.implementation[0] != '\0' && run_alike(&record->signature, signature) &&
            strcmp(record->device, device) == 0) {
            offer(&best, record, signature);
        }
    }
    return best.record == NULL ? NULL : best.record->entry.implementation;
}
