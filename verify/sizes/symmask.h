/* symmask.h - which symbols occur in a term, remembered for each subterm: terms live as long as
 * their context, and the same ones are asked about again and again. */
#pragma once

#include "verify/core/limits.h"

#include <stdbool.h>
#include <z3.h>

enum { GRAFT_SYM_MASK_WORDS = GRAFT_ROOM_MASK_SYMBOLS / 64 };

/* The symbols in a term, as bits; symbols past the last bit share it. */
typedef struct graft_sym_mask {
    uint64_t words[GRAFT_SYM_MASK_WORDS];
} graft_sym_mask;

typedef struct graft_sym_masks graft_sym_masks;

/* For the terms of one context, which must outlive it. */
graft_sym_masks *graft_sym_masks_new(Z3_context z3);
void graft_sym_masks_free(graft_sym_masks *masks);

graft_sym_mask graft_sym_mask_of(graft_sym_masks *masks, Z3_ast term);
bool graft_sym_masks_meet(const graft_sym_mask *a, const graft_sym_mask *b);
/* Adds the symbols of b to a. */
void graft_sym_masks_join(graft_sym_mask *a, const graft_sym_mask *b);
