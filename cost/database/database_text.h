/* database_text.h - the text of a cost database, read and written (see database.h). */
#pragma once

#include "cost/database/database.h"

/* Receives each record of a file, in order. Texts are the receiver's to copy. */
typedef void (*graft_record_receiver)(void *context, const graft_database_record *record);

/* Reads a whole file's text; `name` stands for the path in messages. Nothing is received unless the
 * whole text is sound. */
GRAFT_MUST_USE graft_status graft_database_parse(graft_env *env, const char *name, const char *text,
                                                 size_t size, graft_record_receiver receive,
                                                 void *context);

/* The device of the first record of a text that begins as a database does, in env->scratch; NULL
 * where there is no record. GRAFT_BAD_INPUT where it does not begin so. */
GRAFT_MUST_USE graft_status graft_database_parse_device(graft_env *env, const char *name,
                                                        const char *text, const char **device);

/* The text of `count` records, which are sorted in place. */
void graft_database_print(graft_arena *arena, const graft_database_record **records, uint32_t count,
                          graft_buffer *text);
