/* products.c - see products.h. */
#include "verify/sizes/products.h"

#include "verify/core/symassume.h"

/* Polynomials that are not negative. */
typedef struct {
    graft_sym *s;
    Z3_ast *items;
    uint32_t count;
} fact_list;

typedef struct {
    graft_sym *s;
    Z3_ast facts[GRAFT_ROOM_PRODUCT_FACTS];
    fact_list list;                          /* Of `facts`. */
    Z3_ast products[GRAFT_ROOM_PRODUCTS][2]; /* A symbol or group, and the other factor. */
    uint32_t product_count;
    Z3_ast groups[GRAFT_ROOM_GROUPS];
    uint32_t group_count;
    bool divides; /* There are quotients: products in assumptions are of use, of any size. */
    graft_sym_law *laws;
    uint32_t law_count;
} products;

/* ------------------------------------------------------------------- facts */

static void note_facts(fact_list *p, Z3_ast fact)
{
    const graft_sym *s = p->s;
    const bool all = graft_sym_kind(s, fact) == Z3_OP_AND;
    Z3_ast slack = graft_sym_slack(s, fact);
    for (uint32_t i = 0; all && i < graft_sym_arity(s, fact); i++) {
        note_facts(p, graft_sym_arg(s, fact, i));
    }
    if (slack != NULL && p->count < GRAFT_LIMIT(PRODUCT_FACTS) &&
        !Z3_is_numeral_ast(p->s->z3, slack)) {
        p->items[p->count++] = slack;
    }
}

uint32_t graft_sym_list_facts(graft_sym *s, Z3_ast formula, Z3_ast facts[GRAFT_ROOM_PRODUCT_FACTS])
{
    fact_list list = {.s = s, .items = facts};
    note_facts(&list, formula);
    return list.count;
}

/* Whether x is a term of its own, once, in the polynomial. */
static bool stands_alone(const products *p, Z3_ast polynomial, Z3_ast x)
{
    const graft_sym *s = p->s;
    return graft_sym_mentions(s, polynomial, 1, &x) &&
           (!graft_sym_mentions(s, graft_sym_sub(s, polynomial, x), 1, &x) ||
            !graft_sym_mentions(s, graft_sym_add(s, polynomial, x), 1, &x));
}

/* ---------------------------------------------------------------- products */

static bool is_symbol(const graft_sym *s, Z3_ast term)
{
    return graft_sym_is_app(s, term, s->group) || graft_sym_is_app(s, term, s->quotient) ||
           graft_sym_is_symbol(s, term);
}

static void state(products *p, Z3_ast one, Z3_ast other)
{
    if (p->law_count < GRAFT_LIMIT(LEMMAS)) {
        p->laws[p->law_count++] = (graft_sym_law){one, other};
    }
}

static void note_product(products *p, Z3_ast x, Z3_ast factor)
{
    for (uint32_t i = 0; i < p->product_count; i++) {
        if (p->products[i][0] == x && p->products[i][1] == factor) {
            return;
        }
    }
    if (p->product_count < GRAFT_LIMIT(PRODUCTS) && (p->divides || is_symbol(p->s, x))) {
        p->products[p->product_count][0] = x;
        p->products[p->product_count++][1] = factor;
    }
}

static void note_group(products *p, Z3_ast group)
{
    for (uint32_t i = 0; i < p->group_count; i++) {
        if (p->groups[i] == group) {
            return;
        }
    }
    if (p->group_count < GRAFT_LIMIT(GROUPS)) {
        p->groups[p->group_count++] = group;
    }
}

/* What a quotient is, and that it is 0 of what lies below the divisor. */
static void state_quotient(products *p, Z3_ast quotient)
{
    const graft_sym *s = p->s;
    Z3_ast n = graft_sym_divisor(s, quotient);
    Z3_ast opposite = graft_sym_sub(s, graft_sym_int(s, 0), quotient);
    state(p, quotient, NULL);
    state(p, graft_sym_sub(s, quotient, graft_sym_int(s, 1)), n);
    state(p, graft_sym_sub(s, opposite, graft_sym_int(s, 1)), n);
    p->divides = true;
    note_product(p, quotient, n);
}

