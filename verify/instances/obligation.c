/* obligation.c - building questions, and making them easier without making them weaker. */
#include "verify/instances/obligation.h"

#include "verify/core/limits.h"
#include "verify/instances/cancel.h"

#include <assert.h>
#include <string.h>

/* ---------------------------------------------------------------- building */

void graft_obligation_close(graft_obligation *o) { graft_term_close(&o->term); }

static bool applies_to(const graft_obligation *o, uint32_t i, uint32_t condition)
{
    return o->applies == NULL || o->applies[(size_t)i * o->condition_count + condition];
}

Z3_ast graft_obligation_question(const graft_obligation *o, uint32_t i)
{
    Z3_ast *parts = GRAFT_NEW(o->arena, Z3_ast, (size_t)o->condition_count + 1);
    uint32_t count = 0;
    parts[count++] = o->questions[i];
    for (uint32_t c = 0; c < o->condition_count; c++) {
        if (applies_to(o, i, c)) {
            parts[count++] = o->assumptions[c];
        }
    }
    return count == 1 ? parts[0] : Z3_mk_and(o->z3, count, parts);
}

Z3_ast graft_obligation_joined(const graft_obligation *o)
{
    return Z3_mk_or(o->z3, o->count, o->questions);
}

/* ----------------------------------------------------------------- walking */

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
    uint32_t capacity = r->capacity;
    r->from = graft_arena_grow(r->arena, r->from, r->count, &capacity, 64, sizeof(Z3_ast));
    r->to = graft_arena_grow(r->arena, r->to, r->count, &r->capacity, 64, sizeof(Z3_ast));
    r->from[r->count] = from;
    r->to[r->count++] = to;
}

static Z3_ast apply_replacement(const replacement *r, Z3_ast term)
{
    return r->count == 0 ? term : Z3_substitute(r->z3, term, r->count, r->from, r->to);
}

/* Walks `root` with a visitor of replacements and carries them out. */
static Z3_ast rewrite(replacement *r, Z3_ast root, graft_ast_visitor visit)
{
    graft_ast_walk(r->z3, root, NULL, visit, r);
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
        graft_ast_walk(o->z3, s == 0 ? o->left[i] : o->right[i], r.sides[s], visit_all, NULL);
    }
    graft_ast_walk(o->z3, o->questions[i], seen, visit_shared, &r);
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
        graft_ast_walk(o->z3, o->assumptions[i], NULL, visit_function_use, &functions);
        graft_ast_walk(o->z3, o->assumptions[i], NULL, visit_symbol_use, &symbols);
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

/* What a question is stated with: the assumptions before `end` about what is `known` and, with
 * `all`, those about what these mention too, and so on. */
typedef struct {
    uint32_t number; /* Of the question: not all conditions may be assumed in all. */
    Z3_ast_map known;
    uint32_t end;
    bool all;
} assuming;

/* A law is relevant when it is about an application that occurs; a condition of definedness when
 * all its symbols do or, with `all`, when any does. */
static bool is_relevant(const graft_obligation *o, const assuming *a, uint32_t i)
{
    const struct graft_mentions *m = &o->mentions[i];
    if (i >= o->condition_count) {
        return count_known(o, a->known, m->functions, m->function_count) > 0;
    }
    uint32_t met = count_known(o, a->known, m->symbols, m->symbol_count);
    return applies_to(o, a->number, i) && (met == m->symbol_count || (a->all && met > 0));
}

/* A conjunction. */
typedef struct {
    Z3_ast *items;
    uint32_t count;
} part_list;

static Z3_ast join(const graft_obligation *o, const part_list *parts)
{
    return parts->count == 1 ? parts->items[0] : Z3_mk_and(o->z3, parts->count, parts->items);
}

