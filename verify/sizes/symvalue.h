/* symvalue.h - values of integer terms where sizes, attributes and indices are numbers.
 *
 * A rule's instances are numbers that its assumptions hold of. Whatever is false at one of them, at
 * some index, does not follow from the assumptions: Z3, which would have to find such numbers in
 * products of unknowns, and mostly gives up, need not be asked. A *place* is an instance's sizes
 * and attributes with a number for every index; each term is evaluated once at every place. Terms
 * have their true meaning (symterm.h), windows, groups and row-major places included; what has no
 * value (numbers of elements, divisions by 0, what overflows) is neither true nor false. */
#pragma once

#include "verify/core/symterm.h"
#include "verify/instances/instance.h"

typedef struct graft_sym_values graft_sym_values;

/* For the terms of one state, which must outlive it; keeps what it has evaluated. The first few of
 * the points are used. */
graft_sym_values *graft_sym_values_new(const graft_sym *s, const graft_rule *rule,
                                       const graft_point *points, uint32_t count);
void graft_sym_values_free(graft_sym_values *values);
/* Whether all of some conditions, without `at` and `wide`, are true at one place. */
bool graft_sym_values_satisfy(graft_sym_values *values, uint32_t count, const Z3_ast *conditions);
