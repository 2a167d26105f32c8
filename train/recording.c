/* recording.c - see recording.h. */
#include "train/recording.h"

#include "train/numeric.h"

#include <math.h>
#include <string.h>

/* Rows of the policy's graph are the active nodes in topological order; `row` maps node ids. */
static uint32_t number_rows(const graft_graph *graph, const graft_order *order, uint32_t *row)
{
    uint32_t count = 0;
    for (graft_index i = 0; i < order->count; i++) {
        row[order->order[i]] = graph->nodes[order->order[i]].is_const ? GRAFT_NONE : count++;
    }
    return count;
}

static void scale_features(const int8_t *features, uint32_t count, float *out)
{
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (float)features[i] / (float)GRAFT_FEATURE_SCALE;
    }
}

static void take_nodes(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                       graft_graph_arrays *arrays)
{
    uint32_t rows = arrays->node_count > 0 ? arrays->node_count : 1;
    float *nodes = GRAFT_NEW(arena, float, (size_t)rows *GRAFT_FEATURE_COUNT);
    uint32_t filled = 0;
    for (graft_index i = 0; i < order->count; i++) {
        if (!graph->nodes[order->order[i]].is_const) {
            int8_t features[GRAFT_FEATURE_COUNT];
            graft_node_features(graph, order, order->order[i], features);
            scale_features(features, GRAFT_FEATURE_COUNT,
                           &nodes[(size_t)filled++ * GRAFT_FEATURE_COUNT]);
        }
    }
    arrays->nodes = nodes;
    arrays->node_count = rows;
}

static uint32_t count_edges(const graft_graph *graph, const graft_order *order)
{
    uint32_t count = 0;
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        for (uint32_t k = 0; !graph->nodes[node].is_const && k < graph->nodes[node].input_count;
             k++) {
            count += graft_edge_exists(graph, node, k) ? 1 : 0;
        }
    }
    return count;
}

static void take_edges(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                       const uint32_t *row, graft_graph_arrays *arrays)
{
    uint32_t count = count_edges(graph, order);
    float *edges = GRAFT_NEW(arena, float, (size_t)count *GRAFT_EDGE_FEATURE_COUNT);
    uint32_t *senders = GRAFT_NEW(arena, uint32_t, count);
    uint32_t *receivers = GRAFT_NEW(arena, uint32_t, count);
    uint32_t filled = 0;
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        for (uint32_t k = 0; !graph->nodes[node].is_const && k < graph->nodes[node].input_count;
             k++) {
            if (graft_edge_exists(graph, node, k)) {
                int8_t features[GRAFT_EDGE_FEATURE_COUNT];
                graft_edge_features(graph, node, k, features);
                scale_features(features, GRAFT_EDGE_FEATURE_COUNT,
                               &edges[(size_t)filled * GRAFT_EDGE_FEATURE_COUNT]);
                senders[filled] = row[graph->values[graft_node_input(graph, node, k)].node];
                receivers[filled++] = row[node];
            }
        }
    }
    arrays->edges = edges;
    arrays->senders = senders;
    arrays->receivers = receivers;
    arrays->edge_count = count;
}

static void take_globals(graft_arena *arena, const uint16_t *counts, uint32_t xfers,
                         graft_graph_arrays *arrays)
{
    int8_t *features = GRAFT_NEW(arena, int8_t, xfers);
    float *globals = GRAFT_NEW(arena, float, xfers);
    graft_global_features(counts, xfers, features);
    scale_features(features, xfers, globals);
    arrays->globals = globals;
}

void graft_arrays_take(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                       const uint16_t *counts, uint32_t xfers, graft_graph_arrays *arrays)
{
    uint32_t *row = GRAFT_NEW(arena, uint32_t, graph->node_end);
    arrays->node_count = number_rows(graph, order, row);
    take_nodes(arena, graph, order, arrays);
    take_edges(arena, graph, order, row, arrays);
    take_globals(arena, counts, xfers, arrays);
}

static void take_counts(graft_arena *arena, const graft_matches *matches, graft_snapshot *snapshot)
{
    uint32_t xfers = matches->xfers->count;
    snapshot->location_counts = GRAFT_NEW(arena, uint16_t, xfers);
    for (uint32_t x = 0; x < xfers; x++) {
        snapshot->location_counts[x] = (uint16_t)graft_matches_count(matches, x);
    }
}

static void take_histogram(graft_arena *arena, const graft_graph *graph, graft_snapshot *snapshot)
{
    snapshot->histogram = GRAFT_NEW(arena, float, GRAFT_OP_COUNT);
    for (graft_index n = 0; n < graph->node_end; n++) {
        uint32_t op = graph->nodes[n].op;
        if (op != GRAFT_OP_NONE && op < GRAFT_OP_COUNT && !graph->nodes[n].is_const) {
            snapshot->histogram[op] += 1.0F;
        }
    }
    for (uint32_t op = 0; op < GRAFT_OP_COUNT; op++) {
        snapshot->histogram[op] = graft_log(1.0F + snapshot->histogram[op]);
    }
}

/* Takes a snapshot of the environment's state into `arena`. A graph without an active node gets one
 * node of zeros. */
