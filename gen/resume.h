/* resume.h - what a run leaves in the work folder for one that goes on: files that are read as they
 * were written, or not at all. They are for this program on this machine only. The first rank
 * writes and reads them, here and in refine.c and trail.c; the others are told what they say. */
#pragma once

#include "gen/law.h"
#include "graph/base/file.h"

/* Stands for everything that the laws of a set depend on: the set, the seed, and `before`, the same
 * of the sets before it. */
uint64_t graft_gen_set_identity(const graft_gen_set *set, uint64_t seed, uint64_t before);

/* A file that is to be written; `arena` holds what is appended. */
graft_buffer graft_gen_seal(graft_arena *arena);
/* Writes it, atomically; `identity` stands for all that it depends on. Ranks but the first write
 * nothing. GRAFT_IO. */
GRAFT_MUST_USE graft_status graft_gen_seal_write(graft_env *env, const char *path,
                                                 uint64_t identity, graft_buffer *file);
/* What was appended to a file that was written with this identity, in `arena`; NULL when there is
 * no such file. */
const uint8_t *graft_gen_unseal(graft_env *env, graft_arena *arena, const char *path,
                                uint64_t identity, size_t *size);
