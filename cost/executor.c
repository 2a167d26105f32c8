/* executor.c - whole graphs on the device (see executor.h). */
#include "cost/executor.h"

#include "cost/clock.h"
#include "cost/memory.h"
#include "graph/log.h"
#include "graph/opaque.h"
#include "graph/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct graft_executor {
    graft_arena *arena; /* Of the tables below. */
    const graft_graph *graph;
    graft_device *device;
    graft_schedule schedule;
    graft_kernel **kernels;   /* By step; NULL for opaque nodes... */
    graft_opaque *opaques;    /* ...which are here. */
    const graft_model *model; /* NULL: no opaque node can be run. */
    graft_index *inputs;      /* Value ids. */
    float **input_data;       /* Of each, ours. */
    uint32_t input_count;
    float **regions; /* By region: where it lies. */
    void *block;     /* Planned regions, then... */
    void *workspace; /* ...what kernels need while they run. */
    graft_executor_memory memory;
    bool has_inputs; /* Somebody has run it. */
};

/* ------------------------------------------------------------------ opening */

static graft_status refuse_opaque(graft_env *env, const graft_executor *e)
{
    const graft_graph *graph = e->graph;
    graft_opaque opaque;
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (graph->nodes[n].op == GRAFT_OP_OPAQUE &&
            (e->model == NULL || !graft_opaque_find(e->model, graph, n, &opaque))) {
            return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                              "the graph cannot be run: node %u is an operator that Graft does not "
                              "know (number %u of the model)",
                              n, graph->nodes[n].source);
        }
    }
    return GRAFT_OK;
}

static graft_status build_schedule(graft_env *env, graft_executor *e, graft_cost *cost)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_order order;
    size_t bytes = graft_order_bytes(&e->graph->limits);
    status = graft_order_build(&order, e->graph, graft_arena_alloc(env->scratch, bytes), bytes);
    if (status == GRAFT_OK) {
        status = graft_cost_plan(env, cost, e->arena, e->graph, &order, &e->schedule);
    } else {
        (void)GRAFT_FAIL(env, status, "the graph cannot be run: it has a cycle");
    }
    graft_arena_release(env->scratch, mark);
    return status;
}

static void *allocate_aligned(size_t bytes)
{
    size_t units = bytes / GRAFT_MEMORY_ALIGNMENT + 1;
    return aligned_alloc(GRAFT_MEMORY_ALIGNMENT, units * GRAFT_MEMORY_ALIGNMENT);
}

/* Sources say which input of the model a value is; ids break ties. */
static void list_inputs(graft_executor *e)
{
    const graft_graph *graph = e->graph;
    e->inputs = GRAFT_NEW(e->arena, graft_index, graph->value_end);
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graph->values[v].kind != GRAFT_VALUE_INPUT) {
            continue;
        }
        uint32_t at = e->input_count++;
        while (at > 0 && graph->values[e->inputs[at - 1]].source > graph->values[v].source) {
            e->inputs[at] = e->inputs[at - 1];
            at--;
        }
        e->inputs[at] = v;
    }
}

static graft_status allocate_inputs(graft_env *env, graft_executor *e)
{
    list_inputs(e);
    e->input_data = GRAFT_NEW(e->arena, float *, e->input_count);
    for (uint32_t k = 0; k < e->input_count; k++) {
        size_t bytes = (size_t)graft_shape_bytes(&e->graph->values[e->inputs[k]].shape);
        e->input_data[k] = allocate_aligned(bytes);
        if (e->input_data[k] == NULL) {
            return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for an input of %zu bytes",
                              bytes);
        }
        memset(e->input_data[k], 0, bytes);
        e->memory.peak_bytes += bytes;
    }
    return GRAFT_OK;
}

static float *find_input(const graft_executor *e, graft_index value)
{
    for (uint32_t k = 0; k < e->input_count; k++) {
        if (e->inputs[k] == value) {
            return e->input_data[k];
        }
    }
    return NULL;
}

/* Const regions are only read. */
static float *drop_const(const float *data)
{
    float *pointer = NULL;
    memcpy(&pointer, &data, sizeof(pointer));
    return pointer;
}

