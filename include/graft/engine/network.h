/* network.h - the policy's network in integers.
 *
 * Weights are int8, activations int16 of 12 bits and a sign, sums int32, and every sum is brought
 * to the next layer's unit by its row's scale. A row has at most 2048 inputs and a bias of at most
 * 2^30, so |sum| <= 2048 * 127 * 4095 + 2^30 < 2^31. A mean over many nodes hardly moves when one
 * of them is rewritten: the global block reads 15 bits, its sums are below 2048 * 127 * 32760 +
 * 2^30 < 2^34. A product with a multiplier is below 2^50. Nothing negative is shifted and nothing
 * is divided in 64 bits. */
#ifndef GRAFT_ENGINE_NETWORK_H
#define GRAFT_ENGINE_NETWORK_H

typedef char
    graft_dense_sums_overflow[(int64_t)GRAFT_DENSE_MAX_INPUTS * 127 * GRAFT_ACTIVATION_MOST +
                                          GRAFT_DENSE_MAX_BIAS <=
                                      INT32_MAX
                                  ? 1
                                  : -1];

/* Where the network works; all arrays lie in the caller's workspace. */
typedef struct graft_network_memory {
    graft_index *rows;     /* By node id: row in `h`; GRAFT_NONE for nodes that are const. */
    int16_t *h;            /* (rows, hidden) */
    int16_t *means;        /* (rows, 2 hidden): of messages in, of messages out */
    int32_t *far_sums;     /* (rows, hidden): what a node adds to the messages it sends */
    uint32_t *message_sum; /* (hidden) */
    int16_t *vector;       /* (widest layer input) */
    int16_t *pooled;       /* (inputs of the global block) */
    int16_t *latent;       /* (latent) */
    int32_t *scene_sums;   /* (width): what the latent adds to the sums of `place` */
    int16_t *place;        /* (width) */
    int16_t *second;       /* (width) */
    uint32_t row_count;
} graft_network_memory;

/* What a round reads; `network` is also written. */
typedef struct graft_network_input {
    const graft_policy *policy;
    const graft_graph *graph;
    const graft_order *order;
    graft_network_memory *memory;
    const graft_estimator *estimator; /* Of this graph, which costs this... */
    const graft_estimated *now;
    uint64_t first; /* ...and cost this when rewriting began. */
} graft_network_input;

/* ---------------------------------------------------------------- numbers */

/* Bytes among a layer's inputs come in units of 1/32, so that their weights are as large as those
 * of activations. */
static int16_t graft_widen_byte(int8_t x) { return (int16_t)(x * 32); }

#ifndef GRAFT_WITHOUT_NETWORK

/* x multiplier / 2^shift to nearest, halves away from zero, clamped to [-limit, limit]. */
static int32_t graft_apply_scale(graft_scale scale, int64_t x, int32_t limit)
{
    int64_t product = x * scale.multiplier;
    uint64_t size = product < 0 ? (uint64_t)-product : (uint64_t)product;
    uint32_t shift = scale.shift & 63u;
    size = (size + (UINT64_C(1) << shift >> 1)) >> shift;
    int32_t result = size < (uint64_t)limit ? (int32_t)size : limit;
    return product < 0 ? -result : result;
}

static int32_t graft_dot_row(const int8_t *row, const int16_t *x, uint32_t count)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += (int32_t)row[i] * x[i];
    }
    return sum;
}

static const int8_t *graft_dense_row(const graft_dense *dense, uint32_t output)
{
    return dense->weights + (size_t)output * dense->inputs;
}

/* One output in the unit of its scale. */
static int32_t graft_dense_output(const graft_dense *dense, uint32_t output, const int16_t *x,
                                  int32_t limit)
{
    int32_t sum =
        graft_dot_row(graft_dense_row(dense, output), x, dense->inputs) + dense->bias[output];
    return graft_apply_scale(dense->scales[output], sum, limit);
}

/* relu, and no more than an activation holds. */
static int16_t graft_clamp_activation(int32_t y)
{
    return (int16_t)(y < 0 ? 0 : y < GRAFT_ACTIVATION_MOST ? y : GRAFT_ACTIVATION_MOST);
}

