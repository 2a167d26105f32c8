/* matches.c - see matches.h. */
#include "train/matches.h"

#include <string.h>

enum { FIRST_CAPACITY = 256 };

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
}

static void grow(graft_matches *matches)
{
    uint32_t capacity = matches->capacity == 0 ? FIRST_CAPACITY : matches->capacity * 2;
    graft_match *items = GRAFT_NEW(matches->arena, graft_match, capacity);
    uint32_t *rule_of = GRAFT_NEW(matches->arena, uint32_t, capacity);
    if (matches->count > 0) {
        memcpy(items, matches->items, matches->count * sizeof *items);
        memcpy(rule_of, matches->rule_of, matches->count * sizeof *rule_of);
    }
    matches->items = items;
    matches->rule_of = rule_of;
    matches->order = GRAFT_NEW(matches->arena, uint32_t, capacity);
    matches->capacity = capacity;
}

void graft_matches_open(graft_arena *arena, const graft_xfers *xfers, uint32_t location_limit,
                        graft_matches *matches)
{
    *matches = (graft_matches){.xfers = xfers, .location_limit = location_limit, .arena = arena};
    matches->first = GRAFT_NEW(arena, uint32_t, (size_t)xfers->count + 2);
    grow(matches);
}

/* Appends the locations of rule `r` whose anchor is `node`. While locations are collected
 * first[r+1] counts those of rule r. */
static void find_at(graft_matches *matches, graft_state *state, const graft_apply_options *options,
                    uint32_t r, graft_index node)
{
    const graft_rule *rule = &matches->xfers->rules[r];
    graft_matcher matcher;
    graft_matcher_start(&matcher, rule, &state->graph, &state->order, node);
    while (matches->first[r + 1] < matches->location_limit) {
        if (matches->count == matches->capacity) {
            grow(matches);
        }
        graft_match *match = &matches->items[matches->count];
        if (!graft_matcher_next(&matcher, match)) {
            break;
        }
        if (graft_match_try(&state->graph, rule, match, &state->order, options, state->scratch) ==
            GRAFT_OK) {
            matches->rule_of[matches->count++] = r;
            matches->first[r + 1]++;
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
        matches->order[first[matches->rule_of[i]]++] = i;
    }
    for (uint32_t r = matches->xfers->count; r > 0; r--) {
        first[r] = first[r - 1];
    }
    first[0] = 0;
}

void graft_matches_find(graft_matches *matches, graft_state *state,
                        const graft_apply_options *options)
{
    const graft_xfers *xfers = matches->xfers;
    matches->count = 0;
    memset(matches->first, 0, ((size_t)xfers->count + 2) * sizeof *matches->first);
    for (graft_index i = 0; i < state->order.count; i++) {
        graft_index node = state->order.order[i];
        uint32_t op = state->graph.nodes[node].op;
        if (op >= GRAFT_OP_COUNT || state->graph.nodes[node].is_const) {
            continue;
        }
        for (uint32_t k = xfers->anchor_first[op]; k < xfers->anchor_first[op + 1]; k++) {
            find_at(matches, state, options, xfers->by_anchor[k], node);
        }
    }
    group_by_rule(matches);
}

void graft_matches_draw(const graft_matches *matches, graft_rng *rng, uint32_t *xfer,
                        uint32_t *location)
{
    uint32_t legal = 0;
    for (uint32_t x = 0; x < matches->xfers->count; x++) {
        legal += graft_matches_count(matches, x) > 0;
    }
    uint32_t pick = graft_rng_below(rng, legal);
    for (uint32_t x = 0; x < matches->xfers->count; x++) {
        uint32_t count = graft_matches_count(matches, x);
        if (count > 0 && pick-- == 0) {
            *xfer = x;
            *location = graft_rng_below(rng, count);
            return;
        }
    }
}
