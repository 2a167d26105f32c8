/* check.h - what `make gpu-check` runs on a machine with a GPU: see docs/gpu.md.
 *
 * One program without the libraries that such a machine may lack (oneDNN, Z3, OpenBLAS, libyaml,
 * cmocka). Every stage writes a file of JSON Lines, as it goes; what fails is counted and named,
 * and the program's exit status tells. */
#pragma once

#include "cost/cost.h"
#include "cost/cuda/real.h"
#include "graph/base/json.h"

/* How far a stage has come: shared by the process that runs it and the one that waits for it. */
typedef struct check_progress {
    uint32_t next; /* The first item that nobody has begun. */
    uint32_t failures;
    uint32_t unfinished; /* Items done by halves, for want of time. */
    bool is_cut;         /* Time ran out before the last item. */
    bool is_lost;        /* The GPU does not answer this process any more. */
    uint64_t beat_ns;    /* When the process last said that it goes on. */
} check_progress;

typedef struct check_run {
    graft_env *env;
    check_progress *progress;
    const char *folder; /* Where results go. */
    bool is_short;      /* A short selection, for the memory checker. */
    const char *types;  /* With commas between them; NULL: all. So is the next. */
    const char *models;
    const char *batches; /* Of models: how many inputs at once; NULL: 1. */
    const char *list;    /* Of signatures, a file; NULL: none. */
    const char
        *described;       /* A GPU that is not here: all is planned, nothing is run. NULL: it is. */
    const char *sources;  /* What the program was made of; "": unknown, nothing is gone on with. */
    uint64_t deadline_ns; /* Of the stage, by the clock of clock.h. */
    uint64_t hang_ns;     /* How long a process may say nothing. */
} check_run;

enum { CHECK_TYPES = 4 };

/* In the order in which they are looked at: those that users of GPUs want first. */
typedef struct check_type {
    const char *name;
    cuda_type type;
} check_type;
extern const check_type check_types[CHECK_TYPES];

/* Whether `name` is among the words of a list with commas; a NULL list has all. */
bool check_is_chosen(const char *list, const char *name);

/* Word `i` of such a list, in the arena; NULL: it has none. */
const char *check_word(graft_arena *arena, const char *list, uint32_t i);

/* Opens "cuda:<type>" and options behind it. */
GRAFT_MUST_USE graft_status check_open(check_run *run, const char *type, const char *options,
                                       graft_device **device);
/* Whether item `item` of `count` has to wait for the next run: time is up, or somebody interrupts.
 */
bool check_cut(check_run *run, uint32_t item, uint32_t count);
/* Whether the time of the stage is up, or somebody interrupts. Asked in every loop: it is also what
 * tells the process that waits that this one does not hang. */
bool check_late(check_run *run);
/* Memory full of 0 that processes started from this one share; NULL when there is none left. */
void *check_share(size_t bytes);
/* Whether item `item` of a stage, counted from 0, is to be done now: not when an earlier process or
 * run began it, nor without a GPU. */
bool check_begin(check_run *run, uint32_t item);
/* After a failure: whether the GPU still answers. A fault in a kernel leaves a process without one;
 * the stage ends then, and goes on in another process. */
void check_probe(check_run *run, graft_device *device);
/* Opens `folder`/NAME for the lines of a stage, behind those of what was done before. */
GRAFT_MUST_USE graft_status check_file(check_run *run, const char *name, FILE **file);
/* A stage that goes through the same items in each type: opens `folder`/NAME and has `body` do
 * those of the chosen types from item `first` on; stops when there is no time left. */
typedef struct check_part {
    const check_type *type;
    uint32_t first;
    FILE *file;
} check_part;
GRAFT_MUST_USE graft_status check_each_type(check_run *run, const char *name, uint32_t items,
                                            graft_status (*body)(check_run *run, check_part part,
                                                                 void *context),
                                            void *context);
/* The name of the implementation, `name` or the first of all, in scratch, if it can be planned (of
 * a GPU that is not here nothing else can be done); NULL, with a message, if it cannot. */
const char *check_plan(check_run *run, graft_device *device, const graft_signature *signature,
                       const char *name);
/* Counts a failure, says it on stderr and forgets the message of the environment. */
void check_fail(check_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A stage in processes of its own, which goes on behind an item that took one with it. */
void check_supervise(check_run *run, const char *name, graft_status (*stage)(check_run *run));

/* The costs of a GPU in a type: `folder`/h200-fp16.costs (tf32: h200.costs), at first what is in
 * rules/costs under that name. Signs of life are given while measuring. */
GRAFT_MUST_USE graft_status check_costs_open(check_run *run, const check_type *type,
                                             graft_device *device, graft_cost **cost);

/* Every implementation of some 70 signatures of every operator against the float reference. */
GRAFT_MUST_USE graft_status check_primitives(check_run *run);
/* Copy bandwidth, rates of products, and how near to them movement and elementwise kernels come. */
GRAFT_MUST_USE graft_status check_ceilings(check_run *run);
/* The costs of the signatures in `list`. */
GRAFT_MUST_USE graft_status check_costs(check_run *run);
/* The zoo: costs of all that the rules make of it, and whole models before and after. */
GRAFT_MUST_USE graft_status check_models(check_run *run);
