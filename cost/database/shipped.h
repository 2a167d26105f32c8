/* shipped.h - the recorded databases that come with Graft, in rules/costs/: what a device that is
 * not here is priced from. */
#pragma once

#include "cost/database/database.h"

/* Joins all of them into a database, in memory. No folder, or an empty one, is no failure;
 * otherwise fails as graft_database_merge does. */
GRAFT_MUST_USE graft_status graft_shipped_merge(graft_env *env, graft_database *database);
/* How many of the words of `wanted` are among those of `name`; words are what blanks, commas,
 * brackets, hyphens and underscores separate, whatever the case. 0 if only numbers are. */
uint32_t graft_shipped_likeness(const char *name, const char *wanted);
/* The device among those of the recorded databases whose name shares most words with `device`, in
 * env->life; NULL when none shares any, or they cannot be read. */
const char *graft_shipped_nearest(graft_env *env, const char *device);
/* Joins all of them, and gives the selected device, `device`, what it lacks of the nearest other:
 * for choosing kernels, in memory. Fails as graft_shipped_merge does. */
GRAFT_MUST_USE graft_status graft_shipped_borrow(graft_env *env, graft_database *database,
                                                 const char *device);
