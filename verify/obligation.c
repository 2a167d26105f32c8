/* obligation.c - building questions, and making them easier without making them weaker. */
#include "verify/obligation.h"

#include "verify/cancel.h"
#include "verify/growth.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define NUM                       Z3_ast
#define ALG(f)                    f##_term
#define RUN(k, op, call, in, out) graft_term_run((k), (op), (call), (in), (out))
#include "verify/sides.inc"

/* ---------------------------------------------------------------- building */

static void make_variables(const graft_obligation *o, const graft_instance *instance,
                           const Z3_ast **vars)
{
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        Z3_ast *tensor = GRAFT_NEW(o->arena, Z3_ast, count);
        for (size_t i = 0; i < count; i++) {
            tensor[i] = graft_term_symbol(&o->term, v, i);
        }
        vars[v] = tensor;
    }
}

static void put_elements(graft_obligation *o, const graft_instance *instance,
                         const Z3_ast *const *left, const Z3_ast *const *right)
{
    for (uint32_t i = 0; i < instance->rule->output_count; i++) {
        assert(left[i] != NULL && right[i] != NULL);
        const graft_shape *shape =
            graft_instance_shape(instance, &instance->source, instance->source.pattern->outputs[i]);
        uint32_t count = (uint32_t)graft_shape_elements(shape);
        memcpy(&o->left[o->elements], left[i], count * sizeof(Z3_ast));
        memcpy(&o->right[o->elements], right[i], count * sizeof(Z3_ast));
        o->elements += count;
    }
    for (uint32_t i = 0; i < o->elements; i++) {
        o->questions[o->count++] = Z3_mk_not(o->z3, Z3_mk_eq(o->z3, o->left[i], o->right[i]));
    }
}

void graft_obligation_close(graft_obligation *o) { graft_term_close(&o->term); }

Z3_ast graft_obligation_joined(const graft_obligation *o)
{
    return Z3_mk_or(o->z3, o->count, o->questions);
}

Z3_params graft_obligation_som(Z3_context z3)
{
    Z3_params som = Z3_mk_params(z3);
    Z3_params_inc_ref(z3, som);
    Z3_params_set_bool(z3, som, Z3_mk_string_symbol(z3, "som"), true);
    Z3_params_set_uint(z3, som, Z3_mk_string_symbol(z3, "som_blowup"), 100000);
    return som;
}

/* ----------------------------------------------------------------- walking */

/* What a walk does with a term it meets for the first time; whether to go on into it. */
typedef bool (*visitor)(void *context, Z3_ast term);

/* Visits the subterms of `root` that are not in `seen`, each once, readers before operands,
 * operands from left to right; adds them to `seen`. Without recursion. */
static void walk(Z3_context z3, Z3_ast root, Z3_ast_map seen, visitor visit, void *context)
{
    Z3_ast_vector stack = Z3_mk_ast_vector(z3);
    Z3_ast_vector_inc_ref(z3, stack);
    Z3_ast_vector_push(z3, stack, root);
    for (uint32_t size = 1; size > 0; size = Z3_ast_vector_size(z3, stack)) {
        Z3_ast t = Z3_ast_vector_get(z3, stack, size - 1);
        Z3_ast_vector_resize(z3, stack, size - 1);
        if (Z3_get_ast_kind(z3, t) != Z3_APP_AST || Z3_ast_map_contains(z3, seen, t)) {
            continue;
        }
        Z3_ast_map_insert(z3, seen, t, t);
        if (!visit(context, t)) {
            continue;
        }
        Z3_app app = Z3_to_app(z3, t);
        for (uint32_t i = Z3_get_app_num_args(z3, app); i-- > 0;) {
            Z3_ast_vector_push(z3, stack, Z3_get_app_arg(z3, app, i));
        }
    }
    Z3_ast_vector_dec_ref(z3, stack);
}

static bool visit_all(void *context, Z3_ast term)
{
    (void)context, (void)term;
    return true;
}

