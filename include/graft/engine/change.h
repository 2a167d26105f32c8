/* change.h - what a rewrite would change of a graph's estimated cost, without making it.
 *
 * First what would die is found, as remove_unused_values would. Then classes (estimate.h) are kept
 * right: dead nodes leave theirs, nodes of the target join the class of their key or make one, and
 * so does every node behind them as long as names of classes change. They change less than one
 * thinks: a node that was the last of its class takes the name along, so that its readers need no
 * second look. All of this is written down and taken back at the end. */
#ifndef GRAFT_ENGINE_CHANGE_H
#define GRAFT_ENGINE_CHANGE_H

/* ------------------------------------------------------------- one rewrite */

/* A rewrite that is looked at. */
typedef struct graft_estimate_run {
    graft_estimator *e;
    const graft_rule *rule;
    const graft_match *match;
    const graft_made *made;
    graft_change *change;
    graft_index old[GRAFT_RULE_MAX_OUTPUTS]; /* The values that the match gives to others. */
    graft_index made_uses[GRAFT_RULE_MAX_NODES][GRAFT_MAX_OUTPUTS];
    graft_index made_label[GRAFT_RULE_MAX_NODES];
    uint32_t made_dead; /* A mask. */
    graft_index dead_count;
    graft_index moved_count;
    graft_index entry_count;
    graft_index label_count; /* New names of classes. */
    graft_heap queue;
} graft_estimate_run;

#define NOT_REPLACED 255u

/* What the readers of a value read instead: an operand of the target, or NOT_REPLACED. */
static graft_operand replacement_of(const graft_estimate_run *r, graft_index value)
{
    for (uint32_t i = 0; i < r->rule->output_count; i++) {
        if (r->old[i] == value) {
            return r->rule->target.outputs[i];
        }
    }
    return NOT_REPLACED;
}

/* Where readings of an operand of the target are counted. */
static graft_index *uses_of(graft_estimate_run *r, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? &r->made_uses[GRAFT_OPERAND_NODE_OF(x)][GRAFT_OPERAND_SLOT_OF(x)]
               : &r->e->use_count[r->match->vars[x]];
}

/* On the stack, outputs of the target come after the graph's values. */
static graft_index pending_name(const graft_estimate_run *r, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? r->e->limits.values + GRAFT_OPERAND_NODE_OF(x) * GRAFT_MAX_OUTPUTS +
                     GRAFT_OPERAND_SLOT_OF(x)
               : r->match->vars[x];
}

/* Counts readings as they would be once the target stands; returns how many values are on the
 * stack. */
static graft_index move_uses(graft_estimate_run *r)
{
    const graft_rule *rule = r->rule;
    graft_index depth = 0;
    zero_bytes(r->made_uses, sizeof r->made_uses);
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        for (uint32_t i = 0; i < op_table[rule->target.nodes[n].op].input_count; i++) {
            ++*uses_of(r, rule->target.nodes[n].inputs[i]);
        }
    }
    for (uint32_t i = 0; i < rule->output_count; i++) {
        *uses_of(r, rule->target.outputs[i]) += r->e->use_count[r->old[i]];
        r->e->use_count[r->old[i]] = 0;
        r->e->pending[depth++] = r->old[i];
    }
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        for (uint32_t o = 0; o < op_table[rule->target.nodes[n].op].output_count; o++) {
            if (r->made_uses[n][o] == 0) {
                r->e->pending[depth++] = pending_name(r, GRAFT_OPERAND_NODE(n, o));
            }
        }
    }
    return depth;
}

static graft_index drop_operand(graft_estimate_run *r, graft_operand x, graft_index depth)
{
    if (--*uses_of(r, x) == 0) {
        r->e->pending[depth++] = pending_name(r, x);
    }
    return depth;
}

