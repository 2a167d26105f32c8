/* reverse.c - see reverse.h. */
#include "verify/set/reverse.h"

#include "graph/rule/rulecode.h"
#include "verify/set/derive.h"
#include "verify/sweep/cover.h"

#include <string.h>

enum { NOT_MET = UINT8_MAX };

typedef struct {
    const graft_rule *from;
    graft_rule to;
    uint8_t source_node[GRAFT_RULE_MAX_NODES]; /* Of the new source, by old target node. */
    uint8_t target_node[GRAFT_RULE_MAX_NODES];
    uint8_t slot[GRAFT_RULE_MAX_SLOTS]; /* New slot, by old one. */
    uint32_t vars;                      /* Met, as bits. */
    bool too_long;
} turner;

/* ----------------------------------------------------------------- numbers */

static graft_operand turn_operand(const uint8_t *nodes, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? GRAFT_OPERAND_NODE(nodes[GRAFT_OPERAND_NODE_OF(x)], GRAFT_OPERAND_SLOT_OF(x))
               : x;
}

/* Numbers the nodes that an output needs: of the old target, which notes its variables, readers
 * first, of the old source producers. Patterns are at most GRAFT_RULE_MAX_NODES deep. */
static void number_nodes(turner *t, bool is_target, graft_operand x)
{
    const graft_pattern *side = is_target ? &t->from->target : &t->from->source;
    uint8_t *nodes = is_target ? t->source_node : t->target_node;
    uint32_t n = GRAFT_OPERAND_NODE_OF(x);
    if (!GRAFT_OPERAND_IS_NODE(x)) {
        t->vars |= is_target ? 1u << x : 0;
        return;
    }
    if (nodes[n] != NOT_MET) {
        return;
    }
    if (is_target) {
        nodes[n] = t->to.source.node_count++;
    }
    for (uint32_t i = 0; i < graft_op(side->nodes[n].op)->input_count; i++) {
        number_nodes(t, is_target, side->nodes[n].inputs[i]);
    }
    if (!is_target) {
        nodes[n] = t->to.target.node_count++;
    }
}

/* All but the attributes that are no constants. */
static void turn_node(const graft_pattern_node *node, const uint8_t *nodes, graft_pattern_node *to)
{
    to->op = node->op;
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        to->inputs[i] = turn_operand(nodes, node->inputs[i]);
    }
    memcpy(to->attrs, node->attrs, graft_op(node->op)->attr_count * sizeof *to->attrs);
}

/* -------------------------------------------------------------------- code */

static void emit(turner *t, uint8_t byte)
{
    if (t->to.code_bytes == GRAFT_RULE_MAX_CODE) {
        t->too_long = true;
    } else {
        t->to.code[t->to.code_bytes++] = byte;
    }
}

/* Copies the program at `at`, without its end, with new slots; false when it reads an old slot that
 * has no new one. */
static bool emit_program(turner *t, uint32_t at)
{
    const graft_rule *from = t->from;
    while (from->code[at] != GRAFT_CODE_END) {
        graft_code_step step = graft_code_at(from, at);
        bool slot = step.code == GRAFT_CODE_SLOT;
        if (slot && t->slot[step.index] == NOT_MET) {
            return false;
        }
        for (uint32_t next = graft_code_next(from, at); at < next; at++) {
            emit(t, slot && at > step.at ? t->slot[step.index] : from->code[at]);
        }
    }
    return true;
}

/* The precondition: the old one, and that every computed attribute has the value computed. The
 * slots of these follow those that the target names. */
static bool emit_condition(turner *t, uint32_t first_computed)
{
    uint32_t slot = first_computed;
    uint32_t parts = 0;
    t->to.condition = t->to.code_bytes;
    if (t->from->condition != 255) {
        if (!emit_program(t, t->from->condition)) {
            return false;
        }
        parts++;
    }
    for (uint32_t n = 0; n < t->from->target.node_count; n++) {
        const graft_pattern_node *node = &t->from->target.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (t->source_node[n] == NOT_MET || node->attrs[i].kind != GRAFT_TERM_CODE) {
                continue;
            }
            emit(t, GRAFT_CODE_SLOT);
            emit(t, (uint8_t)slot++);
            if (!emit_program(t, (uint32_t)node->attrs[i].value)) {
                return false;
            }
            emit(t, GRAFT_CODE_EQ);
            if (parts++ > 0) {
                emit(t, GRAFT_CODE_AND);
            }
        }
    }
    emit(t, GRAFT_CODE_END);
    if (parts == 0) {
        t->to.condition = 255;
        t->to.code_bytes = 0;
    }
    return true;
}

/* ------------------------------------------------------------------ pattern */

/* Slots that the old target names keep being slots, in the order of their mention. */
static void turn_slots(turner *t)
{
    for (uint32_t n = 0; n < t->from->target.node_count; n++) {
        const graft_pattern_node *node = &t->from->target.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            const graft_term *term = &node->attrs[i];
            if (t->source_node[n] != NOT_MET && term->kind == GRAFT_TERM_SLOT &&
                t->slot[term->value] == NOT_MET) {
                t->slot[term->value] = t->to.slot_count++;
            }
        }
    }
}

