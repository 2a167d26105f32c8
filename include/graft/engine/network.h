/* network.h - the policy's network in integers.
 *
 * Activations and weights are int8, sums int32, and every sum is brought to the next layer's unit
 * by its row's scale. A row has at most 4096 inputs and a bias of at most 2^30, so |sum| <= 4096 *
 * 127 * 127 + 2^30 < 2^31. A mean over many nodes hardly moves when one of them is rewritten: the
 * global block reads means in 16 bits, its sums are below 4096 * 127 * 32512 + 2^30 < 2^35. A
 * product with a multiplier is below 2^51. Nothing negative is shifted and nothing is divided in 64
 * bits. */
#ifndef GRAFT_ENGINE_NETWORK_H
#define GRAFT_ENGINE_NETWORK_H

typedef char dense_sums_overflow
    [(int64_t)GRAFT_DENSE_MAX_INPUTS * 127 * 127 + GRAFT_DENSE_MAX_BIAS <= INT32_MAX ? 1 : -1];

/* Where the network works; all arrays lie in the caller's workspace. */
typedef struct graft_network_memory {
    graft_index *rows;        /* By node id: row in `h`; GRAFT_NONE for nodes that are const. */
    int8_t *h;                /* (rows, hidden) */
    int8_t *means;            /* (rows, 2 hidden): of messages in, of messages out */
    int32_t *far_sums;        /* (rows, hidden): what a node adds to the messages it sends */
    uint32_t *message_sum;    /* (hidden) */
    int8_t *vector;           /* (widest layer input) */
    int16_t *pooled;          /* (inputs of the global block) */
    int32_t *tanhs;           /* (latent) */
    int8_t *latent;           /* (latent) */
    int8_t *place;            /* (trunk width): the hidden layer of the location head */
    int8_t *trunk;            /* (trunk width) */
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

static int32_t dot_bytes(const int8_t *a, const int8_t *b, uint32_t count)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += (int32_t)a[i] * b[i];
    }
    return sum;
}

static const int8_t *dense_row(const graft_dense *dense, uint32_t output)
{
    return dense->weights + (size_t)output * dense->inputs;
}

/* One output in the unit of its scale. */
static int32_t dense_output(const graft_dense *dense, uint32_t output, const int8_t *x,
                            int32_t limit)
{
    int32_t sum = dot_bytes(dense_row(dense, output), x, dense->inputs) + dense->bias[output];
    return apply_scale(dense->scales[output], sum, limit);
}

static void dense_relu(const graft_dense *dense, const int8_t *x, int8_t *out)
{
    for (uint32_t i = 0; i < dense->outputs; i++) {
        int32_t y = dense_output(dense, i, x, 127);
        out[i] = (int8_t)(y > 0 ? y : 0);
    }
}

static void dense_logits(const graft_dense *dense, const int8_t *x, int32_t *out)
{
    for (uint32_t i = 0; i < dense->outputs; i++) {
        out[i] = dense_output(dense, i, x, INT32_MAX);
    }
}

