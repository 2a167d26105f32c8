/* theorem.c - see theorem.h. */
#include "verify/export/theorem.h"

#include "verify/core/symread.h"
#include "verify/export/smt.h"
#include "verify/sizes/symbolic.h"
#include "verify/sizes/symplain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SYMBOLS_MOST = 1024, GROUND_MOST = 64, ARENA_BYTES = 1 << 18 };

/* The case at hand. */
typedef struct {
    graft_env *env;
    graft_arena *arena; /* Of one case: the reading releases what it takes of env's. */
    graft_sym s;
    const graft_rule *rule;
    const char *title;
    graft_theorem_sink sink;
    void *context;
    graft_status status;
    uint32_t count; /* Cases; 0 while they are counted. */
    uint32_t met;   /* Of them, by the visit at hand. */
    graft_sym_plain plain;
    graft_sym_instance instance;
    graft_sym_side sides[2];
    graft_buffer out;
    Z3_ast known[SYMBOLS_MOST]; /* Symbols that need no declaration any more. */
    uint32_t known_count;
    Z3_ast goals[GROUND_MOST]; /* Ground terms that the claim is about, written out. */
    uint32_t goal_count;
    bool full;
} theorem;

static void put(theorem *t, const char *text) { graft_buffer_printf(&t->out, "%s", text); }

static void put_term(theorem *t, Z3_ast term)
{
    const char *text = Z3_ast_to_string(t->s.z3, graft_smt_rename(t->s.z3, term));
    graft_buffer_append(&t->out, text, strlen(text));
}

static void put_assertion(theorem *t, Z3_ast term)
{
    put(t, "(assert ");
    put_term(t, term);
    put(t, ")\n");
}

/* ------------------------------------------------------------------- symbols */

static bool is_known(const theorem *t, Z3_ast symbol)
{
    bool known = false;
    for (uint32_t i = 0; i < t->known_count && !known; i++) {
        known = t->known[i] == symbol;
    }
    return known;
}

static void know(theorem *t, Z3_ast symbol)
{
    if (is_known(t, symbol)) {
        return;
    }
    if (t->known_count == SYMBOLS_MOST) {
        t->full = true;
    } else {
        t->known[t->known_count++] = symbol;
    }
}

static void declare_symbol(theorem *t, Z3_ast symbol)
{
    if (!is_known(t, symbol)) {
        know(t, symbol);
        put(t, "(declare-const ");
        put_term(t, symbol);
        Z3_sort sort = Z3_get_sort(t->s.z3, symbol);
        put(t, sort == t->s.integer ? " Int)\n" : sort == t->s.boolean ? " Bool)\n" : " Real)\n");
    }
}

static bool visit_symbol(void *context, Z3_ast term)
{
    theorem *t = context;
    if (graft_sym_is_symbol(&t->s, term)) {
        declare_symbol(t, term);
    }
    return true;
}

/* What is no constant of the case: parameters, and sizes that have definitions. */
static void know_others(theorem *t)
{
    for (uint32_t i = 0; i < t->plain.count; i++) {
        const graft_sym_definition *d = &t->plain.definitions[i];
        bool fold = d->kind == GRAFT_SYM_DEFINES_SUM || d->kind == GRAFT_SYM_DEFINES_MAX;
        if (!fold && d->param_count == 0) {
            know(t, Z3_mk_app(t->s.z3, d->decl, 0, NULL));
        }
        for (uint32_t k = 0; k < d->param_count; k++) {
            know(t, d->params[k]);
        }
    }
}

static void declare_constants(theorem *t)
{
    know(t, t->plain.binder);
    for (uint32_t i = 0; i < GRAFT_MAX_RANK; i++) {
        know(t, t->s.formals[i]);
    }
    know_others(t);
    for (uint32_t v = 0; v < t->rule->var_count; v++) {
        if (t->instance.vars[v].rank == 0) {
            know(t, Z3_mk_app(t->s.z3, t->s.elements[v], 0, NULL)); /* Declared below. */
        }
        for (uint32_t i = 0; i < t->instance.vars[v].rank; i++) {
            declare_symbol(t, t->instance.vars[v].dims[i]);
        }
    }
    for (uint32_t i = 0; i < t->plain.claim_count; i++) {
        graft_sym_walk(&t->s, t->plain.claims[i], visit_symbol, t);
    }
    for (uint32_t i = 0; i < t->plain.count; i++) {
        graft_sym_walk(&t->s, t->plain.definitions[i].body, visit_symbol, t);
    }
    for (uint32_t v = 0; v < t->rule->var_count; v++) {
        graft_buffer_printf(&t->out, "(declare-fun x%" PRIu32 " (", v);
        for (uint32_t i = 0; i < t->instance.vars[v].rank; i++) {
            put(t, i > 0 ? " Int" : "Int");
        }
        put(t, ") Real)\n");
    }
}

