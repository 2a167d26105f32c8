/* policyfile.h - a policy as a file (graph/rule/policy.proto), for `graft optimize --policy`: the
 * same integers as in the generated header, without plans, which belong to one graph. */
#pragma once

#include "graph/base/bytes.h"
#include "graph/base/env.h"

/* The file's bytes, in `arena`. `rule_names` has a name for each rule. */
void graft_policyfile_encode(graft_arena *arena, const graft_policy *policy,
                             const char *const *rule_names, uint8_t **data, size_t *size);
/* Reads a policy from bytes that nobody vouches for; tables lie in `arena`. Afterwards everything
 * holds that the engine relies on and does not check itself: rules are valid, tables have the sizes
 * that layers say, numbers are in their ranges. GRAFT_BAD_INPUT, naming file and what is wrong,
 * also for another ABI or other features. */
GRAFT_MUST_USE graft_status graft_policyfile_decode(graft_env *env, graft_arena *arena,
                                                    graft_bytes bytes, graft_policy *policy);

/* The same to and from a file. Also GRAFT_IO. `rule_names` may be NULL; else it receives a name for
 * each rule, in `arena`. */
GRAFT_MUST_USE graft_status graft_policyfile_write(graft_env *env, const graft_policy *policy,
                                                   const char *const *rule_names, const char *path);
GRAFT_MUST_USE graft_status graft_policyfile_read(graft_env *env, graft_arena *arena,
                                                  const char *path, graft_policy *policy,
                                                  const char *const **rule_names);

/* A tariff, with a text that says where it is from: what graft_policyfile_decode promises of the
 * engine's needs holds, and graft_tariff_check is content. */
GRAFT_MUST_USE graft_status graft_tarifffile_write(graft_env *env, const graft_tariff *tariff,
                                                   const char *provenance, const char *path);
GRAFT_MUST_USE graft_status graft_tarifffile_read(graft_env *env, graft_arena *arena,
                                                  const char *path, graft_tariff *tariff,
                                                  const char **provenance);
