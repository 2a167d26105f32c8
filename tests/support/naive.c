/* naive.c - see naive.h. */
#include "tests/support/naive.h"

#include "tests/support/build.h"
#include "tests/support/rebuild.h"

#include <string.h>

/* ---------------------------------------------------------------- matching */

typedef struct {
    const graft_graph *graph;
    const graft_order *order;
    const graft_rule *rule;
    void (*found)(void *context, const graft_match *match);
    void *context;
    graft_index nodes[GRAFT_RULE_MAX_NODES]; /* The assignment. */
    bool swap[GRAFT_RULE_MAX_NODES];
} search;

/* The graph value that input i of pattern node n reads, operands swapped or not. */
static graft_index read_value(const search *s, uint32_t n, uint32_t i)
{
    return graft_node_input(s->graph, s->nodes[n], s->swap[n] && i < 2 ? 1 - i : i);
}

static graft_index value_of(const search *s, const graft_match *match, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? graft_node_output(s->graph, s->nodes[GRAFT_OPERAND_NODE_OF(x)],
                                   GRAFT_OPERAND_SLOT_OF(x))
               : match->vars[x];
}

/* Whether a value is what an operand stands for. The first that reads a number says which node has
 * it; for others an equal one will do. `readers`: by pattern node, how many were asked about. */
static bool is_read(const search *s, const graft_match *match, graft_operand x, graft_index value,
                    uint32_t *readers)
{
    const graft_index stands = value_of(s, match, x);
    if (stands == value || !GRAFT_OPERAND_IS_NODE(x)) {
        return stands == value;
    }
    const graft_value *v = &s->graph->values[value];
    const graft_node *node = &s->graph->nodes[s->nodes[GRAFT_OPERAND_NODE_OF(x)]];
    return readers[GRAFT_OPERAND_NODE_OF(x)] > 0 && node->op == GRAFT_OP_fill &&
           v->kind == GRAFT_VALUE_COMPUTED && s->graph->nodes[v->node].op == GRAFT_OP_fill &&
           memcmp(node->attrs, s->graph->nodes[v->node].attrs, sizeof node->attrs) == 0;
}

/* Takes variables and slots from where they are mentioned, then compares every mention. */
static bool read_match(const search *s, graft_match *match)
{
    const graft_pattern *source = &s->rule->source;
    memset(match, 0, sizeof *match);
    memcpy(match->nodes, s->nodes, source->node_count * sizeof match->nodes[0]);
    for (uint32_t n = 0; n < source->node_count; n++) {
        const graft_op_info *info = graft_op(source->nodes[n].op);
        for (uint32_t i = 0; i < info->input_count; i++) {
            if (!GRAFT_OPERAND_IS_NODE(source->nodes[n].inputs[i])) {
                match->vars[source->nodes[n].inputs[i]] = read_value(s, n, i);
            }
        }
        for (uint32_t i = 0; i < info->attr_count; i++) {
            if (source->nodes[n].attrs[i].kind == GRAFT_TERM_SLOT) {
                match->slots[source->nodes[n].attrs[i].value] =
                    s->graph->nodes[s->nodes[n]].attrs[i];
            }
        }
    }
    bool fits = true;
    uint32_t readers[GRAFT_RULE_MAX_NODES] = {0};
    for (uint32_t n = 0; n < source->node_count; n++) {
        const graft_op_info *info = graft_op(source->nodes[n].op);
        for (uint32_t i = 0; i < info->input_count; i++) {
            const graft_operand x = source->nodes[n].inputs[i];
            fits = fits && is_read(s, match, x, read_value(s, n, i), readers);
            readers[GRAFT_OPERAND_IS_NODE(x) ? GRAFT_OPERAND_NODE_OF(x) : 0] +=
                GRAFT_OPERAND_IS_NODE(x);
        }
        for (uint32_t i = 0; i < info->attr_count; i++) {
            const graft_term *term = &source->nodes[n].attrs[i];
            int32_t want = term->kind == GRAFT_TERM_SLOT ? match->slots[term->value] : term->value;
            fits = fits && want == s->graph->nodes[s->nodes[n]].attrs[i];
        }
    }
    return fits;
}

