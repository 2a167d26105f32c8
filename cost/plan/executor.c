/* executor.c - whole graphs on the device (see executor.h). */
#include "cost/plan/executor.h"

#include "cost/device/backend.h"
#include "cost/measure/clock.h"
#include "cost/plan/flow.h"
#include "cost/plan/integers.h"
#include "cost/plan/memory.h"
#include "graph/base/bytes.h"
#include "graph/base/half.h"
#include "graph/base/log.h"
#include "graph/base/rng.h"
#include "graph/base/share.h"
#include "graph/opaque.h"

#include <math.h>
#include <string.h>

struct graft_executor {
    graft_arena *arena; /* Of the tables below. */
    const graft_graph *graph;
    graft_device *device;
    graft_schedule schedule;
    graft_kernel **kernels;   /* By step; NULL for opaque nodes... */
    graft_opaque *opaques;    /* ...which are here, or... */
    graft_flow_run **flows;   /* ...an If, Loop or Scan. */
    const graft_model *model; /* NULL: no opaque node can be run. */
    graft_index *inputs;      /* Value ids. */
    float **input_data;       /* Of each, ours, in the processor's memory. */
    uint32_t input_count;
    float **regions; /* By region: where it lies on the device. */
    void **hosts;    /* By region: where it lies in the processor's memory; NULL: not there. */
    void *block;     /* Planned regions, then... */
    void *workspace; /* ...what kernels need while they run. */
    void **owned;    /* Other memory of the device. */
    uint32_t owned_count;
    graft_executor_memory memory;
    bool has_inputs; /* Somebody has run it. */
};

/* ------------------------------------------------------------------ opening */

static bool can_run(const graft_executor *e, graft_index node)
{
    graft_opaque opaque;
    const graft_flow *flow = graft_flow_of(e->model, &e->graph->nodes[node]);
    return e->graph->nodes[node].op != GRAFT_OP_OPAQUE || e->graph->nodes[node].is_const ||
           (flow != NULL && flow->refusal == NULL && graft_device_shares_memory(e->device)) ||
           (e->model != NULL && graft_opaque_find(e->model, e->graph, node, &opaque));
}

static const char *why_not(const graft_executor *e, graft_index node, graft_arena *scratch)
{
    const graft_graph *graph = e->graph;
    const graft_flow *flow = graft_flow_of(e->model, &graph->nodes[node]);
    bool is_double = false;
    if (flow != NULL && flow->refusal != NULL) {
        return flow->refusal;
    }
    for (uint32_t k = 0; k < graph->nodes[node].input_count; k++) {
        const graft_index v = graft_node_input(graph, node, k);
        is_double =
            is_double || (v != GRAFT_NONE && graph->values[v].shape.dtype == GRAFT_DTYPE_F64);
    }
    return is_double
               ? "its numbers are binary64"
               : graft_arena_printf(
                     scratch, "it is an operator that Graft does not know, or a form of one (%s)",
                     graft_model_node_refusal(e->model, &graph->nodes[node]));
}

/* Whether nothing runs a node for want of the sizes of what another makes that nothing runs. */
static bool lacks_sizes(const graft_executor *e, graft_index node)
{
    const graft_graph *graph = e->graph;
    bool lacks = false;
    for (uint32_t k = 0; k < graph->nodes[node].input_count; k++) {
        const graft_index v = graft_node_input(graph, node, k);
        lacks = lacks || (v != GRAFT_NONE && graph->values[v].node != GRAFT_NONE &&
                          graph->values[v].shape.rank == GRAFT_RANK_UNKNOWN &&
                          !can_run(e, graph->values[v].node));
    }
    return lacks;
}

