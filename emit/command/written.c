/* written.c - see written.h. */
#include "emit/command/written.h"

#include "emit/header/graphtable.h"
#include "emit/report/outputs.h"
#include "graph/base/json.h"
#include "models/zoo.h"

#include <math.h>
#include <string.h>

/* -------------------------------------------------------------- reading back */

graft_status graft_written_read(graft_env *env, const graft_session *session, const char *path,
                                graft_written *written)
{
    graft_status status = GRAFT_OK;
    const int verbosity = env->verbosity;
    env->verbosity = 0; /* What there is to say about the model was said when it was read. */
    const graft_model_options reading = {.sizes = session->model->sizes,
                                         .size_count = session->model->size_count,
                                         .keep_open = true,
                                         .settable = session->settable,
                                         .unroll = session->unroll};
    GRAFT_TRY(env, graft_model_read(env, env->life, path, &reading, &written->model),
              "while reading what was written");
done:
    env->verbosity = verbosity;
    return status;
}

graft_status graft_written_open(graft_env *env, graft_session *session, const char *path,
                                graft_written *written)
{
    graft_status status = GRAFT_OK;
    graft_graph *graph = NULL;
    graft_state state;
    GRAFT_CHECK(graft_written_read(env, session, path, written));
    GRAFT_CHECK(graft_graph_renumber(env, env->life, &written->model->graph, &graph));
    GRAFT_CHECK(graft_state_make(env, env->life, graph, &state));
    graft_cost_set_model(session->cost, written->model);
    GRAFT_CHECK(graft_session_total(env, session, written->model, &state.graph, &state.order,
                                    &written->total));
done:
    graft_cost_set_model(session->cost, session->model);
    return status;
}

/* ------------------------------------------------------------------ checking */

/* Where models are run to be compared: the session's device; for one that runs nothing for Graft,
 * as it is a program or not here, this processor, with kernels that are chosen in a hurry. */
typedef struct {
    graft_device *device; /* NULL: the session's. */
    graft_cost *cost;
    const graft_model *model; /* The session's, to be compared with. */
} runner;

static graft_status open_runner(graft_env *env, graft_session *session, runner *r)
{
    *r = (runner){.cost = session->cost, .model = session->model};
    if (graft_device_is_program(session->device) || !graft_device_present(session->device)) {
        r->cost = NULL;
        GRAFT_PASS(graft_device_open(env, "cpu", 1, &r->device));
        GRAFT_PASS(graft_cost_open(env, r->device, NULL, &r->cost));
        GRAFT_PASS(graft_cost_borrow(env, r->cost, NULL));
    }
    return GRAFT_OK;
}

static void close_runner(graft_env *env, runner *r)
{
    if (r->device != NULL) {
        (void)!graft_cost_close(env, r->cost); /* In memory only: there is nothing to save. */
        graft_device_close(r->device);
    } else if (r->cost != NULL) {
        graft_cost_set_model(r->cost, r->model);
    }
}

/* A model at sizes that are bound, so that all of it can run, in env->unit. */
typedef struct {
    graft_model *model;
    graft_executor *executor;
} runnable;

static graft_status open_runnable(graft_env *env, const runner *on, const char *file,
                                  bool other_sizes, runnable *r)
{
    const graft_model *model = on->model;
    const int verbosity = env->verbosity;
    graft_model_size *sizes = GRAFT_NEW(env->unit, graft_model_size, model->size_count);
    graft_model_options options = {.sizes = sizes,
                                   .size_count = model->size_count,
                                   .as_binary32 = true, /* In which the executor computes. */
                                   .unroll = GRAFT_UNROLL_MOST,
                                   .flows = true};
    if (file == model->file) { /* The other has them fixed. */
        options.frozen = model->frozen;
        options.frozen_count = model->frozen_count;
    }
    for (uint32_t i = 0; i < model->size_count; i++) {
        sizes[i] = model->sizes[i];
        sizes[i].value = other_sizes ? sizes[i].other : sizes[i].value;
    }
    env->verbosity = 0;
    graft_status status = graft_model_open(env, env->unit, file, &options, &r->model);
    env->verbosity = verbosity;
    GRAFT_PASS(status);
    graft_cost_set_model(on->cost, r->model);
    return graft_executor_open_folded(env, env->unit, on->cost, r->model, &r->model->graph,
                                      &r->executor);
}

graft_status graft_written_check_able(graft_env *env, graft_session *session)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->unit);
    runnable r = {.executor = NULL};
    runner on;
    GRAFT_CHECK(open_runner(env, session, &on));
    GRAFT_CHECK(open_runnable(env, &on, session->model->file, false, &r));
done:
    graft_executor_close(r.executor);
    close_runner(env, &on);
    return status;
}