static part_list with_assumptions(const graft_obligation *o, Z3_ast question, const assuming *a)
{
    part_list parts = {GRAFT_NEW(o->arena, Z3_ast, (size_t)a->end + 2), 0};
    bool *taken = GRAFT_NEW(o->arena, bool, a->end);
    parts.items[parts.count++] = question;
    for (bool grew = true; grew;) {
        grew = false;
        for (uint32_t i = 0; i < a->end; i++) {
            if (taken[i] || !is_relevant(o, a, i)) {
                continue;
            }
            taken[i] = true;
            parts.items[parts.count++] = o->assumptions[i];
            if (a->all) {
                grew = true;
                graft_ast_walk(o->z3, o->assumptions[i], a->known, visit_all, NULL);
            }
        }
    }
    return parts;
}

/* `question`, a form of question i, with all assumptions before `end` that hang together with it.
 */
static part_list with_all_assumptions(const graft_obligation *o, uint32_t i, Z3_ast question,
                                      uint32_t end)
{
    const assuming a = {i, graft_term_map(o->z3), end, true};
    graft_ast_walk(o->z3, question, a.known, visit_all, NULL);
    part_list result = with_assumptions(o, question, &a);
    Z3_ast_map_dec_ref(o->z3, a.known);
    return result;
}

/* The question of element i and the assumptions that are directly about it, cut. */
static part_list cut_question(const graft_obligation *o, uint32_t i, replacement *shared)
{
    const assuming a = {i, graft_term_map(o->z3), o->assumption_count, false};
    *shared = find_shared(o, i, a.known);
    part_list parts = with_assumptions(o, o->questions[i], &a);
    Z3_ast_map_dec_ref(o->z3, a.known);
    for (uint32_t k = 0; k < parts.count; k++) {
        parts.items[k] = apply_replacement(shared, parts.items[k]);
    }
    return parts;
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
        replace(r, term, graft_term_constant(r->z3, r->real, "s%u", r->count));
    }
    return true;
}

Z3_ast graft_obligation_name(const graft_obligation *o, uint32_t i)
{
    replacement names = new_replacement(o);
    part_list whole = with_all_assumptions(o, i, o->questions[i], o->condition_count);
    return rewrite(&names, join(o, &whole), visit_symbol);
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
    graft_ast_walk(o->z3, term, NULL, visit_choice, &c);
    return c.count;
}

typedef struct {
    Z3_context z3;
    uint32_t summands;
    uint32_t places; /* That may still be looked at. */
} summand_count;

/* A power, or a product of at least two that are no numbers. */
static bool is_product(Z3_context z3, Z3_ast term)
{
    if (Z3_get_ast_kind(z3, term) != Z3_APP_AST) {
        return false;
    }
    Z3_app app = Z3_to_app(z3, term);
    Z3_decl_kind kind = Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app));
    uint32_t factors = 0;
    for (uint32_t i = 0; kind == Z3_OP_MUL && i < Z3_get_app_num_args(z3, app); i++) {
        factors += Z3_is_numeral_ast(z3, Z3_get_app_arg(z3, app, i)) ? 0 : 1;
    }
    return factors >= 2 || kind == Z3_OP_POWER;
}

static void count_summands(summand_count *c, Z3_ast term)
{
    if (c->places == 0 || Z3_get_ast_kind(c->z3, term) != Z3_APP_AST) {
        return;
    }
    Z3_app app = Z3_to_app(c->z3, term);
    bool sum = Z3_get_decl_kind(c->z3, Z3_get_app_decl(c->z3, app)) == Z3_OP_ADD;
    c->places--;
    for (uint32_t i = 0; i < Z3_get_app_num_args(c->z3, app); i++) {
        Z3_ast arg = Z3_get_app_arg(c->z3, app, i);
        c->summands += sum && is_product(c->z3, arg) ? 1 : 0;
        count_summands(c, arg);
    }
}

/* The question without quotients of a number by itself. */
static Z3_ast cancel_question(const graft_obligation *o, uint32_t i)
{
    Z3_ast *given = GRAFT_NEW(o->arena, Z3_ast, o->condition_count);
    uint32_t count = 0;
    for (uint32_t c = 0; c < o->condition_count; c++) {
        if (applies_to(o, i, c)) {
            given[count++] = o->assumptions[c];
        }
    }
    return graft_cancel(&o->term, o->questions[i], given, count);
}

/* ------------------------------------------------------------------- maxima */

