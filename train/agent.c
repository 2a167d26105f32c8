/* agent.c - see agent.h: networks, latents and choosers. Training is in agent_training.c, what is
 * kept on disk in agent_checkpoint.c. */
#include "train/agent.h"

#include <string.h>

/* Streams of random numbers: one per network and phase (agent_training.c). */
enum { SEED_ENCODER = 1, SEED_GROUNDING = 2, SEED_WORLD = 3, SEED_CONTROLLER = 4 };

static void open_encoder(graft_arena *arena, graft_agent *agent, uint64_t seed)
{
    const graft_agent_settings *settings = agent->settings;
    graft_encoder_size size = {
        .node_features = GRAFT_FEATURE_COUNT,
        .edge_features = GRAFT_EDGE_FEATURE_COUNT,
        .global_features = agent->xfers,
        .hidden = (uint32_t)settings->encoder_hidden,
        .latent = (uint32_t)settings->encoder_latent,
        .rounds = (uint32_t)settings->encoder_rounds,
    };
    graft_encoder_init(&agent->encoder, arena, &size, seed + SEED_ENCODER);
    graft_grounding_init(&agent->grounding, arena, size.latent, agent->xfers, GRAFT_OP_COUNT,
                         seed + SEED_GROUNDING);
    agent->standardiser.latent = size.latent;
    agent->standardiser.mean = GRAFT_NEW(arena, float, size.latent);
    agent->standardiser.scale = GRAFT_NEW(arena, float, size.latent);
}

static void open_world(graft_arena *arena, graft_agent *agent, uint64_t seed)
{
    const graft_agent_settings *settings = agent->settings;
    graft_world_size size = graft_world_defaults((graft_world_size){
        .latent = agent->encoder.size.latent,
        .xfers = agent->xfers,
        .hidden = (uint32_t)settings->world_hidden,
        .components = (uint32_t)settings->world_components,
    });
    graft_world_model_init(&agent->world, arena, &size, seed + SEED_WORLD);
}

static void open_controllers(graft_arena *arena, graft_agent *agent, uint64_t seed)
{
    const graft_agent_settings *settings = agent->settings;
    graft_controller_size size = graft_controller_defaults((graft_controller_size){
        .latent = agent->encoder.size.latent,
        .xfers = agent->xfers,
        .locations = (uint32_t)settings->environment_location_limit,
        .hidden = (uint32_t)settings->controller_trunk,
        .xfer_embedding = (uint32_t)settings->controller_embedding,
    });
    graft_controller_init(&agent->controller, arena, &size, seed + SEED_CONTROLLER);
    graft_controller_init(&agent->best, arena, &size, seed + SEED_CONTROLLER);
}

void graft_agent_open(graft_arena *arena, const graft_agent_settings *settings, uint32_t xfers,
                      uint32_t thread_count, uint64_t identity, graft_agent *agent)
{
    uint64_t seed = (uint64_t)settings->environment_seed << 8;
    *agent = (graft_agent){.settings = settings, .xfers = xfers, .thread_count = thread_count};
    agent->progress.identity = identity;
    agent->progress.best_cost = UINT64_MAX;
    open_encoder(arena, agent, seed);
    open_world(arena, agent, seed);
    open_controllers(arena, agent, seed);
    agent->episodes = GRAFT_NEW(arena, graft_episode, GRAFT_AGENT_EPISODES_MOST);
    agent->trajectories = GRAFT_NEW(arena, graft_trajectory, GRAFT_AGENT_EPISODES_MOST);
    uint64_t recorded = (uint64_t)(settings->data_policy_episodes * settings->data_rounds);
    agent->action_capacity =
        (uint32_t)(recorded * ((uint64_t)settings->environment_step_limit + 2) + 1);
    agent->actions = GRAFT_NEW(arena, uint64_t, agent->action_capacity);
}

void graft_agent_encode(const graft_agent *agent, graft_arena *scratch,
                        const graft_snapshot *snapshots, uint32_t count, float *z)
{
    graft_mark mark = graft_arena_mark(scratch);
    graft_graph_arrays *arrays = GRAFT_NEW(scratch, graft_graph_arrays, count);
    for (uint32_t i = 0; i < count; i++) {
        arrays[i] = snapshots[i].arrays;
    }
    graft_encoder_run(&agent->encoder, scratch, arrays, count, z);
    graft_standardiser_apply(&agent->standardiser, z, count);
    graft_arena_release(scratch, mark);
}

/* ---------------------------------------------------------------- chooser */

typedef struct controller_chooser {
    const graft_agent *agent;
    const graft_controller *controller;
    bool draw;
} controller_chooser;

static graft_status choose_by_controller(graft_env *env, void *context,
                                         const graft_environment *environment,
                                         const graft_snapshot *snapshot, graft_rng *rng,
                                         graft_action *action)
{
    (void)environment;
    const controller_chooser *chooser = context;
    graft_mark mark = graft_arena_mark(env->scratch);
    float values[2] = {0, 0};
    float *z = GRAFT_NEW(env->scratch, float, chooser->agent->encoder.size.latent);
    graft_agent_encode(chooser->agent, env->scratch, snapshot, 1, z);
    graft_controller_states states = {.rows = 1, .z = z, .counts = snapshot->location_counts};
    graft_controller_choice choice = {&action->xfer, &action->location, &values[0], &values[1]};
    graft_controller_act(chooser->controller, env->scratch, &states, chooser->draw ? rng : NULL,
                         &choice);
    graft_arena_release(env->scratch, mark);
    return GRAFT_OK;
}

graft_chooser graft_agent_chooser(graft_arena *arena, const graft_agent *agent,
                                  const graft_controller *controller, bool draw)
{
    controller_chooser *context = GRAFT_NEW(arena, controller_chooser, 1);
    *context = (controller_chooser){.agent = agent, .controller = controller, .draw = draw};
    return (graft_chooser){choose_by_controller, context};
}
