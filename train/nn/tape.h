/* tape.h - reverse-mode differentiation over dense float matrices.
 *
 * A kernel (kernels.h, losses.h, lstm.h) computes its result at once and appends an entry saying
 * how to push the result's gradient back to its inputs. Running the entries backwards gives every
 * gradient; a matrix used twice collects the sum. Each kernel's backward function stands next to
 * its forward function.
 *
 *      forward:   x --linear--> a --relu--> b --squared--> loss      entries 0, 1, 2
 *      backward:  dx <--------- da <------- db <---------- 1         entries 2, 1, 0
 *
 * A tape belongs to one shard and one thread; matrices live in its arena until the next reset. A
 * tape that does not record keeps no entries and no gradients: the same forward code serves
 * rollouts. Shapes are the caller's promise and are asserted. */
#pragma once

#include "train/nn/parameters.h"

#include <stdbool.h>

/* Row-major (rows, cols). `gradient` is NULL for constants and when not recording. */
typedef struct graft_matrix {
    uint32_t rows;
    uint32_t cols;
    float *value;
    float *gradient;
} graft_matrix;

static inline size_t graft_matrix_size(const graft_matrix *m) { return (size_t)m->rows * m->cols; }

enum { GRAFT_TAPE_INPUTS = 3, GRAFT_TAPE_BINDINGS = 4 };

typedef struct graft_entry graft_entry;
/* Adds to the gradients of the inputs; those that are NULL are skipped. */
typedef void graft_backward(const graft_entry *entry);

struct graft_entry {
    graft_backward *backward;
    graft_matrix *out;
    const graft_matrix *in[GRAFT_TAPE_INPUTS];
    const void *data; /* Index list, mask or options; outlives the tape's use. */
    float *saved;     /* What the forward pass computed and the backward pass needs. */
    uint32_t count;
    float number;
    graft_entry *before;
};

/* A parameter set on a tape, with this shard's own gradient of `set->size` floats. */
typedef struct {
    const graft_parameters *set;
    float *gradient;
} graft_binding;

typedef struct {
    graft_arena *arena;
    bool recording;
    graft_entry *last;
    uint32_t binding_count;
    graft_binding bindings[GRAFT_TAPE_BINDINGS];
} graft_tape;

/* A tape over `arena`, which it uses alone. */
void graft_tape_init(graft_tape *tape, graft_arena *arena, bool recording);
/* Forgets entries and matrices (resets the arena); bindings stay. */
void graft_tape_reset(graft_tape *tape);
/* Makes a parameter set usable on this tape. `gradient` may be NULL: its parameters are constants.
 */
void graft_tape_bind(graft_tape *tape, const graft_parameters *set, float *gradient);

/* Parameter `index` of a bound set. */
const graft_matrix *graft_tape_parameter(graft_tape *tape, const graft_parameters *set,
                                         uint32_t index);
/* Constant data of the caller, (rows, cols), which outlives the tape's use. */
const graft_matrix *graft_tape_constant(graft_tape *tape, const float *value, uint32_t rows,
                                        uint32_t cols);
/* A zeroed matrix with a gradient when recording: for kernels, and for leaves in tests. */
graft_matrix *graft_tape_matrix(graft_tape *tape, uint32_t rows, uint32_t cols);
/* Appends an entry, or does nothing when not recording; returns its `out`. */
graft_matrix *graft_tape_record(graft_tape *tape, graft_entry entry);
/* Adds `weight` to every element of the gradient of `m`: how a loss starts. */
void graft_tape_seed(graft_tape *tape, const graft_matrix *m, float weight);
/* Runs the entries, newest first. */
void graft_tape_backward(graft_tape *tape);
