/* What examples/xnnpack/lower.c makes of models and of single operators computes what Graft's
 * executor does: the example itself compares XNNPACK with XNNPACK. */
#include "tests/support/check.h"

#if !__has_include(<xnnpack.h>) || !__has_include(<pthreadpool.h>)
CHECK_CASE(test_all) { CHECK_SKIP("no libxnnpack-dev or libpthreadpool-dev here"); }
#else
#include "examples/xnnpack/lower.h"
#include "graft/run.h"
#include "graph/base/file.h"
#include "graph/base/rng.h"
#include "models/operator.h"
#include "models/zoo.h"

#include <math.h>

enum { COPIES = 2 };

/* Given elements into XNNPACK's order, or theirs back. */
static void turn(const graft_shape *shape, float *given, float *theirs, bool back)
{
    const size_t count = (size_t)graft_shape_elements(shape);
    const size_t channels = shape->rank == 4 ? (size_t)shape->dims[1] : 1;
    const size_t pixels =
        shape->rank == 4 ? (size_t)shape->dims[2] * (size_t)shape->dims[3] : count;
    for (size_t i = 0; i < count; i++) {
        const size_t image = i / (pixels * channels);
        const size_t to = (image * pixels + i % pixels) * channels + i / pixels % channels;
        if (back) {
            given[i] = theirs[to];
        } else {
            theirs[to] = given[i];
        }
    }
}

static void check_outputs(graft_env *env, const graft_run *run, const lowered *net,
                          const graft_run_tensor *outputs)
{
    const uint32_t count = graft_run_output_count(run);
    for (uint32_t i = 0; i < COPIES * count; i++) {
        const graft_run_tensor *want = &outputs[i % count];
        const lowered_port *port = &net->ports[net->input_count + i];
        float *have = GRAFT_NEW(env->unit, float, port->count);
        double most = 0.0, apart = 0.0;
        turn(&want->shape, have, port->data, true);
        for (size_t k = 0; k < port->count; k++) {
            const double a = (double)((const float *)want->data)[k];
            most = fmax(most, fabs(a));
            apart = fmax(apart, fabs(a - (double)have[k]));
        }
        assert_true(most > 0.0 && apart <= 1e-5 * most);
    }
}

static void check_model(graft_env *env, const char *name)
{
    static const lowering_options options = {.copy_count = COPIES};
    const graft_run_options alone = {.thread_count = 1, .database = "none.costs"};
    graft_model *model = NULL;
    graft_run *run = NULL;
    lowered net = {.runtime = NULL};
    graft_rng rng = check_rng(5);
    print_message("# %s\n", name);
    CHECK_OK(graft_model_open(env, env->unit, name, NULL, &model));
    CHECK_OK(graft_run_open(name, &alone, &run));
    CHECK_OK(lower_graph(env, model, &model->graph, &options, &net));
    const uint32_t count = graft_run_input_count(run), out_count = graft_run_output_count(run);
    graft_run_tensor *inputs = GRAFT_NEW(env->unit, graft_run_tensor, count);
    graft_run_tensor *outputs = GRAFT_NEW(env->unit, graft_run_tensor, out_count);
    for (uint32_t k = 0; k < count; k++) {
        inputs[k] = *graft_run_input(run, k);
        inputs[k].data = GRAFT_NEW(env->unit, float, net.ports[k].count);
        for (size_t i = 0; i < net.ports[k].count; i++) { /* Away from 0, by which some divide. */
            ((float *)inputs[k].data)[i] = (float)(graft_rng_normal(&rng) + 5.0);
        }
        turn(&inputs[k].shape, inputs[k].data, net.ports[k].data, false);
    }
    for (uint32_t k = 0; k < out_count; k++) {
        outputs[k] = *graft_run_output(run, k);
        outputs[k].data = GRAFT_NEW(env->unit, float, graft_shape_elements(&outputs[k].shape));
    }
    CHECK_OK(graft_run_once(run, inputs, count, outputs, out_count));
    CHECK_OK(lowered_run(env, &net));
    check_outputs(env, run, &net, outputs);
    graft_run_close(run);
    lowered_close(&net);
    graft_arena_reset(env->unit);
}

/* Images, of which the second is a constant one in half of the cases. */
static void check_pair(graft_env *env, uint32_t op, uint8_t const_mask)
{
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    const graft_shape shapes[] = {
        {{1, 5, 3, 4}, 4, GRAFT_DTYPE_F32},
        {{1, 5, 3, 4}, 4, GRAFT_DTYPE_F32}
    };
    const graft_operator of = {
        .op = op, .attrs = attrs, .inputs = shapes, .const_mask = const_mask};
    const char *path = graft_arena_printf(env->life, "%s/%s.%u.onnx", check_folder(),
                                          graft_op(op)->name, const_mask);
    uint8_t *data = NULL;
    size_t size = 0;
    CHECK_OK(graft_operator_pack(env, env->unit, &of, &data, &size));
    CHECK_OK(graft_file_write(env, path, data, size));
    check_model(env, path);
}

CHECK_CASE(test_all)
{
    static const char *const models[] = {"dscnn", "resnet8", "mobilenetv1", "autoencoder"};
    static const uint32_t pairs[] = {GRAFT_OP_add, GRAFT_OP_sub, GRAFT_OP_mul,
                                     GRAFT_OP_div, GRAFT_OP_max, GRAFT_OP_min};
    assert_int_equal(xnn_initialize(NULL), xnn_status_success);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        check_model(env, models[i]);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        check_pair(env, pairs[i], 0);
        check_pair(env, pairs[i], 2);
    }
    (void)xnn_deinitialize();
}
#endif
