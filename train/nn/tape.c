/* tape.c - see tape.h. */
#include "train/nn/tape.h"

#include <assert.h>
#include <string.h>

void graft_tape_init(graft_tape *tape, graft_arena *arena, bool recording)
{
    memset(tape, 0, sizeof *tape);
    tape->arena = arena;
    tape->recording = recording;
}

void graft_tape_reset(graft_tape *tape)
{
    graft_arena_reset(tape->arena);
    tape->last = NULL;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): kept, and written through later. */
void graft_tape_bind(graft_tape *tape, const graft_parameters *set, float *gradient)
{
    assert(tape->binding_count < GRAFT_TAPE_BINDINGS);
    tape->bindings[tape->binding_count++] = (graft_binding){set, gradient};
}

const graft_matrix *graft_tape_parameter(graft_tape *tape, const graft_parameters *set,
                                         uint32_t index)
{
    for (uint32_t i = 0; i < tape->binding_count; i++) {
        const graft_binding *binding = &tape->bindings[i];
        if (binding->set == set) {
            const graft_parameter *item = &set->items[index];
            bool differentiable = tape->recording && binding->gradient != NULL;
            graft_matrix *m = GRAFT_NEW(tape->arena, graft_matrix, 1);
            *m = (graft_matrix){item->rows, item->cols, set->value + item->offset,
                                differentiable ? binding->gradient + item->offset : NULL};
            return m;
        }
    }
    assert(false); /* The parameter set is bound to this tape. */
    return NULL;
}

const graft_matrix *graft_tape_constant(graft_tape *tape, const float *value, uint32_t rows,
                                        uint32_t cols)
{
    graft_matrix *m = GRAFT_NEW(tape->arena, graft_matrix, 1);
    /* The cast drops const from data that is never written: constants have no kernel as producer.
     */
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    *m = (graft_matrix){rows, cols, (float *)(uintptr_t)value, NULL};
    return m;
}

graft_matrix *graft_tape_matrix(graft_tape *tape, uint32_t rows, uint32_t cols)
{
    graft_matrix *m = GRAFT_NEW(tape->arena, graft_matrix, 1);
    size_t size = (size_t)rows * cols;
    m->rows = rows;
    m->cols = cols;
    m->value = GRAFT_NEW(tape->arena, float, size);
    m->gradient = tape->recording ? GRAFT_NEW(tape->arena, float, size) : NULL;
    return m;
}

graft_matrix *graft_tape_record(graft_tape *tape, graft_entry entry)
{
    if (tape->recording) {
        graft_entry *kept = GRAFT_NEW(tape->arena, graft_entry, 1);
        *kept = entry;
        kept->before = tape->last;
        tape->last = kept;
    }
    return entry.out;
}

void graft_tape_seed(graft_tape *tape, const graft_matrix *m, float weight)
{
    assert(tape->recording && m->gradient != NULL);
    size_t size = graft_matrix_size(m);
    for (size_t i = 0; i < size; i++) {
        m->gradient[i] += weight;
    }
}

void graft_tape_backward(graft_tape *tape)
{
    for (const graft_entry *entry = tape->last; entry != NULL; entry = entry->before) {
        entry->backward(entry);
    }
    tape->last = NULL;
}
