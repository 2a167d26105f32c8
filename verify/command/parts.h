/* parts.h - what `graft rules` and `graft verify` do in files of their own. */
#pragma once

#include "graph/rule/rulefile.h"

/* Writes to `path` the set with the reverse of each rule that has one (reverse.h), does not follow
 * from the set, and is proved on its own. `make rules` keeps only rules that can save operators; a
 * search that may go uphill, or a device on which the other side is the cheaper one, wants both.
 * Fails as graft_trial_run and graft_rulefile_write do. */
GRAFT_MUST_USE graft_status graft_both_save(graft_env *env, const graft_ruleset *set,
                                            const char *path);

/* Says of each rule of a TASO file whether it is implied by the set, refuted (with a
 * counterexample), unknown, proved but not implied, or not expressible, and then how many are.
 * Fails as graft_taso_read and graft_trial_run do; GRAFT_UNDECIDED when a rule was killed for its
 * time. */
GRAFT_MUST_USE graft_status graft_taso_report(graft_env *env, const graft_ruleset *set,
                                              const char *path);

/* Writes to `folder` one SMT-LIB file for each rule of the set (smt.h) and one more for each whose
 * level rests on questions about symbolic sizes (smt.h) or, with `sample` above 0, for that
 * many rules spread evenly over it. Files are named after ids. Then comes index.tsv: a line with
 * the names of the columns, and for each file the rule's id, name, level of proof, the file and the
 * number of check-sats in it, in the order of the set. Files of other rules stay, but are not in
 * the index. Every file is written as a whole, the index last.
 *
 * GRAFT_BAD_INPUT, naming the rule, when its certificate's points cannot be read or do not carry
 * its level; GRAFT_UNDECIDED when it is not proved for all sizes again; GRAFT_IO as
 * graft_file_write; GRAFT_INTERNAL when a child died. There is no index then, or the one that was
 * there. */
GRAFT_MUST_USE graft_status graft_smt_save(graft_env *env, const graft_ruleset *set,
                                           uint32_t sample, const char *folder);

/* Tries to prove every rule of a set for all sizes and prints, for each, what it rests on or why it
 * is not proved; then how many there are of each kind. `only` (may be NULL) is a text that a rule's
 * name or line must contain. GRAFT_INTERNAL when a child ran into the clock. */
GRAFT_MUST_USE graft_status graft_unbounded_report(graft_env *env, const graft_ruleset *set,
                                                   const char *only);
