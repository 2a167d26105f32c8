/* witness.c - see witness.h. */
#include "tests/support/witness.h"

#include "graph/meaning/algebra_real.h"
#include "graph/rule/pattern.h"
#include "graph/rule/ruleprint.h"
#include "tests/support/build.h"
#include "tests/support/proposal.h"
#include "verify/instances/instance.h"
#include "verify/sweep/choices.h"

#include <math.h>
#include <string.h>

enum { NODE_ATTEMPTS = 4, FLOPS_MOST = 100000, ELEMENTS_MOST = 6000, SAMPLES = 4 };

/* Larger numbers cost binary64 the digits that tell differences from rounding. */
static const double magnitude_most = 1e6;
static const double tolerance = 1e-7;

/* A place while it is drawn. */
typedef struct {
    const graft_rule *rule;
    graft_rng *rng;
    bool within;
    graft_shape vars[GRAFT_RULE_MAX_VARS];
    int32_t slots[GRAFT_RULE_MAX_SLOTS];
    graft_shape shapes[GRAFT_RULE_MAX_NODES][GRAFT_MAX_OUTPUTS];
    uint64_t bound_slots;
    uint32_t bound_vars;
} place;

/* ------------------------------------------------------------------ drawing */

static bool known_shape(const place *p, graft_operand x, graft_shape *shape)
{
    if (GRAFT_OPERAND_IS_NODE(x)) {
        *shape = p->shapes[GRAFT_OPERAND_NODE_OF(x)][GRAFT_OPERAND_SLOT_OF(x)];
        return true;
    }
    if ((p->bound_vars >> x & 1u) != 0) {
        *shape = p->vars[x];
        return true;
    }
    return false;
}

/* Values of real attributes come from the lists when the place must be within the bounds. */
static void snap_floats(graft_arena *arena, const place *p, proposal *drawn)
{
    for (uint32_t i = 0; i < graft_op(drawn->op)->attr_count && p->within; i++) {
        if (!drawn->attr_known[i] && graft_op_attr(drawn->op, i)->kind == GRAFT_ATTR_FLOAT) {
            graft_choices list = graft_choices_attrs(arena, drawn->op, i, NULL);
            drawn->attrs[i] = list.tuples[graft_rng_below(p->rng, list.count)];
        }
    }
}

/* Proposals give the second operand of a broadcast the lower rank; here either may have it. */
static void exchange_operands(graft_rng *rng, proposal *drawn)
{
    bool fresh = !drawn->in_known[0] && !drawn->in_known[1];
    if (graft_op(drawn->op)->input_count == 2 && fresh && drawn->op != GRAFT_OP_conv &&
        proposal_once_in(rng, 2)) {
        graft_shape kept = drawn->in[0];
        drawn->in[0] = drawn->in[1];
        drawn->in[1] = kept;
    }
}

/* The same variable twice among the operands has one shape. */
static void tie_operands(const graft_pattern_node *node, uint32_t count, proposal *drawn)
{
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (node->inputs[i] == node->inputs[j]) {
                drawn->in[i] = drawn->in[j];
            }
        }
    }
}

static bool draw_node(graft_arena *arena, place *p, uint32_t n)
{
    const graft_pattern_node *node = &p->rule->source.nodes[n];
    const graft_op_info *info = graft_op(node->op);
    proposal start = {.op = node->op};
    for (uint32_t i = 0; i < info->attr_count; i++) {
        const graft_term *term = &node->attrs[i];
        bool is_const = term->kind == GRAFT_TERM_CONST;
        start.attr_known[i] = is_const || (p->bound_slots >> term->value & 1u) != 0;
        start.attrs[i] = is_const ? term->value : start.attr_known[i] ? p->slots[term->value] : 0;
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        start.in_known[i] = known_shape(p, node->inputs[i], &start.in[i]);
    }
    for (uint32_t attempt = 0; attempt < NODE_ATTEMPTS; attempt++) {
        proposal drawn = start;
        proposal_draw(p->rng, &drawn);
        snap_floats(arena, p, &drawn);
        exchange_operands(p->rng, &drawn);
        tie_operands(node, info->input_count, &drawn);
        if (graft_infer_shapes(drawn.op, drawn.attrs, drawn.in, p->shapes[n]) != GRAFT_OK) {
            continue;
        }
        for (uint32_t i = 0; i < info->input_count; i++) {
            if (!GRAFT_OPERAND_IS_NODE(node->inputs[i])) {
                p->vars[node->inputs[i]] = drawn.in[i];
                p->bound_vars |= 1u << node->inputs[i];
            }
        }
        for (uint32_t i = 0; i < info->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT) {
                p->slots[node->attrs[i].value] = drawn.attrs[i];
                p->bound_slots |= UINT64_C(1) << node->attrs[i].value;
            }
        }
        return true;
    }
    return false;
}

