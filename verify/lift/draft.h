/* draft.h - a candidate with concrete attributes on its way to a rule with slots.
 *
 * A *place* is one attribute of one source node; it starts as a slot of its own. *Constraints* are
 * facts that hold for the candidate as it was found; a draft requires some of them. Equalities of
 * places become shared slots, constants become constants of the pattern, the others become the
 * precondition. Each attribute of the target is given as an *expression* over places, sizes of
 * variables and constants that has the right value for the candidate. A draft and a choice of
 * constraints and expressions make a rule. */
#pragma once

#include "gen/gen.h"
#include "verify/instances/instance.h"

enum {
    GRAFT_PLACES_MOST = GRAFT_RULE_MAX_SLOTS,
    GRAFT_TARGETS_MOST = 64,
    GRAFT_EXPRESSIONS_MOST = 24,
    GRAFT_CONSTRAINTS_MOST = 256
};

typedef struct graft_place {
    uint8_t node;
    uint8_t attr;
    uint8_t kind;  /* graft_attr_kind */
    uint8_t list;  /* Attributes that are chosen together (axes of a transpose) form a list: its
                      first  place; the place itself elsewhere. */
    uint8_t width; /* Places of the list, in its first place. */
    int32_t value; /* The candidate's. */
    const graft_attr_info *info;
} graft_place;

/* Whether two attributes are called the same: of whatever operators, they say the same. */
bool graft_attrs_alike(const graft_attr_info *a, const graft_attr_info *b);

typedef enum graft_leaf_kind { GRAFT_LEAF_CONST, GRAFT_LEAF_PLACE, GRAFT_LEAF_DIM } graft_leaf_kind;

typedef struct graft_leaf {
    uint8_t kind;  /* graft_leaf_kind */
    uint8_t index; /* Place or variable. */
    int8_t axis;   /* Negative: from the end. */
    int32_t value; /* At the candidate. */
} graft_leaf;

/* Leaf, or `code` of two leaves. */
typedef struct graft_expression {
    uint8_t code; /* graft_code; GRAFT_CODE_END: `a` alone. */
    graft_leaf a;
    graft_leaf b;
} graft_expression;

typedef enum graft_constraint_kind {
    GRAFT_CONSTRAINT_PLACES_EQUAL,   /* a, b: places. */
    GRAFT_CONSTRAINT_PLACE_CONST,    /* a: place, of the candidate's value. */
    GRAFT_CONSTRAINT_SAME_SHAPE,     /* a, b: variables. */
    GRAFT_CONSTRAINT_RANK,           /* a: variable. */
    GRAFT_CONSTRAINT_DIMS_EQUAL,     /* a, b: variables; axes. */
    GRAFT_CONSTRAINT_DIM_ONE,        /* a: variable; axis. */
    GRAFT_CONSTRAINT_PLACE_IS_DIM,   /* a: place; b: variable; axis. */
    GRAFT_CONSTRAINT_DIVIDES,        /* a: place divides a size of variable b. */
    GRAFT_CONSTRAINT_PLACES_ORDERED, /* a <= b: places. */
    GRAFT_CONSTRAINT_FLOATS_ORDERED, /* a <= b: places of float kind. */
    GRAFT_CONSTRAINT_PLACE_AT_MOST,  /* a: place, of the candidate's value or less, */
    GRAFT_CONSTRAINT_PLACE_AT_LEAST  /* or more. */
} graft_constraint_kind;

typedef struct graft_constraint {
    uint8_t kind; /* graft_constraint_kind */
    uint8_t a;
    uint8_t b;
    int8_t axis_a;
    int8_t axis_b;
} graft_constraint;

typedef struct graft_draft {
    const graft_candidate *candidate;
    graft_point origin; /* The candidate's shapes. */
    uint32_t place_count;
    graft_place places[GRAFT_PLACES_MOST];
    uint32_t constraint_count; /* All that hold for the candidate. */
    graft_constraint constraints[GRAFT_CONSTRAINTS_MOST];
    uint32_t target_count; /* Attributes of the target, in node order. */
    uint8_t option_count[GRAFT_TARGETS_MOST];
    graft_expression options[GRAFT_TARGETS_MOST][GRAFT_EXPRESSIONS_MOST]; /* Preferred first. */
} graft_draft;

/* Which constraints are required, which option each target attribute takes. */
typedef struct graft_choice {
    uint64_t required[GRAFT_CONSTRAINTS_MOST / 64];
    uint8_t option[GRAFT_TARGETS_MOST];
} graft_choice;

/* Lists places, constraints and expressions of a candidate. GRAFT_UNSUPPORTED when it has more
 * attributes than a draft can hold, GRAFT_BAD_INPUT when it does not type-check as found. */
GRAFT_MUST_USE graft_status graft_draft_make(graft_env *env, const graft_candidate *candidate,
                                             graft_draft *draft);

bool graft_choice_requires(const graft_choice *choice, uint32_t constraint);
void graft_choice_set(graft_choice *choice, uint32_t constraint, bool required);

/* The rule of a choice. `slot_of` gets, per place, its slot, or UINT8_MAX for a constant. False
 * when it does not fit into a rule (too much code). */
bool graft_draft_rule(const graft_draft *draft, const graft_choice *choice, graft_rule *rule,
                      uint8_t *slot_of);

/* Whether a constraint holds for these shapes and values of places. */
bool graft_constraint_holds(const graft_draft *draft, const graft_constraint *constraint,
                            const graft_shape *vars, const int32_t *values);
