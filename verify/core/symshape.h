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
#include "verify/core/symsolve.h"
#include "verify/core/symterm.h"

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
    Z3_ast claims[GRAFT_ROOM_PART_CLAIMS];
    uint32_t count;
} graft_sym_extra;

/* Fills `instance` and the solver's assumptions, which are reset before. */
graft_sym_fit graft_sym_shapes(graft_sym *s, const graft_rule *rule, const graft_sym_case *c,
                               const graft_sym_extra *extra, graft_sym_instance *instance,
                               const char **why);

/* A match in a graph whose sizes are terms. Attributes are numbers there. */
typedef struct graft_sym_found {
    const graft_sym_shape *vars;
    const graft_shape *const *sample; /* Shapes of the variables at some sizes. */
    const bool *is_const;             /* By variable. */
    const int32_t *slots;
} graft_sym_found;

/* What the engine checks of a match, as claims, in the plain reading (symplain.h): the first
 * `*given` hold where the source does; the others are the precondition's and the target's, that
 * outputs have one shape, and that attributes of the target are what they are at the sample. Of the
 * case only ranks and what reshape and fill make are read. False when some check always fails or
 * is not understood, or when the target has an operator that a file gives a size as a number (split,
 * scale_shift) and that is none. */
bool graft_sym_claims_of_match(graft_sym *s, const graft_rule *rule, const graft_sym_case *c,
                               const graft_sym_found *found, graft_sym_equations *claims,
                               uint32_t *given);
/* The sizes of what an operator of a graph makes, of rank `made` where it says so itself. What its
 * checks claim is added to `claims`. False as above. */
bool graft_sym_apply(graft_sym *s, uint32_t op, const int32_t *attrs,
                     const graft_sym_shape *const in[], uint32_t made, graft_sym_equations *claims,
                     graft_sym_shape *out);

/* A size or claim of these, in which Z3 knows every function: broadcasts are conditionals, and the
 * positions of windows whose strides are numbers are quotients. */
Z3_ast graft_sym_write_sizes(graft_sym *s, Z3_ast term);

/* The formals lie in a shape: a chain of facts in `room`, which has one for each axis. */
const graft_facts *graft_sym_within(const graft_sym *s, const graft_sym_shape *shape,
                                    graft_facts *room);

const graft_sym_shape *graft_sym_shape_of(const graft_sym_instance *instance, uint32_t side,
                                          graft_operand x);
const graft_pattern *graft_sym_pattern(const graft_rule *rule, uint32_t side);

#endif