/* round(32768 tanh(i / 32)) */
static const uint16_t graft_tanh_table[257] = {
    0,     1024,  2045,  3063,  4075,  5079,  6073,  7056,  8025,  8980,  9919,  10840, 11743,
    12625, 13486, 14326, 15143, 15936, 16706, 17452, 18173, 18870, 19542, 20189, 20813, 21411,
    21986, 22538, 23066, 23571, 24054, 24516, 24956, 25376, 25776, 26157, 26519, 26864, 27191,
    27502, 27797, 28076, 28341, 28592, 28830, 29055, 29268, 29470, 29660, 29840, 30010, 30170,
    30322, 30465, 30600, 30727, 30847, 30960, 31067, 31167, 31262, 31351, 31435, 31515, 31589,
    31659, 31726, 31788, 31846, 31901, 31953, 32002, 32048, 32091, 32132, 32170, 32206, 32240,
    32271, 32301, 32329, 32356, 32381, 32404, 32426, 32447, 32466, 32484, 32501, 32517, 32532,
    32547, 32560, 32573, 32584, 32596, 32606, 32616, 32625, 32634, 32642, 32649, 32657, 32663,
    32670, 32676, 32681, 32686, 32691, 32696, 32700, 32704, 32708, 32712, 32715, 32718, 32721,
    32724, 32727, 32729, 32732, 32734, 32736, 32738, 32740, 32741, 32743, 32745, 32746, 32747,
    32749, 32750, 32751, 32752, 32753, 32754, 32755, 32755, 32756, 32757, 32758, 32758, 32759,
    32759, 32760, 32760, 32761, 32761, 32762, 32762, 32762, 32763, 32763, 32763, 32764, 32764,
    32764, 32764, 32765, 32765, 32765, 32765, 32765, 32766, 32766, 32766, 32766, 32766, 32766,
    32766, 32766, 32767, 32767, 32767, 32767, 32767, 32767, 32767, 32767, 32767, 32767, 32767,
    32767, 32767, 32767, 32767, 32767, 32767, 32767, 32768, 32768, 32768, 32768, 32768, 32768,
    32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768,
    32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768,
    32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768,
    32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768,
    32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768, 32768,
};

#define GRAFT_TANH_LIMIT ((INT32_C(8) << 16) - 1)

/* tanh of x in units of 2^-16, |x| <= GRAFT_TANH_LIMIT; the result in units of 2^-26: the table, joined
 * by straight lines. */
static int32_t graft_tanh_number(int32_t x)
{
    uint32_t size = (uint32_t)(x < 0 ? -x : x);
    uint32_t index = size >> 11;
    uint32_t step = (uint32_t)(graft_tanh_table[index + 1] - graft_tanh_table[index]);
    int32_t value = (int32_t)((uint32_t)graft_tanh_table[index] * 2048u + step * (size & 2047u));
    return x < 0 ? -value : value;
}

/* ------------------------------------------------------------ graph network */

/* The features of a node that are not 0, and where they stand; returns how many there are. */
static uint32_t graft_list_features(const graft_network_input *in, graft_index node,
                                    int8_t *features, uint8_t *places)
{
    uint32_t count = 0;
    graft_scene_node(in->estimator, in->now->cost, node, features);
    for (uint32_t i = 0; i < GRAFT_SCENE_FEATURES; i++) {
        if (features[i] != 0) {
            features[count] = features[i];
            places[count++] = (uint8_t)i;
        }
    }
    return count;
}

/* The first layer, of which most inputs are 0. */
static void graft_encode_node(const graft_network_input *in, graft_index node, int16_t *h)
{
    const graft_dense *dense = &in->policy->input;
    int8_t features[GRAFT_SCENE_FEATURES];
    uint8_t places[GRAFT_SCENE_FEATURES];
    const uint32_t count = graft_list_features(in, node, features, places);
    for (uint32_t j = 0; j < dense->outputs; j++) {
        const int8_t *row = graft_dense_row(dense, j);
        int32_t sum = dense->bias[j];
        for (uint32_t i = 0; i < count; i++) {
            sum += (int32_t)row[places[i]] * graft_widen_byte(features[i]);
        }
        h[j] =
            graft_clamp_activation(graft_apply_scale(dense->scales[j], sum, GRAFT_ACTIVATION_MOST));
    }
}

