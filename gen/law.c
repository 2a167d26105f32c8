/* law.c - making laws from graphs of a space, generalising them by cutting. */
#include "gen/law.h"

#include "gen/check.h"

#include <string.h>

enum {
    CHECK_SAMPLES = 24, /* Fresh samples that a law must pass before and after each cut... */
    FINAL_SAMPLES = 360 /* ...and at the end. */
};

/* --------------------------------------------------------------- sides */

typedef struct {
    const graft_gen_space *space;
    graft_gen_law *law;
    graft_gen_side *side;
    const uint32_t *cuts;
    uint32_t cut_count;
    uint32_t vars[GRAFT_GEN_LAW_VARS];        /* Values. */
    uint32_t (*nodes)[GRAFT_GEN_MAX_CLOSURE]; /* Of each side: the nodes of the space. */
    bool full;                                /* Something did not fit into the law. */
} side_maker;

static uint8_t operand_of_value(side_maker *maker, uint32_t value);

static uint8_t make_var(side_maker *maker, uint32_t value)
{
    graft_gen_law *law = maker->law;
    for (uint32_t v = 0; v < law->var_count; v++) {
        if (maker->vars[v] == value) {
            return GRAFT_GEN_VAR(v);
        }
    }
    if (law->var_count == GRAFT_GEN_LAW_VARS) {
        maker->full = true;
        return 0;
    }
    maker->vars[law->var_count] = value;
    law->var_shapes[law->var_count] = maker->space->shapes[maker->space->values[value].shape];
    law->var_is_weight[law->var_count] = maker->space->values[value].is_weight;
    law->var_streams[law->var_count] =
        (uint8_t)(value < maker->space->set->input_count ? value
                                                         : GRAFT_GEN_MAX_VARS + law->var_count);
    return GRAFT_GEN_VAR(law->var_count++);
}

/* The place of a node of the space in the side; adds what it needs first. */
static uint32_t make_application(side_maker *maker, uint32_t number)
{
    graft_gen_side *side = maker->side;
    uint32_t *nodes = maker->nodes[side == &maker->law->sides[0] ? 0 : 1];
    const graft_gen_node *node = &maker->space->nodes[number];
    graft_gen_application made = {.config = node->config};
    for (uint32_t i = 0; i < side->count; i++) {
        if (nodes[i] == number) {
            return i;
        }
    }
    for (uint32_t i = 0; i < maker->space->set->configs[node->config].input_count; i++) {
        made.args[i] = operand_of_value(maker, node->args[i]);
    }
    if (side->count == GRAFT_GEN_MAX_CLOSURE) {
        maker->full = true;
        return 0;
    }
    side->nodes[side->count] = made;
    nodes[side->count] = number;
    return side->count++;
}

static uint8_t operand_of_value(side_maker *maker, uint32_t value)
{
    const graft_gen_value *v = &maker->space->values[value];
    bool is_var = v->node == GRAFT_GEN_NONE;
    for (uint32_t i = 0; i < maker->cut_count; i++) {
        is_var = is_var || maker->cuts[i] == value;
    }
    return is_var ? make_var(maker, value)
                  : GRAFT_GEN_OUT(make_application(maker, v->node), v->slot);
}

static uint8_t operand_of_root(side_maker *maker, uint32_t root)
{
    if (GRAFT_GEN_ROOT_IS_INPUT(root)) {
        return operand_of_value(maker, GRAFT_GEN_ROOT_INPUT_OF(root));
    }
    uint32_t node = root / GRAFT_MAX_OUTPUTS;
    uint32_t slot = root % GRAFT_MAX_OUTPUTS;
    uint32_t value = maker->space->nodes[node].outs[slot];
    if (maker->space->values[value].node == node && maker->space->values[value].slot == slot) {
        return operand_of_value(maker, value); /* It may have been cut. */
    }
    return GRAFT_GEN_OUT(make_application(maker, node), slot);
}

/* Writes the law and, of each side, the nodes that it was made from. */
static bool make_law(const graft_gen_space *space, const graft_gen_roots *const roots[2],
                     const uint32_t *cuts, uint32_t cut_count, graft_gen_law *law,
                     uint32_t nodes[2][GRAFT_GEN_MAX_CLOSURE])
{
    uint32_t output_count = law->output_count;
    side_maker maker = {
        .space = space, .law = law, .cuts = cuts, .cut_count = cut_count, .nodes = nodes};
    memset(law, 0, sizeof *law);
    law->set = space->set;
    law->output_count = output_count;
    for (uint32_t s = 0; s < 2; s++) {
        maker.side = &law->sides[s];
        for (uint32_t o = 0; o < output_count; o++) {
            maker.side->outputs[o] = operand_of_root(&maker, roots[s]->of[o]);
        }
    }
    return !maker.full;
}

/* ---------------------------------------------------------------- cutting */

/* A law with the nodes that each side was made from. */
typedef struct {
    graft_gen_law law;
    uint32_t nodes[2][GRAFT_GEN_MAX_CLOSURE];
} drawn_law;

static bool side_has_node(const drawn_law *drawn, uint32_t side, uint32_t node)
{
    for (uint32_t n = 0; n < drawn->law.sides[side].count; n++) {
        if (drawn->nodes[side][n] == node) {
            return true;
        }
    }
    return false;
}