/* Groups, and products of at most three factors and a number. */
static bool visit_product(void *context, Z3_ast term)
{
    products *p = context;
    const graft_sym *s = p->s;
    uint32_t count = graft_sym_arity(s, term);
    if (graft_sym_is_app(s, term, s->group)) {
        note_group(p, term);
    }
    if (graft_sym_divisor(s, term) != NULL) {
        state_quotient(p, term);
    }
    if (graft_sym_kind(s, term) != Z3_OP_MUL) {
        return true;
    }
    bool scaled = Z3_is_numeral_ast(s->z3, graft_sym_arg(s, term, 0));
    uint32_t first = scaled ? 1 : 0;
    for (uint32_t i = first; i < count && count - first >= 2 && count - first <= 3; i++) {
        Z3_ast others[2];
        uint32_t other_count = 0;
        for (uint32_t k = first; k < count; k++) {
            if (k != i) {
                others[other_count++] = graft_sym_arg(s, term, k);
            }
        }
        note_product(p, graft_sym_arg(s, term, i),
                     other_count == 1 ? others[0] : graft_sym_mul(s, others[0], others[1]));
    }
    return true;
}

/* -------------------------------------------------------------------- laws */

/* a - b and a - b - 1. */
static Z3_ast minus(const products *p, Z3_ast a, Z3_ast b) { return graft_sym_sub(p->s, a, b); }

static Z3_ast above(const products *p, Z3_ast a, Z3_ast b)
{
    return minus(p, minus(p, a, b), graft_sym_int(p->s, 1));
}

/* That whole numbers a and b are not apart by one or more times `size`. */
static void state_near(products *p, Z3_ast a, Z3_ast b, Z3_ast size)
{
    state(p, above(p, a, b), size);
    state(p, above(p, b, a), size);
}

/* The same of the multiples of a group that occur; by numbers that may be negative with `both`. */
static void state_multiples(products *p, Z3_ast group, Z3_ast difference, bool both)
{
    for (uint32_t i = 0; i < p->product_count; i++) {
        if (p->products[i][0] == group) {
            state(p, difference, p->products[i][1]);
            if (both) {
                state(p, difference, minus(p, graft_sym_int(p->s, 0), p->products[i][1]));
            }
        }
    }
}

/* What a group is; among few groups which it is, else that it is the output where there are as many
 * groups as outputs. */
static void state_group(products *p, Z3_ast group)
{
    const graft_sym *s = p->s;
    int64_t number = 0;
    Z3_ast output = graft_sym_arg(s, group, 0);
    Z3_ast outputs = graft_sym_arg(s, group, 1);
    Z3_ast groups = graft_sym_arg(s, group, 2);
    state(p, group, NULL);
    if (!Z3_is_numeral_ast(s->z3, groups)) {
        state_near(p, group, output, outputs);
        state(p, minus(p, outputs, groups), output);
        state(p, minus(p, groups, outputs), output);
    } else if (Z3_get_numeral_int64(s->z3, groups, &number) &&
               number <= (int64_t)GRAFT_LIMIT(FEW_GROUPS)) {
        for (int64_t j = 0; j < number; j++) {
            state(p, minus(p, group, graft_sym_int(s, j)), outputs);
            state(p, minus(p, graft_sym_int(s, j), group), outputs);
        }
    }
}

/* The number of groups that `outputs` outputs make, `groups` of them being made by `all`, if that
 * is one of the factors of `groups`; NULL otherwise. */
