/* device_cpu_norm.c - normalisations: of layers through oneDNN, and all in plain C.
 *
 * Rows are read three times, and lie in a cache after the first. Images with their channels last
 * are read twice: the moments of all channels are added up chunk by chunk. */
#include "cost/cpu/lanes.h"
#include "cost/cpu/program.h"
#include "cost/plan/nest.h"
#include "graph/base/bits.h"
#include "graph/base/share.h"

#include <math.h>
#include <string.h>

enum { DATA = 0, SCALE = 1, SHIFT = 2, LEAST_RANK = 2, MOST_RANK = 5 };

static float epsilon_of(const graft_kernel *kernel)
{
    return graft_float_of_bits(kernel->signature.attrs[GRAFT_ATTR_layer_norm_epsilon]);
}

static bool is_row_major(const graft_signature *s)
{
    return graft_layout_same(&s->inputs[DATA], s->in_layouts[DATA], GRAFT_LAYOUT_ROW) &&
           graft_layout_same(&s->inputs[DATA], s->out_layouts[0], GRAFT_LAYOUT_ROW);
}

/* ------------------------------------------------------------------ oneDNN */

graft_status graft_cpu_open_layer_norm(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    const int64_t columns = s->inputs[SCALE].dims[0];
    dnnl_memory_desc_t form;
    dnnl_memory_desc_t row;
    dnnl_layer_normalization_desc_t desc;
    if (s->op != GRAFT_OP_layer_norm || variant > 0 || s->inputs[DATA].rank < LEAST_RANK ||
        s->inputs[DATA].rank > MOST_RANK || !is_row_major(s)) {
        return GRAFT_UNSUPPORTED;
    }
    graft_program_describe(&s->inputs[DATA], GRAFT_LAYOUT_ROW, &form);
    graft_program_describe_dims(1, &columns, false, &row);
    GRAFT_PASS(
        graft_program_status(env,
                             dnnl_layer_normalization_forward_desc_init(
                                 &desc, dnnl_forward_inference, &form, NULL, epsilon_of(kernel),
                                 (unsigned)dnnl_use_scale | (unsigned)dnnl_use_shift),
                             "describing a layer normalisation"));
    const program_use uses[] = {
        {DNNL_ARG_SRC,   DATA,           &form, &form},
        {DNNL_ARG_DST,   PROGRAM_RESULT, &form, &form},
        {DNNL_ARG_SCALE, SCALE,          &row,  &row },
        {DNNL_ARG_SHIFT, SHIFT,          &row,  &row }
    };
    const program_one one = {"layer_norm", &desc, 0, uses, 4};
    return graft_program_open_one(env, kernel, &one);
}

/* ------------------------------------------------------------------- plain */

/* The sum of `count` vectors of `width` elements less the mean, or of the squares of that; `step`
 * elements lead from one to the next. */
