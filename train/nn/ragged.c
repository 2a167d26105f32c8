/* ragged.c - see ragged.h. The derivatives are those of a single row, docs/train-numerics.md. */
#include "train/nn/ragged.h"

#include "train/nn/numeric.h"

#include <assert.h>
#include <math.h>

static graft_backward back_log_softmax;
graft_matrix *graft_ragged_log_softmax(graft_tape *tape, const graft_matrix *logits,
                                       const uint32_t *chooser, uint32_t chooser_count)
{
    assert(logits->cols == 1);
    graft_matrix *out = graft_tape_matrix(tape, logits->rows, 1);
    float *most = GRAFT_NEW(tape->arena, float, chooser_count);
    float *sum = GRAFT_NEW(tape->arena, float, chooser_count);
    for (uint32_t c = 0; c < chooser_count; c++) {
        most[c] = -INFINITY;
    }
    for (uint32_t i = 0; i < logits->rows; i++) {
        assert(chooser[i] < chooser_count);
        most[chooser[i]] = fmaxf(most[chooser[i]], logits->value[i]);
    }
    for (uint32_t i = 0; i < logits->rows; i++) {
        sum[chooser[i]] += graft_exp(logits->value[i] - most[chooser[i]]);
    }
    for (uint32_t i = 0; i < logits->rows; i++) {
        out->value[i] = logits->value[i] - most[chooser[i]] - graft_ln(sum[chooser[i]]);
    }
    return graft_tape_record(tape, (graft_entry){.backward = back_log_softmax,
                                                 .out = out,
                                                 .in = {logits},
                                                 .data = chooser,
                                                 .saved = sum,
                                                 .count = chooser_count});
}

/* dx_j = dy_j - p_j sum_k dy_k over the rows of j's chooser. */
static void back_log_softmax(const graft_entry *entry)
{
    const graft_matrix *logits = entry->in[0];
    const graft_matrix *out = entry->out;
    const uint32_t *chooser = entry->data;
    float *sum = entry->saved; /* The forward pass is done with it. */
    for (uint32_t c = 0; c < entry->count; c++) {
        sum[c] = 0.0F;
    }
    for (uint32_t i = 0; i < out->rows; i++) {
        sum[chooser[i]] += out->gradient[i];
    }
    for (uint32_t i = 0; i < out->rows && logits->gradient != NULL; i++) {
        logits->gradient[i] += out->gradient[i] - graft_exp(out->value[i]) * sum[chooser[i]];
    }
}

static graft_backward back_entropy;
graft_matrix *graft_ragged_entropy(graft_tape *tape, const graft_matrix *log_p,
                                   const uint32_t *chooser, uint32_t chooser_count)
{
    assert(log_p->cols == 1);
    graft_matrix *out = graft_tape_matrix(tape, chooser_count, 1);
    for (uint32_t i = 0; i < log_p->rows; i++) {
        out->value[chooser[i]] -= graft_exp(log_p->value[i]) * log_p->value[i];
    }
    return graft_tape_record(
        tape, (graft_entry){.backward = back_entropy, .out = out, .in = {log_p}, .data = chooser});
}

/* d(- e^l l)/dl = - e^l (1 + l). */
static void back_entropy(const graft_entry *entry)
{
    const graft_matrix *log_p = entry->in[0];
    const uint32_t *chooser = entry->data;
    for (uint32_t i = 0; i < log_p->rows && log_p->gradient != NULL; i++) {
        float l = log_p->value[i];
        log_p->gradient[i] -= entry->out->gradient[chooser[i]] * graft_exp(l) * (1.0F + l);
    }
}
