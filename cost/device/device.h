/* device.h - a device that operators are measured on, and which operators it has as primitives.
 *
 * "cpu" is this machine, driven through oneDNN. "cuda", or "cuda:" and options (docs/gpu.md), is
 * the first NVIDIA GPU, driven through cuDNN. A name of devices/, or a path, is a program that
 * times what it is given (docs/devices.md); options may follow behind a ':'. Any other text names a
 * device whose costs were recorded somewhere else: it can price graphs from a database, but neither
 * measure nor run. */
#pragma once

#include "graph/base/env.h"

typedef struct graft_device graft_device;

/* Opens "cpu" or a GPU, or stands in for a recorded device, with `thread_count` threads; 0: one, or
 * what a program and its options say. GRAFT_BAD_INPUT for an empty name or options that there are
 * not; GRAFT_INTERNAL when oneDNN cannot be started; GRAFT_UNSUPPORTED when there is no back end
 * for GPUs, no GPU, a driver that is older than the toolkit, or a program that does not say what
 * it is or has another number of threads. */
GRAFT_MUST_USE graft_status graft_device_open(graft_env *env, const char *name,
                                              uint32_t thread_count, graft_device **device);
void graft_device_close(graft_device *device); /* NULL is allowed. */
/* The database of this machine's own measurements when the user names none: costs/cuda.costs for a
 * GPU, costs/programs.costs for programs, costs/cpu.costs for everything else, where
 * graft_file_cached says. */
const char *graft_device_database(graft_env *env, const char *name);

/* What costs are keyed with: processor, instruction set and threads; library and version. The
 * second is "" for a recorded device until a database has been read. */
const char *graft_device_name(const graft_device *device);
const char *graft_device_library(const graft_device *device);
/* Makes a recorded device the one of this name and library. */
void graft_device_identify(graft_device *device, const char *name, const char *library);
/* Whether it can measure and run, here and now. */
bool graft_device_present(const graft_device *device);
/* Whether its costs are answers of a program, here or when they were recorded: those of a runtime,
 * which chooses layouts itself. */
bool graft_device_is_program(const graft_device *device);
uint32_t graft_device_threads(const graft_device *device);

/* Whether the device has this operator as one primitive, whatever its attributes: a fused one is
 * a primitive of oneDNN with post-operations, and on a GPU one graph of cuDNN, or, where that has
 * no engine for it, a convolution and a kernel for the rest, and that is what is measured. Search
 * and training offer no rule whose target holds an operator for which this is false. Opaque nodes:
 * false. */
bool graft_device_has(const graft_device *device, uint32_t op);