static graft_status find_weights(graft_env *env, graft_executor *e, graft_weight_source weights,
                                 void *context)
{
    e->regions = GRAFT_NEW(e->arena, float *, e->schedule.region_count);
    for (uint32_t i = 0; i < e->schedule.region_count; i++) {
        const graft_region *region = &e->schedule.regions[i];
        if (region->kind != GRAFT_REGION_CONST) {
            continue;
        }
        e->regions[i] = drop_const(weights(context, region->value));
        bool whole = e->graph->values[region->value].shape.dtype != GRAFT_DTYPE_F32;
        if (e->regions[i] == NULL && !whole) { /* Opaque nodes read whole numbers while planned. */
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the weight that is value %u has no data",
                              region->value);
        }
    }
    return GRAFT_OK;
}

static graft_status choose_implementation(graft_env *env, graft_cost *cost,
                                          const graft_signature *signature, char *name)
{
    graft_cost_entry entry;
    graft_status status = graft_cost_signature(env, cost, signature, &entry);
    if (status == GRAFT_OK) {
        memcpy(name, entry.implementation, GRAFT_KERNEL_NAME_BYTES);
    }
    return status;
}

static graft_status open_kernel(graft_env *env, graft_executor *e, graft_cost *cost, uint32_t i)
{
    graft_status status = GRAFT_OK;
    const graft_step *step = &e->schedule.steps[i];
    if (step->signature.op == GRAFT_OP_OPAQUE) {
        (void)graft_opaque_find(e->model, e->graph, step->node, &e->opaques[i]); /* It was found. */
        return GRAFT_OK;
    }
    const float *constants[GRAFT_MAX_INPUTS] = {NULL};
    char name[GRAFT_KERNEL_NAME_BYTES] = "";
    for (uint32_t k = 0; k < step->input_count; k++) {
        constants[k] = e->regions[graft_step_input(&e->schedule, step, k)];
    }
    GRAFT_CHECK(choose_implementation(env, cost, &step->signature, name));
    GRAFT_CHECK(graft_kernel_open(env, e->device, &step->signature, name[0] == '\0' ? NULL : name,
                                  constants, &e->kernels[i]));
    size_t workspace = graft_kernel_workspace_bytes(e->kernels[i]);
    if (workspace > e->memory.workspace_bytes) {
        e->memory.workspace_bytes = workspace;
    }
    e->memory.packed_bytes += graft_kernel_packed_bytes(e->kernels[i]);
    e->memory.pack_ns += graft_kernel_pack_ns(e->kernels[i]);
done:
    return status;
}

/* What the database lacks is measured in one go before kernels are opened one by one. */
static graft_status open_kernels(graft_env *env, graft_executor *e, graft_cost *cost)
{
    graft_status status = GRAFT_OK;
    graft_cost_total total;
    GRAFT_CHECK(graft_cost_schedule(env, cost, e->graph, &e->schedule, &total));
    e->kernels = GRAFT_NEW(e->arena, graft_kernel *, e->schedule.step_count);
    e->opaques = GRAFT_NEW(e->arena, graft_opaque, e->schedule.step_count);
    for (uint32_t i = 0; i < e->schedule.step_count; i++) {
        GRAFT_TRY(env, open_kernel(env, e, cost, i), "while preparing node %u",
                  e->schedule.steps[i].node);
    }
done:
    return status;
}

static graft_status place_regions(graft_env *env, graft_executor *e)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    const graft_schedule *s = &e->schedule;
    uint64_t *offsets = GRAFT_NEW(env->scratch, uint64_t, s->region_count);
    uint64_t planned = graft_memory_plan(env->scratch, s, offsets);
    size_t bytes = (size_t)(planned + e->memory.workspace_bytes);
    graft_status status = GRAFT_OK;
    e->memory.peak_bytes += bytes;
    e->block = allocate_aligned(bytes);
    if (e->block == NULL) {
        status = GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for %zu bytes of tensors", bytes);
    } else {
        memset(e->block, 0, bytes);
        e->workspace = (char *)e->block + planned;
    }
    for (uint32_t i = 0; i < s->region_count && status == GRAFT_OK; i++) {
        const graft_region *region = &s->regions[i];
        if (region->kind == GRAFT_REGION_INPUT) {
            e->regions[i] = find_input(e, region->value);
        } else if (region->kind == GRAFT_REGION_PLANNED) {
            void *place = (char *)e->block + offsets[region->root];
            e->regions[i] = place;
        }
    }
    graft_arena_release(env->scratch, mark);
    return status;
}

