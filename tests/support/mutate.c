/* mutate.c - see mutate.h. */
#include "tests/support/mutate.h"

#include "graph/rule/rulefile.h"
#include "graph/rule/ruleparse.h"
#include "graph/rule/ruleprint.h"
#include "verify/lift/narrow.h"

#include <string.h>

/* ------------------------------------------------------------------ programs */

enum { NO_CONDITION = 255 };

/* A piece of byte code that leaves one number. */
typedef struct {
    uint32_t begin;
    uint32_t end;
} span;

/* Bytes of the program at `offset`, without its END. */
static uint32_t program_bytes(const graft_rule *rule, uint32_t offset)
{
    uint32_t at = offset;
    while (rule->code[at] != GRAFT_CODE_END) {
        at += 1 + graft_code_operand_bytes(rule->code[at]);
    }
    return at - offset;
}

/* Appends a program: `bytes` of `code`, then `tail`, then END. Its offset, or NO_CONDITION when
 * there is no room. */
static uint32_t append_program(graft_rule *rule, span code, const uint8_t *tail,
                               uint32_t tail_bytes)
{
    uint32_t bytes = code.end - code.begin;
    uint32_t offset = rule->code_bytes;
    if (offset + bytes + tail_bytes + 1 > GRAFT_RULE_MAX_CODE) {
        return NO_CONDITION;
    }
    memmove(&rule->code[offset], &rule->code[code.begin], bytes);
    memcpy(&rule->code[offset + bytes], tail, tail_bytes);
    rule->code[offset + bytes + tail_bytes] = GRAFT_CODE_END;
    rule->code_bytes = (uint8_t)(offset + bytes + tail_bytes + 1);
    return offset;
}

/* ------------------------------------------------------------------- classes */

typedef struct {
    graft_env *env;
    graft_rng *rng;
    graft_rule *rule; /* Being changed. */
} mutation;

static uint32_t below(mutation *m, uint32_t count) { return graft_rng_below(m->rng, count); }

static graft_pattern *pick_side(mutation *m)
{
    return below(m, 3) == 0 ? &m->rule->source : &m->rule->target;
}

static graft_pattern_node *pick_node(mutation *m, graft_pattern *side)
{
    return side->node_count == 0 ? NULL : &side->nodes[below(m, side->node_count)];
}

static bool swap_operands(mutation *m)
{
    graft_pattern_node *node = pick_node(m, pick_side(m));
    if (node == NULL || graft_op(node->op)->input_count < 2 ||
        (graft_op(node->op)->flags & GRAFT_FLAG_COMMUTES) != 0) {
        return false;
    }
    uint32_t i = below(m, graft_op(node->op)->input_count - 1u);
    graft_operand kept = node->inputs[i];
    node->inputs[i] = node->inputs[i + 1];
    node->inputs[i + 1] = kept;
    return true;
}

static bool replace_operand(mutation *m)
{
    graft_pattern_node *node = pick_node(m, &m->rule->target);
    if (node == NULL || graft_op(node->op)->input_count == 0 || m->rule->var_count < 2) {
        return false;
    }
    graft_operand *x = &node->inputs[below(m, graft_op(node->op)->input_count)];
    if (GRAFT_OPERAND_IS_NODE(*x)) {
        return false;
    }
    *x = GRAFT_OPERAND_VAR((*x + 1 + below(m, m->rule->var_count - 1u)) % m->rule->var_count);
    return true;
}

/* Operators in place of one another: those of a row. */
static const uint8_t alike[][8] = {
    {GRAFT_OP_add,   GRAFT_OP_sub,      GRAFT_OP_mul,       GRAFT_OP_div, GRAFT_OP_max, GRAFT_OP_min},
    {GRAFT_OP_relu,  GRAFT_OP_tanh,       GRAFT_OP_sigmoid,                         GRAFT_OP_exp, GRAFT_OP_sqrt, GRAFT_OP_erf,
     GRAFT_OP_gelu, GRAFT_OP_identity},
    {GRAFT_OP_reduce_sum,GRAFT_OP_reduce_max,GRAFT_OP_reduce_mean},
};

static bool replace_operator(mutation *m)
{
    graft_pattern_node *node = pick_node(m, &m->rule->target);
    for (uint32_t r = 0; node != NULL && r < sizeof alike / sizeof alike[0]; r++) {
        uint32_t count = 0;
        uint32_t mine = UINT32_MAX;
        for (; count < sizeof alike[r] && alike[r][count] != GRAFT_OP_NONE; count++) {
            mine = alike[r][count] == node->op ? count : mine;
        }
        if (mine != UINT32_MAX) {
            node->op = alike[r][(mine + 1 + below(m, count - 1)) % count];
            return true;
        }
    }
    return false;
}

