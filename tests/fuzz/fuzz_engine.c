/* The engine from hostile bytes: rules, offsets, costs, trees and a plan as they come, a graph that the
 * rules were planted in or a table of any integers, workspaces of any size and alignment. A policy is
 * refused, or it rewrites within every promise: the graph stays sound, nothing outside the workspace is
 * written, an error leaves the graph as it was, the estimates add up, and slices and a larger workspace
 * decide the same.
 *
 *      flags, seed, nodes, steps, slice, workspace (2), misalignment,
 *      rules: number, then each: flags, bytes, its bytes;  offsets that are wrong: number, then each:
 *      which, by how much (4), or 255 and a pair: value, the two, 0;  costs: number, then each: key (4),
 *      value (2);  trees: number, then each: tests, bounds (2 each), leaves (2 each);  still (2);  plan:
 *      number of steps, then each: rule, location (2 each);  the rest: a table of integers (4 each).
 *      Little-endian; what is missing is 0. */
#include "tests/support/random_graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RULES_MOST = 40, ROWS_MOST = 64, TREES_MOST = 4, STEPS_MOST = 12, GUARD = 32 };
enum { GUARD_BYTE = 0xa5, PLANTED_NODES_MOST = 24, OPAQUES_MOST = 3 };

enum {
    FLAG_TABLE = 1,    /* The graph is the table. */
    FLAG_KEYS = 2,     /* The costs' keys are those of the graph's nodes. */
    FLAG_PLAN = 4,     /* The plan is for this graph. */
    FLAG_SIMPLIFY = 8, /* As in graft_optimize_options, and so on. */
    FLAG_GUARD = 16,
    FLAG_EXACT = 32,
    FLAG_WEIGHTS = 64, /* New weights without a limit. */
    FLAG_BARE = 128    /* No costs: a policy that nothing decides in. */
};

typedef struct {
    const uint8_t *at;
    const uint8_t *end;
} stream;

static uint32_t take(stream *in, uint32_t bytes)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < bytes && in->at < in->end; i++) {
        number |= (uint32_t)*in->at++ << 8 * i;
    }
    return number;
}

static uint32_t take_below(stream *in, uint32_t bound) { return take(in, 1) % bound; }

/* --------------------------------------------------------------- the policy */

/* As large as what it holds: a sanitizer sees one byte too far. */
typedef struct {
    graft_policy policy;
    graft_tariff tariff;
    graft_recorded_plan plan;
    uint8_t *rules;
    uint8_t pairs[2 * 256];
    uint32_t offsets[RULES_MOST + 1];
    uint8_t flags[RULES_MOST];
    graft_plan_step steps[STEPS_MOST];
    uint32_t *keys;
    uint16_t *values;
    uint8_t *tests;
    int16_t *bounds;
    int16_t *leaves;
} subject;

static void *array(size_t count, size_t bytes)
{
    void *made = calloc(count > 0 ? count : 1, count > 0 ? bytes : 1);
    assert(made != NULL);
    return made;
}

/* The first makes a table of the others, which stand for themselves. */
static void take_pair(subject *s, uint32_t pair)
{
    for (uint32_t value = 0; s->policy.rule_pairs == NULL && value < 256; value++) {
        s->pairs[2 * value] = (uint8_t)value;
    }
    s->policy.rule_pairs = s->pairs;
    s->pairs[2 * (pair & 255u)] = (uint8_t)(pair >> 8);
    s->pairs[2 * (pair & 255u) + 1] = (uint8_t)(pair >> 16);
}

static void take_rules(stream *in, subject *s)
{
    const uint32_t count = take_below(in, RULES_MOST + 1);
    uint8_t *bytes = array((size_t)RULES_MOST * UINT8_MAX, 1);
    for (uint32_t r = 0; r < count; r++) {
        s->flags[r] = (uint8_t)take(in, 1);
        const uint32_t length = take(in, 1);
        for (uint32_t i = 0; i < length; i++) {
            bytes[s->offsets[r] + i] = (uint8_t)take(in, 1);
        }
        s->offsets[r + 1] = s->offsets[r] + length;
    }
    s->rules = array(s->offsets[count], 1);
    memcpy(s->rules, bytes, s->offsets[count]);
    free(bytes);
    for (uint32_t damages = take(in, 1); damages > 0 && in->at < in->end; damages--) {
        const uint32_t r = take(in, 1);
        const uint32_t by = take(in, 4);
        if (r < count) { /* The last one says how many bytes there are. */
            s->offsets[r] += by;
        } else if (r == UINT8_MAX) {
            take_pair(s, by);
        }
    }
    s->policy.rule_count = (uint16_t)count;
    s->policy.rules = s->rules;
    s->policy.rule_offsets = s->offsets;
    s->policy.rule_flags = s->flags;
}

