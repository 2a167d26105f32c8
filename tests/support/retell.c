/* retell.c - see retell.h. */
#include "tests/support/retell.h"

#include "graph/base/arena.h"
#include "graph/rule/ruleparse.h"
#include "graph/rule/ruleprint.h"

#include <string.h>

enum { NO_CONDITION = 255 };

/* ----------------------------------------------------------------- variables */

static void rename_operands(graft_rule *rule, graft_pattern *side, const uint8_t *names)
{
    for (uint32_t n = 0; n < side->node_count; n++) {
        for (uint32_t k = 0; k < graft_op(side->nodes[n].op)->input_count; k++) {
            graft_operand *x = &side->nodes[n].inputs[k];
            *x = GRAFT_OPERAND_IS_NODE(*x) ? *x : GRAFT_OPERAND_VAR(names[*x]);
        }
    }
    for (uint32_t o = 0; o < rule->output_count; o++) {
        graft_operand *x = &side->outputs[o];
        *x = GRAFT_OPERAND_IS_NODE(*x) ? *x : GRAFT_OPERAND_VAR(names[*x]);
    }
}

static void rename_code(graft_rule *rule, const uint8_t *names)
{
    for (uint32_t at = 0; at < rule->code_bytes;) {
        uint32_t code = rule->code[at];
        bool has_var = code == GRAFT_CODE_DIM || code == GRAFT_CODE_RANK ||
                       code == GRAFT_CODE_IS_CONST || code == GRAFT_CODE_SAME;
        if (has_var) {
            rule->code[at + 1] = names[rule->code[at + 1]];
        }
        if (code == GRAFT_CODE_SAME) {
            rule->code[at + 2] = names[rule->code[at + 2]];
        }
        at += 1 + graft_code_operand_bytes(code);
    }
}

static void rename_variables(graft_rule *rule, const uint8_t *names)
{
    rename_operands(rule, &rule->source, names);
    rename_operands(rule, &rule->target, names);
    rename_code(rule, names);
}

static bool permute_variables(graft_rng *rng, graft_rule *rule)
{
    uint8_t names[GRAFT_RULE_MAX_VARS];
    if (rule->var_count < 2) {
        return false;
    }
    uint32_t shift = 1 + graft_rng_below(rng, rule->var_count - 1u);
    for (uint32_t v = 0; v < rule->var_count; v++) {
        names[v] = (uint8_t)((v + shift) % rule->var_count);
    }
    rename_variables(rule, names);
    return true;
}

/* The last variable becomes another. */
static bool identify_variables(graft_rng *rng, graft_rule *rule)
{
    uint8_t names[GRAFT_RULE_MAX_VARS];
    if (rule->var_count < 2) {
        return false;
    }
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS; v++) {
        names[v] = (uint8_t)v;
    }
    names[rule->var_count - 1] = (uint8_t)graft_rng_below(rng, rule->var_count - 1u);
    rename_variables(rule, names);
    rule->var_count--;
    return true;
}

/* ------------------------------------------------------------------- the rest */

static bool commute_operands(graft_rng *rng, graft_rule *rule)
{
    bool changed = false;
    for (uint32_t s = 0; s < 2; s++) {
        graft_pattern *side = s == 0 ? &rule->source : &rule->target;
        for (uint32_t n = 0; n < side->node_count; n++) {
            graft_pattern_node *node = &side->nodes[n];
            if ((graft_op(node->op)->flags & GRAFT_FLAG_COMMUTES) != 0 &&
                graft_rng_below(rng, 3) > 0) {
                graft_operand kept = node->inputs[0];
                node->inputs[0] = node->inputs[1];
                node->inputs[1] = kept;
                changed = true;
            }
        }
    }
    return changed;
}

/* "[x, y, z]" as "[y, z, x]". */
static const char *rotate_list(graft_arena *arena, const char *list)
{
    uint32_t depth = 0;
    size_t length = strlen(list);
    for (size_t i = 1; i + 1 < length; i++) {
        depth += list[i] == '(' || list[i] == '[' ? 1 : 0;
        depth -= list[i] == ')' || list[i] == ']' ? 1 : 0;
        if (list[i] == ',' && depth == 0) {
            return graft_arena_printf(arena, "[%.*s, %.*s]", (int)(length - i - 3), list + i + 2,
                                      (int)(i - 1), list + 1);
        }
    }
    return list;
}

static const char *reordered_text(graft_env *env, const graft_rule *rule)
{
    graft_rule_text text = graft_rule_print(env->unit, rule);
    return rule->output_count < 2
               ? NULL
               : graft_arena_printf(env->unit, "%s = %s%s%s", rotate_list(env->unit, text.source),
                                    rotate_list(env->unit, text.target),
                                    text.where[0] != '\0' ? " where " : "", text.where);
}

/* Values that are likely to fit somewhere, by the kind of attribute. */
static int32_t choose_value(graft_rng *rng, const graft_attr_info *info)
{
    static const float floats[] = {0.0F, 0.5F, 1.0F, 2.0F};
    int32_t value = info->least + (int32_t)graft_rng_below(rng, 2);
    if (info->kind == GRAFT_ATTR_FLOAT) {
        memcpy(&value, &floats[graft_rng_below(rng, 4)], sizeof value);
    }
    return value;
}

