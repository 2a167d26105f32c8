/* plan.h - the cheapest layouts for a whole graph: of every way to run every operator (see
 * graft_layout_alternatives), with the conversions between them, the ones whose sum is least.
 *
 * The choice is a sum of small tables. A value that is read once has a variable, the layout that it
 * is made in; its reader pays for a conversion. A value that is read several times has a variable
 * that says in which layouts it is made and held, and pays for those conversions once, as the
 * schedule shares them. Every operator is a table over its operands' variables: its cheapest
 * alternative that fits. Chains are joined beforehand: a value that is read once, by an operator
 * with no other image among its inputs, needs no variable. What can be a view is known beforehand
 * (views.h), so it is one more cost of an alternative, 0. graft_elimination_solve finds the least
 * sum, which is the cost of the schedule that is then built, not an estimate of it. */
#pragma once

#include "cost/database/entry.h"
#include "cost/plan/schedule.h"

/* What is known about a signature, or NULL. */
typedef const graft_cost_entry *(*graft_plan_source)(void *context,
                                                     const graft_signature *signature);

/* What was found out about the nodes of the graph planned last: a search plans thousands of graphs
 * that differ in a few nodes. A node is looked up anew unless its signature, its place among the
 * nodes and what its operands can be had in are as they were, so a memo never changes a plan, as
 * long as the source's answers stay the same; graft_plan_memo_clear when they change. For one
 * thread at a time. */
typedef struct graft_plan_memo graft_plan_memo;
graft_plan_memo *graft_plan_memo_new(void); /* NULL when there is no memory. */
void graft_plan_memo_free(graft_plan_memo *memo);
void graft_plan_memo_clear(graft_plan_memo *memo); /* NULL is allowed, here and above. */

typedef struct graft_plan {
    graft_assignment assignment;
    double ns;  /* What the schedule's steps cost, without opaque nodes: the least that there is. */
    bool exact; /* No cheaper plan exists: see graft_elimination_solve. */
    graft_signature *missing; /* What the source did not know; the plan is then of no use. */
    uint32_t missing_count;
    uint32_t missing_capacity;
} graft_plan;

typedef struct graft_plan_request {
    const graft_graph *graph;
    const graft_order *order;
    graft_plan_source source;
    void *context;         /* Of the source. */
    graft_plan_memo *memo; /* NULL: none. */
    bool copies;           /* Concatenations, splits and slices are never views. */
    bool unblocked;        /* The device has no blocked layouts: they are not asked for. */
    /* Whether the device runs such a group (groups.h) as one; NULL: none. Its cost is asked of the
     * source, as of other signatures. */
    bool (*fuses)(void *context, const graft_signature *signature);
    bool groups;              /* The device runs groups on integers and shuffles as one. */
    const graft_model *model; /* Of the graph, for groups; NULL: it has none. */
} graft_plan_request;

/* Chooses layouts for a graph by the costs of a source, in `arena`. Where some ways to run an
 * operator were measured, those that are merely estimated are not considered; where none was, the
 * convention's is. A way that is a view costs nothing, and that is no estimate. */
void graft_plan_build(graft_arena *arena, const graft_plan_request *request, graft_plan *plan);
