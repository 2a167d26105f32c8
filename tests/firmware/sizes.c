/* sizes.c - prints what a graph and its workspace take on this processor, without deciding
 * anything. */
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"

#include "graft_graph.h"
#include "platform.h"

static void write_line(const char *name, size_t number)
{
    char digits[12];
    uint32_t at = 11;
    digits[at] = '\0';
    digits[--at] = '\n';
    do {
        digits[--at] = (char)('0' + (int)(number % 10));
        number /= 10;
    } while (number > 0);
    platform_write(name);
    platform_write(&digits[at]);
}

int main(void)
{
    const graft_limits limits = GRAFT_GRAPH_LIMITS;
    write_line("graph ", graft_graph_bytes(&limits));
    write_line("workspace ", graft_optimize_workspace_bytes(&GRAFT_POLICY, &limits, 64));
    write_line("most ", graft_optimize_workspace_most_bytes(&GRAFT_POLICY, &limits, 64));
    return 0;
}
