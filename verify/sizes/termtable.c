/* termtable.c - see termtable.h. An open table, at most half full. */
#include "verify/sizes/termtable.h"

#include <string.h>

enum { SLOTS_FIRST = 2048 };

struct graft_term_slot {
    Z3_ast term; /* NULL: free. */
    uint32_t number;
};

typedef struct graft_term_slot slot;

static void allocate(graft_term_table *table, uint32_t capacity)
{
    table->slots = GRAFT_NEW(table->arena, slot, capacity);
    table->capacity = capacity;
}

void graft_term_table_open(graft_term_table *table, graft_arena *arena)
{
    *table = (graft_term_table){.arena = arena};
    allocate(table, SLOTS_FIRST);
}

/* The slot of a term, or the free one where it belongs. */
static slot *slot_of(const graft_term_table *table, Z3_ast term)
{
    uint64_t hash = (uint64_t)(uintptr_t)term * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 32) & (table->capacity - 1);
    while (table->slots[at].term != NULL && table->slots[at].term != term) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->slots[at];
}

uint32_t graft_term_table_find(const graft_term_table *table, Z3_ast term)
{
    const slot *found = slot_of(table, term);
    return found->term == NULL ? GRAFT_TERM_ABSENT : found->number;
}

uint32_t graft_term_table_add(graft_term_table *table, Z3_ast term)
{
    if (2 * (table->count + 1) > table->capacity) {
        const slot *old = table->slots;
        uint32_t count = table->capacity;
        allocate(table, 2 * count);
        for (uint32_t i = 0; i < count; i++) {
            if (old[i].term != NULL) {
                *slot_of(table, old[i].term) = old[i];
            }
        }
    }
    *slot_of(table, term) = (slot){term, table->count};
    return table->count++;
}

void graft_term_table_clear(graft_term_table *table)
{
    memset(table->slots, 0, table->capacity * sizeof *table->slots);
    table->count = 0;
}
