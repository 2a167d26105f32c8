/* plans.h - a file of the best plans that are known: a JSON object a line, one for each model and
 * device, sorted by these.
 *
 * A plan is a list of (rule, location) by number, so it means something only with the rules that it
 * was found with, and its cost only with the costs: both are named by a hash. */
#pragma once

#include "emit/command/session.h"
#include "graph/base/file.h"
#include "train/search/search.h"

typedef struct graft_known_plan {
    const char *model;
    const char *device; /* Its full name. */
    uint64_t rules;     /* graft_plans_rules, graft_plans_costs. */
    uint64_t costs;
    const char *search; /* What found it. */
    double first_ns;    /* Of the graph as given. */
    double cost_ns;
    uint32_t first_estimates; /* Costs of the graph as given that are estimates... */
    uint32_t estimates;       /* ...and of the plan's graph. */
    uint64_t graphs;          /* That were priced. */
    double seconds;
    uint32_t step_count;
    graft_action *steps;
} graft_known_plan;

typedef struct graft_plans {
    graft_known_plan *items;
    uint32_t count;
    uint32_t capacity;
} graft_plans;

/* Appends a plan that a search has found, for this program in another process, and takes it out
 * again; its steps are in `arena`. */
void graft_plan_pack(const graft_plan_found *found, graft_buffer *packed);
void graft_plan_unpack(graft_arena *arena, const void *packed, graft_plan_found *found);

/* Of the rules that a session uses, in their order. */
uint64_t graft_plans_rules(const graft_session *session);
/* Of all costs that are recorded of a session's device, in no order, and whether they are
 * leveled. */
uint64_t graft_plans_costs(const graft_session *session);

/* Reads a file, in `arena`; one that is not there has no plans. GRAFT_BAD_INPUT when it is broken.
 */
GRAFT_MUST_USE graft_status graft_plans_read(graft_env *env, graft_arena *arena, const char *path,
                                             graft_plans *plans);
/* Puts a copy of the plan and its steps, in `arena`, in the place of that of the same model and
 * device, and writes the file: not when a plan by the same rules and costs is as good, and not when
 * it rests on more estimates than the graph as given. Other texts are kept. Fails as writing
 * does. */
GRAFT_MUST_USE graft_status graft_plans_keep(graft_env *env, graft_arena *arena, graft_plans *plans,
                                             const graft_known_plan *plan, const char *path);
