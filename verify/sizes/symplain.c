/* symplain.c - see symplain.h. */
#include "verify/sizes/symplain.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { DEFINITIONS_FIRST = 32 };

static graft_sym_plain *plain_of(const graft_sym *s) { return (graft_sym_plain *)s->plain; }

static Z3_ast read_numeral(const graft_sym *s, Z3_ast term)
{
    Z3_ast simple = Z3_simplify(s->z3, term);
    bool known = Z3_is_numeral_ast(s->z3, simple) || Z3_get_bool_value(s->z3, simple) != Z3_L_UNDEF;
    return known ? simple : term;
}

/* --------------------------------------------------------------- definitions */

static graft_sym_definition *add_definition(graft_sym_plain *p, graft_sym_definition_kind kind)
{
    graft_sym_definition *d =
        &GRAFT_PUSH(p->arena, p->definitions, p->count, p->capacity, DEFINITIONS_FIRST);
    *d = (graft_sym_definition){.kind = kind};
    return d;
}

static const char *side_name(uint32_t side)
{
    return side == GRAFT_SYM_SOURCE ? "source" : "target";
}

static void name_sizes(const graft_sym *s, uint32_t side, uint32_t node, uint32_t outputs,
                       graft_sym_shape *shapes)
{
    for (uint32_t o = 0; o < outputs; o++) {
        for (uint32_t i = 0; i < shapes[o].rank; i++) {
            Z3_ast *size = &shapes[o].dims[i];
            if (graft_sym_arity(s, *size) == 0) {
                continue; /* A number, or it has a name. */
            }
            graft_sym_definition *d = add_definition(plain_of(s), GRAFT_SYM_DEFINES_SIZE);
            d->side = side;
            d->node = node;
            d->decl = graft_term_declare(s->z3, 0, NULL, s->integer,
                                         "%s%" PRIu32 "_%" PRIu32 "_d%" PRIu32, side_name(side),
                                         node, o, i);
            d->body = *size;
            *size = Z3_mk_app(s->z3, d->decl, 0, NULL);
        }
    }
}

static void note_claims(const graft_sym *s, const Z3_ast *claims, uint32_t count)
{
    graft_sym_plain *p = plain_of(s);
    p->claims = GRAFT_NEW(p->arena, Z3_ast, count + 1);
    memcpy((void *)p->claims, (const void *)claims, count * sizeof *claims);
    p->claim_count = count;
}

static Z3_ast define_value(const graft_sym *s, uint32_t side, uint32_t node, uint32_t output,
                           uint32_t rank, Z3_ast value)
{
    graft_sym_definition *d = add_definition(plain_of(s), GRAFT_SYM_DEFINES_VALUE);
    d->side = side;
    d->node = node;
    d->decl = graft_term_declare(s->z3, rank, s->integer, s->term.real, "%s%" PRIu32 "_%" PRIu32,
                                 side_name(side), node, output);
    d->param_count = rank;
    memcpy((void *)d->params, (const void *)graft_sym_formals(s, rank), rank * sizeof(Z3_ast));
    d->body = value;
    return Z3_mk_app(s->z3, d->decl, rank, d->params);
}

/* --------------------------------------------------------------------- folds */

static graft_sym_definition *find_fold(graft_sym_plain *p, const graft_sym_definition *like)
{
    for (uint32_t i = 0; i < p->count; i++) {
        graft_sym_definition *d = &p->definitions[i];
        if (d->kind == like->kind && d->param_count == like->param_count && d->body == like->body &&
            d->guard == like->guard) {
            return d;
        }
    }
    return NULL;
}

static void name_fold(const graft_sym *s, graft_sym_definition *d)
{
    const bool sum = d->kind == GRAFT_SYM_DEFINES_SUM;
    const uint32_t arity = d->param_count + 1;
    d->number = plain_of(s)->folds++;
    d->decl = graft_term_declare(s->z3, arity, s->integer, s->term.real, "%s%" PRIu32,
                                 sum ? "sum" : "max", d->number);
    if (!sum) {
        d->any = graft_term_declare(s->z3, arity, s->integer, s->boolean, "any%" PRIu32, d->number);
    }
}

/* A fold over one range. */
typedef struct {
    graft_sym_fold kind;
    Z3_ast binder; /* A symbol. */
    Z3_ast size;
    Z3_ast guard; /* Of a maximum. */
    Z3_ast body;
} level;

