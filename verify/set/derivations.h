/* derivations.h - the rules that were left out of the set because they follow from it, and how.
 *
 * Written beside the set by `graft rules --generate`, one block of text for each:
 *
 *      follows 5f3c9a0142e7b68d relu(relu(relu(a))) = relu(a)
 *      at 0402030405 3a7c00ff12de9b45 ~8801ab34cd56ef90
 *
 * the id and the line of the rule (ruleprint.h), then for each of a few instances its point (packed
 * as in cover.h, in hexadecimal) and the ids of the rules to apply, one after the other, "~" before
 * one that is read from right to left (reverse.h). Whoever reads the file needs no trust in whoever
 * wrote it: graft_derivations_replay applies these rules, and no others. */
#pragma once

#include "graph/rule/rulefile.h"
#include "verify/set/derive.h"

enum { GRAFT_DERIVED_INSTANCES = 4 }; /* At which one rule is seen to follow from others. */

typedef struct graft_derived_step {
    uint64_t id;
    bool reversed;
} graft_derived_step;

typedef struct graft_derived_at {
    graft_point point;
    graft_derived_step steps[GRAFT_DERIVATION_STEPS];
    uint32_t step_count;
} graft_derived_at;

/* A rule that follows from others. */
typedef struct graft_follower {
    graft_rule rule;
    uint64_t id;
    graft_derived_at at[GRAFT_DERIVED_INSTANCES];
    uint32_t at_count;
} graft_follower;

typedef struct graft_followers {
    graft_follower *items;
    uint32_t count;
} graft_followers;

/* Writes the file atomically. GRAFT_IO when it cannot be written. */
GRAFT_MUST_USE graft_status graft_derivations_write(graft_env *env, const char *path,
                                                    const graft_followers *followers);
/* Reads it into `arena`. GRAFT_IO when it cannot be read; GRAFT_BAD_INPUT, naming file and line,
 * when a line is malformed, a rule's id is not that of its text, or a point is not one of the
 * rule. */
GRAFT_MUST_USE graft_status graft_derivations_read(graft_env *env, graft_arena *arena,
                                                   const char *path, graft_followers *followers);

/* Applies the steps of each instance of a follower, at whatever places they fit, and looks whether
 * the rule's target appears. NULL, or what is wrong, in env->scratch: an id that is not in the set,
 * a rule that cannot be reversed, steps that do not lead there. */
const char *graft_derivations_replay(graft_env *env, const graft_ruleset *set,
                                     const graft_follower *follower);

typedef struct graft_derivations_report {
    uint32_t total;
    uint32_t replayed;
    uint32_t failed;
} graft_derivations_report;

/* Replays `most` followers drawn at random (all when there are no more), each once; failures are
 * logged. */
void graft_derivations_check(graft_env *env, const graft_ruleset *set,
                             const graft_followers *followers, uint32_t most, uint64_t seed,
                             graft_derivations_report *report);