/* Terms to be replaced, in the order they were met. */
typedef struct {
    Z3_context z3;
    graft_arena *arena;
    Z3_sort real;
    Z3_ast_map sides[2]; /* For cutting: the terms of both sides. */
    Z3_ast *from;
    Z3_ast *to;
    uint32_t count;
    uint32_t capacity;
} replacement;

static void replace(replacement *r, Z3_ast from, Z3_ast to)
{
    if (r->count == r->capacity) {
        uint32_t capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        Z3_ast *new_from = GRAFT_NEW(r->arena, Z3_ast, capacity);
        Z3_ast *new_to = GRAFT_NEW(r->arena, Z3_ast, capacity);
        if (r->count > 0) {
            memcpy(new_from, r->from, r->count * sizeof(Z3_ast));
            memcpy(new_to, r->to, r->count * sizeof(Z3_ast));
        }
        r->from = new_from;
        r->to = new_to;
        r->capacity = capacity;
    }
    r->from[r->count] = from;
    r->to[r->count++] = to;
}

static Z3_ast apply_replacement(const replacement *r, Z3_ast term)
{
    return r->count == 0 ? term : Z3_substitute(r->z3, term, r->count, r->from, r->to);
}

/* Walks `root` with a visitor of replacements and carries them out. */
static Z3_ast rewrite(replacement *r, Z3_ast root, visitor visit)
{
    Z3_ast_map seen = graft_term_map(r->z3);
    walk(r->z3, root, seen, visit, r);
    Z3_ast_map_dec_ref(r->z3, seen);
    return apply_replacement(r, root);
}

static replacement new_replacement(const graft_obligation *o)
{
    return (replacement){.z3 = o->z3, .arena = o->arena, .real = o->term.real};
}

/* ------------------------------------------------------------------ cutting */

static bool visit_shared(void *context, Z3_ast term)
{
    replacement *r = context;
    bool operation = Z3_get_sort(r->z3, term) == r->real &&
                     Z3_get_app_num_args(r->z3, Z3_to_app(r->z3, term)) > 0;
    if (!operation || !Z3_ast_map_contains(r->z3, r->sides[0], term) ||
        !Z3_ast_map_contains(r->z3, r->sides[1], term)) {
        return true;
    }
    replace(r, term, Z3_mk_fresh_const(r->z3, "cut", r->real));
    return false;
}

/* Lists the largest terms that occur on both sides of element i with a fresh symbol for each.
 * `seen` gets the terms of the question down to them. */
static replacement find_shared(const graft_obligation *o, uint32_t i, Z3_ast_map seen)
{
    replacement r = new_replacement(o);
    for (int s = 0; s < 2; s++) {
        r.sides[s] = graft_term_map(o->z3);
        walk(o->z3, s == 0 ? o->left[i] : o->right[i], r.sides[s], visit_all, NULL);
    }
    walk(o->z3, o->questions[i], seen, visit_shared, &r);
    Z3_ast_map_dec_ref(o->z3, r.sides[0]);
    Z3_ast_map_dec_ref(o->z3, r.sides[1]);
    return r;
}

/* -------------------------------------------------------------- assumptions */

/* The applications of unknown functions and the symbols in an assumption. */
struct graft_mentions {
    Z3_ast *functions;
    Z3_ast *symbols;
    uint32_t function_count;
    uint32_t symbol_count;
};

static bool is_uninterpreted(Z3_context z3, Z3_ast term, bool function)
{
    Z3_app app = Z3_to_app(z3, term);
    return Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app)) == Z3_OP_UNINTERPRETED &&
           (Z3_get_app_num_args(z3, app) > 0) == function;
}

static bool visit_function_use(void *context, Z3_ast term)
{
    replacement *r = context;
    if (is_uninterpreted(r->z3, term, true)) {
        replace(r, term, term);
    }
    return true;
}

static bool visit_symbol_use(void *context, Z3_ast term)
{
    replacement *r = context;
    if (is_uninterpreted(r->z3, term, false)) {
        replace(r, term, term);
    }
    return true;
}

