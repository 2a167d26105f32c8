/* saturation.c - equality saturation (Tate et al., POPL 2009), as Tensat does it for graphs of
 * tensors (Yang et al., "Equality saturation for tensor graph superoptimization", MLSys 2021).
 *
 *      best graph ──► e-graph: all rules everywhere, a few rounds ──► extraction ──► plan
 *           ▲                                                             ▲            │
 *           └──────── cheaper ◄────── priced at each step ◄───────────────┴── costs ◄──┘
 *
 * The e-graph (egraph.h) forgets nothing, so that rewrites do not stand in each other's way.
 * Extraction takes of it what costs least, each node counted once: by hill climbing, a move being a
 * rewrite with all those that made what it replaces. A way of legal actions then leads from the
 * best graph to the one extracted, or near it. What nodes cost is at first what each costs alone;
 * graphs on the way tell what it costs in them, and extraction begins anew until it says nothing
 * new. Where that found a cheaper graph the next e-graph is made of it, else the next one has one
 * more round. Short rounds from where one is found more than long ones from the first graph. */
#include "cost/cost.h"
#include "graph/base/log.h"
#include "graph/equal.h"
#include "train/search/egraph.h"
#include "train/search/walker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounds in an e-graph; those in which rules of several roots are applied (Tensat's k_multi), nodes
 * (Tensat's limit), matches of a rule in a round, of which a rule that has more gets none. */
enum {
    FIRST_ROUNDS = 2,
    ROUNDS_MOST = 6,
    MULTI_ROUNDS = 2,
    NODES_MOST = 50000,
    MATCHES_MOST = 1000
};
/* Extractions of one e-graph; steps of a way for each node and step that is wanted. */
enum { EXTRACTIONS = 20, STEPS_PER_NODE = 4, FIRST_UNDO = 256 };

/* What a node costs, by operator, attributes and shapes. */
typedef struct form_cost {
    uint64_t key; /* 0: free. */
    double ns;    /* Alone, or the mean over where it was met. */
    double sum_ns;
    uint32_t met;
    bool doubted; /* Met in graphs that were refused alone. */
} form_cost;

typedef struct choice_made {
    graft_index class;
    graft_index node;
} choice_made;

typedef struct saturation {
    const graft_environment *environment;
    graft_cost *cost;
    graft_plan_found *found;
    graft_arena *arena; /* Of what belongs to one e-graph. */
    graft_egraph graph;
    uint32_t *form_of;   /* By node. */
    uint32_t *marks;     /* By node: `mark`: being counted, one more: counted. */
    graft_index *choice; /* By class: the node that computes it; GRAFT_NONE: none has to. */
    uint32_t *wanted;    /* By step: `want`: leads to what was chosen. */
    choice_made *undo;
    uint32_t undo_capacity;
    uint32_t mark;
    uint32_t want;
    graft_walker base;    /* The graph that the e-graph is of... */
    graft_walker walker;  /* ...and on the way to what was extracted... */
    graft_index *classes; /* ...of which each value is of a class... */
    graft_index *nodes;   /* ...and each node is one of the e-graph; GRAFT_NONE: neither. */
    graft_state alone;    /* A node to be priced. */
    form_cost *forms;     /* Open addressing, and behind it one that costs nothing. */
    uint32_t form_places;
    uint32_t form_count;
} saturation;

/* -------------------------------------------------------------------- rounds */

/* Finds the matches of all rules, then applies them. Sets *room to whether there was enough. */
static graft_status run_round(graft_env *env, saturation *s, uint32_t round, bool *room)
{
    GRAFT_SCOPED(env->scratch);
    graft_egraph *g = &s->graph;
    uint32_t *ends = GRAFT_NEW(env->scratch, uint32_t, g->xfers->count);
    uint32_t m = 0;
    g->match_count = 0;
    for (uint32_t rule = 0; rule < g->xfers->count; rule++) {
        bool in_turn = round < MULTI_ROUNDS || !g->xfers->routes.rooted[rule];
        GRAFT_PASS(graft_search_go_on(env));
        if (in_turn && !graft_search_is_over(s->environment, s->found)) {
            graft_egraph_match(g, rule, MATCHES_MOST);
        }
        ends[rule] = g->match_count;
    }
    for (uint32_t rule = 0; rule < g->xfers->count; rule++) {
        for (; m < ends[rule] && *room; m++) {
            *room = graft_egraph_apply(g, rule, &g->matches[m]);
        }
    }
    return GRAFT_OK;
}

static graft_status saturate(graft_env *env, saturation *s, uint32_t rounds)
{
    bool room = true;
    bool changed = true;
    GRAFT_PASS(graft_egraph_open(env, s->arena, &s->base.state.graph, s->environment, NODES_MOST,
                                 &s->graph));
    for (uint32_t r = 0; r < rounds && room && changed; r++) {
        GRAFT_PASS(run_round(env, s, r, &room));
        changed = s->graph.changed;
        GRAFT_PASS(graft_egraph_rebuild(env, &s->graph));
    }
    return GRAFT_OK;
}

/* --------------------------------------------------------------------- costs */

/* Makes s->alone a graph of this node; what it reads are inputs and weights. */
static graft_status isolate(graft_env *env, saturation *s, graft_index node)
{
    const graft_graph *from = &s->graph.state.graph;
    const graft_node *like = &from->nodes[node];
    graft_graph *to = &s->alone.graph;
    graft_index inputs[GRAFT_MAX_INPUTS];
    graft_index made = 0;
    graft_status status = GRAFT_OK;
    graft_graph_clear(to);
    to->dtype = from->dtype;
    for (uint32_t i = 0; i < like->input_count && status == GRAFT_OK; i++) {
        const graft_value *v = &from->values[graft_node_input(from, node, i)];
        if (i > 0 && graft_node_input(from, node, i) == graft_node_input(from, node, i - 1)) {
            inputs[i] = inputs[i - 1];
        } else {
            status = v->is_const ? graft_graph_add_weight(to, &v->shape, i, &inputs[i])
                                 : graft_graph_add_input(to, &v->shape, i, &inputs[i]);
        }
    }
    status = status != GRAFT_OK ? status
                                : graft_graph_add_node(to, like->op, like->attrs, inputs, 0, &made);
    for (uint32_t o = 0; o < like->output_count && status == GRAFT_OK; o++) {
        status = graft_graph_add_output(to, graft_node_output(to, made, o));
    }
    return status == GRAFT_OK ? graft_state_refresh(env, &s->alone)
                              : GRAFT_FAIL(env, status, "a node cannot be priced alone");
}

/* Without what it takes to bring operands into another layout: what is near it may have that. */
static graft_status price_alone(graft_env *env, saturation *s, double *ns)
{
    const graft_price *price = &s->environment->options.price;
    graft_cost_total total;
    s->found->evaluations++;
    if (s->cost == NULL) {
        return price->cost_ns(env, price->context, &s->alone.graph, &s->alone.order, ns);
    }
    GRAFT_PASS(graft_cost_graph(env, s->cost, &s->alone.graph, &s->alone.order, &total));
    *ns = total.ns - total.reorder_ns;
    return GRAFT_OK;
}

/* The form of s->alone, priced where it is new. */
static graft_status obtain_form(graft_env *env, saturation *s, uint32_t *at)
{
    const uint64_t key = graft_state_hash(&s->alone) | 1;
    *at = (uint32_t)(key >> 1) & (s->form_places - 1);
    while (s->forms[*at].key != 0 && s->forms[*at].key != key) {
        *at = (*at + 1) & (s->form_places - 1);
    }
    if (s->forms[*at].key == 0) {
        s->forms[*at].key = key;
        s->form_count++;
        return price_alone(env, s, &s->forms[*at].ns);
    }
    return GRAFT_OK;
}

static graft_status price_nodes(graft_env *env, saturation *s)
{
    const graft_graph *graph = &s->graph.state.graph;
    s->form_of = GRAFT_NEW(s->arena, uint32_t, graph->node_end);
    if (s->form_count + graph->node_end >= s->form_places) { /* It might become full. */
        memset(s->forms, 0, s->form_places * sizeof s->forms[0]);
        s->form_count = 0;
    }
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        s->form_of[n] = s->form_places;
        if (s->graph.twin[n] == n && !node->is_const && node->op != GRAFT_OP_NONE &&
            node->op != GRAFT_OP_OPAQUE) {
            GRAFT_PASS(isolate(env, s, n));
            GRAFT_PASS(obtain_form(env, s, &s->form_of[n]));
        }
    }
    return GRAFT_OK;
}