/* round(127 log(1 + i) / log 256) */
static const int8_t log_count_table[256] = {
    0,   16,  25,  32,  37,  41,  45,  48,  50,  53,  55,  57,  59,  60,  62,  64,  65,  66,  67,
    69,  70,  71,  72,  73,  74,  75,  75,  76,  77,  78,  79,  79,  80,  81,  81,  82,  83,  83,
    84,  84,  85,  86,  86,  87,  87,  88,  88,  89,  89,  90,  90,  90,  91,  91,  92,  92,  93,
    93,  93,  94,  94,  95,  95,  95,  96,  96,  96,  97,  97,  97,  98,  98,  98,  99,  99,  99,
    99,  100, 100, 100, 101, 101, 101, 101, 102, 102, 102, 103, 103, 103, 103, 104, 104, 104, 104,
    105, 105, 105, 105, 105, 106, 106, 106, 106, 107, 107, 107, 107, 107, 108, 108, 108, 108, 108,
    109, 109, 109, 109, 109, 110, 110, 110, 110, 110, 111, 111, 111, 111, 111, 111, 112, 112, 112,
    112, 112, 113, 113, 113, 113, 113, 113, 114, 114, 114, 114, 114, 114, 114, 115, 115, 115, 115,
    115, 115, 116, 116, 116, 116, 116, 116, 116, 117, 117, 117, 117, 117, 117, 117, 117, 118, 118,
    118, 118, 118, 118, 118, 119, 119, 119, 119, 119, 119, 119, 119, 120, 120, 120, 120, 120, 120,
    120, 120, 121, 121, 121, 121, 121, 121, 121, 121, 121, 122, 122, 122, 122, 122, 122, 122, 122,
    122, 123, 123, 123, 123, 123, 123, 123, 123, 123, 124, 124, 124, 124, 124, 124, 124, 124, 124,
    124, 125, 125, 125, 125, 125, 125, 125, 125, 125, 125, 126, 126, 126, 126, 126, 126, 126, 126,
    126, 126, 126, 127, 127, 127, 127, 127, 127,
};

int8_t graft_log_count(uint32_t count) { return log_count_table[count < 255 ? count : 255]; }

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
            graft_node_features(in->graph, in->order, n, memory->vector);
            dense_relu(&policy->input, memory->vector, memory->h + (size_t)row * policy->hidden);
        }
    }
}

/* What each node, being at the far end of an edge, adds to the edge's message: h W_h + b. */
static void sum_far_ends(const graft_network_input *in, const graft_dense *message)
{
    uint32_t hidden = in->policy->hidden;
    for (uint32_t row = 0; row < in->memory->row_count; row++) {
        const int8_t *h = in->memory->h + (size_t)row * hidden;
        int32_t *sums = in->memory->far_sums + (size_t)row * hidden;
        for (uint32_t j = 0; j < hidden; j++) {
            sums[j] = dot_bytes(dense_row(message, j), h, hidden) + message->bias[j];
        }
    }
}

/* Adds relu of one message, in units of 1/256 of the mean's, to message_sum. */
static void add_message(const graft_network_input *in, const graft_dense *message, uint32_t far_row,
                        const int8_t *edge)
{
    uint32_t hidden = in->policy->hidden;
    const int32_t *far_sums = in->memory->far_sums + (size_t)far_row * hidden;
    for (uint32_t j = 0; j < hidden; j++) {
        int32_t sum =
            far_sums[j] + dot_bytes(dense_row(message, j) + hidden, edge, GRAFT_EDGE_FEATURE_COUNT);
        if (sum > 0) {
            in->memory->message_sum[j] += (uint32_t)apply_scale(message->scales[j], sum, 127 * 256);
        }
    }
}

/* So many messages are summed at one node, the rest is left out: 65535 * 127 * 256 < 2^31. */
#define MESSAGES_MOST 65535u

static void add_incoming(const graft_network_input *in, const graft_dense *message, graft_index n,
                         uint32_t *count)
{
    int8_t edge[GRAFT_EDGE_FEATURE_COUNT];
    for (uint32_t k = 0; k < in->graph->nodes[n].input_count; k++) {
        if (graft_edge_exists(in->graph, n, k) && *count < MESSAGES_MOST) {
            graft_index producer = in->graph->values[graft_node_input(in->graph, n, k)].node;
            graft_edge_features(in->graph, n, k, edge);
            add_message(in, message, in->memory->rows[producer], edge);
            (*count)++;
        }
    }
}