/* Kills a target node that nothing reads. */
static graft_index kill_made(graft_estimate_run *r, uint32_t n, graft_index depth)
{
    const graft_pattern_node *node = &r->rule->target.nodes[n];
    const graft_op_info *info = &op_table[node->op];
    bool used = (r->made_dead >> n & 1u) != 0;
    for (uint32_t o = 0; o < info->output_count; o++) {
        used = used || r->made_uses[n][o] != 0;
    }
    if (used) {
        return depth;
    }
    r->made_dead |= 1u << n;
    for (uint32_t i = 0; i < info->input_count; i++) {
        depth = drop_operand(r, node->inputs[i], depth);
    }
    return depth;
}

/* Kills a node of the graph that nothing reads. */
static graft_index kill_node(graft_estimate_run *r, graft_index n, graft_index depth)
{
    graft_estimator *e = r->e;
    const graft_node *node = &e->graph->nodes[n];
    if ((e->flags[n] & ESTIMATE_DEAD) != 0 || !outputs_unused(e->graph, n, e->use_count)) {
        return depth;
    }
    e->flags[n] |= ESTIMATE_DEAD;
    e->touched[r->dead_count++] = n;
    for (uint32_t i = 0; i < node->input_count; i++) {
        graft_index v = graft_node_input(e->graph, n, i);
        graft_operand x = v == GRAFT_NONE ? NOT_REPLACED : replacement_of(r, v);
        if (x != NOT_REPLACED) {
            depth = drop_operand(r, x, depth);
        } else if (v != GRAFT_NONE && --e->use_count[v] == 0) {
            e->pending[depth++] = v;
        }
    }
    return depth;
}

/* Finds what would die, as remove_unused_values does. */
static void find_dead(graft_estimate_run *r)
{
    graft_estimator *e = r->e;
    graft_index depth = move_uses(r);
    while (depth > 0) {
        graft_index v = e->pending[--depth];
        if (v >= e->limits.values) {
            depth = kill_made(r, (v - e->limits.values) / GRAFT_MAX_OUTPUTS, depth);
        } else if (e->graph->values[v].kind == GRAFT_VALUE_COMPUTED) {
            depth = kill_node(r, e->graph->values[v].node, depth);
        }
    }
}

/* ------------------------------------------------------- classes, changing */

static void count_price(graft_change *change, const graft_form *form, uint32_t price, bool added)
{
    const int32_t sign = added ? 1 : -1;
    const int64_t cost = (int64_t)cost_of(price);
    if ((price & PRICE_GUESSED) != 0) {
        change->fallback_cost += sign * cost;
        change->guessed_cost += (uint64_t)cost;
        change->fallback_nodes += sign;
        change->guessed_nodes++;
    }
    *(added ? &change->added_cost : &change->removed_cost) += (uint64_t)cost;
    change->cost += sign * cost;
    change->nodes += sign;
    /* Sizes saturate, their sums wrap: so does their difference. */
    change->flops = (int64_t)((uint64_t)change->flops + (uint64_t)sign * form_flops(form));
    change->bytes = (int64_t)((uint64_t)change->bytes + (uint64_t)sign * form->bytes);
}

/* A node of the graph leaves its class; the last one takes its price along. */
static void leave_class(graft_estimate_run *r, graft_index n)
{
    graft_estimator *e = r->e;
    graft_index label = e->first[n];
    if (--e->members[label] == 0 && !e->graph->nodes[n].is_const) {
        graft_form form;
        graft_form_of_node(e->graph, n, &form);
        count_price(r->change, &form, e->prices[n], false);
    }
}

static uint64_t name_operand(const graft_estimate_run *r, graft_operand x)
{
    if (GRAFT_OPERAND_IS_NODE(x)) {
        return name_result(r->made_label[GRAFT_OPERAND_NODE_OF(x)], GRAFT_OPERAND_SLOT_OF(x));
    }
    graft_index v = r->match->vars[x];
    const graft_value *value = &r->e->graph->values[v];
    return value->kind == GRAFT_VALUE_COMPUTED ? name_result(r->e->label[value->node], value->slot)
                                               : name_source(v);
}

static bool operand_is_const(const graft_estimate_run *r, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x) ? r->made->is_const[GRAFT_OPERAND_NODE_OF(x)]
                                    : r->e->graph->values[r->match->vars[x]].is_const;
}

