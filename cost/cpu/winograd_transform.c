/* winograd_transform.c - the three transforms of Winograd's convolution (see winograd.h), over a
 * vector of channels at a time. The matrices are those of Lavin and Gray, section 4, for F(2x2,
 * 3x3) and F(4x4, 3x3); a two-dimensional transform is a one-dimensional one of the columns, then
 * of the rows. */
#include "cost/cpu/lanes.h"
#include "cost/cpu/winograd.h"

enum { SIDE = GRAFT_WINOGRAD_SIDE, BLOCK = GRAFT_LAYOUT_BLOCK };

typedef lanes patch[SIDE][SIDE];

/* ------------------------------------------------- one-dimensional transforms */

/* B' d, in place; elements are `step` vectors apart. */
LANES_INLINE void enter_2(lanes *d, const int step)
{
    lanes a = d[0];
    lanes b = d[step];
    lanes c = d[2 * step];
    d[0] = a - c;
    d[step] = b + c;
    d[2 * step] = c - b;
    d[3 * step] = b - d[3 * step];
}

LANES_INLINE void enter_4(lanes *d, const int step)
{
    const lanes two = lanes_of(2.0F);
    const lanes four = lanes_of(4.0F);
    const lanes five = lanes_of(5.0F);
    lanes v[SIDE];
    for (int i = 0; i < SIDE; i++) {
        v[i] = d[i * step];
    }
    lanes even = v[4] - four * v[2];
    lanes odd = v[3] - four * v[1];
    lanes near = v[4] - v[2];
    lanes far = two * (v[3] - v[1]);
    d[0] = four * v[0] - five * v[2] + v[4];
    d[step] = even + odd;
    d[2 * step] = even - odd;
    d[3 * step] = near + far;
    d[4 * step] = near - far;
    d[5 * step] = four * v[1] - five * v[3] + v[5];
}

/* A' m, into the first elements. */
LANES_INLINE void leave_2(lanes *d, const int step)
{
    lanes sum = d[step] + d[2 * step];
    lanes difference = d[step] - d[2 * step];
    d[0] = d[0] + sum;
    d[step] = difference - d[3 * step];
}

LANES_INLINE void leave_4(lanes *d, const int step)
{
    lanes sum = d[step] + d[2 * step];
    lanes difference = d[step] - d[2 * step];
    lanes far_sum = d[3 * step] + d[4 * step];
    lanes far_difference = d[3 * step] - d[4 * step];
    d[0] = d[0] + sum + far_sum;
    d[step] = difference + lanes_of(2.0F) * far_difference;
    d[2 * step] = sum + lanes_of(4.0F) * far_sum;
    d[3 * step] = difference + lanes_of(8.0F) * far_difference + d[5 * step];
}

/* `tile` is a constant where these are called. */
LANES_INLINE void enter_line(lanes *d, const int step, const int tile)
{
    if (tile == 2) {
        enter_2(d, step);
    } else {
        enter_4(d, step);
    }
}

LANES_INLINE void leave_line(lanes *d, const int step, const int tile)
{
    if (tile == 2) {
        leave_2(d, step);
    } else {
        leave_4(d, step);
    }
}

/* B' d B. */
LANES_INLINE void enter(patch d, const int tile)
{
#pragma GCC unroll 6
    for (int i = 0; i < tile + 2; i++) {
        enter_line(&d[0][i], SIDE, tile);
    }
#pragma GCC unroll 6
    for (int i = 0; i < tile + 2; i++) {
        enter_line(&d[i][0], 1, tile);
    }
}

/* A' m A. */
LANES_INLINE void leave(patch d, const int tile)
{
#pragma GCC unroll 6
    for (int i = 0; i < tile + 2; i++) {
        leave_line(&d[0][i], SIDE, tile);
    }
#pragma GCC unroll 6
    for (int i = 0; i < tile; i++) {
        leave_line(&d[i][0], 1, tile);
    }
}

/* --------------------------------------------------------------------- places */

/* A patch or tile of an image: where its first element lies, and which rows and columns of it are
 * within the image. */
