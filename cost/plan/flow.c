/* flow.c - see flow.h. A round reads and writes the same state: an executor copies its inputs
 * before it begins and its outputs when it has ended. */
#include "cost/plan/flow.h"

#include "graph/base/bytes.h"
#include "graph/meaning/algebra.h"

#include <inttypes.h>
#include <string.h>

/* A body with places for what it is given and what it makes. */
typedef struct {
    graft_executor *executor;
    const uint32_t *from; /* By input of the executor: as in graft_flow_body. */
    const float **inputs;
    float **outputs;
    float **own; /* By output: ours, of its size. */
    uint32_t input_count;
    uint32_t output_count;
} flow_body;

struct graft_flow_run {
    const graft_flow *flow;
    flow_body bodies[2];
    float **slices; /* Of what is gone through. */
};

static graft_status open_body(graft_env *env, graft_arena *arena, graft_cost *cost,
                              const graft_flow_body *from, flow_body *body)
{
    const graft_graph *graph = from->graph;
    graft_cost_set_model(cost, from->model);
    GRAFT_PASS(graft_executor_open_folded(env, arena, cost, from->model, graph, &body->executor));
    body->input_count = graft_executor_input_count(body->executor);
    body->output_count = graft_executor_output_count(body->executor);
    body->inputs = GRAFT_NEW(arena, const float *, body->input_count);
    body->outputs = GRAFT_NEW(arena, float *, body->output_count);
    body->own = GRAFT_NEW(arena, float *, body->output_count);
    uint32_t *sources = GRAFT_NEW(arena, uint32_t, body->input_count);
    for (uint32_t i = 0; i < body->input_count; i++) {
        sources[i] = from->from[graph->values[graft_executor_input(body->executor, i)].source];
    }
    body->from = sources;
    for (uint32_t k = 0; k < body->output_count; k++) {
        const graft_shape *shape = &graph->values[graft_executor_output(body->executor, k)].shape;
        body->own[k] = graft_arena_alloc(arena, (size_t)graft_shape_bytes(shape));
        body->outputs[k] = body->own[k];
    }
    return GRAFT_OK;
}

graft_status graft_flow_open(graft_env *env, graft_arena *arena, graft_cost *cost,
                             const graft_flow *flow, graft_flow_run **run)
{
    graft_flow_run *r = GRAFT_NEW(arena, graft_flow_run, 1);
    *run = r;
    r->flow = flow;
    r->slices = GRAFT_NEW(arena, float *, flow->read_count);
    for (uint32_t k = 0; k < flow->read_count; k++) {
        const graft_shape *whole = &flow->read[k].whole;
        r->slices[k] = graft_arena_alloc(arena, (size_t)graft_shape_bytes(whole) / flow->rounds);
    }
    for (uint32_t b = 0; b < flow->body_count; b++) {
        GRAFT_PASS(open_body(env, arena, cost, &flow->bodies[b], &r->bodies[b]));
    }
    return GRAFT_OK;
}

void graft_flow_close(graft_flow_run *run)
{
    for (uint32_t b = 0; run != NULL && b < run->flow->body_count; b++) {
        graft_executor_close(run->bodies[b].executor);
    }
}

/* ------------------------------------------------------------------- running */

/* Copies the part of a round between a whole tensor and a tensor of its own. */
static void copy_piece(const graft_flow_piece *piece, uint32_t round, char *whole, char *part,
                       bool into_part)
{
    const graft_blocks blocks = graft_blocks_of(&piece->whole, (int32_t)piece->axis);
    const size_t count = blocks.size;
    const size_t bytes = (size_t)graft_shape_bytes(&piece->whole) / blocks.outer / count;
    const size_t place = piece->reversed ? count - 1 - round : round;
    for (size_t i = 0; i < blocks.outer; i++) {
        char *inside = whole + (i * count + place) * bytes;
        memcpy(into_part ? part + i * bytes : inside, into_part ? inside : part + i * bytes, bytes);
    }
}

static graft_status run_if(graft_env *env, graft_flow_run *r, const void *const *in,
                           void *const *out)
{
    flow_body *body = &r->bodies[*(const uint8_t *)in[0] != 0 ? 0 : 1];
    for (uint32_t i = 0; i < body->input_count; i++) {
        body->inputs[i] = in[body->from[i]];
    }
    for (uint32_t k = 0; k < body->output_count; k++) {
        body->outputs[k] = out[k] == NULL ? body->own[k] : out[k];
    }
    return graft_executor_run(env, body->executor, body->inputs, body->outputs);
}

