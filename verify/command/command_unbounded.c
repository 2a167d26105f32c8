/* command_unbounded.c - see parts.h. */
#include "verify/command/parts.h"

#include "graph/base/json.h"
#include "graph/base/log.h"
#include "graph/rule/ruleprint.h"
#include "verify/pool.h"
#include "verify/sizes/symbolic.h"

#include <inttypes.h>
#include <string.h>

static const uint64_t limit_ns = UINT64_C(120000000000);
static const double ns_per_ms = 1e6;

typedef struct {
    const graft_rule_entry **entries; /* Borrowed. */
    graft_prove_options options;
} work;

typedef struct {
    graft_symbolic_result result;
    uint64_t time_ns;
} answer;

static void prove_item(graft_env *env, void *context, const graft_pool_item *item,
                       graft_buffer *out)
{
    const work *w = context;
    answer a;
    memset(&a, 0, sizeof a);
    uint64_t start_ns = graft_clock_ns();
    graft_symbolic_prove(env, &w->entries[item->index]->rule, &w->options, &a.result);
    a.time_ns = graft_clock_ns() - start_ns;
    graft_buffer_append(out, &a, sizeof a);
}

static void print_answer(graft_env *env, const graft_rule_entry *e, const answer *a)
{
    const graft_symbolic_result *r = &a->result;
    double ms = (double)a->time_ns / ns_per_ms;
    if (env->json) {
        graft_json_print(
            env->unit, stdout, "name=%s rule=%s verdict=%s cases=%u questions=%u reason=%s ms=%g",
            e->name, graft_rule_print_line(env->unit, &e->rule), r->proved ? "proved" : "unknown",
            r->cases, r->questions, r->proved ? NULL : r->reason, ms);
        return;
    }
    if (r->proved) {
        (void)printf("%s: proved: %" PRIu32 " cases, %" PRIu32 " questions, %.0f ms\n", e->name,
                     r->cases, r->questions, ms);
    } else {
        (void)printf("%s: not proved for all sizes: %s, %.0f ms\n", e->name, r->reason, ms);
    }
}

static graft_status take_answers(graft_env *env, const work *w, const graft_pool_result *results,
                                 uint32_t count)
{
    graft_status status = GRAFT_OK;
    uint32_t proved = 0;
    double total_ms = 0;
    for (uint32_t i = 0; i < count; i++) {
        answer a;
        memset(&a, 0, sizeof a);
        GRAFT_SCOPED(env->unit);
        if (results[i].outcome == GRAFT_POOL_DONE && results[i].bytes == sizeof a) {
            memcpy(&a, results[i].answer, sizeof a);
        } else {
            (void)snprintf(a.result.reason, sizeof a.result.reason, "the solver %s",
                           graft_pool_outcome_name(results[i].outcome));
        }
        print_answer(env, w->entries[i], &a);
        proved += a.result.proved ? 1 : 0;
        total_ms += (double)a.time_ns / ns_per_ms;
        if (results[i].outcome == GRAFT_POOL_KILLED) {
            status = GRAFT_FAIL(env, GRAFT_INTERNAL, "rule '%s' ran into the clock",
                                w->entries[i]->name);
        }
    }
    graft_log(env, 1, "%" PRIu32 " of %" PRIu32 " rules are proved for all sizes; %.1f s", proved,
              count, total_ms / 1e3);
    return status;
}

graft_status graft_unbounded_report(graft_env *env, const graft_ruleset *set, const char *only)
{
    typedef const graft_rule_entry *borrowed;
    work w = {.entries = GRAFT_NEW(env->life, borrowed, set->count),
              .options = graft_prove_defaults()};
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const graft_rule_entry *e = &set->entries[i];
        GRAFT_SCOPED(env->unit);
        if (only == NULL || strstr(e->name, only) != NULL ||
            strstr(graft_rule_print_line(env->unit, &e->rule), only) != NULL) {
            w.entries[count++] = e;
        }
    }
    graft_pool_result *results = GRAFT_NEW(env->life, graft_pool_result, count);
    const graft_pool_job job = {.label = "prove",
                                .unit = "rules",
                                .item_count = count,
                                .limit_ns = limit_ns,
                                .memory_bytes = graft_pool_prover_bytes,
                                .is_fresh = true,
                                .run = prove_item,
                                .context = &w};
    GRAFT_PASS(graft_pool_run(env, env->life, &job, results));
    return take_answers(env, &w, results, count);
}
