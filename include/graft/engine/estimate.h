/* estimate.h - what a graph costs by a table of node costs.
 *
 * Equal nodes are one: each node has a class, named by the first node in it, and a class costs
 * once, so long as it has a member that runs at inference. A key (operator, attributes, classes of
 * the operands) stands for a class, and a hash table finds the class of a key. */
#ifndef GRAFT_ENGINE_ESTIMATE_H
#define GRAFT_ENGINE_ESTIMATE_H

#define GRAFT_PRICE_NONE UINT32_MAX

/* A form's price, remembered from one graph to the next. Those of other reaches have other entries. */
static uint32_t graft_price_cached(const graft_estimator *e, const graft_form *form)
{
    const uint64_t hash = graft_form_hash(form);
    const uint32_t low = (uint32_t)hash + form->reach;
    const uint32_t high = (uint32_t)(hash >> 32) + form->reach;
    uint64_t *entry = &e->cache[low & e->cache_mask];
    if ((uint32_t)(*entry >> 32) != high) {
        *entry = (uint64_t)high << 32 | graft_price_hashed(e->tariff, form, hash);
    }
    return (uint32_t)*entry;
}

uint64_t graft_estimator_cost(const graft_estimator *estimator, graft_index node, bool *fallback)
{
    *fallback = (estimator->prices[node] & GRAFT_PRICE_GUESSED) != 0;
    return graft_cost_of(estimator->prices[node]);
}

/* -------------------------------------------------------------- estimator */

/* Of nodes; a class whose name has gone to another key is marked at the node it is named after. */
enum {
    GRAFT_ESTIMATE_CONST = 1,
    GRAFT_ESTIMATE_DEAD = 2,
    GRAFT_ESTIMATE_QUEUED = 4,
    GRAFT_ESTIMATE_RENAMED = 8
};

/* The least power of two that is at least n, less 1. */
static uint32_t graft_mask_for(size_t n)
{
    uint32_t mask = 0;
    while (mask < n - 1 && mask < UINT32_MAX) {
        mask = mask * 2 + 1;
    }
    return mask;
}

/* Prices outlast the graph. What comes before them is made anew by graft_estimate, so between a rewrite
 * and that others may use it: as the scratch of an application, which it begins with, or for hashes of
 * values. */
static void graft_carve_estimator(graft_carver *carver, const graft_limits *limits,
                                  graft_estimator *e)
{
    const size_t nodes = limits->nodes;
    graft_carver hashes = *carver;
    (void)graft_carve(&hashes, limits->values, sizeof(uint64_t));
    graft_carve_scratch(carver, limits, &e->scratch);
    /* One key for each node, and one for each that moves or is made; never full. */
    e->cache_mask = graft_mask_for(nodes + GRAFT_RULE_MAX_NODES);
    e->slot_mask = 2 * e->cache_mask + 1;
    e->prices = (uint32_t *)graft_carve(carver, nodes, sizeof(uint32_t));
    e->first = graft_carve_ids(carver, nodes);
    e->label = graft_carve_ids(carver, nodes + GRAFT_RULE_MAX_NODES);
    e->members = graft_carve_ids(carver, 2 * nodes + GRAFT_RULE_MAX_NODES);
    e->touched = graft_carve_ids(carver, nodes);
    e->entries = graft_carve_ids(carver, nodes + GRAFT_RULE_MAX_NODES);
    e->filled = graft_carve_ids(carver, nodes + GRAFT_RULE_MAX_NODES);
    e->slots = graft_carve_ids(carver, (size_t)e->slot_mask + 1);
    e->flags = (uint8_t *)graft_carve(carver, nodes + GRAFT_RULE_MAX_NODES, 1);
    carver->used = carver->used > hashes.used ? carver->used : hashes.used;
    e->cache = (uint64_t *)graft_carve(carver, (size_t)e->cache_mask + 1, sizeof(uint64_t));
#ifndef GRAFT_NEAR_WEIGHTS
    e->reaches = (uint8_t *)graft_carve(carver, limits->values, 1);
#endif
}

size_t graft_estimator_bytes(const graft_limits *limits)
{
    graft_carver carver = {NULL, 0};
    graft_estimator estimator;
    graft_carve_estimator(&carver, limits, &estimator);
    return carver.used + 7u;
}

