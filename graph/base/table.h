/* table.h - open-addressing tables of the numbers of an array's elements, in an arena. What a number
 * stands for, and when two are equal, is the owner's business. A table that is all 0 is empty. */
#pragma once

#include "graph/base/arena.h"

#define GRAFT_TABLE_FREE UINT32_MAX

typedef struct graft_table {
    uint32_t *slots;   /* GRAFT_TABLE_FREE where free. */
    uint32_t capacity; /* A power of two, or 0. */
    uint32_t count;
} graft_table;

/* Makes room for one more number; `rehash` tells the hash of one that is stored. */
void graft_table_reserve(graft_arena *arena, graft_table *table, const void *owner,
                         uint64_t (*rehash)(const void *owner, uint32_t number));
/* Stores a number that is not there; after graft_table_reserve. */
void graft_table_insert(graft_table *table, uint64_t hash, uint32_t number);

static inline uint32_t graft_table_at(const graft_table *table, uint32_t at)
{
    return table->capacity == 0 ? GRAFT_TABLE_FREE : table->slots[at & (table->capacity - 1)];
}

/* Begins a loop over the numbers that may be the one with this hash. */
#define GRAFT_EACH_ALIKE(table, hash, number)                                                      \
    for (uint32_t graft_at = (uint32_t)(hash), number = graft_table_at((table), graft_at);         \
         (number) != GRAFT_TABLE_FREE; (number) = graft_table_at((table), ++graft_at))
