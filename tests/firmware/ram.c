/* ram.c - prints what a graph and its workspace take on this processor by the compiler's sizeof,
 * and what the graph's header says of it: bits of pointers, bits of ids, bytes of the graph's
 * struct; of its buffer and of the workspace, then both as the header has them. */
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"

#include "graft_graph.h"
#include "platform.h"

/* An array needs a constant. */
static unsigned char buffer[GRAFT_GRAPH_BUFFER_BYTES];
static unsigned char work[GRAFT_GRAPH_WORK_BYTES];

static void write_number(size_t number)
{
    char digits[12];
    uint32_t at = 11;
    digits[at] = '\0';
    digits[--at] = ' ';
    do {
        digits[--at] = (char)('0' + (int)(number % 10));
        number /= 10;
    } while (number > 0);
    platform_write(&digits[at]);
}

/* Both are enough: the engine takes them. */
static graft_status optimize(const graft_limits *limits)
{
    graft_graph graph;
    graft_optimize_options options = graft_optimize_options_default();
    graft_status status = graft_graph_init(&graph, limits, buffer, sizeof buffer);
    options.step_limit = GRAFT_GRAPH_STEPS;
    if (status == GRAFT_OK) {
        status = graft_graph_load(&graph, GRAFT_GRAPH, sizeof GRAFT_GRAPH / sizeof GRAFT_GRAPH[0]);
    }
    return status == GRAFT_OK
               ? graft_optimize(&graph, &GRAFT_POLICY, &options, work, sizeof work, NULL)
               : status;
}

int main(void)
{
    const graft_limits limits = GRAFT_GRAPH_LIMITS;
    write_number(8 * sizeof(void *));
    write_number(8 * sizeof(graft_index));
    write_number(sizeof(graft_graph));
    write_number(graft_graph_bytes(&limits));
    write_number(graft_optimize_workspace_bytes(&GRAFT_POLICY, &limits, GRAFT_GRAPH_STEPS));
    write_number(sizeof buffer);
    write_number(sizeof work);
    platform_write(graft_status_name(optimize(&limits)));
    platform_write("\n");
    return 0;
}
