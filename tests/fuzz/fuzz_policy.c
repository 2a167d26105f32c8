/* Policy files from hostile bytes: reading refuses them, or gives a policy that the engine can run:
 * it rewrites a small graph within its promises, or refuses layers that do not fit together. */
#include "graph/rule/policyfile.h"
#include "tests/support/random_graph.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MOST = 8 };

static void run(graft_env *env, const graft_policy *policy)
{
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    const random_graph_options options = {NULL, 0, 6, 1};
    const graft_optimize_options limits = {.weight_bytes_limit = UINT64_MAX,
                                           .step_limit = STEPS_MOST,
                                           .simplify = true,
                                           .guard = true};
    graft_graph *graph = random_graph_draw(env->unit, &rng, &options);
    size_t bytes = graft_optimize_workspace_bytes(policy, &graph->limits, STEPS_MOST);
    graft_report report = {.decisions = NULL};
    graft_status status =
        graft_optimize(graph, policy, &limits, graft_arena_alloc(env->unit, bytes), bytes, &report);
    assert(status == GRAFT_OK || status == GRAFT_BAD_INPUT || status == GRAFT_CAPACITY);
    (void)status;
    size_t order_bytes = graft_order_bytes(&graph->limits);
    assert(graft_graph_check(graph, graft_arena_alloc(env->unit, order_bytes), order_bytes) ==
           NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    graft_env env;
    graft_policy policy;
    if (graft_env_open(&env) != GRAFT_OK) {
        return 0;
    }
    if (graft_policyfile_decode(&env, env.life, (graft_bytes){"fuzz", data, size}, &policy) ==
        GRAFT_OK) {
        run(&env, &policy);
    }
    graft_env_close(&env);
    return 0;
}