/* The constant in place of the slot, those after it one lower. */
static void put_constant(graft_rule *rule, int32_t slot, int32_t value)
{
    for (uint32_t s = 0; s < 2; s++) {
        graft_pattern *side = s == 0 ? &rule->source : &rule->target;
        for (uint32_t n = 0; n < side->node_count; n++) {
            for (uint32_t i = 0; i < graft_op(side->nodes[n].op)->attr_count; i++) {
                graft_term *term = &side->nodes[n].attrs[i];
                if (term->kind == GRAFT_TERM_SLOT && term->value == slot) {
                    *term = (graft_term){.kind = GRAFT_TERM_CONST, .value = value};
                } else if (term->kind == GRAFT_TERM_SLOT && term->value > slot) {
                    term->value--;
                }
            }
        }
    }
    for (uint32_t at = 0; at < rule->code_bytes;
         at += 1 + graft_code_operand_bytes(rule->code[at])) {
        if (rule->code[at] == GRAFT_CODE_SLOT && rule->code[at + 1] == slot) {
            rule->code[at] = GRAFT_CODE_CONST8;
            rule->code[at + 1] = (uint8_t)value;
        } else if (rule->code[at] == GRAFT_CODE_SLOT && rule->code[at + 1] > slot) {
            rule->code[at + 1]--;
        }
    }
    rule->slot_count--;
}

static bool code_mentions(const graft_rule *rule, int32_t slot)
{
    bool mentions = false;
    for (uint32_t at = 0; at < rule->code_bytes;
         at += 1 + graft_code_operand_bytes(rule->code[at])) {
        mentions = mentions || (rule->code[at] == GRAFT_CODE_SLOT && rule->code[at + 1] == slot);
    }
    return mentions;
}

static bool bind_slot(graft_rng *rng, graft_rule *rule)
{
    if (rule->slot_count == 0) {
        return false;
    }
    int32_t slot = (int32_t)graft_rng_below(rng, rule->slot_count);
    const graft_attr_info *info = NULL;
    for (uint32_t n = 0; n < rule->source.node_count && info == NULL; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count && info == NULL; i++) {
            bool is_it = node->attrs[i].kind == GRAFT_TERM_SLOT && node->attrs[i].value == slot;
            info = is_it ? graft_op_attr(node->op, i) : NULL;
        }
    }
    if (info == NULL || strncmp(info->name, "dim", 3) == 0 ||
        strncmp(info->name, "axis_", 5) == 0) {
        return false; /* Sizes and axes of a list are bound together or not at all. */
    }
    if (info->kind == GRAFT_ATTR_FLOAT && code_mentions(rule, slot)) {
        return false; /* Its bits take more room than the slot. */
    }
    put_constant(rule, slot, choose_value(rng, info));
    return true;
}

static const char *context_text(graft_env *env, graft_rng *rng, const graft_rule *rule)
{
    static const char *const around[][2] = {
        {"relu(",       ")"                         },
        {"tanh(",       ")"                         },
        {"add(",        ", fill(value=1.0, dim=[]))"},
        {"mul(",        ", fill(value=2.0, dim=[]))"},
        {"leaky_relu(", ", slope=0.5)"              },
        {"softmax(",    ", axis=0)"                 },
    };
    const char *const *pair = around[graft_rng_below(rng, sizeof around / sizeof around[0])];
    graft_rule_text text = graft_rule_print(env->unit, rule);
    if (rule->output_count != 1) {
        return NULL;
    }
    return graft_arena_printf(env->unit, "%s%s%s = %s%s%s%s%s", pair[0], text.source, pair[1],
                              pair[0], text.target, pair[1], text.where[0] != '\0' ? " where " : "",
                              text.where);
}

/* -------------------------------------------------------------------- public */

static const struct {
    const char *name;
    bool (*change)(graft_rng *rng, graft_rule *rule);
} classes[RETELL_CLASS_COUNT] = {
    [RETELL_RENAMED] = {"renamed",    permute_variables },
    [RETELL_COMMUTED] = {"commuted",   commute_operands  },
    [RETELL_REORDERED] = {"reordered",  NULL              },
    [RETELL_BOUND] = {"bound",      bind_slot         },
    [RETELL_IDENTIFIED] = {"identified", identify_variables},
    [RETELL_IN_CONTEXT] = {"in-context", NULL              },
};

const char *retell_class_name(uint32_t class) { return classes[class].name; }

bool retell_rule(graft_env *env, graft_rng *rng, const graft_rule *rule, uint32_t class,
                 graft_rule *told)
{
    graft_mark mark = graft_arena_mark(env->unit);
    graft_rule changed = *rule;
    const char *text = NULL;
    if (class == RETELL_IN_CONTEXT) {
        text = context_text(env, rng, rule);
    } else if (class == RETELL_REORDERED) {
        text = reordered_text(env, rule);
    } else if (classes[class].change(rng, &changed) && graft_rule_check(&changed) == NULL) {
        text = graft_rule_print_line(env->unit, &changed);
    }
    bool told_it = text != NULL && graft_rule_parse(env, "retold", text, told) == GRAFT_OK;
    graft_env_clear(env);
    graft_arena_release(env->unit, mark);
    return told_it;
}
