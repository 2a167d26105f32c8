/* agent_data.c - the recorded episodes of an agent: by the data agent, by the controller, and
 * replayed from a checkpoint. */
#include "train/agent_internal.h"

#include "graph/log.h"

#include <string.h>

/* Streams of random numbers for episodes: random ones count from here, the controller's follow. */
#define STREAM_EPISODES (UINT64_C(1) << 32)

static graft_episode *next_episode(graft_agent *agent)
{
    return agent->episode_count < GRAFT_AGENT_EPISODES_MOST ? &agent->episodes[agent->episode_count]
                                                            : NULL;
}

static graft_status play(graft_env *env, graft_arena *arena, graft_agent *agent,
                         graft_environment *environment, const graft_chooser *chooser,
                         graft_rng *rng)
{
    graft_status status = GRAFT_OK;
    graft_episode *episode = next_episode(agent);
    if (episode == NULL) {
        return GRAFT_FAIL(env, GRAFT_CAPACITY, "more than %d episodes", GRAFT_AGENT_EPISODES_MOST);
    }
    GRAFT_CHECK(graft_episode_record(env, arena, environment, chooser, rng, episode));
    agent->episode_count++;
done:
    return status;
}

graft_status graft_agent_record_random(graft_env *env, graft_arena *arena, graft_agent *agent,
                                       graft_environment *environment)
{
    graft_status status = GRAFT_OK;
    const graft_agent_settings *settings = agent->settings;
    graft_data_agent data;
    graft_progress progress;
    graft_data_agent_open(arena, agent->xfers, settings->data_noop, settings->data_preference,
                          &data);
    data.eagerness = settings->data_eagerness;
    graft_chooser chooser = graft_data_agent_chooser(&data);
    graft_progress_start(&progress, env, "record episodes", "episodes",
                         (uint64_t)settings->data_random_episodes);
    for (int64_t e = 0; e < settings->data_random_episodes; e++) {
        graft_rng rng;
        graft_rng_derive(&rng, (uint64_t)settings->environment_seed,
                         STREAM_EPISODES + agent->episode_count);
        graft_data_agent_draw(&data, &rng);
        GRAFT_CHECK(play(env, arena, agent, environment, &chooser, &rng));
        graft_data_agent_learn(&data, &agent->episodes[agent->episode_count - 1]);
        graft_progress_update(&progress, (uint64_t)e + 1, NULL);
        if (graft_interrupted()) {
            status = GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while recording episodes");
            goto done;
        }
    }
    graft_progress_finish(&progress);
done:
    return status;
}

/* Notes an episode's actions: its length, then one number per action. */
static void note_actions(graft_agent *agent, const graft_episode *episode)
{
    agent->actions[agent->action_count++] = episode->step_count;
    for (uint32_t i = 0; i < episode->step_count; i++) {
        agent->actions[agent->action_count++] =
            (uint64_t)episode->xfers[i] << 16 | episode->locations[i];
    }
}

graft_status graft_agent_record_policy(graft_env *env, graft_arena *arena, graft_agent *agent,
                                       graft_environment *environment)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->unit);
    graft_chooser chooser = graft_agent_chooser(env->unit, agent, &agent->controller, true);
    for (int64_t e = 0; e < agent->settings->data_policy_episodes; e++) {
        graft_rng rng;
        graft_rng_derive(&rng, (uint64_t)agent->settings->environment_seed,
                         STREAM_EPISODES + agent->episode_count);
        GRAFT_CHECK(play(env, arena, agent, environment, &chooser, &rng));
        note_actions(agent, &agent->episodes[agent->episode_count - 1]);
    }
done:
    graft_arena_release(env->unit, mark);
    return status;
}

typedef struct replay {
    const uint64_t *actions;
    uint32_t next;
} replay;

static graft_status choose_noted(graft_env *env, void *context,
                                 const graft_environment *environment,
                                 const graft_snapshot *snapshot, graft_rng *rng,
                                 graft_action *action)
{
    (void)env;
    (void)environment;
    (void)snapshot;
    (void)rng;
    replay *r = context;
    uint64_t noted = r->actions[r->next++];
    *action = (graft_action){.xfer = (uint16_t)(noted >> 16), .location = (uint16_t)noted};
    return GRAFT_OK;
}

graft_status graft_agent_replay(graft_env *env, graft_arena *arena, graft_agent *agent,
                                graft_environment *environment)
{
    graft_status status = GRAFT_OK;
    replay r = {.actions = agent->actions};
    const graft_chooser chooser = {choose_noted, &r};
    while (r.next < agent->action_count) {
        graft_rng rng;
        graft_rng_seed(&rng, 0); /* Not used. */
        uint64_t length = agent->actions[r.next++];
        uint32_t end = r.next + (uint32_t)length;
        GRAFT_TRY(env, play(env, arena, agent, environment, &chooser, &rng),
                  "while replaying the checkpoint's episodes");
        if (r.next != end) {
            status = GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                                "the checkpoint's episodes do not fit this environment");
            goto done;
        }
    }
done:
    return status;
}

graft_trajectory graft_agent_trajectory(graft_env *env, graft_arena *arena,
                                        const graft_agent *agent, const graft_episode *episode)
{
    uint32_t steps = episode->step_count;
    graft_trajectory trajectory =
        graft_trajectory_new(arena, steps, agent->encoder.size.latent, agent->xfers);
    graft_agent_encode(agent, env->scratch, episode->snapshots, steps + 1, trajectory.z);
    memcpy(trajectory.xfer, episode->xfers, steps * sizeof *episode->xfers);
    memcpy(trajectory.location, episode->locations, steps * sizeof *episode->locations);
    memcpy(trajectory.reward, episode->rewards, steps * sizeof *episode->rewards);
    memcpy(trajectory.end, episode->ends, steps);
    for (uint32_t i = 0; i <= steps; i++) {
        memcpy(&trajectory.location_counts[(size_t)i * agent->xfers],
               episode->snapshots[i].location_counts,
               agent->xfers * sizeof *trajectory.location_counts);
    }
    return trajectory;
}

void graft_agent_trace(graft_env *env, graft_arena *arena, graft_agent *agent)
{
    for (uint32_t e = 0; e < agent->episode_count; e++) {
        if (agent->trajectories[e].z == NULL) {
            agent->trajectories[e] = graft_agent_trajectory(env, arena, agent, &agent->episodes[e]);
        }
    }
}
