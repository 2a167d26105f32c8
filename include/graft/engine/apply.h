/* apply.h - replacing a match by the rule's target.
 *
 * Everything that can fail is decided first, on copies (graft_plan_target and the checks behind it); only
 * then is the graph touched. A target output takes over the id of the value it replaces, so
 * readers, outputs and names stay as they are. */
#ifndef GRAFT_ENGINE_APPLY_H
#define GRAFT_ENGINE_APPLY_H

/* One application: what is asked, what is decided, what is made. */
typedef struct graft_application {
    const graft_rule *rule;
    const graft_match *match;
    const graft_order *order;
    graft_made *made;
    graft_apply_scratch scratch;
    graft_index old[GRAFT_RULE_MAX_OUTPUTS]; /* The values that the match gives to others. */
    /* Value ids of the target's outputs, in the order of their operands. */
    graft_index produced[GRAFT_RULE_MAX_NODES * GRAFT_MAX_OUTPUTS];
} graft_application;

static void graft_carve_scratch(graft_carver *carver, const graft_limits *limits,
                                graft_apply_scratch *scratch)
{
    size_t made = (size_t)GRAFT_RULE_MAX_NODES * GRAFT_MAX_OUTPUTS;
    size_t depth = made + (limits->values > limits->nodes ? limits->values : limits->nodes);
    scratch->use_count = graft_carve_ids(carver, limits->values + made);
    scratch->pending = graft_carve_ids(carver, depth);
    scratch->seen = (uint8_t *)graft_carve(carver, limits->nodes, 1);
}

size_t graft_match_scratch_bytes(const graft_limits *limits)
{
    graft_carver carver = {NULL, 0};
    graft_apply_scratch scratch;
    graft_carve_scratch(&carver, limits, &scratch);
    return carver.used + 7u;
}

/* ------------------------------------------------------------------- plan */

/* The value that an operand of the target stands for: the graph's, or one that would be made. */
static GRAFT_APART graft_index graft_target_value(const graft_graph *graph,
                                                  const graft_match *match, graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand)
               ? (graft_index)(graph->value_end + GRAFT_OPERAND_PLACE_OF(operand))
               : match->vars[operand];
}

static GRAFT_APART const graft_shape *graft_shape_of(const graft_graph *graph,
                                                     const graft_made *made, uint32_t value)
{
    const uint32_t place = value - graph->value_end;
    return value < graph->value_end
               ? &graph->values[value].shape
               : &made->nodes[place / GRAFT_MAX_OUTPUTS].shapes[place % GRAFT_MAX_OUTPUTS];
}

static bool graft_plan_attrs(const graft_graph *graph, const graft_rule *rule,
                             const graft_match *match, uint32_t n, int32_t *attrs)
{
    const graft_pattern_node *node = &rule->target.nodes[n];
    for (uint32_t i = 0; i < graft_op_rows[node->op].attr_count; i++) {
        const graft_term *term = &node->attrs[i];
        attrs[i] = term->kind == GRAFT_TERM_SLOT ? match->slots[term->value] : term->value;
        if (term->kind == GRAFT_TERM_CODE) {
            int64_t result = 0;
            if (!graft_run_code(rule, graph, match, (uint32_t)term->value, &result) ||
                result != (int32_t)result) {
                return false;
            }
            attrs[i] = (int32_t)result;
        }
    }
    return true;
}

/* Whether a value of the graph is const, or one that would be made. */
static bool graft_is_const_value(const graft_graph *graph, const graft_made *made, uint32_t value)
{
    return value < graph->value_end
               ? graph->values[value].is_const
               : made->nodes[(value - graph->value_end) / GRAFT_MAX_OUTPUTS].node.is_const;
}

/* A bit for each operand that is made; none for the graph's values. */
static uint32_t graft_made_bit(graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand) ? 1u << GRAFT_OPERAND_PLACE_OF(operand) : 0;
}

/* Bytes of the new const tensors that are needed at inference, each counted once: a target node that
 * runs then reads them, which `needed` says, or they leave the match. */
static uint64_t graft_count_weight_bytes(const graft_graph *graph, const graft_rule *rule,
                                         const graft_made *made, uint32_t needed)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < graft_rule_outputs(rule); i++) {
        needed |= graft_made_bit(rule->target.outputs[i]);
    }
    for (uint32_t v = graph->value_end; needed != 0; v++, needed >>= 1) {
        if ((needed & 1u) != 0 && graft_is_const_value(graph, made, v)) {
            bytes += graft_shape_bytes(graft_shape_of(graph, made, v));
        }
    }
    return bytes;
}

