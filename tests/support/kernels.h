/* kernels.h - for the tests of cost/: data for signatures, and kernels against the reference. */
#pragma once

#include "cost/cost.h"
#include "cost/cpu/kernel.h"
#include "graph/base/rng.h"

/* A device, by default the CPU with one thread, and costs of one; closed when the case ends. */
graft_device *check_device_open(graft_env *env);
graft_device *check_device_named(graft_env *env, const char *name, uint32_t threads);
/* Three threads of the CPU, which share every kernel, however small. */
graft_device *check_device_shared(graft_env *env);
graft_cost *check_cost_open(graft_env *env, graft_device *device, const char *path);

/* A database of which entries of that device and library are read and added; and its end. */
graft_database *check_database_open(graft_env *env, const char *path, const char *device,
                                    const char *library);
void check_database_save(graft_env *env, graft_database *database);

/* The signature of an operator applied to inputs of these shapes: image operands arrive in
 * `image_layout` where they can, then every operand is as graft_layout_alternatives wants it:
 * the last choice for blocked images, the first for others. */
graft_signature check_signature(graft_env *env, uint32_t op, const int32_t *attrs,
                                const graft_shape *shapes, uint32_t const_mask,
                                uint32_t image_layout);

/* Where row-major element `i` of a tensor lies in a layout; written without the code under test. */
size_t check_place(const graft_shape *shape, uint32_t layout, size_t i);

/* Runs every implementation of `s` on normal numbers, with outputs and workspace full of NaN
 * beforehand, and compares with the reference. Fails the test, naming implementation and element.
 * Returns the number of implementations. */
uint32_t check_kernels(graft_env *env, graft_device *device, graft_rng *rng,
                       const graft_signature *s);

/* The same on a device of several threads; kernels of ours have to give what they give on `one`, to
 * the bit. Returns their number. */
uint32_t check_kernels_shared(graft_env *env, graft_device *one, graft_device *several,
                              graft_rng *rng, const graft_signature *s);

/* Fails the test where two tensors differ by more than `relative` times (1 + the largest of
 * `want`). A NaN equals a NaN only. */
void check_close(const float *got, const float *want, size_t count, double relative,
                 const char *what);
