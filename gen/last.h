/* last.h - the last level of a space, most of whose nodes are never looked at again.
 *
 * No node of the last level is an argument of another, so it matters only if some other graph
 * computes the same. Idea: fingerprint each on one sample, remember 40 bytes of it, and keep those
 * whose fingerprint occurs twice or is that of a smaller graph; only these become nodes and are
 * evaluated on all samples. Of a graph and its renamings those with the least fingerprint are
 * remembered: equal graphs have equal renamings, so that what is dropped would say the same again.
 * A graph that equals its own renaming remembers both. Where a fingerprint is that of a smaller
 * graph, all renamings are kept, because such nodes are also parts of other graphs when laws are
 * matched.
 *
 *      walk ─► batch ─(threads)─► fingerprints ─► least of each orbit ─► memory or partitions on
 * disk │ sort, repeated? nodes of the space ◄──────────────── in the order of the walk
 * ◄───────────┘
 *
 * Records are partitioned by fingerprint; when they outgrow the limit, the partitions are appended
 * to files in the work folder and read back one by one. With a work folder a mark is written now
 * and then: an interrupted run goes on from it. Neither changes what comes out.
 *
 * Ranks (graph/base/ranks.h) walk blocks of the closed sets in turn. Each keeps the records of its
 * part of the fingerprints, which the others send it after every round of blocks, so that the memory
 * of all holds them. In the end all get the nodes that matter, in the order of the walk. */
#pragma once

#include "gen/space.h"

typedef struct graft_gen_last graft_gen_last;

/* So many closed sets are a block. */
enum { GRAFT_GEN_BLOCK_SETS = 256 };

/* Opens the last level, whose nodes have `size` operators. With a work folder
 * (space->store.folder) that holds a mark of the same space, records and counts are taken over from
 * it, and *resumed is set to the number of closed sets that need not be walked again (0 otherwise).
 * GRAFT_IO when the folder cannot be used, GRAFT_NO_MEMORY. */
GRAFT_MUST_USE graft_status graft_gen_last_open(graft_gen_space *space, uint32_t size,
                                                graft_gen_last **last, uint32_t *resumed);
/* What a closed set offers to the applications over it. */
typedef struct graft_gen_offer {
    const uint32_t *values;
    const uint32_t *covers; /* Bit of the node of the set that a value comes from; 0 for inputs. */
    uint32_t count;
    uint32_t must; /* Bits of nodes that an application must read. */
    uint32_t set;  /* The closed set's number. */
} graft_gen_offer;

/* Takes one application. Applications that are renamings of another one over the same set, or that
 * are in the space, are passed over. */
GRAFT_MUST_USE graft_status graft_gen_last_add(graft_gen_last *last, const graft_gen_node *node,
                                               const graft_gen_offer *offer);
/* Says that `walked` closed sets of `total` are done, by all ranks: hands records over, shows
 * progress, and writes a mark when one is due. */
GRAFT_MUST_USE graft_status graft_gen_last_pass(graft_gen_last *last, uint32_t walked,
                                                uint32_t total);
/* Adds the nodes that matter to the space (not yet evaluated); `total` closed sets were walked.
 * With a work folder the last mark stays there for a run that is interrupted later on. */
GRAFT_MUST_USE graft_status graft_gen_last_finish(graft_gen_last *last, uint32_t total);
/* Gives back memory and files; the work folder keeps what a later run can go on from. */
void graft_gen_last_close(graft_gen_last *last);
