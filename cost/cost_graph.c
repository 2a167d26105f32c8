/* cost_graph.c - what whole graphs cost: plans, what they lack, and sums (see cost.h). */
#include "cost/cost_entries.h"

#include "cost/device/backend.h"
#include "cost/plan/prepare.h"
#include "graph/base/log.h"
#include "graph/equal.h"

#include <math.h>
#include <string.h>

/* Of a weight no more counts than is written: it may be a table of which rows are taken. */
static uint64_t opaque_bytes(const graft_graph *graph, graft_index node)
{
    const graft_node *n = &graph->nodes[node];
    uint64_t written = 0;
    for (uint32_t k = 0; k < n->output_count; k++) {
        written += graft_cost_bytes(&graph->values[graft_node_output(graph, node, k)].shape);
    }
    uint64_t bytes = written;
    for (uint32_t k = 0; k < n->input_count; k++) {
        graft_index v = graft_node_input(graph, node, k);
        uint64_t size = v == GRAFT_NONE ? 0 : graft_cost_bytes(&graph->values[v].shape);
        bytes += v != GRAFT_NONE && graph->values[v].is_const && size > written ? written : size;
    }
    return bytes;
}

/* Gives the step of an opaque node the signature of a quantised operator, if it is one. */
static void describe_opaque(const graft_cost *cost, const graft_graph *graph, graft_step *step)
{
    graft_opaque opaque;
    graft_signature signature;
    if (cost->distant && cost->model != NULL &&
        graft_opaque_find(cost->model, graph, step->node, &opaque) &&
        graft_signature_of_opaque(&opaque, &signature)) {
        step->signature = signature;
    }
}

/* `*entry` points to the found entry, or to `*place`, which an opaque node's is written to. */
static graft_status find_step(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_step *step, graft_cost_entry *place,
                              const graft_cost_entry **entry)
{
    if (step->signature.op != GRAFT_OP_OPAQUE) {
        return graft_cost_obtain(env, cost, &step->signature, entry);
    }
    *entry = place;
    GRAFT_LOCKED(&cost->lock);
    GRAFT_PASS(
        graft_cost_estimate(env, cost, GRAFT_OP_OPAQUE, 0, opaque_bytes(graph, step->node), place));
    if (cost->corrected != NULL) {
        graft_calibration_apply(&cost->calibration, &step->signature, place);
    }
    return GRAFT_OK;
}

graft_status graft_cost_step(graft_env *env, graft_cost *cost, const graft_graph *graph,
                             const graft_schedule *schedule, uint32_t step, graft_cost_entry *entry)
{
    const graft_cost_entry *found = NULL;
    graft_cost_entry place;
    GRAFT_PASS(find_step(env, cost, graph, &schedule->steps[step], &place, &found));
    *entry = *found;
    return GRAFT_OK;
}

static const graft_cost_entry *look_up(void *context, const graft_signature *signature)
{
    return graft_cost_find(context, signature);
}

/* GPUs do so in 16 bits. A group is not asked for again where it cannot be measured. */
static bool fuses(void *context, const graft_signature *signature)
{
    const graft_cost *cost = context;
    const char *name = graft_device_name(cost->device);
    return graft_cost_is_cudnn(cost) &&
           (strstr(name, ", fp16") != NULL || strstr(name, ", bf16") != NULL) &&
           graft_database_find(cost->estimates, signature) == NULL;
}

/* Measures a group, by itself: what no engine runs costs what its nodes do. */
static graft_status supply_group(graft_env *env, graft_cost *cost, const graft_signature *signature)
{
    graft_status status = GRAFT_OK;
    if (!cost->estimating && graft_device_present(cost->device)) {
        status = graft_cost_measure(env, cost, signature, 1, &cost->options);
    }
    if (status == GRAFT_UNSUPPORTED) {
        graft_log(env, 1, "%s", env->message);
        graft_env_clear(env);
        status = GRAFT_OK;
    }
    if (status == GRAFT_OK && graft_database_find(cost->database, signature) == NULL) {
        const graft_cost_entry none = {.source = GRAFT_COST_ESTIMATED};
        GRAFT_LOCKED(&cost->lock);
        graft_database_add(cost->estimates, signature, &none);
    }
    return status;
}

