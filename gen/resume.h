/* resume.h - what the sets that are done have brought, kept in the work folder: an interrupted run
 * takes it from there. Files are for this program on this machine only. The first rank writes
 * and reads them, here and in refine.h and trail.h; the others are told what they say. */
#pragma once

#include "gen/propose.h"

/* Stands for everything that the laws of a set depend on: the set, the seed, and `before`, the same
 * of the sets before it. */
uint64_t graft_gen_set_identity(const graft_gen_set *set, uint64_t seed, uint64_t before);
/* Writes the laws from `first` on, which are all of one set, and its counts; atomically. GRAFT_IO.
 */
GRAFT_MUST_USE graft_status graft_gen_set_save(graft_env *env, const char *path, uint64_t identity,
                                               const graft_gen_laws *laws, uint32_t first,
                                               const graft_gen_counts *counts);
/* Appends the laws of a set that were saved with this identity. False, and nothing appended, when
 * there is no such file. */
bool graft_gen_set_load(graft_env *env, const char *path, uint64_t identity,
                        const graft_gen_set *set, graft_gen_laws *laws, graft_gen_counts *counts);
