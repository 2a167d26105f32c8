/* kernel.h - implementations of operators on a device: listed, prepared, run.
 *
 * One signature has several implementations (a library's kernels in several layouts and algorithms,
 * plain C of ours). Each is known by a name such as "direct:brgconv_1x1:avx512_core" or "plain";
 * the cost database records which one won, and the executor opens that one. An implementation that
 * works in another layout than the signature's converts its operands itself, at each run, and that
 * time is its own. Weights are packed once, when the kernel is opened. */
#pragma once

#include "cost/database/signature.h"
#include "cost/device/device.h"

enum { GRAFT_KERNEL_NAME_BYTES = 64, GRAFT_KERNEL_MOST = 16 };

typedef struct graft_kernel graft_kernel;

typedef struct graft_kernel_name {
    char text[GRAFT_KERNEL_NAME_BYTES];
} graft_kernel_name;

/* The implementations of `signature`, at most GRAFT_KERNEL_MOST, in a fixed order.
 * GRAFT_UNSUPPORTED when the device is not present or has none. */
GRAFT_MUST_USE graft_status graft_kernel_list(graft_env *env, graft_device *device,
                                              const graft_signature *signature,
                                              graft_kernel_name names[GRAFT_KERNEL_MOST],
                                              uint32_t *count);

/* Prepares the implementation `name`, or the first one when it is NULL. `constants` has an entry
 * per input: row-major data of const operands, which must outlive the kernel, NULL for the others.
 * GRAFT_UNSUPPORTED when there is no implementation of that name, GRAFT_NO_MEMORY when packed
 * weights do not fit. */
GRAFT_MUST_USE graft_status graft_kernel_open(graft_env *env, graft_device *device,
                                              const graft_signature *signature, const char *name,
                                              const float *const *constants, graft_kernel **kernel);
void graft_kernel_close(graft_kernel *kernel); /* NULL is allowed. */

/* What is known of a kernel that is open. */
typedef struct graft_kernel_facts {
    char name[GRAFT_KERNEL_NAME_BYTES];
    size_t workspace_bytes; /* That a run needs besides its operands; the caller aligns it to 64. */
    size_t packed_bytes;    /* Of weights... */
    uint64_t pack_ns;       /* ...and the time that packing them took. */
} graft_kernel_facts;
const graft_kernel_facts *graft_kernel_facts_of(const graft_kernel *kernel);

/* For measuring only. A run in a loop finds its weights in the cache; in a whole network they come
 * from further away. This keeps `count` copies of the const operands, and each turn makes the
 * next run read another one. One begins `part` of its size, above 0 and at most 1, behind the one
 * before: below 1 they overlap, so that they take the bytes that are wanted, and results are
 * nonsense. GRAFT_NO_MEMORY when they do not fit. */
GRAFT_MUST_USE graft_status graft_kernel_copy_weights(graft_env *env, graft_kernel *kernel,
                                                      uint32_t count, double part);
void graft_kernel_turn(graft_kernel *kernel);
/* Reads all copies once: they then lie where they do while one after the other is read. */
void graft_kernel_recall(graft_kernel *kernel);

/* Says where operands lie; entries of const inputs are not read. Memory may be bound anew at any
 * time. When the signature is in place, inputs[3] must be outputs[0]. */
GRAFT_MUST_USE graft_status graft_kernel_bind(graft_env *env, graft_kernel *kernel,
                                              const float *const *inputs, float *const *outputs,
                                              void *workspace);
/* Runs once on what is bound; kernels of a device share objects, so one runs at a time.
 * GRAFT_INTERNAL when the library reports a failure. */
GRAFT_MUST_USE graft_status graft_kernel_run(graft_env *env, graft_kernel *kernel);
