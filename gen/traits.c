/* traits.c - sets of paths as words. See traits.h. */
#include "gen/traits.h"

#include <string.h>

enum { RANK_BITS = 57 }; /* Ranks share the last bits with configurations from there on. */

static uint64_t config_bit(uint32_t config) { return UINT64_C(1) << (config % 64); }

static uint64_t rank_bit(uint32_t rank) { return UINT64_C(1) << (RANK_BITS + rank % 7); }

static uint64_t rotate(uint64_t word, uint32_t by)
{
    return by == 0 ? word : word << by | word >> (64 - by);
}

/* The number of a step: through operand i of a configuration. */
static uint32_t step_number(const graft_gen_config *config, uint32_t number, uint32_t i)
{
    uint32_t position = config->commutes && i < 2 ? 0 : i;
    return ((number * 8 + position + 1) * UINT32_C(0x9E3779B1)) >> 26;
}

/* Puts the step through operand i before the operand's paths. */
static void add_operand(graft_gen_trait *node, const graft_gen_config *config, uint32_t number,
                        uint32_t i, const graft_gen_trait *operand)
{
    uint32_t by = step_number(config, number, i);
    for (uint32_t k = 0; k < GRAFT_GEN_TRAIT_LEVELS; k++) {
        node->paths[k] |= rotate(operand->paths[k], by);
    }
}

graft_gen_trait graft_gen_trait_of_node(const graft_gen_space *space, const graft_gen_node *node)
{
    const graft_gen_config *config = &space->set->configs[node->config];
    graft_gen_trait trait = {{0}};
    for (uint32_t i = 0; i < config->input_count; i++) {
        add_operand(&trait, config, node->config, i, &space->traits[node->args[i]]);
    }
    return trait;
}

/* Level by level, because a value's nodes may read each other's values. */
void graft_gen_traits_list(graft_gen_space *space)
{
    space->traits = GRAFT_NEW(space->arena, graft_gen_trait, space->value_count);
    for (uint32_t v = 0; v < space->value_count; v++) {
        space->traits[v].paths[0] = rank_bit(space->shapes[space->values[v].shape].rank);
    }
    for (uint32_t k = 0; k < GRAFT_GEN_TRAIT_LEVELS; k++) {
        for (uint32_t v = 0; v < space->value_count; v++) {
            for (uint32_t i = space->producer_first[v]; i < space->producer_first[v + 1]; i++) {
                const graft_gen_node *node = &space->nodes[space->producers[i] / GRAFT_MAX_OUTPUTS];
                space->traits[v].paths[k] |=
                    k == 0 ? config_bit(node->config)
                           : graft_gen_trait_of_node(space, node).paths[k - 1];
            }
        }
    }
}

void graft_gen_pattern_make(const graft_gen_law *law, uint32_t side, graft_gen_pattern *pattern)
{
    memset(pattern, 0, sizeof *pattern);
    pattern->law = law;
    pattern->side = side;
    for (uint32_t v = 0; v < law->var_count; v++) {
        pattern->of_vars[v].paths[0] = rank_bit(law->var_shapes[v].rank);
    }
    for (uint32_t n = 0; n < law->sides[side].count; n++) {
        const graft_gen_application *node = &law->sides[side].nodes[n];
        const graft_gen_config *config = &law->set->configs[node->config];
        for (uint32_t i = 0; i < config->input_count; i++) {
            add_operand(&pattern->of_nodes[n], config, node->config, i,
                        graft_gen_pattern_trait(pattern, node->args[i]));
        }
        pattern->of_outs[n].paths[0] = config_bit(node->config);
        for (uint32_t k = 1; k < GRAFT_GEN_TRAIT_LEVELS; k++) {
            pattern->of_outs[n].paths[k] = pattern->of_nodes[n].paths[k - 1];
        }
    }
}
