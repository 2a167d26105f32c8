/* byte_conv.h - convolutions of images of bytes with zero points, channels last:
 *
 *      out(place, f) = sum over taps and channels of
 *                      (image(place + tap, c) - zero) (filter(f, c, tap) - zeros(f))
 *
 * Taps outside of the image add nothing. Sums are exact, and wrap around in 32 bits. Places under a
 * filter are copied into rows, which are multiplied by the packed filters (byte_product.h); where
 * each channel has a filter of its own, sums are made in place. */
#pragma once

#include "graph/base/arena.h"
#include "graph/meaning/algebra.h"

#include <stddef.h>
#include <stdint.h>

typedef struct graft_byte_conv {
    graft_window windows[2]; /* Height, width. */
    size_t channels;         /* Of the image. */
    size_t filters;
    size_t groups;
    int threads; /* Of graft_byte_conv_run_all; 0: one. */
} graft_byte_conv;

/* Sequences are images of one row. */
graft_shape graft_byte_conv_image(graft_shape shape);
/* Of attributes of `conv`, and of an image, a filter and a result that fit together. */
graft_byte_conv graft_byte_conv_of(const int32_t *attrs, const graft_shape *image,
                                   const graft_shape *filter, const graft_shape *out);

/* (filters, channels / groups, height, width), of one zero point or one each. One of one tap and one
 * group may be given turned. */
typedef struct graft_byte_filter {
    const void *data;
    const void *zeros; /* Of the elements' type; NULL: 0. */
    uint32_t dtype;    /* GRAFT_DTYPE_I8 or GRAFT_DTYPE_U8. */
    size_t zero_step;  /* 0: one for all. */
    bool turned;       /* (channels, filters) */
} graft_byte_filter;

/* Packs into memory of so many bytes, aligned for int32. */
size_t graft_byte_conv_packed_bytes(const graft_byte_conv *c);
void graft_byte_conv_pack(const graft_byte_conv *c, const graft_byte_filter *filter, void *packed);

typedef struct graft_byte_image {
    const void *data; /* (height, width, channels) */
    uint32_t dtype;
    int32_t zero;
} graft_byte_image;

/* `count` places, row by row, from place `first` on, at most GRAFT_BYTE_CONV_PLACES. */
typedef struct graft_byte_places {
    size_t first;
    size_t count;
    void *work;    /* graft_byte_conv_work_bytes, aligned for pointers. */
    int32_t *sums; /* (count, filters), written. */
} graft_byte_places;

enum { GRAFT_BYTE_CONV_PLACES = 96 };
size_t graft_byte_conv_work_bytes(const graft_byte_conv *c);
void graft_byte_conv_run(const graft_byte_conv *c, const void *packed,
                         const graft_byte_image *image, const graft_byte_places *places);

/* All sums of `images` images as ONNX has them, (channels, height, width), likewise the result. */
void graft_byte_conv_run_all(graft_arena *scratch, const graft_byte_conv *c, const void *packed,
                             const graft_byte_image *image, size_t images, int32_t *out);
