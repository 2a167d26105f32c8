/* tariff.h - making the table of node costs that ships (graft_tariff, include/graft/policy.h).
 *
 * A book notes what the nodes of priced graphs cost, each together with the conversions made for it
 * (graft_cost_nodes): by form, and by model. A tariff's row is the mean over the contexts in which
 * the form was met, so one that is a view half of the time costs half. What a row is worth is what
 * graphs that have it would be misjudged by without it; the rows worth most come first where bytes
 * are limited. Its fallback are trees grown on all rows and on what a database has besides.
 */
#pragma once

#include "cost/cost.h"
#include "graph/base/file.h"
#include "graph/base/table.h"
#include "train/search/matches.h"

/* A form in the graphs of one model. */
typedef struct graft_book_row {
    uint64_t hash;
    uint32_t model; /* The caller's number. */
    uint32_t count; /* Contexts. */
    double sum_ns;
    double share; /* Sum over the contexts of 1 / ns of the graph: what a ns of error is worth. */
    int16_t *inputs; /* (GRAFT_TARIFF_INPUTS), of the fallback. */
} graft_book_row;

typedef struct graft_book {
    graft_arena *arena;
    graft_book_row *rows;
    graft_table table; /* Of `rows`. */
    uint32_t row_count;
    uint32_t row_capacity;
    uint64_t priced; /* Graphs. */
} graft_book;

/* An empty book; it grows in `arena`. */
void graft_book_open(graft_arena *arena, graft_book *book);
/* Notes the nodes of a graph. Forms that have been met in `contexts` contexts of the model already
 * are left out. Fails as graft_cost_nodes does. */
GRAFT_MUST_USE graft_status graft_book_note(graft_env *env, graft_book *book, graft_cost *cost,
                                            const graft_state *state, uint32_t model,
                                            uint32_t contexts);
/* Whether applying a rule would make a node of a form met in fewer contexts. */
bool graft_book_wants(const graft_book *book, const graft_graph *graph, const graft_rule *rule,
                      const graft_made *made, uint32_t model, uint32_t contexts);

/* Appends all that a book has, for this program in another process. */
void graft_book_pack(const graft_book *book, graft_buffer *packed);
/* Adds what was packed, of models that the book knows nothing of. */
void graft_book_add(graft_book *book, const void *packed, size_t bytes);

enum { GRAFT_TARIFF_TREES = 160 }; /* What a fallback has unless bytes are short. */

typedef struct graft_tariff_options {
    uint64_t models;     /* Bit m: rows of model m are used. The fallback sees these alone, too. */
    uint32_t bytes_most; /* Of rows and fallback together; 0: no limit. */
    bool rows;           /* False: the fallback alone. */
    uint32_t trees;      /* Of the fallback, at most, in half of the bytes; 0: no fallback. */
    const graft_database *database; /* What its measured signatures teach the fallback besides, or
                                       NULL: for tables of all models. */
} graft_tariff_options;

/* Makes a tariff in `arena`. GRAFT_INTERNAL when no seed keeps the keys apart. */
GRAFT_MUST_USE graft_status graft_tariff_make(graft_env *env, graft_arena *arena,
                                              const graft_book *book,
                                              const graft_tariff_options *options,
                                              graft_tariff *tariff);
/* Bytes of a tariff in flash: rows and trees. */
uint32_t graft_tariff_bytes(const graft_tariff *tariff);
/* The value of a row that costs so many nanoseconds, see graft_tariff. */
uint16_t graft_tariff_encode(double ns);
