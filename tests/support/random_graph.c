/* random_graph.c - see random_graph.h. */
#include "tests/support/random_graph.h"

#include "tests/support/build.h"
#include "tests/support/evaluate.h"
#include "tests/support/proposal.h"
#include "tests/support/rebuild.h"

#include <math.h>
#include <string.h>

static const graft_limits growing_limits = {128, 1024, 768, 32};

enum { ATTEMPTS = 6, OPAQUE_MOST = 3 };

typedef struct {
    graft_arena *arena;
    graft_rng *rng;
    const random_graph_options *options;
    graft_graph *graph;
    const graft_field **tensors; /* By value id. */
    bool *read;                  /* By value id: some node reads it. */
    uint32_t source_count;
} grower;

/* ------------------------------------------------------------------ values */

static graft_index grow_source(grower *g, const graft_shape *shape)
{
    graft_index value = GRAFT_NONE;
    graft_index source = g->source_count++;
    if (proposal_once_in(g->rng, 3)) {
        CHECK_OK(graft_graph_add_input(g->graph, shape, source, &value));
    } else {
        CHECK_OK(graft_graph_add_weight(g->graph, shape, source, &value));
    }
    g->tensors[value] = evaluate_source(g->arena, g->options->sample, &g->graph->values[value]);
    g->read[value] = false;
    return value;
}

/* Any value of known shape, those that nothing reads yet rather than others; GRAFT_NONE: none. */
static graft_index pick_value(grower *g)
{
    for (uint32_t attempt = 0; attempt < 4 && g->graph->value_end > 0; attempt++) {
        graft_index value = graft_rng_below(g->rng, g->graph->value_end);
        if (g->graph->values[value].shape.rank != GRAFT_RANK_UNKNOWN &&
            (!g->read[value] || attempt > 1)) {
            return value;
        }
    }
    return GRAFT_NONE;
}

/* A value of this shape: half of the time one that exists, if there is one. */
static graft_index pick_shaped(grower *g, const graft_shape *shape)
{
    graft_index start = graft_rng_below(g->rng, g->graph->value_end + 1);
    bool reuse = proposal_once_in(g->rng, 2);
    for (graft_index i = 0; reuse && i < g->graph->value_end; i++) {
        graft_index value = (start + i) % g->graph->value_end;
        if (graft_shape_equal(&g->graph->values[value].shape, shape)) {
            return value;
        }
    }
    return grow_source(g, shape);
}

/* ------------------------------------------------------------------- nodes */

static bool numbers_are_small(const graft_field *tensor, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(tensor[i].shadow) <= RANDOM_GRAPH_MAGNITUDE)) {
            return false;
        }
    }
    return true;
}

static bool run_proposal(grower *g, const proposal *p, const graft_shape *out_shapes,
                         const graft_index *operands, const graft_field *out[])
{
    const graft_field *in[GRAFT_MAX_INPUTS] = {NULL};
    graft_call call = {p->attrs, p->in, out_shapes};
    const graft_op_info *info = graft_op(p->op);
    for (uint32_t i = 0; i < info->input_count; i++) {
        in[i] = g->tensors[operands[i]];
    }
    bool valid = evaluate_call(g->arena, p->op, &call, in, out);
    for (uint32_t o = 0; o < info->output_count; o++) {
        valid = valid && numbers_are_small(out[o], graft_count(&out_shapes[o]));
    }
    return valid;
}

static bool sizes_are_small(const proposal *p, const graft_shape *out)
{
    bool small = graft_op_flops(p->op, p->attrs, p->in, out) <= RANDOM_GRAPH_FLOPS;
    for (uint32_t i = 0; i < graft_op(p->op)->input_count; i++) {
        small = small && graft_count(&p->in[i]) <= RANDOM_GRAPH_ELEMENTS;
    }
    return small && graft_count(&out[0]) <= RANDOM_GRAPH_ELEMENTS;
}

static void record_node(grower *g, graft_index node, const graft_field *const *out)
{
    for (uint32_t i = 0; i < g->graph->nodes[node].input_count; i++) {
        graft_index v = graft_node_input(g->graph, node, i);
        if (v != GRAFT_NONE) {
            g->read[v] = true;
        }
    }
    for (uint32_t o = 0; o < g->graph->nodes[node].output_count; o++) {
        graft_index v = graft_node_output(g->graph, node, o);
        g->tensors[v] = out[o];
        g->read[v] = false;
    }
}

