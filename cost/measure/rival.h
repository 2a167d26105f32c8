/* rival.h - another runtime, timed in turns with our executor: onnxruntime through its Python
 * package, as a child process (cost/rival/time_onnx.py). For benchmarks. */
#ifndef GRAFT_COST_RIVAL_H
#define GRAFT_COST_RIVAL_H

#include "graph/base/env.h"

typedef struct graft_rival graft_rival;

/* Loads an ONNX file, with all or none of the runtime's own optimisations; one thread. To be called
 * where the project's Makefile is. GRAFT_UNSUPPORTED when there is no such runtime here or it does
 * not take the model. */
GRAFT_MUST_USE graft_status graft_rival_open(graft_env *env, const char *model, bool optimised,
                                             graft_rival **rival);
void graft_rival_close(graft_rival *rival); /* NULL is allowed. */

/* Runs the model `runs` times; processor time of one. GRAFT_IO when the child has gone. */
GRAFT_MUST_USE graft_status graft_rival_time(graft_env *env, graft_rival *rival, uint32_t runs,
                                             double *run_ns);

#endif
