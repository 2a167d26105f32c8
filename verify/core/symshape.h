/* symshape.h - a rule at one case with symbolic sizes: attributes and shapes as terms, and what the
 * engine lets through as assumptions about them.
 *
 * Every check of graft/shapes.def, of the precondition's byte code and of equal outputs becomes an
 * assumption in the solver; a check that is left out only makes more instances. (Left out: upper
 * limits of attributes and of sizes, overflow of byte code.) Equations are solved for a symbol
 * where one stands alone with factor 1 or -1, and the symbol is replaced everywhere: a matrix
 * product's inner size, say, is one symbol and not two. Of equal products common factors are
 * cancelled, and a product of sizes that is 1 makes each 1. */
#ifndef GRAFT_SYMSHAPE_H
#define GRAFT_SYMSHAPE_H

#include "verify/core/symcase.h"
#include "verify/core/symcode.h"
#include "verify/core/symsolve.h"
#include "verify/core/symterm.h"

typedef struct graft_sym_attr {
    Z3_ast term;     /* Of sort Int, or Real for floats. */
    int32_t value;   /* Of one that the case fixes. */
    int8_t infinite; /* Of a float: -1, 1 for infinities, which have no term. */
} graft_sym_attr;

typedef struct graft_sym_node {
    graft_sym_attr attrs[GRAFT_MAX_ATTRS];
    graft_sym_shape shapes[GRAFT_MAX_OUTPUTS];
} graft_sym_node;

typedef struct graft_sym_instance {
    const graft_rule *rule;
    const graft_sym_case *c;
    graft_sym_shape vars[GRAFT_RULE_MAX_VARS];
    graft_sym_node nodes[2][GRAFT_RULE_MAX_NODES]; /* By side. */
    uint8_t order[2][GRAFT_RULE_MAX_NODES];        /* Nodes, operands first. */
} graft_sym_instance;

typedef enum graft_sym_fit {
    GRAFT_SYM_FITS,
    GRAFT_SYM_NEVER,      /* No instance is of this case. */
    GRAFT_SYM_UNSUPPORTED /* Something has no symbolic reading: see `*why`. */
} graft_sym_fit;

/* What is assumed beside: part of a case, when its proof is split further. */
typedef struct graft_sym_extra {
    Z3_ast claims[GRAFT_ROOM_PART_CLAIMS];
    uint32_t count;
} graft_sym_extra;

/* Fills `instance` and the solver's assumptions, which are reset before. */
graft_sym_fit graft_sym_shapes(graft_sym *s, const graft_rule *rule, const graft_sym_case *c,
                               const graft_sym_extra *extra, graft_sym_instance *instance,
                               const char **why);

/* The formals lie in a shape: a chain of facts in `room`, which has one for each axis. */
const graft_facts *graft_sym_within(const graft_sym *s, const graft_sym_shape *shape,
                                    graft_facts *room);

const graft_sym_shape *graft_sym_shape_of(const graft_sym_instance *instance, uint32_t side,
                                          graft_operand x);

/* A window's count of positions is floor(room / stride) + 1. */
typedef struct graft_sym_window {
    Z3_ast room;
    Z3_ast stride;
    Z3_ast count;
} graft_sym_window;

/* A rule while its shapes are inferred: also for who does that in a graph, of which nothing is proved
 * here (graphsizes.h). */
typedef struct graft_sym_shaper {
    graft_sym *s;
    graft_sym_equations *e;
    graft_sym_instance *instance;
    graft_sym_inputs inputs;
    const graft_sym_extra *extra;
    /* Says that a computed attribute is a number; NULL in proofs. */
    bool (*fix)(struct graft_sym_shaper *p, const graft_term *written, graft_sym_attr *attr);
    graft_sym_window windows[GRAFT_ROOM_WINDOWS];
    uint32_t window_count;
    const char *why; /* Something is not understood. */
    bool never;
} graft_sym_shaper;

/* Begins with a rule: s, e, instance are set. */
void graft_sym_shaper_begin(graft_sym_shaper *p, const graft_rule *rule, const graft_sym_case *c);
void graft_sym_shape_side(graft_sym_shaper *p, uint32_t side);
void graft_sym_claim_condition(graft_sym_shaper *p);
void graft_sym_equate_outputs(graft_sym_shaper *p);
/* One operator, `made` being the rank of what a reshape or fill makes. */
void graft_sym_shape_op(graft_sym_shaper *p, uint32_t op, const graft_sym_attr *attrs,
                        const graft_sym_shape *const in[], uint32_t made, graft_sym_shape *out);

#endif
