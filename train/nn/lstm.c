/* lstm.c - see lstm.h; derivation in docs/train-numerics.md. */
#include "train/nn/lstm.h"

#include "train/nn/blas.h"
#include "train/nn/numeric.h"

#include <assert.h>
#include <string.h>

/* What the backward pass needs. Arrays of (steps * batch) rows. */
typedef struct {
    uint32_t batch;
    uint32_t hidden;
    uint32_t steps;
    float *gates;         /* (rows, 4 hidden), activated. */
    float *cell;          /* (rows, hidden) */
    float *squashed;      /* (rows, hidden), tanh of cell. */
    float *delta;         /* (rows, 4 hidden), gradient before activation; when recording. */
    float *transposed;    /* (4 hidden, hidden): W^T, read once per step; when recording. */
    float *carry;         /* (2, batch, hidden): gradients of h and c handed one step back. */
    const float *hidden0; /* (batch, hidden) */
    const float *cell0;   /* (batch, hidden) */
} lstm_run;

static lstm_run *start_run(graft_tape *tape, const graft_matrix *gates, uint32_t batch,
                           uint32_t hidden, const graft_lstm_state *initial)
{
    size_t rows = gates->rows;
    size_t state = (size_t)batch * hidden;
    lstm_run *run = GRAFT_NEW(tape->arena, lstm_run, 1);
    *run = (lstm_run){.batch = batch, .hidden = hidden, .steps = gates->rows / batch};
    run->gates = GRAFT_NEW(tape->arena, float, rows * 4 * hidden);
    run->cell = GRAFT_NEW(tape->arena, float, rows *hidden);
    run->squashed = GRAFT_NEW(tape->arena, float, rows *hidden);
    /* The initial state is copied: the caller may let `final` overwrite it. */
    float *start = GRAFT_NEW(tape->arena, float, 2 * state);
    if (initial != NULL) {
        memcpy(start, initial->hidden, state * sizeof(float));
        memcpy(start + state, initial->cell, state * sizeof(float));
    }
    run->hidden0 = start;
    run->cell0 = start + state;
    if (tape->recording) {
        run->delta = GRAFT_NEW(tape->arena, float, rows * 4 * hidden);
        run->transposed = GRAFT_NEW(tape->arena, float, (size_t)hidden * 4 * hidden);
        run->carry = GRAFT_NEW(tape->arena, float, 2 * state);
    }
    memcpy(run->gates, gates->value, rows * 4 * hidden * sizeof(float));
    return run;
}

/* One row of one step: activates `gates` (4 hidden) in place, writes c, tanh c and h. */
static void activate_row(uint32_t hidden, float *restrict gates, const float *restrict cell_before,
                         float *restrict cell, float *restrict squashed, float *restrict out)
{
    for (uint32_t j = 0; j < 2 * hidden; j++) {
        gates[j] = graft_logistic(gates[j]);
    }
    for (uint32_t j = 2 * hidden; j < 3 * hidden; j++) {
        gates[j] = graft_tanh(gates[j]);
    }
    for (uint32_t j = 3 * hidden; j < 4 * hidden; j++) {
        gates[j] = graft_logistic(gates[j]);
    }
    const float *i = gates;
    const float *f = gates + hidden;
    const float *g = gates + 2 * (size_t)hidden;
    const float *o = gates + 3 * (size_t)hidden;
    for (uint32_t j = 0; j < hidden; j++) {
        cell[j] = f[j] * cell_before[j] + i[j] * g[j];
        squashed[j] = graft_tanh(cell[j]);
        out[j] = o[j] * squashed[j];
    }
}

/* gates[step] += h[step - 1] W, then activates. */
static void run_step(const lstm_run *run, const graft_matrix *recurrent, uint32_t step, float *out)
{
    size_t hidden = run->hidden;
    size_t first = (size_t)step * run->batch;
    const float *before = step == 0 ? run->hidden0 : out + (first - run->batch) * hidden;
    const float *cell_before = step == 0 ? run->cell0 : run->cell + (first - run->batch) * hidden;
    graft_blas_multiply((graft_factor){before, run->batch, run->hidden, false},
                        (graft_factor){recurrent->value, recurrent->rows, recurrent->cols, false},
                        1.0F, run->gates + first * 4 * hidden);
    for (size_t b = 0; b < run->batch; b++) {
        size_t row = first + b;
        activate_row(run->hidden, run->gates + row * 4 * hidden, cell_before + b * hidden,
                     run->cell + row * hidden, run->squashed + row * hidden, out + row * hidden);
    }
}

