/* kernels.c - forward and backward passes side by side: each forward function is followed by the
 * one that undoes it (declared ahead, as the forward pass has to name it). */
#include "train/nn/kernels.h"

#include "train/nn/blas.h"
#include "train/nn/numeric.h"

#include <assert.h>
#include <string.h>

/* -------------------------------------------------------------------------------------- linear */

static graft_factor value_of(const graft_matrix *m, bool transposed)
{
    return (graft_factor){m->value, m->rows, m->cols, transposed};
}

static graft_factor gradient_of(const graft_matrix *m, bool transposed)
{
    return (graft_factor){m->gradient, m->rows, m->cols, transposed};
}

static graft_backward back_linear;
graft_matrix *graft_linear(graft_tape *tape, const graft_matrix *x, const graft_matrix *weight,
                           const graft_matrix *bias)
{
    assert(x->cols == weight->rows);
    graft_matrix *out = graft_tape_matrix(tape, x->rows, weight->cols);
    if (bias != NULL) {
        assert(bias->rows == 1 && bias->cols == weight->cols);
        for (uint32_t i = 0; i < out->rows; i++) {
            memcpy(out->value + (size_t)i * out->cols, bias->value, out->cols * sizeof(float));
        }
    }
    graft_blas_multiply(value_of(x, false), value_of(weight, false), bias != NULL ? 1.0F : 0.0F,
                        out->value);
    return graft_tape_record(tape,
                             (graft_entry){
                                 .backward = back_linear, .out = out, .in = {x, weight, bias}
    });
}

/* dx = dy W^T; dW = x^T dy; db = column sums of dy. */
static void back_linear(const graft_entry *entry)
{
    const graft_matrix *x = entry->in[0];
    const graft_matrix *weight = entry->in[1];
    const graft_matrix *bias = entry->in[2];
    const graft_matrix *out = entry->out;
    if (x->gradient != NULL) {
        graft_blas_multiply(gradient_of(out, false), value_of(weight, true), 1.0F, x->gradient);
    }
    if (weight->gradient != NULL) {
        graft_blas_multiply(value_of(x, true), gradient_of(out, false), 1.0F, weight->gradient);
    }
    if (bias == NULL || bias->gradient == NULL) {
        return;
    }
    for (uint32_t i = 0; i < out->rows; i++) {
        const float *row = out->gradient + (size_t)i * out->cols;
        for (uint32_t j = 0; j < out->cols; j++) {
            bias->gradient[j] += row[j];
        }
    }
}

graft_matrix *graft_layer_apply(graft_tape *tape, const graft_parameters *set, graft_layer layer,
                                const graft_matrix *x)
{
    return graft_linear(tape, x, graft_tape_parameter(tape, set, layer.weight),
                        graft_tape_parameter(tape, set, layer.bias));
}

/* --------------------------------------------------------------------------------- elementwise */

static graft_backward back_relu;
graft_matrix *graft_relu(graft_tape *tape, const graft_matrix *x)
{
    graft_matrix *out = graft_tape_matrix(tape, x->rows, x->cols);
    size_t size = graft_matrix_size(x);
    float *restrict to = out->value;
    const float *restrict from = x->value;
    for (size_t i = 0; i < size; i++) {
        to[i] = from[i] < 0.0F ? 0.0F : from[i];
    }
    return graft_tape_record(tape, (graft_entry){.backward = back_relu, .out = out, .in = {x}});
}

static void back_relu(const graft_entry *entry)
{
    const graft_matrix *x = entry->in[0];
    size_t size = graft_matrix_size(x);
    float *restrict dx = x->gradient; /* Three arrays, told apart: the loop becomes vectors. */
    const float *restrict dy = entry->out->gradient;
    const float *restrict y = entry->out->value;
    if (dx == NULL) {
        return;
    }
    for (size_t i = 0; i < size; i++) {
        dx[i] += y[i] > 0.0F ? dy[i] : 0.0F;
    }
}

