/* agent_checkpoint.c - an agent on disk: networks, fixed scales, progress, and the actions of the
 * episodes that the controller played. */
#include "train/agent_internal.h"

#include "graph/file.h"
#include "graph/log.h"
#include "train/checkpoint.h"

#include <string.h>

enum { SET_COUNT = 5, REALS_COUNT = 5, COUNTERS_COUNT = 3 };

typedef struct parts {
    graft_parameters *sets[SET_COUNT];
    graft_reals reals[REALS_COUNT];
    graft_counters counters[COUNTERS_COUNT];
    uint64_t action_count;
} parts;

static graft_checkpoint describe(graft_agent *agent, parts *p)
{
    agent->best.parameters.name = "best";
    *p = (parts){
        .sets = {&agent->encoder.parameters,                                     &agent->grounding.parameters, &agent->world.parameters,
                 &agent->controller.parameters,               &agent->best.parameters},
        .reals = {{"mean", agent->standardiser.mean, agent->standardiser.latent},
                 {"scale", agent->standardiser.scale, agent->standardiser.latent},
                 {"world", agent->world.constants,
                   graft_world_model_constant_count(&agent->world)},
                 {"value", agent->controller.value_scale, 1},
                 {"best value", agent->best.value_scale, 1}                          },
        .action_count = agent->action_count,
    };
    p->counters[0] = (graft_counters){"progress", (uint64_t *)&agent->progress,
                                      sizeof agent->progress / sizeof(uint64_t)};
    p->counters[1] = (graft_counters){"action count", &p->action_count, 1};
    p->counters[2] = (graft_counters){"actions", agent->actions, agent->action_capacity};
    return (graft_checkpoint){.sets = p->sets,
                              .reals = p->reals,
                              .counters = p->counters,
                              .set_count = SET_COUNT,
                              .reals_count = REALS_COUNT,
                              .counters_count = COUNTERS_COUNT};
}

graft_status graft_agent_save(graft_env *env, graft_agent *agent, const char *path)
{
    parts p;
    graft_checkpoint checkpoint = describe(agent, &p);
    return graft_checkpoint_save(env, path, &checkpoint);
}

void graft_agent_load(graft_env *env, graft_agent *agent, const char *path, bool *found)
{
    parts p;
    uint64_t identity = agent->progress.identity;
    graft_agent_progress fresh = agent->progress;
    graft_checkpoint checkpoint = describe(agent, &p);
    *found = false;
    if (!graft_file_exists(path)) {
        return;
    }
    if (graft_checkpoint_load(env, path, &checkpoint) != GRAFT_OK) {
        graft_log(env, 1, "the checkpoint is of another run and is replaced (%s)", env->message);
        graft_env_clear(env);
        return;
    }
    if (agent->progress.identity != identity) {
        graft_log(env, 1, "%s: of another model, rule set or settings; training starts anew", path);
        agent->progress = fresh;
        return;
    }
    agent->action_count = (uint32_t)p.action_count;
    *found = true;
}
