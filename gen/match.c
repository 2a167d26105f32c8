/* match.c - where a law fits graphs of a space, and what it turns them into.
 *
 * A side's nodes are matched from its roots down: when a node's turn comes, the nodes that read it
 * have fixed which value it must compute, and any node of the space that computes that value will
 * do. Backtracking over those nodes and over the order of commuting arguments. */
#include "gen/law.h"

#include <string.h>

typedef struct {
    const graft_gen_space *space;
    const graft_gen_law *law;
    const graft_gen_side *side;
    bool (*visit)(void *context, graft_gen_fit *fit);
    void *context;
} matcher;

/* What is bound so far; copied at each choice. */
typedef struct {
    graft_gen_fit fit;
    uint32_t outs[GRAFT_GEN_MAX_CLOSURE][GRAFT_MAX_OUTPUTS]; /* Values that readers ask for. */
} binding;

static bool match_node(const matcher *match, uint32_t left, const binding *bound);

static bool bind_operand(const matcher *match, binding *bound, uint8_t operand, uint32_t value)
{
    const graft_gen_space *space = match->space;
    uint32_t *place = NULL;
    if (GRAFT_GEN_IS_OUT(operand)) {
        place = &bound->outs[GRAFT_GEN_OUT_NODE(operand)][GRAFT_GEN_OUT_SLOT(operand)];
    } else {
        const graft_shape *drawn = &match->law->var_shapes[operand];
        const graft_shape *shape = &space->shapes[space->values[value].shape];
        place = &bound->fit.vars[operand];
        if (drawn->rank != shape->rank) {
            return false;
        }
        bound->fit.same_shapes = bound->fit.same_shapes && graft_shape_equal(drawn, shape);
    }
    if (*place == GRAFT_GEN_NONE) {
        *place = value;
    }
    return *place == value;
}

/* Goes on with the node's arguments bound, in one order and, if they commute, in the other. False
 * when the visitor wants no more. */
static bool bind_arguments(const matcher *match, uint32_t n, const graft_gen_node *node,
                           const binding *bound)
{
    const graft_gen_application *pattern = &match->side->nodes[n];
    const graft_gen_config *config = &match->space->set->configs[node->config];
    uint32_t orders = config->commutes && node->args[0] != node->args[1] ? 2 : 1;
    for (uint32_t swap = 0; swap < orders; swap++) {
        binding next = *bound;
        bool fits = true;
        for (uint32_t i = 0; i < config->input_count && fits; i++) {
            uint32_t from = swap == 1 && i < 2 ? 1 - i : i;
            fits = bind_operand(match, &next, pattern->args[i], node->args[from]);
        }
        if (fits && !match_node(match, n, &next)) {
            return false;
        }
    }
    return true;
}

static bool try_node(const matcher *match, uint32_t n, uint32_t number, const binding *bound)
{
    const graft_gen_node *node = &match->space->nodes[number];
    if (node->config != match->side->nodes[n].config) {
        return true;
    }
    for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS; o++) {
        if (bound->outs[n][o] != GRAFT_GEN_NONE && bound->outs[n][o] != node->outs[o]) {
            return true;
        }
    }
    binding next = *bound;
    next.fit.nodes[n] = number;
    return bind_arguments(match, n, node, &next);
}

