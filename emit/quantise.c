/* quantise.c - see quantise.h. */
#include "emit/quantise.h"

#include <math.h>
#include <string.h>

/* The engine reads bytes in units of 1/32. */
static const double byte_unit = 1.0 / 32.0;
static const double feature_unit = 1.0 / GRAFT_FEATURE_SCALE / 32.0;
static const double tanh_input_unit = 1.0 / 65536.0;
static const double logit_unit = 1.0 / GRAFT_LOGIT_ONE;

/* Consecutive columns of a layer's input, and where their weights are. */
typedef struct {
    const float *weight; /* (inputs, outputs) */
    uint32_t inputs;
    double unit;
} input_part;

enum { PARTS_MOST = 3 };

typedef struct {
    const char *name;
    input_part parts[PARTS_MOST];
    uint32_t part_count;
    const float *bias;
    uint32_t outputs;
    double output_unit;
} layer_plan;

static int32_t round_number(double x) { return (int32_t)(x < 0.0 ? x - 0.5 : x + 0.5); }

/* The unit of an activation: twice the largest magnitude that was seen fits, because other states
 * go further and clipping costs more than half of the last bit. Never 0. */
static double unit_of(float range)
{
    return fmax(2.0 * (double)range, 1e-6) / GRAFT_ACTIVATION_MOST;
}

/* Weight times input unit, for one output: what the integer weights stand for. */
static double column_weight(const layer_plan *plan, uint32_t part, uint32_t input, uint32_t output)
{
    const input_part *p = &plan->parts[part];
    return (double)p->weight[(size_t)input * plan->outputs + output] * p->unit;
}

/* The unit of one row of weights: its largest weight becomes 127, its bias stays below 2^29. */
static double row_unit(const layer_plan *plan, uint32_t output)
{
    double most = 0.0;
    for (uint32_t part = 0; part < plan->part_count; part++) {
        for (uint32_t i = 0; i < plan->parts[part].inputs; i++) {
            most = fmax(most, fabs(column_weight(plan, part, i, output)));
        }
    }
    double bias = plan->bias != NULL ? fabs((double)plan->bias[output]) : 0.0;
    double unit = fmax(most / 127.0, bias / (double)(1 << 29));
    return unit > 0.0 ? unit : plan->output_unit; /* A row of zeros has any unit. */
}

static bool layer_is_finite(const layer_plan *plan)
{
    for (uint32_t o = 0; o < plan->outputs; o++) {
        if (plan->bias != NULL && !isfinite(plan->bias[o])) {
            return false;
        }
        for (uint32_t part = 0; part < plan->part_count; part++) {
            for (uint32_t i = 0; i < plan->parts[part].inputs; i++) {
                if (!isfinite(plan->parts[part].weight[(size_t)i * plan->outputs + o])) {
                    return false;
                }
            }
        }
    }
    return true;
}

static uint32_t count_inputs(const layer_plan *plan)
{
    uint32_t inputs = 0;
    for (uint32_t part = 0; part < plan->part_count; part++) {
        inputs += plan->parts[part].inputs;
    }
    return inputs;
}

/* One layer's tables, in `arena`. */
static graft_status quantise_layer(graft_env *env, graft_arena *arena, const layer_plan *plan,
                                   graft_dense *dense)
{
    uint32_t inputs = count_inputs(plan);
    if (inputs > GRAFT_DENSE_MAX_INPUTS) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "the policy's %s has %u inputs, at most %d are possible", plan->name,
                          inputs, GRAFT_DENSE_MAX_INPUTS);
    }
    if (!layer_is_finite(plan)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the policy's %s has a weight that is not finite",
                          plan->name);
    }
    int8_t *weights = GRAFT_NEW(arena, int8_t, (size_t)inputs * plan->outputs);
    int32_t *bias = GRAFT_NEW(arena, int32_t, plan->outputs);
    graft_scale *scales = GRAFT_NEW(arena, graft_scale, plan->outputs);
    int8_t *next = weights;
    for (uint32_t o = 0; o < plan->outputs; o++) {
        double unit = row_unit(plan, o);
        for (uint32_t part = 0; part < plan->part_count; part++) {
            for (uint32_t i = 0; i < plan->parts[part].inputs; i++) {
                *next++ = (int8_t)round_number(column_weight(plan, part, i, o) / unit);
            }
        }
        bias[o] = plan->bias != NULL ? round_number((double)plan->bias[o] / unit) : 0;
        if (!graft_scale_make(unit / plan->output_unit, &scales[o])) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                              "row %u of the policy's %s has weights too large for int8", o,
                              plan->name);
        }
    }
    *dense = (graft_dense){weights, bias, scales, (uint16_t)inputs, (uint16_t)plan->outputs};
    return GRAFT_OK;
}

/* A layer whose input has one unit. */
static layer_plan plan_plain(const char *name, const graft_float_layer *layer, double input_unit,
                             double output_unit)
{
    return (layer_plan){
        .name = name,
        .parts = {{layer->weight, layer->inputs, input_unit}},
        .part_count = 1,
        .bias = layer->bias,
        .outputs = layer->outputs,
        .output_unit = output_unit,
    };
}

