/* device_cpu.h - inside the CPU back end: the open device, and kernels under construction.
 *
 * A kernel is either a short program of oneDNN primitives, its operands being bound to memory
 * before each run, or one plain function of ours with its state. Families (device_cpu_*.c, plain.c)
 * build them; kernel.c lists, opens and runs them. */
#pragma once

#include "cost/device/backend.h"

#include "graph/base/lock.h"

#include <dnnl.h>

/* A const operand in the form that some primitive wants. Kernels that want the same data in the
 * same form share it: cells that are unrolled over time have one copy of their weights, not one per
 * step. Data is known by its address, which stays valid as long as a kernel uses it. */
typedef struct program_pack {
    struct program_pack *next;
    const float *given;
    dnnl_memory_desc_t have;
    dnnl_memory_desc_t want;
    void *data;
    size_t bytes;
    uint32_t user_count;
} program_pack;

enum { PROGRAM_STAGES = 5, PROGRAM_OPERANDS = 16, PROGRAM_ARGS = 8, PROGRAM_COPIES = 8 };

/* A primitive of the library's: machine code made for one stage of one implementation of one
 * signature, and the library's objects for its operands, which are bound to memory when a run needs
 * it. Kernels of the same signature share it, so a network that repeats an operator has these once,
 * and more of all of them stay in the caches. */
typedef struct program_primitive {
    struct program_primitive *next;
    graft_signature signature;
    char name[GRAFT_KERNEL_NAME_BYTES];
    uint32_t stage;
    uint32_t user_count;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[PROGRAM_ARGS];
    void *bound[PROGRAM_ARGS]; /* Where each lies. */
    uint32_t arg_count;
} program_primitive;

/* Where an implementation of a signature was found, since going through all of them takes longer
 * than opening it: a network repeats operators, and a session may plan it anew for other sizes. */
typedef struct program_found {
    struct program_found *next;
    graft_signature signature;
    char name[GRAFT_KERNEL_NAME_BYTES]; /* "": any. */
    uint32_t family;
    uint32_t variant;
} program_found;

enum { PROGRAM_FOUND_LISTS = 256 };

struct graft_device {
    graft_device_head head;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    uint64_t shared_from; /* Operations, or bytes, from which on threads share a kernel. */
    pthread_mutex_t lock; /* Of the lists below. */
    program_pack *packs;
    program_primitive *primitives;
    program_found *found[PROGRAM_FOUND_LISTS]; /* By hash. */
};

/* Copies of a const operand, or of an input of a plain function, for measuring: see
 * graft_kernel_copy_weights. */
typedef struct program_copies {
    char *data;
    size_t bytes; /* Of all of them. */
    size_t step;  /* From one to the next; less than the size of one when they overlap. */
    bool is_operand;
    uint8_t number; /* Of the operand or input. */
} program_copies;

typedef enum operand_role {
    ROLE_INPUT,     /* Input `slot` of the operator. */
    ROLE_OUTPUT,    /* Output `slot`. */
    ROLE_WORKSPACE, /* Between stages, at `offset` of the workspace. */
    ROLE_FIXED      /* A const operand, packed or as given. */
} operand_role;

typedef struct program_operand {
    void *data; /* Of const ones. */
    size_t offset;
    void *owned;        /* Data of the builder's own, freed with the kernel. */
    program_pack *pack; /* Packed data, given back with the kernel. */
    uint8_t role;
    uint8_t slot;
    dnnl_memory_desc_t desc;
} program_operand;

typedef struct program_stage {
    program_primitive *shared;      /* Given back with the kernel. */
    uint8_t operands[PROGRAM_ARGS]; /* Which operand each argument is. */
} program_stage;

/* One user less; the last one frees it. NULL is allowed. */
void graft_program_release(graft_device *device, program_pack *pack);
void graft_program_release_primitive(graft_device *device, program_primitive *primitive);

/* Runs a plain kernel on what it is bound to. */
typedef void (*plain_run)(const graft_kernel *kernel);

/* Makes `kernel` the plain function `run`, of a name and, unless only that is wanted, with a copy
 * of the `bytes` bytes of `state` (NULL and 0: none). GRAFT_NO_MEMORY. */
graft_status graft_program_plain(graft_env *env, graft_kernel *kernel, const char *name,
                                 plain_run run, const void *state, size_t bytes);

/* What a run reads comes first: in a network of many small operators it has left the caches since
 * the last run. */
struct graft_kernel {
    graft_device *device; /* graft_kernel_head */
    const graft_kernel_facts *own_facts;
    plain_run plain; /* NULL for programs. */
    void *state;     /* Of `plain`; freed with the kernel. */
    const float *in[GRAFT_MAX_INPUTS];
    float *out[GRAFT_MAX_OUTPUTS];
    uint32_t turn_count; /* Copies of const operands; 0 when there is one. */
    uint32_t turn;
    uint32_t turn_stride;
    uint32_t copied_count;
    program_copies copies[PROGRAM_COPIES];
    uint32_t stage_count;
    uint32_t operand_count;
    program_stage stages[PROGRAM_STAGES];
    void *places[PROGRAM_OPERANDS]; /* Where each operand lies in the run at hand. */
    graft_signature signature;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    graft_kernel_facts facts;
    bool dry;   /* Only the name is wanted. */
    bool alone; /* Its primitives are its own: what they know is more than the signature says. */
    int thread_count;
    const float *constants[GRAFT_MAX_INPUTS];
    /* The last: what is beyond the count is not set. */
    program_operand operands[PROGRAM_OPERANDS];
};

/* device.c. Fails as graft_device_open; close the device also then. */
graft_status graft_cpu_open(graft_env *env, const char *text, uint32_t thread_count,
                            graft_device **device);
void graft_cpu_close(graft_device *device);

/* Builds implementation number `variant` of a family into `kernel` (signature, outputs, constants
 * and `dry` are set). GRAFT_UNSUPPORTED, without a message, when there is no such variant: the
 * family does not fit the signature or has no more. When `dry`, only the name need be set. */
typedef graft_status kernel_family(graft_env *env, graft_kernel *kernel, uint32_t variant);

/* Whether the library multiplies matrices for the convolution, for want of loops whose windows
 * reach so far over an edge of the image. */
bool graft_cpu_conv_reaches_far(graft_env *env, graft_kernel *kernel);

/* See the files for what each does. */
kernel_family graft_cpu_open_conv_padded, graft_cpu_open_conv_taps, graft_cpu_open_conv_groups,
    graft_cpu_open_conv_direct, graft_cpu_open_conv_binary, graft_cpu_open_conv_blocked,
    graft_cpu_open_conv_winograd, graft_cpu_open_plain_winograd, graft_cpu_open_conv_apart,
    graft_cpu_open_matmul, graft_cpu_open_inner_product, graft_cpu_open_panels,
    graft_cpu_open_tall_panels, graft_cpu_open_swish, graft_cpu_open_eltwise,
    graft_cpu_open_vector_eltwise, graft_cpu_open_binary, graft_cpu_open_batch_norm,
    graft_cpu_open_pool, graft_cpu_open_softmax, graft_cpu_open_plain_softmax,
    graft_cpu_open_reduction, graft_cpu_open_layer_norm, graft_cpu_open_concat,
    graft_cpu_open_reorder, graft_cpu_open_plain_norm, graft_cpu_open_plain,
    graft_cpu_open_quantised, graft_cpu_open_integers, graft_cpu_open_bytes,
    graft_cpu_open_integer_sum, graft_cpu_open_body;
