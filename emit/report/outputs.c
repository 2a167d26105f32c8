/* outputs.c - see outputs.h. */
#include "emit/report/outputs.h"

#include "graph/base/half.h"

#include <math.h>
#include <string.h>

float *graft_outputs_draw_tensor(graft_arena *arena, const graft_shape *shape, graft_rng *rng)
{
    size_t count = (size_t)graft_shape_elements(shape);
    float *data = graft_arena_alloc(arena, (size_t)graft_shape_bytes(shape));
    graft_rng truths = *rng;
    for (size_t i = 0; i < count; i++) {
        if (shape->dtype == GRAFT_DTYPE_I64) {
            ((int64_t *)(void *)data)[i] = (int64_t)(i & 1);
        } else if (shape->dtype == GRAFT_DTYPE_I32) {
            ((int32_t *)(void *)data)[i] = (int32_t)(i & 1);
        } else if (shape->dtype == GRAFT_DTYPE_BOOL) {
            ((uint8_t *)(void *)data)[i] = graft_rng_normal(&truths) > 0.0;
        } else if (shape->dtype == GRAFT_DTYPE_F32) {
            data[i] = (float)graft_rng_normal(rng);
        } else if (graft_half_is(shape->dtype)) {
            const float value = (float)graft_rng_normal(rng);
            (void)graft_half_narrow(shape->dtype, &value, 1, &((uint16_t *)(void *)data)[i]);
        }
    }
    return data;
}

const float **graft_outputs_draw(graft_arena *arena, const graft_executor *executor,
                                 const graft_graph *graph, uint64_t seed)
{
    uint32_t count = graft_executor_input_count(executor);
    const float **inputs = GRAFT_NEW(arena, const float *, count);
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    for (uint32_t k = 0; k < count; k++) {
        inputs[k] = graft_outputs_draw_tensor(
            arena, &graph->values[graft_executor_input(executor, k)].shape, &rng);
    }
    return inputs;
}

float **graft_outputs_new(graft_arena *arena, const graft_executor *executor,
                          const graft_graph *graph)
{
    uint32_t count = graft_executor_output_count(executor);
    float **outputs = GRAFT_NEW(arena, float *, count);
    for (uint32_t k = 0; k < count; k++) {
        const graft_shape *shape = &graph->values[graft_executor_output(executor, k)].shape;
        outputs[k] = graft_arena_alloc(arena, (size_t)graft_shape_bytes(shape));
    }
    return outputs;
}

static double tensor_difference(const graft_shape *shape, const float *before, const float *after)
{
    double largest = 1e-30;
    double difference = 0;
    if (shape->dtype != GRAFT_DTYPE_F32) {
        bool same = memcmp(before, after, (size_t)graft_shape_bytes(shape)) == 0;
        return same ? 0.0 : (double)INFINITY;
    }
    for (size_t i = 0; i < graft_shape_elements(shape); i++) {
        double a = (double)before[i];
        double b = (double)after[i];
        double apart = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b);
        difference = isnan(apart) ? (double)INFINITY : fmax(difference, apart);
        largest = fmax(largest, fabs(a));
    }
    return difference / largest;
}

double graft_outputs_difference(const graft_executor *executor, const graft_graph *graph,
                                float *const *before, float *const *after)
{
    double worst = 0;
    for (uint32_t k = 0; k < graft_executor_output_count(executor); k++) {
        const graft_shape *shape = &graph->values[graft_executor_output(executor, k)].shape;
        worst = fmax(worst, tensor_difference(shape, before[k], after[k]));
    }
    return worst;
}
