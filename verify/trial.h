/* trial.h - rules on trial, one child process each: the verdict, and what a person needs to know of
 * it. Used for users' rules, TASO's and the reverses of our own; `make rules` has its own loop.
 *
 *      check.h ─ proved, for all sizes                         sweep, certificate
 *              ─ within bounds: swept, proved at instances     the same, why not for all sizes
 *              ─ refuted ─► refute.h, suggest.h                counterexample, missing precondition
 *              ─ unknown                                       why
 *              ─ error: nothing to try                         what is wrong with the rule
 */
#pragma once

#include "graph/rule/rulefile.h"
#include "verify/check.h"
#include "verify/sweep/refute.h"

struct graft_trial;

typedef struct graft_trial_options {
    graft_check_options check;
    uint64_t limit_ns; /* Wall clock of one rule; what is past it is killed and unknown. */
    bool suggest;      /* Look for a missing precondition. */
    /* In the child: what is wrong with the rule itself, in env->unit; NULL: nothing. Asked before
     * all else whether it can be tried, and again, `tried`, where no instance was met. May be NULL.
     */
    const char *(*examine)(graft_env *env, const void *context, uint32_t index, bool tried);
    /* In the parent: the verdict on a rule, in the order of the rules, as soon as that and all
     * before it stand. May be NULL. */
    void (*stands)(void *context, uint32_t index, const struct graft_trial *trial);
    void *context;
} graft_trial_options;

graft_trial_options graft_trial_defaults(void);

typedef struct graft_trial {
    const char *reason;     /* When it is not proved for all sizes: one sentence. */
    const char *suggestion; /* A precondition that would make it true; NULL: none found. */
    graft_refutation refutation;
    graft_check check; /* Without `instances`; empty when the child did not come back. */
    uint64_t time_ns;
    uint8_t verdict; /* graft_verdict */
    bool has_refutation;
    bool rounded; /* Proved for all sizes, and swept in binary64: the exact arithmetic lacks a law
                     of some function. */
    bool was_killed; /* Ran out of time: the verdict may differ on another machine. */
} graft_trial;

/* Tries `count` valid rules; `trials` has as many entries, what they name lies in env->life. Fails
 * as graft_pool_run does. */
GRAFT_MUST_USE graft_status graft_trial_run(graft_env *env, const graft_rule *rules, uint32_t count,
                                            const graft_trial_options *options,
                                            graft_trial *trials);

/* Where a rule that holds within bounds was swept and proved, in words and as a JSON object. */
const char *graft_trial_bounds(graft_arena *arena, const graft_trial *trial);
const char *graft_trial_bounds_json(graft_arena *arena, const graft_trial *trial);

/* The refutation of a rule as a JSON object; "null" when there is none. */
const char *graft_trial_refutation_json(graft_arena *arena, const graft_rule *rule,
                                        const graft_trial *trial);

/* The entry in a rule set of a rule that is proved or holds within bounds; `name` and `family` are
 * borrowed. */
graft_rule_entry graft_trial_entry(const graft_rule *rule, const graft_trial *trial,
                                   const char *name, const char *family);

/* Puts `count` entries into a set, in the order that sets have (family, name, id); the set's array
 * is made anew in `arena`. Entries whose content is there already are left out; `*added` counts the
 * others. GRAFT_BAD_INPUT when a name is taken by another rule. */
GRAFT_MUST_USE graft_status graft_trial_merge(graft_env *env, graft_arena *arena,
                                              graft_ruleset *set, const graft_rule_entry *entries,
                                              uint32_t count, uint32_t *added);
