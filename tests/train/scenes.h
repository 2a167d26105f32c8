/* scenes.h - a small model with recorded costs, a tariff of its walks, and what an agent that
 * scores candidates sees of it. */
#pragma once

#include "models/zoo.h"
#include "tests/support/build.h"
#include "tests/support/priced.h"
#include "train/agent/candidates.h"
#include "train/tariff/tariff_search.h"

/* Small, and quick to learn. */
static const graft_agent_settings small = {
    .candidates_hidden = 8,
    .candidates_latent = 8,
    .candidates_rounds = 2,
    .candidates_width = 8,
    .candidates_limit = 40,
    .candidates_alike = 3,
    .candidates_sharpness = 1.0,
    .candidates_reserve = 3.0,
    .candidates_hide = 0.25,
    .candidates_episodes = 4,
    .candidates_imitate = 1,
    .candidates_transitions = 64,
    .candidates_minibatch = 16,
    .candidates_epochs = 3,
    .candidates_learning_rate = 0.01,
    .candidates_discount = 0.99,
    .candidates_lambda = 0.95,
    .candidates_clip = 0.2,
    .candidates_kl = 0.2,
    .candidates_entropy = 0.003,
    .candidates_reward_scale = 0.1,
    .foresight_hidden = 12,
    .foresight_pair = 8,
    .foresight_components = 2,
    .foresight_episodes = 6,
    .foresight_held_out = 2,
    .foresight_updates = 150,
    .foresight_learning_rate = 0.01,
    .foresight_temperature = 1.0,
    .foresight_horizon = 30,
    .foresight_dreams = 4,
    .foresight_dream_updates = 4,
    .foresight_trial_every = 1,
};

typedef struct {
    priced_model *by_prices;
    graft_environment engine; /* By estimates. */
    graft_estimator estimating;
    graft_observer observer;
    graft_tariff tariff;
} fixture;

/* A tariff of what random walks meet; what they did not is guessed: it does not cost nothing. */
static inline void make_tariff(fixture *f)
{
    graft_book book;
    const graft_tariff_options options = {.models = 1, .rows = true, .trees = 40};
    const graft_walk walk = {
        .kind = GRAFT_WALK_RANDOM, .steps_most = 60, .contexts_most = 100, .beside_most = 6};
    priced_model *p = f->by_prices;
    graft_book_open(p->env->life, &book);
    CHECK_OK(graft_tariff_walk(p->env, &p->environment, p->cost, &book, &walk));
    CHECK_OK(graft_tariff_make(p->env, p->env->life, &book, &options, &f->tariff));
}

static inline void open_engine(fixture *f, const graft_xfers *xfers, graft_price price,
                               graft_environment *engine, graft_observer *observer)
{
    const graft_scene_options scenes = graft_candidates_scenes(&small);
    graft_env *env = f->by_prices->env;
    graft_environment_options options = f->by_prices->environment.options;
    options.price = price;
    CHECK_OK(graft_environment_open(env, env->life, &f->by_prices->model->graph, xfers, &options,
                                    engine));
    CHECK_OK(graft_observer_open(env, env->life, engine, &f->tariff, &scenes, observer));
}

static inline fixture *open_fixture(graft_env *env, const char *name)
{
    fixture *f = GRAFT_NEW(env->life, fixture, 1);
    f->by_prices = priced_open(env, name, &(priced_options){.step_limit = 60});
    make_tariff(f);
    CHECK_OK(graft_estimator_make(env, env->life, &f->tariff,
                                  &f->by_prices->environment.state.graph.limits, &f->estimating));
    open_engine(f, &f->by_prices->xfers, graft_estimator_price(&f->estimating), &f->engine,
                &f->observer);
    return f;
}

static inline void close_agent(void *agent) { graft_candidates_close(agent); }

static inline graft_candidates *open_agent(graft_env *env, uint64_t seed, uint32_t threads)
{
    graft_candidates *agent = GRAFT_NEW(env->life, graft_candidates, 1);
    graft_candidates_open(env->life, &small, seed, threads, agent);
    check_at_end(close_agent, agent);
    return agent;
}

/* The weights of the score start at zero; a test of what lies behind needs others. */
static inline void stir(graft_candidates *agent)
{
    const graft_parameters *set = &agent->scorer.parameters;
    float *weights = graft_parameters_value(set, agent->scorer.score.weight);
    for (uint32_t i = 0; i < agent->scorer.size.width; i++) {
        weights[i] = 0.5F - 0.3F * (float)(i % 4);
    }
}
