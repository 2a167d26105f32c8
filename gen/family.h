/* family.h - what to enumerate, read from rules/families/<family>.yaml.
 *
 * A family is a list of sets. A set names input tensors with concrete shapes, the operators that
 * may be applied to them with concrete attribute values, and how many operators a graph may have.
 * Each set is enumerated on its own; shapes are drawn with unequal dimensions, so that a law that
 * holds only where two of them happen to agree is not proposed. The format is described in
 * docs/families.md. */
#pragma once

#include "graph/base/env.h"

enum {
    GRAFT_GEN_MAX_VARS = 8,  /* Inputs of a set. */
    GRAFT_GEN_MAX_STEPS = 8, /* Operators in a compound. */
    GRAFT_GEN_MAX_DEPTH = 5
};

/* What an input of an operator may be: a value that depends on an activation, or one computed from
 * weights alone. */
enum { GRAFT_GEN_ACTIVATION = 1, GRAFT_GEN_WEIGHT = 2, GRAFT_GEN_ANY = 3 };

/* An operand of a step: input i, or output o of an earlier step s. */
#define GRAFT_GEN_INPUT(i)   ((uint8_t)(i))
#define GRAFT_GEN_STEP(s, o) ((uint8_t)(GRAFT_MAX_INPUTS + 2u * (unsigned)(s) + (unsigned)(o)))

typedef struct graft_gen_step {
    int32_t attrs[GRAFT_MAX_ATTRS];
    uint8_t args[GRAFT_MAX_INPUTS];
    uint8_t op;
} graft_gen_step;

/* One operator with concrete attributes (a single step), or a compound: a few operators that are
 * enumerated as one, such as "kernel times channel vector". */
typedef struct graft_gen_config {
    const char *name;
    graft_gen_step steps[GRAFT_GEN_MAX_STEPS];
    uint8_t outputs[GRAFT_MAX_OUTPUTS]; /* Step operands. */
    uint8_t roles[GRAFT_MAX_INPUTS];    /* GRAFT_GEN_ACTIVATION | GRAFT_GEN_WEIGHT. */
    uint8_t step_count;
    uint8_t input_count;
    uint8_t output_count;
    uint8_t rank; /* The first input's rank; 0 for any. */
    bool commutes;
    bool is_distinct; /* The first two inputs must differ. */
    bool is_once;     /* A graph holds one of all these configurations at most. */
} graft_gen_config;

typedef struct graft_gen_input {
    const char *name;
    graft_shape shape;
    bool is_weight;
} graft_gen_input;

typedef struct graft_gen_set {
    const char *name;
    graft_gen_input inputs[GRAFT_GEN_MAX_VARS];
    const graft_gen_config *configs;
    uint32_t config_count;
    uint32_t input_count;
    uint32_t depth;        /* Most operators in a graph. */
    uint32_t output_count; /* Most outputs of a graph, 1 or 2. */
} graft_gen_set;

typedef struct graft_gen_family {
    const char *name;
    const char *file;
    const graft_gen_set *sets;
    uint32_t set_count;
    uint32_t order; /* Families are enumerated in this order. */
} graft_gen_family;

/* The configuration of one operator over any inputs, with every attribute 0. */
void graft_gen_config_of_op(uint32_t op, graft_gen_config *config);

/* Stands for what a configuration computes and where it may be applied; not for its name. */
uint64_t graft_gen_config_hash(const graft_gen_config *config);

/* Reads a family into `arena`; `name` stands for the file in messages. GRAFT_BAD_INPUT with
 * "file:line: " for anything that is not as docs/families.md says (unknown operators, attributes or
 * sizes, values outside their domain, shapes that no operator accepts are allowed: those operators
 * are merely never applied). */
GRAFT_MUST_USE graft_status graft_gen_family_parse(graft_env *env, graft_arena *arena,
                                                   const char *name, const char *text, size_t size,
                                                   graft_gen_family *family);
/* Every *.yaml file of a folder, by `order`, then by file name. GRAFT_IO when the folder cannot be
 * read or holds none. */
GRAFT_MUST_USE graft_status graft_gen_families_read(graft_env *env, graft_arena *arena,
                                                    const char *folder,
                                                    const graft_gen_family **families,
                                                    uint32_t *family_count);
