/* symask.c - see symask.h. */
#include "verify/symask.h"

#include "verify/obligation.h"
#include "verify/symassume.h"
#include "verify/symbounds.h"
#include "verify/symfold.h"
#include "verify/symmatch.h"
#include "verify/symmax.h"

#include <string.h>

enum { LEAVES_MOST = 256, GIVEN_MOST = 96, INSTANCES_MOST = 12 };

/* The terms of one question: one condition, or two values; then what may be assumed. */
typedef struct {
    Z3_ast terms[2 + GIVEN_MOST];
    uint32_t asked; /* 1 or 2. */
    uint32_t count;
} question;

/* ------------------------------------------------------- conditions, instantiated */

static void add_given(question *q, Z3_ast condition)
{
    for (uint32_t i = q->asked; i < q->count; i++) {
        if (q->terms[i] == condition) {
            return;
        }
    }
    if (q->count < 2 + GIVEN_MOST) {
        q->terms[q->count++] = condition;
    }
}

/* The formal that an index reads, or its rank. */
static uint32_t formal_of(const graft_sym *s, Z3_ast index)
{
    uint32_t i = 0;
    while (graft_sym_is_app(s, index, s->at)) {
        index = graft_sym_arg(s, index, 1);
    }
    while (i < GRAFT_MAX_RANK && s->formals[i] != index) {
        i++;
    }
    return i;
}

/* Whether a term is a symbol that a fold binds. */
static bool visit_bound(void *context, Z3_ast term)
{
    struct {
        const graft_sym *s;
        bool found;
    } *c = context;
    if (graft_sym_arity(c->s, term) == 0 && graft_sym_kind(c->s, term) == Z3_OP_UNINTERPRETED) {
        Z3_symbol name =
            Z3_get_decl_name(c->s->z3, Z3_get_app_decl(c->s->z3, Z3_to_app(c->s->z3, term)));
        c->found = c->found || Z3_get_symbol_string(c->s->z3, name)[0] == 'b';
    }
    return true;
}

static bool is_bound(const graft_sym *s, Z3_ast term)
{
    struct {
        const graft_sym *s;
        bool found;
    } c = {s, false};
    graft_sym_walk(s, term, visit_bound, &c);
    return c.found;
}

/* The index at which the element `of` of a condition becomes the element `to`; 0 where it does not
 * say. False when there is none. */
static bool find_index(const graft_sym *s, Z3_ast of, Z3_ast to, Z3_ast index[GRAFT_MAX_RANK])
{
    if (!graft_sym_is_app(s, to, Z3_get_app_decl(s->z3, Z3_to_app(s->z3, of)))) {
        return false;
    }
    for (uint32_t i = 0; i < graft_sym_arity(s, of); i++) {
        uint32_t formal = formal_of(s, graft_sym_arg(s, of, i));
        Z3_ast at = graft_sym_arg(s, to, i);
        if (formal < GRAFT_MAX_RANK) {
            if (is_bound(s, at) || (index[formal] != NULL && index[formal] != at)) {
                return false;
            }
            index[formal] = at;
        }
    }
    return true;
}

/* Assumes a condition at an index, if Z3 says that it lies in the shape. */
static bool assume_at(graft_sym_asker *a, const graft_facts *facts, question *q,
                      const graft_sym_condition *c, Z3_ast index[GRAFT_MAX_RANK])
{
    graft_sym *s = a->s;
    for (uint32_t i = 0; i < c->shape.rank; i++) {
        index[i] = index[i] == NULL ? graft_sym_int(s, 0) : index[i];
        if (!graft_sym_holds(s, facts, graft_sym_in_range(s, index[i], c->shape.dims[i]))) {
            return false;
        }
    }
    add_given(q, graft_sym_read(s, c->holds, c->shape.rank, index));
    return true;
}

/* Assumes a condition of every element at those that make it about elements of the question. */
static void assume_condition(graft_sym_asker *a, const graft_facts *facts, question *q,
                             const graft_sym_condition *c, const graft_sym_atoms *elements)
{
    graft_sym_atoms own = {.count = 0};
    uint32_t made = 0;
    graft_sym_list_elements(a->s, c->holds, true, &own);
    for (uint32_t i = 0; i < own.count; i++) {
        for (uint32_t k = 0; k < elements->count && made < INSTANCES_MOST; k++) {
            Z3_ast index[GRAFT_MAX_RANK] = {0};
            if (find_index(a->s, own.from[i], elements->from[k], index)) {
                made += assume_at(a, facts, q, c, index) ? 1 : 0;
            }
        }
    }
    if (made == 0) { /* At the place asked about, where that is a place. */
        Z3_ast index[GRAFT_MAX_RANK];
        memcpy((void *)index, (const void *)a->s->formals, sizeof index);
        (void)assume_at(a, facts, q, c, index);
    }
}

