/* subsume.c - rules as graphs, compared by a hash of what their outputs compute. */
#include "verify/subsume.h"

#include <assert.h>
#include <string.h>

static const graft_limits graph_limits = {.nodes = 40, .values = 96, .edges = 240, .outputs = 8};

/* A graph and the room to work on it. */
typedef struct {
    graft_graph graph;
    graft_order order;
    void *order_memory;
    void *scratch;
    uint64_t *hashes;
} plot;

static plot new_plot(graft_arena *arena)
{
    plot p;
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

static bool refresh_order(plot *p)
{
    return graft_order_build(&p->order, &p->graph, p->order_memory,
                             graft_order_bytes(&graph_limits)) == GRAFT_OK;
}

/* ----------------------------------------------------------------- building */

/* Builds one side of an instance: variables are inputs, numbered as in the rule. */
static bool build_side(plot *p, const graft_instance *instance, const graft_side *side)
{
    graft_index vars[GRAFT_RULE_MAX_VARS];
    graft_index nodes[GRAFT_RULE_MAX_NODES];
    graft_graph *g = &p->graph;
    graft_graph_clear(g);
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        if (graft_graph_add_input(g, &instance->point->vars[v], v, &vars[v]) != GRAFT_OK) {
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

/* ------------------------------------------------------------------ hashing */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    uint64_t z = (hash ^ word) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t hash_node(const plot *p, graft_index n)
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

/* What the outputs compute, whatever the order of commutative operands and however often a
 * subterm is written. */
static uint64_t hash_plot(plot *p)
{
    const graft_graph *g = &p->graph;
    if (!refresh_order(p)) {
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

/* Whether some application of `other` to the source gives a graph with the hash `wanted`. */
static bool reaches(plot *source, plot *work, const graft_rule *other, uint64_t wanted)
{
    const graft_apply_options options = {.weight_bytes_limit = UINT64_MAX};
    bool found = false;
    for (graft_index i = 0; i < source->order.count && !found; i++) {
        graft_matcher matcher;
        graft_match match;
        graft_matcher_start(&matcher, other, &source->graph, &source->order,
                            source->order.order[i]);
        while (!found && graft_matcher_next(&matcher, &match)) {
            found = graft_graph_copy(&work->graph, &source->graph) == GRAFT_OK &&
                    graft_apply(&work->graph, other, &match, &source->order, &options,
                                work->scratch, NULL) == GRAFT_OK &&
                    hash_plot(work) == wanted;
        }
    }
    return found;
}

bool graft_rule_follows(graft_env *env, const graft_rule *rule, const graft_point *points,
                        uint32_t count, const graft_rule *other)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    plot source = new_plot(env->scratch);
    plot work = new_plot(env->scratch);
    bool follows = count > 0;
    for (uint32_t i = 0; i < count && follows; i++) {
        graft_instance instance;
        follows = graft_instance_build(&instance, rule, &points[i]) == GRAFT_FIT_OK &&
                  build_side(&work, &instance, &instance.target);
        uint64_t wanted = follows ? hash_plot(&work) : 0;
        follows = follows && build_side(&source, &instance, &instance.source) &&
                  refresh_order(&source) && reaches(&source, &work, other, wanted);
    }
    graft_arena_release(env->scratch, mark);
    return follows;
}

/* --------------------------------------------------------------------- gain */

/* Which nodes of a pattern depend on a variable of `dynamic` (bits). */
static uint32_t dynamic_nodes(const graft_pattern *pattern, uint32_t dynamic)
{
    uint8_t order[GRAFT_RULE_MAX_NODES];
    uint32_t nodes = 0;
    graft_pattern_order(pattern, order);
    for (uint32_t i = 0; i < pattern->node_count; i++) {
        const graft_pattern_node *node = &pattern->nodes[order[i]];
        for (uint32_t k = 0; k < graft_op(node->op)->input_count; k++) {
            graft_operand x = node->inputs[k];
            uint32_t bit =
                GRAFT_OPERAND_IS_NODE(x) ? nodes >> GRAFT_OPERAND_NODE_OF(x) : dynamic >> x;
            nodes |= (bit & 1u) << order[i];
        }
    }
    return nodes;
}

static int32_t count_bits(uint32_t bits) { return __builtin_popcount(bits); }

int32_t graft_rule_gain(const graft_rule *rule)
{
    int32_t best = INT32_MIN;
    for (uint32_t dynamic = 1; dynamic < 1u << rule->var_count; dynamic++) {
        uint32_t source = dynamic_nodes(&rule->source, dynamic);
        uint32_t target = dynamic_nodes(&rule->target, dynamic);
        bool matches = true; /* The engine leaves const outputs alone. */
        for (uint32_t i = 0; i < rule->output_count; i++) {
            uint32_t n = GRAFT_OPERAND_NODE_OF(rule->source.outputs[i]);
            matches = matches && (source >> n & 1u) != 0;
        }
        int32_t gain = count_bits(source) - count_bits(target);
        best = matches && gain > best ? gain : best;
    }
    return best;
}
