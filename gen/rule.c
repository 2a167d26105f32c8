/* rule.c - from a law over configurations to a rule over operators. */
#include "gen/rule.h"

#include <assert.h>
#include <string.h>

enum { MAX_OPS = GRAFT_RULE_MAX_NODES };

typedef struct {
    int32_t attrs[GRAFT_MAX_ATTRS];
    uint8_t args[GRAFT_MAX_INPUTS]; /* GRAFT_GEN_VAR or GRAFT_GEN_OUT. */
    uint8_t op;
} op_node;

/* A side with its compounds taken apart; equal operators are one. Producers first. */
typedef struct {
    op_node nodes[MAX_OPS];
    uint8_t outputs[GRAFT_MAX_OUTPUTS];
    uint32_t count;
} op_graph;

/* --------------------------------------------------------------- expanding */

static bool same_node(const op_node *a, const op_node *b)
{
    return a->op == b->op && memcmp(a->attrs, b->attrs, sizeof a->attrs) == 0 &&
           memcmp(a->args, b->args, sizeof a->args) == 0;
}

/* The place of the node, appended when it is new; MAX_OPS when there is no room. */
static uint32_t place_node(op_graph *graph, const op_node *node)
{
    for (uint32_t n = 0; n < graph->count; n++) {
        if (same_node(&graph->nodes[n], node)) {
            return n;
        }
    }
    if (graph->count == MAX_OPS) {
        return MAX_OPS;
    }
    graph->nodes[graph->count] = *node;
    return graph->count++;
}

/* Appends a configuration's steps; `outs` receives the operands of its outputs. */
static bool expand_application(const graft_gen_config *config, const uint8_t *args, op_graph *graph,
                               uint8_t *outs)
{
    uint8_t known[GRAFT_MAX_INPUTS + GRAFT_GEN_MAX_STEPS * GRAFT_MAX_OUTPUTS];
    memcpy(known, args, config->input_count);
    for (uint32_t s = 0; s < config->step_count; s++) {
        const graft_gen_step *step = &config->steps[s];
        op_node node;
        memset(&node, 0, sizeof node);
        memcpy(node.attrs, step->attrs, sizeof node.attrs);
        node.op = step->op;
        for (uint32_t i = 0; i < graft_op(step->op)->input_count; i++) {
            node.args[i] = known[step->args[i]];
        }
        uint32_t n = place_node(graph, &node);
        if (n == MAX_OPS) {
            return false;
        }
        known[GRAFT_GEN_STEP(s, 0)] = GRAFT_GEN_OUT(n, 0);
        known[GRAFT_GEN_STEP(s, 1)] = GRAFT_GEN_OUT(n, 1);
    }
    for (uint32_t o = 0; o < config->output_count; o++) {
        outs[o] = known[config->outputs[o]];
    }
    return true;
}

static bool expand_side(const graft_gen_law *law, uint32_t side, op_graph *graph)
{
    const graft_gen_side *from = &law->sides[side];
    uint8_t outs[GRAFT_GEN_MAX_CLOSURE][GRAFT_MAX_OUTPUTS];
    memset(graph, 0, sizeof *graph);
    for (uint32_t n = 0; n < from->count; n++) {
        const graft_gen_config *config = &law->set->configs[from->nodes[n].config];
        uint8_t args[GRAFT_MAX_INPUTS];
        for (uint32_t i = 0; i < config->input_count; i++) {
            uint8_t arg = from->nodes[n].args[i];
            args[i] = GRAFT_GEN_IS_OUT(arg) ? outs[GRAFT_GEN_OUT_NODE(arg)][GRAFT_GEN_OUT_SLOT(arg)]
                                            : arg;
        }
        if (!expand_application(config, args, graph, outs[n])) {
            return false;
        }
    }
    for (uint32_t o = 0; o < law->output_count; o++) {
        uint8_t output = from->outputs[o];
        graph->outputs[o] = GRAFT_GEN_IS_OUT(output)
                                ? outs[GRAFT_GEN_OUT_NODE(output)][GRAFT_GEN_OUT_SLOT(output)]
                                : output;
    }
    return true;
}

/* --------------------------------------------------------------- principles */

