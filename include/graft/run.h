/* run.h - runs models: Graft's executor as a library, libgraft_run (pkg-config graft-run).
 *
 *     graft_run *run = NULL;
 *     if (graft_run_open("model.onnx", NULL, &run) != GRAFT_OK) {
 *         fprintf(stderr, "%s\n", graft_run_message(run));
 *     }
 *     const graft_run_tensor *in = graft_run_input(run, 0), *out = graft_run_output(run, 0);
 *     graft_run_tensor image = {in->name, in->shape, pixels}, classes = {out->name, out->shape, scores};
 *     status = graft_run_once(run, &image, 1, &classes, 1);
 *     graft_run_close(run);
 *
 * A session is used by one thread at a time; there may be several. Tensors are row-major and of the
 * types that the model declares. Where memory ends, the library ends the program, with exit status 70.
 *
 * Everything else in this folder is the engine, which is compiled and needs no library; of it the
 * library has graft_status_name and what graft.h tells of shapes. */
#ifndef GRAFT_RUN_H
#define GRAFT_RUN_H

#include "graft.h"

#ifdef GRAFT_SMALL_GRAPHS
#error "the library has large graphs"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graft_run graft_run;

typedef struct graft_run_tensor {
    const char *name;
    graft_shape shape;
    void *data; /* Inputs are only read. Of what a session has NULL, but see graft_run_output. */
} graft_run_tensor;

/* All zero is the default. */
typedef struct graft_run_options {
    uint32_t thread_count; /* At most 1,024; 0: one for each processor. */
    /* Layouts and kernels by costs measured with care: what the database lacks of them is measured
     * first, seconds to minutes, and kept there. Without it nothing is measured: they are chosen by
     * what the database has, then by costs recorded on the nearest processor. */
    bool tune;
    const char *database;     /* A file of costs; NULL: the processor's, below ~/.cache/graft. */
    const char *policy;       /* A policy.graft that rewrites the model first; NULL: none does. */
    const char *const *sizes; /* "NAME=N" for sizes that the model leaves open; others are 1. */
    uint32_t size_count;
    const graft_run_tensor *inputs; /* Their shapes say open sizes that `sizes` does not. */
    uint32_t input_count;
} graft_run_options;

/* Opens a model, an ONNX file or a name of the zoo, with the fusions that runtimes do. `options` may
 * be NULL. A model of float16 or bfloat16 is computed in binary32: its inputs are widened, and its
 * outputs rounded once to the types that it declares. *run is set also on failure, for
 * graft_run_message, and is closed then too; only for GRAFT_NO_MEMORY it may be NULL. GRAFT_IO for
 * files that cannot be read; GRAFT_BAD_INPUT for bad ones and bad options; GRAFT_UNSUPPORTED, with
 * the node, for operators that Graft does not know, and for inputs and outputs whose sizes or types
 * it does not. */
GRAFT_MUST_USE graft_status graft_run_open(const char *model, const graft_run_options *options,
                                           graft_run **run);

/* Data of a const value that a node which is not const reads: row-major binary32. */
typedef const float *(*graft_run_weights)(void *context, graft_index value);
/* The same for a graph of the engine, as it is: options->policy and sizes are not for it. The graph
 * and the weights outlive the session. Its inputs are called x0, x1, ..., in the order of their
 * sources, and its outputs y0, y1, ... */
GRAFT_MUST_USE graft_status graft_run_open_graph(const graft_graph *graph,
                                                 graft_run_weights weights, void *context,
                                                 const graft_run_options *options, graft_run **run);

/* What went wrong last, in a line; "" when nothing did. For NULL: that memory ended. */
const char *graft_run_message(const graft_run *run);

/* Plans a model anew for inputs of these shapes, such as a decoder's whose past grows by one in each
 * step; their data is not looked at. They say all open sizes that options->sizes did not. No file is
 * read, and weights stay packed where other sizes want the same form. What graft_run_input and
 * graft_run_output gave is no more. Fails as graft_run_open does, and then the session is as it was;
 * GRAFT_UNSUPPORTED for a graph of the engine. */
GRAFT_MUST_USE graft_status graft_run_resize(graft_run *run, const graft_run_tensor *inputs,
                                             uint32_t input_count);

/* Names and shapes; `k` below the count. They live as long as the session. Where sizes of a model
 * depend on data an output may have the rank GRAFT_RANK_UNKNOWN before the first run; each run sets
 * shape and data of all outputs then, sizes of 0 among them, and the next run takes them back. Of
 * other models their data is NULL. */
uint32_t graft_run_input_count(const graft_run *run);
uint32_t graft_run_output_count(const graft_run *run);
const graft_run_tensor *graft_run_input(const graft_run *run, uint32_t k);
const graft_run_tensor *graft_run_output(const graft_run *run, uint32_t k);

/* Runs once. Tensors go by name: all inputs, in any order, and those outputs that are wanted. Such as
 * have no elements, a size being 0, need no data.
 * GRAFT_BAD_INPUT, with what was expected, when an input is missing, a name is NULL, none of the
 * model's or comes twice, or a shape or type is another; also when an input holds a place outside
 * of a table that the model selects from. Where sizes depend on data, outputs need not be given (see
 * above); those that are have the sizes that this run finds, else GRAFT_BAD_INPUT. GRAFT_UNSUPPORTED,
 * with the node, for what can only be told to be unknown then, GRAFT_CAPACITY for too many rounds or
 * stages. */
GRAFT_MUST_USE graft_status graft_run_once(graft_run *run, const graft_run_tensor *inputs,
                                           uint32_t input_count, const graft_run_tensor *outputs,
                                           uint32_t output_count);

void graft_run_close(graft_run *run); /* NULL is allowed. */

#ifdef __cplusplus
}
#endif

#endif
