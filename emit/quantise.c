/* quantise.c - see quantise.h. */
#include "emit/quantise.h"

#include <math.h>
#include <string.h>

static const double feature_unit = 1.0 / GRAFT_FEATURE_SCALE;
static const double tanh_input_unit = 1.0 / 65536.0;
static const double tanh_output_unit = 1.0 / (double)(1 << 26);
static const double logit_unit = 1.0 / GRAFT_LOGIT_ONE;

/* Consecutive columns of a layer's input that share a unit, and where their weights are. */
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

bool graft_scale_make(double factor, graft_scale *scale)
{
    int exponent = 0;
    if (!(factor >= 0.0) || factor >= 65536.0) {
        return false;
    }
    double fraction =
        frexp(factor, &exponent); /* factor = fraction 2^exponent, fraction in [1/2, 1) */
    uint32_t multiplier = (uint32_t)(fraction * 65536.0 + 0.5);
    if (multiplier == 65536) {
        multiplier /= 2;
        exponent++;
    }
    if (exponent > 16) { /* Rounded up to 2^16. */
        return false;
    }
    *scale = (graft_scale){0, 0};
    if (multiplier > 0 && 16 - exponent <= 62) {
        *scale = (graft_scale){(uint16_t)multiplier, (uint8_t)(16 - exponent)};
    }
    return true;
}

static int32_t round_number(double x) { return (int32_t)(x < 0.0 ? x - 0.5 : x + 0.5); }

/* The unit of an activation: never 0, so that an activation that was always 0 has one. */
static double unit_of(float range) { return (range > 1e-6F ? (double)range : 1e-6) / 127.0; }

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
    return unit > 0.0 ? unit : 1.0;
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

/* A layer whose input has a single unit. */
static graft_status quantise_plain(graft_env *env, graft_arena *arena, const char *name,
                                   const graft_float_layer *layer, double input_unit,
                                   double output_unit, graft_dense *dense)
{
    const layer_plan plan = {
        .name = name,
        .parts = {{layer->weight, layer->inputs, input_unit}},
        .part_count = 1,
        .bias = layer->bias,
        .outputs = layer->outputs,
        .output_unit = output_unit,
    };
    return quantise_layer(env, arena, &plan, dense);
}

/* The part of `layer` from input `first` on. */
static input_part part_of(const graft_float_layer *layer, uint32_t first, uint32_t inputs,
                          double unit)
{
    return (input_part){layer->weight + (size_t)first * layer->outputs, inputs, unit};
}

/* ----------------------------------------------------------------- encoder */

static graft_status quantise_message(graft_env *env, graft_arena *arena, const char *name,
                                     const graft_float_layer *const node_and_edge[2],
                                     const double units[2], graft_dense *dense)
{
    const graft_float_layer *node = node_and_edge[0];
    const graft_float_layer *edge = node_and_edge[1];
    const layer_plan plan = {
        .name = name,
        .parts = {part_of(node, 0, node->inputs, units[0]),
                  part_of(edge, 0, edge->inputs, feature_unit)},
        .part_count = 2,
        .bias = node->bias,
        .outputs = node->outputs,
        .output_unit = units[1] / 256.0,
    };
    return quantise_layer(env, arena, &plan, dense);
}

