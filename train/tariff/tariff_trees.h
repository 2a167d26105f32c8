/* tariff_trees.h - the fallback of a tariff: forests of regression trees, whose mean it is. */
#pragma once

#include "graph/base/env.h"

typedef struct graft_tariff_sample {
    const int16_t *inputs; /* (GRAFT_TARIFF_INPUTS) */
    uint16_t value;        /* What a row would have. */
} graft_tariff_sample;

/* Bytes of a tree in flash. */
enum { GRAFT_TREE_BYTES = GRAFT_TREE_TESTS * 3 + GRAFT_TREE_LEAVES * 2 };

/* Fits the roofs of `tariff` to the samples, and grows at most `tree_count` trees for it, in
 * `arena`, on what these leave over: as many in each of eight forests, or of so many forests of one tree as is even; none of no samples. The first trees
 * of many are those of a smaller fallback of eight at least. Each forest sees other samples, and
 * each test is one of other inputs, so that what forests differ by says how much a guess hangs on
 * what was seen. Gradient boosting with squared errors: J. Friedman, Greedy function approximation:
 * a gradient boosting machine, Annals of Statistics 29 (2001), algorithm 2 and section 4.3. Samples
 * and inputs at random: J. Friedman, Stochastic gradient boosting, Computational Statistics & Data
 * Analysis 38 (2002); L. Breiman, Random forests, Machine Learning 45 (2001), section 4. */
void graft_tariff_grow(graft_env *env, graft_arena *arena, const graft_tariff_sample *samples,
                       uint32_t sample_count, uint32_t tree_count, graft_tariff *tariff);
