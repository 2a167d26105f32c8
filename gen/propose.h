/* propose.h - the laws of a space: which graphs compute the same, each consequence left out.
 *
 * A group's first graph against each other one is a raw pair. Pairs are taken from small to large;
 * one that follows from laws accepted before is dropped. "Follows" is decided in the space itself,
 * which is a saturated e-graph: a law is applied wherever it fits, and joins the two graphs that it
 * connects; a pair whose graphs are already joined says nothing new. That leaves out renamings,
 * commuted arguments, instances of more general laws, laws inside a context (arguments are classes)
 * and chains of several laws. At the end, laws that the others have made superfluous are dropped
 * too, the largest first; then all pairs are derived again, from nothing but the laws that are
 * left, and what does not follow is taken back. For dropping is no induction: a law may go because
 * of a larger one, and that one because of a third and of pairs that rest on the first.
 *
 * Arguments are classes, so a step may silently replace an inner graph by another of its group.
 * That is sound only when this equality has been dealt with: every node has the place of its own
 * pair in the order, and a join counts for a pair only if all inner nodes it rests on come earlier.
 * Dropping a pair is thus an induction over the order.
 *
 * A pair that follows is a law too, a *lemma*: a step for larger pairs where the graphs in between
 * are too large for the space. There are many times as many as laws, but hardly one says anything
 * new: where a single law of earlier place leads from one graph of the pair to the other, with both
 * of its sides standing in them as drawn, every instance of the pair is an instance of that law
 * (apply.h, is_whole). Such pairs are not applied at all, or, where the law itself may still be
 * dropped, only to the groups in which laws are dropped.
 *
 * A law that connects two graphs of unequal fingerprints is false: this refutes what the samples of
 * its own pair let through.
 *
 * Macros. Laws are equations, but rules have a direction, and not every direction can be matched
 * (nothing tells where to introduce split(concat(a, b)) for a and b). A dropped pair comes back, as
 * one direction, when the kept rules do not lead that way (two layers that share their input become
 * one layer and a split), or when it makes the graph lighter (fewer operators that run at
 * inference, then fewer operators) and they lead there only through a graph that is no lighter in
 * between, which a search has no reason to enter: a gelu whose half stands last is a step away
 * from one whose half stands first, and greedy search never takes that step.
 */
#pragma once

#include "gen/law.h"

typedef struct graft_gen_laws {
    graft_gen_law *laws;
    uint32_t count;
    uint32_t capacity;
    graft_arena *arena; /* For those that are appended. */
} graft_gen_laws;

/* Finds the laws of a space, in a fixed order, appends them to `laws`, and counts them in
 * space->counts. Laws that stand there already, from other sets, are taken as known: what
 * follows from them is not found again. GRAFT_INTERRUPTED on a signal. */
GRAFT_MUST_USE graft_status graft_gen_propose(graft_gen_space *space, graft_gen_laws *laws);
