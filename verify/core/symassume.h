/* symassume.h - what is assumed of sizes and attributes, and asking Z3 about integers.
 *
 * A question is put with those assumptions and facts only that a hint selects, as one closed
 * formula: so the same question need not be asked again in the next case. What is left out can cost
 * a proof alone. */
#ifndef GRAFT_SYMASSUME_H
#define GRAFT_SYMASSUME_H

#include "verify/core/symterm.h"

typedef struct graft_sym_assumed {
    Z3_ast claims[GRAFT_ROOM_ASSUMED]; /* Of sort Bool, written out. */
    uint32_t count;
    Z3_ast numbers[GRAFT_ROOM_ASSUMED_NUMBERS]; /* Those about attributes that are numbers. */
    uint32_t number_count;
    Z3_ast_map answers;          /* Questions with what Z3 said. */
    Z3_ast_map answers_of_reals; /* Goals about numbers, likewise. */
    Z3_ast_map settled;          /* Questions of symask.c that were proved. */
    Z3_solver solver;
} graft_sym_assumed;

/* For symterm.c alone. */
void graft_sym_assumed_open(graft_sym *s);
void graft_sym_assumed_close(graft_sym *s);
/* Forgets the assumptions, for the next case. */
void graft_sym_assumed_reset(graft_sym *s);

/* Assumes something about sizes and attributes; left out when there is no room for it. */
void graft_sym_assume(graft_sym *s, Z3_ast hypothesis);
/* Whether Z3 says that `goal` (about integers, or numbers) follows from the assumptions and facts;
 * false when it does not, and when Z3 gives up. */
bool graft_sym_holds(graft_sym *s, const graft_facts *facts, Z3_ast goal);
/* Whether Z3's decision procedure of the reals says that `goal`, about numbers alone, is always
 * true. Slower, and unlike the other it multiplies. */
bool graft_sym_holds_for_reals(graft_sym *s, Z3_ast goal);
/* A law that a question may be put with, of sort Bool. */
struct graft_sym_law;
Z3_ast graft_sym_state_law(const graft_sym *s, const struct graft_sym_law *law);
/* Whether Z3 says that the assumptions contradict each other. */
bool graft_sym_is_impossible(graft_sym *s);

#endif