static void assume_conditions(graft_sym_asker *a, const graft_facts *facts, question *q)
{
    graft_sym_atoms elements = {.count = 0};
    for (uint32_t i = 0; i < q->asked; i++) {
        graft_sym_list_elements(a->s, q->terms[i], true, &elements);
    }
    for (uint32_t i = 0; i < a->source->condition_count; i++) {
        assume_condition(a, facts, q, &a->source->conditions[i], &elements);
    }
    for (uint32_t i = 0; i < a->target->condition_count; i++) {
        if (a->target->conditions[i].is_fact) {
            assume_condition(a, facts, q, &a->target->conditions[i], &elements);
        }
    }
}

/* --------------------------------------------------- folds, elements and sizes */

/* Maxima are at least what is in their range, elements of the question and other maxima. */
static void note_maxima(graft_sym *s, const graft_facts *facts, const graft_sym_atoms *folds,
                        question *q)
{
    graft_sym_atoms elements = {.count = 0};
    for (uint32_t i = 0; i < q->asked; i++) {
        graft_sym_list_elements(s, q->terms[i], false, &elements);
    }
    for (uint32_t i = 0; i < folds->count; i++) {
        for (uint32_t k = 0; k < elements.count; k++) {
            if (graft_sym_is_below(s, facts, elements.from[k], folds->from[i])) {
                add_given(q, Z3_mk_le(s->z3, elements.from[k], folds->to[i]));
            }
        }
        for (uint32_t k = 0; k < folds->count; k++) {
            if (folds->to[k] != folds->to[i] &&
                graft_sym_is_below(s, facts, folds->from[k], folds->from[i])) {
                add_given(q, Z3_mk_le(s->z3, folds->to[k], folds->to[i]));
            }
        }
    }
}

static void replace_all(const graft_sym *s, const graft_sym_atoms *atoms, question *q)
{
    for (uint32_t i = 0; i < q->count; i++) {
        q->terms[i] = graft_sym_replace(s, atoms, q->terms[i]);
    }
}

static void list_all_folds(const graft_sym *s, const question *q, graft_sym_atoms *folds)
{
    for (uint32_t i = 0; i < q->count; i++) {
        graft_sym_list_folds(s, q->terms[i], folds);
    }
}

static void add_bounds(graft_sym *s, const graft_sym_atoms *folds, question *q)
{
    Z3_ast facts[GRAFT_SYM_BOUNDS_MOST];
    uint32_t count = graft_sym_bounds(s, folds, facts);
    for (uint32_t i = 0; i < count; i++) {
        add_given(q, facts[i]);
    }
}

static bool replace_folds(graft_sym_asker *a, const graft_facts *facts, question *q)
{
    graft_sym_atoms folds = {.count = 0};
    list_all_folds(a->s, q, &folds);
    add_bounds(a->s, &folds, q);
    list_all_folds(a->s, q, &folds);
    if (folds.full) {
        return false;
    }
    graft_sym_name_folds(a->s, facts, &folds);
    replace_all(a->s, &folds, q);
    note_maxima(a->s, facts, &folds, q);
    return true;
}

static bool replace_elements(graft_sym_asker *a, const graft_facts *facts, question *q)
{
    graft_sym *s = a->s;
    graft_sym_atoms elements = {.count = 0};
    for (uint32_t i = 0; i < q->count; i++) {
        graft_sym_list_elements(s, q->terms[i], false, &elements);
    }
    if (elements.full) {
        return false;
    }
    graft_sym_merge_elements(s, facts, &elements);
    Z3_ast symbols[GRAFT_SYM_ATOMS_MOST];
    for (uint32_t i = 0; i < elements.count; i++) {
        symbols[i] = Z3_mk_fresh_const(s->z3, "element", s->term.real);
        for (uint32_t k = 0; k < i; k++) {
            symbols[i] = elements.from[k] == elements.to[i] ? symbols[k] : symbols[i];
        }
    }
    memcpy((void *)elements.to, (const void *)symbols, sizeof symbols);
    replace_all(s, &elements, q);
    return true;
}