/* Whether every operator of `part` occurs in `whole`. */
static bool contains_graph(const op_graph *whole, const op_graph *part)
{
    uint8_t places[MAX_OPS];
    for (uint32_t n = 0; n < part->count; n++) {
        op_node node = part->nodes[n];
        for (uint32_t i = 0; i < graft_op(node.op)->input_count; i++) {
            if (GRAFT_GEN_IS_OUT(node.args[i])) {
                node.args[i] = GRAFT_GEN_OUT(places[GRAFT_GEN_OUT_NODE(node.args[i])],
                                             GRAFT_GEN_OUT_SLOT(node.args[i]));
            }
        }
        uint8_t place = 0;
        while (place < whole->count && !same_node(&whole->nodes[place], &node)) {
            place++;
        }
        if (place == whole->count) {
            return false;
        }
        places[n] = place;
    }
    return true;
}

/* Whether the operators hang together through what they read. */
static bool is_connected(const op_graph *graph)
{
    uint32_t reached = 1;
    uint32_t vars = 0;
    bool grown = true;
    while (grown) {
        grown = false;
        for (uint32_t n = 0; n < graph->count; n++) {
            uint32_t nodes = 1u << n;
            uint32_t reads = 0;
            for (uint32_t i = 0; i < graft_op(graph->nodes[n].op)->input_count; i++) {
                uint8_t arg = graph->nodes[n].args[i];
                nodes |= GRAFT_GEN_IS_OUT(arg) ? 1u << GRAFT_GEN_OUT_NODE(arg) : 0;
                reads |= GRAFT_GEN_IS_OUT(arg) ? 0 : 1u << arg;
            }
            bool touches = (reached & nodes) != 0 || (vars & reads) != 0;
            if (touches && ((nodes & ~reached) != 0 || (reads & ~vars) != 0)) {
                reached |= nodes;
                vars |= reads;
                grown = true;
            }
        }
    }
    return reached == (1u << graph->count) - 1u;
}

static bool may_be_source(const op_graph *source, const op_graph *target, uint32_t output_count)
{
    for (uint32_t o = 0; o < output_count; o++) {
        if (!GRAFT_GEN_IS_OUT(source->outputs[o])) {
            return false;
        }
    }
    bool twice = output_count == 2 && source->outputs[0] == source->outputs[1];
    return source->count > 0 && !twice && is_connected(source) && !contains_graph(target, source);
}

/* --------------------------------------------------------------- arranging */

/* One way to write the rule: which outputs come first, which commuting operands are exchanged. */
typedef struct {
    const graft_gen_law *law;
    const op_graph *graphs[2]; /* Source, target. */
    uint32_t swaps[2];         /* By node. */
    bool outputs_swapped;
} arrangement;

static uint8_t arranged_arg(const arrangement *order, uint32_t side, uint32_t n, uint32_t i)
{
    uint32_t from = (order->swaps[side] >> n & 1u) != 0 && i < 2 ? 1 - i : i;
    return order->graphs[side]->nodes[n].args[from];
}

static uint8_t arranged_output(const arrangement *order, uint32_t side, uint32_t o)
{
    return order->graphs[side]->outputs[order->outputs_swapped ? 1 - o : o];
}

/* A side's nodes in the order in which they are written. */
typedef struct {
    uint8_t nodes[MAX_OPS];
    uint8_t places[MAX_OPS]; /* By node. */
    uint32_t count;
} node_order;

/* The order in which the source's nodes are reached from its outputs: each node's operands follow
 * it. */
static void order_source(const arrangement *order, uint32_t output_count, node_order *list)
{
    uint32_t done = 0;
    uint32_t seen = 0;
    for (uint32_t o = 0; o < output_count; o++) {
        uint8_t roots = (uint8_t)GRAFT_GEN_OUT_NODE(arranged_output(order, 0, o));
        if ((seen >> roots & 1u) == 0) {
            seen |= 1u << roots;
            list->nodes[list->count++] = roots;
        }
        for (; done < list->count; done++) {
            uint32_t n = list->nodes[done];
            list->places[n] = (uint8_t)done;
            for (uint32_t i = 0; i < graft_op(order->graphs[0]->nodes[n].op)->input_count; i++) {
                uint8_t arg = arranged_arg(order, 0, n, i);
                if (GRAFT_GEN_IS_OUT(arg) && (seen >> GRAFT_GEN_OUT_NODE(arg) & 1u) == 0) {
                    seen |= 1u << GRAFT_GEN_OUT_NODE(arg);
                    list->nodes[list->count++] = (uint8_t)GRAFT_GEN_OUT_NODE(arg);
                }
            }
        }
    }
}