typedef struct {
    Z3_ast items[GRAFT_ROOM_MAXIMA]; /* Distinct, by identity. */
    uint32_t count;
} maxima;

/* Whether a term is a >= b ? a : b. */
static bool is_larger_of(Z3_context z3, Z3_ast term, Z3_ast parts[2])
{
    if (Z3_get_ast_kind(z3, term) != Z3_APP_AST) {
        return false;
    }
    Z3_app app = Z3_to_app(z3, term);
    if (Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app)) != Z3_OP_ITE) {
        return false;
    }
    parts[0] = Z3_get_app_arg(z3, app, 1);
    parts[1] = Z3_get_app_arg(z3, app, 2);
    return Z3_get_app_arg(z3, app, 0) == Z3_mk_ge(z3, parts[0], parts[1]);
}

static bool insert_operand(Z3_context z3, maxima *o, Z3_ast item)
{
    uint32_t at = o->count;
    uint32_t id = Z3_get_ast_id(z3, item);
    while (at > 0 && Z3_get_ast_id(z3, o->items[at - 1]) > id) {
        at--;
    }
    if (at > 0 && o->items[at - 1] == item) {
        return true;
    }
    if (o->count == GRAFT_LIMIT(MAXIMA)) {
        return false;
    }
    for (uint32_t i = o->count++; i > at; i--) {
        o->items[i] = o->items[i - 1];
    }
    o->items[at] = item;
    return true;
}

/* The operands of a chain, whose last one stands outermost, or of any other term: itself. */
static bool add_operands(Z3_context z3, maxima *o, Z3_ast term)
{
    Z3_ast parts[2];
    bool fits = true;
    while (fits && is_larger_of(z3, term, parts)) {
        fits = insert_operand(z3, o, parts[1]);
        term = parts[0];
    }
    return fits && insert_operand(z3, o, term);
}

/* Operands come before: those of a maximum are chains already, or no maxima. */
static Z3_ast change_maximum(void *context, Z3_ast term)
{
    Z3_context z3 = context;
    Z3_ast parts[2];
    maxima o = {.count = 0};
    if (!is_larger_of(z3, term, parts) || !add_operands(z3, &o, parts[0]) ||
        !add_operands(z3, &o, parts[1])) {
        return term;
    }
    Z3_ast chain = o.items[0];
    for (uint32_t i = 1; i < o.count; i++) {
        chain = Z3_mk_ite(z3, Z3_mk_ge(z3, chain, o.items[i]), chain, o.items[i]);
    }
    return chain;
}

/* The question with each nest of maxima (a >= b ? a : b) written as one chain over its distinct
 * operands, in the order of their identities; nests of more than a few hundred stay. The largest of
 * some numbers is the same in whatever order, and however often, they are compared; Z3 finds that
 * out case by case, which it gives up on for windows of some dozen elements. */
static Z3_ast join_maxima(const graft_obligation *o, uint32_t i)
{
    return graft_term_rebuild(o->z3, o->questions[i], change_maximum, o->z3);
}

/* ------------------------------------------------------------ easier questions */

/* The question with what may be assumed. */
static part_list state_question(const graft_obligation *o, uint32_t i, graft_ease ease,
                                replacement *shared)
{
    Z3_ast question = o->questions[i];
    Z3_ast laws = NULL;
    switch (ease) {
    case GRAFT_EASE_CUT:
        return i < o->elements ? cut_question(o, i, shared)
                               : with_all_assumptions(o, i, question, o->assumption_count);
    case GRAFT_EASE_CANCELED:
        question = cancel_question(o, i);
        break;
    case GRAFT_EASE_LARGEST:
        question = join_maxima(o, i);
        break;
    case GRAFT_EASE_GROWING:
        laws = graft_growth_laws(&o->term, question);
        break;
    case GRAFT_EASE_PURE:
    case GRAFT_EASE_NONE:
    case GRAFT_EASE_COUNT:
        break;
    }
    part_list parts = with_all_assumptions(o, i, question, o->assumption_count);
    if (laws != NULL) {
        parts.items[parts.count++] = laws;
    }
    return parts;
}

