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

typedef char dense_sums_overflow[(int64_t)GRAFT_DENSE_MAX_INPUTS * 127 * GRAFT_ACTIVATION_MOST +
                                             GRAFT_DENSE_MAX_BIAS <=
                                         INT32_MAX
                                     ? 1
                                     : -1];

/* Where the network works; all arrays lie in the caller's workspace. */
typedef struct graft_network_memory {
    graft_index *rows;        /* By node id: row in `h`; GRAFT_NONE for nodes that are const. */
    int16_t *h;               /* (rows, hidden) */
    int16_t *means;           /* (rows, 2 hidden): of messages in, of messages out */
    int32_t *far_sums;        /* (rows, hidden): what a node adds to the messages it sends */
    uint32_t *message_sum;    /* (hidden) */
    int16_t *vector;          /* (widest layer input) */
    int16_t *pooled;          /* (inputs of the global block) */
    int32_t *tanhs;           /* (latent) */
    int16_t *latent;          /* (latent) */
    int16_t *place;           /* (trunk width): the hidden layer of the location head */
    int16_t *trunk;           /* (trunk width) */
    int32_t *xfer_logits;     /* (rules + 1) */
    int32_t *location_logits; /* (location limit) */
    uint32_t row_count;
} graft_network_memory;

/* What a round reads; `network` is also written. */
typedef struct graft_network_input {
    const graft_policy *policy;
    const graft_graph *graph;
    const graft_order *order;
    graft_network_memory *memory;
} graft_network_input;

/* ---------------------------------------------------------------- numbers */

/* x multiplier / 2^shift to nearest, halves away from zero, clamped to [-limit, limit]. */
static int32_t apply_scale(graft_scale scale, int64_t x, int32_t limit)
{
    int64_t product = x * scale.multiplier;
    uint64_t size = product < 0 ? (uint64_t)-product : (uint64_t)product;
    uint32_t shift = scale.shift & 63u;
    size = (size + (UINT64_C(1) << shift >> 1)) >> shift;
    int32_t result = size < (uint64_t)limit ? (int32_t)size : limit;
    return product < 0 ? -result : result;
}

/* Bytes among a layer's inputs come in units of 1/32, so that their weights are as large as those
 * of activations. */
static int16_t widen_byte(int8_t x) { return (int16_t)(x * 32); }

static int32_t dot_row(const int8_t *row, const int16_t *x, uint32_t count)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += (int32_t)row[i] * x[i];
    }
    return sum;
}

static const int8_t *dense_row(const graft_dense *dense, uint32_t output)
{
    return dense->weights + (size_t)output * dense->inputs;
}

/* One output in the unit of its scale. */
static int32_t dense_output(const graft_dense *dense, uint32_t output, const int16_t *x,
                            int32_t limit)
{
    int32_t sum = dot_row(dense_row(dense, output), x, dense->inputs) + dense->bias[output];
    return apply_scale(dense->scales[output], sum, limit);
}

static void dense_relu(const graft_dense *dense, const int16_t *x, int16_t *out)
{
    for (uint32_t i = 0; i < dense->outputs; i++) {
        int32_t y = dense_output(dense, i, x, GRAFT_ACTIVATION_MOST);
        out[i] = (int16_t)(y > 0 ? y : 0);
    }
}

#ifndef GRAFT_WITHOUT_NETWORK
static void dense_logits(const graft_dense *dense, const int16_t *x, int32_t *out)
{
    for (uint32_t i = 0; i < dense->outputs; i++) {
        out[i] = dense_output(dense, i, x, INT32_MAX);
    }
}
#endif

