/* symterm.h - terms over symbolic sizes: what proofs for all sizes are written in.
 *
 * Sizes, attributes and indices are Z3 terms of sort Int; elements are terms of sort Real (term.h).
 * An element of variable v is an application x<v>(i, j, ...) of an unknown function to its index. A
 * node's value is one term over *formals*: the index of the element, q5 along its last axis, q4 along
 * the one before. Reading a node at an index substitutes the index for the formals.
 *
 * Integer functions of our own, with their meaning (`graft_sym_expand` writes it out for Z3):
 *      at(d, i)     the index that broadcasting reads along an axis of size d: 0 when d = 1, else i
 *      wide(a, b)   the size that sizes a and b broadcast to: b when a = 1, else a
 *      window(r, s) floor(r / s) + 1: positions of a window with room r and stride s
 *      group(o, O, g) the group that output o of O outputs in g groups belongs to
 *      quotient(x, n) floor(x / n) for n >= 1
 *      place(...), part(...)  row-major places and back (symread.h)
 * The last four are left unknown to Z3, but for what symassume.c says of groups and quotients, and
 * places where all sizes but the first are numbers.
 *
 * Rewriting used throughout: at(d, at(e, i)) = at(d, i) when d is among the sizes that e is made
 * of, for then e = 1 implies d = 1. And of all integers x, y and sizes d, m, n:
 *      quotient(x + y n, n) = y + quotient(x, n)    quotient(quotient(x, m), n) = quotient(x, m n)
 *      quotient(at(d, x), n) = at(d, quotient(x, n)). */
#ifndef GRAFT_SYMTERM_H
#define GRAFT_SYMTERM_H

#include "verify/core/limits.h"
#include "verify/core/prover.h"
#include "verify/core/term.h"

enum { GRAFT_SYM_BINDERS = GRAFT_ROOM_BINDERS };

typedef enum graft_sym_fold {
    GRAFT_SYM_SUM = 0,
    GRAFT_SYM_MAX = 1,
    GRAFT_SYM_ORDERED_SUM = 2, /* Of bits, in the order of their binders: symbits.h. */
    GRAFT_SYM_ORDERED_MEAN = 3,
    GRAFT_SYM_ORDERED_MAX = 4,
    GRAFT_SYM_FOLD_COUNT = 5
} graft_sym_fold;

/* Belongs to one thread. Proofs about one rule and its like may follow each other. */
typedef struct graft_sym {
    graft_prover *prover; /* Borrowed. */
    Z3_context z3;        /* The prover's. */
    graft_term_state term;
    Z3_sort integer;
    Z3_sort boolean;
    Z3_func_decl at;
    Z3_func_decl wide;
    Z3_func_decl window;
    Z3_func_decl group;
    Z3_func_decl quotient;
    Z3_func_decl place[GRAFT_MAX_RANK + 1]; /* By number of axes. */
    Z3_func_decl part[GRAFT_MAX_RANK + 1][GRAFT_MAX_RANK];
    Z3_func_decl elements[GRAFT_RULE_MAX_VARS]; /* Of the case at hand. */
    uint32_t booleans;                          /* Variables that are (graft_rule_booleans). */
    Z3_func_decl folds[GRAFT_SYM_FOLD_COUNT][GRAFT_SYM_BINDERS + 1];
    Z3_ast formals[GRAFT_MAX_RANK + 1]; /* The last stands for what a scalar has not. */
    Z3_params som;
    struct graft_sym_assumed *assumed;   /* symassume.h; owned. */
    struct graft_sym_numbers *numbers;   /* Other than real ones (readings.h); NULL in proofs. */
    struct graft_sym_recorder *plain;    /* Of a plain reading (readings.h); NULL in proofs. */
    const struct graft_sym_hints *hints; /* hints.h; NULL: there are none. */
    Z3_ast_map simplified; /* What has been simplified, for it is asked again and again, */
    Z3_ast_map expanded;   /* and what has been written out. */
    uint32_t term_base;    /* How many had been when the proof began. */
    uint32_t fresh;
    uint32_t bound;      /* Binders of conditions (symread.h). */
    uint32_t splits;     /* Conditionals taken apart for the node or question at hand. */
    const char *refusal; /* The limit that the part of a case at hand has met; NULL: none. */
} graft_sym;

/* The index of an element of this rank. Axes are numbered from the last one, sizes as formals: so
 * cases that differ in the ranks before are about the same terms. */
static inline const Z3_ast *graft_sym_formals(const graft_sym *s, uint32_t rank)
{
    return s->formals + (GRAFT_MAX_RANK - rank);
}

/* What is known at some place beyond the solver's assumptions, innermost first. */
typedef struct graft_facts {
    const struct graft_facts *outer;
    Z3_ast fact; /* Of sort Bool, without elements. */
} graft_facts;