/* The target's nodes, producers first, in the order in which its outputs need them. */
static void order_target(const arrangement *order, uint8_t operand, node_order *list)
{
    if (!GRAFT_GEN_IS_OUT(operand)) {
        return;
    }
    uint8_t n = (uint8_t)GRAFT_GEN_OUT_NODE(operand);
    for (uint32_t k = 0; k < list->count; k++) {
        if (list->nodes[k] == n) {
            return;
        }
    }
    for (uint32_t i = 0; i < graft_op(order->graphs[1]->nodes[n].op)->input_count; i++) {
        order_target(order, arranged_arg(order, 1, n, i), list);
    }
    list->places[n] = (uint8_t)list->count;
    list->nodes[list->count++] = n;
}

/* Variables of the law as variables of the rule. */
typedef struct {
    uint8_t names[GRAFT_GEN_LAW_VARS]; /* 255: not met yet. */
    uint8_t count;
    bool closed; /* No new ones any more. */
    bool failed;
} naming;

static graft_operand name_operand(naming *names, uint8_t operand, const uint8_t *places)
{
    if (GRAFT_GEN_IS_OUT(operand)) {
        return GRAFT_OPERAND_NODE(places[GRAFT_GEN_OUT_NODE(operand)], GRAFT_GEN_OUT_SLOT(operand));
    }
    if (names->names[operand] == 255) {
        names->failed = names->failed || names->closed || names->count == GRAFT_RULE_MAX_VARS;
        names->names[operand] = names->failed ? 0 : names->count++;
    }
    return GRAFT_OPERAND_VAR(names->names[operand]);
}

static void write_pattern(const arrangement *order, uint32_t side, const node_order *list,
                          naming *names, graft_pattern *pattern)
{
    pattern->node_count = (uint8_t)list->count;
    for (uint32_t k = 0; k < list->count; k++) {
        const op_node *node = &order->graphs[side]->nodes[list->nodes[k]];
        pattern->nodes[k].op = node->op;
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            pattern->nodes[k].attrs[i] = (graft_term){node->attrs[i], GRAFT_TERM_CONST};
        }
        for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
            pattern->nodes[k].inputs[i] =
                name_operand(names, arranged_arg(order, side, list->nodes[k], i), list->places);
        }
    }
    for (uint32_t o = 0; o < order->law->output_count; o++) {
        pattern->outputs[o] = name_operand(names, arranged_output(order, side, o), list->places);
    }
}

/* Writes the rule in this arrangement; false when the target has a variable of its own. */
static bool write_rule(const arrangement *order, graft_candidate *candidate)
{
    const graft_gen_law *law = order->law;
    naming names = {.count = 0};
    node_order source = {.count = 0};
    node_order target = {.count = 0};
    memset(candidate, 0, sizeof *candidate);
    memset(names.names, 255, sizeof names.names);
    candidate->rule.output_count = (uint8_t)law->output_count;
    candidate->rule.condition = 255;
    order_source(order, law->output_count, &source);
    write_pattern(order, 0, &source, &names, &candidate->rule.source);
    names.closed = true;
    for (uint32_t o = 0; o < law->output_count; o++) {
        order_target(order, arranged_output(order, 1, o), &target);
    }
    write_pattern(order, 1, &target, &names, &candidate->rule.target);
    candidate->rule.var_count = names.count;
    for (uint32_t v = 0; v < law->var_count; v++) {
        if (names.names[v] != 255) {
            candidate->shapes[names.names[v]] = law->var_shapes[v];
            candidate->is_weight[names.names[v]] = law->var_is_weight[v];
        }
    }
    return !names.failed;
}

/* ------------------------------------------------------------------- codes */

static void append_code(graft_gen_ruling *ruling, int32_t word)
{
    assert(ruling->code_size < GRAFT_GEN_RULE_CODE);
    ruling->code[ruling->code_size++] = word;
}

static void append_skeleton(graft_gen_ruling *ruling, const graft_pattern *pattern)
{
    append_code(ruling, pattern->node_count);
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        append_code(ruling, pattern->nodes[n].op);
        for (uint32_t i = 0; i < graft_op(pattern->nodes[n].op)->input_count; i++) {
            append_code(ruling, pattern->nodes[n].inputs[i]);
        }
    }
    for (uint32_t o = 0; o < ruling->candidate.rule.output_count; o++) {
        append_code(ruling, pattern->outputs[o]);
    }
}