static graft_backward back_lstm;
graft_matrix *graft_lstm(graft_tape *tape, const graft_matrix *gates, const graft_matrix *recurrent,
                         uint32_t batch, const graft_lstm_state *initial,
                         const graft_lstm_state *final)
{
    uint32_t hidden = recurrent->rows;
    assert(recurrent->cols == 4 * hidden && gates->cols == 4 * hidden);
    assert(batch > 0 && gates->rows > 0 && gates->rows % batch == 0);
    lstm_run *run = start_run(tape, gates, batch, hidden, initial);
    graft_matrix *out = graft_tape_matrix(tape, gates->rows, hidden);
    for (uint32_t step = 0; step < run->steps; step++) {
        run_step(run, recurrent, step, out->value);
    }
    if (final != NULL) {
        size_t last = (size_t)(run->steps - 1) * batch * hidden;
        memcpy(final->hidden, out->value + last, (size_t)batch * hidden * sizeof(float));
        memcpy(final->cell, run->cell + last, (size_t)batch * hidden * sizeof(float));
    }
    return graft_tape_record(
        tape, (graft_entry){
                  .backward = back_lstm, .out = out, .in = {gates, recurrent},
                          .data = run
    });
}

/* One row of one step. `dh` comes in; `dc` comes in from the next step and leaves for the one
 * before; `delta` (4 hidden) is the gradient before activation. */
static void back_row(const lstm_run *run, size_t row, const float *cell_before,
                     const float *restrict dh, float *restrict dc)
{
    size_t hidden = run->hidden;
    const float *restrict i = run->gates + row * 4 * hidden;
    const float *restrict f = i + hidden;
    const float *restrict g = f + hidden;
    const float *restrict o = g + hidden;
    const float *restrict squashed = run->squashed + row * hidden;
    float *restrict delta = run->delta + row * 4 * hidden;
    for (size_t j = 0; j < hidden; j++) {
        float total = dc[j] + dh[j] * o[j] * (1.0F - squashed[j] * squashed[j]);
        delta[j] = total * g[j] * i[j] * (1.0F - i[j]);
        delta[hidden + j] = total * cell_before[j] * f[j] * (1.0F - f[j]);
        delta[2 * hidden + j] = total * i[j] * (1.0F - g[j] * g[j]);
        delta[3 * hidden + j] = dh[j] * squashed[j] * o[j] * (1.0F - o[j]);
        dc[j] = total * f[j];
    }
}

static void transpose(const graft_matrix *m, float *out)
{
    for (size_t i = 0; i < m->rows; i++) {
        for (size_t j = 0; j < m->cols; j++) {
            out[j * m->rows + i] = m->value[i * m->cols + j];
        }
    }
}

/* Fills delta for all steps, last to first. */
static void back_steps(const lstm_run *run, const graft_matrix *recurrent, const graft_matrix *out)
{
    transpose(recurrent, run->transposed);
    size_t hidden = run->hidden;
    size_t state = run->batch * hidden;
    float *dh = run->carry;
    float *dc = run->carry + state;
    memset(run->carry, 0, 2 * state * sizeof(float));
    for (uint32_t step = run->steps; step-- > 0;) {
        size_t first = (size_t)step * run->batch;
        const float *cells = step == 0 ? run->cell0 : run->cell + (first - run->batch) * hidden;
        for (size_t k = 0; k < state; k++) {
            dh[k] += out->gradient[first * hidden + k];
        }
        for (size_t b = 0; b < run->batch; b++) {
            back_row(run, first + b, cells + b * hidden, dh + b * hidden, dc + b * hidden);
        }
        graft_blas_multiply(
            (graft_factor){run->delta + first * 4 * hidden, run->batch, 4 * run->hidden, false},
            (graft_factor){run->transposed, recurrent->cols, recurrent->rows, false}, 0.0F, dh);
    }
}

/* dW = sum over steps of h[t-1]^T delta[t]: the first step by itself, the rest in one product. */
static void back_lstm(const graft_entry *entry)
{
    const graft_matrix *gates = entry->in[0];
    const graft_matrix *recurrent = entry->in[1];
    const lstm_run *run = entry->data;
    back_steps(run, recurrent, entry->out);
    size_t size = graft_matrix_size(gates);
    for (size_t k = 0; k < size && gates->gradient != NULL; k++) {
        gates->gradient[k] += run->delta[k];
    }
    if (recurrent->gradient == NULL) {
        return;
    }
    uint32_t hidden = run->hidden;
    uint32_t later = (run->steps - 1) * run->batch;
    graft_blas_multiply((graft_factor){run->hidden0, run->batch, hidden, true},
                        (graft_factor){run->delta, run->batch, 4 * hidden, false}, 1.0F,
                        recurrent->gradient);
    graft_blas_multiply(
        (graft_factor){entry->out->value, later, hidden, true},
        (graft_factor){run->delta + (size_t)run->batch * 4 * hidden, later, 4 * hidden, false},
        1.0F, recurrent->gradient);
}
