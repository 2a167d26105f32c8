/* tasoexport.c - instances of rules as TASO's rules, and which of TASO's follow from ours. See
 * taso.h. */
#include "verify/command/taso.h"

#include "graph/base/file.h"
#include "verify/set/derive.h"
#include "verify/set/subsume.h"
#include "verify/sweep/domain.h"

#include <string.h>

enum { AXES = 4, POINTS = 6, ATTEMPTS = 60000, POINTS_LEAST = 2 };

static graft_domain sample_points(graft_env *env, const graft_rule *rule)
{
    graft_domain domain;
    const graft_domain_options options = {.points = POINTS, .attempts = ATTEMPTS, .seed = 7};
    graft_domain_find(env, env->unit, rule, &options, &domain);
    return domain;
}

/* Appends "merge, then drop": the rules of a derivation. */
static void name_derivation(graft_buffer *out, const graft_ruleset *set,
                            const graft_derivation *derivation)
{
    for (uint32_t i = 0; i < derivation->count; i++) {
        graft_buffer_printf(out, "%s%s", i > 0 ? ", then " : "",
                            set->entries[derivation->steps[i]].name);
    }
}

static bool follows(graft_env *env, const graft_rulebook *book, const graft_rule *rule,
                    const graft_domain *domain, graft_derivation *first)
{
    graft_deriver *deriver = graft_deriver_new(env->scratch);
    bool does = domain->count > 0;
    for (uint32_t i = 0; i < domain->count && does; i++) {
        graft_derivation derivation = {0};
        does = graft_derive(deriver, rule, &domain->points[i], book, GRAFT_DERIVATION_STEPS, false,
                            &derivation);
        *first = i == 0 ? derivation : *first;
    }
    return does;
}

/* The same as equations; `first` are the derivations from both sides. */
static bool follows_as_equations(graft_env *env, const graft_rulebook *book, const graft_rule *rule,
                                 const graft_domain *domain, graft_derivation first[2])
{
    graft_deriver *left = graft_deriver_new(env->scratch);
    graft_deriver *right = graft_deriver_new(env->scratch);
    bool does = domain->count > 0;
    for (uint32_t i = 0; i < domain->count && does; i++) {
        graft_derivation sides[2] = {{.count = 0}};
        does = graft_equate(left, right, rule, &domain->points[i], book, &sides[0], &sides[1]);
        if (i == 0) {
            memcpy(first, sides, sizeof sides);
        }
    }
    return does;
}

const char *graft_taso_implied(graft_env *env, graft_arena *arena, const graft_ruleset *set,
                               const graft_rule *rule, bool *as_equations)
{
    graft_domain domain = sample_points(env, rule);
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_derivation first[2] = {{.count = 0}};
    graft_buffer by = {.arena = arena};
    graft_rulebook book;
    graft_rulebook_open(&book, env->scratch);
    for (uint32_t i = 0; i < set->count; i++) {
        graft_rulebook_add(&book, &set->entries[i].rule, i);
    }
    *as_equations = false;
    if (follows(env, &book, rule, &domain, &first[0])) {
        name_derivation(&by, set, &first[0]);
    } else if (follows_as_equations(env, &book, rule, &domain, first)) {
        *as_equations = true;
        graft_buffer_printf(&by, "as equations: from the left by ");
        name_derivation(&by, set, &first[0]);
        graft_buffer_printf(&by, "%s", first[0].count == 0 ? "nothing" : "");
        graft_buffer_printf(&by, ", from the right by ");
        name_derivation(&by, set, &first[1]);
        graft_buffer_printf(&by, "%s", first[1].count == 0 ? "nothing" : "");
    }
    graft_arena_release(env->scratch, mark);
    return by.data;
}

/* ---------------------------------------------------------------- operators */

static void put(graft_taso_operator *op, graft_taso_key key, int32_t value)
{
    op->keys[op->parameter_count] = (int32_t)key;
    op->values[op->parameter_count++] = value;
}