/* Says what the walker's graph is in the e-graph: the values given have the same numbers there. */
static void embed(saturation *s)
{
    const graft_egraph *g = &s->graph;
    const graft_graph *graph = &s->walker.state.graph;
    const graft_order *order = &s->walker.state.order;
    for (graft_index v = 0; v < graph->value_end; v++) {
        const uint8_t kind = graph->values[v].kind;
        bool given = kind == GRAFT_VALUE_INPUT || kind == GRAFT_VALUE_WEIGHT;
        s->classes[v] = given ? graft_egraph_class(g, v) : GRAFT_NONE;
    }
    for (graft_index i = 0; i < order->count; i++) {
        const graft_index n = order->order[i];
        const graft_node *node = &graph->nodes[n];
        graft_index inputs[GRAFT_MAX_INPUTS];
        bool known = node->op != GRAFT_OP_OPAQUE;
        s->nodes[n] = known ? GRAFT_NONE : n;
        for (uint32_t k = 0; known && k < node->input_count; k++) {
            inputs[k] = s->classes[graft_node_input(graph, n, k)];
            known = inputs[k] != GRAFT_NONE;
        }
        s->nodes[n] = known ? graft_egraph_find(g, node, inputs) : s->nodes[n];
        for (uint32_t o = 0; s->nodes[n] != GRAFT_NONE && o < node->output_count; o++) {
            s->classes[graft_node_output(graph, n, o)] =
                graft_egraph_class(g, graft_node_output(&g->state.graph, s->nodes[n], o));
        }
    }
}

