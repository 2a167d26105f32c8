/* smtsizes.c - see smtsizes.h. */
#include "verify/export/smtsizes.h"

#include "verify/export/smtterm.h"
#include "verify/sizes/symbolic.h"

#include <inttypes.h>

/* Listens to a proof, which uses the arenas for units and scratch. */
typedef struct {
    graft_env *env;
    graft_buffer body;
    graft_smt_printer printer;
    uint32_t checks;
} recording;

static void record(void *context, Z3_context z3, Z3_ast formula)
{
    recording *r = context;
    graft_smt_printer *p = &r->printer;
    GRAFT_SCOPED(r->env->scratch);
    graft_buffer text = {.arena = r->env->scratch};
    graft_buffer functions = {.arena = r->env->scratch};
    p->z3 = z3;
    p->out = &text;
    p->functions = &functions;
    graft_smt_begin(p);
    graft_smt_count(p, formula);
    graft_smt_declare(p, formula);
    graft_smt_define(p, formula);
    graft_buffer_printf(&text, "(assert (or false\n  ");
    graft_smt_write(p, formula);
    graft_buffer_printf(&r->body, "\n; question %" PRIu32 "\n(push 1)\n", r->checks++);
    graft_buffer_append(&r->body, functions.data, functions.size);
    graft_buffer_append(&r->body, text.data, text.size);
    graft_buffer_printf(&r->body, "\n))\n(check-sat)\n(pop 1)\n");
}

graft_status graft_smt_print_sizes(graft_env *env, const graft_smt_claim *claim, graft_buffer *out,
                                   uint32_t *checks)
{
    graft_symbolic_result result;
    recording r = {.env = env, .body = {.arena = env->life}, .printer = {.arena = env->life}};
    const graft_prove_listener listener = {.hear = record, .context = &r};
    graft_prove_options options = graft_prove_defaults();
    options.listener = &listener;
    graft_symbolic_prove(env, claim->rule, &options, &result);
    if (!result.proved) {
        return GRAFT_FAIL(env, GRAFT_UNDECIDED,
                          "the proof for all sizes does not succeed again: %s", result.reason);
    }
    graft_buffer_printf(out, "(set-info :smt-lib-version 2.6)\n");
    if (claim->title != NULL) {
        graft_smt_print_title(out, claim->title);
    }
    graft_buffer_printf(out,
                        "; What the proof for all sizes rests on, in %" PRIu32
                        " cases. Each check-sat must be unsat, as %s said.\n"
                        "(set-option :produce-models false)\n(set-logic QF_UFNIRA)\n",
                        result.cases, claim->solver);
    if (r.checks > 0) {
        graft_buffer_append(out, r.body.data, r.body.size);
    } else {
        graft_buffer_printf(out, "; None: the sides have the same normal form.\n");
    }
    *checks = r.checks;
    return GRAFT_OK;
}
