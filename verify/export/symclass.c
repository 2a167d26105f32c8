/* symclass.c - see symclass.h. Axes are numbered by tensor and place, and tied by union-find. */
#include "verify/export/symclass.h"

#include "graph/rule/rulecode.h"
#include "verify/core/limits.h"
#include "verify/export/symaxes.h"

#include <string.h>

enum {
    TENSORS = GRAFT_RULE_MAX_VARS + 2 * GRAFT_RULE_MAX_NODES * GRAFT_MAX_OUTPUTS,
    AXES = TENSORS * GRAFT_MAX_RANK,
    AXIS_NONE = 255 /* In keys: a program reads an axis that is not there. */
};

_Static_assert((int)AXES <= (int)GRAFT_SYM_BUSY, "the number of a set of axes has 16 bits");
_Static_assert(GRAFT_ROOM_PROGRAM_DEPTH <= 32, "values on a program's stack are bits");

typedef struct {
    const graft_rule *rule;
    const graft_sym_case *c;
    graft_sym_class *result;
    uint16_t parent[AXES];
    bool busy[AXES]; /* Of a set's root: it is not idle. */
    bool failed;
} finder;

/* --------------------------------------------------------------- sets of axes */

/* A variable or an output of a node. */
typedef struct {
    uint32_t number;
    uint32_t rank;
} tensor;

static tensor var_of(const finder *f, uint32_t v) { return (tensor){v, (uint32_t)f->c->ranks[v]}; }

static tensor output_of(const finder *f, uint32_t side, uint32_t n, uint32_t output)
{
    uint32_t node = side * GRAFT_RULE_MAX_NODES + n;
    return (tensor){GRAFT_RULE_MAX_VARS + node * GRAFT_MAX_OUTPUTS + output,
                    (uint32_t)f->c->node_ranks[side][n]};
}

static tensor operand_of(const finder *f, uint32_t side, graft_operand x)
{
    return GRAFT_OPERAND_IS_NODE(x)
               ? output_of(f, side, GRAFT_OPERAND_NODE_OF(x), GRAFT_OPERAND_SLOT_OF(x))
               : var_of(f, x);
}

static uint32_t root_of(const finder *f, tensor t, uint32_t axis)
{
    uint32_t i = t.number * GRAFT_MAX_RANK + axis;
    while (f->parent[i] != i) {
        i = f->parent[i];
    }
    return i;
}

static void tie(finder *f, tensor a, uint32_t axis_a, tensor b, uint32_t axis_b)
{
    uint32_t x = root_of(f, a, axis_a);
    uint32_t y = root_of(f, b, axis_b);
    f->busy[x] = f->busy[x] || f->busy[y];
    f->parent[y] = (uint16_t)x;
}

static void keep(finder *f, tensor t, uint32_t axis) { f->busy[root_of(f, t, axis)] = true; }

static void keep_all(finder *f, tensor t)
{
    for (uint32_t i = 0; i < t.rank; i++) {
        keep(f, t, i);
    }
}

static bool is_idle(const finder *f, tensor t, uint32_t axis)
{
    return !f->busy[root_of(f, t, axis)];
}

/* Ties axes counted from the last one, but for the last `skipped`. */
static void tie_from_end(finder *f, tensor in, tensor out, uint32_t skipped)
{
    for (uint32_t back = skipped + 1; back <= in.rank && back <= out.rank; back++) {
        tie(f, out, out.rank - back, in, in.rank - back);
    }
}

/* ------------------------------------------------------------------ operators */

typedef struct {
    const graft_pattern_node *node;
    uint32_t in_count;
    uint32_t out_count;
    tensor in[GRAFT_MAX_INPUTS];
    tensor out[GRAFT_MAX_OUTPUTS];
} application;

static application open_node(const finder *f, uint32_t side, uint32_t n)
{
    application a = {.node = &graft_sym_pattern(f->rule, side)->nodes[n]};
    a.in_count = graft_op(a.node->op)->input_count;
    a.out_count = graft_op(a.node->op)->output_count;
    for (uint32_t i = 0; i < a.in_count; i++) {
        a.in[i] = operand_of(f, side, a.node->inputs[i]);
    }
    for (uint32_t o = 0; o < a.out_count; o++) {
        a.out[o] = output_of(f, side, n, o);
    }
    return a;
}