/* What the rounds of a Loop are counted by and end with. */
typedef struct {
    int64_t most;
    int64_t round;
    uint8_t goes;
} counting;

static counting begin_rounds(const graft_flow *flow, const void *const *in)
{
    counting c = {.most = flow->kind == GRAFT_FLOW_SCAN ? flow->rounds : INT64_MAX, .goes = 1};
    if (flow->kind == GRAFT_FLOW_LOOP && in[0] != NULL) {
        memcpy(&c.most, in[0], sizeof c.most);
    }
    if (flow->kind == GRAFT_FLOW_LOOP && in[1] != NULL) {
        c.goes = *(const uint8_t *)in[1] != 0;
    }
    return c;
}

/* Input `i` of the body reads this in every round. */
static const void *place_of_input(graft_flow_run *r, const counting *c, uint32_t i,
                                  const void *const *in)
{
    const graft_flow *flow = r->flow;
    const uint32_t from = r->bodies[0].from[i];
    const uint32_t condition = flow->kind == GRAFT_FLOW_LOOP;
    if (from < flow->first_state) {
        return from == 0 ? (const void *)&c->round : &c->goes;
    }
    const uint32_t k = from - flow->first_state;
    return k < flow->state_count                      ? r->bodies[0].own[condition + k]
           : k < flow->state_count + flow->read_count ? r->slices[k - flow->state_count]
                                                      : in[from];
}

static graft_status run_round(graft_env *env, graft_flow_run *r, counting *c, const void *const *in,
                              void *const *out)
{
    const graft_flow *flow = r->flow;
    flow_body *body = &r->bodies[0];
    const uint32_t condition = flow->kind == GRAFT_FLOW_LOOP;
    for (uint32_t k = 0; k < flow->read_count; k++) {
        copy_piece(&flow->read[k], (uint32_t)c->round,
                   graft_borrow(in[flow->first_state + flow->state_count + k]),
                   (char *)r->slices[k], true);
    }
    GRAFT_PASS(graft_executor_run(env, body->executor, body->inputs, body->outputs));
    for (uint32_t k = 0; k < flow->made_count; k++) {
        if (out[flow->state_count + k] != NULL) {
            copy_piece(&flow->made[k], (uint32_t)c->round, out[flow->state_count + k],
                       (char *)body->own[condition + flow->state_count + k], false);
        }
    }
    if (condition == 1) {
        c->goes = *(const uint8_t *)(const void *)body->own[0] != 0;
    }
    c->round++;
    return GRAFT_OK;
}

static graft_status run_rounds(graft_env *env, graft_flow_run *r, const void *const *in,
                               void *const *out)
{
    const graft_flow *flow = r->flow;
    flow_body *body = &r->bodies[0];
    const uint32_t condition = flow->kind == GRAFT_FLOW_LOOP;
    counting c = begin_rounds(flow, in);
    for (uint32_t i = 0; i < body->input_count; i++) {
        body->inputs[i] = place_of_input(r, &c, i, in);
    }
    for (uint32_t k = 0; k < flow->state_count; k++) {
        memcpy(body->own[condition + k], in[flow->first_state + k],
               (size_t)graft_shape_bytes(&flow->outs[k]));
    }
    while (c.goes != 0 && c.round < c.most) {
        if (flow->made_count > 0 && c.round == flow->rounds) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "node '%s' does not end after %u rounds",
                              flow->name, flow->rounds);
        }
        GRAFT_PASS(run_round(env, r, &c, in, out));
    }
    if (flow->made_count > 0 && c.round != flow->rounds) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "node '%s' ended after %" PRId64
                          " of %u rounds, so that the size of what "
                          "it collects depends on data",
                          flow->name, c.round, flow->rounds);
    }
    for (uint32_t k = 0; k < flow->state_count; k++) {
        if (out[k] != NULL) {
            memcpy(out[k], body->own[condition + k], (size_t)graft_shape_bytes(&flow->outs[k]));
        }
    }
    return GRAFT_OK;
}

graft_status graft_flow_once(graft_env *env, graft_flow_run *run, const void *const *in,
                             void *const *out)
{
    return run->flow->kind == GRAFT_FLOW_IF ? run_if(env, run, in, out)
                                            : run_rounds(env, run, in, out);
}
