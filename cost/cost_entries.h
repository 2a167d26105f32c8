/* cost_entries.h - what the two parts of the cost side share; private to cost/cost.c, which has the
 * entries of single operators, and cost/cost_graph.c, which plans whole graphs and sums. */
#pragma once

#include "cost/cost.h"

#include "cost/plan/plan.h"
#include "graph/base/lock.h"

struct graft_cost {
    graft_device *device;
    graft_database *database;
    graft_database *estimates; /* In memory only: estimated once, then looked up. */
    graft_database *leveled;   /* In memory only: times of twins; NULL: as measured. */
    graft_database *corrected; /* In memory only: the calibrated ones of both; NULL: none is. */
    graft_calibration calibration;
    graft_measure_options options;
    graft_anchor *anchor; /* Opened when something is to be measured. */
    graft_roofline roofline;
    bool estimating;
    bool borrowed;        /* Its entries are there to choose kernels by: see graft_cost_borrow. */
    uint64_t deadline_ns; /* Of measuring; 0: none. */
    bool convention;
    uint8_t layout;    /* Of the convention. */
    bool direct;       /* Only direct implementations are measured. */
    bool copies;       /* No views but aliases. */
    bool takes_pieces; /* Operators may read and write inside of larger tensors. */
    bool distant;      /* Entries of this device distinguish how far away data lie. */
    bool program;      /* Its entries are answers of a program, which lays tensors out itself. */
    bool fitted;
    const graft_model *model; /* Of graphs; NULL: not known. */
    graft_cost_statistics statistics;
    pthread_mutex_t lock; /* Of everything but looking up. */
    graft_plan_memo *memo;
    pthread_mutex_t memo_lock; /* Who does not get it at once plans without the memo. */
};

/* Whether cuDNN is the device's library. */
bool graft_cost_is_cudnn(const graft_cost *cost);

/* The entry of a signature as it is in a network, measured or estimated; NULL: there is none
 * yet. */
const graft_cost_entry *graft_cost_find(const graft_cost *cost, const graft_signature *signature);

/* Finds or makes the entry of a signature. It stays valid until the cost is closed. Fails as
 * graft_cost_signature. */
GRAFT_MUST_USE graft_status graft_cost_obtain(graft_env *env, graft_cost *cost,
                                              const graft_signature *signature,
                                              const graft_cost_entry **entry);

/* By the roofline, in no database. The lock is held. Fails where the databases cannot be read. */
GRAFT_MUST_USE graft_status graft_cost_estimate(graft_env *env, graft_cost *cost, uint32_t op,
                                                uint64_t flops, uint64_t bytes,
                                                graft_cost_entry *entry);
