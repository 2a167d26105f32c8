/* kept.h - answers that a run leaves to the one that goes on where it was interrupted: a file that
 * grows by a record with each answer.
 *
 *      [question's hash | bytes | checksum | answer | padding to 16] [...] ...
 *
 * A record that was cut short or damaged ends the file: it and what is behind are found anew.
 * Whoever keeps answers names the file by all that they depend on besides the question. */
#pragma once

#include "graph/base/file.h"

typedef struct graft_kept graft_kept;

/* Opens the file, or makes it with its folders. Lives in `arena`, close it all the same.
 * GRAFT_IO when it cannot be read or written, or another process has it open. */
GRAFT_MUST_USE graft_status graft_kept_open(graft_env *env, graft_arena *arena, const char *path,
                                            graft_kept **kept);
/* NULL is allowed. */
void graft_kept_close(graft_kept *kept);

/* How many answers an earlier run has left. */
uint32_t graft_kept_count(const graft_kept *kept);
/* Its answer to a question of `stage`, in memory of the kept; NULL when it left none. */
const uint8_t *graft_kept_find(const graft_kept *kept, const char *stage,
                               const graft_buffer *question, size_t *bytes);
/* Adds an answer, for later runs alone. GRAFT_IO. */
GRAFT_MUST_USE graft_status graft_kept_add(graft_env *env, graft_kept *kept, const char *stage,
                                           const graft_buffer *question, const void *answer,
                                           size_t bytes);
