/* matches.h - every place where every rule applies.
 *
 * Rules are indexed by the operator of their anchor, so that a node is only offered the rules that
 * can begin there. Locations of a rule (an xfer, as the agent calls it) are numbered in canonical
 * order: by the anchor's place in topological order, then in the matcher's order; only locations
 * where graft_match_try succeeds count, and at most `location_limit` of them per rule. The engine's
 * policy inference numbers them in the same way. */
#ifndef GRAFT_TRAIN_MATCHES_H
#define GRAFT_TRAIN_MATCHES_H

#include "graph/rng.h"
#include "train/state.h"

/* The rules that an agent or a search may use, in the order that numbers them. */
typedef struct graft_xfers {
    uint32_t count;
    const graft_rule *rules;
    const char *const *names;
    uint32_t anchor_first[GRAFT_OP_COUNT + 1]; /* By operator: start of its run in `by_anchor`. */
    uint32_t *by_anchor;                       /* Rule numbers, ascending within a run. */
} graft_xfers;

/* `rules` and `names` are kept, not copied. */
void graft_xfers_index(graft_arena *arena, const graft_rule *rules, const char *const *names,
                       uint32_t count, graft_xfers *xfers);

typedef struct graft_matches {
    const graft_xfers *xfers;
    uint32_t location_limit;
    uint32_t count; /* All locations together. */
    uint32_t capacity;
    uint32_t *first;   /* By rule: start of its run in `order`; xfers->count + 1 entries. */
    uint32_t *order;   /* Indices into `items`, grouped by rule, in canonical order. */
    uint32_t *rule_of; /* By index into `items`. */
    graft_match *items;
    graft_arena *arena; /* Grows the tables; what they outgrow stays until the arena goes. */
} graft_matches;

void graft_matches_open(graft_arena *arena, const graft_xfers *xfers, uint32_t location_limit,
                        graft_matches *matches);
/* Finds all locations in `state`. */
void graft_matches_find(graft_matches *matches, graft_state *state,
                        const graft_apply_options *options);
/* Draws a rule uniformly from those with a location, then one of its locations; there must be one.
 */
void graft_matches_draw(const graft_matches *matches, graft_rng *rng, uint32_t *xfer,
                        uint32_t *location);
/* Number of locations of one rule. */
static inline uint32_t graft_matches_count(const graft_matches *matches, uint32_t xfer)
{
    return matches->first[xfer + 1] - matches->first[xfer];
}
/* Location `location` of rule `xfer`; both must exist. */
static inline const graft_match *graft_matches_get(const graft_matches *matches, uint32_t xfer,
                                                   uint32_t location)
{
    return &matches->items[matches->order[matches->first[xfer] + location]];
}

#endif
