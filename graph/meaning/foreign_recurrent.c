/* foreign_recurrent.c - LSTM of any length, and onnxruntime's of weights of 8 bits, which quantises
 * what it multiplies by them at each step (see foreign.h). Gates: input, output, forget, cell. */
#include "graph/meaning/foreign_rows.h"

#include "graph/meaning/algebra.h"

#include <math.h>
#include <string.h>

enum { LSTM_HIDDEN = 1, LSTM_WAY, LSTM_GATES = 4 };
enum { LSTM_FORWARD, LSTM_BACKWARD, LSTM_BOTH };
enum { LSTM_X, LSTM_W, LSTM_R, LSTM_B, LSTM_LENGTHS, LSTM_H, LSTM_C, LSTM_P, LSTM_SCALES };

/* Not with other activations, layouts, lengths or peepholes. */
bool graft_foreign_read_lstm(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    static const char *const ways[] = {"forward", "reverse", "bidirectional", NULL};
    const int64_t hidden = graft_foreign_int(node, "hidden_size", 0);
    opaque->attrs[LSTM_HIDDEN] = hidden >= 1 && hidden <= INT32_MAX / 8 ? (int32_t)hidden : 0;
    opaque->attrs[LSTM_WAY] = graft_foreign_choice(node, "direction", ways, LSTM_FORWARD);
    return opaque->attrs[LSTM_HIDDEN] > 0 && opaque->attrs[LSTM_WAY] >= 0 &&
           opaque->in[LSTM_X].rank == 3 && graft_foreign_int(node, "layout", 0) == 0 &&
           graft_foreign_int(node, "input_forget", 0) == 0 &&
           !graft_foreign_has(opaque, LSTM_LENGTHS) && !graft_foreign_has(opaque, LSTM_P);
}

static int32_t ways_of(const graft_opaque *opaque)
{
    return opaque->attrs[LSTM_WAY] == LSTM_BOTH ? 2 : 1;
}

/* Whether an input that is given has these sizes and binary32 elements. */
static bool is_real(const graft_opaque *opaque, uint32_t k, uint32_t rank, int32_t a, int32_t b,
                    int32_t c)
{
    const graft_shape wanted = {
        .rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_F32, .dims = {a, b, c}
    };
    return !graft_foreign_has(opaque, k) || graft_shape_equal(&opaque->in[k], &wanted);
}

/* Weights of 8 bits lie the other way round, (ways, from, to); `s` is where their scales and zero
 * points are, one a way or one for each column. */
static bool fits_weights(const graft_opaque *opaque, uint32_t k, int32_t from, uint32_t s)
{
    const graft_shape *w = &opaque->in[k];
    const int32_t ways = ways_of(opaque);
    const int32_t to = LSTM_GATES * opaque->attrs[LSTM_HIDDEN];
    if (!graft_foreign_has(opaque, LSTM_SCALES)) {
        return is_real(opaque, k, 3, ways, to, from);
    }
    const graft_shape *scale = &opaque->in[s];
    const graft_shape *zero = &opaque->in[s + 1];
    const bool one = scale->rank == 1 && scale->dims[0] == ways;
    const bool each = scale->rank == 2 && scale->dims[0] == ways && scale->dims[1] == to;
    return graft_foreign_is_byte(w->dtype) && w->rank == 3 && w->dims[0] == ways &&
           w->dims[1] == from && w->dims[2] == to && graft_foreign_has(opaque, s) &&
           scale->dtype == GRAFT_DTYPE_F32 && (one || each) && graft_foreign_has(opaque, s + 1) &&
           zero->dtype == w->dtype && graft_count(zero) == graft_count(scale);
}

bool graft_foreign_lstm_shape(const graft_opaque *opaque, const void *const *in, graft_shape *shape)
{
    (void)in;
    const graft_shape *x = &opaque->in[LSTM_X];
    const int32_t hidden = opaque->attrs[LSTM_HIDDEN];
    const int32_t ways = ways_of(opaque);
    const graft_shape all = {
        .rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {x->dims[0], ways, x->dims[1], hidden}
    };
    const graft_shape last = {
        .rank = 3, .dtype = GRAFT_DTYPE_F32, .dims = {ways, x->dims[1], hidden}
    };
    *shape = opaque->which == 0 ? all : last;
    return x->dtype == GRAFT_DTYPE_F32 && fits_weights(opaque, LSTM_W, x->dims[2], LSTM_SCALES) &&
           fits_weights(opaque, LSTM_R, hidden, LSTM_SCALES + 2) &&
           is_real(opaque, LSTM_B, 2, ways, 2 * LSTM_GATES * hidden, 0) &&
           is_real(opaque, LSTM_H, 3, ways, x->dims[1], hidden) &&
           is_real(opaque, LSTM_C, 3, ways, x->dims[1], hidden);
}

/* A matrix of weights as rows, one for each element of the product. */
typedef struct {
    const float *real;
    int16_t *bytes; /* Less their zero points; NULL: real ones. */
    const float *scales;
    size_t scale_step;
    size_t rows;
    size_t columns;
} weights;

