/* foreign_recurrent.c - LSTM of any length, and onnxruntime's of weights of 8 bits, which quantises
 * what it multiplies by them at each step (see foreign.h). Gates: input, output, forget, cell. */
#include "graph/meaning/foreign_rows.h"

#include "graph/base/approximate.h"
#include "graph/meaning/algebra.h"
#include "graph/meaning/byte_product.h"

#include <assert.h>
#include <string.h>

enum { LSTM_HIDDEN = 1, LSTM_WAY, LSTM_GATES = 4 };
enum { LSTM_FORWARD, LSTM_BACKWARD, LSTM_BOTH };
enum { LSTM_X, LSTM_W, LSTM_R, LSTM_B, LSTM_LENGTHS, LSTM_H, LSTM_C, LSTM_P, LSTM_SCALES };

/* Not with other activations, layouts, lengths or peepholes. */
bool graft_foreign_read_lstm(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    static const char *const ways[] = {"forward", "reverse", "bidirectional", NULL};
    const int64_t hidden = graft_onnx_int(node, "hidden_size", 0);
    opaque->attrs[LSTM_HIDDEN] = hidden >= 1 && hidden <= INT32_MAX / 8 ? (int32_t)hidden : 0;
    opaque->attrs[LSTM_WAY] = graft_foreign_choice(node, "direction", ways, LSTM_FORWARD);
    return opaque->attrs[LSTM_HIDDEN] > 0 && opaque->attrs[LSTM_WAY] >= 0 &&
           opaque->in[LSTM_X].rank == 3 && graft_onnx_int(node, "layout", 0) == 0 &&
           graft_onnx_int(node, "input_forget", 0) == 0 &&
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

bool graft_foreign_lstm_shape(const graft_opaque *opaque, graft_shape *shape)
{
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

/* Rows of real weights lie side by side in panels, (columns, PANEL), so that a panel's sums stay in
 * registers; the last panel is filled up with rows of 0. */
enum { PANEL = 32 };

static const float *pack_real(graft_arena *arena, const float *w, size_t rows, size_t columns)
{
    float *packed = GRAFT_NEW(arena, float, (rows + PANEL - 1) / PANEL * PANEL * columns);
    for (size_t i = 0; i < rows; i++) {
        for (size_t c = 0; c < columns; c++) {
            packed[(i / PANEL * columns + c) * PANEL + i % PANEL] = w[i * columns + c];
        }
    }
    return packed;
}

static const float **pack_all_real(graft_arena *arena, const graft_opaque *opaque)
{
    const size_t ways = (size_t)ways_of(opaque);
    const size_t rows = LSTM_GATES * (size_t)opaque->attrs[LSTM_HIDDEN];
    const float **all = GRAFT_NEW(arena, const float *, 2 * ways);
    for (size_t i = 0; i < 2 * ways; i++) {
        const uint32_t k = LSTM_W + (uint32_t)(i % 2);
        const size_t columns = (size_t)opaque->in[k].dims[2];
        const float *w = opaque->data[k];
        all[i] = pack_real(arena, w + i / 2 * rows * columns, rows, columns);
    }
    return all;
}

/* Of each way, what the input and the state are multiplied by. */
void *graft_foreign_keep_lstm(graft_arena *arena, const graft_opaque *opaque)
{
    const size_t ways = (size_t)ways_of(opaque);
    if (!graft_foreign_has(opaque, LSTM_SCALES)) {
        return pack_all_real(arena, opaque);
    }
    graft_byte_panels *panels = GRAFT_NEW(arena, graft_byte_panels, 2 * ways);
    for (uint32_t k = 0; k < 2; k++) {
        const graft_shape *w = &opaque->in[LSTM_W + k];
        const uint32_t zeros = LSTM_SCALES + 2 * k + 1;
        graft_byte_matrix given = {
            .dtype = w->dtype,
            .depth = (size_t)w->dims[1],
            .columns = (size_t)w->dims[2],
            .depth_step = (size_t)w->dims[2],
            .column_step = 1,
            .zero_step = opaque->in[zeros].rank == 2 ? 1 : 0,
        };
        for (size_t way = 0; way < ways; way++) {
            given.data =
                (const uint8_t *)opaque->data[LSTM_W + k] + way * given.depth * given.columns;
            given.zeros =
                (const uint8_t *)opaque->data[zeros] + way * graft_count(&opaque->in[zeros]) / ways;
            panels[2 * way + k] = graft_byte_pack(arena, &given);
        }
    }
    return panels;
}

/* A matrix of weights as rows, one for each element of the product. */
typedef struct {
    const float *real;              /* In panels. */
    const graft_byte_panels *bytes; /* NULL: real ones. */
    const float *scales;
    size_t scale_step;
    size_t rows;
    size_t columns;
} weights;

static weights weights_of(const graft_opaque *opaque, uint32_t k, size_t way)
{
    const uint32_t s = LSTM_SCALES + 2 * (k - LSTM_W);
    const size_t rows = LSTM_GATES * (size_t)opaque->attrs[LSTM_HIDDEN];
    const size_t columns = graft_count(&opaque->in[k]) / (size_t)ways_of(opaque) / rows;
    weights w = {.rows = rows, .columns = columns};
    if (!graft_foreign_has(opaque, LSTM_SCALES)) {
        w.real = ((const float *const *)opaque->kept)[2 * way + (k - LSTM_W)];
        return w;
    }
    w.bytes = (const graft_byte_panels *)opaque->kept + 2 * way + (k - LSTM_W);
    w.scale_step = opaque->in[s].rank == 2 ? 1 : 0;
    w.scales = (const float *)opaque->data[s] + way * (w.scale_step != 0 ? rows : 1);
    return w;
}

static void add_real_product(const weights *w, const float *x, size_t count, float *out)
{
    assert(w->real != NULL);
    for (size_t first = 0; first < w->rows; first += PANEL) {
        const float *panel = w->real + first * w->columns;
        const size_t wide = w->rows - first < PANEL ? w->rows - first : PANEL;
        for (size_t i = 0; i < count; i++) {
            float sums[PANEL] = {0.0F};
            for (size_t c = 0; c < w->columns; c++) {
                for (size_t k = 0; k < PANEL; k++) {
                    sums[k] += x[i * w->columns + c] * panel[c * PANEL + k];
                }
            }
            for (size_t k = 0; k < wide; k++) {
                out[i * w->rows + first + k] += sums[k];
            }
        }
    }
}

/* out(count,rows) += x(count,columns) w(rows,columns) */
static void add_product(graft_arena *scratch, const weights *w, const float *x, size_t count,
                        float *out)
{
    if (w->bytes == NULL) {
        add_real_product(w, x, count, out);
        return;
    }
    GRAFT_SCOPED(scratch);
    const size_t bytes = graft_byte_row_bytes(w->columns);
    int32_t zero = 0;
    const graft_byte_rows a = {
        .data = GRAFT_NEW(scratch, uint8_t, count * bytes), .zeros = &zero, .count = count};
    int32_t *sums = GRAFT_NEW(scratch, int32_t, count * w->rows);
    const float scale = graft_foreign_quantise(x, count, w->columns, bytes, a.data, &zero);
    graft_byte_multiply(scratch, &a, w->bytes, w->rows, 1, sums);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < w->rows; k++) {
            out[i * w->rows + k] +=
                (float)sums[i * w->rows + k] * (scale * w->scales[k * w->scale_step]);
        }
    }
}

