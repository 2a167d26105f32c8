/* instance.c - see instance.h. */
#include "verify/instances/instance.h"

#include "graph/base/file.h"
#include "graph/rule/pattern.h"
#include "graph/rule/ruleprint.h"
#include "graph/rule/ruletypes.h"

#include <string.h>

const graft_shape *graft_instance_shape(const graft_instance *instance, const graft_side *side,
                                        graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand)
               ? &side->shapes[GRAFT_OPERAND_NODE_OF(operand)][GRAFT_OPERAND_SLOT_OF(operand)]
               : &instance->vars[operand];
}

const graft_shape *graft_instance_output(const graft_instance *instance, uint32_t output)
{
    return graft_instance_shape(instance, &instance->source,
                                instance->source.pattern->outputs[output]);
}

const graft_attr_info *graft_slot_attr(const graft_rule *rule, uint32_t slot)
{
    for (uint32_t n = 0; n < rule->source.node_count; n++) {
        const graft_pattern_node *node = &rule->source.nodes[n];
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (node->attrs[i].kind == GRAFT_TERM_SLOT && node->attrs[i].value == (int32_t)slot) {
                return graft_op_attr(node->op, i);
            }
        }
    }
    static const graft_attr_info none = {.name = ""}; /* A valid rule mentions every slot. */
    return &none;
}

bool graft_point_compute(const graft_rule *rule, uint32_t offset, const graft_point *point,
                         int64_t *result)
{
    const graft_shape *vars[GRAFT_RULE_MAX_VARS];
    bool is_const[GRAFT_RULE_MAX_VARS];
    for (uint32_t v = 0; v < GRAFT_RULE_MAX_VARS; v++) {
        vars[v] = &point->vars[v];
        is_const[v] = true;
    }
    return graft_code_run(rule, offset, vars, is_const, point->slots, result);
}

static bool compute_attr(const graft_instance *instance, const graft_term *term, int32_t *value)
{
    int64_t result = term->value;
    if (term->kind == GRAFT_TERM_SLOT) {
        result = instance->point->slots[term->value];
    } else if (term->kind == GRAFT_TERM_CODE &&
               !graft_point_compute(instance->rule, (uint32_t)term->value, instance->point,
                                    &result)) {
        return false;
    }
    *value = (int32_t)result;
    return result >= INT32_MIN && result <= INT32_MAX;
}

