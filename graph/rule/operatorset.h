/* operatorset.h - a set of operators, a bit for each id. */
#pragma once

#include "graft/rule.h"

typedef struct graft_operator_set {
    uint64_t words[2];
} graft_operator_set;

_Static_assert(GRAFT_OP_COUNT <= 128, "operators are bits of two words");

static inline void graft_operator_set_add(graft_operator_set *set, uint32_t op)
{
    set->words[op / 64] |= UINT64_C(1) << op % 64;
}

static inline bool graft_operator_set_has(const graft_operator_set *set, uint32_t op)
{
    return (set->words[op / 64] >> op % 64 & 1u) != 0;
}

static inline bool graft_operator_set_is_empty(const graft_operator_set *set)
{
    return (set->words[0] | set->words[1]) == 0;
}
