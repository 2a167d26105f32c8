/* onnx_apart_signal.c - Fourier transforms as products by a matrix, windows and filters of speech,
 * norms and pools by powers, blocks that become an image (see onnx_apart.h). Complex numbers lie
 * side by side, (..., 2). */
#include "graph/onnx/onnx_apart.h"

#include <math.h>

/* Numbers of a matrix or table that is made here. */
enum { NUMBERS_MOST = 1 << 25 };

static const double pi = 3.14159265358979323846;

static float *make_table(graft_apart *apart, int64_t rows, int64_t columns)
{
    if (rows < 1 || columns < 1 || rows > NUMBERS_MOST || columns > NUMBERS_MOST / rows) {
        graft_apart_refuse(apart, "sizes that make no table, or too large a one");
        return NULL;
    }
    return GRAFT_NEW(apart->reader->arena, float, (size_t)(rows * columns));
}

static graft_tensor matrix_of(graft_apart *apart, const float *table, int64_t rows, int64_t columns)
{
    const int32_t dims[2] = {(int32_t)rows, (int32_t)columns};
    return table == NULL ? NULL : graft_apart_real(apart, table, dims, 2);
}

/* -------------------------------------------------------------------------------- transforms */

/* A transform of `length` numbers, of which `rows` are there, to `columns`. */
typedef struct {
    int64_t length;
    int64_t rows;
    int64_t columns;
    bool is_complex; /* What is read is, and... */
    bool to_real;    /* ...what is made is not: a spectrum's other half is that of real numbers. */
    bool inverse;
} transform;

/* Exactly 0 where a cosine or sine is. */
static double without_dust(double x) { return fabs(x) < 1e-12 ? 0.0 : x; }

/* What number `row` brings to number `column`: a factor of its real part, and one of its imaginary
 * part, for each part that is made. */
static void fill_factors(const transform *t, int64_t row, int64_t column, float *table,
                         int64_t width)
{
    const double angle = 2.0 * pi * (double)(row * column % t->length) / (double)t->length;
    const bool mirrored = t->to_real && row > 0 && 2 * row != t->length;
    const double scale = (mirrored ? 2.0 : 1.0) / (t->inverse ? (double)t->length : 1.0);
    const double real = without_dust(cos(angle)) * scale;
    const double imaginary = without_dust(sin(angle)) * (t->inverse ? scale : -scale);
    const int64_t parts = t->to_real ? 1 : 2;
    float *to = table + row * (t->is_complex ? 2 : 1) * width + column * parts;
    to[0] = (float)real;
    if (!t->to_real) {
        to[1] = (float)imaginary;
    }
    if (t->is_complex) {
        to[width] = (float)-imaginary;
    }
    if (t->is_complex && !t->to_real) {
        to[width + 1] = (float)real;
    }
}

/* (rows, parts read * columns * parts made): what a row of numbers is multiplied by. */
static float *make_factors(graft_apart *apart, const transform *t)
{
    const int64_t width = t->columns * (t->to_real ? 1 : 2);
    float *table = make_table(apart, t->rows * (t->is_complex ? 2 : 1), width);
    for (int64_t row = 0; table != NULL && row < t->rows; row++) {
        for (int64_t column = 0; column < t->columns; column++) {
            fill_factors(t, row, column, table, width);
        }
    }
    return table;
}

/* Exchanges axis `axis` and the last but one. */
static graft_tensor exchange(graft_apart *apart, graft_tensor x, uint32_t axis)
{
    const uint32_t rank = graft_apart_shape(apart, x).rank;
    char order[GRAFT_MAX_RANK][4] = {"0,", "1,", "2,", "3,", "4,", "5,"};
    if (rank > GRAFT_MAX_RANK || axis + 2 >= rank) {
        return x;
    }
    memcpy(order[axis], order[rank - 2], sizeof(order[0]));
    order[rank - 2][0] = (char)('0' + axis);
    for (uint32_t i = rank; i < GRAFT_MAX_RANK; i++) {
        order[i][0] = '\0';
    }
    return GRAFT_APART(apart,
                       graft_apart_text(apart, "Transpose perm=%s%s%s%s%s%s", order[0], order[1],
                                        order[2], order[3], order[4], order[5]),
                       x);
}

