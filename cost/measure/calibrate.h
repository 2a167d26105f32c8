/* calibrate.h - measuring whole graphs, and fitting what their parts lack (see calibration.h). */
#pragma once

#include "cost/measure/whole.h"

typedef struct graft_calibrated_graph {
    const char *model;
    bool convention; /* With the layouts of the convention; else chosen jointly. */
    graft_calibration_sample sample;
    double spread_ns;   /* Of the whole. */
    double left_out_ns; /* Predicted with factors fitted to all other models. */
} graft_calibrated_graph;

typedef struct graft_calibrated {
    graft_calibrated_graph *graphs;
    uint32_t count;
} graft_calibrated;

/* Measures models of the zoo (NULL: all of it), as exported, in two layouts each, in three passes
 * over all of them, of which each graph's fastest counts, and each operator's; fits factors to
 * those whose sums do not rest on estimates, and stores these in the cost's database with the
 * number of graphs and `date`. `measured` gets what was measured, in env->life; models that cannot
 * be run are left out, with a message. Fails as measuring does, and with GRAFT_BAD_INPUT when there
 * is no graph to fit to: what was stored before then stays. */
GRAFT_MUST_USE graft_status graft_calibrate(graft_env *env, graft_cost *cost,
                                            const char *const *models, uint32_t model_count,
                                            const char *date, graft_calibrated *measured);
/* A line per graph: sum of parts and prediction against the whole. JSON when env->json. */
void graft_calibrated_print(graft_env *env, const graft_calibrated *measured,
                            const graft_calibration *calibration, FILE *out);
