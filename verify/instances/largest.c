/* largest.c - see largest.h. */
#include "verify/instances/largest.h"

#include "verify/core/limits.h"

typedef struct {
    Z3_ast items[GRAFT_ROOM_MAXIMA]; /* Distinct, by identity. */
    uint32_t count;
} operands;

/* Whether a term is a >= b ? a : b. */
static bool is_larger_of(Z3_context z3, Z3_ast term, Z3_ast parts[2])
{
    if (Z3_get_ast_kind(z3, term) != Z3_APP_AST) {
        return false;
    }
    Z3_app app = Z3_to_app(z3, term);
    if (Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app)) != Z3_OP_ITE) {
        return false;
    }
    parts[0] = Z3_get_app_arg(z3, app, 1);
    parts[1] = Z3_get_app_arg(z3, app, 2);
    return Z3_get_app_arg(z3, app, 0) == Z3_mk_ge(z3, parts[0], parts[1]);
}

static bool insert_operand(Z3_context z3, operands *o, Z3_ast item)
{
    uint32_t at = o->count;
    uint32_t id = Z3_get_ast_id(z3, item);
    while (at > 0 && Z3_get_ast_id(z3, o->items[at - 1]) > id) {
        at--;
    }
    if (at > 0 && o->items[at - 1] == item) {
        return true;
    }
    if (o->count == GRAFT_LIMIT(MAXIMA)) {
        return false;
    }
    for (uint32_t i = o->count++; i > at; i--) {
        o->items[i] = o->items[i - 1];
    }
    o->items[at] = item;
    return true;
}

/* The operands of a chain, whose last one stands outermost, or of any other term: itself. */
static bool add_operands(Z3_context z3, operands *o, Z3_ast term)
{
    Z3_ast parts[2];
    bool fits = true;
    while (fits && is_larger_of(z3, term, parts)) {
        fits = insert_operand(z3, o, parts[1]);
        term = parts[0];
    }
    return fits && insert_operand(z3, o, term);
}

/* Operands come before: those of a maximum are chains already, or no maxima. */
static Z3_ast change_maximum(void *context, Z3_ast term)
{
    Z3_context z3 = context;
    Z3_ast parts[2];
    operands o = {.count = 0};
    if (!is_larger_of(z3, term, parts) || !add_operands(z3, &o, parts[0]) ||
        !add_operands(z3, &o, parts[1])) {
        return term;
    }
    Z3_ast chain = o.items[0];
    for (uint32_t i = 1; i < o.count; i++) {
        chain = Z3_mk_ite(z3, Z3_mk_ge(z3, chain, o.items[i]), chain, o.items[i]);
    }
    return chain;
}

Z3_ast graft_largest(Z3_context z3, Z3_ast term)
{
    return graft_term_rebuild(z3, term, change_maximum, z3);
}
