/* contents.c - see contents.h. */
#include "emit/command/contents.h"

#include "graph/rule/rulefile.h"
#include "train/agent/state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PACKED_BYTES_MOST = 2048, RULES_MOST = UINT16_MAX - 1 };

graft_status graft_policy_pack_rules(graft_env *env, graft_arena *arena, const graft_rule *rules,
                                     uint32_t count, graft_policy *policy)
{
    if (count > RULES_MOST) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%u rules are more than a policy can number",
                          count);
    }
    uint8_t *packed = GRAFT_NEW(arena, uint8_t, (size_t)count * PACKED_BYTES_MOST);
    uint32_t *offsets = GRAFT_NEW(arena, uint32_t, (size_t)count + 1);
    uint8_t *flags = GRAFT_NEW(arena, uint8_t, count);
    for (uint32_t r = 0; r < count; r++) {
        size_t size = graft_rule_pack(&rules[r], packed + offsets[r], PACKED_BYTES_MOST);
        if (size == 0) {
            const char *fault = graft_rule_check(&rules[r]);
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "rule %u cannot be packed: %s", r,
                              fault != NULL ? fault : "it is too long");
        }
        offsets[r + 1] = offsets[r] + (uint32_t)size;
        flags[r] = graft_rule_is_always(&rules[r]) ? GRAFT_RULE_ALWAYS : 0;
    }
    policy->rules = packed;
    policy->rule_offsets = offsets;
    policy->rule_flags = flags;
    policy->rule_count = (uint16_t)count;
    return GRAFT_OK;
}

graft_status graft_policy_of_tariff(graft_env *env, const graft_tariff *tariff,
                                    const graft_rule *rules, uint32_t count, graft_policy *policy)
{
    *policy = (graft_policy){.abi = GRAFT_ABI,
                             .feature_hash = GRAFT_FEATURE_HASH,
                             .metadata = "",
                             .location_limit = UINT16_MAX,
                             .tariff = tariff,
                             .decider = GRAFT_DECIDER_TARIFF};
    return graft_policy_pack_rules(env, env->life, rules, count, policy);
}

static bool is_among(uint64_t id, const uint64_t *ids, uint32_t count)
{
    uint32_t low = 0;
    while (low < count) {
        const uint32_t middle = low + (count - low) / 2;
        if (ids[middle] == id) {
            return true;
        }
        count = ids[middle] > id ? middle : count;
        low = ids[middle] > id ? low : middle + 1;
    }
    return false;
}

void graft_policy_mark_exact(graft_arena *arena, const uint64_t *ids, uint32_t count,
                             graft_policy *policy)
{
    uint8_t *flags = GRAFT_NEW(arena, uint8_t, policy->rule_count);
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        graft_rule rule;
        flags[r] = policy->rule_flags[r];
        if (graft_policy_rule(policy, r, &rule) == GRAFT_OK &&
            is_among(graft_rule_id(&rule), ids, count)) {
            flags[r] |= GRAFT_RULE_EXACT;
        }
    }
    policy->rule_flags = flags;
}

static bool pattern_within(const graft_pattern *pattern, const graft_operator_set *operators)
{
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        if (!graft_operator_set_has(operators, pattern->nodes[n].op)) {
            return false;
        }
    }
    return true;
}