/* One round; `h_unit` is that of its input. */
static graft_status quantise_round(graft_env *env, graft_arena *arena,
                                   const graft_float_policy *network, const graft_ranges *ranges,
                                   uint32_t r, graft_policy_round *out)
{
    graft_status status = GRAFT_OK;
    const graft_float_round *round = &network->rounds[r];
    double h_unit = unit_of(r == 0 ? ranges->input : ranges->h[r - 1]);
    double next_unit = unit_of(ranges->h[r]);
    double in_unit = unit_of(ranges->incoming[r]);
    double out_unit = unit_of(ranges->outgoing[r]);
    const graft_float_layer *const in[2] = {&round->incoming, &round->incoming_edge};
    const graft_float_layer *const back[2] = {&round->outgoing, &round->outgoing_edge};
    uint32_t hidden = network->hidden;
    const layer_plan node = {
        .name = "node block",
        .parts = {part_of(&round->node, 0, hidden, h_unit),
                  part_of(&round->node, hidden, hidden, in_unit),
                  part_of(&round->node, 2 * hidden, hidden, out_unit)},
        .part_count = 3,
        .bias = round->node.bias,
        .outputs = hidden,
        .output_unit = next_unit / 256.0,
    };
    GRAFT_CHECK(quantise_message(env, arena, "incoming edge block", in,
                                 (const double[2]){h_unit, in_unit}, &out->incoming));
    GRAFT_CHECK(quantise_message(env, arena, "outgoing edge block", back,
                                 (const double[2]){h_unit, out_unit}, &out->outgoing));
    GRAFT_CHECK(quantise_layer(env, arena, &node, &out->node));
    if (!graft_scale_make(h_unit * 256.0 / next_unit, &out->keep)) {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                            "round %u of the policy's encoder shrinks its nodes too much", r);
    }
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
    double h_unit = unit_of(ranges->input);
    GRAFT_CHECK(quantise_plain(env, arena, "node encoder", &network->input, feature_unit, h_unit,
                               &policy->input));
    for (uint32_t r = 0; r < network->round_count; r++) {
        GRAFT_CHECK(quantise_round(env, arena, network, ranges, r, &rounds[r]));
        h_unit = unit_of(ranges->h[r]);
    }
    const layer_plan global = {
        .name = "global block",
        .parts = {part_of(&network->global, 0, 2 * hidden, h_unit / 256.0),
                  part_of(&network->global, 2 * hidden, network->global_features,
                  feature_unit / 256.0)},
        .part_count = 2,
        .bias = network->global.bias,
        .outputs = network->latent,
        .output_unit = tanh_input_unit,
    };
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
    const double count_unit = log(256.0) / 127.0;
    const layer_plan first = {
        .name = "trunk",
        .parts = {part_of(&network->trunk[0], 0, network->latent, unit_of(ranges->latent)),
                  part_of(&network->trunk[0], network->latent, network->count_features,
                  count_unit)},
        .part_count = 2,
        .bias = network->trunk[0].bias,
        .outputs = network->trunk[0].outputs,
        .output_unit = unit_of(ranges->trunk[0]),
    };
    GRAFT_CHECK(quantise_layer(env, arena, &first, &policy->trunk[0]));
    if (network->trunk_count > 1) {
        GRAFT_CHECK(quantise_plain(env, arena, "second layer of the trunk", &network->trunk[1],
                                   unit_of(ranges->trunk[0]), unit_of(ranges->trunk[1]),
                                   &policy->trunk[1]));
    }
done:
    return status;
}

/* The embeddings as int8, one unit for all; returns the unit. */
static double quantise_embeddings(graft_arena *arena, const graft_float_policy *network,
                                  graft_policy *policy)
{
    size_t count = (size_t)network->rule_count * network->embedding_width;
    float most = 0.0F;
    for (size_t i = 0; i < count; i++) {
        most = fmaxf(most, fabsf(network->embeddings[i]));
    }
    double unit = unit_of(most);
    int8_t *embeddings = GRAFT_NEW(arena, int8_t, count);
    for (size_t i = 0; i < count; i++) {
        embeddings[i] = (int8_t)round_number((double)network->embeddings[i] / unit);
    }
    policy->embeddings = embeddings;
    return unit;
}