/* graft_estimator_open once the tables are laid out; all else is 0. */
static graft_status graft_open_estimator(graft_estimator *e, const graft_tariff *tariff,
                                         const graft_limits *limits)
{
#ifndef GRAFT_WITHOUT_CHECKS
    if (graft_tariff_check(tariff) != NULL) {
        return GRAFT_BAD_INPUT;
    }
#endif
    if (limits->nodes > (GRAFT_NONE - GRAFT_RULE_MAX_NODES - 1) / 2 ||
        limits->values >= GRAFT_NONE - GRAFT_RULE_MAX_NODES * GRAFT_MAX_OUTPUTS) {
        return GRAFT_CAPACITY; /* There would not be names for all classes, or for what is made. */
    }
    e->tariff = tariff;
    e->limits = *limits;
    /* A hash that begins with zeros would be taken for one with a price: one of 2^32. */
    graft_zero_bytes(e->cache, ((size_t)e->cache_mask + 1) * sizeof(uint64_t));
    return GRAFT_OK;
}

graft_status graft_estimator_open(graft_estimator *estimator, const graft_tariff *tariff,
                                  const graft_limits *limits, void *workspace,
                                  size_t workspace_bytes)
{
    if (workspace == NULL || workspace_bytes < graft_estimator_bytes(limits)) {
        return GRAFT_NO_MEMORY;
    }
    graft_carver carver = {graft_align_buffer(workspace), 0};
    graft_zero_bytes(estimator, sizeof *estimator);
    graft_carve_estimator(&carver, limits, estimator);
    return graft_open_estimator(estimator, tariff, limits);
}

/* -------------------------------------------------------------------- keys */

/* What reads a value knows it as its producer's class, counted from 1, and which output; or as itself
 * when nothing produces it. With ids of 16 bits a name has 32: there are fewer than 2^16 classes. */
#ifdef GRAFT_SMALL_GRAPHS
typedef uint32_t graft_name;
#else
typedef uint64_t graft_name;
#endif

static graft_name graft_name_result(uint32_t label, uint32_t slot)
{
    return ((graft_name)label + 1u) << 8 * sizeof(graft_index) | slot;
}

/* The node that produces a value of the graph, or of the target that graft_estimate_match looks at;
 * GRAFT_NONE for inputs and weights. */
static graft_index graft_producer_of(const graft_graph *graph, uint32_t v)
{
    return v < graph->value_end
               ? graph->values[v].node
               : (graft_index)(graph->node_end + (v - graph->value_end) / GRAFT_MAX_OUTPUTS);
}

/* Likewise. */
static graft_name graft_name_value(const graft_graph *graph, const graft_index *labels, uint32_t v)
{
    const graft_index n = graft_producer_of(graph, v);
    return n == GRAFT_NONE
               ? v
               : graft_name_result(labels[n], v < graph->value_end
                                                  ? graph->values[v].slot
                                                  : (v - graph->value_end) % GRAFT_MAX_OUTPUTS);
}

static graft_name graft_mix_name(graft_name hash, graft_name name)
{
    hash = (hash ^ name) * (graft_name)UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 4 * sizeof hash;
}

/* ------------------------------------------------------------- one rewrite */

/* A rewrite that is looked at; of a rule without outputs or target when it is a graph. */
typedef struct graft_estimate_run {
    graft_estimator *e;
    const graft_rule *rule;
    const graft_match *match;
    const graft_made *made;
    uint32_t output_count;
    uint32_t dead_count;
    uint32_t moved_count;
    uint32_t entry_count;
    uint32_t label_count;                      /* New names of classes. */
    graft_index old[GRAFT_RULE_MAX_OUTPUTS];   /* The values that the match gives to others... */
    graft_index given[GRAFT_RULE_MAX_OUTPUTS]; /* ...and what these read instead. */
    graft_heap queue;
    graft_change *change;
} graft_estimate_run;

/* What the readers of a value read once the target stands. */
static uint32_t graft_read_instead(const graft_estimate_run *r, uint32_t value)
{
    for (uint32_t i = 0; i < r->output_count; i++) {
        if (r->old[i] == value) {
            return r->given[i];
        }
    }
    return value;
}

/* A node of the graph, or of the target. */
static const graft_node *graft_node_of(const graft_estimate_run *r, uint32_t n)
{
    const graft_index first = r->e->graph->node_end;
    return n < first ? &r->e->graph->nodes[n] : &r->made->nodes[n - first].node;
}

/* Operand k of a node once the target stands. */
static uint32_t graft_operand_of(const graft_estimate_run *r, uint32_t n, uint32_t k)
{
    const graft_graph *graph = r->e->graph;
    return n < graph->node_end ? graft_read_instead(r, graft_node_input(graph, n, k))
                               : r->made->nodes[n - graph->node_end].inputs[k];
}

