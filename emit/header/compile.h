/* compile.h - from a trained agent to the policy that ships: play, quantise on the scenes met, pack
 * the rules. And: what a policy does to a graph. */
#pragma once

#include "emit/command/session.h"
#include "emit/report/results.h"
#include "train/agent/candidates.h"

/* The integer policy of an agent over the rules of its observers, which are the same for all, and
 * their tariff; in env->life, without plans and metadata. The networks' ranges are those of a few
 * episodes with each observer: give those that ask for no price. Fails as playing does, and as
 * graft_quantise and graft_policy_pack_rules. */
GRAFT_MUST_USE graft_status graft_policy_compile(graft_env *env, graft_candidates *agent,
                                                 graft_observer *const observers[], uint32_t count,
                                                 graft_policy *policy);

/* Integer beside float decisions, over the graphs of an episode of the float network's. A choice
 * beyond the environment's limit on locations, which a header does not have, counts as another. */
typedef struct graft_agreement {
    uint32_t decisions;
    uint32_t same; /* Of those: the same choice, or one that the float network finds as good. */
    double margin_lost; /* Largest float logit given up by another choice. */
} graft_agreement;

/* Adds an episode with `observer` to `agreement`. Fails as playing does, and as
 * graft_policy_scores. */
GRAFT_MUST_USE graft_status graft_agreement_measure(graft_env *env, graft_candidates *agent,
                                                    graft_observer *observer,
                                                    const graft_policy *policy,
                                                    graft_agreement *agreement);

/* What of the engine's loop is switched on. */
typedef struct graft_policy_run {
    const char *method;
    const char *how;
    bool use_plans;
    bool simplify;
    bool guard;
} graft_policy_run;

/* Runs graft_optimize on the session's graph and adds a row. What came out is then the state of the
 * session's environment, until that is reset. */
GRAFT_MUST_USE graft_status graft_policy_evaluate(graft_env *env, graft_session *session,
                                                  const graft_policy *policy,
                                                  const graft_policy_run *run,
                                                  graft_results *results);