/* False when there are too many slots. */
static bool turn_source(turner *t)
{
    uint32_t computed = t->to.slot_count;
    for (uint32_t n = 0; n < t->from->target.node_count; n++) {
        const graft_pattern_node *node = &t->from->target.nodes[n];
        if (t->source_node[n] == NOT_MET) {
            continue;
        }
        graft_pattern_node *to = &t->to.source.nodes[t->source_node[n]];
        turn_node(node, t->source_node, to);
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT) {
                to->attrs[i].value = t->slot[node->attrs[i].value];
            } else if (node->attrs[i].kind == GRAFT_TERM_CODE) {
                to->attrs[i] = (graft_term){(int32_t)computed++, GRAFT_TERM_SLOT};
            }
        }
    }
    if (computed > GRAFT_RULE_MAX_SLOTS) {
        return false;
    }
    t->to.slot_count = (uint8_t)computed;
    return true;
}

/* False when the old source has an attribute that the old target does not name. */
static bool turn_target(turner *t)
{
    for (uint32_t n = 0; n < t->from->source.node_count; n++) {
        const graft_pattern_node *node = &t->from->source.nodes[n];
        graft_pattern_node *to = &t->to.target.nodes[t->target_node[n]];
        turn_node(node, t->target_node, to);
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT) {
                if (t->slot[node->attrs[i].value] == NOT_MET) {
                    return false;
                }
                to->attrs[i].value = t->slot[node->attrs[i].value];
            }
        }
    }
    return true;
}

static void start(turner *t, const graft_rule *rule)
{
    memset(t, 0, sizeof *t);
    t->from = rule;
    t->to.var_count = rule->var_count;
    t->to.output_count = rule->output_count;
    memset(t->source_node, NOT_MET, sizeof t->source_node);
    memset(t->target_node, NOT_MET, sizeof t->target_node);
    memset(t->slot, NOT_MET, sizeof t->slot);
    for (uint32_t i = 0; i < rule->output_count; i++) {
        number_nodes(t, true, rule->target.outputs[i]);
        number_nodes(t, false, rule->source.outputs[i]);
    }
}

const char *graft_rule_reverse(const graft_rule *rule, graft_rule *reversed)
{
    turner t;
    start(&t, rule);
    for (uint32_t i = 0; i < rule->output_count; i++) {
        if (!GRAFT_OPERAND_IS_NODE(rule->target.outputs[i])) {
            return "its target is an input: there is no operator to match";
        }
        t.to.source.outputs[i] = turn_operand(t.source_node, rule->target.outputs[i]);
        t.to.target.outputs[i] = turn_operand(t.target_node, rule->source.outputs[i]);
    }
    if (t.vars != (1u << rule->var_count) - 1u) {
        return "its target does not name every input";
    }
    turn_slots(&t);
    uint32_t computed = t.to.slot_count;
    if (!turn_target(&t)) {
        return "its target does not name every attribute of the source";
    }
    if (!turn_source(&t) || !emit_condition(&t, computed) || t.too_long) {
        return "it needs more attributes or byte code than a rule can have";
    }
    const char *fault = graft_rule_check(&t.to);
    if (fault == NULL) {
        *reversed = t.to;
    }
    return fault;
}

bool graft_rule_reverse_point(const graft_rule *rule, const graft_rule *reversed,
                              const graft_point *point, graft_point *turned)
{
    graft_instance instance;
    turner t;
    if (graft_instance_build(&instance, rule, point) != GRAFT_FIT_OK) {
        return false;
    }
    start(&t, rule);
    *turned = *point;
    memset(turned->slots, 0, sizeof turned->slots);
    for (uint32_t n = 0; n < rule->target.node_count; n++) {
        if (t.source_node[n] == NOT_MET) {
            continue;
        }
        const graft_pattern_node *node = &reversed->source.nodes[t.source_node[n]];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT) {
                turned->slots[node->attrs[i].value] = instance.target.attrs[n][i];
            }
        }
    }
    return graft_instance_build(&instance, reversed, turned) == GRAFT_FIT_OK;
}

enum { POINTS_COMPARED = 3 };

const char *graft_rule_find_reverse(graft_env *env, const graft_ruleset *set,
                                    const graft_rule_entry *entry, const graft_rule *reversed)
{
    graft_point *points = NULL;
    graft_point turned[POINTS_COMPARED];
    uint32_t count = 0;
    if (!graft_cover_unpack(env->unit, &entry->rule, entry->cover_points, entry->cover_bytes,
                            entry->cover, &points)) {
        return NULL;
    }
    for (uint32_t i = 0; i < entry->cover && count < POINTS_COMPARED; i++) {
        count +=
            graft_rule_reverse_point(&entry->rule, reversed, &points[i], &turned[count]) ? 1 : 0;
    }
    for (uint32_t i = 0; i < set->count && count > 0; i++) {
        const graft_rule *other = &set->entries[i].rule;
        /* Most cannot apply to its source, and trying takes long. */
        if (graft_pattern_has(&reversed->source, other->source.nodes[0].op) &&
            graft_rule_follows(env, reversed, turned, count, other)) {
            return set->entries[i].name;
        }
    }
    return NULL;
}