/* The part of `layer` from input `first` on. */
static input_part part_of(const graft_float_layer *layer, uint32_t first, uint32_t inputs,
                          double unit)
{
    return (input_part){layer->weight + (size_t)first * layer->outputs, inputs, unit};
}

/* ----------------------------------------------------------------- encoder */

/* The units of one round's activations. */
typedef struct {
    double h; /* before */
    double incoming;
    double outgoing;
    double next; /* h afterwards */
} round_units;

static graft_status quantise_message(graft_env *env, graft_arena *arena,
                                     const graft_float_layer *node, const graft_float_layer *edge,
                                     const double units[2], graft_dense *dense)
{
    const layer_plan plan = {
        .name = "edge block",
        .parts = {part_of(node, 0, node->inputs, units[0]),
                  part_of(edge, 0, edge->inputs, feature_unit)},
        .part_count = 2,
        .bias = node->bias,
        .outputs = node->outputs,
        .output_unit = units[1] / 16.0,
    };
    return quantise_layer(env, arena, &plan, dense);
}

static graft_status quantise_node(graft_env *env, graft_arena *arena,
                                  const graft_float_layer *layer, const round_units *units,
                                  graft_policy_round *out)
{
    uint32_t hidden = layer->outputs;
    const layer_plan plan = {
        .name = "node block",
        .parts = {part_of(layer, 0, hidden, units->h),
                  part_of(layer, hidden, hidden, units->incoming),
                  part_of(layer, 2 * hidden, hidden, units->outgoing)},
        .part_count = 3,
        .bias = layer->bias,
        .outputs = hidden,
        .output_unit = units->next / 16.0,
    };
    if (!graft_scale_make(units->h / (units->next / 16.0), &out->keep)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the policy's encoder shrinks its nodes too much");
    }
    return quantise_layer(env, arena, &plan, &out->node);
}

static graft_status quantise_round(graft_env *env, graft_arena *arena,
                                   const graft_float_policy *network, const graft_ranges *ranges,
                                   uint32_t r, graft_policy_round *out)
{
    graft_status status = GRAFT_OK;
    const graft_float_round *round = &network->rounds[r];
    const round_units units = {
        .h = unit_of(r == 0 ? ranges->input : ranges->h[r - 1]),
        .incoming = unit_of(ranges->incoming[r]),
        .outgoing = unit_of(ranges->outgoing[r]),
        .next = unit_of(ranges->h[r]),
    };
    GRAFT_CHECK(quantise_message(env, arena, &round->incoming, &round->incoming_edge,
                                 (const double[2]){units.h, units.incoming}, &out->incoming));
    GRAFT_CHECK(quantise_message(env, arena, &round->outgoing, &round->outgoing_edge,
                                 (const double[2]){units.h, units.outgoing}, &out->outgoing));
    GRAFT_CHECK(quantise_node(env, arena, &round->node, &units, out));
done:
    return status;
}

static graft_status quantise_encoder(graft_env *env, graft_arena *arena,
                                     const graft_float_policy *network, const graft_ranges *ranges,
                                     graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    uint32_t hidden = network->hidden;
    graft_policy_round *rounds = GRAFT_NEW(arena, graft_policy_round, network->round_count);
    uint32_t rounds_done = network->round_count;
    double pooled = unit_of(rounds_done > 0 ? ranges->h[rounds_done - 1] : ranges->input) / 8.0;
    const layer_plan global = {
        .name = "global block",
        .parts = {part_of(&network->global, 0, 2 * hidden, pooled),
                  part_of(&network->global, 2 * hidden, network->global_features,
                  feature_unit / 8.0)},
        .part_count = 2,
        .bias = network->global.bias,
        .outputs = network->latent,
        .output_unit = tanh_input_unit,
    };
    const layer_plan input =
        plan_plain("node encoder", &network->input, feature_unit, unit_of(ranges->input));
    GRAFT_CHECK(quantise_layer(env, arena, &input, &policy->input));
    for (uint32_t r = 0; r < network->round_count; r++) {
        GRAFT_CHECK(quantise_round(env, arena, network, ranges, r, &rounds[r]));
    }
    GRAFT_CHECK(quantise_layer(env, arena, &global, &policy->global));
    policy->rounds = rounds;
done:
    return status;
}

/* ------------------------------------------------------------------- heads */

static graft_status quantise_trunk(graft_env *env, graft_arena *arena,
                                   const graft_float_policy *network, const graft_ranges *ranges,
                                   graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    uint32_t width = network->xfer.inputs;
    double unit = unit_of(ranges->trunk[0]);
    const layer_plan first = {
        .name = "trunk",
        .parts = {part_of(&network->trunk[0], 0, network->latent, unit_of(ranges->latent)),
                  part_of(&network->trunk[0], network->latent, network->count_features,
                  log(256.0) / GRAFT_ACTIVATION_MOST)},
        .part_count = 2,
        .bias = network->trunk[0].bias,
        .outputs = width,
        .output_unit = unit,
    };
    GRAFT_CHECK(quantise_layer(env, arena, &first, &policy->trunk[0]));
    if (network->trunk_count > 1) {
        const layer_plan second = plan_plain("second layer of the trunk", &network->trunk[1], unit,
                                             unit_of(ranges->trunk[1]));
        GRAFT_CHECK(quantise_layer(env, arena, &second, &policy->trunk[1]));
    }
done:
    return status;
}

