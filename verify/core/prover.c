/* prover.c - the ways of asking Z3 about an obligation.
 *
 * Most obligations are polynomial identities, possibly under the same case distinctions on both
 * sides: multiplied out into sums of monomials, the two sides become the same term and the joined
 * question becomes `false` before any search. Where that is not enough, questions are asked one by
 * one, the easier forms of each first, and those that differ only in the names of their symbols
 * once. An easier form claims more than the question: `unsat` of it proves the question, `sat`
 * refutes it only when nothing was replaced. */
#include "verify/core/prover.h"

#include "verify/core/obligation.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

graft_prove_options graft_prove_defaults(void)
{
    return (graft_prove_options){
        .resource_limit = 400000, .memory_mb = 1024, .most = {60000000, 600000}
    };
}

typedef graft_prover prover;

/* ------------------------------------------------------------------- asking */

typedef enum {
    SEARCH_NONE,
    SEARCH_LINEAR,
    SEARCH_CASES, /* Linear, in each case that maxima and the like distinguish. */
    SEARCH_REAL_CLOSED,
    SEARCH_GENERAL,  /* Nonlinear, by the older simplex, */
    SEARCH_GENERAL_2 /* and by the newer one. */
} search_kind;

/* The older simplex keeps to its resource limit where the newer one, on products of functions, does
 * not; the newer one decides more case distinctions. In linear search monomials are independent
 * numbers. */
static Z3_tactic make_search(Z3_context z3, search_kind kind)
{
    static const char *const names[] = {"skip", "smt", "smt", "qfnra-nlsat", "smt", "smt"};
    Z3_tactic search = Z3_mk_tactic(z3, names[kind]);
    Z3_tactic_inc_ref(z3, search);
    if (kind != SEARCH_LINEAR && kind != SEARCH_GENERAL) {
        return search; /* Z3 chooses the newer simplex where it needs one. */
    }
    Z3_params simplex = Z3_mk_params(z3);
    Z3_params_inc_ref(z3, simplex);
    Z3_params_set_bool(z3, simplex, Z3_mk_string_symbol(z3, "arith.nl"), kind == SEARCH_GENERAL);
    Z3_params_set_uint(z3, simplex, Z3_mk_string_symbol(z3, "arith.solver"), 2);
    Z3_tactic limited = Z3_tactic_using_params(z3, search, simplex);
    Z3_tactic_inc_ref(z3, limited);
    Z3_tactic_dec_ref(z3, search);
    Z3_params_dec_ref(z3, simplex);
    return limited;
}

/* Multiply out, then search. */
static Z3_tactic make_tactic(Z3_context z3, search_kind kind)
{
    Z3_params som = graft_obligation_som(z3);
    Z3_tactic simplify = Z3_mk_tactic(z3, "simplify");
    Z3_tactic_inc_ref(z3, simplify);
    Z3_tactic multiply = Z3_tactic_using_params(z3, simplify, som);
    Z3_tactic_inc_ref(z3, multiply);
    Z3_tactic search = make_search(z3, kind);
    Z3_tactic both = Z3_tactic_and_then(z3, multiply, search);
    Z3_tactic_inc_ref(z3, both);
    Z3_tactic_dec_ref(z3, search);
    Z3_tactic_dec_ref(z3, multiply);
    Z3_tactic_dec_ref(z3, simplify);
    Z3_params_dec_ref(z3, som);
    return both;
}

/* Z3 counts the resources of a context, whichever solver takes them. */
static void count_resources(prover *p, Z3_solver solver)
{
    Z3_stats stats = Z3_solver_get_statistics(p->z3, solver);
    Z3_stats_inc_ref(p->z3, stats);
    for (uint32_t i = 0; i < Z3_stats_size(p->z3, stats); i++) {
        if (strcmp(Z3_stats_get_key(p->z3, stats, i), "rlimit count") == 0) {
            p->resource_last = Z3_stats_get_uint_value(p->z3, stats, i);
        }
    }
    Z3_stats_dec_ref(p->z3, stats);
    p->result->resource_count = p->resource_last - p->resource_base;
}

Z3_lbool graft_prover_check(prover *p, Z3_solver solver)
{
    Z3_lbool answer = Z3_solver_check(p->z3, solver);
    count_resources(p, solver);
    p->result->questions++;
    return answer;
}

bool graft_prover_is_spent(const prover *p)
{
    return p->result->resource_count > p->options->most.resource_count;
}

void graft_prover_tell(const prover *p, Z3_ast formula)
{
    if (p->options->listener != NULL) {
        p->options->listener->hear(p->options->listener->context, p->z3, formula);
    }
}

static void note_reason(const prover *p, const char *why)
{
    (void)snprintf(p->result->reason, sizeof p->result->reason, "%s", why);
}

/* The answer, as far as it counts: a mute solver says nothing, nor does one that has had its share.
 */
