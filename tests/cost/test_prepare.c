/* Graphs as they are run: quantised tensors between layers in the layers' layout. */
#include "cost/cpu/kernel.h"
#include "cost/device/device.h"
#include "cost/plan/layout.h"
#include "cost/plan/prepare.h"
#include "cost/plan/schedule.h"
#include "tests/support/build.h"
#include "tests/support/kernels.h"
#include "tests/support/onnx_text.h"

#include <string.h>

static const char layers[] =
    "input x 1 8 6 6; weight w 8 8 3 3; weight s = 0.5; weight c 8;"
    "node Conv x w -> a; node QuantizeLinear a %s -> q; node DequantizeLinear q %s -> d;"
    "node Conv d v -> y; weight v 8 8 2 2; output y";

static const graft_model *read_layers(graft_env *env, const char *scale)
{
    return onnx_text_model(env, graft_arena_printf(env->life, layers, scale, scale));
}

static uint32_t count_marked(const graft_graph *graph)
{
    uint32_t count = 0;
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        count += node->op == GRAFT_OP_OPAQUE && !graft_layout_is_closed(node);
    }
    return count;
}

static uint32_t count_conversions(graft_env *env, const graft_graph *graph,
                                  const graft_order *order)
{
    graft_schedule schedule;
    uint32_t count = 0;
    graft_schedule_build_in(env->life, graph, order, GRAFT_LAYOUT_NHWC, true, &schedule);
    for (uint32_t i = 0; i < schedule.step_count; i++) {
        count += schedule.steps[i].node == GRAFT_NONE;
    }
    return count;
}

/* With a scale for each channel, places matter; without a model nobody knows. */
CHECK_CASE(test_conversions)
{
    static const struct {
        const char *scale;
        bool known;
        uint32_t marked;
        uint32_t conversions; /* Of the input, the output, and around what works on rows. */
    } rows[] = {
        {"s", true,  2, 2},
        {"c", true,  0, 4},
        {"s", false, 0, 4},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const graft_model *model = read_layers(env, rows[i].scale);
        const graft_graph *graph = &model->graph;
        const graft_order given = build_order(env->life, graph);
        const graft_order *order = &given;
        graft_prepare_bytes(env->life, &graph);
        graft_prepare_graph(env->life, rows[i].known ? model : NULL, &graph, &order);
        assert_int_equal(count_marked(graph), rows[i].marked);
        assert_int_equal(count_marked(&model->graph), 0);
        assert_int_equal(count_conversions(env, graph, order), rows[i].conversions);
    }
}

/* A conversion of bytes moves bytes. */
CHECK_CASE(test_bytes)
{
    enum { CHANNELS = 32, PIXELS = 6, COUNT = CHANNELS * PIXELS };
    static const uint32_t layouts[] = {GRAFT_LAYOUT_NHWC, GRAFT_LAYOUT_BLOCKED};
    graft_device *device = check_device_open(env);
    graft_shape shape = SHAPE(1, CHANNELS, 2, 3);
    shape.dtype = GRAFT_DTYPE_I8;
    for (size_t l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++) {
        _Alignas(64) int8_t in[COUNT];
        _Alignas(64) int8_t out[COUNT + 1];
        graft_kernel_name names[GRAFT_KERNEL_MOST];
        const float *constants[GRAFT_MAX_INPUTS] = {NULL};
        const float *inputs[GRAFT_MAX_INPUTS] = {(const float *)(const void *)in};
        float *outputs[GRAFT_MAX_OUTPUTS] = {(float *)(void *)out};
        uint32_t count = 0;
        graft_signature s;
        graft_signature_of_reorder(&shape, GRAFT_LAYOUT_ROW, layouts[l], &s);
        CHECK_OK(graft_kernel_list(env, device, &s, names, &count));
        assert_true(count > 0);
        for (uint32_t i = 0; i < COUNT; i++) {
            in[i] = (int8_t)(i * 7);
        }
        for (uint32_t n = 0; n < count; n++) {
            graft_kernel *kernel = NULL;
            memset(out, 99, sizeof(out));
            CHECK_OK(graft_kernel_open(env, device, &s, names[n].text, constants, &kernel));
            CHECK_OK(graft_kernel_bind(env, kernel, inputs, outputs, NULL));
            CHECK_OK(graft_kernel_run(env, kernel));
            for (uint32_t c = 0; c < CHANNELS; c++) {
                for (uint32_t p = 0; p < PIXELS; p++) {
                    uint32_t at = layouts[l] == GRAFT_LAYOUT_NHWC
                                      ? p * CHANNELS + c
                                      : (c / 16 * PIXELS + p) * 16 + c % 16;
                    assert_int_equal(out[at], in[c * PIXELS + p]);
                }
            }
            assert_int_equal(out[COUNT], 99);
            graft_kernel_close(kernel);
        }
    }
}
