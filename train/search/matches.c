/* matches.c - see matches.h. */
#include "train/search/matches.h"

#include <assert.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };
#define NO_ITEM UINT32_MAX

void graft_xfers_index(graft_arena *arena, const graft_rule *rules, const char *const *names,
                       uint32_t count, graft_xfers *xfers)
{
    *xfers = (graft_xfers){.count = count, .rules = rules, .names = names};
    xfers->by_anchor = GRAFT_NEW(arena, uint32_t, count);
    uint32_t filled = 0;
    for (uint32_t op = 0; op < GRAFT_OP_COUNT; op++) {
        xfers->anchor_first[op] = filled;
        for (uint32_t r = 0; r < count; r++) {
            if (rules[r].source.nodes[0].op == op) {
                xfers->by_anchor[filled++] = r;
            }
        }
    }
    xfers->anchor_first[GRAFT_OP_COUNT] = filled;
    graft_routes_find(arena, rules, count, &xfers->routes);
}

void graft_matches_open(graft_arena *arena, const graft_xfers *xfers, uint32_t location_limit,
                        graft_matches *matches)
{
    *matches = (graft_matches){
        .xfers = xfers, .location_limit = location_limit, .free_item = NO_ITEM, .arena = arena};
    matches->first = GRAFT_NEW(arena, uint32_t, (size_t)xfers->count + 2);
}

/* -------------------------------------------------------------- what is kept */

static uint32_t take_item(graft_matches *matches, uint32_t rule)
{
    uint32_t item = matches->free_item;
    if (item != NO_ITEM) {
        matches->free_item = matches->items[item].next;
    } else {
        uint32_t capacity = matches->item_capacity;
        matches->found = graft_arena_grow(matches->arena, matches->found, matches->item_count,
                                          &capacity, FIRST_CAPACITY, sizeof matches->found[0]);
        matches->items =
            graft_arena_grow(matches->arena, matches->items, matches->item_count,
                             &matches->item_capacity, FIRST_CAPACITY, sizeof matches->items[0]);
        item = matches->item_count++;
    }
    matches->items[item] =
        (graft_match_kept){.rule = rule, .born = matches->call, .moved = matches->call};
    return item;
}

/* Takes the item out that *place, which leads to it, says. */
static void drop_item(graft_matches *matches, uint32_t *place)
{
    uint32_t item = *place;
    *place = matches->items[item].next;
    matches->items[item].next = matches->free_item;
    matches->free_item = item;
}

/* The item after `item` (NO_ITEM: the first) at an anchor. Items move when there come to be more.
 */
static uint32_t *place_after(graft_matches *matches, graft_index anchor, uint32_t item)
{
    return item == NO_ITEM ? &matches->heads[anchor] : &matches->items[item].next;
}

/* What a rule has at an anchor is to be found anew. */
static void renew_pair(void *context, graft_index anchor, uint32_t rule)
{
    graft_matches *matches = context;
    uint32_t before = NO_ITEM;
    uint32_t *place = &matches->heads[anchor];
    while (*place != NO_ITEM && matches->items[*place].rule < rule) {
        before = *place;
        place = &matches->items[*place].next;
    }
    if (*place != NO_ITEM && matches->items[*place].rule == rule &&
        matches->items[*place].pending) {
        return;
    }
    while (*place != NO_ITEM && matches->items[*place].rule == rule) {
        drop_item(matches, place);
    }
    uint32_t item = take_item(matches, rule);
    place = place_after(matches, anchor, before);
    matches->items[item].pending = true;
    matches->items[item].next = *place;
    *place = item;
}

static bool is_anchor(const graft_graph *graph, graft_index node)
{
    const graft_node *n = &graph->nodes[node];
    return n->op != GRAFT_OP_NONE && n->op < GRAFT_OP_COUNT && !n->is_const;
}