/* Adds a node for which `from` says what is known; `operands` are GRAFT_NONE where they are not and
 * receive the values that were taken. GRAFT_NONE when nothing was found that fits. */
static graft_index grow_node(grower *g, const proposal *from, graft_index *operands)
{
    const graft_op_info *info = graft_op(from->op);
    for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        proposal p = *from;
        graft_shape out_shapes[GRAFT_MAX_OUTPUTS];
        graft_index taken[GRAFT_MAX_INPUTS] = {0};
        const graft_field *out[GRAFT_MAX_OUTPUTS] = {NULL};
        graft_index node = GRAFT_NONE;
        for (uint32_t i = 0; i < info->input_count; i++) {
            p.in_known[i] = operands[i] != GRAFT_NONE;
            p.in[i] =
                p.in_known[i] ? g->graph->values[operands[i]].shape : (graft_shape){.rank = 0};
        }
        proposal_draw(g->rng, &p);
        if (graft_infer_shapes(p.op, p.attrs, p.in, out_shapes) != GRAFT_OK ||
            !sizes_are_small(&p, out_shapes)) {
            continue;
        }
        for (uint32_t i = 0; i < info->input_count; i++) {
            taken[i] = p.in_known[i] ? operands[i] : pick_shaped(g, &p.in[i]);
        }
        if (run_proposal(g, &p, out_shapes, taken, out)) {
            CHECK_OK(graft_graph_add_node(g->graph, p.op, p.attrs, taken, GRAFT_NONE, &node));
            memcpy(operands, taken, sizeof taken);
            record_node(g, node, out);
            return node;
        }
    }
    return GRAFT_NONE;
}

static void grow_operator(grower *g)
{
    proposal p = {.op = 1 + graft_rng_below(g->rng, GRAFT_OP_COUNT - 1)};
    graft_index operands[GRAFT_MAX_INPUTS];
    const graft_op_info *info = graft_op(p.op);
    for (uint32_t i = 0; i < GRAFT_MAX_INPUTS; i++) {
        operands[i] = GRAFT_NONE;
    }
    bool real = p.op != GRAFT_OP_dequantise && p.op != GRAFT_OP_logical_not &&
                p.op != GRAFT_OP_select; /* Few values have 8 bits, or are booleans. */
    if (info->input_count > 0 && real && !proposal_once_in(g->rng, 6)) {
        uint32_t known =
            proposal_once_in(g->rng, 2) ? 0 : graft_rng_below(g->rng, info->input_count);
        operands[known] = pick_value(g);
    }
    (void)grow_node(g, &p, operands);
}

/* An opaque node with up to three inputs, some of them left out, and up to two outputs. */
static void grow_opaque(grower *g)
{
    graft_index inputs[OPAQUE_MOST];
    graft_shape shapes[2];
    graft_index node = GRAFT_NONE;
    uint16_t input_count = (uint16_t)graft_rng_below(g->rng, OPAQUE_MOST + 1);
    uint16_t output_count = (uint16_t)(1 + graft_rng_below(g->rng, 2));
    for (uint32_t i = 0; i < input_count; i++) {
        inputs[i] = pick_value(g);
    }
    for (uint32_t i = 0; i < output_count; i++) {
        proposal p = {.op = GRAFT_OP_relu};
        proposal_draw(g->rng, &p);
        shapes[i] = p.in[0];
        if (proposal_once_in(g->rng, 4)) {
            shapes[i] = (graft_shape){.rank = GRAFT_RANK_UNKNOWN};
        }
    }
    CHECK_OK(graft_graph_add_opaque(g->graph, g->source_count++, inputs, input_count, shapes,
                                    output_count, &node));
    const graft_field *out[2] = {NULL, NULL};
    evaluate_opaque(g->arena, g->graph, node, g->tensors, out);
    record_node(g, node, out);
}

/* ---------------------------------------------------------------- patterns */