/* Names the first node that nothing runs, and the operators of all others that have sizes. */
static graft_status refuse_opaque(graft_env *env, const graft_executor *e)
{
    const graft_node *first = NULL;
    const char *why = NULL;
    const char *types = "";
    for (graft_index n = 0; n < e->graph->node_end; n++) {
        const graft_node *node = &e->graph->nodes[n];
        if (can_run(e, n) || lacks_sizes(e, n)) {
            continue;
        }
        if (e->model == NULL) {
            return GRAFT_FAIL(
                env, GRAFT_UNSUPPORTED,
                "the graph cannot be run: node %u is operator number %u of a model that is not "
                "given",
                n, node->source);
        }
        const char *type =
            graft_arena_printf(env->scratch, ", %s", graft_model_node_type(e->model, node));
        why = first == NULL ? why_not(e, n, env->scratch) : why;
        first = first == NULL ? node : first;
        types = strstr(types, type) == NULL ? graft_arena_printf(env->scratch, "%s%s", types, type)
                                            : types;
    }
    return first == NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                            "%s: node '%s' (%s) cannot be run: %s; all of these in the model: %s",
                            e->model->file, graft_model_node_name(e->model, first),
                            graft_model_node_type(e->model, first), why, types + 2);
}

static graft_status build_schedule(graft_env *env, graft_executor *e, graft_cost *cost)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    graft_order order;
    size_t bytes = graft_order_bytes(&e->graph->limits);
    status = graft_order_build(&order, e->graph, graft_arena_alloc(env->scratch, bytes), bytes);
    if (status == GRAFT_OK) {
        status = graft_cost_plan(env, cost, e->arena, e->graph, &order, &e->schedule);
    } else {
        (void)GRAFT_FAIL(env, status, "the graph cannot be run: it has a cycle");
    }
    return status;
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

/* Memory of a device with memory of its own, released with the executor. */
static graft_status allocate_owned(graft_env *env, graft_executor *e, size_t bytes, float **memory)
{
    void *allocated = NULL;
    GRAFT_PASS(graft_device_allocate(env, e->device, bytes, &allocated));
    e->owned[e->owned_count++] = allocated;
    *memory = allocated;
    return GRAFT_OK;
}

static void *allocate_host(graft_executor *e, size_t bytes)
{
    enum { UNIT = GRAFT_MEMORY_ALIGNMENT };
    char *data = GRAFT_NEW(e->arena, char, bytes + UNIT);
    return data + (UNIT - (uintptr_t)data % UNIT) % UNIT;
}

static void allocate_inputs(graft_executor *e)
{
    list_inputs(e);
    e->input_data = GRAFT_NEW(e->arena, float *, e->input_count);
    for (uint32_t k = 0; k < e->input_count; k++) {
        size_t bytes = (size_t)graft_shape_bytes(&e->graph->values[e->inputs[k]].shape);
        e->input_data[k] = allocate_host(e, bytes);
        e->memory.peak_bytes += bytes;
    }
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

static graft_status find_weights(graft_env *env, graft_executor *e, graft_weight_source weights,
                                 void *context)
{
    e->regions = GRAFT_NEW(e->arena, float *, e->schedule.region_count);
    e->hosts = GRAFT_NEW(e->arena, void *, e->schedule.region_count);
    e->owned = GRAFT_NEW(e->arena, void *, e->schedule.region_count);
    for (uint32_t i = 0; i < e->schedule.region_count; i++) {
        const graft_region *region = &e->schedule.regions[i];
        if (region->kind != GRAFT_REGION_CONST) {
            continue;
        }
        e->regions[i] = graft_borrow(weights(context, region->value));
        e->hosts[i] = e->regions[i];
        const graft_shape *shape = &e->graph->values[region->value].shape;
        bool read = shape->dtype == GRAFT_DTYPE_F32 && graft_shape_bytes(shape) > 0;
        if (e->regions[i] == NULL && read) { /* Opaque nodes read whole numbers while planned. */
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the weight that is value %u has no data",
                              region->value);
        }
    }
    return GRAFT_OK;
}

/* Data of the const inputs of a step. */
static void find_constants(const graft_executor *e, const graft_step *step,
                           const float *constants[GRAFT_MAX_INPUTS])
{
    for (uint32_t k = 0; k < step->input_count; k++) {
        uint32_t region = graft_step_input(&e->schedule, step, k);
        constants[k] = region == GRAFT_REGION_NONE ? NULL : e->regions[region];
    }
    if (graft_signature_is_integer(&step->signature)) {
        graft_integers_constants(e->arena, step->group, constants[2], constants);
    }
}