/* What read output 0 of the node reads its first operand. */
static bool leave_out(mutation *m)
{
    graft_pattern *side = &m->rule->target;
    if (side->node_count == 0) {
        return false;
    }
    uint32_t n = below(m, side->node_count);
    graft_operand gone = GRAFT_OPERAND_NODE(n, 0);
    if (graft_op(side->nodes[n].op)->input_count == 0 ||
        graft_op(side->nodes[n].op)->output_count != 1) {
        return false;
    }
    for (uint32_t i = 0; i < side->node_count; i++) {
        for (uint32_t k = 0; k < graft_op(side->nodes[i].op)->input_count; k++) {
            side->nodes[i].inputs[k] = side->nodes[i].inputs[k] == gone ? side->nodes[n].inputs[0]
                                                                        : side->nodes[i].inputs[k];
        }
    }
    for (uint32_t o = 0; o < m->rule->output_count; o++) {
        side->outputs[o] = side->outputs[o] == gone ? side->nodes[n].inputs[0] : side->outputs[o];
    }
    return true;
}

static bool swap_outputs(mutation *m)
{
    graft_pattern *side = &m->rule->target;
    if (m->rule->output_count > 1) {
        uint32_t o = below(m, m->rule->output_count - 1u);
        graft_operand kept = side->outputs[o];
        side->outputs[o] = side->outputs[o + 1];
        side->outputs[o + 1] = kept;
        return true;
    }
    side = pick_side(m);
    graft_pattern_node *node = pick_node(m, side);
    for (uint32_t k = 0; node != NULL && k < graft_op(node->op)->input_count; k++) {
        graft_operand x = node->inputs[k];
        if (GRAFT_OPERAND_IS_NODE(x) &&
            graft_op(side->nodes[GRAFT_OPERAND_NODE_OF(x)].op)->output_count == 2) {
            node->inputs[k] =
                GRAFT_OPERAND_NODE(GRAFT_OPERAND_NODE_OF(x), 1u - GRAFT_OPERAND_SLOT_OF(x));
            return true;
        }
    }
    return false;
}

/* ---------------------------------------------------------------- conditions */

static bool drop_condition(mutation *m)
{
    graft_rule weaker;
    uint32_t count = 0;
    while (graft_rule_without(m->env, m->rule, count, &weaker)) {
        count++;
    }
    return count > 0 && graft_rule_without(m->env, m->rule, below(m, count), m->rule);
}

static bool weaken_condition(mutation *m)
{
    graft_rule *rule = m->rule;
    if (rule->condition == NO_CONDITION) {
        return false;
    }
    uint32_t end = rule->condition + program_bytes(rule, rule->condition);
    uint32_t places[GRAFT_RULE_MAX_CODE];
    uint32_t count = 0;
    for (uint32_t at = rule->condition; at < end;
         at += 1 + graft_code_operand_bytes(rule->code[at])) {
        uint32_t code = rule->code[at];
        if (code == GRAFT_CODE_EQ || code == GRAFT_CODE_LE || code == GRAFT_CODE_AND ||
            code == GRAFT_CODE_CONST8 || code == GRAFT_CODE_DIM || code == GRAFT_CODE_DIVIDES) {
            places[count++] = at;
        }
    }
    if (count == 0) {
        return false;
    }
    uint32_t at = places[below(m, count)];
    switch (rule->code[at]) {
    case GRAFT_CODE_EQ:
        rule->code[at] = GRAFT_CODE_LE;
        break;
    case GRAFT_CODE_AND:
        rule->code[at] = GRAFT_CODE_OR;
        break;
    case GRAFT_CODE_LE:
    case GRAFT_CODE_DIVIDES:
        rule->code[at] = rule->code[at] == GRAFT_CODE_LE ? GRAFT_CODE_DIVIDES : GRAFT_CODE_LE;
        break;
    case GRAFT_CODE_CONST8:
        rule->code[at + 1] = (uint8_t)(rule->code[at + 1] + (below(m, 2) == 0 ? 1u : 255u));
        break;
    default: /* The axis of a size. */
        rule->code[at + 2] = (uint8_t)(rule->code[at + 2] + (below(m, 2) == 0 ? 1u : 255u));
        break;
    }
    return true;
}

/* ---------------------------------------------------------------- attributes */

/* A random attribute of a side for which `wanted` is true. */
static graft_term *pick_attr(mutation *m, graft_pattern *side,
                             bool (*wanted)(const graft_term *, const graft_attr_info *),
                             const graft_pattern_node **owner)
{
    graft_term *found[GRAFT_RULE_MAX_NODES * GRAFT_MAX_ATTRS];
    const graft_pattern_node *owners[GRAFT_RULE_MAX_NODES * GRAFT_MAX_ATTRS];
    uint32_t count = 0;
    for (uint32_t n = 0; n < side->node_count; n++) {
        graft_pattern_node *node = &side->nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (wanted(&node->attrs[i], graft_op_attr(node->op, i))) {
                owners[count] = node;
                found[count++] = &node->attrs[i];
            }
        }
    }
    if (count == 0) {
        return NULL;
    }
    uint32_t k = below(m, count);
    *owner = owners[k];
    return found[k];
}