/* Readings of a value by matched nodes that are no reading of a variable. */
static graft_index count_inner_readings(const search *s, graft_index value)
{
    const graft_pattern *source = &s->rule->source;
    graft_index count = 0;
    for (uint32_t n = 0; n < source->node_count; n++) {
        for (uint32_t i = 0; i < graft_op(source->nodes[n].op)->input_count; i++) {
            count +=
                GRAFT_OPERAND_IS_NODE(source->nodes[n].inputs[i]) && read_value(s, n, i) == value;
        }
    }
    return count;
}

/* Every value of a matched node is an output of the rule and not const, or a number, or is read by
 * matched nodes alone. */
static bool values_may_go(const search *s, const graft_match *match)
{
    for (uint32_t n = 0; n < s->rule->source.node_count; n++) {
        for (uint32_t o = 0; o < s->graph->nodes[s->nodes[n]].output_count; o++) {
            graft_index value = graft_node_output(s->graph, s->nodes[n], o);
            bool output = false;
            for (uint32_t i = 0; i < s->rule->output_count; i++) {
                output = output || value_of(s, match, s->rule->source.outputs[i]) == value;
            }
            if (output ? s->graph->values[value].is_const
                       : s->graph->nodes[s->nodes[n]].op != GRAFT_OP_fill &&
                             s->order->use_count[value] != count_inner_readings(s, value)) {
                return false;
            }
        }
    }
    return true;
}

static void describe_vars(const graft_graph *graph, const graft_rule *rule,
                          const graft_match *match, const graft_shape **shapes, bool *is_const)
{
    for (uint32_t v = 0; v < rule->var_count; v++) {
        shapes[v] = &graph->values[match->vars[v]].shape;
        is_const[v] = graph->values[match->vars[v]].is_const;
    }
}

static bool condition_holds(const search *s, const graft_match *match)
{
    const graft_shape *shapes[GRAFT_RULE_MAX_VARS];
    bool is_const[GRAFT_RULE_MAX_VARS];
    int64_t result = 1;
    describe_vars(s->graph, s->rule, match, shapes, is_const);
    return s->rule->condition == 255 ||
           (graft_code_run(s->rule, s->rule->condition, shapes, is_const, match->slots, &result) &&
            result != 0);
}

static void assign_node(search *s, uint32_t n)
{
    if (n == s->rule->source.node_count) {
        graft_match match;
        if (read_match(s, &match) && values_may_go(s, &match) && condition_holds(s, &match)) {
            s->found(s->context, &match);
        }
        return;
    }
    for (graft_index node = 0; node < s->graph->node_end; node++) {
        bool fits = s->graph->nodes[node].op == s->rule->source.nodes[n].op;
        const bool number = s->rule->source.nodes[n].op == GRAFT_OP_fill;
        for (uint32_t m = 0; m < n; m++) {
            fits = fits && (s->nodes[m] != node || (number && s->rule->output_count == 1));
        }
        if (!fits) {
            continue;
        }
        bool commutes = (graft_op(s->graph->nodes[node].op)->flags & GRAFT_FLAG_COMMUTES) != 0 &&
                        graft_node_input(s->graph, node, 0) != graft_node_input(s->graph, node, 1);
        s->nodes[n] = node;
        for (uint32_t swap = 0; swap <= (commutes ? 1u : 0u); swap++) {
            s->swap[n] = swap == 1;
            assign_node(s, n + 1);
        }
    }
}

void naive_match(const graft_graph *graph, const graft_order *order, const graft_rule *rule,
                 void (*found)(void *context, const graft_match *match), void *context)
{
    search s = {.graph = graph, .order = order, .rule = rule, .found = found, .context = context};
    assign_node(&s, 0);
}

/* ---------------------------------------------------------------- applying */

