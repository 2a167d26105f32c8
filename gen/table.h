/* table.h - growing arrays and open-addressing tables of numbers, in an arena. What a number stands
 * for, and when two are equal, is the owner's business. */
#pragma once

#include "graph/base/arena.h"

#define GRAFT_GEN_NONE UINT32_MAX

typedef struct graft_gen_table {
    uint32_t *slots;   /* GRAFT_GEN_NONE where free. */
    uint32_t capacity; /* A power of two. */
    uint32_t count;
} graft_gen_table;

/* Room for one more element behind `count`; the array moves when it doubles. */
void *graft_gen_grow(graft_arena *arena, void *array, uint32_t count, uint32_t *capacity,
                     size_t element_bytes);
/* Makes room for one more number; `rehash` tells the hash of one that is stored. */
void graft_gen_table_reserve(graft_arena *arena, graft_gen_table *table, const void *owner,
                             uint64_t (*rehash)(const void *owner, uint32_t number));
/* Stores a number that is not there; after graft_gen_table_reserve. */
void graft_gen_table_insert(graft_gen_table *table, uint64_t hash, uint32_t number);

/* Where the search for `hash` begins and goes on. Ends at a slot that holds GRAFT_GEN_NONE. */
static inline uint32_t graft_gen_table_first(const graft_gen_table *table, uint64_t hash)
{
    return (uint32_t)hash & (table->capacity - 1);
}

static inline uint32_t graft_gen_table_next(const graft_gen_table *table, uint32_t at)
{
    return (at + 1) & (table->capacity - 1);
}
