/* tariff_trees.c - see tariff_trees.h. Errors are whole numbers, 1024ths of an octave, and their
 * sums are exact; a tree is grown level by level over histograms of binned inputs. */
#include "train/tariff/tariff_trees.h"

#include "graph/base/rng.h"
#include "train/tariff/roof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { INPUTS = GRAFT_TARIFF_INPUTS, BINS = 64, LEAST_SAMPLES = 5 };
/* Of the samples a forest sees KEPT percent, of the inputs a test may be one of TRIED percent. */
enum { FORESTS = 8, KEPT = 85, TRIED = 50, SEED = 1 };

/* Samples of error zero that each leaf is taken to have besides. */
static const double shrinking = 2.0;
/* What part of a leaf's mean error is corrected at once; the first tree of a forest, which finds
 * the level of all costs, corrects all of it. */
static const double rate = 0.4;

/* The samples of one node in one bin of one input. */
typedef struct {
    int64_t error;
    uint32_t count;
} bin;

typedef struct {
    const graft_tariff_sample *samples;
    uint32_t count;
    int16_t (*bounds)[BINS]; /* (INPUTS, ...): bin b has what is above bound b - 1, to bound b. */
    uint32_t *bound_counts;  /* (INPUTS) */
    uint8_t *bins;           /* (count, INPUTS) */
    uint32_t forests;
    graft_rng rng;   /* Draws which inputs are tried. */
    bool *kept;      /* (count): whether the forest at hand sees a sample. */
    int32_t *errors; /* (count): what the trees of that forest so far lack. */
    uint8_t *places; /* (count): the node of the tree at hand that a sample is at. */
    bin *histogram;  /* (nodes of a level, INPUTS, BINS) */
} grower;

typedef struct {
    uint8_t tests[GRAFT_TREE_TESTS];
    uint8_t bins[GRAFT_TREE_TESTS];
    int16_t bounds[GRAFT_TREE_TESTS];
    int16_t leaves[GRAFT_TREE_LEAVES];
} tree;

/* ---------------------------------------------------------------- bins */

static int compare_numbers(const void *a, const void *b)
{
    const int16_t *x = a;
    const int16_t *y = b;
    return *x - *y;
}

/* Bounds between the values that input `j` has: all, or at equal steps through the samples. */
static void find_bounds(grower *g, uint32_t j, int16_t *sorted)
{
    uint32_t different = 1;
    for (uint32_t i = 0; i < g->count; i++) {
        sorted[i] = g->samples[i].inputs[j];
    }
    qsort(sorted, g->count, sizeof sorted[0], compare_numbers);
    for (uint32_t i = 1; i < g->count; i++) {
        different += sorted[i] != sorted[i - 1];
    }
    uint32_t listed = 0;
    for (uint32_t i = 1; i < g->count; i++) {
        uint64_t due = (uint64_t)(listed + 1) * g->count / BINS;
        if (sorted[i] != sorted[i - 1] && (different <= BINS || i >= due) && listed + 1 < BINS) {
            g->bounds[j][listed++] = sorted[i - 1];
        }
    }
    g->bound_counts[j] = listed;
}

static void sort_into_bins(graft_arena *scratch, grower *g)
{
    int16_t *sorted = GRAFT_NEW(scratch, int16_t, g->count);
    for (uint32_t j = 0; j < INPUTS; j++) {
        find_bounds(g, j, sorted);
        for (uint32_t i = 0; i < g->count; i++) {
            uint8_t at = 0;
            while (at < g->bound_counts[j] && g->samples[i].inputs[j] > g->bounds[j][at]) {
                at++;
            }
            g->bins[(size_t)i * INPUTS + j] = at;
        }
    }
}

/* ---------------------------------------------------------------- a tree */

static void count_level(grower *g, uint32_t first, uint32_t nodes)
{
    memset(g->histogram, 0, (size_t)nodes * INPUTS * BINS * sizeof g->histogram[0]);
    for (uint32_t i = 0; i < g->count; i++) {
        bin *of_node = &g->histogram[(size_t)(g->places[i] - first) * INPUTS * BINS];
        const uint8_t *bins = &g->bins[(size_t)i * INPUTS];
        for (uint32_t j = 0; g->kept[i] && j < INPUTS; j++) {
            bin *b = &of_node[j * BINS + bins[j]];
            b->error += g->errors[i];
            b->count++;
        }
    }
}

static double worth_of(bin b)
{
    return (double)b.error * (double)b.error / ((double)b.count + shrinking);
}

/* Of the tests that are tried the one that explains most of the errors at a node; without one all
 * go left. */
static void choose_test(grower *g, const bin *of_node, uint32_t node, tree *t)
{
    double most = 0.0;
    t->tests[node] = 0;
    t->bins[node] = BINS;
    t->bounds[node] = INT16_MAX;
    for (uint32_t j = 0; j < INPUTS; j++) {
        bin all = {0};
        bin left = {0};
        if (graft_rng_below(&g->rng, 100) >= TRIED) {
            continue;
        }
        for (uint32_t b = 0; b <= g->bound_counts[j]; b++) {
            all.error += of_node[j * BINS + b].error;
            all.count += of_node[j * BINS + b].count;
        }
        for (uint32_t b = 0; b < g->bound_counts[j]; b++) {
            left.error += of_node[j * BINS + b].error;
            left.count += of_node[j * BINS + b].count;
            const bin right = {all.error - left.error, all.count - left.count};
            double worth = worth_of(left) + worth_of(right) - worth_of(all);
            if (left.count >= LEAST_SAMPLES && right.count >= LEAST_SAMPLES && worth > most) {
                most = worth;
                t->tests[node] = (uint8_t)j;
                t->bins[node] = (uint8_t)b;
                t->bounds[node] = g->bounds[j][b];
            }
        }
    }
}

