/* plan.c - choosing layouts and implementations for a whole graph (see plan.h). */
#include "cost/plan/plan.h"

#include "cost/plan/elimination.h"
#include "cost/plan/integers.h"
#include "cost/plan/memo.h"

#include <math.h>
#include <string.h>

enum { NO_VARIABLE = UINT32_MAX, OPERANDS_MOST = GRAFT_MAX_INPUTS + GRAFT_MAX_OUTPUTS };
enum { SHAPES_KEPT = 32 };

/* A state of a value: made in `made`, held in the layouts of `held` (bits). All canonical. */
typedef struct {
    uint8_t made;
    uint8_t held;
} value_state;

typedef struct {
    conversions *conversions; /* NULL for weights and what is no image: one layout only. */
    uint32_t variable;        /* NO_VARIABLE when there is one state only, or it is carried. */
    graft_index end;          /* The last value of the chain that begins here; itself, alone. */
    uint8_t made;             /* Bits: layouts that some alternative makes it in... */
    uint8_t wanted;           /* ...or wants it in. */
    uint8_t state_count;
    bool shared; /* Read more than once. */
    uint8_t canonical[GRAFT_LAYOUT_COUNT];
    value_state states[GRAFT_ELIMINATION_STATES];
    /* What the chain costs from here to its end, by the layouts that this and the end are made in;
     * 0 and INFINITY where it ends here. */
    double tail[GRAFT_LAYOUT_COUNT][GRAFT_LAYOUT_COUNT];
} value_plan;

typedef struct {
    graft_arena *arena;
    const graft_graph *graph;
    const graft_order *order;
    graft_plan_source source;
    void *context;
    graft_plan *plan;
    const bool *overwrites; /* By node. */
    graft_distances distances;
    uint8_t *offered;      /* By value: bits of the layouts it can be made in. */
    value_plan *values;    /* By value. */
    node_plan *nodes;      /* By node. */
    graft_plan_memo *memo; /* Or NULL. */
    conversions *kept;     /* Of the shapes seen last. */
    uint32_t kept_count;
    conversions *last; /* Looked for just now: neighbours often have one shape. */
    graft_elimination *problem;
    uint8_t *states; /* By variable. */
    bool unblocked;
} planner;

/* -------------------------------------------------------------------- costs */

/* 0, and a note, when it is not known. */
static double cost_of(planner *p, const graft_signature *signature, bool *measured)
{
    graft_plan *plan = p->plan;
    const graft_cost_entry *entry = p->source(p->context, signature);
    *measured = true;
    if (entry == NULL) {
        GRAFT_PUSH(p->arena, plan->missing, plan->missing_count, plan->missing_capacity, 64) =
            *signature;
        return 0.0;
    }
    *measured = entry->source == GRAFT_COST_MEASURED;
    return entry->median_ns;
}

static double cost_conversion(planner *p, conversions *c, uint32_t from, uint32_t to)
{
    if (isnan(c->ns[from][to])) {
        graft_signature signature;
        bool measured = false;
        graft_signature_of_reorder(&c->shape, from, to, &signature);
        signature.distance = p->distances.others;
        uint32_t missing = p->plan->missing_count;
        double ns = cost_of(p, &signature, &measured);
        if (p->memo != NULL && missing != p->plan->missing_count) {
            return ns; /* To be asked again. */
        }
        c->ns[from][to] = ns;
    }
    return c->ns[from][to];
}

static void open_conversions(conversions *c, const graft_shape *shape)
{
    c->shape = *shape;
    for (uint32_t from = 0; from < GRAFT_LAYOUT_COUNT; from++) {
        c->canonical[from] = (uint8_t)graft_layout_canonical(shape, from);
        for (uint32_t to = 0; to < GRAFT_LAYOUT_COUNT; to++) {
            c->ns[from][to] = from == to ? 0.0 : (double)NAN;
        }
    }
}

static bool is_for(const conversions *c, const graft_shape *shape)
{
    return c->shape.dtype == shape->dtype &&
           memcmp(c->shape.dims, shape->dims, 4 * sizeof(shape->dims[0])) == 0;
}

