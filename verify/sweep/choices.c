/* choices.c - see choices.h. */
#include "verify/sweep/choices.h"

#include <assert.h>
#include <string.h>

/* ------------------------------------------------------------------ values */

/* Binary32 bits. */
enum {
    F_MINUS_INFINITY = (int32_t)0xff800000u,
    F_MINUS_ONE = (int32_t)0xbf800000u,
    F_ZERO = 0,
    F_SMALL = 0x3727c5ac, /* 1e-5 */
    F_TENTH = 0x3dcccccd,
    F_HALF = 0x3f000000,
    F_ONE = 0x3f800000,
    F_TWO = 0x40000000,
    F_SIX = 0x40c00000,
    F_INFINITY = 0x7f800000
};

enum { VALUES_MOST = 8 };

/* By the attribute's name, or its stem before a final _x. */
static const struct {
    const char *name;
    uint32_t count;
    int32_t values[VALUES_MOST];
} value_lists[] = {
    {"stride",   3, {1, 2, 3}                                      },
    {"pad",      3, {0, 1, 2}                                      },
    {"dilation", 2, {1, 2}                                         },
    {"groups",   4, {1, 2, 3, 4}                                   },
    {"kernel",   3, {1, 2, 3}                                      },
    {"axis",     4, {0, 1, 2, 3}                                   },
    {"at",       5, {1, 2, 3, 4, 5}                                },
    {"start",    4, {0, 1, 2, 3}                                   },
    {"end",      5, {1, 2, 3, 4, 5}                                },
    {"before",   3, {0, 1, 2}                                      },
    {"after",    3, {0, 1, 2}                                      },
    {"low",      4, {F_MINUS_INFINITY, F_MINUS_ONE, F_ZERO, F_HALF}},
    {"high",     5, {F_ZERO, F_HALF, F_ONE, F_SIX, F_INFINITY}     },
    {"slope",    4, {F_ZERO, F_HALF, F_ONE, F_TWO}                 },
    {"value",    5, {F_MINUS_ONE, F_ZERO, F_HALF, F_ONE, F_TWO}    },
    {"epsilon",  3, {F_SMALL, F_HALF, F_TWO}                       },
    {"scale",    4, {F_HALF, F_ONE, F_TENTH, F_SMALL}              },
    {"zero",     8, {0, -128, 3, -5, 255, 127, -1, 1}              },
    {"least",    2, {0, -128}                                      },
};

static bool name_has_stem(const char *name, const char *stem)
{
    size_t length = strlen(stem);
    return strncmp(name, stem, length) == 0 && (name[length] == '\0' || name[length] == '_');
}

/* Of a real number whose name says nothing more. */
static const int32_t real_values[] = {F_HALF, F_ONE, F_TWO, F_MINUS_ONE, F_ZERO};

/* An attribute without a list takes the first few values of its domain, or 0..15 of a mask. */
static graft_choices list_values(graft_arena *arena, const graft_attr_info *attr)
{
    for (size_t i = 0; i < sizeof value_lists / sizeof value_lists[0]; i++) {
        if (name_has_stem(attr->name, value_lists[i].name)) {
            return (graft_choices){value_lists[i].count, 1, value_lists[i].values};
        }
    }
    if (attr->kind == GRAFT_ATTR_FLOAT) {
        return (graft_choices){sizeof real_values / sizeof real_values[0], 1, real_values};
    }
    int32_t last = attr->least + 15 < attr->most ? attr->least + 15 : attr->most;
    uint32_t count = (uint32_t)(last - attr->least + 1);
    int32_t *values = GRAFT_NEW(arena, int32_t, count);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = attr->least + (int32_t)i;
    }
    return (graft_choices){count, 1, values};
}

/* ------------------------------------------------------------------ groups */

typedef enum { GROUP_VALUE, GROUP_AXES, GROUP_SIZES, GROUP_SHAPE } group_kind;

static group_kind find_group(uint32_t op, uint32_t first)
{
    switch (op) {
    case GRAFT_OP_transpose:
        return GROUP_AXES;
    case GRAFT_OP_reshape:
        return GROUP_SIZES;
    case GRAFT_OP_fill:
        return first == GRAFT_ATTR_fill_dim_0 ? GROUP_SHAPE : GROUP_VALUE;
    default:
        return GROUP_VALUE;
    }
}

uint32_t graft_choices_width(uint32_t op, uint32_t first)
{
    return find_group(op, first) == GROUP_VALUE ? 1 : GRAFT_MAX_RANK;
}

/* A list of tuples of GRAFT_MAX_RANK numbers. */
typedef struct {
    graft_arena *arena;
    int32_t *tuples;
    uint32_t count;
    uint32_t capacity;
} tuple_list;

static void put_tuple(tuple_list *list, const int32_t *tuple)
{
    list->tuples = graft_arena_grow(list->arena, list->tuples, list->count, &list->capacity, 32,
                                    GRAFT_MAX_RANK * sizeof *tuple);
    memcpy(&list->tuples[(size_t)list->count++ * GRAFT_MAX_RANK], tuple,
           GRAFT_MAX_RANK * sizeof *tuple);
}

/* Every permutation of the axes, by counting in base `rank` and keeping those without repeats. */
static void put_permutations(tuple_list *list, uint32_t rank)
{
    uint32_t end = 1;
    for (uint32_t i = 0; i < rank; i++) {
        end *= rank;
    }
    for (uint32_t code = 0; code < end; code++) {
        int32_t axes[GRAFT_MAX_RANK] = {0};
        uint32_t seen = 0;
        for (uint32_t i = 0, rest = code; i < rank; i++, rest /= rank) {
            axes[i] = (int32_t)(rest % rank);
            seen |= 1u << axes[i];
        }
        if (seen == (1u << rank) - 1u) {
            put_tuple(list, axes);
        }
    }
}

