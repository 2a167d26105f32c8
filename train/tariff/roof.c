/* roof.c - see roof.h. Whole numbers only, 1024ths of an octave, so that every machine fits the same. */
#include "train/tariff/roof.h"

#include <stdlib.h>

enum { TERMS = 3, STEPS = 32, LEAST_SAMPLES = 4 };

/* What is left of a sample's value when a term's size is taken away: what the term would be if the
 * sample were its own. */
typedef struct {
    int32_t left[TERMS];
} point;

static point point_of(const graft_tariff_sample *sample)
{
    const int32_t flops = 1024 / 64 * sample->inputs[GRAFT_FEATURE_COUNT];
    const int32_t bytes = 1024 / 64 * sample->inputs[GRAFT_FEATURE_COUNT + 1];
    const int32_t value = sample->value;
    return (point){
        {value, value - bytes, value - flops}
    };
}

static int compare_numbers(const void *a, const void *b)
{
    const int32_t *x = a;
    const int32_t *y = b;
    return (*x > *y) - (*x < *y);
}

/* The term of the roof that is largest at a point, and how far the roof lies above it. */
static uint32_t find_largest(const int32_t roof[TERMS], const point *p, int32_t *above)
{
    uint32_t largest = 0;
    for (uint32_t k = 1; k < TERMS; k++) {
        largest = roof[k] - p->left[k] > roof[largest] - p->left[largest] ? k : largest;
    }
    *above = roof[largest] - p->left[largest];
    return largest;
}

/* The median of a term over the points that are its own, over all when `roof` is NULL; as it was when
 * these are too few. */
static int32_t find_median(const point *points, uint32_t count, const int32_t *roof, uint32_t term,
                           int32_t *room)
{
    uint32_t own = 0;
    int32_t above = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (roof == NULL || find_largest(roof, &points[i], &above) == term) {
            room[own++] = points[i].left[term];
        }
    }
    qsort(room, own, sizeof room[0], compare_numbers);
    return roof != NULL && own < LEAST_SAMPLES ? roof[term] : room[own / 2];
}

static int64_t sum_errors(const point *points, uint32_t count, const int32_t roof[TERMS])
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        int32_t above = 0;
        (void)find_largest(roof, &points[i], &above);
        sum += abs(above);
    }
    return sum;
}

static int32_t narrow(int32_t value)
{
    return value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value;
}

static graft_roof fit_points(graft_arena *scratch, const point *points, uint32_t count)
{
    int32_t *room = GRAFT_NEW(scratch, int32_t, count);
    int32_t roof[TERMS];
    int64_t least = INT64_MAX;
    graft_roof best = {0, 0, 0};
    for (uint32_t k = 0; k < TERMS; k++) {
        roof[k] = find_median(points, count, NULL, k, room);
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        const int64_t errors = sum_errors(points, count, roof);
        int32_t moved[TERMS];
        if (errors < least) {
            least = errors;
            best = (graft_roof){narrow(roof[0]), narrow(roof[1]), narrow(roof[2])};
        }
        for (uint32_t k = 0; k < TERMS; k++) {
            moved[k] = find_median(points, count, roof, k, room);
        }
        for (uint32_t k = 0; k < TERMS; k++) {
            roof[k] = moved[k];
        }
    }
    return best;
}

void graft_tariff_fit_roofs(graft_env *env, const graft_tariff_sample *samples,
                            uint32_t sample_count, graft_tariff *tariff)
{
    GRAFT_SCOPED(env->scratch);
    uint32_t counts[GRAFT_TARIFF_ROOFS];
    point *points = GRAFT_NEW(env->scratch, point, sample_count);
    for (uint32_t roof = 0; roof < GRAFT_TARIFF_ROOFS; roof++) {
        counts[roof] = 0;
        for (uint32_t i = 0; i < sample_count; i++) {
            if (graft_tariff_roof(samples[i].inputs) == roof) {
                points[counts[roof]++] = point_of(&samples[i]);
            }
        }
        if (counts[roof] > 0) {
            tariff->roofs[roof] = fit_points(env->scratch, points, counts[roof]);
        }
    }
    for (uint32_t roof = 0; roof < GRAFT_TARIFF_ROOFS; roof++) {
        if (counts[roof] == 0) {
            tariff->roofs[roof] = tariff->roofs[1 - roof];
        }
    }
}