/* Whether the value is const once the target stands. */
static bool value_is_const(const graft_estimate_run *r, graft_index v)
{
    graft_operand x = replacement_of(r, v);
    const graft_value *value = &r->e->graph->values[v];
    if (x != NOT_REPLACED) {
        return operand_is_const(r, x);
    }
    return value->kind == GRAFT_VALUE_COMPUTED ? (r->e->flags[value->node] & ESTIMATE_CONST) != 0
                                               : value->is_const;
}

static void key_of_made(const graft_estimate_run *r, uint32_t n, graft_class_key *key)
{
    const graft_pattern_node *node = &r->rule->target.nodes[n];
    key->op = node->op;
    key->attrs = r->made->attrs[n];
    key->count = op_table[node->op].input_count;
    for (uint32_t i = 0; i < key->count; i++) {
        key->operands[i] = name_operand(r, node->inputs[i]);
    }
}

/* The key of a node of the graph once the target stands. */
static void key_of_moved(const graft_estimate_run *r, graft_index n, graft_class_key *key)
{
    key_of_node(r->e, r->e->label, n, key);
    for (uint32_t i = 0; i < key->count; i++) {
        graft_operand x = replacement_of(r, graft_node_input(r->e->graph, n, i));
        if (x != NOT_REPLACED) {
            key->operands[i] = name_operand(r, x);
        }
    }
}

/* The key and the class of what a slot of the table names. */
static graft_index read_slot(const graft_estimate_run *r, graft_index slot, graft_class_key *key)
{
    const graft_estimator *e = r->e;
    if (slot - 1 < e->limits.nodes) {
        key_of_node(e, e->first, slot - 1, key);
        return slot - 1;
    }
    graft_index n = e->entries[slot - 1 - e->limits.nodes];
    if (n < e->limits.nodes) {
        key_of_moved(r, n, key);
        return e->label[n];
    }
    key_of_made(r, n - e->limits.nodes, key);
    return r->made_label[n - e->limits.nodes];
}

/* The class of a key that has members, GRAFT_NONE when there is none; *free_slot is then where the
 * key belongs. A class whose members all left has no key any more, or another one. */
static graft_index find_class(const graft_estimate_run *r, const graft_class_key *key,
                              graft_index *free_slot)
{
    const graft_estimator *e = r->e;
    graft_class_key other;
    uint32_t at = hash_key(key) & e->slot_mask;
    while (e->slots[at] != 0) {
        bool is_entry = e->slots[at] - 1 >= e->limits.nodes;
        graft_index label = read_slot(r, e->slots[at], &other);
        if ((is_entry || (e->flags[label] & ESTIMATE_RENAMED) == 0) && e->members[label] > 0 &&
            keys_equal(key, &other)) {
            return label;
        }
        at = (at + 1) & e->slot_mask;
    }
    *free_slot = at;
    return GRAFT_NONE;
}

/* Makes a class for a node, that is n or target node n - limits.nodes: of the name `kept` when it
 * is free, else of a new one. `free_slot` GRAFT_NONE: no other node can be equal. */
static graft_index make_class(graft_estimate_run *r, graft_index n, graft_index kept,
                              graft_index free_slot)
{
    graft_estimator *e = r->e;
    graft_index label = kept;
    if (kept == GRAFT_NONE || e->members[kept] > 0) {
        label = e->limits.nodes + r->label_count++;
    } else {
        e->flags[kept] |= ESTIMATE_RENAMED;
    }
    if (free_slot != GRAFT_NONE) {
        e->entries[r->entry_count] = n;
        e->filled[r->entry_count] = free_slot;
        e->slots[free_slot] = 1 + e->limits.nodes + r->entry_count++;
    }
    return label;
}