/* Measures or estimates what a plan lacks. */
static graft_status supply_plan(graft_env *env, graft_cost *cost, graft_plan *plan)
{
    const graft_cost_entry *entry = NULL;
    uint32_t count = plan->missing_count;
    plan->missing_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const graft_signature signature = plan->missing[i];
        if (graft_signature_is_attention(&signature)) {
            GRAFT_PASS(supply_group(env, cost, &signature));
        } else {
            plan->missing[plan->missing_count++] = signature;
        }
    }
    if (!cost->estimating && graft_device_present(cost->device)) {
        GRAFT_PASS(
            graft_cost_measure(env, cost, plan->missing, plan->missing_count, &cost->options));
    }
    for (uint32_t i = 0; i < plan->missing_count; i++) {
        GRAFT_PASS(graft_cost_obtain(env, cost, &plan->missing[i], &entry));
    }
    return GRAFT_OK;
}

/* The plan of a graph, in `arena`, when all that it needs is known. */
static graft_status find_plan(graft_env *env, graft_cost *cost, graft_arena *arena,
                              const graft_graph *graph, const graft_order *order, graft_plan *plan)
{
    graft_plan_request request = {.graph = graph,
                                  .order = order,
                                  .source = look_up,
                                  .context = cost,
                                  .copies = cost->copies,
                                  .unblocked = graft_cost_is_cudnn(cost),
                                  .fuses = fuses,
                                  .groups = graft_device_head_at(cost->device)->groups,
                                  .model = cost->model};
    for (;;) {
        bool mine = pthread_mutex_trylock(&cost->memo_lock) == 0;
        request.memo = mine ? cost->memo : NULL;
        graft_plan_build(arena, &request, plan);
        if (mine) {
            (void)pthread_mutex_unlock(&cost->memo_lock);
        }
        if (plan->missing_count == 0) {
            return GRAFT_OK;
        }
        GRAFT_PASS(supply_plan(env, cost, plan));
    }
}

/* Except in the base of comparisons. In scratch. */
static void prepare_graph(graft_env *env, const graft_cost *cost, const graft_graph **graph,
                          const graft_order **order)
{
    graft_prepare_bytes(env->scratch, graph);
    if (cost->program) { /* It has an order of its own. */
        graft_equal_merge(env->scratch, graph, order);
    } else if (!cost->direct) { /* Elsewhere than on processors opaque nodes run by themselves. */
        graft_prepare_graph(env->scratch, cost->distant ? cost->model : NULL, graph, order);
    }
}

graft_status graft_cost_plan(graft_env *env, graft_cost *cost, graft_arena *arena,
                             const graft_graph *graph, const graft_order *order,
                             graft_schedule *schedule)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_plan plan;
    prepare_graph(env, cost, &graph, &order);
    if (cost->convention) {
        graft_schedule_build_in(arena, graph, order, cost->layout, !cost->copies, schedule);
    } else {
        GRAFT_CHECK(find_plan(env, cost, env->scratch, graph, order, &plan));
        graft_schedule_build_as(arena, graph, order, &plan.assignment, schedule);
    }
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        if (schedule->steps[i].signature.op == GRAFT_OP_OPAQUE) {
            describe_opaque(cost, graph, &schedule->steps[i]);
        }
    }
done:
    if (arena != env->scratch) {
        graft_arena_release(env->scratch, mark);
    }
    return status;
}

/* Everything that is missing is measured together: interleaved, and once. */
static graft_status measure_schedule(graft_env *env, graft_cost *cost,
                                     const graft_schedule *schedule)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t count = 0;
    const graft_signature *signatures = graft_schedule_signatures(env->scratch, schedule, &count);
    return cost->estimating || !graft_device_present(cost->device)
               ? GRAFT_OK
               : graft_cost_measure(env, cost, signatures, count, &cost->options);
}

static void add_step(const graft_step *step, const graft_cost_entry *entry, graft_cost_total *sum)
{
    bool reorder = step->node == GRAFT_NONE;
    sum->ns += entry->median_ns;
    sum->reorder_ns += reorder ? entry->median_ns : 0.0;
    sum->flops += entry->flops;
    sum->bytes += entry->bytes;
    sum->launches++;
    sum->reorder_count += reorder;
    sum->estimated_count += entry->source == GRAFT_COST_ESTIMATED;
}

/* The node that a step's time is charged to: a conversion belongs to the node that comes next, one
 * for an output of the graph to the node that made the value. */
static graft_index find_owner(const graft_graph *graph, const graft_schedule *schedule, uint32_t i)
{
    for (uint32_t next = i; next < schedule->step_count; next++) {
        if (schedule->steps[next].node != GRAFT_NONE) {
            return schedule->steps[next].node;
        }
    }
    uint32_t region = graft_step_input(schedule, &schedule->steps[i], 0);
    return graph->values[schedule->regions[region].value].node;
}

