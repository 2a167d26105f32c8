/* application.c - see application.h. Counts and flags are worked out anew here, without the
 * engine's own functions for them. */
#include "tests/support/application.h"

#include "tests/support/build.h"
#include "tests/support/naive.h"
#include "tests/support/proposal.h"
#include "tests/support/rebuild.h"

#include <string.h>

static uint64_t hash_graph(graft_arena *arena, const graft_graph *graph, const graft_order *order)
{
    return graft_graph_hash(graph, order, GRAFT_NEW(arena, uint64_t, graph->limits.values));
}

application_state application_open(graft_arena *arena, const graft_graph *graph, uint64_t sample)
{
    application_state state = {.graph = graph, .sample = sample};
    state.order = build_order(arena, graph);
    state.tensors = evaluate_graph(arena, graph, &state.order, sample);
    state.hash = hash_graph(arena, graph, &state.order);
    return state;
}

/* ------------------------------------------------------------------- bytes */

/* A graph's struct, padding and all, and all of its memory, free slots included. */
typedef struct {
    unsigned char *graph;
    unsigned char *memory;
    size_t bytes;
} snapshot;

static snapshot take_snapshot(graft_arena *arena, const graft_graph *graph)
{
    snapshot s = {.graph = graft_arena_alloc(arena, sizeof *graph)};
    const unsigned char *end = (const unsigned char *)(graph->outputs + graph->limits.outputs);
    s.bytes = (size_t)(end - (const unsigned char *)graph->nodes);
    s.memory = graft_arena_alloc(arena, s.bytes);
    memcpy(s.memory, graph->nodes, s.bytes);
    memcpy(s.graph, graph, sizeof *graph);
    return s;
}

static bool is_unchanged(const snapshot *s, const graft_graph *graph)
{
    const void *bytes = graph; /* All of them: nobody may have written what lies between members. */
    return memcmp(s->graph, bytes, sizeof *graph) == 0 &&
           memcmp(s->memory, graph->nodes, s->bytes) == 0;
}

/* -------------------------------------------------------------- soundness */

/* What graft_graph_check does not see. */
static const char *check_edges(graft_arena *arena, const graft_graph *graph)
{
    bool *taken = GRAFT_NEW(arena, bool, graph->limits.edges);
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        if (node->op == GRAFT_OP_NONE) {
            continue;
        }
        if (node->op == GRAFT_OP_OPAQUE && node->is_const) {
            return "an opaque node became const";
        }
        for (uint32_t i = 0; i < (uint32_t)node->input_count + node->output_count; i++) {
            if (node->first_edge + i >= graph->edge_end || taken[node->first_edge + i]) {
                return "edges of two nodes overlap";
            }
            taken[node->first_edge + i] = true;
        }
    }
    return NULL;
}

/* Nodes and weights that nothing reads. */
static uint32_t count_dead(graft_arena *arena, const graft_graph *graph)
{
    graft_order order = build_order(arena, graph);
    uint32_t count = 0;
    for (graft_index v = 0; v < graph->value_end; v++) {
        count += graph->values[v].kind == GRAFT_VALUE_WEIGHT && order.use_count[v] == 0;
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        bool used = graph->nodes[n].op == GRAFT_OP_NONE;
        for (uint32_t o = 0; !used && o < graph->nodes[n].output_count; o++) {
            used = order.use_count[graft_node_output(graph, n, o)] > 0;
        }
        count += !used;
    }
    return count;
}

static const char *check_sound(graft_arena *arena, const graft_graph *graph)
{
    size_t bytes = graft_order_bytes(&graph->limits);
    const char *fault = graft_graph_check(graph, graft_arena_alloc(arena, bytes), bytes);
    return fault == NULL ? check_edges(arena, graph) : fault;
}

/* ---------------------------------------------------------------- capacity */

/* Capacities that hold the graph and leave little or no room; roomy ones in most cases. */
static graft_limits choose_limits(graft_rng *rng, const graft_graph *graph)
{
    graft_limits limits = rebuild_limits(graph, 30);
    if (proposal_once_in(rng, 4)) {
        limits.nodes = graph->node_end + graft_rng_below(rng, 4);
        limits.values = graph->value_end + graft_rng_below(rng, 5);
        limits.edges = graph->edge_end + graft_rng_below(rng, 10);
    }
    return limits;
}

