/* survey.h - which rules of a large set can matter to a model at all.
 *
 * A rule set is made for every model; most of its rules never find a place in one of them. Random
 * walks through the rewrites of a graph, without prices, tell which rules do: an agent then has
 * tens of choices instead of hundreds, and the header carries no rule that cannot fit. A rule that
 * no walk met is lost to that policy; the walks are long and many, and cost a millisecond a step.
 */
#pragma once

#include "cost/device/device.h"
#include "train/search/environment.h"

typedef struct graft_survey {
    uint32_t episodes; /* Half of them uniform over rules, half with a taste of their own. */
    double preference; /* Spread of that taste. */
    uint64_t seed;
} graft_survey;

typedef struct graft_survey_result {
    bool *met; /* (xfers->count), the caller's: set for every rule that had a location in some graph
                */
    uint64_t step_count;
} graft_survey_result;

/* Fails as the environment does; GRAFT_INTERRUPTED. */
GRAFT_MUST_USE graft_status graft_survey_run(graft_env *env, const graft_graph *graph,
                                             const graft_xfers *xfers,
                                             const graft_environment_options *options,
                                             const graft_survey *survey,
                                             graft_survey_result *result);

/* Whether the device has a primitive for every operator that the rule creates. Attributes that a
 * match decides are taken as 0. */
bool graft_survey_suits(const graft_device *device, const graft_rule *rule);
