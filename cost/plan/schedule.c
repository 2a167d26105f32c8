/* schedule.c - from a graph and its layouts to steps and regions (see schedule.h).
 *
 * One pass over the nodes in order keeps, for every value and layout, the region that holds it; a
 * reader that wants another layout finds or makes a conversion, which all readers share. A view's
 * region lies in another one, its `root` until the end being the next larger one, with the offset
 * in that. A second pass lets a residual input be overwritten where nothing reads it later. */
#include "cost/plan/schedule.h"

#include <assert.h>
#include <string.h>

typedef struct {
    graft_arena *arena;
    const graft_graph *graph;
    graft_schedule *schedule;
    const uint8_t *layouts;             /* By value: the layout it is made in. */
    const graft_layout_choice *choices; /* By node. */
    const bool *overwrites;             /* By node. */
    const graft_groups *groups;
    graft_distances distances;
    uint32_t *held;    /* By value and layout: its region. */
    uint32_t capacity; /* Of steps, for the assertion that the counts below are right. */
} builder;

/* ---------------------------------------------------------------- capacity */

static void allocate(builder *b, graft_arena *arena)
{
    const graft_graph *graph = b->graph;
    uint32_t nodes = 0;
    uint32_t edges = 0;
    /* At most: readings in another layout. */
    uint32_t conversions = graph->output_count + GRAFT_MAX_INPUTS * b->groups->count;
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        if (node->op == GRAFT_OP_NONE || node->is_const) {
            continue;
        }
        nodes++;
        edges += (uint32_t)node->input_count + node->output_count;
        for (uint32_t k = 0; k < node->input_count; k++) {
            graft_index v = graft_node_input(graph, n, k);
            uint32_t layout = k < GRAFT_MAX_INPUTS ? b->choices[n].inputs[k] : 0;
            conversions += v != GRAFT_NONE && layout != b->layouts[v];
        }
    }
    b->capacity = nodes + conversions;
    b->schedule->steps = GRAFT_NEW(arena, graft_step, b->capacity);
    b->schedule->operands = GRAFT_NEW(arena, uint32_t, (size_t)edges + 2 * (size_t)conversions);
    b->schedule->regions = GRAFT_NEW(arena, graft_region, (size_t)graph->value_end + conversions);
    b->schedule->outputs = GRAFT_NEW(arena, uint32_t, graph->output_count);
    b->held = GRAFT_NEW(arena, uint32_t, (size_t)graph->value_end * GRAFT_LAYOUT_COUNT);
    memset(b->held, 0xff, sizeof(uint32_t) * graph->value_end * GRAFT_LAYOUT_COUNT);
}

/* ------------------------------------------------------------------- pieces */

static uint32_t add_region(builder *b, graft_index value, graft_region_kind kind, uint32_t layout)
{
    graft_schedule *s = b->schedule;
    uint32_t region = s->region_count++;
    s->regions[region] = (graft_region){.bytes = graft_cost_bytes(&b->graph->values[value].shape),
                                        .first = s->step_count,
                                        .last = s->step_count,
                                        .value = value,
                                        .root = region,
                                        .kind = (uint8_t)kind,
                                        .layout = (uint8_t)layout};
    b->held[(size_t)value * GRAFT_LAYOUT_COUNT + layout] = region;
    return region;
}

static graft_step *add_step(builder *b, graft_index node, uint32_t input_count,
                            uint32_t output_count)
{
    graft_schedule *s = b->schedule;
    graft_step *step = &s->steps[s->step_count];
    step->node = node;
    step->first = s->operand_count;
    step->input_count = input_count;
    step->output_count = output_count;
    s->operand_count += input_count + output_count;
    return step;
}

/* The region and all that it lies in are needed until `step`. */
static void extend_life(graft_schedule *s, uint32_t region, uint32_t step)
{
    for (;;) {
        graft_region *r = &s->regions[region];
        r->last = step > r->last ? step : r->last;
        if (r->root == region) {
            return;
        }
        region = r->root;
    }
}