static bool has_room(const graft_graph *graph, const graft_rule *rule, const graft_limits *limits)
{
    graft_index values = 0;
    graft_index edges = 0;
    graft_index nodes = rule->target.node_count;
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        const graft_op_info *info = graft_op(rule->target.nodes[n].op);
        values += info->output_count;
        edges += (graft_index)info->input_count + info->output_count;
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (graph->nodes[n].op != GRAFT_OP_NONE) {
            nodes++;
            edges += (graft_index)graph->nodes[n].input_count + graph->nodes[n].output_count;
        }
    }
    for (graft_index v = 0; v < graph->value_end; v++) {
        values += graph->values[v].kind != GRAFT_VALUE_FREE;
    }
    return nodes <= limits->nodes && values <= limits->values && edges <= limits->edges;
}

/* ------------------------------------------------------------------ effect */

static bool is_created(const graft_effect *effect, graft_index node)
{
    for (uint32_t i = 0; i < effect->created_count; i++) {
        if (effect->created[i] == node) {
            return true;
        }
    }
    return false;
}

/* Bytes of new const values that nodes which run at inference, or the outputs, read. */
static uint64_t count_new_weights(graft_arena *arena, const graft_graph *graph,
                                  const graft_effect *effect)
{
    graft_order order = build_order(arena, graph);
    uint64_t bytes = 0;
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        if (value->kind != GRAFT_VALUE_COMPUTED || !value->is_const ||
            !is_created(effect, value->node)) {
            continue;
        }
        graft_index readings = order.use_first[v + 1] - order.use_first[v];
        bool read = order.use_count[v] > readings; /* By an output. */
        for (graft_index u = order.use_first[v]; u < order.use_first[v + 1]; u++) {
            read = read || !graph->nodes[order.uses[u]].is_const;
        }
        bytes += read ? graft_shape_bytes(&value->shape) : 0;
    }
    return bytes;
}

static const char *check_effect(graft_arena *arena, const graft_graph *graph,
                                const graft_rule *rule, uint64_t limit, const graft_effect *effect)
{
    if (effect->created_count != rule->target.node_count ||
        effect->replaced_count != rule->source.node_count) {
        return "the effect counts other nodes than the rule has";
    }
    for (uint32_t i = 0; i < effect->created_count; i++) {
        graft_index node = effect->created[i];
        if (node != GRAFT_NONE &&
            (node >= graph->node_end || graph->nodes[node].op != rule->target.nodes[i].op)) {
            return "the effect names a node that is not the target's";
        }
    }
    if (effect->weight_bytes > limit) {
        return "more new weights than the limit";
    }
    return count_new_weights(arena, graph, effect) <= effect->weight_bytes
               ? NULL
               : "new weights are not counted";
}

/* ------------------------------------------------------------------ copies */

/* Another graph of the same meaning, ids aside, has the same hash; so has a plain copy, and one
 * that does not fit is refused. */
static const char *check_copies(graft_arena *arena, graft_rng *rng, const application_state *state)
{
    const graft_graph *graph = state->graph;
    graft_graph *shuffled = rebuild_shuffled(arena, rng, graph);
    graft_order order = build_order(arena, shuffled);
    if (hash_graph(arena, shuffled, &order) != state->hash) {
        return "the hash depends on ids";
    }
    graft_limits limits = {graph->node_end, graph->value_end, graph->edge_end, graph->output_count};
    graft_graph *copy = rebuild_within(arena, graph, limits);
    order = build_order(arena, copy);
    if (hash_graph(arena, copy, &order) != state->hash || check_sound(arena, copy) != NULL) {
        return "a copy is another graph";
    }
    limits.nodes -= graph->node_end > 0;
    limits.edges -= graph->node_end == 0 && graph->edge_end > 0;
    graft_graph *small = build_graph_within(arena, limits);
    snapshot saved = take_snapshot(arena, small);
    bool refused = graph->edge_end == 0 || graft_graph_copy(small, graph) == GRAFT_CAPACITY;
    return refused && is_unchanged(&saved, small) ? NULL : "a copy that is too small was written";
}

/* ------------------------------------------------------------------- model */

