/* smt.c - see smt.h. */
#include "verify/export/smt.h"

#include "verify/core/growth.h"
#include "verify/export/smtterm.h"
#include "verify/instances/obligation.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- instances */

static void count_terms(graft_smt_printer *p, const Z3_ast *terms, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        graft_smt_count(p, terms[i]);
    }
}

static void define_terms(graft_smt_printer *p, const Z3_ast *terms, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        graft_smt_define(p, terms[i]);
    }
}

/* A question, and what it may draw on: that functions in it grow. */
static Z3_ast question_of(const graft_obligation *o, uint32_t i)
{
    Z3_ast question = graft_obligation_question(o, i);
    Z3_ast laws = graft_growth_laws(&o->term, question);
    return laws == Z3_mk_true(o->z3) ? question : Z3_mk_and(o->z3, 2, (Z3_ast[]){question, laws});
}

/* Laws hold whatever is asked; conditions of definedness belong to questions. */
static void print_obligation(graft_smt_printer *p, const graft_obligation *o)
{
    uint32_t law_count = o->assumption_count - o->condition_count;
    const Z3_ast *laws = o->assumptions + o->condition_count;
    Z3_ast *questions = GRAFT_NEW(p->arena, Z3_ast, o->count);
    graft_buffer_printf(p->out, "(push 1)\n");
    graft_smt_begin(p);
    for (uint32_t i = 0; i < o->count; i++) {
        questions[i] = question_of(o, i);
    }
    count_terms(p, laws, law_count);
    count_terms(p, questions, o->count);
    define_terms(p, laws, law_count);
    define_terms(p, questions, o->count);
    for (uint32_t i = 0; i < law_count; i++) {
        graft_buffer_printf(p->out, "(assert ");
        graft_smt_write(p, laws[i]);
        graft_buffer_printf(p->out, ")\n");
    }
    graft_buffer_printf(p->out, "(assert (or false\n");
    for (uint32_t i = 0; i < o->count; i++) {
        graft_buffer_printf(p->out, "  ");
        graft_smt_write(p, questions[i]);
        graft_buffer_printf(p->out, "\n");
    }
    graft_buffer_printf(p->out, "))\n(check-sat)\n(pop 1)\n");
}

/* The whole of one file but its head. */
typedef struct {
    graft_env *env;
    graft_buffer body;
    graft_buffer functions;               /* Their declarations. */
    size_t elements[GRAFT_RULE_MAX_VARS]; /* Of each variable, at most. */
    uint32_t checks;
} draft;

static void stop_on_error(Z3_context z3, Z3_error_code code)
{
    (void)fprintf(stderr, "graft: z3: %s\n", Z3_get_error_msg(z3, code));
    abort();
}

/* A context for each instance: its terms go when it goes. */
static void add_instance(draft *d, const graft_instance *instance)
{
    graft_env *env = d->env;
    GRAFT_SCOPED(env->scratch);
    graft_obligation o;
    Z3_config config = Z3_mk_config();
    Z3_context z3 = Z3_mk_context(config);
    Z3_del_config(config);
    Z3_set_error_handler(z3, stop_on_error);
    graft_obligation_build(&o, env->scratch, z3, instance);
    graft_smt_printer p = {
        .z3 = z3, .arena = env->scratch, .out = &d->body, .functions = &d->functions};
    print_obligation(&p, &o);
    d->checks++;
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        d->elements[v] = count > d->elements[v] ? count : d->elements[v];
    }
    graft_obligation_close(&o);
    Z3_del_context(z3);
}

static graft_status add_points(draft *d, const graft_smt_claim *claim)
{
    for (uint32_t i = 0; i < claim->count; i++) {
        graft_instance instance;
        const char *text = graft_point_print(d->env->unit, claim->rule, &claim->points[i]);
        if (graft_instance_build(&instance, claim->rule, &claim->points[i]) != GRAFT_FIT_OK) {
            return GRAFT_FAIL(d->env, GRAFT_BAD_INPUT,
                              "point %" PRIu32 " of the certificate is no instance: %s", i, text);
        }
        graft_buffer_printf(&d->body, "\n; %" PRIu32 ": %s\n", i, text);
        add_instance(d, &instance);
    }
    return GRAFT_OK;
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

static void print_head(graft_buffer *out, const graft_smt_claim *claim, const draft *d)
{
    graft_buffer_printf(out, "(set-info :smt-lib-version 2.6)\n");
    if (claim->title != NULL) {
        graft_smt_print_title(out, claim->title);
    }
    graft_buffer_printf(out, "; Each check-sat must be unsat, as %s said.\n", claim->solver);
    graft_buffer_printf(out, "(set-option :produce-models false)\n(set-logic %s)\n",
                        d->functions.size > 0 ? "QF_UFNRA" : "QF_NRA");
    graft_buffer_append(out, d->functions.data, d->functions.size);
    for (uint32_t v = 0; v < claim->rule->var_count; v++) {
        for (size_t i = 0; i < d->elements[v]; i++) {
            graft_buffer_printf(out, "(declare-const x%" PRIu32 "_%zu Real)\n", v, i);
        }
    }
}

graft_status graft_smt_print(graft_env *env, const graft_smt_claim *claim, graft_buffer *out,
                             uint32_t *checks)
{
    draft d = {.env = env, .body = {.arena = env->unit}, .functions = {.arena = env->unit}};
    GRAFT_PASS(add_points(&d, claim));
    print_head(out, claim, &d);
    if (d.body.size > 0) {
        graft_buffer_append(out, d.body.data, d.body.size);
    }
    *checks = d.checks;
    return GRAFT_OK;
}