/* Corrects the costs of what the walker's graph is made of. A price far beyond its nodes' refuses
 * the graph since it rests on estimates: what was met nowhere else, and is one of them, then costs
 * as much as the graph. */
static graft_status note_costs(graft_env *env, saturation *s)
{
    GRAFT_SCOPED(env->scratch);
    const graft_graph *graph = &s->walker.state.graph;
    const graft_order *order = &s->walker.state.order;
    graft_cost_node *by_node = GRAFT_NEW(env->scratch, graft_cost_node, graph->node_end);
    graft_cost_total total;
    if (s->cost == NULL) {
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_cost_nodes(env, s->cost, graph, order, by_node, &total));
    const graft_index *same = graft_equal_find(env->scratch, graph, order);
    bool refused = s->walker.cost_ns > 2.0 * total.ns;
    embed(s);
    for (graft_index i = 0; i < order->count; i++) {
        const graft_index n = order->order[i];
        if (s->nodes[n] == GRAFT_NONE || graft_equal_is_merged(graph, same, n)) {
            continue;
        }
        form_cost *form = &s->forms[s->form_of[s->nodes[n]]];
        if (form->doubted && !refused) {
            *form = (form_cost){.key = form->key};
        }
        form->doubted =
            form->doubted || (refused && form->met == 0 && by_node[n].estimated_count > 0);
        form->sum_ns += by_node[n].ns;
        form->met++;
        form->ns = form->doubted ? s->walker.cost_ns : form->sum_ns / form->met;
    }
    s->forms[s->form_places] = (form_cost){.ns = 0.0};
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- extraction */

/* What is chosen for a value, and for what that reads, costs, as far as it is not counted yet; without
 * end where it reads itself. */
static double count_value(saturation *s, graft_index value)
{
    const graft_graph *graph = &s->graph.state.graph;
    const graft_index node =
        value == GRAFT_NONE ? GRAFT_NONE : s->choice[graft_egraph_class(&s->graph, value)];
    if (node == GRAFT_NONE || s->marks[node] == s->mark + 1) {
        return 0.0;
    }
    if (s->marks[node] == s->mark) {
        return INFINITY;
    }
    double ns = s->forms[s->form_of[node]].ns;
    s->marks[node] = s->mark;
    for (uint32_t i = 0; i < graph->nodes[node].input_count; i++) {
        ns += count_value(s, graft_node_input(graph, node, i));
    }
    s->marks[node] = s->mark + 1;
    return ns;
}

static double count_graph(saturation *s)
{
    const graft_graph *graph = &s->graph.state.graph;
    double ns = 0.0;
    s->mark += 2;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        ns += count_value(s, graph->outputs[i]);
    }
    return ns;
}