static Z3_lbool judge(const prover *p, Z3_solver solver, Z3_lbool answer)
{
    bool spent = graft_prover_is_spent(p);
    if (p->options->solver_is_mute || spent) {
        note_reason(p, spent ? GRAFT_PROVE_SPENT : "mute");
        return Z3_L_UNDEF;
    }
    if (answer == Z3_L_UNDEF) {
        note_reason(p, Z3_solver_get_reason_unknown(p->z3, solver));
    }
    return answer;
}

static Z3_lbool ask(prover *p, Z3_ast question, search_kind kind)
{
    if (graft_prover_is_spent(p)) {
        note_reason(p, GRAFT_PROVE_SPENT);
        return Z3_L_UNDEF;
    }
    Z3_tactic tactic = make_tactic(p->z3, kind);
    Z3_solver solver = Z3_mk_solver_from_tactic(p->z3, tactic);
    Z3_solver_inc_ref(p->z3, solver);
    Z3_params limit = Z3_mk_params(p->z3);
    Z3_params_inc_ref(p->z3, limit);
    Z3_params_set_uint(p->z3, limit, Z3_mk_string_symbol(p->z3, "rlimit"),
                       p->options->resource_limit);
    Z3_solver_set_params(p->z3, solver, limit);
    Z3_solver_assert(p->z3, solver, question);
    Z3_lbool answer = judge(p, solver, graft_prover_check(p, solver));
    if (answer == Z3_L_FALSE) {
        graft_prover_tell(p, question);
    }
    Z3_params_dec_ref(p->z3, limit);
    Z3_solver_dec_ref(p->z3, solver);
    Z3_tactic_dec_ref(p->z3, tactic);
    return answer;
}

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
        return ask(p, question, SEARCH_LINEAR) == Z3_L_FALSE;
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
    search_kind kind;
    uint32_t symbols_most;
    uint32_t tied_symbols_most; /* Where some stand for applications of functions. */
    bool polynomial;            /* Only where none stands for an application or a reciprocal. */
} way_of_asking;

static const way_of_asking ways[] = {
    {GRAFT_EASE_CUT,      SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_CUT,      SEARCH_REAL_CLOSED, 16,         6,          false},
    {GRAFT_EASE_CUT,      SEARCH_GENERAL_2,   24,         24,         true },
    {GRAFT_EASE_CUT,      SEARCH_GENERAL,     24,         24,         false},
    {GRAFT_EASE_NONE,     SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_LARGEST,  SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_PURE,     SEARCH_REAL_CLOSED, 16,         6,          false},
    {GRAFT_EASE_PURE,     SEARCH_GENERAL_2,   24,         24,         true },
    {GRAFT_EASE_PURE,     SEARCH_GENERAL,     24,         24,         false},
    {GRAFT_EASE_NONE,     SEARCH_GENERAL,     24,         24,         false},
    {GRAFT_EASE_NONE,     SEARCH_CASES,       24,         24,         false},
    {GRAFT_EASE_CANCELED, SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_GROWING,  SEARCH_LINEAR,      UINT32_MAX, UINT32_MAX, false},
    {GRAFT_EASE_GROWING,  SEARCH_GENERAL,     24,         24,         false},
};

/* Whether there are more products in its sums than a search bears that does not see how large its
 * polynomials are: a step with one is a unit of its limit, and may take a millisecond, or not end. */
static bool has_large_sums(const graft_eased *form, search_kind kind)
{
    return (kind == SEARCH_REAL_CLOSED && form->summands > GRAFT_LIMIT(SUMMANDS)) ||
           (kind == SEARCH_GENERAL_2 && form->summands > GRAFT_LIMIT(FEW_SUMMANDS));
}

/* Nonlinear search takes nested maxima apart, as many cases as they have subsets, without a look at
 * the resource limit. */
static bool is_too_large(const graft_eased *form, const way_of_asking *way)
{
    uint32_t most = form->functions > 0 ? way->tied_symbols_most : way->symbols_most;
    bool searches = way->kind == SEARCH_GENERAL || way->kind == SEARCH_GENERAL_2;
    return form->symbols > most || (searches && form->choices > GRAFT_LIMIT(CHOICES)) ||
           (way->polynomial && form->functions + form->inverses > 0) ||
           has_large_sums(form, way->kind);
}

static Z3_lbool answer_of(prover *p, const graft_eased *form, search_kind kind)
{
    if (kind != SEARCH_CASES) {
        return ask(p, form->question, kind);
    }
    bool few = form->choices > 0 && form->choices <= GRAFT_LIMIT(QUESTION_SPLITS);
    return few && refute_cases(p, form->question, 0) ? Z3_L_FALSE : Z3_L_UNDEF;
}

enum { WAY_COUNT = sizeof ways / sizeof ways[0] };