static weights weights_of(graft_arena *scratch, const graft_opaque *opaque, const void *const *in,
                          uint32_t k, uint32_t s, size_t way)
{
    const size_t rows = (size_t)(LSTM_GATES * opaque->attrs[LSTM_HIDDEN]);
    const size_t columns = graft_count(&opaque->in[k]) / (size_t)ways_of(opaque) / rows;
    weights w = {.rows = rows, .columns = columns};
    if (!graft_foreign_has(opaque, LSTM_SCALES)) {
        w.real = (const float *)in[k] + way * rows * columns;
        return w;
    }
    w.scale_step = opaque->in[s].rank == 2 ? 1 : 0;
    const uint32_t dtype = opaque->in[k].dtype;
    const size_t first = way * (w.scale_step != 0 ? rows : 1);
    w.scales = (const float *)in[s] + first;
    w.bytes = GRAFT_NEW(scratch, int16_t, rows * columns);
    for (size_t i = 0; i < rows * columns; i++) {
        const size_t from = (way * columns + i % columns) * rows + i / columns;
        w.bytes[i] =
            (int16_t)(graft_foreign_byte(in[k], dtype, from) -
                      graft_foreign_byte(in[s + 1], dtype, first + i / columns * w.scale_step));
    }
    return w;
}

/* out(count,rows) += x(count,columns) w(rows,columns); `bytes` is room for x. */
static void add_product(const weights *w, const float *x, size_t count, int16_t *bytes, float *out)
{
    float scale = 1.0F;
    if (w->bytes != NULL) {
        scale = graft_foreign_quantise(x, count * w->columns, bytes);
    }
    for (size_t i = 0; i < count * w->rows; i++) {
        const size_t from = i / w->rows * w->columns;
        const size_t row = i % w->rows;
        out[i] +=
            w->bytes == NULL
                ? graft_foreign_dot_real(x + from, w->real + row * w->columns, (int64_t)w->columns,
                                         1)
                : (float)graft_foreign_dot(bytes + from, w->bytes + row * w->columns, w->columns) *
                      (scale * w->scales[row * w->scale_step]);
    }
}

static float sigmoid(float x) { return 1.0F / (1.0F + expf(-x)); }

/* One step of one sequence: gates of `size` each; the state and the cell are changed. */
static void take_step(const float *gates, size_t size, float *h, float *c)
{
    for (size_t i = 0; i < size; i++) {
        const float in = sigmoid(gates[i]) * tanhf(gates[3 * size + i]);
        c[i] = sigmoid(gates[2 * size + i]) * c[i] + in;
        h[i] = sigmoid(gates[size + i]) * tanhf(c[i]);
    }
}

/* One way; `h` and `c` (batch,hidden) are its states, `gates` room for (steps,batch,4 hidden). */
static void run_way(const graft_opaque *opaque, const void *const *in, size_t way,
                    const weights w[2], int16_t *bytes, float *gates, float *h, float *c,
                    float *out)
{
    const size_t steps = (size_t)opaque->in[LSTM_X].dims[0];
    const size_t batch = (size_t)opaque->in[LSTM_X].dims[1];
    const size_t hidden = (size_t)opaque->attrs[LSTM_HIDDEN];
    const size_t rows = LSTM_GATES * hidden;
    const float *b = (const float *)in[LSTM_B];
    for (size_t i = 0; i < steps * batch * rows; i++) {
        const float *own = b + way * 2 * rows + i % rows;
        gates[i] = graft_foreign_has(opaque, LSTM_B) ? own[0] + own[rows] : 0.0F;
    }
    add_product(&w[0], in[LSTM_X], steps * batch, bytes, gates);
    for (size_t i = 0; i < steps; i++) {
        const bool back = opaque->attrs[LSTM_WAY] == LSTM_BACKWARD || way == 1;
        const size_t step = back ? steps - 1 - i : i;
        float *now = gates + step * batch * rows;
        add_product(&w[1], h, batch, bytes, now);
        for (size_t k = 0; k < batch; k++) {
            take_step(now + k * rows, hidden, h + k * hidden, c + k * hidden);
        }
        if (opaque->which == 0) {
            memcpy(out + (step * (size_t)ways_of(opaque) + way) * batch * hidden, h,
                   batch * hidden * sizeof(out[0]));
        }
    }
}

graft_status graft_foreign_lstm(graft_env *env, const graft_opaque *opaque, const void *const *in,
                                void *out)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    const size_t places = graft_axes_count(&opaque->in[LSTM_X], 0, 2);
    const size_t ways = (size_t)ways_of(opaque);
    const size_t states = (size_t)opaque->in[LSTM_X].dims[1] * (size_t)opaque->attrs[LSTM_HIDDEN];
    float *both[2]; /* States and cells of all ways. */
    for (uint32_t k = 0; k < 2; k++) {
        both[k] = GRAFT_NEW(env->scratch, float, ways *states);
        if (graft_foreign_has(opaque, LSTM_H + k)) {
            memcpy(both[k], in[LSTM_H + k], ways * states * sizeof(both[k][0]));
        }
    }
    for (size_t way = 0; way < ways; way++) {
        const weights w[2] = {weights_of(env->scratch, opaque, in, LSTM_W, LSTM_SCALES, way),
                              weights_of(env->scratch, opaque, in, LSTM_R, LSTM_SCALES + 2, way)};
        float *gates = GRAFT_NEW(env->scratch, float, places *w[0].rows);
        int16_t *bytes = GRAFT_NEW(env->scratch, int16_t, places * w[0].columns + states);
        run_way(opaque, in, way, w, bytes, gates, both[0] + way * states, both[1] + way * states,
                out);
    }
    if (opaque->which > 0) {
        memcpy(out, both[opaque->which - 1], ways * states * sizeof(float));
    }
    graft_arena_release(env->scratch, mark);
    return GRAFT_OK;
}
