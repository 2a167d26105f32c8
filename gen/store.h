/* store.h - records of graphs, brought together by key: in memory while they fit, in partitions on
 * disk when they do not.
 *
 * A full buffer is sorted by key and each partition (the first bits of the key) appended to its
 * file. To list the records, one partition after the other is read back, sorted, and handed on in
 * the order of its keys. A *mark* says how much of each file counts: what was written after it is
 * cut off when a run goes on from it. Files are for this program on this machine only.
 *
 * Ranks (graph/base/ranks.h) have a store each, with files of their own. They mark together, and
 * one that is stopped may have written a mark that another has not: so a mark's file holds the mark
 * before as well. */
#pragma once

#include "gen/gen.h"

typedef struct graft_gen_record {
    uint64_t key;
    uint64_t order; /* The closed set that it was made from, then the how manieth of that. */
    uint32_t args[GRAFT_MAX_INPUTS];
    uint16_t config;
    uint16_t is_known; /* Kept, whether its key is repeated or not. */
    uint32_t unused;
} graft_gen_record;

typedef struct graft_gen_store graft_gen_store;

/* What a mark holds besides the sizes of the files. */
typedef struct graft_gen_mark {
    uint64_t identity; /* Of the space. */
    uint64_t walked;   /* Closed sets. */
    uint64_t graphs;
    uint64_t evaluated;
} graft_gen_mark;

/* Opens an empty store, or, where the folder holds a mark with mark->identity, the marked one (and
 * fills in *mark; mark->walked is 0 otherwise, and where ranks have none in common). Without a
 * folder everything stays in memory. The store is freed with graft_gen_store_close. GRAFT_IO,
 * GRAFT_NO_MEMORY. */
GRAFT_MUST_USE graft_status graft_gen_store_open(graft_env *env, const graft_gen_room *room,
                                                 graft_gen_mark *mark, graft_gen_store **store);
/* GRAFT_IO when the disk is full, GRAFT_NO_MEMORY when there is no folder and no memory left. */
GRAFT_MUST_USE graft_status graft_gen_store_add(graft_gen_store *store,
                                                const graft_gen_record *record);
/* Whether anything has gone to disk since the last mark. */
bool graft_gen_store_is_ahead(const graft_gen_store *store);
/* Writes everything to disk, then the mark. Nothing without a folder. */
GRAFT_MUST_USE graft_status graft_gen_store_mark(graft_gen_store *store,
                                                 const graft_gen_mark *mark);
/* Calls `visit` with the records of each key, in the order of keys, then of making. */
GRAFT_MUST_USE graft_status graft_gen_store_list(
    graft_gen_store *store,
    graft_status (*visit)(void *context, const graft_gen_record *records, size_t count),
    void *context);
/* The most bytes that its records took in memory. */
uint64_t graft_gen_store_bytes(const graft_gen_store *store);
/* Frees it; its files stay. */
void graft_gen_store_close(graft_gen_store *store);
/* Removes what a store has left in a folder, and the folder when it is empty. */
void graft_gen_store_remove(graft_env *env, const char *folder);