/* Infers the target's attributes and shapes; false when they do not fit together. */
static bool graft_plan_target(const graft_graph *graph, const graft_rule *rule,
                              const graft_match *match, graft_made *made)
{
    uint32_t needed = 0;
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        const graft_pattern_node *pattern = &rule->target.nodes[n];
        const graft_shape *in[GRAFT_MAX_INPUTS];
        graft_made_node *made_node = &made->nodes[n];
        graft_node *node = &made_node->node;
        uint32_t read = 0;
        bool is_const = true;
        graft_begin_node(node, pattern->op, graft_op_rows[pattern->op].input_count,
                         graft_outputs_of(pattern->op));
        made_node->shapes[0].dtype = graph->dtype;
        for (uint32_t i = 0; i < node->input_count; i++) {
            const graft_index value = graft_target_value(graph, match, pattern->inputs[i]);
            made_node->inputs[i] = value;
            in[i] = graft_shape_of(graph, made, value);
            read |= graft_made_bit(pattern->inputs[i]);
            is_const = is_const && graft_is_const_value(graph, made, value);
        }
        node->is_const = is_const;
        needed |= is_const ? 0 : read;
        if (!graft_plan_attrs(graph, rule, match, n, node->attrs) ||
            graft_infer_outputs(node->op, node->attrs, in, made_node->shapes) != NULL ||
            (GRAFT_HAS_OTHERS && is_const && !graft_is_real(made_node->shapes[0].dtype))) {
            return false; /* Weights are real numbers. */
        }
    }
    made->weight_bytes = graft_count_weight_bytes(graph, rule, made, needed);
    return true;
}

static GRAFT_APART uint32_t graft_matched_output(const graft_graph *graph, const graft_rule *rule,
                                                 const graft_match *match, uint32_t i)
{
    graft_operand operand = rule->source.outputs[i];
    return graft_node_output(graph, match->nodes[GRAFT_OPERAND_NODE_OF(operand)],
                             GRAFT_OPERAND_SLOT_OF(operand));
}

static bool graft_outputs_keep_shape(const graft_graph *graph, const graft_rule *rule,
                                     const graft_match *match, const graft_made *made)
{
    for (uint32_t i = 0; i < graft_rule_outputs(rule); i++) {
        const graft_shape *old = &graph->values[graft_matched_output(graph, rule, match, i)].shape;
        const uint32_t given = graft_target_value(graph, match, rule->target.outputs[i]);
        if (!graft_shape_equal(old, graft_shape_of(graph, made, given))) {
            return false;
        }
    }
    return true;
}

/* ----------------------------------------------------------------- cycles */

static bool graft_has_several_roots(const graft_rule *rule)
{
    for (uint32_t i = 1; i < graft_rule_outputs(rule); i++) {
        if (GRAFT_OPERAND_NODE_OF(rule->source.outputs[i]) != 0) {
            return true;
        }
    }
    return false;
}

static GRAFT_APART uint32_t graft_push_producer(const graft_graph *graph, uint32_t value,
                                                const graft_apply_scratch *scratch, uint32_t depth)
{
    if (value != GRAFT_NONE && graph->values[value].kind == GRAFT_VALUE_COMPUTED &&
        scratch->seen[graph->values[value].node] == 0) {
        scratch->seen[graph->values[value].node] = 1;
        scratch->pending[depth++] = graph->values[value].node;
    }
    return depth;
}

/* Whether a variable depends on a node that the match replaces: the target would then read what it
 * computes. Cannot happen with a single root, whose inner values nobody else reads. Nodes placed
 * before every matched one are not followed. */
static bool graft_closes_cycle(const graft_graph *graph, const graft_rule *rule,
                               const graft_match *match, const graft_order *order,
                               const graft_apply_scratch *scratch)
{
    uint32_t first = GRAFT_NONE;
    uint32_t depth = 0;
    graft_zero_bytes(scratch->seen, graph->node_end);
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        uint32_t position = order->position[match->nodes[n]];
        first = position < first ? position : first;
    }
    for (uint32_t v = 0; v < rule->var_count; v++) {
        depth = graft_push_producer(graph, match->vars[v], scratch, depth);
    }
    while (depth > 0) {
        uint32_t node = scratch->pending[--depth];
        for (uint32_t n = 0; n < rule->source.node_count; n++) {
            if (match->nodes[n] == node) {
                return true;
            }
        }
        for (uint32_t i = 0; order->position[node] > first && i < graph->nodes[node].input_count;
             i++) {
            depth = graft_push_producer(graph, graft_node_input(graph, node, i), scratch, depth);
        }
    }
    return false;
}

/* -------------------------------------------------------------- decisions */

static bool graft_target_fits(const graft_graph *graph, const graft_rule *rule,
                              const graft_made *made)
{
    uint32_t values = 0;
    uint32_t edges = 0;
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        values += graft_outputs_of(rule->target.nodes[n].op);
        edges += made->nodes[n].node.input_count;
    }
    return graft_has_places(graph, rule->target.node_count, values, edges + values);
}

