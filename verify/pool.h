/* pool.h - independent pieces of work in child processes.
 *
 * A solver may crash, run out of memory or never come back. So work is handed to forked children
 * one item at a time over a pipe; each answers in a file that it shares with its parent. A child
 * that dies loses its item only; one that exceeds the wall-clock limit is killed. Results are kept
 * by item: they do not depend on the number of children or on who did what.
 *
 * Where addresses decide. Z3 breaks some ties by comparing pointers: in which of two ways it goes,
 * and what that takes, depends on what the process had allocated before. A fresh job is for such
 * work: each item gets a process of its own, forked from a child that has done nothing but wait.
 * Where the parent's own memory depends on the order of answers, that child is to be forked before:
 * graft_pool_open.
 *
 * Ranks (graph/base/ranks.h) each run the same job with children of their own. The first hands out
 * the items, to its children and to ranks that ask for some; in the end all have all answers. */
#pragma once

#include "graph/base/file.h"
#include "verify/kept.h"

/* What a child is given. */
typedef struct graft_pool_item {
    uint32_t index;
    uint8_t *data; /* What the job sends with it: `size` bytes, in env->unit, its own. */
    size_t size;
} graft_pool_item;

/* Does an item in a child and appends its answer to `answer`. The child's env is a copy: nothing
 * but the answer comes back. env->unit is reset before each item. */
typedef void (*graft_pool_work)(graft_env *env, void *context, const graft_pool_item *item,
                                graft_buffer *answer);

struct graft_pool_result;

typedef struct graft_pool_job {
    const char *label; /* For the progress bar, with `unit`. */
    const char *unit;
    uint32_t item_count;
    const graft_buffer *sent; /* One for each item; NULL: its index says all. */
    graft_kept *kept;         /* Answers to what is sent: of an earlier run, and for a later one;
                                 NULL: none, as for all ranks but the first. Stages are told apart
                                 by `label`. */
    uint64_t limit_ns;        /* Wall-clock limit of one item; 0: none. */
    uint64_t memory_bytes;    /* That a child may take beyond what it is forked with; 0: any. */
    bool is_fresh;            /* Each item in a process of its own. */
    graft_pool_work run;
    void *context; /* As it was when the child was forked. */
    /* Is told in the parent what became of each item, in their order, as soon as that and all
     * before it are known; items are then handed out from the first. NULL: nobody waits. Not told
     * by ranks but the first. */
    void (*take)(void *taker, uint32_t index, const struct graft_pool_result *result);
    void *taker;
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
    bool is_there;
} graft_pool_result;

/* Runs every item in env->thread_count children; `results` has item_count entries. A crash or kill
 * is a result, not a failure. GRAFT_NO_MEMORY when no child can be started; GRAFT_INTERRUPTED on a
 * signal, after the children have been stopped; GRAFT_BAD_INPUT when ranks have different items. */
GRAFT_MUST_USE graft_status graft_pool_run(graft_env *env, graft_arena *arena,
                                           const graft_pool_job *job, graft_pool_result *results);

/* Children forked now for jobs that are known later: all run with the `memory_bytes`, `is_fresh`,
 * `run` and `context` of `job`. */
typedef struct graft_pool graft_pool;

/* In `arena`. GRAFT_NO_MEMORY when the children cannot be started. */
GRAFT_MUST_USE graft_status graft_pool_open(graft_env *env, graft_arena *arena,
                                            const graft_pool_job *job, graft_pool **pool);
/* As graft_pool_run. After a failure the pool can only be closed. */
GRAFT_MUST_USE graft_status graft_pool_do(graft_pool *pool, graft_arena *arena,
                                          const graft_pool_job *job, graft_pool_result *results);
/* Ends the children; what they are at is lost. NULL is allowed. */
void graft_pool_close(graft_pool *pool);
