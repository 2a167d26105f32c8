/* preconditions.h - whether each part of a rule's precondition is needed: without it there must be
 * a place at which the sides differ, or no proof for all sizes where there is one with it. */
#pragma once

#include "graph/rule/rulefile.h"

typedef struct preconditions_tally {
    uint32_t rules;       /* With a precondition. */
    uint32_t parts;       /* Of them. */
    uint32_t witnessed;   /* Needed: the engine and binary64 show a difference (witness.h), */
    uint32_t swept;       /* or only the verifier's sweep finds one, */
    uint32_t proof_rests; /* or only the proof needs it. */
    uint32_t needless;    /* None of these; each was printed. */
} preconditions_tally;

/* Looks at every `every`-th rule of a set from `first` on. */
preconditions_tally preconditions_try(graft_env *env, const graft_ruleset *set, uint32_t first,
                                      uint32_t every);
