/* main.c - a product in miniature: loads a graph from its table, optimises it with a generated
 * policy, prints every decision. C99 and C++, no library: the platform offers the functions below.
 *
 * Lines that begin with "#" tell about this platform; all others must be the same on every one. */
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"

#include "graft_graph.h"
#include "platform.h"

enum { MEMORY_BYTES = 1 << 20, DECISIONS_MOST = 256 };

static uint64_t memory[MEMORY_BYTES / 8];
static graft_decision decisions[DECISIONS_MOST];

static void write_number(uint64_t number)
{
    char digits[21];
    uint32_t at = 20;
    digits[at] = '\0';
    do {
        uint64_t rest = number / 10;
        digits[--at] = (char)('0' + (int)(number - rest * 10));
        number = rest;
    } while (number > 0);
    platform_write(&digits[at]);
}

static void write_hash(uint64_t hash)
{
    char digits[17];
    for (uint32_t i = 0; i < 16; i++) {
        digits[i] = "0123456789abcdef"[(hash >> (60 - 4 * i)) & 15];
    }
    digits[16] = '\0';
    platform_write(digits);
}

static void write_pair(const char *name, uint64_t number)
{
    platform_write(name);
    write_number(number);
}

static void write_decision(const graft_decision *decision)
{
    write_pair("rule ", decision->rule);
    write_pair(" location ", decision->location);
    write_pair(" of ", decision->location_count);
    write_pair(" origin ", decision->origin);
    platform_write(" nodes");
    for (uint32_t i = 0; i < decision->node_count; i++) {
        write_pair(" ", decision->nodes[i]);
    }
    platform_write("\n");
}

static void write_report(const graft_report *report, uint32_t ticks)
{
    for (uint32_t s = 0; s < report->step_count && s < DECISIONS_MOST; s++) {
        write_decision(&decisions[s]);
    }
    write_pair("steps ", report->step_count);
    write_pair(" stop ", (uint64_t)report->stop);
    write_pair(" nodes ", report->active_before);
    write_pair(" to ", report->active_after);
    write_pair(" weight bytes ", report->weight_bytes);
    platform_write(" hash ");
    write_hash(report->hash_before);
    platform_write(" to ");
    write_hash(report->hash_after);
    platform_write("\n");
    if (ticks > 0) {
        /* Of the policy: rewrites, and the last time, when it stopped by itself. */
        uint32_t asked = report->step_count - report->plan_step_count -
                         report->simplify_step_count +
                         (report->stop == GRAFT_STOP_NO_OP || report->stop == GRAFT_STOP_NO_RULE);
        write_pair("# instructions: ", (uint64_t)ticks * PLATFORM_TICK_INSTRUCTIONS);
        write_pair(", decisions of the policy: ", asked);
        platform_write("\n");
    }
}

/* Loads the graph and optimises it under `options`; both lie in `memory`. */
static graft_status run_once(const graft_optimize_options *options, bool tell_sizes)
{
    const graft_limits limits = GRAFT_GRAPH_LIMITS;
    graft_graph graph;
    graft_report report;
    size_t graph_bytes = (graft_graph_bytes(&limits) + 7) & ~(size_t)7;
    size_t work_bytes = graft_optimize_workspace_bytes(&GRAFT_POLICY, &limits, options->step_limit);
    if (graph_bytes + work_bytes > sizeof memory) {
        return GRAFT_NO_MEMORY;
    }
    if (tell_sizes) {
        write_pair("# bytes of memory: graph ", graph_bytes);
        write_pair(", workspace ", work_bytes);
        platform_write("\n");
    }
    report.decisions = decisions;
    report.decision_limit = DECISIONS_MOST;
    graft_status status = graft_graph_init(&graph, &limits, memory, graph_bytes);
    if (status == GRAFT_OK) {
        status = graft_graph_load(&graph, GRAFT_GRAPH, sizeof GRAFT_GRAPH / sizeof GRAFT_GRAPH[0]);
    }
    uint32_t start = platform_ticks();
    if (status == GRAFT_OK) {
        status = graft_optimize(&graph, &GRAFT_POLICY, options, memory + graph_bytes / 8,
                                work_bytes, &report);
    }
    uint32_t ticks = platform_ticks() - start;
    if (status == GRAFT_OK) {
        write_report(&report, ticks);
    }
    return status;
}

/* As a microcontroller would use it; then the policy alone, with every rewrite allowed. */
int main(void)
{
    graft_optimize_options options = graft_optimize_options_default();
    platform_write("as shipped\n");
    graft_status status = run_once(&options, true);
    if (status == GRAFT_OK) {
        platform_write("policy alone\n");
        options.weight_bytes_limit = UINT64_MAX;
        options.step_limit = 24;
        options.use_plans = false;
        options.simplify = false;
        options.guard = false;
        status = run_once(&options, false);
    }
    platform_write(graft_status_name(status));
    platform_write("\n");
    return (int)status;
}
