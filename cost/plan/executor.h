/* executor.h - runs whole graphs on the device: for their outputs, and for the truth about time.
 *
 * The steps are those of schedule.h, each with the implementation that the cost database says won.
 * Memory is planned once: regions whose lives do not overlap share bytes, views take none. Inputs
 * and outputs are row-major binary32 arrays, copied in and out; the conversions to the layouts that
 * operators want are steps and count as time. Weights are packed when the executor is opened. On a
 * device with memory of its own, inputs are sent there and opaque nodes run on the processor before
 * each run; neither counts as time. */
#pragma once

#include "cost/cost.h"
#include "graph/model.h"

typedef struct graft_executor graft_executor;

/* Row-major data of a const value of the graph (graft_weights_data does this for a model's); NULL
 * when there is none. The data must outlive the executor. */
typedef const float *(*graft_weight_source)(void *context, graft_index value);

/* Prepares `graph` for the device of `cost`; borrows cost and graph, copies neither. Signatures
 * that the database lacks are measured, or, when measuring is off, run with the library's
 * favourite. GRAFT_UNSUPPORTED when the graph has an opaque node (the message names its number in
 * the model), values of float16 or bfloat16 (graft_model_options reads them as binary32), or the
 * device is not present; GRAFT_BAD_INPUT when a weight has no data or the graph
 * has a cycle; GRAFT_NO_MEMORY. */
GRAFT_MUST_USE graft_status graft_executor_open(graft_env *env, graft_cost *cost,
                                                const graft_graph *graph,
                                                graft_weight_source weights, void *context,
                                                graft_executor **executor);
/* The same for a graph of a model, with its folded weights: opaque nodes that graph/opaque.h knows
 * are run as well. Inputs and outputs have the types of their values. */
GRAFT_MUST_USE graft_status graft_executor_open_model(graft_env *env, graft_cost *cost,
                                                      const graft_model *model,
                                                      const graft_graph *graph,
                                                      const graft_weights *weights,
                                                      graft_executor **executor);
/* The same, with weights that are folded into `arena` first: it must outlive the executor. Fails as
 * graft_model_fold_weights does as well. */
GRAFT_MUST_USE graft_status graft_executor_open_folded(graft_env *env, graft_arena *arena,
                                                       graft_cost *cost, const graft_model *model,
                                                       const graft_graph *graph,
                                                       graft_executor **executor);
void graft_executor_close(graft_executor *executor); /* NULL is allowed. */

/* The graph's inputs in the order of their sources (then ids), and its outputs in the graph's
 * order: value ids. `k` below the count. */
uint32_t graft_executor_input_count(const graft_executor *executor);
uint32_t graft_executor_output_count(const graft_executor *executor);
graft_index graft_executor_input(const graft_executor *executor, uint32_t k);
graft_index graft_executor_output(const graft_executor *executor, uint32_t k);

/* Runs once. `inputs` and `outputs` point to arrays of the values' sizes and types, in the order
 * above. GRAFT_BAD_INPUT when an input holds a place outside of a table that it selects from. */
GRAFT_MUST_USE graft_status graft_executor_run(graft_env *env, graft_executor *executor,
                                               const float *const *inputs, float *const *outputs);

/* Input `k` as it is drawn when nothing else is at hand: normal numbers; of whole ones, which are
 * places and masks, 0 and 1, which lie in every table. Other types are left as they are. */
void graft_executor_draw(const graft_shape *shape, uint64_t seed, uint32_t k, void *data);

typedef struct graft_executor_memory {
    uint64_t peak_bytes;      /* Inputs, planned tensors, workspace: everything but weights. */
    uint64_t workspace_bytes; /* Of these, what implementations need beside their operands. */
    uint64_t packed_bytes;    /* Weights in the form that implementations want. */
    uint64_t pack_ns;         /* Time spent packing them, once. */
} graft_executor_memory;

void graft_executor_memory_of(const graft_executor *executor, graft_executor_memory *memory);

typedef struct graft_timing {
    double median_ns;
    double spread_ns; /* Between the quartiles. */
    uint32_t rounds;
} graft_timing;

/* Times `rounds` (at least 1) batches of runs on the inputs of the last run, or on normal numbers.
 * GRAFT_INTERRUPTED when the user asked to stop. */
GRAFT_MUST_USE graft_status graft_executor_time(graft_env *env, graft_executor *executor,
                                                uint32_t rounds, graft_timing *timing);

/* Times steps from `from` to before `to`, `runs` times over, on what lies in memory: the results of
 * the steps before when ranges are timed in order. `run_ns` is the time of one run of them. */
GRAFT_MUST_USE graft_status graft_executor_time_steps(graft_env *env,
                                                      const graft_executor *executor, uint32_t from,
                                                      uint32_t to, uint32_t runs, double *run_ns);
const graft_schedule *graft_executor_schedule(const graft_executor *executor);
/* The implementation that a step runs with; of an opaque node its operator in ONNX. */
const char *graft_executor_implementation(const graft_executor *executor, uint32_t step);

typedef struct graft_comparison {
    graft_timing a;
    graft_timing b;
    double ratio; /* Median over rounds of time b / time a: below 1, b is faster. */
    double ratio_spread;
    double control; /* The same for a against itself: how far from 1 nothing is. */
    double control_spread;
    uint32_t rounds;
} graft_comparison;

enum { GRAFT_CONTENDERS = 3 }; /* a, b, and a once more: the control. */
/* What the times of `rounds` (at least 1) rounds in turns say. */
void graft_comparison_of(graft_env *env, const double *const times[GRAFT_CONTENDERS],
                         uint32_t rounds, graft_comparison *comparison);

/* Times two executors against each other, interleaved, in an order that rotates. */
GRAFT_MUST_USE graft_status graft_executor_compare(graft_env *env, graft_executor *a,
                                                   graft_executor *b, uint32_t rounds,
                                                   graft_comparison *comparison);

/* Whether b is faster by more than noise: by more than two standard errors of the median ratio
 * (about spread / sqrt(rounds) each, for normal noise) and more than a differed from itself. */
bool graft_comparison_is_gain(const graft_comparison *comparison);