/* What attributes of a role that chooses among axes or modes lie below. */
static uint32_t bound_of(const application *a, uint32_t attr)
{
    const graft_attr_info *info = graft_op_attr(a->node->op, attr);
    switch (info->role) {
    case GRAFT_ROLE_AXIS:
        return a->in[0].rank;
    case GRAFT_ROLE_AXES:
        return 1u << a->in[0].rank;
    case GRAFT_ROLE_ORDER: /* Places past the rank are 0. */
        return attr < a->out[0].rank ? a->in[0].rank : 1;
    default:
        return UINT8_MAX;
    }
}

/* The value of an attribute that the case fixes, if it lies in its domain and below its bound. */
static uint32_t choice(finder *f, const application *a, uint32_t attr)
{
    const graft_attr_info *info = graft_op_attr(a->node->op, attr);
    int32_t value = 0;
    bool fits = graft_sym_case_attr(f->rule, f->c, a->node, attr, &value) && value >= info->least &&
                value <= info->most && value >= 0 && (uint32_t)value < bound_of(a, attr);
    f->failed = f->failed || !fits;
    return fits ? (uint32_t)value : 0;
}

static graft_sym_axes axes_of(finder *f, const application *a, uint32_t output)
{
    uint32_t ranks[GRAFT_MAX_INPUTS];
    int32_t choices[GRAFT_MAX_ATTRS] = {0};
    for (uint32_t i = 0; i < a->in_count; i++) {
        ranks[i] = a->in[i].rank;
    }
    for (uint32_t i = 0; i < graft_op(a->node->op)->attr_count; i++) {
        if (graft_sym_is_choice(a->node->op, i)) {
            choices[i] = (int32_t)choice(f, a, i);
        }
    }
    return graft_sym_axes_of(a->node->op, output, ranks, a->out[output].rank, choices);
}

static void tie_output(finder *f, const application *a, uint32_t output)
{
    const graft_sym_axes axes = axes_of(f, a, output);
    for (uint32_t i = 0; i < a->in_count; i++) {
        for (uint32_t k = 0; k < a->in[i].rank; k++) {
            for (uint32_t to = 0; to < a->out[output].rank; to++) {
                if ((axes.lined[i][k] >> to & 1u) != 0) {
                    tie(f, a->out[output], to, a->in[i], k);
                }
            }
            if ((axes.busy_in[i] >> k & 1u) != 0) {
                keep(f, a->in[i], k);
            }
        }
    }
    for (uint32_t to = 0; to < a->out[output].rank; to++) {
        if ((axes.busy >> to & 1u) != 0) {
            keep(f, a->out[output], to);
        }
    }
}

static void tie_node(finder *f, const application *a)
{
    for (uint32_t o = 0; o < a->out_count && !f->failed; o++) {
        tie_output(f, a, o);
    }
}

/* ------------------------------------------------------------------- programs */

/* Whether shapes are compared in parts of a conjunction only: equal shapes then have equal slices,
 * and nothing is said of shapes that are not. */
static bool compares_plainly(const graft_rule *rule)
{
    uint32_t compares = 0; /* Bit: the value on the stack depends on shapes being equal. */
    graft_code_reader reader = graft_code_open(rule, rule->condition, GRAFT_LIMIT(PROGRAM_DEPTH));
    for (graft_code_step step; graft_code_read(&reader, &step);) {
        bool compared = compares >> step.place != 0 || step.code == GRAFT_CODE_SAME;
        if (step.takes > 0 && compared && step.code != GRAFT_CODE_AND) {
            return false;
        }
        compares &= (1u << step.place) - 1;
        compares |= compared ? 1u << step.place : 0;
    }
    return reader.end == GRAFT_CODE_WHOLE; /* Else nothing is known of the program (symcode.c). */
}

/* The axis that a program reads, counted from the first; AXIS_NONE when there is none. */
static uint32_t axis_read(tensor t, int32_t axis)
{
    axis += axis < 0 ? (int32_t)t.rank : 0;
    return axis >= 0 && axis < (int32_t)t.rank ? (uint32_t)axis : AXIS_NONE;
}

static void tie_compared(finder *f, tensor a, tensor b, bool plainly)
{
    if (!plainly) {
        keep_all(f, a);
        keep_all(f, b);
    }
    for (uint32_t i = 0; i < a.rank && a.rank == b.rank; i++) {
        tie(f, a, i, b, i);
    }
}