static bool is_slot(const graft_term *term, const graft_attr_info *info)
{
    (void)info;
    return term->kind == GRAFT_TERM_SLOT;
}

static bool is_constant(const graft_term *term, const graft_attr_info *info)
{
    return term->kind == GRAFT_TERM_CONST && strncmp(info->name, "dim", 3) != 0 &&
           strncmp(info->name, "axis_", 5) != 0;
}

static bool is_axis(const graft_term *term, const graft_attr_info *info)
{
    (void)term;
    return strncmp(info->name, "axis", 4) == 0 || strcmp(info->name, "axes") == 0;
}

static bool is_window(const graft_term *term, const graft_attr_info *info)
{
    (void)term;
    static const char *const stems[] = {"stride", "pad_", "dilation", "kernel", "groups", "count"};
    bool window = false;
    for (uint32_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        window = window || strncmp(info->name, stems[i], strlen(stems[i])) == 0;
    }
    return window;
}

static bool is_size(const graft_term *term, const graft_attr_info *info)
{
    return info->kind == GRAFT_ATTR_DIM && !(term->kind == GRAFT_TERM_CONST && term->value == 0);
}

static bool is_number(const graft_term *term, const graft_attr_info *info)
{
    return info->kind == GRAFT_ATTR_FLOAT && term->kind == GRAFT_TERM_CONST;
}

static bool is_activation(const graft_term *term, const graft_attr_info *info)
{
    return info->kind == GRAFT_ATTR_ACTIVATION && term->kind == GRAFT_TERM_CONST;
}

/* An attribute of whole numbers, one more or less. */
static bool shift_term(mutation *m, graft_term *term)
{
    int32_t by = below(m, 2) == 0 ? 1 : -1;
    if (term->kind == GRAFT_TERM_CONST) {
        term->value += by;
        return term->value >= 0;
    }
    const uint8_t tail[] = {GRAFT_CODE_CONST8, (uint8_t)(by > 0 ? 1 : 255), GRAFT_CODE_ADD};
    span code = {0, 0};
    if (term->kind == GRAFT_TERM_CODE) {
        code.begin = (uint32_t)term->value;
        code.end = code.begin + program_bytes(m->rule, code.begin);
    } else {
        const uint8_t slot[] = {GRAFT_CODE_SLOT, (uint8_t)term->value};
        code.begin = append_program(m->rule, code, slot, sizeof slot);
        code.end = code.begin + sizeof slot;
    }
    uint32_t offset = code.begin == NO_CONDITION ? NO_CONDITION
                                                 : append_program(m->rule, code, tail, sizeof tail);
    *term = (graft_term){.kind = GRAFT_TERM_CODE, .value = (int32_t)offset};
    return offset != NO_CONDITION;
}

static bool untie_attributes(mutation *m)
{
    const graft_pattern_node *owner = NULL;
    graft_term *term = pick_attr(m, &m->rule->source, is_slot, &owner);
    if (term == NULL || m->rule->slot_count == GRAFT_RULE_MAX_SLOTS) {
        return false;
    }
    for (uint32_t n = 0; n < m->rule->source.node_count; n++) {
        const graft_pattern_node *node = &m->rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (&node->attrs[i] != term && is_slot(&node->attrs[i], NULL) &&
                node->attrs[i].value == term->value) {
                term->value = m->rule->slot_count++;
                return true;
            }
        }
    }
    return false;
}

static bool free_attribute(mutation *m)
{
    const graft_pattern_node *owner = NULL;
    graft_term *term = pick_attr(m, &m->rule->source, is_constant, &owner);
    if (term == NULL || m->rule->slot_count == GRAFT_RULE_MAX_SLOTS) {
        return false;
    }
    *term = (graft_term){.kind = GRAFT_TERM_SLOT, .value = m->rule->slot_count++};
    return true;
}

static bool change_axis(mutation *m)
{
    const graft_pattern_node *owner = NULL;
    graft_term *term = pick_attr(m, &m->rule->target, is_axis, &owner);
    if (term != NULL && owner->op == GRAFT_OP_transpose) { /* Two axes change places. */
        graft_pattern_node *node = &m->rule->target.nodes[owner - m->rule->target.nodes];
        uint32_t i = below(m, 3);
        graft_term kept = node->attrs[i];
        node->attrs[i] = node->attrs[i + 1];
        node->attrs[i + 1] = kept;
        return kept.kind != node->attrs[i].kind || kept.value != node->attrs[i].value;
    }
    return term != NULL && shift_term(m, term);
}

