/* file.h - whole files in, whole files out. A write is a temporary file beside the target, fsync,
 * rename, fsync of the folder: whoever kills the program finds the old file or the new one. */
#ifndef GRAFT_FILE_H
#define GRAFT_FILE_H

#include "env.h"

/* Reads a file into `arena` (one byte past `*size` is zero, so text can be used as a string).
 * GRAFT_IO with the path and the system's reason when it cannot be read. */
GRAFT_MUST_USE graft_status graft_file_read(graft_env *env, graft_arena *arena, const char *path,
                                            uint8_t **data, size_t *size);
/* Replaces `path` atomically; creates the missing folders of its path. */
GRAFT_MUST_USE graft_status graft_file_write(graft_env *env, const char *path, const void *data,
                                             size_t size);
bool graft_file_exists(const char *path);
/* Where a file that comes with Graft lies ("rules/graft.rules"): at `path` itself, or below the
 * folder that the environment variable GRAFT_HOME names, by default the checkout that the running
 * program was built in; `path` when there is none either. In env->life. */
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

#endif
