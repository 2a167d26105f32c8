/* trail.h - how far a search for laws has come, kept in the work folder: what became of each pair,
 * and the laws that were taken. An interrupted search does the same again without finding it out
 * again: laws are not checked, and what joined nothing is not laid on anything. Files are for this
 * program on this machine only. */
#pragma once

#include "gen/law.h"
#include "graph/base/file.h"

/* What became of a pair. The numbers are written to disk. */
typedef enum graft_gen_fate {
    GRAFT_GEN_UNTOLD, /* Its turn has not come. */
    GRAFT_GEN_PASSED, /* It follows, and there is nothing to be done about it. */
    GRAFT_GEN_DRAWN,  /* It follows: a lemma that is laid only where laws may be dropped. */
    GRAFT_GEN_IDLE,   /* It follows: a lemma that joined nothing new, */
    GRAFT_GEN_LAID,   /* or did. */
    GRAFT_GEN_TAKEN,  /* A law. */
    GRAFT_GEN_REFUTED /* It is false, or too large for a law. */
} graft_gen_fate;

typedef struct graft_gen_trail {
    graft_env *env;
    const char *path; /* NULL: nothing is kept. */
    uint64_t identity;
    const uint8_t *fates; /* Of an earlier run: of the first `told_count` pairs. */
    uint32_t told_count;
    const uint32_t *law_of; /* By pair: its law. */
    graft_gen_law *laws;
    uint32_t law_count;
    uint64_t saved_ns; /* When it was written, and how long that took. */
    uint64_t spent_ns;
} graft_gen_trail;

/* Takes what an earlier run of the same space has left in space->room.folder for graphs of
 * `output_count` outputs; nothing when there is no folder, or nothing fits. Lives in space->arena.
 */
void graft_gen_trail_open(const graft_gen_space *space, uint32_t output_count, uint32_t pair_count,
                          graft_gen_trail *trail);
/* What an earlier run has told of a pair. */
static inline graft_gen_fate graft_gen_trail_fate(const graft_gen_trail *trail, uint32_t pair)
{
    return pair < trail->told_count ? (graft_gen_fate)trail->fates[pair] : GRAFT_GEN_UNTOLD;
}
/* The law of a pair that was taken. */
const graft_gen_law *graft_gen_trail_law(const graft_gen_trail *trail, uint32_t pair);

/* Whether it is time to write, the first `told` pairs having had their turn; `at_once` asks only
 * whether there is something new. */
bool graft_gen_trail_is_due(const graft_gen_trail *trail, uint32_t told, bool at_once);
/* Writes a file (resume.h): how many pairs had their turn, the fate of each, the laws that were
 * taken. GRAFT_IO. */
GRAFT_MUST_USE graft_status graft_gen_trail_write(graft_gen_trail *trail, graft_buffer *file);
/* Removes what a search has left in a set's folder. */
void graft_gen_trail_remove(graft_env *env, const char *folder);
