/* routes.h - from a node to the anchors of the matches that it may belong to.
 *
 * The nodes of a pattern hang together: each is read by another, reads what another makes, or reads
 * what another reads. So from a graph node that is to stand for some node of a pattern, a few hops
 * of those three kinds lead to every node that can be the anchor. Rules share such routes: they are
 * kept once for each operator that they begin at, with the rules that they are routes of. */
#pragma once

#include "graph/base/env.h"

typedef enum graft_hop_kind {
    GRAFT_HOP_READER = 1,   /* To who reads output `operand`. */
    GRAFT_HOP_PRODUCER = 2, /* To who makes input `operand`. */
    GRAFT_HOP_SIBLING = 3   /* To who else reads input `operand`. */
} graft_hop_kind;

typedef struct graft_hop {
    uint8_t kind;
    uint8_t operand; /* 0 stands for 0 and 1 where `either`. */
    uint8_t op;      /* Of the node that it leads to. */
    uint8_t either;  /* The operator commutes. */
} graft_hop;

typedef struct graft_route {
    graft_hop hops[GRAFT_RULE_MAX_NODES];
    uint32_t hop_count;
    uint32_t rule_count;
    uint32_t *rules; /* Ascending. */
} graft_route;

typedef struct graft_routes {
    uint32_t first[GRAFT_OP_COUNT + 1]; /* By operator of the node that they begin at. */
    graft_route *items;
    bool *unlinked;    /* By rule: no routes lead to all its anchors; it may match anywhere. */
    bool *rooted;      /* By rule: it has outputs of several nodes, so it could close a cycle. */
    bool any_unlinked; /* Of all rules together. */
    bool any_rooted;
} graft_routes;

void graft_routes_find(graft_arena *arena, const graft_rule *rules, uint32_t count,
                       graft_routes *routes);

typedef void (*graft_routes_visit)(void *context, graft_index anchor, uint32_t rule);

/* Calls `visit` with all anchors of rules that could have `node`, which is no anchor itself, in a
 * match; some are no anchors after all, and some come more than once. */
void graft_routes_follow(const graft_routes *routes, const graft_graph *graph,
                         const graft_order *order, graft_index node, graft_routes_visit visit,
                         void *context);
