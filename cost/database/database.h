/* database.h - the cost database: a file of measured times, and a table of them in memory.
 *
 * The file is text, one JSON object a line: a version, the entries sorted by device, library and
 * signature, and a last line with their number and an XXH3 checksum of everything before it. So a
 * file that is cut off anywhere, changed by hand, or of another kind is refused, never half read.
 * Writing replaces the file as a whole under a lock, after joining what other writers put there in
 * the meantime. Files of several machines can be joined.
 *
 * Looking up takes no lock and may run at the same time as adding; everything else is serialised by
 * the caller. */
#pragma once

#include "cost/database/entry.h"

typedef struct graft_database graft_database;

/* One line of the file. Texts live as long as the database. */
typedef struct graft_database_record {
    graft_signature signature;
    const char *device;
    const char *library;
    graft_cost_entry entry;
    bool fresh; /* Added by this run. */
} graft_database_record;

/* Opens `path`, or an empty database when there is no such file; NULL: in memory only.
 * GRAFT_BAD_INPUT with file, line and reason when the file is cut off, damaged, foreign or of
 * another version; GRAFT_IO when it cannot be read. */
GRAFT_MUST_USE graft_status graft_database_open(graft_env *env, const char *path,
                                                graft_database **database);
void graft_database_close(graft_database *database); /* NULL is allowed. Saves nothing. */

/* Which device and library graft_database_find and _add mean. */
void graft_database_select(graft_database *database, const char *device, const char *library);

/* The entry of a signature on the selected device, or NULL. Valid until the database is closed, or
 * the same signature is added again. */
const graft_cost_entry *graft_database_find(const graft_database *database,
                                            const graft_signature *signature);
/* Adds or replaces an entry of the selected device. */
void graft_database_add(graft_database *database, const graft_signature *signature,
                        const graft_cost_entry *entry);

uint32_t graft_database_count(const graft_database *database);
/* In no particular order; `i` below the count. */
const graft_database_record *graft_database_at(const graft_database *database, uint32_t i);

/* The records of one operator, by number for graft_database_at. Valid until one is added. */
const uint32_t *graft_database_of(const graft_database *database, uint8_t op, uint32_t *count);

/* Whether a record of the database is of the selected device and library. */
bool graft_database_selects(const graft_database *database, const graft_database_record *record);

/* Joins the records of a file into the database. Where both have one, measured beats estimated,
 * then more rounds, then what was here. Fails as graft_database_open does, but a missing file is
 * GRAFT_IO. */
GRAFT_MUST_USE graft_status graft_database_merge(graft_env *env, graft_database *database,
                                                 const char *path);

/* GRAFT_IO when its file could not be written: to be asked before what is new costs time. */
GRAFT_MUST_USE graft_status graft_database_check(graft_env *env, const graft_database *database);
/* Writes the file, unless nothing is new: locks it, joins what is there now, replaces it. Fresh
 * entries of this run win over the file's. GRAFT_OK without effect when the database has no path;
 * GRAFT_IO or GRAFT_BAD_INPUT when the file there cannot be read or written, which then stays. */
GRAFT_MUST_USE graft_status graft_database_save(graft_env *env, graft_database *database);