/* A source pattern while it is planted. */
typedef struct {
    const graft_rule *rule;
    graft_index vars[GRAFT_RULE_MAX_VARS];
    graft_index nodes[GRAFT_RULE_MAX_NODES];
    int32_t slots[GRAFT_RULE_MAX_SLOTS];
    uint64_t bound; /* Slots. */
} planting;

/* The value of an operand, GRAFT_NONE when it is not there yet. */
static graft_index planted_value(const grower *g, const planting *p, graft_operand operand)
{
    if (!GRAFT_OPERAND_IS_NODE(operand)) {
        return p->vars[operand];
    }
    graft_index node = p->nodes[GRAFT_OPERAND_NODE_OF(operand)];
    return node == GRAFT_NONE ? GRAFT_NONE
                              : graft_node_output(g->graph, node, GRAFT_OPERAND_SLOT_OF(operand));
}

/* A pattern node that is not planted and whose producers are; GRAFT_RULE_MAX_NODES: none. */
static uint32_t find_ready(const planting *p)
{
    const graft_pattern *source = &p->rule->source;
    for (uint32_t n = source->node_count; n-- > 0;) {
        bool ready = p->nodes[n] == GRAFT_NONE;
        for (uint32_t i = 0; ready && i < graft_op(source->nodes[n].op)->input_count; i++) {
            graft_operand x = source->nodes[n].inputs[i];
            ready = !GRAFT_OPERAND_IS_NODE(x) || p->nodes[GRAFT_OPERAND_NODE_OF(x)] != GRAFT_NONE;
        }
        if (ready) {
            return n;
        }
    }
    return GRAFT_RULE_MAX_NODES;
}

/* A number may have a node for each of its readers. */
static graft_index plant_again(grower *g, graft_index value)
{
    const graft_node *node = &g->graph->nodes[g->graph->values[value].node];
    proposal same = {.op = node->op};
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        same.attr_known[i] = true;
        same.attrs[i] = node->attrs[i];
    }
    const graft_index made = grow_node(g, &same, (graft_index[GRAFT_MAX_INPUTS]){GRAFT_NONE});
    return made == GRAFT_NONE ? value : graft_node_output(g->graph, made, 0);
}

static bool plant_node(grower *g, planting *p, uint32_t n)
{
    const graft_pattern_node *pattern = &p->rule->source.nodes[n];
    const graft_op_info *info = graft_op(pattern->op);
    proposal drawn = {.op = pattern->op};
    graft_index operands[GRAFT_MAX_INPUTS] = {GRAFT_NONE, GRAFT_NONE, GRAFT_NONE, GRAFT_NONE};
    bool any = false;
    for (uint32_t i = 0; i < info->input_count; i++) {
        operands[i] = planted_value(g, p, pattern->inputs[i]);
        if (GRAFT_OPERAND_IS_NODE(pattern->inputs[i]) &&
            p->rule->source.nodes[GRAFT_OPERAND_NODE_OF(pattern->inputs[i])].op == GRAFT_OP_fill &&
            proposal_once_in(g->rng, 3)) {
            operands[i] = plant_again(g, operands[i]);
        }
        any = any || operands[i] != GRAFT_NONE;
    }
    if (!any && info->input_count > 0 && !proposal_once_in(g->rng, 4)) {
        operands[proposal_once_in(g->rng, 4) ? info->input_count - 1u : 0] = pick_value(g);
    }
    for (uint32_t i = 0; i < info->attr_count; i++) {
        const graft_term *term = &pattern->attrs[i];
        drawn.attr_known[i] = term->kind == GRAFT_TERM_CONST || (p->bound >> term->value & 1u) != 0;
        if (drawn.attr_known[i]) {
            drawn.attrs[i] = term->kind == GRAFT_TERM_CONST ? term->value : p->slots[term->value];
        }
    }
    p->nodes[n] = grow_node(g, &drawn, operands);
    for (uint32_t i = 0; p->nodes[n] != GRAFT_NONE && i < info->input_count; i++) {
        if (!GRAFT_OPERAND_IS_NODE(pattern->inputs[i])) {
            p->vars[pattern->inputs[i]] = operands[i];
        }
    }
    for (uint32_t i = 0; p->nodes[n] != GRAFT_NONE && i < info->attr_count; i++) {
        if (pattern->attrs[i].kind == GRAFT_TERM_SLOT) {
            p->slots[pattern->attrs[i].value] = g->graph->nodes[p->nodes[n]].attrs[i];
            p->bound |= UINT64_C(1) << pattern->attrs[i].value;
        }
    }
    return p->nodes[n] != GRAFT_NONE;
}

