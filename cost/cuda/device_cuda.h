/* device_cuda.h - inside the back end for NVIDIA GPUs: the open device, and kernels.
 *
 * A kernel is a short list of stages: plans of cuDNN and jobs of our own kernels, over operands
 * that are bound to memory before it runs. lower.c makes them from signatures. These two structures
 * are this back end's own; the rest of Graft sees their heads (backend.h). */
#pragma once

#include "cost/cuda/cudnn_graph.h"
#include "cost/cuda/kernels.h"
#include "cost/cuda/plans.h"
#include "cost/device/backend.h"

/* A const operand on the device. Kernels that read the same data in the same form share it: cells
 * that are unrolled over time have one copy of their weights. Data is known by its address. */
typedef struct cuda_pack {
    struct cuda_pack *next;
    const float *given;
    size_t count;
    bool is_nhwc; /* A filter with channels last. */
    void *data;
    uint32_t user_count;
} cuda_pack;

enum { PLANNERS_MOST = 16 };

struct graft_device {
    graft_device_head head;
    cudnn_target target;
    cudaStream_t stream;
    cudaEvent_t events[2];
    bool has[GRAFT_OP_COUNT]; /* All but those that came without a kernel for it. */
    int gpu;
    bool keeps_gaps; /* Times launches one by one, not as a replayed graph. */
    bool is_wide;    /* Lists as many engines as there is room for. */
    bool is_warm;    /* Measures with one copy of the weights. */
    bool is_described;
    size_t cache_bytes;
    pthread_mutex_t lock; /* Of the list below. */
    cuda_pack *packs;
    cuda_cache cache;
    cudnn_target planners[PLANNERS_MOST]; /* For threads that plan: opened when first wanted. */
};

enum { KERNEL_STAGES = 4, KERNEL_OPERANDS = 12, STAGE_OPERANDS = 6, TURNS_MOST = 1024 };
/* Bytes of a const operand of which copies are made for measuring: smaller ones do not count. */
enum { CUDA_LEAST_COPIED = 4096 };

typedef enum operand_role {
    ROLE_INPUT,     /* Input `slot` of the operator. */
    ROLE_OUTPUT,    /* Output `slot`. */
    ROLE_WORKSPACE, /* Between stages, at `offset` of the workspace. */
    ROLE_FIXED,     /* A const operand. */
    ROLE_NUMBER     /* A number of the host's: scalars[slot]. */
} operand_role;

typedef struct kernel_operand {
    uint8_t role; /* operand_role */
    uint8_t slot;
    size_t offset;
    size_t bytes;
    cuda_pack *pack;
    void *copies; /* For measuring: turn_count - 1 of them, `bytes` rounded up apart. */
    void *place;  /* Where it lies, once bound; of the first turn. */
} kernel_operand;

typedef enum stage_kind { STAGE_JOB, STAGE_PLAN, STAGE_SOFTMAX } stage_kind;

typedef struct kernel_stage {
    stage_kind kind;
    cuda_job job;
    uint32_t
        operands[STAGE_OPERANDS]; /* Jobs: three inputs, then two outputs. Plans: by uid - 1. */
    uint32_t operand_count;
    int64_t softmax[3]; /* outer, size, inner */
} kernel_stage;

/* How a convolution or product is run: with what follows fused, with that in a kernel of ours, or,
 * of products, as a convolution. */
typedef enum cuda_way { CUDA_FUSED, CUDA_SPLIT, CUDA_CONV } cuda_way;

struct graft_kernel {
    graft_device *device; /* graft_kernel_head */
    const graft_kernel_facts *own_facts;
    graft_kernel_facts facts;
    graft_signature signature;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    bool dry; /* Only names are wanted: nothing is put on the device. */
    cuda_way way;
    const float *constants[GRAFT_MAX_INPUTS];

    kernel_operand operands[KERNEL_OPERANDS];
    kernel_stage stages[KERNEL_STAGES];
    uint32_t operand_count;
    uint32_t stage_count;
    size_t workspace_bytes; /* Without what aligning it takes. */
    float scalars[1];

    const cudnn_target *target; /* Of the thread that plans. */
    bool has_graph;             /* One stage is a plan, of this graph, */
    cudnn_graph graph;          /* which belongs to the recipe once there is one. */
    cuda_recipe *recipe;
    cudnnBackendDescriptor_t plan; /* The recipe's. */
    size_t plan_offset;            /* Of its workspace, behind everything else. */
    cudnnBackendDescriptor_t variants[TURNS_MOST];

    uint32_t turn_count; /* Copies of const operands; 0 when there is one. */
    uint32_t turn;
};

extern const graft_backend cuda_backend; /* backend_cuda.c */

/* ----------------------------------------------------------- device_cuda.c */

/* GRAFT_OK, GRAFT_NO_MEMORY or GRAFT_INTERNAL with CUDA's words for `what`. */
graft_status cuda_status(graft_env *env, cudaError_t result, const char *what);

graft_status cuda_device_open(graft_env *env, const char *text, uint32_t thread_count,
                              graft_device **device);
void cuda_device_close(graft_device *device);
bool cuda_device_present(const graft_device *device);
graft_status cuda_device_allocate(graft_env *env, graft_device *device, size_t bytes,
                                  void **memory);
void cuda_device_release(graft_device *device, void *memory);
graft_status cuda_device_write(graft_env *env, graft_device *device, void *to, const float *from,
                               size_t count);
