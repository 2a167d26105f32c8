/* anchor.h - two operators that never change, timed beside all others to see how fast the machine
 * is at that moment.
 *
 * A processor that others use too runs at several speeds: while the other thread of a core is busy,
 * or another guest of the machine, a convolution takes a third longer, for seconds at a time. The
 * clock cannot tell (what is taken away is not given to another thread but lost), and interleaving
 * helps only among operators that are measured together. So each sample is divided by the time that
 * an anchor takes in the same round, and multiplied by the anchor's recorded time: the median of
 * such paired ratios is what the operator takes on the machine that the anchors were recorded on.
 * One anchor computes out of the nearest cache, one streams through the second level: what
 * computes is held against the first, what moves data against the second. */
#ifndef GRAFT_COST_ANCHOR_H
#define GRAFT_COST_ANCHOR_H

#include "cost/entry.h"

typedef enum graft_anchor_kind {
    GRAFT_ANCHOR_COMPUTE = 0,
    GRAFT_ANCHOR_STREAM = 1,
    GRAFT_ANCHOR_COUNT = 2
} graft_anchor_kind;

/* Their signatures, for looking them up in a database and for measuring them. */
void graft_anchor_signature(graft_anchor_kind kind, graft_signature *signature);

/* Which of them an operator is held against: by its operations per byte. */
graft_anchor_kind graft_anchor_of(const graft_signature *signature);

typedef struct graft_anchors graft_anchors;

/* Opens both on a device, ready to run. Fails as graft_trial_open and graft_trial_qualify do. */
GRAFT_MUST_USE graft_status graft_anchors_open(graft_env *env, graft_device *device,
                                               graft_anchors **anchors);
void graft_anchors_close(graft_anchors *anchors); /* NULL is allowed. */

/* What to record: of each, the first quartile of many rounds, for others only slow it down. */
GRAFT_MUST_USE graft_status graft_anchors_measure(graft_env *env, graft_anchors *anchors,
                                                  graft_cost_entry entries[GRAFT_ANCHOR_COUNT]);
/* The recorded times that factors refer to. */
void graft_anchors_refer(graft_anchors *anchors,
                         const graft_cost_entry entries[GRAFT_ANCHOR_COUNT]);

/* Times one of them and gives recorded / present time: what a sample taken now is to be multiplied
 * with. Fails as graft_trial_round does. */
GRAFT_MUST_USE graft_status graft_anchors_factor(graft_env *env, graft_anchors *anchors,
                                                 graft_anchor_kind kind, double *factor);

/* Median and spread of samples (already multiplied by their factors) of those rounds in which the
 * machine was not slow; when these are fewer than five, of the five in which it was least slow, or
 * of all there are. What is held against an anchor is not quite what it would be on a quiet
 * machine, for not everything is slowed down alike. Gives the number of rounds that counted; with a
 * `count` of 0 the median is INFINITY. */
uint32_t graft_anchors_summarise(graft_arena *scratch, const double *samples, const double *factors,
                                 uint32_t count, double *median, double *spread);
/* In how many rounds the machine was about as fast as recorded. */
uint32_t graft_anchors_quiet(const double *factors, uint32_t count);

#endif