/* Since opset 17; the axis is an input since 20. A spectrum of real numbers is cut to its first
 * half; what is longer than the transform is cut off, and what is shorter has zeros behind it. */
void graft_apart_dft(graft_apart *apart)
{
    enum { OPSET_AXIS = 20 };
    graft_tensor x = graft_apart_input(apart, 0);
    graft_shape s = graft_apart_shape(apart, x);
    const bool one_sided = graft_onnx_int(apart->node, "onesided", 0) != 0;
    transform t = {.inverse = graft_onnx_int(apart->node, "inverse", 0) != 0};
    int64_t axis = apart->reader->onnx->opset < OPSET_AXIS ? graft_onnx_int(apart->node, "axis", 1)
                                                           : graft_apart_known(apart, 2, -2);
    axis += axis < 0 ? s.rank : 0;
    if (!graft_apart_is_real(apart, x, s.rank) || s.rank < 2 || axis < 0 || axis > s.rank - 2 ||
        s.dims[s.rank - 1U] > 2) {
        graft_apart_refuse(apart, "numbers or an axis that cannot be transformed");
        return;
    }
    t.is_complex = s.dims[s.rank - 1U] == 2;
    t.to_real = t.inverse && one_sided;
    t.rows = s.dims[axis];
    t.length = graft_apart_known(apart, 1, t.to_real ? 2 * t.rows - 2 : t.rows);
    t.columns = one_sided && !t.inverse ? t.length / 2 + 1 : t.length;
    const int64_t used = t.to_real ? t.length / 2 + 1 : t.length;
    if (t.length < 1 || t.length > NUMBERS_MOST || (t.to_real && !t.is_complex)) {
        graft_apart_refuse(apart, "a length that is no transform's");
        return;
    }
    if (used < t.rows) {
        x = graft_apart_slice(apart, x, axis, 0, used);
        t.rows = used;
    }
    const int64_t width = t.columns * (t.to_real ? 1 : 2);
    const int64_t height = t.rows * (t.is_complex ? 2 : 1);
    const graft_tensor factors = matrix_of(apart, make_factors(apart, &t), height, width);
    x = exchange(apart, x, (uint32_t)axis);
    x = GRAFT_APART(apart, "MatMul", GRAFT_APART_VIEW(apart, x, -1, height), factors);
    int64_t dims[GRAFT_MAX_RANK];
    for (uint32_t i = 0; i < s.rank; i++) {
        dims[i] = s.dims[i];
    }
    dims[axis] = dims[s.rank - 2U];
    dims[s.rank - 2U] = t.columns;
    dims[s.rank - 1U] = t.to_real ? 1 : 2;
    x = graft_apart_view(apart, x, dims, s.rank);
    graft_apart_result(apart, 0, exchange(apart, x, (uint32_t)axis));
}

static int64_t greatest_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* (batch * frames, length * parts): pieces of a signal (batch, samples * parts), each `step` behind
 * the one before. Samples that no frame parts are moved together. */
static graft_tensor cut_frames(graft_apart *apart, graft_tensor x, int64_t frames, int64_t length,
                               int64_t step)
{
    const graft_shape s = graft_apart_shape(apart, x);
    const int64_t parts = s.rank == 3 ? s.dims[2] : 1;
    const int64_t piece = greatest_divisor(length, step);
    const int64_t used = (frames - 1) * step + length;
    const int64_t pieces = length / piece;
    if (frames > INT32_MAX / pieces) {
        graft_apart_refuse(apart, "too many frames");
        return NULL;
    }
    int64_t *places = GRAFT_NEW(apart->reader->env->scratch, int64_t, (size_t)(frames * pieces));
    for (int64_t i = 0; i < frames * pieces; i++) {
        places[i] = i / pieces * (step / piece) + i % pieces;
    }
    x = used < s.dims[1] ? graft_apart_slice(apart, x, 1, 0, used) : x;
    x = GRAFT_APART_VIEW(apart, x, s.dims[0], used / piece, piece * parts);
    x = GRAFT_APART(apart, "Gather axis=1", x,
                    graft_apart_whole(apart, places, (uint32_t)(frames * pieces)));
    return GRAFT_APART_VIEW(apart, x, s.dims[0] * frames, length * parts);
}