/* The same for all rules; the list is empty. */
static void renew_anchor(graft_matches *matches, const graft_graph *graph, graft_index node)
{
    const graft_xfers *xfers = matches->xfers;
    uint32_t op = graph->nodes[node].op;
    uint32_t last = NO_ITEM;
    if (!is_anchor(graph, node)) {
        return;
    }
    for (uint32_t k = xfers->anchor_first[op]; k < xfers->anchor_first[op + 1]; k++) {
        uint32_t item = take_item(matches, xfers->by_anchor[k]);
        matches->items[item].pending = true;
        matches->items[item].next = NO_ITEM;
        *place_after(matches, node, last) = item;
        last = item;
    }
}

/* The same for rules that may match anywhere, and, where paths were lost, for those that could
 * close a cycle. */
static void renew_distant(graft_matches *matches, const graft_graph *graph)
{
    const graft_xfers *xfers = matches->xfers;
    const graft_routes *routes = &xfers->routes;
    for (graft_index n = 0; n < graph->node_end; n++) {
        uint32_t op = graph->nodes[n].op;
        bool anchor = is_anchor(graph, n);
        for (uint32_t k = anchor ? xfers->anchor_first[op] : 0;
             anchor && k < xfers->anchor_first[op + 1]; k++) {
            uint32_t rule = xfers->by_anchor[k];
            if (routes->unlinked[rule] || (matches->changes.lost && routes->rooted[rule])) {
                renew_pair(matches, n, rule);
            }
        }
    }
}

/* Whether an item's match has a changed node; notes that one is near. */
static bool is_touched(graft_matches *matches, uint32_t at)
{
    const graft_changes *changes = &matches->changes;
    graft_match_kept *item = &matches->items[at];
    bool touched = false;
    bool near = false;
    for (uint32_t n = 0; !item->pending && n < matches->xfers->rules[item->rule].source.node_count;
         n++) {
        touched = touched || changes->touched[matches->found[at].nodes[n]];
        near = near || changes->near[matches->found[at].nodes[n]];
    }
    item->moved = near ? matches->call : item->moved;
    return touched;
}

/* Drops a list's matches with a changed node. */
static void drop_changed(graft_matches *matches, graft_index anchor)
{
    uint32_t *place = &matches->heads[anchor];
    if ((matches->blocks[anchor] & matches->changes.near_blocks) == 0) {
        return;
    }
    while (*place != NO_ITEM) {
        if (is_touched(matches, *place)) {
            drop_item(matches, place);
        } else {
            place = &matches->items[*place].next;
        }
    }
}

static void keep_unchanged(graft_matches *matches, const graft_state *state)
{
    const graft_graph *graph = &state->graph;
    const graft_changes *changes = &matches->changes;
    const graft_routes *routes = &matches->xfers->routes;
    for (graft_index n = 0; n < changes->node_end; n++) {
        if (changes->touched[n]) {
            while (matches->heads[n] != NO_ITEM) {
                drop_item(matches, &matches->heads[n]);
            }
            matches->blocks[n] = 0;
        } else {
            drop_changed(matches, n);
        }
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (changes->touched[n]) {
            renew_anchor(matches, graph, n);
        }
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        uint32_t op = graph->nodes[n].op;
        if (changes->touched[n] && op != GRAFT_OP_NONE && op < GRAFT_OP_COUNT) {
            graft_routes_follow(routes, graph, &state->order, n, renew_pair, matches);
        }
    }
    if (routes->any_unlinked || (routes->any_rooted && changes->lost)) {
        renew_distant(matches, graph);
    }
}

static void forget_all(graft_matches *matches, const graft_graph *graph)
{
    if (matches->head_count < graph->limits.nodes) {
        matches->head_count = graph->limits.nodes;
        matches->heads = GRAFT_NEW(matches->arena, uint32_t, matches->head_count);
        matches->blocks = GRAFT_NEW(matches->arena, uint64_t, matches->head_count);
    }
    memset(matches->heads, 0xff, matches->head_count * sizeof matches->heads[0]); /* NO_ITEM */
    matches->item_count = 0;
    matches->free_item = NO_ITEM;
    for (graft_index n = 0; n < graph->node_end; n++) {
        renew_anchor(matches, graph, n);
    }
}