/* In the memo, where there is room; else NULL. */
static conversions *recall_conversions(planner *p, const graft_shape *shape)
{
    graft_plan_memo *memo = p->memo;
    for (uint32_t i = 0; memo != NULL && i < memo->shape_count; i++) {
        if (memo->distances[i] == p->distances.others && is_for(&memo->shapes[i], shape)) {
            return &memo->shapes[i];
        }
    }
    if (memo == NULL || memo->shape_count == MEMO_SHAPES) {
        return NULL;
    }
    memo->distances[memo->shape_count] = p->distances.others;
    open_conversions(&memo->shapes[memo->shape_count], shape);
    return &memo->shapes[memo->shape_count++];
}

static conversions *seek_conversions(planner *p, const graft_shape *shape)
{
    for (uint32_t i = p->kept_count; i-- > 0;) {
        if (is_for(&p->kept[i], shape)) {
            return &p->kept[i];
        }
    }
    conversions *remembered = recall_conversions(p, shape);
    if (remembered != NULL) {
        return remembered;
    }
    if (p->kept_count == SHAPES_KEPT) { /* Others keep pointing to the old ones. */
        p->kept = GRAFT_NEW(p->arena, conversions, SHAPES_KEPT);
        p->kept_count = 0;
    }
    conversions *c = &p->kept[p->kept_count++];
    open_conversions(c, shape);
    return c;
}

static conversions *find_conversions(planner *p, const graft_shape *shape)
{
    if (p->last == NULL || !is_for(p->last, shape)) {
        p->last = seek_conversions(p, shape);
    }
    return p->last;
}

/* ------------------------------------------------------------- alternatives */

static bool costs_nothing(uint32_t op)
{
    return op == GRAFT_OP_OPAQUE || op == GRAFT_OP_identity || op == GRAFT_OP_reshape;
}

/* Looks up what each alternative costs and keeps those that were measured, or the first; views are
 * kept in any case. */
static void cost_alternatives(planner *p, graft_index node, graft_signature *signature,
                              node_plan *n)
{
    bool measured[GRAFT_LAYOUT_COUNT] = {false};
    bool any = false;
    uint32_t kept = 0;
    for (uint32_t a = 0; a < n->count; a++) {
        graft_layout_choice *choice = &n->choices[a];
        choice->view = graft_views_possible(p->graph, node, &p->plan->assignment.views, choice);
        if (!choice->view && !graft_layout_is_for_views(p->graph, node, choice)) {
            graft_signature_set_layouts(signature, choice);
            n->ns[a] = cost_of(p, signature, &measured[a]);
            any = any || measured[a];
        }
    }
    for (uint32_t a = 0; a < n->count; a++) {
        if (measured[a] || n->choices[a].view || (a == 0 && !any)) {
            n->choices[kept] = n->choices[a];
            n->ns[kept++] = n->ns[a];
        }
    }
    n->count = kept;
}

/* What the memo says of a node; what it is to be told, in `*memo`, when it does not know. */
static bool recall_node(planner *p, graft_index node, const graft_signature *signature,
                        node_memo **memo)
{
    const graft_node *n = &p->graph->nodes[node];
    const graft_views *views = &p->plan->assignment.views;
    bool joins = views->joins != NULL && views->joins[node];
    node_memo *m = p->memo == NULL ? NULL : &p->memo->nodes[node];
    *memo = m;
    if (m == NULL) {
        return false;
    }
    bool same = m->known && m->joins == joins && graft_signature_equal(&m->signature, signature);
    m->joins = joins;
    for (uint32_t k = 0; k < n->input_count; k++) {
        uint8_t offered = p->offered[graft_node_input(p->graph, node, k)];
        same = same && m->offered[k] == offered;
        m->offered[k] = offered;
    }
    if (same) {
        p->nodes[node] = m->plan;
    } else {
        m->signature = *signature;
        m->known = false;
    }
    return same;
}

static void list_choices(const planner *p, graft_index node, node_plan *plan)
{
    uint32_t count = graft_layout_alternatives(p->graph, node, p->offered, plan->choices);
    plan->count = p->unblocked ? graft_layout_drop_blocked(plan->choices, count) : count;
}

