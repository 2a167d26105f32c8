/* shipped.h - the recorded databases that come with Graft, in rules/costs/: what a device that is
 * not here is priced from. */
#ifndef GRAFT_COST_SHIPPED_H
#define GRAFT_COST_SHIPPED_H

#include "cost/database.h"

/* Joins all of them into a database, in memory. No folder, or an empty one, is no failure;
 * otherwise fails as graft_database_merge does. */
GRAFT_MUST_USE graft_status graft_shipped_merge(graft_env *env, graft_database *database);

#endif