/* Chooses the nodes of the base's graph; of what was found to be equal the first. */
static void choose_base(saturation *s)
{
    const graft_graph *graph = &s->base.state.graph;
    const graft_order *order = &s->base.state.order;
    memset(s->choice, 0xff, s->graph.state.graph.value_end * sizeof s->choice[0]); /* GRAFT_NONE */
    for (graft_index i = 0; i < order->count; i++) {
        const graft_index node = graft_egraph_twin(&s->graph, order->order[i]);
        for (uint32_t o = 0; o < graph->nodes[node].output_count; o++) {
            const graft_index class =
                graft_egraph_class(&s->graph, graft_node_output(graph, node, o));
            bool given = s->graph.state.graph.values[class].kind != GRAFT_VALUE_COMPUTED;
            if (!given && s->choice[class] == GRAFT_NONE) {
                s->choice[class] = node;
            }
        }
    }
}

/* Wants a step and those that made what it replaces. */
static void want_step(saturation *s, uint32_t step)
{
    const graft_egraph *g = &s->graph;
    if (step == GRAFT_NONE || s->wanted[step] == s->want) {
        return;
    }
    s->wanted[step] = s->want;
    for (uint32_t n = 0; n < g->xfers->rules[g->steps[step].rule].source.node_count; n++) {
        want_step(s, g->maker[graft_egraph_twin(g, g->steps[step].match.nodes[n])]);
    }
}

/* Chooses what a step made; `count` choices can be undone. */
static void choose_targets(saturation *s, uint32_t step, uint32_t *count)
{
    const graft_egraph *g = &s->graph;
    const graft_graph *graph = &g->state.graph;
    for (uint32_t n = 0; n < g->xfers->rules[g->steps[step].rule].target.node_count; n++) {
        const graft_index node = graft_egraph_twin(g, g->steps[step].targets[n]);
        for (uint32_t o = 0; o < graph->nodes[node].output_count; o++) {
            const graft_index class = graft_egraph_class(g, graft_node_output(graph, node, o));
            GRAFT_PUSH(s->arena, s->undo, *count, s->undo_capacity, FIRST_UNDO) =
                (choice_made){class, s->choice[class]};
            s->choice[class] = node;
        }
    }
}

/* What the graph costs with a step, and those before it; it is chosen where that is less than so
 * much. */
static double try_step(saturation *s, uint32_t step, double below_ns)
{
    uint32_t count = 0;
    s->want++;
    want_step(s, step);
    for (uint32_t i = 0; i <= step; i++) {
        if (s->wanted[i] == s->want) {
            choose_targets(s, i, &count);
        }
    }
    const double ns = count_graph(s);
    while (!(ns < below_ns) && count > 0) {
        count--;
        s->choice[s->undo[count].class] = s->undo[count].node;
    }
    return ns;
}

typedef struct offer {
    double ns;
    uint32_t step;
} offer;

static int compare_offers(const void *a, const void *b)
{
    const offer *x = a;
    const offer *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? -1 : 1) : (x->step > y->step) - (x->step < y->step);
}

/* From the base's graph: what gains most first, each as long as it still gains. */
static graft_status extract(graft_env *env, saturation *s)
{
    GRAFT_SCOPED(env->scratch);
    offer *offers = GRAFT_NEW(env->scratch, offer, s->graph.step_count);
    bool better = true;
    choose_base(s);
    double best_ns = count_graph(s);
    while (better && !graft_search_is_over(s->environment, s->found)) {
        uint32_t count = 0;
        better = false;
        GRAFT_PASS(graft_search_go_on(env));
        for (uint32_t step = 0; step < s->graph.step_count; step++) {
            offers[count] = (offer){try_step(s, step, 0.0), step};
            count += offers[count].ns < best_ns;
        }
        qsort(offers, count, sizeof offers[0], compare_offers);
        for (uint32_t i = 0; i < count; i++) {
            const double ns = try_step(s, offers[i].step, best_ns);
            better = better || ns < best_ns;
            best_ns = fmin(best_ns, ns);
        }
    }
    return GRAFT_OK;
}