static void list_alternatives(planner *p, graft_index node)
{
    static const graft_layout_choice rows = {.inputs = {0}};
    node_plan *plan = &p->nodes[node];
    uint32_t op = p->graph->nodes[node].op;
    node_memo *memo = NULL;
    graft_signature signature;
    if (op == GRAFT_OP_OPAQUE) {
        list_choices(p, node, plan);
        return;
    }
    graft_signature_of_node(p->graph, node, &rows, p->overwrites[node], &signature);
    signature.distance = p->distances.nodes[node];
    if (recall_node(p, node, &signature, &memo)) {
        return;
    }
    uint32_t missing = p->plan->missing_count;
    list_choices(p, node, plan);
    if (!costs_nothing(op)) {
        cost_alternatives(p, node, &signature, plan);
    }
    if (memo != NULL && missing == p->plan->missing_count) {
        memo->plan = *plan;
        memo->known = true;
    }
}

/* The group that a node is in whatever it costs, or NULL. */
static const graft_group *settled_group(const planner *p, graft_index node)
{
    const graft_group *group = graft_group_of(&p->plan->assignment.groups, node);
    return group != NULL && !graft_signature_is_attention(&group->signature) ? group : NULL;
}

/* All of a group has one layout, and its last node takes the time. */
static void list_group(planner *p, graft_index node, const graft_group *group)
{
    node_plan *plan = &p->nodes[node];
    bool measured = false;
    plan->count = 1;
    graft_layout_uniform(p->graph, node, graft_group_result(group), &plan->choices[0]);
    plan->ns[0] = node == group->nodes[0] ? cost_of(p, &group->signature, &measured) : 0.0;
}

static void list_node(planner *p, graft_index node)
{
    const graft_node *n = &p->graph->nodes[node];
    node_plan *plan = &p->nodes[node];
    const graft_group *group = settled_group(p, node);
    if (group != NULL) {
        list_group(p, node, group);
    } else {
        list_alternatives(p, node);
    }
    for (uint32_t k = 0; k < n->output_count; k++) {
        graft_index v = graft_node_output(p->graph, node, k);
        p->offered[v] = 0;
        for (uint32_t a = 0; a < plan->count; a++) {
            uint32_t layout = k < GRAFT_MAX_OUTPUTS ? plan->choices[a].outputs[k] : 0;
            p->offered[v] = (uint8_t)(p->offered[v] | 1U << layout);
            p->values[v].made = (uint8_t)(p->values[v].made | 1U << p->values[v].canonical[layout]);
        }
    }
    for (uint32_t k = 0; k < n->input_count; k++) {
        graft_index v = graft_node_input(p->graph, node, k);
        for (uint32_t a = 0; a < plan->count && v != GRAFT_NONE; a++) {
            uint32_t layout = k < GRAFT_MAX_INPUTS ? plan->choices[a].inputs[k] : 0;
            p->values[v].wanted =
                (uint8_t)(p->values[v].wanted | 1U << p->values[v].canonical[layout]);
        }
    }
}

static void open_value(planner *p, graft_index value)
{
    value_plan *v = &p->values[value];
    const graft_value *from = &p->graph->values[value];
    p->offered[value] = 1U << GRAFT_LAYOUT_ROW;
    v->made = from->kind == GRAFT_VALUE_INPUT ? 1U << GRAFT_LAYOUT_ROW : 0;
    v->variable = NO_VARIABLE;
    v->end = value;
    if (from->kind == GRAFT_VALUE_FREE || from->is_const || from->shape.rank != 4) {
        return;
    }
    v->shared = p->order->use_count[value] > 1;
    v->conversions = find_conversions(p, &from->shape);
    memcpy(v->canonical, v->conversions->canonical, sizeof(v->canonical));
}

