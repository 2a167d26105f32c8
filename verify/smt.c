/* smt.c - see smt.h. Written here and not by Z3's own printer: that one writes what Z3 alone reads
 * (functions named as its built-in ones, bit patterns of its options), and without sharing. */
#include "verify/smt.h"

#include "verify/obligation.h"
#include "verify/pointwise.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What has been met of one term, by the number that Z3 gives it in its context. */
typedef struct {
    uint32_t uses;
    uint32_t name; /* 1 + the number in its name; 0: written out wherever it occurs. */
    bool counted;
    bool done;
} note;

/* Writes the obligation of one instance. */
typedef struct {
    const graft_obligation *o;
    Z3_context z3;
    graft_arena *arena;
    graft_buffer *out;
    note *notes;
    uint32_t note_count;
    Z3_ast *stack; /* Of terms still to be visited. */
    uint32_t depth;
    uint32_t capacity;
    uint32_t names;
    uint32_t functions; /* Bits of graft_term_function that occur. */
} printer;

/* ------------------------------------------------------------------- terms */

static note *note_of(printer *p, Z3_ast term)
{
    uint32_t id = Z3_get_ast_id(p->z3, term);
    if (id >= p->note_count) {
        uint32_t count = 2 * id + 1024;
        note *notes = GRAFT_NEW(p->arena, note, count);
        if (p->note_count > 0) {
            memcpy(notes, p->notes, p->note_count * sizeof(note));
        }
        p->notes = notes;
        p->note_count = count;
    }
    return &p->notes[id];
}

/* Everybody who pushes pops again before returning. NULL stands for a closing parenthesis. */
static void push(printer *p, Z3_ast term)
{
    if (p->depth == p->capacity) {
        uint32_t capacity = 2 * p->capacity + 256;
        Z3_ast *stack = GRAFT_NEW(p->arena, Z3_ast, capacity);
        if (p->depth > 0) {
            memcpy(stack, p->stack, p->depth * sizeof(Z3_ast));
        }
        p->stack = stack;
        p->capacity = capacity;
    }
    p->stack[p->depth++] = term;
}

static uint32_t operand_count(const printer *p, Z3_ast term)
{
    return Z3_is_numeral_ast(p->z3, term) ? 0 : Z3_get_app_num_args(p->z3, Z3_to_app(p->z3, term));
}

static Z3_ast operand(const printer *p, Z3_ast term, uint32_t i)
{
    return Z3_get_app_arg(p->z3, Z3_to_app(p->z3, term), i);
}

static Z3_decl_kind kind_of(const printer *p, Z3_ast term)
{
    return Z3_get_decl_kind(p->z3, Z3_get_app_decl(p->z3, Z3_to_app(p->z3, term)));
}

/* Which unknown function a term applies; GRAFT_TERM_FUNCTION_COUNT: none. */
static uint32_t function_of(const printer *p, Z3_ast term)
{
    Z3_func_decl decl = Z3_get_app_decl(p->z3, Z3_to_app(p->z3, term));
    uint32_t f = 0;
    while (f < GRAFT_TERM_FUNCTION_COUNT && decl != p->o->term.functions[f]) {
        f++;
    }
    return f;
}

static const char *const function_names[GRAFT_TERM_FUNCTION_COUNT] = {
    "fn_exp", "fn_sqrt", "fn_erf", "fn_sigmoid", "fn_tanh", "fn_inverse"};

/* As SMT-LIB has it, or the name of an unknown function. */
static const char *operator_name(printer *p, Z3_ast term)
{
    static const struct {
        Z3_decl_kind kind;
        const char *name;
    } names[] = {
        {Z3_OP_ADD,     "+"  },
        {Z3_OP_SUB,     "-"  },
        {Z3_OP_UMINUS,  "-"  },
        {Z3_OP_MUL,     "*"  },
        {Z3_OP_DIV,     "/"  },
        {Z3_OP_ITE,     "ite"},
        {Z3_OP_EQ,      "="  },
        {Z3_OP_NOT,     "not"},
        {Z3_OP_AND,     "and"},
        {Z3_OP_OR,      "or" },
        {Z3_OP_IMPLIES, "=>" },
        {Z3_OP_LE,      "<=" },
        {Z3_OP_LT,      "<"  },
        {Z3_OP_GE,      ">=" },
        {Z3_OP_GT,      ">"  }
    };
    uint32_t f = function_of(p, term);
    if (f < GRAFT_TERM_FUNCTION_COUNT) {
        p->functions |= UINT32_C(1) << f;
        return function_names[f];
    }
    Z3_decl_kind kind = kind_of(p, term);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].kind == kind) {
            return names[i].name;
        }
    }
    assert(false && "the term algebra uses an operation that is not in this table");
    return "";
}