/* Finds or makes the fold; `args` gets the symbols that its parameters stand for. */
static graft_sym_definition *define_fold(const graft_sym *s, const level *l, uint32_t count,
                                         const Z3_ast *symbols, Z3_ast *args)
{
    graft_sym_plain *p = plain_of(s);
    bool sum = l->kind == GRAFT_SYM_SUM;
    Z3_ast guard = sum ? NULL : l->guard;
    graft_sym_definition made = {.kind = sum ? GRAFT_SYM_DEFINES_SUM : GRAFT_SYM_DEFINES_MAX};
    Z3_ast from[GRAFT_SYM_PARAMS_MOST + 1] = {l->binder};
    Z3_ast to[GRAFT_SYM_PARAMS_MOST + 1] = {p->binder};
    for (uint32_t i = 0; i < count; i++) {
        bool occurs = symbols[i] != l->binder &&
                      (graft_sym_mentions(s, l->body, 1, &symbols[i]) ||
                       (guard != NULL && graft_sym_mentions(s, guard, 1, &symbols[i])));
        if (occurs && made.param_count == GRAFT_SYM_PARAMS_MOST) {
            p->full = true;
        } else if (occurs) {
            args[made.param_count] = symbols[i];
            made.params[made.param_count] =
                graft_term_constant(s->z3, s->integer, "p%" PRIu32, made.param_count);
            made.param_count++;
            from[made.param_count] = symbols[i];
            to[made.param_count] = made.params[made.param_count - 1];
        }
    }
    made.body = Z3_substitute(s->z3, l->body, made.param_count + 1, from, to);
    made.guard = guard == NULL ? NULL : Z3_substitute(s->z3, guard, made.param_count + 1, from, to);
    graft_sym_definition *d = find_fold(p, &made);
    if (d == NULL) {
        d = add_definition(p, made.kind);
        *d = made;
        name_fold(s, d);
    }
    return d;
}

static Z3_ast define_folds(const graft_sym *s, graft_sym_fold kind, const graft_sym_range *range,
                           Z3_ast body)
{
    Z3_ast symbols[GRAFT_MAX_RANK + GRAFT_SYM_BINDERS];
    Z3_ast guard = range->guard;
    bool always = Z3_get_bool_value(s->z3, guard) == Z3_L_TRUE;
    memcpy((void *)symbols, (const void *)s->formals, GRAFT_MAX_RANK * sizeof(Z3_ast));
    memcpy((void *)&symbols[GRAFT_MAX_RANK], (const void *)range->binders,
           range->count * sizeof(Z3_ast));
    if (kind == GRAFT_SYM_SUM && !always) {
        body = Z3_mk_ite(s->z3, guard, body, s->term.zero);
    }
    for (uint32_t i = range->count; i-- > 0;) {
        const level l = {kind, range->binders[i], range->sizes[i], guard, body};
        Z3_ast args[GRAFT_SYM_PARAMS_MOST + 1] = {l.size};
        const graft_sym_definition *d = define_fold(s, &l, GRAFT_MAX_RANK + i, symbols, &args[1]);
        body = Z3_mk_app(s->z3, d->decl, d->param_count + 1, args);
        guard = d->any != NULL ? Z3_mk_app(s->z3, d->any, d->param_count + 1, args) : guard;
    }
    return body;
}

/* ----------------------------------------------------------------- expanding */

static Z3_ast change_value(void *context, Z3_ast term)
{
    const graft_sym *s = *(const graft_sym *const *)context;
    const graft_sym_plain *p = plain_of(s);
    for (uint32_t i = 0; i < p->count; i++) {
        const graft_sym_definition *d = &p->definitions[i];
        bool fold = d->kind == GRAFT_SYM_DEFINES_SUM || d->kind == GRAFT_SYM_DEFINES_MAX;
        if (!fold && graft_sym_is_app(s, term, d->decl)) {
            Z3_ast to[GRAFT_SYM_PARAMS_MOST];
            for (uint32_t k = 0; k < d->param_count; k++) {
                to[k] = graft_sym_arg(s, term, k);
            }
            Z3_ast body = d->param_count == 0
                              ? d->body
                              : Z3_substitute(s->z3, d->body, d->param_count, d->params, to);
            return graft_sym_plain_expand(s, body);
        }
    }
    return term;
}

Z3_ast graft_sym_plain_expand(const graft_sym *s, Z3_ast term)
{
    return graft_term_rebuild(s->z3, term, change_value, &s);
}

/* ------------------------------------------------------------------- opening */

void graft_sym_plain_open(graft_sym_plain *plain, graft_sym *s, graft_arena *arena)
{
    *plain = (graft_sym_plain){
        .recorder = {.numeral = read_numeral,
                     .sizes = name_sizes,
                     .claims = note_claims,
                     .value = define_value,
                     .fold = define_folds},
        .arena = arena,
        .binder = graft_term_constant(s->z3, s->integer, "r")
    };
    s->plain = &plain->recorder;
}
