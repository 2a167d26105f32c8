/* ceiling.c - the best rates of a device (see ceiling.h). */
#include "cost/measure/ceiling.h"

#include <math.h>
#include <string.h>

/* Of operands that no core's own caches hold. Where a database has none so large, any count. */
enum { LARGE_BYTES = 4 << 20 };

graft_ceiling graft_ceiling_of(const graft_database *database)
{
    graft_ceiling ceiling = {.flops_per_ns = 0.0};
    double small = 0.0;
    for (uint32_t i = 0; i < graft_database_count(database); i++) {
        const graft_database_record *r = graft_database_at(database, i);
        const graft_cost_entry *e = &r->entry;
        if (r->signature.op == GRAFT_COST_FACTOR || e->source != GRAFT_COST_MEASURED ||
            !graft_database_selects(database, r)) {
            continue;
        }
        if (strstr(e->implementation, "wino") == NULL) { /* Does fewer operations than it counts. */
            ceiling.flops_per_ns = fmax(ceiling.flops_per_ns, (double)e->flops / e->median_ns);
        }
        double rate = (double)e->bytes / e->median_ns;
        if (e->bytes >= LARGE_BYTES) {
            ceiling.bytes_per_ns = fmax(ceiling.bytes_per_ns, rate);
        } else {
            small = fmax(small, rate);
        }
    }
    ceiling.bytes_per_ns = ceiling.bytes_per_ns > 0.0 ? ceiling.bytes_per_ns : small;
    return ceiling;
}

double graft_ceiling_reached(const graft_ceiling *ceiling, const graft_cost_entry *entry)
{
    if (!(ceiling->flops_per_ns > 0.0) || !(ceiling->bytes_per_ns > 0.0)) {
        return 0.0;
    }
    double least_ns = fmax((double)entry->flops / ceiling->flops_per_ns,
                           (double)entry->bytes / ceiling->bytes_per_ns);
    return least_ns / entry->median_ns;
}