static graft_backward back_tanh;
graft_matrix *graft_tanh_of(graft_tape *tape, const graft_matrix *x)
{
    graft_matrix *out = graft_tape_matrix(tape, x->rows, x->cols);
    size_t size = graft_matrix_size(x);
    for (size_t i = 0; i < size; i++) {
        out->value[i] = graft_tanh(x->value[i]);
    }
    return graft_tape_record(tape, (graft_entry){.backward = back_tanh, .out = out, .in = {x}});
}

/* d tanh = 1 - tanh^2. */
static void back_tanh(const graft_entry *entry)
{
    const graft_matrix *x = entry->in[0];
    const graft_matrix *out = entry->out;
    size_t size = graft_matrix_size(x);
    for (size_t i = 0; i < size && x->gradient != NULL; i++) {
        x->gradient[i] += out->gradient[i] * (1.0F - out->value[i] * out->value[i]);
    }
}

static graft_backward back_add;
graft_matrix *graft_add(graft_tape *tape, const graft_matrix *a, const graft_matrix *b)
{
    assert(a->rows == b->rows && a->cols == b->cols);
    graft_matrix *out = graft_tape_matrix(tape, a->rows, a->cols);
    size_t size = graft_matrix_size(a);
    for (size_t i = 0; i < size; i++) {
        out->value[i] = a->value[i] + b->value[i];
    }
    return graft_tape_record(tape, (graft_entry){
                                       .backward = back_add, .out = out, .in = {a, b}
    });
}

static void back_add(const graft_entry *entry)
{
    size_t size = graft_matrix_size(entry->out);
    for (uint32_t k = 0; k < 2; k++) {
        float *gradient = entry->in[k]->gradient;
        for (size_t i = 0; i < size && gradient != NULL; i++) {
            gradient[i] += entry->out->gradient[i];
        }
    }
}

/* -------------------------------------------------------------------------------- columns, rows */

static graft_backward back_concat;
graft_matrix *graft_concat(graft_tape *tape, const graft_matrix *const parts[], uint32_t count)
{
    assert(count > 0 && count <= GRAFT_TAPE_INPUTS);
    uint32_t cols = 0;
    graft_entry entry = {.backward = back_concat, .count = count};
    for (uint32_t k = 0; k < count; k++) {
        assert(parts[k]->rows == parts[0]->rows);
        entry.in[k] = parts[k];
        cols += parts[k]->cols;
    }
    graft_matrix *out = graft_tape_matrix(tape, parts[0]->rows, cols);
    for (uint32_t i = 0; i < out->rows; i++) {
        float *to = out->value + (size_t)i * cols;
        for (uint32_t k = 0; k < count; k++) {
            size_t width = parts[k]->cols;
            memcpy(to, parts[k]->value + i * width, width * sizeof(float));
            to += width;
        }
    }
    entry.out = out;
    return graft_tape_record(tape, entry);
}

static void back_concat(const graft_entry *entry)
{
    for (uint32_t i = 0; i < entry->out->rows; i++) {
        const float *from = entry->out->gradient + (size_t)i * entry->out->cols;
        for (uint32_t k = 0; k < entry->count; k++) {
            size_t width = entry->in[k]->cols;
            float *gradient = entry->in[k]->gradient;
            for (size_t j = 0; j < width && gradient != NULL; j++) {
                gradient[i * width + j] += from[j];
            }
            from += width;
        }
    }
}

static void add_row(float *to, const float *from, uint32_t cols, float factor)
{
    for (uint32_t j = 0; j < cols; j++) {
        to[j] += factor * from[j];
    }
}

static graft_backward back_gather_rows;
graft_matrix *graft_gather_rows(graft_tape *tape, const graft_matrix *x, const uint32_t *index,
                                uint32_t count)
{
    graft_matrix *out = graft_tape_matrix(tape, count, x->cols);
    size_t cols = x->cols;
    for (uint32_t i = 0; i < count; i++) {
        assert(index[i] < x->rows);
        memcpy(out->value + i * cols, x->value + index[i] * cols, cols * sizeof(float));
    }
    return graft_tape_record(
        tape, (graft_entry){.backward = back_gather_rows, .out = out, .in = {x}, .data = index});
}

