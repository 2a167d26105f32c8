/* symask.c - see symask.h. */
#include "verify/core/symask.h"

#include "verify/core/hints.h"
#include "verify/core/symassume.h"
#include "verify/core/symbounds.h"
#include "verify/core/symfold.h"
#include "verify/core/symmatch.h"

#include <string.h>

/* The terms of one question: one condition, or two values; then what may be assumed. */
typedef struct {
    Z3_ast terms[2 + GRAFT_ROOM_GIVEN];
    uint32_t asked; /* 1 or 2. */
    uint32_t count;
} question;

/* ------------------------------------------------------- conditions, instantiated */

/* What of a kind is in the first terms. */
static void list_atoms(const graft_sym *s, const question *q, uint32_t count, graft_sym_atom kind,
                       graft_sym_atoms *atoms)
{
    for (uint32_t i = 0; i < count; i++) {
        graft_sym_list(s, q->terms[i], kind, atoms);
    }
}

static void add_given(question *q, Z3_ast condition)
{
    for (uint32_t i = q->asked; i < q->count; i++) {
        if (q->terms[i] == condition) {
            return;
        }
    }
    if (q->count < 2 + GRAFT_LIMIT(GIVEN)) {
        q->terms[q->count++] = condition;
    }
}

static bool is_about_indices(const graft_sym *s, Z3_ast term, const void *context)
{
    (void)context;
    return Z3_get_sort(s->z3, term) == s->boolean && !graft_sym_is_real(s, term);
}

/* What a question, or a condition on numbers, asks about indices alone: the condition of a
 * conditional, or a part that Z3's simplifier has taken out of one. NULL when there is nothing. */
static Z3_ast find_condition(const graft_sym *s, Z3_ast term)
{
    Z3_ast found = graft_sym_find_condition(s, term);
    bool look =
        found == NULL && Z3_get_sort(s->z3, term) == s->boolean && graft_sym_is_real(s, term);
    return look ? graft_sym_find(s, term, false, is_about_indices, NULL) : found;
}

/* A condition without the conditionals on indices that the facts decide. */
static Z3_ast settle(graft_sym *s, const graft_facts *facts, Z3_ast term)
{
    Z3_ast open = find_condition(s, term);
    while (open != NULL) {
        bool holds = graft_sym_holds(s, facts, open);
        if (!holds && !graft_sym_holds(s, facts, Z3_mk_not(s->z3, open))) {
            return term;
        }
        term = graft_sym_given(s, term, open, holds);
        open = find_condition(s, term);
    }
    return term;
}

/* Assumes a condition with values for its symbols, 0 where there is none, if Z3 says that it holds
 * there. */
static bool assume_at(graft_sym *s, const graft_facts *facts, question *q,
                      const graft_sym_condition *g, Z3_ast values[GRAFT_ROOM_CONDITION_BINDERS])
{
    for (uint32_t i = 0; i < g->binder_count; i++) {
        values[i] = values[i] == NULL ? graft_sym_int(s, 0) : values[i];
        if (graft_sym_is_bound(s, values[i]) || graft_sym_is_open(s, values[i])) {
            return false;
        }
    }
    if (g->where != NULL &&
        !graft_sym_holds(s, facts,
                         graft_sym_substitute(s, g->where, g->binder_count, g->binders, values))) {
        return false;
    }
    Z3_ast holds = graft_sym_substitute(s, g->holds, g->binder_count, g->binders, values);
    add_given(q, settle(s, facts, holds));
    return true;
}

/* Assumes a condition at values that make it about elements of the question, and at `place` (NULL:
 * none) where there are none. */
static void assume_general(graft_sym *s, const graft_facts *facts, question *q,
                           const graft_sym_condition *g, const graft_sym_atoms *elements,
                           const Z3_ast *place)
{
    graft_sym_atoms own = {.count = 0};
    uint32_t made = 0;
    graft_sym_list(s, g->holds, GRAFT_SYM_ALL_ELEMENTS, &own);
    for (uint32_t i = 0; i < own.count; i++) {
        for (uint32_t k = 0;
             s->hints != NULL && k < elements->count && made < GRAFT_LIMIT(CONDITION_PLACES); k++) {
            Z3_ast values[GRAFT_ROOM_CONDITION_BINDERS] = {0};
            if (s->hints->values(s, g, own.from[i], elements->from[k], values)) {
                made += assume_at(s, facts, q, g, values) ? 1 : 0;
            }
        }
    }
    if (made == 0 && place != NULL) {
        Z3_ast values[GRAFT_ROOM_CONDITION_BINDERS] = {0};
        memcpy((void *)values, (const void *)place, g->binder_count * sizeof *values);
        (void)assume_at(s, facts, q, g, values);
    }
}