/* --------------------------------------------------------------- definitions */

static void put_params(theorem *t, const graft_sym_definition *d, const char *first)
{
    put(t, " (");
    put(t, first);
    for (uint32_t i = 0; i < d->param_count; i++) {
        put(t, i > 0 || *first != '\0' ? " (" : "(");
        put_term(t, d->params[i]);
        put(t, " Int)");
    }
    put(t, ")");
}

static void put_define(theorem *t, const char *word, const char *name,
                       const graft_sym_definition *d, const char *first, const char *sort)
{
    graft_buffer_printf(&t->out, "(%s %s", word, name);
    put_params(t, d, first);
    graft_buffer_printf(&t->out, " %s ", sort);
}

static const char *arguments_of(theorem *t, const graft_sym_definition *d)
{
    graft_buffer text = {.arena = t->env->unit};
    graft_buffer_printf(&text, "(- n 1)");
    for (uint32_t i = 0; i < d->param_count; i++) {
        graft_buffer_printf(&text, " p%" PRIu32, i);
    }
    return text.data;
}

static void put_sum(theorem *t, const graft_sym_definition *d, const char *args)
{
    char name[32];
    (void)snprintf(name, sizeof name, "sum%" PRIu32 "_body", d->number);
    put_define(t, "define-fun", name, d, "(r Int)", "Real");
    put_term(t, d->body);
    put(t, ")\n");
    (void)snprintf(name, sizeof name, "sum%" PRIu32, d->number);
    put_define(t, "define-fun-rec", name, d, "(n Int)", "Real");
    graft_buffer_printf(&t->out, "(ite (<= n 0) 0.0 (+ (%s %s) (%s_body %s))))\n", name, args, name,
                        args);
}

static void put_max(theorem *t, const graft_sym_definition *d, const char *args)
{
    char name[32];
    uint32_t k = d->number;
    (void)snprintf(name, sizeof name, "max%" PRIu32 "_guard", k);
    put_define(t, "define-fun", name, d, "(r Int)", "Bool");
    put_term(t, d->guard);
    put(t, ")\n");
    (void)snprintf(name, sizeof name, "max%" PRIu32 "_body", k);
    put_define(t, "define-fun", name, d, "(r Int)", "Real");
    put_term(t, d->body);
    put(t, ")\n");
    (void)snprintf(name, sizeof name, "any%" PRIu32, k);
    put_define(t, "define-fun-rec", name, d, "(n Int)", "Bool");
    graft_buffer_printf(&t->out, "(ite (<= n 0) false (or (%s %s) (max%" PRIu32 "_guard %s))))\n",
                        name, args, k, args);
    (void)snprintf(name, sizeof name, "max%" PRIu32, k);
    put_define(t, "define-fun-rec", name, d, "(n Int)", "Real");
    graft_buffer_printf(&t->out,
                        "(ite (<= n 0) 0.0 (ite (not (%s_guard %s)) (%s %s) (ite (and (any%" PRIu32
                        " %s) (>= (%s %s) (%s_body %s))) (%s %s) (%s_body %s)))))\n",
                        name, args, name, args, k, args, name, args, name, args, name, args, name,
                        args);
}

static void put_definition(theorem *t, const graft_sym_definition *d)
{
    GRAFT_SCOPED(t->env->scratch);
    Z3_symbol symbol = Z3_get_decl_name(t->s.z3, d->decl);
    const char *name =
        graft_arena_printf(t->env->scratch, "%s", Z3_get_symbol_string(t->s.z3, symbol));
    if (d->kind == GRAFT_SYM_DEFINES_SUM) {
        put_sum(t, d, arguments_of(t, d));
    } else if (d->kind == GRAFT_SYM_DEFINES_MAX) {
        put_max(t, d, arguments_of(t, d));
    } else {
        bool size = d->kind == GRAFT_SYM_DEFINES_SIZE;
        const graft_pattern_node *node = &graft_sym_pattern(t->rule, d->side)->nodes[d->node];
        graft_buffer_printf(&t->out, "; %s\n", graft_op(node->op)->name);
        put_define(t, "define-fun", name, d, "", size ? "Int" : "Real");
        put_term(t, d->body);
        put(t, ")\n");
    }
}

