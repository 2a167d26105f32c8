/* prover.c - asking Z3, and what follows from its answers. */
#include "verify/core/prover.h"

#include "graph/base/exits.h"
#include "verify/core/term.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

graft_prove_options graft_prove_defaults(void)
{
    return (graft_prove_options){
        .resource_limit = 400000, .memory_mb = 1024, .most = {60000000, 600000}
    };
}

typedef graft_prover prover;

Z3_params graft_prover_som(Z3_context z3, uint32_t monomials)
{
    Z3_params som = Z3_mk_params(z3);
    Z3_params_inc_ref(z3, som);
    Z3_params_set_bool(z3, som, Z3_mk_string_symbol(z3, "som"), true);
    Z3_params_set_uint(z3, som, Z3_mk_string_symbol(z3, "som_blowup"), monomials);
    return som;
}

void graft_prover_set(Z3_context z3, Z3_solver solver, const char *parameter, uint32_t number)
{
    Z3_params params = Z3_mk_params(z3);
    Z3_params_inc_ref(z3, params);
    Z3_params_set_uint(z3, params, Z3_mk_string_symbol(z3, parameter), number);
    Z3_solver_set_params(z3, solver, params);
    Z3_params_dec_ref(z3, params);
}

/* The older simplex keeps to its resource limit where the newer one, on products of functions, does
 * not; the newer one decides more case distinctions. In linear search monomials are independent
 * numbers. */
static Z3_tactic make_search(Z3_context z3, graft_search kind)
{
    static const char *const names[] = {"skip", "smt", "qfnra-nlsat", "smt", "smt"};
    Z3_tactic search = Z3_mk_tactic(z3, names[kind]);
    Z3_tactic_inc_ref(z3, search);
    if (kind != GRAFT_SEARCH_LINEAR && kind != GRAFT_SEARCH_GENERAL) {
        return search; /* Z3 chooses the newer simplex where it needs one. */
    }
    Z3_params simplex = Z3_mk_params(z3);
    Z3_params_inc_ref(z3, simplex);
    Z3_params_set_bool(z3, simplex, Z3_mk_string_symbol(z3, "arith.nl"),
                       kind == GRAFT_SEARCH_GENERAL);
    Z3_params_set_uint(z3, simplex, Z3_mk_string_symbol(z3, "arith.solver"), 2);
    Z3_tactic limited = Z3_tactic_using_params(z3, search, simplex);
    Z3_tactic_inc_ref(z3, limited);
    Z3_tactic_dec_ref(z3, search);
    Z3_params_dec_ref(z3, simplex);
    return limited;
}

/* Multiply out, then search. */
static Z3_tactic make_tactic(Z3_context z3, graft_search kind)
{
    Z3_params som = graft_prover_som(z3, GRAFT_LIMIT(MONOMIALS));
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

void graft_prover_note(const prover *p, const char *why)
{
    (void)snprintf(p->result->reason, sizeof p->result->reason, "%s", why);
}

/* The answer, as far as it counts: a mute solver says nothing, nor does one that has had its share.
 */
static Z3_lbool judge(const prover *p, Z3_solver solver, Z3_lbool answer)
{
    bool spent = graft_prover_is_spent(p);
    if (p->options->solver_is_mute || spent) {
        graft_prover_note(p, spent ? GRAFT_PROVE_SPENT : "mute");
        return Z3_L_UNDEF;
    }
    if (answer == Z3_L_UNDEF) {
        graft_prover_note(p, Z3_solver_get_reason_unknown(p->z3, solver));
    }
    return answer;
}

Z3_lbool graft_prover_ask(prover *p, Z3_ast question, graft_search kind)
{
    if (graft_prover_is_spent(p)) {
        graft_prover_note(p, GRAFT_PROVE_SPENT);
        return Z3_L_UNDEF;
    }
    if (!p->options->solver_is_mute && Z3_ast_map_contains(p->z3, p->unsatisfiable, question)) {
        return Z3_L_FALSE;
    }
    if (p->searches[kind] == NULL) {
        p->searches[kind] = make_tactic(p->z3, kind);
    }
    Z3_solver solver = Z3_mk_solver_from_tactic(p->z3, p->searches[kind]);
    Z3_solver_inc_ref(p->z3, solver);
    graft_prover_set(p->z3, solver, "rlimit", p->options->resource_limit);
    Z3_solver_assert(p->z3, solver, question);
    Z3_lbool answer = judge(p, solver, graft_prover_check(p, solver));
    if (answer == Z3_L_FALSE) {
        Z3_ast_map_insert(p->z3, p->unsatisfiable, question, question);
        graft_prover_tell(p, question);
    }
    Z3_solver_dec_ref(p->z3, solver);
    return answer;
}

/* What Z3 says of a formula it says of all values of a constant, and of no other term. */
static bool are_constants(Z3_context z3, uint32_t count, const Z3_ast *symbols)
{
    bool all = true;
    for (uint32_t i = 0; all && i < count; i++) {
        Z3_app app = Z3_to_app(z3, symbols[i]);
        all = Z3_is_app(z3, symbols[i]) && Z3_get_app_num_args(z3, app) == 0 &&
              Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app)) == Z3_OP_UNINTERPRETED;
    }
    return all;
}

bool graft_prover_refutes(const prover *p, const graft_asked *r, Z3_ast_map parts)
{
    Z3_context z3 = p->z3;
    if (r->formula == NULL || !Z3_ast_map_contains(z3, p->unsatisfiable, r->formula) ||
        !are_constants(z3, r->count, r->symbols)) {
        return false;
    }
    Z3_ast instance = Z3_substitute(z3, r->formula, r->count, r->symbols, r->terms);
    Z3_app app = Z3_to_app(z3, instance);
    bool stated = Z3_ast_map_contains(z3, parts, instance);
    if (!stated && Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app)) == Z3_OP_AND) {
        stated = true;
        for (uint32_t i = 0; i < Z3_get_app_num_args(z3, app) && stated; i++) {
            stated = Z3_ast_map_contains(z3, parts, Z3_get_app_arg(z3, app, i));
        }
    }
    return stated;
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
    *p = (graft_prover){.z3 = z3, .unsatisfiable = graft_term_map(z3), .names = graft_term_map(z3)};
    graft_prover_begin(p, options, result);
}

void graft_prover_begin(graft_prover *p, const graft_prove_options *options,
                        graft_prove_result *result)
{
    memset(result, 0, sizeof *result);
    p->options = options;
    p->result = result;
    Z3_solver solver = Z3_mk_simple_solver(p->z3); /* What was simplified since is no part of it. */
    Z3_solver_inc_ref(p->z3, solver);
    count_resources(p, solver);
    Z3_solver_dec_ref(p->z3, solver);
    p->resource_base = p->resource_last;
    p->result->resource_count = 0;
}

void graft_prover_close(graft_prover *p)
{
    for (uint32_t kind = 0; kind < GRAFT_SEARCH_COUNT; kind++) {
        if (p->searches[kind] != NULL) {
            Z3_tactic_dec_ref(p->z3, p->searches[kind]);
        }
    }
    Z3_ast_map_dec_ref(p->z3, p->unsatisfiable);
    Z3_ast_map_dec_ref(p->z3, p->names);
    Z3_del_context(p->z3);
}
