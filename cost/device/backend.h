/* backend.h - what a kind of device provides behind device.h, kernel.h and measure.h.
 *
 * A back end is one constant table of functions. Every device begins with a graft_device_head and
 * every kernel with a graft_kernel_head, whatever follows; backend.c reads those and calls through
 * the table. oneDNN's back end is linked in; the one for NVIDIA GPUs lies in a library of its own,
 * graft-cuda.so beside the program, and is loaded when a device "cuda..." is asked for, so that
 * nobody needs CUDA's libraries who does not use them. */
#pragma once

#include "cost/database/entry.h"
#include "cost/measure/measure.h"

/* Something that runs once on a device; called again and again while it is timed. */
typedef graft_status (*graft_device_body)(graft_env *env, void *context);

typedef struct graft_backend {
    uint32_t abi; /* GRAFT_BACKEND_ABI of the header that it was compiled with. */

    /* `text` is the device's name as the user gave it. Fails as graft_device_open does. */
    graft_status (*open)(graft_env *env, const char *text, uint32_t thread_count,
                         graft_device **device);
    void (*close)(graft_device *device);
    bool (*present)(const graft_device *device);

    /* As declared in kernel.h. */
    graft_status (*kernel_list)(graft_env *env, graft_device *device,
                                const graft_signature *signature,
                                graft_kernel_name names[GRAFT_KERNEL_MOST], uint32_t *count);
    graft_status (*kernel_open)(graft_env *env, graft_device *device,
                                const graft_signature *signature, const char *name,
                                const float *const *constants, graft_kernel **kernel);
    void (*kernel_close)(graft_kernel *kernel);
    graft_status (*kernel_copy_weights)(graft_env *env, graft_kernel *kernel, uint32_t count,
                                        double part);
    void (*kernel_turn)(graft_kernel *kernel);
    void (*kernel_recall)(graft_kernel *kernel); /* NULL with `measure`. */
    graft_status (*kernel_bind)(graft_env *env, graft_kernel *kernel, const float *const *inputs,
                                float *const *outputs, void *workspace);
    graft_status (*kernel_run)(graft_env *env, graft_kernel *kernel);

    /* See graft_device_prepare; NULL: nothing takes long. */
    uint32_t (*prepare)(graft_env *env, graft_device *device, const graft_signature *signatures,
                        uint32_t count);

    /* As graft_measure does; NULL: measure.c's protocol. */
    graft_status (*measure)(graft_env *env, graft_device *device, const graft_signature *signatures,
                            uint32_t count, const graft_measure_options *options,
                            graft_cost_entry *entries);

    /* Memory of the device; all five NULL: it is the processor's. See the functions below. */
    graft_status (*allocate)(graft_env *env, graft_device *device, size_t bytes, void **memory);
    void (*release)(graft_device *device, void *memory);
    graft_status (*write)(graft_env *env, graft_device *device, void *to, const float *from,
                          size_t count);
    graft_status (*read)(graft_env *env, graft_device *device, float *to, const void *from,
                         size_t count);
    graft_status (*time)(graft_env *env, graft_device *device, graft_device_body body,
                         void *context, uint32_t runs, double *ns);
} graft_backend;

/* Changes when this header or a structure that it names does. */
#define GRAFT_BACKEND_ABI                                                                          \
    (3U << 24 | (uint32_t)sizeof(graft_backend) << 12 | (uint32_t)sizeof(graft_signature))

typedef struct graft_device_head {
    const graft_backend *backend; /* NULL for a recorded device. */
    char name[256];
    char library[128];
    uint32_t thread_count;
    uint32_t number_bytes; /* With memory of its own: of a number there; 0: 4. */
    bool groups;           /* It computes groups on integers (cost/plan/integers.h) and shuffles of
                              channels (cost/plan/groups.h) as one. */
    const bool *has; /* By operator; NULL: there are primitives for all, but for what is fused. */
} graft_device_head;

typedef struct graft_kernel_head {
    graft_device *device;
    const graft_kernel_facts *facts;
} graft_kernel_head;

static inline graft_device_head *graft_device_head_of(graft_device *device)
{
    return (graft_device_head *)(void *)device;
}

static inline const graft_device_head *graft_device_head_at(const graft_device *device)
{
    return (const graft_device_head *)(const void *)device;
}

/* The back end for oneDNN: kernel.c. Not in builds without oneDNN. */
extern const graft_backend graft_backend_cpu;

/* The one for programs that answer questions: device_program.c. Likewise. */
extern const graft_backend graft_backend_program;

/* What graft-cuda.so exports under the name GRAFT_BACKEND_SYMBOL. */
typedef const graft_backend *(*graft_backend_find)(void);
#define GRAFT_BACKEND_SYMBOL "graft_backend_cuda"

/* Does beforehand, on all processors, what makes opening the implementations of these signatures
 * slow: where a library compiles, what it compiles is kept. Returns for how many that was done. */
uint32_t graft_device_prepare(graft_env *env, graft_device *device,
                              const graft_signature *signatures, uint32_t count);

/* Whether tensors lie in the processor's memory. */
bool graft_device_shares_memory(const graft_device *device);
/* Memory for tensors of `bytes` bytes of binary32, whatever the device stores them as; aligned to
 * at least 64 bytes and filled with 0. GRAFT_NO_MEMORY. */
GRAFT_MUST_USE graft_status graft_device_allocate(graft_env *env, graft_device *device,
                                                  size_t bytes, void **memory);
void graft_device_release(graft_device *device, void *memory); /* NULL is allowed. */
/* Copies `count` numbers in and out; the device's own type is converted. GRAFT_INTERNAL. */
GRAFT_MUST_USE graft_status graft_device_write(graft_env *env, graft_device *device, void *to,
                                               const float *from, size_t count);
GRAFT_MUST_USE graft_status graft_device_read(graft_env *env, graft_device *device, float *to,
                                              const void *from, size_t count);
/* Nanoseconds per run of `body` over `runs` runs, at least 1, by the device's own clock (the
 * processor's: clock.h; a GPU's: events). Fails as the body does. */
GRAFT_MUST_USE graft_status graft_device_time(graft_env *env, graft_device *device,
                                              graft_device_body body, void *context, uint32_t runs,
                                              double *ns);
