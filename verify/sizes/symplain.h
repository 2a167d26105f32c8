/* symplain.h - the plain reading of a rule at a case: what symshape.c and symread.c say of it
 * before anything is known, solved or brought to a normal form.
 *
 * With `graft_sym.plain` set, terms stay as they were built (but for arithmetic on numerals),
 * equations stay equations, no question is asked, and nothing that the shapes imply is used. Sizes
 * of nodes, their values, sums and maxima become *definitions*, in the order in which they are
 * made: source2_0_d1 = wide(d0_1, d1_1)     a size of an output of a node source2_0(q0, q1) = ...
 * a value, by the index of the element sum3(n, p0, ...)                    sum over 0 <= r < n of
 * its body, over r and p0, ... max3(n, p0, ...)                    maximum over the 0 <= r < n at
 * which its guard holds any3(n, p0, ...)                    whether there are such r A fold over
 * several ranges is a fold of folds, and the guard of a sum becomes a conditional. Folds whose
 * bodies are the same term are one. */
#pragma once

#include "graph/base/arena.h"
#include "verify/core/readings.h"

typedef enum graft_sym_definition_kind {
    GRAFT_SYM_DEFINES_SIZE,
    GRAFT_SYM_DEFINES_VALUE,
    GRAFT_SYM_DEFINES_SUM,
    GRAFT_SYM_DEFINES_MAX
} graft_sym_definition_kind;

enum { GRAFT_SYM_PARAMS_MOST = 24 };

typedef struct graft_sym_definition {
    graft_sym_definition_kind kind;
    uint32_t number; /* In the name of a fold. */
    uint32_t side;   /* Of a size or value, */
    uint32_t node;   /* and of which node. */
    Z3_func_decl decl;
    Z3_func_decl any; /* Of a maximum. */
    uint32_t param_count;
    Z3_ast params[GRAFT_SYM_PARAMS_MOST]; /* Symbols. */
    Z3_ast body;                          /* Over the parameters and, of a fold, the binder. */
    Z3_ast guard;                         /* Of a maximum, over the same. */
} graft_sym_definition;

typedef struct graft_sym_plain {
    graft_sym_recorder recorder; /* How it is read; comes first. */
    graft_arena *arena;
    Z3_ast binder; /* Of every fold: r. */
    graft_sym_definition *definitions;
    uint32_t count;
    uint32_t capacity;
    uint32_t folds;
    Z3_ast *claims; /* About sizes and attributes: what the engine lets through. */
    uint32_t claim_count;
    bool full; /* A fold has more parameters than there is room for: what was read is of no use. */
} graft_sym_plain;

/* Begins the plain reading of a case; `arena` holds what is found. Ends it: s->plain = NULL. */
void graft_sym_plain_open(graft_sym_plain *plain, graft_sym *s, graft_arena *arena);

/* A term with values and sizes of nodes written out. */
Z3_ast graft_sym_plain_expand(const graft_sym *s, Z3_ast term);
