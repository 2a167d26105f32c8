/* routes.c - see routes.h. */
#include "train/search/routes.h"

#include <string.h>

/* ------------------------------------------------------------------ finding */

/* How a pattern node hangs on another; kind 0: it does not. */
static graft_hop link_nodes(const graft_pattern *pattern, uint32_t from, uint32_t to)
{
    const graft_pattern_node *f = &pattern->nodes[from];
    const graft_pattern_node *t = &pattern->nodes[to];
    const graft_op_info *info = graft_op(f->op);
    bool commutes = (info->flags & GRAFT_FLAG_COMMUTES) != 0;
    graft_hop hop = {.op = t->op};
    for (uint32_t i = 0; i < graft_op(t->op)->input_count; i++) {
        graft_operand x = t->inputs[i];
        if (GRAFT_OPERAND_IS_NODE(x) && GRAFT_OPERAND_NODE_OF(x) == from) {
            hop.kind = GRAFT_HOP_READER;
            hop.operand = (uint8_t)GRAFT_OPERAND_SLOT_OF(x);
            return hop;
        }
        for (uint32_t k = 0; k < info->input_count && hop.kind == 0; k++) {
            bool made =
                GRAFT_OPERAND_IS_NODE(f->inputs[k]) && GRAFT_OPERAND_NODE_OF(f->inputs[k]) == to;
            if (made || f->inputs[k] == x) {
                hop.kind = made ? GRAFT_HOP_PRODUCER : GRAFT_HOP_SIBLING;
                hop.either = commutes && k < 2;
                hop.operand = (uint8_t)(hop.either != 0 ? 0 : k);
            }
        }
    }
    return hop;
}

/* The shortest route from pattern node `from` to node 0. False when there is none. */
static bool find_route(const graft_pattern *pattern, uint32_t from, graft_route *route)
{
    graft_route reached[GRAFT_RULE_MAX_NODES];
    uint32_t queue[GRAFT_RULE_MAX_NODES] = {from};
    bool seen[GRAFT_RULE_MAX_NODES] = {false};
    uint32_t count = 1;
    seen[from] = true;
    memset(&reached[from], 0, sizeof reached[from]);
    for (uint32_t i = 0; i < count && !seen[0]; i++) {
        const graft_route *so_far = &reached[queue[i]];
        for (uint32_t to = 0; to < pattern->node_count; to++) {
            graft_hop hop = link_nodes(pattern, queue[i], to);
            if (!seen[to] && hop.kind != 0) {
                seen[to] = true;
                reached[to] = *so_far;
                reached[to].hops[reached[to].hop_count++] = hop;
                queue[count++] = to;
            }
        }
    }
    if (seen[0]) {
        *route = reached[0];
    }
    return seen[0];
}

/* Whether the matcher can find every further root by way of what is bound before it. */
static bool is_linked(const graft_pattern *pattern)
{
    uint32_t vars = 0;
    uint32_t nodes = 1;
    bool linked = true;
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        const graft_pattern_node *node = &pattern->nodes[n];
        bool bound = (nodes >> n & 1U) != 0;
        for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
            graft_operand x = node->inputs[i];
            bound = bound || (GRAFT_OPERAND_IS_NODE(x) ? nodes >> GRAFT_OPERAND_NODE_OF(x) & 1U
                                                       : vars >> x & 1U) != 0;
        }
        linked = linked && bound;
        nodes |= 1U << n;
        for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
            graft_operand x = node->inputs[i];
            if (GRAFT_OPERAND_IS_NODE(x)) {
                nodes |= 1U << GRAFT_OPERAND_NODE_OF(x);
            } else {
                vars |= 1U << x;
            }
        }
    }
    return linked;
}

static bool has_several_roots(const graft_rule *rule)
{
    bool several = false;
    for (uint32_t i = 1; i < rule->output_count; i++) {
        several = several || GRAFT_OPERAND_NODE_OF(rule->source.outputs[i]) != 0;
    }
    return several;
}

typedef struct finding {
    graft_arena *arena;
    graft_route *items; /* Of the operator at hand, from `begin` on. */
    uint32_t begin;
    uint32_t count;
    uint32_t capacity;
} finding;

