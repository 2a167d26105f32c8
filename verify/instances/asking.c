/* asking.c - see asking.h. */
#include "verify/instances/asking.h"

#include "verify/core/limits.h"

#include <string.h>

typedef graft_prover prover;

/* Beside those of prover.h: linear, in each case that maxima and the like distinguish. */
enum { SEARCH_CASES = GRAFT_SEARCH_GENERAL_2 + 1 };

/* -------------------------------------------------------------------- cases */

/* The condition of a choice in `term` that itself has no choice in it, or NULL. */
static Z3_ast find_choice(Z3_context z3, Z3_ast term, Z3_ast_map seen)
{
    if (Z3_get_ast_kind(z3, term) != Z3_APP_AST || Z3_ast_map_contains(z3, seen, term)) {
        return NULL;
    }
    Z3_ast_map_insert(z3, seen, term, term);
    Z3_app app = Z3_to_app(z3, term);
    Z3_ast found = NULL;
    for (uint32_t i = 0; i < Z3_get_app_num_args(z3, app) && found == NULL; i++) {
        found = find_choice(z3, Z3_get_app_arg(z3, app, i), seen);
    }
    bool choice = Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app)) == Z3_OP_ITE;
    return found == NULL && choice ? Z3_get_app_arg(z3, app, 0) : found;
}

static Z3_ast choice_in(Z3_context z3, Z3_ast term)
{
    Z3_ast_map seen = graft_term_map(z3);
    Z3_ast found = find_choice(z3, term, seen);
    Z3_ast_map_dec_ref(z3, seen);
    return found;
}

/* Whether the question is unsatisfiable where the first condition holds, and where it does not: in
 * each case choices are carried out before products are multiplied out. */
static bool refute_cases(prover *p, Z3_ast question, uint32_t depth)
{
    Z3_ast condition = depth < GRAFT_LIMIT(QUESTION_SPLITS) ? choice_in(p->z3, question) : NULL;
    if (condition == NULL) {
        return graft_prover_ask(p, question, GRAFT_SEARCH_LINEAR) == Z3_L_FALSE;
    }
    bool refuted = true;
    for (uint32_t way = 0; way < 2 && refuted; way++) {
        Z3_ast value = way == 0 ? Z3_mk_true(p->z3) : Z3_mk_false(p->z3);
        Z3_ast given = way == 0 ? condition : Z3_mk_not(p->z3, condition);
        Z3_ast both[2] = {given, Z3_substitute(p->z3, question, 1, &condition, &value)};
        Z3_ast simple = Z3_simplify(p->z3, Z3_mk_and(p->z3, 2, both));
        refuted = refute_cases(p, simple, depth + 1);
    }
    return refuted;
}

/* -------------------------------------------------------------- obligations */

/* The ways of asking one question, the cheapest first. Linear search wants the functions left in:
 * congruence decides much that the numbers in their place leave open. The decision procedure of the
 * reals wants them out. Nonlinear search does not always look at the resource limit: it is tried
 * only on few symbols, the decision procedure on fewer still where laws of functions tie them
 * together. */
typedef struct {
    graft_ease ease;
    uint32_t kind;
    uint32_t symbols_most;
    uint32_t tied_symbols_most; /* Where some stand for applications of functions. */
    bool polynomial;            /* Only where none stands for an application or a reciprocal. */
} way_of_asking;

static const way_of_asking ways[] = {
    {GRAFT_EASE_CUT,      GRAFT_SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_CUT,      GRAFT_SEARCH_REAL_CLOSED, 16,         6,          false},
    {GRAFT_EASE_CUT,      GRAFT_SEARCH_GENERAL_2,   24,         24,         true },
    {GRAFT_EASE_CUT,      GRAFT_SEARCH_GENERAL,     24,         24,         false},
    {GRAFT_EASE_NONE,     GRAFT_SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_LARGEST,  GRAFT_SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_PURE,     GRAFT_SEARCH_REAL_CLOSED, 16,         6,          false},
    {GRAFT_EASE_PURE,     GRAFT_SEARCH_GENERAL_2,   24,         24,         true },
    {GRAFT_EASE_PURE,     GRAFT_SEARCH_GENERAL,     24,         24,         false},
    {GRAFT_EASE_NONE,     GRAFT_SEARCH_GENERAL,     24,         24,         false},
    {GRAFT_EASE_NONE,     SEARCH_CASES,             24,         24,         false},
    {GRAFT_EASE_CANCELED, GRAFT_SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_GROWING,  GRAFT_SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_GROWING,  GRAFT_SEARCH_GENERAL,     24,         24,         false},
};