static void take_costs(stream *in, subject *s)
{
    const uint32_t rows = take_below(in, ROWS_MOST + 1);
    s->keys = array(rows, sizeof(uint32_t));
    s->values = array(rows, sizeof(uint16_t));
    for (uint32_t i = 0; i < rows; i++) {
        s->keys[i] = take(in, 4);
        s->values[i] = (uint16_t)take(in, 2);
    }
    const uint32_t trees = take_below(in, TREES_MOST + 1);
    s->tests = array((size_t)trees * GRAFT_TREE_TESTS, 1);
    s->bounds = array((size_t)trees * GRAFT_TREE_TESTS, sizeof(int16_t));
    s->leaves = array((size_t)trees * GRAFT_TREE_LEAVES, sizeof(int16_t));
    for (uint32_t i = 0; i < trees * GRAFT_TREE_TESTS; i++) {
        s->tests[i] = (uint8_t)take(in, 1);
    }
    for (uint32_t i = 0; i < trees * GRAFT_TREE_TESTS; i++) {
        s->bounds[i] = (int16_t)take(in, 2);
    }
    for (uint32_t i = 0; i < trees * GRAFT_TREE_LEAVES; i++) {
        s->leaves[i] = (int16_t)take(in, 2);
    }
    s->tariff = (graft_tariff){.keys = s->keys,
                               .values = s->values,
                               .row_count = rows,
                               .tests = s->tests,
                               .bounds = s->bounds,
                               .leaves = s->leaves,
                               .tree_count = (uint16_t)trees,
                               .still = (uint16_t)take(in, 2)};
}

static void take_policy(stream *in, uint32_t flags, subject *s)
{
    memset(s, 0, sizeof *s);
    take_rules(in, s);
    take_costs(in, s);
    s->plan.steps = s->steps;
    s->plan.step_count = (uint16_t)take_below(in, STEPS_MOST + 1);
    for (uint32_t i = 0; i < s->plan.step_count; i++) {
        s->steps[i] = (graft_plan_step){(uint16_t)take(in, 2), (uint16_t)take(in, 2)};
    }
    s->policy.abi = GRAFT_ABI;
    s->policy.feature_hash = GRAFT_FEATURE_HASH;
    s->policy.metadata = "{}";
    s->policy.location_limit = 64;
    s->policy.plans = &s->plan;
    s->policy.plan_count = 1;
    s->policy.decider = GRAFT_DECIDER_TARIFF;
    s->policy.tariff = (flags & FLAG_BARE) != 0 ? NULL : &s->tariff;
}

static void drop_policy(subject *s)
{
    free(s->rules);
    free(s->keys);
    free(s->values);
    free(s->tests);
    free(s->bounds);
    free(s->leaves);
}

/* ---------------------------------------------------------------- the graph */

/* A few opaque nodes on top, which no rule knows: without inputs or outputs, too. */
static void add_opaques(graft_graph *graph, graft_rng *rng)
{
    for (uint32_t i = graft_rng_below(rng, OPAQUES_MOST + 1); i > 0; i--) {
        const graft_shape shapes[2] = {
            {.rank = GRAFT_RANK_UNKNOWN},
            { .dims = {2},                 .rank = 1}
        };
        graft_index inputs[2];
        graft_index node = GRAFT_NONE;
        for (uint32_t k = 0; k < 2; k++) {
            inputs[k] = graft_rng_below(rng, 4) > 0 ? graft_rng_below(rng, graph->value_end + 1)
                                                    : GRAFT_NONE;
        }
        const graft_status status =
            graft_graph_add_opaque(graph, i, inputs, (uint16_t)graft_rng_below(rng, 3), shapes,
                                   (uint16_t)graft_rng_below(rng, 3), &node);
        if (status == GRAFT_OK && graft_rng_below(rng, 2) == 0) {
            graft_graph_set_repeatable(graph, node);
        }
    }
}

/* A random graph with the sources of those rules that are valid. */
static graft_graph *plant(graft_env *env, const subject *s, uint32_t seed, uint32_t nodes)
{
    const graft_rule *rules[RULES_MOST];
    random_graph_options options = {rules, 0, 1 + nodes % PLANTED_NODES_MOST, seed};
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    for (uint32_t r = 0; r < s->policy.rule_count; r++) {
        graft_rule *rule = GRAFT_NEW(env->unit, graft_rule, 1);
        if (graft_policy_rule(&s->policy, r, rule) == GRAFT_OK) {
            rules[options.rule_count++] = rule;
        }
    }
    graft_graph *graph = random_graph_draw(env->unit, &rng, &options);
    add_opaques(graph, &rng);
    return graph;
}

