/* known_price.c - see known_price.h. */
#include "emit/command/known_price.h"

/* What a graph that is refused costs more, in first graphs. */
static const double refusal = 100.0;

static graft_status price_known(graft_env *env, void *context, const graft_graph *graph,
                                const graft_order *order, double *ns)
{
    const graft_known_price *price = context;
    graft_cost_total total;
    GRAFT_PASS(graft_cost_graph(env, price->session->cost, graph, order, &total));
    *ns = total.ns;
    if (total.estimated_count > price->first_estimates) {
        *ns += refusal * price->session->environment.first_ns;
    }
    return GRAFT_OK;
}

graft_status graft_known_price_count(graft_env *env, graft_session *session,
                                     const graft_state *state, double *ns, uint32_t *estimates)
{
    graft_cost_total total;
    graft_status status =
        graft_cost_graph(env, session->cost, &state->graph, &state->order, &total);
    if (status == GRAFT_OK) {
        *ns = total.ns;
        *estimates = total.estimated_count;
    }
    return status;
}

graft_status graft_known_price_set(graft_env *env, graft_session *session, graft_known_price *price)
{
    graft_environment *environment = &session->environment;
    double ns = 0.0;
    price->session = session;
    GRAFT_PASS(
        graft_known_price_count(env, session, &environment->first, &ns, &price->first_estimates));
    environment->options.price = (graft_price){.cost_ns = price_known, .context = price};
    return graft_environment_reprice(env, environment);
}