static bool draw_place(graft_arena *arena, place *p)
{
    uint8_t order[GRAFT_RULE_MAX_NODES];
    graft_pattern_order(&p->rule->source, order);
    p->bound_slots = 0;
    p->bound_vars = 0;
    for (uint32_t i = 0; i < p->rule->source.node_count; i++) {
        if (!draw_node(arena, p, order[i])) {
            return false;
        }
    }
    return p->bound_vars == (1u << p->rule->var_count) - 1u;
}

static bool slot_is_size(const graft_rule *rule, uint32_t slot)
{
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT && node->attrs[i].value == (int32_t)slot) {
                return graft_op_attr(node->op, i)->kind == GRAFT_ATTR_DIM;
            }
        }
    }
    return false;
}

/* Other sizes in place of the sizes; equal ones stay equal, 1 stays 1 mostly. */
static void rename_sizes(place *p)
{
    enum { NAMES = 64 };
    int32_t names[NAMES];
    int32_t bound = proposal_once_in(p->rng, 2) ? GRAFT_IMAGE_MOST : GRAFT_SIZE_MOST;
    int32_t largest = p->within ? bound : WITNESS_LARGEST;
    for (int32_t i = 0; i < NAMES; i++) {
        names[i] = i == 0 ? 0 : proposal_between(p->rng, 1, largest);
    }
    names[1] = proposal_once_in(p->rng, 8) ? names[1] : 1;
    for (uint32_t v = 0; v < p->rule->var_count; v++) {
        for (uint32_t i = 0; i < p->vars[v].rank; i++) {
            p->vars[v].dims[i] = p->vars[v].dims[i] < NAMES ? names[p->vars[v].dims[i]] : 1;
        }
    }
    for (uint32_t s = 0; s < p->rule->slot_count; s++) {
        if (slot_is_size(p->rule, s) && p->slots[s] >= 0 && p->slots[s] < NAMES) {
            p->slots[s] = names[p->slots[s]];
        }
    }
}

/* Now and then values that the lists of the bounded domain do not have: larger whole numbers,
 * other real ones. Whether they fit is seen when the graph is built. */
static void stretch_attrs(place *p)
{
    for (uint32_t n = 0; n < p->rule->source.node_count; n++) {
        const graft_pattern_node *node = &p->rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            const graft_attr_info *info = graft_op_attr(node->op, i);
            if (node->attrs[i].kind != GRAFT_TERM_SLOT || !proposal_once_in(p->rng, 4)) {
                continue;
            }
            int32_t *slot = &p->slots[node->attrs[i].value];
            if (info->kind == GRAFT_ATTR_FLOAT) {
                float value = (float)proposal_between(p->rng, -30, 40) / 8.0F;
                memcpy(slot, &value, sizeof value);
            } else if (info->kind == GRAFT_ATTR_INT && strncmp(info->name, "ax", 2) != 0) {
                *slot += proposal_between(p->rng, 1, 3);
            }
        }
    }
}

/* ------------------------------------------------------------------- bounds */

static bool attrs_are_listed(graft_arena *arena, const place *p, uint32_t n)
{
    const graft_pattern_node *node = &p->rule->source.nodes[n];
    bool listed = true;
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count && listed; i++) {
        if (node->attrs[i].kind != GRAFT_TERM_SLOT || graft_choices_width(node->op, i) != 1) {
            continue;
        }
        graft_choices list = graft_choices_attrs(arena, node->op, i, NULL);
        listed = false;
        for (uint32_t k = 0; k < list.count && !listed; k++) {
            listed = list.tuples[k] == p->slots[node->attrs[i].value];
        }
    }
    return listed;
}

static bool is_within(graft_arena *arena, const place *p)
{
    bool within = true;
    for (uint32_t v = 0; v < p->rule->var_count; v++) {
        within = within && p->vars[v].rank <= GRAFT_RANK_MOST;
        for (uint32_t i = 0; i < p->vars[v].rank && within; i++) {
            bool pixels = p->vars[v].rank == 4 && i >= 2;
            within = p->vars[v].dims[i] <= (pixels ? GRAFT_IMAGE_MOST : GRAFT_SIZE_MOST);
        }
    }
    for (uint32_t n = 0; n < p->rule->source.node_count && within; n++) {
        within = attrs_are_listed(arena, p, n);
    }
    return within;
}

/* ------------------------------------------------------------------- graphs */

