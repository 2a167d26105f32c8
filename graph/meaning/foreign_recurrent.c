/* foreign_recurrent.c - LSTM, GRU and RNN of any length, whose sequences may end before the last step,
 * and onnxruntime's LSTM of weights of 8 bits, which quantises what it multiplies by them at each
 * step (see foreign.h). Gates of an LSTM: input, output, forget, cell; of a GRU: update, reset, new
 * state. Equations: ONNX's operators LSTM-14, GRU-14 and RNN-14. */
#include "graph/meaning/foreign_rows.h"

#include "graph/base/approximate.h"
#include "graph/meaning/algebra.h"
#include "graph/meaning/byte_product.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { NET_GATES, NET_HIDDEN, NET_WAY, NET_LINEAR, NET_RELU };
enum { NET_FORWARD, NET_BACKWARD, NET_BOTH };
enum { NET_X, NET_W, NET_R, NET_B, NET_LENGTHS, NET_H, NET_C, NET_P, NET_SCALES };
enum { RNN_GATES = 1, GRU_GATES = 3, LSTM_GATES = 4 };

/* The usual activations of each way, or Relu in an RNN. */
static bool read_activations(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const Onnx__AttributeProto *given = graft_onnx_attribute(node, "activations");
    const int32_t gates = opaque->attrs[NET_GATES];
    const size_t count = gates == LSTM_GATES ? 3 : gates == GRU_GATES ? 2 : 1;
    const size_t ways = opaque->attrs[NET_WAY] == NET_BOTH ? 2 : 1;
    const ProtobufCBinaryData *words = given == NULL ? NULL : given->strings;
    bool known = given == NULL || given->n_strings == ways * count;
    bool relu = given != NULL && known && gates == RNN_GATES;
    for (size_t i = 0; given != NULL && known && relu && i < ways; i++) {
        relu = graft_onnx_is_text(&words[i], "Relu");
    }
    for (size_t i = 0; given != NULL && known && !relu && i < given->n_strings; i++) {
        const char *word = gates == RNN_GATES ? "Tanh" : usual[i % count];
        known = graft_onnx_is_text(&words[i], word);
    }
    opaque->attrs[NET_RELU] = relu;
    return known;
}

/* Not with clip, a batch that comes first, coupled gates or peepholes. */
bool graft_foreign_read_net(const Onnx__NodeProto *node, graft_opaque *opaque)
{
    return opaque->attrs[NET_HIDDEN] >= 1 && opaque->attrs[NET_HIDDEN] <= INT32_MAX / 8 &&
           read_activations(node, opaque) && opaque->in[NET_X].rank == 3 &&
           graft_onnx_int(node, "layout", 0) == 0 && graft_onnx_int(node, "input_forget", 0) == 0 &&
           !graft_foreign_has(opaque, NET_P);
}

static int32_t ways_of(const graft_opaque *opaque)
{
    return opaque->attrs[NET_WAY] == NET_BOTH ? 2 : 1;
}

static size_t rows_of(const graft_opaque *opaque)
{
    return (size_t)opaque->attrs[NET_GATES] * (size_t)opaque->attrs[NET_HIDDEN];
}

