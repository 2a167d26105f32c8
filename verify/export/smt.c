/* smt.c - see smt.h. */
#include "verify/export/smt.h"

#include "verify/instances/obligation.h"
#include "verify/sizes/symbolic.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------- checks */

/* A function of numbers is called fn_exp: some solvers have an exp of their own. */
static Z3_ast rename_function(void *context, Z3_ast term)
{
    Z3_context z3 = context;
    Z3_app app = Z3_to_app(z3, term);
    Z3_func_decl decl = Z3_get_app_decl(z3, app);
    const uint32_t arity = Z3_get_arity(z3, decl);
    Z3_ast args[GRAFT_TERM_ARGUMENTS];
    if (Z3_get_decl_kind(z3, decl) != Z3_OP_UNINTERPRETED || arity == 0 ||
        Z3_get_sort_kind(z3, Z3_get_domain(z3, decl, 0)) != Z3_REAL_SORT) {
        return term;
    }
    assert(arity <= GRAFT_TERM_ARGUMENTS);
    for (uint32_t i = 0; i < arity; i++) {
        args[i] = Z3_get_app_arg(z3, app, i);
    }
    Z3_sort real = Z3_get_range(z3, decl);
    decl = graft_term_declare(z3, arity, real, real, "fn_%s",
                              Z3_get_symbol_string(z3, Z3_get_decl_name(z3, decl)));
    return Z3_mk_app(z3, decl, arity, args);
}

Z3_ast graft_smt_rename(Z3_context z3, Z3_ast term)
{
    return graft_term_rebuild(z3, term, rename_function, z3);
}

/* Laws, and a formula that they shall make unsatisfiable. (A `false` beside it is where a test puts
 * a lie.) */
static void print_check(graft_buffer *out, Z3_context z3, Z3_ast *laws, uint32_t law_count,
                        Z3_ast formula)
{
    Z3_ast either[2] = {Z3_mk_false(z3), graft_smt_rename(z3, formula)};
    for (uint32_t i = 0; i < law_count; i++) {
        laws[i] = graft_smt_rename(z3, laws[i]);
    }
    const char *text = Z3_benchmark_to_smtlib_string(z3, NULL, NULL, "unknown", NULL, law_count,
                                                     laws, Z3_mk_or(z3, 2, either));
    graft_buffer_printf(out, "(push 1)\n");
    graft_buffer_append(out, text, strlen(text));
    graft_buffer_printf(out, "(pop 1)\n");
}

/* --------------------------------------------------------------- instances */

/* A question, and what it may draw on: that functions in it grow. */
static Z3_ast question_of(const graft_obligation *o, uint32_t i)
{
    Z3_ast question = graft_obligation_question(o, i);
    Z3_ast laws = graft_growth_laws(&o->term, question);
    return laws == Z3_mk_true(o->z3) ? question : Z3_mk_and(o->z3, 2, (Z3_ast[]){question, laws});
}

/* A context for each instance: its terms go when it goes. Laws hold whatever is asked; conditions
 * of definedness belong to questions. */
static void add_instance(graft_env *env, const graft_instance *instance, graft_buffer *body)
{
    GRAFT_SCOPED(env->scratch);
    graft_obligation o;
    graft_prover prover;
    graft_prove_result counts;
    const graft_prove_options options = graft_prove_defaults();
    graft_prover_open(&prover, &options, &counts);
    graft_obligation_build(&o, env->scratch, prover.z3, instance);
    Z3_ast *questions = GRAFT_NEW(env->scratch, Z3_ast, o.count);
    for (uint32_t i = 0; i < o.count; i++) {
        questions[i] = question_of(&o, i);
    }
    print_check(body, o.z3, o.assumptions + o.condition_count,
                o.assumption_count - o.condition_count, Z3_mk_or(o.z3, o.count, questions));
    graft_obligation_close(&o);
    graft_prover_close(&prover);
}

static graft_status add_points(graft_env *env, const graft_smt_claim *claim, graft_buffer *body)
{
    for (uint32_t i = 0; i < claim->count; i++) {
        graft_instance instance;
        const char *text = graft_point_print(env->unit, claim->rule, &claim->points[i]);
        if (graft_instance_build(&instance, claim->rule, &claim->points[i]) != GRAFT_FIT_OK) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                              "point %" PRIu32 " of the certificate is no instance: %s", i, text);
        }
        graft_buffer_printf(body, "\n; %" PRIu32 ": %s\n", i, text);
        add_instance(env, &instance, body);
    }
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- questions */

/* Listens to a proof, which uses the arenas for units and scratch. */
typedef struct {
    graft_buffer body;
    uint32_t checks;
    Z3_context z3; /* Another one, so that the proof goes as it would without a listener. */
} recording;

static void record(void *context, Z3_context z3, Z3_ast formula)
{
    recording *r = context;
    graft_buffer_printf(&r->body, "\n; question %" PRIu32 "\n", r->checks++);
    print_check(&r->body, r->z3, NULL, 0, Z3_translate(z3, formula, r->z3));
}

/* ------------------------------------------------------------------- files */

void graft_smt_print_title(graft_buffer *out, const char *title)
{
    while (*title != '\0') {
        size_t length = strcspn(title, "\n");
        graft_buffer_printf(out, "; %.*s\n", (int)length, title);
        title += length + (title[length] == '\n' ? 1 : 0);
    }
}

static void print_file(graft_buffer *out, const graft_smt_claim *claim, const char *what,
                       const char *logic, const graft_buffer *body)
{
    graft_buffer_printf(out, "(set-info :smt-lib-version 2.6)\n");
    if (claim->title != NULL) {
        graft_smt_print_title(out, claim->title);
    }
    graft_buffer_printf(out,
                        "; %sEach check-sat must be unsat, as %s said.\n"
                        "(set-option :produce-models false)\n(set-logic %s)\n",
                        what, claim->solver, logic);
    if (body->size > 0) {
        graft_buffer_append(out, body->data, body->size);
    } else {
        graft_buffer_printf(out, "; There is none.\n");
    }
}

graft_status graft_smt_print(graft_env *env, const graft_smt_claim *claim, graft_buffer *out,
                             uint32_t *checks)
{
    graft_buffer body = {.arena = env->unit};
    GRAFT_PASS(add_points(env, claim, &body));
    print_file(out, claim, "", "QF_UFNRA", &body);
    *checks = claim->count;
    return GRAFT_OK;
}

graft_status graft_smt_print_sizes(graft_env *env, const graft_smt_claim *claim, graft_buffer *out,
                                   uint32_t *checks)
{
    graft_symbolic_result result;
    graft_prover printer;
    graft_prove_result counts;
    graft_prove_options options = graft_prove_defaults();
    graft_prover_open(&printer, &options, &counts);
    recording r = {.body = {.arena = env->life}, .z3 = printer.z3};
    const graft_prove_listener listener = {.hear = record, .context = &r};
    options.listener = &listener;
    graft_symbolic_prove(env, claim->rule, &options, &result);
    graft_prover_close(&printer);
    if (!result.proved) {
        return GRAFT_FAIL(env, GRAFT_UNDECIDED,
                          "the proof for all sizes does not succeed again: %s", result.reason);
    }
    print_file(out, claim,
               graft_arena_printf(env->life,
                                  "What the proof for all sizes rests on, in %" PRIu32 " cases. ",
                                  result.cases),
               "QF_UFNIRA", &r.body);
    *checks = r.checks;
    return GRAFT_OK;
}