static graft_status graft_decide(const graft_graph *graph, graft_application *a,
                                 const graft_apply_options *options)
{
    if (!graft_plan_target(graph, a->rule, a->match, a->made) ||
        !graft_outputs_keep_shape(graph, a->rule, a->match, a->made) ||
        a->made->weight_bytes > options->weight_bytes_limit ||
        (graft_has_several_roots(a->rule) &&
         graft_closes_cycle(graph, a->rule, a->match, a->order, &a->scratch))) {
        return GRAFT_NO_MATCH;
    }
    return graft_target_fits(graph, a->rule, a->made) ? GRAFT_OK : GRAFT_CAPACITY;
}

/* NOLINTNEXTLINE(readability-function-size): what an application is. */
static void graft_start_application(graft_application *a, const graft_rule *rule,
                                    const graft_match *match, const graft_order *order,
                                    graft_made *made)
{
    a->rule = rule;
    a->match = match;
    a->order = order;
    a->made = made;
}

/* graft_match_plan but for `a->made`, which is overwritten on failure too. */
static graft_status graft_plan_match(const graft_graph *graph, graft_application *a,
                                     const graft_apply_options *options, void *scratch)
{
    graft_carver carver = {graft_align_buffer(scratch), 0};
    graft_carve_scratch(&carver, &graph->limits, &a->scratch);
    return graft_decide(graph, a, options);
}

graft_status graft_match_try(const graft_graph *graph, const graft_rule *rule,
                             const graft_match *match, const graft_order *order,
                             const graft_apply_options *options, void *scratch)
{
    graft_made made;
    graft_application application;
    graft_start_application(&application, rule, match, order, &made);
    return graft_plan_match(graph, &application, options, scratch);
}

/* NOLINTNEXTLINE(readability-function-size): the interface. */
graft_status graft_match_plan(const graft_graph *graph, const graft_rule *rule,
                              const graft_match *match, const graft_order *order,
                              const graft_apply_options *options, void *scratch, graft_made *made)
{
    graft_made planned;
    graft_application application;
    graft_start_application(&application, rule, match, order, &planned);
    graft_status status = graft_plan_match(graph, &application, options, scratch);
    if (status == GRAFT_OK) {
        *made = planned;
    }
    return status;
}

/* -------------------------------------------------------------- replacing */

/* Exchanges the producers of two values of equal shape, both computed. */
static GRAFT_APART void graft_swap_producers(graft_graph *graph, uint32_t a, uint32_t b)
{
    graft_value *va = &graph->values[a];
    graft_value *vb = &graph->values[b];
    graft_node *na = &graph->nodes[va->node];
    graft_node *nb = &graph->nodes[vb->node];
    graph->edges[na->first_edge + na->input_count + va->slot] = b;
    graph->edges[nb->first_edge + nb->input_count + vb->slot] = a;
    const graft_value saved = *va;
    va->node = vb->node;
    va->slot = vb->slot;
    va->is_const = vb->is_const;
    vb->node = saved.node;
    vb->slot = saved.slot;
    vb->is_const = saved.is_const;
}

/* The graph value that stands for an operand of the target, once that is made. */
static GRAFT_APART uint32_t graft_produced_value(const graft_application *a, graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand) ? a->produced[GRAFT_OPERAND_PLACE_OF(operand)]
                                          : a->match->vars[operand];
}

/* Creates target node n and says what it produces. */
static graft_index graft_create_node(graft_graph *graph, graft_application *a, uint32_t n)
{
    const graft_made_node *made = &a->made->nodes[n];
    const graft_node *like = &made->node;
    graft_index inputs[GRAFT_MAX_INPUTS];
    graft_index node = GRAFT_NONE;
    for (uint32_t i = 0; i < like->input_count; i++) {
        inputs[i] = (graft_index)graft_produced_value(a, a->rule->target.nodes[n].inputs[i]);
        a->scratch.use_count[inputs[i]]++;
    }
    (void)graft_add_node(graph, like, inputs, made->shapes, &node); /* graft_target_fits asked. */
    for (uint32_t o = 0; o < graft_outputs_of(like->op); o++) {
        const graft_index value = graft_results_of(graph, &graph->nodes[node])[o];
        a->produced[n * GRAFT_MAX_OUTPUTS + o] = value;
        a->scratch.use_count[value] = 0;
    }
    return node;
}

/* Gives the outputs of target node n that replace matched values the ids of those values; `dead`
 * receives what the source's nodes produce instead. Of several outputs that are one target value
 * the last one gives its id. */
