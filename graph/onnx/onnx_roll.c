/* onnx_roll.c - see graph/rolled.h. A chain is spelt as one node beside what it stands for; then
 * whatever nothing needs any more goes. */
#include "graph/rolled.h"

#include "graph/algorithms.h"
#include "graph/onnx/onnx_chains.h"
#include "graph/onnx/onnx_spell.h"

#include <string.h>

enum { STATE_AXES = 3 };

typedef struct {
    const graft_model *model;
    const graft_onnx *onnx;
    graft_onnx_spelling s;   /* The new nodes. */
    bool *gone;              /* By node of the file: a new one makes what it made. */
    Onnx__NodeProto **nodes; /* Of the file and new ones, those that are needed, in order. */
    uint32_t node_count;
    const char **sequences; /* By chain: (steps, batch, units); NULL: none. */
} roll;

/* ---------------------------------------------------------------------- spelling */

static const char *reshape(roll *r, const char *x, const int64_t sizes[STATE_AXES], const char *in)
{
    return graft_onnx_spell_step(&r->s, in, "Reshape", x,
                                 graft_onnx_spell_ints(&r->s, in, "sizes", sizes, STATE_AXES, 1));
}

static uint64_t count_elements(const graft_model *model, const char *name)
{
    const graft_onnx_entry *entry = graft_onnx_entry_named(model->onnx, name);
    return entry == NULL || entry->value == GRAFT_NONE
               ? 0
               : graft_shape_elements(&model->graph.values[entry->value].shape);
}

/* Whether a tensor has as many elements as all inputs of a chain. */
static bool has_all(const graft_model *model, const graft_chain *chain, const char *name)
{
    return name != NULL && count_elements(model, name) * (uint64_t)chain->units ==
                               count_elements(model, chain->steps[0].h) * chain->step_count *
                                   (uint64_t)chain->features;
}

/* Whether the inputs of a chain are all of what one tensor has along an axis, by `step` of 1, or
 * -1: backwards. */
static bool is_whole(const roll *r, const graft_chain *chain, int64_t step)
{
    const graft_chain_step *steps = chain->steps;
    const int64_t count = chain->step_count;
    const graft_index of = steps[0].of;
    const char *name =
        of == GRAFT_NONE ? NULL : graft_model_value_name(r->model, &r->model->graph, of);
    bool whole = has_all(r->model, chain, name) &&
                 (!r->model->is_open || has_all(r->model->other, chain, name));
    for (int64_t t = 0; t < count && whole; t++) {
        whole = steps[t].of == of && steps[t].second == steps[0].second &&
                steps[t].index == (step > 0 ? t : count - 1 - t);
    }
    return whole;
}

/* What an earlier chain makes, where that is what this one takes; NULL otherwise. */
static const char *find_made(const roll *r, const graft_chain *chains, uint32_t which)
{
    const graft_chain *chain = &chains[which];
    for (uint32_t i = 0; i < which; i++) {
        bool made = r->sequences[i] != NULL && chains[i].step_count == chain->step_count;
        for (uint32_t t = 0; t < chain->step_count && made; t++) {
            made =
                chain->steps[t].x != NULL && strcmp(chain->steps[t].x, chains[i].steps[t].h) == 0;
        }
        if (made) {
            return r->sequences[i];
        }
    }
    return NULL;
}

