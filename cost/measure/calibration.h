/* calibration.h - from the times of operators by themselves to their times inside networks.
 *
 * What is measured in a loop is not quite what a network takes: caches hold other things, branch
 * predictors and prefetchers have seen other code. Whole graphs are measured as well, and a few
 * factors are fitted with which the sums of their parts agree best:
 *
 *      ns in a network = factor of the class * ns measured + ns per step
 *
 * with the classes products (not of single channels), those of them that write blocked images
 * (other code of the library's, which networks slow down differently), conversions between layouts,
 * all others, and those of them whose operands fit the second-level cache in networks whose weights
 * do not stay there (cold): a loop leaves them in that cache, in the network the weights of a
 * product have run through the cache before. Few parameters, fitted robustly (least absolute
 * relative errors by iteratively reweighted least squares; Huber, "Robust Statistics", 1981,
 * section 7.8), and held near 1 and 0 by a prior as strong as one graph: with nothing measured
 * nothing is corrected. They are kept in the database as records of their own. */
#pragma once

#include "cost/database/database.h"

typedef enum graft_factor {
    GRAFT_FACTOR_PRODUCTS = 0,
    GRAFT_FACTOR_OTHERS = 1,
    GRAFT_FACTOR_CONVERSIONS = 2,
    GRAFT_FACTOR_STEP = 3,    /* Nanoseconds, not a factor. */
    GRAFT_FACTOR_BLOCKED = 4, /* Products that write blocked images. */
    GRAFT_FACTOR_COLD = 5,    /* Others on small images, in networks of large weights. */
    GRAFT_FACTOR_COUNT = 6
} graft_factor;

typedef struct graft_calibration {
    double values[GRAFT_FACTOR_COUNT]; /* 1, but for 0 ns per step: nothing is corrected. */
    double error;                      /* Median of |predicted / measured - 1|, as fitted. */
    uint32_t graphs;                   /* It was fitted to; 0: there is none. */
} graft_calibration;

/* One graph that was measured as a whole. */
typedef struct graft_calibration_sample {
    double parts[GRAFT_FACTOR_COUNT]; /* Sums of the classes' times in ns; number of steps. */
    double estimated_ns;              /* Of the parts: what rests on estimates. */
    double whole_ns;
    uint32_t model; /* Which model it is a graph of, for leaving that out. */
} graft_calibration_sample;

graft_calibration graft_calibration_none(void);

/* The class of a signature: any but GRAFT_FACTOR_STEP. */
graft_factor graft_factor_of(const graft_signature *signature);
/* Adds a step with this entry, uncorrected, to the parts of a sample. */
void graft_calibration_add(graft_calibration_sample *sample, const graft_signature *signature,
                           const graft_cost_entry *entry);

/* What the parts predict. */
double graft_calibration_predict(const graft_calibration *calibration,
                                 const graft_calibration_sample *sample);
/* Whether more than 2 % of its sum rests on estimates: no graph to fit to. */
bool graft_calibration_unsure(const graft_calibration_sample *sample);
/* Fits to the samples that are not unsure, of all models but `left_out` (UINT32_MAX: of
 * all). */
graft_calibration graft_calibration_fit(graft_env *env, const graft_calibration_sample *samples,
                                        uint32_t count, uint32_t left_out);

/* The entry as it is in a network. Opaque nodes count as others. */
void graft_calibration_apply(const graft_calibration *calibration, const graft_signature *signature,
                             graft_cost_entry *entry);

/* From and to a database, for its selected device; `provenance` is kept beside each value. */
graft_calibration graft_calibration_read(const graft_database *database);
void graft_calibration_write(const graft_calibration *calibration, const char *provenance,
                             graft_database *database);
