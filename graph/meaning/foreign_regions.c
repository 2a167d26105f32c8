/* foreign_regions.c - means or maxima over parts of regions of images (see
 * foreign.h): RoiAlign (K. He et al.,
 * Mask R-CNN, 2017, section 3). A region is cut in a grid of parts, and samples lie evenly in each. */
#include "graph/meaning/algebra.h"
#include "graph/meaning/foreign_rows.h"

#include <math.h>

enum { REGION_HEIGHT = 1, REGION_WIDTH, REGION_SAMPLES, REGION_SCALE, REGION_HALF, REGION_MAX };
enum { SAMPLES_MOST = 1 << 12 }; /* Along an axis of a part. */

bool graft_foreign_region_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *x = &opaque->in[0];
    const graft_shape *regions = &opaque->in[1];
    const graft_shape *images = &opaque->in[2];
    bool fits = true;
    for (uint32_t i = REGION_HEIGHT; i <= REGION_SAMPLES; i++) {
        fits = fits && opaque->attrs[i] >= (i == REGION_SAMPLES ? 0 : 1) &&
               opaque->attrs[i] <= SAMPLES_MOST;
    }
    *shape = (graft_shape){
        .rank = 4,
        .dtype = GRAFT_DTYPE_F32,
        .dims = {regions->dims[0], x->dims[1], opaque->attrs[REGION_HEIGHT],
                 opaque->attrs[REGION_WIDTH]}
    };
    return fits && x->rank == 4 && x->dtype == GRAFT_DTYPE_F32 && regions->rank == 2 &&
           regions->dims[1] == 4 && regions->dtype == GRAFT_DTYPE_F32 && images->rank == 1 &&
           images->dims[0] == regions->dims[0] &&
           (images->dtype == GRAFT_DTYPE_I64 || images->dtype == GRAFT_DTYPE_I32) &&
           graft_axes_count(x, 2, 4) <= INT32_MAX;
}

/* A sample: a weighted sum of four pixels. */
typedef struct {
    size_t at[4];
    float weight[4];
} sample;

/* A place along an axis: between which pixels it lies, and how far behind the first. */
typedef struct {
    size_t low;
    size_t high;
    float behind;
    bool outside;
} place;

static place find_place(float x, int32_t size)
{
    place p = {.outside = !(x >= -1.0F && x <= (float)size)};
    x = x > 0.0F ? x : 0.0F;
    const bool last = x >= (float)(size - 1);
    p.low = p.outside ? 0 : last ? (size_t)size - 1 : (size_t)x;
    p.high = p.low + (last ? 0 : 1);
    p.high = p.outside ? 0 : p.high;
    p.behind = last || p.outside ? 0.0F : x - (float)p.low;
    return p;
}

static sample find_sample(place y, place x, int32_t width)
{
    const float down[2] = {1.0F - y.behind, y.behind};
    const float right[2] = {1.0F - x.behind, x.behind};
    const size_t rows[2] = {y.low * (size_t)width, y.high * (size_t)width};
    const size_t columns[2] = {x.low, x.high};
    sample s;
    for (uint32_t i = 0; i < 4; i++) {
        s.at[i] = rows[i / 2] + columns[i % 2];
        s.weight[i] = y.outside || x.outside ? 0.0F : down[i / 2] * right[i % 2];
    }
    return s;
}

/* A region along an axis. */
typedef struct {
    float start;
    float part; /* Size of one. */
    int32_t samples;
    int32_t size; /* Of the image. */
} extent;

