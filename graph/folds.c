/* folds.c - see folds.h. Data is known by its address: that of the file's weights, and of results
 * that are kept here, stays as it is. */
#include "graph/folds.h"

#include "graph/onnx/onnx.h"

#include <string.h>

typedef struct {
    graft_fold fold;
    float *out[GRAFT_MAX_OUTPUTS];
} kept_fold;

struct graft_folds {
    graft_arena *arena;
    const void **lasting;
    uint32_t lasting_count;
    uint32_t lasting_capacity;
    kept_fold *items;
    uint32_t count;
    uint32_t capacity;
    size_t bytes_left;
};

static void add_lasting(graft_folds *folds, const void *data)
{
    if (data != NULL) {
        GRAFT_PUSH(folds->arena, folds->lasting, folds->lasting_count, folds->lasting_capacity,
                   64) = data;
    }
}

graft_folds *graft_folds_new(graft_arena *arena, const graft_model *first)
{
    graft_folds *folds = GRAFT_NEW(arena, graft_folds, 1);
    folds->arena = arena;
    const Onnx__ModelProto *later = first->rest != NULL ? first->rest : first->again;
    for (size_t i = 0; later != NULL && i < later->graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = later->graph->initializer[i];
        folds->bytes_left += tensor->raw_data.len + tensor->n_float_data * sizeof(float);
        add_lasting(folds, tensor->raw_data.data);
        add_lasting(folds, tensor->float_data);
    }
    return folds;
}

static bool lasts(const graft_folds *folds, const float *data)
{
    bool found = false;
    for (uint32_t i = 0; i < folds->lasting_count && !found; i++) {
        found = folds->lasting[i] == data;
    }
    return found;
}

static bool are_equal(const graft_fold *a, const graft_fold *b)
{
    bool equal = a->op == b->op && memcmp(a->attrs, b->attrs, sizeof a->attrs) == 0;
    for (uint32_t k = 0; k < GRAFT_MAX_INPUTS && equal; k++) {
        equal = a->in[k] == b->in[k] &&
                (a->in[k] == NULL || graft_shape_equal(&a->shapes[k], &b->shapes[k]));
    }
    return equal;
}

float *const *graft_folds_find(const graft_folds *folds, const graft_fold *fold)
{
    for (uint32_t i = 0; i < folds->count; i++) {
        if (are_equal(&folds->items[i].fold, fold)) {
            return folds->items[i].out;
        }
    }
    return NULL;
}

float *const *graft_folds_add(graft_folds *folds, const graft_fold *fold, uint32_t output_count,
                              const size_t *bytes)
{
    size_t sum = 0;
    bool fits = true;
    for (uint32_t k = 0; k < GRAFT_MAX_INPUTS && fold->in[k] != NULL; k++) {
        fits = fits && lasts(folds, fold->in[k]);
    }
    for (uint32_t k = 0; k < output_count; k++) {
        fits = fits && bytes[k] <= folds->bytes_left - sum;
        sum += fits ? bytes[k] : 0;
    }
    if (!fits) {
        return NULL;
    }
    folds->bytes_left -= sum;
    GRAFT_PUSH(folds->arena, folds->items, folds->count, folds->capacity, 16) =
        (kept_fold){.fold = *fold};
    kept_fold *kept = &folds->items[folds->count - 1];
    for (uint32_t k = 0; k < output_count; k++) {
        kept->out[k] = graft_arena_alloc(folds->arena, bytes[k]);
        add_lasting(folds, kept->out[k]);
    }
    return kept->out;
}
