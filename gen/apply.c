/* apply.c - see apply.h. */
#include "gen/apply.h"

/* ------------------------------------------------------------------- index */

/* Whether the graph is to be listed; sets the node of its first root. */
static bool is_listed(const graft_gen_groups *groups, const bool *marks, uint32_t g,
                      const graft_gen_node **node)
{
    const graft_gen_graph *graph = &groups->graphs[g];
    uint32_t root = graph->roots.of[0];
    if (GRAFT_GEN_ROOT_IS_INPUT(root) || (marks != NULL && !marks[graph->hub])) {
        return false;
    }
    *node = &groups->space->nodes[root / GRAFT_MAX_OUTPUTS];
    return true;
}

void graft_gen_index_build(const graft_gen_groups *groups, const bool *marks, graft_arena *arena,
                           graft_gen_index *index)
{
    uint32_t config_count = groups->space->set->config_count;
    uint32_t *first = GRAFT_NEW(arena, uint32_t, (size_t)config_count + 2);
    const graft_gen_node *node = NULL;
    uint32_t count = 0;
    for (uint32_t g = 0; g < groups->count; g++) {
        if (is_listed(groups, marks, g, &node)) {
            first[node->config + 2u]++;
            count++;
        }
    }
    for (uint32_t c = 1; c <= config_count; c++) {
        first[c + 1] += first[c];
    }
    index->graphs = GRAFT_NEW(arena, uint32_t, (size_t)count + 1);
    for (uint32_t g = 0; g < groups->count; g++) {
        if (is_listed(groups, marks, g, &node)) {
            index->graphs[first[node->config + 1u]++] = g;
        }
    }
    index->first_by_config = first;
}

/* A law at one graph. */
typedef struct {
    const graft_gen_site *site;
    const graft_gen_law *law;
    uint32_t side; /* That is matched. */
    graft_gen_joins *joins;
    uint32_t number;
    uint32_t from;
    bool swapped; /* The law's outputs stand for the graph's in the other order. */
    bool refuted;
} application;

/* ------------------------------------------------------------------- joins */

static bool is_root(const graft_gen_side *side, uint32_t output_count, uint32_t n)
{
    for (uint32_t o = 0; o < output_count; o++) {
        if (GRAFT_GEN_IS_OUT(side->outputs[o]) && GRAFT_GEN_OUT_NODE(side->outputs[o]) == n) {
            return true;
        }
    }
    return false;
}

/* The place of the last pair that inner nodes of a side rest on. */
static uint32_t inner_ready(const uint32_t *places, const graft_gen_side *side,
                            const uint32_t *nodes, uint32_t output_count)
{
    uint32_t ready = 0;
    for (uint32_t n = 0; n < side->count; n++) {
        if (!is_root(side, output_count, n) && places[nodes[n]] > ready) {
            ready = places[nodes[n]];
        }
    }
    return ready;
}

/* Whether the inner nodes of a fit are those that a graph is made of. */
static bool fit_is_literal(const graft_gen_space *space, const graft_gen_side *side,
                           const uint32_t *nodes, uint32_t output_count)
{
    for (uint32_t n = 0; n < side->count; n++) {
        if (!is_root(side, output_count, n) && !graft_gen_is_representative(space, nodes[n])) {
            return false;
        }
    }
    return true;
}

/* Whether every inner output is read from the very node that stands for its value. */
static bool side_is_drawn(const graft_gen_space *space, const graft_gen_side *side,
                          const uint32_t *nodes)
{
    for (uint32_t n = 0; n < side->count; n++) {
        uint32_t input_count = space->set->configs[side->nodes[n].config].input_count;
        for (uint32_t i = 0; i < input_count; i++) {
            uint8_t operand = side->nodes[n].args[i];
            if (!GRAFT_GEN_IS_OUT(operand)) {
                continue;
            }
            uint32_t node = nodes[GRAFT_GEN_OUT_NODE(operand)];
            uint32_t slot = GRAFT_GEN_OUT_SLOT(operand);
            const graft_gen_value *value = &space->values[space->nodes[node].outs[slot]];
            if (value->node != node || value->slot != slot) {
                return false;
            }
        }
    }
    return true;
}

/* See `is_whole`. A bare variable leads to whatever is its group's first graph, which is the graph
 * `to` itself only where that is an input. */
static bool fit_is_whole(const application *apply, const graft_gen_fit *fit, uint32_t to)
{
    const graft_gen_space *space = apply->site->groups->space;
    const graft_gen_side *other = &apply->law->sides[1 - apply->side];
    for (uint32_t o = 0; o < apply->law->output_count; o++) {
        uint32_t root = apply->site->groups->graphs[to].roots.of[apply->swapped ? 1 - o : o];
        if (!GRAFT_GEN_IS_OUT(other->outputs[o]) && !GRAFT_GEN_ROOT_IS_INPUT(root)) {
            return false;
        }
    }
    return side_is_drawn(space, &apply->law->sides[apply->side], fit->nodes) &&
           side_is_drawn(space, other, fit->others);
}