/* Numbers the nodes that run at each inference and encodes their features. */
static void graft_encode_nodes(const graft_network_input *in)
{
    graft_network_memory *memory = in->memory;
    memory->row_count = 0;
    for (graft_index i = 0; i < in->order->count; i++) {
        graft_index n = in->order->order[i];
        memory->rows[n] = GRAFT_NONE;
        if (!in->graph->nodes[n].is_const) {
            uint32_t row = memory->row_count++;
            memory->rows[n] = row;
            graft_encode_node(in, n, memory->h + (size_t)row * in->policy->hidden);
        }
    }
}

/* What each node, being at the far end of an edge, adds to the edge's message: h W_h + b. */
static void graft_sum_far_ends(const graft_network_input *in, const graft_dense *message)
{
    uint32_t hidden = in->policy->hidden;
    for (uint32_t row = 0; row < in->memory->row_count; row++) {
        const int16_t *h = in->memory->h + (size_t)row * hidden;
        int32_t *sums = in->memory->far_sums + (size_t)row * hidden;
        for (uint32_t j = 0; j < hidden; j++) {
            sums[j] = graft_dot_row(graft_dense_row(message, j), h, hidden) + message->bias[j];
        }
    }
}

/* Adds relu of one message, in units of 1/16 of the mean's, to message_sum. */
static void graft_add_message(const graft_network_input *in, const graft_dense *message,
                              uint32_t far_row, const int16_t *edge)
{
    uint32_t hidden = in->policy->hidden;
    const int32_t *far_sums = in->memory->far_sums + (size_t)far_row * hidden;
    for (uint32_t j = 0; j < hidden; j++) {
        int32_t sum = far_sums[j] + graft_dot_row(graft_dense_row(message, j) + hidden, edge,
                                                  GRAFT_EDGE_FEATURE_COUNT);
        if (sum > 0) {
            in->memory->message_sum[j] +=
                (uint32_t)graft_apply_scale(message->scales[j], sum, GRAFT_ACTIVATION_MOST * 16);
        }
    }
}

/* So many messages are summed at one node, the rest is left out: 65535 * 4095 * 16 + 2^15 <
 * 2^32. */
#define GRAFT_MESSAGES_MOST 65535u

static void graft_widen_edge(const graft_graph *graph, graft_index node, uint32_t operand,
                             int16_t *out)
{
    int8_t features[GRAFT_EDGE_FEATURE_COUNT];
    graft_edge_features(graph, node, operand, features);
    for (uint32_t i = 0; i < GRAFT_EDGE_FEATURE_COUNT; i++) {
        out[i] = graft_widen_byte(features[i]);
    }
}

static void graft_add_incoming(const graft_network_input *in, const graft_dense *message,
                               graft_index n, uint32_t *count)
{
    int16_t edge[GRAFT_EDGE_FEATURE_COUNT];
    for (uint32_t k = 0; k < in->graph->nodes[n].input_count; k++) {
        if (graft_edge_exists(in->graph, n, k)) { /* A node has no more inputs than that. */
            graft_index producer = in->graph->values[graft_node_input(in->graph, n, k)].node;
            graft_widen_edge(in->graph, n, k, edge);
            graft_add_message(in, message, in->memory->rows[producer], edge);
            (*count)++;
        }
    }
}

/* Adds the messages of all edges by which `reader` reads `value`. */
static void graft_add_reader(const graft_network_input *in, const graft_dense *message,
                             graft_index reader, graft_index value, uint32_t *count)
{
    int16_t edge[GRAFT_EDGE_FEATURE_COUNT];
    for (uint32_t k = 0; k < in->graph->nodes[reader].input_count; k++) {
        if (graft_node_input(in->graph, reader, k) == value && *count < GRAFT_MESSAGES_MOST) {
            graft_widen_edge(in->graph, reader, k, edge);
            graft_add_message(in, message, in->memory->rows[reader], edge);
            (*count)++;
        }
    }
}

