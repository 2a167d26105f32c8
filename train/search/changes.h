/* changes.h - which nodes of a graph are not as they were when it was last looked at.
 *
 * A node has changed when anything has that a rule's match could ask of it: its operator,
 * attributes and operands, shapes and const-ness of what it reads and makes, how often that is
 * read. A match without a changed node is a match before and after, but for what depends on the
 * graph as a whole: that no path closes a cycle, and room for new nodes. Paths are told apart here
 * too; for room see matches.c.
 *
 * The graph is compared with a copy, so it does not matter what was done to it. */
#pragma once

#include "train/agent/state.h"

typedef struct graft_changes {
    bool known;         /* Whether `before` holds a graph. */
    graft_graph before; /* As it was. */
    graft_index *use_count;
    uint8_t *of_value; /* By value. */
    bool *touched;     /* By node: has changed, or is new, or gone. */
    bool *near;        /* By node: touched, or reads from or makes for one that is. */
    graft_index node_end;
    /* By node, if paths are asked for: bits of the nodes that it depends on, and its own. */
    uint64_t *sources;
    uint64_t *sources_before;
    uint64_t *touched_bits;
    size_t words; /* Per node. */
    bool lost;    /* What a node that has not changed reads does not depend on some such node
                     any more. */
} graft_changes;

/* Compares `state` with what it was at the last call. False when nothing is known of that: after
 * opening, after graft_changes_forget, and when its limits are others. `paths` must be the same at
 * each call. */
bool graft_changes_find(graft_changes *changes, graft_arena *arena, const graft_state *state,
                        bool paths);
void graft_changes_forget(graft_changes *changes);

/* Whether `node` depends on `source`, or is it. */
static inline bool graft_changes_depends(const graft_changes *changes, graft_index node,
                                         graft_index source)
{
    return (changes->sources[node * changes->words + source / 64] >> source % 64 & 1U) != 0;
}