static uint32_t graft_result_of(const graft_estimate_run *r, uint32_t n, uint32_t k)
{
    const graft_graph *graph = r->e->graph;
    return n < graph->node_end ? graft_node_output(graph, n, k)
                               : graph->value_end + (n - graph->node_end) * GRAFT_MAX_OUTPUTS + k;
}

/* Whether the value is const once the target stands. */
static bool graft_value_is_const(const graft_estimate_run *r, uint32_t v)
{
    const graft_index n = graft_producer_of(r->e->graph, v);
    return n == GRAFT_NONE ? r->e->graph->values[v].is_const
                           : (r->e->flags[n] & GRAFT_ESTIMATE_CONST) != 0;
}

/* What a node, which is not opaque, knows its operand k as: by `first` as the graph is, or once the target
 * stands. */
static GRAFT_APART graft_name graft_name_operand(const graft_estimate_run *r, uint32_t n,
                                                 uint32_t k, bool moved)
{
    const graft_estimator *e = r->e;
    return moved ? graft_name_value(e->graph, e->label, graft_operand_of(r, n, k))
                 : graft_name_value(e->graph, e->first,
                                    graft_node_input(e->graph, (graft_index)n, k));
}

static uint32_t graft_hash_key(const graft_estimate_run *r, uint32_t n, bool moved)
{
    const graft_node *node = graft_node_of(r, n);
    graft_name hash = node->op;
    for (uint32_t i = 0; i < graft_op_rows[node->op].attr_count; i++) {
        hash = graft_mix_name(hash, (uint32_t)node->attrs[i]);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        hash = graft_mix_name(hash, graft_name_operand(r, n, i, moved));
    }
    return (uint32_t)hash;
}

static bool graft_keys_equal(const graft_estimate_run *r, uint32_t n, bool n_moved, uint32_t m,
                             bool m_moved)
{
    const graft_node *a = graft_node_of(r, n);
    const graft_node *b = graft_node_of(r, m);
    bool equal = a->op == b->op;
    for (uint32_t i = 0; equal && i < graft_op_rows[a->op].attr_count; i++) {
        equal = a->attrs[i] == b->attrs[i];
    }
    for (uint32_t i = 0; equal && i < a->input_count; i++) {
        equal = graft_name_operand(r, n, i, n_moved) == graft_name_operand(r, m, i, m_moved);
    }
    return equal;
}

/* The class of a node's key that has members, GRAFT_NONE when there is none; *free_slot is then where the
 * key belongs. A class whose members all left has no key any more, or another one. A slot holds one
 * more than a node of the graph, or than limits.nodes and an entry. */
static uint32_t graft_find_class(const graft_estimate_run *r, uint32_t n, bool moved,
                                 uint32_t *free_slot)
{
    const graft_estimator *e = r->e;
    uint32_t at = graft_hash_key(r, n, moved) & e->slot_mask;
    while (e->slots[at] != 0) {
        uint32_t other = e->slots[at] - 1u;
        uint32_t label = other;
        const bool is_entry = other >= e->limits.nodes;
        if (is_entry) {
            other = e->entries[other - e->limits.nodes];
            label = e->label[other];
        }
        if ((is_entry || (e->flags[label] & GRAFT_ESTIMATE_RENAMED) == 0) &&
            e->members[label] > 0 && graft_keys_equal(r, n, moved, other, is_entry)) {
            return label;
        }
        at = (at + 1) & e->slot_mask;
    }
    *free_slot = at;
    return GRAFT_NONE;
}

/* ------------------------------------------------- how far away weights lie */

#ifndef GRAFT_NEAR_WEIGHTS

/* What a const value is made of, first operands first, once the target stands: a weight of the graph, or
 * a number of the limits at least when it is made of none. */
static uint32_t graft_root_of(const graft_estimate_run *r, uint32_t v)
{
    graft_index n = v != GRAFT_NONE ? graft_producer_of(r->e->graph, v) : GRAFT_NONE;
    while (n != GRAFT_NONE) {
        v = graft_node_of(r, n)->input_count > 0 ? graft_operand_of(r, n, 0) : GRAFT_NONE;
        n = v != GRAFT_NONE ? graft_producer_of(r->e->graph, v) : GRAFT_NONE;
    }
    return v;
}

static uint8_t graft_reach_of_bytes(uint64_t bytes)
{
    uint32_t mantissa = 0;
    const uint32_t exponent = graft_split_number(bytes, &mantissa);
    const uint32_t reach =
        exponent > GRAFT_REACH_LEAST_LOG2 ? exponent - GRAFT_REACH_LEAST_LOG2 : 0;
    return reach < GRAFT_REACH_MOST ? (uint8_t)reach : (uint8_t)GRAFT_REACH_MOST;
}

