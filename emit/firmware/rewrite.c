/* rewrite.c - what a product does with a generated policy, as a complete C99 program: loads the
 * model's graph from its table, optimises it, and prints every decision. No allocator: everything
 * lies in one static buffer.
 *
 * `make policy` compiles it beside graft_policy.h and graft_graph.h and runs it; `graft report`
 * replays what it prints. Lines: "step RULE LOCATION" in order, then "hash HEX" of the graph that
 * came out. */
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"

#include "graft_graph.h"

#include <stdio.h>

enum { MEMORY_BYTES = 64 << 20, STEPS_MOST = 4096 };

static uint64_t memory[MEMORY_BYTES / 8];
static graft_decision decisions[STEPS_MOST];

static graft_status optimize(graft_report *report)
{
    const graft_limits limits = GRAFT_GRAPH_LIMITS;
    graft_optimize_options options = graft_optimize_options_default();
    options.weight_bytes_limit = UINT64_MAX; /* This product can run a weight program. */
    options.step_limit = STEPS_MOST;
    graft_graph graph;
    size_t graph_bytes = (graft_graph_bytes(&limits) + 7) & ~(size_t)7;
    size_t work_bytes = graft_optimize_workspace_bytes(&GRAFT_POLICY, &limits, STEPS_MOST);
    if (graph_bytes + work_bytes > sizeof memory) {
        return GRAFT_NO_MEMORY;
    }
    graft_status status = graft_graph_init(&graph, &limits, memory, graph_bytes);
    if (status == GRAFT_OK) {
        status = graft_graph_load(&graph, GRAFT_GRAPH, sizeof GRAFT_GRAPH / sizeof GRAFT_GRAPH[0]);
    }
    if (status == GRAFT_OK) {
        status = graft_optimize(&graph, &GRAFT_POLICY, &options, memory + graph_bytes / 8,
                                work_bytes, report);
    }
    return status;
}

int main(void)
{
    graft_report report = {0};
    report.decisions = decisions;
    report.decision_limit = STEPS_MOST;
    graft_status status = optimize(&report);
    if (status != GRAFT_OK) {
        fprintf(stderr, "rewrite: %s\n", graft_status_name(status));
        return 1;
    }
    for (uint32_t i = 0; i < report.step_count; i++) {
        printf("step %u %u\n", (unsigned)decisions[i].rule, (unsigned)decisions[i].location);
    }
    printf("hash %08lx%08lx\n", (unsigned long)(report.hash_after >> 32),
           (unsigned long)(report.hash_after & 0xffffffffu));
    return 0;
}
