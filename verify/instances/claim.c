/* claim.c - the obligation of a rule at one point. See obligation.h. */
#include "verify/core/caught.h"
#include "verify/instances/guarded.h"
#include "verify/instances/obligation.h"

#include <assert.h>
#include <string.h>

#define NUM                       graft_guarded
#define ALG(f)                    f##_guarded
#define RUN(k, op, call, in, out) graft_guarded_run((k), (op), (call), (in), (out))
#include "verify/instances/sides.inc"

/* The elements of both sides, one output after the other, and what is asked of them. */
typedef struct {
    graft_obligation *o;
    graft_guarded *left;
    graft_guarded *right;
    uint32_t elements;
    Z3_ast_vector conditions; /* Of the source's elements, each once, */
    Z3_ast_map numbers;       /* and their numbers, as numerals. */
    Z3_ast_map given;         /* Those of the element at hand. */
    Z3_ast_map asked;         /* Goals under the conditions that they are asked under. */
    Z3_ast_vector goals;      /* Conditions that are asked about, and by goal the element. */
    uint32_t *goal_elements;
    uint32_t goal_capacity;
    bool jumps; /* graft_rule_jumps */
} instance_draft;

typedef void (*part_visitor)(instance_draft *d, uint32_t element, Z3_ast part);

/* Visits the parts of a conjunction (NULL: none), each once. */
static void visit_parts(instance_draft *d, uint32_t element, Z3_ast formula, part_visitor visit)
{
    Z3_context z3 = d->o->z3;
    Z3_ast_map seen = graft_term_map(z3);
    Z3_ast_vector pending = graft_term_list(z3);
    for (; formula != NULL;) {
        Z3_app app = Z3_to_app(z3, formula);
        bool joined = Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app)) == Z3_OP_AND;
        bool known = Z3_ast_map_contains(z3, seen, formula);
        Z3_ast_map_insert(z3, seen, formula, formula);
        for (uint32_t i = 0; !known && joined && i < Z3_get_app_num_args(z3, app); i++) {
            Z3_ast_vector_push(z3, pending, Z3_get_app_arg(z3, app, i));
        }
        if (!known && !joined) {
            visit(d, element, formula);
        }
        uint32_t left = Z3_ast_vector_size(z3, pending);
        formula = left == 0 ? NULL : Z3_ast_vector_get(z3, pending, left - 1);
        Z3_ast_vector_resize(z3, pending, left == 0 ? 0 : left - 1);
    }
    Z3_ast_vector_dec_ref(z3, pending);
    Z3_ast_map_dec_ref(z3, seen);
}

static void list_condition(instance_draft *d, uint32_t element, Z3_ast part)
{
    Z3_context z3 = d->o->z3;
    (void)element;
    if (!Z3_ast_map_contains(z3, d->numbers, part)) {
        uint32_t number = Z3_ast_vector_size(z3, d->conditions);
        Z3_ast_map_insert(z3, d->numbers, part, Z3_mk_unsigned_int(z3, number, Z3_mk_int_sort(z3)));
        Z3_ast_vector_push(z3, d->conditions, part);
    }
}

static uint32_t number_of(const instance_draft *d, Z3_ast condition)
{
    unsigned number = 0;
    bool is_number =
        Z3_get_numeral_uint(d->o->z3, Z3_ast_map_find(d->o->z3, d->numbers, condition), &number);
    assert(is_number);
    (void)is_number;
    return number;
}

static void allow_condition(instance_draft *d, uint32_t element, Z3_ast part)
{
    d->o->applies[(size_t)element * d->o->condition_count + number_of(d, part)] = true;
}

static void note_given(instance_draft *d, uint32_t element, Z3_ast part)
{
    (void)element;
    Z3_ast_map_insert(d->o->z3, d->given, part, part);
}

/* What is asked about `part` depends on the conditions of the element alone. */
static bool is_new_goal(const instance_draft *d, uint32_t element, Z3_ast part)
{
    Z3_context z3 = d->o->z3;
    const graft_guarded *left = &d->left[element];
    Z3_ast none = Z3_mk_true(z3);
    Z3_ast parts[3] = {part, left->roots != NULL ? left->roots : none,
                       left->divisors != NULL ? left->divisors : none};
    Z3_ast key = Z3_mk_and(z3, 3, parts);
    bool is_new = !Z3_ast_map_contains(z3, d->asked, key);
    Z3_ast_map_insert(z3, d->asked, key, key);
    return is_new;
}

static void add_goal(instance_draft *d, uint32_t element, Z3_ast part)
{
    if (Z3_ast_map_contains(d->o->z3, d->given, part) || !is_new_goal(d, element, part)) {
        return;
    }
    uint32_t count = Z3_ast_vector_size(d->o->z3, d->goals);
    d->goal_elements = graft_arena_grow(d->o->arena, d->goal_elements, count, &d->goal_capacity, 64,
                                        sizeof *d->goal_elements);
    d->goal_elements[count] = element;
    Z3_ast_vector_push(d->o->z3, d->goals, part);
}

/* What the source's element is defined under. */
static void visit_given(instance_draft *d, uint32_t element, part_visitor visit)
{
    visit_parts(d, element, d->left[element].roots, visit);
    visit_parts(d, element, d->left[element].divisors, visit);
}

/* Adds what else the target's element is defined under, and what the source's needs. */
static void add_goals(instance_draft *d, uint32_t element)
{
    Z3_ast_map_reset(d->o->z3, d->given);
    visit_given(d, element, note_given);
    visit_parts(d, element, d->right[element].roots, add_goal);
    visit_parts(d, element, d->right[element].divisors, add_goal);
    visit_parts(d, element, d->right[element].caught, add_goal);
    visit_parts(d, element, d->left[element].needed, add_goal);
    /* Which are told of finite numbers; or a few roots may leave none beside an infinite one. */
    if (d->left[element].needed != NULL || d->jumps || d->left[element].ties != NULL) {
        visit_parts(d, element, d->left[element].caught, add_goal);
    }
    if (d->left[element].roots != NULL) { /* Which may tie one number to another. */
        visit_parts(d, element, d->left[element].tied, add_goal);
    }
}