/* The inputs of all steps, (steps, batch, features); NULL where one has no name. */
static const char *spell_inputs(roll *r, const graft_chain *chains, uint32_t which, bool *backwards,
                                const char *in)
{
    static const int64_t swapped[STATE_AXES] = {1, 0, 2};
    const graft_chain *chain = &chains[which];
    const int64_t sizes[STATE_AXES] = {chain->step_count, -1, chain->features};
    const char *made = find_made(r, chains, which);
    *backwards = is_whole(r, chain, -1);
    if (made != NULL) {
        return made;
    }
    if (*backwards || is_whole(r, chain, 1)) {
        const char *x = graft_model_value_name(r->model, &r->model->graph, chain->steps[0].of);
        if (!chain->steps[0].second) {
            return reshape(r, x, sizes, in);
        }
        const char *turned = graft_onnx_spell_step(&r->s, in, "Transpose", x, NULL);
        graft_onnx_set_ints(r->s.arena, r->s.nodes[r->s.node_count - 1], "perm", swapped,
                            STATE_AXES);
        return turned;
    }
    const char **parts = GRAFT_NEW(r->s.arena, const char *, chain->step_count);
    for (uint32_t t = 0; t < chain->step_count; t++) {
        parts[t] = chain->steps[t].x;
        if (parts[t] == NULL) {
            return NULL;
        }
    }
    const char *all = graft_onnx_spell_name(&r->s, in, "Concat");
    Onnx__NodeProto *node =
        graft_onnx_make_node(r->s.arena, "Concat", parts, chain->step_count, &all, 1);
    graft_onnx_set_int(r->s.arena, node, "axis", 0);
    graft_onnx_spell_node(&r->s, node);
    return reshape(r, all, sizes, in);
}

static const char *spell_state(roll *r, const graft_chain *chain, const char *state, const char *in)
{
    const int64_t sizes[STATE_AXES] = {1, -1, chain->units};
    return state == NULL ? "" : reshape(r, state, sizes, in);
}

/* A matrix of what the node makes; `place` along the first axis is NULL for all. */
static void spell_output(roll *r, const graft_chain *chain, const char *from, const char *name)
{
    const int64_t sizes[2] = {-1, chain->units};
    const char *shape = graft_onnx_spell_ints(&r->s, name, "sizes", sizes, 2, 1);
    const char *const inputs[2] = {from, shape};
    graft_onnx_spell_node(&r->s, graft_onnx_make_node(r->s.arena, "Reshape", inputs, 2, &name, 1));
}

/* States of all steps but the last: one Gather each, of which those that nothing reads go again. */
static void spell_states(roll *r, const graft_chain *chain, const char *sequence, bool backwards)
{
    for (uint32_t t = 0; t + 1 < chain->step_count; t++) {
        const char *h = chain->steps[t].h;
        const int64_t place = backwards ? chain->step_count - 1 - t : t;
        const char *const inputs[2] = {sequence,
                                       graft_onnx_spell_ints(&r->s, h, "step", &place, 1, 0)};
        graft_onnx_spell_node(&r->s, graft_onnx_make_node(r->s.arena, "Gather", inputs, 2, &h, 1));
    }
}

/* Adds the node that a chain is, and what is around it; false where an input has no name. */
static bool spell_chain(roll *r, const graft_chain *chains, uint32_t which)
{
    graft_onnx_spelling *s = &r->s;
    const graft_chain *chain = &chains[which];
    const graft_chain_step *last = &chain->steps[chain->step_count - 1];
    const char *type = chain->is_gru ? "GRU" : "LSTM";
    const char *in = last->h;
    const int64_t gates = chain->is_gru ? 3 : 4;
    const int64_t w[] = {1, gates * chain->units, chain->features};
    const int64_t recurrent[] = {1, gates * chain->units, chain->units};
    const int64_t b[] = {1, 2 * gates * chain->units};
    const int64_t all[STATE_AXES] = {chain->step_count, -1, chain->units};
    bool backwards = false;
    const char *x = spell_inputs(r, chains, which, &backwards, in);
    if (x == NULL) {
        return false;
    }
    const char *inputs[7] = {x,
                             graft_onnx_spell_floats(s, in, "W", chain->w, w, 3),
                             graft_onnx_spell_floats(s, in, "R", chain->r, recurrent, 3),
                             graft_onnx_spell_floats(s, in, "B", chain->b, b, 2),
                             "",
                             spell_state(r, chain, chain->h, in)};
    inputs[6] = chain->is_gru ? "" : spell_state(r, chain, chain->c, in);
    const char *const outputs[3] = {graft_onnx_spell_name(s, in, "Y"),
                                    graft_onnx_spell_name(s, in, "Y_h"),
                                    graft_onnx_spell_name(s, in, "Y_c")};
    Onnx__NodeProto *node = graft_onnx_make_node(s->arena, type, inputs, chain->is_gru ? 6 : 7,
                                                 outputs, chain->is_gru ? 2 : 3);
    node->name = graft_arena_printf(s->arena, "%s/%s", in, type);
    graft_onnx_set_int(s->arena, node, "hidden_size", chain->units);
    if (backwards) {
        graft_onnx_set_text(s->arena, node, "direction", "reverse");
    }
    if (chain->is_linear) {
        graft_onnx_set_int(s->arena, node, "linear_before_reset", 1);
    }
    graft_onnx_spell_node(s, node);
    const char *sequence = reshape(r, outputs[0], all, in);
    r->sequences[which] = backwards ? NULL : sequence;
    spell_states(r, chain, sequence, backwards);
    spell_output(r, chain, outputs[1], last->h);
    if (!chain->is_gru) {
        spell_output(r, chain, outputs[2], last->c);
    }
    return true;
}

