/* plans.c - the cache of operation graphs, engines and plans (see plans.h). */
#include "cost/cuda/plans.h"

#include <stdlib.h>
#include <string.h>

/* Recipes that nobody uses: a search comes back to most signatures of a model. */
enum { IDLE_MOST = 128 };

void cuda_cache_open(cuda_cache *cache)
{
    memset(cache, 0, sizeof(*cache));
    (void)pthread_mutex_init(&cache->lock, NULL);
}

static void close_recipe(cuda_recipe *recipe)
{
    cudnn_offers_close(&recipe->offers);
    cudnn_graph_close(&recipe->graph);
    (void)pthread_mutex_destroy(&recipe->lock);
    free(recipe->key);
    free(recipe);
}

void cuda_cache_close(cuda_cache *cache)
{
    while (cache->recipes != NULL) {
        cuda_recipe *recipe = cache->recipes;
        cache->recipes = recipe->next;
        close_recipe(recipe);
    }
    (void)pthread_mutex_destroy(&cache->lock);
}

/* ------------------------------------------------------------------ recipes */

static cuda_recipe *find_recipe(cuda_cache *cache, const char *key)
{
    cuda_recipe *recipe = cache->recipes;
    while (recipe != NULL && strcmp(recipe->key, key) != 0) {
        recipe = recipe->next;
    }
    return recipe;
}

static cuda_recipe *make_recipe(const char *key, const cudnn_graph *graph)
{
    cuda_recipe *recipe = calloc(1, sizeof(*recipe));
    char *copy = recipe == NULL ? NULL : strdup(key);
    if (copy == NULL) {
        free(recipe);
        return NULL;
    }
    recipe->key = copy;
    recipe->graph = *graph;
    recipe->graph.subject = copy;
    (void)pthread_mutex_init(&recipe->lock, NULL);
    return recipe;
}

/* Those that were not used for longest go, as far as there are too many. */
static void drop_idle(cuda_cache *cache)
{
    cuda_recipe **oldest = NULL;
    uint32_t idle = 0;
    for (cuda_recipe **link = &cache->recipes; *link != NULL; link = &(*link)->next) {
        if ((*link)->user_count == 0) {
            idle++;
            oldest = oldest == NULL || (*link)->used < (*oldest)->used ? link : oldest;
        }
    }
    if (idle > IDLE_MOST) {
        cuda_recipe *recipe = *oldest;
        *oldest = recipe->next;
        close_recipe(recipe);
    }
}

graft_status cuda_recipe_obtain(graft_env *env, cuda_cache *cache, const char *key,
                                cudnn_graph *graph, cuda_recipe **recipe)
{
    GRAFT_LOCKED(&cache->lock);
    cuda_recipe *found = find_recipe(cache, key);
    if (found != NULL) {
        cudnn_graph_close(graph);
    } else {
        found = make_recipe(key, graph);
        if (found == NULL) {
            return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a plan");
        }
        found->cache = cache;
        found->next = cache->recipes;
        cache->recipes = found;
    }
    found->user_count++;
    found->used = ++cache->clock;
    *recipe = found;
    return GRAFT_OK;
}

void cuda_recipe_release(cuda_recipe *recipe)
{
    if (recipe == NULL) {
        return;
    }
    cuda_cache *cache = recipe->cache;
    GRAFT_LOCKED(&cache->lock);
    recipe->user_count--;
    drop_idle(cache);
}

/* ------------------------------------------------------------------ engines */

static void count_up(cuda_cache *cache, uint64_t *count)
{
    GRAFT_LOCKED(&cache->lock);
    (*count)++;
}

/* With the recipe's lock. Messages go to the environment of the thread that asks. */
static graft_status ask(graft_env *env, cuda_recipe *recipe, const cudnn_target *target)
{
    graft_status status = GRAFT_OK;
    recipe->graph.env = env;
    if (!recipe->is_asked) {
        count_up(recipe->cache, &recipe->cache->asked_count);
        status = cudnn_offers_ask(&recipe->graph, target, &recipe->offers);
        recipe->is_asked = status == GRAFT_OK;
    }
    return status;
}

graft_status cuda_recipe_tags(graft_env *env, cuda_recipe *recipe, const cudnn_target *target,
                              uint32_t most, cudnn_tag *tags, uint32_t *count)
{
    *count = 0;
    GRAFT_LOCKED(&recipe->lock);
    graft_status status = ask(env, recipe, target);
    for (uint32_t i = 0; i < recipe->offers.count && *count < most; i++) {
        const cudnn_offer *offer = &recipe->offers.list[i];
        bool is_room_for_fallback = most > 1 && *count + 1 == most && !offer->is_fallback;
        if (!is_room_for_fallback) {
            tags[(*count)++] = offer->tag;
        }
    }
    return status;
}

graft_status cuda_recipe_plan(graft_env *env, cuda_recipe *recipe, const cudnn_target *target,
                              const char *tag, cudnnBackendDescriptor_t *plan,
                              size_t *workspace_bytes)
{
    GRAFT_LOCKED(&recipe->lock);
    GRAFT_PASS(ask(env, recipe, target));
    for (uint32_t i = 0; i < recipe->offers.count; i++) {
        cudnn_offer *offer = &recipe->offers.list[i];
        if (tag != NULL && strcmp(tag, offer->tag.text) != 0) {
            continue;
        }
        if (!offer->is_tried) {
            count_up(recipe->cache, &recipe->cache->planned_count);
        }
        graft_status status = cudnn_offer_plan(&recipe->graph, target, offer);
        if (status == GRAFT_OK) {
            *plan = offer->plan;
            *workspace_bytes = offer->workspace_bytes;
        }
        if (status != GRAFT_UNSUPPORTED || tag != NULL) { /* Else the next one. */
            return status;
        }
    }
    return GRAFT_UNSUPPORTED;
}
