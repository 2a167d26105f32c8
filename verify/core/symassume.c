/* symassume.c - see symassume.h. */
#include "verify/core/symassume.h"

#include "verify/core/hints.h"

#include <stdlib.h>
#include <string.h>

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
    if (a->count == GRAFT_LIMIT(ASSUMED)) {
        return;
    }
    a->claims[a->count++] = claim;
    if (a->number_count < GRAFT_LIMIT(ASSUMED_NUMBERS) && graft_sym_is_real(s, hypothesis)) {
        a->numbers[a->number_count++] = hypothesis;
    }
}

static Z3_lbool check(graft_sym *s)
{
    Z3_lbool answer = graft_prover_check(s->prover, s->assumed->solver);
    return s->prover->options->solver_is_mute ? Z3_L_UNDEF : answer;
}

/* Whether it is known, without asking, that all parts of a conjunction can be true together. */
static bool is_known_satisfiable(const graft_sym *s, uint32_t count, const Z3_ast *parts)
{
    const graft_sym_hints *hints = s->hints;
    return hints != NULL && hints->can_hold(s, count, parts);
}

static bool is_unsatisfiable(graft_sym *s, Z3_ast formula)
{
    Z3_solver_push(s->z3, s->assumed->solver);
    Z3_solver_assert(s->z3, s->assumed->solver, formula);
    Z3_lbool answer = check(s);
    if (answer == Z3_L_FALSE) {
        graft_prover_tell(s->prover, formula);
    } else if (answer == Z3_L_TRUE && s->hints != NULL) {
        s->hints->learn(s);
    }
    Z3_solver_pop(s->z3, s->assumed->solver, 1);
    return answer == Z3_L_FALSE;
}

bool graft_sym_is_impossible(graft_sym *s)
{
    graft_sym_assumed *a = s->assumed;
    return a->count > 0 && !is_known_satisfiable(s, a->count, a->claims) &&
           is_unsatisfiable(s, Z3_mk_and(s->z3, a->count, a->claims));
}

/* ------------------------------------------------------------------ questions */

enum { PARTS = GRAFT_ROOM_ASSUMED + GRAFT_ROOM_FACTS + GRAFT_ROOM_LEMMAS + 1 };

/* The group G of an output o of O outputs in g groups is floor(o g / O). */
static Z3_ast state_group(const graft_sym *s, Z3_ast group)
{
    Z3_ast o = graft_sym_arg(s, group, 0);
    Z3_ast outputs = graft_sym_arg(s, group, 1);
    Z3_ast groups = graft_sym_arg(s, group, 2);
    Z3_ast left = graft_sym_sub(s, graft_sym_mul(s, o, groups), graft_sym_mul(s, group, outputs));
    Z3_ast given[2] = {graft_sym_in_range(s, o, outputs),
                       Z3_mk_le(s->z3, graft_sym_int(s, 1), groups)};
    Z3_ast follows[2] = {graft_sym_in_range(s, group, groups),
                         graft_sym_in_range(s, left, outputs)};
    return Z3_mk_implies(s->z3, Z3_mk_and(s->z3, 2, given), Z3_mk_and(s->z3, 2, follows));
}

/* What is left of what is divided. */
static Z3_ast state_quotient(const graft_sym *s, Z3_ast quotient)
{
    Z3_ast n = graft_sym_divisor(s, quotient);
    Z3_ast x = graft_sym_write_place(s, graft_sym_arg(s, quotient, 0), true);
    Z3_ast left = graft_sym_sub(s, x, graft_sym_mul(s, quotient, n));
    return Z3_mk_implies(s->z3, Z3_mk_le(s->z3, graft_sym_int(s, 1), n),
                         graft_sym_in_range(s, left, n));
}

/* A law that holds of all integers, for Z3 does not multiply inequalities: p >= 0 and f >= 0 imply
 * p f >= 0; without f what the definition of a group or quotient says. So nothing rests on the
 * choice. */
Z3_ast graft_sym_state_law(const graft_sym *s, const graft_sym_law *law)
{
    Z3_ast zero = graft_sym_int(s, 0);
    if (law->f == NULL) {
        return graft_sym_is_app(s, law->p, s->group)  ? state_group(s, law->p)
               : graft_sym_divisor(s, law->p) != NULL ? state_quotient(s, law->p)
                                                      : Z3_mk_true(s->z3);
    }
    Z3_ast given[2] = {Z3_mk_le(s->z3, zero, law->p), Z3_mk_le(s->z3, zero, law->f)};
    return Z3_mk_implies(s->z3, Z3_mk_and(s->z3, 2, given),
                         Z3_mk_le(s->z3, zero, graft_sym_mul(s, law->p, law->f)));
}

