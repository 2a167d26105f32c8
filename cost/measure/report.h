/* report.h - what a model's operators cost, as a table or as JSON Lines on stdout. */
#pragma once

#include "cost/measure/ceiling.h"
#include "cost/plan/executor.h"

/* Equal steps of a schedule, together. */
typedef struct graft_cost_row {
    graft_signature signature; /* Opaque nodes: only `op`. */
    graft_cost_entry entry;
    graft_index node; /* The first of them; GRAFT_NONE for a conversion. */
    uint32_t count;
} graft_cost_row;

/* The rows of a schedule of `graph` by descending share of the time, in env->life. Fails as
 * graft_cost_step does. */
GRAFT_MUST_USE graft_status graft_cost_rows(graft_env *env, graft_cost *cost,
                                            const graft_graph *graph,
                                            const graft_schedule *schedule, graft_cost_row **rows,
                                            uint32_t *count);

/* Prints rows: JSON when env->json. `total_ns` is what shares are parts of, `ceiling` what the
 * device can do at most. */
void graft_cost_print_rows(graft_env *env, const graft_cost_row *rows, uint32_t count,
                           double total_ns, const graft_ceiling *ceiling);

/* What is known of the whole; `timing.rounds` 0: it was not run, for `reason`. */
typedef struct graft_cost_summary {
    const char *model;
    graft_cost_total total;
    graft_timing timing;
    graft_executor_memory memory;
    const char *reason;
} graft_cost_summary;

void graft_cost_print_summary(graft_env *env, const graft_cost *cost,
                              const graft_cost_summary *summary);