/* ----------------------------------------------------------------------- ways */

static bool is_chosen(const saturation *s, graft_index node)
{
    return s->marks[graft_egraph_twin(&s->graph, node)] == s->mark + 1;
}

/* Whether a step makes of nodes that are not chosen such that are. */
static bool leads_on(const saturation *s, const graft_egraph_step *step)
{
    const graft_rule *rule = &s->graph.xfers->rules[step->rule];
    bool leaves = false;
    bool arrives = true;
    for (uint32_t i = 0; i < rule->output_count; i++) {
        const graft_operand from = rule->source.outputs[i];
        const graft_operand to = rule->target.outputs[i];
        leaves = leaves || !is_chosen(s, step->match.nodes[GRAFT_OPERAND_NODE_OF(from)]);
        arrives = arrives && (!GRAFT_OPERAND_IS_NODE(to) ||
                              is_chosen(s, step->targets[GRAFT_OPERAND_NODE_OF(to)]));
    }
    return leaves && arrives;
}

typedef struct way {
    uint64_t *keys; /* Of the steps that lead to what was chosen, in the order they were made. */
    uint32_t count;
} way;

static way list_way(graft_arena *arena, saturation *s)
{
    const graft_egraph *g = &s->graph;
    way w = {GRAFT_NEW(arena, uint64_t, g->step_count), 0};
    s->want++;
    (void)count_graph(s);
    for (graft_index n = 0; n < g->state.graph.node_end; n++) {
        if (g->twin[n] == n && is_chosen(s, n)) {
            want_step(s, g->maker[n]);
        }
    }
    for (uint32_t i = 0; i < g->step_count; i++) {
        if (s->wanted[i] == s->want || leads_on(s, &g->steps[i])) {
            w.keys[w.count++] = graft_egraph_key(g, g->steps[i].rule, &g->steps[i].match);
        }
    }
    return w;
}

/* Where on the way an action of the walker is; w->count: nowhere. */
static uint32_t find_on_way(const saturation *s, const way *w, graft_action action)
{
    const graft_rule *rule = &s->graph.xfers->rules[action.xfer];
    graft_match match = *graft_matches_get(&s->walker.matches, action.xfer, action.location);
    bool known = true;
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        match.nodes[n] = s->nodes[match.nodes[n]];
        known = known && match.nodes[n] != GRAFT_NONE;
    }
    for (uint32_t v = 0; v < rule->var_count; v++) {
        match.vars[v] = s->classes[match.vars[v]];
        known = known && match.vars[v] != GRAFT_NONE;
    }
    const uint64_t key = known ? graft_egraph_key(&s->graph, action.xfer, &match) : 0;
    uint32_t at = 0;
    while (at < w->count && w->keys[at] != key) {
        at++;
    }
    return at;
}

/* Goes from the base towards what was chosen; the cheapest graph on the way may be the best one. */
static graft_status walk(graft_env *env, saturation *s, graft_arena *arena)
{
    GRAFT_SCOPED(env->scratch);
    graft_walker *walker = &s->walker;
    GRAFT_PASS(graft_walker_join(env, walker, &s->base));
    const way w = list_way(env->scratch, s);
    const uint32_t most = STEPS_PER_NODE * (walker->state.graph.node_end + w.count);
    for (uint32_t n = 0; n < most && !graft_search_is_over(s->environment, s->found); n++) {
        uint32_t first = w.count;
        graft_action next = {0, 0};
        double ns = 0.0;
        GRAFT_PASS(graft_search_go_on(env));
        embed(s);
        GRAFT_EACH_ACTION(&walker->matches, action)
        {
            const uint32_t at = find_on_way(s, &w, action);
            next = at < first ? action : next;
            first = at < first ? at : first;
        }
        if (first == w.count) {
            break;
        }
        GRAFT_PASS(graft_walker_price(env, walker, next, &ns));
        GRAFT_PASS(graft_walker_take(env, walker, next, ns));
        graft_walker_keep(walker, arena, s->found);
    }
    return note_costs(env, s);
}

