/* egraph.c - see egraph.h. */
#include "train/search/egraph.h"

#include <string.h>

enum { FIRST_CAPACITY = 1024, SEEN_PER_PLACE = 4 };

/* ------------------------------------------------------------- classes, twins */

graft_index graft_egraph_class(const graft_egraph *g, graft_index value)
{
    while (g->parent[value] != value) {
        g->parent[value] = g->parent[g->parent[value]];
        value = g->parent[value];
    }
    return value;
}

graft_index graft_egraph_twin(const graft_egraph *g, graft_index node)
{
    while (g->twin[node] != node) {
        node = g->twin[node];
    }
    return node;
}

/* The older value stands for both, so that cycles are judged by the graph that there was; a const
 * one stands for those that are not known to be. */
static void unite(graft_egraph *g, graft_index a, graft_index b)
{
    const graft_value *values = g->state.graph.values;
    a = graft_egraph_class(g, a);
    b = graft_egraph_class(g, b);
    bool a_first = values[a].is_const != values[b].is_const ? values[a].is_const : a < b;
    g->parent[a_first ? b : a] = a_first ? a : b;
    g->changed = g->changed || a != b;
}

/* The classes that a node reads, in an order that does not matter to what it computes. */
static void sort_operands(uint32_t op, graft_index *classes)
{
    const graft_index first = classes[0];
    if ((graft_op(op)->flags & GRAFT_FLAG_COMMUTES) != 0 && first > classes[1]) {
        classes[0] = classes[1];
        classes[1] = first;
    }
}

static void list_operands(const graft_egraph *g, graft_index n, graft_index *classes)
{
    const graft_node *node = &g->state.graph.nodes[n];
    for (uint32_t i = 0; i < node->input_count; i++) {
        classes[i] = graft_egraph_class(g, graft_node_input(&g->state.graph, n, i));
    }
    if (node->input_count > 1) {
        sort_operands(node->op, classes);
    }
}

static uint64_t mix(uint64_t hash, uint64_t with)
{
    hash = (hash ^ with) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Where a node is in the table, or belongs; its operands are sorted. */
static graft_index *find_place(const graft_egraph *g, const graft_node *node,
                               const graft_index *classes)
{
    uint64_t hash = node->op;
    for (uint32_t i = 0; i < node->input_count; i++) {
        hash = mix(hash, classes[i]);
    }
    for (uint32_t i = 0; i < GRAFT_MAX_ATTRS; i++) {
        hash = mix(hash, (uint32_t)node->attrs[i]);
    }
    uint32_t at = (uint32_t)hash & g->table_mask;
    for (; g->table[at] != GRAFT_NONE; at = (at + 1) & g->table_mask) {
        graft_index own[GRAFT_MAX_INPUTS];
        const graft_node *other = &g->state.graph.nodes[g->table[at]];
        if (other->op == node->op && memcmp(other->attrs, node->attrs, sizeof other->attrs) == 0) {
            list_operands(g, g->table[at], own);
            if (memcmp(own, classes, node->input_count * sizeof own[0]) == 0) {
                break;
            }
        }
    }
    return &g->table[at];
}

graft_index graft_egraph_find(const graft_egraph *g, const graft_node *node,
                              const graft_index *classes)
{
    graft_index sorted[GRAFT_MAX_INPUTS];
    memcpy(sorted, classes, node->input_count * sizeof sorted[0]);
    if (node->input_count > 1) {
        sort_operands(node->op, sorted);
    }
    return *find_place(g, node, sorted);
}

/* Enters a node in the table, or makes it a twin of the one that is there. */
static void enter_node(graft_egraph *g, graft_index n)
{
    const graft_graph *graph = &g->state.graph;
    graft_index classes[GRAFT_MAX_INPUTS];
    list_operands(g, n, classes);
    graft_index *place = find_place(g, &graph->nodes[n], classes);
    if (*place == GRAFT_NONE) {
        *place = n;
        return;
    }
    g->twin[n] = *place;
    for (uint32_t o = 0; o < graph->nodes[n].output_count; o++) {
        unite(g, graft_node_output(graph, n, o), graft_node_output(graph, *place, o));
    }
}

/* Rings of all values but the results of twins. */
static void make_rings(graft_egraph *g)
{
    const graft_graph *graph = &g->state.graph;
    for (graft_index v = 0; v < graph->value_end; v++) {
        g->next[v] = v;
    }
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        const graft_index class = graft_egraph_class(g, v);
        if (class != v &&
            (value->kind != GRAFT_VALUE_COMPUTED || g->twin[value->node] == value->node)) {
            g->next[v] = g->next[class];
            g->next[class] = v;
        }
    }
}

