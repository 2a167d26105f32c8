/* file.h - whole files in, whole files out. A write is a temporary file beside the target, fsync,
 * rename, fsync of the folder: whoever kills the program finds the old file or the new one. */
#pragma once

#include "env.h"

/* Reads a file into `arena` (one byte past `*size` is zero, so text can be used as a string).
 * GRAFT_IO with the path and the system's reason when it cannot be read. */
GRAFT_MUST_USE graft_status graft_file_read(graft_env *env, graft_arena *arena, const char *path,
                                            uint8_t **data, size_t *size);
/* Whether graft_file_read could read it, by its permissions and kind: GRAFT_IO, with the reason, when not.
 */
GRAFT_MUST_USE graft_status graft_file_check_readable(graft_env *env, const char *path);
/* Where a file of this user's own lies that a later run can use: under out/ when the working
 * directory is the checkout, otherwise in the user's cache folder ($XDG_CACHE_HOME/graft or
 * ~/.cache/graft). In env->life. */
const char *graft_file_cached(graft_env *env, const char *path);
/* Whether graft_file_write could write there, without writing: GRAFT_IO, with the reason, when not.
 */
GRAFT_MUST_USE graft_status graft_file_check(graft_env *env, const char *path);
/* Whether what is written to one path takes the place of what is read at the other: files that the
 * system calls the same, or that are not there yet and have one text; no devices. */
bool graft_file_is_same(const char *a, const char *b);
/* Replaces `path` atomically; creates the missing folders of its path. */
GRAFT_MUST_USE graft_status graft_file_write(graft_env *env, const char *path, const void *data,
                                             size_t size);
bool graft_file_exists(const char *path);
/* Where a file that comes with Graft lies ("rules/graft.rules"). The environment variable
 * GRAFT_DATA names the folder that it is in. Otherwise an installed program (PREFIX/bin/graft) has
 * it in PREFIX/share/graft; one that was not installed takes `path` itself, then the one in the
 * checkout that it was built in. `path` when there is none of these. In env->life. */
const char *graft_file_shipped(graft_env *env, const char *path);
/* Creates the missing folders of `path`: every one before its last '/'. */
GRAFT_MUST_USE graft_status graft_file_make_folders(graft_env *env, const char *path);

/* Removes a folder and all that is in it, as far as it can; links are not followed. */
void graft_file_remove_folder(const char *path);

/* A growing text or byte buffer, for output that is assembled before it is written. */
typedef struct {
    graft_arena *arena;
    char *data; /* Zero-terminated; the terminator is not counted. */
    size_t size;
    size_t capacity;
} graft_buffer;

void graft_buffer_append(graft_buffer *buffer, const void *data, size_t size);
void graft_buffer_printf(graft_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