/* The source alone, as a graph; NULL when its shapes do not fit. */
static graft_graph *build_source(graft_arena *arena, place *p)
{
    graft_graph *graph = build_graph(arena);
    const graft_pattern *source = &p->rule->source;
    graft_index vars[GRAFT_RULE_MAX_VARS];
    graft_index nodes[GRAFT_RULE_MAX_NODES];
    uint8_t order[GRAFT_RULE_MAX_NODES];
    bool weights = proposal_once_in(p->rng, 4);
    graft_pattern_order(source, order);
    for (uint32_t v = 0; v < p->rule->var_count; v++) {
        vars[v] = weights && proposal_once_in(p->rng, 2) ? build_weight(graph, p->vars[v], v)
                                                         : build_input(graph, p->vars[v], v);
    }
    for (uint32_t i = 0; i < source->node_count; i++) {
        const graft_pattern_node *node = &source->nodes[order[i]];
        const graft_op_info *info = graft_op(node->op);
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        graft_index in[GRAFT_MAX_INPUTS] = {0};
        for (uint32_t k = 0; k < info->attr_count; k++) {
            attrs[k] = node->attrs[k].kind == GRAFT_TERM_CONST ? node->attrs[k].value
                                                               : p->slots[node->attrs[k].value];
        }
        for (uint32_t k = 0; k < info->input_count; k++) {
            graft_operand x = node->inputs[k];
            in[k] = GRAFT_OPERAND_IS_NODE(x)
                        ? graft_node_output(graph, nodes[GRAFT_OPERAND_NODE_OF(x)],
                                            GRAFT_OPERAND_SLOT_OF(x))
                        : vars[x];
        }
        if (graft_graph_add_node(graph, node->op, attrs, in, GRAFT_NONE, &nodes[order[i]]) !=
            GRAFT_OK) {
            return NULL;
        }
    }
    for (uint32_t o = 0; o < p->rule->output_count; o++) {
        graft_operand x = source->outputs[o];
        if (graft_graph_add_output(graph, graft_node_output(graph, nodes[GRAFT_OPERAND_NODE_OF(x)],
                                                            GRAFT_OPERAND_SLOT_OF(x))) !=
            GRAFT_OK) {
            return NULL;
        }
    }
    return graph;
}

/* Work and memory are kept small. */
static bool is_small(const graft_graph *graph, const graft_order *order)
{
    uint64_t flops = 0;
    uint64_t elements = 0;
    for (graft_index i = 0; i < order->count; i++) {
        const graft_node *node = &graph->nodes[order->order[i]];
        graft_shape in[GRAFT_MAX_INPUTS];
        for (uint32_t k = 0; k < node->input_count; k++) {
            in[k] = graph->values[graft_node_input(graph, order->order[i], k)].shape;
        }
        const graft_shape *out = &graph->values[graft_node_output(graph, order->order[i], 0)].shape;
        flops += graft_op_flops(node->op, node->attrs, in, out);
        elements += graft_shape_elements(out);
    }
    return flops <= FLOPS_MOST && elements <= ELEMENTS_MOST;
}

/* ------------------------------------------------------------------ numbers */

/* By sample: quarters with zeros and ties; positive; of both signs; mostly negative. */
static double draw_number(graft_rng *rng, uint32_t sample)
{
    switch (sample % SAMPLES) {
    case 0:
        return (double)proposal_between(rng, -12, 12) / 4.0;
    case 1:
        return 0.25 + 3.0 * graft_rng_uniform(rng);
    case 2:
        return 1.5 * graft_rng_normal(rng);
    default:
        return 0.5 - 3.0 * graft_rng_uniform(rng);
    }
}

/* What came up on the way. */
typedef struct {
    bool large;     /* A finite number too large to tell apart, */
    bool undefined; /* an infinity or NaN. */
} run_result;

/* Runs every node; values[v] is row-major. */
static run_result run_graph(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                            uint64_t seed, uint32_t sample, const double **values)
{
    run_result result = {.large = false};
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        if (value->kind == GRAFT_VALUE_INPUT || value->kind == GRAFT_VALUE_WEIGHT) {
            graft_rng rng;
            size_t count = graft_count(&value->shape);
            double *tensor = GRAFT_NEW(arena, double, count);
            graft_rng_derive(&rng, seed, value->source * (uint64_t)SAMPLES + sample);
            for (size_t i = 0; i < count; i++) {
                tensor[i] = draw_number(&rng, sample);
            }
            values[v] = tensor;
        }
    }
    for (graft_index i = 0; i < order->count; i++) {
        graft_index n = order->order[i];
        const graft_node *node = &graph->nodes[n];
        graft_shape in_shapes[GRAFT_MAX_INPUTS];
        graft_shape out_shapes[GRAFT_MAX_OUTPUTS];
        const double *in[GRAFT_MAX_INPUTS] = {NULL};
        double *out[GRAFT_MAX_OUTPUTS] = {NULL};
        for (uint32_t k = 0; k < node->input_count; k++) {
            in_shapes[k] = graph->values[graft_node_input(graph, n, k)].shape;
            in[k] = values[graft_node_input(graph, n, k)];
        }
        for (uint32_t k = 0; k < node->output_count; k++) {
            out_shapes[k] = graph->values[graft_node_output(graph, n, k)].shape;
            out[k] = GRAFT_NEW(arena, double, graft_count(&out_shapes[k]));
            values[graft_node_output(graph, n, k)] = out[k];
        }
        graft_call call = {node->attrs, in_shapes, out_shapes};
        graft_real_run(node->op, &call, in, out);
        for (uint32_t k = 0; k < node->output_count; k++) {
            for (size_t e = 0; e < graft_count(&out_shapes[k]); e++) {
                result.undefined = result.undefined || !isfinite(out[k][e]);
                result.large =
                    result.large || (isfinite(out[k][e]) && fabs(out[k][e]) > magnitude_most);
            }
        }
    }
    return result;
}