void graft_policy_keep_operators(graft_arena *arena, const graft_operator_set *operators,
                                 graft_policy *policy, const char *const **names)
{
    const graft_policy from = *policy;
    const uint32_t count = from.rule_count;
    uint8_t *rules = GRAFT_NEW(arena, uint8_t, from.rule_offsets[count]);
    uint8_t *flags = GRAFT_NEW(arena, uint8_t, count);
    uint32_t *offsets = GRAFT_NEW(arena, uint32_t, (size_t)count + 1);
    int8_t *rows = GRAFT_NEW(arena, int8_t, graft_policy_rows_bytes(&from));
    const char **kept_names = GRAFT_NEW(arena, const char *, count);
    uint32_t kept = 0;
    assert(from.plan_count == 0);
    for (uint32_t r = 0; r <= count; r++) { /* The last row is that of NO-OP. */
        graft_rule rule;
        if (r < count && (graft_policy_rule(&from, r, &rule) != GRAFT_OK ||
                          !pattern_within(&rule.source, operators) ||
                          !pattern_within(&rule.target, operators))) {
            continue;
        }
        if (from.width > 0) {
            memcpy(rows + (size_t)kept * from.width, from.rule_rows + (size_t)r * from.width,
                   from.width);
        }
        if (r < count) {
            const uint32_t bytes = from.rule_offsets[r + 1] - from.rule_offsets[r];
            memcpy(rules + offsets[kept], from.rules + from.rule_offsets[r], bytes);
            offsets[kept + 1] = offsets[kept] + bytes;
            flags[kept] = from.rule_flags[r];
            kept_names[kept++] = *names != NULL ? (*names)[r] : NULL;
        }
    }
    policy->rules = rules;
    policy->rule_offsets = offsets;
    policy->rule_flags = flags;
    policy->rule_rows = from.width > 0 ? rows : NULL;
    policy->rule_count = (uint16_t)kept;
    *names = *names != NULL ? kept_names : NULL;
}

/* ------------------------------------------------------------------- plans */

/* Replays `plan` on `graph` with the engine; writes the hash of what comes out. */
static graft_status replay(graft_env *env, graft_graph *graph, const graft_policy *policy,
                           const graft_recorded_plan *plan, uint64_t *result_hash)
{
    graft_policy with_plan = *policy;
    graft_report report = {.decisions = NULL};
    const graft_optimize_options options = {
        .weight_bytes_limit = UINT64_MAX,
        .step_limit = plan->step_count,
        .use_plans = true,
    };
    with_plan.plans = plan;
    with_plan.plan_count = 1;
    size_t bytes = graft_optimize_workspace_bytes(&with_plan, &graph->limits, plan->step_count);
    void *workspace = graft_arena_alloc(env->scratch, bytes);
    graft_status status = graft_optimize(graph, &with_plan, &options, workspace, bytes, &report);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "a plan cannot be replayed: %s", graft_status_name(status));
    }
    if (report.plan_step_count != plan->step_count) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "step %u of a plan does not fit its graph",
                          report.plan_step_count);
    }
    *result_hash = report.hash_after;
    return GRAFT_OK;
}

graft_status graft_plan_record(graft_env *env, graft_arena *arena, const graft_policy *policy,
                               const graft_graph *graph, graft_recorded_plan *plan)
{
    GRAFT_SCOPED(env->scratch);
    graft_recorded_plan made = *plan;
    graft_state state;
    GRAFT_PASS(graft_state_make(env, env->scratch, graph, &state));
    made.graph_hash = graft_state_hash(&state);
    GRAFT_PASS(replay(env, &state.graph, policy, &made, &made.result_hash));
    made.steps = GRAFT_COPY(arena, plan->steps, plan->step_count);
    *plan = made;
    return GRAFT_OK;
}

static int compare_plans(const void *a, const void *b)
{
    uint64_t x = ((const graft_recorded_plan *)a)->graph_hash;
    uint64_t y = ((const graft_recorded_plan *)b)->graph_hash;
    return (x > y) - (x < y);
}

graft_status graft_policy_set_plans(graft_env *env, graft_arena *arena,
                                    const graft_recorded_plan *plans, uint32_t count,
                                    graft_policy *policy)
{
    if (count > UINT16_MAX) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%u plans are more than a policy can hold", count);
    }
    graft_recorded_plan *sorted = GRAFT_COPY(arena, plans, count);
    qsort(sorted, count, sizeof *sorted, compare_plans);
    for (uint32_t i = 1; i < count; i++) {
        if (sorted[i].graph_hash == sorted[i - 1].graph_hash) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "two plans are for the same graph");
        }
    }
    policy->plans = sorted;
    policy->plan_count = (uint16_t)count;
    return GRAFT_OK;
}
