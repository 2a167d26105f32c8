/* stages.h - runs a model whose sizes depend on data in stages (graft_model_options.staged): the
 * first is planned once, each that follows is read when what it reads is there, and planned where
 * none that was kept runs it.
 *
 * Kept is what was planned for the graphs that ran last, whatever their data was: 64 at most, and
 * 256 MB of tensors, but for the one that runs. Stages share the file's weights, folded and packed. */
#pragma once

#include "cost/plan/executor.h"
#include "emit/run/runtime.h"
#include "graft/run.h"

typedef struct graft_stages {
    const graft_model *first;
    const graft_model_options *options; /* By which it was read, with graft_folds. */
    const graft_runtime *runtime;
    graft_cost *cost;
    graft_arena *arena;         /* What the stages of the last run made; NULL before. */
    struct stage_reading *last; /* The last stage of that run... */
    struct stage_reading
        *kept;              /* ...and those whose plans are kept, the one that ran last first. */
    uint64_t run;           /* How many there were. */
    uint32_t planned_count; /* Stages that were planned, by all runs. */
} graft_stages;

/* Opens a stage in `arena`: *graph, which is model->graph or a rewritten copy, becomes what runs.
 * Leaves the model with the costs. Fails as graft_executor_open_folded does. */
GRAFT_MUST_USE graft_status graft_stage_open(graft_env *env, graft_arena *arena,
                                             const graft_stages *stages, const graft_model *model,
                                             const graft_graph **graph, graft_executor **executor);
/* Runs what follows the first stage, of which `results` has what it made, by output. Sets shapes
 * and data of `outputs`, one for each that the model promises; they last until the next run. Fails
 * as graft_model_read_rest, graft_stage_open and graft_executor_run do; GRAFT_CAPACITY for more
 * stages than there may be. */
GRAFT_MUST_USE graft_status graft_stages_run(graft_env *env, graft_stages *stages,
                                             float *const *results, graft_run_tensor *outputs);
void graft_stages_close(graft_stages *stages); /* NULL is allowed. */