/* Whether some rule's target might not fit in: a match may then be legal no more, or again. */
static bool is_nearly_full(const graft_graph *graph)
{
    enum { NODES = GRAFT_RULE_MAX_NODES, VALUES = NODES * GRAFT_MAX_OUTPUTS };
    enum { EDGES = NODES * (GRAFT_MAX_INPUTS + GRAFT_MAX_OUTPUTS) };
    graft_index values = 0;
    graft_index edges = 0;
    graft_index nodes = 0;
    for (graft_index v = 0; v < graph->value_end; v++) {
        values += graph->values[v].kind != GRAFT_VALUE_FREE;
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        bool used = node->op != GRAFT_OP_NONE;
        nodes += used;
        edges += used ? (graft_index)node->input_count + node->output_count : 0;
    }
    return nodes + NODES > graph->limits.nodes || values + VALUES > graph->limits.values ||
           edges + EDGES > graph->limits.edges;
}

/* ------------------------------------------------------------------- finding */

static void list_item(graft_matches *matches, uint32_t item)
{
    if (matches->count == matches->order_capacity) {
        matches->listed =
            graft_arena_grow(matches->arena, matches->listed, matches->count,
                             &matches->order_capacity, FIRST_CAPACITY, sizeof matches->listed[0]);
        matches->order = GRAFT_NEW(matches->arena, uint32_t, matches->order_capacity);
    }
    matches->listed[matches->count++] = item;
    matches->first[matches->items[item].rule + 1]++;
}

typedef struct finder {
    graft_matches *matches;
    graft_state *state;
    const graft_apply_options *options;
} finder;

static bool is_legal(const finder *f, uint32_t rule, const graft_match *match)
{
    const graft_xfers *xfers = f->matches->xfers;
    const graft_rule *r = &xfers->rules[rule];
    const graft_rewrite_judge *judge = xfers->judge;
    return graft_match_try(&f->state->graph, r, match, &f->state->order, f->options,
                           f->state->scratch) == GRAFT_OK &&
           (judge == NULL || judge->holds(judge->context, r, match));
}

/* Finds what the rule of a pending item has at `node` behind the first `known` matches, which come
 * before it in the list; `before` is the last of the list before it. The item stays, behind what
 * was found, when the limit is reached. Returns the last item of the list that was dealt with. */
static uint32_t find_pending(const finder *f, graft_index node, uint32_t before, uint32_t known)
{
    graft_matches *matches = f->matches;
    const uint32_t pending = *place_after(matches, node, before);
    const uint32_t rule = matches->items[pending].rule;
    uint32_t last = before;
    graft_matcher matcher;
    graft_match match;
    graft_matcher_start(&matcher, &matches->xfers->rules[rule], &f->state->graph, &f->state->order,
                        node);
    while (matches->first[rule + 1] < matches->location_limit) {
        if (!graft_matcher_next(&matcher, &match)) {
            drop_item(matches, place_after(matches, node, last));
            return last;
        }
        if (!is_legal(f, rule, &match)) {
            continue;
        }
        if (known > 0) {
            known--;
            continue;
        }
        uint32_t item = take_item(matches, rule);
        matches->found[item] = match;
        for (uint32_t n = 0; n < matches->xfers->rules[matches->items[item].rule].source.node_count;
             n++) {
            matches->blocks[node] |= graft_changes_block(&matches->changes, match.nodes[n]);
        }
        matches->items[item].next = pending;
        *place_after(matches, node, last) = item;
        last = item;
        list_item(matches, item);
    }
    return pending;
}

/* Whether a match that was legal would close a cycle now. */
static bool closes_cycle(const finder *f, uint32_t item)
{
    const graft_matches *matches = f->matches;
    const uint32_t r = matches->items[item].rule;
    const graft_rule *rule = &matches->xfers->rules[r];
    const graft_match *match = &matches->found[item];
    bool closes = false;
    for (uint32_t v = 0; matches->xfers->routes.rooted[r] && v < rule->var_count; v++) {
        const graft_value *value = &f->state->graph.values[match->vars[v]];
        for (uint32_t n = 0; value->kind == GRAFT_VALUE_COMPUTED && n < rule->source.node_count;
             n++) {
            closes =
                closes || graft_changes_depends(&matches->changes, value->node, match->nodes[n]);
        }
    }
    return closes;
}

