/* contents.h - what a policy holds besides its network: the packed rules and the recorded plans. */
#pragma once

#include "graph/base/env.h"
#include "graph/rule/operatorset.h"

/* Packs the rules, in the order that numbers them, into `arena` and sets the flags of each. The
 * other members of `policy` are untouched. GRAFT_BAD_INPUT for an invalid rule, by its number;
 * GRAFT_UNSUPPORTED for more than 65534 rules. */
GRAFT_MUST_USE graft_status graft_policy_pack_rules(graft_env *env, graft_arena *arena,
                                                    const graft_rule *rules, uint32_t count,
                                                    graft_policy *policy);
/* A policy that decides by a tariff, which is kept, over these rules; without metadata. Fails as
 * graft_policy_pack_rules. */
GRAFT_MUST_USE graft_status graft_policy_of_tariff(graft_env *env, const graft_tariff *tariff,
                                                   const graft_rule *rules, uint32_t count,
                                                   graft_policy *policy);
/* Marks as GRAFT_RULE_EXACT the rules whose ids are among these (graft_ruleset_exact); the flags
 * are then a copy in `arena`. */
void graft_policy_mark_exact(graft_arena *arena, const uint64_t *ids, uint32_t count,
                             graft_policy *policy);
/* Leaves the policy those rules all of whose operators are in `operators`, a bit for each id;
 * tables and `names` (NULL: none) are then copies in `arena`. It has no recorded plans. */
void graft_policy_keep_operators(graft_arena *arena, const graft_operator_set *operators,
                                 graft_policy *policy, const char *const **names);

/* Replays the steps of `plan` on a copy of `graph` with no limit on new weights and notes the
 * graphs at both ends; the steps are copied into `arena`. `policy` is complete. GRAFT_BAD_INPUT
 * when a step does not fit, by its number. */
GRAFT_MUST_USE graft_status graft_plan_record(graft_env *env, graft_arena *arena,
                                              const graft_policy *policy, const graft_graph *graph,
                                              graft_recorded_plan *plan);
/* Gives the policy its plans: a copy in `arena`, sorted. GRAFT_BAD_INPUT when two are for the same
 * graph. */
GRAFT_MUST_USE graft_status graft_policy_set_plans(graft_env *env, graft_arena *arena,
                                                   const graft_recorded_plan *plans, uint32_t count,
                                                   graft_policy *policy);
