/* planned.h - plans of a session's model for inputs of several sizes. All share the weights of the
 * first one, as they are packed. Those that were made last are kept, 128 at most and of 256 MB in
 * all, so that a decoder whose past grows again is planned once for each length. */
#pragma once

#include "emit/run/run.h"

/* GRAFT_BAD_INPUT for tensor `i` of what is given where it has no name. */
GRAFT_MUST_USE graft_status graft_planned_check(graft_env *env, const char *kind,
                                                const graft_run_tensor *given, uint32_t i);
/* The first plan, of the model `path`, into run->plan. Fails as graft_run_open does. */
GRAFT_MUST_USE graft_status graft_planned_read(graft_run *run, const char *path,
                                               const graft_run_options *options);
/* Lists inputs and outputs of the plan, of whatever it was made. */
GRAFT_MUST_USE graft_status graft_planned_list(graft_run *run);
/* Another one in the place of run->plan, which the caller has. */
GRAFT_MUST_USE graft_status graft_planned_again(graft_run *run, const graft_run_tensor *inputs,
                                                uint32_t count);
void graft_planned_close(graft_run *run, const graft_run_plan *plan);

/* Makes run->plan the one that was kept for inputs of such shapes, and keeps what it was; false
 * where there is none. */
bool graft_planned_take(graft_run *run, const graft_run_tensor *inputs, uint32_t count);
/* Keeps a plan, and closes those for which there is no room. */
void graft_planned_keep(graft_run *run, const graft_run_plan *plan);
