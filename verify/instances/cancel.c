/* cancel.c - see cancel.h. */
#include "verify/instances/cancel.h"

#include "verify/core/limits.h"

typedef struct {
    const graft_term_state *k;
    Z3_ast_map nonzero;
} canceling;

/* A product as its factors. */
typedef struct {
    Z3_ast factors[GRAFT_ROOM_CANCELED_FACTORS];
    uint32_t count;
    bool full;
    bool changed; /* The product of the factors is another term than the one opened. */
} product;

static bool is_product(const canceling *c, Z3_ast term)
{
    Z3_context z3 = c->k->z3;
    return Z3_get_ast_kind(z3, term) == Z3_APP_AST &&
           Z3_get_decl_kind(z3, Z3_get_app_decl(z3, Z3_to_app(z3, term))) == Z3_OP_MUL;
}

static void open_product(const canceling *c, Z3_ast term, product *p)
{
    Z3_context z3 = c->k->z3;
    if (term == c->k->one) {
        p->changed = true;
        return;
    }
    if (!is_product(c, term)) {
        p->full = p->full || p->count == GRAFT_LIMIT(CANCELED_FACTORS);
        if (!p->full) {
            p->factors[p->count++] = term;
        }
        return;
    }
    for (uint32_t i = 0; i < Z3_get_app_num_args(z3, Z3_to_app(z3, term)); i++) {
        open_product(c, Z3_get_app_arg(z3, Z3_to_app(z3, term), i), p);
    }
}

/* The factor that `inverse` (a reciprocal) cancels; p->count when there is none. */
static uint32_t find_canceled(const canceling *c, const product *p, Z3_ast inverse)
{
    Z3_context z3 = c->k->z3;
    Z3_app app = Z3_to_app(z3, inverse);
    uint32_t i = p->count;
    if (Z3_get_ast_kind(z3, inverse) == Z3_APP_AST &&
        Z3_get_app_decl(z3, app) == c->k->functions[GRAFT_TERM_INVERSE] &&
        Z3_ast_map_contains(z3, c->nonzero, Z3_get_app_arg(z3, app, 0))) {
        i = 0;
        while (i < p->count && p->factors[i] != Z3_get_app_arg(z3, app, 0)) {
            i++;
        }
    }
    return i;
}

static Z3_ast cancel_product(const canceling *c, Z3_ast term)
{
    product p = {.count = 0};
    open_product(c, term, &p);
    if (p.full) {
        return term;
    }
    for (uint32_t i = 0; i < p.count;) {
        uint32_t other = find_canceled(c, &p, p.factors[i]);
        if (other == p.count) {
            i++;
            continue;
        }
        uint32_t kept = 0;
        for (uint32_t n = 0; n < p.count; n++) {
            if (n != i && n != other) {
                p.factors[kept++] = p.factors[n];
            }
        }
        p.count = kept;
        p.changed = true;
        i = 0;
    }
    if (!p.changed) {
        return term;
    }
    return p.count == 0   ? c->k->one
           : p.count == 1 ? p.factors[0]
                          : Z3_mk_mul(c->k->z3, p.count, p.factors);
}

static Z3_ast change_product(void *context, Z3_ast term)
{
    const canceling *c = context;
    return is_product(c, term) ? cancel_product(c, term) : term;
}

/* The t of "not (t = 0)", or NULL. */
static Z3_ast find_nonzero(const graft_term_state *k, Z3_ast condition)
{
    Z3_context z3 = k->z3;
    Z3_app app = Z3_to_app(z3, condition);
    if (Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app)) != Z3_OP_NOT) {
        return NULL;
    }
    Z3_ast inner = Z3_get_app_arg(z3, app, 0);
    app = Z3_to_app(z3, inner);
    if (Z3_get_ast_kind(z3, inner) != Z3_APP_AST ||
        Z3_get_decl_kind(z3, Z3_get_app_decl(z3, app)) != Z3_OP_EQ) {
        return NULL;
    }
    Z3_ast x = Z3_get_app_arg(z3, app, 0);
    Z3_ast y = Z3_get_app_arg(z3, app, 1);
    return y == k->zero ? x : x == k->zero ? y : NULL;
}

Z3_ast graft_cancel(const graft_term_state *k, Z3_ast term, const Z3_ast *given, uint32_t count)
{
    canceling c = {.k = k, .nonzero = graft_term_map(k->z3)};
    for (uint32_t i = 0; i < count; i++) {
        Z3_ast t = find_nonzero(k, given[i]);
        if (t != NULL) {
            Z3_ast_map_insert(k->z3, c.nonzero, t, t);
        }
    }
    Z3_ast result = graft_term_rebuild(k->z3, term, change_product, &c);
    Z3_ast_map_dec_ref(k->z3, c.nonzero);
    return result;
}
