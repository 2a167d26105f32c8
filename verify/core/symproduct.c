/* symproduct.c - see symproduct.h. */
#include "verify/core/symproduct.h"

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
    Z3_ast *lemmas;
    uint32_t lemma_count;
} products;

/* ------------------------------------------------------------------- facts */

static void note_fact(fact_list *p, Z3_ast fact)
{
    if (p->count < GRAFT_LIMIT(PRODUCT_FACTS) && !Z3_is_numeral_ast(p->s->z3, fact)) {
        p->items[p->count++] = fact;
    }
}

/* x <= y or x < y, or that it is not so. */
static void note_comparison(fact_list *p, Z3_ast x, Z3_ast y, bool strict, bool holds)
{
    const graft_sym *s = p->s;
    Z3_ast difference = holds ? graft_sym_sub(s, y, x) : graft_sym_sub(s, x, y);
    bool apart = strict == holds;
    note_fact(p, apart ? graft_sym_sub(s, difference, graft_sym_int(s, 1)) : difference);
}

static void note_facts(fact_list *p, Z3_ast fact, bool holds)
{
    const graft_sym *s = p->s;
    Z3_decl_kind kind = graft_sym_kind(s, fact);
    if (kind == Z3_OP_NOT) {
        note_facts(p, graft_sym_arg(s, fact, 0), !holds);
    } else if (kind == Z3_OP_AND && holds) {
        for (uint32_t i = 0; i < graft_sym_arity(s, fact); i++) {
            note_facts(p, graft_sym_arg(s, fact, i), true);
        }
    } else if (kind == Z3_OP_LE || kind == Z3_OP_LT) {
        note_comparison(p, graft_sym_arg(s, fact, 0), graft_sym_arg(s, fact, 1), kind == Z3_OP_LT,
                        holds);
    } else if (kind == Z3_OP_GE || kind == Z3_OP_GT) {
        note_comparison(p, graft_sym_arg(s, fact, 1), graft_sym_arg(s, fact, 0), kind == Z3_OP_GT,
                        holds);
    }
}

uint32_t graft_sym_list_facts(graft_sym *s, Z3_ast formula, Z3_ast facts[GRAFT_ROOM_PRODUCT_FACTS])
{
    fact_list list = {.s = s, .items = facts};
    note_facts(&list, formula, true);
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
    return graft_sym_is_app(s, term, s->group) ||
           (graft_sym_arity(s, term) == 0 && graft_sym_kind(s, term) == Z3_OP_UNINTERPRETED);
}