typedef struct {
    const graft_sym *s;
    graft_sym_atoms sizes;
} size_search;

static bool visit_size(void *context, Z3_ast term)
{
    size_search *c = context;
    if (graft_sym_kind(c->s, term) != Z3_OP_TO_REAL) {
        return true;
    }
    for (uint32_t i = 0; i < c->sizes.count; i++) {
        if (c->sizes.from[i] == term) {
            return false;
        }
    }
    if (c->sizes.count < GRAFT_SYM_ATOMS_MOST) {
        c->sizes.from[c->sizes.count++] = term;
    }
    return false;
}

/* Sizes as numbers become symbols, which are at least 1 if Z3 says that the sizes are. */
static void replace_sizes(const graft_sym_asker *a, const graft_facts *facts, question *q)
{
    graft_sym *s = a->s;
    size_search c = {.s = s};
    for (uint32_t i = 0; i < q->count; i++) {
        graft_sym_walk(s, q->terms[i], visit_size, &c);
    }
    for (uint32_t i = 0; i < c.sizes.count; i++) {
        c.sizes.to[i] = Z3_mk_fresh_const(s->z3, "size", s->term.real);
    }
    replace_all(s, &c.sizes, q);
    for (uint32_t i = 0; i < c.sizes.count; i++) {
        Z3_ast size = graft_sym_arg(s, c.sizes.from[i], 0);
        if (graft_sym_holds(s, facts, Z3_mk_le(s->z3, graft_sym_int(s, 1), size))) {
            add_given(q, Z3_mk_le(s->z3, s->term.one, c.sizes.to[i]));
        }
    }
}

/* -------------------------------------------------------------------- asking */

/* Applies unknown functions anew in an obligation's state, which takes note of their laws. */
static Z3_ast change_function(void *context, Z3_ast term)
{
    static const uint8_t ops[GRAFT_TERM_FUNCTION_COUNT] = {
        [GRAFT_TERM_EXP] = GRAFT_OP_exp,   [GRAFT_TERM_SQRT] = GRAFT_OP_sqrt,
        [GRAFT_TERM_ERF] = GRAFT_OP_erf,   [GRAFT_TERM_SIGMOID] = GRAFT_OP_sigmoid,
        [GRAFT_TERM_TANH] = GRAFT_OP_tanh, [GRAFT_TERM_INVERSE] = GRAFT_OP_div};
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    graft_term_state *k = context;
    Z3_func_decl decl = Z3_get_app_decl(k->z3, Z3_to_app(k->z3, term));
    uint32_t f = 0;
    while (f < GRAFT_TERM_FUNCTION_COUNT && k->functions[f] != decl) {
        f++;
    }
    if (f == GRAFT_TERM_FUNCTION_COUNT) {
        return term;
    }
    const graft_shape scalars[3] = {
        {.dtype = GRAFT_DTYPE_F32}, {.dtype = GRAFT_DTYPE_F32}, {.dtype = GRAFT_DTYPE_F32}};
    const graft_call call = {attrs, scalars, &scalars[2]};
    Z3_ast x = Z3_get_app_arg(k->z3, Z3_to_app(k->z3, term), 0);
    const Z3_ast *one_over[2] = {&k->one, &x};
    const Z3_ast *plain[1] = {&x};
    Z3_ast result = NULL;
    Z3_ast *out[1] = {&result};
    graft_term_run(k, ops[f], &call, f == GRAFT_TERM_INVERSE ? one_over : plain, out);
    return result;
}

static bool ask_solver(graft_sym_asker *a, question *q)
{
    graft_sym *s = a->s;
    graft_mark mark = graft_arena_mark(s->env->unit);
    graft_obligation o;
    graft_obligation_open(&o, s->env->unit, s->z3);
    for (uint32_t i = 0; i < q->count; i++) {
        q->terms[i] =
            graft_sym_rebuild(s, graft_sym_simplify(s, q->terms[i]), change_function, &o.term);
    }
    bool pair = q->asked == 2;
    const graft_obligation_parts parts = {.left = &q->terms[0],
                                          .right = &q->terms[1],
                                          .element_count = pair ? 1 : 0,
                                          .wanted = q->terms,
                                          .wanted_count = pair ? 0 : 1,
                                          .given = q->terms + q->asked,
                                          .given_count = q->count - q->asked};
    graft_obligation_state(&o, &parts);
    bool proved = graft_prove_obligation(s->prover, &o) == GRAFT_VERDICT_PROVED;
    graft_obligation_close(&o);
    graft_arena_release(s->env->unit, mark);
    return proved;
}

