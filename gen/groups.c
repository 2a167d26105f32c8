/* groups.c - listing graphs by what they compute. */
#include "gen/groups.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ graphs */

static uint32_t root_node(uint32_t root) { return root / GRAFT_MAX_OUTPUTS; }

static uint32_t root_slot(uint32_t root) { return root % GRAFT_MAX_OUTPUTS; }

static bool close_root(const graft_gen_space *space, uint32_t root, graft_gen_closure *closure)
{
    return GRAFT_GEN_ROOT_IS_INPUT(root) ||
           graft_gen_closure_of_node(space, root_node(root), closure);
}

/* Whether the graph of this root computes nothing else. */
static bool root_is_alone(const graft_gen_space *space, uint32_t root)
{
    graft_gen_closure closure = {.count = 0};
    uint32_t output = GRAFT_GEN_NONE;
    return GRAFT_GEN_ROOT_IS_INPUT(root) ||
           (close_root(space, root, &closure) &&
            graft_gen_closure_outputs(space, &closure, &output, 1) == 1 && output == root);
}

/* Fills in what follows from the roots. False when the graph is too large. */
static bool describe_graph(const graft_gen_space *space, graft_gen_graph *graph)
{
    graft_gen_closure closure = {.count = 0};
    uint32_t used = 0;
    for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS && graph->values[o] != GRAFT_GEN_NONE; o++) {
        if (!close_root(space, graph->roots.of[o], &closure)) {
            return false;
        }
        used |= GRAFT_GEN_ROOT_IS_INPUT(graph->roots.of[o]) ? 1u << graph->values[o] : 0;
    }
    for (uint32_t i = 0; i < closure.count; i++) {
        const graft_gen_node *node = &space->nodes[closure.nodes[i]];
        for (uint32_t k = 0; k < GRAFT_MAX_INPUTS && node->args[k] != GRAFT_GEN_NONE; k++) {
            used |= node->args[k] < space->set->input_count ? 1u << node->args[k] : 0;
        }
    }
    graph->live_count = (uint8_t)graft_gen_count_live(space, &closure);
    graph->size = (uint8_t)closure.count;
    graph->var_count = (uint8_t)__builtin_popcount(used);
    return true;
}

static void add_graph(graft_gen_groups *groups, const graft_gen_graph *graph)
{
    graft_gen_graph described = *graph;
    if (describe_graph(groups->space, &described)) {
        GRAFT_GEN_PUSH(groups->arena, groups->graphs, groups->count, groups->capacity) = described;
    }
}

/* -------------------------------------------------------------- one output */

/* Whether no renaming makes the value smaller. */
static bool value_is_canonical(const graft_gen_space *space, uint32_t value)
{
    for (uint32_t r = 1; r < space->renaming_count; r++) {
        if (graft_gen_value_image(space, value, r) < value) {
            return false;
        }
    }
    return true;
}

/* GRAFT_GEN_NONE for inputs. */
static uint32_t representative_root(const graft_gen_space *space, uint32_t value)
{
    const graft_gen_value *v = &space->values[value];
    return v->node == GRAFT_GEN_NONE ? GRAFT_GEN_NONE : v->node * GRAFT_MAX_OUTPUTS + v->slot;
}

/* All graphs whose only output is `value`. */
static void list_group(graft_gen_groups *groups, uint32_t value)
{
    const graft_gen_space *space = groups->space;
    uint32_t hub = groups->count;
    graft_gen_graph graph = {
        .values = {value, GRAFT_GEN_NONE},
          .hub = hub
    };
    if (value < space->set->input_count) {
        graph.roots.of[0] = GRAFT_GEN_ROOT_INPUT(value);
        add_graph(groups, &graph);
    }
    uint32_t first = representative_root(space, value);
    for (uint32_t i = space->producer_first[value]; i < space->producer_first[value + 1]; i++) {
        uint32_t link = space->producers[i];
        if (root_is_alone(space, link)) {
            graph.roots.of[0] = link;
            add_graph(groups, &graph);
            if (link == first) { /* The cheapest comes first. */
                graft_gen_graph swapped = groups->graphs[groups->count - 1];
                groups->graphs[groups->count - 1] = groups->graphs[hub];
                groups->graphs[hub] = swapped;
            }
        }
    }
    if (groups->count - hub < 2) {
        groups->count = hub; /* Nothing to compare. */
    }
}

