/* trial.h - one signature being measured: its data, and its implementations taking turns. */
#pragma once

#include "cost/measure/measure.h"

typedef struct graft_contestant {
    graft_kernel *kernel;
    char name[GRAFT_KERNEL_NAME_BYTES];
    double run_ns;   /* First guess, then the fastest batch so far. */
    double *samples; /* One per round, and... */
    double *factors; /* ...how fast the machine was in it: 1 as recorded, less when slower. */
    uint32_t sample_count;
    bool dropped;
} graft_contestant;

/* Inputs, outputs and workspace of a trial. */
enum { GRAFT_TRIAL_BLOCKS = GRAFT_MAX_INPUTS + GRAFT_MAX_OUTPUTS + 1 };

typedef struct graft_trial {
    const graft_signature *signature;
    graft_device *device;
    float *inputs[GRAFT_MAX_INPUTS];
    float *outputs[GRAFT_MAX_OUTPUTS];
    size_t output_counts[GRAFT_MAX_OUTPUTS];
    bool passes_on;  /* A run's result is the next one's first input, and back. */
    bool turned;     /* They have changed places. */
    void *workspace; /* Large enough for every contestant. */
    graft_contestant contestants[GRAFT_KERNEL_MOST];
    uint32_t contestant_count;
    uint64_t bytes;                            /* Of all of this, about. */
    unsigned char *guards[GRAFT_TRIAL_BLOCKS]; /* Behind each block: nobody may write there. */
    uint32_t guard_count;
} graft_trial;

/* Opens every implementation (the one of the name `only`, unless that is NULL) on fresh random
 * data. Close the trial whether or not this succeeds. `samples` has 2 GRAFT_KERNEL_MOST rows of
 * `rounds_most` entries. */
GRAFT_MUST_USE graft_status graft_trial_open(graft_env *env, graft_device *device,
                                             const graft_signature *signature, const char *only,
                                             double *samples, uint32_t rounds_most,
                                             graft_trial *trial);
void graft_trial_close(graft_trial *trial);

/* Whether an implementation of this name works in the signature's layouts, without conversions
 * inside, by the ordinary algorithm: not Winograd's, and the library's product, not ours. */
bool graft_kernel_is_direct(const char *name);
/* Drops all that are not direct, where some are. */
void graft_trial_restrict(graft_trial *trial);
/* Runs every contestant a few times and drops the slow, the wrong, and those that write past their
 * operands; copies the others' weights.
 */
GRAFT_MUST_USE graft_status graft_trial_qualify(graft_env *env, graft_trial *trial);
/* One round of one contestant: some runs thrown away, then a batch timed, in slices after the
 * anchor (see anchor.h), or at once when that is NULL. */
GRAFT_MUST_USE graft_status graft_trial_round(graft_env *env, graft_trial *trial,
                                              graft_contestant *contestant, uint64_t batch_ns,
                                              graft_anchor *anchor);
/* Rounds so far in which the machine was about as fast as recorded, of the contestant that has had
 * fewest of them. */
uint32_t graft_trial_quiet_rounds(const graft_trial *trial);
/* Drops the contestants that are clearly slower than the best after the rounds so far. */
void graft_trial_prune(graft_arena *scratch, graft_trial *trial);
/* The entry of the best contestant with at least `least_rounds`; all 0 when there is none, which
 * nobody reads but for its rounds. Where the machine was as fast as recorded in some rounds, only
 * these count. */
void graft_trial_finish(graft_arena *scratch, const graft_trial *trial, uint32_t least_rounds,
                        graft_cost_entry *entry);
