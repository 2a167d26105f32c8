/* quantise.c - see quantise.h. */
#include "emit/header/quantise.h"

#include <math.h>

/* Units of what the engine is given: features and rows of rules as bytes times 32, facts, the
 * latent; and of what it wants: the input of its tanh, logits. */
static const double feature_unit = 1.0 / (32.0 * GRAFT_FEATURE_SCALE);
static const double fact_unit = 1.0 / GRAFT_FACT_ONE;
static const double latent_unit = 1.0 / 4096.0;
static const double byte_unit = 32.0;
static const double tanh_input_unit = 1.0 / 65536.0;
static const double logit_unit = 1.0 / GRAFT_LOGIT_ONE;

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

/* A layer's weights as they are trained: (inputs, outputs) row-major; bias (outputs) or NULL. */
typedef struct {
    const float *weight;
    const float *bias;
    uint32_t inputs;
    uint32_t outputs;
} float_layer;

static float_layer layer_of(const graft_parameters *set, graft_layer layer)
{
    const graft_parameter *weight = &set->items[layer.weight];
    return (float_layer){graft_parameters_value(set, layer.weight),
                         graft_parameters_value(set, layer.bias), weight->rows, weight->cols};
}

/* Consecutive columns of a layer's input, and where their weights are. */
typedef struct {
    const float *weight; /* (inputs, outputs) */
    uint32_t inputs;
    double unit;
} input_part;

enum { PARTS_MOST = 4 };

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
    return fmax(2.0 * (double)range, 1e-3) / GRAFT_ACTIVATION_MOST;
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
static layer_plan plan_plain(const char *name, const float_layer *layer, double input_unit,
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
static input_part part_of(const float_layer *layer, uint32_t first, uint32_t inputs, double unit)
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

/* `units` of the far node and of the mean of messages. */
static graft_status quantise_message(graft_env *env, graft_arena *arena,
                                     const graft_encoder *encoder,
                                     const graft_encoder_message *message, const double units[2],
                                     graft_dense *dense)
{
    const graft_parameters *set = &encoder->parameters;
    const layer_plan plan = {
        .name = "edge block",
        .parts = {{graft_parameters_value(set, message->node), encoder->size.hidden, units[0]},
                  {graft_parameters_value(set, message->edge), encoder->size.edge_features,
                   feature_unit}},
        .part_count = 2,
        .bias = graft_parameters_value(set, message->bias),
        .outputs = encoder->size.hidden,
        .output_unit = units[1] / 16.0,
    };
    return quantise_layer(env, arena, &plan, dense);
}

static graft_status quantise_node(graft_env *env, graft_arena *arena, const float_layer *layer,
                                  const round_units *units, graft_policy_round *out)
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

static graft_status quantise_round(graft_env *env, graft_arena *arena, const graft_encoder *encoder,
                                   const graft_ranges *ranges, uint32_t r, graft_policy_round *out)
{
    const float_layer node = layer_of(&encoder->parameters, encoder->node[r]);
    const round_units units = {
        .h = unit_of(ranges->h[r]),
        .incoming = unit_of(ranges->incoming[r]),
        .outgoing = unit_of(ranges->outgoing[r]),
        .next = unit_of(ranges->h[r + 1]),
    };
    GRAFT_PASS(quantise_message(env, arena, encoder, &encoder->incoming[r],
                                (const double[2]){units.h, units.incoming}, &out->incoming));
    GRAFT_PASS(quantise_message(env, arena, encoder, &encoder->outgoing[r],
                                (const double[2]){units.h, units.outgoing}, &out->outgoing));
    return quantise_node(env, arena, &node, &units, out);
}

static graft_status quantise_encoder(graft_env *env, graft_arena *arena,
                                     const graft_encoder *encoder, const graft_ranges *ranges,
                                     graft_policy *policy)
{
    const graft_encoder_size *size = &encoder->size;
    const float_layer first = layer_of(&encoder->parameters, encoder->input);
    const float_layer last = layer_of(&encoder->parameters, encoder->global);
    const double pooled = unit_of(ranges->h[size->rounds]) / 8.0;
    graft_policy_round *rounds = GRAFT_NEW(arena, graft_policy_round, size->rounds);
    /* What tells patterns from graphs is 0 in graphs. */
    const layer_plan input = {.name = "node encoder",
                              .parts = {part_of(&first, 0, GRAFT_SCENE_FEATURES, feature_unit)},
                              .part_count = 1,
                              .bias = first.bias,
                              .outputs = first.outputs,
                              .output_unit = unit_of(ranges->h[0])};
    const layer_plan global = {
        .name = "global block",
        .parts = {part_of(&last, 0, 2 * size->hidden, pooled),
                  part_of(&last, 2 * size->hidden, GRAFT_SCENE_GLOBALS, feature_unit / 8.0)},
        .part_count = 2,
        .bias = last.bias,
        .outputs = size->latent,
        .output_unit = tanh_input_unit,
    };
    GRAFT_PASS(quantise_layer(env, arena, &input, &policy->input));
    for (uint32_t r = 0; r < size->rounds; r++) {
        GRAFT_PASS(quantise_round(env, arena, encoder, ranges, r, &rounds[r]));
    }
    GRAFT_PASS(quantise_layer(env, arena, &global, &policy->global));
    policy->rounds = rounds;
    return GRAFT_OK;
}

/* -------------------------------------------------------------- candidates */

/* The first layer of candidates, of whose parts each has a bias. */
static graft_status quantise_place(graft_env *env, graft_arena *arena, const graft_scorer *scorer,
                                   double nodes, double unit, graft_policy *policy)
{
    const graft_parameters *set = &scorer->parameters;
    const float_layer parts[PARTS_MOST] = {layer_of(set, scorer->of_scene),
                                           layer_of(set, scorer->mean), layer_of(set, scorer->most),
                                           layer_of(set, scorer->facts)};
    const double units[PARTS_MOST] = {latent_unit, nodes, nodes, fact_unit};
    float *bias = GRAFT_NEW(arena, float, scorer->size.width);
    layer_plan plan = {.name = "first layer of candidates",
                       .part_count = PARTS_MOST,
                       .bias = bias,
                       .outputs = scorer->size.width,
                       .output_unit = unit};
    for (uint32_t p = 0; p < PARTS_MOST; p++) {
        plan.parts[p] = part_of(&parts[p], 0, parts[p].inputs, units[p]);
        for (uint32_t j = 0; j < plan.outputs; j++) {
            bias[j] += parts[p].bias[j];
        }
    }
    return quantise_layer(env, arena, &plan, &policy->place);
}

static const int8_t *quantise_rows(graft_arena *arena, const float *rows, size_t count, double unit)
{
    int8_t *bytes = GRAFT_NEW(arena, int8_t, count);
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (int8_t)round_number(fmin(fmax((double)rows[i] / unit, -127.0), 127.0));
    }
    return bytes;
}

