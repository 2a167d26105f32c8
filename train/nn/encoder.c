/* encoder.c - see encoder.h. */
#include "train/nn/encoder.h"

#include "train/nn/kernels.h"

#include <assert.h>
#include <math.h>

static const float relu_gain = 1.41421356F;

/* Parameter names by round: checkpoints need them to last as long as the program. */
#define ROUND_NAMES(r)                                                                             \
    {                                                                                              \
        "round" #r ".in.node", "round" #r ".in.edge", "round" #r ".in.bias",                       \
            "round" #r ".out.node", "round" #r ".out.edge", "round" #r ".out.bias",                \
            "round" #r ".node.weight", "round" #r ".node.bias"                                     \
    }
static const char *const round_names[GRAFT_ENCODER_ROUNDS_MOST][8] = {
    ROUND_NAMES(0), ROUND_NAMES(1), ROUND_NAMES(2), ROUND_NAMES(3), ROUND_NAMES(4), ROUND_NAMES(5),
};

static graft_encoder_message add_message(graft_encoder *encoder, const char *const names[3])
{
    const graft_encoder_size *size = &encoder->size;
    graft_parameters *set = &encoder->parameters;
    float spread = relu_gain * sqrtf(3.0F / (float)(size->hidden + size->edge_features));
    graft_encoder_message message;
    message.node = graft_parameters_add(set, names[0], size->hidden, size->hidden, spread);
    message.edge = graft_parameters_add(set, names[1], size->edge_features, size->hidden, spread);
    message.bias = graft_parameters_add(set, names[2], 1, size->hidden, 0.0F);
    return message;
}

void graft_encoder_init(graft_encoder *encoder, graft_arena *arena, const graft_encoder_size *size,
                        uint64_t seed)
{
    assert(size->node_features > 0 && size->hidden > 0 && size->latent > 0);
    assert(size->rounds <= GRAFT_ENCODER_ROUNDS_MOST);
    graft_parameters *set = &encoder->parameters;
    graft_parameters_init(set, "encoder");
    encoder->size = *size;
    encoder->input =
        graft_parameters_layer(set, (const char *const[]){"input.weight", "input.bias"},
                               size->node_features, size->hidden, relu_gain);
    for (uint32_t r = 0; r < size->rounds; r++) {
        encoder->incoming[r] = add_message(encoder, &round_names[r][0]);
        encoder->outgoing[r] = add_message(encoder, &round_names[r][3]);
        /* Half the usual gain: the residual is added to it. */
        encoder->node[r] = graft_parameters_layer(set, &round_names[r][6], 3 * size->hidden,
                                                  size->hidden, 0.5F * relu_gain);
    }
    encoder->global =
        graft_parameters_layer(set, (const char *const[]){"global.weight", "global.bias"},
                               2 * size->hidden + size->global_features, size->latent, 1.0F);
    graft_parameters_seal(set, arena, seed);
}

/* -------------------------------------------------------------------------------------- forward */

/* Messages (edges, hidden): relu of h W at the far node of each edge, plus e W_e + b. */
static const graft_matrix *send_messages(const graft_encoder *encoder, graft_tape *tape,
                                         const graft_encoder_message *message,
                                         const graft_graph_batch *batch, const graft_matrix *h,
                                         const uint32_t *far_node)
{
    const graft_parameters *set = &encoder->parameters;
    const graft_matrix *e =
        graft_tape_constant(tape, batch->edges, batch->edge_count, encoder->size.edge_features);
    const graft_matrix *from_edge =
        graft_linear(tape, e, graft_tape_parameter(tape, set, message->edge),
                     graft_tape_parameter(tape, set, message->bias));
    const graft_matrix *from_node =
        graft_linear(tape, h, graft_tape_parameter(tape, set, message->node), NULL);
    const graft_matrix *gathered = graft_gather_rows(tape, from_node, far_node, batch->edge_count);
    return graft_relu(tape, graft_add(tape, gathered, from_edge));
}

/* One round: (nodes, hidden) -> (nodes, hidden). */
static const graft_matrix *pass_round(const graft_encoder *encoder, graft_tape *tape, uint32_t r,
                                      const graft_graph_batch *batch, const graft_matrix *h,
                                      graft_encoding *way)
{
    const graft_matrix *in =
        send_messages(encoder, tape, &encoder->incoming[r], batch, h, batch->senders);
    const graft_matrix *out =
        send_messages(encoder, tape, &encoder->outgoing[r], batch, h, batch->receivers);
    way->h[r] = h;
    way->incoming[r] = graft_segment_mean(tape, in, batch->receivers, batch->node_count);
    way->outgoing[r] = graft_segment_mean(tape, out, batch->senders, batch->node_count);
    const graft_matrix *parts[3] = {h, way->incoming[r], way->outgoing[r]};
    const graft_matrix *update = graft_layer_apply(tape, &encoder->parameters, encoder->node[r],
                                                   graft_concat(tape, parts, 3));
    return graft_relu(tape, graft_add(tape, h, update));
}

graft_encoding graft_encoder_apply(const graft_encoder *encoder, graft_tape *tape,
                                   const graft_graph_batch *batch)
{
    const graft_parameters *set = &encoder->parameters;
    const graft_encoder_size *size = &encoder->size;
    const graft_matrix *x =
        graft_tape_constant(tape, batch->nodes, batch->node_count, size->node_features);
    const graft_matrix *h = graft_relu(tape, graft_layer_apply(tape, set, encoder->input, x));
    graft_encoding encoding = {.latent = NULL};
    for (uint32_t r = 0; r < size->rounds; r++) {
        h = pass_round(encoder, tape, r, batch, h, &encoding);
    }
    const graft_matrix *parts[3] = {
        graft_segment_mean(tape, h, batch->node_graph, batch->graph_count),
        graft_segment_max(tape, h, batch->node_graph, batch->graph_count),
        graft_tape_constant(tape, batch->globals, batch->graph_count, size->global_features),
    };
    const graft_matrix *pooled = graft_concat(tape, parts, 3);
    encoding.latent = graft_tanh_of(tape, graft_layer_apply(tape, set, encoder->global, pooled));
    encoding.nodes = h;
    return encoding;
}
