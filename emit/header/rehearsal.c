/* rehearsal.c - see rehearsal.h. */
#include "emit/header/rehearsal.h"

#include "emit/header/graphtable.h"

#include <xxhash.h>

static uint64_t hash_decisions(const graft_decision *decisions, uint32_t count)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t pair[] = {decisions[i].rule, decisions[i].location};
        hash = XXH3_64bits_withSeed(pair, sizeof pair, hash);
    }
    return hash;
}

static graft_rehearsed rewrite(const graft_rehearsal *rehearsal, const graft_limits *limits,
                               const graft_optimize_options *options)
{
    graft_arena *arena = rehearsal->arena;
    GRAFT_SCOPED(arena);
    const size_t bytes = graft_graph_bytes(limits);
    const size_t work =
        graft_optimize_workspace_bytes(rehearsal->policy, limits, options->step_limit);
    graft_graph graph;
    graft_report report = {.decisions = GRAFT_NEW(arena, graft_decision, options->step_limit),
                           .decision_limit = options->step_limit};
    graft_status status = graft_graph_init(&graph, limits, graft_arena_alloc(arena, bytes), bytes);
    status = status == GRAFT_OK ? graft_graph_copy(&graph, rehearsal->graph) : status;
    status = status == GRAFT_OK ? graft_optimize(&graph, rehearsal->policy, options,
                                                 graft_arena_alloc(arena, work), work, &report)
                                : status;
    const graft_rehearsed run = {.status = status,
                                 .hash = report.hash_after,
                                 .decisions = hash_decisions(report.decisions, report.step_count),
                                 .step_count = report.step_count};
    return run;
}

static void rewrite_all(const graft_rehearsal *rehearsal, const graft_limits *limits,
                        uint32_t step_limit, graft_rehearsed *runs)
{
    static const uint64_t weight_bytes[GRAFT_REHEARSAL_RUNS] = {0, UINT64_MAX};
    graft_optimize_options options = graft_optimize_options_default();
    options.step_limit = step_limit;
    for (uint32_t i = 0; i < GRAFT_REHEARSAL_RUNS; i++) {
        options.weight_bytes_limit = weight_bytes[i];
        runs[i] = rewrite(rehearsal, limits, &options);
    }
}

graft_status graft_rehearsal_open(graft_env *env, const graft_graph *graph,
                                  const graft_policy *policy, const graft_limits *limits,
                                  uint32_t step_limit, graft_rehearsal *rehearsal)
{
    graft_graph *loaded = NULL;
    *rehearsal = (graft_rehearsal){.arena = graft_arena_new((size_t)1 << 16),
                                   .policy = policy,
                                   .least = graft_graphtable_limits(graph, 0)};
    if (rehearsal->arena == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory to rehearse");
    }
    GRAFT_PASS(graft_graph_renumber(env, rehearsal->arena, graph, &loaded));
    rehearsal->graph = loaded;
    rewrite_all(rehearsal, limits, step_limit, rehearsal->before);
    for (uint32_t i = 0; i < GRAFT_REHEARSAL_RUNS; i++) {
        const graft_rehearsed *run = &rehearsal->before[i];
        if (run->status != GRAFT_OK) {
            return GRAFT_FAIL(env, run->status, "the policy cannot rewrite the graph: %s",
                              graft_status_name(run->status));
        }
        rehearsal->steps_most =
            run->step_count > rehearsal->steps_most ? run->step_count : rehearsal->steps_most;
    }
    return GRAFT_OK;
}

bool graft_rehearsal_same(const graft_rehearsal *rehearsal, const graft_limits *limits,
                          uint32_t step_limit)
{
    graft_rehearsed runs[GRAFT_REHEARSAL_RUNS];
    bool same = true;
    rewrite_all(rehearsal, limits, step_limit, runs);
    for (uint32_t i = 0; i < GRAFT_REHEARSAL_RUNS; i++) {
        const graft_rehearsed *before = &rehearsal->before[i];
        same = same && runs[i].status == GRAFT_OK && runs[i].hash == before->hash &&
               runs[i].decisions == before->decisions && runs[i].step_count == before->step_count;
    }
    return same;
}

void graft_rehearsal_close(graft_rehearsal *rehearsal)
{
    graft_arena_free(rehearsal->arena);
    rehearsal->arena = NULL;
}