static graft_status bind_kernels(graft_env *env, graft_executor *e)
{
    graft_status status = GRAFT_OK;
    for (uint32_t i = 0; i < e->schedule.step_count; i++) {
        const graft_step *step = &e->schedule.steps[i];
        const float *inputs[GRAFT_MAX_INPUTS] = {NULL};
        float *outputs[GRAFT_MAX_OUTPUTS] = {NULL};
        if (e->kernels[i] == NULL) {
            continue;
        }
        for (uint32_t k = 0; k < step->input_count; k++) {
            inputs[k] = e->regions[graft_step_input(&e->schedule, step, k)];
        }
        for (uint32_t k = 0; k < step->output_count; k++) {
            outputs[k] = e->regions[graft_step_output(&e->schedule, step, k)];
        }
        GRAFT_CHECK(graft_kernel_bind(env, e->kernels[i], inputs, outputs, e->workspace));
    }
done:
    return status;
}

/* What an executor is opened for. */
typedef struct {
    const graft_graph *graph;
    const graft_model *model;
    graft_weight_source weights;
    void *context;
} executor_source;

static graft_status open_executor(graft_env *env, graft_cost *cost, const executor_source *source,
                                  graft_executor **executor)
{
    graft_status status = GRAFT_OK;
    graft_arena *arena = graft_arena_new((size_t)1 << 16);
    if (arena == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for an executor");
    }
    graft_executor *e = GRAFT_NEW(arena, graft_executor, 1);
    e->arena = arena;
    e->graph = source->graph;
    e->model = source->model;
    e->device = graft_cost_device(cost);
    GRAFT_CHECK(refuse_opaque(env, e));
    GRAFT_CHECK(build_schedule(env, e, cost));
    GRAFT_CHECK(allocate_inputs(env, e));
    GRAFT_CHECK(find_weights(env, e, source->weights, source->context));
    GRAFT_CHECK(open_kernels(env, e, cost));
    GRAFT_CHECK(place_regions(env, e));
    GRAFT_CHECK(bind_kernels(env, e));
done:
    if (status == GRAFT_OK) {
        *executor = e;
    } else {
        graft_executor_close(e);
    }
    return status;
}

graft_status graft_executor_open(graft_env *env, graft_cost *cost, const graft_graph *graph,
                                 graft_weight_source weights, void *context,
                                 graft_executor **executor)
{
    const executor_source source = {.graph = graph, .weights = weights, .context = context};
    return open_executor(env, cost, &source, executor);
}

static const float *find_folded(void *context, graft_index value)
{
    return graft_weights_data(context, value);
}

graft_status graft_executor_open_model(graft_env *env, graft_cost *cost, const graft_model *model,
                                       const graft_graph *graph, const graft_weights *weights,
                                       graft_executor **executor)
{
    graft_weights copy = *weights; /* The source takes no pointer to const. */
    const executor_source source = {
        .graph = graph, .model = model, .weights = find_folded, .context = &copy};
    return open_executor(env, cost, &source, executor);
}

void graft_executor_close(graft_executor *executor)
{
    if (executor == NULL) {
        return;
    }
    for (uint32_t i = 0; i < executor->schedule.step_count && executor->kernels != NULL; i++) {
        graft_kernel_close(executor->kernels[i]);
    }
    for (uint32_t k = 0; k < executor->input_count && executor->input_data != NULL; k++) {
        free(executor->input_data[k]);
    }
    free(executor->block);
    graft_arena_free(executor->arena);
}

/* ------------------------------------------------------------------ running */

uint32_t graft_executor_input_count(const graft_executor *executor)
{
    return executor->input_count;
}

uint32_t graft_executor_output_count(const graft_executor *executor)
{
    return executor->graph->output_count;
}

graft_index graft_executor_input(const graft_executor *executor, uint32_t k)
{
    return executor->inputs[k];
}

graft_index graft_executor_output(const graft_executor *executor, uint32_t k)
{
    return executor->graph->outputs[k];
}

const graft_schedule *graft_executor_schedule(const graft_executor *executor)
{
    return &executor->schedule;
}

const char *graft_executor_implementation(const graft_executor *executor, uint32_t step)
{
    return executor->kernels[step] == NULL ? "opaque"
                                           : graft_kernel_name_of(executor->kernels[step]);
}