/* The operands of an opaque node that are given. */
static void find_operands(const graft_executor *e, uint32_t i, const void **in)
{
    for (uint32_t k = 0; k < e->opaques[i].read_count; k++) {
        if (e->opaques[i].in[k].rank != GRAFT_RANK_UNKNOWN) {
            in[k] = e->hosts[graft_step_input(&e->schedule, &e->schedule.steps[i], k)];
        }
    }
}

/* That an opaque node runs on: one where it is small. */
static int count_threads(const graft_executor *e, const graft_opaque *opaque)
{
    uint64_t bytes = graft_shape_bytes(&opaque->out);
    for (uint32_t k = 0; k < opaque->read_count; k++) {
        bytes += graft_shape_bytes(&opaque->in[k]);
    }
    return bytes < GRAFT_SHARE_LEAST ? 1 : (int)graft_device_threads(e->device);
}

/* What an opaque node makes of its weights. */
static void keep_constants(graft_executor *e, uint32_t i)
{
    const void *in[GRAFT_OPAQUE_INPUTS_MOST] = {NULL};
    const uint64_t start_ns = graft_cost_clock_ns(1);
    const size_t used = graft_arena_used_bytes(e->arena);
    find_operands(e, i, in);
    graft_opaque_keep(e->arena, &e->opaques[i], in);
    e->memory.packed_bytes += graft_arena_used_bytes(e->arena) - used;
    e->memory.pack_ns += graft_cost_clock_ns(1) - start_ns;
}

static graft_status open_kernel(graft_env *env, graft_executor *e, graft_cost *cost, uint32_t i)
{
    const graft_step *step = &e->schedule.steps[i];
    if (step->node != GRAFT_NONE && step->group == NULL &&
        (e->graph->nodes[step->node].op == GRAFT_OP_OPAQUE ||
         graft_opaque_is_byte(e->graph, step->node))) {
        const graft_flow *flow = graft_flow_of(e->model, &e->graph->nodes[step->node]);
        if (flow != NULL) {
            const graft_status status = graft_flow_open(env, e->arena, cost, flow, &e->flows[i]);
            graft_cost_set_model(cost, e->model);
            return status;
        }
        (void)graft_opaque_find(e->model, e->graph, step->node, &e->opaques[i]); /* It was found. */
        e->opaques[i].threads = count_threads(e, &e->opaques[i]);
        keep_constants(e, i);
        return GRAFT_OK;
    }
    const float *constants[GRAFT_MAX_INPUTS] = {NULL};
    graft_cost_entry entry;
    find_constants(e, step, constants);
    GRAFT_PASS(graft_cost_signature(env, cost, &step->signature, &entry));
    const char *name = entry.implementation[0] == '\0' ? NULL : entry.implementation;
    graft_status status =
        graft_kernel_open(env, e->device, &step->signature, name, constants, &e->kernels[i]);
    if (status == GRAFT_UNSUPPORTED && name != NULL) { /* Another processor's favourite. */
        graft_env_clear(env);
        status =
            graft_kernel_open(env, e->device, &step->signature, NULL, constants, &e->kernels[i]);
    }
    GRAFT_PASS(status);
    size_t workspace = graft_kernel_facts_of(e->kernels[i])->workspace_bytes;
    if (workspace > e->memory.workspace_bytes) {
        e->memory.workspace_bytes = workspace;
    }
    e->memory.packed_bytes += graft_kernel_facts_of(e->kernels[i])->packed_bytes;
    e->memory.pack_ns += graft_kernel_facts_of(e->kernels[i])->pack_ns;
    return status;
}

static const char *name_step(graft_arena *arena, const graft_step *step)
{
    return step->node == GRAFT_NONE ? "a conversion of layouts"
                                    : graft_arena_printf(arena, "node %u", step->node);
}