/* The class whose name a target node may take over, since it makes what that class made. */
static graft_index class_replaced(const graft_estimate_run *r, uint32_t n)
{
    graft_index kept = GRAFT_NONE;
    for (uint32_t i = 0; i < r->rule->output_count; i++) {
        graft_operand x = r->rule->target.outputs[i];
        if (!GRAFT_OPERAND_IS_NODE(x) || GRAFT_OPERAND_NODE_OF(x) != n) {
            continue;
        }
        const graft_value *value = &r->e->graph->values[r->old[i]];
        graft_index label = r->e->first[value->node];
        if (GRAFT_OPERAND_SLOT_OF(x) != value->slot || r->made->is_const[n] ||
            (kept != GRAFT_NONE && kept != label)) {
            return GRAFT_NONE;
        }
        kept = label;
    }
    return kept;
}

static void place_made(graft_estimate_run *r, uint32_t n)
{
    graft_estimator *e = r->e;
    graft_class_key key;
    graft_form form;
    graft_index free_slot = GRAFT_NONE;
    key_of_made(r, n, &key);
    graft_index label = find_class(r, &key, &free_slot);
    if (label == GRAFT_NONE) {
        label = make_class(r, e->limits.nodes + n, class_replaced(r, n), free_slot);
        if (!r->made->is_const[n]) {
            graft_form_of_made(e->graph, r->rule, r->match, r->made, n, &form);
            count_price(r->change, &form, price_cached(e, &form), true);
        }
    }
    r->made_label[n] = label;
    e->members[label]++;
}

/* Queues the readers of a value that live on. */
static void queue_readers(graft_estimate_run *r, graft_index value)
{
    const graft_order *order = r->e->order;
    for (graft_index u = order->use_first[value]; u < order->use_first[value + 1]; u++) {
        graft_index n = order->uses[u];
        if ((r->e->flags[n] & (ESTIMATE_DEAD | ESTIMATE_QUEUED)) == 0) {
            r->e->flags[n] |= ESTIMATE_QUEUED;
            heap_push(&r->queue, order->position[n]);
        }
    }
}

static bool operands_harden(const graft_estimate_run *r, graft_index n)
{
    const graft_graph *graph = r->e->graph;
    bool harden = false;
    for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) {
        graft_index v = graft_node_input(graph, n, i);
        harden = harden || (v != GRAFT_NONE && value_is_const(r, v) != graph->values[v].is_const);
    }
    return harden;
}

/* Counts a node whose operands may have become const. */
static void count_moved(const graft_estimate_run *r, graft_index n)
{
    const graft_graph *graph = r->e->graph;
    graft_form form;
    begin_form(&graph->nodes[n], &form);
    for (uint32_t i = 0; i < form.input_count; i++) {
        graft_index v = graft_node_input(graph, n, i);
        if (v != GRAFT_NONE) {
            add_operand(&form, i, &graph->values[v].shape, value_is_const(r, v));
        }
    }
    for (uint32_t i = 0; i < form.output_count; i++) {
        add_result(&form, i, &graph->values[graft_node_output(graph, n, i)].shape);
    }
    count_price(r->change, &form,
                operands_harden(r, n) ? price_cached(r->e, &form) : r->e->prices[n], true);
}

static bool becomes_const(const graft_estimate_run *r, graft_index n)
{
    const graft_node *node = &r->e->graph->nodes[n];
    bool is_const = node->op != GRAFT_OP_OPAQUE;
    for (uint32_t i = 0; is_const && i < node->input_count; i++) {
        is_const = value_is_const(r, graft_node_input(r->e->graph, n, i));
    }
    return is_const || node->is_const;
}

/* Finds the class of a node one of whose operands has another one, or is const now. */
static void move_node(graft_estimate_run *r, graft_index n)
{
    graft_estimator *e = r->e;
    const graft_node *node = &e->graph->nodes[n];
    graft_class_key key;
    graft_index free_slot = GRAFT_NONE;
    graft_index label = GRAFT_NONE;
    bool is_const = becomes_const(r, n);
    bool hardens = is_const && !node->is_const;
    leave_class(r, n);
    e->touched[e->limits.nodes - ++r->moved_count] = n;
    e->flags[n] |= hardens ? ESTIMATE_CONST : 0;
    if (node->op != GRAFT_OP_OPAQUE) {
        key_of_moved(r, n, &key);
        label = find_class(r, &key, &free_slot);
    }
    if (label == GRAFT_NONE) {
        label = make_class(r, n, hardens ? GRAFT_NONE : e->first[n], free_slot);
        if (!is_const) {
            count_moved(r, n);
        }
    }
    e->label[n] = label;
    e->members[label]++;
    for (uint32_t i = 0; (label != e->first[n] || hardens) && i < node->output_count; i++) {
        queue_readers(r, graft_node_output(e->graph, n, i));
    }
}