/* Whether there are more products in its sums than a search bears that does not see how large its
 * polynomials are: a step with one is a unit of its limit, and may take a millisecond, or not
 * end. */
static bool has_large_sums(const graft_eased *form, uint32_t kind)
{
    return (kind == GRAFT_SEARCH_REAL_CLOSED && form->summands > GRAFT_LIMIT(SUMMANDS)) ||
           (kind == GRAFT_SEARCH_GENERAL_2 && form->summands > GRAFT_LIMIT(FEW_SUMMANDS));
}

/* Nonlinear search takes nested maxima apart, as many cases as they have subsets, without a look at
 * the resource limit. */
static bool is_too_large(const graft_eased *form, const way_of_asking *way)
{
    uint32_t most = form->functions > 0 ? way->tied_symbols_most : way->symbols_most;
    bool searches = way->kind == GRAFT_SEARCH_GENERAL || way->kind == GRAFT_SEARCH_GENERAL_2;
    return form->symbols > most || (searches && form->choices > GRAFT_LIMIT(CHOICES)) ||
           (way->polynomial && form->functions + form->inverses > 0) ||
           has_large_sums(form, way->kind);
}

static Z3_lbool answer_of(prover *p, const graft_eased *form, uint32_t kind)
{
    if (kind != SEARCH_CASES) {
        return graft_prover_ask(p, form->question, (graft_search)kind);
    }
    bool few = form->choices > 0 && form->choices <= GRAFT_LIMIT(QUESTION_SPLITS);
    return few && refute_cases(p, form->question, 0) ? Z3_L_FALSE : Z3_L_UNDEF;
}

enum { WAY_COUNT = sizeof ways / sizeof ways[0] };

/* One question, its forms, and what came of each way of asking so far. */
typedef struct {
    graft_eased forms[GRAFT_EASE_COUNT];
    bool asked[WAY_COUNT];
    Z3_lbool answers[WAY_COUNT];
} inquiry;

/* A way before this one that searched the same form in the manner of `kind`: where there is nothing
 * to replace, forms are the same term. WAY_COUNT when there is none. */
static size_t find_asked(const inquiry *q, size_t way, uint32_t kind)
{
    Z3_ast question = q->forms[ways[way].ease].question;
    for (size_t w = 0; w < way; w++) {
        if (q->asked[w] && ways[w].kind == kind && q->forms[ways[w].ease].question == question) {
            return w;
        }
    }
    return WAY_COUNT;
}

/* Whether the decision procedure of the reals gave up on the form: the newer simplex, that has no
 * eye on its limit, hardly ever decides it then, and may not end. */
static bool is_hopeless(const inquiry *q, size_t way)
{
    size_t before = find_asked(q, way, GRAFT_SEARCH_REAL_CLOSED);
    return ways[way].kind == GRAFT_SEARCH_GENERAL_2 && before < WAY_COUNT &&
           q->answers[before] == Z3_L_UNDEF;
}

static Z3_ast number_of(const prover *p, size_t way)
{
    return Z3_mk_int64(p->z3, (int64_t)way, Z3_mk_int_sort(p->z3));
}

static graft_verdict ask_one_way(prover *p, inquiry *q, size_t w)
{
    const way_of_asking *way = &ways[w];
    const graft_eased *form = &q->forms[way->ease];
    if (is_too_large(form, way) || is_hopeless(q, w)) {
        return GRAFT_VERDICT_UNKNOWN;
    }
    size_t before = find_asked(q, w, way->kind);
    q->answers[w] = before < WAY_COUNT ? q->answers[before] : answer_of(p, form, way->kind);
    q->asked[w] = true;
    if (q->answers[w] == Z3_L_FALSE) {
        Z3_ast_map_insert(p->z3, p->names, form->question, number_of(p, w));
        return GRAFT_VERDICT_PROVED;
    }
    bool refutes = q->answers[w] == Z3_L_TRUE && way->kind != GRAFT_SEARCH_LINEAR && form->exact;
    return refutes ? GRAFT_VERDICT_REFUTED : GRAFT_VERDICT_UNKNOWN;
}

