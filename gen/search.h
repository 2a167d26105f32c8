/* search.h - the state of a search for laws, shared by its parts: propose.c takes pairs of graphs,
 * split.c parts groups of graphs that turn out to differ, minimise.c drops laws that the others
 * make superfluous, macros.c brings back single directions. */
#pragma once

#include "gen/ahead.h"
#include "gen/apply.h"
#include "gen/propose.h"
#include "gen/trail.h"
#include "graph/base/log.h"

typedef struct graft_gen_pair {
    uint32_t hub; /* The first graph of the group, or of what it is when its group was split. */
    uint32_t other;
    uint32_t order; /* Small graphs first; among equals those with more variables. */
    uint8_t fate;   /* graft_gen_fate; what has been made of it so far. */
} graft_gen_pair;

/* Two graphs that are joined from some place on. */
typedef struct graft_gen_wait {
    uint32_t a;
    uint32_t b;
    uint32_t next; /* Chain of those that wait for the same pair. */
} graft_gen_wait;

/* By which laws a pair is known to be a mere instance (graft_gen_join.is_whole). */
typedef enum {
    GRAFT_GEN_COVER_NONE,
    GRAFT_GEN_COVER_OWN_LAW,
    GRAFT_GEN_COVER_FIRM
} graft_gen_cover;

typedef struct graft_gen_found {
    graft_gen_law law;
    uint32_t hub; /* GRAFT_GEN_NONE for a law of another set. */
    uint32_t other;
    uint32_t place; /* Of its pair. */
    bool is_lemma;  /* Follows from the laws before its place; helps to derive, is not kept. */
    bool alive;
} graft_gen_found;

typedef struct graft_gen_search {
    const graft_gen_space *space;
    graft_arena *arena;
    graft_gen_groups groups;
    graft_gen_index index;
    graft_gen_site site;
    graft_gen_ahead *ahead; /* Tries pairs on several threads. */
    graft_gen_trail trail;  /* What an earlier run has told, and what this one tells. */
    uint32_t *parents;      /* Union-find over the graphs. */
    graft_gen_pair *pairs;
    uint32_t pair_count;
    uint32_t *pair_of; /* By graph: its pair; GRAFT_GEN_NONE for the first of a group. */
    uint32_t *places;  /* By node: 1 + number of the pair that says what it equals; 0 for the first
                          of a group and nodes in none. */
    uint32_t place;    /* Of the pair being looked at. */
    uint32_t *waiting; /* By place: chain of waits that count from there on. */
    graft_gen_wait *waits;
    uint32_t wait_count;
    uint32_t wait_capacity;
    uint64_t change_count; /* Joins, waits and covers that said something new. */
    uint8_t *covers; /* By graph: how it is joined to the first of its group (graft_gen_cover). */
    graft_gen_joins joins;
    uint32_t sorted_count; /* Joins of laws and lemmas; those of macros stand behind, */
    uint32_t *macro_joins; /* chained by the graph that they lead from. */
    graft_gen_found *laws;
    uint32_t law_count;
    uint32_t law_capacity;
    uint64_t refuted_count;
    graft_gen_samples *told; /* Where draws are listed that told pairs apart; or NULL. */
    uint32_t told_first;     /* Draws before this one are in the space's samples. */
} graft_gen_search;

static inline uint32_t graft_gen_root_of(uint32_t *parents, uint32_t g)
{
    while (parents[g] != g) {
        parents[g] = parents[parents[g]];
        g = parents[g];
    }
    return g;
}

/* Whether they were not joined before. */
static inline bool graft_gen_unite(uint32_t *parents, uint32_t a, uint32_t b)
{
    uint32_t x = graft_gen_root_of(parents, a);
    uint32_t y = graft_gen_root_of(parents, b);
    parents[x > y ? x : y] = x > y ? y : x;
    return x != y;
}

/* A law that is the search's own, not of another set and not a lemma. */
static inline bool graft_gen_is_own(const graft_gen_found *law)
{
    return law->hub != GRAFT_GEN_NONE && !law->is_lemma;
}

/* The first sorted join whose graph is at least `graph`. */
uint32_t graft_gen_search_first_join(const graft_gen_search *find, uint32_t graph);
/* Joins two graphs, now or when the pair that the join rests on has had its turn. */
void graft_gen_search_connect(graft_gen_search *find, const graft_gen_join *j);
/* Lets the joins count that waited for the pair before this place. */
void graft_gen_search_reach(graft_gen_search *find, uint32_t place);
/* Notes the pair that a whole join says all about. */
void graft_gen_search_cover(graft_gen_search *find, const graft_gen_join *j, graft_gen_cover kind);
/* What a pair would be tried for if its turn were now. What an earlier run has told has to be done
 * again, but not found out. */
graft_gen_task graft_gen_search_task(const graft_gen_search *find, uint32_t number);
/* What a pair gives as `task`, whose turn it is; pairs behind it are tried too unless `alone`. */
const graft_gen_trial *graft_gen_search_try(graft_gen_search *find, uint32_t number,
                                            graft_gen_task task, bool alone);
/* The sides of a law that can be the source of a rule, as bits. */
uint8_t graft_gen_search_directions(const graft_gen_law *law);
/* Takes the law of a pair, and joins what it joins. False when the trial says that it is false, or
 * too large. As a macro it keeps only these directions (bits; 0: no macro), joins nothing, and is
 * not taken when it has none of them. */
bool graft_gen_search_take(graft_gen_search *find, uint32_t number, const graft_gen_trial *trial,
                           uint8_t macro_directions);
/* The progress of a walk over all pairs, and whether it may go on. GRAFT_INTERRUPTED,
 * GRAFT_NO_MEMORY when the space's room is used up. */
GRAFT_MUST_USE graft_status graft_gen_search_tell(const graft_gen_search *find,
                                                  graft_progress *progress, uint32_t i,
                                                  const char *unit);

/* Makes what it takes to search a space for laws of so many outputs: groups, pairs, threads.
 * The threads are to be closed (find->ahead). */
void graft_gen_search_open(graft_gen_search *find, const graft_gen_space *space,
                           uint32_t output_count);
/* Lays the first `count` laws, those of other sets. */
void graft_gen_search_know(graft_gen_search *find, const graft_gen_laws *known, uint32_t count);
/* Takes all pairs, from small to large. GRAFT_INTERRUPTED, GRAFT_IO. */
GRAFT_MUST_USE graft_status graft_gen_search_walk(graft_gen_search *find);
/* Pair `number` is false: `draw` tells its graphs apart (GRAFT_GEN_NONE: none is known). Graphs of
 * the group whose turn comes later and that side with its second graph are compared with that from
 * now on, no longer with the first of the group (split.c). */
void graft_gen_search_split(graft_gen_search *find, uint32_t number, uint32_t draw);

/* Drops laws that the others make superfluous (minimise.c). GRAFT_INTERRUPTED. */
GRAFT_MUST_USE graft_status graft_gen_search_minimise(graft_gen_search *find);
/* Takes macros (macros.c). GRAFT_INTERRUPTED. */
GRAFT_MUST_USE graft_status graft_gen_search_macros(graft_gen_search *find);