/* The words that the text uses, in terms of SMT-LIB's own. */
static void put_vocabulary(graft_buffer *out, const char *text)
{
    static const struct {
        const char *use;
        const char *define;
    } words[] = {
        {"(at ",         "; where broadcasting reads along an axis of size d\n"
                 "(define-fun at ((d Int) (i Int)) Int (ite (= d 1) 0 i))\n"                 },
        {"(wide ",       "; the size that two broadcast to\n"
                   "(define-fun wide ((a Int) (b Int)) Int (ite (= a 1) b a))\n"           },
        {"(window ",     "; positions of a window with room r and stride s\n"
                     "(define-fun window ((r Int) (s Int)) Int (+ (div r s) 1))\n"       },
        {"(quotient ",   "(define-fun quotient ((x Int) (n Int)) Int (div x n))\n"                           },
        {"(group ",      "; the group of output o of n in g groups\n"
                    "(define-fun group ((o Int) (n Int) (g Int)) Int (div o (div n g)))\n"},
        {"(fn_inverse ", "(define-fun fn_inverse ((x Real)) Real (ite (= x 0.0) 0.0 (/ 1.0 x)))\n"           },
        {"(fn_exp ",     "(declare-fun fn_exp (Real) Real)\n"                                                },
        {"(fn_sqrt ",    "(declare-fun fn_sqrt (Real) Real)\n"                                               },
        {"(fn_erf ",     "(declare-fun fn_erf (Real) Real)\n"                                                },
        {"(fn_sigmoid ", "(declare-fun fn_sigmoid (Real) Real)\n"                                            },
        {"(fn_tanh ",    "(declare-fun fn_tanh (Real) Real)\n"                                               },
        {"(fn_log ",     "(declare-fun fn_log (Real) Real)\n"                                                },
        {"(fn_sin ",     "(declare-fun fn_sin (Real) Real)\n"                                                },
        {"(fn_cos ",     "(declare-fun fn_cos (Real) Real)\n"                                                },
        {"(fn_round ",   "(declare-fun fn_round (Real Real) Real)\n"                                         },
        {"(fn_scaled ",  "(declare-fun fn_scaled (Real Real Real Real) Real)\n"                              },
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(text, words[i].use) != NULL) {
            graft_buffer_printf(out, "%s", words[i].define);
        }
    }
}

/* place<n>(i..., d...) by Horner's rule, part<n>_<k>(p, d...) by division. */
static void put_places(graft_buffer *out, const char *text)
{
    for (uint32_t n = 2; n <= GRAFT_MAX_RANK; n++) {
        char use[24];
        (void)snprintf(use, sizeof use, "(place%" PRIu32 " ", n);
        if (strstr(text, use) != NULL) {
            graft_buffer_printf(
                out, "; the row-major place of an index\n(define-fun place%" PRIu32 " (", n);
            for (uint32_t i = 0; i < 2 * n; i++) {
                graft_buffer_printf(out, "%s(%c%" PRIu32 " Int)", i > 0 ? " " : "",
                                    i < n ? 'i' : 'd', i % n);
            }
            graft_buffer_printf(out, ") Int ");
            for (uint32_t i = n; i-- > 1;) {
                graft_buffer_printf(out, "(+ (* ");
            }
            graft_buffer_printf(out, "i0");
            for (uint32_t i = 1; i < n; i++) {
                graft_buffer_printf(out, " d%" PRIu32 ") i%" PRIu32 ")", i, i);
            }
            graft_buffer_printf(out, ")\n");
        }
        for (uint32_t k = 0; k < n; k++) {
            (void)snprintf(use, sizeof use, "(part%" PRIu32 "_%" PRIu32 " ", n, k);
            if (strstr(text, use) == NULL) {
                continue;
            }
            graft_buffer_printf(out, "; and back\n(define-fun part%" PRIu32 "_%" PRIu32 " ((p Int)",
                                n, k);
            for (uint32_t i = 0; i < n; i++) {
                graft_buffer_printf(out, " (d%" PRIu32 " Int)", i);
            }
            graft_buffer_printf(out, ") Int %s", k > 0 ? "(mod " : "");
            for (uint32_t i = k + 1; i < n; i++) {
                graft_buffer_printf(out, "(div ");
            }
            graft_buffer_printf(out, "p");
            for (uint32_t i = n; i-- > k + 1;) {
                graft_buffer_printf(out, " d%" PRIu32 ")", i);
            }
            graft_buffer_printf(out, k > 0 ? " d%" PRIu32 "))\n" : ")\n", k);
        }
    }
}

