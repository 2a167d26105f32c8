/* law.h - an equality between two graphs of a space, over variables.
 *
 * A side lists applications of configurations, producers first. Variables are inputs of the set, or
 * values that were cut: where both sides contain the same inner value and stay equal when it is
 * replaced by an independent tensor, the law is about that tensor, whatever computes it. */
#pragma once

#include "gen/space.h"

enum { GRAFT_GEN_LAW_VARS = 12, GRAFT_GEN_MAX_CUTS = 8 };

/* Variable v, or output o of node n of the same side. */
#define GRAFT_GEN_VAR(v)      ((uint8_t)(v))
#define GRAFT_GEN_OUT(n, o)   ((uint8_t)(0x40u | ((unsigned)(n) << 1) | (unsigned)(o)))
#define GRAFT_GEN_IS_OUT(x)   (((x)&0x40u) != 0)
#define GRAFT_GEN_OUT_NODE(x) (((x)&0x3fu) >> 1)
#define GRAFT_GEN_OUT_SLOT(x) ((x)&1u)

typedef struct graft_gen_application {
    uint8_t args[GRAFT_MAX_INPUTS];
    uint16_t config;
} graft_gen_application;

typedef struct graft_gen_side {
    graft_gen_application nodes[GRAFT_GEN_MAX_CLOSURE];
    uint8_t outputs[GRAFT_MAX_OUTPUTS];
    uint32_t count;
} graft_gen_side;

/* Configurations are those of `set`. */
typedef struct graft_gen_law {
    const graft_gen_set *set;
    graft_gen_side sides[2];
    graft_shape var_shapes[GRAFT_GEN_LAW_VARS]; /* As drawn. */
    bool var_is_weight[GRAFT_GEN_LAW_VARS];
    uint8_t
        var_streams[GRAFT_GEN_LAW_VARS]; /* In fresh samples: an input's number, or past them. */
    uint32_t var_count;
    uint32_t output_count;
    uint8_t directions; /* Bit s: side s is the source of a rule (rule.h). */
    bool is_macro;      /* Several laws in a row, kept as one step. */
} graft_gen_law;

/* What a side's output is: output `slot` of a node of the space, which need not be representative,
 * or an input. */
#define GRAFT_GEN_ROOT_INPUT(i)    (0x80000000u | (i))
#define GRAFT_GEN_ROOT_IS_INPUT(r) (((r)&0x80000000u) != 0)
#define GRAFT_GEN_ROOT_INPUT_OF(r) ((r)&0x7fffffffu)
typedef struct graft_gen_roots {
    uint32_t of[GRAFT_MAX_OUTPUTS]; /* node * 2 + slot, or GRAFT_GEN_ROOT_INPUT. */
} graft_gen_roots;

struct graft_gen_checker; /* check.h */
/* The law that two graphs agree (law->output_count outputs), cut as far as it stays true. False
 * when it does not hold on fresh samples, or is too large for a law; *told is then the draw of a
 * fresh sample on which the graphs differ, or GRAFT_GEN_NONE. */
bool graft_gen_law_make(const graft_gen_space *space, struct graft_gen_checker *checker,
                        const graft_gen_roots *left, const graft_gen_roots *right,
                        graft_gen_law *law, uint32_t *told);
/* The law of a pair that is known to be equal, as it stands: neither cut nor checked. */
bool graft_gen_law_draw(const graft_gen_space *space, const graft_gen_roots *left,
                        const graft_gen_roots *right, uint32_t output_count, graft_gen_law *law);

/* The same law over the configurations of another set; false when that set lacks one. */
bool graft_gen_law_translate(const graft_gen_law *law, const graft_gen_set *set,
                             graft_gen_law *translated);

/* A place where one side of a law fits graphs of the space. */
typedef struct graft_gen_fit {
    uint32_t vars[GRAFT_GEN_LAW_VARS]; /* Values; GRAFT_GEN_NONE where the side has none. */
    uint32_t nodes[GRAFT_GEN_MAX_CLOSURE];
    uint32_t others[GRAFT_GEN_MAX_CLOSURE]; /* Nodes of the other side; set by ..._apply. */
    bool same_shapes; /* Every variable has the shape that the law was drawn with. */
} graft_gen_fit;

/* Calls `visit` for each way in which a side fits with its outputs at `roots` (which are not
 * inputs), inner nodes being any that compute the values needed, and variables any values of the
 * same rank. Stops when it returns false. */
void graft_gen_law_match(const graft_gen_space *space, const graft_gen_law *law, uint32_t side,
                         const graft_gen_roots *roots,
                         bool (*visit)(void *context, graft_gen_fit *fit), void *context);
/* What the other side computes there: its output values and roots (a variable's root is
 * GRAFT_GEN_NONE). False when a variable is missing or a node is not in the space. */
bool graft_gen_law_apply(const graft_gen_space *space, const graft_gen_law *law, uint32_t side,
                         graft_gen_fit *fit, uint32_t *values, graft_gen_roots *roots);