/* Rationals as SMT-LIB has them: no sign in a numeral, decimals for reals. */
static void print_numeral(printer *p, Z3_ast term)
{
    const char *text = Z3_get_numeral_string(p->z3, term);
    bool negative = text[0] == '-';
    text += negative ? 1 : 0;
    size_t whole = strcspn(text, "/");
    const char *open = negative ? "(- " : "";
    const char *close = negative ? ")" : "";
    if (text[whole] == '/') {
        graft_buffer_printf(p->out, "%s(/ %.*s.0 %s.0)%s", open, (int)whole, text, text + whole + 1,
                            close);
    } else {
        graft_buffer_printf(p->out, "%s%s.0%s", open, text, close);
    }
}

static bool is_written_inside(printer *p, Z3_ast term, Z3_decl_kind kind)
{
    return operand_count(p, term) > 0 && note_of(p, term)->name == 0 && kind_of(p, term) == kind;
}

/* Opens an operation; its operands become pending, then the end (NULL). The first operand of a sum
 * is opened too when it is a sum. */
static void open_operation(printer *p, Z3_ast term)
{
    Z3_decl_kind kind = kind_of(p, term);
    bool nests = kind == Z3_OP_ADD || kind == Z3_OP_MUL;
    graft_buffer_printf(p->out, "(%s", operator_name(p, term));
    push(p, NULL);
    for (;;) {
        for (uint32_t i = operand_count(p, term); i-- > 1;) {
            push(p, operand(p, term, i));
        }
        Z3_ast first = operand(p, term, 0);
        if (!nests || !is_written_inside(p, first, kind)) {
            push(p, first);
            return;
        }
        term = first;
    }
}

/* A leaf, a name or an operation. With `whole` the name of `root` itself is not used. */
static void print_term(printer *p, Z3_ast root, bool whole)
{
    uint32_t base = p->depth;
    push(p, root);
    for (bool first = true; p->depth > base; first = false) {
        Z3_ast term = p->stack[--p->depth];
        if (term == NULL) {
            graft_buffer_printf(p->out, ")");
            continue;
        }
        graft_buffer_printf(p->out, first ? "" : " ");
        uint32_t name = first && whole ? 0 : note_of(p, term)->name;
        if (name > 0) {
            graft_buffer_printf(p->out, "t%" PRIu32, name - 1);
        } else if (Z3_is_numeral_ast(p->z3, term)) {
            print_numeral(p, term);
        } else if (operand_count(p, term) > 0) {
            open_operation(p, term);
        } else {
            graft_buffer_printf(p->out, "%s", Z3_ast_to_string(p->z3, term));
        }
    }
}

/* ----------------------------------------------------------------- sharing */

/* Counts how often each operation below `root` is read. */
static void count_uses(printer *p, Z3_ast root)
{
    uint32_t base = p->depth;
    push(p, root);
    while (p->depth > base) {
        Z3_ast term = p->stack[--p->depth];
        uint32_t count = operand_count(p, term);
        note *n = note_of(p, term);
        n->uses++;
        if (n->counted) {
            continue;
        }
        n->counted = true;
        for (uint32_t i = 0; i < count; i++) {
            push(p, operand(p, term, i));
        }
    }
}

static void define_term(printer *p, Z3_ast term)
{
    bool real = Z3_get_sort(p->z3, term) == p->o->term.real;
    graft_buffer_printf(p->out, "(define-fun t%" PRIu32 " () %s ", p->names,
                        real ? "Real" : "Bool");
    print_term(p, term, true);
    graft_buffer_printf(p->out, ")\n");
    note_of(p, term)->name = ++p->names;
}

/* Gives a name to each operation below `root` that is read more than once, operands first. */
static void define_shared(printer *p, Z3_ast root)
{
    uint32_t base = p->depth;
    push(p, root);
    while (p->depth > base) {
        Z3_ast term = p->stack[--p->depth];
        uint32_t count = operand_count(p, term);
        note *n = note_of(p, term);
        if (n->done || count == 0) {
            continue;
        }
        if (n->counted) { /* Comes again when its operands are done. */
            n->counted = false;
            push(p, term);
            for (uint32_t i = count; i-- > 0;) {
                push(p, operand(p, term, i));
            }
            continue;
        }
        n->done = true;
        if (n->uses > 1) {
            define_term(p, term);
        }
    }
}

/* --------------------------------------------------------------- instances */

static void share_terms(printer *p)
{
    const graft_obligation *o = p->o;
    for (uint32_t i = 0; i < o->assumption_count; i++) {
        count_uses(p, o->assumptions[i]);
    }
    for (uint32_t i = 0; i < o->count; i++) {
        count_uses(p, o->questions[i]);
    }
    for (uint32_t i = 0; i < o->assumption_count; i++) {
        define_shared(p, o->assumptions[i]);
    }
    for (uint32_t i = 0; i < o->count; i++) {
        define_shared(p, o->questions[i]);
    }
}

