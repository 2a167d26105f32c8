/* dreamt.h - a model's policy by an agent that is trained in dreams (train/agent/dreamer.h): what
 * it learns is added to what a table of costs says, and ships as the header's network. */
#pragma once

#include "emit/header/compile.h"
#include "train/agent/dreamer.h"

/* Where an agent that scores candidates plays: a session's environment, whose prices are those of
 * its costs, and the same by the tariff's estimates, which ask for no price. */
typedef struct graft_ground {
    graft_session *session;
    graft_environment engine;
    graft_estimator estimator;
    graft_observer by_price;
    graft_observer by_estimate;
} graft_ground;

/* In env->life; session and tariff are kept. Fails as environments and observers do. */
GRAFT_MUST_USE graft_status graft_ground_open(graft_env *env, graft_session *session,
                                              const graft_tariff *tariff, graft_ground *ground);

typedef struct graft_dreamt_policy {
    graft_policy policy;
    graft_foresight_report report; /* Whether the dream is faithful. */
    graft_agreement agreement;     /* Of integers and floats on the model's graphs. */
    uint64_t interactions;         /* Steps in the real environment. */
    uint64_t dream_steps;
    double world_seconds;
    double dream_seconds;
    const float *curve; /* (updates + 1, 2): percent saved in dreams and in the last trial. */
    uint32_t updates;
} graft_dreamt_policy;

/* Trains on the session's model, whose rewards are prices, and compiles the policy; in env->life.
 * The session and the tariff, whose policy the agent begins as, are kept. `path` is the
 * checkpoint's, and may be NULL. Fails as training does, GRAFT_INTERRUPTED among them, and as
 * graft_policy_compile. */
GRAFT_MUST_USE graft_status graft_dreamt_make(graft_env *env, graft_session *session,
                                              const graft_tariff *tariff, const char *path,
                                              graft_dreamt_policy *dreamt);
/* What is known of the training, as a JSON object on one line; in env->life. */
const char *graft_dreamt_line(graft_env *env, const graft_dreamt_policy *dreamt);
