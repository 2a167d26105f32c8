/* cost.h - what a graph costs on a device: the sum of its steps, from the database.
 *
 * A signature that the database lacks is measured when it is first asked for and stored; on a
 * device that is not here (or with measuring switched off) it is estimated (cost/database/nearest.h),
 * and every total says how many of its entries are estimates.
 *
 * Equal nodes (graph/equal.h) are one: what is priced, planned and run is the graph with each of
 * them once. Its ids are those of the graph that is asked about.
 *
 * One graft_cost may be used by several threads at once, each with its own graft_env: looking up
 * takes no lock, measuring takes turns. */
#pragma once

#include "cost/database/roofline.h"
#include "cost/measure/calibration.h"
#include "cost/measure/measure.h"
#include "cost/plan/schedule.h"
#include "graph/model.h"

typedef struct graft_cost graft_cost;

/* All over the steps of a graph. */
typedef struct graft_cost_total {
    double ns; /* Operators and layout conversions; an exact sum. */
    double reorder_ns;
    uint64_t flops;
    uint64_t bytes;      /* Read and written. */
    uint64_t peak_bytes; /* Most memory alive at once, see schedule.h. */
    uint32_t launches;   /* Steps, conversions included. */
    uint32_t reorder_count;
    uint32_t estimated_count; /* Entries that were not measured. */
} graft_cost_total;

typedef struct graft_cost_statistics {
    uint32_t entries;   /* In the database, of this device. */
    uint32_t measured;  /* By this run. */
    uint32_t estimated; /* Different signatures estimated by this run. */
    uint64_t measuring_ns;
} graft_cost_statistics;

/* Opens the database `path` (NULL: in memory only) for a device. A recorded device is looked for in
 * that file, then in those of rules/costs; its name may be any part of the recorded name, as long
 * as it fits one device only. Borrows the device. GRAFT_BAD_INPUT for a broken database or a device
 * that is neither here nor in it. */
GRAFT_MUST_USE graft_status graft_cost_open(graft_env *env, graft_device *device, const char *path,
                                            graft_cost **cost);
/* Saves what is new and frees everything, also when saving fails (the status tells). NULL is
 * allowed. */
GRAFT_MUST_USE graft_status graft_cost_close(graft_env *env, graft_cost *cost);
/* Closes both after work that ended with `status`, which is returned with its message; after
 * GRAFT_OK, how saving went. */
GRAFT_MUST_USE graft_status graft_cost_finish(graft_env *env, graft_cost *cost,
                                              graft_device *device, graft_status status);
/* Writes what was measured so far (see graft_database_save). */
GRAFT_MUST_USE graft_status graft_cost_save(graft_env *env, graft_cost *cost);

/* Which model graphs are of from now on (NULL, as at first: of none), borrowed: its quantised
 * operators are then measured, where they run on a processor. What else is opaque, and all of it in
 * graphs of no model, is estimated by its bytes. */
void graft_cost_set_model(graft_cost *cost, const graft_model *model);
/* How on-demand measuring is done. Default: graft_measure_options_default, quiet. */
void graft_cost_set_measuring(graft_cost *cost, const graft_measure_options *options);
/* Never measures: what is missing is estimated. */
void graft_cost_set_estimating(graft_cost *cost, bool estimating);

/* For running rather than pricing: nothing is measured and nothing saved. What `path` (NULL:
 * nothing) has of this processor is taken from there, else from the nearest recorded one; what both
 * lack is estimated, with the implementation of the nearest operator. For a cost in memory. Fails
 * as graft_database_merge does. */
GRAFT_MUST_USE graft_status graft_cost_borrow(graft_env *env, graft_cost *cost, const char *path);

/* Measures until then (graft_clock_ns; 0, as at first: always), a few signatures at a time; what is
 * missing afterwards is estimated. */
void graft_cost_set_deadline(graft_cost *cost, uint64_t deadline_ns);

/* The entry of one signature: looked up, else measured and stored, else estimated.
 * GRAFT_UNSUPPORTED when it can be neither; otherwise fails as graft_measure does. */
GRAFT_MUST_USE graft_status graft_cost_signature(graft_env *env, graft_cost *cost,
                                                 const graft_signature *signature,
                                                 graft_cost_entry *entry);
/* The entry of one step of a schedule of `graph`. */
GRAFT_MUST_USE graft_status graft_cost_step(graft_env *env, graft_cost *cost,
                                            const graft_graph *graph,
                                            const graft_schedule *schedule, uint32_t step,
                                            graft_cost_entry *entry);
/* Measures, in one go, what the database lacks of these signatures (duplicates allowed). Much
 * faster than one by one, and better interleaved. On GRAFT_INTERRUPTED what was measured is kept.
 */