static void record_join(application *apply, const graft_gen_fit *fit, uint32_t to)
{
    const graft_gen_site *site = apply->site;
    const graft_gen_law *law = apply->law;
    const graft_gen_side *side = &law->sides[apply->side];
    const graft_gen_side *other = &law->sides[1 - apply->side];
    graft_gen_joins *joins = apply->joins;
    uint32_t near = inner_ready(site->places, side, fit->nodes, law->output_count);
    uint32_t far = inner_ready(site->places, other, fit->others, law->output_count);
    GRAFT_GEN_PUSH(site->arena, joins->items, joins->count, joins->capacity) = (graft_gen_join){
        .from = apply->from,
        .to = to,
        .law = apply->number,
        .ready = near > far ? near : far,
        .next = GRAFT_GEN_NONE,
        .side = (uint8_t)apply->side,
        .is_literal = fit_is_literal(site->groups->space, side, fit->nodes, law->output_count),
        .is_whole = fit_is_whole(apply, fit, to)};
}

static bool visit_fit(void *context, graft_gen_fit *fit)
{
    application *apply = context;
    const graft_gen_groups *groups = apply->site->groups;
    const graft_gen_graph *from = &groups->graphs[apply->from];
    uint32_t values[GRAFT_MAX_OUTPUTS];
    graft_gen_roots roots = {
        {0, 0}
    };
    graft_gen_roots sorted = {
        {0, 0}
    };
    if (!graft_gen_law_apply(groups->space, apply->law, apply->side, fit, values, &roots)) {
        return true;
    }
    for (uint32_t o = 0; o < apply->law->output_count; o++) {
        uint32_t place = apply->swapped ? 1 - o : o;
        if (values[o] != from->values[place]) {
            apply->refuted = apply->refuted || fit->same_shapes;
            return !apply->refuted;
        }
        sorted.of[place] = roots.of[o];
    }
    uint32_t to = graft_gen_groups_find(groups, apply->from, &sorted);
    if (to != GRAFT_GEN_NONE && to != apply->from) {
        record_join(apply, fit, to);
    }
    return true;
}

/* ------------------------------------------------------------------ places */

static void apply_at(application *apply, uint32_t graph)
{
    const graft_gen_groups *groups = apply->site->groups;
    const graft_gen_graph *from = &groups->graphs[graph];
    apply->from = graph;
    apply->swapped = false;
    graft_gen_law_match(groups->space, apply->law, apply->side, &from->roots, visit_fit, apply);
    if (apply->law->output_count == 2 && !apply->refuted) {
        graft_gen_roots roots = {
            {from->roots.of[1], from->roots.of[0]}
        };
        apply->swapped = true;
        graft_gen_law_match(groups->space, apply->law, apply->side, &roots, visit_fit, apply);
    }
}

/* Matches a side at every graph whose first root has a configuration. */
static void apply_config(application *apply, uint32_t config)
{
    const graft_gen_groups *groups = apply->site->groups;
    const graft_gen_index *index = apply->site->index;
    for (uint32_t i = index->first_by_config[config];
         i < index->first_by_config[config + 1] && !apply->refuted; i++) {
        uint32_t g = index->graphs[i];
        if (apply->law->output_count == 1 ||
            !GRAFT_GEN_ROOT_IS_INPUT(groups->graphs[g].roots.of[1])) {
            apply_at(apply, g);
        }
    }
}

/* Matches a side at every graph whose first root may be its first output or, of two, its second. */
static void apply_side(application *apply)
{
    const graft_gen_side *side = &apply->law->sides[apply->side];
    for (uint32_t o = 0; o < apply->law->output_count; o++) {
        if (!GRAFT_GEN_IS_OUT(side->outputs[o])) {
            return; /* A bare variable fits everywhere and says nothing. */
        }
    }
    uint32_t first = side->nodes[GRAFT_GEN_OUT_NODE(side->outputs[0])].config;
    apply_config(apply, first);
    if (apply->law->output_count == 2) {
        uint32_t second = side->nodes[GRAFT_GEN_OUT_NODE(side->outputs[1])].config;
        if (second != first) { /* Else seen already. */
            apply_config(apply, second);
        }
    }
}

bool graft_gen_law_join(const graft_gen_site *site, const graft_gen_law *law, uint32_t number,
                        graft_gen_joins *joins)
{
    uint32_t before = joins->count;
    application apply = {.site = site, .law = law, .number = number, .joins = joins};
    for (uint32_t s = 0; s < 2 && !apply.refuted; s++) {
        apply.side = s;
        apply_side(&apply);
    }
    if (apply.refuted) {
        joins->count = before;
    }
    return !apply.refuted;
}