/* -------------------------------------------------------------------------- order */

/* Nodes of the file and new ones behind one another. */
typedef struct {
    graft_arena *arena;
    const roll *r;
    uint32_t count;
    graft_names *makers;
    bool *needed;
    uint32_t *waiting;
    uint32_t waiting_count;
    uint32_t *dependencies; /* Of the node that is looked at, behind those before. */
    uint32_t dependency_count;
    uint32_t dependency_capacity;
} sorter;

static Onnx__NodeProto *node_at(const sorter *o, uint32_t i)
{
    const uint32_t old = o->r->onnx->node_count;
    return i < old ? o->r->onnx->proto->graph->node[i] : o->r->s.nodes[i - old];
}

static void need(sorter *o, const char *name)
{
    const uint32_t maker = graft_names_find(o->makers, name);
    if (name[0] == '\0' || maker == GRAFT_NONE) {
        return;
    }
    GRAFT_PUSH(o->arena, o->dependencies, o->dependency_count, o->dependency_capacity, 256) = maker;
    if (!o->needed[maker]) {
        o->needed[maker] = true;
        o->waiting[o->waiting_count++] = maker;
    }
}

static void need_inputs(sorter *o, uint32_t i)
{
    const graft_onnx *onnx = o->r->onnx;
    const Onnx__NodeProto *node = node_at(o, i);
    for (size_t k = 0; k < node->n_input; k++) {
        need(o, node->input[k]);
    }
    for (uint32_t k = 0; i < onnx->node_count && k < onnx->groups[i].captured_count; k++) {
        need(o, onnx->entries[onnx->groups[i].captured[k]].name);
    }
}

static void name_makers(sorter *o)
{
    for (uint32_t i = 0; i < o->count; i++) {
        const Onnx__NodeProto *node = node_at(o, i);
        const bool gone = i < o->r->onnx->node_count && o->r->gone[i];
        for (size_t k = 0; k < node->n_output && !gone; k++) {
            (void)graft_names_add(o->makers, node->output[k], i);
        }
    }
}

/* Marks what the outputs of the file need. */
static void mark_needed(sorter *o)
{
    const Onnx__GraphProto *graph = o->r->onnx->proto->graph;
    for (size_t i = 0; i < graph->n_output; i++) {
        need(o, text_or_empty(graph->output[i]->name));
    }
    while (o->waiting_count > 0) {
        need_inputs(o, o->waiting[--o->waiting_count]);
    }
}

/* Puts what is needed in order; false when nodes wait for one another. */
static bool sort_nodes(sorter *o, uint32_t *order)
{
    uint32_t *first = GRAFT_NEW(o->arena, uint32_t, o->count + 1U);
    uint32_t on_cycle = 0;
    o->dependency_count = 0;
    for (uint32_t i = 0; i < o->count; i++) {
        first[i] = o->dependency_count;
        if (o->needed[i]) {
            need_inputs(o, i);
        }
    }
    first[o->count] = o->dependency_count;
    return graft_onnx_sort(o->arena, o->count, first, o->dependencies, order, &on_cycle);
}

/* Whether the file can be written with the new nodes, and nothing within the chain is needed any
 * more; lists what is then written. */