/* A fact about all elements of a node. */
static void assume_fact(graft_sym *s, const graft_facts *facts, question *q,
                        const graft_sym_fact *fact, const graft_sym_atoms *elements)
{
    graft_sym_condition g = {.holds = fact->holds, .binder_count = fact->shape.rank};
    const Z3_ast *formals = graft_sym_formals(s, fact->shape.rank);
    memcpy((void *)g.binders, (const void *)formals, fact->shape.rank * sizeof *g.binders);
    for (uint32_t i = 0; i < fact->shape.rank; i++) {
        Z3_ast inside = graft_sym_in_range(s, formals[i], fact->shape.dims[i]);
        g.where = i == 0 ? inside : Z3_mk_and(s->z3, 2, (Z3_ast[]){g.where, inside});
    }
    assume_general(s, facts, q, &g, elements, formals);
}

static void assume_conditions(graft_sym_asker *a, const graft_facts *facts, question *q)
{
    graft_sym *s = a->s;
    graft_sym_atoms elements = {.count = 0};
    list_atoms(s, q, q->asked, GRAFT_SYM_ALL_ELEMENTS, &elements);
    for (uint32_t i = 0; i < a->given->count; i++) {
        const graft_sym_condition *c = &a->given->items[i];
        if (!c->is_caught) {
            assume_general(s, facts, q, c, &elements, c->binders);
        }
    }
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < a->sides[side]->fact_count; i++) {
            assume_fact(s, facts, q, &a->sides[side]->facts[i], &elements);
        }
    }
}

/* --------------------------------------------------- folds, elements and sizes */

