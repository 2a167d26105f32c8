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
    uint32_t *moved;   /* By node: number of the last call that found it touched. */
    uint32_t call;     /* Number of the last call. */
    graft_index node_end;
    uint64_t near_blocks; /* See graft_changes_block: those with a node that is near. */
    uint32_t block_shift;
    /* If paths are asked for: bits of the nodes that a node depends on, and its own, one word of
     * all nodes after another... */
    uint64_t *sources;
    uint64_t *sources_before; /* ...and at the last call, of those that are touched. */
    uint64_t *stirred;        /* By node: bits of the parts of its words that have changed. */
    uint64_t *touched_bits;
    size_t words;      /* Per node. */
    size_t part_words; /* Per bit of `stirred`. */
    bool lost;   /* What a node that has not changed reads does not depend on some such node any
                    more... */
    bool gained; /* ...or has come to. */
} graft_changes;

/* Compares `state` with what it was at the last call. False when nothing is known of that: after
 * opening, after graft_changes_forget, and when its limits are others. `paths` must be the same at
 * each call. */
bool graft_changes_find(graft_changes *changes, graft_arena *arena, const graft_state *state,
                        bool paths);
void graft_changes_forget(graft_changes *changes);

/* The bit of a block of nodes; there are 64 at most, so that sets of them compare at once. */
static inline uint64_t graft_changes_block(const graft_changes *changes, graft_index node)
{
    return UINT64_C(1) << (node >> changes->block_shift);
}

/* Word `w` of all nodes. */
static inline uint64_t *graft_changes_column(const graft_changes *changes, uint64_t *sources,
                                             size_t w)
{
    return sources + w * changes->before.limits.nodes;
}

/* Whether `node` depends on `source`, or is it. */
static inline bool graft_changes_depends(const graft_changes *changes, graft_index node,
                                         graft_index source)
{
    return (graft_changes_column(changes, changes->sources, source / 64)[node] >> source % 64 &
            1U) != 0;
}