static graft_status quantise_heads(graft_env *env, graft_arena *arena,
                                   const graft_float_policy *network, const graft_ranges *ranges,
                                   graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    uint32_t width = network->xfer.inputs;
    double trunk_unit = unit_of(ranges->trunk[network->trunk_count - 1]);
    double embedding_unit = quantise_embeddings(arena, network, policy);
    double place_unit = unit_of(ranges->place);
    const layer_plan place = {
        .name = "location trunk",
        .parts = {part_of(&network->location_trunk, 0, width, trunk_unit),
                  part_of(&network->location_trunk, width, network->embedding_width,
                  embedding_unit)},
        .part_count = 2,
        .bias = network->location_trunk.bias,
        .outputs = network->location_trunk.outputs,
        .output_unit = place_unit,
    };
    GRAFT_CHECK(quantise_trunk(env, arena, network, ranges, policy));
    GRAFT_CHECK(quantise_plain(env, arena, "rule head", &network->xfer, trunk_unit, logit_unit,
                               &policy->xfer));
    GRAFT_CHECK(quantise_layer(env, arena, &place, &policy->location_trunk));
    GRAFT_CHECK(quantise_plain(env, arena, "location head", &network->location, place_unit,
                               logit_unit, &policy->location));
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

/* -------------------------------------------------------------- the latent */

/* What the engine says about one state; the result is valid until env->scratch is released. */
static graft_status score_state(graft_env *env, const graft_policy *policy,
                                const graft_policy_state *state, graft_scores *scores)
{
    graft_optimize_options options = graft_optimize_options_default();
    options.weight_bytes_limit = UINT64_MAX;
    size_t bytes = graft_optimize_workspace_bytes(policy, &state->graph->limits, 0);
    void *workspace = graft_arena_alloc(env->scratch, bytes);
    graft_status status =
        graft_policy_scores(state->graph, policy, &options, workspace, bytes, scores);
    if (status != GRAFT_OK) {
        return GRAFT_FAIL(env, status, "the engine cannot score a graph: %s",
                          graft_status_name(status));
    }
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        if (scores->counts[r] != state->counts[r]) {
            return GRAFT_FAIL(env, GRAFT_INTERNAL, "rule %u has %u locations, recorded were %u", r,
                              scores->counts[r], state->counts[r]);
        }
    }
    return GRAFT_OK;
}

/* Sums over the states for fitting y = slope x + shift: x integer tanh, y float standardised. */
typedef struct {
    double x;
    double y;
    double xx;
    double xy;
} line_sums;

static graft_status sum_latents(graft_env *env, const graft_float_policy *network,
                                const graft_states *states, const graft_policy *policy,
                                line_sums *sums)
{
    graft_status status = GRAFT_OK;
    for (uint32_t s = 0; s < states->count; s++) {
        const graft_policy_state *state = &states->items[s];
        graft_mark mark = graft_arena_mark(env->scratch);
        graft_scores scores;
        status = score_state(env, policy, state, &scores);
        if (status == GRAFT_OK) {
            graft_float_scores real =
                graft_reference_run(network, env->scratch, &state->arrays, state->counts, NULL);
            for (uint32_t i = 0; i < network->latent; i++) {
                double x = (double)scores.tanhs[i] * tanh_output_unit;
                double y = (double)real.latent[i];
                sums[i].x += x;
                sums[i].y += y;
                sums[i].xx += x * x;
                sums[i].xy += x * y;
            }
        }
        graft_arena_release(env->scratch, mark);
        if (status != GRAFT_OK) {
            return status;
        }
    }
    return GRAFT_OK;
}

/* The line of one latent entry, as centre and scale. The slope lies between half and twice the
 * float network's own: with few states, or one that hardly moves, noise must not decide. */
static bool fit_latent(const line_sums *sums, double count, double float_scale, double unit,
                       int32_t *centre, graft_scale *scale)
{
    double mean_x = sums->x / count;
    double mean_y = sums->y / count;
    double spread = sums->xx / count - mean_x * mean_x;
    double covariance = sums->xy / count - mean_x * mean_y;
    double slope = spread > 1e-14 ? covariance / spread : float_scale;
    slope = fmin(fmax(slope, 0.5 * float_scale), 2.0 * float_scale);
    double at = slope > 0.0 ? mean_x - mean_y / slope : mean_x; /* Where y is 0. */
    at = fmin(fmax(at, -8.0), 8.0);
    *centre = round_number(at / tanh_output_unit);
    return graft_scale_make(slope * tanh_output_unit / unit, scale);
}