static void back_gather_rows(const graft_entry *entry)
{
    const graft_matrix *x = entry->in[0];
    const uint32_t *index = entry->data;
    size_t cols = x->cols;
    for (uint32_t i = 0; i < entry->out->rows && x->gradient != NULL; i++) {
        add_row(x->gradient + index[i] * cols, entry->out->gradient + i * cols, x->cols, 1.0F);
    }
}

/* ------------------------------------------------------------------------------------ segments */

/* 1 / rows of each segment; 0 for empty ones. */
static float *invert_counts(graft_tape *tape, const uint32_t *segment, uint32_t rows,
                            uint32_t segment_count)
{
    float *inverse = GRAFT_NEW(tape->arena, float, segment_count);
    for (uint32_t i = 0; i < rows; i++) {
        inverse[segment[i]] += 1.0F;
    }
    for (uint32_t s = 0; s < segment_count; s++) {
        inverse[s] = inverse[s] > 0.0F ? 1.0F / inverse[s] : 0.0F;
    }
    return inverse;
}

static graft_backward back_segment_mean;
graft_matrix *graft_segment_mean(graft_tape *tape, const graft_matrix *x, const uint32_t *segment,
                                 uint32_t segment_count)
{
    graft_matrix *out = graft_tape_matrix(tape, segment_count, x->cols);
    size_t cols = x->cols;
    for (uint32_t i = 0; i < x->rows; i++) {
        assert(segment[i] < segment_count);
        add_row(out->value + segment[i] * cols, x->value + i * cols, x->cols, 1.0F);
    }
    float *inverse = invert_counts(tape, segment, x->rows, segment_count);
    for (uint32_t s = 0; s < segment_count; s++) {
        for (size_t j = 0; j < cols; j++) {
            out->value[s * cols + j] *= inverse[s];
        }
    }
    return graft_tape_record(tape, (graft_entry){.backward = back_segment_mean,
                                                 .out = out,
                                                 .in = {x},
                                                 .data = segment,
                                                 .saved = inverse});
}

static void back_segment_mean(const graft_entry *entry)
{
    const graft_matrix *x = entry->in[0];
    const uint32_t *segment = entry->data;
    size_t cols = x->cols;
    for (uint32_t i = 0; i < x->rows && x->gradient != NULL; i++) {
        add_row(x->gradient + i * cols, entry->out->gradient + segment[i] * cols, x->cols,
                entry->saved[segment[i]]);
    }
}

static graft_backward back_segment_max;
graft_matrix *graft_segment_max(graft_tape *tape, const graft_matrix *x, const uint32_t *segment,
                                uint32_t segment_count)
{
    graft_matrix *out = graft_tape_matrix(tape, segment_count, x->cols);
    size_t cols = x->cols;
    /* winner (segment_count, cols): the row that holds the maximum; x->rows for empty segments. */
    uint32_t *winner = GRAFT_NEW(tape->arena, uint32_t, segment_count * cols);
    for (size_t k = 0; k < segment_count * cols; k++) {
        winner[k] = x->rows;
    }
    for (uint32_t i = 0; i < x->rows; i++) {
        assert(segment[i] < segment_count);
        for (size_t j = 0; j < cols; j++) {
            size_t k = segment[i] * cols + j;
            if (winner[k] == x->rows || x->value[i * cols + j] > out->value[k]) {
                winner[k] = i;
                out->value[k] = x->value[i * cols + j];
            }
        }
    }
    return graft_tape_record(
        tape, (graft_entry){.backward = back_segment_max, .out = out, .in = {x}, .data = winner});
}

static void back_segment_max(const graft_entry *entry)
{
    const graft_matrix *x = entry->in[0];
    const uint32_t *winner = entry->data;
    size_t cols = x->cols;
    size_t size = graft_matrix_size(entry->out);
    for (size_t k = 0; k < size && x->gradient != NULL; k++) {
        if (winner[k] < x->rows) {
            x->gradient[winner[k] * cols + k % cols] += entry->out->gradient[k];
        }
    }
}
