/* device_cpu_bytes.c - products of 8-bit integers (cost/plan/integers.h) of our own, for any
 * processor: the library's are exact only with AVX-512 VNNI. Images lie with channels last, so a
 * matrix product is a convolution of one tap, whose places are rows. */
#include "cost/cpu/program.h"

#include "cost/plan/integers.h"
#include "cost/plan/nest.h"
#include "graph/base/share.h"
#include "graph/meaning/byte_conv.h"

#include <math.h>
#include <string.h>

enum { LEFT = 0, RIGHT = 1, NUMBERS = 2, ALIGNMENT = 64, REPEATED = 64 };

typedef struct {
    graft_byte_conv conv;
    int64_t images;
    int64_t places;    /* Of an image. */
    uint32_t packed;   /* Operands. */
    uint32_t work;     /* For each thread: that of a convolution, then sums. */
    size_t work_bytes; /* Of the first. */
    size_t step;       /* From thread to thread. */
} bytes_state;

/* What becomes of a sum: what is cut off, in numbers of the result before the zero point is added. */
typedef struct {
    const float *factors;
    const float *biases;
    float least;
    float most;
    uint8_t zero;
} ending;

static ending ending_of(const graft_kernel *kernel)
{
    const graft_signature *s = &kernel->signature;
    const float *n = kernel->in[NUMBERS];
    const int32_t activation = graft_signature_activation(s);
    const float *factors = n + GRAFT_PRODUCT_NUMBERS;
    ending e = {
        .factors = factors,
        .biases = factors + graft_integers_channels(s),
        .least = activation == GRAFT_ACT_NONE ? -HUGE_VALF : 0.0F,
        .most = activation == GRAFT_ACT_RELU6 ? n[GRAFT_PRODUCT_MOST] : HUGE_VALF,
    };
    if (graft_signature_result(s) != GRAFT_DTYPE_F32) {
        const float zero = n[GRAFT_PRODUCT_RESULT_ZERO];
        const float first = graft_signature_result(s) == GRAFT_DTYPE_I8 ? -128.0F : 0.0F;
        e.least = fmaxf(e.least, first - zero);
        e.most = fminf(rintf(e.most), first + 255.0F - zero);
        e.zero = (uint8_t)(int32_t)zero;
    }
    return e;
}

/* Sums of a place, rounded as quantised.c does: halves to even, which a binary32 of this size is
 * without a fraction. Compilers make vectors of it. */
static inline __attribute__((always_inline)) void
end_place(const ending *e, const int32_t *restrict sums, size_t count, const bool is_real,
          float *restrict numbers, uint8_t *restrict bytes)
{
    static const float whole = 3 << 22;
    const float *restrict factors = e->factors;
    const float *restrict biases = e->biases;
    const float least = e->least;
    const float most = e->most;
    const uint8_t zero = e->zero;
    for (size_t i = 0; i < count; i++) {
        float x = ((float)sums[i] + biases[i]) * factors[i];
        x = x > least ? x : least;
        x = x < most ? x : most;
        if (is_real) {
            numbers[i] = x;
        } else {
            uint32_t bits = 0;
            x += whole;
            memcpy(&bits, &x, sizeof(bits));
            bytes[i] = (uint8_t)((uint8_t)bits + zero);
        }
    }
}

/* Constants of few channels again and again, for loops that are long enough for vectors. */
typedef struct {
    float factors[REPEATED];
    float biases[REPEATED];
} repeated_ending;

/* Returns how many sums one loop ends. */
static size_t repeat_ending(size_t channels, ending *e, repeated_ending *repeated)
{
    const size_t length = channels < REPEATED ? REPEATED / channels * channels : channels;
    for (size_t i = 0; channels < REPEATED && i < length; i++) {
        repeated->factors[i] = e->factors[i % channels];
        repeated->biases[i] = e->biases[i % channels];
    }
    if (channels < REPEATED) {
        e->factors = repeated->factors;
        e->biases = repeated->biases;
    }
    return length;
}

static void end_places(const graft_kernel *kernel, const graft_byte_places *places, size_t first,
                       size_t channels)
{
    uint8_t *bytes = (uint8_t *)kernel->out[0] + first * channels;
    float *numbers = kernel->out[0] + first * channels;
    ending e = ending_of(kernel);
    repeated_ending repeated;
    const bool is_real = kernel->outputs[0].dtype == GRAFT_DTYPE_F32;
    const size_t all = places->count * channels;
    const size_t length = repeat_ending(channels, &e, &repeated);
    for (size_t i = 0; i < all; i += length) {
        const size_t count = all - i < length ? all - i : length;
        if (is_real) {
            end_place(&e, places->sums + i, count, true, numbers + i, bytes + i);
        } else {
            end_place(&e, places->sums + i, count, false, numbers + i, bytes + i);
        }
    }
}