LANES_INLINE lanes fold(const float *in, int64_t step, int64_t count, int64_t width, lanes mean,
                        bool square)
{
    enum { AT_ONCE = 4 }; /* Sums that do not wait for one another. */
    lanes sums[AT_ONCE] = {{0.0F}};
    int64_t i = 0;
    for (; i + AT_ONCE <= count; i += AT_ONCE) {
        for (int64_t k = 0; k < AT_ONCE; k++) {
            lanes d = lanes_load_some(in + (i + k) * step, width) - mean;
            sums[k] = square ? lanes_fused(d, d, sums[k]) : sums[k] + d;
        }
    }
    for (; i < count; i++) {
        lanes d = lanes_load_some(in + i * step, width) - mean;
        sums[0] = square ? lanes_fused(d, d, sums[0]) : sums[0] + d;
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

LANES_INLINE float fold_row(const float *in, int64_t count, float mean, bool square)
{
    lanes sums = fold(in, LANES, count / LANES, LANES, lanes_of(mean), square);
    float total = 0.0F;
    for (int64_t i = count / LANES * LANES; i < count; i++) {
        total += square ? (in[i] - mean) * (in[i] - mean) : in[i];
    }
    for (int lane = 0; lane < LANES; lane++) {
        total += sums[lane];
    }
    return total;
}

/* Rows of the last axis, or channels of row-major images. */
static void run_some_rows(const void *context, uint32_t part, uint32_t parts)
{
    const graft_kernel *kernel = context;
    const graft_signature *s = &kernel->signature;
    const float *scale = kernel->in[SCALE];
    const float *shift = kernel->in[SHIFT];
    const int64_t vector = s->inputs[SCALE].dims[0];
    const int64_t elements = (int64_t)graft_shape_elements(&s->inputs[DATA]);
    const int64_t columns =
        s->op == GRAFT_OP_instance_norm ? elements / (s->inputs[DATA].dims[0] * vector) : vector;
    const graft_range own = graft_range_part(elements / columns, 1, part, parts);
    for (int64_t row = own.from; row < own.to; row++) {
        const float *in = kernel->in[DATA] + row * columns;
        float *restrict out = kernel->out[0] + row * columns;
        float mean =
            s->op == GRAFT_OP_rms_norm ? 0.0F : fold_row(in, columns, 0.0F, false) / (float)columns;
        float variance = fold_row(in, columns, mean, true) / (float)columns;
        float factor = 1.0F / sqrtf(variance + epsilon_of(kernel));
        for (int64_t i = 0; i < columns && s->op == GRAFT_OP_layer_norm; i++) {
            out[i] = (in[i] - mean) * factor * scale[i] + shift[i];
        }
        for (int64_t i = 0; i < columns && s->op == GRAFT_OP_rms_norm; i++) {
            out[i] = in[i] * factor * scale[i];
        }
        for (int64_t i = 0; i < columns && s->op == GRAFT_OP_instance_norm; i++) {
            out[i] = (in[i] - mean) * (factor * scale[row % vector]) + shift[row % vector];
        }
    }
}

static void run_rows(const graft_kernel *kernel)
{
    graft_share(kernel->thread_count, run_some_rows, kernel);
}

/* An image whose channels lie last, or a block of channels of one. */
typedef struct {
    const float *in;
    float *out;
    int64_t pixels;
    int64_t channels;
    graft_range own; /* Channels that are normalised. */
    float *means;    /* (channels), and the sums of the squares less them. */
    float *squares;
} image;

/* So many pixels as stay in the first-level cache between two visits. */
static int64_t count_chunk(const image *m)
{
    enum { CHUNK = 4096, LEAST = 8 };
    return m->channels * LEAST > CHUNK ? LEAST : CHUNK / m->channels;
}

/* Adds pixels [from, from + count) to the moments of `width` channels that are known of the pixels
 * before (Chan, Golub and LeVeque 1979). */
LANES_INLINE void add_moments(const image *m, int64_t channel, int64_t width, int64_t from,
                              int64_t count)
{
    const float *in = m->in + from * m->channels + channel;
    const float part = (float)count / (float)(from + count);
    lanes mean = fold(in, m->channels, count, width, lanes_of(0.0F), false) / (float)count;
    lanes squares = fold(in, m->channels, count, width, mean, true);
    lanes before = lanes_load_some(m->means + channel, width);
    lanes apart = mean - before;
    before = from == 0 ? mean : before + apart * part;
    squares += from == 0 ? lanes_of(0.0F)
                         : lanes_load_some(m->squares + channel, width) +
                               apart * apart * (part * (float)from);
    memcpy(m->means + channel, &before, (size_t)width * sizeof(float));
    memcpy(m->squares + channel, &squares, (size_t)width * sizeof(float));
}

/* (in - mean) factor + shift for one chunk of pixels; the factors stand in m->squares by then. */
LANES_INLINE void finish(const image *m, int64_t channel, int64_t width, int64_t from,
                         int64_t count, const float *shift)
{
    const lanes mean = lanes_load_some(m->means + channel, width);
    const lanes factor = lanes_load_some(m->squares + channel, width);
    const lanes plus = lanes_load_some(shift + channel, width);
    for (int64_t p = from; p < from + count; p++) {
        int64_t at = p * m->channels + channel;
        lanes y = (lanes_load_some(m->in + at, width) - mean) * factor + plus;
        memcpy(m->out + at, &y, (size_t)width * sizeof(float));
    }
}

/* Both passes over an image, `scale` and `shift` being those of its channels. */
static void normalise_image(const image *m, float epsilon, const float *scale, const float *shift)
{
    const int64_t chunk = count_chunk(m);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t from = 0; from < m->pixels; from += chunk) {
            int64_t count = m->pixels - from < chunk ? m->pixels - from : chunk;
            int64_t c = m->own.from;
            for (; c + LANES <= m->own.to && pass == 0; c += LANES) {
                add_moments(m, c, LANES, from, count);
            }
            for (; c + LANES <= m->own.to; c += LANES) {
                finish(m, c, LANES, from, count, shift);
            }
            if (c < m->own.to && pass == 0) {
                add_moments(m, c, m->own.to - c, from, count);
            } else if (c < m->own.to) {
                finish(m, c, m->own.to - c, from, count, shift);
            }
        }
        /* Factors, from here on. */
        for (int64_t c = m->own.from; c < m->own.to && pass == 0; c++) {
            m->squares[c] = scale[c] / sqrtf(m->squares[c] / (float)m->pixels + epsilon);
        }
    }
}

