/* roof.h - the roofs of a tariff (graft_roof), fitted to samples. */
#pragma once

#include "train/tariff/tariff_trees.h"

/* Fits both roofs of `tariff` to the samples, by least absolute errors of logarithms. The largest of
 * three is fitted as clusters are by k-means: each sample belongs to the term that is largest for
 * it, each term moves to the median of what is its own, and the best so far counts (S. Lloyd, IEEE
 * Trans. Inf. Theory 28, 1982). A kind without samples takes the roof of the other, both of none
 * are 0. */
void graft_tariff_fit_roofs(graft_env *env, const graft_tariff_sample *samples,
                            uint32_t sample_count, graft_tariff *tariff);