/* -------------------------------------------------------------------- claims */

/* Index constants for a shape, declared. */
static void declare_index(theorem *t, const char *prefix, const graft_sym_shape *shape,
                          Z3_ast *index)
{
    for (uint32_t i = 0; i < shape->rank; i++) {
        index[i] = graft_term_constant(t->s.z3, t->s.integer, "%s%" PRIu32, prefix, i);
        declare_symbol(t, index[i]);
    }
}

static Z3_ast within(theorem *t, const graft_sym_shape *shape, const Z3_ast *index)
{
    Z3_ast parts[GRAFT_MAX_RANK];
    for (uint32_t i = 0; i < shape->rank; i++) {
        parts[i] = graft_sym_in_range(&t->s, index[i], shape->dims[i]);
    }
    return shape->rank == 0 ? Z3_mk_true(t->s.z3) : Z3_mk_and(t->s.z3, shape->rank, parts);
}

static void note_goal(theorem *t, Z3_ast term)
{
    if (t->goal_count == GROUND_MOST) {
        t->full = true;
    } else {
        t->goals[t->goal_count++] = graft_sym_plain_expand(&t->s, term);
    }
}

/* One output: the index of the element that the claim is about, and what both sides are there. */
typedef struct {
    Z3_ast within; /* The index lies in the output. */
    Z3_ast differ;
    graft_sym_condition given[GRAFT_ROOM_CONDITIONS]; /* Of the source, at the index. */
    uint32_t given_count;
    Z3_ast undefined[GRAFT_ROOM_CONDITIONS]; /* Ways in which the target is. */
    uint32_t undefined_count;
} claim;

/* A condition with an index in the formals' place; `where` is true where it has none. */
static graft_sym_condition condition_at(theorem *t, const graft_sym_condition *c, uint32_t rank,
                                        const Z3_ast *index)
{
    graft_sym_condition at = *c;
    at.holds = graft_sym_read(&t->s, c->holds, rank, index);
    at.where =
        c->where == NULL ? Z3_mk_true(t->s.z3) : graft_sym_read(&t->s, c->where, rank, index);
    return at;
}

/* The target's condition i fails for some binders, which become constants. */
static Z3_ast fails(theorem *t, const graft_sym_condition *c, uint32_t output, uint32_t i)
{
    Z3_ast symbols[GRAFT_ROOM_CONDITION_BINDERS];
    Z3_ast parts[2] = {c->where, c->holds};
    for (uint32_t k = 0; k < c->binder_count; k++) {
        symbols[k] = graft_term_constant(t->s.z3, t->s.integer, "j%" PRIu32 "_%" PRIu32 "_%" PRIu32,
                                         output, i, k);
        declare_symbol(t, symbols[k]);
    }
    for (uint32_t k = 0; k < 2; k++) {
        parts[k] = graft_sym_substitute(&t->s, parts[k], c->binder_count, c->binders, symbols);
    }
    note_goal(t, parts[1]);
    parts[1] = Z3_mk_not(t->s.z3, parts[1]);
    return Z3_mk_and(t->s.z3, 2, parts);
}

static claim claim_of(theorem *t, uint32_t o)
{
    char prefix[GRAFT_ROOM_NAME] = "i";
    Z3_ast index[GRAFT_MAX_RANK];
    const graft_operand from = t->rule->source.outputs[o];
    const graft_operand to = t->rule->target.outputs[o];
    const graft_sym_shape *shape = graft_sym_shape_of(&t->instance, GRAFT_SYM_SOURCE, from);
    const graft_sym_conditions *source = graft_sym_operand_conditions(&t->sides[0], from);
    const graft_sym_conditions *target = graft_sym_operand_conditions(&t->sides[1], to);
    claim c = {.given_count = 0};
    if (t->rule->output_count > 1) {
        (void)snprintf(prefix, sizeof prefix, "i%" PRIu32 "_", o);
    }
    declare_index(t, prefix, shape, index);
    Z3_ast left = graft_sym_operand(&t->s, &t->instance, &t->sides[0], from);
    Z3_ast right = graft_sym_operand(&t->s, &t->instance, &t->sides[1], to);
    left = graft_sym_read(&t->s, left, shape->rank, index);
    right = graft_sym_read(&t->s, right, shape->rank, index);
    note_goal(t, left);
    note_goal(t, right);
    c.within = within(t, shape, index);
    c.differ = Z3_mk_not(t->s.z3, Z3_mk_eq(t->s.z3, left, right));
    for (uint32_t i = 0; i < source->count; i++) {
        if (!source->items[i].is_caught) {
            c.given[c.given_count++] = condition_at(t, &source->items[i], shape->rank, index);
        }
    }
    for (uint32_t i = 0; i < target->count; i++) {
        const graft_sym_condition at = condition_at(t, &target->items[i], shape->rank, index);
        c.undefined[c.undefined_count++] = fails(t, &at, o, i);
    }
    return c;
}