/* Puts a region that is its own root into another one. */
static void place_region(graft_schedule *s, uint32_t region, uint32_t whole, uint64_t offset)
{
    graft_region *piece = &s->regions[region];
    assert(piece->root == region && region != whole);
    piece->root = whole;
    piece->offset = offset;
    extend_life(s, whole, piece->last);
}

static void read_region(builder *b, graft_step *step, uint32_t k, uint32_t region)
{
    b->schedule->operands[step->first + k] = region;
    if (region != GRAFT_REGION_NONE) {
        extend_life(b->schedule, region, b->schedule->step_count);
    }
}

/* The region that has `value` in this element order already, or GRAFT_REGION_NONE. */
static uint32_t find_region(const builder *b, graft_index value, uint32_t layout)
{
    const uint32_t *held = &b->held[(size_t)value * GRAFT_LAYOUT_COUNT];
    for (uint32_t from = 0; from < GRAFT_LAYOUT_COUNT; from++) {
        uint32_t at = (layout + from) % GRAFT_LAYOUT_COUNT; /* The layout itself first. */
        if (held[at] != GRAFT_REGION_NONE &&
            graft_layout_same(&b->graph->values[value].shape, at, layout)) {
            return held[at];
        }
    }
    return GRAFT_REGION_NONE;
}

/* The region that holds `value` in `layout`, after a conversion where one is needed. */
static uint32_t obtain_region(builder *b, graft_index value, uint32_t layout)
{
    uint32_t region = find_region(b, value, layout);
    const graft_value *v = &b->graph->values[value];
    if (region == GRAFT_REGION_NONE && v->is_const) {
        region = add_region(b, value, GRAFT_REGION_CONST, GRAFT_LAYOUT_ROW);
    }
    if (region != GRAFT_REGION_NONE) {
        return region;
    }
    uint32_t from = b->layouts[value];
    uint32_t source = b->held[(size_t)value * GRAFT_LAYOUT_COUNT + from];
    graft_step *step = add_step(b, GRAFT_NONE, 1, 1);
    graft_signature_of_reorder(&v->shape, from, layout, &step->signature);
    step->signature.distance = b->distances.others;
    read_region(b, step, 0, source);
    region = add_region(b, value, GRAFT_REGION_PLANNED, layout);
    b->schedule->operands[step->first + 1] = region;
    b->schedule->step_count++;
    return region;
}

/* -------------------------------------------------------------------- nodes */

static void add_alias(builder *b, graft_index node, const graft_layout_choice *choice)
{
    uint32_t region = obtain_region(b, graft_node_input(b->graph, node, 0), choice->inputs[0]);
    graft_index output = graft_node_output(b->graph, node, 0);
    b->held[(size_t)output * GRAFT_LAYOUT_COUNT + choice->outputs[0]] = region;
}

/* The operands lie in the result: they were made by steps and lie nowhere else, see views.h. */
static void add_joined(builder *b, graft_index node, const graft_layout_choice *choice)
{
    graft_schedule *s = b->schedule;
    graft_index value = graft_node_output(b->graph, node, 0);
    uint32_t parts[2];
    for (uint32_t k = 0; k < 2; k++) {
        parts[k] = obtain_region(b, graft_node_input(b->graph, node, k), choice->inputs[k]);
    }
    uint32_t whole = add_region(b, value, GRAFT_REGION_PLANNED, choice->outputs[0]);
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t first = s->regions[parts[k]].first;
        assert(s->regions[parts[k]].kind == GRAFT_REGION_PLANNED);
        place_region(s, parts[k], whole, graft_views_offset(b->graph, node, choice, k));
        s->regions[whole].first = first < s->regions[whole].first ? first : s->regions[whole].first;
    }
}

