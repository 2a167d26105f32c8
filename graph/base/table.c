/* table.c - see table.h: linear probing, doubling at two thirds. */
#include "graph/base/table.h"

#include <string.h>

enum { FIRST_CAPACITY = 1024 };

void graft_table_insert(graft_table *table, uint64_t hash, uint32_t number)
{
    uint32_t at = (uint32_t)hash;
    while (graft_table_at(table, at) != GRAFT_TABLE_FREE) {
        at++;
    }
    table->slots[at & (table->capacity - 1)] = number;
    table->count++;
}

void graft_table_reserve(graft_arena *arena, graft_table *table, const void *owner,
                         uint64_t (*rehash)(const void *owner, uint32_t number))
{
    if (table->count * 3 < table->capacity * 2) {
        return;
    }
    graft_table larger = {.capacity = table->capacity == 0 ? FIRST_CAPACITY : 2 * table->capacity};
    larger.slots = GRAFT_NEW(arena, uint32_t, larger.capacity);
    memset(larger.slots, 0xff, larger.capacity * sizeof *larger.slots);
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->slots[i] != GRAFT_TABLE_FREE) {
            graft_table_insert(&larger, rehash(owner, table->slots[i]), table->slots[i]);
        }
    }
    *table = larger;
}