static void find_mentions(graft_obligation *o)
{
    o->mentions = GRAFT_NEW(o->arena, struct graft_mentions, o->assumption_count);
    for (uint32_t i = 0; i < o->assumption_count; i++) {
        replacement functions = new_replacement(o);
        replacement symbols = new_replacement(o);
        Z3_ast_map seen = graft_term_map(o->z3);
        walk(o->z3, o->assumptions[i], seen, visit_function_use, &functions);
        Z3_ast_map_reset(o->z3, seen);
        walk(o->z3, o->assumptions[i], seen, visit_symbol_use, &symbols);
        Z3_ast_map_dec_ref(o->z3, seen);
        o->mentions[i] =
            (struct graft_mentions){functions.from, symbols.from, functions.count, symbols.count};
    }
}

static uint32_t count_known(const graft_obligation *o, Z3_ast_map known, const Z3_ast *terms,
                            uint32_t count)
{
    uint32_t met = 0;
    for (uint32_t i = 0; i < count; i++) {
        met += Z3_ast_map_contains(o->z3, known, terms[i]) ? 1 : 0;
    }
    return met;
}

/* A law is relevant when it is about an application that occurs; a condition of definedness when
 * all its symbols do or, with `all`, when any does. */
static bool is_relevant(const graft_obligation *o, uint32_t i, Z3_ast_map known, bool all)
{
    const struct graft_mentions *m = &o->mentions[i];
    if (i >= o->condition_count) {
        return count_known(o, known, m->functions, m->function_count) > 0;
    }
    uint32_t met = count_known(o, known, m->symbols, m->symbol_count);
    return met == m->symbol_count || (all && met > 0);
}

/* The question and the assumptions about what is `known`; with `all`, those about what these
 * mention too, and so on. */
static Z3_ast with_assumptions(const graft_obligation *o, Z3_ast question, Z3_ast_map known,
                               uint32_t end, bool all)
{
    Z3_ast *parts = GRAFT_NEW(o->arena, Z3_ast, (size_t)end + 1);
    bool *taken = GRAFT_NEW(o->arena, bool, end);
    uint32_t count = 0;
    parts[count++] = question;
    for (bool grew = true; grew;) {
        grew = false;
        for (uint32_t i = 0; i < end; i++) {
            if (taken[i] || !is_relevant(o, i, known, all)) {
                continue;
            }
            taken[i] = true;
            parts[count++] = o->assumptions[i];
            if (all) {
                grew = true;
                walk(o->z3, o->assumptions[i], known, visit_all, NULL);
            }
        }
    }
    return count == 1 ? question : Z3_mk_and(o->z3, count, parts);
}

static Z3_ast with_all_assumptions(const graft_obligation *o, Z3_ast question)
{
    Z3_ast_map known = graft_term_map(o->z3);
    walk(o->z3, question, known, visit_all, NULL);
    Z3_ast result = with_assumptions(o, question, known, o->assumption_count, true);
    Z3_ast_map_dec_ref(o->z3, known);
    return result;
}

/* The question of element i and the assumptions that are directly about it, cut. */
static Z3_ast cut_question(const graft_obligation *o, uint32_t i)
{
    Z3_ast_map seen = graft_term_map(o->z3);
    replacement shared = find_shared(o, i, seen);
    Z3_ast given = with_assumptions(o, o->questions[i], seen, o->assumption_count, false);
    Z3_ast_map_dec_ref(o->z3, seen);
    return apply_replacement(&shared, given);
}

/* -------------------------------------------------------------- single questions */

static bool visit_function(void *context, Z3_ast term)
{
    replacement *r = context;
    if (!is_uninterpreted(r->z3, term, true)) {
        return true;
    }
    replace(r, term, Z3_mk_fresh_const(r->z3, "value", r->real));
    return false;
}

