/* finder.c - what enumerating and sampling share: the plan, and how a point grows. See finder.h. */
#include "verify/sweep/finder.h"

#include "graph/rule/pattern.h"
#include "graph/rule/ruletypes.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

/* An operator whose first `inputs` inputs and attributes are checked as those of another, so that a
 * misfit is seen before the remaining inputs are chosen. */
static const struct {
    uint8_t op;
    uint8_t inputs;
    uint8_t as;
} early_checks[] = {
    {GRAFT_OP_conv_bias,     2, GRAFT_OP_conv       },
    {GRAFT_OP_conv_bias_add, 2, GRAFT_OP_conv       },
    {GRAFT_OP_conv_bias_add, 3, GRAFT_OP_conv_bias  },
    {GRAFT_OP_matmul_bias,   2, GRAFT_OP_matmul     },
    {GRAFT_OP_scale_shift,   2, GRAFT_OP_scale_shift},
};

static graft_step *add_step(graft_finder *f, graft_step_kind kind, uint32_t node)
{
    assert(f->step_count < GRAFT_STEPS_MOST);
    graft_step *s = &f->steps[f->step_count++];
    *s = (graft_step){.kind = (uint8_t)kind, .node = (uint8_t)node};
    return s;
}

static void plan_attrs(graft_finder *f, uint32_t n, uint64_t *slots)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    const graft_op_info *info = graft_op(node->op);
    for (uint32_t first = 0; first < info->attr_count;) {
        uint32_t width = graft_choices_width(node->op, first);
        uint64_t fresh = 0;
        for (uint32_t i = first; i < first + width; i++) {
            fresh |=
                node->attrs[i].kind == GRAFT_TERM_SLOT ? UINT64_C(1) << node->attrs[i].value : 0;
        }
        if ((fresh & ~*slots) != 0) {
            graft_step *s = add_step(f, GRAFT_STEP_ATTRS, n);
            s->index = (uint8_t)first;
            s->width = (uint8_t)width;
            s->attr = graft_op_attr(node->op, first);
            s->is_number =
                width == 1 && (s->attr->kind == GRAFT_ATTR_INT || s->attr->kind == GRAFT_ATTR_DIM);
            s->is_groups = s->is_number && s->attr->role == GRAFT_ROLE_GROUPS;
            if (node->op != GRAFT_OP_transpose && node->op != GRAFT_OP_reshape) {
                s->fixed = graft_choices_attrs(f->env->scratch, node->op, first, NULL);
            }
            *slots |= fresh;
        }
        first += width;
    }
}

static void note_attrs(graft_finder *f, uint32_t n)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        if (node->attrs[i].kind == GRAFT_TERM_SLOT) {
            f->slot_attrs[n][f->slot_count[n]++] = (uint8_t)i;
        } else {
            f->source.attrs[n][i] = node->attrs[i].value;
        }
    }
}

static void plan_node(graft_finder *f, uint32_t n, uint32_t *vars, uint64_t *slots)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    const graft_op_info *info = graft_op(node->op);
    bool attrs_planned = false;
    note_attrs(f, n);
    add_step(f, GRAFT_STEP_NODE, n);
    for (uint32_t i = 0; i < info->input_count; i++) {
        graft_operand operand = node->inputs[i];
        if (!GRAFT_OPERAND_IS_NODE(operand) && (*vars >> operand & 1u) == 0) {
            add_step(f, GRAFT_STEP_VAR, n)->index = operand;
            *vars |= 1u << operand;
        }
        for (size_t k = 0; k < sizeof early_checks / sizeof early_checks[0]; k++) {
            if (early_checks[k].op == node->op && early_checks[k].inputs == i + 1) {
                if (!attrs_planned) {
                    plan_attrs(f, n, slots);
                }
                attrs_planned = true;
                graft_step *s = add_step(f, GRAFT_STEP_CHECK, n);
                s->as = early_checks[k].as;
                s->inputs = (uint8_t)(i + 1);
            }
        }
    }
    if (!attrs_planned) {
        plan_attrs(f, n, slots);
    }
    add_step(f, GRAFT_STEP_INFER, n);
}

bool graft_finder_has_window(uint32_t op)
{
    return op == GRAFT_OP_conv || op == GRAFT_OP_conv_bias || op == GRAFT_OP_conv_bias_add ||
           op == GRAFT_OP_max_pool || op == GRAFT_OP_avg_pool;
}

void graft_finder_plan(graft_finder *f)
{
    uint32_t vars = 0;
    uint64_t slots = 0;
    f->source.pattern = &f->rule->source;
    graft_pattern_order(&f->rule->source, f->source.order);
    for (uint32_t i = 0; i < f->rule->source.node_count; i++) {
        plan_node(f, f->source.order[i], &vars, &slots);
        f->images = f->images || graft_finder_has_window(f->rule->source.nodes[i].op);
    }
}

/* --------------------------------------------------------------- inference */

bool graft_finder_has(const graft_finder *f, graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand) || (f->bound_vars >> operand & 1u) != 0;
}

const graft_shape *graft_finder_shape(const graft_finder *f, graft_operand operand)
{
    return GRAFT_OPERAND_IS_NODE(operand)
               ? &f->source.shapes[GRAFT_OPERAND_NODE_OF(operand)][GRAFT_OPERAND_SLOT_OF(operand)]
               : &f->point.vars[operand];
}

