/* ground.c - see ground.h. */
#include "emit/command/ground.h"

graft_status graft_ground_open(graft_env *env, graft_session *session, const graft_tariff *tariff,
                               graft_ground *ground)
{
    graft_environment *real = &session->environment;
    const graft_scene_options scenes = graft_candidates_scenes(&session->settings);
    graft_environment_options options = real->options;
    ground->session = session;
    GRAFT_PASS(graft_estimating_open(env, env->life, tariff, &real->state.graph.limits,
                                     &ground->estimating));
    options.price = graft_estimating_price(&ground->estimating);
    GRAFT_PASS(graft_environment_open(env, env->life, &real->first.graph, real->xfers, &options,
                                      &ground->engine));
    GRAFT_PASS(graft_observer_open(env, env->life, real, tariff, &scenes, &ground->by_price));
    return graft_observer_open(env, env->life, &ground->engine, tariff, &scenes,
                               &ground->by_estimate);
}
