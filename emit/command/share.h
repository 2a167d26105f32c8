/* share.h - items that are independent of each other, shared by the ranks of mpirun.
 *
 *      find(item) ── says pieces ──► take(item, piece)        items in their order
 *
 * One process finds and takes item after item. Where there are several, ranks ask for items
 * (verify/pool.h), find them in children, and in the end all have taken all pieces: what is found
 * may depend on nothing that was taken since it began, and is then the same. */
#pragma once

#include "graph/base/env.h"

typedef struct graft_share graft_share;

typedef struct graft_share_work {
    const char *label; /* For the progress bar, with `unit`. */
    const char *unit;
    /* Finds out what is to be known of an item and says it (graft_share_say). It may be in another
     * process: nothing but what it says comes back, or the message with which it fails. */
    graft_status (*find)(graft_env *env, void *context, uint32_t item, graft_share *share);
    /* Takes a piece, which lies at any address. The first rank gets those of an item as soon as
     * they and all before them are known. */
    graft_status (*take)(graft_env *env, void *context, uint32_t item, const void *piece,
                         size_t bytes);
    void *context;
} graft_share_work;

/* Fails as `take` does. */
GRAFT_MUST_USE graft_status graft_share_say(graft_share *share, const void *piece, size_t bytes);
/* Fails with the first item that does, GRAFT_INTERNAL where a child dies, and as graft_pool_run. */
GRAFT_MUST_USE graft_status graft_share_run(graft_env *env, uint32_t count,
                                            const graft_share_work *work);
