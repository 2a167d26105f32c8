/* program.h - building blocks of oneDNN programs: descriptors, operands, stages.
 *
 * Every call that can fail translates oneDNN's status: what the library does not implement becomes
 * GRAFT_UNSUPPORTED without a message (a family then has no such variant), the rest carries the
 * library's words. */
#pragma once

#include "cost/cpu/device_cpu.h"

/* GRAFT_OK, GRAFT_UNSUPPORTED, GRAFT_NO_MEMORY or GRAFT_INTERNAL. */
graft_status graft_program_status(graft_env *env, dnnl_status_t status, const char *what);

/* The tensor `shape` in `layout`. Scalars become one element on one axis. */
void graft_program_describe(const graft_shape *shape, uint32_t layout, dnnl_memory_desc_t *desc);
/* The same, with axes of size 1 in front until there are `rank`. */
void graft_program_describe_ranked(const graft_shape *shape, uint32_t layout, uint32_t rank,
                                   dnnl_memory_desc_t *desc);
/* Row-major, or with the format left to the library. */
void graft_program_describe_dims(uint32_t rank, const int64_t *dims, bool any,
                                 dnnl_memory_desc_t *desc);
/* Descriptors of input or output `k` of the kernel's signature. */
void graft_program_describe_input(const graft_kernel *kernel, uint32_t k, dnnl_memory_desc_t *desc);
void graft_program_describe_output(const graft_kernel *kernel, uint32_t k,
                                   dnnl_memory_desc_t *desc);

/* Attributes: scratchpad in our workspace; then post-operations in the order of the calls. */
typedef struct program_attr {
    dnnl_post_ops_t post_ops;
    dnnl_primitive_attr_t attr;
} program_attr;

/* A post-operation or a primitive that applies an elementwise function. */
typedef struct program_function {
    dnnl_alg_kind_t kind;
    float alpha;
    float beta;
} program_function;

program_attr graft_program_attr_open(void);
void graft_program_attr_close(const program_attr *attr);
void graft_program_forget(const dnnl_primitive_desc_t *chosen);
/* Attributes, and a descriptor that is not chosen yet, until the function ends. */
#define PROGRAM_ATTR(name)                                                                         \
    __attribute__((cleanup(graft_program_attr_close))) program_attr name = graft_program_attr_open()
#define PROGRAM_CHOSEN(name)                                                                       \
    __attribute__((cleanup(graft_program_forget))) dnnl_primitive_desc_t name = NULL
graft_status graft_program_attr_sum(graft_env *env, program_attr *attr);
graft_status graft_program_attr_binary(graft_env *env, program_attr *attr,
                                       const dnnl_memory_desc_t *operand);
/* What computes a GRAFT_ACT_..., NULL for GRAFT_ACT_NONE; adding that one does nothing. */
const program_function *graft_program_activation(int32_t activation);
graft_status graft_program_attr_activation(graft_env *env, program_attr *attr, int32_t activation);
/* Completes `attr`; nothing may be added afterwards. */
graft_status graft_program_attr_finish(graft_env *env, program_attr *attr);

/* Whether the library's implementation `variant` (0: its favourite) exists for an operation
 * descriptor; gives a descriptor to be destroyed by the caller. */
graft_status graft_program_choose(graft_env *env, graft_kernel *kernel, const void *op_desc,
                                  const program_attr *attr, uint32_t variant,
                                  dnnl_primitive_desc_t *chosen);
/* Names the kernel "family:implementation". */
void graft_program_name(graft_kernel *kernel, const char *family, const_dnnl_primitive_desc_t pd);
const dnnl_memory_desc_t *graft_program_query(const_dnnl_primitive_desc_t pd, dnnl_query_t what,
                                              int index);

/* Makes input `k`, which has the form `have`, available as `want`: packed once when it is const,
 * converted by a stage of its own when the forms differ. Gives the operand's number. */
graft_status graft_program_input(graft_env *env, graft_kernel *kernel, uint32_t k,
                                 const dnnl_memory_desc_t *have, const dnnl_memory_desc_t *want,
                                 uint32_t *operand);
/* The same, of an input that is not const, within zeros: `want` is larger, and `before` says of
 * each axis how many elements of it come first. */
graft_status graft_program_padded(graft_env *env, graft_kernel *kernel, uint32_t k,
                                  const dnnl_memory_desc_t *have, const dnnl_memory_desc_t *want,
                                  const dnnl_dims_t before, uint32_t *operand);
/* Output 0 in the form `want`: the caller's memory when that is `have`, else workspace, which
 * graft_program_deliver converts after the last stage. */
uint32_t graft_program_output(graft_kernel *kernel, const dnnl_memory_desc_t *have,
                              const dnnl_memory_desc_t *want);
graft_status graft_program_deliver(graft_env *env, graft_kernel *kernel,
                                   const dnnl_memory_desc_t *have, uint32_t operand);
/* A stage that copies or converts one operand to another. */
graft_status graft_program_reorder(graft_env *env, graft_kernel *kernel, uint32_t from,
                                   uint32_t to);
/* A const operand with data of the builder's own; `data` is copied. */
graft_status graft_program_fixed(graft_env *env, graft_kernel *kernel,
                                 const dnnl_memory_desc_t *desc, const void *data,
                                 uint32_t *operand);

/* For kernels that are a plain function: const input `k`, row-major, in a form of the builder's own
 * of `count` floats, made by `fill` once for all kernels on the device that read the same data. No
 * two forms of the same data may have the same count. */
typedef void (*program_fill)(const graft_kernel *kernel, const float *given, void *packed);
graft_status graft_program_packed(graft_env *env, graft_kernel *kernel, uint32_t k, size_t count,
                                  program_fill fill, uint32_t *operand);
/* The same: `count` floats that are undefined when a run begins. */
uint32_t graft_program_workspace(graft_kernel *kernel, size_t count);
/* Where an operand of theirs lies in the run at hand. */
void *graft_program_place(const graft_kernel *kernel, uint32_t operand);

typedef struct program_arg {
    int arg; /* DNNL_ARG_... */
    uint32_t operand;
} program_arg;

/* The primitive of `pd` as the next stage; its scratchpad is put into the workspace. */
graft_status graft_program_stage(graft_env *env, graft_kernel *kernel,
                                 const_dnnl_primitive_desc_t pd, const program_arg *args,
                                 uint32_t arg_count);

/* An argument of a primitive, in the form that its operand has and in the one that is wanted. */
enum { PROGRAM_RESULT = GRAFT_MAX_INPUTS, PROGRAM_ZEROS, PROGRAM_ONES };
typedef struct program_use {
    int arg;        /* DNNL_ARG_... */
    uint32_t input; /* The input's number; PROGRAM_RESULT: output 0; or a constant tensor. */
    const dnnl_memory_desc_t *have;
    const dnnl_memory_desc_t *want;
} program_use;

/* A kernel that is one primitive, but for conversions of its inputs. */
typedef struct program_one {
    const char *family;
    const void *desc; /* Of the operation. */
    uint32_t variant;
    const program_use *uses;
    uint32_t use_count;
} program_one;
graft_status graft_program_open_one(graft_env *env, graft_kernel *kernel, const program_one *one);
