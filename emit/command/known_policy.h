/* known_policy.h - the policy for many models that comes with Graft for a device,
 * rules/policies/. */
#pragma once

#include "graph/base/env.h"

/* The policy, in env->life, whose name is in words that of the device; NULL when there is none. */
const char *graft_known_policy_path(graft_env *env, const char *device);
/* The same, or where the device has none, that of the device whose name has most words in common
 * with its: a first guess, for searches that ask for prices. NULL when no name has any. */
const char *graft_known_policy_nearest(graft_env *env, const char *device);
/* Its table of node costs, or that of the policy `path` when it is not NULL. Without any, one
 * without rows and fallback: *path is NULL then, else the file. Fails as reading does, and with
 * GRAFT_BAD_INPUT for a policy without a table. */
GRAFT_MUST_USE graft_status graft_known_policy_tariff(graft_env *env, const char *device,
                                                      const char **path, graft_tariff *tariff);
/* The operators measured at random sizes that fallbacks learn from, in rules/samples/, likewise. */
const char *graft_known_samples_path(graft_env *env, const char *device);
