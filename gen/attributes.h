/* attributes.h - concrete attribute values of operators, as families write them. */
#pragma once

#include "graph/base/settings.h"

enum { GRAFT_GEN_MAX_CHOICES = 64 };

/* Every combination of the attribute values of one `operators` entry. */
typedef struct graft_gen_choices {
    int32_t attrs[GRAFT_GEN_MAX_CHOICES][GRAFT_MAX_ATTRS];
    uint32_t count;
} graft_gen_choices;

/* A whole number or the name of a size in `sizes` (may be NULL). GRAFT_BAD_INPUT with file and line
 * when it is neither or outside [least, most]. */
GRAFT_MUST_USE graft_status graft_gen_size_read(graft_env *env, const graft_yaml *node,
                                                const graft_yaml *sizes, int32_t least,
                                                int32_t most, int32_t *value);
/* Members of `node` other than op, of, roles, rank, distinct and once are attributes of `op`: an
 * attribute's name, or the part before the last "_" that a group of attributes shares (stride: 2
 * sets stride_h and stride_w). The value is a list of alternatives; an alternative for a group may
 * itself be a list that is assigned in order, the rest being 0. What is not named has its least
 * value. */
GRAFT_MUST_USE graft_status graft_gen_choices_read(graft_env *env, const graft_yaml *node,
                                                   uint32_t op, const graft_yaml *sizes,
                                                   graft_gen_choices *choices);
/* Same, but each value is one alternative. */
GRAFT_MUST_USE graft_status graft_gen_step_attrs_read(graft_env *env, const graft_yaml *node,
                                                      uint32_t op, const graft_yaml *sizes,
                                                      int32_t *attrs);