/* Since opset 17. A window goes into the factors. */
void graft_apart_stft(graft_apart *apart)
{
    enum { SIGNAL, STEP, WINDOW, LENGTH };
    const graft_tensor x = graft_apart_input(apart, SIGNAL);
    const graft_tensor window = graft_apart_input(apart, WINDOW);
    const graft_shape s = graft_apart_shape(apart, x);
    const graft_shape w = graft_apart_shape(apart, window);
    const int64_t step = graft_apart_known(apart, STEP, 0);
    const int64_t length =
        graft_apart_known(apart, LENGTH, window != NULL && w.rank == 1 ? w.dims[0] : s.dims[1]);
    const int64_t parts = s.rank == 3 ? s.dims[2] : 1;
    if ((!graft_apart_is_real(apart, x, 3) && !graft_apart_is_real(apart, x, 2)) || parts > 2 ||
        step < 1 || length < 1 || length > s.dims[1] ||
        (window != NULL && (!graft_apart_is_real(apart, window, 1) || w.dims[0] != length))) {
        graft_apart_refuse(apart, "a signal, step or window that does not fit");
        return;
    }
    const bool one_sided = graft_onnx_int(apart->node, "onesided", 1) != 0 && parts == 1;
    const transform t = {.length = length,
                         .rows = length,
                         .columns = one_sided ? length / 2 + 1 : length,
                         .is_complex = parts == 2};
    const int64_t frames = (s.dims[1] - length) / step + 1;
    graft_tensor factors = matrix_of(apart, make_factors(apart, &t), length, parts * t.columns * 2);
    if (window != NULL) {
        factors = GRAFT_APART(apart, "Mul", factors, GRAFT_APART_VIEW(apart, window, length, 1));
    }
    factors = parts == 2 ? GRAFT_APART_VIEW(apart, factors, 2 * length, 2 * t.columns) : factors;
    const graft_tensor y =
        GRAFT_APART(apart, "MatMul", cut_frames(apart, x, frames, length, step), factors);
    graft_apart_result(apart, 0, GRAFT_APART_VIEW(apart, y, s.dims[0], frames, t.columns, 2));
}

/* ------------------------------------------------------------------------- windows and filters */

/* What a table is made in: binary32, or what is widened to it. */
static void check_type(graft_apart *apart, const char *name)
{
    const int64_t type = graft_onnx_int(apart->node, name, GRAFT_DTYPE_F32);
    graft_apart_refuse_if(apart, graft_onnx_dtype(apart->reader, type) != GRAFT_DTYPE_F32,
                          "a type that is not run");
}

/* first - second cos(x) + third cos(2 x) */
static void make_window(graft_apart *apart, double first, double second, double third)
{
    const int64_t size = graft_apart_known(apart, 0, 0);
    const bool periodic = graft_onnx_int(apart->node, "periodic", 1) != 0;
    float *table = make_table(apart, 1, size);
    check_type(apart, "output_datatype");
    for (int64_t i = 0; table != NULL && i < size; i++) {
        const int64_t period = periodic || size == 1 ? size : size - 1;
        const double x = 2.0 * pi * (double)i / (double)period;
        table[i] = (float)(first - second * cos(x) + third * cos(2.0 * x));
    }
    if (table != NULL) {
        graft_apart_result(apart, 0, graft_apart_real(apart, table, &(int32_t){(int32_t)size}, 1));
    }
}

void graft_apart_hann(graft_apart *apart) { make_window(apart, 0.5, 0.5, 0.0); }

void graft_apart_hamming(graft_apart *apart) { make_window(apart, 25.0 / 46.0, 21.0 / 46.0, 0.0); }

void graft_apart_blackman(graft_apart *apart) { make_window(apart, 0.42, 0.5, 0.08); }