graft_status graft_quantise(graft_env *env, graft_arena *arena, const graft_scorer *scorer,
                            const graft_ranges *ranges, const float *rows, graft_policy *policy)
{
    const graft_parameters *set = &scorer->parameters;
    const size_t row_count = ((size_t)policy->rule_count + 1) * scorer->size.width;
    float most = ranges->first;
    for (size_t i = 0; i < row_count; i++) {
        most = fmaxf(most, fabsf(rows[i]));
    }
    const double nodes = unit_of(ranges->h[scorer->size.rounds]);
    const double first = unit_of(most);
    const double second = unit_of(ranges->second);
    const float_layer layers[2] = {layer_of(set, scorer->second), layer_of(set, scorer->score)};
    const layer_plan middle = plan_plain("second layer of candidates", &layers[0], first, second);
    const layer_plan last = plan_plain("score of candidates", &layers[1], second, logit_unit);
    policy->hidden = (uint16_t)scorer->size.hidden;
    policy->latent = (uint16_t)scorer->size.latent;
    policy->width = (uint16_t)scorer->size.width;
    policy->round_count = (uint16_t)scorer->size.rounds;
    GRAFT_PASS(quantise_encoder(env, arena, &scorer->encoder, ranges, policy));
    GRAFT_PASS(quantise_place(env, arena, scorer, nodes, first, policy));
    policy->rule_rows = quantise_rows(arena, rows, row_count, first * byte_unit);
    GRAFT_PASS(quantise_layer(env, arena, &middle, &policy->second));
    return quantise_layer(env, arena, &last, &policy->score);
}

/* ------------------------------------------------------------------ ranges */

static void widen(float *range, const graft_matrix *x)
{
    for (size_t i = 0; i < graft_matrix_size(x); i++) {
        *range = fmaxf(*range, fabsf(x->value[i]));
    }
}

void graft_ranges_widen(graft_ranges *ranges, const graft_scorer *scorer,
                        const graft_scored *scored)
{
    const uint32_t rounds = scorer->size.rounds;
    for (uint32_t r = 0; r < rounds; r++) {
        widen(&ranges->h[r], scored->encoding.h[r]);
        widen(&ranges->incoming[r], scored->encoding.incoming[r]);
        widen(&ranges->outgoing[r], scored->encoding.outgoing[r]);
    }
    widen(&ranges->h[rounds], scored->encoding.nodes);
    widen(&ranges->first, scored->first);
    widen(&ranges->second, scored->second);
}