/* What the database lacks is measured in one go before kernels are opened one by one. */
static graft_status open_kernels(graft_env *env, graft_executor *e, graft_cost *cost)
{
    graft_cost_total total;
    GRAFT_PASS(graft_cost_schedule(env, cost, e->graph, &e->schedule, &total));
    e->kernels = GRAFT_NEW(e->arena, graft_kernel *, e->schedule.step_count);
    e->opaques = GRAFT_NEW(e->arena, graft_opaque, e->schedule.step_count);
    e->flows = GRAFT_NEW(e->arena, graft_flow_run *, e->schedule.step_count);
    for (uint32_t i = 0; i < e->schedule.step_count; i++) {
        GRAFT_PASS_IN(env, open_kernel(env, e, cost, i), "while preparing %s",
                      name_step(env->scratch, &e->schedule.steps[i]));
    }
    return GRAFT_OK;
}

static graft_status place_input(graft_env *env, graft_executor *e, uint32_t region)
{
    float *data = find_input(e, e->schedule.regions[region].value);
    e->hosts[region] = data;
    if (graft_device_shares_memory(e->device)) {
        e->regions[region] = data;
        return GRAFT_OK;
    }
    return allocate_owned(env, e, (size_t)e->schedule.regions[region].bytes, &e->regions[region]);
}

/* Regions that lie in others, once those have their places. Offsets count four bytes a number. */
static void place_pieces(graft_executor *e)
{
    uint32_t stored = graft_device_head_of(e->device)->number_bytes;
    for (uint32_t i = 0; i < e->schedule.region_count; i++) {
        const graft_region *region = &e->schedule.regions[i];
        if (region->root == i) {
            continue;
        }
        size_t offset = (size_t)region->offset / sizeof(float);
        float *host = e->hosts[region->root];
        char *place = (char *)e->regions[region->root];
        void *inside = place == NULL ? NULL : place + offset * (stored == 0 ? 4 : stored);
        e->regions[i] = inside;
        e->hosts[i] = host == NULL ? NULL : host + offset;
    }
}

static graft_status place_regions(graft_env *env, graft_executor *e)
{
    GRAFT_SCOPED(env->scratch);
    const graft_schedule *s = &e->schedule;
    uint64_t *offsets = GRAFT_NEW(env->scratch, uint64_t, s->region_count);
    uint64_t planned = graft_memory_plan(env->scratch, s, offsets);
    size_t bytes = (size_t)(planned + e->memory.workspace_bytes);
    graft_status status = GRAFT_OK;
    e->memory.peak_bytes += bytes;
    status = graft_device_allocate(env, e->device, bytes, &e->block);
    if (status == GRAFT_OK) {
        e->workspace = (char *)e->block + planned;
    }
    for (uint32_t i = 0; i < s->region_count && status == GRAFT_OK; i++) {
        const graft_region *region = &s->regions[i];
        if (region->root == i && region->kind == GRAFT_REGION_INPUT) {
            status = place_input(env, e, i);
        } else if (region->root == i && region->kind == GRAFT_REGION_PLANNED) {
            void *place = (char *)e->block + offsets[i];
            e->regions[i] = place;
            e->hosts[i] = graft_device_shares_memory(e->device) ? place : NULL;
        }
    }
    if (status == GRAFT_OK) {
        place_pieces(e);
    }
    return status;
}

/* On a device with memory of its own, opaque nodes run on the processor before everything else,
 * whenever there are new inputs: they select rows of tables by the model's inputs. Their results
 * stay where they are while the rest is run many times, so they share memory with nothing. */
static graft_status stage_opaque(graft_env *env, graft_executor *e, uint32_t i)
{
    const graft_step *step = &e->schedule.steps[i];
    uint32_t output = graft_step_output(&e->schedule, step, 0);
    size_t bytes = (size_t)e->schedule.regions[output].bytes;
    for (uint32_t k = 0; k < e->opaques[i].read_count; k++) {
        bool is_given = e->opaques[i].in[k].rank != GRAFT_RANK_UNKNOWN;
        if (is_given && e->hosts[graft_step_input(&e->schedule, step, k)] == NULL) {
            return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                              "the graph cannot be run on '%s': node %u is an operator that only "
                              "the processor runs, and reads a result of the device",
                              graft_device_name(e->device), step->node);
        }
    }
    e->hosts[output] = allocate_host(e, bytes);
    return allocate_owned(env, e, bytes, &e->regions[output]);
}