static void tie_program(finder *f, uint32_t at, bool plainly)
{
    for (; f->rule->code[at] != GRAFT_CODE_END; at = graft_code_next(f->rule, at)) {
        graft_code_step step = graft_code_at(f->rule, at);
        if (step.code == GRAFT_CODE_DIM) {
            tensor t = var_of(f, step.index);
            uint32_t axis = axis_read(t, step.number);
            if (axis != AXIS_NONE) {
                keep(f, t, axis);
            }
        } else if (step.code == GRAFT_CODE_SAME) {
            tie_compared(f, var_of(f, step.index), var_of(f, step.other), plainly);
        }
    }
}

/* Whether an attribute's program does more than choose an axis or a mode, whose value is known. */
static bool has_program(const graft_pattern_node *node, uint32_t attr)
{
    return node->attrs[attr].kind == GRAFT_TERM_CODE && !graft_sym_is_choice(node->op, attr);
}

/* ------------------------------------------------------------------- the key */

static void put(finder *f, uint32_t value)
{
    if (value > UINT8_MAX || f->result->length == GRAFT_SYM_CLASS_KEY) {
        f->failed = true;
        return;
    }
    f->result->key[f->result->length++] = (uint8_t)value;
}

/* How many axes before this one are in the core. */
static uint32_t core_axis(const finder *f, tensor t, uint32_t axis)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < axis; i++) {
        count += is_idle(f, t, i) ? 0 : 1;
    }
    return count;
}

static void put_rank(finder *f, tensor t) { put(f, core_axis(f, t, t.rank)); }

static void put_program(finder *f, uint32_t at)
{
    for (; f->rule->code[at] != GRAFT_CODE_END; at = graft_code_next(f->rule, at)) {
        graft_code_step step = graft_code_at(f->rule, at);
        if (step.code == GRAFT_CODE_SLOT && f->c->chosen[step.index]) {
            put(f, (uint32_t)f->c->slots[step.index]);
        } else if (step.code == GRAFT_CODE_RANK) {
            put(f, var_of(f, step.index).rank);
        } else if (step.code == GRAFT_CODE_SAME) {
            put(f, var_of(f, step.index).rank == var_of(f, step.other).rank ? 1 : 0);
        } else if (step.code == GRAFT_CODE_DIM) {
            tensor t = var_of(f, step.index);
            uint32_t axis = axis_read(t, step.number);
            put(f, axis == AXIS_NONE ? AXIS_NONE : core_axis(f, t, axis));
        }
    }
}

/* A set of axes, by what they are in the core. */
static void put_axes(finder *f, tensor t, uint32_t axes)
{
    uint32_t core = 0;
    for (uint32_t i = 0; i < t.rank; i++) {
        core |= is_idle(f, t, i) ? 0 : (axes >> i & 1u) << core_axis(f, t, i);
    }
    put(f, core);
}

static void put_choice(finder *f, const application *a, uint32_t i)
{
    uint32_t value = choice(f, a, i);
    switch (graft_op_attr(a->node->op, i)->role) {
    case GRAFT_ROLE_AXIS:
        put(f, core_axis(f, a->in[0], value));
        break;
    case GRAFT_ROLE_AXES:
        put_axes(f, a->in[0], value);
        break;
    case GRAFT_ROLE_ORDER:
        if (i < a->out[0].rank && !is_idle(f, a->out[0], i)) {
            put(f, core_axis(f, a->in[0], value));
        }
        break;
    default:
        put(f, value);
        break;
    }
}

static void put_attr(finder *f, const application *a, uint32_t i)
{
    const graft_term *term = &a->node->attrs[i];
    if (graft_sym_is_choice(a->node->op, i)) {
        put_choice(f, a, i);
    } else if (term->kind == GRAFT_TERM_SLOT && f->c->chosen[term->value]) {
        put(f, (uint32_t)f->c->slots[term->value]);
    } else if (term->kind == GRAFT_TERM_CODE) {
        put_program(f, (uint32_t)term->value);
    }
}

static void put_node(finder *f, const application *a)
{
    put_rank(f, a->out[0]);
    put_axes(f, a->out[0], axes_of(f, a, 0).fixed);
    for (uint32_t i = 0; i < graft_op(a->node->op)->attr_count; i++) {
        put_attr(f, a, i);
    }
}

/* -------------------------------------------------------------------- classes */

