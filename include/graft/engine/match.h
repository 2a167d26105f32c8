/* match.h - enumerating the places where a rule's source pattern fits.
 *
 * Backtracking over the pattern's nodes in order, without recursion. An alternative of a pattern
 * node is (candidate, swap): the candidate is a graph node, swap exchanges the first two operands
 * of a commutative operator. A node that an earlier one reads has a single candidate, the producer
 * of that value; a further root takes its candidates from the readers of an operand that is already
 * bound, or else from all nodes. What is bound is kept as bit masks, one set per level, so that
 * going back is restoring masks. */
#ifndef GRAFT_ENGINE_MATCH_H
#define GRAFT_ENGINE_MATCH_H

typedef enum graft_attempt {
    GRAFT_ATTEMPT_BOUND,
    GRAFT_ATTEMPT_FAILED,   /* This alternative does not fit. */
    GRAFT_ATTEMPT_EXHAUSTED /* Neither this one does nor are there further ones. */
} graft_attempt;

void graft_matcher_start(graft_matcher *matcher, const graft_rule *rule, const graft_graph *graph,
                         const graft_order *order, graft_index anchor)
{
    graft_zero_bytes(matcher, sizeof *matcher);
    matcher->rule = rule;
    matcher->graph = graph;
    matcher->order = order;
    matcher->match.nodes[0] = anchor;
}

/* Begins anew at another node, or with another rule that stands where the one before did. What was bound
 * stays written, and is not read before it is bound again. */
static void graft_restart_matcher(graft_matcher *matcher, uint32_t anchor)
{
    matcher->match.nodes[0] = (graft_index)anchor;
    matcher->choice[0] = 0;
    matcher->level = 0;
}

/* Bits of what is bound: variables, then pattern nodes, then slots. In two words, since shifting one of
 * 64 bits takes a Cortex-M many instructions. */
#define GRAFT_BOUND_NODE(n) (GRAFT_RULE_MAX_VARS + (n))
#define GRAFT_BOUND_SLOT(s) (GRAFT_RULE_MAX_VARS + GRAFT_RULE_MAX_NODES + (s))
typedef char graft_bound_needs_more_bits[GRAFT_BOUND_SLOT(GRAFT_RULE_MAX_SLOTS) <= 64 ? 1 : -1];

static bool graft_is_bound(const graft_matcher *matcher, uint32_t level, uint32_t bit)
{
    return (matcher->bound[level][bit / 32] >> bit % 32 & 1u) != 0;
}

/* Whether something is bound already at `level`; it is from now on. The bits of level + 1 start as those
 * of level. */
static GRAFT_APART bool graft_bind_bit(graft_matcher *matcher, uint32_t level, uint32_t bit)
{
    bool was = graft_is_bound(matcher, level + 1, bit);
    matcher->bound[level + 1][bit / 32] |= UINT32_C(1) << bit % 32;
    return was;
}

static bool graft_bind_slot(graft_matcher *matcher, uint32_t level, const graft_term *term,
                            int32_t value)
{
    if (term->kind == GRAFT_TERM_CONST) {
        return term->value == value;
    }
    int32_t *slot = &matcher->match.slots[term->value];
    if (graft_bind_bit(matcher, level, GRAFT_BOUND_SLOT((uint32_t)term->value))) {
        return *slot == value;
    }
    *slot = value;
    return true;
}

/* Whether two nodes are numbers that are equal. A graph may have one for each reader, a pattern has
 * one. */
static bool graft_is_same_number(const graft_graph *graph, uint32_t a, uint32_t b)
{
    bool same = GRAFT_IS(graph->nodes[a].op, fill) && GRAFT_IS(graph->nodes[b].op, fill);
    for (uint32_t i = 0; same && i < GRAFT_MAX_ATTRS; i++) {
        same = graph->nodes[a].attrs[i] == graph->nodes[b].attrs[i];
    }
    return same;
}

static bool graft_bind_operand(graft_matcher *matcher, uint32_t level, graft_operand operand,
                               uint32_t value)
{
    graft_index *place = NULL;
    uint32_t bit = operand;
    if (!GRAFT_OPERAND_IS_NODE(operand)) {
        place = &matcher->match.vars[operand];
    } else {
        const graft_value *v = &matcher->graph->values[value];
        uint32_t node = GRAFT_OPERAND_NODE_OF(operand);
        if (v->kind != GRAFT_VALUE_COMPUTED || v->slot != GRAFT_OPERAND_SLOT_OF(operand) ||
            matcher->graph->nodes[v->node].op != matcher->rule->source.nodes[node].op) {
            return false;
        }
        place = &matcher->match.nodes[node];
        bit = GRAFT_BOUND_NODE(node);
        value = v->node;
    }
    if (graft_bind_bit(matcher, level, bit)) {
        return *place == value || (GRAFT_OPERAND_IS_NODE(operand) &&
                                   graft_is_same_number(matcher->graph, *place, value));
    }
    *place = (graft_index)value;
    return true;
}