/* The bins of a spectrum at which triangles begin, rise to their top and end. */
static void fill_triangle(float *table, int64_t step, const int64_t bins[3])
{
    for (int64_t i = bins[0]; i <= bins[1]; i++) {
        table[i * step] =
            bins[1] == bins[0] ? 1.0F : (float)(i - bins[0]) / (float)(bins[1] - bins[0]);
    }
    for (int64_t i = bins[1]; i < bins[2]; i++) {
        table[i * step] = (float)(bins[2] - i) / (float)(bins[2] - bins[1]);
    }
}

static double mel_of(double hertz) { return 2595.0 * log10(1.0 + hertz / 700.0); }

/* (spectrum, bands): what a spectrum is multiplied by. */
void graft_apart_mel(graft_apart *apart)
{
    const int64_t bands = graft_apart_known(apart, 0, 0);
    const int64_t length = graft_apart_known(apart, 1, 0);
    const int64_t rate = graft_apart_known(apart, 2, 0);
    const double low = mel_of(graft_apart_known_real(apart, 3));
    const double high = mel_of(graft_apart_known_real(apart, 4));
    if (length < 1 || length > NUMBERS_MOST || rate < 1 || bands < 1) {
        graft_apart_refuse(apart, "a spectrum that is not known");
        return;
    }
    const int64_t rows = length / 2 + 1;
    float *table = make_table(apart, rows, bands);
    check_type(apart, "output_datatype");
    for (int64_t band = 0; band < bands && apart->refusal == NULL; band++) {
        int64_t bins[3];
        for (int64_t i = 0; i < 3; i++) {
            const double mel = low + (double)(band + i) * (high - low) / (double)(bands + 2);
            const double hertz = 700.0 * (pow(10.0, mel / 2595.0) - 1.0);
            const double bin = floor((double)(length + 1) * hertz / (double)rate);
            if (!(bin >= 0.0 && bin < (double)rows + (i == 2)) ||
                (i > 0 && bin < (double)bins[i - 1])) {
                graft_apart_refuse(apart, "bands outside of the spectrum");
                return;
            }
            bins[i] = (int64_t)bin;
        }
        fill_triangle(table + band, bands, bins);
    }
    graft_apart_result(apart, 0, matrix_of(apart, table, rows, bands));
}

/* ------------------------------------------------------------------------------ norms and pools */

/* |x|^p, whose sum has the root that `unpowered` takes. */
static graft_tensor powered(graft_apart *apart, graft_tensor x, int64_t p)
{
    return p == 1   ? GRAFT_APART(apart, "Abs", x)
           : p == 2 ? GRAFT_APART(apart, "Mul", x, x)
                    : GRAFT_APART(apart, "Pow", GRAFT_APART(apart, "Abs", x),
                                  graft_apart_number(apart, (float)p));
}

static graft_tensor unpowered(graft_apart *apart, graft_tensor x, int64_t p)
{
    return p == 1   ? x
           : p == 2 ? GRAFT_APART(apart, "Sqrt", x)
                    : GRAFT_APART(apart, "Pow", x, graft_apart_number(apart, 1.0F / (float)p));
}

static int64_t read_power(graft_apart *apart)
{
    const int64_t p = graft_onnx_int(apart->node, "p", 2);
    graft_apart_refuse_if(apart, p < 1 || p > 1 << 10, "a power that is not known");
    return p;
}

/* What is 0 everywhere stays so. */
void graft_apart_lp_norm(graft_apart *apart)
{
    const graft_tensor x = graft_apart_input(apart, 0);
    const int64_t p = read_power(apart);
    const int64_t axis = graft_onnx_int(apart->node, "axis", -1);
    graft_tensor norm = graft_apart_reduced(apart, p == 1 ? "ReduceL1" : "ReduceL2", x, axis);
    norm = GRAFT_APART(apart, "Max", norm, graft_apart_number(apart, 0x1p-126F));
    graft_apart_refuse_if(apart, p > 2, "a power that is not known");
    graft_apart_result(apart, 0, GRAFT_APART(apart, "Div", x, norm));
}