static void graft_add_outgoing(const graft_network_input *in, const graft_dense *message,
                               graft_index n, uint32_t *count)
{
    const graft_order *order = in->order;
    for (uint32_t o = 0; o < in->graph->nodes[n].output_count; o++) {
        graft_index v = graft_node_output(in->graph, n, o);
        for (graft_index u = order->use_first[v]; u < order->use_first[v + 1]; u++) {
            /* A node that reads a value twice is listed twice, one behind the other. */
            if (u == order->use_first[v] || order->uses[u] != order->uses[u - 1]) {
                graft_add_reader(in, message, order->uses[u], v, count);
            }
        }
    }
}

/* The means of the messages that arrive at each node, from its producers or from its readers. */
static void graft_mean_messages(const graft_network_input *in, const graft_dense *message,
                                bool incoming)
{
    graft_network_memory *memory = in->memory;
    uint32_t hidden = in->policy->hidden;
    graft_sum_far_ends(in, message);
    for (graft_index i = 0; i < in->order->count; i++) {
        graft_index n = in->order->order[i];
        if (memory->rows[n] == GRAFT_NONE) {
            continue;
        }
        uint32_t count = 0;
        graft_zero_bytes(memory->message_sum, hidden * sizeof(uint32_t));
        if (incoming) {
            graft_add_incoming(in, message, n, &count);
        } else {
            graft_add_outgoing(in, message, n, &count);
        }
        int16_t *mean = memory->means + ((size_t)memory->rows[n] * 2 + !incoming) * hidden;
        for (uint32_t j = 0; j < hidden; j++) {
            uint32_t sum = memory->message_sum[j];
            mean[j] = (int16_t)(count > 0 ? ((sum + count / 2) / count + 8) >> 4 : 0);
        }
    }
}

/* h = relu(h + [h, mean in, mean out] W + b), row by row. */
static void graft_update_nodes(const graft_network_input *in, const graft_policy_round *round)
{
    const int32_t limit = INT32_C(1) << 24;
    uint32_t hidden = in->policy->hidden;
    int16_t *x = in->memory->vector;
    for (uint32_t row = 0; row < in->memory->row_count; row++) {
        int16_t *h = in->memory->h + (size_t)row * hidden;
        graft_copy_bytes(x, h, hidden * sizeof *x);
        graft_copy_bytes(x + hidden, in->memory->means + (size_t)row * 2 * hidden,
                         2 * hidden * sizeof *x);
        for (uint32_t j = 0; j < hidden; j++) {
            int32_t y = graft_dense_output(&round->node, j, x, limit) +
                        graft_apply_scale(round->keep, x[j], limit);
            h[j] = graft_clamp_activation(y > 0 ? (y + 8) >> 4 : 0);
        }
    }
}

/* [mean h, max h, globals] into `pooled`, in units of 1/8. */
static void graft_pool_nodes(const graft_network_input *in)
{
    graft_network_memory *memory = in->memory;
    int8_t globals[GRAFT_SCENE_GLOBALS];
    uint32_t hidden = in->policy->hidden;
    uint32_t count = memory->row_count;
    for (uint32_t j = 0; j < hidden; j++) {
        uint32_t sum = 0; /* At most 65535 * 4095, times 8 below 2^31. */
        int16_t most = 0;
        for (uint32_t row = 0; row < count; row++) {
            int16_t h = memory->h[(size_t)row * hidden + j]; /* Not negative. */
            sum += (uint16_t)h;
            most = h > most ? h : most;
        }
        memory->pooled[j] = (int16_t)(count > 0 ? (sum * 8u + count / 2) / count : 0);
        memory->pooled[hidden + j] = (int16_t)(most * 8);
    }
    graft_scene_globals(in->now, in->first, globals);
    for (uint32_t i = 0; i < GRAFT_SCENE_GLOBALS; i++) {
        memory->pooled[2 * hidden + i] = (int16_t)(graft_widen_byte(globals[i]) * 8);
    }
}