static bool visit_symbol(void *context, Z3_ast term)
{
    replacement *r = context;
    if (is_uninterpreted(r->z3, term, false)) {
        char name[24];
        (void)snprintf(name, sizeof name, "s%u", r->count);
        replace(r, term, Z3_mk_const(r->z3, Z3_mk_string_symbol(r->z3, name), r->real));
    }
    return true;
}

static Z3_ast number_symbols(const graft_obligation *o, Z3_ast term, uint32_t *symbols)
{
    replacement names = new_replacement(o);
    Z3_ast named = rewrite(&names, term, visit_symbol);
    *symbols = names.count;
    return named;
}

Z3_ast graft_obligation_name(const graft_obligation *o, uint32_t i)
{
    uint32_t symbols = 0;
    Z3_ast_map known = graft_term_map(o->z3);
    walk(o->z3, o->questions[i], known, visit_all, NULL);
    Z3_ast whole = with_assumptions(o, o->questions[i], known, o->condition_count, true);
    Z3_ast_map_dec_ref(o->z3, known);
    return number_symbols(o, whole, &symbols);
}

/* Of the replaced applications, those of functions that are not determined by their laws, as a
 * reciprocal and a root are wherever they matter. */
static uint32_t count_unknown(const graft_obligation *o, const replacement *functions)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < functions->count; i++) {
        Z3_func_decl decl = Z3_get_app_decl(o->z3, Z3_to_app(o->z3, functions->from[i]));
        bool determined = decl == o->term.functions[GRAFT_TERM_INVERSE] ||
                          decl == o->term.functions[GRAFT_TERM_SQRT];
        count += determined ? 0 : 1;
    }
    return count;
}

typedef struct {
    Z3_context z3;
    uint32_t count;
} choice_count;

static bool visit_choice(void *context, Z3_ast term)
{
    choice_count *c = context;
    Z3_func_decl decl = Z3_get_app_decl(c->z3, Z3_to_app(c->z3, term));
    c->count += Z3_get_decl_kind(c->z3, decl) == Z3_OP_ITE ? 1 : 0;
    return true;
}

static uint32_t count_choices(const graft_obligation *o, Z3_ast term)
{
    choice_count c = {.z3 = o->z3};
    Z3_ast_map seen = graft_term_map(o->z3);
    walk(o->z3, term, seen, visit_choice, &c);
    Z3_ast_map_dec_ref(o->z3, seen);
    return c.count;
}

/* The question with what may be assumed. */
static Z3_ast state_question(const graft_obligation *o, uint32_t i, graft_ease ease)
{
    Z3_ast question = o->questions[i];
    Z3_ast laws = NULL;
    switch (ease) {
    case GRAFT_EASE_CUT:
        return i < o->elements ? cut_question(o, i) : with_all_assumptions(o, question);
    case GRAFT_EASE_CANCELED:
        question = graft_cancel(&o->term, o->arena, question, o->assumptions, o->condition_count);
        break;
    case GRAFT_EASE_GROWING:
        laws = graft_growth_laws(&o->term, question);
        question = Z3_mk_and(o->z3, 2, (Z3_ast[]){question, laws});
        break;
    case GRAFT_EASE_PURE:
    case GRAFT_EASE_NONE:
    case GRAFT_EASE_COUNT:
        break;
    }
    return with_all_assumptions(o, question);
}

graft_eased graft_obligation_eased(const graft_obligation *o, uint32_t i, graft_ease ease)
{
    bool replaces = ease == GRAFT_EASE_CUT || ease == GRAFT_EASE_PURE;
    Z3_ast question = state_question(o, i, ease);
    Z3_params som = graft_obligation_som(o->z3);
    Z3_ast simple = Z3_simplify_ex(o->z3, question, som);
    Z3_params_dec_ref(o->z3, som);
    replacement functions = new_replacement(o);
    Z3_ast pure = replaces ? rewrite(&functions, simple, visit_function) : simple;
    uint32_t unknown = count_unknown(o, &functions);
    graft_eased eased = {.exact = ease == GRAFT_EASE_PURE && unknown == 0,
                         .functions = unknown,
                         .inverses = functions.count - unknown};
    eased.question = number_symbols(o, pure, &eased.symbols);
    eased.choices = count_choices(o, eased.question);
    return eased;
}

