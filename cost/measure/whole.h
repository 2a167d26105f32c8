/* whole.h - whole graphs timed as operators are timed: in slices between looks at the anchor (see
 * anchor.h), so that sum and whole refer to the same state of the machine.
 *
 * A network of 60 ms is never undisturbed on a machine that others use too, but each of its steps
 * is now and then. So consecutive steps are joined to segments of at least a slice; the whole runs
 * from begin to end as ever, with a look at the anchor between segments, and its time is the sum
 * over the segments of their medians over quiet rounds. Graphs shorter than a slice are run several
 * times in one. */
#pragma once

#include "cost/plan/executor.h"

/* At least `rounds` runs (50 of a graph shorter than 2 ms), up to three times as many on a machine
 * that others keep busy. The spread is the root of the summed squares of the segments';
 * `timing->rounds` is the least number of rounds that counted for a segment. On a device without an
 * anchor it is graft_executor_time. Fails as that does. */
GRAFT_MUST_USE graft_status graft_whole_time(graft_env *env, graft_cost *cost,
                                             graft_executor *executor, uint32_t rounds,
                                             graft_timing *timing);

/* The parts of an executor's schedule, by the costs as they are corrected now. */
GRAFT_MUST_USE graft_status graft_whole_parts(graft_env *env, graft_cost *cost,
                                              const graft_graph *graph,
                                              const graft_executor *executor,
                                              graft_calibration_sample *sample);
