/* graphsizes.c - see graphsizes.h. */
#include "verify/sizes/graphsizes.h"

#include <assert.h>
#include <string.h>

/* With the match that it is about. */
typedef struct {
    graft_sym_shaper shaper; /* First. */
    const graft_sym_found *found;
} graph_shaper;

static bool is_understood(const graft_sym_shaper *p)
{
    return !p->never && p->why == NULL && !p->e->impossible && p->s->refusal == NULL;
}

/* A graph holds the number that a program gives at the sample: it has to be this one anywhere. */
static bool fix_attr(graft_sym_shaper *p, const graft_term *written, graft_sym_attr *attr)
{
    const graft_sym_found *found = ((const graph_shaper *)p)->found;
    int64_t number = 0;
    if (written->kind != GRAFT_TERM_CODE) {
        return true;
    }
    if (!graft_code_run(p->instance->rule, (uint32_t)written->value, found->sample, found->is_const,
                        found->slots, &number)) {
        return false;
    }
    Z3_ast fixed = graft_sym_int(p->s, number);
    graft_sym_claim(p->e, Z3_mk_eq(p->s->z3, attr->term, fixed));
    attr->term = fixed;
    return true;
}

/* Whether the sizes that a file holds as numbers are numbers: of the pieces of a split, and of the
 * channels of a scale_shift. */
static bool has_written_sizes(const graft_sym_shaper *p)
{
    graft_sym *s = p->s;
    const graft_pattern *target = &p->instance->rule->target;
    bool are = true;
    for (uint32_t n = 0; n < target->node_count && are; n++) {
        const graft_sym_node *node = &p->instance->nodes[GRAFT_SYM_TARGET][n];
        Z3_ast size = NULL;
        if (target->nodes[n].op == GRAFT_OP_split) {
            size = node->shapes[1].dims[node->attrs[GRAFT_ATTR_split_axis].value];
        } else if (target->nodes[n].op == GRAFT_OP_scale_shift) {
            size = node->shapes[0].dims[1];
        }
        are = size == NULL ||
              Z3_is_numeral_ast(s->z3, Z3_simplify(s->z3, graft_sym_write_sizes(s, size)));
    }
    return are;
}

/* Variables have the sizes of the graph; slots are numbers, which may be meant as a float's
 * bits. */
static void place_match(graft_sym_shaper *p, const graft_sym_found *found)
{
    const graft_rule *rule = p->instance->rule;
    memcpy(p->instance->vars, found->vars, rule->var_count * sizeof found->vars[0]);
    for (uint32_t i = 0; i < rule->slot_count; i++) {
        p->inputs.slots[i] = (graft_sym_value){.term = graft_sym_int(p->s, found->slots[i]),
                                               .bits = found->slots[i],
                                               .has_bits = true,
                                               .sort = GRAFT_SYM_INTEGER};
    }
}

bool graft_sym_claims_of_match(graft_sym *s, const graft_rule *rule, const graft_sym_case *c,
                               const graft_sym_found *found, graft_sym_equations *claims,
                               uint32_t *given)
{
    graft_sym_instance instance;
    graph_shaper g = {
        .shaper = {.s = s, .e = claims, .instance = &instance, .fix = fix_attr},
          .found = found
    };
    graft_sym_shaper *p = &g.shaper;
    assert(s->plain != NULL);
    graft_sym_shaper_begin(p, rule, c);
    p->inputs.scalar = false;
    place_match(p, found);
    graft_sym_shape_side(p, GRAFT_SYM_SOURCE);
    *given = claims->claim_count;
    if (is_understood(p)) {
        graft_sym_claim_condition(p);
        graft_sym_shape_side(p, GRAFT_SYM_TARGET);
    }
    if (is_understood(p)) {
        graft_sym_equate_outputs(p);
    }
    return is_understood(p) && has_written_sizes(p);
}

/* The count of a window's positions is a quotient by a number. */
static Z3_ast change_window(void *context, Z3_ast term)
{
    const graft_sym *s = context;
    if (!graft_sym_is_app(s, term, s->window) ||
        !Z3_is_numeral_ast(s->z3, graft_sym_arg(s, term, 1))) {
        return term;
    }
    Z3_ast quotient = Z3_mk_div(s->z3, graft_sym_arg(s, term, 0), graft_sym_arg(s, term, 1));
    return Z3_mk_add(s->z3, 2, (Z3_ast[]){quotient, graft_sym_int(s, 1)});
}

Z3_ast graft_sym_write_sizes(graft_sym *s, Z3_ast term)
{
    return graft_term_rebuild(s->z3, graft_sym_expand(s, term), change_window, s);
}

bool graft_sym_apply(graft_sym_equations *claims, uint32_t op, const int32_t *attrs,
                     const graft_sym_shape *const in[], uint32_t made, graft_sym_shape *out)
{
    graft_sym_attr terms[GRAFT_MAX_ATTRS] = {{.value = 0}};
    graft_sym *s = claims->s;
    graft_sym_shaper p = {.s = s, .e = claims};
    assert(s->plain != NULL);
    s->refusal = NULL;
    for (uint32_t i = 0; i < graft_op(op)->attr_count; i++) {
        if (graft_op_attr(op, i)->kind == GRAFT_ATTR_FLOAT) {
            graft_sym_value value = graft_sym_float(s, attrs[i]);
            terms[i] = (graft_sym_attr){.term = value.term, .infinite = value.infinite};
        } else {
            terms[i] = (graft_sym_attr){.term = graft_sym_int(s, attrs[i]), .value = attrs[i]};
        }
    }
    graft_sym_shape_op(&p, op, terms, in, made, out);
    return is_understood(&p);
}
