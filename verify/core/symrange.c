/* symrange.c - ranges of sums and maxima (see symfold.h). */
#include "verify/core/hints.h"
#include "verify/core/symassume.h"
#include "verify/core/symfold.h"

graft_sym_range graft_sym_range_open(const graft_sym *s)
{
    return (graft_sym_range){.guard = Z3_mk_true(s->z3)};
}

Z3_ast graft_sym_range_add(graft_sym *s, graft_sym_range *range, Z3_ast size)
{
    Z3_ast binder = graft_sym_fresh(s);
    range->binders[range->count] = binder;
    range->sizes[range->count++] = size;
    return binder;
}

void graft_sym_range_guard(const graft_sym *s, graft_sym_range *range, Z3_ast guard)
{
    Z3_ast both[2] = {range->guard, guard};
    bool open = Z3_get_bool_value(s->z3, range->guard) == Z3_L_TRUE;
    range->guard = open ? guard : Z3_mk_and(s->z3, 2, both);
}

Z3_ast graft_sym_range_formula(const graft_sym *s, const graft_sym_range *range)
{
    Z3_ast parts[GRAFT_SYM_BINDERS + 1];
    for (uint32_t i = 0; i < range->count; i++) {
        parts[i] = graft_sym_in_range(s, range->binders[i], range->sizes[i]);
    }
    parts[range->count] = range->guard;
    return Z3_mk_and(s->z3, range->count + 1, parts);
}

void graft_sym_range_remove(graft_sym_range *range, uint32_t i)
{
    range->count--;
    range->binders[i] = range->binders[range->count];
    range->sizes[i] = range->sizes[range->count];
}

/* ------------------------------------------------------- binders that are places */

static bool is_part_of(const graft_sym *s, Z3_ast term, const void *binder)
{
    return (graft_sym_part_axes(s, term) > 0 || graft_sym_is_app(s, term, s->quotient)) &&
           graft_sym_arg(s, term, 0) == *(const Z3_ast *)binder;
}

/* Row-major places below the product of some sizes are one to one with the indices below these: a
 * binder of which body or guard name the parts in such sizes is as many binders. So is one below m n
 * of which they name only the quotient by n, the first part in m and n. */
static bool split_place(graft_sym *s, const graft_facts *facts, graft_sym_range *range, uint32_t i,
                        Z3_ast *body)
{
    Z3_ast binder = range->binders[i];
    Z3_ast found = graft_sym_find(s, *body, true, is_part_of, &binder);
    bool quotient = found != NULL && graft_sym_is_app(s, found, s->quotient);
    uint32_t n = found == NULL ? 0 : quotient ? 2 : graft_sym_part_axes(s, found);
    if (n == 0 || range->count - 1 + n > GRAFT_SYM_BINDERS) {
        return false;
    }
    graft_sym_range split = *range;
    Z3_ast args[2 * GRAFT_MAX_RANK];
    Z3_ast product = graft_sym_int(s, 1);
    graft_sym_range_remove(&split, i);
    for (uint32_t k = 0; k < n; k++) {
        Z3_ast size = graft_sym_arg(s, found, quotient ? 1 : 1 + k);
        bool first = quotient && k == 0;
        args[n + k] = first ? graft_sym_multiples(s, range->sizes[i], size) : size;
        args[k] = graft_sym_range_add(s, &split, args[n + k]);
        product = graft_sym_mul(s, product, args[n + k]);
    }
    Z3_ast place = Z3_mk_app(s->z3, s->place[n], 2 * n, args);
    Z3_ast from = quotient ? found : binder;
    Z3_ast to = quotient ? args[0] : place;
    Z3_ast parted = graft_sym_substitute(s, *body, 1, &from, &to);
    split.guard = graft_sym_substitute(s, split.guard, 1, &from, &to);
    const bool rest =
        graft_sym_mentions(s, parted, 1, &binder) || graft_sym_mentions(s, split.guard, 1, &binder);
    if (rest || (product != range->sizes[i] &&
                 !graft_sym_holds(s, facts, Z3_mk_eq(s->z3, product, range->sizes[i])))) {
        return false;
    }
    *range = split;
    *body = parted;
    return true;
}

static Z3_ast split_places(graft_sym *s, const graft_facts *facts, graft_sym_range *range,
                           Z3_ast body)
{
    for (uint32_t i = 0; i < range->count;) {
        i = split_place(s, facts, range, i, &body) ? 0 : i + 1;
    }
    return body;
}

/* Whether a value is the only one that a binder has in the range. */
static bool is_only_value(graft_sym *s, const graft_facts *facts, const graft_sym_range *range,
                          Z3_ast binder, Z3_ast value)
{
    const graft_facts inner = {.outer = facts, .fact = graft_sym_range_formula(s, range)};
    return value != NULL && !graft_sym_is_bound(s, value) &&
           !graft_sym_mentions(s, value, 1, &binder) &&
           graft_sym_holds(s, &inner, Z3_mk_eq(s->z3, binder, value));
}

/* Binders that have one value in the range are that, where it lies in their own range. */
static Z3_ast drop_fixed(graft_sym *s, const graft_facts *facts, graft_sym_range *range,
                         Z3_ast body)
{
    for (uint32_t i = range->count; i-- > 0;) {
        Z3_ast binder = range->binders[i];
        Z3_ast value = s->hints == NULL ? NULL : s->hints->fixed(s, range, i);
        Z3_ast unit = Z3_mk_eq(s->z3, range->sizes[i], graft_sym_int(s, 1));
        value = graft_sym_holds(s, facts, unit) ? graft_sym_int(s, 0) : value;
        if (is_only_value(s, facts, range, binder, value)) {
            graft_sym_range_guard(s, range, graft_sym_in_range(s, value, range->sizes[i]));
            body = graft_sym_substitute(s, body, 1, &binder, &value);
            range->guard = graft_sym_substitute(s, range->guard, 1, &binder, &value);
            graft_sym_range_remove(range, i);
        }
    }
    return body;
}

Z3_ast graft_sym_range_settle(graft_sym *s, const graft_facts *facts, graft_sym_range *range,
                              Z3_ast body)
{
    return drop_fixed(s, facts, range, split_places(s, facts, range, body));
}
