/* views.h - operators that only cut, join or turn tensors, as views: no step, no copy.
 *
 * Where the pieces of a tensor along an axis lie one behind the other (every axis outside of it is
 * 1 in the layout at hand: the first axis of all, channels of one row-major or blocked image), a
 * split or slice gives its readers places inside of its operand, and what computes the operands of
 * a concatenation writes them where they belong. Pieces have to begin on a cache line, as every
 * operand did when costs were measured; so a reader or writer of a piece costs what it costs alone.
 *
 * A transpose between layouts in which every element stays where it is, as from channels last to
 * row-major (n,h,w,c), gives its reader the operand's own place.
 *
 * A tensor can lie inside of one other only, and only if a step makes it for that. Who takes whom
 * is settled here for the whole graph before layouts are chosen, and does not depend on them: a
 * choice of layouts then makes an operator a view or not by itself, which keeps the tables of
 * cost/plan/plan.h small and its choice exact. */
#pragma once

#include "cost/plan/layout.h"
#include "graph/base/arena.h"

enum { GRAFT_VIEW_ALIGNMENT = 64 }; /* Bytes. */

/* Both NULL when no concatenation, split or slice of the graph can be a view. */
typedef struct graft_views {
    bool turns;    /* Transposes can. */
    bool *joins;   /* By node: a concatenation whose operands may be made inside of its result. */
    bool *claimed; /* By value: an operand of such a one, or what that is an alias of. */
} graft_views;

/* Identities and reshapes: views in every layout. */
bool graft_views_is_alias(uint32_t op);

/* Which concatenations of `graph` can be views, in `arena`. An operand that is const, an input of
 * the graph, a view of something else, made by an opaque node, or taken by an earlier
 * concatenation (or twice by this one) makes a concatenation a copy. */
void graft_views_find(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                      graft_views *views);

/* Whether a concatenation, split, slice or transpose is a view when it works in the layouts of
 * `choice`; false for all other operators, aliases included. */
bool graft_views_possible(const graft_graph *graph, graft_index node, const graft_views *views,
                          const graft_layout_choice *choice);
/* Whether it is one in some layout. */
bool graft_views_somewhere(const graft_graph *graph, graft_index node, const graft_views *views);

/* For a node that is a view: the bytes between the beginnings of the whole and of its piece `k`
 * (output of a split or slice, input of a concatenation). */
uint64_t graft_views_offset(const graft_graph *graph, graft_index node,
                            const graft_layout_choice *choice, uint32_t k);
