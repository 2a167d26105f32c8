/* parameters.h - the trainable numbers of one network, in one flat allocation.
 *
 * Value, gradient and the two Adam moments are four arrays of `size` floats with the same layout,
 * so clipping, updating, saving and summing over shards are single loops. A parameter is a named
 * matrix at an offset; offsets are multiples of 16 floats and the gaps stay zero for ever.
 *
 * A network adds its parameters, seals the set once, and keeps the indices. */
#pragma once

#include "graph/base/arena.h"
#include "graph/base/rng.h"

typedef struct {
    const char *name;
    uint32_t rows;
    uint32_t cols;
    size_t offset;
    float spread; /* Initial values are uniform in [-spread, spread). */
} graft_parameter;

enum { GRAFT_PARAMETERS_MOST = 64 };

typedef struct {
    const char *name; /* Of the network, e.g. "encoder"; appears in checkpoints. */
    uint32_t count;
    graft_parameter items[GRAFT_PARAMETERS_MOST];
    size_t size;
    float *value;
    float *gradient; /* Of the last reduction over shards. */
    float *moment;   /* Adam: running mean of the gradient. */
    float *variance; /* Adam: running mean of its square. */
    uint64_t step;   /* Adam updates done. */
} graft_parameters;

/* An empty set; `name` is not copied. */
void graft_parameters_init(graft_parameters *set, const char *name);
/* Declares a matrix and returns its index. `name` is not copied and is unique in the set. */
uint32_t graft_parameters_add(graft_parameters *set, const char *name, uint32_t rows, uint32_t cols,
                              float spread);
/* Allocates everything in `arena` and draws the initial values; nothing can be added afterwards. */
void graft_parameters_seal(graft_parameters *set, graft_arena *arena, uint64_t seed);
/* The values of parameter `index`, (rows, cols) row-major. */
float *graft_parameters_value(const graft_parameters *set, uint32_t index);

/* A dense layer: weight (inputs, outputs), bias (1, outputs). */
typedef struct {
    uint32_t weight;
    uint32_t bias;
} graft_layer;

/* Declares a layer; `names` are those of weight and bias. Weights start uniform with the variance
 * gain^2 / inputs (gain 1.41 before a relu, He et al. 2015; 1 otherwise), biases at zero. */
graft_layer graft_parameters_layer(graft_parameters *set, const char *const names[2],
                                   uint32_t inputs, uint32_t outputs, float gain);