static bool settle_nodes(graft_arena *scratch, roll *r, const graft_chain *chain)
{
    GRAFT_SCOPED(scratch);
    sorter o = {.arena = scratch, .r = r, .count = r->onnx->node_count + r->s.node_count};
    uint32_t *order = GRAFT_NEW(scratch, uint32_t, o.count);
    o.makers = graft_names_new(scratch);
    o.needed = GRAFT_NEW(scratch, bool, o.count);
    o.waiting = GRAFT_NEW(scratch, uint32_t, o.count);
    name_makers(&o);
    mark_needed(&o);
    bool free_of = sort_nodes(&o, order);
    for (uint32_t i = 0; i < chain->inner_count; i++) {
        free_of = free_of && !o.needed[chain->inner[i]];
    }
    if (free_of) {
        r->nodes = GRAFT_NEW(r->s.arena, Onnx__NodeProto *, o.count);
        r->node_count = 0;
        for (uint32_t i = 0; i < o.count; i++) {
            if (o.needed[order[i]]) {
                r->nodes[r->node_count++] = node_at(&o, order[i]);
            }
        }
    }
    return free_of;
}

/* --------------------------------------------------------------------------- file */

static void mark_gone(roll *r, const graft_chain *chain, bool gone)
{
    const graft_chain_step *steps = chain->steps;
    for (uint32_t t = 0; t < chain->step_count; t++) {
        r->gone[steps[t].h_node] = gone;
    }
    if (!chain->is_gru) {
        r->gone[steps[chain->step_count - 1].c_node] = gone;
    }
}

/* Takes a chain, or leaves all as it was. */
static bool take_chain(graft_arena *scratch, roll *r, const graft_chain *chains, uint32_t which)
{
    const uint32_t node_count = r->s.node_count;
    const uint32_t tensor_count = r->s.tensor_count;
    mark_gone(r, &chains[which], true);
    const bool taken = spell_chain(r, chains, which) && settle_nodes(scratch, r, &chains[which]);
    if (!taken) {
        mark_gone(r, &chains[which], false);
        r->s.node_count = node_count;
        r->s.tensor_count = tensor_count;
        r->sequences[which] = NULL;
    }
    return taken;
}

/* Outputs of new nodes that nothing reads are not made. */
static void leave_out_outputs(graft_arena *arena, roll *r)
{
    graft_names *read = graft_names_new(arena);
    for (uint32_t i = 0; i < r->node_count; i++) {
        for (size_t k = 0; k < r->nodes[i]->n_input; k++) {
            (void)graft_names_add(read, r->nodes[i]->input[k], 0);
        }
    }
    for (uint32_t i = 0; i < r->s.node_count; i++) {
        Onnx__NodeProto *node = r->s.nodes[i];
        for (size_t k = 0; node->n_output > 1 && k < node->n_output; k++) {
            if (graft_names_find(read, node->output[k]) == GRAFT_NONE) {
                node->output[k] = graft_arena_strdup(arena, "");
            }
        }
    }
}

graft_status graft_rolled_write(graft_env *env, const graft_model *model, const char *path,
                                uint32_t *cells)
{
    GRAFT_SCOPED(env->unit);
    graft_chain *chains = NULL;
    uint32_t count = 0;
    *cells = 0;
    if (!graft_algorithms_fit(model)) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_onnx_find_chains(env, env->unit, model, &chains, &count));
    roll r = {.model = model,
              .onnx = model->onnx,
              .gone = GRAFT_NEW(env->unit, bool, model->onnx->node_count),
              .sequences = GRAFT_NEW(env->unit, const char *, count)};
    graft_onnx_spelling_open(env->unit, model->onnx, &r.s);
    for (uint32_t i = 0; i < count; i++) {
        *cells += take_chain(env->scratch, &r, chains, i) ? chains[i].step_count : 0;
    }
    if (*cells == 0) {
        return GRAFT_OK;
    }
    leave_out_outputs(env->unit, &r);
    r.s.nodes = r.nodes;
    r.s.node_count = r.node_count;
    return graft_onnx_spelling_write(env, &r.s, path);
}