static void add_route(finding *f, const graft_route *route, uint32_t rule)
{
    uint32_t i = f->begin;
    while (i < f->count && (f->items[i].hop_count != route->hop_count ||
                            memcmp(f->items[i].hops, route->hops, sizeof route->hops) != 0)) {
        i++;
    }
    if (i == f->count) {
        GRAFT_PUSH(f->arena, f->items, f->count, f->capacity, 256) = *route;
    }
    graft_route *item = &f->items[i];
    if (item->rule_count > 0 && item->rules[item->rule_count - 1] == rule) {
        return; /* Two alike nodes of one pattern. */
    }
    if ((item->rule_count & (item->rule_count - 1)) == 0) { /* Full: 0, 1, 2, 4... */
        uint32_t *rules = GRAFT_NEW(f->arena, uint32_t, 2 * (size_t)item->rule_count + 1);
        if (item->rule_count > 0) {
            memcpy(rules, item->rules, item->rule_count * sizeof rules[0]);
        }
        item->rules = rules;
    }
    item->rules[item->rule_count++] = rule;
}

static void find_from(finding *f, uint32_t op, const graft_rule *rules, uint32_t count,
                      graft_routes *routes)
{
    for (uint32_t r = 0; r < count; r++) {
        const graft_pattern *pattern = &rules[r].source;
        for (uint32_t n = 1; n < pattern->node_count; n++) {
            graft_route route;
            if (pattern->nodes[n].op != op || routes->unlinked[r]) {
                continue;
            }
            if (find_route(pattern, n, &route)) {
                add_route(f, &route, r);
            } else {
                routes->unlinked[r] = true;
            }
        }
    }
}

void graft_routes_find(graft_arena *arena, const graft_rule *rules, uint32_t count,
                       graft_routes *routes)
{
    finding f = {.arena = arena};
    *routes = (graft_routes){.items = NULL};
    routes->unlinked = GRAFT_NEW(arena, bool, count);
    routes->rooted = GRAFT_NEW(arena, bool, count);
    for (uint32_t r = 0; r < count; r++) {
        routes->unlinked[r] = !is_linked(&rules[r].source);
        routes->rooted[r] = has_several_roots(&rules[r]);
        routes->any_rooted = routes->any_rooted || routes->rooted[r];
    }
    for (uint32_t op = 0; op < GRAFT_OP_COUNT; op++) {
        f.begin = f.count;
        routes->first[op] = f.count;
        find_from(&f, op, rules, count, routes);
    }
    routes->first[GRAFT_OP_COUNT] = f.count;
    routes->items = f.items;
    for (uint32_t r = 0; r < count; r++) {
        routes->any_unlinked = routes->any_unlinked || routes->unlinked[r];
    }
}

/* ---------------------------------------------------------------- following */

typedef struct walk {
    const graft_graph *graph;
    const graft_order *order;
    const graft_route *route;
    graft_routes_visit visit;
    void *context;
} walk;

static void go_on(const walk *w, graft_index node, uint32_t hop);

static void arrive(const walk *w, graft_index node, uint32_t hop)
{
    if (w->graph->nodes[node].op == w->route->hops[hop].op) {
        go_on(w, node, hop + 1);
    }
}

static void visit_readers(const walk *w, graft_index value, uint32_t hop)
{
    graft_index before = GRAFT_NONE;
    for (graft_index u = w->order->use_first[value]; u < w->order->use_first[value + 1]; u++) {
        if (w->order->uses[u] != before) {
            before = w->order->uses[u];
            arrive(w, before, hop);
        }
    }
}

static void go_on(const walk *w, graft_index node, uint32_t hop)
{
    if (hop == w->route->hop_count) {
        for (uint32_t i = 0; i < w->route->rule_count; i++) {
            w->visit(w->context, node, w->route->rules[i]);
        }
        return;
    }
    const graft_hop *h = &w->route->hops[hop];
    if (h->kind == GRAFT_HOP_READER) {
        visit_readers(w, graft_node_output(w->graph, node, h->operand), hop);
        return;
    }
    for (uint32_t k = h->operand; k < h->operand + 1U + h->either; k++) {
        graft_index value = graft_node_input(w->graph, node, k);
        if (h->kind == GRAFT_HOP_SIBLING) {
            visit_readers(w, value, hop);
        } else if (w->graph->values[value].kind == GRAFT_VALUE_COMPUTED) {
            arrive(w, w->graph->values[value].node, hop);
        }
    }
}

void graft_routes_follow(const graft_routes *routes, const graft_graph *graph,
                         const graft_order *order, graft_index node, graft_routes_visit visit,
                         void *context)
{
    uint32_t op = graph->nodes[node].op;
    for (uint32_t i = routes->first[op]; i < routes->first[op + 1]; i++) {
        const walk w = {.graph = graph,
                        .order = order,
                        .route = &routes->items[i],
                        .visit = visit,
                        .context = context};
        go_on(&w, node, 0);
    }
}
