/* symproduct.h - what follows of products that occur in a question, for Z3 does not multiply
 * inequalities.
 *
 * Whatever p and f are, p >= 0 and f >= 0 imply p f >= 0. That is stated, multiplied out, of every
 * product x f of a symbol x that occurs, for the facts p >= 0 in which x stands alone (bounds of x,
 * guards of windows); and of groups, that the group of an output is one of the groups. What is
 * stated holds of all integers (of groups: where a convolution has them), so nothing rests on which
 * products are looked at. */
#ifndef GRAFT_SYMPRODUCT_H
#define GRAFT_SYMPRODUCT_H

#include "verify/core/symterm.h"

/* The polynomials that a conjunction of comparisons says are not negative; what is no comparison is
 * left out. Returns how many. */
uint32_t graft_sym_list_facts(graft_sym *s, Z3_ast formula, Z3_ast facts[GRAFT_ROOM_PRODUCT_FACTS]);

/* Fills `lemmas`, of sort Bool; the `known` are facts, conjunctions of comparisons. Returns how
 * many. */
uint32_t graft_sym_list_products(graft_sym *s, Z3_ast question, uint32_t known_count,
                                 const Z3_ast *known, Z3_ast lemmas[GRAFT_ROOM_LEMMAS]);

#endif
