/* generate.h - from the families of operators to the proved rule set: what `make rules` does.
 *
 *      families ─ gen ─► candidates ─ lift ─► rules ─ sweep ─► select ⇄ prove ─► the set
 *
 * Lifting and checking run in child processes, one item at a time; ranks (graph/base/ranks.h) share
 * them, and the enumeration. The set's bytes depend on the families and the version of the solver
 * alone. */
#pragma once

#include "gen/gen.h"
#include "verify/check.h"
#include "verify/set/derivations.h"

typedef struct graft_generate_options {
    graft_gen_room room; /* Its folder is where an interrupted run goes on. */
    graft_check_options check;
} graft_generate_options;

graft_generate_options graft_generate_defaults(void);

/* Processor time of each stage, child processes and all ranks included. */
typedef struct graft_generate_times {
    uint64_t propose_ns;
    uint64_t lift_ns;
    uint64_t sweep_ns;
    uint64_t select_ns; /* Looking for what follows from what. */
    uint64_t prove_ns;
} graft_generate_times;

typedef struct graft_generate_counts {
    uint32_t candidates;
    uint32_t growing; /* Can only add operators. */
    uint32_t rules;   /* Distinct ones, to be checked. */
    uint32_t refuted;
    uint32_t restricted; /* Proved for all sizes only as far as a restriction goes. */
    uint32_t narrowed;   /* Of those two, tried again, restricted. */
    uint32_t thin;
    uint32_t unknown; /* Unknown to the solver, crashes included. */
    uint32_t bounded; /* Hold within bounds: no rules of the set, and none follows from them. */
    uint32_t proved;
    uint32_t dropped;           /* Follow from one application of a proved rule. */
    graft_generate_times times; /* Told, never a reason for anything. */
    graft_followers followers;  /* The dropped rules and how they follow; in env->life. */
    const char *work; /* The run's own folder in room.folder, or NULL; see graft_generate_forget. */
} graft_generate_counts;

/* What is found in room.folder is of a run that was interrupted, by the same program with the same
 * options (else it is left alone); the set is the same with it and without.
 *
 * Makes the set in env->life. Rules that are not proved are counted, and those that the solver gave
 * up on are named in the log. Fails as graft_ranks_open, graft_gen_run, graft_pool_run and
 * graft_kept_open do; GRAFT_UNDECIDED when an item was killed for its time. */
GRAFT_MUST_USE graft_status graft_generate(graft_env *env, const graft_gen_family *families,
                                           uint32_t family_count,
                                           const graft_generate_options *options,
                                           graft_ruleset *set, graft_generate_counts *counts);

/* Removes what a run has left to be gone on from: when its set is written. */
void graft_generate_forget(const graft_generate_options *options,
                           const graft_generate_counts *counts);