typedef struct {
    int64_t base;
    int64_t rows[2];
    int64_t columns[2];
} place;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* `above` and `left` are the rows and columns before the image, `side` how many there are. */
static place place_of(const graft_winograd *plan, const graft_winograd_image *image, int64_t index,
                      const int64_t before[2], int64_t side)
{
    int64_t m = plan->tile;
    int64_t x = index % plan->tiles_wide * m - before[1];
    int64_t y = index / plan->tiles_wide % plan->tiles_high * m - before[0];
    int64_t n = index / plan->tiles_wide / plan->tiles_high;
    return (place){
        .base = n * image->batch_step + y * image->row_step + x * image->pixel_step,
        .rows = {y < 0 ? -y : 0, least(side, image->height - y)},
        .columns = {x < 0 ? -x : 0, least(side, image->width - x) },
    };
}

static int64_t channel_offset(const graft_winograd_image *image, int64_t channel)
{
    return channel / BLOCK * image->block_step + channel % BLOCK;
}

/* How many of the LANES channels from `channel` on there are. */
static int64_t channels_left(const graft_winograd_image *image, int64_t channel)
{
    return least(LANES, image->channels - channel);
}

/* ----------------------------------------------------------------------- input */

/* What lies outside of the image is 0. */
LANES_INLINE void load_edge(const graft_winograd_image *in, const float *image, const place *at,
                            int64_t channel, patch d)
{
    int64_t count = channels_left(in, channel);
    int64_t from = at->base + channel_offset(in, channel); /* May lie before the image. */
    memset(d, 0, sizeof(patch));
    for (int64_t i = at->rows[0]; i < at->rows[1]; i++) {
        for (int64_t j = at->columns[0]; j < at->columns[1]; j++) {
            d[i][j] =
                lanes_load_some(image + (from + i * in->row_step + j * in->pixel_step), count);
        }
    }
}

LANES_INLINE void load_whole(const graft_winograd_image *in, const float *image, const place *at,
                             int64_t channel, patch d, const int side)
{
    const float *from = image + at->base + channel_offset(in, channel);
#pragma GCC unroll 6
    for (int i = 0; i < side; i++) {
#pragma GCC unroll 6
        for (int j = 0; j < side; j++) {
            d[i][j] = lanes_load(from + i * in->row_step + j * in->pixel_step);
        }
    }
}

LANES_INLINE void store_patch(const graft_winograd *plan, patch d, float *to, const int side)
{
#pragma GCC unroll 6
    for (int i = 0; i < side; i++) {
#pragma GCC unroll 6
        for (int j = 0; j < side; j++) {
            lanes_store(to + (i * side + j) * plan->patch_step, d[i][j]);
        }
    }
}

LANES_INLINE void transform_in(const graft_winograd *plan, const float *image, int64_t index,
                               float *to, const int tile)
{
    const int side = tile + 2;
    const int64_t before[2] = {plan->pad_top, plan->pad_left};
    place at = place_of(plan, &plan->in, index, before, side);
    bool whole = at.rows[0] == 0 && at.rows[1] == side && at.columns[0] == 0 &&
                 at.columns[1] == side && plan->in.channels % LANES == 0;
    for (int64_t c = 0; c < plan->in.channels; c += LANES) {
        patch d;
        if (whole) {
            load_whole(&plan->in, image, &at, c, d, side);
        } else {
            load_edge(&plan->in, image, &at, c, d);
        }
        enter(d, tile);
        store_patch(plan, d, to + c, side);
    }
}

void graft_winograd_transform_in(const graft_winograd *plan, const float *image, int64_t first,
                                 int64_t count, float *patches)
{
    for (int64_t i = 0; i < count; i++) {
        if (plan->tile == 2) {
            transform_in(plan, image, first + i, patches + i * plan->patch_channels, 2);
        } else {
            transform_in(plan, image, first + i, patches + i * plan->patch_channels, 4);
        }
    }
}

/* ---------------------------------------------------------------------- output */