/* Sets `w->found` when the outputs differ where the source has a number, also where an infinity
 * inside has come out as one, or when only the target has met with one. False: the sample says
 * nothing. */
static bool compare(graft_arena *arena, const graft_graph *before, const graft_graph *after,
                    uint64_t seed, uint32_t sample, witness *w)
{
    graft_order order_before = build_order(arena, before);
    graft_order order_after = build_order(arena, after);
    const double **left = GRAFT_NEW(arena, const double *, before->limits.values);
    const double **right = GRAFT_NEW(arena, const double *, after->limits.values);
    const run_result source = run_graph(arena, before, &order_before, seed, sample, left);
    const run_result target = run_graph(arena, after, &order_after, seed, sample, right);
    if (source.large || target.large) {
        return false;
    }
    if (target.undefined && !source.undefined) {
        w->found = true;
        w->source = left[before->outputs[0]][0];
        w->target = (double)NAN;
        return true;
    }
    bool compared = false;
    for (graft_index o = 0; o < before->output_count && !w->found; o++) {
        const double *x = left[before->outputs[o]];
        const double *y = right[after->outputs[o]];
        for (size_t e = 0; e < graft_count(&before->values[before->outputs[o]].shape); e++) {
            if (!isfinite(x[e])) {
                continue;
            }
            compared = true;
            if (!isfinite(y[e]) ||
                fabs(x[e] - y[e]) > tolerance * (1.0 + fmax(fabs(x[e]), fabs(y[e])))) {
                w->found = true;
                w->source = x[e];
                w->target = y[e];
                break;
            }
        }
    }
    return compared;
}

/* ------------------------------------------------------------------- public */

static void try_place(graft_arena *arena, place *p, uint64_t seed, witness *w)
{
    graft_graph *graph = build_source(arena, p);
    if (graph == NULL) {
        return;
    }
    graft_order order = build_order(arena, graph);
    graft_graph *after = build_graph(arena);
    CHECK_OK(graft_graph_copy(after, graph));
    const bool applied = is_small(graph, &order) && build_apply(arena, after, p->rule);
    bool compared = false;
    for (uint32_t s = 0; applied && s < SAMPLES && !w->found; s++) {
        compared = compare(arena, graph, after, seed, s, w) || compared;
    }
    if (compared) {
        memcpy(w->vars, p->vars, sizeof w->vars);
        memcpy(w->slots, p->slots, sizeof w->slots);
        w->compared++;
    }
}

witness witness_find(graft_env *env, const graft_rule *rule, const witness_options *options)
{
    witness w = {.found = false};
    graft_rng rng = check_rng(options->seed);
    for (uint32_t i = 0; i < options->attempts && !w.found && w.compared < options->enough; i++) {
        GRAFT_SCOPED(env->scratch);
        place p = {.rule = rule, .rng = &rng, .within = options->within};
        if (draw_place(env->scratch, &p)) {
            if (!proposal_once_in(&rng, 3)) {
                rename_sizes(&p);
            }
            if (!options->within && proposal_once_in(&rng, 3)) {
                stretch_attrs(&p);
            }
            if (!options->within || is_within(env->scratch, &p)) {
                try_place(env->scratch, &p, options->seed + i, &w);
            }
        }
    }
    return w;
}

const char *witness_print(graft_arena *arena, const graft_rule *rule, const witness *w)
{
    graft_point point;
    memset(&point, 0, sizeof point);
    memcpy(point.vars, w->vars, sizeof point.vars);
    memcpy(point.slots, w->slots, sizeof point.slots);
    return graft_arena_printf(arena, "%s: %g, %g", graft_point_print(arena, rule, &point),
                              w->source, w->target);
}