static void fill_leaves(grower *g, double part, tree *t)
{
    bin leaves[GRAFT_TREE_LEAVES] = {{0}};
    for (uint32_t i = 0; i < g->count; i++) {
        bin *leaf = &leaves[g->places[i] - GRAFT_TREE_TESTS];
        leaf->error += g->kept[i] ? g->errors[i] : 0;
        leaf->count += g->kept[i];
    }
    for (uint32_t k = 0; k < GRAFT_TREE_LEAVES; k++) {
        double value =
            part / g->forests * (double)leaves[k].error / ((double)leaves[k].count + shrinking);
        t->leaves[k] = (int16_t)lrint(fmax(-INT16_MAX, fmin(value, INT16_MAX)));
    }
    for (uint32_t i = 0; i < g->count; i++) {
        g->errors[i] -= (int32_t)g->forests * t->leaves[g->places[i] - GRAFT_TREE_TESTS];
    }
}

static void grow_tree(grower *g, double part, tree *t)
{
    memset(g->places, 0, g->count);
    for (uint32_t first = 0, nodes = 1; first < GRAFT_TREE_TESTS; first += nodes, nodes *= 2) {
        count_level(g, first, nodes);
        for (uint32_t k = 0; k < nodes; k++) {
            choose_test(g, &g->histogram[(size_t)k * INPUTS * BINS], first + k, t);
        }
        for (uint32_t i = 0; i < g->count; i++) {
            uint32_t node = g->places[i];
            bool right = g->bins[(size_t)i * INPUTS + t->tests[node]] > t->bins[node];
            g->places[i] = (uint8_t)(2 * node + 1 + right);
        }
    }
    fill_leaves(g, part, t);
}

/* ---------------------------------------------------------------- all */

/* Whether a forest sees a sample: equal inputs are seen together. */
static bool is_kept(const graft_tariff_sample *sample, uint32_t forest)
{
    return XXH3_64bits_withSeed(sample->inputs, INPUTS * sizeof sample->inputs[0], forest) % 100 <
           KEPT;
}

static void open_forest(grower *g, const graft_tariff *tariff, uint32_t forest)
{
    for (uint32_t i = 0; i < g->count; i++) {
        g->kept[i] = is_kept(&g->samples[i], forest);
        g->errors[i] = g->samples[i].value - graft_tariff_base(tariff, g->samples[i].inputs);
    }
    graft_rng_derive(&g->rng, SEED, forest);
}

void graft_tariff_grow(graft_env *env, graft_arena *arena, const graft_tariff_sample *samples,
                       uint32_t sample_count, uint32_t tree_count, graft_tariff *tariff)
{
    const uint32_t forests = tree_count < FORESTS ? tree_count & ~1u : FORESTS;
    const uint32_t grown = sample_count > 0 && forests > 0 ? tree_count / forests * forests : 0;
    uint8_t *tests = GRAFT_NEW(arena, uint8_t, (size_t)grown * GRAFT_TREE_TESTS);
    int16_t *bounds = GRAFT_NEW(arena, int16_t, (size_t)grown * GRAFT_TREE_TESTS);
    int16_t *leaves = GRAFT_NEW(arena, int16_t, (size_t)grown * GRAFT_TREE_LEAVES);
    GRAFT_SCOPED(env->scratch);
    grower g = {.samples = samples,
                .count = sample_count,
                .forests = forests,
                .bounds = graft_arena_array(env->scratch, INPUTS, sizeof *g.bounds),
                .bound_counts = GRAFT_NEW(env->scratch, uint32_t, INPUTS),
                .bins = GRAFT_NEW(env->scratch, uint8_t, (size_t)sample_count * INPUTS),
                .kept = GRAFT_NEW(env->scratch, bool, sample_count),
                .errors = GRAFT_NEW(env->scratch, int32_t, sample_count),
                .places = GRAFT_NEW(env->scratch, uint8_t, sample_count),
                .histogram =
                    GRAFT_NEW(env->scratch, bin, (size_t)GRAFT_TREE_LEAVES / 2 * INPUTS * BINS)};
    graft_tariff_fit_roofs(env, samples, sample_count, tariff);
    sort_into_bins(env->scratch, &g);
    for (uint32_t forest = 0; forest < forests && grown > 0; forest++) {
        open_forest(&g, tariff, forest);
        for (uint32_t k = forest; k < grown; k += forests) {
            tree t;
            grow_tree(&g, k == forest ? 1.0 : rate, &t);
            memcpy(&tests[(size_t)k * GRAFT_TREE_TESTS], t.tests, sizeof t.tests);
            memcpy(&bounds[(size_t)k * GRAFT_TREE_TESTS], t.bounds, sizeof t.bounds);
            memcpy(&leaves[(size_t)k * GRAFT_TREE_LEAVES], t.leaves, sizeof t.leaves);
        }
    }
    tariff->tests = tests;
    tariff->bounds = bounds;
    tariff->leaves = leaves;
    tariff->tree_count = (uint16_t)grown;
}
