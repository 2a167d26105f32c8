/* bundles.h - search by whole models, on a device that times them.
 *
 * What one rewrite gains is mostly less than the noise of a whole model, and the sum of operators'
 * costs may promise what a runtime does not keep. So the steps here are bundles: what a search by
 * costs found, as a whole and its first parts, each rule applied everywhere, and all that are the
 * device's own. Each turn prices the bundles that fit the graph, times those that promise most in
 * turns with it, and confirms the best of them by times of its own, since the best of many noisy
 * ones looks better than it is. A bundle that is faster by more than noise
 * (graft_comparison_is_gain) is taken, and the next turn goes on from there. What is not confirmed
 * is left out. */
#pragma once

#include "emit/command/session.h"
#include "train/search/search.h"

/* Replaces a plan, of the session's environment, by what is confirmed; without steps nothing is.
 * The new plan is in env->life, and its graph the environment's state. The device times models
 * (graft_device_times_models); when it fails at it, the plan stays as it is and the log says so.
 * GRAFT_INTERRUPTED when the user asked to stop; otherwise fails as writing and prices do. */
GRAFT_MUST_USE graft_status graft_bundles_search(graft_env *env, graft_session *session,
                                                 graft_plan_found *found);
