/* boundary.h - the instances of a rule at its boundaries: the numbers that it names (named.h) as
 * sizes and attributes, and the sizes at which a comparison in its byte code turns out otherwise.
 *
 * From some instances on, one size or attribute at a time is given each number up to a few hundred
 * and each that the rule names, alone or with all that are the same number; of these instances
 * those are kept at which a comparison, a minimum or a maximum goes the other way than at the one
 * before, those at named numbers, and all of 8 bits. The same is done once more from some of what
 * was kept, so that two numbers are unusual at once. And two or three of them are moved by one of
 * the rule's own numbers together: of a window far out neither start, end nor size is there alone.
 * Others are drawn freely, with sizes of 1, 2 and a named number or two. Tensors stay small. Nothing
 * is proved here; what is found can only refute. */
#pragma once

#include "verify/sweep/domain.h"

typedef struct graft_boundary_options {
    const graft_point *points; /* Instances to look beside; */
    uint32_t count;            /* there may be none. */
    uint64_t effort; /* Bounds what evaluating the found ones takes (graft_instance_work) and, with
                        that, how many there are and how long they are looked for. */
} graft_boundary_options;

/* Finds such instances. Points lie in env->unit. */
graft_domain graft_boundary_find(graft_env *env, const graft_rule *rule,
                                 const graft_boundary_options *options);