static Z3_ast groups_of(const graft_sym *s, Z3_ast outputs, Z3_ast all, Z3_ast groups)
{
    bool product = graft_sym_kind(s, groups) == Z3_OP_MUL;
    uint32_t count = product ? graft_sym_arity(s, groups) : 0;
    for (uint32_t i = 0; i < count + 2; i++) {
        Z3_ast share = i < count    ? graft_sym_arg(s, groups, i)
                       : i == count ? groups
                                    : graft_sym_int(s, 1);
        if (graft_sym_mul(s, outputs, groups) == graft_sym_mul(s, share, all)) {
            return share;
        }
    }
    return NULL;
}

/* Outputs below a bound that ends a group lie in the groups before, the others in those behind. */
static void state_group_bound(products *p, Z3_ast group, Z3_ast fact)
{
    const graft_sym *s = p->s;
    Z3_ast output = graft_sym_arg(s, group, 0);
    Z3_ast outputs = graft_sym_arg(s, group, 1);
    Z3_ast groups = graft_sym_arg(s, group, 2);
    Z3_ast least = minus(p, output, fact);
    Z3_ast end = graft_sym_add(s, graft_sym_add(s, fact, output), graft_sym_int(s, 1));
    bool lower = !graft_sym_mentions(s, least, 1, &output);
    Z3_ast before = groups_of(s, lower ? least : end, outputs, groups);
    if (before != NULL && lower) {
        state(p, above(p, before, group), outputs);
        state(p, minus(p, output, least), groups);
        state_multiples(p, group, minus(p, group, before), false);
    } else if (before != NULL) {
        state(p, minus(p, group, before), outputs);
        state(p, above(p, end, output), groups);
        state_multiples(p, group, above(p, before, group), false);
    }
}

/* What the definition of a group says, times a number. */
static void state_scaled(products *p, Z3_ast group, Z3_ast factor)
{
    const graft_sym *s = p->s;
    Z3_ast outputs = graft_sym_arg(s, group, 1);
    Z3_ast left = minus(p, graft_sym_mul(s, graft_sym_arg(s, group, 0), graft_sym_arg(s, group, 2)),
                        graft_sym_mul(s, group, outputs));
    state(p, left, factor);
    state(p, above(p, outputs, left), factor);
}

/* Of groups of one size the second's outputs may be numbered from a later group on: then it is that
 * many groups less, and so are its multiples. */
static void state_group_pair(products *p, Z3_ast x, Z3_ast y)
{
    const graft_sym *s = p->s;
    Z3_ast outputs[2] = {graft_sym_arg(s, x, 1), graft_sym_arg(s, y, 1)};
    Z3_ast groups[2] = {graft_sym_arg(s, x, 2), graft_sym_arg(s, y, 2)};
    Z3_ast shift = minus(p, graft_sym_arg(s, x, 0), graft_sym_arg(s, y, 0));
    if (graft_sym_mul(s, outputs[0], groups[1]) != graft_sym_mul(s, outputs[1], groups[0])) {
        return;
    }
    Z3_ast before = graft_sym_is_number(s, shift, 0) ? graft_sym_int(s, 0)
                                                     : groups_of(s, shift, outputs[0], groups[0]);
    if (before != NULL) {
        Z3_ast same = graft_sym_add(s, y, before);
        if (groups[0] == groups[1]) {
            state_near(p, x, same, outputs[0]);
        } else {
            state_scaled(p, x, groups[1]);
            state_scaled(p, y, groups[0]);
            state_near(p, x, same, graft_sym_mul(s, outputs[0], groups[1]));
        }
        state_multiples(p, x, minus(p, x, same), true);
        state_multiples(p, x, minus(p, same, x), true);
    }
}

static void state_groups(products *p)
{
    for (uint32_t i = 0; i < p->group_count; i++) {
        Z3_ast output = graft_sym_arg(p->s, p->groups[i], 0);
        state_group(p, p->groups[i]);
        for (uint32_t k = 0; k < p->list.count; k++) {
            if (stands_alone(p, p->facts[k], output)) {
                state_group_bound(p, p->groups[i], p->facts[k]);
            }
        }
        for (uint32_t k = 0; k < p->group_count; k++) {
            if (k != i) {
                state_group_pair(p, p->groups[i], p->groups[k]);
            }
        }
    }
}

