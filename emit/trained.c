/* trained.c - see trained.h. */
#include "emit/trained.h"

#include "graft/graft.h"

#include <assert.h>

static const graft_parameter *parameter_at(const graft_parameters *set, uint32_t index)
{
    assert(index < set->count);
    return &set->items[index];
}

/* Weight and bias by their indices; `bias` may be GRAFT_NONE. */
static graft_float_layer layer_of(const graft_parameters *set, uint32_t weight, uint32_t bias)
{
    const graft_parameter *w = parameter_at(set, weight);
    return (graft_float_layer){
        .weight = graft_parameters_value(set, weight),
        .bias = bias != GRAFT_NONE ? graft_parameters_value(set, bias) : NULL,
        .inputs = w->rows,
        .outputs = w->cols,
    };
}

static void take_encoder(const graft_encoder *encoder, graft_float_policy *policy)
{
    const graft_parameters *set = &encoder->parameters;
    policy->hidden = encoder->size.hidden;
    policy->latent = encoder->size.latent;
    policy->round_count = encoder->size.rounds;
    policy->global_features = encoder->size.global_features;
    policy->input = layer_of(set, encoder->input.weight, encoder->input.bias);
    policy->global = layer_of(set, encoder->global.weight, encoder->global.bias);
    for (uint32_t r = 0; r < encoder->size.rounds; r++) {
        const graft_encoder_message *in = &encoder->incoming[r];
        const graft_encoder_message *out = &encoder->outgoing[r];
        policy->rounds[r] = (graft_float_round){
            .incoming = layer_of(set, in->node, in->bias),
            .incoming_edge = layer_of(set, in->edge, GRAFT_NONE),
            .outgoing = layer_of(set, out->node, out->bias),
            .outgoing_edge = layer_of(set, out->edge, GRAFT_NONE),
            .node = layer_of(set, encoder->node[r].weight, encoder->node[r].bias),
        };
    }
}

static void take_controller(const graft_controller *controller, graft_float_policy *policy)
{
    const graft_parameters *set = &controller->parameters;
    policy->rule_count = controller->size.xfers;
    policy->embedding_width = controller->size.xfer_embedding;
    policy->count_features = controller->size.counts_input ? controller->size.xfers : 0;
    policy->trunk_count = controller->size.layers;
    for (uint32_t k = 0; k < controller->size.layers; k++) {
        policy->trunk[k] = layer_of(set, controller->trunk[k].weight, controller->trunk[k].bias);
    }
    policy->xfer = layer_of(set, controller->xfer_head.weight, controller->xfer_head.bias);
    policy->embeddings = graft_parameters_value(set, controller->xfer_table);
    policy->location_trunk =
        layer_of(set, controller->location_trunk.weight, controller->location_trunk.bias);
    policy->location =
        layer_of(set, controller->location_head.weight, controller->location_head.bias);
}

graft_float_policy graft_float_policy_of(const graft_encoder *encoder,
                                         const graft_standardiser *standardiser,
                                         const graft_controller *controller)
{
    graft_float_policy policy = {0};
    assert(encoder->size.node_features == GRAFT_FEATURE_COUNT);
    assert(encoder->size.edge_features == GRAFT_EDGE_FEATURE_COUNT);
    assert(encoder->size.latent == controller->size.latent);
    take_encoder(encoder, &policy);
    take_controller(controller, &policy);
    policy.latent_mean = standardiser != NULL ? standardiser->mean : NULL;
    policy.latent_scale = standardiser != NULL ? standardiser->scale : NULL;
    assert(policy.global_features == 0 || policy.global_features == policy.rule_count);
    return policy;
}
