/* names.h - a table from text to a number: which value, node or size a name in a file stands for.
 */
#pragma once

#include "graft/graft.h"
#include "graph/base/arena.h"

#include <stdbool.h>

typedef struct graft_names graft_names;

/* An empty table in `arena`; it grows as needed. */
graft_names *graft_names_new(graft_arena *arena);
/* The number given for `name`; GRAFT_NONE when it is not in the table. */
uint32_t graft_names_find(const graft_names *names, const char *name);
/* Adds a name, which the table borrows. False, and nothing changes, when it is there already. */
bool graft_names_add(graft_names *names, const char *name, uint32_t number);
/* Adds a name or changes its number. */
void graft_names_set(graft_names *names, const char *name, uint32_t number);