/* The embeddings as int8, one unit for all; returns the unit. */
static double quantise_embeddings(graft_arena *arena, const graft_float_policy *network,
                                  graft_policy *policy)
{
    size_t count = (size_t)network->rule_count * network->embedding_width;
    double most = 1e-6;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs((double)network->embeddings[i]));
    }
    int8_t *embeddings = GRAFT_NEW(arena, int8_t, count);
    for (size_t i = 0; i < count; i++) {
        embeddings[i] = (int8_t)round_number((double)network->embeddings[i] / most * 127.0);
    }
    policy->embeddings = embeddings;
    return most / 127.0 * byte_unit;
}

static graft_status quantise_heads(graft_env *env, graft_arena *arena,
                                   const graft_float_policy *network, const graft_ranges *ranges,
                                   graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    uint32_t width = network->xfer.inputs;
    double trunk = unit_of(ranges->trunk[network->trunk_count - 1]);
    double place = unit_of(ranges->place);
    const layer_plan location_trunk = {
        .name = "location trunk",
        .parts = {part_of(&network->location_trunk, 0, width, trunk),
                  part_of(&network->location_trunk, width, network->embedding_width,
                  quantise_embeddings(arena, network, policy))},
        .part_count = 2,
        .bias = network->location_trunk.bias,
        .outputs = width,
        .output_unit = place,
    };
    const layer_plan xfer = plan_plain("rule head", &network->xfer, trunk, logit_unit);
    const layer_plan location = plan_plain("location head", &network->location, place, logit_unit);
    GRAFT_CHECK(quantise_trunk(env, arena, network, ranges, policy));
    GRAFT_CHECK(quantise_layer(env, arena, &xfer, &policy->xfer));
    GRAFT_CHECK(quantise_layer(env, arena, &location_trunk, &policy->location_trunk));
    GRAFT_CHECK(quantise_layer(env, arena, &location, &policy->location));
done:
    return status;
}

static void set_sizes(const graft_float_policy *network, graft_policy *policy)
{
    policy->abi = GRAFT_ABI;
    policy->feature_hash = GRAFT_FEATURE_HASH;
    policy->hidden = (uint16_t)network->hidden;
    policy->latent = (uint16_t)network->latent;
    policy->trunk_width = (uint16_t)network->xfer.inputs;
    policy->embedding_width = (uint16_t)network->embedding_width;
    policy->global_features = (uint16_t)network->global_features;
    policy->count_features = (uint16_t)network->count_features;
    policy->round_count = (uint16_t)network->round_count;
    policy->trunk_count = (uint16_t)network->trunk_count;
    policy->location_limit = (uint16_t)network->location.outputs;
}

/* The latent as the float network standardises it. */
static graft_status quantise_latent(graft_env *env, graft_arena *arena,
                                    const graft_float_policy *network, const graft_ranges *ranges,
                                    graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    int32_t *centres = GRAFT_NEW(arena, int32_t, network->latent);
    graft_scale *scales = GRAFT_NEW(arena, graft_scale, network->latent);
    for (uint32_t i = 0; i < network->latent; i++) {
        graft_latent_line line = {1.0, 0.0};
        if (network->latent_mean != NULL) {
            line.slope = (double)network->latent_scale[i];
            line.shift = -line.slope * (double)network->latent_mean[i];
        }
        GRAFT_CHECK(graft_latent_quantise(env, ranges, line, &centres[i], &scales[i]));
    }
    policy->latent_centres = centres;
    policy->latent_scales = scales;
done:
    return status;
}

graft_status graft_latent_quantise(graft_env *env, const graft_ranges *ranges,
                                   graft_latent_line line, int32_t *centre, graft_scale *scale)
{
    double unit = unit_of(ranges->latent);
    double at = line.slope > 0.0 ? -line.shift / line.slope : 0.0; /* Where it is 0. */
    at = fmin(fmax(at, -8.0), 8.0);
    *centre = round_number(at / GRAFT_TANH_UNIT);
    if (!graft_scale_make(line.slope * GRAFT_TANH_UNIT / unit, scale)) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "an entry of the policy's latent has no scale");
    }
    return GRAFT_OK;
}

graft_status graft_quantise(graft_env *env, graft_arena *arena, const graft_float_policy *network,
                            const graft_ranges *ranges, graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    set_sizes(network, policy);
    GRAFT_CHECK(quantise_encoder(env, arena, network, ranges, policy));
    GRAFT_CHECK(quantise_latent(env, arena, network, ranges, policy));
    GRAFT_CHECK(quantise_heads(env, arena, network, ranges, policy));
done:
    return status;
}
