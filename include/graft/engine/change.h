/* change.h - what a rewrite would change of a graph's estimated cost, without making it.
 *
 * First what would die is found, as graft_remove_unused_values would. Then classes (estimate.h) are kept
 * right: dead nodes leave theirs, nodes of the target join the class of their key or make one, and
 * so does every node behind them as long as names of classes change. They change less than one
 * thinks: a node that was the last of its class takes the name along, so that its readers need no
 * second look. All of this is written down and taken back at the end.
 *
 * What the target makes is named as the graph's own is, so that one routine serves both (graft_made). */
#ifndef GRAFT_ENGINE_CHANGE_H
#define GRAFT_ENGINE_CHANGE_H

/* ------------------------------------------------------------------ what dies */

/* Counts readings as they would be once the target stands; returns how many values are on the
 * stack. */
static uint32_t graft_move_uses(graft_estimate_run *r)
{
    const graft_rule *rule = r->rule;
    graft_index *use_count = r->e->scratch.use_count;
    const uint32_t first = r->e->graph->value_end;
    uint32_t depth = 0;
    graft_zero_bytes(&use_count[first],
                     GRAFT_RULE_MAX_NODES * GRAFT_MAX_OUTPUTS * sizeof *use_count);
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        const graft_made_node *made = &r->made->nodes[n];
        r->e->flags[r->e->graph->node_end + n] = graft_first_flags(&made->node);
        for (uint32_t i = 0; i < made->node.input_count; i++) {
            use_count[made->inputs[i]]++;
        }
    }
    for (uint32_t i = 0; i < graft_rule_outputs(rule); i++) {
        use_count[r->given[i]] += use_count[r->old[i]];
        use_count[r->old[i]] = 0;
        r->e->scratch.pending[depth++] = r->old[i];
    }
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        for (uint32_t o = 0; o < graft_outputs_of(rule->target.nodes[n].op); o++) {
            const uint32_t v = first + n * GRAFT_MAX_OUTPUTS + o;
            if (use_count[v] == 0) {
                r->e->scratch.pending[depth++] = (graft_index)v;
            }
        }
    }
    return depth;
}

/* Kills a node that nothing reads. */
static uint32_t graft_kill_node(graft_estimate_run *r, uint32_t n, uint32_t depth)
{
    graft_estimator *e = r->e;
    const graft_node *node = graft_node_of(r, n);
    bool used = (e->flags[n] & GRAFT_ESTIMATE_DEAD) != 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        used = used || e->scratch.use_count[graft_result_of(r, n, i)] != 0;
    }
    if (used) {
        return depth;
    }
    e->flags[n] |= GRAFT_ESTIMATE_DEAD;
    if (n < e->graph->node_end) {
        e->touched[r->dead_count++] = (graft_index)n;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t v = graft_operand_of(r, n, i);
        if (v != GRAFT_NONE && --e->scratch.use_count[v] == 0) {
            e->scratch.pending[depth++] = v;
        }
    }
    return depth;
}

/* Finds what would die, as graft_remove_unused_values does. */
static void graft_find_dead(graft_estimate_run *r)
{
    const graft_estimator *e = r->e;
    uint32_t depth = graft_move_uses(r);
    while (depth > 0) {
        const graft_index n = graft_producer_of(e->graph, e->scratch.pending[--depth]);
        depth = n != GRAFT_NONE ? graft_kill_node(r, n, depth) : depth;
    }
}

/* ------------------------------------------------------- classes, changing */

/* A node of the graph leaves its class; the last one takes its price along. */
static void graft_leave_class(graft_estimate_run *r, uint32_t n)
{
    graft_estimator *e = r->e;
    uint32_t label = e->first[n];
    if (--e->members[label] == 0 && !e->graph->nodes[n].is_const) {
        graft_add_cost(r, n, e->prices[n], &r->change->removed);
    }
}

/* Makes a class for a node, of the name `kept` when it is free, else of a new one. `free_slot`
 * GRAFT_NONE: no other node can be equal. */