void graft_apart_global_lp_pool(graft_apart *apart)
{
    const graft_tensor x = graft_apart_input(apart, 0);
    const graft_shape s = graft_apart_shape(apart, x);
    const int64_t p = read_power(apart);
    int64_t dims[GRAFT_MAX_RANK] = {1, 1, 1, 1, 1, 1};
    if (!graft_apart_is_real(apart, x, s.rank) || s.rank < 3) {
        graft_apart_refuse(apart, "a pool of what is no image");
        return;
    }
    dims[0] = s.dims[0];
    dims[1] = s.dims[1];
    graft_tensor sum = GRAFT_APART_VIEW(apart, powered(apart, x, p), dims[0], dims[1], -1);
    sum = graft_apart_view(apart, graft_apart_reduced(apart, "ReduceSum", sum, 2), dims, s.rank);
    graft_apart_result(apart, 0, unpowered(apart, sum, p));
}

/* The sum of powers is a convolution of each channel by ones. */
void graft_apart_lp_pool(graft_apart *apart)
{
    const graft_tensor x = graft_apart_input(apart, 0);
    const graft_shape s = graft_apart_shape(apart, x);
    const Onnx__AttributeProto *kernel = graft_onnx_attribute(apart->node, "kernel_shape");
    const int64_t p = read_power(apart);
    graft_shape ones = {
        .rank = s.rank, .dtype = GRAFT_DTYPE_F32, .dims = {s.dims[1], 1}
    };
    bool fits = graft_apart_is_real(apart, x, s.rank) && s.rank > 2 && kernel != NULL &&
                kernel->n_ints + 2 == s.rank && graft_onnx_int(apart->node, "ceil_mode", 0) == 0;
    for (uint32_t i = 2; fits && i < s.rank; i++) {
        fits = kernel->ints[i - 2] >= 1 && kernel->ints[i - 2] <= INT16_MAX;
        ones.dims[i] = (int32_t)kernel->ints[i - 2];
    }
    if (!fits || graft_shape_elements(&ones) > NUMBERS_MOST) {
        graft_apart_refuse(apart, "a window that is not known, or ceil_mode, in which "
                                  "implementations differ");
        return;
    }
    const char *part = graft_apart_text(
        apart, "Conv auto_pad dilations kernel_shape pads strides group=%d", s.dims[1]);
    const graft_tensor sum =
        GRAFT_APART(apart, part, powered(apart, x, p), graft_apart_filled(apart, &ones, 1.0F));
    graft_apart_result(apart, 0, unpowered(apart, sum, p));
}

/* ------------------------------------------------------------------ blocks to an image */

static int64_t number_of(const graft_apart *apart, const char *name, uint32_t i, int64_t absent)
{
    const Onnx__AttributeProto *list = graft_onnx_attribute(apart->node, name);
    return list != NULL && i < list->n_ints ? list->ints[i] : absent;
}

/* Where blocks lie along an axis of the image. */
typedef struct {
    int64_t block;
    int64_t count; /* 0: they do not fit. */
    int64_t rest;  /* Behind the last one. */
} fold_axis;

static fold_axis look_along(const graft_apart *apart, int64_t image, int64_t block, uint32_t i,
                            uint32_t axes)
{
    const int64_t stride = number_of(apart, "strides", i, 1);
    const int64_t dilation = number_of(apart, "dilations", i, 1);
    const int64_t most = INT16_MAX;
    fold_axis axis = {.block = block};
    if (block >= 1 && block <= most && stride >= 1 && stride <= most && dilation >= 1 &&
        dilation <= most && image >= 1 && image <= INT32_MAX) {
        const int64_t room = image + number_of(apart, "pads", i, 0) +
                             number_of(apart, "pads", i + axes, 0) - dilation * (block - 1) - 1;
        axis.count = room < 0 ? 0 : room / stride + 1;
        axis.rest = room < 0 ? 0 : room % stride;
    }
    return axis;
}