static bool find_extent(const graft_opaque *opaque, const float *region, uint32_t axis, extent *e)
{
    const float scale = graft_float_of_bits(opaque->attrs[REGION_SCALE]);
    const bool half = opaque->attrs[REGION_HALF] != 0;
    const int32_t parts = opaque->attrs[axis == 0 ? REGION_HEIGHT : REGION_WIDTH];
    const float offset = half ? 0.5F : 0.0F;
    e->start = region[1 - axis] * scale - offset;
    float size = region[3 - axis] * scale - offset - e->start;
    size = !half && size < 1.0F ? 1.0F : size;
    e->part = size / (float)parts;
    const float wanted = ceilf(size / (float)parts);
    const bool told = opaque->attrs[REGION_SAMPLES] > 0;
    e->samples = told             ? opaque->attrs[REGION_SAMPLES]
                 : wanted >= 1.0F ? (int32_t)fminf(wanted, SAMPLES_MOST + 1.0F)
                                  : 0;
    e->size = opaque->in[0].dims[2 + axis];
    return isfinite(size) && e->samples <= SAMPLES_MOST;
}

static float place_of(const extent *e, int32_t part, int32_t i)
{
    return e->start + (float)part * e->part + ((float)i + 0.5F) * e->part / (float)e->samples;
}

/* The mean of samples of a channel. */
static float mean_of(const float *x, const sample *samples, size_t count)
{
    float sum = 0.0F;
    for (size_t i = 0; i < count; i++) {
        const sample *s = &samples[i];
        sum += s->weight[0] * x[s->at[0]] + s->weight[1] * x[s->at[1]] +
               s->weight[2] * x[s->at[2]] + s->weight[3] * x[s->at[3]];
    }
    return sum / (float)(count > 0 ? count : 1);
}

/* The largest share of a pixel in a sample, as ONNX and runtimes have it. */
static float most_of(const float *x, const sample *samples, size_t count)
{
    float most = count > 0 ? -INFINITY : 0.0F;
    for (size_t i = 0; i < 4 * count; i++) {
        const float share = samples[i / 4].weight[i % 4] * x[samples[i / 4].at[i % 4]];
        most = share > most ? share : most;
    }
    return most;
}

static void run_region(const graft_opaque *opaque, const extent e[2], const float *image,
                       sample *samples, float *out)
{
    const size_t channels = (size_t)opaque->in[0].dims[1];
    const size_t pixels = graft_axes_count(&opaque->in[0], 2, 4);
    const int32_t width = opaque->attrs[REGION_WIDTH];
    const int32_t parts = opaque->attrs[REGION_HEIGHT] * width;
    const int32_t count = e[0].samples * e[1].samples;
    for (int32_t part = 0; part < parts; part++) {
        for (int32_t i = 0; i < count; i++) {
            const float y = place_of(&e[0], part / width, i / e[1].samples);
            const float x = place_of(&e[1], part % width, i % e[1].samples);
            samples[i] = find_sample(find_place(y, e[0].size), find_place(x, e[1].size), e[1].size);
        }
        for (size_t c = 0; c < channels; c++) {
            const float *x = image + c * pixels;
            out[c * (size_t)parts + (size_t)part] = opaque->attrs[REGION_MAX] != 0
                                                        ? most_of(x, samples, (size_t)count)
                                                        : mean_of(x, samples, (size_t)count);
        }
    }
}

GRAFT_FOREIGN_RUNNER(region)
{
    const size_t image_size = graft_axes_count(&opaque->in[0], 1, 4);
    const size_t region_size = graft_axes_count(&opaque->out, 1, 4);
    for (int32_t r = 0; r < opaque->in[1].dims[0]; r++) {
        GRAFT_SCOPED(env->scratch);
        const int64_t image = graft_foreign_whole(opaque, 2, (uint32_t)r);
        const float *region = (const float *)opaque->data[1] + 4 * (size_t)r;
        extent e[2];
        if (image < 0 || image >= opaque->in[0].dims[0] || !find_extent(opaque, region, 0, &e[0]) ||
            !find_extent(opaque, region, 1, &e[1])) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                              "region %d of a RoiAlign is of an image that is not there, or has no "
                              "size that can be sampled",
                              r);
        }
        sample *samples =
            GRAFT_NEW(env->scratch, sample, (size_t)e[0].samples * (size_t)e[1].samples);
        run_region(opaque, e, (const float *)opaque->data[0] + (size_t)image * image_size, samples,
                   (float *)out + (size_t)r * region_size);
    }
    return GRAFT_OK;
}