/* ------------------------------------------------------------------- whole */

void graft_obligation_open(graft_obligation *o, graft_arena *arena, Z3_context z3)
{
    *o = (graft_obligation){.arena = arena, .z3 = z3};
    graft_term_open(&o->term, z3);
}

void graft_obligation_state(graft_obligation *o, const graft_obligation_parts *parts)
{
    uint32_t laws = Z3_ast_vector_size(o->z3, o->term.laws);
    o->elements = parts->element_count;
    o->left = GRAFT_NEW(o->arena, Z3_ast, parts->element_count);
    o->right = GRAFT_NEW(o->arena, Z3_ast, parts->element_count);
    o->questions = GRAFT_NEW(o->arena, Z3_ast, parts->element_count + parts->wanted_count);
    o->assumptions = GRAFT_NEW(o->arena, Z3_ast, parts->given_count + laws);
    for (uint32_t i = 0; i < parts->element_count; i++) {
        o->left[i] = parts->left[i];
        o->right[i] = parts->right[i];
        o->questions[o->count++] =
            Z3_mk_not(o->z3, Z3_mk_eq(o->z3, parts->left[i], parts->right[i]));
    }
    for (uint32_t i = 0; i < parts->wanted_count; i++) {
        o->questions[o->count++] = Z3_mk_not(o->z3, parts->wanted[i]);
    }
    for (uint32_t i = 0; i < parts->given_count; i++) {
        o->assumptions[o->assumption_count++] = parts->given[i];
    }
    o->condition_count = parts->given_count;
    for (uint32_t i = 0; i < laws; i++) {
        o->assumptions[o->assumption_count++] = Z3_ast_vector_get(o->z3, o->term.laws, i);
    }
    find_mentions(o);
}

void graft_obligation_build(graft_obligation *o, graft_arena *arena, Z3_context z3,
                            const graft_instance *instance)
{
    const Z3_ast *vars[GRAFT_RULE_MAX_VARS] = {0};
    const Z3_ast *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const Z3_ast *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    size_t total = 0;
    *o = (graft_obligation){.arena = arena, .z3 = z3};
    graft_term_open(&o->term, z3);
    make_variables(o, instance, vars);
    evaluate_side_term(&o->term, arena, instance, &instance->source, vars, left);
    uint32_t defined = Z3_ast_vector_size(z3, o->term.domain);
    evaluate_side_term(&o->term, arena, instance, &instance->target, vars, right);
    uint32_t conditions = Z3_ast_vector_size(z3, o->term.domain);
    uint32_t laws = Z3_ast_vector_size(z3, o->term.laws);
    for (uint32_t i = 0; i < instance->rule->output_count; i++) {
        total += (size_t)graft_shape_elements(graft_instance_shape(
            instance, &instance->source, instance->source.pattern->outputs[i]));
    }
    o->left = GRAFT_NEW(arena, Z3_ast, total);
    o->right = GRAFT_NEW(arena, Z3_ast, total);
    o->questions = GRAFT_NEW(arena, Z3_ast, total + conditions);
    o->assumptions = GRAFT_NEW(arena, Z3_ast, (size_t)laws + defined);
    put_elements(o, instance, left, right);
    for (uint32_t i = defined; i < conditions; i++) {
        o->questions[o->count++] = Z3_mk_not(z3, Z3_ast_vector_get(z3, o->term.domain, i));
    }
    for (uint32_t i = 0; i < defined; i++) {
        o->assumptions[o->assumption_count++] = Z3_ast_vector_get(z3, o->term.domain, i);
    }
    o->condition_count = defined;
    for (uint32_t i = 0; i < laws; i++) {
        o->assumptions[o->assumption_count++] = Z3_ast_vector_get(z3, o->term.laws, i);
    }
    find_mentions(o);
}