/* Adds the messages of all edges by which `reader` reads `value`. */
static void add_reader(const graft_network_input *in, const graft_dense *message,
                       graft_index reader, graft_index value, uint32_t *count)
{
    int8_t edge[GRAFT_EDGE_FEATURE_COUNT];
    for (uint32_t k = 0; k < in->graph->nodes[reader].input_count; k++) {
        if (graft_node_input(in->graph, reader, k) == value && *count < MESSAGES_MOST) {
            graft_edge_features(in->graph, reader, k, edge);
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
        int8_t *mean = memory->means + ((size_t)memory->rows[n] * 2 + !incoming) * hidden;
        for (uint32_t j = 0; j < hidden; j++) {
            uint32_t sum = memory->message_sum[j];
            mean[j] = (int8_t)(count > 0 ? ((sum + count / 2) / count + 128) >> 8 : 0);
        }
    }
}

/* h = relu(h + [h, mean in, mean out] W + b), row by row. */
static void update_nodes(const graft_network_input *in, const graft_policy_round *round)
{
    const int32_t limit = INT32_C(1) << 24;
    uint32_t hidden = in->policy->hidden;
    int8_t *x = in->memory->vector;
    for (uint32_t row = 0; row < in->memory->row_count; row++) {
        int8_t *h = in->memory->h + (size_t)row * hidden;
        copy_bytes(x, h, hidden);
        copy_bytes(x + hidden, in->memory->means + (size_t)row * 2 * hidden, (size_t)2 * hidden);
        for (uint32_t j = 0; j < hidden; j++) {
            int32_t y =
                dense_output(&round->node, j, x, limit) + apply_scale(round->keep, x[j], limit);
            int32_t rounded = y > 0 ? (y + 128) >> 8 : 0;
            h[j] = (int8_t)(rounded < 127 ? rounded : 127);
        }
    }
}

/* [mean h, max h, globals] into `pooled`, in units of 1/256. */
static void pool_nodes(const graft_network_input *in, const uint16_t *counts)
{
    const graft_policy *policy = in->policy;
    graft_network_memory *memory = in->memory;
    uint32_t hidden = policy->hidden;
    uint32_t count = memory->row_count;
    for (uint32_t j = 0; j < hidden; j++) {
        uint32_t sum = 0; /* At most 65535 * 127, times 256 below 2^31. */
        int8_t most = 0;
        for (uint32_t row = 0; row < count; row++) {
            int8_t h = memory->h[(size_t)row * hidden + j]; /* Not negative. */
            sum += (uint8_t)h;
            most = h > most ? h : most;
        }
        memory->pooled[j] = (int16_t)(count > 0 ? (sum * 256u + count / 2) / count : 0);
        memory->pooled[hidden + j] = (int16_t)(most * 256);
    }
    graft_global_features(counts, policy->global_features, memory->vector);
    for (uint32_t i = 0; i < policy->global_features; i++) {
        memory->pooled[2 * hidden + i] = (int16_t)(memory->vector[i] * 256);
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
        memory->latent[i] = (int8_t)apply_scale(
            policy->latent_scales[i], (int64_t)memory->tanhs[i] - policy->latent_centres[i], 127);
    }
}

/* The trunk on [latent, counts], into `trunk`. */
static void run_trunk(const graft_policy *policy, graft_network_memory *memory,
                      const uint16_t *counts)
{
    copy_bytes(memory->vector, memory->latent, policy->latent);
    for (uint32_t r = 0; r < policy->count_features; r++) {
        memory->vector[policy->latent + r] = graft_log_count(counts[r]);
    }
    for (uint32_t k = 0; k < policy->trunk_count; k++) {
        dense_relu(&policy->trunk[k], memory->vector, memory->trunk);
        copy_bytes(memory->vector, memory->trunk, policy->trunk_width);
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
    copy_bytes(memory->vector, memory->trunk, policy->trunk_width);
    copy_bytes(memory->vector + policy->trunk_width,
               policy->embeddings + (size_t)rule * policy->embedding_width,
               policy->embedding_width);
    dense_relu(&policy->location_trunk, memory->vector, memory->place);
    dense_logits(&policy->location, memory->place, memory->location_logits);
}

#endif