/* The first const operand of a node that runs at each inference; GRAFT_NONE when there is none. */
static uint32_t graft_weight_of(const graft_graph *graph, graft_index n)
{
    for (uint32_t i = 0; !graph->nodes[n].is_const && i < graph->nodes[n].input_count; i++) {
        const uint32_t v = graft_node_input(graph, n, i);
        if (v != GRAFT_NONE && graph->values[v].is_const) {
            return v;
        }
    }
    return GRAFT_NONE;
}

/* Bytes of weights that the nodes at these places of the order read. */
static uint64_t graft_weight_bytes_between(const graft_graph *graph, const graft_order *order,
                                           uint32_t from, uint32_t to)
{
    uint64_t bytes = 0;
    for (; from < to; from++) {
        const uint32_t v = graft_weight_of(graph, order->order[from]);
        bytes = v != GRAFT_NONE
                    ? graft_add_saturating(bytes, graft_priced_bytes(&graph->values[v].shape))
                    : bytes;
    }
    return bytes;
}

#define GRAFT_READ_AGAIN 8u /* Set in the reach of weights that are read twice at least. */

/* Of the first graph; see graft_estimator_form. */
static void graft_find_reaches(const graft_estimate_run *r)
{
    graft_estimator *e = r->e;
    const graft_graph *graph = e->graph;
    graft_index *first = e->scratch.use_count; /* By weight: its first reading's place, and 1. */
    uint64_t held = 0;
    for (uint32_t v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        first[v] = 0;
        if (value->is_const && value->kind != GRAFT_VALUE_FREE && e->order->use_count[v] > 0) {
            held = graft_add_saturating(held, graft_priced_bytes(&value->shape));
        }
    }
    e->reach = graft_reach_of_bytes(held);
    for (uint32_t v = 0; v < e->limits.values; v++) {
        e->reaches[v] = e->reach;
    }
    for (uint32_t i = 0; i < e->order->count; i++) {
        const uint32_t v = graft_root_of(r, graft_weight_of(graph, e->order->order[i]));
        if (v == GRAFT_NONE || first[v] == GRAFT_NONE) {
            continue;
        }
        if (first[v] > 0) {
            const uint64_t bytes = graft_weight_bytes_between(graph, e->order, first[v] - 1u, i);
            e->reaches[v] = GRAFT_READ_AGAIN | graft_reach_of_bytes(bytes < held ? bytes : held);
        }
        first[v] = first[v] > 0 ? GRAFT_NONE : (graft_index)(i + 1);
    }
}

/* Of a node that reads the weight v, once the target stands. */
static uint8_t graft_weight_reach(const graft_estimate_run *r, uint32_t v,
                                  const graft_shape *weight)
{
    const uint32_t root = graft_root_of(r, v);
    const uint8_t reach = root < r->e->limits.values ? r->e->reaches[root] : r->e->reach;
    return reach == (GRAFT_READ_AGAIN | 1) && graft_priced_bytes(weight) > 3u << 18
               ? 2
               : (uint8_t)(reach & (GRAFT_READ_AGAIN - 1u));
}

#endif

/* What a node costs, and needs to cost it, once the target stands. */
static void graft_form_of(const graft_estimate_run *r, uint32_t n, graft_form *form)
{
    const graft_graph *graph = r->e->graph;
    graft_begin_form(graft_node_of(r, n), form);
    form->reach = r->e->reach;
    for (uint32_t i = 0; i < form->input_count; i++) {
        uint32_t v = graft_operand_of(r, n, i);
        if (v == GRAFT_NONE) {
            continue;
        }
        const bool is_const = graft_value_is_const(r, v);
        const graft_shape *shape = graft_shape_of(graph, r->made, v);
#ifndef GRAFT_NEAR_WEIGHTS
        if (is_const && form->weight == NULL) {
            form->reach = graft_weight_reach(r, v, shape);
        }
#endif
        graft_add_operand(form, i, shape, is_const);
    }
    for (uint32_t i = 0; i < form->output_count; i++) {
        graft_add_result(form, i, graft_shape_of(graph, r->made, graft_result_of(r, n, i)));
    }
}

void graft_estimator_form(const graft_estimator *estimator, graft_index node, graft_form *form)
{
    graft_estimate_run run;
    graft_zero_bytes(&run, sizeof run);
    graft_copy_bytes(&run.e, &estimator, sizeof run.e);
    graft_form_of(&run, node, form);
}

/* ---------------------------------------------------------- a whole graph */

static uint8_t graft_first_flags(const graft_node *node)
{
    return node->is_const ? GRAFT_ESTIMATE_CONST : 0;
}