static bool applies(const grower *g, const planting *p)
{
    graft_order order = build_order(g->arena, g->graph);
    void *scratch = build_scratch(g->arena, g->graph);
    graft_apply_options options = {UINT64_MAX};
    graft_matcher matcher;
    graft_match match;
    graft_matcher_start(&matcher, p->rule, g->graph, &order, p->nodes[0]);
    while (graft_matcher_next(&matcher, &match)) {
        if (graft_match_try(g->graph, p->rule, &match, &order, &options, scratch) == GRAFT_OK) {
            return true;
        }
    }
    return false;
}

static bool plant_pattern(grower *g, const graft_rule *rule)
{
    planting p = {.rule = rule};
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS; v++) {
        p.vars[v] = GRAFT_NONE;
    }
    for (uint32_t n = 0; n < GRAFT_RULE_MAX_NODES; n++) {
        p.nodes[n] = GRAFT_NONE;
    }
    uint32_t ready = find_ready(&p);
    while (ready < GRAFT_RULE_MAX_NODES && plant_node(g, &p, ready)) {
        ready = find_ready(&p);
    }
    return ready == GRAFT_RULE_MAX_NODES && applies(g, &p);
}

/* What has been planted of a pattern that does not work out stays: it is as random as the rest. */
static void grow_pattern(grower *g)
{
    const graft_rule *rule = g->options->rules[graft_rng_below(g->rng, g->options->rule_count)];
    for (uint32_t attempt = 0; attempt < 4 && !plant_pattern(g, rule); attempt++) {
    }
}

/* ----------------------------------------------------------------- outputs */

/* Computed values that nothing reads, but for a few, and some that are read; in random order. */
static void choose_outputs(grower *g)
{
    graft_graph *graph = g->graph;
    graft_index start = graft_rng_below(g->rng, graph->value_end);
    for (graft_index i = 0;
         i < graph->value_end && graph->output_count + 1 < growing_limits.outputs; i++) {
        graft_index v = (start + i) % graph->value_end;
        bool computed = graph->values[v].kind == GRAFT_VALUE_COMPUTED;
        if (computed &&
            (g->read[v] ? proposal_once_in(g->rng, 12) : !proposal_once_in(g->rng, 8))) {
            CHECK_OK(graft_graph_add_output(graph, v));
        }
    }
    if (graph->output_count == 0 ||
        proposal_once_in(g->rng, 16)) { /* A value twice, or a source. */
        CHECK_OK(graft_graph_add_output(graph, start));
    }
}

graft_graph *random_graph_draw(graft_arena *arena, graft_rng *rng,
                               const random_graph_options *options)
{
    grower g = {.arena = arena, .rng = rng, .options = options};
    g.graph = build_graph_within(arena, growing_limits);
    g.tensors = GRAFT_NEW(arena, const graft_field *, growing_limits.values);
    g.read = GRAFT_NEW(arena, bool, growing_limits.values);
    /* A step adds a pattern at most; the bound on steps is for sizes that nothing fits. */
    for (uint32_t step = 0; step < 4 * options->node_count; step++) {
        if (g.graph->node_end >= options->node_count) {
            break;
        }
        if (options->rule_count > 0 && proposal_once_in(rng, 3)) {
            grow_pattern(&g);
        } else if (proposal_once_in(rng, 24)) {
            grow_opaque(&g);
        } else {
            grow_operator(&g);
        }
    }
    choose_outputs(&g);
    if (!proposal_once_in(rng, 6)) { /* Else dead nodes stay. */
        graft_graph_remove_dead(g.graph);
    }
    return proposal_once_in(rng, 2) ? rebuild_shuffled(arena, rng, g.graph)
                                    : rebuild_within(arena, g.graph, rebuild_limits(g.graph, 30));
}
