/* run.h - what `graft run` sees of a session of include/graft/run.h. */
#pragma once

#include "cost/plan/executor.h"
#include "emit/run/stages.h"
#include "graft/run.h"

/* What is planned for inputs of some sizes. */
typedef struct graft_run_plan {
    graft_arena *arena;       /* Of all that is the plan's; env.life of the first one. */
    graft_model *model;       /* NULL: of a graph. */
    const graft_graph *graph; /* That is run. */
    graft_executor *executor;
    graft_stages *stages;     /* What follows that; NULL: nothing. */
    graft_run_tensor *inputs; /* The executor's in its order, and such as have no elements. */
    uint32_t input_count;
    graft_run_tensor *outputs;
    float **results; /* Of the executor's outputs, ours. */
} graft_run_plan;

typedef struct kept_plan {
    struct kept_plan *next;
    graft_run_plan plan;
} kept_plan;

struct graft_run {
    graft_env env;
    graft_device *device;
    graft_cost *cost;
    graft_runtime runtime;
    const char *policy;          /* NULL: none. */
    graft_model_options reading; /* How the model was read. */
    const graft_model *first;    /* At the first sizes; its weights are those of all plans. */
    graft_run_plan plan;
    kept_plan *kept; /* See planned.h; the one that was made or ran last first. */
};

/* Times it with the session's threads, as graft_executor_time does; with these inputs where it runs
 * in stages. */
GRAFT_MUST_USE graft_status graft_run_time(graft_env *env, graft_run *run,
                                           const graft_run_tensor *inputs, uint32_t input_count,
                                           uint32_t rounds, graft_timing *timing);

/* The same of each step of graft_executor_schedule (of the first stage), in turns, each with the
 * clock's own time; after a run. `step_ns` has one for each. */
GRAFT_MUST_USE graft_status graft_run_time_steps(graft_env *env, graft_run *run, uint32_t rounds,
                                                 double *step_ns);

/* "f32[1,3,224,224]", in `arena`. */
const char *graft_shape_text(graft_arena *arena, const graft_shape *shape);