static const graft_guarded **make_variables(const graft_obligation *o,
                                            const graft_instance *instance)
{
    const graft_guarded **vars = GRAFT_NEW(o->arena, const graft_guarded *, GRAFT_RULE_MAX_VARS);
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        graft_guarded *tensor = GRAFT_NEW(o->arena, graft_guarded, count);
        for (size_t i = 0; i < count; i++) {
            Z3_ast x = graft_term_symbol(&o->term, v, i);
            Z3_ast truth =
                Z3_mk_ite(o->z3, Z3_mk_lt(o->z3, o->term.zero, x), o->term.one, o->term.zero);
            tensor[i].term = instance->vars[v].dtype == GRAFT_DTYPE_BOOL ? truth : x;
        }
        vars[v] = tensor;
    }
    return vars;
}

static graft_guarded *join_outputs(const graft_obligation *o, const graft_instance *instance,
                                   const graft_guarded *const *outputs, uint32_t *count)
{
    uint32_t sizes[GRAFT_RULE_MAX_OUTPUTS] = {0};
    *count = 0;
    for (uint32_t i = 0; i < instance->rule->output_count; i++) {
        sizes[i] = (uint32_t)graft_shape_elements(graft_instance_output(instance, i));
        *count += sizes[i];
    }
    graft_guarded *all = GRAFT_NEW(o->arena, graft_guarded, *count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < instance->rule->output_count; i++) {
        assert(outputs[i] != NULL);
        memcpy(&all[at], outputs[i], sizes[i] * sizeof *all);
        at += sizes[i];
    }
    return all;
}

static void evaluate_sides(instance_draft *d, const graft_instance *instance)
{
    graft_obligation *o = d->o;
    d->jumps = graft_rule_jumps(instance->rule);
    const graft_guarded *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const graft_guarded *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const graft_guarded **vars = make_variables(o, instance);
    evaluate_side_guarded(&o->term, o->arena, instance, &instance->source, vars, left);
    evaluate_side_guarded(&o->term, o->arena, instance, &instance->target, vars, right);
    d->left = join_outputs(o, instance, left, &d->elements);
    d->right = join_outputs(o, instance, right, &d->elements);
}

static Z3_ast *list_terms(const graft_obligation *o, Z3_ast_vector terms)
{
    uint32_t count = Z3_ast_vector_size(o->z3, terms);
    Z3_ast *list = GRAFT_NEW(o->arena, Z3_ast, count);
    for (uint32_t i = 0; i < count; i++) {
        list[i] = Z3_ast_vector_get(o->z3, terms, i);
    }
    return list;
}

static void state_questions(instance_draft *d)
{
    graft_obligation *o = d->o;
    uint32_t goals = Z3_ast_vector_size(o->z3, d->goals);
    uint32_t conditions = Z3_ast_vector_size(o->z3, d->conditions);
    assert(goals == 0 || d->goal_elements != NULL);
    Z3_ast *left = GRAFT_NEW(o->arena, Z3_ast, d->elements);
    Z3_ast *right = GRAFT_NEW(o->arena, Z3_ast, d->elements);
    for (uint32_t i = 0; i < d->elements; i++) {
        left[i] = d->left[i].term;
        right[i] = d->right[i].term;
    }
    const graft_obligation_parts parts = {.left = left,
                                          .right = right,
                                          .element_count = d->elements,
                                          .wanted = list_terms(o, d->goals),
                                          .wanted_count = goals,
                                          .given = list_terms(o, d->conditions),
                                          .given_count = conditions};
    graft_obligation_state(o, &parts);
    o->applies = GRAFT_NEW(o->arena, bool, (size_t)(d->elements + goals) * conditions);
    o->caught = GRAFT_NEW(o->arena, bool, (size_t)d->elements + goals);
    for (uint32_t i = 0; i < d->elements; i++) {
        o->caught[i] = d->left[i].caught != NULL;
        visit_given(d, i, allow_condition);
    }
    for (uint32_t i = 0; i < goals; i++) {
        uint32_t question = d->elements + i;
        o->caught[question] = o->caught[d->goal_elements[i]];
        memcpy(&o->applies[(size_t)question * conditions],
               &o->applies[(size_t)d->goal_elements[i] * conditions], conditions * sizeof(bool));
    }
}

void graft_obligation_build(graft_obligation *o, graft_arena *arena, Z3_context z3,
                            const graft_instance *instance)
{
    graft_obligation_open(o, arena, z3);
    instance_draft d = {.o = o,
                        .conditions = graft_term_list(z3),
                        .numbers = graft_term_map(z3),
                        .given = graft_term_map(z3),
                        .asked = graft_term_map(z3),
                        .goals = graft_term_list(z3)};
    evaluate_sides(&d, instance);
    for (uint32_t i = 0; i < d.elements; i++) {
        visit_given(&d, i, list_condition);
    }
    for (uint32_t i = 0; i < d.elements; i++) {
        add_goals(&d, i);
    }
    state_questions(&d);
    Z3_ast_vector_dec_ref(z3, d.goals);
    Z3_ast_map_dec_ref(z3, d.asked);
    Z3_ast_map_dec_ref(z3, d.given);
    Z3_ast_map_dec_ref(z3, d.numbers);
    Z3_ast_vector_dec_ref(z3, d.conditions);
}