/* The results of a split or slice lie in its operand. */
static void add_pieces(builder *b, graft_index node, const graft_layout_choice *choice)
{
    graft_schedule *s = b->schedule;
    uint32_t whole = obtain_region(b, graft_node_input(b->graph, node, 0), choice->inputs[0]);
    for (uint32_t k = 0; k < b->graph->nodes[node].output_count; k++) {
        graft_index value = graft_node_output(b->graph, node, k);
        uint32_t kind = s->regions[whole].kind;
        uint32_t piece = add_region(b, value, (graft_region_kind)kind, choice->outputs[k]);
        place_region(s, piece, whole, graft_views_offset(b->graph, node, choice, k));
    }
}

/* Conversions come first: they are steps of their own. Their regions are found again below. */
static void convert_inputs(builder *b, graft_index node, const graft_layout_choice *choice)
{
    for (uint32_t k = 0; k < b->graph->nodes[node].input_count; k++) {
        graft_index value = graft_node_input(b->graph, node, k);
        if (value != GRAFT_NONE) {
            (void)obtain_region(b, value, k < GRAFT_MAX_INPUTS ? choice->inputs[k] : 0);
        }
    }
}

/* After a conversion, where one is needed. */
static uint32_t obtain_input(builder *b, const graft_group *group, uint32_t k)
{
    return group->inputs[k] == GRAFT_NONE
               ? GRAFT_REGION_NONE
               : obtain_region(b, group->inputs[k], graft_group_layout(group, k));
}

/* All of it is the step of the last node. */
static void add_group(builder *b, graft_index node, const graft_group *group)
{
    uint32_t count = group->signature.input_count;
    graft_index output = graft_node_output(b->graph, node, 0);
    if (node != group->nodes[0]) {
        return;
    }
    for (uint32_t k = 0; k < count; k++) {
        (void)obtain_input(b, group, k);
    }
    graft_step *step = add_step(b, node, count, 1);
    graft_group *copy = GRAFT_NEW(b->arena, graft_group, 1);
    *copy = *group;
    step->group = copy;
    step->signature = group->signature;
    for (uint32_t k = 0; k < count; k++) {
        read_region(b, step, k, obtain_input(b, group, k));
    }
    b->schedule->operands[step->first + count] =
        add_region(b, output, GRAFT_REGION_PLANNED, graft_group_result(group));
    b->schedule->step_count++;
}

static void add_node(builder *b, graft_index node)
{
    const graft_node *n = &b->graph->nodes[node];
    const graft_layout_choice *choice = &b->choices[node];
    const graft_group *group = graft_group_of(b->groups, node);
    if (group != NULL) {
        add_group(b, node, group);
        return;
    }
    if (graft_views_is_alias(n->op) || (choice->view && n->op == GRAFT_OP_transpose)) {
        add_alias(b, node, choice);
        return;
    }
    if (choice->view) {
        (n->op == GRAFT_OP_concat ? add_joined : add_pieces)(b, node, choice);
        return;
    }
    convert_inputs(b, node, choice);
    graft_step *step = add_step(b, node, n->input_count, n->output_count);
    if (n->op == GRAFT_OP_OPAQUE) {
        step->signature.op = GRAFT_OP_OPAQUE;
    } else {
        graft_signature_of_node(b->graph, node, choice, false, &step->signature);
        step->signature.distance = b->distances.nodes[node];
    }
    for (uint32_t k = 0; k < n->input_count; k++) {
        graft_index value = graft_node_input(b->graph, node, k);
        uint32_t layout = k < GRAFT_MAX_INPUTS ? choice->inputs[k] : 0;
        read_region(b, step, k,
                    value == GRAFT_NONE ? GRAFT_REGION_NONE : obtain_region(b, value, layout));
    }
    for (uint32_t k = 0; k < n->output_count; k++) {
        graft_index value = graft_node_output(b->graph, node, k);
        uint32_t layout = k < GRAFT_MAX_OUTPUTS ? choice->outputs[k] : 0;
        b->schedule->operands[step->first + n->input_count + k] =
            add_region(b, value, GRAFT_REGION_PLANNED, layout);
    }
    b->schedule->step_count++;
}