/* A part of the places of all images. */
static void run_part(const void *context, uint32_t part, uint32_t parts)
{
    const graft_kernel *kernel = context;
    const bytes_state *s = kernel->state;
    const graft_range own =
        graft_range_part(s->images * s->places, GRAFT_BYTE_CONV_PLACES / 2, part, parts);
    const size_t pixels = (size_t)(s->conv.windows[0].size * s->conv.windows[1].size);
    char *work = (char *)graft_program_place(kernel, s->work) + part * s->step;
    graft_byte_places places = {.work = work, .sums = (int32_t *)(void *)(work + s->work_bytes)};
    for (int64_t at = own.from; at < own.to; at += (int64_t)places.count) {
        const int64_t first = at % s->places;
        const int64_t left = own.to - at < s->places - first ? own.to - at : s->places - first;
        const graft_byte_image image = {
            .data = (const uint8_t *)kernel->in[LEFT] +
                    (size_t)(at / s->places) * pixels * s->conv.channels,
            .dtype = kernel->signature.inputs[LEFT].dtype,
            .zero = (int32_t)kernel->in[NUMBERS][GRAFT_PRODUCT_ZERO],
        };
        places.first = (size_t)first;
        places.count = (size_t)(left < GRAFT_BYTE_CONV_PLACES ? left : GRAFT_BYTE_CONV_PLACES);
        graft_byte_conv_run(&s->conv, graft_program_place(kernel, s->packed), &image, &places);
        end_places(kernel, &places, (size_t)at, s->conv.filters);
    }
}

static void run_bytes(const graft_kernel *kernel)
{
    graft_share(kernel->thread_count, run_part, kernel);
}

static void fill_filter(const graft_kernel *kernel, const float *given, void *packed)
{
    const bytes_state *s = kernel->state;
    const graft_byte_filter filter = {.data = given,
                                      .dtype = kernel->signature.inputs[RIGHT].dtype,
                                      .turned = kernel->signature.op == GRAFT_COST_INTEGER_MATMUL};
    graft_byte_conv_pack(&s->conv, &filter, packed);
}

static bytes_state plan(const graft_signature *s, const graft_shape *out)
{
    if (s->op == GRAFT_COST_INTEGER_CONV) {
        return (bytes_state){
            .conv = graft_byte_conv_of(s->attrs, &s->inputs[LEFT], &s->inputs[RIGHT], out),
            .images = out->dims[0],
            .places = (int64_t)out->dims[2] * out->dims[3],
        };
    }
    const int64_t channels = graft_integers_channels(s);
    const int64_t rows = (int64_t)graft_shape_elements(out) / channels;
    const graft_window one = {.size = 1, .count = 1, .kernel = 1, .stride = 1, .dilation = 1};
    bytes_state made = {
        .conv = {.windows = {one, one},
                 .channels = (size_t)s->inputs[RIGHT].dims[0],
                 .filters = (size_t)channels,
                 .groups = 1},
        .images = 1,
        .places = rows,
    };
    made.conv.windows[1].size = rows;
    made.conv.windows[1].count = rows;
    return made;
}

static size_t align(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

graft_status graft_cpu_open_bytes(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const graft_signature *s = &kernel->signature;
    if (!graft_signature_is_integer(s) || s->op == GRAFT_COST_INTEGER_ADD || variant > 0) {
        return GRAFT_UNSUPPORTED;
    }
    bytes_state made = plan(s, &kernel->outputs[0]);
    const size_t sums = GRAFT_BYTE_CONV_PLACES * made.conv.filters * sizeof(int32_t);
    made.work_bytes = align(graft_byte_conv_work_bytes(&made.conv));
    made.step = made.work_bytes + align(sums);
    GRAFT_PASS(graft_program_plain(env, kernel, "integers:plain", run_bytes, &made, sizeof(made)));
    if (kernel->dry) {
        return GRAFT_OK;
    }
    bytes_state *state = kernel->state;
    GRAFT_PASS(graft_program_packed(env, kernel, RIGHT,
                                    graft_byte_conv_packed_bytes(&made.conv) / sizeof(float),
                                    fill_filter, &state->packed));
    state->work =
        graft_program_workspace(kernel, (size_t)kernel->thread_count * made.step / sizeof(float));
    return GRAFT_OK;
}
