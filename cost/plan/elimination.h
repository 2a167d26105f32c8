/* elimination.h - the least sum of small tables over discrete variables, by variable elimination.
 *
 * Variables with a few states each, tables (factors) that say what every combination of the states
 * of their variables costs; wanted are states whose total is least. Variables are eliminated one by
 * one, the one with the smallest joint table first: the tables that mention it are added up and
 * replaced by their minimum over it; going back gives its best state. This is exact, and quick
 * where the factors form something like a tree (Dechter, "Bucket elimination", 1999). Where a joint
 * table would be too large, the variable is fixed by the tables at hand instead, and the result
 * says that it may not be the least. */
#pragma once

#include "graph/base/env.h"

enum { GRAFT_FACTOR_SCOPE = 6, GRAFT_ELIMINATION_STATES = 12, GRAFT_ELIMINATION_ENTRIES = 8192 };

typedef struct graft_elimination graft_elimination;

/* A problem in `arena` with at most `variable_most` variables and `factor_most` factors. */
graft_elimination *graft_elimination_new(graft_arena *arena, uint32_t variable_most,
                                         uint32_t factor_most);
/* A variable with 1 to GRAFT_ELIMINATION_STATES states; they are numbered from 0. */
uint32_t graft_elimination_variable(graft_elimination *problem, uint32_t state_count);
/* A factor over up to GRAFT_FACTOR_SCOPE different variables. The result is its table, zeros, to be
 * filled in by the caller: the entry of states s_0, s_1... is s_0 + n_0 (s_1 + n_1 (s_2 + ...)),
 * with n_i states of scope[i]. What cannot be costs INFINITY. */
double *graft_elimination_factor(graft_elimination *problem, uint32_t scope_count,
                                 const uint32_t *scope);

/* Chooses a state for each variable (`states`, one entry per variable). Among equals, states of low
 * number are preferred. True when the sum of the factors is the least that there is; false when
 * some joint table would have had more than GRAFT_ELIMINATION_ENTRIES entries. To be called once.
 */
bool graft_elimination_solve(graft_elimination *problem, uint8_t *states);
