/* symsolve.h - equations between sizes, solved as they are met. For which of its symbols one is
 * solved is proposed (hints.h). */
#ifndef GRAFT_SYMSOLVE_H
#define GRAFT_SYMSOLVE_H

#include "verify/core/limits.h"
#include "verify/core/symterm.h"

/* What has been found out about the symbols of a case. Where a limit is met the case is refused
 * (graft_sym_refuse). */
typedef struct graft_sym_equations {
    graft_sym *s;
    Z3_ast from[GRAFT_ROOM_SOLVED_SIZES]; /* Solved symbols, */
    Z3_ast to[GRAFT_ROOM_SOLVED_SIZES];   /* and what they are, without solved symbols. */
    uint32_t count;
    Z3_ast claims[GRAFT_ROOM_CLAIMS]; /* Everything else that is assumed. */
    uint32_t claim_count;
    Z3_ast positive[GRAFT_ROOM_POSITIVE_SIZES]; /* Symbols that are at least 1. */
    uint32_t positive_count;
    bool changed;     /* A symbol was solved. */
    bool impossible;  /* Two numbers that differ were equated, or a false claim was made. */
    bool in_products; /* Within an equation of products. */
} graft_sym_equations;

/* A term with the solved symbols replaced. */
Z3_ast graft_sym_solved(const graft_sym_equations *e, Z3_ast term);
/* Takes note of a claim about integers or numbers. */
void graft_sym_claim(graft_sym_equations *e, Z3_ast claim);
/* Takes note of a term that is at least 1. */
void graft_sym_claim_positive(graft_sym_equations *e, Z3_ast term);
/* Takes note of a = b, for integers. */
void graft_sym_equate(graft_sym_equations *e, Z3_ast a, Z3_ast b);
/* Takes note that two products of sizes (all at least 1) are equal. */
void graft_sym_equate_products(graft_sym_equations *e, const Z3_ast *a, uint32_t a_count,
                               const Z3_ast *b, uint32_t b_count);

#endif
