/* command_smt.h - the part of `graft verify` that writes obligations for other solvers. */
#pragma once

#include "graph/rule/rulefile.h"

/* Writes to `folder` one SMT-LIB file for each rule of the set (smt.h) and one more for each whose
 * level rests on questions about symbolic sizes (smtsizes.h) or, with `sample` above 0, for that
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