typedef struct {
    const graft_sym *s;
    bool other; /* Something is neither a number nor a function of numbers. */
} purity;

static bool visit_purity(void *context, Z3_ast term)
{
    purity *p = context;
    Z3_sort sort = Z3_get_sort(p->s->z3, term);
    bool symbol = graft_sym_kind(p->s, term) == Z3_OP_UNINTERPRETED;
    p->other = p->other || sort == p->s->integer || (symbol && sort == p->s->boolean);
    return !p->other;
}

static bool is_pure(const graft_sym *s, Z3_ast term)
{
    purity p = {.s = s};
    graft_sym_walk(s, term, visit_purity, &p);
    return !p.other;
}

/* Leaves assumptions out that mention integers; false when the question itself does. */
static bool keep_pure(const graft_sym *s, question *q)
{
    uint32_t kept = q->asked;
    for (uint32_t i = 0; i < q->asked; i++) {
        if (!is_pure(s, q->terms[i])) {
            return false;
        }
    }
    for (uint32_t i = q->asked; i < q->count; i++) {
        if (is_pure(s, q->terms[i])) {
            q->terms[kept++] = q->terms[i];
        }
    }
    q->count = kept;
    return true;
}

/* One question without conditionals on indices. */
static bool ask_leaf(graft_sym_asker *a, const graft_facts *facts, question *q)
{
    if (++a->leaves > LEAVES_MOST || graft_sym_is_spent(a->s)) {
        return false;
    }
    for (uint32_t i = 0; i < a->s->assumed->number_count; i++) {
        add_given(q, a->s->assumed->numbers[i]);
    }
    assume_conditions(a, facts, q);
    if (!replace_folds(a, facts, q) || !replace_elements(a, facts, q)) {
        return false;
    }
    replace_sizes(a, facts, q);
    return keep_pure(a->s, q) && ask_solver(a, q);
}

static bool ask(graft_sym_asker *a, const graft_facts *facts, const question *q)
{
    graft_sym *s = a->s;
    question now = *q;
    Z3_ast condition = NULL;
    for (uint32_t i = 0; i < now.asked; i++) {
        now.terms[i] = now.asked == 2 ? graft_sym_normal(s, now.terms[i])
                                      : graft_sym_simplify(s, now.terms[i]);
        condition = condition == NULL ? graft_sym_find_condition(s, now.terms[i]) : condition;
    }
    if (now.asked == 2 && now.terms[0] == now.terms[1]) {
        return graft_sym_holds(s, facts, Z3_mk_eq(s->z3, now.terms[0], now.terms[1]));
    }
    if (condition == NULL) {
        return ask_leaf(a, facts, &now);
    }
    const graft_facts yes = {.outer = facts, .fact = condition};
    const graft_facts no = {.outer = facts, .fact = Z3_mk_not(s->z3, condition)};
    bool never = graft_sym_holds(s, facts, no.fact);
    bool always = !never && graft_sym_holds(s, facts, condition);
    for (uint32_t way = 0; way < 2; way++) {
        question given = now;
        for (uint32_t i = 0; i < now.asked; i++) {
            given.terms[i] = graft_sym_given(s, now.terms[i], condition, way == 0);
        }
        bool possible = way == 0 ? !never : !always;
        if (possible && !ask(a, way == 0 ? &yes : &no, &given)) {
            return false;
        }
    }
    return true;
}

bool graft_sym_equal(graft_sym_asker *a, const graft_facts *facts, Z3_ast left, Z3_ast right)
{
    const question q = {
        .terms = {left, right},
          .asked = 2, .count = 2
    };
    return ask(a, facts, &q);
}

bool graft_sym_implied(graft_sym_asker *a, const graft_facts *facts, Z3_ast condition)
{
    const question q = {.terms = {condition}, .asked = 1, .count = 1};
    return ask(a, facts, &q);
}