static graft_status stage_opaques(graft_env *env, graft_executor *e)
{
    for (uint32_t i = 0; i < e->schedule.step_count; i++) {
        if (e->kernels[i] == NULL && !graft_device_shares_memory(e->device)) {
            GRAFT_PASS(stage_opaque(env, e, i));
        }
    }
    return GRAFT_OK;
}

static graft_status bind_kernels(graft_env *env, graft_executor *e)
{
    for (uint32_t i = 0; i < e->schedule.step_count; i++) {
        const graft_step *step = &e->schedule.steps[i];
        const float *inputs[GRAFT_MAX_INPUTS] = {NULL};
        float *outputs[GRAFT_MAX_OUTPUTS] = {NULL};
        if (e->kernels[i] == NULL) {
            continue;
        }
        for (uint32_t k = 0; k < step->input_count; k++) {
            uint32_t region = graft_step_input(&e->schedule, step, k);
            inputs[k] = region == GRAFT_REGION_NONE ? NULL : e->regions[region];
        }
        for (uint32_t k = 0; k < step->output_count; k++) {
            outputs[k] = e->regions[graft_step_output(&e->schedule, step, k)];
        }
        GRAFT_PASS(graft_kernel_bind(env, e->kernels[i], inputs, outputs, e->workspace));
    }
    return GRAFT_OK;
}

/* What an executor is opened for. */
typedef struct {
    const graft_graph *graph;
    const graft_model *model;
    graft_weight_source weights;
    void *context;
} executor_source;

static graft_status refuse_halves(graft_env *env, const graft_graph *graph)
{
    for (graft_index v = 0; v < graph->value_end; v++) {
        if (graph->values[v].kind != GRAFT_VALUE_FREE &&
            graft_half_is(graph->values[v].shape.dtype)) {
            return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                              "value %u is of float16 or bfloat16, which nothing here computes in",
                              v);
        }
    }
    return GRAFT_OK;
}

static graft_status open_executor(graft_env *env, graft_cost *cost, const executor_source *source,
                                  graft_executor **executor)
{
    graft_status status = GRAFT_OK;
    graft_arena *arena = graft_arena_new((size_t)1 << 16);
    graft_executor *e = GRAFT_NEW(arena, graft_executor, 1);
    e->arena = arena;
    e->graph = source->graph;
    e->model = source->model;
    e->device = graft_cost_device(cost);
    GRAFT_CHECK(refuse_halves(env, e->graph));
    GRAFT_CHECK(refuse_opaque(env, e));
    GRAFT_CHECK(build_schedule(env, e, cost));
    allocate_inputs(e);
    GRAFT_CHECK(find_weights(env, e, source->weights, source->context));
    GRAFT_CHECK(open_kernels(env, e, cost));
    GRAFT_CHECK(place_regions(env, e));
    GRAFT_CHECK(stage_opaques(env, e));
    place_pieces(e); /* Of what opaque nodes make, too. */
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
    const executor_source source = {
        .graph = graph, .model = model, .weights = find_folded, .context = graft_borrow(weights)};
    return open_executor(env, cost, &source, executor);
}

graft_status graft_executor_open_folded(graft_env *env, graft_arena *arena, graft_cost *cost,
                                        const graft_model *model, const graft_graph *graph,
                                        graft_executor **executor)
{
    graft_weights weights;
    GRAFT_PASS(graft_model_fold_weights(env, arena, model, graph, &weights));
    return graft_executor_open_model(env, cost, model, graph, &weights, executor);
}