static Z3_ast multiply_out(const graft_obligation *o, Z3_ast term)
{
    Z3_params som = graft_prover_som(o->z3, GRAFT_LIMIT(MONOMIALS));
    Z3_ast simple = Z3_simplify_ex(o->z3, term, som);
    Z3_params_dec_ref(o->z3, som);
    return simple;
}

/* The parts as one formula, multiplied out: part by part where the prover is to see that they are
 * (it does not look into terms that were cut). */
static Z3_ast settle(const graft_obligation *o, part_list *parts, const replacement *shared)
{
    if (!o->checked) {
        return multiply_out(o, join(o, parts));
    }
    for (uint32_t i = 0; i < parts->count && shared->count == 0; i++) {
        parts->items[i] = multiply_out(o, parts->items[i]);
    }
    return join(o, parts);
}

/* What the symbols of a form stand for. */
static Z3_ast *find_meanings(const graft_obligation *o, const replacement *names,
                             const replacement *functions, const replacement *shared)
{
    Z3_ast *terms = GRAFT_NEW(o->arena, Z3_ast, names->count);
    for (uint32_t i = 0; i < names->count; i++) {
        terms[i] =
            Z3_substitute(o->z3, names->from[i], functions->count, functions->to, functions->from);
        terms[i] = Z3_substitute(o->z3, terms[i], shared->count, shared->to, shared->from);
    }
    return terms;
}

graft_eased graft_obligation_eased(const graft_obligation *o, uint32_t i, graft_ease ease)
{
    bool replaces = ease == GRAFT_EASE_CUT || ease == GRAFT_EASE_PURE;
    replacement shared = new_replacement(o);
    replacement functions = new_replacement(o);
    replacement names = new_replacement(o);
    part_list parts = state_question(o, i, ease, &shared);
    Z3_ast simple = settle(o, &parts, &shared);
    Z3_ast pure = replaces ? rewrite(&functions, simple, visit_function) : simple;
    uint32_t unknown = count_unknown(o, &functions);
    graft_eased eased = {.question = rewrite(&names, pure, visit_symbol),
                         .symbols = names.count,
                         .exact = ease == GRAFT_EASE_PURE && unknown == 0,
                         .functions = unknown,
                         .inverses = functions.count - unknown};
    eased.names = names.to;
    eased.meanings = find_meanings(o, &names, &functions, &shared);
    eased.choices = count_choices(o, eased.question);
    summand_count c = {.z3 = o->z3, .places = GRAFT_LIMIT(PLACES)};
    count_summands(&c, eased.question);
    eased.summands = c.summands;
    return eased;
}

/* ------------------------------------------------------------------- whole */

void graft_obligation_open(graft_obligation *o, graft_arena *arena, Z3_context z3)
{
    *o = (graft_obligation){.arena = arena, .z3 = z3};
    graft_term_open(&o->term, z3);
}

static void add_question(graft_obligation *o, Z3_ast claim)
{
    o->questions[o->count++] = Z3_mk_not(o->z3, claim);
}

void graft_obligation_state(graft_obligation *o, const graft_obligation_parts *parts)
{
    uint32_t laws = Z3_ast_vector_size(o->z3, o->term.laws);
    o->elements = parts->element_count;
    o->left = parts->left;
    o->right = parts->right;
    o->condition_count = parts->given_count;
    o->questions = GRAFT_NEW(o->arena, Z3_ast, (size_t)parts->element_count + parts->wanted_count);
    o->assumptions = GRAFT_NEW(o->arena, Z3_ast, (size_t)parts->given_count + laws);
    for (uint32_t i = 0; i < parts->given_count; i++) {
        o->assumptions[o->assumption_count++] = parts->given[i];
    }
    for (uint32_t i = 0; i < laws; i++) {
        o->assumptions[o->assumption_count++] = Z3_ast_vector_get(o->z3, o->term.laws, i);
    }
    find_mentions(o);
    for (uint32_t i = 0; i < parts->element_count; i++) {
        add_question(o, Z3_mk_eq(o->z3, parts->left[i], parts->right[i]));
    }
    for (uint32_t i = 0; i < parts->wanted_count; i++) {
        add_question(o, parts->wanted[i]);
    }
}