static void note_product(products *p, Z3_ast x, Z3_ast factor)
{
    for (uint32_t i = 0; i < p->product_count; i++) {
        if (p->products[i][0] == x && p->products[i][1] == factor) {
            return;
        }
    }
    if (p->product_count < GRAFT_LIMIT(PRODUCTS) && is_symbol(p->s, x)) {
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

/* Groups, and products of at most three factors and a number. */
static bool visit_product(void *context, Z3_ast term)
{
    products *p = context;
    const graft_sym *s = p->s;
    uint32_t count = graft_sym_arity(s, term);
    if (graft_sym_is_app(s, term, s->group)) {
        note_group(p, term);
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

/* ------------------------------------------------------------------ lemmas */

static void add_lemma(products *p, uint32_t given_count, const Z3_ast *given, Z3_ast follows)
{
    const graft_sym *s = p->s;
    if (p->lemma_count < GRAFT_LIMIT(LEMMAS)) {
        Z3_ast all = Z3_mk_and(s->z3, given_count, given);
        p->lemmas[p->lemma_count++] = Z3_mk_implies(s->z3, all, follows);
    }
}

static void state_product(products *p, Z3_ast fact, Z3_ast factor)
{
    const graft_sym *s = p->s;
    Z3_ast zero = graft_sym_int(s, 0);
    Z3_ast given[2] = {Z3_mk_le(s->z3, zero, fact), Z3_mk_le(s->z3, zero, factor)};
    add_lemma(p, 2, given, Z3_mk_le(s->z3, zero, graft_sym_mul(s, fact, factor)));
}

/* That the group is j and the output one of that group's, for some j, there being but `count`
 * groups. */
static Z3_ast say_which(const graft_sym *s, Z3_ast group, int64_t count)
{
    Z3_ast cases[GRAFT_ROOM_FEW_GROUPS];
    Z3_ast output = graft_sym_arg(s, group, 0);
    Z3_ast outputs = graft_sym_arg(s, group, 1);
    for (int64_t j = 0; j < count; j++) {
        Z3_ast scaled = graft_sym_mul(s, graft_sym_int(s, count), output);
        Z3_ast first = graft_sym_mul(s, graft_sym_int(s, j), outputs);
        Z3_ast in_group = graft_sym_in_range(s, graft_sym_sub(s, scaled, first), outputs);
        Z3_ast is_group = Z3_mk_eq(s->z3, group, graft_sym_int(s, j));
        cases[j] = Z3_mk_and(s->z3, 2, (Z3_ast[]){is_group, in_group});
    }
    return Z3_mk_or(s->z3, (unsigned)count, cases);
}

/* An output lies in one of the groups: in group o of as many groups as outputs, and among few
 * groups in the one that it lies in. */
static void state_group(products *p, Z3_ast group)
{
    const graft_sym *s = p->s;
    int64_t number = 0;
    Z3_ast output = graft_sym_arg(s, group, 0);
    Z3_ast outputs = graft_sym_arg(s, group, 1);
    Z3_ast groups = graft_sym_arg(s, group, 2);
    Z3_ast is_output = graft_sym_in_range(s, output, outputs);
    Z3_ast given[2] = {is_output, Z3_mk_eq(s->z3, groups, outputs)};
    add_lemma(p, 1, given, graft_sym_in_range(s, group, groups));
    add_lemma(p, 2, given, Z3_mk_eq(s->z3, group, output));
    if (Z3_is_numeral_ast(s->z3, groups) && Z3_get_numeral_int64(s->z3, groups, &number) &&
        number >= 1 && number <= (int64_t)GRAFT_LIMIT(FEW_GROUPS)) {
        add_lemma(p, 1, given, say_which(s, group, number));
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

/* `difference`, of a group and a number, is not negative where that is `given`, nor are its
 * multiples that occur. */
static void state_difference(products *p, Z3_ast group, const Z3_ast given[2], Z3_ast difference)
{
    const graft_sym *s = p->s;
    Z3_ast zero = graft_sym_int(s, 0);
    add_lemma(p, 2, given, Z3_mk_le(s->z3, zero, difference));
    for (uint32_t i = 0; i < p->product_count; i++) {
        Z3_ast factor = p->products[i][1];
        if (p->products[i][0] == group) {
            Z3_ast all[3] = {given[0], given[1], Z3_mk_le(s->z3, zero, factor)};
            add_lemma(p, 3, all, Z3_mk_le(s->z3, zero, graft_sym_mul(s, difference, factor)));
        }
    }
}

/* Outputs below a bound that ends a group lie in the groups before, the others in those behind. */
static void state_group_bound(products *p, Z3_ast group, Z3_ast fact)
{
    const graft_sym *s = p->s;
    Z3_ast one = graft_sym_int(s, 1);
    Z3_ast output = graft_sym_arg(s, group, 0);
    Z3_ast outputs = graft_sym_arg(s, group, 1);
    Z3_ast least = graft_sym_sub(s, output, fact);
    Z3_ast end = graft_sym_add(s, graft_sym_add(s, fact, output), one);
    bool lower = !graft_sym_mentions(s, least, 1, &output);
    Z3_ast before = groups_of(s, lower ? least : end, outputs, graft_sym_arg(s, group, 2));
    if (before != NULL) {
        Z3_ast given[2] = {graft_sym_in_range(s, output, outputs),
                           lower ? Z3_mk_le(s->z3, least, output) : Z3_mk_lt(s->z3, output, end)};
        Z3_ast behind = graft_sym_sub(s, group, before);
        state_difference(p, group, given,
                         lower ? behind : graft_sym_sub(s, graft_sym_sub(s, before, group), one));
    }
}

/* Of groups of one size the second's outputs may be numbered from a later group on: then it is that
 * many groups less, and so are its multiples. */
static void state_group_pair(products *p, Z3_ast x, Z3_ast y)
{
    const graft_sym *s = p->s;
    Z3_ast outputs[2] = {graft_sym_arg(s, x, 1), graft_sym_arg(s, y, 1)};
    Z3_ast groups[2] = {graft_sym_arg(s, x, 2), graft_sym_arg(s, y, 2)};
    Z3_ast shift = graft_sym_sub(s, graft_sym_arg(s, x, 0), graft_sym_arg(s, y, 0));
    if (graft_sym_mul(s, outputs[0], groups[1]) != graft_sym_mul(s, outputs[1], groups[0])) {
        return;
    }
    Z3_ast before = graft_sym_is_number(s, shift, 0) ? graft_sym_int(s, 0)
                                                     : groups_of(s, shift, outputs[0], groups[0]);
    if (before != NULL) {
        Z3_ast given[2] = {graft_sym_in_range(s, graft_sym_arg(s, x, 0), outputs[0]),
                           graft_sym_in_range(s, graft_sym_arg(s, y, 0), outputs[1])};
        Z3_ast same = graft_sym_add(s, y, before);
        add_lemma(p, 2, given, Z3_mk_eq(s->z3, x, same));
        for (uint32_t i = 0; i < p->product_count; i++) {
            Z3_ast factor = p->products[i][1];
            if (p->products[i][0] == x) {
                add_lemma(
                    p, 2, given,
                    Z3_mk_eq(s->z3, graft_sym_mul(s, x, factor), graft_sym_mul(s, same, factor)));
            }
        }
    }
}

/* 0 <= group and group <= groups - 1, multiplied by the factor. */
static void state_group_product(products *p, Z3_ast group, Z3_ast factor)
{
    const graft_sym *s = p->s;
    Z3_ast groups = graft_sym_arg(s, group, 2);
    state_product(p, group, factor);
    state_product(p, graft_sym_sub(s, graft_sym_sub(s, groups, group), graft_sym_int(s, 1)),
                  factor);
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

uint32_t graft_sym_list_products(graft_sym *s, Z3_ast question, uint32_t known_count,
                                 const Z3_ast *known, Z3_ast lemmas[GRAFT_ROOM_LEMMAS])
{
    products p = {.s = s, .lemmas = lemmas};
    p.list = (fact_list){.s = s, .items = p.facts};
    graft_sym_walk(s, question, visit_product, &p);
    for (uint32_t i = 0; i < known_count; i++) {
        graft_sym_walk(s, known[i], visit_product, &p);
        note_facts(&p.list, known[i], true);
    }
    state_groups(&p);
    for (uint32_t i = 0; i < p.product_count; i++) {
        Z3_ast x = p.products[i][0];
        if (graft_sym_is_app(s, x, s->group)) {
            state_group_product(&p, x, p.products[i][1]);
            continue;
        }
        for (uint32_t k = 0; k < p.list.count; k++) {
            if (stands_alone(&p, p.facts[k], x)) {
                state_product(&p, p.facts[k], p.products[i][1]);
            }
        }
    }
    return p.lemma_count;
}
