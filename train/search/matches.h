/* matches.h - every place where every rule applies.
 *
 * Rules are indexed by the operator of their anchor, so that a node is only offered the rules that
 * can begin there. Locations of a rule (an xfer, as the agent calls it) are numbered in canonical
 * order: by the anchor's place in topological order, then in the matcher's order; only locations
 * where graft_match_try succeeds count, and at most `location_limit` of them per rule. The engine's
 * policy inference numbers them in the same way.
 *
 * Matches are kept from one call to the next: only where the graph has changed since (changes.h)
 * are they found anew, at the anchors to which routes lead from there (routes.h). The result is
 * that of finding all of them. */
#pragma once

#include "graph/base/rng.h"
#include "train/search/changes.h"
#include "train/search/routes.h"

/* Who may refuse a rewrite that the engine accepts: it holds at the sizes at hand but not at all
 * that they stand for (verify/sizes/opensizes.h), or takes apart what runs on 8 bits as one
 * (emit/command/session.c). */
typedef struct graft_rewrite_judge {
    void (*look_at)(void *context, const graft_graph *graph, const graft_order *order);
    bool (*holds)(void *context, const graft_rule *rule, const graft_match *match);
    void *context;
} graft_rewrite_judge;

/* A rule and one of its locations; rule number `count` is NO-OP, at location 0. */
typedef struct graft_action {
    uint16_t xfer;
    uint16_t location;
} graft_action;

/* The rules that an agent or a search may use, in the order that numbers them. */
typedef struct graft_xfers {
    uint32_t count;
    const graft_rule *rules;
    const char *const *names;
    uint32_t anchor_first[GRAFT_OP_COUNT + 1]; /* By operator: start of its run in `by_anchor`. */
    uint32_t *by_anchor;                       /* Rule numbers, ascending within a run. */
    graft_routes routes;
    const graft_rewrite_judge *judge; /* NULL: nothing more is asked. */
} graft_xfers;

/* `rules` and `names` are kept, not copied. */
void graft_xfers_index(graft_arena *arena, const graft_rule *rules, const char *const *names,
                       uint32_t count, graft_xfers *xfers);

/* A match as it is kept, in a list of those with its anchor: by rule, then in the matcher's order.
 * The match itself lies elsewhere: every call goes through all lists, but looks at few matches. */
typedef struct graft_match_kept {
    uint32_t rule;
    uint32_t next;  /* In the list, or in that of free places. */
    uint32_t born;  /* Number of the call that found it... */
    uint32_t moved; /* ...and of the last one that found a change at it or beside it. */
    bool pending;   /* No match: what its rule has here, from here on, is yet to be found. */
} graft_match_kept;

typedef struct graft_matches {
    const graft_xfers *xfers;
    uint32_t location_limit;
    uint32_t count;  /* All locations together. */
    uint32_t *first; /* By rule: start of its run in `order`; xfers->count + 1 entries. */
    uint32_t *order; /* Indices into `items`, grouped by rule, in canonical order. A match keeps
                        its index as long as it is there. */
    uint32_t call;   /* Number of the last call. */
    graft_match_kept *items;
    graft_match *found; /* By item. */
    graft_arena *arena; /* Grows the tables; what they outgrow stays until the arena goes. */
    /* What follows is for matches.c. */
    uint32_t item_count;
    uint32_t item_capacity;
    uint32_t free_item;
    uint32_t order_capacity;
    uint32_t *listed; /* As `order`, but not grouped. */
    uint32_t *heads;  /* By anchor... */
    uint64_t *blocks; /* ...with those that its matches have nodes in, see graft_changes_block. */
    graft_index head_count;
    graft_changes changes;
    graft_apply_options options; /* Of the last call, as is the next. */
    const graft_rewrite_judge *judge;
} graft_matches;

void graft_matches_open(graft_arena *arena, const graft_xfers *xfers, uint32_t location_limit,
                        graft_matches *matches);
/* Finds all locations in `state`. */
void graft_matches_find(graft_matches *matches, graft_state *state,
                        const graft_apply_options *options);
/* Draws a rule uniformly from those with a location, then one of its locations; there must be one.
 */
graft_action graft_matches_draw(const graft_matches *matches, graft_rng *rng);
/* Applies an action to `state`, whose graph is that of the last call of graft_matches_find. */
GRAFT_MUST_USE graft_status graft_matches_apply(graft_env *env, const graft_matches *matches,
                                                graft_action action, graft_state *state);
/* Makes `state` the successor of such a state, `from`. */
GRAFT_MUST_USE graft_status graft_matches_follow(graft_env *env, const graft_matches *matches,
                                                 const graft_state *from, graft_action action,
                                                 graft_state *state);
/* Number of locations of one rule. */
static inline uint32_t graft_matches_count(const graft_matches *matches, uint32_t xfer)
{
    return matches->first[xfer + 1] - matches->first[xfer];
}
/* The index into `items` of location `location` of rule `xfer`; both must exist. */
static inline uint32_t graft_matches_index(const graft_matches *matches, uint32_t xfer,
                                           uint32_t location)
{
    return matches->order[matches->first[xfer] + location];
}
/* That location itself. */
static inline const graft_match *graft_matches_get(const graft_matches *matches, uint32_t xfer,
                                                   uint32_t location)
{
    return &matches->found[graft_matches_index(matches, xfer, location)];
}

/* A loop over all actions, in two: `break` leaves one rule's. */
#define GRAFT_EACH_ACTION(matches_, action)                                                        \
    for (graft_action action = {0, 0}; action.xfer < (matches_)->xfers->count;                     \
         action.xfer++, action.location = 0)                                                       \
        for (; action.location < graft_matches_count((matches_), action.xfer); action.location++)
