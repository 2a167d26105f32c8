/* findmap.h - proposals for proofs about sums and maxima (hints.h): which places of one correspond
 * to which of another. Nothing here is trusted.
 *
 * Of two folds, shifts are read off elements of the same variable in both bodies. Of maxima, where
 * a place goes is read off the indices of elements of one variable in both bodies: a binder that
 * stands alone in an index has one image, and of two that are added (a window over a window), one
 * of them perhaps multiplied by a stride, that one goes to the least number that the other's range
 * leaves it. */
#pragma once

#include "verify/core/hints.h"

/* Maps that were tried for a pair. */
typedef struct graft_sym_maps {
    Z3_ast to[GRAFT_ROOM_MAPS][GRAFT_SYM_BINDERS];
    uint32_t count;
} graft_sym_maps;

/* See graft_sym_hints.map, .place, .fixed, .inside and .part. */
bool graft_sym_find_map(graft_sym_maps *tried, graft_sym *s, const graft_sym_pair *pair,
                        uint32_t way, Z3_ast to[GRAFT_SYM_BINDERS]);
bool graft_sym_find_place(graft_sym *s, const graft_sym_pair *pair, Z3_ast to[GRAFT_SYM_BINDERS]);
Z3_ast graft_sym_find_fixed(graft_sym *s, const graft_sym_range *range, uint32_t binder);
void graft_sym_find_inside(graft_sym *s, const graft_sym_range *range,
                           Z3_ast to[GRAFT_SYM_BINDERS]);
Z3_ast graft_sym_find_part(graft_sym *s, uint32_t count, const Z3_ast *folds, uint32_t which,
                           const graft_sym_range *range, Z3_ast body);