/* round(GRAFT_ACTIVATION_MOST log(1 + i) / log 256) */
static const int16_t log_count_table[256] = {
    0,    512,  811,  1024, 1189, 1323, 1437, 1536, 1623, 1700, 1771, 1835, 1894, 1949, 2000, 2047,
    2092, 2134, 2174, 2212, 2248, 2283, 2315, 2347, 2377, 2406, 2434, 2461, 2487, 2512, 2536, 2559,
    2582, 2604, 2626, 2646, 2667, 2686, 2705, 2724, 2742, 2760, 2778, 2795, 2811, 2827, 2843, 2859,
    2874, 2889, 2904, 2918, 2932, 2946, 2959, 2973, 2986, 2999, 3011, 3024, 3036, 3048, 3060, 3071,
    3083, 3094, 3105, 3116, 3127, 3137, 3148, 3158, 3168, 3178, 3188, 3198, 3208, 3217, 3227, 3236,
    3245, 3254, 3263, 3272, 3281, 3289, 3298, 3306, 3315, 3323, 3331, 3339, 3347, 3355, 3363, 3371,
    3378, 3386, 3393, 3401, 3408, 3415, 3423, 3430, 3437, 3444, 3451, 3458, 3464, 3471, 3478, 3485,
    3491, 3498, 3504, 3510, 3517, 3523, 3529, 3535, 3542, 3548, 3554, 3560, 3566, 3571, 3577, 3583,
    3589, 3595, 3600, 3606, 3611, 3617, 3622, 3628, 3633, 3639, 3644, 3649, 3655, 3660, 3665, 3670,
    3675, 3680, 3685, 3690, 3695, 3700, 3705, 3710, 3715, 3720, 3724, 3729, 3734, 3739, 3743, 3748,
    3753, 3757, 3762, 3766, 3771, 3775, 3780, 3784, 3788, 3793, 3797, 3801, 3806, 3810, 3814, 3818,
    3822, 3827, 3831, 3835, 3839, 3843, 3847, 3851, 3855, 3859, 3863, 3867, 3871, 3875, 3879, 3883,
    3886, 3890, 3894, 3898, 3902, 3905, 3909, 3913, 3916, 3920, 3924, 3927, 3931, 3935, 3938, 3942,
    3945, 3949, 3952, 3956, 3959, 3963, 3966, 3970, 3973, 3976, 3980, 3983, 3986, 3990, 3993, 3996,
    4000, 4003, 4006, 4009, 4013, 4016, 4019, 4022, 4025, 4029, 4032, 4035, 4038, 4041, 4044, 4047,
    4050, 4053, 4057, 4060, 4063, 4066, 4069, 4072, 4075, 4077, 4080, 4083, 4086, 4089, 4092, 4095,
};

int16_t graft_log_count(uint32_t count) { return log_count_table[count < 255 ? count : 255]; }

#ifndef GRAFT_WITHOUT_NETWORK

