/* The order in which a cell's weights are read, and that other orders are left alone. */
#include "cost/plan/recency.h"

#include "tests/support/build.h"

enum { GATES = 3, STEPS = 4, SIZE = 128 };

/* State of a step: the sum of the products of the state before with each gate's weight. `repeated`:
 * every step reads the same weights; `size` that of the state. */
static graft_graph *build_cell(graft_env *env, bool repeated, int32_t size,
                               graft_index products[STEPS][GATES])
{
    graft_graph *graph = build_graph_within(
        env->life, (graft_limits){.nodes = 64, .values = 128, .edges = 256, .outputs = 1});
    graft_index weights[GATES];
    graft_index state = build_input(graph, SHAPE(1, size), 0);
    for (uint32_t step = 0; step < STEPS; step++) {
        graft_index sum = GRAFT_NONE;
        state = build_node(graph, GRAFT_OP_tanh, NULL, state, 0, 0);
        for (uint32_t gate = 0; gate < GATES; gate++) {
            if (step == 0 || !repeated) {
                weights[gate] = build_weight(graph, SHAPE(size, size), 0);
            }
            graft_index v = build_node(graph, GRAFT_OP_matmul, NULL, state, weights[gate], 0);
            products[step][gate] = graph->values[v].node;
            sum = gate == 0 ? v : build_node(graph, GRAFT_OP_add, NULL, sum, v, 0);
        }
        state = sum;
    }
    CHECK_OK(graft_graph_add_output(graph, state));
    return graph;
}

CHECK_CASE(test_turning)
{
    graft_index products[STEPS][GATES];
    graft_graph *graph = build_cell(env, true, SIZE, products);
    const graft_order given = build_order(env->life, graph);
    const graft_order *order = &given;
    graft_recency_order(env->life, graph, &order);
    assert_ptr_not_equal(order, &given);
    assert_int_equal(order->count, given.count);
    for (graft_index i = 0; i < order->count; i++) { /* Producers come first. */
        graft_index node = order->order[i];
        assert_int_equal(order->position[node], i);
        for (uint32_t k = 0; k < graph->nodes[node].input_count; k++) {
            const graft_value *v = &graph->values[graft_node_input(graph, node, k)];
            assert_true(v->kind != GRAFT_VALUE_COMPUTED || order->position[v->node] < i);
        }
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t gate = 1; gate < GATES; gate++) {
            bool later =
                order->position[products[step][gate]] > order->position[products[step][gate - 1]];
            assert_int_equal(later, step % 2 == 0);
        }
    }
}

/* Each step multiplies what it is told by one more weight; all of that can be multiplied at once,
 * where the results are small enough to wait. */
CHECK_CASE(test_hoisting)
{
    for (int32_t rows = 1; rows <= SIZE; rows += SIZE - 1) {
        graft_graph *graph = build_graph(env->life);
        const graft_shape square = SHAPE(SIZE, SIZE);
        graft_index told = build_input(graph, SHAPE(STEPS * rows, SIZE), 0);
        graft_index state_value = build_input(graph, SHAPE(rows, SIZE), 1);
        graft_index weights[2] = {build_weight(graph, square, 0), build_weight(graph, square, 1)};
        graft_index heard[STEPS];
        for (int32_t step = 0; step < STEPS; step++) {
            const int32_t attrs[GRAFT_MAX_ATTRS] = {0, step * rows, (step + 1) * rows, 1};
            graft_index x = build_node(graph, GRAFT_OP_slice, attrs, told, 0, 0);
            graft_index y = build_node(graph, GRAFT_OP_matmul, NULL, x, weights[0], 0);
            heard[step] = graph->values[y].node;
            state_value = build_node(graph, GRAFT_OP_matmul, NULL, state_value, weights[1], 0);
            state_value = build_node(graph, GRAFT_OP_add, NULL, state_value, y, 0);
        }
        CHECK_OK(graft_graph_add_output(graph, state_value));
        const graft_order given = build_order(env->life, graph);
        const graft_order *order = &given;
        graft_recency_order(env->life, graph, &order);
        for (uint32_t step = 1; step < STEPS; step++) {
            bool together = order->position[heard[step]] == order->position[heard[step - 1]] + 1;
            assert_int_equal(together, rows == 1);
        }
    }
}

CHECK_CASE(test_left_alone)
{
    graft_index products[STEPS][GATES];
    for (uint32_t i = 0; i < 2; i++) {
        graft_graph *graph = build_cell(env, i == 0, i == 0 ? 8 : SIZE, products);
        const graft_order given = build_order(env->life, graph);
        const graft_order *order = &given;
        graft_recency_order(env->life, graph, &order);
        assert_ptr_equal(order, &given);
    }
}
