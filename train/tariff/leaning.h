/* leaning.h - a tariff whose rows lean towards its fallback.
 *
 * Greedy over what nodes were measured to cost stops before a rewrite that costs something, though
 * what it opens would pay for it: the first of two merges of products. The fallback is
 * smooth: it has no such steps, and greedy over it walks through; but it misjudges small gains. So
 * the rows of each operator lean towards the fallback by a part of their own, and the parts are
 * chosen so that the graphs which greedy then ends at are the cheapest by the rows as measured. */
#pragma once

#include "train/tariff/tariff.h"

/* In percent, by operator. */
typedef struct graft_leaning {
    uint8_t parts[GRAFT_OP_COUNT];
} graft_leaning;

typedef struct graft_leaning_rows {
    const graft_tariff *measured;
    uint16_t *guesses; /* By row: the fallback's value. */
    uint8_t *ops;      /* By row. */
    uint64_t *met;     /* By row: the models that meet its form, bit m: model m. */
    uint32_t counts[GRAFT_OP_COUNT];
} graft_leaning_rows;

/* What the rows of a tariff, made of this book, can lean towards; in `arena`. The tariff has a
 * fallback and is kept. */
void graft_leaning_open(graft_arena *arena, const graft_book *book, const graft_tariff *measured,
                        graft_leaning_rows *rows);
/* The parts that are tried. */
enum { GRAFT_LEANING_PARTS = 5 };
extern const uint8_t graft_leaning_parts[GRAFT_LEANING_PARTS];

/* The value of a row that leans by a part. What costs nothing, a view, goes on costing nothing. */
uint16_t graft_leaning_value(const graft_leaning_rows *rows, uint32_t row, uint32_t part);
/* The leaning tariff. `values` has room for its rows and becomes part of it. */
graft_tariff graft_leaning_apply(const graft_leaning_rows *rows, const graft_leaning *leaning,
                                 uint16_t *values);

/* How good the graphs are that a tariff leads to: less is better. */
typedef struct graft_leaning_judge {
    graft_status (*judge)(graft_env *env, void *context, const graft_tariff *tariff, double *loss);
    void *context;
} graft_leaning_judge;
/* One round of coordinate descent from the best equal part of all operators: operator by operator,
 * those with most rows first, each part is tried and the best kept. A part is taken when the loss
 * falls by more than `least`. Deterministic. Fails as the judge does, and when interrupted. */
GRAFT_MUST_USE graft_status graft_leaning_search(graft_env *env, const graft_leaning_rows *rows,
                                                 const graft_leaning_judge *judge, double least,
                                                 graft_leaning *leaning);