/* round(32768 tanh(i / 32)) */
static const uint16_t tanh_table[257] = {
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

#define TANH_LIMIT ((INT32_C(8) << 16) - 1)

/* tanh of x in units of 2^-16, |x| <= TANH_LIMIT; the result in units of 2^-26: the table, joined
 * by straight lines. */
static int32_t tanh_number(int32_t x)
{
    uint32_t size = (uint32_t)(x < 0 ? -x : x);
    uint32_t index = size >> 11;
    uint32_t step = (uint32_t)(tanh_table[index + 1] - tanh_table[index]);
    int32_t value = (int32_t)((uint32_t)tanh_table[index] * 2048u + step * (size & 2047u));
    return x < 0 ? -value : value;
}

/* ------------------------------------------------------------ graph network */

static void widen_node(const graft_network_input *in, graft_index node)
{
    int8_t features[GRAFT_FEATURE_COUNT];
    graft_node_features(in->graph, in->order, node, features);
    for (uint32_t i = 0; i < GRAFT_FEATURE_COUNT; i++) {
        in->memory->vector[i] = widen_byte(features[i]);
    }
}

/* Numbers the nodes that run at each inference and encodes their features. */
static void encode_nodes(const graft_network_input *in)
{
    const graft_policy *policy = in->policy;
    graft_network_memory *memory = in->memory;
    memory->row_count = 0;
    for (graft_index i = 0; i < in->order->count; i++) {
        graft_index n = in->order->order[i];
        memory->rows[n] = GRAFT_NONE;
        if (!in->graph->nodes[n].is_const) {
            uint32_t row = memory->row_count++;
            memory->rows[n] = row;
            widen_node(in, n);
            dense_relu(&policy->input, memory->vector, memory->h + (size_t)row * policy->hidden);
        }
    }
}

/* What each node, being at the far end of an edge, adds to the edge's message: h W_h + b. */
static void sum_far_ends(const graft_network_input *in, const graft_dense *message)
{
    uint32_t hidden = in->policy->hidden;
    for (uint32_t row = 0; row < in->memory->row_count; row++) {
        const int16_t *h = in->memory->h + (size_t)row * hidden;
        int32_t *sums = in->memory->far_sums + (size_t)row * hidden;
        for (uint32_t j = 0; j < hidden; j++) {
            sums[j] = dot_row(dense_row(message, j), h, hidden) + message->bias[j];
        }
    }
}

/* Adds relu of one message, in units of 1/16 of the mean's, to message_sum. */
static void add_message(const graft_network_input *in, const graft_dense *message, uint32_t far_row,
                        const int16_t *edge)
{
    uint32_t hidden = in->policy->hidden;
    const int32_t *far_sums = in->memory->far_sums + (size_t)far_row * hidden;
    for (uint32_t j = 0; j < hidden; j++) {
        int32_t sum =
            far_sums[j] + dot_row(dense_row(message, j) + hidden, edge, GRAFT_EDGE_FEATURE_COUNT);
        if (sum > 0) {
            in->memory->message_sum[j] +=
                (uint32_t)apply_scale(message->scales[j], sum, GRAFT_ACTIVATION_MOST * 16);
        }
    }
}

/* So many messages are summed at one node, the rest is left out: 65535 * 4095 * 16 + 2^15 <
 * 2^32. */
#define MESSAGES_MOST 65535u

static void widen_edge(const graft_graph *graph, graft_index node, uint32_t operand, int16_t *out)
{
    int8_t features[GRAFT_EDGE_FEATURE_COUNT];
    graft_edge_features(graph, node, operand, features);
    for (uint32_t i = 0; i < GRAFT_EDGE_FEATURE_COUNT; i++) {
        out[i] = widen_byte(features[i]);
    }
}

static void add_incoming(const graft_network_input *in, const graft_dense *message, graft_index n,
                         uint32_t *count)
{
    int16_t edge[GRAFT_EDGE_FEATURE_COUNT];
    for (uint32_t k = 0; k < in->graph->nodes[n].input_count; k++) {
        if (graft_edge_exists(in->graph, n, k) && *count < MESSAGES_MOST) {
            graft_index producer = in->graph->values[graft_node_input(in->graph, n, k)].node;
            widen_edge(in->graph, n, k, edge);
            add_message(in, message, in->memory->rows[producer], edge);
            (*count)++;
        }
    }
}

/* Adds the messages of all edges by which `reader` reads `value`. */
static void add_reader(const graft_network_input *in, const graft_dense *message,
                       graft_index reader, graft_index value, uint32_t *count)
{
    int16_t edge[GRAFT_EDGE_FEATURE_COUNT];
    for (uint32_t k = 0; k < in->graph->nodes[reader].input_count; k++) {
        if (graft_node_input(in->graph, reader, k) == value && *count < MESSAGES_MOST) {
            widen_edge(in->graph, reader, k, edge);
            add_message(in, message, in->memory->rows[reader], edge);
            (*count)++;
        }
    }
}

static void add_outgoing(const graft_network_input *in, const graft_dense *message, graft_index n,
                         uint32_t *count)
{
    const graft_order *order = in->order;
    for (uint32_t o = 0; o < in->graph->nodes[n].output_count; o++) {
        graft_index v = graft_node_output(in->graph, n, o);
        for (graft_index u = order->use_first[v]; u < order->use_first[v + 1]; u++) {
            /* A node that reads a value twice is listed twice, one behind the other. */
            if (u == order->use_first[v] || order->uses[u] != order->uses[u - 1]) {
                add_reader(in, message, order->uses[u], v, count);
            }
        }
    }
}

/* The means of the messages that arrive at each node, from its producers or from its readers. */
static void mean_messages(const graft_network_input *in, const graft_dense *message, bool incoming)
{
    graft_network_memory *memory = in->memory;
    uint32_t hidden = in->policy->hidden;
    sum_far_ends(in, message);
    for (graft_index i = 0; i < in->order->count; i++) {
        graft_index n = in->order->order[i];
        if (memory->rows[n] == GRAFT_NONE) {
            continue;
        }
        uint32_t count = 0;
        zero_bytes(memory->message_sum, hidden * sizeof(uint32_t));
        if (incoming) {
            add_incoming(in, message, n, &count);
        } else {
            add_outgoing(in, message, n, &count);
        }
        int16_t *mean = memory->means + ((size_t)memory->rows[n] * 2 + !incoming) * hidden;
        for (uint32_t j = 0; j < hidden; j++) {
            uint32_t sum = memory->message_sum[j];
            mean[j] = (int16_t)(count > 0 ? ((sum + count / 2) / count + 8) >> 4 : 0);
        }
    }
}

/* h = relu(h + [h, mean in, mean out] W + b), row by row. */
static void update_nodes(const graft_network_input *in, const graft_policy_round *round)
{
    const int32_t limit = INT32_C(1) << 24;
    uint32_t hidden = in->policy->hidden;
    int16_t *x = in->memory->vector;
    for (uint32_t row = 0; row < in->memory->row_count; row++) {
        int16_t *h = in->memory->h + (size_t)row * hidden;
        copy_bytes(x, h, hidden * sizeof *x);
        copy_bytes(x + hidden, in->memory->means + (size_t)row * 2 * hidden,
                   2 * hidden * sizeof *x);
        for (uint32_t j = 0; j < hidden; j++) {
            int32_t y =
                dense_output(&round->node, j, x, limit) + apply_scale(round->keep, x[j], limit);
            int32_t rounded = y > 0 ? (y + 8) >> 4 : 0;
            h[j] = (int16_t)(rounded < GRAFT_ACTIVATION_MOST ? rounded : GRAFT_ACTIVATION_MOST);
        }
    }
}

/* [mean h, max h, globals] into `pooled`, in units of 1/8. */
static void pool_nodes(const graft_network_input *in, const uint16_t *counts)
{
    const graft_policy *policy = in->policy;
    graft_network_memory *memory = in->memory;
    uint32_t hidden = policy->hidden;
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
    for (uint32_t i = 0; i < policy->global_features; i++) {
        int8_t feature = 0;
        graft_global_features(&counts[i], 1, &feature);
        memory->pooled[2 * hidden + i] = (int16_t)(widen_byte(feature) * 8);
    }
}

/* The global block: tanh, then standardised. */
static void run_global(const graft_policy *policy, graft_network_memory *memory)
{
    const graft_dense *global = &policy->global;
    for (uint32_t i = 0; i < policy->latent; i++) {
        const int8_t *row = dense_row(global, i);
        int64_t sum = global->bias[i];
        for (uint32_t k = 0; k < global->inputs; k++) {
            sum += (int32_t)row[k] * memory->pooled[k];
        }
        memory->tanhs[i] = tanh_number(apply_scale(global->scales[i], sum, TANH_LIMIT));
        int64_t moved = (int64_t)memory->tanhs[i] - policy->latent_centres[i];
        memory->latent[i] =
            (int16_t)apply_scale(policy->latent_scales[i], moved, GRAFT_ACTIVATION_MOST);
    }
}

/* The trunk on [latent, counts], into `trunk`. */
static void run_trunk(const graft_policy *policy, graft_network_memory *memory,
                      const uint16_t *counts)
{
    copy_bytes(memory->vector, memory->latent, policy->latent * sizeof(int16_t));
    for (uint32_t r = 0; r < policy->count_features; r++) {
        memory->vector[policy->latent + r] = graft_log_count(counts[r]);
    }
    for (uint32_t k = 0; k < policy->trunk_count; k++) {
        dense_relu(&policy->trunk[k], memory->vector, memory->trunk);
        copy_bytes(memory->vector, memory->trunk, policy->trunk_width * sizeof(int16_t));
    }
}

/* Latent, trunk and the logits of rules and NO-OP. `counts` are the locations of each rule. */
static void run_network(const graft_network_input *in, const uint16_t *counts)
{
    const graft_policy *policy = in->policy;
    graft_network_memory *memory = in->memory;
    encode_nodes(in);
    for (uint32_t r = 0; r < policy->round_count; r++) {
        mean_messages(in, &policy->rounds[r].incoming, true);
        mean_messages(in, &policy->rounds[r].outgoing, false);
        update_nodes(in, &policy->rounds[r]);
    }
    pool_nodes(in, counts);
    run_global(policy, memory);
    run_trunk(policy, memory, counts);
    dense_logits(&policy->xfer, memory->trunk, memory->xfer_logits);
}

/* The logits of the locations of `rule`, after run_network. */
static void run_location_head(const graft_policy *policy, graft_network_memory *memory,
                              uint32_t rule)
{
    copy_bytes(memory->vector, memory->trunk, policy->trunk_width * sizeof(int16_t));
    for (uint32_t i = 0; i < policy->embedding_width; i++) {
        memory->vector[policy->trunk_width + i] =
            widen_byte(policy->embeddings[(size_t)rule * policy->embedding_width + i]);
    }
    dense_relu(&policy->location_trunk, memory->vector, memory->place);
    dense_logits(&policy->location, memory->place, memory->location_logits);
}

#endif

#endif