/* Kernel, strides and padding of a convolution; false when TASO cannot say the padding. */
static bool put_window(graft_taso_operator *op, const int32_t *attrs, const graft_shape *weight)
{
    bool none = true;
    bool same = true;
    for (uint32_t i = 0; i < 2; i++) {
        int32_t kernel = weight->dims[2 + i];
        int32_t before = attrs[GRAFT_ATTR_conv_pad_top + i];
        int32_t after = attrs[GRAFT_ATTR_conv_pad_bottom + i];
        none = none && before == 0 && after == 0;
        same = same && attrs[GRAFT_ATTR_conv_stride_h + i] == 1 && before == (kernel - 1) / 2 &&
               after == kernel - 1 - before;
    }
    if ((!none && !same) || attrs[GRAFT_ATTR_conv_dilation_h] != 1 ||
        attrs[GRAFT_ATTR_conv_dilation_w] != 1) {
        return false;
    }
    put(op, GRAFT_TASO_KERNEL_H, weight->dims[2]);
    put(op, GRAFT_TASO_KERNEL_W, weight->dims[3]);
    put(op, GRAFT_TASO_STRIDE_H, attrs[GRAFT_ATTR_conv_stride_h]);
    put(op, GRAFT_TASO_STRIDE_W, attrs[GRAFT_ATTR_conv_stride_w]);
    put(op, GRAFT_TASO_PAD, same ? 0 : 1);
    put(op, GRAFT_TASO_ACTI, 0);
    return true;
}

static bool put_permutation(graft_taso_operator *op, const int32_t *attrs, uint8_t rank)
{
    int32_t digits = 0;
    if (rank == 0 || rank > AXES) {
        return false;
    }
    for (uint32_t i = 0; i < rank; i++) {
        digits = digits * rank + attrs[i];
    }
    put(op, GRAFT_TASO_NUMDIM, rank);
    put(op, GRAFT_TASO_PERM, digits);
    put(op, GRAFT_TASO_OUTSHUFFLE, 0);
    return true;
}

/* Element-wise on equal shapes, or a product with a scalar. */
static bool put_element(graft_taso_operator *op, uint32_t from, const graft_shape *in)
{
    bool equal = graft_shape_equal(&in[0], &in[1]);
    op->type = from == GRAFT_OP_add ? GRAFT_TASO_EW_ADD : GRAFT_TASO_EW_MUL;
    if (!equal && from == GRAFT_OP_mul && in[1].rank == 0) {
        op->type = GRAFT_TASO_MUL;
        equal = true;
    }
    return equal && in[0].rank > 0;
}

static bool put_operator(graft_taso_operator *op, const graft_side *side, uint32_t n,
                         const graft_shape *in)
{
    const int32_t *attrs = side->attrs[n];
    switch (side->pattern->nodes[n].op) {
    case GRAFT_OP_conv:
        op->type = GRAFT_TASO_CONV2D;
        return put_window(op, attrs, &in[1]);
    case GRAFT_OP_matmul:
        op->type = GRAFT_TASO_MATMUL;
        put(op, GRAFT_TASO_ACTI, 0);
        return in[0].rank == 2 && in[1].rank == 2;
    case GRAFT_OP_relu:
        op->type = GRAFT_TASO_RELU;
        return true;
    case GRAFT_OP_sigmoid:
        op->type = GRAFT_TASO_SIGMOID;
        return true;
    case GRAFT_OP_tanh:
        op->type = GRAFT_TASO_TANH;
        return true;
    case GRAFT_OP_add:
    case GRAFT_OP_mul:
        return put_element(op, side->pattern->nodes[n].op, in);
    case GRAFT_OP_concat:
        op->type = GRAFT_TASO_CONCAT;
        put(op, GRAFT_TASO_NUM_INPUTS, 2);
        put(op, GRAFT_TASO_AXIS, attrs[GRAFT_ATTR_concat_axis]);
        put(op, GRAFT_TASO_NUMDIM, in[0].rank);
        return in[0].rank <= AXES;
    case GRAFT_OP_split:
        op->type = GRAFT_TASO_SPLIT;
        put(op, GRAFT_TASO_NUM_OUTPUTS, 2);
        put(op, GRAFT_TASO_AXIS, attrs[GRAFT_ATTR_split_axis]);
        return in[0].rank <= AXES;
    case GRAFT_OP_transpose:
        op->type = GRAFT_TASO_TRANSPOSE;
        return put_permutation(op, attrs, in[0].rank);
    default:
        return false;
    }
}