static void list_single(graft_gen_groups *groups)
{
    const graft_gen_space *space = groups->space;
    size_t root_count = (size_t)space->node_count * GRAFT_MAX_OUTPUTS;
    for (uint32_t value = 0; value < space->value_count; value++) {
        if (value_is_canonical(space, value)) {
            groups->key_count++;
            if (!space->values[value].is_weight && !space->values[value].is_idle) {
                list_group(groups, value);
            }
        }
    }
    groups->graph_of_root = GRAFT_NEW(groups->arena, uint32_t, root_count);
    memset(groups->graph_of_root, 0xff, root_count * sizeof *groups->graph_of_root);
    for (uint32_t g = 0; g < groups->count; g++) {
        if (!GRAFT_GEN_ROOT_IS_INPUT(groups->graphs[g].roots.of[0])) {
            groups->graph_of_root[groups->graphs[g].roots.of[0]] = g;
        }
    }
}

/* ------------------------------------------------------------- two outputs */

static uint32_t value_of_root(const graft_gen_space *space, uint32_t root)
{
    return space->nodes[root_node(root)].outs[root_slot(root)];
}

/* The cheapest root that computes the value and nothing else; GRAFT_GEN_NONE when there is none. */
static uint32_t find_lone_root(const graft_gen_space *space, uint32_t value)
{
    if (value < space->set->input_count) {
        return GRAFT_GEN_ROOT_INPUT(value);
    }
    uint32_t first = representative_root(space, value);
    if (root_is_alone(space, first)) {
        return first;
    }
    uint32_t least = GRAFT_GEN_NONE; /* Nodes are numbered by size. */
    for (uint32_t i = space->producer_first[value]; i < space->producer_first[value + 1]; i++) {
        uint32_t link = space->producers[i];
        if (link < least && root_is_alone(space, link)) {
            least = link;
        }
    }
    return least;
}

static void sort_outputs(graft_gen_graph *graph)
{
    bool swap = graph->values[0] > graph->values[1] ||
                (graph->values[0] == graph->values[1] && graph->roots.of[0] > graph->roots.of[1]);
    if (swap) {
        uint32_t value = graph->values[0];
        uint32_t root = graph->roots.of[0];
        graph->values[0] = graph->values[1];
        graph->values[1] = value;
        graph->roots.of[0] = graph->roots.of[1];
        graph->roots.of[1] = root;
    }
}

static bool values_are_canonical(const graft_gen_space *space, const uint32_t *values)
{
    for (uint32_t r = 1; r < space->renaming_count; r++) {
        uint32_t a = graft_gen_value_image(space, values[0], r);
        uint32_t b = graft_gen_value_image(space, values[1], r);
        if (a == GRAFT_GEN_NONE || b == GRAFT_GEN_NONE) {
            continue; /* Of the last level only some renamings are kept. */
        }
        uint32_t low = a < b ? a : b;
        uint32_t high = a < b ? b : a;
        if (low < values[0] || (low == values[0] && high < values[1])) {
            return false;
        }
    }
    return true;
}

static void add_double(graft_gen_groups *groups, uint32_t first, uint32_t second)
{
    const graft_gen_space *space = groups->space;
    graft_gen_graph graph = {
        .roots = {{first, second}},
        .values = { value_of_root(space, first), value_of_root(space, second)},
    };
    sort_outputs(&graph);
    bool is_weight =
        space->values[graph.values[0]].is_weight && space->values[graph.values[1]].is_weight;
    if (!is_weight && values_are_canonical(space, graph.values)) {
        add_graph(groups, &graph);
    }
}

enum { MAX_UNREAD = 2 }; /* Splits behind one sink that are looked at. */

/* A sink whose graph leaves an output of each of its splits unread. */
typedef struct {
    uint32_t unread; /* Root; the first of them. */
    uint32_t sink;   /* Root. */
} half;

typedef struct {
    half *items;
    uint32_t count;
    uint32_t capacity;
} half_list;

