/* apply.h - a law at every graph of a space where it fits.
 *
 * Graphs are looked up by the configuration of their first root and matched. A place
 * where the law fits and leads to another graph of the same group is a join of the two. */
#pragma once

#include "gen/groups.h"

/* Graphs of groups by the configuration of their first root. */
typedef struct graft_gen_index {
    uint32_t *first_by_config; /* Where a configuration's graphs begin; config_count + 1 entries. */
    uint32_t *graphs;          /* In ascending order within a configuration. */
} graft_gen_index;

/* Lists the graphs whose first root is no input, those of the marked groups alone when `marks` is
 * not NULL (by hub). The index lives in `arena`. */
void graft_gen_index_build(const graft_gen_groups *groups, const bool *marks, graft_arena *arena,
                           graft_gen_index *index);

/* Two graphs that a law connects; counts for pairs behind `ready`. */
typedef struct graft_gen_join {
    uint32_t from;
    uint32_t to;
    uint32_t law;
    uint32_t ready;
    uint32_t next;   /* For chains of the caller. */
    uint8_t side;    /* Of the law, at `from`. */
    bool is_literal; /* The side stands in `from` as it is, not just up to equal inner graphs. */
    bool is_whole;   /* So do both sides, in `from` and `to`, with nothing left to choose: the law
                        of these two graphs, as drawn, says nothing that this law does not. */
} graft_gen_join;

typedef struct graft_gen_joins {
    graft_gen_join *items;
    uint32_t count;
    uint32_t capacity;
} graft_gen_joins;

/* What laws are applied to. */
typedef struct graft_gen_site {
    const graft_gen_groups *groups;
    const graft_gen_index *index;
    const uint32_t *places; /* By node: 1 + number of the pair that says what it equals, or 0. */
    graft_arena *arena;     /* For joins. */
} graft_gen_site;

/* Appends the joins of a law, in a fixed order, as those of law `number`. False, and nothing
 * appended, when it leads to an unequal graph somewhere: then it is refuted. */
bool graft_gen_law_join(const graft_gen_site *site, const graft_gen_law *law, uint32_t number,
                        graft_gen_joins *joins);
