/* hints.h - what is proposed to a proof by code that is not trusted, as a table of functions.
 *
 * Whatever they say, nothing false is proved: what is proposed is asked of Z3 before anything rests
 * on it, as said of each, and what names a binder of a fold is not put into another; what is not
 * proposed, or wrongly, can cost a proof. Without hints simple rules are proved
 * (tests/verify/trusted.c). */
#ifndef GRAFT_HINTS_H
#define GRAFT_HINTS_H

#include "verify/core/symfold.h"
#include "verify/core/symread.h"

/* Two folds, opened; or one and something else without binders. */
typedef struct graft_sym_pair {
    graft_sym_range ranges[2];
    Z3_ast bodies[2];
} graft_sym_pair;

/* Two integers that are multiplied if neither is negative; or a group or quotient (symassume.c). */
typedef struct graft_sym_law {
    Z3_ast p;
    Z3_ast f; /* NULL: p is one of these. */
} graft_sym_law;

/* times (symbol - value) is 0; `opposite`: times (value - symbol). */
typedef struct graft_sym_solution {
    Z3_ast symbol;
    Z3_ast value;
    int64_t times;
    bool opposite;
} graft_sym_solution;

/* Ways on from a case that was not proved as it is: one of the claims holds of every instance, or
 * all of them do. */
typedef struct graft_sym_split {
    Z3_ast claims[GRAFT_ROOM_PART_CLAIMS];
    uint32_t count;
    bool all;
} graft_sym_split;

typedef struct graft_sym_hints {
    void *context; /* Of whoever proposes. */
    /* Whether all of some conditions, written out, can be true together: then Z3 is not asked
     * whether they cannot, and they count as possible. */
    bool (*can_hold)(const graft_sym *s, uint32_t count, const Z3_ast *conditions);
    /* Which of the things that are known a question is not put with. */
    void (*leave_out)(const graft_sym *s, Z3_ast question, uint32_t count, const Z3_ast *known,
                      bool *left_out);
    /* Laws that a question is put with, at most GRAFT_ROOM_LEMMAS: how many. `known` are the facts
     * around it. */
    uint32_t (*laws)(graft_sym *s, Z3_ast question, uint32_t known_count, const Z3_ast *known,
                     graft_sym_law *laws);
    /* What a difference that is 0 says of one of its symbols. The symbol is replaced everywhere if
     * the difference is that multiple and the value does not mention it (symsolve.c). */
    bool (*solve)(const graft_sym *s, Z3_ast difference, graft_sym_solution *x);
    /* A number y of times that n goes into a part of x; NULL for none. The quotient of x by n is
     * that of x - y n and y more, whatever y is (symterm.h). */
    Z3_ast (*multiples)(const graft_sym *s, Z3_ast x, Z3_ast n);
    /* Is told when Z3 has found numbers at which what the solver (symassume.h) was told is true. */
    void (*learn)(const graft_sym *s);
    /* The way-th map from the binders of the first fold to those of the second: `to` gets a term
     * for each, or NULL for the first where there is no map this way. False when there are no more
     * ways. A map is taken when the two are the same under it (symmatch.h). */
    bool (*map)(graft_sym *s, const graft_sym_pair *pair, uint32_t way,
                Z3_ast to[GRAFT_SYM_BINDERS]);
    /* The value that may be a binder's only one in the range, or NULL. It is put in its place if Z3
     * says that it is (symrange.c). */
    Z3_ast (*fixed)(graft_sym *s, const graft_sym_range *range, uint32_t binder);
    /* A place that may lie in a range. */
    void (*inside)(graft_sym *s, const graft_sym_range *range, Z3_ast to[GRAFT_SYM_BINDERS]);
    /* A condition by which one of the folds of a question is taken apart (symask.h), its range being
     * opened, or NULL: whatever it is, the parts are the fold. */
    Z3_ast (*part)(graft_sym *s, uint32_t count, const Z3_ast *folds, uint32_t which,
                   const graft_sym_range *range, Z3_ast body);
    /* Where the first, a maximum, has what the second is. The place counts when it lies in the
     * range, and the bodies are the same there (symmatch.h). */
    bool (*place)(graft_sym *s, const graft_sym_pair *pair, Z3_ast to[GRAFT_SYM_BINDERS]);
    /* Values for some symbols of a condition, at which its element `of` becomes `to`; NULL for those
     * that it does not say. The condition is assumed there if it holds there (symask.h). */
    bool (*values)(graft_sym *s, const graft_sym_condition *c, Z3_ast of, Z3_ast to,
                   Z3_ast values[GRAFT_ROOM_CONDITION_BINDERS]);
    /* A split of the case at hand, whose sides were read. It is made when Z3 says that the claims
     * are such. */
    bool (*split)(graft_sym *s, const graft_sym_instance *instance, const graft_sym_side sides[2],
                  graft_sym_split *split);
    /* How a question is asked: a formula that Z3 found unsatisfiable. It counts when it is
     * `question`, and some of what is `given`, and of the laws of the functions that occur in them
     * (term.h), with terms for its symbols (prover.h). `term` holds these laws. */
    graft_asked (*refute)(graft_sym *s, const graft_term_state *term, Z3_ast question,
                          uint32_t given_count, const Z3_ast *given);
} graft_sym_hints;

#endif