/* `swap` is 1 where the first two operands change places. */
static bool graft_bind_node(graft_matcher *matcher, uint32_t level, uint32_t n, uint32_t swap)
{
    const graft_pattern_node *pattern = &matcher->rule->source.nodes[level];
    const graft_node *node = &matcher->graph->nodes[n];
    if (node->op != pattern->op) {
        return false;
    }
    const graft_op_row *info = &graft_op_rows[pattern->op];
    const graft_index *inputs = &matcher->graph->edges[node->first_edge];
    if (swap != 0 && inputs[0] == inputs[1]) {
        return false; /* The unswapped alternative is the same match. */
    }
    matcher->bound[level + 1][0] = matcher->bound[level][0];
    matcher->bound[level + 1][1] = matcher->bound[level][1];
    if (GRAFT_RULE_OUTPUTS > 1) { /* With one root a node is bound by what reads it. */
        (void)graft_bind_bit(matcher, level, GRAFT_BOUND_NODE(level));
        matcher->match.nodes[level] = n;
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        if (!graft_bind_operand(matcher, level, pattern->inputs[i], inputs[i ^ swap])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < info->attr_count; i++) {
        if (!graft_bind_slot(matcher, level, &pattern->attrs[i], node->attrs[i])) {
            return false;
        }
    }
    return true;
}

/* The graph value of an operand that is bound at `level`, or GRAFT_NONE. */
static uint32_t graft_bound_value(const graft_matcher *matcher, uint32_t level,
                                  graft_operand operand)
{
    if (!GRAFT_OPERAND_IS_NODE(operand)) {
        return graft_is_bound(matcher, level, operand) ? matcher->match.vars[operand] : GRAFT_NONE;
    }
    uint32_t node = GRAFT_OPERAND_NODE_OF(operand);
    return graft_is_bound(matcher, level, GRAFT_BOUND_NODE(node))
               ? graft_node_output(matcher->graph, matcher->match.nodes[node],
                                   GRAFT_OPERAND_SLOT_OF(operand))
               : GRAFT_NONE;
}

/* Candidate k of a root that no earlier node reads; GRAFT_NONE behind the last one. */
static uint32_t graft_find_root(const graft_matcher *matcher, uint32_t level, uint32_t k)
{
    const graft_order *order = matcher->order;
    const graft_pattern_node *pattern = &matcher->rule->source.nodes[level];
    for (uint32_t i = 0; i < graft_op_rows[pattern->op].input_count; i++) {
        uint32_t value = graft_bound_value(matcher, level, pattern->inputs[i]);
        if (value != GRAFT_NONE) {
            uint32_t use = order->use_first[value] + k;
            return use < order->use_first[value + 1] ? order->uses[use] : GRAFT_NONE;
        }
    }
    return k < order->count ? order->order[k] : GRAFT_NONE;
}

static graft_attempt graft_try_alternative(graft_matcher *matcher, uint32_t level,
                                           uint32_t alternative)
{
    const graft_pattern_node *pattern = &matcher->rule->source.nodes[level];
    const uint32_t commutes = (graft_op_rows[pattern->op].flags & GRAFT_FLAG_COMMUTES) != 0 ? 1 : 0;
    const uint32_t swap = alternative & commutes;
    const uint32_t k = alternative >> commutes;
    bool single = GRAFT_RULE_OUTPUTS == 1 || level == 0 ||
                  graft_is_bound(matcher, level, GRAFT_BOUND_NODE(level));
    uint32_t n = k > 0 ? GRAFT_NONE : matcher->match.nodes[level];
    if (!single) {
        n = graft_find_root(matcher, level, k);
        uint32_t before = k > 0 ? graft_find_root(matcher, level, k - 1) : GRAFT_NONE;
        if (n != GRAFT_NONE && n == before) {
            return GRAFT_ATTEMPT_FAILED; /* It reads the value twice: tried already. */
        }
    }
    if (n == GRAFT_NONE) {
        return GRAFT_ATTEMPT_EXHAUSTED;
    }
    if (graft_bind_node(matcher, level, n, swap)) {
        return GRAFT_ATTEMPT_BOUND;
    }
    return single && swap == commutes ? GRAFT_ATTEMPT_EXHAUSTED : GRAFT_ATTEMPT_FAILED;
}

/* Readings of an operand by the nodes of a pattern. */
static uint32_t graft_count_readings(const graft_pattern *pattern, graft_operand operand)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < pattern->node_count; n++) {
        const graft_pattern_node *node = &pattern->nodes[n];
        for (uint32_t i = 0; i < graft_op_rows[node->op].input_count; i++) {
            count += node->inputs[i] == operand;
        }
    }
    return count;
}