/* What the rest of the bytes describe, as far as it makes sense. */
static graft_graph *load(graft_env *env, stream *in, uint32_t nodes)
{
    const graft_limits limits = {nodes % 64, 3 * (nodes % 64) + nodes / 64, 4 * (nodes % 64), 3};
    const size_t bytes = graft_graph_bytes(&limits);
    const size_t count = (size_t)(in->end - in->at) / 4;
    graft_graph *graph = GRAFT_NEW(env->unit, graft_graph, 1);
    int32_t *table = array(count, sizeof(int32_t));
    void *memory = graft_arena_alloc(env->unit, bytes);
    for (size_t i = 0; i < count; i++) {
        table[i] = (int32_t)take(in, 4);
    }
    assert(graft_graph_init(graph, &limits, memory, bytes - 1) == GRAFT_NO_MEMORY);
    assert(graft_graph_init(graph, &limits, memory, bytes) == GRAFT_OK);
    const graft_status status = graft_graph_load(graph, table, count);
    assert(status == GRAFT_OK || status == GRAFT_BAD_INPUT || status == GRAFT_CAPACITY);
    (void)status;
    free(table);
    return graph;
}

static graft_graph *copy_graph(graft_env *env, const graft_graph *graph)
{
    const size_t bytes = graft_graph_bytes(&graph->limits);
    graft_graph *copy = GRAFT_NEW(env->unit, graft_graph, 1);
    void *memory = graft_arena_alloc(env->unit, bytes);
    const bool made = graft_graph_init(copy, &graph->limits, memory, bytes) == GRAFT_OK &&
                      graft_graph_copy(copy, graph) == GRAFT_OK;
    assert(made);
    (void)made;
    return copy;
}

static bool graphs_equal(const graft_graph *a, const graft_graph *b)
{
    return a->node_end == b->node_end && a->value_end == b->value_end &&
           a->edge_end == b->edge_end && a->output_count == b->output_count &&
           memcmp(a->nodes, b->nodes, a->node_end * sizeof *a->nodes) == 0 &&
           memcmp(a->values, b->values, a->value_end * sizeof *a->values) == 0 &&
           memcmp(a->edges, b->edges, a->edge_end * sizeof *a->edges) == 0 &&
           memcmp(a->outputs, b->outputs, a->output_count * sizeof *a->outputs) == 0;
}

static const char *fault_of(graft_env *env, const graft_graph *graph)
{
    const size_t bytes = graft_order_bytes(&graph->limits);
    return graft_graph_check(graph, graft_arena_alloc(env->unit, bytes), bytes);
}

/* A truth value that is neither true nor false is for no program to find. */
static void mend_truths(graft_graph *graph)
{
    for (graft_index n = 0; n < graph->limits.nodes; n++) {
        uint8_t *byte = (uint8_t *)&graph->nodes[n].is_const;
        *byte &= 1u;
    }
    for (graft_index v = 0; v < graph->limits.values; v++) {
        uint8_t *byte = (uint8_t *)&graph->values[v].is_const;
        *byte &= 1u;
    }
}

/* Damage anywhere in the graph is found, or harmless: looking for it is safe. */
static void check_damaged(graft_env *env, const graft_graph *graph, uint32_t seed)
{
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    for (uint32_t i = 0; i < 8; i++) {
        graft_graph *damaged = copy_graph(env, graph);
        const uint8_t byte = (uint8_t)graft_rng_below(&rng, 256);
        uint8_t *const tables[] = {(uint8_t *)damaged->nodes, (uint8_t *)damaged->values,
                                   (uint8_t *)damaged->edges, (uint8_t *)damaged->outputs,
                                   (uint8_t *)&damaged->node_end};
        const size_t sizes[] = {
            damaged->node_end * sizeof(graft_node), damaged->value_end * sizeof(graft_value),
            damaged->edge_end * sizeof(graft_index), damaged->output_count * sizeof(graft_index),
            4 * sizeof(graft_index)};
        const uint32_t t = graft_rng_below(&rng, 5);
        if (sizes[t] > 0) {
            tables[t][graft_rng_below(&rng, (uint32_t)sizes[t])] = byte;
        }
        mend_truths(damaged);
        (void)fault_of(env, damaged);
    }
}

