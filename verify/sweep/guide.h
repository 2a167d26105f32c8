/* guide.h - what a rule's precondition says outright: ranks, sizes and attributes that are given
 * numbers, sizes and shapes that are equal. Instances drawn without regard to it mostly fail it; a
 * draw that follows it finds those that a rule with a narrow precondition has. */
#pragma once

#include "verify/instances/instance.h"

enum { GRAFT_GUIDE_FACTS = 48 };

typedef enum graft_guide_kind {
    GRAFT_GUIDE_NUMBER,
    GRAFT_GUIDE_SLOT,
    GRAFT_GUIDE_DIM,
    GRAFT_GUIDE_RANK,
    GRAFT_GUIDE_SHAPE
} graft_guide_kind;

/* One side of an equality. */
typedef struct graft_guide_leaf {
    uint8_t kind;  /* graft_guide_kind */
    uint8_t index; /* Slot or variable. */
    int8_t axis;
    int32_t value;
} graft_guide_leaf;

typedef struct graft_guide {
    uint32_t count;
    graft_guide_leaf facts[GRAFT_GUIDE_FACTS][2]; /* Equal to each other. */
} graft_guide;

/* The equalities that are parts of the precondition's conjunction. */
void graft_guide_read(const graft_rule *rule, graft_guide *guide);
/* Changes a proposed shape of variable `var` so that it agrees with the facts, as far as they are
 * about it and what has a value (bits of variables and slots). New sizes of a changed rank are
 * `fresh`, taken in turn. */
void graft_guide_shape(const graft_guide *guide, uint32_t var, const graft_point *point,
                       uint32_t bound_vars, const int32_t fresh[GRAFT_MAX_RANK],
                       graft_shape *shape);
/* The value that the facts give a slot; false when they give none. */
bool graft_guide_slot(const graft_guide *guide, uint32_t slot, const graft_point *point,
                      uint32_t bound_vars, uint64_t bound_slots, int32_t *value);