static bool graft_gives_out(const graft_rule *rule, graft_operand operand)
{
    for (uint32_t i = 0; i < graft_rule_outputs(rule); i++) {
        if (rule->source.outputs[i] == operand) {
            return true;
        }
    }
    return false;
}

/* Pattern nodes are distinct graph nodes, what they pass among themselves is read by no other, and
 * what they give to others is not const. With one output the last two say the first: were two pattern
 * nodes one graph node, each would have all of its readers, two of which would be one as well, and so on
 * to node 0, which can be no other since it depends on all of them. A number may be read by others: it
 * stays for them. */
static bool graft_match_is_closed(const graft_matcher *matcher)
{
    const graft_rule *rule = matcher->rule;
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        uint32_t node = matcher->match.nodes[n];
        for (uint32_t m = 0; graft_rule_outputs(rule) > 1 && m < n; m++) {
            if (matcher->match.nodes[m] == node) {
                return false;
            }
        }
        for (uint32_t o = 0; o < graft_outputs_of(rule->source.nodes[n].op); o++) {
            uint32_t value = graft_node_output(matcher->graph, node, o);
            graft_operand x = GRAFT_OPERAND_NODE(n, o);
            if (graft_gives_out(rule, x) ? matcher->graph->values[value].is_const
                                         : !GRAFT_IS(rule->source.nodes[n].op, fill) &&
                                               matcher->order->use_count[value] !=
                                                   graft_count_readings(&rule->source, x)) {
                return false;
            }
        }
    }
    return true;
}

/* Runs byte code of the rule on the shapes and constness of the variables, and the slots. */
static GRAFT_APART bool graft_run_code(const graft_rule *rule, const graft_graph *graph,
                                       const graft_match *match, uint32_t offset, int64_t *result)
{
    const graft_shape *shapes[GRAFT_RULE_MAX_VARS];
    bool is_const[GRAFT_RULE_MAX_VARS];
    for (uint32_t v = 0; v < rule->var_count; v++) {
        shapes[v] = &graph->values[match->vars[v]].shape;
        is_const[v] = graph->values[match->vars[v]].is_const;
    }
    return graft_code_run(rule, offset, shapes, is_const, match->slots, result);
}

static bool graft_condition_holds(const graft_matcher *matcher)
{
    const graft_rule *rule = matcher->rule;
    int64_t result = 0;
    return rule->condition == 255 ||
           (graft_run_code(rule, matcher->graph, &matcher->match, rule->condition, &result) &&
            result != 0);
}

/* graft_matcher_next for an anchor that is not const, until it is false. What it finds is matcher->match. */
static bool graft_next_match(graft_matcher *matcher)
{
    const uint32_t last = matcher->rule->source.node_count - 1u;
    uint32_t level = matcher->level;
    for (;;) {
        graft_attempt attempt = graft_try_alternative(matcher, level, matcher->choice[level]++);
        if (attempt == GRAFT_ATTEMPT_BOUND && level < last) {
            matcher->choice[++level] = 0;
        } else if (attempt == GRAFT_ATTEMPT_BOUND) {
            if (graft_match_is_closed(matcher) && graft_condition_holds(matcher)) {
                matcher->level = (uint8_t)level;
                return true;
            }
        } else if (attempt == GRAFT_ATTEMPT_EXHAUSTED && level-- == 0) {
            return false;
        }
    }
}

bool graft_matcher_next(graft_matcher *matcher, graft_match *match)
{
    graft_index *anchor = &matcher->match.nodes[0];
    if (*anchor == GRAFT_NONE || matcher->graph->nodes[*anchor].is_const) {
        return false;
    }
    if (!graft_next_match(matcher)) {
        *anchor = GRAFT_NONE; /* Stay exhausted however often this is called. */
        return false;
    }
    *match = matcher->match;
    return true;
}

#endif