/* -------------------------------------------------------------- workspaces */

/* Memory between guards, at any alignment. */
typedef struct {
    uint8_t *base;
    uint8_t *start;
    size_t bytes;
} workspace;

static workspace open_workspace(size_t bytes, uint32_t misalignment)
{
    workspace w = {array(bytes + 2 * GUARD + 8, 1), NULL, bytes};
    memset(w.base, GUARD_BYTE, bytes + 2 * GUARD + 8);
    w.start = w.base + GUARD + misalignment % 8;
    return w;
}

static void close_workspace(workspace *w)
{
    for (uint8_t *at = w->base; at < w->base + w->bytes + 2 * GUARD + 8; at++) {
        assert((at >= w->start && at < w->start + w->bytes) || *at == GUARD_BYTE);
    }
    free(w->base);
}

/* ------------------------------------------------------------------- a case */

typedef struct {
    graft_env env;
    subject subject;
    graft_optimize_options options;
    graft_graph *graph; /* As it was made. */
    uint32_t flags;
    uint32_t slice;
    uint32_t size;
    uint32_t misalignment;
} scene;

typedef struct {
    graft_graph *graph;
    graft_decision decisions[STEPS_MOST];
    graft_report report;
    graft_status status;
} outcome;

static size_t bytes_needed(const scene *s, bool most)
{
    return (most ? graft_optimize_workspace_most_bytes : graft_optimize_workspace_bytes)(
        &s->subject.policy, &s->graph->limits, s->options.step_limit);
}

static void start_outcome(scene *s, outcome *o)
{
    memset(o, 0, sizeof *o);
    o->graph = copy_graph(&s->env, s->graph);
    o->report.decisions = o->decisions;
    o->report.decision_limit = STEPS_MOST;
}

/* Whatever happened, the graph is sound, and as it was after an error. */
static void end_outcome(scene *s, outcome *o, workspace *w)
{
    assert(o->status == GRAFT_OK || o->status == GRAFT_BAD_INPUT || o->status == GRAFT_CAPACITY ||
           (o->status == GRAFT_NO_MEMORY && w->bytes < bytes_needed(s, false)));
    assert(fault_of(&s->env, o->graph) == NULL);
    assert(o->status == GRAFT_OK || graphs_equal(o->graph, s->graph));
    close_workspace(w);
}

static void optimise(scene *s, size_t bytes, outcome *o)
{
    workspace w = open_workspace(bytes, s->misalignment);
    start_outcome(s, o);
    o->status =
        graft_optimize(o->graph, &s->subject.policy, &s->options, w.start, bytes, &o->report);
    end_outcome(s, o, &w);
}

static void optimise_in_slices(scene *s, outcome *o)
{
    bool finished = false;
    workspace w = open_workspace(bytes_needed(s, true), s->misalignment + 1);
    start_outcome(s, o);
    o->status = graft_optimize_begin(o->graph, &s->subject.policy, &s->options, w.start, w.bytes,
                                     &o->report);
    while (o->status == GRAFT_OK && !finished) {
        o->status = graft_optimize_some(w.start, s->slice, &finished);
    }
    end_outcome(s, o, &w);
}

static void compare(const outcome *a, const outcome *b)
{
    assert(a->status == b->status && a->report.step_count == b->report.step_count);
    assert(a->report.hash_after == b->report.hash_after && a->report.stop == b->report.stop);
    assert(memcmp(a->decisions, b->decisions, sizeof a->decisions) == 0);
    (void)a, (void)b;
}

/* Where the costs alone decided, each decision says what it changed, and lowers the estimate. */
static void check_estimates(const scene *s, const outcome *o)
{
    int64_t cost = (int64_t)o->report.estimated_before.cost;
    bool decided = o->status == GRAFT_OK && s->subject.policy.tariff != NULL;
    for (uint32_t i = 0; i < o->report.step_count; i++) {
        decided = decided && o->decisions[i].origin == GRAFT_FROM_POLICY;
        assert(!decided || o->decisions[i].cost_change < 0);
        cost += o->decisions[i].cost_change;
    }
    assert(!decided || cost == (int64_t)o->report.estimated_after.cost);
}