/* A 1 for each place of a block, (channels places, 1, block). */
static graft_tensor make_places(graft_apart *apart, int64_t channels, const fold_axis axes[2])
{
    const int64_t places = axes[0].block * axes[1].block;
    float *ones = make_table(apart, channels * places, places);
    for (int64_t i = 0; ones != NULL && i < channels * places; i++) {
        ones[i * places + i % places] = 1.0F;
    }
    const int32_t dims[4] = {(int32_t)(channels * places), 1, (int32_t)axes[0].block,
                             (int32_t)axes[1].block};
    return graft_apart_real(apart, ones, dims, 4);
}

/* The sum of blocks that overlap is a transposed convolution of each channel, of which a place of a
 * block is an input channel. */
void graft_apart_fold(graft_apart *apart)
{
    enum { AXES = 2 };
    const graft_tensor x = graft_apart_input(apart, 0);
    const graft_shape s = graft_apart_shape(apart, x);
    const graft_onnx_ints *sizes[2]; /* Of the image, of a block. */
    fold_axis axes[AXES] = {{0}};
    bool fits = graft_apart_is_real(apart, x, 3);
    for (uint32_t k = 0; k < 2; k++) {
        graft_onnx_entry *entry = graft_onnx_input(apart->reader->onnx, apart->node, k + 1);
        sizes[k] = entry == NULL ? NULL : graft_onnx_ints_of_entry(apart->reader, entry);
        fits = fits && sizes[k] != NULL && sizes[k]->count == AXES;
    }
    for (uint32_t i = 0; fits && i < AXES; i++) {
        axes[i] = look_along(apart, sizes[0]->items[i], sizes[1]->items[i], i, AXES);
        fits = axes[i].count > 0;
    }
    const int64_t places = fits ? axes[0].block * axes[1].block : 1;
    if (!fits || s.dims[1] % places != 0 || axes[0].count * axes[1].count != s.dims[2]) {
        graft_apart_refuse(apart, "blocks that are not of an image of known size");
        return;
    }
    const int64_t channels = s.dims[1] / places;
    const char *part = graft_apart_text(
        apart, "ConvTranspose dilations pads strides group=%d output_padding=%d,%d", (int)channels,
        (int)axes[0].rest, (int)axes[1].rest);
    graft_apart_result(
        apart, 0,
        GRAFT_APART(apart, part,
                    GRAFT_APART_VIEW(apart, x, s.dims[0], s.dims[1], axes[0].count, axes[1].count),
                    make_places(apart, channels, axes)));
}

/* 1 at the first of the largest numbers. Up to opset 12 all axes from `axis` on are one. */
void graft_apart_hardmax(graft_apart *apart)
{
    enum { OPSET_ONE = 13 };
    const bool joined = apart->reader->onnx->opset < OPSET_ONE;
    graft_tensor x = graft_apart_input(apart, 0);
    const graft_shape s = graft_apart_shape(apart, x);
    int64_t axis = graft_onnx_int(apart->node, "axis", joined ? 1 : -1);
    int64_t dims[GRAFT_MAX_RANK];
    axis += axis < 0 ? s.rank : 0;
    if (!graft_apart_is_real(apart, x, s.rank) || axis < 0 || axis >= s.rank) {
        graft_apart_refuse(apart, "an axis that the tensor does not have");
        return;
    }
    int64_t front = 1;
    for (uint32_t i = 0; i < s.rank; i++) {
        dims[i] = s.dims[i];
        front *= i < (uint32_t)axis ? s.dims[i] : 1;
    }
    x = joined ? GRAFT_APART_VIEW(apart, x, front, -1) : x;
    axis = joined ? 1 : axis;
    const int64_t size = graft_apart_shape(apart, x).dims[axis];
    const graft_tensor places =
        GRAFT_APART(apart, graft_apart_text(apart, "ArgMax keepdims=0 axis=%d", (int)axis), x);
    const graft_tensor one = GRAFT_APART(
        apart, graft_apart_text(apart, "OneHot axis=%d", (int)axis), places,
        graft_apart_whole(apart, &size, 1), graft_apart_range(apart, 0.0F, 1.0F, 2, 0, 1));
    graft_apart_result(apart, 0, joined ? graft_apart_view(apart, one, dims, s.rank) : one);
}