static void list_anchor(const finder *f, graft_index node)
{
    graft_matches *matches = f->matches;
    uint32_t before = NO_ITEM;
    uint32_t rule = NO_ITEM;
    uint32_t known = 0; /* Of this rule, before here. */
    for (uint32_t *place = &matches->heads[node]; *place != NO_ITEM;
         place = place_after(matches, node, before)) {
        graft_match_kept *item = &matches->items[*place];
        known = item->rule == rule ? known : 0;
        rule = item->rule;
        bool full = matches->first[rule + 1] >= matches->location_limit;
        if (item->pending && !full) {
            before = find_pending(f, node, before, known);
            known = 0;
        } else if (matches->changes.gained && !item->pending && closes_cycle(f, *place)) {
            drop_item(matches, place);
        } else {
            before = *place;
            known++;
            if (!item->pending && !full) {
                list_item(matches, before);
            }
        }
    }
}

/* Turns counts into starts and lists the items rule by rule (a counting sort, hence stable). */
static void group_by_rule(graft_matches *matches)
{
    uint32_t *first = matches->first;
    for (uint32_t r = 0; r < matches->xfers->count; r++) {
        first[r + 1] += first[r];
    }
    for (uint32_t i = 0; i < matches->count; i++) {
        matches->order[first[matches->items[matches->listed[i]].rule]++] = matches->listed[i];
    }
    for (uint32_t r = matches->xfers->count; r > 0; r--) {
        first[r] = first[r - 1];
    }
    first[0] = 0;
}

/* The next call finds all of them anew. */
static void forget_matches(graft_matches *matches) { graft_changes_forget(&matches->changes); }

void graft_matches_find(graft_matches *matches, graft_state *state,
                        const graft_apply_options *options)
{
    const finder f = {.matches = matches, .state = state, .options = options};
    if (matches->options.weight_bytes_limit != options->weight_bytes_limit ||
        matches->judge != matches->xfers->judge) {
        forget_matches(matches);
    }
    matches->options = *options;
    matches->judge = matches->xfers->judge;
    matches->call++;
    if (graft_changes_find(&matches->changes, matches->arena, state,
                           matches->xfers->routes.any_rooted)) {
        keep_unchanged(matches, state);
    } else {
        forget_all(matches, &state->graph);
    }
    if (matches->judge != NULL) {
        matches->judge->look_at(matches->judge->context, &state->graph, &state->order);
    }
    matches->count = 0;
    memset(matches->first, 0, ((size_t)matches->xfers->count + 2) * sizeof *matches->first);
    for (graft_index i = 0; i < state->order.count; i++) {
        list_anchor(&f, state->order.order[i]);
    }
    group_by_rule(matches);
    if (is_nearly_full(&state->graph)) {
        forget_matches(matches);
    }
}

graft_action graft_matches_draw(const graft_matches *matches, graft_rng *rng)
{
    uint32_t legal = 0;
    for (uint32_t x = 0; x < matches->xfers->count; x++) {
        legal += graft_matches_count(matches, x) > 0;
    }
    assert(legal > 0);
    uint32_t pick = graft_rng_below(rng, legal);
    uint32_t x = 0;
    while (graft_matches_count(matches, x) == 0 || pick-- > 0) {
        x++;
    }
    const uint32_t location = graft_rng_below(rng, graft_matches_count(matches, x));
    return (graft_action){(uint16_t)x, (uint16_t)location};
}

graft_status graft_matches_apply(graft_env *env, const graft_matches *matches, graft_action action,
                                 graft_state *state)
{
    return graft_state_apply(env, state, &matches->xfers->rules[action.xfer],
                             graft_matches_get(matches, action.xfer, action.location),
                             &matches->options);
}

graft_status graft_matches_follow(graft_env *env, const graft_matches *matches,
                                  const graft_state *from, graft_action action, graft_state *state)
{
    GRAFT_PASS(graft_state_copy(env, state, &from->graph, &from->order));
    return graft_matches_apply(env, matches, action, state);
}
