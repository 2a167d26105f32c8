/* trace.c - see trace.h. A rewrite makes its nodes before it removes those that it replaces, so an
 * id never changes hands within one. */
#include "emit/report/trace.h"

static bool is_there(const graft_graph *graph, graft_index node)
{
    return node < graph->node_end && graph->nodes[node].op != GRAFT_OP_NONE;
}

void graft_trace_open(graft_arena *arena, const graft_model *model, const graft_graph *first,
                      graft_trace *trace)
{
    const graft_index most = first->limits.nodes;
    *trace = (graft_trace){.arena = arena,
                           .model = model,
                           .node_most = most,
                           .removed = GRAFT_NEW(arena, uint32_t, model->record_count),
                           .born = GRAFT_NEW(arena, uint32_t, most),
                           .sources = GRAFT_NEW(arena, graft_index, most),
                           .there = GRAFT_NEW(arena, bool, most)};
    for (uint32_t r = 0; r < model->record_count; r++) {
        trace->removed[r] = GRAFT_TRACE_SIMPLIFIED;
    }
    for (graft_index n = 0; n < first->node_end; n++) {
        trace->there[n] = is_there(first, n);
        trace->sources[n] = first->nodes[n].source;
        if (trace->there[n] && trace->sources[n] != GRAFT_NONE) {
            trace->removed[trace->sources[n]] = 0;
        } else {
            trace->born[n] = GRAFT_TRACE_SIMPLIFIED;
        }
    }
}

static void add_root(graft_trace_step *step, uint32_t root)
{
    for (uint32_t i = 0; i < step->root_count; i++) {
        if (step->roots[i] == root) {
            return;
        }
    }
    step->roots[step->root_count++] = root;
}

/* A node of the model is gone, or one that an earlier step had made. */
static void bury(graft_trace *trace, graft_trace_step *step, graft_index node)
{
    if (trace->sources[node] != GRAFT_NONE) {
        trace->removed[trace->sources[node]] = trace->step_count;
    } else if (trace->born[node] != GRAFT_TRACE_SIMPLIFIED) {
        add_root(step, trace->born[node]);
    }
}

static const char *name_place(const graft_trace *trace, const graft_index *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const graft_node node = {.source = trace->sources[nodes[i]]};
        if (node.source != GRAFT_NONE) {
            return graft_model_node_name(trace->model, &node);
        }
    }
    return "";
}

void graft_trace_add(graft_trace *trace, const graft_graph *graph, const graft_trace_step *step,
                     const graft_index *nodes, uint32_t node_count)
{
    graft_trace_step *added =
        &GRAFT_PUSH(trace->arena, trace->steps, trace->step_count, trace->step_capacity, 64);
    *added = *step;
    added->place = name_place(trace, nodes, node_count);
    added->roots = GRAFT_NEW(trace->arena, uint32_t, trace->step_count);
    added->root_count = 0;
    for (uint32_t i = 0; i < node_count; i++) {
        if (trace->sources[nodes[i]] == GRAFT_NONE &&
            trace->born[nodes[i]] != GRAFT_TRACE_SIMPLIFIED) {
            add_root(added, trace->born[nodes[i]]);
        }
    }
    for (graft_index n = 0; n < trace->node_most; n++) {
        const bool now = is_there(graph, n);
        if (trace->there[n] && !now) {
            bury(trace, added, n);
        } else if (!trace->there[n] && now) {
            trace->sources[n] = graph->nodes[n].source;
            trace->born[n] = trace->step_count;
        }
        trace->there[n] = now;
    }
}

/* Takes one action, which must be legal. */
static graft_status follow(graft_env *env, graft_trace *trace, graft_environment *environment,
                           const graft_action *action)
{
    const graft_xfers *xfers = environment->xfers;
    graft_match match;
    graft_outcome outcome;
    const bool legal = action->xfer < xfers->count &&
                       action->location < graft_matches_count(&environment->matches, action->xfer);
    if (legal) {
        match = *graft_matches_get(&environment->matches, action->xfer, action->location);
    }
    graft_status status =
        graft_environment_step(env, environment, action->xfer, action->location, &outcome);
    if (status == GRAFT_OK && legal) {
        const graft_rule *rule = &xfers->rules[action->xfer];
        const graft_trace_step step = {
            .rule = rule, .name = xfers->names[action->xfer], .ns = environment->cost_ns};
        graft_trace_add(trace, &environment->state.graph, &step, match.nodes,
                        rule->source.node_count);
    }
    return status;
}

graft_status graft_trace_replay(graft_env *env, graft_trace *trace, graft_environment *environment,
                                const graft_action *steps, uint32_t step_count)
{
    graft_status status = GRAFT_OK;
    const graft_environment_options options = environment->options;
    environment->options.cost_limit = 0; /* As in graft_plan_replay. */
    environment->options.step_limit = UINT32_MAX;
    GRAFT_CHECK(graft_environment_reset(env, environment));
    for (uint32_t i = 0; i < step_count; i++) {
        GRAFT_TRY(env, follow(env, trace, environment, &steps[i]), "at step %u of a plan", i);
    }
done:
    environment->options = options;
    return status;
}