void graft_executor_close(graft_executor *executor)
{
    if (executor == NULL) {
        return;
    }
    for (uint32_t i = 0; i < executor->schedule.step_count && executor->kernels != NULL; i++) {
        graft_kernel_close(executor->kernels[i]);
        graft_flow_close(executor->flows[i]);
    }
    for (uint32_t i = 0; i < executor->owned_count; i++) {
        graft_device_release(executor->device, executor->owned[i]);
    }
    graft_device_release(executor->device, executor->block);
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
    if (executor->kernels[step] != NULL) {
        return graft_kernel_facts_of(executor->kernels[step])->name;
    }
    const graft_node *node = &executor->graph->nodes[executor->schedule.steps[step].node];
    const char *type = executor->model == NULL ? "" : graft_model_node_type(executor->model, node);
    return type[0] == '\0' ? "opaque" : type; /* A rule made it, of bytes. */
}

void graft_executor_memory_of(const graft_executor *executor, graft_executor_memory *memory)
{
    *memory = executor->memory;
}

static graft_status run_flow(graft_env *env, const graft_executor *e, uint32_t i)
{
    GRAFT_SCOPED(env->scratch);
    const graft_step *step = &e->schedule.steps[i];
    const void **in = GRAFT_NEW(env->scratch, const void *, step->input_count);
    void **out = GRAFT_NEW(env->scratch, void *, step->output_count);
    for (uint32_t k = 0; k < step->input_count; k++) {
        const uint32_t region = graft_step_input(&e->schedule, step, k);
        in[k] = region == GRAFT_REGION_NONE ? NULL : e->hosts[region];
    }
    for (uint32_t k = 0; k < step->output_count; k++) {
        out[k] = e->hosts[graft_step_output(&e->schedule, step, k)];
    }
    return graft_flow_once(env, e->flows[i], in, out);
}

static graft_status run_opaque(graft_env *env, const graft_executor *e, uint32_t i)
{
    const graft_step *step = &e->schedule.steps[i];
    if (e->flows[i] != NULL) {
        return run_flow(env, e, i);
    }
    const void *in[GRAFT_OPAQUE_INPUTS_MOST] = {NULL};
    find_operands(e, i, in);
    void *out[GRAFT_OPAQUE_OUTPUTS_MOST] = {NULL};
    for (uint32_t k = 0; k < e->opaques[i].out_count; k++) {
        out[k] = e->hosts[graft_step_output(&e->schedule, step, k)];
    }
    const graft_status status = graft_opaque_run(env, &e->opaques[i], in, out);
    if (status != GRAFT_OK) {
        graft_env_frame(env, "in node '%s' of %s",
                        graft_model_node_name(e->model, &e->graph->nodes[step->node]),
                        e->model->file);
    }
    return status;
}

static graft_status run_step(graft_env *env, const graft_executor *e, uint32_t i)
{
    if (e->kernels[i] != NULL) {
        return graft_kernel_run(env, e->kernels[i]);
    }
    return graft_device_shares_memory(e->device) ? run_opaque(env, e, i) : GRAFT_OK;
}

static graft_status send_region(graft_env *env, const graft_executor *e, uint32_t region)
{
    const graft_shape *shape = &e->graph->values[e->schedule.regions[region].value].shape;
    if (shape->dtype != GRAFT_DTYPE_F32) { /* Only opaque nodes read those. */
        return GRAFT_OK;
    }
    return graft_device_write(env, e->device, e->regions[region], e->hosts[region],
                              (size_t)graft_shape_elements(shape));
}

/* New inputs to a device with memory of its own, and the results of opaque nodes. */
static graft_status send_inputs(graft_env *env, const graft_executor *e)
{
    if (graft_device_shares_memory(e->device)) {
        return GRAFT_OK;
    }
    for (uint32_t i = 0; i < e->schedule.region_count; i++) {
        if (e->schedule.regions[i].kind == GRAFT_REGION_INPUT) {
            GRAFT_PASS(send_region(env, e, i));
        }
    }
    for (uint32_t i = 0; i < e->schedule.step_count; i++) {
        if (e->kernels[i] == NULL) {
            GRAFT_PASS(run_opaque(env, e, i));
            GRAFT_PASS(
                send_region(env, e, graft_step_output(&e->schedule, &e->schedule.steps[i], 0)));
        }
    }
    return GRAFT_OK;
}