/* A condition of the source's element, for all its binders. */
static void put_given(theorem *t, const graft_sym_condition *c)
{
    Z3_ast stated = Z3_mk_implies(t->s.z3, c->where, c->holds);
    put(t, "    ");
    if (c->binder_count == 0) {
        put_term(t, stated);
    } else {
        graft_sym_definition d = {.param_count = c->binder_count};
        memcpy((void *)d.params, (const void *)c->binders, c->binder_count * sizeof d.params[0]);
        put(t, "(forall");
        put_params(t, &d, "");
        put(t, " ");
        put_term(t, stated);
        put(t, ")");
    }
    put(t, "\n");
}

/* The claim's opposite for one output. */
static void put_opposite(theorem *t, const claim *c)
{
    put(t, "  (and ");
    put_term(t, c->within);
    put(t, "\n");
    for (uint32_t i = 0; i < c->given_count; i++) {
        put_given(t, &c->given[i]);
    }
    put(t, "    (or ");
    put_term(t, c->differ);
    for (uint32_t i = 0; i < c->undefined_count; i++) {
        put(t, "\n      ");
        put_term(t, c->undefined[i]);
    }
    put(t, "))\n");
}

typedef struct {
    const graft_sym *s;
    graft_term_state *laws;
} law_search;

/* Reciprocals are defined in the file itself. */
static bool visit_function(void *context, Z3_ast term)
{
    const law_search *l = context;
    if (!graft_sym_is_app(l->s, term, l->s->term.functions[GRAFT_TERM_INVERSE])) {
        (void)graft_term_renew(l->laws, term);
    }
    return true;
}

/* Laws of exp, sqrt, erf, sigmoid and tanh (term.h) for the arguments that the claim has. */
static void put_laws(theorem *t)
{
    graft_term_state laws;
    law_search search = {&t->s, &laws};
    graft_term_open(&laws, t->s.z3);
    for (uint32_t i = 0; i < t->goal_count; i++) {
        graft_sym_walk(&t->s, t->goals[i], visit_function, &search);
    }
    for (uint32_t i = 0; i < Z3_ast_vector_size(t->s.z3, laws.laws); i++) {
        put_assertion(t, Z3_ast_vector_get(t->s.z3, laws.laws, i));
    }
    graft_term_close(&laws);
}

static void put_claim(theorem *t)
{
    claim *claims = GRAFT_NEW(t->arena, claim, t->rule->output_count);
    put(t, "\n; ---- the claim's opposite: an element that the source defines, and that differs or "
           "that the target does not define\n");
    for (uint32_t o = 0; o < t->rule->output_count; o++) {
        claims[o] = claim_of(t, o);
        for (uint32_t i = 0; i < claims[o].given_count; i++) {
            if (claims[o].given[i].binder_count == 0) {
                note_goal(t, claims[o].given[i].holds);
            }
        }
    }
    put_laws(t);
    put(t, "(assert (or false ; the goal\n");
    for (uint32_t o = 0; o < t->rule->output_count; o++) {
        put_opposite(t, &claims[o]);
    }
    put(t, "))\n(check-sat)\n");
}

/* --------------------------------------------------------------------- files */

static void put_body(theorem *t)
{
    put(t, "\n; ---- sizes, attributes, elements\n");
    declare_constants(t);
    put(t, "\n; ---- both sides\n");
    for (uint32_t i = 0; i < t->plain.count; i++) {
        put_definition(t, &t->plain.definitions[i]);
    }
    put(t, "\n; ---- what the engine lets through\n");
    for (uint32_t i = 0; i < t->plain.claim_count; i++) {
        put_assertion(t, t->plain.claims[i]);
    }
    put_claim(t);
}

