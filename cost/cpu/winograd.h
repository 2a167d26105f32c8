/* winograd.h - Winograd's convolution for filters of 3x3 and steps of one: fewer products.
 *
 * F(m x m, 3 x 3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR
 * 2016, section 4.1: m x m results per channel from a patch of (m+2) x (m+2), as
 *
 *      A' [ sum over channels of (G g G') * (B' d B) ] A
 *
 * where * multiplies element by element: (m+2)^2 products per m^2 results instead of 9 m^2. Over
 * all patches the sum is one matrix product per element of a patch,
 *
 *      products(element, patch, output) = patches(element, patch, channel) x
 *                                         filters(element, channel, output),
 *
 * and that is where the time goes. m = 2 needs 2.25 times fewer products and a filter of 16 numbers
 * for 9, m = 4 needs 4 times fewer and 36 numbers: which is faster depends on where the filter
 * comes from. Bias, residual and activation cost nothing but their loads at the end.
 *
 * Images lie channels last or in blocks of 16 channels. Patches are worked on in strips that the
 * second-level cache holds, and for each strip in panels of a few outputs, so that the filter,
 * packed in the order of its use, streams through once per strip; the next element's filter is
 * fetched while this one's is multiplied. */
#pragma once

#include "cost/database/signature.h"

enum {
    GRAFT_WINOGRAD_FILTER = 3,
    GRAFT_WINOGRAD_SIDE = 6,   /* Of the largest patch, m + 2. */
    GRAFT_WINOGRAD_PANEL = 64, /* Outputs that are multiplied at once. */
    GRAFT_WINOGRAD_HALF = 32   /* Outputs come in panels, the last of which may be a half one. */
};

/* Element (n, c, y, x) lies at n batch + c / 16 block + c % 16 + y row + x pixel floats. */
typedef struct graft_winograd_image {
    int64_t channels;
    int64_t height;
    int64_t width;
    int64_t batch_step;
    int64_t block_step;
    int64_t row_step;
    int64_t pixel_step;
} graft_winograd_image;

typedef struct graft_winograd {
    uint32_t tile; /* m: 2 or 4. */
    uint32_t side; /* m + 2. */
    uint32_t thread_count;
    bool by_strips; /* Threads share out strips, not the panels of a strip. */
    int64_t pad_top;
    int64_t pad_left;
    graft_winograd_image in;
    graft_winograd_image out;
    float low; /* Results are kept within: relu is 0 and infinity. */
    float high;
    int64_t tiles_high; /* Patches of an image, and of all images of the batch. */
    int64_t tiles_wide;
    int64_t tile_count;
    int64_t strip;          /* Patches worked on at once. */
    int64_t patch_channels; /* The channels of the image, in whole vectors. */
    int64_t patch_step;     /* Floats from one element of the patches to the next... */
    int64_t product_step;   /* ...and of the products. */
} graft_winograd;

/* What a run reads and writes. `residual` may be NULL or equal `out`; `bias` may be NULL. `filter`
 * is what graft_winograd_pack has written, `work` has graft_winograd_work_bytes; both aligned
 * to 64. */
typedef struct graft_winograd_data {
    const float *image;
    const float *filter;
    const float *bias;
    const float *residual;
    float *out;
    float *work;
} graft_winograd_data;

/* Whether F(tile x tile, 3 x 3) can run a convolution of this signature with the result `output`:
 * 3x3, stride, dilation and groups 1, a const filter, images channels last or blocked, no
 * activation or relu or relu6; then everything but pointers is set. */
bool graft_winograd_plan(const graft_signature *signature, const graft_shape *output, uint32_t tile,
                         uint32_t thread_count, graft_winograd *plan);

/* Floats of the packed filter. */
size_t graft_winograd_filter_count(const graft_winograd *plan);
size_t graft_winograd_work_bytes(const graft_winograd *plan);
/* Transforms the filter (outputs, channels, 3, 3), row-major. */
void graft_winograd_pack(const graft_winograd *plan, const float *filter, float *packed);
void graft_winograd_run(const graft_winograd *plan, const graft_winograd_data *data);

/* winograd_transform.c: B' d B of the patches first...first+count-1 into `patches`, as
 * (element, patch, channel) with patch_step. */
void graft_winograd_transform_in(const graft_winograd *plan, const float *image, int64_t first,
                                 int64_t count, float *patches);
/* A' p A of `width` outputs from `from` on, and what follows. `products` is (element, patch,
 * output) with product_step. */
typedef struct graft_winograd_panel {
    int64_t first; /* Patches. */
    int64_t count;
    int64_t from; /* Outputs. */
    int64_t width;
} graft_winograd_panel;
void graft_winograd_transform_out(const graft_winograd *plan, const graft_winograd_data *data,
                                  const graft_winograd_panel *panel, const float *products);
/* G g G' of one filter (3, 3) into (side, side), row-major. */
void graft_winograd_transform_filter(uint32_t tile, const float filter[9],
                                     float out[GRAFT_WINOGRAD_SIDE * GRAFT_WINOGRAD_SIDE]);

/* winograd_product.c: out(row, column) = left(row, k) right(k, column); `right` is packed with
 * `width` columns, whole vectors (LANES, lanes.h) of them. */
typedef struct graft_winograd_product {
    const float *left;
    int64_t left_step; /* Floats from row to row. */
    const float *right;
    const float *next; /* Read after this one: fetched meanwhile. */
    float *out;        /* Rows of `width`. */
    int64_t rows;
    int64_t depth;
    int64_t width;
    bool adds; /* To what `out` has. */
} graft_winograd_product;
void graft_winograd_multiply(const graft_winograd_product *product);