static void add_inputs(builder *b)
{
    for (graft_index v = 0; v < b->graph->value_end; v++) {
        if (b->graph->values[v].kind == GRAFT_VALUE_INPUT) {
            (void)add_region(b, v, GRAFT_REGION_INPUT, GRAFT_LAYOUT_ROW);
        }
    }
}

static void add_outputs(builder *b)
{
    graft_schedule *s = b->schedule;
    for (uint32_t i = 0; i < b->graph->output_count; i++) {
        s->outputs[i] = obtain_region(b, b->graph->outputs[i], GRAFT_LAYOUT_ROW);
    }
    for (uint32_t i = 0; i < b->graph->output_count; i++) {
        extend_life(s, s->outputs[i], s->step_count);
    }
}

/* ----------------------------------------------------------------- in place */

enum { RESIDUAL = 3 };

static graft_index find_root(graft_index *roots, graft_index value)
{
    while (roots[value] != value) {
        roots[value] = roots[roots[value]];
        value = roots[value];
    }
    return value;
}

/* By value: one that stands for all with which it may share memory as views. Of an input of the
 * graph and its views, the input stands for all. */
static graft_index *find_roots(graft_arena *arena, const graft_graph *graph,
                               const graft_order *order, const graft_views *views)
{
    graft_index *roots = GRAFT_NEW(arena, graft_index, graph->value_end);
    for (graft_index v = 0; v < graph->value_end; v++) {
        roots[v] = v;
    }
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        const graft_node *n = &graph->nodes[node];
        if (!graft_views_is_alias(n->op) && !graft_views_somewhere(graph, node, views)) {
            continue;
        }
        graft_index root = find_root(roots, graft_node_input(graph, node, 0));
        for (uint32_t k = 1; k < n->input_count; k++) {
            roots[find_root(roots, graft_node_input(graph, node, k))] = root;
        }
        for (uint32_t k = 0; k < n->output_count; k++) {
            roots[graft_node_output(graph, node, k)] = root;
        }
    }
    for (graft_index v = 0; v < graph->value_end; v++) {
        roots[v] = find_root(roots, v);
    }
    return roots;
}

/* By root: the place of the last node that reads it or what it stands for; past all nodes when that
 * is given away. */
static graft_index *find_ends(graft_arena *arena, const graft_graph *graph,
                              const graft_order *order, const graft_index *roots)
{
    graft_index *ends = GRAFT_NEW(arena, graft_index, graph->value_end);
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        for (uint32_t k = 0; k < graph->nodes[node].input_count; k++) {
            graft_index v = graft_node_input(graph, node, k);
            if (v != GRAFT_NONE) {
                ends[roots[v]] = i;
            }
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        ends[roots[graph->outputs[i]]] = order->count;
    }
    return ends;
}

bool *graft_schedule_overwrites(graft_arena *arena, const graft_graph *graph,
                                const graft_order *order, const graft_views *views)
{
    bool *overwrites = GRAFT_NEW(arena, bool, graph->node_end);
    graft_index *roots = NULL;
    graft_index *ends = NULL;
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        if (graph->nodes[node].op != GRAFT_OP_conv_bias_add || graph->nodes[node].is_const) {
            continue;
        }
        if (roots == NULL) { /* Most graphs have none. */
            roots = find_roots(arena, graph, order, views);
            ends = find_ends(arena, graph, order, roots);
        }
        graft_index residual = roots[graft_node_input(graph, node, RESIDUAL)];
        const graft_value *value = &graph->values[residual];
        bool free = value->kind != GRAFT_VALUE_INPUT && !value->is_const && ends[residual] == i &&
                    (views->claimed == NULL || !views->claimed[graft_node_output(graph, node, 0)]);
        for (uint32_t k = 0; k < RESIDUAL; k++) {
            free = free && roots[graft_node_input(graph, node, k)] != residual;
        }
        overwrites[node] = free;
    }
    return overwrites;
}

static uint32_t outermost(const graft_schedule *s, uint32_t region)
{
    while (s->regions[region].root != region) {
        region = s->regions[region].root;
    }
    return region;
}

