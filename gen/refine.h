/* refine.h - samples that tell apart what is not equal.
 *
 * Graphs are told apart on a few samples, and now and then two that differ agree on all of them
 * (relu(x) and clip(x, 0, 6), where no sample exceeds 6). As arguments of larger graphs they would
 * be one: what is built on the second is never seen, and laws follow from what is false.
 *
 * Idea. Pairs of equal graphs are checked on fresh samples anyway, when laws are made of them. So
 * search the smaller graphs for laws first; a fresh sample that tells a pair apart becomes one of
 * the samples of the space; enumerate again, until nothing is told apart any more; then go on with
 * graphs of one operator more. Refining classes of equal nodes by the samples that refute them is
 * how logic networks are swept for equal nodes (Mishchenko, Chatterjee, Jiang and Brayton, FRAIGs:
 * A Unifying Representation for Logic Synthesis and Verification, 2005, section 3).
 *
 * Graphs of the largest size are arguments of none: their groups are split when the search for laws
 * meets a false pair (split.c). */
#pragma once

#include "gen/propose.h"

/* Fills `samples`, whose seed is set, with draws on which all graphs of fewer than set->depth
 * operators agree only if they are equal, as far as the checks of laws can tell. `known` are laws
 * of other sets. With a folder in `room`, what has been found for each number of operators is kept
 * there, and an interrupted run goes on from it. GRAFT_INTERRUPTED, GRAFT_IO, and failures as of
 * graft_gen_space_build. */
GRAFT_MUST_USE graft_status graft_gen_samples_refine(graft_env *env, const graft_gen_set *set,
                                                     const graft_gen_room *room,
                                                     const graft_gen_laws *known,
                                                     graft_gen_samples *samples);

/* Removes what ..._refine has left in a set's folder. */
void graft_gen_samples_remove(graft_env *env, const char *folder);