static void take_snapshot(graft_arena *arena, const graft_environment *environment,
                          graft_snapshot *snapshot)
{
    const graft_graph *graph = &environment->state.graph;
    const graft_order *order = &environment->state.order;
    memset(snapshot, 0, sizeof *snapshot);
    take_counts(arena, &environment->matches, snapshot);
    graft_arrays_take(arena, graph, order, snapshot->location_counts, environment->xfers->count,
                      &snapshot->arrays);
    take_histogram(arena, graph, snapshot);
    snapshot->cost = (float)(environment->cost_ns / environment->first_ns);
}

graft_status graft_episode_record(graft_env *env, graft_arena *arena,
                                  graft_environment *environment, const graft_chooser *chooser,
                                  graft_rng *rng, graft_episode *episode)
{
    graft_status status = GRAFT_OK;
    size_t most = (size_t)environment->options.step_limit + 1; /* NO-OP after the last rewrite. */
    memset(episode, 0, sizeof *episode);
    episode->snapshots = GRAFT_NEW(arena, graft_snapshot, most + 1);
    episode->xfers = GRAFT_NEW(arena, uint16_t, most);
    episode->locations = GRAFT_NEW(arena, uint16_t, most);
    episode->rewards = GRAFT_NEW(arena, float, most);
    episode->ends = GRAFT_NEW(arena, uint8_t, most);
    GRAFT_CHECK(graft_environment_reset(env, environment));
    take_snapshot(arena, environment, &episode->snapshots[0]);
    while (!environment->terminal) {
        uint32_t i = episode->step_count;
        graft_action action = {0, 0};
        graft_outcome step;
        GRAFT_CHECK(chooser->choose(env, chooser->context, environment, &episode->snapshots[i], rng,
                                    &action));
        GRAFT_CHECK(graft_environment_step(env, environment, action.xfer, action.location, &step));
        episode->xfers[i] = action.xfer;
        episode->locations[i] = action.location;
        episode->rewards[i] = (float)step.reward;
        episode->ends[i] = step.terminal && !step.truncated ? 1 : 0;
        episode->total_reward += step.reward;
        episode->step_count++;
        take_snapshot(arena, environment, &episode->snapshots[i + 1]);
    }
    episode->cost_ns = environment->cost_ns;
done:
    return status;
}

void graft_data_agent_open(graft_arena *arena, uint32_t xfer_count, double noop, double preference,
                           graft_data_agent *agent)
{
    *agent = (graft_data_agent){.noop = noop, .preference = preference, .xfer_count = xfer_count};
    agent->weights = GRAFT_NEW(arena, double, xfer_count);
    agent->reward_sums = GRAFT_NEW(arena, double, xfer_count);
    agent->use_counts = GRAFT_NEW(arena, double, xfer_count);
}

/* Mean reward of a rule so far; 0 when it was never used. */
static double mean_reward(const graft_data_agent *agent, uint32_t x)
{
    return agent->use_counts[x] > 0 ? agent->reward_sums[x] / agent->use_counts[x] : 0;
}

void graft_data_agent_draw(graft_data_agent *agent, graft_rng *rng)
{
    double squares = 0;
    double used = 0;
    for (uint32_t x = 0; x < agent->xfer_count; x++) {
        squares += mean_reward(agent, x) * mean_reward(agent, x);
        used += agent->use_counts[x] > 0 ? 1 : 0;
    }
    double unit = squares > 0 ? sqrt(squares / used) : 1;
    double eagerness = agent->eagerness * graft_rng_uniform(rng);
    for (uint32_t x = 0; x < agent->xfer_count; x++) {
        double gain = fmin(fmax(mean_reward(agent, x) / unit, -3), 3);
        double taste = agent->preference * graft_rng_normal(rng) + eagerness * gain;
        agent->weights[x] = (double)graft_exp((float)taste);
    }
}

void graft_data_agent_learn(graft_data_agent *agent, const graft_episode *episode)
{
    for (uint32_t i = 0; i < episode->step_count; i++) {
        if (episode->xfers[i] < agent->xfer_count) {
            agent->reward_sums[episode->xfers[i]] += (double)episode->rewards[i];
            agent->use_counts[episode->xfers[i]] += 1;
        }
    }
}

static graft_status choose_by_taste(graft_env *env, void *context,
                                    const graft_environment *environment,
                                    const graft_snapshot *snapshot, graft_rng *rng,
                                    graft_action *action)
{
    (void)env;
    (void)environment;
    const graft_data_agent *agent = context;
    double total = 0;
    *action = (graft_action){.xfer = (uint16_t)agent->xfer_count};
    if (graft_rng_uniform(rng) < agent->noop) {
        return GRAFT_OK;
    }
    for (uint32_t x = 0; x < agent->xfer_count; x++) {
        total += snapshot->location_counts[x] > 0 ? agent->weights[x] : 0;
    }
    double pick = graft_rng_uniform(rng) * total;
    for (uint32_t x = 0; x < agent->xfer_count; x++) {
        if (snapshot->location_counts[x] > 0) {
            action->xfer = (uint16_t)x; /* The last legal rule takes what rounding leaves over. */
            pick -= agent->weights[x];
            if (pick < 0) {
                break;
            }
        }
    }
    if (action->xfer < agent->xfer_count) {
        action->location = (uint16_t)graft_rng_below(rng, snapshot->location_counts[action->xfer]);
    }
    return GRAFT_OK;
}

graft_chooser graft_data_agent_chooser(graft_data_agent *agent)
{
    return (graft_chooser){choose_by_taste, agent};
}