static void join_residuals(const builder *b)
{
    graft_schedule *s = b->schedule;
    for (uint32_t i = 0; i < s->step_count; i++) {
        if (s->steps[i].node != GRAFT_NONE && b->overwrites[s->steps[i].node]) {
            uint32_t region = graft_step_input(s, &s->steps[i], RESIDUAL);
            const graft_region *root = &s->regions[outermost(s, region)];
            assert(root->kind == GRAFT_REGION_PLANNED && root->last == i);
            (void)root;
            s->steps[i].signature.in_place = 1;
            place_region(s, graft_step_output(s, &s->steps[i], 0), region, 0);
        }
    }
}

/* From the next larger region to the root of all. */
static void find_offsets(graft_schedule *s)
{
    for (uint32_t i = 0; i < s->region_count; i++) {
        graft_region *r = &s->regions[i];
        uint32_t root = r->root;
        while (s->regions[root].root != root) {
            r->offset += s->regions[root].offset;
            root = s->regions[root].root;
        }
        r->root = root;
    }
}

static uint64_t find_peak(graft_arena *arena, const graft_schedule *s)
{
    GRAFT_SCOPED(arena);
    int64_t *change = GRAFT_NEW(arena, int64_t, (size_t)s->step_count + 2);
    for (uint32_t i = 0; i < s->region_count; i++) {
        const graft_region *r = &s->regions[i];
        if (r->root == i && r->kind != GRAFT_REGION_CONST) {
            bool input = r->kind == GRAFT_REGION_INPUT;
            change[r->first] += (int64_t)r->bytes;
            change[(input ? s->step_count : r->last) + 1] -= (int64_t)r->bytes;
        }
    }
    int64_t live = 0;
    int64_t peak = 0;
    for (uint32_t i = 0; i <= s->step_count; i++) {
        live += change[i];
        peak = live > peak ? live : peak;
    }
    return (uint64_t)peak;
}

void graft_schedule_build_as(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                             const graft_assignment *assignment, graft_schedule *schedule)
{
    builder b = {.arena = arena,
                 .graph = graph,
                 .schedule = schedule,
                 .layouts = assignment->layouts,
                 .choices = assignment->choices,
                 .groups = &assignment->groups};
    memset(schedule, 0, sizeof(*schedule));
    schedule->output_count = graph->output_count;
    allocate(&b, arena);
    b.overwrites = graft_schedule_overwrites(arena, graph, order, &assignment->views);
    graft_distances_find(arena, graph, order, &b.distances);
    add_inputs(&b);
    for (graft_index i = 0; i < order->count; i++) {
        if (!graph->nodes[order->order[i]].is_const) {
            add_node(&b, order->order[i]);
        }
    }
    add_outputs(&b);
    join_residuals(&b);
    find_offsets(schedule);
    schedule->peak_bytes = find_peak(arena, schedule);
}

void graft_schedule_build_in(graft_arena *arena, const graft_graph *graph, const graft_order *order,
                             uint32_t layout, bool views, graft_schedule *schedule)
{
    graft_assignment a = {.layouts = GRAFT_NEW(arena, uint8_t, graph->value_end),
                          .choices = GRAFT_NEW(arena, graft_layout_choice, graph->node_end)};
    graft_layout_assign(graph, order, layout, a.layouts, a.choices);
    if (views) {
        graft_views_find(arena, graph, order, &a.views);
    }
    for (graft_index i = 0; i < order->count; i++) {
        graft_index node = order->order[i];
        a.choices[node].view = graft_views_possible(graph, node, &a.views, &a.choices[node]);
    }
    graft_schedule_build_as(arena, graph, order, &a, schedule);
}

graft_signature *graft_schedule_signatures(graft_arena *arena, const graft_schedule *schedule,
                                           uint32_t *count)
{
    graft_signature *signatures = GRAFT_NEW(arena, graft_signature, schedule->step_count);
    *count = 0;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        if (schedule->steps[i].signature.op != GRAFT_OP_OPAQUE) {
            signatures[(*count)++] = schedule->steps[i].signature;
        }
    }
    return signatures;
}
