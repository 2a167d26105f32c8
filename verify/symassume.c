/* symassume.c - see symassume.h. */
#include "verify/symassume.h"

#include "verify/symproduct.h"

#include <string.h>

enum { HOLDS_LIMIT = 60000, FACTS_MOST = 32, BITS = 64 * GRAFT_SYM_MASK_WORDS };

/* ------------------------------------------------------------------- symbols */

typedef struct {
    graft_sym *s;
    graft_sym_mask mask;
} mask_search;

static uint32_t bit_of(graft_sym *s, Z3_ast symbol)
{
    graft_sym_assumed *a = s->assumed;
    int bit = BITS - 1;
    if (Z3_ast_map_contains(s->z3, a->symbols, symbol)) {
        (void)Z3_get_numeral_int(s->z3, Z3_ast_map_find(s->z3, a->symbols, symbol), &bit);
    } else if (a->symbol_count < BITS - 1) {
        bit = (int)a->symbol_count++;
        Z3_ast_map_insert(s->z3, a->symbols, symbol, Z3_mk_int(s->z3, bit, s->integer));
    }
    return (uint32_t)bit;
}

static bool visit_symbol(void *context, Z3_ast term)
{
    mask_search *m = context;
    if (graft_sym_arity(m->s, term) == 0 && graft_sym_kind(m->s, term) == Z3_OP_UNINTERPRETED) {
        uint32_t bit = bit_of(m->s, term);
        m->mask.words[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    return true;
}

static graft_sym_mask mask_of(graft_sym *s, Z3_ast term)
{
    mask_search m = {.s = s};
    graft_sym_walk(s, term, visit_symbol, &m);
    return m.mask;
}

static bool meet(const graft_sym_mask *a, const graft_sym_mask *b)
{
    uint64_t common = 0;
    for (uint32_t i = 0; i < GRAFT_SYM_MASK_WORDS; i++) {
        common |= a->words[i] & b->words[i];
    }
    return common != 0;
}

static void join(graft_sym_mask *a, const graft_sym_mask *b)
{
    for (uint32_t i = 0; i < GRAFT_SYM_MASK_WORDS; i++) {
        a->words[i] |= b->words[i];
    }
}

/* ------------------------------------------------------------------ assuming */

void graft_sym_assume(graft_sym *s, Z3_ast hypothesis)
{
    graft_sym_assumed *a = s->assumed;
    Z3_ast claim = graft_sym_expand(s, hypothesis);
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->claims[i] == claim) {
            return;
        }
    }
    if (a->count == GRAFT_SYM_ASSUMED_MOST) {
        return;
    }
    a->claims[a->count] = claim;
    a->masks[a->count] = mask_of(s, a->claims[a->count]);
    a->count++;
    if (a->number_count < GRAFT_RULE_MAX_SLOTS && graft_sym_is_real(s, hypothesis)) {
        a->numbers[a->number_count++] = hypothesis;
    }
}

static void limit_resources(const graft_sym *s, Z3_solver solver)
{
    Z3_params limit = Z3_mk_params(s->z3);
    Z3_params_inc_ref(s->z3, limit);
    Z3_params_set_uint(s->z3, limit, Z3_mk_string_symbol(s->z3, "rlimit"),
                       s->options->resource_limit < HOLDS_LIMIT ? s->options->resource_limit
                                                                : HOLDS_LIMIT);
    Z3_solver_set_params(s->z3, solver, limit);
    Z3_params_dec_ref(s->z3, limit);
}

static Z3_lbool check(graft_sym *s)
{
    uint64_t count = 0;
    s->questions++;
    Z3_lbool answer = Z3_solver_check(s->z3, s->assumed->solver);
    Z3_stats stats = Z3_solver_get_statistics(s->z3, s->assumed->solver);
    Z3_stats_inc_ref(s->z3, stats);
    for (uint32_t i = 0; i < Z3_stats_size(s->z3, stats); i++) {
        if (strcmp(Z3_stats_get_key(s->z3, stats, i), "rlimit count") == 0) {
            count = Z3_stats_get_uint_value(s->z3, stats, i);
        }
    }
    Z3_stats_dec_ref(s->z3, stats);
    s->resource_count = count;
    return s->options->solver_is_mute ? Z3_L_UNDEF : answer;
}

static bool is_unsatisfiable(graft_sym *s, Z3_ast formula)
{
    Z3_solver_push(s->z3, s->assumed->solver);
    Z3_solver_assert(s->z3, s->assumed->solver, formula);
    bool unsatisfiable = check(s) == Z3_L_FALSE;
    if (unsatisfiable) {
        graft_prove_tell(s->options, s->z3, formula);
    }
    Z3_solver_pop(s->z3, s->assumed->solver, 1);
    return unsatisfiable;
}

bool graft_sym_is_impossible(graft_sym *s)
{
    graft_sym_assumed *a = s->assumed;
    return a->count > 0 && is_unsatisfiable(s, Z3_mk_and(s->z3, a->count, a->claims));
}

/* ------------------------------------------------------------------ questions */