static graft_verdict ask_all_ways(prover *p, const graft_obligation *o, uint32_t i, size_t *way)
{
    inquiry q = {0};
    for (size_t w = 0; w < WAY_COUNT; w++) {
        graft_ease ease = ways[w].ease;
        *way = w;
        if (o->checked && (ways[w].kind == SEARCH_CASES || ease == GRAFT_EASE_CANCELED ||
                           ease == GRAFT_EASE_LARGEST)) {
            continue; /* Not one question that the prover is asked, or an equal one. */
        }
        if (q.forms[ease].question == NULL) {
            q.forms[ease] = graft_obligation_eased(o, i, ease);
        }
        if (Z3_ast_map_contains(p->z3, p->names, q.forms[ease].question)) {
            return GRAFT_VERDICT_PROVED;
        }
        graft_verdict verdict = ask_one_way(p, &q, w);
        if (verdict != GRAFT_VERDICT_UNKNOWN) {
            return verdict;
        }
    }
    return GRAFT_VERDICT_UNKNOWN;
}

/* `*way`: in which it was proved. */
static graft_verdict ask_single(prover *p, const graft_obligation *o, uint32_t i, size_t *way)
{
    Z3_ast name = graft_obligation_name(o, i);
    int64_t known = 0;
    if (Z3_ast_map_contains(p->z3, p->names, name)) {
        (void)Z3_get_numeral_int64(p->z3, Z3_ast_map_find(p->z3, p->names, name), &known);
        *way = (size_t)known;
        return GRAFT_VERDICT_PROVED;
    }
    graft_verdict verdict = ask_all_ways(p, o, i, way);
    if (verdict == GRAFT_VERDICT_PROVED) {
        Z3_ast_map_insert(p->z3, p->names, name, number_of(p, *way));
    }
    return verdict;
}

bool graft_ask_refute(graft_prover *p, const graft_obligation *o, graft_asked *refutation)
{
    size_t way = 0;
    *refutation = (graft_asked){.formula = o->questions[0]};
    if (!Z3_ast_map_contains(p->z3, p->names, graft_obligation_name(o, 0)) &&
        graft_prover_ask(p, o->questions[0], GRAFT_SEARCH_NONE) == Z3_L_FALSE) {
        return true;
    }
    if (ask_single(p, o, 0, &way) != GRAFT_VERDICT_PROVED) {
        return false;
    }
    graft_eased form = graft_obligation_eased(o, 0, ways[way].ease);
    if (!Z3_ast_map_contains(p->z3, p->unsatisfiable, form.question) && /* Known by its name. */
        ask_all_ways(p, o, 0, &way) == GRAFT_VERDICT_PROVED) {
        form = graft_obligation_eased(o, 0, ways[way].ease);
    }
    *refutation = (graft_asked){form.question, form.symbols, form.names, form.meanings};
    return true;
}

graft_verdict graft_prove_obligation(graft_prover *p, const graft_obligation *o)
{
    if (graft_prover_ask(p, graft_obligation_joined(o), GRAFT_SEARCH_NONE) == Z3_L_FALSE) {
        return GRAFT_VERDICT_PROVED;
    }
    graft_verdict verdict = GRAFT_VERDICT_PROVED;
    size_t way = 0;
    for (uint32_t i = 0; i < o->count && verdict == GRAFT_VERDICT_PROVED; i++) {
        verdict = ask_single(p, o, i, &way);
        if (verdict != GRAFT_VERDICT_PROVED && o->caught != NULL && o->caught[i]) {
            graft_prover_note(p, GRAFT_PROVE_CAUGHT);
            return GRAFT_VERDICT_UNKNOWN;
        }
    }
    return verdict;
}
