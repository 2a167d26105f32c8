/* rule.h - laws as rules: compounds taken apart, one rule for each direction that can be matched.
 */
#pragma once

#include "gen/law.h"

enum { GRAFT_GEN_RULE_CODE = 512 };

/* A rule in its canonical arrangement: the one of least code among all orders of outputs and of
 * commuting operands. Codes are equal when the rules are, whatever their variables are called. */
typedef struct graft_gen_ruling {
    graft_candidate candidate;         /* Without provenance. */
    int32_t code[GRAFT_GEN_RULE_CODE]; /* Skeleton first; then ranks and attributes, with sizes as
                                          dimensions of variables where they occur there. */
    uint32_t skeleton_size;
    uint32_t code_size;
} graft_gen_ruling;

/* The rule that replaces side `source` of a law by the other side. False when it cannot be one:
 *  - the source is a bare variable, names an output twice, falls into unconnected parts, or lacks a
 *    variable of the target;
 *  - a side needs more nodes or variables than a rule has;
 *  - both sides are the same graph once compounds are taken apart;
 *  - the target is the source followed by operators that change nothing. */
bool graft_gen_rule_make(const graft_gen_law *law, uint32_t source, graft_gen_ruling *ruling);
