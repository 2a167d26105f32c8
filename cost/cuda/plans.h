/* plans.h - operation graphs with what cuDNN proposes for them and the plans made so far, shared by
 * all kernels of a device.
 *
 * Planning takes cuDNN up to seconds, and executors open the same product again and again: a graph
 * is known by its family and signature, and kept for a while when no kernel uses it any more. Plans
 * may be made by several threads at once, each with a target of its own. */
#pragma once

#include "cost/cuda/cudnn_graph.h"
#include "graph/base/lock.h"

typedef struct cuda_recipe {
    struct cuda_recipe *next;
    struct cuda_cache *cache; /* That it is in. */
    char *key;
    cudnn_graph graph;
    pthread_mutex_t lock; /* Of what follows, but for the last two. */
    bool is_asked;
    cudnn_offers offers;
    uint32_t user_count;
    uint64_t used; /* By the clock of the cache. */
} cuda_recipe;

typedef struct cuda_cache {
    pthread_mutex_t lock;
    cuda_recipe *recipes;
    uint64_t clock;
    uint64_t asked_count; /* Graphs that cuDNN was asked about, and plans made: for tests. */
    uint64_t planned_count;
} cuda_cache;

void cuda_cache_open(cuda_cache *cache);
void cuda_cache_close(cuda_cache *cache); /* No recipe is in use. */

/* The recipe of `key`; the graph becomes its own when it is new, and is closed when not. */
graft_status cuda_recipe_obtain(graft_env *env, cuda_cache *cache, const char *key,
                                cudnn_graph *graph, cuda_recipe **recipe);
void cuda_recipe_release(cuda_recipe *recipe); /* NULL is allowed. */

/* The tags of at most `most` engines, at least one of them (where there is one) being a fallback.
 */
graft_status cuda_recipe_tags(graft_env *env, cuda_recipe *recipe, const cudnn_target *target,
                              uint32_t most, cudnn_tag *tags, uint32_t *count);

/* The plan of the engine `tag` (NULL: the first that works), which stays the recipe's.
 * GRAFT_UNSUPPORTED without a message when cuDNN cannot run it or proposes it no more. */
graft_status cuda_recipe_plan(graft_env *env, cuda_recipe *recipe, const cudnn_target *target,
                              const char *tag, cudnnBackendDescriptor_t *plan,
                              size_t *workspace_bytes);