/* One step of one sequence: gates of `size` each; the state and the cell are changed. */
static void take_step(const float *restrict gates, size_t size, float *restrict h,
                      float *restrict c)
{
    for (size_t i = 0; i < size; i++) {
        const float in = approximate_sigmoid(gates[i]) * approximate_tanh(gates[3 * size + i]);
        c[i] = approximate_sigmoid(gates[2 * size + i]) * c[i] + in;
        h[i] = approximate_sigmoid(gates[size + i]) * approximate_tanh(c[i]);
    }
}

/* What a way works on. */
typedef struct {
    float *gates; /* (steps,batch,4 hidden) */
    float *h;     /* (batch,hidden) */
    float *c;
    float *out; /* (steps,ways,batch,hidden); NULL: not wanted. */
} lstm_room;

static void run_way(graft_arena *scratch, const graft_opaque *opaque, size_t way,
                    const lstm_room *room)
{
    const size_t steps = (size_t)opaque->in[LSTM_X].dims[0];
    const size_t batch = (size_t)opaque->in[LSTM_X].dims[1];
    const size_t hidden = (size_t)opaque->attrs[LSTM_HIDDEN];
    const size_t rows = LSTM_GATES * hidden;
    const float *b = (const float *)opaque->data[LSTM_B];
    const weights w[2] = {weights_of(opaque, LSTM_W, way), weights_of(opaque, LSTM_R, way)};
    for (size_t i = 0; i < rows; i++) {
        const float *own = b + way * 2 * rows + i;
        room->gates[i] = graft_foreign_has(opaque, LSTM_B) ? own[0] + own[rows] : 0.0F;
    }
    for (size_t i = 1; i < steps * batch; i++) {
        memcpy(room->gates + i * rows, room->gates, rows * sizeof(float));
    }
    add_product(scratch, &w[0], opaque->data[LSTM_X], steps * batch, room->gates);
    for (size_t i = 0; i < steps; i++) {
        const bool back = opaque->attrs[LSTM_WAY] == LSTM_BACKWARD || way == 1;
        const size_t step = back ? steps - 1 - i : i;
        float *now = room->gates + step * batch * rows;
        add_product(scratch, &w[1], room->h, batch, now);
        for (size_t k = 0; k < batch; k++) {
            take_step(now + k * rows, hidden, room->h + k * hidden, room->c + k * hidden);
        }
        if (room->out != NULL) {
            memcpy(room->out + (step * (size_t)ways_of(opaque) + way) * batch * hidden, room->h,
                   batch * hidden * sizeof(float));
        }
    }
}

graft_status graft_foreign_lstm(graft_env *env, const graft_opaque *opaque, void *out)
{
    (void)out;
    GRAFT_SCOPED(env->scratch);
    const size_t places = graft_axes_count(&opaque->in[LSTM_X], 0, 2);
    const size_t ways = (size_t)ways_of(opaque);
    const size_t states = (size_t)opaque->in[LSTM_X].dims[1] * (size_t)opaque->attrs[LSTM_HIDDEN];
    const size_t rows = LSTM_GATES * (size_t)opaque->attrs[LSTM_HIDDEN];
    float *gates = GRAFT_NEW(env->scratch, float, places *rows);
    float *both[2]; /* States and cells of all ways. */
    for (uint32_t k = 0; k < 2; k++) {
        both[k] = GRAFT_NEW(env->scratch, float, ways *states);
        if (graft_foreign_has(opaque, LSTM_H + k)) {
            memcpy(both[k], opaque->data[LSTM_H + k], ways * states * sizeof(both[k][0]));
        }
    }
    for (size_t way = 0; way < ways; way++) {
        const lstm_room room = {gates, both[0] + way * states, both[1] + way * states,
                                opaque->made[0]};
        run_way(env->scratch, opaque, way, &room);
    }
    for (uint32_t k = 0; k < 2; k++) {
        if (opaque->made[1 + k] != NULL) {
            memcpy(opaque->made[1 + k], both[k], ways * states * sizeof(float));
        }
    }
    return GRAFT_OK;
}