static bool infer_node(graft_instance *instance, graft_side *side, uint32_t n)
{
    const graft_pattern_node *node = &side->pattern->nodes[n];
    const graft_op_info *info = graft_op(node->op);
    graft_shape in[GRAFT_MAX_INPUTS];
    memset(side->attrs[n], 0, sizeof side->attrs[n]);
    for (uint32_t i = 0; i < info->attr_count; i++) {
        if (!compute_attr(instance, &node->attrs[i], &side->attrs[n][i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < info->input_count; i++) {
        in[i] = *graft_instance_shape(instance, side, node->inputs[i]);
    }
    return graft_infer_shapes(node->op, side->attrs[n], in, side->shapes[n]) == GRAFT_OK;
}

static bool infer_side(graft_instance *instance, graft_side *side)
{
    graft_pattern_order(side->pattern, side->order);
    for (uint32_t i = 0; i < side->pattern->node_count; i++) {
        if (!infer_node(instance, side, side->order[i])) {
            return false;
        }
    }
    return true;
}

/* The first output that has another shape in the target; output_count: all are the same. */
static uint32_t find_misfit(const graft_instance *instance)
{
    uint32_t i = 0;
    while (i < instance->rule->output_count &&
           graft_shape_equal(graft_instance_output(instance, i),
                             graft_instance_shape(instance, &instance->target,
                                                  instance->target.pattern->outputs[i]))) {
        i++;
    }
    return i;
}

static void type_vars(graft_instance *instance)
{
    uint8_t types[GRAFT_RULE_MAX_VARS];
    memcpy(instance->vars, instance->point->vars, sizeof instance->vars);
    graft_rule_types(instance->rule, instance->point->slots, UINT64_MAX, types);
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        instance->vars[v].dtype = types[v];
    }
}

graft_fit graft_instance_build(graft_instance *instance, const graft_rule *rule,
                               const graft_point *point)
{
    int64_t holds = 1;
    instance->rule = rule;
    instance->point = point;
    instance->source.pattern = &rule->source;
    instance->target.pattern = &rule->target;
    type_vars(instance);
    if (!infer_side(instance, &instance->source)) {
        return GRAFT_FIT_SOURCE;
    }
    if (rule->condition != 255 &&
        (!graft_point_compute(rule, rule->condition, point, &holds) || holds == 0)) {
        return GRAFT_FIT_CONDITION;
    }
    return infer_side(instance, &instance->target) && find_misfit(instance) == rule->output_count
               ? GRAFT_FIT_OK
               : GRAFT_FIT_TARGET;
}

/* Why shapes of one side do not fit; NULL when they do. Counts the operators that fit. */
static const char *explain_side(graft_arena *arena, graft_instance *instance, graft_side *side,
                                uint32_t *progress)
{
    const char *name = side == &instance->source ? "source" : "target";
    for (uint32_t k = 0; k < side->pattern->node_count; k++) {
        uint32_t n = side->order[k];
        const graft_pattern_node *node = &side->pattern->nodes[n];
        const graft_op_info *info = graft_op(node->op);
        graft_shape in[GRAFT_MAX_INPUTS];
        for (uint32_t i = 0; i < info->attr_count; i++) {
            if (!compute_attr(instance, &node->attrs[i], &side->attrs[n][i])) {
                return graft_arena_printf(arena, "%s: %s of %s has no value", name,
                                          graft_op_attr(node->op, i)->name, info->name);
            }
        }
        for (uint32_t i = 0; i < info->input_count; i++) {
            in[i] = *graft_instance_shape(instance, side, node->inputs[i]);
        }
        if (!infer_node(instance, side, n)) {
            return graft_arena_printf(arena, "%s: %s: %s", name, info->name,
                                      graft_infer_explain(node->op, side->attrs[n], in));
        }
        (*progress)++;
    }
    return NULL;
}

/* "2x3"; "scalar". */
static const char *print_shape(graft_arena *arena, const graft_shape *shape)
{
    graft_buffer out = {.arena = arena};
    for (uint32_t i = 0; i < shape->rank; i++) {
        graft_buffer_printf(&out, "%s%d", i > 0 ? "x" : "", shape->dims[i]);
    }
    return shape->rank == 0 ? "scalar" : out.data;
}

static const char *explain_outputs(graft_arena *arena, const graft_instance *instance)
{
    uint32_t i = find_misfit(instance);
    return graft_arena_printf(
        arena, "target: output %u is %s, in the source %s", i,
        print_shape(arena, graft_instance_shape(instance, &instance->target,
                                                instance->target.pattern->outputs[i])),
        print_shape(arena, graft_instance_output(instance, i)));
}

const char *graft_instance_explain(graft_arena *arena, const graft_rule *rule,
                                   const graft_point *point, uint32_t *progress)
{
    graft_instance instance;
    memset(&instance, 0, sizeof instance);
    uint32_t fitting = 0;
    graft_fit fit = graft_instance_build(&instance, rule, point);
    const char *why = NULL;
    if (fit != GRAFT_FIT_OK) {
        why = explain_side(arena, &instance, &instance.source, &fitting);
        if (why == NULL && fit == GRAFT_FIT_CONDITION) {
            why = "where: it is false";
        }
        if (why == NULL) {
            why = explain_side(arena, &instance, &instance.target, &fitting);
        }
        why = why == NULL ? explain_outputs(arena, &instance) : why;
    }
    if (progress != NULL) {
        *progress = fitting;
    }
    return why;
}

static uint64_t side_work(const graft_instance *instance, const graft_side *side)
{
    uint64_t work = 0;
    for (uint32_t n = 0; n < side->pattern->node_count; n++) {
        const graft_pattern_node *node = &side->pattern->nodes[n];
        graft_shape in[GRAFT_MAX_INPUTS];
        for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
            in[i] = *graft_instance_shape(instance, side, node->inputs[i]);
        }
        work += graft_op_flops(node->op, side->attrs[n], in, side->shapes[n]) +
                graft_shape_elements(&side->shapes[n][0]);
    }
    return work;
}

uint64_t graft_instance_work(const graft_instance *instance)
{
    return side_work(instance, &instance->source) + side_work(instance, &instance->target);
}

const char *graft_point_print(graft_arena *arena, const graft_rule *rule, const graft_point *point)
{
    graft_buffer out = {.arena = arena};
    for (uint32_t v = 0; v < rule->var_count; v++) {
        graft_buffer_printf(&out, "%s%c: %s", v > 0 ? ", " : "", 'a' + (int)v,
                            print_shape(arena, &point->vars[v]));
    }
    for (uint32_t s = 0; s < rule->slot_count; s++) {
        graft_buffer_printf(&out, "%s%s=%d", s > 0 ? ", " : "; ",
                            graft_rule_print_slot(arena, rule, s), point->slots[s]);
    }
    return out.data == NULL ? "" : out.data;
}
