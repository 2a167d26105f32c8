/* parameters.c - see parameters.h. */
#include "train/nn/parameters.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { ALIGNMENT_FLOATS = 16 };

void graft_parameters_init(graft_parameters *set, const char *name)
{
    memset(set, 0, sizeof *set);
    set->name = name;
}

uint32_t graft_parameters_add(graft_parameters *set, const char *name, uint32_t rows, uint32_t cols,
                              float spread)
{
    assert(set->value == NULL && set->count < GRAFT_PARAMETERS_MOST);
    for (uint32_t i = 0; i < set->count; i++) {
        assert(strcmp(set->items[i].name, name) != 0);
    }
    size_t need = (size_t)rows * cols;
    set->items[set->count] = (graft_parameter){name, rows, cols, set->size, spread};
    set->size += (need + ALIGNMENT_FLOATS - 1) / ALIGNMENT_FLOATS * ALIGNMENT_FLOATS;
    return set->count++;
}

void graft_parameters_seal(graft_parameters *set, graft_arena *arena, uint64_t seed)
{
    assert(set->value == NULL);
    set->value = GRAFT_NEW(arena, float, set->size);
    set->gradient = GRAFT_NEW(arena, float, set->size);
    set->moment = GRAFT_NEW(arena, float, set->size);
    set->variance = GRAFT_NEW(arena, float, set->size);
    for (uint32_t i = 0; i < set->count; i++) {
        const graft_parameter *item = &set->items[i];
        graft_rng rng; /* One stream each: adding a parameter does not move the others. */
        graft_rng_derive(&rng, seed, i);
        size_t size = (size_t)item->rows * item->cols;
        for (size_t k = 0; k < size && item->spread > 0.0F; k++) {
            float unit = (float)(2.0 * graft_rng_uniform(&rng) - 1.0);
            set->value[item->offset + k] = item->spread * unit;
        }
    }
}

float *graft_parameters_value(const graft_parameters *set, uint32_t index)
{
    assert(index < set->count);
    return set->value + set->items[index].offset;
}

graft_layer graft_parameters_layer(graft_parameters *set, const char *const names[2],
                                   uint32_t inputs, uint32_t outputs, float gain)
{
    float spread = gain * sqrtf(3.0F / (float)(inputs > 0 ? inputs : 1));
    uint32_t weight = graft_parameters_add(set, names[0], inputs, outputs, spread);
    return (graft_layer){weight, graft_parameters_add(set, names[1], 1, outputs, 0.0F)};
}
