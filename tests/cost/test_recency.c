/* The order in which a cell's weights are read, and that other orders are left alone. */
#include "cost/plan/recency.h"

#include "tests/support/build.h"

enum { GATES = 3, STEPS = 4, SIZE = 128 };

/* State of a step: the sum of the products of the state before with each gate's weight. `repeated`:
 * every step reads the same weights; `size` that of the state. */
static graft_graph *build_cell(graft_env *env, bool repeated, int32_t size,
                               graft_index products[STEPS][GATES])
{
    built b = build_text(env->life, "s = input 1 %d", size);
    for (uint32_t step = 0; step < STEPS; step++) {
        build_more(&b, "x = tanh s");
        for (uint32_t gate = 0; gate < GATES; gate++) {
            if (step == 0 || !repeated) {
                build_more(&b, "%c = weight %d %d", 'a' + (int)gate, size, size);
            }
            build_more(&b, "p = matmul x %c", 'a' + (int)gate);
            products[step][gate] = b.graph->values[b.at['p']].node;
            if (gate == 0) {
                b.at['s'] = b.at['p'];
            } else {
                build_more(&b, "s = add s p");
            }
        }
    }
    build_more(&b, "out s");
    return b.graph;
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
        graft_index heard[STEPS];
        built b = build_text(env->life,
                             "t = input %d %d; s = input %d %d; v = weight %d %d;"
                             "w = weight %d %d",
                             STEPS * rows, SIZE, rows, SIZE, SIZE, SIZE, SIZE, SIZE);
        for (int32_t step = 0; step < STEPS; step++) {
            build_more(&b, "x = slice t : 0 %d %d; y = matmul x v; s = matmul s w; s = add s y",
                       step * rows, (step + 1) * rows);
            heard[step] = b.graph->values[b.at['y']].node;
        }
        build_more(&b, "out s");
        graft_graph *graph = b.graph;
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