/* An output: of the device, or a weight, or what an opaque node made. */
static graft_status fetch_output(graft_env *env, const graft_executor *e, uint32_t k, float *to)
{
    uint32_t region = e->schedule.outputs[k];
    const graft_shape *shape = &e->graph->values[e->graph->outputs[k]].shape;
    if (e->hosts[region] != NULL) {
        memcpy(to, e->hosts[region], (size_t)graft_shape_bytes(shape));
        return GRAFT_OK;
    }
    return graft_device_read(env, e->device, to, e->regions[region],
                             (size_t)graft_shape_elements(shape));
}

typedef struct {
    const graft_executor *executor;
    uint32_t from;
    uint32_t to;
} step_range;

static graft_status run_range(graft_env *env, void *context)
{
    const step_range *range = context;
    for (uint32_t i = range->from; i < range->to; i++) {
        GRAFT_PASS(run_step(env, range->executor, i));
    }
    return GRAFT_OK;
}

graft_status graft_executor_run(graft_env *env, graft_executor *executor,
                                const float *const *inputs, float *const *outputs)
{
    const graft_graph *graph = executor->graph;
    step_range all = {.executor = executor, .to = executor->schedule.step_count};
    for (uint32_t k = 0; k < executor->input_count; k++) {
        memcpy(executor->input_data[k], inputs[k],
               (size_t)graft_shape_bytes(&graph->values[executor->inputs[k]].shape));
    }
    executor->has_inputs = true;
    GRAFT_PASS(send_inputs(env, executor));
    GRAFT_PASS(run_range(env, &all));
    for (uint32_t k = 0; k < graph->output_count; k++) {
        GRAFT_PASS(fetch_output(env, executor, k, outputs[k]));
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- timing */

enum { INPUT_SEED = 23, LEAST_BATCH_NS = 1000000 };

void graft_executor_draw(const graft_shape *shape, uint64_t seed, uint32_t k, void *data)
{
    const uint64_t count = graft_shape_elements(shape);
    graft_rng rng;
    graft_rng_derive(&rng, seed, k);
    for (uint64_t i = 0; i < count; i++) {
        if (shape->dtype == GRAFT_DTYPE_F32) {
            ((float *)data)[i] = (float)graft_rng_normal(&rng);
        } else if (shape->dtype == GRAFT_DTYPE_I64) {
            ((int64_t *)data)[i] = (int64_t)(i & 1);
        } else if (shape->dtype == GRAFT_DTYPE_I32) {
            ((int32_t *)data)[i] = (int32_t)(i & 1);
        }
    }
}

static void draw_inputs(graft_executor *e)
{
    for (uint32_t k = 0; k < e->input_count && !e->has_inputs; k++) {
        graft_executor_draw(&e->graph->values[e->inputs[k]].shape, INPUT_SEED, k, e->input_data[k]);
    }
    e->has_inputs = true;
}

graft_status graft_executor_time_steps(graft_env *env, const graft_executor *executor,
                                       uint32_t from, uint32_t to, uint32_t runs, double *run_ns)
{
    step_range range = {.executor = executor, .from = from, .to = to};
    return graft_device_time(env, executor->device, run_range, &range, runs, run_ns);
}

static graft_status time_batch(graft_env *env, const graft_executor *e, uint32_t runs,
                               double *run_ns)
{
    return graft_executor_time_steps(env, e, 0, e->schedule.step_count, runs, run_ns);
}

/* Warms the executor up; how many runs make a batch. */
static graft_status warm_up(graft_env *env, graft_executor *e, uint32_t *runs)
{
    double run_ns = 0.0;
    draw_inputs(e);
    GRAFT_PASS(send_inputs(env, e));
    for (uint32_t i = 0; i < 3; i++) {
        GRAFT_PASS(time_batch(env, e, 1, &run_ns));
    }
    *runs = (uint32_t)(LEAST_BATCH_NS / (run_ns + 1.0)) + 1;
    return GRAFT_OK;
}

/* A batch after as much again, thrown away, at most one run of a large graph. */
static graft_status time_after_switch(graft_env *env, const graft_executor *e, uint32_t runs,
                                      double *run_ns)
{
    GRAFT_PASS(time_batch(env, e, runs > 5 ? 5 : runs, run_ns));
    GRAFT_PASS(time_batch(env, e, runs, run_ns));
    return graft_interrupted_while(env, "measuring");
}

graft_status graft_executor_time(graft_env *env, graft_executor *executor, uint32_t rounds,
                                 graft_timing *timing)
{
    GRAFT_SCOPED(env->scratch);
    double *samples = GRAFT_NEW(env->scratch, double, rounds);
    uint32_t runs = 1;
    GRAFT_PASS(warm_up(env, executor, &runs));
    for (uint32_t i = 0; i < rounds; i++) {
        GRAFT_PASS(time_batch(env, executor, runs, &samples[i]));
        GRAFT_PASS(graft_interrupted_while(env, "measuring"));
    }
    timing->rounds = rounds;
    graft_cost_median(samples, rounds, &timing->median_ns, &timing->spread_ns);
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- comparing */

void graft_comparison_of(graft_env *env, const double *const times[GRAFT_CONTENDERS],
                         uint32_t rounds, graft_comparison *c)
{
    GRAFT_SCOPED(env->scratch);
    double *samples = GRAFT_NEW(env->scratch, double, rounds); /* The median sorts them. */
    const struct {
        const double *of;
        const double *by; /* NULL: nothing. */
        double *median;
        double *spread;
    } wanted[] = {
        {times[0], NULL,     &c->a.median_ns, &c->a.spread_ns   },
        {times[1], NULL,     &c->b.median_ns, &c->b.spread_ns   },
        {times[1], times[0], &c->ratio,       &c->ratio_spread  },
        {times[2], times[0], &c->control,     &c->control_spread},
    };
    for (size_t w = 0; w < sizeof(wanted) / sizeof(wanted[0]); w++) {
        for (uint32_t i = 0; i < rounds; i++) {
            samples[i] = wanted[w].of[i] / (wanted[w].by == NULL ? 1.0 : wanted[w].by[i]);
        }
        graft_cost_median(samples, rounds, wanted[w].median, wanted[w].spread);
    }
    c->rounds = rounds;
    c->a.rounds = rounds;
    c->b.rounds = rounds;
}

graft_status graft_executor_compare(graft_env *env, graft_executor *a, graft_executor *b,
                                    uint32_t rounds, graft_comparison *comparison)
{
    GRAFT_SCOPED(env->scratch);
    const graft_executor *contenders[GRAFT_CONTENDERS] = {a, b, a};
    double *times[GRAFT_CONTENDERS];
    uint32_t runs[GRAFT_CONTENDERS] = {1, 1, 1};
    for (uint32_t k = 0; k < GRAFT_CONTENDERS; k++) {
        times[k] = GRAFT_NEW(env->scratch, double, rounds);
    }
    GRAFT_PASS(warm_up(env, a, &runs[0]));
    GRAFT_PASS(warm_up(env, b, &runs[1]));
    runs[2] = runs[0];
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < GRAFT_CONTENDERS; i++) {
            uint32_t k = (i + round) % GRAFT_CONTENDERS;
            GRAFT_PASS(time_after_switch(env, contenders[k], runs[k], &times[k][round]));
        }
    }
    graft_comparison_of(env, (const double *const *)times, rounds, comparison);
    return GRAFT_OK;
}

bool graft_comparison_is_gain(const graft_comparison *comparison)
{
    double error = 2.0 * comparison->ratio_spread / sqrt((double)comparison->rounds);
    return 1.0 - comparison->ratio > fmax(error, fabs(comparison->control - 1.0));
}