/* The attributes of a node, as far as they are chosen. */
static const int32_t *read_attrs(graft_finder *f, uint32_t n)
{
    const graft_pattern_node *node = &f->rule->source.nodes[n];
    int32_t *attrs = f->source.attrs[n];
    for (uint32_t i = 0; i < f->slot_count[n]; i++) {
        uint32_t at = f->slot_attrs[n][i];
        attrs[at] = f->point.slots[node->attrs[at].value];
    }
    return attrs;
}

/* Whether the chosen inputs fit; remembers the output as a proposal for those not chosen yet. */
bool graft_finder_check(graft_finder *f, const graft_step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    int32_t attrs[GRAFT_MAX_ATTRS] = {0}; /* Those of `as`; it has no more. */
    graft_shape in[GRAFT_MAX_INPUTS];
    graft_shape out[GRAFT_MAX_OUTPUTS];
    memcpy(attrs, read_attrs(f, s->node), graft_op(s->as)->attr_count * sizeof *attrs);
    for (uint32_t i = 0; i < graft_op(s->as)->input_count; i++) {
        in[i] = *graft_finder_shape(f, node->inputs[i < s->inputs ? i : s->inputs - 1u]);
    }
    if (graft_infer_shapes(s->as, attrs, in, out) != GRAFT_OK) {
        return false;
    }
    f->partial[s->node] = out[0];
    return true;
}

bool graft_finder_infer(graft_finder *f, const graft_step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    graft_shape in[GRAFT_MAX_INPUTS];
    uint8_t types[GRAFT_RULE_MAX_VARS];
    graft_rule_types(f->rule, f->point.slots, f->bound_slots, types);
    for (uint32_t i = 0; i < graft_op(node->op)->input_count; i++) {
        in[i] = *graft_finder_shape(f, node->inputs[i]);
        in[i].dtype = GRAFT_OPERAND_IS_NODE(node->inputs[i]) ? in[i].dtype : types[node->inputs[i]];
    }
    return graft_infer_shapes(node->op, read_attrs(f, s->node), in, f->source.shapes[s->node]) ==
           GRAFT_OK;
}

/* ----------------------------------------------------------------- choosing */

void graft_finder_bind_var(graft_finder *f, uint32_t var, graft_shape shape)
{
    f->point.vars[var] = shape;
    f->bound_vars |= 1u << var;
}

/* Whether a tuple agrees with the constants and the slots that have values. */
bool graft_finder_agrees(const graft_finder *f, const graft_step *s, const int32_t *tuple)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    graft_point trial; /* Only the slots of this tuple are read. */
    uint64_t bound = f->bound_slots;
    for (uint32_t i = 0; i < s->width; i++) {
        const graft_term *term = &node->attrs[s->index + i];
        if (term->kind == GRAFT_TERM_CONST) {
            if (term->value != tuple[i]) {
                return false;
            }
            continue;
        }
        uint64_t bit = UINT64_C(1) << term->value;
        int32_t known = (f->bound_slots & bit) != 0 ? f->point.slots[term->value]
                        : (bound & bit) != 0        ? trial.slots[term->value]
                                                    : tuple[i];
        if (known != tuple[i]) {
            return false;
        }
        trial.slots[term->value] = tuple[i];
        bound |= bit;
    }
    return true;
}

void graft_finder_bind(graft_finder *f, const graft_step *s, const int32_t *tuple)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    for (uint32_t i = 0; i < s->width; i++) {
        const graft_term *term = &node->attrs[s->index + i];
        if (term->kind == GRAFT_TERM_SLOT) {
            f->point.slots[term->value] = tuple[i];
            f->bound_slots |= UINT64_C(1) << term->value;
        }
    }
}

graft_choices graft_finder_choices(graft_finder *f, const graft_step *s)
{
    const graft_pattern_node *node = &f->rule->source.nodes[s->node];
    return s->fixed.count > 0 ? s->fixed
                              : graft_choices_attrs(f->env->scratch, node->op, s->index,
                                                    graft_finder_shape(f, node->inputs[0]));
}

/* ------------------------------------------------------------------ points */

uint64_t graft_finder_hash(const graft_finder *f)
{
    uint8_t bytes[GRAFT_RULE_MAX_VARS * (GRAFT_MAX_RANK + 1) + GRAFT_RULE_MAX_SLOTS * 4];
    size_t size = 0;
    for (uint32_t v = 0; v < f->rule->var_count; v++) {
        bytes[size++] = f->point.vars[v].rank;
        for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
            bytes[size++] = (uint8_t)f->point.vars[v].dims[i];
        }
    }
    memcpy(&bytes[size], f->point.slots, f->rule->slot_count * sizeof f->point.slots[0]);
    size += f->rule->slot_count * sizeof f->point.slots[0];
    return XXH3_64bits(bytes, size) | 1u;
}

bool graft_finder_is_new(graft_finder *f, uint64_t hash)
{
    uint32_t at = (uint32_t)(hash >> 20) & (f->seen_capacity - 1);
    while (f->seen[at] != 0) {
        if (f->seen[at] == hash) {
            return false;
        }
        at = (at + 1) & (f->seen_capacity - 1);
    }
    f->seen[at] = hash;
    return true;
}

/* Keeps a new point. False when the caller has seen enough. */
bool graft_finder_keep(graft_finder *f)
{
    const graft_domain_options *o = f->options;
    graft_point *point = &f->domain->points[f->domain->count++];
    *point = f->point;
    f->is_enough = f->is_sampling && o->visit != NULL && !o->visit(o->context, point);
    return !f->is_enough;
}
