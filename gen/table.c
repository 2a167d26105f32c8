/* table.c - growing arrays and open-addressing tables: linear probing, doubling at two thirds. */
#include "gen/table.h"

#include <string.h>

enum { FIRST_CAPACITY = 1024 };

void *graft_gen_grow(graft_arena *arena, void *array, uint32_t count, uint32_t *capacity,
                     size_t element_bytes)
{
    return graft_arena_grow(arena, array, count, capacity, FIRST_CAPACITY, element_bytes);
}

void graft_gen_table_insert(graft_gen_table *table, uint64_t hash, uint32_t number)
{
    uint32_t at = graft_gen_table_first(table, hash);
    while (table->slots[at] != GRAFT_GEN_NONE) {
        at = graft_gen_table_next(table, at);
    }
    table->slots[at] = number;
    table->count++;
}

void graft_gen_table_reserve(graft_arena *arena, graft_gen_table *table, const void *owner,
                             uint64_t (*rehash)(const void *owner, uint32_t number))
{
    if (table->count * 3 < table->capacity * 2) {
        return;
    }
    graft_gen_table larger = {.capacity =
                                  table->capacity == 0 ? FIRST_CAPACITY : 2 * table->capacity};
    larger.slots = GRAFT_NEW(arena, uint32_t, larger.capacity);
    memset(larger.slots, 0xff, larger.capacity * sizeof *larger.slots);
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->slots[i] != GRAFT_GEN_NONE) {
            graft_gen_table_insert(&larger, rehash(owner, table->slots[i]), table->slots[i]);
        }
    }
    *table = larger;
}