/* One question, its forms, and what came of each way of asking so far. */
typedef struct {
    graft_eased forms[GRAFT_EASE_COUNT];
    bool made[GRAFT_EASE_COUNT];
    bool asked[WAY_COUNT];
    Z3_lbool answers[WAY_COUNT];
} inquiry;

/* A way before this one that searched the same form in the manner of `kind`: where there is nothing
 * to replace, forms are the same term. WAY_COUNT when there is none. */
static size_t find_asked(const inquiry *q, size_t way, search_kind kind)
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
    size_t before = find_asked(q, way, SEARCH_REAL_CLOSED);
    return ways[way].kind == SEARCH_GENERAL_2 && before < WAY_COUNT &&
           q->answers[before] == Z3_L_UNDEF;
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
        Z3_ast_map_insert(p->z3, p->unsatisfiable, form->question, form->question);
        return GRAFT_VERDICT_PROVED;
    }
    bool refutes = q->answers[w] == Z3_L_TRUE && way->kind != SEARCH_LINEAR && form->exact;
    return refutes ? GRAFT_VERDICT_REFUTED : GRAFT_VERDICT_UNKNOWN;
}

static graft_verdict ask_all_ways(prover *p, const graft_obligation *o, uint32_t i)
{
    inquiry q = {0};
    for (size_t w = 0; w < WAY_COUNT; w++) {
        graft_ease ease = ways[w].ease;
        if (!q.made[ease]) {
            q.forms[ease] = graft_obligation_eased(o, i, ease);
            q.made[ease] = true;
        }
        if (Z3_ast_map_contains(p->z3, p->unsatisfiable, q.forms[ease].question)) {
            return GRAFT_VERDICT_PROVED;
        }
        graft_verdict verdict = ask_one_way(p, &q, w);
        if (verdict != GRAFT_VERDICT_UNKNOWN) {
            return verdict;
        }
    }
    return GRAFT_VERDICT_UNKNOWN;
}

static graft_verdict ask_single(prover *p, const graft_obligation *o, uint32_t i)
{
    Z3_ast name = graft_obligation_name(o, i);
    if (Z3_ast_map_contains(p->z3, p->unsatisfiable, name)) {
        return GRAFT_VERDICT_PROVED;
    }
    graft_verdict verdict = ask_all_ways(p, o, i);
    if (verdict == GRAFT_VERDICT_PROVED) {
        Z3_ast_map_insert(p->z3, p->unsatisfiable, name, name);
    }
    return verdict;
}

graft_verdict graft_prove_obligation(graft_prover *p, const graft_obligation *o)
{
    if (ask(p, graft_obligation_joined(o), SEARCH_NONE) == Z3_L_FALSE) {
        return GRAFT_VERDICT_PROVED;
    }
    graft_verdict verdict = GRAFT_VERDICT_PROVED;
    for (uint32_t i = 0; i < o->count && verdict == GRAFT_VERDICT_PROVED; i++) {
        verdict = ask_single(p, o, i);
        if (verdict != GRAFT_VERDICT_PROVED && o->caught != NULL && o->caught[i]) {
            note_reason(p, GRAFT_PROVE_CAUGHT);
            return GRAFT_VERDICT_UNKNOWN;
        }
    }
    return verdict;
}

/* An error inside Z3 ends the process: no answer is not an answer. */
static void stop_on_error(Z3_context z3, Z3_error_code code)
{
    (void)fprintf(stderr, "graft: z3: %s\n", Z3_get_error_msg(z3, code));
    if (code == Z3_MEMOUT_FAIL) {
        _Exit(GRAFT_EXIT_NO_MEMORY);
    }
    abort();
}

void graft_prover_open(graft_prover *p, const graft_prove_options *options,
                       graft_prove_result *result)
{
    char megabytes[GRAFT_ROOM_NAME];
    (void)snprintf(megabytes, sizeof megabytes, "%" PRIu32, options->memory_mb);
    Z3_global_param_set("memory_max_size", megabytes);
    Z3_config config = Z3_mk_config();
    Z3_context z3 = Z3_mk_context(config);
    Z3_del_config(config);
    if (z3 == NULL) {
        (void)fprintf(stderr, "graft: z3: no memory for a context\n");
        _Exit(GRAFT_EXIT_NO_MEMORY);
    }
    Z3_set_error_handler(z3, stop_on_error);
    *p = (graft_prover){.z3 = z3, .unsatisfiable = graft_term_map(z3)};
    graft_prover_begin(p, options, result);
}

void graft_prover_begin(graft_prover *p, const graft_prove_options *options,
                        graft_prove_result *result)
{
    memset(result, 0, sizeof *result);
    p->options = options;
    p->result = result;
    p->resource_base = p->resource_last;
}

void graft_prover_close(graft_prover *p)
{
    Z3_ast_map_dec_ref(p->z3, p->unsatisfiable);
    Z3_del_context(p->z3);
}