/* What a step takes is its node's; of attention each node has its share. */
static void charge(graft_cost_node *by_node, const graft_step *step, graft_index owner,
                   const graft_cost_entry *entry)
{
    const graft_group *group = step->group;
    double rest_ns = entry->median_ns;
    for (uint32_t k = 1; group != NULL && k < group->node_count; k++) {
        const double ns = round(16.0 * entry->median_ns * (double)group->shares[k]) / 16.0;
        by_node[group->nodes[k]].ns += ns;
        rest_ns -= ns;
    }
    by_node[owner].ns += rest_ns;
    by_node[owner].estimated_count += entry->source == GRAFT_COST_ESTIMATED;
}

static graft_status sum_steps(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_schedule *schedule, graft_cost_node *by_node,
                              graft_cost_total *sum)
{
    bool complete = false;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        const graft_step *step = &schedule->steps[i];
        bool opaque = step->signature.op == GRAFT_OP_OPAQUE;
        const graft_cost_entry *entry = opaque ? NULL : graft_cost_find(cost, &step->signature);
        graft_cost_entry place;
        if (entry == NULL && !opaque && !complete) {
            GRAFT_PASS(measure_schedule(env, cost, schedule));
            complete = true;
        }
        if (entry == NULL) {
            GRAFT_PASS(find_step(env, cost, graph, step, &place, &entry));
        }
        add_step(step, entry, sum);
        graft_index owner = by_node == NULL ? GRAFT_NONE : find_owner(graph, schedule, i);
        if (owner != GRAFT_NONE) {
            charge(by_node, step, owner, entry);
        }
    }
    sum->peak_bytes = schedule->peak_bytes;
    return GRAFT_OK;
}

graft_status graft_cost_nodes(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_order *order, graft_cost_node *by_node,
                              graft_cost_total *total)
{
    GRAFT_SCOPED(env->scratch);
    graft_schedule schedule;
    graft_cost_total sum = {.ns = 0.0};
    for (graft_index n = 0; n < graph->node_end && by_node != NULL; n++) {
        by_node[n] = (graft_cost_node){.ns = 0.0};
    }
    GRAFT_PASS(graft_cost_plan(env, cost, env->scratch, graph, order, &schedule));
    GRAFT_PASS(sum_steps(env, cost, graph, &schedule, by_node, &sum));
    *total = sum;
    return GRAFT_OK;
}

graft_status graft_cost_schedule(graft_env *env, graft_cost *cost, const graft_graph *graph,
                                 const graft_schedule *schedule, graft_cost_total *total)
{
    graft_cost_total sum = {.ns = 0.0};
    GRAFT_PASS(sum_steps(env, cost, graph, schedule, NULL, &sum));
    *total = sum;
    return GRAFT_OK;
}

graft_status graft_cost_graph(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_order *order, graft_cost_total *total)
{
    return graft_cost_nodes(env, cost, graph, order, NULL, total);
}

/* Opaque nodes are no part of a plan's cost, but for those in groups. */
static graft_status add_opaque(graft_env *env, graft_cost *cost, const graft_graph *graph,
                               const graft_order *order, const graft_groups *groups, double *ns)
{
    for (graft_index i = 0; i < order->count; i++) {
        graft_step step = {.signature.op = GRAFT_OP_OPAQUE, .node = order->order[i]};
        const graft_cost_entry *entry = NULL;
        graft_cost_entry place;
        if (graph->nodes[step.node].op == GRAFT_OP_OPAQUE && !graph->nodes[step.node].is_const &&
            graft_group_of(groups, step.node) == NULL) {
            describe_opaque(cost, graph, &step);
            GRAFT_PASS(find_step(env, cost, graph, &step, &place, &entry));
            *ns += entry->median_ns;
        }
    }
    return GRAFT_OK;
}

graft_status graft_cost_price(graft_env *env, graft_cost *cost, const graft_graph *graph,
                              const graft_order *order, double *ns)
{
    GRAFT_SCOPED(env->scratch);
    graft_cost_total total;
    graft_plan plan;
    if (cost->convention) {
        GRAFT_PASS(graft_cost_graph(env, cost, graph, order, &total));
        *ns = total.ns;
        return GRAFT_OK;
    }
    prepare_graph(env, cost, &graph, &order);
    GRAFT_PASS(find_plan(env, cost, env->scratch, graph, order, &plan));
    GRAFT_PASS(add_opaque(env, cost, graph, order, &plan.assignment.groups, &plan.ns));
    *ns = plan.ns;
    return GRAFT_OK;
}
