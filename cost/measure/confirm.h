/* confirm.h - costs of signatures that do the same work in other forms, held against one another.
 *
 * Of 435 pairs of recorded convolutions that differ only in whether a relu follows, which costs
 * next to nothing, every fifth differed by more than a fifth: they were measured at different
 * times, and other work slows a machine down for seconds to minutes. A rewrite is worth less than
 * that, and of many such costs a search picks those that are too low ("the winner's curse"; Capen,
 * Clapp and Campbell, J. Petroleum Technology 23, 1971).
 *
 * So kin are measured side by side. How they compare is what was measured then; their level is what
 * was known before. Twins, which differ in nothing but a bias, an activation and a tensor that the
 * result is added to in place, then take the mean (weighted by 1 / spread^2) of those that are
 * within two spreads: what cannot be told apart is taken to be equal. */
#pragma once

#include "cost/cost.h"

/* Of a product: any product of the same image and filter (fused or not, in any layout); of another
 * operator: the same operator on the same first input, where relu and the maximum with a constant
 * are one. At the same distance. Such a relu and maximum are twins too. */
bool graft_kin_is(const graft_signature *a, const graft_signature *b);
bool graft_kin_are_twins(const graft_signature *a, const graft_signature *b);

/* What the database will have for `count` kin (at least 1), of which `known` are the entries that
 * it has and `entries` those measured side by side just now; these are changed. Entries without
 * rounds are passed over. */
void graft_kin_settle(graft_arena *scratch, const graft_signature *kin,
                      const graft_cost_entry *known, graft_cost_entry *entries, uint32_t count);

/* What was measured at different times and cannot be told apart is taken to be equal here, too:
 * adds to `to` an entry with the mean of their twins for all that `from` has measured of its
 * selected device, where that is another time. Returns how many. */
uint32_t graft_kin_level(graft_arena *scratch, const graft_database *from, graft_database *to);

/* Measures kin side by side, of each all implementations or the one of `only` (see measure.h). On
 * failure `entries` has those that were measured by then. Fails as graft_cost_measure does. */
GRAFT_MUST_USE graft_status graft_kin_measure(graft_env *env, graft_cost *cost,
                                              const graft_signature *kin, uint32_t count,
                                              const char *const *only, graft_cost_entry *entries);

/* Measures these signatures and their recorded kin once more, side by side, and replaces their
 * entries; what has no kin stays as it is. `count` receives the number of entries measured. Not for
 * several threads at once.
 *
 * What is settled is saved every minute, and in the end, however that comes. `journal` (NULL: none)
 * is a file that says which signatures these are: a run that was interrupted is taken up where it
 * was, and when all is done the file is removed. A journal of another device or library is passed
 * over. Fails as graft_cost_measure and graft_cost_save do. */
GRAFT_MUST_USE graft_status graft_cost_confirm(graft_env *env, graft_cost *cost,
                                               const graft_signature *signatures,
                                               uint32_t signature_count, const char *journal,
                                               uint32_t *count);
