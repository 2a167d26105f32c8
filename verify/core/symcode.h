/* symcode.h - byte code over symbolic sizes and attributes (engine/code.h says what it computes).
 *
 * A program that fails refuses the match, so whatever must hold for it to succeed (divisions are
 * exact, divisors not 0) is claimed. Floats are real numbers or one of the infinities: their bits
 * are ordered as they are, and equal bits are equal numbers, the converse being left open. */
#ifndef GRAFT_SYMCODE_H
#define GRAFT_SYMCODE_H

#include "verify/core/symsolve.h"

typedef struct graft_sym_shape {
    uint32_t rank;
    Z3_ast dims[GRAFT_MAX_RANK];
} graft_sym_shape;

typedef enum graft_sym_sort { GRAFT_SYM_INTEGER, GRAFT_SYM_TRUTH, GRAFT_SYM_FLOAT } graft_sym_sort;

typedef struct graft_sym_value {
    Z3_ast term; /* Of sort Int, Bool or Real. */
    int64_t bits;
    bool has_bits;   /* A constant, which may be meant as a float's bits. */
    int8_t infinite; /* Of a float. */
    uint8_t sort;    /* graft_sym_sort */
} graft_sym_value;

/* What programs read. */
typedef struct graft_sym_inputs {
    graft_sym_equations *equations;
    const graft_rule *rule;
    bool scalar; /* What programs read of shapes may be anything: see symcase.h. */
    const graft_sym_shape *vars;
    graft_sym_value slots[GRAFT_RULE_MAX_SLOTS];
} graft_sym_inputs;

/* Runs the program at `offset`. False when it always fails or is not understood; `*why` (text) says
 * the latter and is NULL otherwise. */
bool graft_sym_code(const graft_sym_inputs *in, uint32_t offset, graft_sym_value *result,
                    const char **why);
/* A float given by its bits. */
graft_sym_value graft_sym_float(graft_sym *s, int32_t bits);
Z3_ast graft_sym_truth(const graft_sym *s, const graft_sym_value *value);
Z3_ast graft_sym_integer(const graft_sym *s, const graft_sym_value *value);
/* False for a constant whose bits are NaN. */
bool graft_sym_as_float(graft_sym *s, graft_sym_value *value);

#endif