static void print_obligation(printer *p)
{
    const graft_obligation *o = p->o;
    graft_buffer_printf(p->out, "(push 1)\n");
    share_terms(p);
    for (uint32_t i = 0; i < o->assumption_count; i++) {
        graft_buffer_printf(p->out, "(assert ");
        print_term(p, o->assumptions[i], false);
        graft_buffer_printf(p->out, ")\n");
    }
    graft_buffer_printf(p->out, "(assert (or false\n");
    for (uint32_t i = 0; i < o->count; i++) {
        graft_buffer_printf(p->out, "  ");
        print_term(p, o->questions[i], false);
        graft_buffer_printf(p->out, "\n");
    }
    graft_buffer_printf(p->out, "))\n(check-sat)\n(pop 1)\n");
}

/* The whole of one file but its head. */
typedef struct {
    graft_env *env;
    graft_buffer body;
    uint32_t functions;
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
    graft_mark mark = graft_arena_mark(env->scratch);
    graft_obligation o;
    Z3_config config = Z3_mk_config();
    Z3_context z3 = Z3_mk_context(config);
    Z3_del_config(config);
    Z3_set_error_handler(z3, stop_on_error);
    graft_obligation_build(&o, env->scratch, z3, instance);
    printer p = {.o = &o, .z3 = z3, .arena = env->scratch, .out = &d->body};
    print_obligation(&p);
    d->functions |= p.functions;
    d->checks++;
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        d->elements[v] = count > d->elements[v] ? count : d->elements[v];
    }
    graft_obligation_close(&o);
    Z3_del_context(z3);
    graft_arena_release(env->scratch, mark);
}

static graft_status add_points(draft *d, const graft_smt_claim *claim)
{
    graft_status status = GRAFT_OK;
    for (uint32_t i = 0; i < claim->count; i++) {
        graft_instance instance;
        const char *text = graft_point_print(d->env->unit, claim->rule, &claim->points[i]);
        if (graft_instance_build(&instance, claim->rule, &claim->points[i]) != GRAFT_FIT_OK) {
            status = GRAFT_FAIL(d->env, GRAFT_BAD_INPUT,
                                "point %" PRIu32 " of the certificate is no instance: %s", i, text);
            goto done;
        }
        graft_buffer_printf(&d->body, "\n; %" PRIu32 ": %s\n", i, text);
        add_instance(d, &instance);
    }
done:
    return status;
}

static void add_scalar(draft *d, const graft_rule *rule)
{
    graft_rule scalar;
    graft_point point;
    graft_instance instance;
    if (!graft_pointwise_rule(rule, &scalar, &point) ||
        graft_instance_build(&instance, &scalar, &point) != GRAFT_FIT_OK) {
        graft_buffer_printf(&d->body,
                            "\n; for all sizes: over symbolic shapes, not written here\n");
        return;
    }
    graft_buffer_printf(&d->body, "\n; for all sizes: scalars\n");
    add_instance(d, &instance);
}

/* ------------------------------------------------------------------- files */

static void print_title(graft_buffer *out, const char *title)
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
        print_title(out, claim->title);
    }
    graft_buffer_printf(out, "; Each check-sat must be unsat, as %s said.\n", claim->solver);
    graft_buffer_printf(out, "(set-option :produce-models false)\n(set-logic %s)\n",
                        d->functions != 0 ? "QF_UFNRA" : "QF_NRA");
    for (uint32_t f = 0; f < GRAFT_TERM_FUNCTION_COUNT; f++) {
        if ((d->functions >> f & 1u) != 0) {
            graft_buffer_printf(out, "(declare-fun %s (Real) Real)\n", function_names[f]);
        }
    }
    for (uint32_t v = 0; v < claim->rule->var_count; v++) {
        for (size_t i = 0; i < d->elements[v]; i++) {
            graft_buffer_printf(out, "(declare-const x%" PRIu32 "_%zu Real)\n", v, i);
        }
    }
}

graft_status graft_smt_print(graft_env *env, const graft_smt_claim *claim, graft_buffer *out,
                             uint32_t *checks)
{
    graft_status status = GRAFT_OK;
    draft d = {.env = env, .body = {.arena = env->unit}};
    GRAFT_CHECK(add_points(&d, claim));
    if (claim->unbounded) {
        add_scalar(&d, claim->rule);
    }
    print_head(out, claim, &d);
    if (d.body.size > 0) {
        graft_buffer_append(out, d.body.data, d.body.size);
    }
    *checks = d.checks;
done:
    return status;
}