static void list_nodes(planner *p)
{
    const graft_graph *graph = p->graph;
    for (graft_index v = 0; v < graph->value_end; v++) {
        open_value(p, v);
    }
    for (graft_index i = 0; i < p->order->count; i++) {
        if (!graph->nodes[p->order->order[i]].is_const) {
            list_node(p, p->order->order[i]);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        value_plan *v = &p->values[graph->outputs[i]];
        v->wanted = (uint8_t)(v->wanted | 1U << GRAFT_LAYOUT_ROW);
    }
}

/* ------------------------------------------------------------------ groups */

/* The nodes of a group one by one; less than anything where one may run otherwise than
 * row-major. */
static double cost_parts(const planner *p, const graft_group *group)
{
    double ns = 0.0;
    for (uint32_t i = 0; i < group->node_count; i++) {
        const node_plan *n = &p->nodes[group->nodes[i]];
        bool rows = n->count == 1 && n->choices[0].outputs[0] == GRAFT_LAYOUT_ROW;
        for (uint32_t k = 0; k < p->graph->nodes[group->nodes[i]].input_count; k++) {
            rows = rows && n->choices[0].inputs[k] == GRAFT_LAYOUT_ROW;
        }
        ns += rows ? n->ns[0] : -(double)INFINITY;
    }
    return ns;
}

static void find_groups(planner *p, const graft_plan_request *request)
{
    graft_groups *groups = &p->plan->assignment.groups;
    if (request->fuses != NULL) {
        graft_groups_find(p->arena, p->graph, p->order, p->overwrites, request->model, groups);
    }
    if (request->groups) {
        graft_groups_find_shuffles(p->arena, p->graph, p->order, p->overwrites, &p->distances,
                                   groups);
    }
    if (request->groups && request->model != NULL) {
        graft_integers_find(p->arena, p->graph, p->order, request->model, &p->distances, groups);
    }
}

/* Attention that was measured, and is cheaper than its nodes, costs what it does as a whole. */
static void choose_groups(planner *p, const graft_plan_request *request)
{
    graft_groups *groups = &p->plan->assignment.groups;
    for (uint32_t i = 0; i < groups->count; i++) {
        graft_group *group = &groups->list[i];
        bool measured = false;
        if (!graft_signature_is_attention(&group->signature)) {
            continue;
        }
        double ns = request->fuses(p->context, &group->signature)
                        ? cost_of(p, &group->signature, &measured)
                        : 0.0;
        const double parts_ns = cost_parts(p, group);
        bool chosen = measured && ns < parts_ns;
        for (uint32_t k = 0; k < group->node_count; k++) {
            graft_index node = group->nodes[k];
            groups->of[node] = chosen ? groups->of[node] : 0;
            group->shares[k] = chosen ? (float)(p->nodes[node].ns[0] / parts_ns) : 0.0F;
            p->nodes[node].ns[0] = !chosen ? p->nodes[node].ns[0] : k == 0 ? ns : 0.0;
        }
    }
}

/* --------------------------------------------------------------- variables */

static void add_states(value_plan *v, uint32_t made)
{
    uint32_t others = v->shared ? v->wanted & ~(1U << made) : 0;
    for (uint32_t extra = 0; extra < 1U << GRAFT_LAYOUT_COUNT; extra++) {
        if ((extra & ~others) == 0) {
            v->states[v->state_count++] =
                (value_state){.made = (uint8_t)made, .held = (uint8_t)(extra | 1U << made)};
        }
    }
}

/* What a value's state costs by itself: its conversions, when readers share them. */
static void add_own_costs(planner *p, const value_plan *v)
{
    double *table = graft_elimination_factor(p->problem, 1, &v->variable);
    for (uint32_t s = 0; s < v->state_count; s++) {
        for (uint32_t to = 0; to < GRAFT_LAYOUT_COUNT; to++) {
            if ((v->states[s].held >> to & 1U) != 0) {
                table[s] += cost_conversion(p, v->conversions, v->states[s].made, to);
            }
        }
    }
}

static void add_variable(planner *p, graft_index value)
{
    /* In the order of preference among equals. */
    static const uint8_t order[GRAFT_LAYOUT_COUNT] = {GRAFT_LAYOUT_NHWC, GRAFT_LAYOUT_ROW,
                                                      GRAFT_LAYOUT_BLOCKED};
    value_plan *v = &p->values[value];
    if (v->conversions == NULL || v->end != value) {
        return;
    }
    for (uint32_t i = 0; i < GRAFT_LAYOUT_COUNT; i++) {
        if (((uint32_t)v->made >> order[i] & 1U) != 0) {
            add_states(v, order[i]);
        }
    }
    if (v->state_count > 1) {
        v->variable = graft_elimination_variable(p->problem, v->state_count);
        if (v->shared) {
            add_own_costs(p, v);
        }
    }
}

/* ----------------------------------------------------------------- operands */

/* What it costs to have a value that is made in one layout and held in some in yet another. */
static double cost_reading(planner *p, const value_plan *v, value_state state, uint32_t layout)
{
    uint32_t wanted = v->canonical[layout];
    if (v->conversions == NULL || ((uint32_t)state.held >> wanted & 1U) != 0) {
        return 0.0;
    }
    return v->shared ? (double)INFINITY : cost_conversion(p, v->conversions, state.made, wanted);
}

/* What follows when a value is made in `layout` and the end of its chain in `made`. */
static double cost_making(const value_plan *v, graft_index value, uint32_t layout, uint32_t made)
{
    uint32_t own = v->canonical[layout];
    if (v->end == value) {
        return own == made ? 0.0 : (double)INFINITY;
    }
    return v->tail[own][made];
}

/* The operands of a node: inputs that are images, then outputs with the ends of their chains. What
 * the alternatives cost for every state is filled in beforehand. */
typedef struct {
    graft_index values[OPERANDS_MOST]; /* Whose variable counts: of outputs, the chain's end. */
    double ns[OPERANDS_MOST][GRAFT_ELIMINATION_STATES][GRAFT_LAYOUT_COUNT];
    uint32_t count;
    uint32_t scope[OPERANDS_MOST];  /* Variables among them, each once. */
    uint32_t places[OPERANDS_MOST]; /* Of each operand: its variable's place in the scope. */
    uint32_t scope_states[OPERANDS_MOST];
    uint32_t scope_count;
} operands;

static uint32_t count_states(const value_plan *v)
{
    return v->state_count == 0 ? 1 : v->state_count;
}

static void add_operand(const planner *p, graft_index value, operands *o)
{
    const value_plan *v = &p->values[value];
    uint32_t at = 0;
    o->values[o->count] = value;
    while (at < o->scope_count && o->scope[at] != v->variable) {
        at++;
    }
    if (v->variable != NO_VARIABLE && at == o->scope_count) {
        o->scope[at] = v->variable;
        o->scope_states[o->scope_count++] = v->state_count;
    }
    o->places[o->count++] = v->variable == NO_VARIABLE ? NO_VARIABLE : at;
}

/* The node's inputs are not carried. */
static void find_operands(planner *p, graft_index node, operands *o)
{
    const graft_node *n = &p->graph->nodes[node];
    const node_plan *plan = &p->nodes[node];
    o->count = 0;
    o->scope_count = 0;
    memset(o->ns[0], 0, sizeof(o->ns[0])); /* Every node has one; analysers do not see that. */
    for (uint32_t k = 0; k < n->input_count; k++) {
        graft_index value = graft_node_input(p->graph, node, k);
        if (value == GRAFT_NONE || p->values[value].conversions == NULL) {
            continue;
        }
        const value_plan *v = &p->values[value];
        add_operand(p, value, o);
        for (uint32_t s = 0; s < v->state_count; s++) {
            for (uint32_t a = 0; a < plan->count; a++) {
                o->ns[o->count - 1][s][a] =
                    cost_reading(p, v, v->states[s], plan->choices[a].inputs[k]);
            }
        }
    }
    for (uint32_t k = 0; k < n->output_count; k++) {
        graft_index value = graft_node_output(p->graph, node, k);
        const value_plan *v = &p->values[value];
        const value_plan *end = &p->values[v->end];
        add_operand(p, v->end, o);
        for (uint32_t s = 0; s < count_states(end); s++) {
            for (uint32_t a = 0; a < plan->count; a++) {
                o->ns[o->count - 1][s][a] =
                    cost_making(v, value, plan->choices[a].outputs[k], end->states[s].made);
            }
        }
    }
}

/* The cheapest alternative when the variables of the scope have the states `at`. */
static uint32_t find_cheapest(const node_plan *n, const operands *o, const uint8_t *at, double *ns)
{
    uint32_t best = 0;
    *ns = (double)INFINITY;
    for (uint32_t a = 0; a < n->count; a++) {
        double cost = n->ns[a];
        for (uint32_t k = 0; k < o->count; k++) {
            cost += o->ns[k][o->places[k] == NO_VARIABLE ? 0 : at[o->places[k]]][a];
        }
        if (cost < *ns) {
            *ns = cost;
            best = a;
        }
    }
    return best;
}

/* ------------------------------------------------------------------- chains */

/* The alternative of a node of a chain whose input is made in `from` when the chain's end is to be
 * made in `to`. */
static uint32_t continue_chain(planner *p, graft_index node, uint32_t input, uint32_t from,
                               uint32_t to, double *ns)
{
    const node_plan *n = &p->nodes[node];
    const value_plan *v = &p->values[graft_node_input(p->graph, node, input)];
    graft_index output = graft_node_output(p->graph, node, 0);
    const value_state state = {.made = (uint8_t)from, .held = (uint8_t)(1U << from)};
    uint32_t best = 0;
    *ns = (double)INFINITY;
    for (uint32_t a = 0; a < n->count; a++) {
        double cost = n->ns[a] + cost_reading(p, v, state, n->choices[a].inputs[input]) +
                      cost_making(&p->values[output], output, n->choices[a].outputs[0], to);
        if (cost < *ns) {
            *ns = cost;
            best = a;
        }
    }
    return best;
}

/* The only input of a node that is an image, if it is read here only and made by a node: the chain
 * goes through this node. UINT32_MAX: it does not. */
static uint32_t seek_carried(const planner *p, graft_index node)
{
    const graft_node *n = &p->graph->nodes[node];
    uint32_t found = UINT32_MAX;
    if (graft_layout_is_closed(n) || n->output_count != 1) {
        return UINT32_MAX;
    }
    for (uint32_t k = 0; k < n->input_count; k++) {
        graft_index read = graft_node_input(p->graph, node, k);
        if (read == GRAFT_NONE) {
            continue;
        }
        const value_plan *v = &p->values[read];
        if (v->conversions != NULL && found != UINT32_MAX) {
            return UINT32_MAX;
        }
        found = v->conversions != NULL ? k : found;
    }
    graft_index value = found == UINT32_MAX ? GRAFT_NONE : graft_node_input(p->graph, node, found);
    bool carried = value != GRAFT_NONE && !p->values[value].shared &&
                   p->graph->values[value].kind != GRAFT_VALUE_INPUT;
    return carried ? found : UINT32_MAX;
}

/* What a chain costs from the input of a node on: as continue_chain, for all layouts. */
static void extend_chain(planner *p, graft_index node, uint32_t input)
{
    const node_plan *n = &p->nodes[node];
    value_plan *v = &p->values[graft_node_input(p->graph, node, input)];
    graft_index output = graft_node_output(p->graph, node, 0);
    const value_plan *next = &p->values[output];
    uint32_t ends = p->values[next->end].made;
    v->end = next->end;
    for (uint32_t from = 0; from < GRAFT_LAYOUT_COUNT; from++) {
        const value_state state = {.made = (uint8_t)from, .held = (uint8_t)(1U << from)};
        bool made = ((uint32_t)v->made >> from & 1U) != 0;
        for (uint32_t to = 0; to < GRAFT_LAYOUT_COUNT; to++) {
            v->tail[from][to] = (double)INFINITY;
        }
        for (uint32_t a = 0; a < n->count && made; a++) {
            double ns = n->ns[a] + cost_reading(p, v, state, n->choices[a].inputs[input]);
            for (uint32_t to = 0; to < GRAFT_LAYOUT_COUNT; to++) {
                double cost = (ends >> to & 1U) == 0
                                  ? (double)INFINITY
                                  : ns + cost_making(next, output, n->choices[a].outputs[0], to);
                v->tail[from][to] = cost < v->tail[from][to] ? cost : v->tail[from][to];
            }
        }
    }
}

/* From the last node to the first, so that what follows is known. */
static void join_chains(planner *p)
{
    for (graft_index i = p->order->count; i-- > 0;) {
        graft_index node = p->order->order[i];
        uint32_t input = p->graph->nodes[node].is_const ? UINT32_MAX : seek_carried(p, node);
        p->nodes[node].carried = input;
        if (input != UINT32_MAX) {
            extend_chain(p, node, input);
        }
    }
}

/* ------------------------------------------------------------------ factors */

/* A table over all operands: the cheapest alternative. */
static void add_joint_factor(planner *p, graft_index node)
{
    operands o;
    uint8_t at[OPERANDS_MOST] = {0};
    find_operands(p, node, &o);
    if (o.scope_count == 0) {
        return;
    }
    double *table = graft_elimination_factor(p->problem, o.scope_count, o.scope);
    for (uint32_t entry = 0;; entry++) {
        uint32_t i = 0;
        (void)find_cheapest(&p->nodes[node], &o, at, &table[entry]);
        while (i < o.scope_count && ++at[i] == o.scope_states[i]) {
            at[i++] = 0;
        }
        if (i == o.scope_count) {
            return;
        }
    }
}

/* A table over one value: read in this layout. */
static void add_reading(planner *p, graft_index value, uint32_t layout)
{
    const value_plan *v = value == GRAFT_NONE ? NULL : &p->values[value];
    if (v == NULL || v->variable == NO_VARIABLE) {
        return;
    }
    double *table = graft_elimination_factor(p->problem, 1, &v->variable);
    for (uint32_t s = 0; s < v->state_count; s++) {
        table[s] = cost_reading(p, v, v->states[s], layout);
    }
}

static bool begins_chain(const planner *p, graft_index node)
{
    const graft_node *n = &p->graph->nodes[node];
    bool begins = false;
    for (uint32_t k = 0; k < n->output_count; k++) {
        graft_index v = graft_node_output(p->graph, node, k);
        begins = begins || p->values[v].end != v;
    }
    return begins;
}

static void add_factors(planner *p)
{
    const graft_graph *graph = p->graph;
    for (graft_index i = 0; i < p->order->count; i++) {
        graft_index node = p->order->order[i];
        const graft_node *n = &graph->nodes[node];
        if (n->is_const || p->nodes[node].carried != UINT32_MAX) {
            continue;
        }
        if (!graft_layout_is_closed(n) && (p->nodes[node].count > 1 || begins_chain(p, node))) {
            add_joint_factor(p, node);
            continue;
        }
        for (uint32_t k = 0; k < n->input_count; k++) {
            add_reading(p, graft_node_input(graph, node, k),
                        k < GRAFT_MAX_INPUTS ? p->nodes[node].choices[0].inputs[k] : 0);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        add_reading(p, graph->outputs[i], GRAFT_LAYOUT_ROW);
    }
}

/* ------------------------------------------------------------------- result */

/* Room for every table: those of values, of readings, of nodes. */
static void open_problem(planner *p)
{
    const graft_graph *graph = p->graph;
    uint32_t variables = 0;
    uint32_t factors = graph->output_count;
    for (graft_index i = 0; i < p->order->count; i++) {
        const graft_node *n = &graph->nodes[p->order->order[i]];
        variables += n->output_count;
        factors += (uint32_t)n->input_count + n->output_count + 1;
    }
    for (graft_index v = 0; v < graph->value_end; v++) {
        variables += graph->values[v].kind == GRAFT_VALUE_INPUT;
        factors += graph->values[v].kind == GRAFT_VALUE_INPUT;
    }
    p->problem = graft_elimination_new(p->arena, variables, factors);
    p->states = GRAFT_NEW(p->arena, uint8_t, variables);
    for (graft_index v = 0; v < graph->value_end; v++) {
        add_variable(p, v);
    }
}

/* Which alternative of a node the chosen states mean. Producers have been asked before. */
static uint32_t choose_alternative(planner *p, graft_index node)
{
    uint32_t carried = p->nodes[node].carried;
    double ns = 0.0;
    if (p->nodes[node].count == 1) {
        return 0;
    }
    if (carried != UINT32_MAX) {
        graft_index input = graft_node_input(p->graph, node, carried);
        const value_plan *end = &p->values[p->values[input].end];
        uint32_t state = end->variable == NO_VARIABLE ? 0 : p->states[end->variable];
        return continue_chain(p, node, carried,
                              p->values[input].canonical[p->plan->assignment.layouts[input]],
                              end->states[state].made, &ns);
    }
    operands o;
    uint8_t at[OPERANDS_MOST] = {0};
    find_operands(p, node, &o);
    for (uint32_t i = 0; i < o.scope_count; i++) {
        at[i] = p->states[o.scope[i]];
    }
    return find_cheapest(&p->nodes[node], &o, at, &ns);
}

/* The conversions that the choices need: each value's, once for all who read it. */
static double sum_conversions(planner *p, const uint8_t *needed)
{
    double ns = 0.0;
    for (graft_index v = 0; v < p->graph->value_end; v++) {
        const value_plan *value = &p->values[v];
        if (needed[v] == 0 || value->conversions == NULL) {
            continue;
        }
        uint32_t made = value->canonical[p->plan->assignment.layouts[v]];
        for (uint32_t to = 0; to < GRAFT_LAYOUT_COUNT; to++) {
            if ((needed[v] >> to & 1U) != 0) {
                ns += cost_conversion(p, value->conversions, made, to);
            }
        }
    }
    return ns;
}

/* What the plan costs: times are multiples of 1/16, so the order does not matter. */
static double sum_plan(planner *p, const uint32_t *chosen)
{
    const graft_graph *graph = p->graph;
    uint8_t *needed = GRAFT_NEW(p->arena, uint8_t, graph->value_end);
    double ns = 0.0;
    for (graft_index i = 0; i < p->order->count; i++) {
        graft_index node = p->order->order[i];
        const graft_node *n = &graph->nodes[node];
        if (n->is_const) {
            continue;
        }
        ns += p->nodes[node].ns[chosen[node]];
        for (uint32_t k = 0; k < n->input_count; k++) {
            graft_index v = graft_node_input(graph, node, k);
            uint32_t layout =
                k < GRAFT_MAX_INPUTS ? p->plan->assignment.choices[node].inputs[k] : 0;
            if (v != GRAFT_NONE) {
                needed[v] = (uint8_t)(needed[v] | 1U << p->values[v].canonical[layout]);
            }
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        needed[graph->outputs[i]] = (uint8_t)(needed[graph->outputs[i]] | 1U << GRAFT_LAYOUT_ROW);
    }
    return ns + sum_conversions(p, needed);
}

static void read_choices(planner *p)
{
    uint32_t *chosen = GRAFT_NEW(p->arena, uint32_t, p->graph->node_end);
    for (graft_index i = 0; i < p->order->count; i++) {
        graft_index node = p->order->order[i];
        const graft_node *n = &p->graph->nodes[node];
        if (n->is_const) {
            continue;
        }
        graft_layout_choice *choice = &p->plan->assignment.choices[node];
        chosen[node] = choose_alternative(p, node);
        *choice = p->nodes[node].choices[chosen[node]];
        for (uint32_t k = 0; k < n->output_count && k < GRAFT_MAX_OUTPUTS; k++) {
            p->plan->assignment.layouts[graft_node_output(p->graph, node, k)] = choice->outputs[k];
        }
    }
    p->plan->ns = sum_plan(p, chosen);
}

void graft_plan_build(graft_arena *arena, const graft_plan_request *request, graft_plan *plan)
{
    const graft_graph *graph = request->graph;
    bool remembers =
        request->memo != NULL && graft_plan_memo_fit(request->memo, graph->limits.nodes);
    planner p = {.arena = arena,
                 .graph = graph,
                 .order = request->order,
                 .source = request->source,
                 .context = request->context,
                 .memo = remembers ? request->memo : NULL,
                 .unblocked = request->unblocked,
                 .plan = plan};
    memset(plan, 0, sizeof(*plan));
    graft_assignment *a = &plan->assignment;
    a->layouts = GRAFT_NEW(arena, uint8_t, graph->value_end);
    a->choices = GRAFT_NEW(arena, graft_layout_choice, graph->node_end);
    if (!request->copies) {
        graft_views_find(arena, graph, p.order, &a->views);
    }
    p.overwrites = graft_schedule_overwrites(arena, graph, p.order, &a->views);
    graft_distances_find(arena, graph, p.order, &p.distances);
    p.offered = GRAFT_NEW(arena, uint8_t, graph->value_end);
    p.values = GRAFT_NEW(arena, value_plan, graph->value_end);
    p.nodes = GRAFT_NEW(arena, node_plan, graph->node_end);
    p.kept = GRAFT_NEW(arena, conversions, SHAPES_KEPT);
    find_groups(&p, request);
    list_nodes(&p);
    choose_groups(&p, request);
    join_chains(&p);
    open_problem(&p);
    add_factors(&p);
    if (plan->missing_count == 0) {
        plan->exact = graft_elimination_solve(p.problem, p.states);
        read_choices(&p);
    }
}
