/* narrow.c - see narrow.h. */
#include "verify/lift/narrow.h"

#include "graph/base/file.h"
#include "graph/rule/rulecode.h"
#include "graph/rule/ruleparse.h"
#include "graph/rule/ruleprint.h"

#include <string.h>

/* "rank(a) = 2 and same_shape(a, b)": what the variables were like. */
static const char *print_shapes(graft_arena *arena, const graft_rule *rule,
                                const graft_point *origin)
{
    graft_buffer text = {.arena = arena};
    for (uint32_t v = 0; v < rule->var_count; v++) {
        uint32_t first = 0;
        while (!graft_shape_equal(&origin->vars[first], &origin->vars[v])) {
            first++;
        }
        const char *joint = v == 0 ? "" : " and ";
        if (first < v) {
            graft_buffer_printf(&text, "%ssame_shape(%c, %c)", joint, 'a' + (int)first,
                                'a' + (int)v);
        } else {
            graft_buffer_printf(&text, "%srank(%c) = %u", joint, 'a' + (int)v,
                                (unsigned)origin->vars[v].rank);
        }
    }
    return text.data;
}

bool graft_rule_restate(graft_env *env, const char *source, const char *target, const char *where,
                        graft_rule *rule)
{
    GRAFT_SCOPED(env->scratch);
    graft_rule made;
    const char *joint = where[0] == 0 ? "" : " where ";
    const char *line =
        graft_arena_printf(env->scratch, "%s = %s%s%s", source, target, joint, where);
    bool valid = graft_rule_parse(env, "rule", line, &made) == GRAFT_OK;
    if (valid) {
        *rule = made;
    } else {
        graft_env_clear(env);
    }
    return valid;
}

bool graft_rule_narrow(graft_env *env, const graft_rule *rule, const graft_point *origin,
                       graft_rule *narrowed)
{
    GRAFT_SCOPED(env->scratch);
    graft_rule_text text = graft_rule_print(env->scratch, rule);
    const char *joint = text.where[0] == 0 ? "" : " and ";
    if (rule->var_count == 0) {
        return false;
    }
    const char *where = graft_arena_printf(
        env->scratch, "%s%s%s", print_shapes(env->scratch, rule, origin), joint, text.where);
    return graft_rule_restate(env, text.source, text.target, where, narrowed);
}

/* Where the part of a precondition that begins at `text` ends. */
static const char *part_end(const char *text)
{
    uint32_t depth = 0;
    for (; *text != 0 && (depth > 0 || strncmp(text, " and ", 5) != 0); text++) {
        depth += *text == '(' ? 1 : 0;
        depth -= *text == ')' ? 1 : 0;
    }
    return text;
}

bool graft_rule_without(graft_env *env, const graft_rule *rule, uint32_t part, graft_rule *weaker)
{
    GRAFT_SCOPED(env->scratch);
    graft_rule_text text = graft_rule_print(env->scratch, rule);
    graft_buffer where = {.arena = env->scratch};
    uint32_t count = 0;
    graft_buffer_printf(&where, "%s", "");
    for (const char *at = text.where; *at != 0; count++) {
        const char *end = part_end(at);
        if (count != part) {
            graft_buffer_printf(&where, "%s%.*s", where.data[0] == 0 ? "" : " and ",
                                (int)(end - at), at);
        }
        at = *end == 0 ? end : end + 5;
    }
    return part < count && graft_rule_restate(env, text.source, text.target, where.data, weaker);
}

/* ------------------------------------------------------------------ pinning */

uint64_t graft_rule_pinnable(const graft_rule *rule, bool loose)
{
    uint64_t slots = 0;
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            bool whole = graft_op_attr(node->op, i)->kind == GRAFT_ATTR_INT;
            if (whole && node->attrs[i].kind == GRAFT_TERM_SLOT) {
                slots |= UINT64_C(1) << node->attrs[i].value;
            }
        }
    }
    for (uint32_t n = 0; n < rule->target.node_count && loose; n++) {
        const graft_pattern_node *node = &rule->target.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT) {
                slots &= ~(UINT64_C(1) << node->attrs[i].value);
            }
        }
    }
    for (uint32_t at = 0; at < rule->code_bytes && loose; at = graft_code_next(rule, at)) {
        if (rule->code[at] == GRAFT_CODE_SLOT) {
            slots &= ~(UINT64_C(1) << rule->code[at + 1]);
        }
    }
    return slots;
}

/* The number of a slot once those in `gone` are no more. */
static uint8_t renumber_slot(int32_t slot, uint64_t gone)
{
    uint32_t number = 0;
    for (int32_t i = 0; i < slot; i++) {
        number += (gone >> i & 1u) == 0 ? 1 : 0;
    }
    return (uint8_t)number;
}

static void pin_side(graft_pattern *side, const graft_point *origin, uint64_t slots)
{
    for (uint32_t n = 0; n < side->node_count; n++) {
        graft_pattern_node *node = &side->nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            graft_term *term = &node->attrs[i];
            if (term->kind != GRAFT_TERM_SLOT) {
                continue;
            }
            bool pinned = (slots >> term->value & 1u) != 0;
            term->kind = pinned ? GRAFT_TERM_CONST : GRAFT_TERM_SLOT;
            term->value =
                pinned ? origin->slots[term->value] : (int32_t)renumber_slot(term->value, slots);
        }
    }
}

/* A slot and a small number take the same room. */
static void pin_code(graft_rule *rule, const graft_point *origin, uint64_t slots)
{
    for (uint32_t at = 0; at < rule->code_bytes; at = graft_code_next(rule, at)) {
        if (rule->code[at] == GRAFT_CODE_SLOT) {
            uint8_t slot = rule->code[at + 1];
            bool pinned = (slots >> slot & 1u) != 0;
            rule->code[at] = pinned ? GRAFT_CODE_CONST8 : GRAFT_CODE_SLOT;
            rule->code[at + 1] =
                pinned ? (uint8_t)(int8_t)origin->slots[slot] : renumber_slot(slot, slots);
        }
    }
}

bool graft_rule_pin(graft_env *env, const graft_found_rule *found, uint64_t slots,
                    graft_found_rule *pinned)
{
    graft_found_rule made = *found;
    for (uint32_t i = 0; i < found->rule.slot_count; i++) {
        int32_t value = found->origin.slots[i];
        if ((slots >> i & 1u) != 0 && (value < INT8_MIN || value > INT8_MAX)) {
            return false;
        }
        if ((slots >> i & 1u) == 0) {
            made.origin.slots[renumber_slot((int32_t)i, slots)] = value;
        }
    }
    made.rule.slot_count = renumber_slot(found->rule.slot_count, slots);
    pin_side(&made.rule.source, &found->origin, slots);
    pin_side(&made.rule.target, &found->origin, slots);
    pin_code(&made.rule, &found->origin, slots);
    GRAFT_SCOPED(env->scratch);
    graft_rule_text text = graft_rule_print(env->scratch, &made.rule);
    if (!graft_rule_restate(env, text.source, text.target, text.where, &made.rule)) {
        return false;
    }
    *pinned = made;
    return true;
}