/* Saturates from the base, and takes out graphs until one is known. */
static graft_status search_from_base(graft_env *env, saturation *s, graft_arena *arena,
                                     uint32_t rounds)
{
    GRAFT_ARENA(own, (size_t)1 << 20);
    uint64_t hashes[EXTRACTIONS];
    bool known = false;
    s->arena = own;
    s->undo = NULL;
    s->undo_capacity = s->mark = s->want = 0;
    GRAFT_PASS(saturate(env, s, rounds));
    GRAFT_PASS(price_nodes(env, s));
    s->choice = GRAFT_NEW(own, graft_index, s->graph.state.graph.value_end);
    s->marks = GRAFT_NEW(own, uint32_t, s->graph.state.graph.node_end);
    s->wanted = GRAFT_NEW(own, uint32_t, s->graph.step_count);
    GRAFT_PASS(graft_walker_join(env, &s->walker, &s->base));
    GRAFT_PASS(note_costs(env, s));
    for (uint32_t i = 0;
         i < EXTRACTIONS && !known && !graft_search_is_over(s->environment, s->found); i++) {
        GRAFT_PASS(extract(env, s));
        GRAFT_PASS(walk(env, s, arena));
        hashes[i] = graft_state_hash(&s->walker.state);
        for (uint32_t k = 0; k < i; k++) {
            known = known || hashes[k] == hashes[i];
        }
    }
    return GRAFT_OK;
}

static void open_search(graft_arena *arena, saturation *s)
{
    const graft_limits *limits = &s->environment->first.graph.limits;
    const graft_limits one = {.nodes = 1,
                              .values = GRAFT_MAX_INPUTS + GRAFT_MAX_OUTPUTS,
                              .edges = GRAFT_MAX_INPUTS + GRAFT_MAX_OUTPUTS,
                              .outputs = GRAFT_MAX_OUTPUTS};
    graft_state_open(arena, &one, &s->alone);
    s->classes = GRAFT_NEW(arena, graft_index, limits->values);
    s->nodes = GRAFT_NEW(arena, graft_index, limits->nodes);
    s->form_places = 1;
    while (s->form_places < 2 * (NODES_MOST + limits->nodes)) {
        s->form_places *= 2;
    }
    s->forms = GRAFT_NEW(arena, form_cost, (size_t)s->form_places + 1);
}

graft_status graft_search_saturation(graft_env *env, graft_arena *arena,
                                     graft_environment *environment,
                                     const graft_search_choice *choice, graft_plan_found *found)
{
    uint64_t start_ns = graft_clock_ns();
    GRAFT_ARENA(own, (size_t)1 << 20);
    graft_progress progress;
    saturation *s = GRAFT_NEW(own, saturation, 1);
    uint32_t rounds = FIRST_ROUNDS;
    *s = (saturation){.environment = environment, .cost = choice->cost, .found = found};
    *found = (graft_plan_found){.cost_ns = environment->first_ns};
    open_search(own, s);
    GRAFT_PASS(graft_walker_open(env, own, environment, found, &s->base));
    GRAFT_PASS(graft_walker_open(env, own, environment, found, &s->walker));
    graft_progress_start(&progress, env, "saturation", "rounds", ROUNDS_MOST);
    while (rounds <= ROUNDS_MOST && !graft_search_is_over(environment, found)) {
        const double before_ns = found->cost_ns;
        GRAFT_PASS(search_from_base(env, s, arena, rounds));
        if (found->cost_ns < before_ns) {
            GRAFT_PASS(graft_walker_follow(env, &s->base, found->steps, found->step_count));
        } else {
            graft_progress_update(&progress, rounds++, NULL);
        }
    }
    graft_progress_finish(&progress);
    found->seconds = (double)(graft_clock_ns() - start_ns) / 1e9;
    return GRAFT_OK;
}
