/* cover.h - the covering set: the few instances of a rule that the solver proves one by one.
 *
 * A *place* is a slot, a variable's rank or one of its sizes (axes counted from the last one, as
 * broadcasting does); a *triple* is three places with a value each. The set is picked greedily so
 * that it contains as many as possible of the triples that occur in the domain: the boundaries of
 * kernels and splits are pairs of a size and a slot, squares and equal halves are contained beside
 * unequal ones. Instances that are little work are preferred: the solver's terms stay small. */
#pragma once

#include "verify/sweep/domain.h"

/* Picks at most `limit` points of a domain, which has one at least; fewer, `count`, when further
 * ones contain no new triple. They lie in env->unit, in the order of picking. */
graft_point *graft_cover_pick(graft_env *env, const graft_rule *rule, const graft_domain *domain,
                              uint32_t limit, uint32_t *count);

/* Points as bytes: for each the rank and sizes of each variable, then the slots, as variable-length
 * integers (7 bits a byte, least significant first, zigzag). */
uint8_t *graft_cover_pack(graft_arena *arena, const graft_rule *rule, const graft_point *points,
                          uint32_t count, size_t *bytes);

/* The points that graft_cover_pack wrote, in `arena`: `count` of them. False when the bytes are not
 * that many points of the rule. */
bool graft_cover_unpack(graft_arena *arena, const graft_rule *rule, const uint8_t *bytes,
                        size_t size, uint32_t count, graft_point **points);