/* The global block: tanh, in units of 1/4096. */
static void graft_run_global(const graft_network_input *in)
{
    const graft_scale narrow = {1u << 15, 29}; /* 2^-14 */
    const graft_dense *global = &in->policy->global;
    for (uint32_t i = 0; i < global->outputs; i++) {
        const int8_t *row = graft_dense_row(global, i);
        int64_t sum = global->bias[i];
        for (uint32_t k = 0; k < global->inputs; k++) {
            sum += (int32_t)row[k] * in->memory->pooled[k];
        }
        int32_t tanh =
            graft_tanh_number(graft_apply_scale(global->scales[i], sum, GRAFT_TANH_LIMIT));
        in->memory->latent[i] = (int16_t)graft_apply_scale(narrow, tanh, GRAFT_ACTIVATION_MOST);
    }
}

/* Encodes the graph, and what all of its candidates share. */
static void graft_look_at_scene(const graft_network_input *in)
{
    const graft_policy *policy = in->policy;
    const graft_dense *place = &policy->place;
    graft_encode_nodes(in);
    for (uint32_t r = 0; r < policy->round_count; r++) {
        graft_mean_messages(in, &policy->rounds[r].incoming, true);
        graft_mean_messages(in, &policy->rounds[r].outgoing, false);
        graft_update_nodes(in, &policy->rounds[r]);
    }
    graft_pool_nodes(in);
    graft_run_global(in);
    for (uint32_t j = 0; j < policy->width; j++) {
        in->memory->scene_sums[j] =
            graft_dot_row(graft_dense_row(place, j), in->memory->latent, policy->latent) +
            place->bias[j];
    }
}

/* ------------------------------------------------------------ candidates */

/* [mean h, max h] of the nodes of a match into `vector`. */
static void graft_pool_members(const graft_policy *policy, graft_network_memory *memory,
                               const graft_index *nodes, uint32_t count)
{
    for (uint32_t j = 0; j < policy->hidden; j++) {
        uint32_t sum = 0;
        uint32_t members = 0;
        int16_t most = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t row = memory->rows[nodes[i]];
            int16_t h = 0;
            if (row != GRAFT_NONE) {
                h = memory->h[(size_t)row * policy->hidden + j];
                members++;
            }
            sum += (uint16_t)h;
            most = h > most ? h : most;
        }
        memory->vector[j] = (int16_t)(members > 0 ? (sum + members / 2) / members : 0);
        memory->vector[policy->hidden + j] = most;
    }
}

/* What the network adds to the prior of a rewrite by rule `r`, NO-OP being the last, of which
 * `count` matched nodes are given. In logit units. */
static int32_t graft_score_candidate(const graft_policy *policy, graft_network_memory *memory,
                                     uint32_t r, const graft_index *nodes, uint32_t count,
                                     const int16_t *facts)
{
    const graft_dense *place = &policy->place;
    const uint32_t hidden = policy->hidden;
    const uint32_t inputs = 2 * hidden + GRAFT_FACT_SEEN;
    const int8_t *row = policy->rule_rows + (size_t)r * policy->width;
    graft_pool_members(policy, memory, nodes, count);
    graft_copy_bytes(memory->vector + (size_t)2 * hidden, facts, GRAFT_FACT_SEEN * sizeof *facts);
    for (uint32_t j = 0; j < policy->width; j++) {
        int32_t sum =
            memory->scene_sums[j] +
            graft_dot_row(graft_dense_row(place, j) + policy->latent, memory->vector, inputs);
        int32_t y = graft_apply_scale(place->scales[j], sum, INT32_C(1) << 20);
        memory->place[j] = graft_clamp_activation(y + graft_widen_byte(row[j]));
    }
    for (uint32_t j = 0; j < policy->width; j++) {
        int32_t y = graft_dense_output(&policy->second, j, memory->place, GRAFT_ACTIVATION_MOST);
        memory->second[j] = graft_clamp_activation(y);
    }
    return graft_dense_output(&policy->score, 0, memory->second, INT32_MAX);
}

/* The logit that the tariff alone gives. */
static int64_t graft_prior_of(const graft_policy *policy, const int16_t *facts)
{
    int64_t prior = (int64_t)policy->prior_slope * facts[GRAFT_FACT_GAIN];
    return facts[GRAFT_FACT_GAINS] != 0 ? prior : prior - (int64_t)policy->prior_reserve;
}

#endif

#endif