/* The assumptions and facts that hang together with `question`, and that it is false. */
static Z3_ast state_question(graft_sym *s, const graft_facts *facts, Z3_ast question)
{
    graft_sym_assumed *a = s->assumed;
    Z3_ast parts[GRAFT_SYM_ASSUMED_MOST + FACTS_MOST + GRAFT_SYM_LEMMAS_MOST + 1];
    Z3_ast known[FACTS_MOST];
    graft_sym_mask masks[FACTS_MOST];
    bool taken[GRAFT_SYM_ASSUMED_MOST + FACTS_MOST] = {false};
    uint32_t fact_count = 0;
    uint32_t count = 0;
    graft_sym_mask reach = mask_of(s, question);
    for (; facts != NULL && fact_count < FACTS_MOST; facts = facts->outer) {
        known[fact_count] = graft_sym_expand(s, facts->fact);
        masks[fact_count] = mask_of(s, known[fact_count]);
        fact_count++;
    }
    parts[count++] = Z3_mk_not(s->z3, question);
    count += graft_sym_list_products(s, question, fact_count, known, &parts[count]);
    for (bool grew = true; grew;) {
        grew = false;
        for (uint32_t i = 0; i < a->count + fact_count; i++) {
            const graft_sym_mask *mask = i < a->count ? &a->masks[i] : &masks[i - a->count];
            if (!taken[i] && meet(mask, &reach)) {
                join(&reach, mask);
                taken[i] = grew = true;
            }
        }
    }
    for (uint32_t i = 0; i < a->count + fact_count; i++) {
        if (taken[i]) {
            parts[count++] = i < a->count ? a->claims[i] : known[i - a->count];
        }
    }
    return Z3_mk_and(s->z3, count, parts);
}

bool graft_sym_holds(graft_sym *s, const graft_facts *facts, Z3_ast goal)
{
    graft_sym_assumed *a = s->assumed;
    Z3_ast plain = graft_sym_simplify(s, graft_sym_expand(s, goal));
    Z3_lbool value = Z3_get_bool_value(s->z3, plain);
    if (value != Z3_L_UNDEF) {
        return value == Z3_L_TRUE && !s->options->solver_is_mute;
    }
    Z3_ast question = state_question(s, facts, plain);
    if (Z3_ast_map_contains(s->z3, a->answers, question)) {
        Z3_ast answer = Z3_ast_map_find(s->z3, a->answers, question);
        return Z3_get_bool_value(s->z3, answer) == Z3_L_TRUE;
    }
    bool holds = is_unsatisfiable(s, question);
    Z3_ast_map_insert(s->z3, a->answers, question, holds ? Z3_mk_true(s->z3) : Z3_mk_false(s->z3));
    return holds;
}

bool graft_sym_holds_for_reals(graft_sym *s, Z3_ast goal)
{
    Z3_ast question = Z3_mk_not(s->z3, goal);
    Z3_ast_map answers = s->assumed->answers;
    if (Z3_ast_map_contains(s->z3, answers, question)) {
        return Z3_get_bool_value(s->z3, Z3_ast_map_find(s->z3, answers, question)) == Z3_L_TRUE;
    }
    Z3_tactic tactic = Z3_mk_tactic(s->z3, "qfnra-nlsat");
    Z3_tactic_inc_ref(s->z3, tactic);
    Z3_solver usual = s->assumed->solver;
    s->assumed->solver = Z3_mk_solver_from_tactic(s->z3, tactic);
    Z3_solver_inc_ref(s->z3, s->assumed->solver);
    limit_resources(s, s->assumed->solver);
    bool holds = is_unsatisfiable(s, question);
    Z3_solver_dec_ref(s->z3, s->assumed->solver);
    Z3_tactic_dec_ref(s->z3, tactic);
    s->assumed->solver = usual;
    Z3_ast_map_insert(s->z3, answers, question, holds ? Z3_mk_true(s->z3) : Z3_mk_false(s->z3));
    return holds;
}

/* ----------------------------------------------------------------- the state */

static Z3_ast_map make_map(Z3_context z3)
{
    Z3_ast_map map = Z3_mk_ast_map(z3);
    Z3_ast_map_inc_ref(z3, map);
    return map;
}

void graft_sym_assumed_open(graft_sym *s, graft_sym_assumed *assumed)
{
    memset(assumed, 0, sizeof *assumed);
    s->assumed = assumed;
    assumed->symbols = make_map(s->z3);
    assumed->answers = make_map(s->z3);
    assumed->solver = Z3_mk_simple_solver(s->z3);
    Z3_solver_inc_ref(s->z3, assumed->solver);
    /* The older simplex keeps to its resource limit where the newer one, on products of sizes, does
     * not. */
    Z3_params simplex = Z3_mk_params(s->z3);
    Z3_params_inc_ref(s->z3, simplex);
    Z3_params_set_uint(s->z3, simplex, Z3_mk_string_symbol(s->z3, "arith.solver"), 2);
    Z3_solver_set_params(s->z3, assumed->solver, simplex);
    Z3_params_dec_ref(s->z3, simplex);
    limit_resources(s, assumed->solver);
}

void graft_sym_assumed_close(graft_sym *s)
{
    Z3_solver_dec_ref(s->z3, s->assumed->solver);
    Z3_ast_map_dec_ref(s->z3, s->assumed->answers);
    Z3_ast_map_dec_ref(s->z3, s->assumed->symbols);
}

void graft_sym_assumed_reset(graft_sym *s)
{
    s->assumed->count = 0;
    s->assumed->number_count = 0;
}
