/* priced.h - the committed rules, as environments and searches take them, and models whose rewrites
 * have recorded prices. */
#pragma once

#include "cost/cost.h"
#include "graph/model.h"
#include "train/search/environment.h"

/* All rules of rules/graft.rules with their names, in env->life; asserts that they can be read. */
graft_xfers proved_xfers(graft_env *env);

typedef struct priced_model {
    graft_env *env;
    graft_cost *cost;
    graft_model *model;
    graft_xfers xfers;
    graft_environment environment;
    uint64_t asked;   /* Graphs that were priced. */
    uint32_t leveled; /* Costs that have the time of their twins: see graft_cost_level. */
} priced_model;

typedef struct priced_options {
    const char *device; /* NULL: an Intel Xeon with AVX-512. */
    uint32_t step_limit;
    bool level;
} priced_options;

/* A model of the zoo with all proved rules, in env->life, closed when the case ends. */
priced_model *priced_open(graft_env *env, const char *name, const priced_options *options);
