/* recorded.h - devices that are not here: the recorded databases that come with Graft, in
 * rules/costs/, and which of the devices in a database a name means. */
#pragma once

#include "cost/database/database.h"
#include "cost/device/device.h"

/* Joins into a database, in memory, those that come with Graft and are of a device that `wanted`
 * names, as graft_recorded_find takes it. No folder, or none such, is no failure; otherwise fails
 * as graft_database_merge does. */
GRAFT_MUST_USE graft_status graft_shipped_merge(graft_env *env, graft_database *database,
                                                const char *wanted);
/* Whether there is one that graft_recorded_means `wanted`. */
bool graft_shipped_has(graft_env *env, const char *wanted);
/* How many of the words of `wanted` are among those of `name`; words are what blanks, commas,
 * brackets, hyphens and underscores separate, whatever the case. 0 if only numbers are. */
uint32_t graft_shipped_likeness(const char *name, const char *wanted);
/* Joins that of the selected device, `device`, and that of the nearest other, and gives the device
 * what it lacks of the nearest other in the database, and then of the nearest that came: the former
 * may be this machine, which has recorded little, with another number of threads. Where the latter
 * is, the nearest to that one is the third, so that threads run what one runs. For choosing
 * kernels, in memory. Fails as graft_shipped_merge does. */
GRAFT_MUST_USE graft_status graft_shipped_borrow(graft_env *env, graft_database *database,
                                                 const char *device);

/* Whether the name of a recorded device contains the text. */
bool graft_recorded_has(const graft_database *database, const char *wanted);
/* Whether every word of `wanted`, words being what hyphens separate, is in the name of a device,
 * whatever the case: "h200-fp16" is "NVIDIA H200 (...), fp16". Numbers are whole, and such as follow
 * each other one word: "epyc-25-1" is "AMD EPYC (25-1-1)" and not "AMD EPYC (25-17-1)". */
bool graft_recorded_means(const char *name, const char *wanted);
/* Gives a device that is not here the name and the library of the one recorded device whose name
 * contains its own, or the words of it; of its libraries the one with most records. `path` is for
 * messages, NULL for none. GRAFT_BAD_INPUT when there is none, or more than one. */
GRAFT_MUST_USE graft_status graft_recorded_find(graft_env *env, const graft_database *database,
                                                graft_device *device, const char *path);
/* Says what happens where nothing is recorded for the device that is here. */
void graft_recorded_announce(graft_env *env, const graft_database *database,
                             const graft_device *device, const char *path);
