/* outputs.c - see outputs.h. */
#include "emit/report/outputs.h"

#include "graph/base/half.h"
#include "graph/flow.h"

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

/* ----------------------------------------------------------- what decides what bodies are run */

typedef enum { DECIDES_NOTHING, DECIDES_WHETHER, DECIDES_HOW_OFTEN } decision;

/* The input of the graph that alone decides a value of one element: its source, or GRAFT_NONE. */
static uint32_t find_decider(const graft_graph *graph, graft_index v)
{
    while (v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_COMPUTED &&
           graft_shape_elements(&graph->values[v].shape) == 1) {
        const graft_index node = graph->values[v].node;
        graft_index only = GRAFT_NONE;
        uint32_t count = 0;
        for (uint32_t k = 0; k < graph->nodes[node].input_count; k++) {
            const graft_index in = graft_node_input(graph, node, k);
            const bool varies = in != GRAFT_NONE && !graph->values[in].is_const;
            only = varies ? in : only;
            count += varies;
        }
        v = count == 1 ? only : GRAFT_NONE;
    }
    return v != GRAFT_NONE && graph->values[v].kind == GRAFT_VALUE_INPUT &&
                   graft_shape_elements(&graph->values[v].shape) == 1
               ? graph->values[v].source
               : GRAFT_NONE;
}

static decision *find_decisions(graft_arena *arena, const graft_model *model,
                                const graft_graph *graph);

/* By input of the node. */
static decision *find_given(graft_arena *arena, const graft_flow *flow, uint32_t input_count)
{
    decision *given = GRAFT_NEW(arena, decision, input_count);
    for (uint32_t b = 0; b < flow->body_count; b++) {
        const graft_flow_body *body = &flow->bodies[b];
        const decision *inner = find_decisions(arena, body->model, body->graph);
        for (uint32_t i = 0; i < body->model->input_count; i++) {
            decision *at = &given[body->from[i]];
            *at = inner[i] > *at ? inner[i] : *at;
        }
    }
    if (flow->kind == GRAFT_FLOW_LOOP) { /* A body is told the round, not the number of rounds. */
        given[0] = DECIDES_HOW_OFTEN;
        given[1] = DECIDES_WHETHER;
    } else if (flow->kind == GRAFT_FLOW_IF && given[0] == DECIDES_NOTHING) {
        given[0] = DECIDES_WHETHER;
    }
    return given;
}

/* By input of the model. */
static decision *find_decisions(graft_arena *arena, const graft_model *model,
                                const graft_graph *graph)
{
    decision *found = GRAFT_NEW(arena, decision, model->input_count);
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        const graft_flow *flow = node->op == GRAFT_OP_OPAQUE ? graft_flow_of(model, node) : NULL;
        const decision *given = flow == NULL || flow->refusal != NULL
                                    ? NULL
                                    : find_given(arena, flow, node->input_count);
        for (uint32_t k = 0; given != NULL && k < node->input_count; k++) {
            const uint32_t source = find_decider(graph, graft_node_input(graph, n, k));
            if (source != GRAFT_NONE && given[k] > found[source]) {
                found[source] = given[k];
            }
        }
    }
    return found;
}

/* Puts another value into a tensor of one element: over two draws a condition is true and false,
 * and a Loop makes from one to three rounds. */
static void draw_decision(decision what, uint32_t input, uint64_t seed, uint32_t dtype, void *data)
{
    const bool flips = ((seed - 1) >> 1 & input & 1) != 0;
    const uint8_t truth = (seed & 1) != flips;
    const int64_t number = what == DECIDES_HOW_OFTEN ? (int64_t)(seed % 3) + 1 : truth;
    const int32_t narrow = (int32_t)number;
    if (dtype == GRAFT_DTYPE_I64) {
        memcpy(data, &number, sizeof number);
    } else if (dtype == GRAFT_DTYPE_I32) {
        memcpy(data, &narrow, sizeof narrow);
    } else if (dtype == GRAFT_DTYPE_BOOL) {
        memcpy(data, &truth, sizeof truth);
    }
}

const float **graft_outputs_draw(graft_arena *arena, const graft_executor *executor,
                                 const graft_model *model, const graft_graph *graph, uint64_t seed)
{
    const decision *decisions = find_decisions(arena, model, graph);
    uint32_t count = graft_executor_input_count(executor);
    const float **inputs = GRAFT_NEW(arena, const float *, count);
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    for (uint32_t k = 0; k < count; k++) {
        const graft_value *value = &graph->values[graft_executor_input(executor, k)];
        float *data = graft_outputs_draw_tensor(arena, &value->shape, &rng);
        if (decisions[value->source] != DECIDES_NOTHING) {
            draw_decision(decisions[value->source], value->source, seed, value->shape.dtype, data);
        }
        inputs[k] = data;
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