/* The class of a node whose operands have theirs. */
static uint32_t graft_find_first(const graft_estimate_run *r, uint32_t n)
{
    uint32_t free_slot = 0;
    uint32_t label = n;
    if (r->e->graph->nodes[n].op != GRAFT_OP_OPAQUE) {
        label = graft_find_class(r, n, false, &free_slot);
        if (label == GRAFT_NONE) {
            r->e->slots[free_slot] = (graft_index)(n + 1);
            label = n;
        }
    }
    return label;
}

/* A guess times its skew. */
static int64_t graft_skewed(uint64_t cost, uint32_t price)
{
    return (int64_t)cost * ((int32_t)(price >> GRAFT_PRICE_SKEW) - GRAFT_SKEW_MOST) / 1024;
}

static void graft_add_price(graft_estimated *sum, const graft_form *form, uint32_t price)
{
    const uint64_t cost = graft_cost_of(price);
    const bool guessed = (price & GRAFT_PRICE_GUESSED) != 0;
    sum->cost += cost;
    sum->fallback_cost += guessed ? cost : 0;
    sum->skew += guessed ? graft_skewed(cost, price) : 0;
    sum->flops += graft_form_flops(form);
    sum->bytes += form->bytes;
    sum->nodes++;
    sum->fallback_nodes += guessed ? 1u : 0u;
}

/* Adds what a node costs once the target stands, whose price is known or GRAFT_PRICE_NONE; returns the price. */
static uint32_t graft_add_cost(const graft_estimate_run *r, uint32_t n, uint32_t price,
                               graft_estimated *sum)
{
    graft_form form;
    graft_form_of(r, n, &form);
    price = price != GRAFT_PRICE_NONE ? price : graft_price_cached(r->e, &form);
    graft_add_price(sum, &form, price);
    sum->cost += (uint64_t)r->e->call_ns * GRAFT_COST_UNITS;
    return price;
}

/* graft_estimate of what is within the limits. `same` NULL: no node's price is known. */
static void graft_estimate_graph(graft_estimator *e, const graft_graph *graph,
                                 const graft_order *order, const bool *same,
                                 graft_estimated *estimated)
{
    graft_estimate_run run;
    e->graph = graph;
    e->order = order;
    graft_zero_bytes(&run, sizeof run);
    run.e = e;
#ifndef GRAFT_NEAR_WEIGHTS
    if (!e->begun) {
        e->begun = true;
        graft_find_reaches(&run);
    }
#endif
    graft_zero_bytes(estimated, sizeof *estimated);
    graft_zero_bytes(e->slots, ((size_t)e->slot_mask + 1) * sizeof(graft_index));
    graft_zero_bytes(e->members,
                     (2 * (size_t)e->limits.nodes + GRAFT_RULE_MAX_NODES) * sizeof(graft_index));
    graft_copy_bytes(e->scratch.use_count, order->use_count,
                     graph->value_end * sizeof(graft_index));
    for (uint32_t i = 0; i < order->count; i++) {
        uint32_t n = order->order[i];
        uint32_t first = graft_find_first(&run, n);
        e->first[n] = e->label[n] = (graft_index)first;
        e->flags[n] = graft_first_flags(&graph->nodes[n]);
        if (first != n) {
            e->prices[n] = e->prices[first];
        } else if (!graph->nodes[n].is_const && (same == NULL || !same[n])) {
            e->prices[n] = graft_add_cost(&run, n, GRAFT_PRICE_NONE, estimated);
        }
        e->members[first]++;
    }
}

static bool graft_can_estimate(const graft_estimator *e, const graft_graph *graph,
                               const graft_order *order)
{
    return graph->node_end <= e->limits.nodes && graph->value_end <= e->limits.values &&
           order->count <= GRAFT_ESTIMATE_NODES;
}

graft_status graft_estimate(graft_estimator *estimator, const graft_graph *graph,
                            const graft_order *order, graft_estimated *estimated)
{
    if (!graft_can_estimate(estimator, graph, order)) {
        return GRAFT_CAPACITY;
    }
    graft_estimate_graph(estimator, graph, order, NULL, estimated);
    return GRAFT_OK;
}

#ifdef GRAFT_LARGE_GRAPHS
graft_status graft_estimate_again(graft_estimator *estimator, const graft_graph *graph,
                                  const graft_order *order, const bool *same)
{
    graft_estimated rest;
    if (!graft_can_estimate(estimator, graph, order)) {
        return GRAFT_CAPACITY;
    }
    graft_estimate_graph(estimator, graph, order, same, &rest);
    return GRAFT_OK;
}
#endif

#endif