static int compare_halves(const void *a, const void *b)
{
    const half *x = a;
    const half *y = b;
    if (x->unread != y->unread) {
        return x->unread < y->unread ? -1 : 1;
    }
    return x->sink < y->sink ? -1 : x->sink > y->sink;
}

/* The output of a node among others; GRAFT_GEN_NONE when the node has none or two there. */
static uint32_t find_sink(const uint32_t *outputs, uint32_t count, uint32_t node)
{
    uint32_t sink = GRAFT_GEN_NONE;
    for (uint32_t o = 0; o < count; o++) {
        if (root_node(outputs[o]) == node) {
            if (sink != GRAFT_GEN_NONE) {
                return GRAFT_GEN_NONE;
            }
            sink = outputs[o];
        }
    }
    return sink;
}

/* Whether the root's value has a cheaper graph that computes nothing else. */
static bool stands_for_cheaper(const graft_gen_space *space, uint32_t root)
{
    uint32_t value = value_of_root(space, root);
    uint32_t first = representative_root(space, value);
    return first != root && (first == GRAFT_GEN_NONE || root_is_alone(space, first));
}

/* Graphs with one sink and two outputs; and the halves of graphs with two sinks: graphs that leave
 * one output unread of each split they hold. */
static void list_one_sink(graft_gen_groups *groups, half_list *halves)
{
    const graft_gen_space *space = groups->space;
    for (uint32_t n = 0; n < space->node_count; n++) {
        graft_gen_closure closure = {.count = 0};
        uint32_t outputs[MAX_UNREAD + 1];
        if (space->nodes[n].outs[0] == GRAFT_GEN_NONE ||
            !graft_gen_closure_of_node(space, n, &closure)) {
            continue;
        }
        uint32_t count = graft_gen_closure_outputs(space, &closure, outputs, MAX_UNREAD + 1);
        if (count < 2 || count > MAX_UNREAD + 1) {
            continue;
        }
        uint32_t sink = find_sink(outputs, count, n);
        if (sink != GRAFT_GEN_NONE && stands_for_cheaper(space, sink)) {
            continue; /* A law of the sink alone. */
        }
        if (count == 2) {
            add_double(groups, outputs[0], outputs[1]);
        }
        if (sink != GRAFT_GEN_NONE && closure.count < space->set->depth) {
            /* The other sink is one operator more, behind the first output that is unread. */
            GRAFT_GEN_PUSH(groups->arena, halves->items, halves->count, halves->capacity) =
                (half){outputs[0] == sink ? outputs[1] : outputs[0], sink};
        }
    }
    if (halves->count > 0) {
        qsort(halves->items, halves->count, sizeof *halves->items, compare_halves);
    }
}

static void join_halves(graft_gen_groups *groups, uint32_t first, uint32_t second)
{
    const graft_gen_space *space = groups->space;
    graft_gen_closure closure = {.count = 0};
    uint32_t outputs[2];
    if (close_root(space, first, &closure) && close_root(space, second, &closure) &&
        closure.count <= space->set->depth &&
        graft_gen_closure_outputs(space, &closure, outputs, 2) == 2 && outputs[0] != outputs[1] &&
        (outputs[0] == first || outputs[0] == second) &&
        (outputs[1] == first || outputs[1] == second)) {
        add_double(groups, first, second);
    }
}

/* Graphs with two sinks, each behind another output of one split. */
static void list_two_sinks(graft_gen_groups *groups, const half_list *halves)
{
    uint32_t end = 0;
    for (uint32_t first = 0; first < halves->count; first = end) {
        uint32_t unread = halves->items[first].unread;
        for (end = first; end < halves->count && halves->items[end].unread == unread; end++) {
        }
        if (root_slot(unread) != 0) {
            continue;
        }
        for (uint32_t j = end; j < halves->count && halves->items[j].unread == unread + 1; j++) {
            for (uint32_t i = first; i < end; i++) {
                join_halves(groups, halves->items[i].sink, halves->items[j].sink);
            }
        }
    }
}

