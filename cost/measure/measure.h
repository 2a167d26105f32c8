/* measure.h - how long operators take: a protocol for machines that are never quiet.
 *
 * Every implementation of every signature is first run a few times; those much slower than the best
 * of their signature, or whose results differ from the others', drop out. The rest take turns in
 * rounds that begin at another place each time, so that whatever else the machine does hits all of
 * them alike (what is clearly behind after five rounds drops out too): after each switch some runs
 * are thrown away, then a batch of runs is timed, in slices between looks at the anchor (anchor.h).
 * An implementation's time is the first quartile over quiet rounds, its spread the distance between
 * the quartiles, and the fastest one stands for the signature.
 *
 * Data are normal numbers. Activations are where the previous run left them, as in a network whose
 * results go where a dead tensor was just read; where the result is of the first input's form, it
 * is the next run's first input. Weights come from copies, as many as the signature's distance
 * says, as in a network, where all other weights were read in between. */
#pragma once

#include "cost/measure/anchor.h"

typedef struct graft_measure_options {
    uint32_t rounds;   /* Timed batches per implementation, at least 3. */
    uint64_t batch_ns; /* Length of a batch, at least; a single run may be longer. */
    bool quiet;        /* No progress bar. */
    bool direct;       /* Only implementations that are graft_kernel_is_direct, where there are
                          some: for comparison with what no other way was open to. */
    const char *const *only; /* By signature, the name of the one implementation that takes part;
                                NULL, here or there: all do. */
    void (*beat)(void *context); /* Called after each signature, for whoever watches; or NULL. */
    void *beat_context;
    graft_anchor *anchor; /* Samples are held against it (see anchor.h); NULL: they are taken as the
                             clock says. */
} graft_measure_options;

/* 15 rounds of 1 ms. */
graft_measure_options graft_measure_options_default(void);

/* Measures `count` signatures; `entries[i].rounds` is 0 for those that were not reached.
 * GRAFT_INTERRUPTED when the user asked to stop: what has had 5 rounds or more by then is kept.
 * GRAFT_UNSUPPORTED when the device is not present or lacks an operator, GRAFT_NO_MEMORY when
 * tensors do not fit; what was measured before is kept then too. */
GRAFT_MUST_USE graft_status graft_measure(graft_env *env, graft_device *device,
                                          const graft_signature *signatures, uint32_t count,
                                          const graft_measure_options *options,
                                          graft_cost_entry *entries);