/* Another of its kind (height for width, top for bottom), a constant, or one more or less. */
static bool change_window(mutation *m)
{
    const graft_pattern_node *owner = NULL;
    graft_term *term = pick_attr(m, &m->rule->target, is_window, &owner);
    if (term == NULL) {
        return false;
    }
    uint32_t index = (uint32_t)(term - owner->attrs);
    switch (below(m, 3)) {
    case 0: {
        uint32_t other = index > 0 && below(m, 2) == 0 ? index - 1 : index + 1;
        if (other >= graft_op(owner->op)->attr_count ||
            !is_window(NULL, graft_op_attr(owner->op, other))) {
            return false;
        }
        *term = owner->attrs[other];
        return true;
    }
    case 1:
        *term =
            (graft_term){.kind = GRAFT_TERM_CONST,
                         .value = graft_op_attr(owner->op, index)->least + (int32_t)below(m, 2)};
        return true;
    default:
        return shift_term(m, term);
    }
}

static bool change_size(mutation *m)
{
    const graft_pattern_node *owner = NULL;
    graft_term *term = pick_attr(m, &m->rule->target, is_size, &owner);
    return term != NULL && shift_term(m, term);
}

static bool change_number(mutation *m)
{
    static const float numbers[] = {0.0F, 0.5F, 1.0F, 2.0F, -1.0F, 0.25F};
    const graft_pattern_node *owner = NULL;
    graft_term *term = pick_attr(m, &m->rule->target, is_number, &owner);
    if (term == NULL) {
        return false;
    }
    memcpy(&term->value, &numbers[below(m, sizeof numbers / sizeof numbers[0])],
           sizeof term->value);
    return true;
}

static bool change_activation(mutation *m)
{
    const graft_pattern_node *owner = NULL;
    graft_term *term = pick_attr(m, &m->rule->target, is_activation, &owner);
    if (term == NULL) {
        return false;
    }
    term->value = (term->value + 1 + (int32_t)below(m, GRAFT_ACT_COUNT - 1)) % GRAFT_ACT_COUNT;
    return true;
}

/* -------------------------------------------------------------------- public */

static const struct {
    const char *name;
    bool (*change)(mutation *m);
} classes[MUTATE_CLASS_COUNT] = {
    [MUTATE_SWAPPED_OPERANDS] = {"swapped-operands",      swap_operands    },
    [MUTATE_OTHER_OPERAND] = {"other-operand",         replace_operand  },
    [MUTATE_OTHER_OPERATOR] = {"other-operator",        replace_operator },
    [MUTATE_LEFT_OUT] = {"left-out",              leave_out        },
    [MUTATE_SWAPPED_OUTPUTS] = {"swapped-outputs",       swap_outputs     },
    [MUTATE_DROPPED_CONDITION] = {"dropped-precondition",  drop_condition   },
    [MUTATE_WEAKENED_CONDITION] = {"weakened-precondition", weaken_condition },
    [MUTATE_UNTIED_ATTRIBUTES] = {"untied-attributes",     untie_attributes },
    [MUTATE_FREED_ATTRIBUTE] = {"freed-attribute",       free_attribute   },
    [MUTATE_WRONG_AXIS] = {"wrong-axis",            change_axis      },
    [MUTATE_WRONG_WINDOW] = {"wrong-window",          change_window    },
    [MUTATE_OFF_BY_ONE] = {"off-by-one",            change_size      },
    [MUTATE_WRONG_NUMBER] = {"wrong-number",          change_number    },
    [MUTATE_WRONG_ACTIVATION] = {"wrong-activation",      change_activation},
};

const char *mutate_class_name(uint32_t class) { return classes[class].name; }

/* Through its text and back: what is left over of old code is gone. */
static bool tidy_mutant(graft_env *env, const graft_rule *changed, const graft_rule *rule,
                        graft_rule *mutant)
{
    if (graft_rule_check(changed) != NULL) {
        return false;
    }
    graft_mark mark = graft_arena_mark(env->unit);
    const char *text = graft_rule_print_line(env->unit, changed);
    bool parsed = graft_rule_parse(env, "mutant", text, mutant) == GRAFT_OK;
    graft_env_clear(env);
    bool differs = parsed && strcmp(text, graft_rule_print_line(env->unit, rule)) != 0;
    graft_arena_release(env->unit, mark);
    return differs;
}

bool mutate_rule(graft_env *env, graft_rng *rng, const graft_rule *rule, uint32_t class,
                 graft_rule *mutant)
{
    graft_rule changed = *rule;
    mutation m = {env, rng, &changed};
    return classes[class].change(&m) && tidy_mutant(env, &changed, rule, mutant);
}