/* The largest difference over `rounds` runs at one set of sizes. */
static graft_status compare_runs(graft_env *env, const runner *on, const char *file,
                                 bool other_sizes, uint32_t rounds, double *worst)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->unit);
    runnable before = {.executor = NULL};
    runnable after = {.executor = NULL};
    GRAFT_CHECK(open_runnable(env, on, on->model->file, other_sizes, &before));
    GRAFT_CHECK(open_runnable(env, on, file, other_sizes, &after));
    const graft_graph *graph = &before.model->graph;
    float **want = graft_outputs_new(env->unit, before.executor, graph);
    float **have = graft_outputs_new(env->unit, before.executor, graph);
    for (uint32_t i = 0; i < rounds; i++) {
        const float **inputs =
            graft_outputs_draw(env->unit, before.executor, before.model, graph, i + 1);
        GRAFT_CHECK(graft_executor_run(env, before.executor, inputs, want));
        GRAFT_CHECK(graft_executor_run(env, after.executor, inputs, have));
        *worst = fmax(*worst, graft_outputs_difference(before.executor, graph, want, have));
    }
done:
    graft_executor_close(before.executor);
    graft_executor_close(after.executor);
    return status;
}

/* New weights are rounded once to the type of the model: sixteen of its units. */
static double most_difference(const graft_model *model)
{
    const uint32_t dtype = model->graph.dtype;
    return dtype == GRAFT_DTYPE_F16    ? 0x1p-7
           : dtype == GRAFT_DTYPE_BF16 ? 0x1p-4
                                       : GRAFT_OUTPUTS_DIFFERENCE_MOST;
}

graft_status graft_written_check(graft_env *env, graft_session *session,
                                 const graft_written *written, uint32_t rounds, double *difference)
{
    graft_status status = GRAFT_OK;
    double worst = 0.0;
    runner on;
    GRAFT_CHECK(open_runner(env, session, &on));
    for (uint32_t other = 0; other <= (session->model->is_open ? 1U : 0U); other++) {
        GRAFT_CHECK(compare_runs(env, &on, written->model->file, other == 1, rounds, &worst));
    }
    *difference = worst;
    if (!(worst <= most_difference(session->model))) {
        status = GRAFT_FAIL(env, GRAFT_INTERNAL,
                            "%s: the outputs differ from those of %s by %.3g of their largest "
                            "magnitude",
                            written->model->file, session->model->file, worst);
    }
done:
    close_runner(env, &on);
    return status;
}

/* --------------------------------------------------------------------- kinds */

uint32_t graft_written_operators(graft_env *env, const graft_model *model)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t count = 0;
    uint32_t sum = 0;
    const graft_model_kind *kinds = graft_model_kinds(env->scratch, model, &count);
    for (uint32_t i = 0; i < count; i++) {
        sum += kinds[i].count;
    }
    return sum;
}

graft_status graft_written_measure(graft_env *env, const graft_model *model,
                                   uint64_t sizes[GRAFT_WRITTEN_SIZES])
{
    GRAFT_SCOPED(env->unit);
    graft_state state;
    graft_schedule schedule;
    memset(sizes, 0, GRAFT_WRITTEN_SIZES * sizeof(sizes[0]));
    for (uint32_t w = 0; w < model->weight_count; w++) {
        const graft_model_weight *weight = &model->weights[w];
        if (weight->name != NULL && weight->shape.rank != GRAFT_RANK_UNKNOWN &&
            graft_dtype_is_real(weight->shape.dtype)) {
            sizes[GRAFT_WRITTEN_PARAMETERS] += graft_shape_elements(&weight->shape);
        }
    }
    GRAFT_PASS(graft_state_make(env, env->unit, &model->graph, &state));
    graft_schedule_build_in(env->unit, &state.graph, &state.order, GRAFT_LAYOUT_ROW, false,
                            &schedule);
    for (uint32_t i = 0; i < schedule.step_count; i++) {
        const graft_signature *signature = &schedule.steps[i].signature;
        if (schedule.steps[i].node != GRAFT_NONE && signature->op != GRAFT_OP_OPAQUE) {
            sizes[GRAFT_WRITTEN_FLOPS] += graft_signature_flops(signature);
            sizes[GRAFT_WRITTEN_BYTES] += graft_signature_bytes(signature);
        }
    }
    return GRAFT_OK;
}

static void print_kind(graft_env *env, const char *name, uint32_t before, uint32_t after)
{
    if (env->json) {
        graft_json_print(env->scratch, stdout, "kind=%s before=%u after=%u", name, before, after);
    } else {
        (void)printf("  %-24s %6u -> %6u\n", name, before, after);
    }
}

void graft_written_print_kinds(graft_env *env, const graft_session *session,
                               const graft_written *written)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t counts[2] = {0, 0};
    uint32_t at[2] = {0, 0};
    const graft_model_kind *kinds[2] = {
        graft_model_kinds(env->scratch, session->model, &counts[0]),
        graft_model_kinds(env->scratch, written->model, &counts[1])};
    static const graft_model_kind none = {.name = "\x7f"}; /* Behind all others. */
    while (at[0] < counts[0] || at[1] < counts[1]) {
        const graft_model_kind *a = at[0] < counts[0] ? &kinds[0][at[0]] : &none;
        const graft_model_kind *b = at[1] < counts[1] ? &kinds[1][at[1]] : &none;
        int order = strcmp(a->name, b->name);
        print_kind(env, order <= 0 ? a->name : b->name, order <= 0 ? a->count : 0,
                   order >= 0 ? b->count : 0);
        at[0] += order <= 0;
        at[1] += order >= 0;
    }
}