graft_status graft_egraph_rebuild(graft_env *env, graft_egraph *g)
{
    do {
        g->changed = false;
        memset(g->table, 0xff, ((size_t)g->table_mask + 1) * sizeof g->table[0]); /* GRAFT_NONE */
        for (graft_index n = 0; n < g->state.graph.node_end; n++) {
            const uint32_t op = g->state.graph.nodes[n].op;
            if (g->twin[n] == n && op != GRAFT_OP_NONE && op != GRAFT_OP_OPAQUE) {
                enter_node(g, n);
            }
        }
    } while (g->changed);
    make_rings(g);
    return graft_state_refresh(env, &g->state);
}

graft_status graft_egraph_open(graft_env *env, graft_arena *arena, const graft_graph *graph,
                               const graft_environment *environment, uint32_t nodes,
                               graft_egraph *g)
{
    const graft_limits limits = {.nodes = graph->node_end + nodes,
                                 .values = graph->value_end + GRAFT_MAX_OUTPUTS * nodes,
                                 .edges = graph->edge_end +
                                          (GRAFT_MAX_INPUTS + GRAFT_MAX_OUTPUTS) * nodes,
                                 .outputs = graph->output_count};
    uint32_t places = 1;
    while (places < 2 * limits.nodes) {
        places *= 2;
    }
    *g = (graft_egraph){
        .xfers = environment->xfers, .options = &environment->options.apply, .arena = arena};
    g->table_mask = places - 1;
    g->parent = GRAFT_NEW(arena, graft_index, limits.values);
    g->next = GRAFT_NEW(arena, graft_index, limits.values);
    g->twin = GRAFT_NEW(arena, graft_index, limits.nodes);
    g->maker = GRAFT_NEW(arena, uint32_t, limits.nodes);
    g->table = GRAFT_NEW(arena, graft_index, places);
    g->seen = GRAFT_NEW(arena, uint64_t, SEEN_PER_PLACE * (size_t)places);
    for (graft_index v = 0; v < limits.values; v++) {
        g->parent[v] = v;
    }
    for (graft_index n = 0; n < limits.nodes; n++) {
        g->twin[n] = n;
        g->maker[n] = GRAFT_NONE;
    }
    graft_state_open(arena, &limits, &g->state);
    GRAFT_PASS(graft_state_set(env, &g->state, graph));
    return graft_egraph_rebuild(env, g);
}

/* ------------------------------------------------------------------ matching */

/* A match that is being built: nodes of the pattern are bound in their order, as the engine does
 * (match.h), but an operand may be any node of its class. */
typedef struct trial {
    graft_egraph *g;
    const graft_rule *rule;
    graft_match match;
    graft_index wanted[GRAFT_RULE_MAX_NODES][GRAFT_MAX_OUTPUTS]; /* Classes that are read. */
    uint64_t slots;                                              /* Bits of those bound... */
    uint32_t vars;                                               /* ...and likewise. */
    uint32_t most;
} trial;

/* The class of an operand, where nodes below `level` are bound; GRAFT_NONE. */
static graft_index bound_class(const trial *t, uint32_t level, graft_operand operand)
{
    const uint32_t n = GRAFT_OPERAND_NODE_OF(operand);
    const uint32_t slot = GRAFT_OPERAND_SLOT_OF(operand);
    if (!GRAFT_OPERAND_IS_NODE(operand)) {
        return (t->vars >> operand & 1U) != 0 ? t->match.vars[operand] : GRAFT_NONE;
    }
    return n < level ? graft_egraph_class(
                           t->g, graft_node_output(&t->g->state.graph, t->match.nodes[n], slot))
                     : t->wanted[n][slot];
}

static bool bind_operand(trial *t, uint32_t level, graft_operand operand, graft_index class)
{
    const graft_index bound = bound_class(t, level + 1, operand);
    if (bound != GRAFT_NONE) {
        return bound == class;
    }
    if (GRAFT_OPERAND_IS_NODE(operand)) {
        t->wanted[GRAFT_OPERAND_NODE_OF(operand)][GRAFT_OPERAND_SLOT_OF(operand)] = class;
    } else {
        t->match.vars[operand] = class;
        t->vars |= 1U << operand;
    }
    return true;
}

static bool bind_slot(trial *t, const graft_term *term, int32_t value)
{
    if (term->kind == GRAFT_TERM_CONST) {
        return term->value == value;
    }
    const uint64_t bit = UINT64_C(1) << term->value;
    int32_t *slot = &t->match.slots[term->value];
    if ((t->slots & bit) != 0) {
        return *slot == value;
    }
    *slot = value;
    t->slots |= bit;
    return true;
}