static uint32_t graft_make_class(graft_estimate_run *r, uint32_t n, uint32_t kept,
                                 uint32_t free_slot)
{
    graft_estimator *e = r->e;
    uint32_t label = kept;
    if (kept == GRAFT_NONE || e->members[kept] > 0) {
        label = e->limits.nodes + r->label_count++;
    } else {
        e->flags[kept] |= GRAFT_ESTIMATE_RENAMED;
    }
    if (free_slot != GRAFT_NONE) {
        e->entries[r->entry_count] = n;
        e->filled[r->entry_count] = free_slot;
        e->slots[free_slot] = 1 + e->limits.nodes + r->entry_count++;
    }
    return label;
}

/* Finds the class of a node once the target stands. If it needs one of its own, that may be `kept`. */
static void graft_place_node_class(graft_estimate_run *r, uint32_t n, uint32_t kept)
{
    graft_estimator *e = r->e;
    uint32_t free_slot = GRAFT_NONE;
    uint32_t label = GRAFT_NONE;
    if (graft_node_of(r, n)->op != GRAFT_OP_OPAQUE) {
        label = graft_find_class(r, n, true, &free_slot);
    }
    if (label == GRAFT_NONE) {
        label = graft_make_class(r, n, kept, free_slot);
        if ((e->flags[n] & GRAFT_ESTIMATE_CONST) == 0) {
            graft_add_cost(r, n, GRAFT_PRICE_NONE, &r->change->added);
        }
    }
    e->label[n] = label;
    e->members[label]++;
}

/* The class whose name a target node may take over, since all that it makes is what that class made:
 * nodes that are not looked at yet go by that name. */
static GRAFT_APART uint32_t graft_class_replaced(const graft_estimate_run *r, uint32_t n)
{
    uint32_t kept = GRAFT_NONE;
    uint32_t slots = 0;
    for (uint32_t i = 0; i < graft_rule_outputs(r->rule); i++) {
        graft_operand x = r->rule->target.outputs[i];
        if (!GRAFT_OPERAND_IS_NODE(x) || GRAFT_OPERAND_NODE_OF(x) != n) {
            continue;
        }
        const graft_value *value = &r->e->graph->values[r->old[i]];
        uint32_t label = r->e->first[value->node];
        if (GRAFT_OPERAND_SLOT_OF(x) != value->slot || r->made->nodes[n].node.is_const ||
            (kept != GRAFT_NONE && kept != label)) {
            return GRAFT_NONE;
        }
        kept = label;
        slots |= 1u << value->slot;
    }
    return slots + 1u == 1u << graft_outputs_of(r->rule->target.nodes[n].op) ? kept : GRAFT_NONE;
}

/* Queues the readers of a value that live on. */
static void graft_queue_readers(graft_estimate_run *r, uint32_t value)
{
    const graft_order *order = r->e->order;
    for (uint32_t u = order->use_first[value]; u < order->use_first[value + 1]; u++) {
        uint32_t n = order->uses[u];
        if ((r->e->flags[n] & (GRAFT_ESTIMATE_DEAD | GRAFT_ESTIMATE_QUEUED)) == 0) {
            r->e->flags[n] |= GRAFT_ESTIMATE_QUEUED;
            graft_heap_push(&r->queue, order->position[n]);
        }
    }
}

static bool graft_becomes_const(const graft_estimate_run *r, uint32_t n)
{
    const graft_node *node = &r->e->graph->nodes[n];
    bool is_const = node->op != GRAFT_OP_OPAQUE;
    for (uint32_t i = 0; is_const && i < node->input_count; i++) {
        is_const = graft_value_is_const(r, graft_operand_of(r, n, i));
    }
    return is_const;
}

/* Finds the class of a node one of whose operands has another one, or is const now. It was not const: it
 * reads what is not. So a class of its former name has no const members, and a node that becomes const
 * gets another name. */
static void graft_move_node(graft_estimate_run *r, uint32_t n)
{
    graft_estimator *e = r->e;
    const graft_node *node = &e->graph->nodes[n];
    bool is_const = graft_becomes_const(r, n);
    graft_leave_class(r, n);
    e->touched[e->limits.nodes - ++r->moved_count] = n;
    e->flags[n] |= is_const ? GRAFT_ESTIMATE_CONST : 0;
    graft_place_node_class(r, n, is_const ? GRAFT_NONE : e->first[n]);
    for (uint32_t i = 0; e->label[n] != e->first[n] && i < node->output_count; i++) {
        graft_queue_readers(r, graft_results_of(e->graph, node)[i]);
    }
}