/* Whether what a GRU's new state is multiplied by is applied to the reset state, apart from the rest. */
static bool resets_first(const graft_opaque *opaque)
{
    return opaque->attrs[NET_GATES] == GRU_GATES && opaque->attrs[NET_LINEAR] == 0;
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
    const int32_t to = opaque->attrs[NET_GATES] * opaque->attrs[NET_HIDDEN];
    if (!graft_foreign_has(opaque, NET_SCALES)) {
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

static bool fits_lengths(const graft_opaque *opaque, int32_t batch)
{
    const graft_shape wanted = {.rank = 1, .dtype = GRAFT_DTYPE_I32, .dims = {batch}};
    return !graft_foreign_has(opaque, NET_LENGTHS) ||
           graft_shape_equal(&opaque->in[NET_LENGTHS], &wanted);
}

bool graft_foreign_net_shape(const graft_opaque *opaque, graft_shape *shape)
{
    const graft_shape *x = &opaque->in[NET_X];
    const int32_t hidden = opaque->attrs[NET_HIDDEN];
    const int32_t ways = ways_of(opaque);
    const graft_shape all = {
        .rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {x->dims[0], ways, x->dims[1], hidden}
    };
    const graft_shape last = {
        .rank = 3, .dtype = GRAFT_DTYPE_F32, .dims = {ways, x->dims[1], hidden}
    };
    *shape = opaque->which == 0 ? all : last;
    return x->dtype == GRAFT_DTYPE_F32 && fits_weights(opaque, NET_W, x->dims[2], NET_SCALES) &&
           fits_weights(opaque, NET_R, hidden, NET_SCALES + 2) &&
           is_real(opaque, NET_B, 2, ways, 2 * opaque->attrs[NET_GATES] * hidden, 0) &&
           is_real(opaque, NET_H, 3, ways, x->dims[1], hidden) &&
           is_real(opaque, NET_C, 3, ways, x->dims[1], hidden) && fits_lengths(opaque, x->dims[1]);
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

enum { OF_INPUT, OF_STATE, OF_RESET, OF_NET }; /* What a way multiplies by real weights. */

static const float **pack_all_real(graft_arena *arena, const graft_opaque *opaque)
{
    const size_t ways = (size_t)ways_of(opaque);
    const size_t rows = rows_of(opaque);
    const size_t hidden = (size_t)opaque->attrs[NET_HIDDEN];
    const size_t features = (size_t)opaque->in[NET_X].dims[2];
    const size_t early = resets_first(opaque) ? rows - hidden : rows;
    const float **all = GRAFT_NEW(arena, const float *, OF_NET *ways);
    for (size_t way = 0; way < ways; way++) {
        const float **own = all + OF_NET * way;
        const float *w = (const float *)opaque->data[NET_W] + way * rows * features;
        const float *r = (const float *)opaque->data[NET_R] + way * rows * hidden;
        own[OF_INPUT] = pack_real(arena, w, rows, features);
        own[OF_STATE] = pack_real(arena, r, early, hidden);
        own[OF_RESET] = early == rows ? NULL : pack_real(arena, r + early * hidden, hidden, hidden);
    }
    return all;
}

/* Of each way, what the input and the state are multiplied by. */
void *graft_foreign_keep_net(graft_arena *arena, const graft_opaque *opaque)
{
    const size_t ways = (size_t)ways_of(opaque);
    if (!graft_foreign_has(opaque, NET_SCALES)) {
        return pack_all_real(arena, opaque);
    }
    graft_byte_panels *panels = GRAFT_NEW(arena, graft_byte_panels, 2 * ways);
    for (uint32_t k = 0; k < 2; k++) {
        const graft_shape *w = &opaque->in[NET_W + k];
        const uint32_t zeros = NET_SCALES + 2 * k + 1;
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
                (const uint8_t *)opaque->data[NET_W + k] + way * given.depth * given.columns;
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

/* What way `way` multiplies its input, its state or its reset state by. */
static weights weights_of(const graft_opaque *opaque, uint32_t what, size_t way)
{
    const uint32_t s = NET_SCALES + 2 * what;
    const size_t hidden = (size_t)opaque->attrs[NET_HIDDEN];
    const size_t late = resets_first(opaque) && what != OF_INPUT ? hidden : 0;
    weights w = {.rows = what == OF_RESET ? late : rows_of(opaque) - late,
                 .columns = what == OF_INPUT ? (size_t)opaque->in[NET_X].dims[2] : hidden};
    if (!graft_foreign_has(opaque, NET_SCALES)) {
        w.real = ((const float *const *)opaque->kept)[OF_NET * way + what];
        return w;
    }
    w.bytes = (const graft_byte_panels *)opaque->kept + 2 * way + what;
    w.scale_step = opaque->in[s].rank == 2 ? 1 : 0;
    w.scales = (const float *)opaque->data[s] + way * (w.scale_step != 0 ? w.rows : 1);
    return w;
}

/* Adds to `count` rows of the result, at most AT_ONCE, what is `wide` columns of it from `out` on. */
enum { AT_ONCE = 4 };
static inline void add_panel(const weights *w, const float *restrict panel, const float *x,
                             size_t count, size_t wide, float *out)
{
    float sums[AT_ONCE][PANEL] = {{0.0F}};
    for (size_t c = 0; c < w->columns; c++) {
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < PANEL; k++) {
                sums[i][k] += x[i * w->columns + c] * panel[c * PANEL + k];
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < wide; k++) {
            out[i * w->rows + k] += sums[i][k];
        }
    }
}

static void add_real_product(const weights *w, const float *x, size_t count, float *out)
{
    assert(w->real != NULL);
    for (size_t first = 0; first < w->rows; first += PANEL) {
        const float *panel = w->real + first * w->columns;
        const size_t wide = w->rows - first < PANEL ? w->rows - first : PANEL;
        size_t i = 0;
        for (; i + AT_ONCE <= count; i += AT_ONCE) { /* Known counts keep sums in registers. */
            add_panel(w, panel, x + i * w->columns, AT_ONCE, wide, out + i * w->rows + first);
        }
        for (; i < count; i++) {
            add_panel(w, panel, x + i * w->columns, 1, wide, out + i * w->rows + first);
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
    uint8_t *rows = GRAFT_NEW(scratch, uint8_t, count * bytes);
    const graft_byte_rows a = {.data = rows, .zeros = &zero, .count = count};
    int32_t *sums = GRAFT_NEW(scratch, int32_t, count * w->rows);
    const float scale = graft_foreign_quantise(x, count, w->columns, bytes, rows, &zero);
    graft_byte_multiply(1, &a, w->bytes, w->rows, 1, sums);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < w->rows; k++) {
            out[i * w->rows + k] +=
                (float)sums[i * w->rows + k] * (scale * w->scales[k * w->scale_step]);
        }
    }
}

/* One step of one sequence. `x`: what its input brings to the gates, and biases; `r`: what its state
 * does; gates of `size` each. The state and the cell are changed. */
static void step_lstm(const float *restrict x, const float *restrict r, size_t size,
                      float *restrict h, float *restrict c)
{
    for (size_t i = 0; i < size; i++) {
        const float in =
            approximate_sigmoid(x[i] + r[i]) * approximate_tanh(x[3 * size + i] + r[3 * size + i]);
        c[i] = approximate_sigmoid(x[2 * size + i] + r[2 * size + i]) * c[i] + in;
        h[i] = approximate_sigmoid(x[size + i] + r[size + i]) * approximate_tanh(c[i]);
    }
}

/* `late`: what the reset state brings to the new one; NULL: the reset comes after the product. */
static void step_gru(const float *restrict x, const float *restrict r, const float *restrict late,
                     size_t size, float *restrict h)
{
    for (size_t i = 0; i < size; i++) {
        const float update = approximate_sigmoid(x[i] + r[i]);
        const float more = late != NULL
                               ? late[i]
                               : approximate_sigmoid(x[size + i] + r[size + i]) * r[2 * size + i];
        const float made = approximate_tanh(x[2 * size + i] + more);
        h[i] = (1.0F - update) * made + update * h[i];
    }
}

static void step_rnn(const float *restrict x, const float *restrict r, bool relu, size_t size,
                     float *restrict h)
{
    for (size_t i = 0; i < size; i++) {
        const float sum = x[i] + r[i];
        h[i] = relu ? (sum > 0.0F ? sum : 0.0F) : approximate_tanh(sum);
    }
}

/* What a way works on. */
typedef struct {
    size_t batch;
    size_t hidden;
    float *gates;    /* (steps,batch,rows): of the inputs */
    float *sums;     /* (batch,rows): of the states */
    float *reset;    /* (batch,hidden): states behind their reset gate */
    float *late;     /* (batch,hidden): of these; NULL: the reset comes after the product */
    float *h;        /* (batch,hidden) */
    float *c;        /* Likewise, of an LSTM. */
    float *out;      /* (steps,ways,batch,hidden); NULL: not wanted. */
    const float *rb; /* (hidden): in front of a GRU's reset gate; NULL: nothing. */
} room;

/* Biases, but for one that a reset gate takes in, and the products of all inputs. */
static void multiply_inputs(graft_arena *scratch, const graft_opaque *opaque, size_t way,
                            const room *r)
{
    const size_t places = (size_t)opaque->in[NET_X].dims[0] * r->batch;
    const size_t rows = rows_of(opaque);
    const weights w = weights_of(opaque, OF_INPUT, way);
    const float *b = (const float *)opaque->data[NET_B];
    for (size_t i = 0; i < rows; i++) {
        const float *own = b + way * 2 * rows + i;
        const bool apart = r->rb != NULL && i >= rows - r->hidden;
        r->gates[i] = graft_foreign_has(opaque, NET_B) ? own[0] + (apart ? 0.0F : own[rows]) : 0.0F;
    }
    for (size_t i = 1; i < places; i++) {
        memcpy(r->gates + i * rows, r->gates, rows * sizeof(float));
    }
    add_product(scratch, &w, opaque->data[NET_X], places, r->gates);
}

/* Products of all states, those behind the reset gate included; `x` as in step_lstm. */
static void multiply_states(graft_arena *scratch, const weights w[OF_NET], const float *x,
                            const room *r)
{
    const size_t rows = w[OF_STATE].rows;
    const size_t size = r->hidden;
    memset(r->sums, 0, r->batch * rows * sizeof(float));
    for (size_t k = 0; r->rb != NULL && k < r->batch; k++) {
        memcpy(r->sums + k * rows + rows - size, r->rb, size * sizeof(float));
    }
    add_product(scratch, &w[OF_STATE], r->h, r->batch, r->sums);
    for (size_t k = 0; r->late != NULL && k < r->batch; k++) {
        for (size_t i = 0; i < size; i++) {
            const float gate = x[k * w[OF_INPUT].rows + size + i] + r->sums[k * rows + size + i];
            r->reset[k * size + i] = approximate_sigmoid(gate) * r->h[k * size + i];
        }
    }
    if (r->late != NULL) {
        memset(r->late, 0, r->batch * size * sizeof(float));
        add_product(scratch, &w[OF_RESET], r->reset, r->batch, r->late);
    }
}

/* Step number `step` of all sequences that are longer. */
static void take_step(const graft_opaque *opaque, const weights w[OF_NET], size_t step,
                      const float *x, const room *r)
{
    const size_t size = r->hidden;
    for (size_t k = 0; k < r->batch; k++) {
        const float *of_input = x + k * w[OF_INPUT].rows;
        const float *of_state = r->sums + k * w[OF_STATE].rows;
        float *h = r->h + k * size;
        if (graft_foreign_has(opaque, NET_LENGTHS) &&
            (int64_t)step >= graft_foreign_whole(opaque, NET_LENGTHS, (uint32_t)k)) {
            continue;
        }
        if (opaque->attrs[NET_GATES] == LSTM_GATES) {
            step_lstm(of_input, of_state, size, h, r->c + k * size);
        } else if (opaque->attrs[NET_GATES] == GRU_GATES) {
            step_gru(of_input, of_state, r->late == NULL ? NULL : r->late + k * size, size, h);
        } else {
            step_rnn(of_input, of_state, opaque->attrs[NET_RELU] != 0, size, h);
        }
        if (r->out != NULL) {
            memcpy(r->out + k * size, h, size * sizeof(float));
        }
    }
}

static void run_way(graft_arena *scratch, const graft_opaque *opaque, size_t way, const room *all)
{
    const size_t steps = (size_t)opaque->in[NET_X].dims[0];
    const size_t ways = (size_t)ways_of(opaque);
    const bool back = opaque->attrs[NET_WAY] == NET_BACKWARD || way == 1;
    const weights w[OF_NET] = {weights_of(opaque, OF_INPUT, way), weights_of(opaque, OF_STATE, way),
                               resets_first(opaque) ? weights_of(opaque, OF_RESET, way)
                                                    : (weights){.rows = 0}};
    room r = *all;
    r.h += way * r.batch * r.hidden;
    r.c += way * r.batch * r.hidden;
    if (opaque->attrs[NET_LINEAR] != 0 && graft_foreign_has(opaque, NET_B)) {
        r.rb = (const float *)opaque->data[NET_B] + (2 * way + 2) * w[0].rows - r.hidden;
    }
    multiply_inputs(scratch, opaque, way, &r);
    for (size_t i = 0; i < steps; i++) {
        const size_t step = back ? steps - 1 - i : i;
        const float *x = r.gates + step * r.batch * w[OF_INPUT].rows;
        if (all->out != NULL) {
            r.out = all->out + (step * ways + way) * r.batch * r.hidden;
        }
        multiply_states(scratch, w, x, &r);
        take_step(opaque, w, step, x, &r);
    }
}

static graft_status check_lengths(graft_env *env, const graft_opaque *opaque)
{
    const int32_t steps = opaque->in[NET_X].dims[0];
    for (uint32_t k = 0;
         graft_foreign_has(opaque, NET_LENGTHS) && k < (uint32_t)opaque->in[NET_LENGTHS].dims[0];
         k++) {
        const int64_t length = graft_foreign_whole(opaque, NET_LENGTHS, k);
        GRAFT_RETURN_IF(length < 0 || length > steps,
                        GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                                   "sequence %" PRIu32 " of a recurrent node has %" PRId64
                                   " steps, of %" PRId32,
                                   k, length, steps));
    }
    return GRAFT_OK;
}

GRAFT_FOREIGN_RUNNER(net)
{
    GRAFT_SCOPED(env->scratch);
    graft_arena *scratch = env->scratch;
    const size_t places = graft_axes_count(&opaque->in[NET_X], 0, 2);
    const size_t states = graft_axes_count(&opaque->in[NET_X], 1, 2) * (size_t)ways_of(opaque) *
                          (size_t)opaque->attrs[NET_HIDDEN];
    room r = {.batch = (size_t)opaque->in[NET_X].dims[1],
              .hidden = (size_t)opaque->attrs[NET_HIDDEN],
              .out = opaque->made[0]};
    float **both[2] = {&r.h, &r.c}; /* States and cells of all ways. */
    GRAFT_PASS(check_lengths(env, opaque));
    r.gates = GRAFT_NEW(scratch, float, places *rows_of(opaque));
    r.sums = GRAFT_NEW(scratch, float, r.batch *rows_of(opaque));
    if (resets_first(opaque)) {
        r.reset = GRAFT_NEW(scratch, float, r.batch *r.hidden);
        r.late = GRAFT_NEW(scratch, float, r.batch *r.hidden);
    }
    for (uint32_t k = 0; k < 2; k++) {
        *both[k] = GRAFT_NEW(scratch, float, states);
        if (graft_foreign_has(opaque, NET_H + k)) {
            memcpy(*both[k], opaque->data[NET_H + k], states * sizeof(float));
        }
    }
    if (r.out != NULL && graft_foreign_has(opaque, NET_LENGTHS)) {
        memset(r.out, 0, places * (size_t)ways_of(opaque) * r.hidden * sizeof(float));
    }
    for (size_t way = 0; way < (size_t)ways_of(opaque); way++) {
        run_way(scratch, opaque, way, &r);
    }
    for (uint32_t k = 1; k < opaque->out_count; k++) {
        if (opaque->made[k] != NULL) {
            memcpy(opaque->made[k], *both[k - 1], states * sizeof(float));
        }
    }
    return GRAFT_OK;
}