/* `swap` is 1 where the first two operands change places. */
static bool bind_node(trial *t, uint32_t level, graft_index node, uint32_t swap)
{
    const graft_graph *graph = &t->g->state.graph;
    const graft_pattern_node *pattern = &t->rule->source.nodes[level];
    const graft_op_info *info = graft_op(pattern->op);
    bool fits = true;
    t->match.nodes[level] = node;
    for (uint32_t n = 0; n < level; n++) {
        fits = fits && t->match.nodes[n] != node;
    }
    for (uint32_t i = 0; fits && i < info->attr_count; i++) {
        fits = bind_slot(t, &pattern->attrs[i], graph->nodes[node].attrs[i]);
    }
    for (uint32_t o = 0; fits && o < info->output_count; o++) {
        fits = t->wanted[level][o] == GRAFT_NONE ||
               t->wanted[level][o] == bound_class(t, level + 1, GRAFT_OPERAND_NODE(level, o));
    }
    for (uint32_t i = 0; fits && i < info->input_count; i++) {
        const graft_index value = graft_node_input(graph, node, i ^ swap);
        fits = bind_operand(t, level, pattern->inputs[i], graft_egraph_class(t->g, value));
    }
    return fits;
}

/* Whether nothing that is given to others is const, and the precondition holds. */
static bool is_match(const trial *t)
{
    const graft_rule *rule = t->rule;
    const graft_value *values = t->g->state.graph.values;
    const graft_shape *shapes[GRAFT_RULE_MAX_VARS];
    bool is_const[GRAFT_RULE_MAX_VARS];
    int64_t result = 1;
    for (uint32_t i = 0; i < rule->output_count; i++) {
        if (values[bound_class(t, rule->source.node_count, rule->source.outputs[i])].is_const) {
            return false;
        }
    }
    for (uint32_t v = 0; v < rule->var_count; v++) {
        shapes[v] = &values[t->match.vars[v]].shape;
        is_const[v] = values[t->match.vars[v]].is_const;
    }
    return rule->condition == UINT8_MAX ||
           (graft_code_run(rule, rule->condition, shapes, is_const, t->match.slots, &result) &&
            result != 0);
}

static bool descend(const trial *t, uint32_t level);

/* Binds a node, and what is behind it; false when there are too many matches, as those below. */
static bool try_node(const trial *t, uint32_t level, graft_index node)
{
    const uint32_t op = t->g->state.graph.nodes[node].op;
    if (op != t->rule->source.nodes[level].op || t->g->twin[node] != node) {
        return true;
    }
    const uint32_t swaps = (graft_op(op)->flags & GRAFT_FLAG_COMMUTES) != 0 ? 2 : 1;
    for (uint32_t swap = 0; swap < swaps; swap++) {
        trial next = *t;
        if (bind_node(&next, level, node, swap) && !descend(&next, level + 1)) {
            return false;
        }
    }
    return true;
}

/* All nodes that make (output `slot`) or, with GRAFT_NONE, read a value of a class. */
static bool try_class(const trial *t, uint32_t level, graft_index class, uint32_t slot)
{
    const graft_order *order = &t->g->state.order;
    graft_index v = class;
    bool go_on = true;
    do {
        const graft_value *value = &t->g->state.graph.values[v];
        if (value->kind == GRAFT_VALUE_COMPUTED && value->slot == slot) {
            go_on = try_node(t, level, value->node);
        }
        for (graft_index u = order->use_first[v];
             slot == GRAFT_NONE && go_on && u < order->use_first[v + 1]; u++) {
            go_on = try_node(t, level, order->uses[u]);
        }
        v = t->g->next[v];
    } while (v != class && go_on);
    return go_on;
}

/* Binds node `level` of the pattern and those behind it in every way. */
static bool descend(const trial *t, uint32_t level)
{
    graft_egraph *g = t->g;
    const graft_pattern_node *pattern = &t->rule->source.nodes[level];
    if (level == t->rule->source.node_count) {
        if (is_match(t)) {
            GRAFT_PUSH(g->arena, g->matches, g->match_count, g->match_capacity, FIRST_CAPACITY) =
                t->match;
        }
        return g->match_count <= t->most;
    }
    for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS; o++) {
        if (t->wanted[level][o] != GRAFT_NONE) {
            return try_class(t, level, t->wanted[level][o], o);
        }
    }
    for (uint32_t i = 0; i < graft_op(pattern->op)->input_count; i++) {
        const graft_index class = bound_class(t, level, pattern->inputs[i]);
        if (class != GRAFT_NONE) {
            return try_class(t, level, class, GRAFT_NONE);
        }
    }
    const graft_order *order = &t->g->state.order;
    bool go_on = true;
    for (graft_index i = 0; i < order->count && go_on; i++) {
        go_on = t->g->state.graph.nodes[order->order[i]].is_const ||
                try_node(t, level, order->order[i]);
    }
    return go_on;
}