/* Values that both sides compute in the same way, largest first. */
static uint32_t list_common(const graft_gen_space *space, const drawn_law *drawn, uint32_t *common,
                            uint32_t capacity)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < drawn->law.sides[0].count; n++) {
        uint32_t number = drawn->nodes[0][n];
        const graft_gen_node *node = &space->nodes[number];
        uint32_t outputs =
            side_has_node(drawn, 1, number) ? space->set->configs[node->config].output_count : 0;
        for (uint32_t o = 0; o < outputs && count < capacity; o++) {
            const graft_gen_value *value = &space->values[node->outs[o]];
            if (value->node == number && value->slot == o) {
                uint32_t at = count++;
                for (; at > 0 && space->values[common[at - 1]].size < value->size; at--) {
                    common[at] = common[at - 1];
                }
                common[at] = node->outs[o];
            }
        }
    }
    return count;
}

/* Cuts what both sides compute alike, as far as the law passes a few samples. */
static void cut_common(const graft_gen_space *space, graft_gen_checker *checker,
                       const graft_gen_roots *const roots[2], const drawn_law *whole,
                       graft_gen_law *law)
{
    const graft_gen_fresh fresh = {graft_gen_fresh_seed(space), 0, CHECK_SAMPLES};
    uint32_t common[GRAFT_GEN_MAX_CUTS];
    uint32_t cuts[GRAFT_GEN_MAX_CUTS];
    uint32_t cut_count = 0;
    uint32_t count = list_common(space, whole, common, GRAFT_GEN_MAX_CUTS);
    drawn_law drawn = {.law.output_count = law->output_count};
    for (uint32_t i = 0; i < count; i++) {
        cuts[cut_count] = common[i];
        if (make_law(space, roots, cuts, cut_count + 1, &drawn.law, drawn.nodes) &&
            drawn.law.sides[0].count + drawn.law.sides[1].count > 0 &&
            graft_gen_law_holds(checker, &drawn.law, &fresh, NULL)) {
            *law = drawn.law;
            cut_count++;
        }
    }
}

/* Whether the samples of the set are held smaller than the law's own operators need. */
static bool is_held_small(const graft_gen_law *law)
{
    int32_t most = INT32_MAX;
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t n = 0; n < law->sides[s].count; n++) {
            int32_t own = graft_gen_config_most(&law->set->configs[law->sides[s].nodes[n].config]);
            most = own < most ? own : most;
        }
    }
    return most > graft_gen_set_most(law->set);
}

/* The last word on a law. */
static bool passes_many(const graft_gen_space *space, graft_gen_checker *checker,
                        const graft_gen_law *law, uint32_t *told)
{
    const graft_gen_fresh many = {graft_gen_fresh_seed(space),
                                  CHECK_SAMPLES * GRAFT_GEN_MOST_REDRAWN, FINAL_SAMPLES};
    const graft_gen_fresh wide = {many.seed, GRAFT_GEN_WIDE_DRAWS, FINAL_SAMPLES};
    return graft_gen_law_holds(checker, law, &many, told) &&
           (!is_held_small(law) || graft_gen_law_holds(checker, law, &wide, told));
}

bool graft_gen_law_make(const graft_gen_space *space, graft_gen_checker *checker,
                        const graft_gen_roots *left, const graft_gen_roots *right,
                        graft_gen_law *law, uint32_t *told)
{
    const graft_gen_roots *const roots[2] = {left, right};
    const graft_gen_fresh few = {graft_gen_fresh_seed(space), 0, CHECK_SAMPLES};
    drawn_law whole = {.law.output_count = law->output_count};
    *told = GRAFT_GEN_NONE;
    if (!make_law(space, roots, NULL, 0, &whole.law, whole.nodes) ||
        !graft_gen_law_holds(checker, &whole.law, &few, told)) {
        return false;
    }
    *law = whole.law;
    cut_common(space, checker, roots, &whole, law);
    if (passes_many(space, checker, law, NULL)) {
        return true;
    }
    *law = whole.law; /* A cut may have gone too far: the graphs themselves may still agree. */
    return passes_many(space, checker, law, told);
}

bool graft_gen_law_draw(const graft_gen_space *space, const graft_gen_roots *left,
                        const graft_gen_roots *right, uint32_t output_count, graft_gen_law *law)
{
    const graft_gen_roots *const roots[2] = {left, right};
    uint32_t nodes[2][GRAFT_GEN_MAX_CLOSURE] = {{0}};
    law->output_count = output_count;
    return make_law(space, roots, NULL, 0, law, nodes);
}

/* ------------------------------------------------------------- translation */

static bool same_config(const graft_gen_config *a, const graft_gen_config *b)
{
    return a->step_count == b->step_count && a->input_count == b->input_count &&
           a->output_count == b->output_count &&
           memcmp(a->steps, b->steps, a->step_count * sizeof a->steps[0]) == 0 &&
           memcmp(a->outputs, b->outputs, a->output_count) == 0;
}

static bool find_config(const graft_gen_set *set, const graft_gen_config *config, uint16_t *number)
{
    for (uint32_t i = 0; i < set->config_count; i++) {
        if (same_config(&set->configs[i], config)) {
            *number = (uint16_t)i;
            return true;
        }
    }
    return false;
}

bool graft_gen_law_translate(const graft_gen_law *law, const graft_gen_set *set,
                             graft_gen_law *translated)
{
    *translated = *law;
    translated->set = set;
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t n = 0; n < law->sides[s].count; n++) {
            if (!find_config(set, &law->set->configs[law->sides[s].nodes[n].config],
                             &translated->sides[s].nodes[n].config)) {
                return false;
            }
        }
    }
    return true;
}