void graft_executor_memory_of(const graft_executor *executor, graft_executor_memory *memory)
{
    *memory = executor->memory;
}

static graft_status run_opaque(graft_env *env, const graft_executor *e, uint32_t i)
{
    const graft_step *step = &e->schedule.steps[i];
    const void *in[2] = {NULL};
    for (uint32_t k = 0; k < e->opaques[i].read_count; k++) {
        in[k] = e->regions[graft_step_input(&e->schedule, step, k)];
    }
    return graft_opaque_run(env, &e->opaques[i], in,
                            e->regions[graft_step_output(&e->schedule, step, 0)]);
}

static graft_status run_step(graft_env *env, const graft_executor *e, uint32_t i)
{
    return e->kernels[i] == NULL ? run_opaque(env, e, i) : graft_kernel_run(env, e->kernels[i]);
}

static graft_status run_steps(graft_env *env, const graft_executor *e)
{
    graft_status status = GRAFT_OK;
    for (uint32_t i = 0; i < e->schedule.step_count; i++) {
        GRAFT_CHECK(run_step(env, e, i));
    }
done:
    return status;
}

graft_status graft_executor_run(graft_env *env, graft_executor *executor,
                                const float *const *inputs, float *const *outputs)
{
    graft_status status = GRAFT_OK;
    const graft_graph *graph = executor->graph;
    for (uint32_t k = 0; k < executor->input_count; k++) {
        memcpy(executor->input_data[k], inputs[k],
               (size_t)graft_shape_bytes(&graph->values[executor->inputs[k]].shape));
    }
    executor->has_inputs = true;
    GRAFT_CHECK(run_steps(env, executor));
    for (uint32_t k = 0; k < graph->output_count; k++) {
        memcpy(outputs[k], executor->regions[executor->schedule.outputs[k]],
               (size_t)graft_shape_bytes(&graph->values[graph->outputs[k]].shape));
    }
done:
    return status;
}

/* ------------------------------------------------------------------- timing */

enum { INPUT_SEED = 23, LEAST_BATCH_NS = 1000000 };

/* Places and masks: 0 and 1 lie in every table. */
static void draw_wholes(void *data, const graft_shape *shape)
{
    uint64_t count = graft_shape_elements(shape);
    for (uint64_t i = 0; i < count; i++) {
        if (shape->dtype == GRAFT_DTYPE_I64) {
            ((int64_t *)data)[i] = (int64_t)(i & 1);
        } else if (shape->dtype == GRAFT_DTYPE_I32) {
            ((int32_t *)data)[i] = (int32_t)(i & 1);
        }
    }
}

static void draw_inputs(graft_executor *e)
{
    for (uint32_t k = 0; k < e->input_count && !e->has_inputs; k++) {
        const graft_shape *shape = &e->graph->values[e->inputs[k]].shape;
        graft_rng rng;
        if (shape->dtype != GRAFT_DTYPE_F32) {
            draw_wholes(e->input_data[k], shape);
            continue;
        }
        graft_rng_derive(&rng, INPUT_SEED, k);
        uint64_t count = graft_shape_elements(shape);
        for (uint64_t i = 0; i < count; i++) {
            e->input_data[k][i] = (float)graft_rng_normal(&rng);
        }
    }
    e->has_inputs = true;
}

static graft_status time_batch(graft_env *env, const graft_executor *e, uint32_t runs,
                               double *run_ns)
{
    graft_status status = GRAFT_OK;
    uint32_t threads = graft_device_threads(e->device);
    uint64_t start_ns = graft_cost_clock_ns(threads);
    for (uint32_t i = 0; i < runs; i++) {
        GRAFT_CHECK(run_steps(env, e));
    }
    *run_ns = (double)(graft_cost_clock_ns(threads) - start_ns) / (double)runs;
done:
    return status;
}

/* Warms the executor up; how many runs make a batch. */
static graft_status warm_up(graft_env *env, graft_executor *e, uint32_t *runs)
{
    graft_status status = GRAFT_OK;
    double run_ns = 0.0;
    draw_inputs(e);
    for (uint32_t i = 0; i < 3; i++) {
        GRAFT_CHECK(time_batch(env, e, 1, &run_ns));
    }
    *runs = (uint32_t)(LEAST_BATCH_NS / (run_ns + 1.0)) + 1;
done:
    return status;
}