/* ------------------------------------------------------------------- rules */

static graft_taso_tensor name_operand(graft_operand x, const uint8_t *places)
{
    if (!GRAFT_OPERAND_IS_NODE(x)) {
        return (graft_taso_tensor){-1 - (int32_t)x, 0};
    }
    return (graft_taso_tensor){places[GRAFT_OPERAND_NODE_OF(x)], (int32_t)GRAFT_OPERAND_SLOT_OF(x)};
}

static bool write_side(const graft_instance *instance, const graft_side *side, uint32_t which,
                       graft_taso_rule *to)
{
    graft_taso_operator *ops = which == 0 ? to->source : to->target;
    uint8_t places[GRAFT_RULE_MAX_NODES] = {0};
    for (uint32_t k = 0; k < side->pattern->node_count; k++) {
        uint32_t n = side->order[k];
        const graft_pattern_node *node = &side->pattern->nodes[n];
        graft_shape in[GRAFT_MAX_INPUTS];
        memset(in, 0, sizeof in);
        places[n] = (uint8_t)k;
        ops[k].input_count = graft_op(node->op)->input_count;
        for (uint32_t i = 0; i < ops[k].input_count; i++) {
            in[i] = *graft_instance_shape(instance, side, node->inputs[i]);
            ops[k].inputs[i] = name_operand(node->inputs[i], places);
        }
        if (!put_operator(&ops[k], side, n, in)) {
            return false;
        }
    }
    *(which == 0 ? &to->source_count : &to->target_count) = side->pattern->node_count;
    to->output_count = instance->rule->output_count;
    for (uint32_t i = 0; i < to->output_count; i++) {
        if (!GRAFT_OPERAND_IS_NODE(side->pattern->outputs[i])) {
            return false; /* TASO's rules give outputs of operators only. */
        }
        to->outputs[i][which] = name_operand(side->pattern->outputs[i], places);
    }
    return true;
}

/* Whether what was written, read back, is a case of the rule. */
static bool reads_back(graft_env *env, const graft_taso_rule *written, const graft_rule *rule)
{
    graft_rule again;
    if (graft_taso_import(env, env->unit, written, &again) != NULL) {
        return false;
    }
    graft_domain domain = sample_points(env, &again);
    return domain.count >= POINTS_LEAST &&
           graft_rule_follows(env, &again, domain.points, domain.count, rule);
}

/* Whether two rules are the same, by their bytes in a file. */
static bool same_rule(graft_env *env, const graft_taso_rule *a, const graft_taso_rule *b)
{
    uint8_t *bytes[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    graft_taso_encode(env->unit, a, 1, &bytes[0], &sizes[0]);
    graft_taso_encode(env->unit, b, 1, &bytes[1], &sizes[1]);
    return sizes[0] == sizes[1] && memcmp(bytes[0], bytes[1], sizes[0]) == 0;
}

void graft_taso_export(graft_env *env, const graft_rule *rule, const graft_point *points,
                       uint32_t count, graft_taso_rule *rules, uint32_t *written)
{
    uint32_t done = 0;
    for (uint32_t p = 0; p < count && done < GRAFT_TASO_EXPORTS; p++) {
        graft_mark mark = graft_arena_mark(env->unit);
        graft_instance instance;
        graft_taso_rule *one = &rules[done];
        memset(one, 0, sizeof *one);
        bool good = graft_instance_build(&instance, rule, &points[p]) == GRAFT_FIT_OK &&
                    write_side(&instance, &instance.source, 0, one) &&
                    write_side(&instance, &instance.target, 1, one);
        for (uint32_t i = 0; i < done && good; i++) {
            good = !same_rule(env, &rules[i], one);
        }
        done += good && reads_back(env, one, rule) ? 1 : 0;
        graft_arena_release(env->unit, mark);
    }
    *written = done;
}
