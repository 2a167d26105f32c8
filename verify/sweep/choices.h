/* choices.h - the bounded domain of one attribute or one shape: the values that the verifier tries.
 *
 * Attributes that only make sense together (the axes of a transpose, the sizes of a reshape) form a
 * group that is chosen as one tuple; all others are groups of one. */
#pragma once

#include "graph/base/env.h"
#include "graph/base/rng.h"

/* Sizes of the bounded domain. Images (inputs of operators with windows) may be a little larger in
 * height and width, so that strides, paddings and dilations have room to differ. */
enum { GRAFT_SIZE_MOST = 4, GRAFT_IMAGE_MOST = 6, GRAFT_RANK_MOST = 4 };

typedef struct graft_choices {
    uint32_t count;
    uint32_t width;        /* Attributes per tuple. */
    const int32_t *tuples; /* (count, width) */
} graft_choices;

/* Number of attributes, from `first` on, that are chosen together. */
uint32_t graft_choices_width(uint32_t op, uint32_t first);
/* The tuples to try for the attributes of `op` from `first` on. `in` is the shape of the operator's
 * first input (ignored for operators without one): axes and sizes depend on it. The tuples may live
 * in `arena`. The list contains every value of the bounded domain that fits and may contain others.
 */
graft_choices graft_choices_attrs(graft_arena *arena, uint32_t op, uint32_t first,
                                  const graft_shape *in);

/* Shapes of the bounded domain, numbered; the larger ones with height and width past
 * GRAFT_SIZE_MOST come last. */
uint32_t graft_choices_shape_count(bool images);
graft_shape graft_choices_shape(uint32_t index);
/* A random shape of the domain; ranks are about equally likely. */
graft_shape graft_choices_shape_random(graft_rng *rng, bool images);