bool naive_is_tangled(const graft_graph *graph, const graft_order *order, const graft_rule *rule,
                      const graft_match *match)
{
    bool depends[1024] = {false}; /* By value id: on a matched node. */
    assert_true(graph->value_end <= 1024);
    for (graft_index i = 0; i < order->count; i++) {
        graft_index n = order->order[i];
        bool tainted = false;
        for (uint32_t k = 0; k < rule->source.node_count; k++) {
            tainted = tainted || match->nodes[k] == n;
        }
        for (uint32_t k = 0; k < graph->nodes[n].input_count; k++) {
            graft_index v = graft_node_input(graph, n, k);
            tainted = tainted || (v != GRAFT_NONE && depends[v]);
        }
        for (uint32_t o = 0; o < graph->nodes[n].output_count; o++) {
            depends[graft_node_output(graph, n, o)] = tainted;
        }
    }
    for (uint32_t v = 0; v < rule->var_count; v++) {
        if (depends[match->vars[v]]) {
            return true;
        }
    }
    return false;
}

static graft_index target_value(const graft_graph *graph, const graft_match *match,
                                const graft_index *made, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? graft_node_output(graph, made[GRAFT_OPERAND_NODE_OF(x)], GRAFT_OPERAND_SLOT_OF(x))
               : match->vars[x];
}

/* Adds target node n; false when its attributes or shapes do not work out. */
static bool add_target_node(graft_graph *graph, const graft_rule *rule, const graft_match *match,
                            uint32_t n, graft_index *made)
{
    const graft_pattern_node *node = &rule->target.nodes[n];
    const graft_shape *shapes[GRAFT_RULE_MAX_VARS];
    bool is_const[GRAFT_RULE_MAX_VARS];
    graft_index inputs[GRAFT_MAX_INPUTS];
    int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    describe_vars(graph, rule, match, shapes, is_const);
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        const graft_term *term = &node->attrs[i];
        int64_t result = term->kind == GRAFT_TERM_SLOT ? match->slots[term->value] : term->value;
        if (term->kind == GRAFT_TERM_CODE &&
            !graft_code_run(rule, (uint32_t)term->value, shapes, is_const, match->slots, &result)) {
            return false;
        }
        if (result < INT32_MIN || result > INT32_MAX) {
            return false;
        }
        attrs[i] = (int32_t)result;
    }
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        inputs[i] = target_value(graph, match, made, node->inputs[i]);
    }
    if (graft_graph_add_node(graph, node->op, attrs, inputs, GRAFT_NONE, &made[n]) != GRAFT_OK) {
        return false;
    }
    const graft_shape *out = &graph->values[graft_node_output(graph, made[n], 0)].shape;
    return !graph->nodes[made[n]].is_const || graft_dtype_is_real(out->dtype);
}

/* A graph built anew knows what is const. */
static graft_graph *build_anew(graft_arena *arena, const graft_graph *graph)
{
    graft_rng rng = check_rng(0);
    return rebuild_shuffled(arena, &rng, graph);
}

graft_graph *naive_apply(graft_arena *arena, const graft_graph *before, const graft_rule *rule,
                         const graft_match *match)
{
    graft_graph *graph = rebuild_within(arena, before, rebuild_limits(before, 30));
    graft_index made[GRAFT_RULE_MAX_NODES];
    graft_index old[GRAFT_RULE_MAX_OUTPUTS];
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        if (!add_target_node(graph, rule, match, n, made)) {
            return NULL;
        }
    }
    for (uint32_t i = 0; i < rule->output_count; i++) {
        graft_operand x = rule->source.outputs[i];
        old[i] = graft_node_output(graph, match->nodes[GRAFT_OPERAND_NODE_OF(x)],
                                   GRAFT_OPERAND_SLOT_OF(x));
        graft_index to = target_value(graph, match, made, rule->target.outputs[i]);
        if (!graft_shape_equal(&graph->values[old[i]].shape, &graph->values[to].shape)) {
            return NULL;
        }
    }
    for (uint32_t i = 0; i < rule->output_count; i++) {
        graft_graph_redirect(graph, old[i],
                             target_value(graph, match, made, rule->target.outputs[i]));
    }
    graft_graph_remove_dead(graph);
    size_t bytes = graft_order_bytes(&graph->limits);
    graft_order order;
    return graft_order_build(&order, graph, graft_arena_alloc(arena, bytes), bytes) == GRAFT_OK
               ? build_anew(arena, graph)
               : NULL;
}