static void graft_take_over_outputs(graft_graph *graph, graft_application *a, uint32_t n,
                                    graft_index *dead)
{
    for (uint32_t i = 0; i < graft_rule_outputs(a->rule); i++) {
        graft_operand x = a->rule->target.outputs[i];
        if (!GRAFT_OPERAND_IS_NODE(x) || GRAFT_OPERAND_NODE_OF(x) != n) {
            continue;
        }
        graft_index *value = &a->produced[GRAFT_OPERAND_PLACE_OF(x)];
        graft_swap_producers(graph, a->old[i], *value);
        dead[i] = *value;
        *value = a->old[i];
    }
}

/* Hands the readers of matched values that kept their producer to what replaces them. */
static void graft_redirect_outputs(graft_graph *graph, graft_application *a)
{
    graft_index *use_count = a->scratch.use_count;
    for (uint32_t i = 0; i < graft_rule_outputs(a->rule); i++) {
        uint32_t to = graft_produced_value(a, a->rule->target.outputs[i]);
        if (to != a->old[i]) { /* A variable, or the target value of a later output. */
            graft_graph_redirect(graph, a->old[i], to);
            use_count[to] += use_count[a->old[i]];
            use_count[a->old[i]] = 0;
        }
    }
}

/* Lets const-ness flow from changed values to their readers. */
static void graft_refresh_const(graft_graph *graph)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t n = 0; n < graph->node_end; n++) {
            const graft_node *node = &graph->nodes[n];
            if (node->op != GRAFT_OP_NONE && node->op != GRAFT_OP_OPAQUE && !node->is_const) {
                graft_graph_set_repeatable(graph, n);
                changed = changed || node->is_const;
            }
        }
    }
}

/* Stacks the target's values that nothing reads: a match may have had an unread output, a target
 * may have an idle node. */
static uint32_t graft_push_idle(graft_application *a)
{
    uint32_t depth = 0;
    for (uint32_t n = 0; n < a->rule->target.node_count; n++) {
        for (uint32_t o = 0; o < graft_outputs_of(a->rule->target.nodes[n].op); o++) {
            const graft_index value = a->produced[n * GRAFT_MAX_OUTPUTS + o];
            if (a->scratch.use_count[value] == 0) {
                a->scratch.pending[depth++] = value;
            }
        }
    }
    return depth;
}

static bool graft_any_output_const(const graft_graph *graph, const graft_application *a)
{
    for (uint32_t i = 0; i < graft_rule_outputs(a->rule); i++) {
        if (graph->values[graft_produced_value(a, a->rule->target.outputs[i])].is_const) {
            return true;
        }
    }
    return false;
}

/* Everything has been decided: replaces the match. */
static void graft_replace_match(graft_graph *graph, graft_application *a, graft_effect *effect)
{
    const graft_rule *rule = a->rule;
    graft_index dead[GRAFT_RULE_MAX_OUTPUTS];
    for (uint32_t i = 0; i < graft_rule_outputs(rule); i++) {
        a->old[i] = graft_matched_output(graph, rule, a->match, i);
        dead[i] = a->old[i];
    }
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        effect->created[n] = graft_create_node(graph, a, n);
        graft_take_over_outputs(graph, a, n, dead);
    }
    graft_redirect_outputs(graph, a);
    bool became_const = graft_any_output_const(graph, a);
    uint32_t depth = graft_push_idle(a);
    for (uint32_t i = 0; i < graft_rule_outputs(rule); i++) {
        a->scratch.pending[depth++] = dead[i];
    }
    graft_remove_unused_values(graph, a->scratch.use_count, a->scratch.pending, depth);
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        if (graph->nodes[effect->created[n]].op == GRAFT_OP_NONE) {
            effect->created[n] = GRAFT_NONE;
        }
    }
    if (became_const) {
        graft_refresh_const(graph);
    }
}

/* Makes what was planned. */
static void graft_apply_planned(graft_graph *graph, graft_application *a, graft_effect *effect)
{
    graft_copy_bytes(a->scratch.use_count, a->order->use_count,
                     graph->value_end * sizeof(graft_index));
    graft_zero_bytes(effect, sizeof *effect);
    effect->weight_bytes = a->made->weight_bytes;
    effect->created_count = a->rule->target.node_count;
    effect->replaced_count = a->rule->source.node_count;
    graft_replace_match(graph, a, effect);
}

/* NOLINTNEXTLINE(readability-function-size): the interface. */
graft_status graft_apply(graft_graph *graph, const graft_rule *rule, const graft_match *match,
                         const graft_order *order, const graft_apply_options *options,
                         void *scratch, graft_effect *effect)
{
    graft_application application;
    graft_made made;
    graft_effect unused;
    graft_start_application(&application, rule, match, order, &made);
    graft_status status = graft_plan_match(graph, &application, options, scratch);
    if (status == GRAFT_OK) {
        graft_apply_planned(graph, &application, effect != NULL ? effect : &unused);
    }
    return status;
}

#endif