/* Lists that `question` is false, what follows of products in it, and what is known and of use. */
static uint32_t state_question(graft_sym *s, const graft_facts *facts, Z3_ast question,
                               Z3_ast parts[PARTS])
{
    const graft_sym_assumed *a = s->assumed;
    const graft_sym_hints *hints = s->hints;
    Z3_ast known[GRAFT_ROOM_ASSUMED + GRAFT_ROOM_FACTS];
    bool left_out[GRAFT_ROOM_ASSUMED + GRAFT_ROOM_FACTS] = {false};
    uint32_t known_count = a->count;
    uint32_t count = 0;
    memcpy((void *)known, (const void *)a->claims, a->count * sizeof *known);
    for (; facts != NULL && known_count < a->count + GRAFT_LIMIT(FACTS); facts = facts->outer) {
        known[known_count++] = graft_sym_expand(s, facts->fact);
    }
    parts[count++] = Z3_mk_not(s->z3, question);
    if (hints != NULL) {
        graft_sym_law laws[GRAFT_ROOM_LEMMAS];
        uint32_t law_count =
            hints->laws(s, question, known_count - a->count, known + a->count, laws);
        for (uint32_t i = 0; i < law_count && i < GRAFT_LIMIT(LEMMAS); i++) {
            parts[count++] = graft_sym_state_law(s, &laws[i]);
        }
        hints->leave_out(s, question, known_count, known, left_out);
    }
    for (uint32_t i = 0; i < known_count; i++) {
        if (!left_out[i]) {
            parts[count++] = known[i];
        }
    }
    return count;
}

bool graft_sym_holds(graft_sym *s, const graft_facts *facts, Z3_ast goal)
{
    graft_sym_assumed *a = s->assumed;
    if (s->plain != NULL) {
        return false; /* A plain reading knows nothing. */
    }
    Z3_ast plain = graft_sym_simplify(s, graft_sym_expand(s, goal));
    Z3_lbool value = Z3_get_bool_value(s->z3, plain);
    if (value != Z3_L_UNDEF) {
        return value == Z3_L_TRUE && !s->prover->options->solver_is_mute;
    }
    if (graft_sym_is_spent(s)) {
        return false;
    }
    Z3_ast parts[PARTS];
    uint32_t count = state_question(s, facts, plain, parts);
    Z3_ast question = Z3_mk_and(s->z3, count, parts);
    if (Z3_ast_map_contains(s->z3, a->answers, question)) {
        Z3_ast answer = Z3_ast_map_find(s->z3, a->answers, question);
        return Z3_get_bool_value(s->z3, answer) == Z3_L_TRUE;
    }
    bool holds = !is_known_satisfiable(s, count, parts) && is_unsatisfiable(s, question);
    Z3_ast_map_insert(s->z3, a->answers, question, holds ? Z3_mk_true(s->z3) : Z3_mk_false(s->z3));
    return holds;
}

bool graft_sym_holds_for_reals(graft_sym *s, Z3_ast goal)
{
    Z3_ast_map answers = s->assumed->answers_of_reals;
    if (Z3_ast_map_contains(s->z3, answers, goal)) {
        return Z3_get_bool_value(s->z3, Z3_ast_map_find(s->z3, answers, goal)) == Z3_L_TRUE;
    }
    Z3_ast opposite = Z3_mk_not(s->z3, goal);
    bool holds = graft_prover_ask(s->prover, opposite, GRAFT_SEARCH_REAL_CLOSED) == Z3_L_FALSE;
    if (!graft_sym_is_spent(s)) {
        Z3_ast_map_insert(s->z3, answers, goal, holds ? Z3_mk_true(s->z3) : Z3_mk_false(s->z3));
    }
    return holds;
}

/* ----------------------------------------------------------------- the state */

void graft_sym_assumed_open(graft_sym *s)
{
    graft_sym_assumed *a = graft_term_room(1, sizeof *a);
    const uint32_t most = s->prover->options->resource_limit;
    const uint32_t limit = GRAFT_LIMIT(QUESTION_RESOURCES);
    s->assumed = a;
    a->answers = graft_term_map(s->z3);
    a->answers_of_reals = graft_term_map(s->z3);
    a->settled = graft_term_map(s->z3);
    a->solver = Z3_mk_simple_solver(s->z3);
    Z3_solver_inc_ref(s->z3, a->solver);
    graft_prover_set(s->z3, a->solver, "rlimit", most < limit ? most : limit);
    /* The older simplex keeps to its resource limit where the newer one, on products of sizes, does
     * not. */
    graft_prover_set(s->z3, a->solver, "arith.solver", 2);
}

void graft_sym_assumed_close(graft_sym *s)
{
    Z3_solver_dec_ref(s->z3, s->assumed->solver);
    Z3_ast_map_dec_ref(s->z3, s->assumed->answers);
    Z3_ast_map_dec_ref(s->z3, s->assumed->answers_of_reals);
    Z3_ast_map_dec_ref(s->z3, s->assumed->settled);
    free(s->assumed);
}

void graft_sym_assumed_reset(graft_sym *s)
{
    s->assumed->count = 0;
    s->assumed->number_count = 0;
}
