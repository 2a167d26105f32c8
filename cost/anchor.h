/* anchor.h - an operator that never changes, timed beside all others to see how fast the machine is
 * at that moment.
 *
 * A processor that others use too runs at several speeds: while the other thread of a core is busy,
 * or another guest of the machine, a convolution takes a third longer, for seconds at a time. The
 * clock cannot tell (what is taken away is not given to another thread but lost), and interleaving
 * helps only among operators that are measured together. So each sample is taken just after the
 * anchor: where that is as fast as recorded, the machine is quiet; where it is slower, the sample
 * is multiplied by recorded / present time, and counts only when too few rounds were quiet, for not
 * everything is slowed down alike.
 *
 * The anchor computes out of the nearest caches. One that streams through memory was tried as well
 * and was useless: its time depends on what ran before it more than on the machine. */
#ifndef GRAFT_COST_ANCHOR_H
#define GRAFT_COST_ANCHOR_H

#include "cost/entry.h"

/* For looking it up in a database, and for measuring it. */
void graft_anchor_signature(graft_signature *signature);

typedef struct graft_anchor graft_anchor;

/* Opens it on a device, ready to run. Fails as graft_trial_open and graft_trial_qualify do. */
GRAFT_MUST_USE graft_status graft_anchor_open(graft_env *env, graft_device *device,
                                              graft_anchor **anchor);
void graft_anchor_close(graft_anchor *anchor); /* NULL is allowed. */

/* What to record: the first quartile of many rounds, for others only slow it down. */
GRAFT_MUST_USE graft_status graft_anchor_measure(graft_env *env, graft_anchor *anchor,
                                                 graft_cost_entry *entry);
/* The recorded time that factors refer to. */
void graft_anchor_refer(graft_anchor *anchor, const graft_cost_entry *entry);

/* Times it, after a round thrown away that brings its data back into the caches: recorded / present
 * time, 1 when that is 0.93 or more. Fails as graft_trial_round does. */
GRAFT_MUST_USE graft_status graft_anchor_factor(graft_env *env, graft_anchor *anchor,
                                                double *factor);

/* Median and spread of samples (already multiplied by their factors) of quiet rounds; when these
 * are fewer than five, of the five in which the machine was least slow, or of all there are. Gives
 * the number of rounds that counted; with a `count` of 0 the median is INFINITY. */
uint32_t graft_anchor_summarise(graft_arena *scratch, const double *samples, const double *factors,
                                uint32_t count, double *median, double *spread);
/* How many rounds were quiet. */
uint32_t graft_anchor_quiet(const double *factors, uint32_t count);

#endif
