/* generate_lift.c - from candidates at concrete shapes to rules over all shapes, one group of
 * candidates of the same operators after the other. */
#include "verify/pipeline.h"

#include "graph/base/log.h"
#include "graph/rule/ruleprint.h"
#include "verify/lift/lift.h"
#include "verify/set/canon.h"
#include "verify/set/derive.h"
#include "verify/set/price.h"

#include <string.h>

/* Wall-clock limit of a group: far beyond what any takes; reaching it fails the run. */
static const uint64_t lift_limit_ns = UINT64_C(1200000000000);

typedef struct {
    graft_pipeline *p;
    uint32_t *group_first; /* By skeleton: where its candidates begin in group_items. */
    uint32_t *group_items;
} lifter;

/* Candidates by skeleton, in their own order. */
static void group_candidates(lifter *l)
{
    const graft_candidates *c = l->p->candidates;
    l->group_first = GRAFT_NEW(l->p->arena, uint32_t, (size_t)c->skeleton_count + 1);
    l->group_items = GRAFT_NEW(l->p->arena, uint32_t, c->count);
    for (uint32_t i = 0; i < c->count; i++) {
        l->group_first[c->items[i].skeleton + 1]++;
    }
    for (uint32_t s = 0; s < c->skeleton_count; s++) {
        l->group_first[s + 1] += l->group_first[s];
    }
    uint32_t *next = GRAFT_NEW(l->p->arena, uint32_t, (size_t)c->skeleton_count + 1);
    memcpy(next, l->group_first, (size_t)c->skeleton_count * sizeof *next);
    for (uint32_t i = 0; i < c->count; i++) {
        l->group_items[next[c->items[i].skeleton]++] = i;
    }
}

/* What a child tells about one candidate. */
typedef struct {
    uint32_t candidate;
    bool is_covered; /* By a rule of the same group. */
    graft_lift_result lift;
} lift_report;

/* Whether one of the rules found so far does what the candidate does. */
static bool is_covered(graft_env *env, const graft_candidate *candidate, const lift_report *found,
                       uint32_t count)
{
    graft_point point;
    memset(&point, 0, sizeof point);
    memcpy(point.vars, candidate->shapes, sizeof point.vars);
    for (uint32_t i = 0; i < count; i++) {
        if (graft_rule_follows(env, &candidate->rule, &point, 1, &found[i].lift.rule)) {
            return true;
        }
    }
    return false;
}

/* What a child is sent: the candidates of a group. */
typedef struct {
    uint32_t number;
    graft_candidate candidate;
} lift_task;

static void append_group(const lifter *l, uint32_t group, graft_buffer *sent)
{
    for (uint32_t i = l->group_first[group]; i < l->group_first[group + 1]; i++) {
        lift_task task;
        memset(&task, 0, sizeof task);
        task.number = l->group_items[i];
        memcpy(&task.candidate, &l->p->candidates->items[task.number], sizeof task.candidate);
        task.candidate.family = NULL;
        task.candidate.set = NULL;
        graft_buffer_append(sent, &task, sizeof task);
    }
}

static void lift_group(graft_env *env, void *context, const graft_pool_item *group,
                       graft_buffer *answer)
{
    const lifter *l = context;
    const lift_task *tasks = (const lift_task *)(const void *)group->data;
    uint32_t size = (uint32_t)(group->size / sizeof *tasks);
    lift_report *found = GRAFT_NEW(env->unit, lift_report, size);
    uint32_t found_count = 0;
    for (uint32_t i = 0; i < size; i++) {
        lift_report report;
        memset(&report, 0, sizeof report);
        report.candidate = tasks[i].number;
        const graft_candidate *candidate = &tasks[i].candidate;
        report.is_covered = is_covered(env, candidate, found, found_count);
        report.lift.outcome = GRAFT_LIFT_STUCK;
        if (!report.is_covered &&
            graft_lift(env, l->p->sweeper, candidate, &report.lift) != GRAFT_OK) {
            graft_env_clear(env); /* Too large for a draft: it stays unlifted. */
        }
        if (report.lift.outcome == GRAFT_LIFT_DONE) {
            graft_rule_canonicalise(&report.lift.rule, &report.lift.origin);
            found[found_count++] = report;
        }
        graft_buffer_append(answer, &report, sizeof report);
    }
}

/* Takes a lifted rule unless it is there already, says nothing, can never match or can only add
 * operators. */
static void take_lifted(graft_pipeline *p, const lift_report *report)
{
    uint64_t id = graft_rule_id(&report->lift.rule);
    int32_t gain = graft_rule_gain(&report->lift.rule);
    bool matches = gain != INT32_MIN && !graft_rule_is_trivial(&report->lift.rule);
    if (matches && gain < 0) {
        p->counts->growing++;
    } else if (matches && !graft_pipeline_has(p, id)) {
        p->rules[p->rule_count++] = (graft_lifted){.rule = report->lift.rule,
                                                   .origin = report->lift.origin,
                                                   .id = id,
                                                   .candidate = report->candidate,
                                                   .gain = gain};
    }
}

static void take_group(graft_pipeline *p, const graft_pool_result *result)
{
    uint32_t count = (uint32_t)(result->bytes / sizeof(lift_report));
    for (uint32_t k = 0; k < count; k++) {
        lift_report report;
        memcpy(&report, &result->answer[k * sizeof report], sizeof report);
        if (report.lift.outcome == GRAFT_LIFT_DONE) {
            take_lifted(p, &report);
        } else if (!report.is_covered && report.lift.outcome == GRAFT_LIFT_STUCK) {
            graft_log(p->env, 2, "not lifted: %s",
                      graft_rule_print_line(p->env->scratch,
                                            &p->candidates->items[report.candidate].rule));
        }
    }
}

graft_status graft_pipeline_lift(graft_pipeline *p)
{
    lifter l = {.p = p};
    uint32_t groups = p->candidates->skeleton_count;
    graft_pool_result *results = GRAFT_NEW(p->arena, graft_pool_result, groups);
    graft_buffer *sent = GRAFT_NEW(p->arena, graft_buffer, groups);
    graft_pool_job job = {.label = "lift",
                          .unit = "forms",
                          .item_count = groups,
                          .sent = sent,
                          .kept = p->kept,
                          .limit_ns = lift_limit_ns,
                          .memory_bytes = graft_pool_prover_bytes,
                          .run = lift_group,
                          .context = &l};
    group_candidates(&l);
    for (uint32_t i = 0; i < groups; i++) {
        sent[i].arena = p->arena;
        append_group(&l, i, &sent[i]);
    }
    GRAFT_PASS(graft_pool_run(p->env, p->arena, &job, results));
    GRAFT_PASS(graft_pipeline_judge(p, results, groups, "lift"));
    p->rules = GRAFT_NEW(p->arena, graft_lifted, p->candidates->count);
    for (uint32_t i = 0; i < groups; i++) {
        take_group(p, &results[i]);
    }
    p->counts->rules = p->rule_count;
    return GRAFT_OK;
}