GRAFT_MUST_USE graft_status graft_cost_measure(graft_env *env, graft_cost *cost,
                                               const graft_signature *signatures, uint32_t count,
                                               const graft_measure_options *options);

/* Measures these once more; of the time that was known and the one that is measured now the lesser
 * is kept. Not for several threads at once. Fails as graft_cost_measure does. */
GRAFT_MUST_USE graft_status graft_cost_measure_again(graft_env *env, graft_cost *cost,
                                                     const graft_signature *signatures,
                                                     uint32_t count,
                                                     const graft_measure_options *options);

/* From now on measured entries have the time of their twins, where they differ by noise alone (see
 * confirm.h): a search would take the noise for gains. `count` receives how many that changes. Only
 * where times are measured by a clock; not for several threads at once. What is measured later
 * stays as it was measured. GRAFT_NO_MEMORY. */
GRAFT_MUST_USE graft_status graft_cost_level(graft_env *env, graft_cost *cost, uint32_t *count);
bool graft_cost_is_leveled(const graft_cost *cost);

/* The cheapest schedule of `graph` in `order`, in `arena`: layouts and implementations chosen
 * together by cost (see plan.h). What the choice has to know and the database lacks is measured in
 * one go. Fails as graft_cost_measure does. */
GRAFT_MUST_USE graft_status graft_cost_plan(graft_env *env, graft_cost *cost, graft_arena *arena,
                                            const graft_graph *graph, const graft_order *order,
                                            graft_schedule *schedule);

/* The cost of a graph: of its cheapest schedule. `total` is untouched on failure. */
GRAFT_MUST_USE graft_status graft_cost_graph(graft_env *env, graft_cost *cost,
                                             const graft_graph *graph, const graft_order *order,
                                             graft_cost_total *total);
/* The ns of that total alone, to the same bits, without building the schedule: for searches. */
GRAFT_MUST_USE graft_status graft_cost_price(graft_env *env, graft_cost *cost,
                                             const graft_graph *graph, const graft_order *order,
                                             double *ns);
/* The total, and in by_node (node_end entries) what each node takes together with the conversions
 * made for it; 0 for const nodes and views. */
typedef struct graft_cost_node {
    double ns;
    uint32_t estimated_count; /* Entries that were not measured. */
} graft_cost_node;
GRAFT_MUST_USE graft_status graft_cost_nodes(graft_env *env, graft_cost *cost,
                                             const graft_graph *graph, const graft_order *order,
                                             graft_cost_node *by_node, graft_cost_total *total);

/* The cost of a schedule of `graph` that exists already. */
GRAFT_MUST_USE graft_status graft_cost_schedule(graft_env *env, graft_cost *cost,
                                                const graft_graph *graph,
                                                const graft_schedule *schedule,
                                                graft_cost_total *total);

/* Adds an entry, uncorrected, that the database lacks. Not for several threads at once. */
void graft_cost_store(graft_cost *cost, const graft_signature *signature,
                      const graft_cost_entry *entry);

void graft_cost_statistics_of(const graft_cost *cost, graft_cost_statistics *statistics);
/* Layouts by the convention instead of by cost, from now on: to see what the choice brings. */
void graft_cost_set_convention(graft_cost *cost, bool convention);
/* The base that gains are held against, from now on: one layout throughout, by graft_layout_assign,
 * copies instead of views, and only direct implementations. What is measured then is not the
 * fastest that there is: for a cost with a database of its own. */
void graft_cost_set_base(graft_cost *cost, uint32_t layout);
/* Copies instead of views for concatenations, splits and slices, from now on: likewise. */
void graft_cost_set_copies(graft_cost *cost);

/* What corrects all times: at first, what the database has for the device (see calibration.h).
 * Setting another is not for several threads at once; `provenance` is stored beside it in the
 * database. GRAFT_NO_MEMORY. */
graft_calibration graft_cost_calibration(const graft_cost *cost);
GRAFT_MUST_USE graft_status graft_cost_set_calibration(graft_env *env, graft_cost *cost,
                                                       const graft_calibration *calibration);
GRAFT_MUST_USE graft_status graft_cost_store_calibration(graft_env *env, graft_cost *cost,
                                                         const graft_calibration *calibration,
                                                         const char *provenance);
/* The anchor that this cost's measurements refer to, opened and recorded when needed; NULL for a
 * device that measures in its own way. Fails as measuring does. */
GRAFT_MUST_USE graft_status graft_cost_anchor(graft_env *env, graft_cost *cost,
                                              graft_anchor **anchor);

graft_device *graft_cost_device(const graft_cost *cost);
const graft_database *graft_cost_database(const graft_cost *cost);
/* What was estimated so far: signatures that the database lacks. */
const graft_database *graft_cost_estimates(const graft_cost *cost);