/* Maxima are at least what is in their range, elements of the question and other maxima. */
static void note_maxima(graft_sym *s, const graft_facts *facts, const graft_sym_atoms *folds,
                        question *q)
{
    graft_sym_atoms values = *folds;
    list_atoms(s, q, q->count, GRAFT_SYM_ELEMENTS, &values);
    for (uint32_t k = 0; k < values.count; k++) {
        Z3_ast value = k < folds->count ? folds->to[k] : values.from[k];
        for (uint32_t i = 0; i < folds->count; i++) {
            if (value != folds->to[i] &&
                graft_sym_is_below(s, facts, values.from[k], folds->from[i])) {
                add_given(q, Z3_mk_le(s->z3, value, folds->to[i]));
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

static void add_bounds(graft_sym *s, const graft_sym_atoms *folds, question *q)
{
    Z3_ast facts[GRAFT_ROOM_BOUNDS];
    uint32_t count = graft_sym_bounds(s, folds, facts);
    for (uint32_t i = 0; i < count; i++) {
        add_given(q, facts[i]);
    }
}

/* Adds that folds are the parts that they are taken apart into, as is proposed; those of parts, too.
 * Whether there are any. */
static bool add_parts(graft_sym *s, const graft_facts *facts, graft_sym_atoms *folds, question *q)
{
    const graft_sym_hints *hints = s->hints;
    const uint32_t before = q->count;
    for (uint32_t i = 0; hints != NULL && i < folds->count; i++) {
        graft_sym_range range;
        s->fresh = 0; /* No symbol of the kind is in use in a question. */
        Z3_ast fold = folds->from[i];
        Z3_ast body = graft_sym_fold_open(s, fold, &range);
        Z3_ast condition = hints->part(s, folds->count, folds->from, i, &range, body);
        Z3_ast parts = condition == NULL || graft_sym_is_bound(s, condition)
                           ? fold
                           : graft_sym_fold_parted(s, facts, graft_sym_fold_kind(s, fold), &range,
                                                   body, condition);
        if (parts != fold && !graft_sym_is_open(s, parts)) {
            add_given(q, Z3_mk_eq(s->z3, fold, settle(s, facts, parts)));
            list_atoms(s, q, q->count, GRAFT_SYM_FOLDS, folds);
        }
    }
    return q->count > before;
}

static bool replace_folds(graft_sym_asker *a, const graft_facts *facts, bool apart, question *q)
{
    graft_sym_atoms folds = {.count = 0};
    list_atoms(a->s, q, q->count, GRAFT_SYM_FOLDS, &folds);
    add_bounds(a->s, &folds, q);
    list_atoms(a->s, q, q->count, GRAFT_SYM_FOLDS, &folds);
    if (apart && !add_parts(a->s, facts, &folds, q)) {
        return false;
    }
    if (folds.full) {
        return graft_sym_refuse(a->s, GRAFT_LIMIT_ATOMS);
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
    list_atoms(s, q, q->count, GRAFT_SYM_ELEMENTS, &elements);
    if (elements.full) {
        return graft_sym_refuse(s, GRAFT_LIMIT_ATOMS);
    }
    graft_sym_merge_elements(s, facts, &elements);
    Z3_ast symbols[GRAFT_ROOM_ATOMS];
    for (uint32_t i = 0; i < elements.count; i++) {
        symbols[i] = graft_sym_unknown(s, 'e', i);
        for (uint32_t k = 0; k < i; k++) {
            symbols[i] = elements.from[k] == elements.to[i] ? symbols[k] : symbols[i];
        }
    }
    memcpy((void *)elements.to, (const void *)symbols, sizeof symbols);
    replace_all(s, &elements, q);
    return true;
}

/* Of two sizes that Z3 says this of: the first is below the second. */
static void add_order(const graft_sym_asker *a, const graft_facts *facts,
                      const graft_sym_atoms *sizes, question *q)
{
    graft_sym *s = a->s;
    for (uint32_t i = 0; i < sizes->count; i++) {
        for (uint32_t k = 0; k < sizes->count; k++) {
            Z3_ast below = Z3_mk_lt(s->z3, graft_sym_arg(s, sizes->from[i], 0),
                                    graft_sym_arg(s, sizes->from[k], 0));
            if (i != k && graft_sym_holds(s, facts, below)) {
                add_given(q, Z3_mk_lt(s->z3, sizes->to[i], sizes->to[k]));
            }
        }
    }
}

/* Sizes as numbers become symbols, which are at least 1, or 0, if Z3 says that the sizes are. */
static bool replace_sizes(const graft_sym_asker *a, const graft_facts *facts, question *q)
{
    graft_sym *s = a->s;
    graft_sym_atoms sizes = {.count = 0};
    list_atoms(s, q, q->count, GRAFT_SYM_SIZES, &sizes);
    if (sizes.full) {
        return graft_sym_refuse(s, GRAFT_LIMIT_ATOMS);
    }
    for (uint32_t i = 0; i < sizes.count; i++) {
        sizes.to[i] = graft_sym_unknown(s, 'n', i);
    }
    replace_all(s, &sizes, q);
    for (uint32_t i = 0; i < sizes.count; i++) {
        Z3_ast size = graft_sym_arg(s, sizes.from[i], 0);
        if (graft_sym_holds(s, facts, Z3_mk_le(s->z3, graft_sym_int(s, 1), size))) {
            add_given(q, Z3_mk_le(s->z3, s->term.one, sizes.to[i]));
        } else if (graft_sym_holds(s, facts, Z3_mk_le(s->z3, graft_sym_int(s, 0), size))) {
            add_given(q, Z3_mk_le(s->z3, s->term.zero, sizes.to[i]));
        }
    }
    add_order(a, facts, &sizes, q);
    return true;
}

/* -------------------------------------------------------------------- asking */

/* Notes what is known to be true or asked to be unsatisfiable, also multiplied out. */
static void note_part(const graft_sym *s, Z3_params som, Z3_ast_map parts, Z3_ast part)
{
    Z3_ast_map_insert(s->z3, parts, part, part);
    Z3_ast_map_insert(s->z3, parts, Z3_simplify_ex(s->z3, part, som), part);
}

/* That the question is false, what may be assumed, and the laws of the functions that occur. */
static Z3_ast list_parts(const graft_sym *s, const graft_term_state *term, const question *q,
                         Z3_ast_map parts)
{
    Z3_params som = graft_prover_som(s->z3, GRAFT_LIMIT(MONOMIALS));
    Z3_ast claim = q->asked == 2 ? Z3_mk_eq(s->z3, q->terms[0], q->terms[1]) : q->terms[0];
    Z3_ast asked = Z3_mk_not(s->z3, claim);
    note_part(s, som, parts, asked);
    note_part(s, som, parts, graft_growth_laws(term, asked));
    for (uint32_t i = q->asked; i < q->count; i++) {
        note_part(s, som, parts, q->terms[i]);
    }
    for (uint32_t i = 0; i < Z3_ast_vector_size(s->z3, term->laws); i++) {
        note_part(s, som, parts, Z3_ast_vector_get(s->z3, term->laws, i));
    }
    Z3_params_dec_ref(s->z3, som);
    return asked;
}

/* The question as one formula. */
static Z3_ast join_question(const graft_sym *s, const question *q)
{
    Z3_ast claim = q->asked == 2 ? Z3_mk_eq(s->z3, q->terms[0], q->terms[1]) : q->terms[0];
    Z3_ast all[2 + GRAFT_ROOM_GIVEN] = {Z3_mk_not(s->z3, claim)};
    const uint32_t given = q->count - q->asked;
    memcpy((void *)(all + 1), (const void *)(q->terms + q->asked), given * sizeof *all);
    return Z3_mk_and(s->z3, given + 1, all);
}

static bool refute(graft_sym_asker *a, question *q)
{
    graft_sym *s = a->s;
    graft_term_state term;
    graft_asked r = {.count = 0};
    Z3_ast_map parts = graft_term_map(s->z3);
    graft_term_open(&term, s->z3);
    for (uint32_t i = 0; i < q->count; i++) {
        q->terms[i] =
            graft_term_rebuild(s->z3, graft_sym_simplify(s, q->terms[i]), graft_term_renew, &term);
    }
    r.formula = list_parts(s, &term, q, parts);
    if (s->hints == NULL) {
        (void)graft_prover_ask(s->prover, r.formula, GRAFT_SEARCH_NONE);
    } else {
        r = s->hints->refute(s, &term, r.formula, q->count - q->asked, q->terms + q->asked);
    }
    bool proved = graft_prover_refutes(s->prover, &r, parts);
    Z3_ast_map_dec_ref(s->z3, parts);
    graft_term_close(&term);
    return proved;
}

/* What was proved of a question holds of every other that is the same formula. */
static bool ask_solver(graft_sym_asker *a, question *q)
{
    Z3_ast_map settled = a->s->assumed->settled;
    Z3_ast formula = join_question(a->s, q);
    if (Z3_ast_map_contains(a->s->z3, settled, formula)) {
        return true;
    }
    if (!refute(a, q)) {
        return false;
    }
    Z3_ast_map_insert(a->s->z3, settled, formula, formula);
    return true;
}

/* Whether the difference of two values is linear in sums over one range, and Z3 says that it is 0
 * for what is summed: then it is 0 for the sums. Binders are named alike (symbounds.c). */
static bool is_summed_alike(graft_sym *s, const graft_facts *facts, Z3_ast left, Z3_ast right)
{
    graft_sym_atoms sums = {.count = 0};
    Z3_ast apart = graft_sym_normal(s, Z3_mk_sub(s->z3, 2, (Z3_ast[]){left, right}));
    graft_sym_list(s, apart, GRAFT_SYM_FOLDS, &sums);
    bool alike = sums.count > 1 && !sums.full && graft_sym_kind(s, apart) == Z3_OP_ADD;
    for (uint32_t i = 0; i < sums.count && alike; i++) {
        sums.to[i] = graft_sym_arg(s, sums.from[i], graft_sym_arity(s, sums.from[i]) - 1);
        Z3_ast other = Z3_substitute(s->z3, sums.from[0], 1, &sums.to[0], &sums.to[i]);
        alike = other == sums.from[i] && graft_sym_fold_kind(s, other) == GRAFT_SYM_SUM;
    }
    for (uint32_t i = 0; alike && i < graft_sym_arity(s, apart); i++) {
        Z3_ast term = graft_sym_arg(s, apart, i);
        const bool product = graft_sym_kind(s, term) == Z3_OP_MUL;
        uint32_t degree = 0;
        for (uint32_t k = 0; k < (product ? graft_sym_arity(s, term) : 1); k++) {
            Z3_ast part = product ? graft_sym_arg(s, term, k) : term;
            const bool is_sum = graft_sym_fold_kind(s, part) == GRAFT_SYM_SUM;
            degree += is_sum ? 1 : graft_sym_replace(s, &sums, part) != part ? 2 : 0;
        }
        alike = degree == 1;
    }
    return alike &&
           graft_sym_is_so(s, facts,
                           Z3_mk_eq(s->z3, graft_sym_replace(s, &sums, apart), s->term.zero));
}

/* One question without conditionals on indices. */
static bool ask_leaf(graft_sym_asker *a, const graft_facts *facts, question *q)
{
    if (++a->leaves > GRAFT_LIMIT(LEAVES)) {
        return graft_sym_refuse(a->s, GRAFT_LIMIT_LEAVES);
    }
    if (graft_sym_is_spent(a->s)) {
        return false;
    }
    for (uint32_t i = 0; i < a->s->assumed->number_count; i++) {
        add_given(q, a->s->assumed->numbers[i]);
    }
    assume_conditions(a, facts, q);
    bool proved = false;
    for (uint32_t apart = 0; apart < 2 && !proved; apart++) {
        question now = *q;
        proved = replace_folds(a, facts, apart == 1, &now) && replace_elements(a, facts, &now) &&
                 replace_sizes(a, facts, &now) && ask_solver(a, &now);
    }
    return proved || (q->asked == 2 && is_summed_alike(a->s, facts, q->terms[0], q->terms[1]));
}

static bool ask(graft_sym_asker *a, const graft_facts *facts, const question *q)
{
    graft_sym *s = a->s;
    question now = *q;
    Z3_ast condition = NULL;
    for (uint32_t i = 0; i < now.asked; i++) {
        now.terms[i] = now.asked == 2 ? graft_sym_normal(s, now.terms[i])
                                      : graft_sym_simplify(s, now.terms[i]);
        condition = condition == NULL ? find_condition(s, now.terms[i]) : condition;
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
