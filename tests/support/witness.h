/* witness.h - whether a rule is false, found out without the verifier: random graphs that its
 * source fits are rewritten by the engine, and both are run in binary64
 * (graph/meaning/algebra_real.h).
 *
 * Places are drawn operator by operator (proposal.h), then sizes are put in place of sizes, equal
 * ones staying equal, up to WITNESS_LARGEST. None of verify/ is used but the lists of attribute
 * values that say what lies within the bounds. */
#pragma once

#include "graph/base/env.h"

enum { WITNESS_LARGEST = 11 };

typedef struct witness_options {
    uint64_t seed;
    uint32_t attempts; /* Places drawn; most of them do not fit. */
    uint32_t enough;   /* Places at which both sides were compared, after which to stop. */
    bool within;       /* Only places within the verifier's bounds: sizes and ranks to 4, attribute
                          values that are listed. */
} witness_options;

typedef struct witness {
    graft_shape vars[GRAFT_RULE_MAX_VARS]; /* Of the last place compared. */
    int32_t slots[GRAFT_RULE_MAX_SLOTS];
    double source; /* The elements that differ. */
    double target;
    uint32_t compared; /* Places. */
    bool found;        /* A difference far beyond rounding, or a target without a value where
                          everything in the source has one. */
} witness;

/* Looks for a place at which the rule changes what a graph computes. */
witness witness_find(graft_env *env, const graft_rule *rule, const witness_options *options);

/* The place as text, in `arena`. */
const char *witness_print(graft_arena *arena, const graft_rule *rule, const witness *w);
