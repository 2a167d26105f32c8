/* byte_product.h - products of matrices of bytes with zero points, as quantised operators have them:
 *
 *      out(m,n) = sum over k of (a(m,k) - a_zero(m)) (b(k,n) - b_zero(n))
 *
 * The sums are exact, and wrap around in 32 bits. One matrix, mostly of weights, is packed, once
 * where it stays the same, so that a run reads it from begin to end: in panels of some columns, some
 * rows at a time, which is what one instruction multiplies and adds: four rows with AVX-512 VNNI, two
 * otherwise, in 16 bits each. The first wants bytes without a sign by such with one; 128 is added to
 * or taken from other bytes and their zero points, and what zero points make of the sum of products
 * is taken off at the end:
 *
 *      out(m,n) = sum of a b - b_zero(n) sum of a(m) - a_zero(m) sum of (b(n) - b_zero(n)) */
#pragma once

#include "graph/base/arena.h"

#include <stddef.h>
#include <stdint.h>

/* Where element (k,n) of b lies, and zero point n. */
typedef struct graft_byte_matrix {
    const void *data;
    const void *zeros; /* Of the elements' type; NULL: 0. */
    uint32_t dtype;    /* GRAFT_DTYPE_I8 or GRAFT_DTYPE_U8. */
    size_t depth;
    size_t columns;
    size_t depth_step;
    size_t depth_turn; /* So many steps, then one element on and as many from there; 0: never. */
    size_t column_step;
    size_t zero_step; /* 0: one for all. */
} graft_byte_matrix;

typedef struct graft_byte_panels {
    size_t depth;
    size_t columns;
    const int32_t *zeros; /* By column, and... */
    const int32_t *sums;  /* ...of all elements less their zero points. */
    const int8_t *data;   /* Panel by panel, filled up with 0. */
} graft_byte_panels;

/* Packs into memory of so many bytes, aligned for int32. */
size_t graft_byte_packed_bytes(size_t depth, size_t columns);
graft_byte_panels graft_byte_pack_into(void *memory, const graft_byte_matrix *b);
/* What such memory holds. */
graft_byte_panels graft_byte_panels_in(const void *memory, size_t depth, size_t columns);
/* Packs in `arena`. */
graft_byte_panels graft_byte_pack(graft_arena *arena, const graft_byte_matrix *b);

/* Rows of a, bytes without a sign: graft_byte_row_bytes(depth) apart, 0 after `depth`. */
typedef struct graft_byte_rows {
    const uint8_t *data;
    const int32_t *zeros;
    size_t zero_step; /* 0: one for all. */
    size_t count;
} graft_byte_rows;

size_t graft_byte_row_bytes(size_t depth);
/* Copies `count` bytes of such a type into one, `step` apart. */
void graft_byte_fill(const void *data, uint32_t dtype, size_t first, size_t step, size_t count,
                     uint8_t *row);
/* out(m,n) lies at m row_step + n column_step. On `threads` threads (0: one). */
void graft_byte_multiply(int threads, const graft_byte_rows *a, const graft_byte_panels *b,
                         size_t row_step, size_t column_step, int32_t *out);
