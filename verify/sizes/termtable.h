/* termtable.h - numbers for Z3 terms, in the order in which they are added: what is known of a term
 * lies in an array, at its number. */
#pragma once

#include "graph/base/arena.h"

#include <z3.h>

#define GRAFT_TERM_ABSENT UINT32_MAX

/* Terms are compared by address: they belong to one context, and outlive the table. */
typedef struct graft_term_table {
    graft_arena *arena; /* Borrowed. */
    struct graft_term_slot *slots;
    uint32_t capacity; /* Of slots, a power of two. */
    uint32_t count;    /* Of terms. */
} graft_term_table;

void graft_term_table_open(graft_term_table *table, graft_arena *arena);
/* GRAFT_TERM_ABSENT when it has none. */
uint32_t graft_term_table_find(const graft_term_table *table, Z3_ast term);
/* The next number, for a term that has none. */
uint32_t graft_term_table_add(graft_term_table *table, Z3_ast term);
/* Forgets all terms; numbers begin with 0 again. */
void graft_term_table_clear(graft_term_table *table);
