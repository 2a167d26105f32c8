/* anchor.h - a piece of work that never changes, timed beside all others to see how fast the
 * machine is at that moment.
 *
 * A processor that others use too runs at several speeds: while the other thread of a core is busy,
 * or another guest of the machine, a convolution takes a third longer. The clock cannot tell (what
 * is taken away is not given to another thread but lost). Such times last from a tenth of a
 * millisecond to minutes, so everything is timed in *slices* of little more than a tenth of a
 * millisecond, and before and after each one the anchor is looked at: 10 us of small matrix
 * products, which fit the nearest cache beside what is being measured. Where both looks are as fast
 * as the best that was ever recorded the slice was quiet and counts; where none is, slices are
 * multiplied by recorded / present time, which is not quite right, for not everything is slowed
 * down alike. */
#pragma once

#include "cost/database/entry.h"

enum { GRAFT_SLICE_NS = 150000 };

/* The record of what the anchor takes at its best. */
void graft_anchor_signature(graft_signature *signature);

typedef struct graft_anchor graft_anchor;

/* GRAFT_NO_MEMORY. */
GRAFT_MUST_USE graft_status graft_anchor_open(graft_env *env, graft_anchor **anchor);
void graft_anchor_close(graft_anchor *anchor); /* NULL is allowed. */

/* What to record: what one in sixteen of many looks was faster than, for others only slow it down.
 */
void graft_anchor_measure(graft_anchor *anchor, graft_cost_entry *entry);
/* The recorded time that factors refer to. */
void graft_anchor_refer(graft_anchor *anchor, const graft_cost_entry *entry);

/* One look: recorded / present time, 1 when the machine is quiet, which is when that is 0.92 or
 * more. */
double graft_anchor_look(graft_anchor *anchor);
/* Looks until the machine is quiet, for a fifth of a millisecond at most. */
double graft_anchor_wait(graft_anchor *anchor);

/* The slices of one sample: begin, then add slices while more are wanted, then take the result. */
typedef struct graft_slices {
    graft_anchor *anchor;
    double wanted_ns; /* So much quiet time makes a sample, or three times as much in all. */
    double before;    /* The look before the slice that runs now. */
    double quiet_ns;  /* Sums over slices. */
    double quiet_runs;
    double slow_ns; /* Multiplied by their factors. */
    double slow_runs;
    double slow_factors;
    double all_ns;
} graft_slices;

void graft_slices_begin(graft_slices *slices, graft_anchor *anchor, double wanted_ns);
bool graft_slices_want_more(const graft_slices *slices);
void graft_slices_add(graft_slices *slices, double run_ns, double runs);
/* Time of a run, and the factor that it was multiplied by: 1 when some slices were quiet. */
double graft_slices_result(const graft_slices *slices, double *factor);

/* First quartile and spread (distance between the quartiles) of samples, already multiplied by
 * their factors, of quiet rounds; when these are fewer than five, of the five in which the machine
 * was least slow, or of all there are. The first quartile, not the median: between two quiet looks
 * others may still have slowed something down, and nobody makes it faster. Gives the number of
 * rounds that counted; with a `count` of 0 the time is INFINITY. */
uint32_t graft_anchor_summarise(graft_arena *scratch, const double *samples, const double *factors,
                                uint32_t count, double *first, double *spread);
/* How many rounds were quiet. */
uint32_t graft_anchor_quiet(const double *factors, uint32_t count);