/* Channels last, all of them or blocks. A part of the channels, or of the blocks. */
static void run_some_images(const void *context, uint32_t part, uint32_t parts)
{
    const graft_kernel *kernel = context;
    const graft_signature *s = &kernel->signature;
    const int32_t *dims = s->inputs[DATA].dims;
    const int64_t pixels = (int64_t)dims[2] * dims[3];
    const int64_t channels =
        s->in_layouts[DATA] == GRAFT_LAYOUT_BLOCKED ? GRAFT_LAYOUT_BLOCK : dims[1];
    const int64_t images = dims[0] * (dims[1] / channels);
    const bool whole = images >= parts;
    const graft_range own = graft_range_part(channels, LANES, whole ? 0 : part, whole ? 1 : parts);
    const graft_range some = graft_range_part(images, 1, whole ? part : 0, whole ? parts : 1);
    float *moments = (float *)graft_program_place(kernel, 0) + (whole ? 2 * channels * part : 0);
    for (int64_t i = some.from; i < some.to; i++) {
        const int64_t at = i * pixels * channels;
        const int64_t first = i * channels % dims[1];
        const image m = {.in = kernel->in[DATA] + at,
                         .out = kernel->out[0] + at,
                         .pixels = pixels,
                         .channels = channels,
                         .own = own,
                         .means = moments,
                         .squares = moments + channels};
        normalise_image(&m, epsilon_of(kernel), kernel->in[SCALE] + first,
                        kernel->in[SHIFT] + first);
    }
}

static void run_images(const graft_kernel *kernel)
{
    graft_share(kernel->thread_count, run_some_images, kernel);
}

graft_status graft_cpu_open_plain_norm(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    const bool images = s->op == GRAFT_OP_instance_norm && s->in_layouts[DATA] == s->out_layouts[0];
    if ((s->op != GRAFT_OP_layer_norm && s->op != GRAFT_OP_rms_norm && !images) || variant > 0 ||
        (!images && !is_row_major(s))) {
        return GRAFT_UNSUPPORTED;
    }
    plain_run run = s->in_layouts[DATA] == GRAFT_LAYOUT_ROW || !images ? run_rows : run_images;
    if (run == run_images) {
        (void)graft_program_workspace(kernel, 2 * (size_t)s->inputs[DATA].dims[1] *
                                                  (size_t)kernel->thread_count);
    }
    return graft_program_plain(env, kernel, "plain", run, NULL, 0);
}
