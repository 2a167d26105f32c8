/* ground.h - where an agent that scores candidates plays: a session's environment, whose prices are
 * those of its costs, and the same by the tariff's estimates, which ask for no price. */
#pragma once

#include "emit/command/session.h"
#include "train/agent/candidates.h"

typedef struct graft_ground {
    graft_session *session;
    graft_environment engine;
    graft_estimating estimating;
    graft_observer by_price;
    graft_observer by_estimate;
} graft_ground;

/* In env->life; session and tariff are kept. Fails as environments and observers do. */
GRAFT_MUST_USE graft_status graft_ground_open(graft_env *env, graft_session *session,
                                              const graft_tariff *tariff, graft_ground *ground);