static int compare_graphs(const void *a, const void *b)
{
    const graft_gen_graph *x = a;
    const graft_gen_graph *y = b;
    const uint32_t keys[][2] = {
        {x->values[0],           y->values[0]          },
        {x->values[1],           y->values[1]          },
        {x->is_separate ? 0 : 1, y->is_separate ? 0 : 1},
        {x->size,                y->size               },
        {x->roots.of[0],         y->roots.of[0]        },
        {x->roots.of[1],         y->roots.of[1]        },
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] < keys[i][1] ? -1 : 1;
        }
    }
    return 0;
}

/* Adds to each group the graph that computes its outputs one by one. */
static void add_partners(graft_gen_groups *groups)
{
    uint32_t count = groups->count;
    for (uint32_t g = 0; g < count; g++) {
        graft_gen_graph partner = groups->graphs[g];
        if (g > 0 &&
            memcmp(groups->graphs[g - 1].values, partner.values, sizeof partner.values) == 0) {
            continue;
        }
        groups->key_count++;
        partner.roots.of[0] = find_lone_root(groups->space, partner.values[0]);
        partner.roots.of[1] = find_lone_root(groups->space, partner.values[1]);
        partner.is_separate = true;
        if (partner.roots.of[0] != GRAFT_GEN_NONE && partner.roots.of[1] != GRAFT_GEN_NONE) {
            add_graph(groups, &partner);
        }
    }
}

/* Sets the hubs of sorted graphs and drops groups of one. */
static void close_groups(graft_gen_groups *groups)
{
    uint32_t kept = 0;
    uint32_t end = 0;
    for (uint32_t first = 0; first < groups->count; first = end) {
        uint32_t hub = kept;
        for (end = first;
             end < groups->count && memcmp(groups->graphs[end].values, groups->graphs[first].values,
                                           sizeof groups->graphs[end].values) == 0;
             end++) {
        }
        for (uint32_t g = first; g < end && end - first > 1; g++) {
            groups->graphs[kept] = groups->graphs[g];
            groups->graphs[kept++].hub = hub;
        }
    }
    groups->count = kept;
}

static void list_double(graft_gen_groups *groups)
{
    half_list halves = {NULL, 0, 0};
    list_one_sink(groups, &halves);
    list_two_sinks(groups, &halves);
    if (groups->count > 0) {
        qsort(groups->graphs, groups->count, sizeof *groups->graphs, compare_graphs);
        add_partners(groups);
        qsort(groups->graphs, groups->count, sizeof *groups->graphs, compare_graphs);
    }
    close_groups(groups);
}

/* ------------------------------------------------------------------ groups */

void graft_gen_groups_build(const graft_gen_space *space, graft_arena *arena, uint32_t output_count,
                            graft_gen_groups *groups)
{
    *groups = (graft_gen_groups){.space = space, .arena = arena, .output_count = output_count};
    if (output_count == 1) {
        list_single(groups);
    } else {
        list_double(groups);
    }
}

/* Whether both outputs of a graph with these roots can be computed one by one. */
static bool roots_are_separate(const graft_gen_space *space, const graft_gen_graph *from,
                               const graft_gen_roots *roots)
{
    for (uint32_t o = 0; o < GRAFT_MAX_OUTPUTS; o++) {
        uint32_t root = roots->of[o];
        if (root == GRAFT_GEN_NONE ? find_lone_root(space, from->values[o]) == GRAFT_GEN_NONE
                                   : !root_is_alone(space, root)) {
            return false;
        }
    }
    return true;
}

uint32_t graft_gen_groups_find(const graft_gen_groups *groups, uint32_t from,
                               const graft_gen_roots *roots)
{
    const graft_gen_graph *graph = &groups->graphs[from];
    if (groups->output_count == 1) {
        return roots->of[0] == GRAFT_GEN_NONE ? graph->hub : groups->graph_of_root[roots->of[0]];
    }
    bool separate = roots_are_separate(groups->space, graph, roots);
    for (uint32_t g = graph->hub; g < groups->count && groups->graphs[g].hub == graph->hub; g++) {
        const graft_gen_graph *other = &groups->graphs[g];
        bool same = memcmp(&other->roots, roots, sizeof *roots) == 0;
        if (separate ? other->is_separate : same) {
            return g;
        }
    }
    return GRAFT_GEN_NONE;
}