/* A tensor with two axes in one set: an element is not read at one index of the set. */
static void keep_twins(finder *f, tensor t)
{
    for (uint32_t i = 0; i < t.rank; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (root_of(f, t, i) == root_of(f, t, k)) {
                keep(f, t, i);
            }
        }
    }
}

static void tie_side(finder *f, uint32_t side)
{
    const graft_pattern *pattern = graft_sym_pattern(f->rule, side);
    for (uint32_t n = 0; n < pattern->node_count && !f->failed; n++) {
        const graft_pattern_node *node = &pattern->nodes[n];
        application a = open_node(f, side, n);
        tie_node(f, &a);
        for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
            if (has_program(node, i)) {
                tie_program(f, (uint32_t)node->attrs[i].value, false);
            }
        }
    }
}

static void tie_rule(finder *f)
{
    tie_side(f, GRAFT_SYM_SOURCE);
    tie_side(f, GRAFT_SYM_TARGET);
    if (f->rule->condition != 255) {
        tie_program(f, f->rule->condition, compares_plainly(f->rule));
    }
    for (uint32_t i = 0; i < f->rule->output_count && !f->failed; i++) {
        tensor a = operand_of(f, GRAFT_SYM_SOURCE, f->rule->source.outputs[i]);
        tensor b = operand_of(f, GRAFT_SYM_TARGET, f->rule->target.outputs[i]);
        f->failed = a.rank != b.rank;
        tie_from_end(f, a, b, 0);
    }
    for (uint32_t v = 0; v < f->rule->var_count; v++) {
        keep_twins(f, var_of(f, v));
    }
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t n = 0; n < graft_sym_pattern(f->rule, side)->node_count; n++) {
            keep_twins(f, output_of(f, side, n, 0));
            keep_twins(f, output_of(f, side, n, 1));
        }
    }
}

static void put_rule(finder *f)
{
    for (uint32_t v = 0; v < f->rule->var_count; v++) {
        put_rank(f, var_of(f, v));
    }
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t n = 0; n < graft_sym_pattern(f->rule, side)->node_count; n++) {
            application a = open_node(f, side, n);
            put_node(f, &a);
        }
    }
    for (uint32_t i = 0; i < f->rule->slot_count; i++) {
        put(f, (uint32_t)(f->c->infinite[i] + 1));
    }
    if (f->rule->condition != 255) {
        put_program(f, f->rule->condition);
    }
}

/* Every node's rank is known. */
static bool is_ranked(const graft_rule *rule, const graft_sym_case *c)
{
    bool ranked = !c->scalar;
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t n = 0; n < graft_sym_pattern(rule, side)->node_count; n++) {
            ranked = ranked && c->node_ranks[side][n] >= 0;
        }
    }
    return ranked;
}

static void note_sets(const finder *f, tensor t, uint16_t sets[GRAFT_MAX_RANK])
{
    for (uint32_t i = 0; i < t.rank; i++) {
        sets[i] = is_idle(f, t, i) ? (uint16_t)root_of(f, t, i) : GRAFT_SYM_BUSY;
    }
}

bool graft_sym_class_of(const graft_rule *rule, const graft_sym_case *c, graft_sym_class *result)
{
    finder f = {.rule = rule, .c = c, .result = result};
    result->length = 0;
    if (!is_ranked(rule, c)) {
        return false;
    }
    for (uint32_t i = 0; i < AXES; i++) {
        f.parent[i] = (uint16_t)i;
    }
    tie_rule(&f);
    if (!f.failed) {
        put_rule(&f);
    }
    if (f.failed) {
        return false;
    }
    for (uint32_t v = 0; v < rule->var_count; v++) {
        note_sets(&f, var_of(&f, v), result->var_sets[v]);
    }
    for (uint32_t i = 0; i < rule->output_count; i++) {
        note_sets(&f, operand_of(&f, GRAFT_SYM_SOURCE, rule->source.outputs[i]),
                  result->output_sets[i]);
    }
    return true;
}

bool graft_sym_classes_add(graft_sym_classes *classes, const graft_sym_class *class)
{
    for (uint32_t i = 0; i < classes->count; i++) {
        if (classes->met[i].length == class->length &&
            memcmp(classes->met[i].key, class->key, class->length) == 0) {
            return false;
        }
    }
    if (classes->count < GRAFT_SYM_CLASSES) {
        memcpy(classes->met[classes->count].key, class->key, class->length);
        classes->met[classes->count++].length = class->length;
    }
    return true;
}