void graft_sym_open(graft_sym *s, graft_prover *prover);
/* Begins a proof, which is a task of the prover. */
void graft_sym_begin(graft_sym *s);
void graft_sym_close(graft_sym *s);
/* Takes note that the part of a case at hand needs more than a limit allows (graft_limit): it is
 * not proved. Returns false. */
bool graft_sym_refuse(graft_sym *s, uint32_t limit);
/* What the proof has taken. */
graft_effort graft_sym_effort(const graft_sym *s);
/* Whether that is all that its options grant (prove.h): nothing is asked any more. */
bool graft_sym_is_spent(const graft_sym *s);

/* Integers. Results are simplified: equal polynomials are equal terms. */
Z3_ast graft_sym_int(const graft_sym *s, int64_t value);
Z3_ast graft_sym_add(const graft_sym *s, Z3_ast a, Z3_ast b);
Z3_ast graft_sym_sub(const graft_sym *s, Z3_ast a, Z3_ast b);
Z3_ast graft_sym_mul(const graft_sym *s, Z3_ast a, Z3_ast b);
/* A symbol that occurs nowhere else. */
Z3_ast graft_sym_fresh(graft_sym *s);
/* The i-th number of a question that is not known: an element 'e', fold 'f' or size 'n'; 'g' for folds
 * within others. No other number is called so, and questions that are alike are the same term. */
Z3_ast graft_sym_unknown(const graft_sym *s, char kind, uint32_t i);
bool graft_sym_is_number(const graft_sym *s, Z3_ast term, int64_t value);
/* What is not negative where an integer comparison, or its opposite, holds; NULL: it is neither. */
Z3_ast graft_sym_slack(const graft_sym *s, Z3_ast comparison);
/* 0 <= i < size. */
Z3_ast graft_sym_in_range(const graft_sym *s, Z3_ast i, Z3_ast size);

Z3_ast graft_sym_at(const graft_sym *s, Z3_ast size, Z3_ast index);
Z3_ast graft_sym_wide(const graft_sym *s, Z3_ast a, Z3_ast b);
Z3_ast graft_sym_quotient(const graft_sym *s, Z3_ast x, Z3_ast n);
/* Some y for which y n is a part of x, as is proposed, else 0. */
Z3_ast graft_sym_multiples(const graft_sym *s, Z3_ast x, Z3_ast n);

/* A row-major place as a sum of multiples, where these are by numbers, or by any sizes if that is
 * asked; the term itself where it is no such place. */
Z3_ast graft_sym_write_place(const graft_sym *s, Z3_ast place, bool by_any);
/* What a quotient, or the first part of a place, divides by: the product of the other sizes; NULL:
 * it is neither. */
Z3_ast graft_sym_divisor(const graft_sym *s, Z3_ast term);
/* The number of axes of the place that a term is a part of; 0 when it is no part(...). */
uint32_t graft_sym_part_axes(const graft_sym *s, Z3_ast term);

/* Multiplied out: one sum of monomials for equal polynomials. */
Z3_ast graft_sym_simplify(const graft_sym *s, Z3_ast term);
/* Replaces symbols and does the rewriting above. */
Z3_ast graft_sym_substitute(graft_sym *s, Z3_ast term, uint32_t count, const Z3_ast *from,
                            const Z3_ast *to);
/* `term` at an index, given for the first `rank` formals. */
Z3_ast graft_sym_read(graft_sym *s, Z3_ast term, uint32_t rank, const Z3_ast *index);
/* With at and wide written out, and places in axes whose sizes are numbers. */
Z3_ast graft_sym_expand(graft_sym *s, Z3_ast term);

/* Structure. */
#define graft_sym_is_app(s, term, decl) graft_ast_is_app((s)->z3, term, decl)
#define graft_sym_kind(s, term)         graft_ast_kind((s)->z3, term)
#define graft_sym_arity(s, term)        graft_ast_arity((s)->z3, term)
#define graft_sym_arg(s, term, i)       graft_ast_arg((s)->z3, term, i)
#define graft_sym_walk(s, term, ...)    graft_ast_walk((s)->z3, term, NULL, __VA_ARGS__)
/* A constant that is no number. */
bool graft_sym_is_symbol(const graft_sym *s, Z3_ast term);
bool graft_sym_is_element(const graft_sym *s, Z3_ast term);
/* Whether any of the symbols occurs. */
bool graft_sym_mentions(const graft_sym *s, Z3_ast term, uint32_t count, const Z3_ast *symbols);
/* Whether a subterm has sort Real. */
bool graft_sym_is_real(const graft_sym *s, Z3_ast term);

/* A subterm, readers before operands, that a test says yes to; NULL when there is none. Elements and
 * folds are looked at, and looked into with `inside`. */
typedef bool (*graft_sym_test)(const graft_sym *s, Z3_ast term, const void *context);
Z3_ast graft_sym_find(const graft_sym *s, Z3_ast term, bool inside, graft_sym_test test,
                      const void *context);

#endif