/* A batch after as much again, thrown away, at most one run of a large graph. */
static graft_status time_after_switch(graft_env *env, const graft_executor *e, uint32_t runs,
                                      double *run_ns)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(time_batch(env, e, runs > 5 ? 5 : runs, run_ns));
    GRAFT_CHECK(time_batch(env, e, runs, run_ns));
    if (graft_interrupted()) {
        status = GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while measuring");
    }
done:
    return status;
}

graft_status graft_executor_time(graft_env *env, graft_executor *executor, uint32_t rounds,
                                 graft_timing *timing)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    double *samples = GRAFT_NEW(env->scratch, double, rounds);
    uint32_t runs = 1;
    GRAFT_CHECK(warm_up(env, executor, &runs));
    for (uint32_t i = 0; i < rounds; i++) {
        GRAFT_CHECK(time_batch(env, executor, runs, &samples[i]));
        if (graft_interrupted()) {
            status = GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while measuring");
            goto done;
        }
    }
    timing->rounds = rounds;
    graft_cost_median(samples, rounds, &timing->median_ns, &timing->spread_ns);
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

graft_status graft_executor_profile(graft_env *env, graft_executor *executor, uint32_t rounds,
                                    double *step_ns)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    uint32_t steps = executor->schedule.step_count;
    uint32_t threads = graft_device_threads(executor->device);
    double *samples = GRAFT_NEW(env->scratch, double, (size_t)rounds *steps);
    uint32_t runs = 1;
    double spread = 0.0;
    GRAFT_CHECK(warm_up(env, executor, &runs));
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < steps; i++) {
            uint64_t start_ns = graft_cost_clock_ns(threads);
            GRAFT_CHECK(run_step(env, executor, i));
            samples[(size_t)i * rounds + round] = (double)(graft_cost_clock_ns(threads) - start_ns);
        }
    }
    for (uint32_t i = 0; i < steps; i++) {
        graft_cost_median(samples + (size_t)i * rounds, rounds, &step_ns[i], &spread);
    }
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

/* ---------------------------------------------------------------- comparing */

enum { CONTENDERS = 3 }; /* a, b, and a once more: the control. */

typedef struct {
    double *times[CONTENDERS];
    double *ratio;   /* b / a */
    double *control; /* a / a */
} comparison_samples;

static void summarise(const comparison_samples *samples, uint32_t rounds, graft_comparison *c)
{
    for (uint32_t i = 0; i < rounds; i++) {
        samples->ratio[i] = samples->times[1][i] / samples->times[0][i];
        samples->control[i] = samples->times[2][i] / samples->times[0][i];
    }
    c->rounds = rounds;
    c->a.rounds = rounds;
    c->b.rounds = rounds;
    graft_cost_median(samples->times[0], rounds, &c->a.median_ns, &c->a.spread_ns);
    graft_cost_median(samples->times[1], rounds, &c->b.median_ns, &c->b.spread_ns);
    graft_cost_median(samples->ratio, rounds, &c->ratio, &c->ratio_spread);
    graft_cost_median(samples->control, rounds, &c->control, &c->control_spread);
}

graft_status graft_executor_compare(graft_env *env, graft_executor *a, graft_executor *b,
                                    uint32_t rounds, graft_comparison *comparison)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    const graft_executor *contenders[CONTENDERS] = {a, b, a};
    comparison_samples samples;
    uint32_t runs[CONTENDERS] = {1, 1, 1};
    for (uint32_t k = 0; k < CONTENDERS; k++) {
        samples.times[k] = GRAFT_NEW(env->scratch, double, rounds);
    }
    samples.ratio = GRAFT_NEW(env->scratch, double, rounds);
    samples.control = GRAFT_NEW(env->scratch, double, rounds);
    GRAFT_CHECK(warm_up(env, a, &runs[0]));
    GRAFT_CHECK(warm_up(env, b, &runs[1]));
    runs[2] = runs[0];
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < CONTENDERS; i++) {
            uint32_t k = (i + round) % CONTENDERS;
            GRAFT_CHECK(time_after_switch(env, contenders[k], runs[k], &samples.times[k][round]));
        }
    }
    summarise(&samples, rounds, comparison);
done:
    graft_arena_release(env->scratch, mark);
    return status;
}