enum { DIVISORS_MOST = 64 };

/* The least ones, in order. */
static uint32_t list_divisors(int32_t number, int32_t *divisors)
{
    uint32_t count = 0;
    for (int32_t d = 1; d <= number / d && count < DIVISORS_MOST; d++) {
        if (number % d == 0) {
            divisors[count++] = d;
        }
    }
    for (uint32_t i = count; i-- > 0 && count < DIVISORS_MOST;) {
        if (divisors[i] != number / divisors[i]) {
            divisors[count++] = number / divisors[i];
        }
    }
    return count;
}

/* Sizes whose product is to be some number. */
typedef struct {
    tuple_list *list;
    int32_t divisors[DIVISORS_MOST];
    uint32_t divisor_count;
    uint32_t rank;
} factoring;

/* Chooses the first `left` sizes, the last of them first, out of the divisors of `rest`, and gives
 * what remains to the last size of all. */
static void put_products(const factoring *f, int32_t *sizes, uint32_t left, int32_t rest)
{
    if (left == 0) {
        sizes[f->rank - 1] = rest;
        put_tuple(f->list, sizes);
        return;
    }
    for (uint32_t i = 0; i < f->divisor_count && f->divisors[i] <= rest; i++) {
        if (rest % f->divisors[i] == 0) {
            sizes[left - 1] = f->divisors[i];
            put_products(f, sizes, left - 1, rest / f->divisors[i]);
        }
    }
}

/* Every way to write `elements` as a product of at most GRAFT_RANK_MOST sizes. */
static void put_factors(tuple_list *list, int32_t elements)
{
    factoring f = {.list = list};
    f.divisor_count = list_divisors(elements, f.divisors);
    if (elements == 1) {
        put_tuple(list, (const int32_t[GRAFT_MAX_RANK]){0});
    }
    for (f.rank = 1; f.rank <= GRAFT_RANK_MOST; f.rank++) {
        int32_t sizes[GRAFT_MAX_RANK] = {0};
        put_products(&f, sizes, f.rank - 1, elements);
    }
}

graft_choices graft_choices_attrs(graft_arena *arena, uint32_t op, uint32_t first,
                                  const graft_shape *in)
{
    tuple_list list = {.arena = arena};
    switch (find_group(op, first)) {
    case GROUP_VALUE:
        return list_values(arena, graft_op_attr(op, first));
    case GROUP_AXES:
        put_permutations(&list, in->rank);
        break;
    case GROUP_SIZES:
        put_factors(&list, (int32_t)graft_shape_elements(in));
        break;
    case GROUP_SHAPE:
        for (uint32_t i = 0; i < graft_choices_shape_count(false); i++) {
            put_tuple(&list, graft_choices_shape(i).dims);
        }
        break;
    }
    return (graft_choices){list.count, GRAFT_MAX_RANK, list.tuples};
}

/* ------------------------------------------------------------------ shapes */

enum {
    SMALL_COUNT = 1 + 4 + 16 + 64 + 256,
    SMALL_PLANES = GRAFT_SIZE_MOST * GRAFT_SIZE_MOST,
    LARGE_PLANES = GRAFT_IMAGE_MOST * GRAFT_IMAGE_MOST - SMALL_PLANES,
    IMAGE_COUNT = SMALL_PLANES * LARGE_PLANES
};

uint32_t graft_choices_shape_count(bool images)
{
    return SMALL_COUNT + (images ? (uint32_t)IMAGE_COUNT : 0u);
}

/* Images whose height or width is past GRAFT_SIZE_MOST, in row-major order of (n, c, h, w). */
static graft_shape large_image(uint32_t index)
{
    int32_t rest = (int32_t)(index % LARGE_PLANES);
    int32_t channel = (int32_t)(index / LARGE_PLANES);
    int32_t plane = 0; /* Of all heights and widths. */
    for (;; plane++) {
        bool large = plane / GRAFT_IMAGE_MOST >= GRAFT_SIZE_MOST ||
                     plane % GRAFT_IMAGE_MOST >= GRAFT_SIZE_MOST;
        if (large && rest-- == 0) {
            break;
        }
    }
    return (graft_shape){
        {channel / GRAFT_SIZE_MOST + 1, channel % GRAFT_SIZE_MOST + 1, plane / GRAFT_IMAGE_MOST + 1,
         plane % GRAFT_IMAGE_MOST + 1},
        4,
        GRAFT_DTYPE_F32
    };
}

graft_shape graft_choices_shape(uint32_t index)
{
    if (index >= SMALL_COUNT) {
        return large_image(index - SMALL_COUNT);
    }
    graft_shape shape = {.dtype = GRAFT_DTYPE_F32};
    uint32_t count = 1;
    while (index >= count) {
        index -= count;
        count *= GRAFT_SIZE_MOST;
        shape.rank++;
    }
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = (int32_t)(index % GRAFT_SIZE_MOST) + 1;
        index /= GRAFT_SIZE_MOST;
    }
    return shape;
}

graft_shape graft_choices_shape_random(graft_rng *rng, bool images)
{
    static const uint8_t ranks[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 4};
    graft_shape shape = {.dtype = GRAFT_DTYPE_F32};
    bool image = images && graft_rng_below(rng, 4) != 0;
    shape.rank = image ? 4 : ranks[graft_rng_below(rng, sizeof ranks)];
    for (uint32_t i = 0; i < shape.rank; i++) {
        uint32_t most = image && i >= 2 ? GRAFT_IMAGE_MOST : GRAFT_SIZE_MOST;
        shape.dims[i] = (int32_t)graft_rng_below(rng, most) + 1;
    }
    return shape;
}
