/* hinter.h - the hints that proofs get (hints.h). Nothing here is trusted.
 *
 * Conditions can hold together when numbers that Z3 has found before make all of them true. A question is put with what hangs together with it
 * through common symbols. A case is split by the ways in which two sizes broadcast whose larger one
 * matters: as the range of a fold, as a number, in row-major places, or in a shape. Values for
 * conditions are read off elements; for maps and places of folds see findmap.h. A question about
 * numbers that found no answer is not put again in the proof at hand: cases of a rule ask much
 * alike. */
#pragma once

#include "graph/base/arena.h"
#include "verify/sizes/findmap.h"

/* The symbols in a term, as bits; symbols past the last bit share it. */
typedef struct graft_sym_mask {
    uint64_t words[GRAFT_ROOM_MASK_SYMBOLS / 64];
} graft_sym_mask;

/* The masks of terms, which live as long as their context: the same ones are asked about again and
 * again. */
typedef struct graft_sym_masks {
    graft_arena *arena;
    uint32_t *places; /* By the terms' ids: 1 more than theirs in `known`, or 0. */
    uint32_t place_capacity;
    graft_sym_mask *known;
    uint32_t count;
    uint32_t capacity;
    uint32_t symbol_count;
} graft_sym_masks;

typedef struct graft_sym_hinter {
    graft_sym_hints hints;
    const graft_sym *s;
    Z3_model models[GRAFT_ROOM_MODELS]; /* What Z3 has last found where something is false, */
    uint32_t model_count;               /* a ring: numbers of all that it has found. */
    graft_sym_maps maps;
    graft_sym_masks masks;
    Z3_ast_map unanswered; /* Names of questions about numbers, in the proof at hand. */
    graft_arena *arena;    /* For a question at hand. */
} graft_sym_hinter;

void graft_sym_hinter_open(graft_sym_hinter *h, const graft_sym *s);
/* For another proof. */
void graft_sym_hinter_begin(graft_sym_hinter *h);
void graft_sym_hinter_close(graft_sym_hinter *h);
