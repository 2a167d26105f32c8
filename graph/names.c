/* names.c - open addressing with linear probing; the capacity is a power of two, at most half full
 * (see names.h). Nothing is ever removed. */
#include "graph/names.h"

#include <string.h>
#include <xxhash.h>

enum { FIRST_CAPACITY = 64 };

typedef struct {
    const char *name; /* NULL: free. */
    uint64_t hash;
    uint32_t number;
} name_slot;

struct graft_names {
    graft_arena *arena;
    name_slot *slots;
    size_t capacity;
    size_t count;
};

graft_names *graft_names_new(graft_arena *arena)
{
    graft_names *names = GRAFT_NEW(arena, graft_names, 1);
    names->arena = arena;
    names->capacity = FIRST_CAPACITY;
    names->slots = GRAFT_NEW(arena, name_slot, names->capacity);
    return names;
}

/* The slot that holds `name`, or the free one where it belongs. */
static name_slot *find_slot(const graft_names *names, const char *name, uint64_t hash)
{
    size_t i = (size_t)hash & (names->capacity - 1);
    while (names->slots[i].name != NULL &&
           (names->slots[i].hash != hash || strcmp(names->slots[i].name, name) != 0)) {
        i = (i + 1) & (names->capacity - 1);
    }
    return &names->slots[i];
}

static void grow_table(graft_names *names)
{
    name_slot *old = names->slots;
    size_t old_capacity = names->capacity;
    names->capacity = 2 * old_capacity;
    names->slots = GRAFT_NEW(names->arena, name_slot, names->capacity);
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].name != NULL) {
            *find_slot(names, old[i].name, old[i].hash) = old[i];
        }
    }
}

uint32_t graft_names_find(const graft_names *names, const char *name)
{
    const name_slot *slot = find_slot(names, name, XXH3_64bits(name, strlen(name)));
    return slot->name == NULL ? GRAFT_NONE : slot->number;
}

bool graft_names_add(graft_names *names, const char *name, uint32_t number)
{
    uint64_t hash = XXH3_64bits(name, strlen(name));
    name_slot *slot = find_slot(names, name, hash);
    if (slot->name != NULL) {
        return false;
    }
    if (2 * (names->count + 1) > names->capacity) {
        grow_table(names);
        slot = find_slot(names, name, hash);
    }
    *slot = (name_slot){.name = name, .hash = hash, .number = number};
    names->count++;
    return true;
}

void graft_names_set(graft_names *names, const char *name, uint32_t number)
{
    if (!graft_names_add(names, name, number)) {
        find_slot(names, name, XXH3_64bits(name, strlen(name)))->number = number;
    }
}
