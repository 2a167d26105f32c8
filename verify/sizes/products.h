/* products.h - which products a question about sizes is put with, for Z3 does not multiply
 * inequalities.
 *
 * p >= 0 and f >= 0 imply p f >= 0 (symassume.c). That is stated of every product x f of a symbol x
 * that occurs, for the facts p >= 0 in which x stands alone (bounds of x, guards of windows); and
 * of groups G = floor(o g / O), so that what it says of G follows: which group an output lies in
 * below or behind a bound that ends a group, and that groups of one size are told apart by it.
 * Quotients by a size are put with what they are, and multiplied by the size like symbols. */
#pragma once

#include "verify/core/hints.h"

/* The polynomials that a conjunction of comparisons says are not negative; what is no comparison is
 * left out. Returns how many. */
uint32_t graft_sym_list_facts(graft_sym *s, Z3_ast formula, Z3_ast facts[GRAFT_ROOM_PRODUCT_FACTS]);

/* Laws for a question (hints.h). */
uint32_t graft_sym_list_products(graft_sym *s, Z3_ast question, uint32_t known_count,
                                 const Z3_ast *known, graft_sym_law laws[GRAFT_ROOM_LEMMAS]);

/* The monomials of x that are multiples of the monomial n, divided by it (hints.h). */
Z3_ast graft_sym_list_multiples(const graft_sym *s, Z3_ast x, Z3_ast n);