/* The naive application: it fails where the engine refuses, and makes the same graph. */
static const char *check_model(graft_arena *arena, const application_state *before,
                               const graft_rule *rule, const graft_match *match)
{
    graft_graph *graph = rebuild_within(arena, before->graph, rebuild_limits(before->graph, 30));
    void *scratch = build_scratch(arena, graph);
    graft_apply_options options = {UINT64_MAX};
    graft_status status = graft_apply(graph, rule, match, &before->order, &options, scratch, NULL);
    graft_graph *model = naive_apply(arena, before->graph, rule, match);
    const char *fault = check_sound(arena, graph);
    if (fault != NULL) {
        return fault;
    }
    if (status == GRAFT_OK && model != NULL) {
        graft_order order = build_order(arena, graph);
        graft_order model_order = build_order(arena, model);
        return hash_graph(arena, graph, &order) == hash_graph(arena, model, &model_order) &&
                       graft_graph_active_count(graph) >= graft_graph_active_count(model)
                   ? NULL
                   : "the naive application makes another graph";
    }
    if (status == GRAFT_OK) {
        return "applied where the naive application fails";
    }
    return model == NULL || naive_is_tangled(before->graph, &before->order, rule, match)
               ? NULL
               : "refused where the naive application succeeds";
}

/* ------------------------------------------------------------------- whole */

/* One application of a rule to a copy of a graph. */
typedef struct {
    graft_arena *arena;
    graft_rng *rng;
    const application_state *before;
    const graft_rule *rule;
    const graft_match *match;
    graft_limits limits;
    graft_apply_options options;
    graft_graph *graph; /* The copy. */
    graft_status status;
    graft_effect effect;
} trial;

static const char *apply_rule(trial *t)
{
    graft_graph *graph = rebuild_within(t->arena, t->before->graph, t->limits);
    snapshot saved = take_snapshot(t->arena, graph);
    void *scratch = build_scratch(t->arena, graph);
    graft_status tried =
        graft_match_try(graph, t->rule, t->match, &t->before->order, &t->options, scratch);
    if (!is_unchanged(&saved, graph)) {
        return "trying changed the graph";
    }
    t->graph = graph;
    t->status =
        graft_apply(graph, t->rule, t->match, &t->before->order, &t->options, scratch, &t->effect);
    if (t->status != tried) {
        return "try and apply disagree";
    }
    return t->status == GRAFT_OK || is_unchanged(&saved, graph)
               ? NULL
               : "a refused application changed the graph";
}

static const char *check_status(const trial *t)
{
    bool room = has_room(t->before->graph, t->rule, &t->limits);
    if (t->status != GRAFT_OK && t->status != GRAFT_CAPACITY && t->status != GRAFT_NO_MATCH) {
        return "refused with a status that is not documented";
    }
    if (t->status != GRAFT_NO_MATCH && (t->status == GRAFT_OK) != room) {
        return "room is misjudged";
    }
    return proposal_once_in(t->rng, 2) ? check_model(t->arena, t->before, t->rule, t->match) : NULL;
}

/* What is promised of a graph that was rewritten, and what it computes. */
static const char *check_applied(const trial *t, application_outcome *outcome)
{
    const char *fault = check_sound(t->arena, t->graph);
    if (fault == NULL) {
        fault =
            check_effect(t->arena, t->graph, t->rule, t->options.weight_bytes_limit, &t->effect);
    }
    if (fault != NULL) {
        return fault;
    }
    if (count_dead(t->arena, t->before->graph) == 0 && count_dead(t->arena, t->graph) != 0) {
        return "dead nodes or weights are left";
    }
    outcome->after = application_open(t->arena, t->graph, t->before->sample);
    if (outcome->after.tensors == NULL) {
        outcome->result = APPLICATION_SKIPPED;
    } else if (!evaluate_outputs_equal(t->before->graph, t->before->tensors, t->graph,
                                       outcome->after.tensors)) {
        return "the graphs compute different outputs";
    }
    return proposal_once_in(t->rng, 4) ? check_copies(t->arena, t->rng, &outcome->after) : NULL;
}

application_outcome application_check(graft_arena *arena, graft_rng *rng,
                                      const application_state *before, const graft_rule *rule,
                                      const graft_match *match)
{
    trial t = {.arena = arena, .rng = rng, .before = before, .rule = rule, .match = match};
    application_outcome outcome = {.result = APPLICATION_DONE, .after = *before};
    t.limits = choose_limits(rng, before->graph);
    t.options.weight_bytes_limit =
        proposal_once_in(rng, 4) ? graft_rng_below(rng, 1024) : UINT64_MAX;
    outcome.fault = apply_rule(&t);
    if (outcome.fault == NULL) {
        outcome.fault = check_status(&t);
    }
    if (outcome.fault == NULL && t.status == GRAFT_OK) {
        outcome.fault = check_applied(&t, &outcome);
    } else if (t.status != GRAFT_OK) {
        outcome.result = t.status == GRAFT_CAPACITY ? APPLICATION_FULL : APPLICATION_REFUSED;
    }
    return outcome;
}