static bool graft_made_lives(const graft_estimate_run *r, uint32_t n)
{
    return (r->e->flags[r->e->graph->node_end + n] & GRAFT_ESTIMATE_DEAD) == 0;
}

static GRAFT_APART void graft_change_classes(graft_estimate_run *r)
{
    graft_estimator *e = r->e;
    for (uint32_t i = 0; i < r->dead_count; i++) {
        graft_leave_class(r, e->touched[i]);
    }
    for (uint32_t n = 0; n < r->rule->target.node_count; n++) {
        if (graft_made_lives(r, n)) {
            graft_place_node_class(r, e->graph->node_end + n, graft_class_replaced(r, n));
        }
    }
    for (uint32_t i = 0; i < graft_rule_outputs(r->rule);
         i++) { /* What is const now has another name. */
        if (e->scratch.use_count[r->given[i]] > 0 &&
            graft_name_value(e->graph, e->label, r->given[i]) !=
                graft_name_value(e->graph, e->first, r->old[i])) {
            graft_queue_readers(r, r->old[i]);
        }
    }
    while (r->queue.count > 0) {
        graft_move_node(r, e->order->order[graft_heap_pop(&r->queue)]);
    }
}

/* --------------------------------------------------------------- taking back */

static void graft_restore_uses(graft_estimate_run *r)
{
    graft_estimator *e = r->e;
    for (uint32_t v = 0; v < r->rule->var_count; v++) {
        e->scratch.use_count[r->match->vars[v]] = e->order->use_count[r->match->vars[v]];
    }
    for (uint32_t i = 0; i < graft_rule_outputs(r->rule); i++) {
        e->scratch.use_count[r->old[i]] = e->order->use_count[r->old[i]];
    }
    for (uint32_t i = 0; i < r->dead_count; i++) {
        const graft_node *node = &e->graph->nodes[e->touched[i]];
        for (uint32_t k = 0; k < node->input_count; k++) {
            const graft_index v = graft_inputs_of(e->graph, node)[k];
            if (v != GRAFT_NONE) {
                e->scratch.use_count[v] = e->order->use_count[v];
            }
        }
    }
}

static void graft_restore_node(graft_estimator *e, uint32_t n)
{
    e->members[e->first[n]]++;
    e->flags[n] = graft_first_flags(&e->graph->nodes[n]);
    e->label[n] = e->first[n];
}

static void graft_restore_classes(graft_estimate_run *r)
{
    graft_estimator *e = r->e;
    while (r->entry_count > 0) { /* The last one first, as its search passed the others. */
        e->slots[e->filled[--r->entry_count]] = 0;
    }
    for (uint32_t n = 0; n < r->rule->target.node_count; n++) {
        if (graft_made_lives(r, n)) {
            e->members[e->label[e->graph->node_end + n]]--;
        }
    }
    for (uint32_t i = 1; i <= r->moved_count; i++) {
        const uint32_t n = e->touched[e->limits.nodes - i];
        e->members[e->label[n]]--;
        graft_restore_node(e, n);
    }
    for (uint32_t i = 0; i < r->dead_count; i++) {
        graft_restore_node(e, e->touched[i]);
    }
}

void graft_estimate_match(graft_estimator *estimator, const graft_rule *rule,
                          const graft_match *match, const graft_made *made, graft_change *change)
{
    graft_estimate_run run;
    graft_zero_bytes(&run, sizeof run);
    graft_zero_bytes(change, sizeof *change);
    run.change = change;
    run.e = estimator;
    run.rule = rule;
    run.match = match;
    run.made = made;
    run.output_count = rule->output_count;
    for (uint32_t i = 0; i < graft_rule_outputs(rule); i++) {
        run.old[i] = graft_matched_output(estimator->graph, rule, match, i);
        run.given[i] = graft_target_value(estimator->graph, match, rule->target.outputs[i]);
    }
    graft_find_dead(&run);
    run.queue.items = estimator->touched + run.dead_count;
    graft_change_classes(&run);
    graft_restore_classes(&run);
    graft_restore_uses(&run);
    change->cost = (int64_t)(change->added.cost - change->removed.cost);
    change->weight_bytes = made->weight_bytes;
}

#endif