static void change_classes(graft_estimate_run *r)
{
    graft_estimator *e = r->e;
    for (graft_index i = 0; i < r->dead_count; i++) {
        leave_class(r, e->touched[i]);
    }
    for (uint32_t n = 0; n < r->rule->target.node_count; n++) {
        if ((r->made_dead >> n & 1u) == 0) {
            place_made(r, n);
        }
    }
    for (uint32_t i = 0; i < r->rule->output_count; i++) {
        graft_operand x = r->rule->target.outputs[i];
        const graft_value *value = &e->graph->values[r->old[i]];
        if (*uses_of(r, x) > 0 &&
            (name_operand(r, x) != name_result(e->first[value->node], value->slot) ||
             operand_is_const(r, x))) {
            queue_readers(r, r->old[i]);
        }
    }
    while (r->queue.count > 0) {
        move_node(r, e->order->order[heap_pop(&r->queue)]);
    }
}

/* --------------------------------------------------------------- taking back */

static void restore_uses(graft_estimate_run *r)
{
    graft_estimator *e = r->e;
    for (uint32_t v = 0; v < r->rule->var_count; v++) {
        e->use_count[r->match->vars[v]] = e->order->use_count[r->match->vars[v]];
    }
    for (uint32_t i = 0; i < r->rule->output_count; i++) {
        e->use_count[r->old[i]] = e->order->use_count[r->old[i]];
    }
    for (graft_index i = 0; i < r->dead_count; i++) {
        graft_index n = e->touched[i];
        for (uint32_t k = 0; k < e->graph->nodes[n].input_count; k++) {
            graft_index v = graft_node_input(e->graph, n, k);
            if (v != GRAFT_NONE) {
                e->use_count[v] = e->order->use_count[v];
            }
        }
    }
}

static void restore_node(graft_estimator *e, graft_index n)
{
    e->members[e->first[n]]++;
    e->flags[n] = e->graph->nodes[n].is_const ? ESTIMATE_CONST : 0;
    e->label[n] = e->first[n];
}

static void restore_classes(graft_estimate_run *r)
{
    graft_estimator *e = r->e;
    while (r->entry_count > 0) { /* The last one first, as its search passed the others. */
        e->slots[e->filled[--r->entry_count]] = 0;
    }
    for (uint32_t n = 0; n < r->rule->target.node_count; n++) {
        if ((r->made_dead >> n & 1u) == 0) {
            e->members[r->made_label[n]]--;
        }
    }
    for (graft_index i = 1; i <= r->moved_count; i++) {
        e->members[e->label[e->touched[e->limits.nodes - i]]]--;
    }
    for (graft_index i = 1; i <= r->moved_count; i++) {
        restore_node(e, e->touched[e->limits.nodes - i]);
    }
    for (graft_index i = 0; i < r->dead_count; i++) {
        restore_node(e, e->touched[i]);
    }
}

void graft_estimate_match(graft_estimator *estimator, const graft_rule *rule,
                          const graft_match *match, const graft_made *made, graft_change *change)
{
    graft_estimate_run run;
    zero_bytes(&run, sizeof run);
    zero_bytes(change, sizeof *change);
    change->weight_bytes = made->weight_bytes;
    run.e = estimator;
    run.rule = rule;
    run.match = match;
    run.made = made;
    run.change = change;
    for (uint32_t i = 0; i < rule->output_count; i++) {
        run.old[i] = matched_output(estimator->graph, rule, match, i);
    }
    find_dead(&run);
    run.queue.items = estimator->touched + run.dead_count;
    change_classes(&run);
    restore_classes(&run);
    restore_uses(&run);
}

#endif