/* Which of two products is larger, y m or z n, where m and n are divided by. */
static void state_divisors(products *p, Z3_ast z, Z3_ast n)
{
    for (uint32_t i = 0; i < p->product_count; i++) {
        Z3_ast y = p->products[i][0];
        Z3_ast m = p->products[i][1];
        if (m != n && graft_sym_is_app(p->s, y, p->s->quotient)) {
            state(p, above(p, m, n), z);
            state(p, above(p, n, m), z);
        } else if (m != n && graft_sym_is_symbol(p->s, y) && y != z && y != n) {
            state(p, minus(p, y, z), n);
            state(p, minus(p, z, y), n);
        }
    }
}

/* That two quotients by n, of x and of -1 - x, add up to -1. */
static void state_opposites(products *p, Z3_ast x, Z3_ast y, Z3_ast n)
{
    graft_sym *s = p->s;
    Z3_ast sum = graft_sym_add(s, x, y);
    const bool is = graft_sym_is_app(s, x, s->quotient) && graft_sym_is_app(s, y, s->quotient);
    if (is && graft_sym_is_number(
                  s, graft_sym_add(s, graft_sym_arg(s, x, 0), graft_sym_arg(s, y, 0)), -1)) {
        state(p, sum, n);
        state(p, minus(p, graft_sym_int(s, -2), sum), n);
    }
}

/* That the quotient of what is x times m and less than m, by n m, is that of x by n. */
static void state_nested(products *p, Z3_ast outer, Z3_ast by, Z3_ast quotient, Z3_ast n)
{
    graft_sym *s = p->s;
    Z3_ast m = graft_sym_list_multiples(s, by, n);
    Z3_ast left = minus(p, graft_sym_arg(s, quotient, 0), graft_sym_mul(s, quotient, n));
    if (by == n || graft_sym_is_app(s, outer, s->quotient) || graft_sym_mul(s, m, n) != by) {
        return;
    }
    state_near(p, outer, quotient, by);
    state(p, left, m);
    state(p, above(p, n, left), m);
    state(p, minus(p, n, graft_sym_int(s, 1)), m);
}

/* That a quotient by n lies below y where what is divided lies below y n, and not otherwise; for
 * the y n that occur. */
static void state_quotient_bounds(products *p)
{
    for (uint32_t i = 0; i < p->product_count; i++) {
        Z3_ast quotient = p->products[i][0];
        Z3_ast n = p->products[i][1];
        bool is = graft_sym_divisor(p->s, quotient) == n;
        for (uint32_t k = 0; is && k < p->product_count; k++) {
            if (graft_sym_divisor(p->s, p->products[k][0]) == p->products[k][1]) {
                state_nested(p, p->products[k][0], p->products[k][1], quotient, n);
            }
            if (p->products[k][1] == n && k != i) {
                state_opposites(p, quotient, p->products[k][0], n);
                state(p, minus(p, quotient, p->products[k][0]), n);
                state(p, above(p, p->products[k][0], quotient), n);
                state(p, above(p, n, graft_sym_int(p->s, 1)), p->products[k][0]);
                state_divisors(p, p->products[k][0], n);
            }
        }
    }
}

