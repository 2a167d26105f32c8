/* plot.c - see plot.h. */
#include "verify/set/plot.h"

#include <assert.h>

static const graft_limits graph_limits = {
    .nodes = GRAFT_PLOT_NODES, .values = 96, .edges = 240, .outputs = 8};

graft_plot graft_plot_new(graft_arena *arena)
{
    graft_plot p;
    size_t bytes = graft_graph_bytes(&graph_limits);
    graft_status status =
        graft_graph_init(&p.graph, &graph_limits, graft_arena_alloc(arena, bytes), bytes);
    assert(status == GRAFT_OK);
    (void)status;
    p.order_memory = graft_arena_alloc(arena, graft_order_bytes(&graph_limits));
    p.scratch = graft_arena_alloc(arena, graft_match_scratch_bytes(&graph_limits));
    p.hashes = GRAFT_NEW(arena, uint64_t, graph_limits.values);
    return p;
}

bool graft_plot_sort(graft_plot *p)
{
    return graft_order_build(&p->order, &p->graph, p->order_memory,
                             graft_order_bytes(&graph_limits)) == GRAFT_OK;
}

/* ----------------------------------------------------------------- building */

bool graft_plot_build(graft_plot *p, const graft_instance *instance, const graft_side *side)
{
    graft_index vars[GRAFT_RULE_MAX_VARS];
    graft_index nodes[GRAFT_RULE_MAX_NODES];
    graft_graph *g = &p->graph;
    graft_graph_clear(g);
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        if (graft_graph_add_input(g, &instance->vars[v], v, &vars[v]) != GRAFT_OK) {
            return false;
        }
    }
    for (uint32_t i = 0; i < side->pattern->node_count; i++) {
        uint32_t n = side->order[i];
        const graft_pattern_node *node = &side->pattern->nodes[n];
        graft_index inputs[GRAFT_MAX_INPUTS];
        for (uint32_t k = 0; k < graft_op(node->op)->input_count; k++) {
            graft_operand x = node->inputs[k];
            inputs[k] = GRAFT_OPERAND_IS_NODE(x)
                            ? graft_node_output(g, nodes[GRAFT_OPERAND_NODE_OF(x)],
                                                GRAFT_OPERAND_SLOT_OF(x))
                            : vars[x];
        }
        if (graft_graph_add_node(g, node->op, side->attrs[n], inputs, GRAFT_NONE, &nodes[n]) !=
            GRAFT_OK) {
            return false;
        }
    }
    for (uint32_t i = 0; i < instance->rule->output_count; i++) {
        graft_operand x = side->pattern->outputs[i];
        graft_index value =
            GRAFT_OPERAND_IS_NODE(x)
                ? graft_node_output(g, nodes[GRAFT_OPERAND_NODE_OF(x)], GRAFT_OPERAND_SLOT_OF(x))
                : vars[x];
        if (graft_graph_add_output(g, value) != GRAFT_OK) {
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------ parting */

/* Adds what computes value `v` of `from`: GRAFT_NONE when it does not fit. Graphs here are at most
 * a few nodes deep. */
static graft_index copy_term(graft_graph *to, const graft_graph *from, graft_index v)
{
    const graft_value *value = &from->values[v];
    graft_index inputs[GRAFT_MAX_INPUTS];
    graft_index n = value->node;
    if (value->kind != GRAFT_VALUE_COMPUTED) { /* Inputs are numbered as in the rule. */
        bool there =
            value->source < to->value_end && to->values[value->source].kind == GRAFT_VALUE_INPUT;
        return there ? value->source : GRAFT_NONE;
    }
    for (uint32_t k = 0; k < from->nodes[n].input_count; k++) {
        inputs[k] = copy_term(to, from, graft_node_input(from, n, k));
        if (inputs[k] == GRAFT_NONE) {
            return GRAFT_NONE;
        }
    }
    graft_index made = GRAFT_NONE;
    return graft_graph_add_node(to, from->nodes[n].op, from->nodes[n].attrs, inputs, GRAFT_NONE,
                                &made) == GRAFT_OK
               ? graft_node_output(to, made, value->slot)
               : GRAFT_NONE;
}

bool graft_plot_part(graft_plot *apart, const graft_plot *plot)
{
    const graft_graph *from = &plot->graph;
    graft_graph *to = &apart->graph;
    graft_graph_clear(to);
    for (graft_index v = 0; v < from->value_end && from->values[v].kind == GRAFT_VALUE_INPUT; v++) {
        graft_index input = GRAFT_NONE;
        if (from->values[v].source != v ||
            graft_graph_add_input(to, &from->values[v].shape, v, &input) != GRAFT_OK) {
            return false;
        }
    }
    for (graft_index i = 0; i < from->output_count; i++) {
        graft_index v = copy_term(to, from, from->outputs[i]);
        if (v == GRAFT_NONE || graft_graph_add_output(to, v) != GRAFT_OK) {
            return false;
        }
    }
    return to->node_end > plot->order.count && graft_plot_sort(apart);
}

/* ------------------------------------------------------------------ hashing */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    uint64_t z = (hash ^ word) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t hash_node(const graft_plot *p, graft_index n)
{
    const graft_node *node = &p->graph.nodes[n];
    uint64_t hash = mix(1, node->op);
    bool commutes = (graft_op(node->op)->flags & GRAFT_FLAG_COMMUTES) != 0;
    for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i++) {
        hash = mix(hash, (uint32_t)node->attrs[i]);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint64_t x = p->hashes[graft_node_input(&p->graph, n, i)];
        if (commutes && i < 2) {
            uint64_t y = p->hashes[graft_node_input(&p->graph, n, 1 - i)];
            bool low_first = i == 0;
            x = (x < y) == low_first ? x : y;
        }
        hash = mix(hash, x);
    }
    return hash;
}

uint64_t graft_plot_hash(graft_plot *p)
{
    const graft_graph *g = &p->graph;
    if (!graft_plot_sort(p)) {
        return 0;
    }
    for (graft_index v = 0; v < g->value_end; v++) {
        p->hashes[v] = mix(2, g->values[v].source);
    }
    for (graft_index i = 0; i < p->order.count; i++) {
        graft_index n = p->order.order[i];
        uint64_t hash = hash_node(p, n);
        for (uint32_t o = 0; o < g->nodes[n].output_count; o++) {
            p->hashes[graft_node_output(g, n, o)] = mix(hash, o);
        }
    }
    uint64_t hash = 3;
    for (graft_index i = 0; i < g->output_count; i++) {
        hash = mix(hash, p->hashes[g->outputs[i]]);
    }
    return hash;
}

/* ----------------------------------------------------------------- applying */

bool graft_plot_apply(graft_plot *to, const graft_plot *from, const graft_rule *rule,
                      const graft_match *match)
{
    const graft_apply_options options = {.weight_bytes_limit = UINT64_MAX};
    return graft_graph_copy(&to->graph, &from->graph) == GRAFT_OK &&
           graft_apply(&to->graph, rule, match, &from->order, &options, to->scratch, NULL) ==
               GRAFT_OK;
}

bool graft_plot_leads(graft_plot *plots, const graft_rule *rules, uint32_t count, uint64_t wanted)
{
    if (count == 0) {
        return graft_plot_hash(plots) == wanted;
    }
    if (!graft_plot_sort(plots)) {
        return false;
    }
    for (graft_index i = 0; i < plots->order.count; i++) {
        graft_matcher matcher;
        graft_match match;
        graft_matcher_start(&matcher, rules, &plots->graph, &plots->order, plots->order.order[i]);
        while (graft_matcher_next(&matcher, &match)) {
            if (graft_plot_apply(&plots[1], plots, rules, &match) &&
                graft_plot_leads(&plots[1], &rules[1], count - 1, wanted)) {
                return true;
            }
        }
    }
    return false;
}
