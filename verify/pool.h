/* pool.h - independent pieces of work in child processes.
 *
 * A solver may crash, run out of memory or never come back. So work is handed to forked children
 * one item at a time over a pipe, and the answer comes back over another. A child that dies loses
 * its item only; one that exceeds the wall-clock limit is killed. Results are kept by item: they do
 * not depend on the number of children or on who did what. */
#ifndef GRAFT_POOL_H
#define GRAFT_POOL_H

#include "graph/file.h"

typedef struct graft_pool_job {
    const char *label; /* For the progress bar, with `unit`. */
    const char *unit;
    uint32_t item_count;
    uint64_t limit_ns;     /* Wall-clock limit of one item; 0: none. */
    uint64_t memory_bytes; /* That a child may take beyond what it is forked with; 0: any. */
    /* Does item `item` in a child and appends its answer to `answer`. The child's env is a copy:
     * nothing but the answer comes back. env->unit is reset before each item. */
    void (*run)(graft_env *env, void *context, uint32_t item, graft_buffer *answer);
    void *context;
} graft_pool_job;

typedef enum graft_pool_outcome {
    GRAFT_POOL_DONE,
    GRAFT_POOL_CRASHED,   /* The child died: a signal, an abort. */
    GRAFT_POOL_EXHAUSTED, /* The child ended for want of memory. */
    GRAFT_POOL_KILLED     /* Past the wall-clock limit. */
} graft_pool_outcome;

/* "crashed", "ran out of memory"...: what happened to an item. */
const char *graft_pool_outcome_name(uint32_t outcome);

/* What a process that proves or refutes rules may take: far more than the limits of proofs
 * (prove.h) let it need. A last line, for it depends on the machine where memory ends. */
static const uint64_t graft_pool_prover_bytes = UINT64_C(3) << 30;

typedef struct graft_pool_result {
    uint8_t *answer; /* `bytes` of them, in the caller's arena; NULL unless done. */
    size_t bytes;
    uint8_t outcome; /* graft_pool_outcome */
} graft_pool_result;

/* Runs every item in env->thread_count children; `results` has item_count entries. A crash or kill
 * is a result, not a failure. GRAFT_NO_MEMORY when no child can be started; GRAFT_INTERRUPTED on a
 * signal, after the children have been stopped. */
GRAFT_MUST_USE graft_status graft_pool_run(graft_env *env, graft_arena *arena,
                                           const graft_pool_job *job, graft_pool_result *results);

#endif