void graft_egraph_match(graft_egraph *g, uint32_t rule, uint32_t most)
{
    const uint32_t before = g->match_count;
    trial t = {.g = g, .rule = &g->xfers->rules[rule], .most = before + most};
    memset(t.wanted, 0xff, sizeof t.wanted); /* GRAFT_NONE */
    if (!descend(&t, 0)) {
        g->match_count = before;
    }
}

/* ------------------------------------------------------------------ applying */

uint64_t graft_egraph_key(const graft_egraph *g, uint32_t rule, const graft_match *match)
{
    uint64_t key = mix(1, rule);
    for (uint32_t n = 0; n < g->xfers->rules[rule].source.node_count; n++) {
        key = mix(key, graft_egraph_twin(g, match->nodes[n]));
    }
    for (uint32_t v = 0; v < g->xfers->rules[rule].var_count; v++) {
        key = mix(key, graft_egraph_class(g, match->vars[v]));
    }
    return key | 1;
}

/* Whether a key is new; it is noted. When too many are, none is new. */
static bool is_new(graft_egraph *g, uint64_t key)
{
    const uint64_t mask = SEEN_PER_PLACE * ((uint64_t)g->table_mask + 1) - 1;
    uint64_t at = key >> 1 & mask;
    while (g->seen[at] != 0 && g->seen[at] != key) {
        at = (at + 1) & mask;
    }
    bool fresh = g->seen[at] == 0 && g->seen_count < mask / 2;
    if (fresh) {
        g->seen[at] = key;
        g->seen_count++;
    }
    return fresh;
}

/* The value that an operand of the target stands for, once its node is made. */
static graft_index target_value(const graft_egraph *g, const graft_egraph_step *step,
                                graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand)
               ? graft_node_output(&g->state.graph, step->targets[GRAFT_OPERAND_NODE_OF(operand)],
                                   GRAFT_OPERAND_SLOT_OF(operand))
               : step->match.vars[operand];
}

/* Finds or adds the nodes of the target; false when there is no room. */
static bool make_target(graft_egraph *g, const graft_made *made, graft_egraph_step *step)
{
    const graft_pattern *target = &g->xfers->rules[step->rule].target;
    for (uint32_t n = 0; n < target->node_count; n++) {
        const graft_node *like = &made->nodes[n].node;
        graft_index classes[GRAFT_MAX_INPUTS];
        for (uint32_t i = 0; i < like->input_count; i++) {
            classes[i] = graft_egraph_class(g, target_value(g, step, target->nodes[n].inputs[i]));
        }
        step->targets[n] = graft_egraph_find(g, like, classes);
        if (step->targets[n] == GRAFT_NONE) {
            if (graft_graph_add_node(&g->state.graph, like->op, like->attrs, classes, GRAFT_NONE,
                                     &step->targets[n]) != GRAFT_OK) {
                return false;
            }
            g->maker[step->targets[n]] = g->step_count;
            g->changed = true;
            enter_node(g, step->targets[n]);
        }
    }
    return true;
}

bool graft_egraph_apply(graft_egraph *g, uint32_t rule, const graft_match *match)
{
    const graft_rule *r = &g->xfers->rules[rule];
    const bool was_changed = g->changed;
    graft_egraph_step step = {.rule = rule, .match = *match};
    graft_made made;
    if (!is_new(g, graft_egraph_key(g, rule, match))) {
        return true;
    }
    graft_status status = graft_match_plan(&g->state.graph, r, match, &g->state.order, g->options,
                                           g->state.scratch, &made);
    if (status != GRAFT_OK) {
        return status != GRAFT_CAPACITY;
    }
    g->changed = false;
    bool room = make_target(g, &made, &step);
    for (uint32_t i = 0; room && i < r->output_count; i++) {
        const graft_operand x = r->source.outputs[i];
        const graft_index node = match->nodes[GRAFT_OPERAND_NODE_OF(x)];
        unite(g, graft_node_output(&g->state.graph, node, GRAFT_OPERAND_SLOT_OF(x)),
              target_value(g, &step, r->target.outputs[i]));
    }
    if (room && g->changed) {
        GRAFT_PUSH(g->arena, g->steps, g->step_count, g->step_capacity, FIRST_CAPACITY) = step;
    }
    g->changed = g->changed || was_changed;
    return room;
}
