/* priced.c - see priced.h. */
#include "tests/support/priced.h"

#include "models/zoo.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"
#include "tests/support/rows.h"

graft_xfers proved_xfers(graft_env *env)
{
    const graft_ruleset set = rows_committed(env);
    graft_xfers xfers;
    graft_rule *rules = GRAFT_NEW(env->life, graft_rule, set.count);
    const char **names = GRAFT_NEW(env->life, const char *, set.count);
    for (uint32_t i = 0; i < set.count; i++) {
        rules[i] = set.entries[i].rule;
        names[i] = set.entries[i].name;
    }
    graft_xfers_index(env->life, rules, names, set.count, &xfers);
    return xfers;
}

static graft_status price_graph(graft_env *env, void *context, const graft_graph *graph,
                                const graft_order *order, double *ns)
{
    priced_model *p = context;
    p->asked++;
    return graft_cost_price(env, p->cost, graph, order, ns);
}

priced_model *priced_open(graft_env *env, const char *name, const priced_options *options)
{
    priced_model *p = GRAFT_NEW(env->life, priced_model, 1);
    const char *device = options->device == NULL ? "intel-xeon-6-207-avx512" : options->device;
    const graft_environment_options environment = {
        .price = {.cost_ns = price_graph, .context = p},
        .location_limit = 200,
        .step_limit = options->step_limit,
        .apply.weight_bytes_limit = UINT64_C(1) << 30,
    };
    p->env = env;
    p->cost = check_cost_open(env, check_device_named(env, device, 1), NULL);
    if (options->level) {
        CHECK_OK(graft_cost_level(env, p->cost, &p->leveled));
    }
    CHECK_OK(graft_model_open(env, env->life, name, NULL, &p->model));
    p->xfers = proved_xfers(env);
    CHECK_OK(graft_environment_open(env, env->life, &p->model->graph, &p->xfers, &environment,
                                    &p->environment));
    return p;
}