graft_status cuda_device_read(graft_env *env, graft_device *device, float *to, const void *from,
                              size_t count);
graft_status cuda_device_time(graft_env *env, graft_device *device, graft_device_body body,
                              void *context, uint32_t runs, double *ns);

/* Something captured as a CUDA graph, to be timed as often as wanted: capturing a thousand launches
 * takes far longer than running them. */
typedef struct cuda_replay {
    graft_device *device;
    graft_device_body body;
    void *context;
    cudaGraph_t graph; /* NULL: launches are timed with their gaps, one by one. */
    cudaGraphExec_t exec;
    uint32_t runs; /* Of the body, in one replay. */
} cuda_replay;

/* Runs the body once, captures it `runs` times (TURNS_MOST at most), and replays that once.
 * GRAFT_UNSUPPORTED when what runs cannot be captured. */
graft_status cuda_replay_open(graft_env *env, graft_device *device, graft_device_body body,
                              void *context, uint32_t runs, cuda_replay *replay);
/* Nanoseconds of one run, of as many whole replays as have `runs` of them. */
graft_status cuda_replay_time(graft_env *env, const cuda_replay *replay, uint32_t runs, double *ns);
void cuda_replay_close(cuda_replay *replay); /* One of zeros is allowed. */

/* What thread `i` below PLANNERS_MOST plans for: with a handle of its own, which the device keeps.
 * One thread at a time asks. */
graft_status cuda_device_planner(graft_env *env, graft_device *device, uint32_t i,
                                 const cudnn_target **target);
static inline cudnnDataType_t cuda_data_type(const graft_device *device)
{
    cuda_type type = device->target.type;
    return type == CUDA_F16    ? CUDNN_DATA_HALF
           : type == CUDA_BF16 ? CUDNN_DATA_BFLOAT16
                               : CUDNN_DATA_FLOAT;
}

/* Waits for all that was launched. `what` runs then: it is named when something failed. */
graft_status cuda_device_wait(graft_env *env, graft_device *device, const char *what);

/* A const operand of `count` elements on the device, from the list or new; `filter`, unless NULL,
 * is the shape of a filter that is wanted channels last. */
graft_status cuda_pack_obtain(graft_env *env, graft_device *device, const float *given,
                              size_t count, const graft_shape *filter, cuda_pack **pack);
void cuda_pack_release(graft_device *device, cuda_pack *pack); /* NULL is allowed. */

/* ------------------------------------------------------------------ lower.c */

/* A way to run an operator. */
typedef struct cuda_family {
    const char *name;
    uint32_t engines_most; /* 0: no plan of cuDNN is in it, the family is the implementation. */
    cuda_way way;
    /* Fills a kernel whose device, signature, outputs, constants, way and `dry` are set;
     * GRAFT_UNSUPPORTED without a message when it does not fit. */
    graft_status (*lower)(graft_env *env, graft_kernel *kernel);
} cuda_family;

/* In the order of preference when nothing has been measured. `i` below the count. */
uint32_t cuda_family_count(void);
const cuda_family *cuda_family_at(uint32_t i);
/* Whether a family is for operators that nothing else runs. */
bool cuda_family_is_last_resort(const graft_signature *signature, const char *name);

/* ------------------------------------------------------------ kernel_cuda.c */

graft_status cuda_kernel_list(graft_env *env, graft_device *device,
                              const graft_signature *signature,
                              graft_kernel_name names[GRAFT_KERNEL_MOST], uint32_t *count);
graft_status cuda_kernel_open(graft_env *env, graft_device *device,
                              const graft_signature *signature, const char *name,
                              const float *const *constants, graft_kernel **kernel);
/* Makes the plans of all implementations, for the cache, with the target of the calling thread;
 * those that cannot be made are left out. Fails as listing does. */
graft_status cuda_kernel_plan_all(graft_env *env, graft_device *device, const cudnn_target *target,
                                  const graft_signature *signature);
void cuda_kernel_close(graft_kernel *kernel);
graft_status cuda_kernel_copy_weights(graft_env *env, graft_kernel *kernel, uint32_t count,
                                      double part);
/* Copies of `bytes` of weights that together exceed twice the cache; at most TURNS_MOST. */
uint32_t cuda_kernel_turns(size_t bytes, size_t cache_bytes);
uint32_t cuda_kernel_turn_count(const graft_kernel *kernel);
void cuda_kernel_turn(graft_kernel *kernel);
graft_status cuda_kernel_bind(graft_env *env, graft_kernel *kernel, const float *const *inputs,
                              float *const *outputs, void *workspace);
/* GRAFT_UNSUPPORTED with a message when an engine fails that others may stand in for. */
graft_status cuda_kernel_run(graft_env *env, graft_kernel *kernel);

/* ------------------------------------------------------------ ahead_cuda.c */

uint32_t cuda_planner_count(void);
/* Plans all implementations of `count` signatures on as many threads as the machine has processors,
 * so that what comes next finds them in the cache. What cannot be planned is left to those who ask
 * for it. Returns how many were planned before somebody interrupted. */
uint32_t cuda_plan_ahead(graft_env *env, graft_device *device, const graft_signature *signatures,
                         uint32_t count);

/* ----------------------------------------------------------- measure_cuda.c */

graft_status cuda_measure(graft_env *env, graft_device *device, const graft_signature *signatures,
                          uint32_t count, const graft_measure_options *options,
                          graft_cost_entry *entries);
