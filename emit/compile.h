/* compile.h - from a trained agent to the policy that ships: replay recorded episodes, quantise on
 * their states, pack the rules. And: what that policy does to a graph. */
#ifndef GRAFT_EMIT_COMPILE_H
#define GRAFT_EMIT_COMPILE_H

#include "emit/results.h"
#include "emit/session.h"
#include "train/agent.h"

/* The integer policy of a trained agent's best controller, in env->life, without plans. */
GRAFT_MUST_USE graft_status graft_policy_compile(graft_env *env, const graft_session *session,
                                                 const graft_agent *agent, graft_policy *policy);
/* The same with random weights from `seed` in encoder and controller: the control of every table.
 * `agent` lends the recorded states. */
GRAFT_MUST_USE graft_status graft_policy_random(graft_env *env, const graft_session *session,
                                                const graft_agent *agent, uint64_t seed,
                                                graft_policy *policy);

/* What of the engine's loop is switched on. */
typedef struct graft_policy_run {
    const char *method;
    const char *how;
    bool use_plans;
    bool simplify;
    bool guard;
} graft_policy_run;

/* Runs graft_optimize on the session's graph and adds a row. */
GRAFT_MUST_USE graft_status graft_policy_evaluate(graft_env *env, graft_session *session,
                                                  const graft_policy *policy,
                                                  const graft_policy_run *run,
                                                  graft_results *results);

#endif