/* The first producer of a value whose configuration is at least `config`. */
static uint32_t first_producer(const graft_gen_space *space, uint32_t value, uint32_t config)
{
    uint32_t low = space->producer_first[value];
    uint32_t high = space->producer_first[value + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (space->nodes[space->producers[middle] / GRAFT_MAX_OUTPUTS].config < config) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Matches the nodes before `left`, the last of them first. */
static bool match_node(const matcher *match, uint32_t left, const binding *bound)
{
    if (left == 0) {
        graft_gen_fit fit = bound->fit;
        return match->visit(match->context, &fit);
    }
    uint32_t n = left - 1;
    if (bound->fit.nodes[n] != GRAFT_GEN_NONE) {
        return try_node(match, n, bound->fit.nodes[n], bound);
    }
    uint32_t slot = bound->outs[n][0] == GRAFT_GEN_NONE ? 1 : 0;
    if (bound->outs[n][slot] == GRAFT_GEN_NONE) {
        return true; /* Nothing reads it: not a side that can be matched from these roots. */
    }
    uint32_t value = bound->outs[n][slot];
    uint32_t end = match->space->producer_first[value + 1];
    uint32_t config = match->side->nodes[n].config;
    for (uint32_t i = first_producer(match->space, value, config); i < end; i++) {
        uint32_t link = match->space->producers[i];
        uint32_t number = link / GRAFT_MAX_OUTPUTS;
        if (match->space->nodes[number].config != config) {
            break;
        }
        if (link % GRAFT_MAX_OUTPUTS == slot && !try_node(match, n, number, bound)) {
            return false;
        }
    }
    return true;
}

void graft_gen_law_match(const graft_gen_space *space, const graft_gen_law *law, uint32_t side,
                         const graft_gen_roots *roots,
                         bool (*visit)(void *context, graft_gen_fit *fit), void *context)
{
    matcher match = {space, law, &law->sides[side], visit, context};
    binding bound;
    memset(&bound, 0xff, sizeof bound);
    bound.fit.same_shapes = true;
    for (uint32_t o = 0; o < law->output_count; o++) {
        uint8_t operand = match.side->outputs[o];
        uint32_t node = roots->of[o] / GRAFT_MAX_OUTPUTS;
        uint32_t slot = roots->of[o] % GRAFT_MAX_OUTPUTS;
        uint32_t value = space->nodes[node].outs[slot];
        if (!bind_operand(&match, &bound, operand, value)) {
            return;
        }
        if (GRAFT_GEN_IS_OUT(operand)) {
            uint32_t *place = &bound.fit.nodes[GRAFT_GEN_OUT_NODE(operand)];
            if (slot != GRAFT_GEN_OUT_SLOT(operand) ||
                (*place != GRAFT_GEN_NONE && *place != node)) {
                return;
            }
            *place = node;
        }
    }
    (void)match_node(&match, match.side->count, &bound);
}

bool graft_gen_law_apply(const graft_gen_space *space, const graft_gen_law *law, uint32_t side,
                         graft_gen_fit *fit, uint32_t *values, graft_gen_roots *roots)
{
    const graft_gen_side *other = &law->sides[1 - side];
    uint32_t *nodes = fit->others;
    for (uint32_t n = 0; n < other->count; n++) {
        const graft_gen_config *config = &space->set->configs[other->nodes[n].config];
        uint32_t args[GRAFT_MAX_INPUTS];
        for (uint32_t i = 0; i < config->input_count; i++) {
            uint8_t operand = other->nodes[n].args[i];
            args[i] = GRAFT_GEN_IS_OUT(operand) ? space->nodes[nodes[GRAFT_GEN_OUT_NODE(operand)]]
                                                      .outs[GRAFT_GEN_OUT_SLOT(operand)]
                                                : fit->vars[operand];
            if (args[i] == GRAFT_GEN_NONE) {
                return false;
            }
        }
        nodes[n] = graft_gen_node_find(space, other->nodes[n].config, args);
        if (nodes[n] == GRAFT_GEN_NONE || space->nodes[nodes[n]].outs[0] == GRAFT_GEN_NONE) {
            return false;
        }
    }
    for (uint32_t o = 0; o < law->output_count; o++) {
        uint8_t operand = other->outputs[o];
        bool is_out = GRAFT_GEN_IS_OUT(operand);
        uint32_t slot = GRAFT_GEN_OUT_SLOT(operand);
        uint32_t node = is_out ? nodes[GRAFT_GEN_OUT_NODE(operand)] : 0;
        values[o] = is_out ? space->nodes[node].outs[slot] : fit->vars[operand];
        roots->of[o] = is_out ? node * GRAFT_MAX_OUTPUTS + slot : GRAFT_GEN_NONE;
        if (values[o] == GRAFT_GEN_NONE) {
            return false;
        }
    }
    return true;
}
