/* names.c - see names.h. */
#include "graph/names.h"

#include "graph/base/table.h"

#include <string.h>
#include <xxhash.h>

enum { FIRST_NAMES = 64 };

typedef struct {
    const char *name;
    uint64_t hash;
    uint32_t number;
} named;

struct graft_names {
    graft_arena *arena;
    graft_table table; /* Of `items`. */
    named *items;
    uint32_t count;
    uint32_t capacity;
};

graft_names *graft_names_new(graft_arena *arena)
{
    graft_names *names = GRAFT_NEW(arena, graft_names, 1);
    names->arena = arena;
    return names;
}

static uint64_t hash_item(const void *owner, uint32_t i)
{
    const graft_names *names = owner;
    return names->items[i].hash;
}

/* NULL: it is not in the table. */
static named *find_item(const graft_names *names, const char *name, uint64_t hash)
{
    GRAFT_EACH_ALIKE(&names->table, hash, i)
    {
        if (names->items[i].hash == hash && strcmp(names->items[i].name, name) == 0) {
            return &names->items[i];
        }
    }
    return NULL;
}

uint32_t graft_names_find(const graft_names *names, const char *name)
{
    const named *item = find_item(names, name, XXH3_64bits(name, strlen(name)));
    return item == NULL ? GRAFT_NONE : item->number;
}

bool graft_names_add(graft_names *names, const char *name, uint32_t number)
{
    uint64_t hash = XXH3_64bits(name, strlen(name));
    if (find_item(names, name, hash) != NULL) {
        return false;
    }
    graft_table_reserve(names->arena, &names->table, names, hash_item);
    graft_table_insert(&names->table, hash, names->count);
    GRAFT_PUSH(names->arena, names->items, names->count, names->capacity, FIRST_NAMES) =
        (named){name, hash, number};
    return true;
}

void graft_names_set(graft_names *names, const char *name, uint32_t number)
{
    if (!graft_names_add(names, name, number)) {
        find_item(names, name, XXH3_64bits(name, strlen(name)))->number = number;
    }
}