static graft_status write_case(theorem *t, const graft_sym_case *c, uint32_t number)
{
    graft_theorem_file file = {.number = number, .count = t->count};
    const uint32_t left_out = t->count > GRAFT_THEOREM_CASES ? t->count - GRAFT_THEOREM_CASES : 0;
    graft_buffer head = {.arena = t->env->unit};
    t->out = (graft_buffer){.arena = t->env->unit};
    t->known_count = 0;
    t->goal_count = 0;
    t->full = false;
    put_body(t);
    if (t->full || t->plain.full) {
        return GRAFT_FAIL(t->env, GRAFT_UNDECIDED, "the theorem has too many symbols");
    }
    graft_buffer_printf(&head, "(set-info :smt-lib-version 2.6)\n");
    if (t->title != NULL) {
        graft_smt_print_title(&head, t->title);
    }
    graft_buffer_printf(&head,
                        "; case %" PRIu32 " of %" PRIu32 " (%" PRIu32 " left out): %s%s\n"
                        "; It must be unsat.\n"
                        "(set-option :produce-models false)\n(set-logic ALL)\n",
                        number, t->count, left_out,
                        graft_symbolic_print_case(t->env->unit, t->rule, c),
                        c->scalar ? " (scalars stand for all shapes: verify/core/symcase.h)" : "");
    put_vocabulary(&head, t->out.data);
    put_places(&head, t->out.data);
    graft_buffer_append(&head, t->out.data, t->out.size);
    file.text = head.data;
    file.size = head.size;
    return t->sink(t->env, t->context, &file);
}

/* Whether a case is in an even sample of so many, to which the first and the last one belong. */
static bool is_sampled(uint32_t number, uint32_t count)
{
    const uint64_t steps = GRAFT_THEOREM_CASES - 1;
    return count <= GRAFT_THEOREM_CASES || number == 0 ||
           number * steps / (count - 1) > (number - 1) * steps / (count - 1);
}

static graft_status read_case(theorem *t, const graft_sym_case *c)
{
    const graft_sym_extra none = {.count = 0};
    const char *why = NULL;
    graft_sym_plain_open(&t->plain, &t->s, t->arena);
    graft_sym_fit fit = graft_sym_shapes(&t->s, t->rule, c, &none, &t->instance, &why);
    if (fit == GRAFT_SYM_NEVER) {
        return GRAFT_OK;
    }
    if (fit == GRAFT_SYM_UNSUPPORTED) {
        return GRAFT_FAIL(t->env, GRAFT_UNDECIDED, "%s", why);
    }
    const uint32_t number = t->met++;
    if (t->count == 0 || !is_sampled(number, t->count)) {
        return GRAFT_OK;
    }
    for (uint32_t side = 0; side < 2; side++) {
        if (!graft_sym_read_side(&t->s, &t->instance, side, &t->sides[side])) {
            return GRAFT_FAIL(t->env, GRAFT_UNDECIDED, "%s", t->s.refusal);
        }
    }
    return write_case(t, c, number);
}

static bool visit_case(void *context, const graft_sym_case *c)
{
    theorem *t = context;
    graft_mark mark = graft_arena_mark(t->arena);
    t->status = read_case(t, c);
    t->s.plain = NULL;
    graft_arena_release(t->arena, mark);
    return t->status == GRAFT_OK;
}

graft_status graft_theorem_write(graft_env *env, const graft_rule *rule, const char *title,
                                 graft_theorem_sink sink, void *context)
{
    graft_prover prover;
    graft_prove_result counts;
    const graft_prove_options options = graft_prove_defaults();
    GRAFT_SCOPED(env->unit);
    theorem *t = GRAFT_NEW(env->unit, theorem, 1);
    *t = (theorem){.env = env, .rule = rule, .title = title, .sink = sink, .context = context};
    t->arena = graft_arena_new(ARENA_BYTES);
    graft_prover_open(&prover, &options, &counts);
    graft_sym_open(&t->s, &prover);
    Z3_set_ast_print_mode(t->s.z3, Z3_PRINT_SMTLIB2_COMPLIANT);
    for (uint32_t visit = 0; visit < 2 && t->status == GRAFT_OK; visit++) {
        t->count = t->met;
        t->met = 0;
        (void)graft_sym_cases(rule, visit_case, t);
    }
    graft_sym_close(&t->s);
    graft_prover_close(&prover);
    graft_arena_free(t->arena);
    return t->status;
}
