/* obligation.h - what has to be unsatisfiable for a rule to hold at a point, as Z3 terms.
 *
 * An obligation is a list of *questions*: "element i of the two sides differs", and "a division by
 * 0 (or the root of a negative number) reaches element i of the target although none reaches that
 * of the source". Beside them stand *assumptions*: the laws of unknown functions, and the
 * conditions under which the source is defined. A question about element i assumes the conditions
 * of element i alone (guarded.h). */
#pragma once

#include "graph/base/arena.h"
#include "verify/core/prover.h"
#include "verify/core/term.h"
#include "verify/instances/instance.h"

typedef struct graft_obligation {
    graft_arena *arena;
    Z3_context z3;
    graft_term_state term;
    Z3_ast *questions;  /* Formulas. */
    const Z3_ast *left; /* Of the first `elements` questions: the two sides. */
    const Z3_ast *right;
    uint32_t count;
    uint32_t elements;
    Z3_ast *assumptions; /* Conditions of definedness first, then laws. */
    uint32_t assumption_count;
    uint32_t condition_count;
    bool *applies; /* By question and condition: whether it may be assumed. NULL: all may. */
    bool *caught;  /* By question: an infinity of the source may become a number in the element. An
                      answer refutes nothing then. NULL: of no question. */
    bool checked;  /* Forms are such that the prover sees what they follow from (prover.h). */
    struct graft_mentions *mentions; /* By assumption: what it is about. */
} graft_obligation;

/* What an obligation is made of; `left` and `right` must outlive it. The terms of `left`, `right`,
 * `wanted` and `given` must have been built in `o->term`, which collects the laws, after the
 * obligation was opened. */
typedef struct graft_obligation_parts {
    const Z3_ast *left; /* `element_count` pairs that shall be equal */
    const Z3_ast *right;
    uint32_t element_count;
    const Z3_ast *wanted; /* conditions that shall hold */
    uint32_t wanted_count;
    const Z3_ast *given; /* conditions that may be assumed */
    uint32_t given_count;
} graft_obligation_parts;

void graft_obligation_open(graft_obligation *o, graft_arena *arena, Z3_context z3);
void graft_obligation_state(graft_obligation *o, const graft_obligation_parts *parts);

/* Opens and states what has to be unsatisfiable for a rule to hold at one point (claim.c), in `z3`,
 * which must outlive it; memory lies in `arena`. */
void graft_obligation_build(graft_obligation *o, graft_arena *arena, Z3_context z3,
                            const graft_instance *instance);

void graft_obligation_close(graft_obligation *o);

/* Question i and the conditions that it assumes. */
Z3_ast graft_obligation_question(const graft_obligation *o, uint32_t i);

/* Any question is true, whatever is assumed. */
Z3_ast graft_obligation_joined(const graft_obligation *o);

/* Question i and the conditions of definedness that hang together with it, their symbols numbered
 * in the order of their occurrence: questions that differ only in symbols have the same name, and
 * what the solver says of one holds for all. (Laws are left out: they are true of the functions,
 * whatever the question.) */
Z3_ast graft_obligation_name(const graft_obligation *o, uint32_t i);

typedef enum graft_ease {
    GRAFT_EASE_CUT,  /* Only assumptions directly about what the question mentions are kept, and the
                        largest terms that both sides contain are replaced by fresh symbols: whatever
                        they are, the sides must agree. Functions as below. */
    GRAFT_EASE_PURE, /* Applications of unknown functions become symbols: they are equal only if
                        they are the same term. */
    GRAFT_EASE_NONE,
    GRAFT_EASE_CANCELED, /* Quotients of a number by itself are 1 (cancel.h). */
    GRAFT_EASE_LARGEST,  /* Maxima of maxima are one. */
    GRAFT_EASE_GROWING,  /* With the fact that functions grow (growth.c). */
    GRAFT_EASE_COUNT
} graft_ease;

typedef struct graft_eased {
    Z3_ast question;
    uint32_t symbols;       /* In it, */
    uint32_t functions;     /* of which this many stand for applications of unknown functions, */
    uint32_t inverses;      /* and this many for reciprocals. */
    uint32_t choices;       /* Maxima and other case distinctions, each counted once. */
    uint32_t summands;      /* Products in sums, counted wherever they stand. */
    bool exact;             /* Nothing was left out or replaced. */
    const Z3_ast *names;    /* The symbols, */
    const Z3_ast *meanings; /* and what they stand for. */
} graft_eased;

/* Question i under its assumptions in an easier form, multiplied out. Unsatisfiable only if the
 * question is; the converse holds when it is exact. Symbols are numbered. */
graft_eased graft_obligation_eased(const graft_obligation *o, uint32_t i, graft_ease ease);