/* The calls that are not the loop: one step, no step, simplifying alone, choosing among rules. */
static void call_others(scene *s)
{
    outcome o;
    graft_scores scores;
    uint8_t operators[32];
    uint8_t skipped[RULES_MOST / 8 + 1] = {0};
    const graft_policy *policy = &s->subject.policy;
    const size_t bytes = graft_optimize_workspace_bytes(policy, &s->graph->limits, 0);
    workspace w = open_workspace(bytes, s->misalignment);
    start_outcome(s, &o);
    o.status = graft_policy_scores(o.graph, policy, &s->options, w.start, bytes, &scores);
    assert(graphs_equal(o.graph, s->graph));
    o.status = graft_policy_step(o.graph, policy, &s->options, w.start, bytes, &o.decisions[0]);
    end_outcome(s, &o, &w);
    w = open_workspace(bytes, s->misalignment);
    start_outcome(s, &o);
    o.status = graft_simplify(o.graph, policy, &s->options, w.start, bytes, &o.report);
    end_outcome(s, &o, &w);
    memset(operators, (int)s->slice, sizeof operators);
    if (graft_policy_skip_unrunnable(policy, operators, skipped) == GRAFT_OK) {
        s->options.skipped_rules = skipped;
        optimise(s, bytes_needed(s, false), &o);
        s->options.skipped_rules = NULL;
    }
}

/* The keys of the graph's nodes, ascending, in place of those that were read. */
static void use_keys_of_graph(scene *s)
{
    uint32_t count = 0;
    for (graft_index n = 0; n < s->graph->node_end && count < s->subject.tariff.row_count; n++) {
        graft_form form;
        if (s->graph->nodes[n].op == GRAFT_OP_NONE) {
            continue;
        }
        graft_form_of_node(s->graph, n, &form);
        const uint32_t key = graft_tariff_key(s->subject.tariff.seed, graft_form_hash(&form));
        uint32_t at = 0;
        while (at < count && s->subject.keys[at] < key) {
            at++;
        }
        if (at == count || s->subject.keys[at] != key) {
            memmove(&s->subject.keys[at + 1], &s->subject.keys[at], (count - at) * sizeof key);
            s->subject.keys[at] = key;
            count++;
        }
    }
    s->subject.tariff.row_count = count;
}

static void plan_for_graph(scene *s)
{
    const size_t bytes = graft_order_bytes(&s->graph->limits);
    graft_order order;
    if (graft_order_build(&order, s->graph, graft_arena_alloc(s->env.unit, bytes), bytes) ==
        GRAFT_OK) {
        s->subject.plan.graph_hash = graft_graph_hash(
            s->graph, &order, GRAFT_NEW(s->env.unit, uint64_t, s->graph->limits.values));
    }
}

static void prepare(scene *s, stream *in)
{
    s->flags = take(in, 1);
    const uint32_t seed = take(in, 1);
    const uint32_t nodes = take(in, 1);
    s->options = graft_optimize_options_default();
    s->options.step_limit = take_below(in, STEPS_MOST + 1);
    s->slice = take(in, 1);
    s->size = take(in, 2);
    s->misalignment = take(in, 1);
    s->options.simplify = (s->flags & FLAG_SIMPLIFY) != 0;
    s->options.guard = (s->flags & FLAG_GUARD) != 0;
    s->options.exact = (s->flags & FLAG_EXACT) != 0;
    s->options.weight_bytes_limit = (s->flags & FLAG_WEIGHTS) != 0 ? UINT64_MAX : 0;
    take_policy(in, s->flags, &s->subject);
    s->graph = (s->flags & FLAG_TABLE) != 0 ? load(&s->env, in, nodes)
                                            : plant(&s->env, &s->subject, seed, nodes);
    if ((s->flags & FLAG_KEYS) != 0) {
        use_keys_of_graph(s);
    }
    if ((s->flags & FLAG_PLAN) != 0) {
        plan_for_graph(s);
    }
}

static bool offsets_ascend(const graft_policy *policy)
{
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        if (policy->rule_offsets[r] > policy->rule_offsets[r + 1]) {
            return false;
        }
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scene s;
    outcome whole;
    outcome sliced;
    stream in = {data, data + size};
    memset(&s, 0, sizeof s);
    if (graft_env_open(&s.env) != GRAFT_OK) {
        return 0;
    }
    prepare(&s, &in);
    assert(fault_of(&s.env, s.graph) == NULL);
    check_damaged(&s.env, s.graph, s.size);
    const size_t needed = bytes_needed(&s, false);
    optimise(&s, s.size % needed, &whole);
    assert(whole.status != GRAFT_OK);
    optimise(&s, needed, &whole);
    assert(whole.status != GRAFT_OK || offsets_ascend(&s.subject.policy));
    check_estimates(&s, &whole);
    optimise_in_slices(&s, &sliced);
    compare(&whole, &sliced);
    call_others(&s);
    drop_policy(&s.subject);
    graft_env_close(&s.env);
    return 0;
}