/* A size counts as the first dimension of a variable that has it. */
static int32_t name_size(const graft_candidate *candidate, int32_t size)
{
    for (uint32_t v = 0; v < candidate->rule.var_count; v++) {
        for (uint32_t i = 0; i < candidate->shapes[v].rank; i++) {
            if (size > 1 && candidate->shapes[v].dims[i] == size) {
                return -(int32_t)(1 + v * GRAFT_MAX_RANK + i);
            }
        }
    }
    return size;
}

static void append_attrs(graft_gen_ruling *ruling, const graft_pattern *pattern)
{
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        const graft_pattern_node *node = &pattern->nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            bool is_size = graft_op_attr(node->op, i)->kind == GRAFT_ATTR_DIM;
            int32_t value = node->attrs[i].value;
            append_code(ruling, is_size ? name_size(&ruling->candidate, value) : value);
        }
    }
}

static void write_code(graft_gen_ruling *ruling)
{
    const graft_rule *rule = &ruling->candidate.rule;
    ruling->code_size = 0;
    append_code(ruling, rule->output_count);
    append_skeleton(ruling, &rule->source);
    append_skeleton(ruling, &rule->target);
    ruling->skeleton_size = ruling->code_size;
    for (uint32_t v = 0; v < rule->var_count; v++) {
        append_code(ruling, ruling->candidate.shapes[v].rank);
    }
    append_attrs(ruling, &rule->source);
    append_attrs(ruling, &rule->target);
}

static bool code_is_less(const graft_gen_ruling *a, const graft_gen_ruling *b)
{
    for (uint32_t i = 0; i < a->code_size && i < b->code_size; i++) {
        if (a->code[i] != b->code[i]) {
            return a->code[i] < b->code[i];
        }
    }
    return a->code_size < b->code_size;
}

/* ------------------------------------------------------------------- rules */

static uint32_t commuting_nodes(const op_graph *graph)
{
    uint32_t bits = 0;
    for (uint32_t n = 0; n < graph->count; n++) {
        bool commutes = (graft_op(graph->nodes[n].op)->flags & GRAFT_FLAG_COMMUTES) != 0;
        bits |= commutes && graph->nodes[n].args[0] != graph->nodes[n].args[1] ? 1u << n : 0;
    }
    return bits;
}

/* Tries every subset of the commuting nodes of both sides. False when no arrangement is a rule. */
static bool arrange(arrangement *order, graft_gen_ruling *best)
{
    uint32_t commuting[2] = {commuting_nodes(order->graphs[0]), commuting_nodes(order->graphs[1])};
    graft_gen_ruling trial;
    bool found = false;
    order->swaps[0] = commuting[0];
    for (;;) {
        order->swaps[1] = commuting[1];
        for (;;) {
            if (!write_rule(order, &trial.candidate)) {
                return false; /* Which variables there are does not depend on their order. */
            }
            write_code(&trial);
            if (!found || code_is_less(&trial, best)) {
                *best = trial;
                found = true;
            }
            if (order->swaps[1] == 0) {
                break;
            }
            order->swaps[1] = (order->swaps[1] - 1) & commuting[1];
        }
        if (order->swaps[0] == 0) {
            return found;
        }
        order->swaps[0] = (order->swaps[0] - 1) & commuting[0];
    }
}

bool graft_gen_rule_make(const graft_gen_law *law, uint32_t source, graft_gen_ruling *ruling)
{
    op_graph graphs[2];
    if (!expand_side(law, source, &graphs[0]) || !expand_side(law, 1 - source, &graphs[1]) ||
        !may_be_source(&graphs[0], &graphs[1], law->output_count)) {
        return false;
    }
    arrangement order = {
        .law = law, .graphs = {&graphs[0], &graphs[1]}
    };
    if (!arrange(&order, ruling)) {
        return false;
    }
    if (law->output_count == 2) {
        graft_gen_ruling other;
        order.outputs_swapped = true;
        if (arrange(&order, &other) && code_is_less(&other, ruling)) {
            *ruling = other;
        }
    }
    assert(graft_rule_check(&ruling->candidate.rule) == NULL);
    return true;
}
