/* entry.h - what is known about the time of one signature on one device. */
#pragma once

#include "cost/cpu/kernel.h"

typedef enum graft_cost_source {
    GRAFT_COST_MEASURED = 0,
    GRAFT_COST_ESTIMATED = 1 /* Never as good as measured, and said so everywhere. */
} graft_cost_source;

/* Times are multiples of 1/16 ns, so that sums of them are exact and do not depend on their order.
 */
typedef struct graft_cost_entry {
    double median_ns; /* Measured beside an anchor: the first quartile of quiet rounds. */
    double spread_ns; /* Between the quartiles. Estimated: typical error of the estimate. */
    uint64_t flops;
    uint64_t bytes;
    uint32_t rounds; /* 0 for estimates. */
    uint8_t source;  /* graft_cost_source */
    char implementation
        [GRAFT_KERNEL_NAME_BYTES]; /* "" for estimates, but for those that are to be run. */
} graft_cost_entry;

/* "measured" or "estimated". */
const char *graft_cost_source_name(const graft_cost_entry *entry);

/* What was measured of a signature. */
graft_cost_entry graft_cost_measured(const graft_signature *signature, double median_ns,
                                     double spread_ns, uint32_t rounds, const char *implementation);

/* The nearest multiple of 1/16 that is not 0. */
double graft_cost_round(double ns);