uint32_t graft_sym_list_products(graft_sym *s, Z3_ast question, uint32_t known_count,
                                 const Z3_ast *known, graft_sym_law laws[GRAFT_ROOM_LEMMAS])
{
    products p = {.s = s, .laws = laws};
    p.list = (fact_list){.s = s, .items = p.facts};
    graft_sym_walk(s, question, visit_product, &p);
    for (uint32_t i = 0; i < known_count; i++) {
        graft_sym_walk(s, known[i], visit_product, &p);
    }
    for (uint32_t i = 0; p.divides && i < s->assumed->count; i++) {
        graft_sym_walk(s, s->assumed->claims[i], visit_product, &p);
    }
    for (uint32_t i = 0; p.product_count + p.group_count > 0 && i < known_count; i++) {
        note_facts(&p.list, known[i]);
    }
    state_groups(&p);
    state_quotient_bounds(&p);
    for (uint32_t i = 0; i < p.product_count; i++) {
        Z3_ast x = p.products[i][0];
        if (graft_sym_is_app(s, x, s->group)) {
            /* 0 <= group and group <= groups - 1, multiplied by the factor. */
            state(&p, x, p.products[i][1]);
            state(&p, above(&p, graft_sym_arg(p.s, x, 2), x), p.products[i][1]);
            continue;
        }
        for (uint32_t k = 0; k < p.list.count; k++) {
            if (stands_alone(&p, p.facts[k], x)) {
                state(&p, p.facts[k], p.products[i][1]);
            }
        }
    }
    return p.law_count;
}

/* ---------------------------------------------------------------- multiples */

/* The monomial without a factor; NULL where it has none such. */
static Z3_ast without_factor(const graft_sym *s, Z3_ast monomial, Z3_ast factor)
{
    int64_t number = 0;
    int64_t divisor = 0;
    Z3_ast left = NULL;
    if (monomial == factor) {
        return graft_sym_int(s, 1);
    }
    if (Z3_is_numeral_ast(s->z3, monomial) && Z3_is_numeral_ast(s->z3, factor)) {
        bool divides = Z3_get_numeral_int64(s->z3, monomial, &number) &&
                       Z3_get_numeral_int64(s->z3, factor, &divisor) && divisor > 0 &&
                       number % divisor == 0;
        return divides ? graft_sym_int(s, number / divisor) : NULL;
    }
    uint32_t count = graft_sym_kind(s, monomial) == Z3_OP_MUL ? graft_sym_arity(s, monomial) : 0;
    uint32_t at = 0;
    while (at < count && left == NULL) {
        left = without_factor(s, graft_sym_arg(s, monomial, at++), factor);
    }
    for (uint32_t i = 0; i < count && left != NULL; i++) {
        left = i + 1 == at ? left : graft_sym_mul(s, left, graft_sym_arg(s, monomial, i));
    }
    return left;
}

/* How many times a sum goes into x, if it does: as often as its last summand goes into those of x. */
static Z3_ast divide_by_sum(const graft_sym *s, Z3_ast x, Z3_ast n)
{
    Z3_ast last = graft_sym_arg(s, n, graft_sym_arity(s, n) - 1);
    Z3_ast y = graft_sym_list_multiples(s, graft_sym_simplify(s, x), last);
    Z3_ast rest = graft_sym_sub(s, x, graft_sym_mul(s, y, n));
    return graft_sym_is_number(s, rest, 0) ? y : graft_sym_int(s, 0);
}

Z3_ast graft_sym_list_multiples(const graft_sym *s, Z3_ast x, Z3_ast n)
{
    if (graft_sym_kind(s, n) == Z3_OP_ADD) {
        return divide_by_sum(s, x, n);
    }
    bool sum = graft_sym_kind(s, x) == Z3_OP_ADD;
    bool product = graft_sym_kind(s, n) == Z3_OP_MUL;
    Z3_ast found = graft_sym_int(s, 0);
    for (uint32_t i = 0; i < (sum ? graft_sym_arity(s, x) : 1); i++) {
        Z3_ast left = sum ? graft_sym_arg(s, x, i) : x;
        for (uint32_t k = 0; k < (product ? graft_sym_arity(s, n) : 1) && left != NULL; k++) {
            left = without_factor(s, left, product ? graft_sym_arg(s, n, k) : n);
        }
        found = left == NULL ? found : graft_sym_add(s, found, left);
    }
    return found;
}
