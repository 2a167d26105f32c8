/* ceiling.h - how fast a device can be at most, by its own measurements: the roofline that rows of
 * `graft measure` are held against (Williams, Waterman, Patterson, "Roofline", 2009).
 *
 * The peak is the highest rate of operations that any measured operator has reached (but for
 * Winograd's algorithm, which saves operations and comes out above the roof), the bandwidth
 * the highest rate of bytes of any that moves more than caches of a core hold. An operator can take
 * no less than the longer of operations / peak and bytes / bandwidth; where its operands lie in a
 * nearer cache it may, and comes out above the roof. */
#pragma once

#include "cost/database/database.h"

typedef struct graft_ceiling {
    double flops_per_ns; /* 0: nothing was measured that computes. */
    double bytes_per_ns; /* 0: nothing that moves much. */
} graft_ceiling;

/* Of the measured entries of the selected device. */
graft_ceiling graft_ceiling_of(const graft_database *database);

/* The least time over the time taken: 1 on the roof, above it for data in nearer caches; 0 when the
 * ceiling is not known. */
double graft_ceiling_reached(const graft_ceiling *ceiling, const graft_cost_entry *entry);