typedef struct {
    const graft_winograd_data *data;
    lanes bias;
    lanes low;
    lanes high;
    int64_t count; /* Of channels. */
} finish;

LANES_INLINE void store_result(const finish *f, int64_t offset, lanes x)
{
    x = x + f->bias;
    if (f->data->residual != NULL) {
        x = x + lanes_load_some(f->data->residual + offset, f->count);
    }
    x = lanes_clamp(x, f->low, f->high);
    if (f->count == LANES) {
        lanes_store(f->data->out + offset, x);
    } else {
        memcpy(f->data->out + offset, &x, (size_t)f->count * sizeof(float));
    }
}

LANES_INLINE void load_products(const graft_winograd *plan, const float *from, patch d,
                                const int side)
{
#pragma GCC unroll 6
    for (int i = 0; i < side; i++) {
#pragma GCC unroll 6
        for (int j = 0; j < side; j++) {
            d[i][j] = lanes_load(from + (i * side + j) * plan->product_step);
        }
    }
}

LANES_INLINE void transform_out(const graft_winograd *plan, const graft_winograd_data *data,
                                const graft_winograd_panel *panel, int64_t patch_index,
                                const float *from, const int tile)
{
    const graft_winograd_image *out = &plan->out;
    const int64_t before[2] = {0, 0};
    place at = place_of(plan, out, panel->first + patch_index, before, tile);
    for (int64_t c = 0; c < panel->width && panel->from + c < out->channels; c += LANES) {
        int64_t channel = panel->from + c;
        finish f = {.data = data,
                    .low = lanes_of(plan->low),
                    .high = lanes_of(plan->high),
                    .count = channels_left(out, channel)};
        f.bias =
            data->bias == NULL ? lanes_of(0.0F) : lanes_load_some(data->bias + channel, f.count);
        int64_t offset = at.base + channel_offset(out, channel);
        patch d;
        load_products(plan, from + patch_index * panel->width + c, d, tile + 2);
        leave(d, tile);
        for (int64_t i = 0; i < at.rows[1]; i++) {
            for (int64_t j = 0; j < at.columns[1]; j++) {
                store_result(&f, offset + i * out->row_step + j * out->pixel_step, d[i][j]);
            }
        }
    }
}

void graft_winograd_transform_out(const graft_winograd *plan, const graft_winograd_data *data,
                                  const graft_winograd_panel *panel, const float *products)
{
    for (int64_t i = 0; i < panel->count; i++) {
        if (plan->tile == 2) {
            transform_out(plan, data, panel, i, products, 2);
        } else {
            transform_out(plan, data, panel, i, products, 4);
        }
    }
}

/* ---------------------------------------------------------------------- filter */

/* G, for tiles of 2 and of 4. */
static const double filter_2[4][3] = {
    {1.0, 0.0,  0.0},
    {0.5, 0.5,  0.5},
    {0.5, -0.5, 0.5},
    {0.0, 0.0,  1.0}
};
static const double filter_4[6][3] = {
    {1.0 / 4.0,  0.0,         0.0       },
    {-1.0 / 6.0, -1.0 / 6.0,  -1.0 / 6.0},
    {-1.0 / 6.0, 1.0 / 6.0,   -1.0 / 6.0},
    {1.0 / 24.0, 1.0 / 12.0,  1.0 / 6.0 },
    {1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0 },
    {0.0,        0.0,         1.0       }
};

/* In double precision: packed once, it costs nothing and keeps the last digits. */
void graft_winograd_transform_filter(uint32_t tile, const float filter[9],
                                     float out[GRAFT_WINOGRAD_SIDE * GRAFT_WINOGRAD_SIDE])
{
    const double(*g)[3] = tile == 2 ? filter_2 : filter_4;
    uint32_t side = tile + 2;
    for (uint32_t i = 0; i < side; i++) {
        for (uint32_t j = 0; j < side; j++) {
            double sum = 0.0;
            for (uint32_t t = 0; t < 9; t++) {
                sum += g[i][t / 3] * g[j][t % 3] * (double)filter[t];
            }
            out[i * side + j] = (float)sum;
        }
    }
}