/* Fits every entry; before that the encoder is in place and the tables are zero. */
static graft_status fit_latents(graft_env *env, const graft_float_policy *network,
                                const graft_states *states, double unit, const graft_policy *policy,
                                int32_t *centres, graft_scale *scales)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    line_sums *sums = GRAFT_NEW(env->scratch, line_sums, network->latent);
    GRAFT_CHECK(sum_latents(env, network, states, policy, sums));
    for (uint32_t i = 0; i < network->latent; i++) {
        double scale = network->latent_scale != NULL ? (double)network->latent_scale[i] : 1.0;
        if (!fit_latent(&sums[i], states->count, scale, unit, &centres[i], &scales[i])) {
            status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "entry %u of the latent cannot be scaled", i);
            goto done;
        }
    }
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

graft_status graft_quantise(graft_env *env, graft_arena *arena, const graft_float_policy *network,
                            const graft_states *states, graft_policy *policy)
{
    graft_status status = GRAFT_OK;
    graft_ranges ranges = {0};
    if (states->count == 0) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the policy cannot be quantised without states");
    }
    for (uint32_t s = 0; s < states->count; s++) {
        graft_ranges_add(&ranges, network, env->scratch, &states->items[s].arrays,
                         states->items[s].counts);
    }
    int32_t *centres = GRAFT_NEW(arena, int32_t, network->latent);
    graft_scale *scales = GRAFT_NEW(arena, graft_scale, network->latent);
    policy->latent_centres = centres;
    policy->latent_scales = scales;
    set_sizes(network, policy);
    GRAFT_CHECK(quantise_encoder(env, arena, network, &ranges, policy));
    GRAFT_CHECK(quantise_heads(env, arena, network, &ranges, policy));
    GRAFT_CHECK(fit_latents(env, network, states, unit_of(ranges.latent), policy, centres, scales));
done:
    return status;
}

/* --------------------------------------------------------------- agreement */

/* Products over all states and entries of float (z) and integer (q) latents. */
typedef struct {
    double zz;
    double zq;
    double qq;
} latent_sums;

static void sum_products(latent_sums *sums, const float *z, const int8_t *q, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sums->zz += (double)z[i] * (double)z[i];
        sums->zq += (double)z[i] * q[i];
        sums->qq += (double)q[i] * q[i];
    }
}

static void compare_state(graft_agreement *agreement, latent_sums *sums,
                          const graft_float_policy *network, graft_arena *scratch,
                          const graft_policy_state *state, const graft_scores *scores)
{
    graft_float_scores real =
        graft_reference_run(network, scratch, &state->arrays, state->counts, NULL);
    uint32_t rule = graft_reference_rule(network, real.xfers, state->counts);
    sum_products(sums, real.latent, scores->latent, network->latent);
    agreement->state_count++;
    agreement->margin_lost =
        fmax(agreement->margin_lost, (double)real.xfers[rule] - (double)real.xfers[scores->rule]);
    if (rule == scores->rule) {
        uint32_t location = 0;
        if (rule < network->rule_count) {
            const float *logits =
                graft_reference_locations(network, scratch, real.trunk, rule, NULL);
            location = graft_reference_location(logits, state->counts[rule]);
        }
        agreement->rule_count++;
        agreement->location_count += location == scores->location;
    }
}

graft_status graft_agreement_measure(graft_env *env, const graft_float_policy *network,
                                     const graft_policy *policy, const graft_states *states,
                                     graft_agreement *agreement)
{
    latent_sums sums = {0.0, 0.0, 0.0};
    *agreement = (graft_agreement){.state_count = 0};
    for (uint32_t s = 0; s < states->count; s++) {
        graft_mark mark = graft_arena_mark(env->scratch);
        graft_scores scores;
        graft_status status = score_state(env, policy, &states->items[s], &scores);
        if (status == GRAFT_OK) {
            compare_state(agreement, &sums, network, env->scratch, &states->items[s], &scores);
        }
        graft_arena_release(env->scratch, mark);
        if (status != GRAFT_OK) {
            return status;
        }
    }
    double left = sums.qq > 0.0 ? sums.zz - sums.zq * sums.zq / sums.qq : sums.zz;
    double count = (double)states->count * network->latent;
    agreement->latent_error = count > 0.0 ? sqrt(fmax(left, 0.0) / count) : 0.0;
    return GRAFT_OK;
}
