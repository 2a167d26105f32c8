/* symshape.h - a rule at one case with symbolic sizes: attributes and shapes as terms, and what the
 * engine lets through as assumptions about them.
 *
 * Every check of engine/shapes.h, of the precondition's byte code and of equal outputs becomes an
 * assumption in the solver; a check that is left out only makes more instances. (Left out: upper
 * limits of attributes and of sizes, overflow of byte code.) Equations are solved for a symbol
 * where one stands alone with factor 1 or -1, and the symbol is replaced everywhere: a matrix
 * product's inner size, say, is one symbol and not two. Of equal products common factors are
 * cancelled, and a product of sizes that is 1 makes each 1. */
#ifndef GRAFT_SYMSHAPE_H
#define GRAFT_SYMSHAPE_H

#include "verify/symcase.h"
#include "verify/symterm.h"

enum { GRAFT_SYM_EXTRA_MOST = 48 };

typedef struct graft_sym_attr {
    Z3_ast term;     /* Of sort Int, or Real for floats. */
    int32_t value;   /* Of one that the case fixes. */
    int8_t infinite; /* Of a float: -1, 1 for infinities, which have no term. */
} graft_sym_attr;

typedef struct graft_sym_shape {
    uint32_t rank;
    Z3_ast dims[GRAFT_MAX_RANK];
} graft_sym_shape;

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
    Z3_ast claims[GRAFT_SYM_EXTRA_MOST];
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
const graft_pattern *graft_sym_pattern(const graft_rule *rule, uint32_t side);

#endif
