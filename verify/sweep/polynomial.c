/* polynomial.c - see polynomial.h.
 *
 * Monomials, polynomials and atoms are interned: equal content has an equal number, so comparing
 * two polynomials is comparing two numbers. Numbers are given in the order of creation and used
 * as sorting keys; they mean nothing outside one comparison. */
#include "verify/sweep/polynomial.h"

#include "graph/base/divisor.h"
#include "graph/meaning/algebra.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

/* Terms of one polynomial, and of all that a comparison makes: sums are kept as they grow. */
enum { TERMS_MOST = 4000, TERMS_MADE_MOST = 1 << 20, MEMBERS_MOST = 64, FACTORS_MOST = 64 };

typedef uint32_t polynomial; /* Number of an interned polynomial; 0 is the polynomial 0. */

typedef struct {
    int64_t over;  /* numerator */
    int64_t under; /* denominator, positive; the fraction is in lowest terms */
} fraction;

typedef struct {
    fraction factor;
    uint64_t monomial; /* 0: the constant. */
} term;

typedef struct {
    uint32_t atom;
    int32_t power; /* Not 0; negative for divisors. */
} power_of;

typedef enum {
    ATOM_VAR,
    ATOM_MAX,
    ATOM_INVERSE,
    ATOM_EXP,
    ATOM_SQRT,
    ATOM_ERF,
    ATOM_SIGMOID,
    ATOM_TANH
} atom_kind;

/* What an atom is made of: its kind, then element number or polynomials. */
typedef struct {
    uint32_t kind; /* atom_kind */
    uint32_t member_count;
    uint32_t members[MEMBERS_MOST];
} atom;

/* Interned byte strings, numbered from 0. */
typedef struct {
    const void **items;
    size_t *sizes;
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots; /* Number + 1; 0: free. 2 * capacity of them. */
} intern_table;

typedef struct {
    graft_arena *arena;
    intern_table monomials;
    intern_table polynomials;
    intern_table atoms;
    uint32_t made; /* Terms. */
    bool failed;   /* Overflow or too large: results mean nothing. */
} poly_state;

/* --------------------------------------------------------------- interning */

static void grow_table(graft_arena *arena, intern_table *table)
{
    uint32_t capacity = table->capacity == 0 ? 256 : table->capacity * 2;
    const void **items = GRAFT_NEW(arena, const void *, capacity);
    size_t *sizes = GRAFT_NEW(arena, size_t, capacity);
    uint32_t *slots = GRAFT_NEW(arena, uint32_t, 2 * (size_t)capacity);
    for (uint32_t i = 0; i < table->count; i++) {
        items[i] = table->items[i];
        sizes[i] = table->sizes[i];
        uint32_t at = (uint32_t)XXH3_64bits(items[i], sizes[i]) & (2 * capacity - 1);
        while (slots[at] != 0) {
            at = (at + 1) & (2 * capacity - 1);
        }
        slots[at] = i + 1;
    }
    *table = (intern_table){items, sizes, table->count, capacity, slots};
}

/* The number of a content; `bytes` is copied when it is new. */
static uint32_t intern(poly_state *s, intern_table *table, const void *bytes, size_t size)
{
    if (table->count == table->capacity) {
        grow_table(s->arena, table);
    }
    uint32_t mask = 2 * table->capacity - 1;
    uint32_t at = (uint32_t)XXH3_64bits(bytes, size) & mask;
    for (; table->slots[at] != 0; at = (at + 1) & mask) {
        uint32_t number = table->slots[at] - 1;
        if (table->sizes[number] == size && memcmp(table->items[number], bytes, size) == 0) {
            return number;
        }
    }
    void *copy = graft_arena_alloc(s->arena, size);
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    table->items[table->count] = copy;
    table->sizes[table->count] = size;
    table->slots[at] = table->count + 1;
    return table->count++;
}

static const term *terms_of(const poly_state *s, polynomial p, uint32_t *count)
{
    *count = (uint32_t)(s->polynomials.sizes[p] / sizeof(term));
    return s->polynomials.items[p];
}

static const power_of *factors_of(const poly_state *s, uint64_t monomial, uint32_t *count)
{
    *count = (uint32_t)(s->monomials.sizes[monomial] / sizeof(power_of));
    return s->monomials.items[monomial];
}

/* --------------------------------------------------------------- fractions */

static fraction reduce(poly_state *s, __int128 over, __int128 under)
{
    __int128 a = over < 0 ? -over : over;
    __int128 b = under;
    while (b != 0) {
        __int128 rest = a % b;
        a = b;
        b = rest;
    }
    if (a > 1) {
        over /= a;
        under /= a;
    }
    const int64_t most = INT64_C(1) << 60;
    if (over > most || over < -most || under > most) {
        s->failed = true;
        return (fraction){0, 1};
    }
    return (fraction){(int64_t)over, (int64_t)under};
}

static fraction add_fractions(poly_state *s, fraction a, fraction b)
{
    return reduce(s, (__int128)a.over * b.under + (__int128)b.over * a.under,
                  (__int128)a.under * b.under);
}

static fraction multiply_fractions(poly_state *s, fraction a, fraction b)
{
    return reduce(s, (__int128)a.over * b.over, (__int128)a.under * b.under);
}

static fraction invert_fraction(fraction a)
{
    assert(a.over != 0);
    return a.over < 0 ? (fraction){-a.under, -a.over} : (fraction){a.under, a.over};
}

static bool is_less(fraction a, fraction b)
{
    return (__int128)a.over * b.under < (__int128)b.over * a.under;
}

/* -------------------------------------------------------------- polynomials */

/* The polynomial of `count` terms, sorted by monomial and without zeros. */
static polynomial intern_terms(poly_state *s, const term *terms, uint32_t count)
{
    if (count > TERMS_MOST) {
        s->failed = true;
        return 0;
    }
    return intern(s, &s->polynomials, terms, count * sizeof *terms);
}

static polynomial constant(poly_state *s, fraction value)
{
    term t = {value, 0};
    return value.over == 0 ? 0 : intern_terms(s, &t, 1);
}

static polynomial single(poly_state *s, fraction value, uint64_t monomial)
{
    term t = {value, monomial};
    return value.over == 0 ? 0 : intern_terms(s, &t, 1);
}

/* Room for so many terms; NULL when there have been too many, or anything else has failed. */
static term *make_terms(poly_state *s, uint32_t count)
{
    s->failed = s->failed || count > TERMS_MADE_MOST - s->made;
    if (s->failed) {
        return NULL;
    }
    s->made += count;
    return GRAFT_NEW(s->arena, term, count);
}

/* a + scale b. */
static polynomial add_scaled(poly_state *s, polynomial a, fraction scale, polynomial b)
{
    uint32_t count_a = 0;
    uint32_t count_b = 0;
    const term *in_a = terms_of(s, a, &count_a);
    const term *in_b = terms_of(s, b, &count_b);
    term *out = make_terms(s, count_a + count_b);
    uint32_t count = 0;
    for (uint32_t i = 0, j = 0; out != NULL && (i < count_a || j < count_b);) {
        bool take_a = j == count_b || (i < count_a && in_a[i].monomial <= in_b[j].monomial);
        bool take_b = i == count_a || (j < count_b && in_b[j].monomial <= in_a[i].monomial);
        term t = {
            {0, 1},
            take_a ? in_a[i].monomial : in_b[j].monomial
        };
        if (take_a) {
            t.factor = in_a[i++].factor;
        }
        if (take_b) {
            t.factor = add_fractions(s, t.factor, multiply_fractions(s, scale, in_b[j++].factor));
        }
        if (t.factor.over != 0) {
            out[count++] = t;
        }
    }
    return out == NULL ? 0 : intern_terms(s, out, count);
}

static uint64_t multiply_monomials(poly_state *s, uint64_t a, uint64_t b)
{
    uint32_t count_a = 0;
    uint32_t count_b = 0;
    const power_of *in_a = factors_of(s, a, &count_a);
    const power_of *in_b = factors_of(s, b, &count_b);
    power_of out[FACTORS_MOST];
    uint32_t count = 0;
    if (count_a + count_b > FACTORS_MOST) {
        s->failed = true;
        return 0;
    }
    memset(out, 0, sizeof out);
    for (uint32_t i = 0, j = 0; i < count_a || j < count_b;) {
        bool take_a = j == count_b || (i < count_a && in_a[i].atom <= in_b[j].atom);
        bool take_b = i == count_a || (j < count_b && in_b[j].atom <= in_a[i].atom);
        power_of f = {take_a ? in_a[i].atom : in_b[j].atom, 0};
        f.power += take_a ? in_a[i++].power : 0;
        f.power += take_b ? in_b[j++].power : 0;
        if (f.power != 0) {
            out[count++] = f;
        }
    }
    return intern(s, &s->monomials, out, count * sizeof *out);
}

/* p times one term. */
static polynomial multiply_term(poly_state *s, polynomial p, fraction scale, uint64_t monomial)
{
    uint32_t count = 0;
    const term *in = terms_of(s, p, &count);
    term *out = make_terms(s, count);
    for (uint32_t i = 0; i < count && out != NULL; i++) {
        term t = {multiply_fractions(s, in[i].factor, scale),
                  multiply_monomials(s, in[i].monomial, monomial)};
        uint32_t at = i; /* Products keep no order: insert. Monomials stay distinct. */
        for (; at > 0 && out[at - 1].monomial > t.monomial; at--) {
            out[at] = out[at - 1];
        }
        out[at] = t;
    }
    return s->failed ? 0 : intern_terms(s, out, count);
}

static uint64_t atom_monomial(poly_state *s, const atom *content, int32_t power)
{
    size_t size = offsetof(atom, members) + content->member_count * sizeof content->members[0];
    power_of f = {intern(s, &s->atoms, content, size), power};
    return intern(s, &s->monomials, &f, sizeof f);
}

static const fraction fraction_one = {1, 1};
static const fraction fraction_minus_one = {-1, 1};

static polynomial function_of(poly_state *s, atom_kind kind, polynomial x)
{
    atom content = {.kind = kind, .member_count = 1, .members = {x}};
    return single(s, fraction_one, atom_monomial(s, &content, 1));
}

/* ------------------------------------------------------------------- maxima */

typedef struct {
    polynomial members[MEMBERS_MOST];
    uint32_t count;
} member_set;

static void add_member(poly_state *s, member_set *set, polynomial p)
{
    uint32_t at = 0;
    while (at < set->count && set->members[at] < p) {
        at++;
    }
    if (at < set->count && set->members[at] == p) {
        return;
    }
    if (set->count == MEMBERS_MOST) {
        s->failed = true;
        return;
    }
    for (uint32_t i = set->count; i > at; i--) {
        set->members[i] = set->members[i - 1];
    }
    set->members[at] = p;
    set->count++;
}

static const atom *atom_of(const poly_state *s, uint32_t number) { return s->atoms.items[number]; }

/* The maximum that a term is a positive multiple of, or NULL. */
static const atom *positive_max(const poly_state *s, const term *t)
{
    uint32_t count = 0;
    const power_of *factors = factors_of(s, t->monomial, &count);
    if (count != 1 || factors[0].power != 1 || t->factor.over < 0) {
        return NULL;
    }
    const atom *content = atom_of(s, factors[0].atom);
    return content->kind == ATOM_MAX ? content : NULL;
}

/* Adds p to the set; c max(q...) + r, with a single positive maximum, as its members c q + r. */
static void flatten(poly_state *s, member_set *set, polynomial p)
{
    uint32_t count = 0;
    const term *terms = terms_of(s, p, &count);
    const term *found = NULL;
    uint32_t maxima = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (positive_max(s, &terms[i]) != NULL) {
            found = &terms[i];
            maxima++;
        }
    }
    if (maxima != 1) {
        add_member(s, set, p);
        return;
    }
    const atom *content = positive_max(s, found);
    polynomial rest =
        add_scaled(s, p, fraction_minus_one, single(s, found->factor, found->monomial));
    for (uint32_t i = 0; i < content->member_count; i++) {
        add_member(s, set, add_scaled(s, rest, found->factor, content->members[i]));
    }
}

static fraction coefficient(const poly_state *s, polynomial p, uint64_t monomial)
{
    uint32_t count = 0;
    const term *terms = terms_of(s, p, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (terms[i].monomial == monomial) {
            return terms[i].factor;
        }
    }
    return (fraction){0, 1};
}

/* The polynomial of the least coefficients over all members. */
static polynomial least_part(poly_state *s, const member_set *set)
{
    polynomial least = 0;
    polynomial all = 0; /* Contains every monomial that occurs: each added once. */
    for (uint32_t m = 0; m < set->count; m++) {
        uint32_t count = 0;
        const term *terms = terms_of(s, set->members[m], &count);
        for (uint32_t i = 0; i < count && !s->failed; i++) {
            if (coefficient(s, all, terms[i].monomial).over != 0) {
                continue;
            }
            all = add_scaled(s, all, fraction_one, single(s, fraction_one, terms[i].monomial));
            fraction low = coefficient(s, set->members[0], terms[i].monomial);
            for (uint32_t k = 1; k < set->count; k++) {
                fraction other = coefficient(s, set->members[k], terms[i].monomial);
                low = is_less(other, low) ? other : low;
            }
            least = add_scaled(s, least, fraction_one, single(s, low, terms[i].monomial));
        }
    }
    return least;
}

static bool is_nonnegative_sum(const poly_state *s, polynomial p);

static bool is_nonnegative_atom(const poly_state *s, uint32_t number)
{
    const atom *content = atom_of(s, number);
    bool nonnegative =
        content->kind == ATOM_EXP || content->kind == ATOM_SQRT || content->kind == ATOM_SIGMOID;
    for (uint32_t i = 0; content->kind == ATOM_MAX && i < content->member_count; i++) {
        nonnegative = nonnegative || is_nonnegative_sum(s, content->members[i]);
    }
    return nonnegative;
}

/* Whether every term is clearly at least 0. */
static bool is_nonnegative_sum(const poly_state *s, polynomial p)
{
    uint32_t count = 0;
    const term *terms = terms_of(s, p, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t factor_count = 0;
        const power_of *factors = factors_of(s, terms[i].monomial, &factor_count);
        bool nonnegative = terms[i].factor.over > 0;
        for (uint32_t k = 0; k < factor_count && nonnegative; k++) {
            nonnegative = factors[k].power % 2 == 0 || is_nonnegative_atom(s, factors[k].atom);
        }
        if (!nonnegative) {
            return false;
        }
    }
    return true;
}

static void drop_dominated(poly_state *s, member_set *set)
{
    for (uint32_t i = 0; i < set->count;) {
        bool dominated = false;
        for (uint32_t k = 0; k < set->count && !dominated; k++) {
            dominated =
                k != i && is_nonnegative_sum(s, add_scaled(s, set->members[k], fraction_minus_one,
                                                           set->members[i]));
        }
        if (!dominated) {
            i++;
            continue;
        }
        set->count--;
        for (uint32_t k = i; k < set->count; k++) {
            set->members[k] = set->members[k + 1];
        }
    }
}

/* The power of `number` that can be taken out of every term of every member: the least power where
 * all are positive, the largest (nearest to 0) where all are negative, made even unless the atom is
 * non-negative. */
static int32_t common_power(const poly_state *s, const member_set *set, uint32_t number)
{
    int32_t low = INT32_MAX;
    int32_t high = INT32_MIN;
    for (uint32_t m = 0; m < set->count; m++) {
        uint32_t count = 0;
        const term *terms = terms_of(s, set->members[m], &count);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t factor_count = 0;
            const power_of *factors = factors_of(s, terms[i].monomial, &factor_count);
            int32_t power = 0;
            for (uint32_t k = 0; k < factor_count; k++) {
                power = factors[k].atom == number ? factors[k].power : power;
            }
            low = power < low ? power : low;
            high = power > high ? power : high;
        }
    }
    int32_t power = low > 0 ? low : high < 0 ? high : 0;
    return is_nonnegative_atom(s, number) ? power : power / 2 * 2;
}

/* The monomial that all members share and that is never negative. */
static uint64_t common_monomial(poly_state *s, const member_set *set, bool inverted)
{
    uint32_t count = 0;
    uint32_t factor_count = 0;
    uint64_t common = 0;
    const term *terms = NULL;
    for (uint32_t m = 0; m < set->count && count == 0; m++) {
        terms = terms_of(s, set->members[m], &count);
    }
    if (count == 0) {
        return 0;
    }
    const power_of *factors = factors_of(s, terms[0].monomial, &factor_count);
    for (uint32_t k = 0; k < factor_count; k++) {
        int32_t power = common_power(s, set, factors[k].atom);
        if (power != 0) {
            power_of f = {factors[k].atom, inverted ? -power : power};
            common = multiply_monomials(s, common, intern(s, &s->monomials, &f, sizeof f));
        }
    }
    return common;
}

/* The greatest common divisor of all coefficients: positive. */
static fraction common_divisor(poly_state *s, const member_set *set)
{
    int64_t over = 0;
    int64_t under = 1;
    for (uint32_t m = 0; m < set->count; m++) {
        uint32_t count = 0;
        const term *terms = terms_of(s, set->members[m], &count);
        for (uint32_t i = 0; i < count; i++) {
            over = graft_greatest_divisor(over, terms[i].factor.over);
            fraction lcm = reduce(s, (__int128)under * terms[i].factor.under,
                                  graft_greatest_divisor(under, terms[i].factor.under));
            under = lcm.over != 0 ? lcm.over : 1;
        }
    }
    return reduce(s, over != 0 ? over : 1, under);
}

/* max of the set, in normal form. */
static polynomial normal_max(poly_state *s, const member_set *given)
{
    polynomial shift = least_part(s, given);
    member_set set = {.count = 0};
    for (uint32_t i = 0; i < given->count; i++) {
        add_member(s, &set, add_scaled(s, given->members[i], fraction_minus_one, shift));
    }
    drop_dominated(s, &set);
    if (set.count == 1) {
        return add_scaled(s, shift, fraction_one, set.members[0]);
    }
    fraction divisor = common_divisor(s, &set);
    uint64_t shared = common_monomial(s, &set, false);
    uint64_t inverse = common_monomial(s, &set, true);
    member_set reduced = {.count = 0};
    for (uint32_t i = 0; i < set.count && !s->failed; i++) {
        add_member(s, &reduced,
                   multiply_term(s, set.members[i], invert_fraction(divisor), inverse));
    }
    atom content = {.kind = ATOM_MAX, .member_count = reduced.count};
    memcpy(content.members, reduced.members, reduced.count * sizeof reduced.members[0]);
    uint64_t monomial = multiply_monomials(s, shared, atom_monomial(s, &content, 1));
    return add_scaled(s, shift, fraction_one, single(s, divisor, monomial));
}

/* ------------------------------------------------------------- the algebra */

static polynomial lift_poly(void *k, int32_t value) { return constant(k, (fraction){value, 1}); }

static polynomial lift_float_poly(void *k, int32_t bits)
{
    poly_state *s = k;
    int32_t exponent = (bits >> 23) & 0xff;
    int64_t mantissa = bits & 0x7fffff;
    mantissa |= exponent > 0 ? 0x800000 : 0;
    int32_t shift = (exponent > 0 ? exponent : 1) - 150;
    if (shift > 30 || shift < -60) {
        s->failed = s->failed || mantissa != 0;
        return 0;
    }
    __int128 over = (__int128)mantissa << (shift > 0 ? shift : 0);
    return constant(s, reduce(s, bits < 0 ? -over : over, (__int128)1 << (shift < 0 ? -shift : 0)));
}

static polynomial sum_poly(void *k, polynomial a, polynomial b)
{
    return a == 0 ? b : b == 0 ? a : add_scaled(k, a, fraction_one, b);
}

static polynomial difference_poly(void *k, polynomial a, polynomial b)
{
    return add_scaled(k, a, fraction_minus_one, b);
}

static polynomial product_poly(void *k, polynomial a, polynomial b)
{
    poly_state *s = k;
    uint32_t count = 0;
    const term *terms = terms_of(s, b, &count);
    polynomial result = 0;
    for (uint32_t i = 0; i < count && !s->failed; i++) {
        result = sum_poly(s, result, multiply_term(s, a, terms[i].factor, terms[i].monomial));
    }
    return result;
}

static uint64_t invert_monomial(poly_state *s, uint64_t monomial)
{
    power_of out[FACTORS_MOST];
    uint32_t count = 0;
    const power_of *factors = factors_of(s, monomial, &count);
    memset(out, 0, sizeof out);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (power_of){factors[i].atom, -factors[i].power};
    }
    return intern(s, &s->monomials, out, count * sizeof *out);
}

/* A divisor of one term is a monomial with negative powers; any other one, scaled so that its first
 * coefficient is 1, is an atom. */
static polynomial quotient_poly(void *k, polynomial a, polynomial b)
{
    poly_state *s = k;
    uint32_t count = 0;
    const term *terms = terms_of(s, b, &count);
    if (count == 0) {
        s->failed = true;
        return 0;
    }
    fraction scale = invert_fraction(terms[0].factor);
    if (count == 1) {
        return multiply_term(s, a, scale, invert_monomial(s, terms[0].monomial));
    }
    polynomial divisor = multiply_term(s, b, scale, 0);
    atom content = {.kind = ATOM_INVERSE, .member_count = 1, .members = {divisor}};
    return multiply_term(s, a, scale, atom_monomial(s, &content, 1));
}

static polynomial max_poly(void *k, polynomial a, polynomial b)
{
    poly_state *s = k;
    member_set set = {.count = 0};
    if (s->failed) {
        return 0;
    }
    flatten(s, &set, a);
    flatten(s, &set, b);
    return s->failed ? 0 : normal_max(s, &set);
}

static polynomial negate(poly_state *s, polynomial a)
{
    return add_scaled(s, 0, fraction_minus_one, a);
}

static polynomial min_poly(void *k, polynomial a, polynomial b)
{
    return negate(k, max_poly(k, negate(k, a), negate(k, b)));
}

/* exp(c m + ...) = exp(m)^c ... for whole c. */
static polynomial exp_poly(void *k, polynomial x)
{
    poly_state *s = k;
    uint32_t count = 0;
    const term *terms = terms_of(s, x, &count);
    uint64_t product = 0;
    for (uint32_t i = 0; i < count && !s->failed; i++) {
        bool whole = terms[i].factor.under == 1 && terms[i].factor.over < 1000 &&
                     terms[i].factor.over > -1000;
        polynomial inner = single(s, whole ? fraction_one : terms[i].factor, terms[i].monomial);
        atom content = {.kind = ATOM_EXP, .member_count = 1, .members = {inner}};
        int32_t power = whole ? (int32_t)terms[i].factor.over : 1;
        product = multiply_monomials(s, product, atom_monomial(s, &content, power));
    }
    return single(s, fraction_one, product);
}

static polynomial sqrt_poly(void *k, polynomial x) { return function_of(k, ATOM_SQRT, x); }

/* Whether the first coefficient is negative: of x and -x exactly one is the representative. */
static bool leads_negative(const poly_state *s, polynomial x)
{
    uint32_t count = 0;
    const term *terms = terms_of(s, x, &count);
    return count > 0 && terms[0].factor.over < 0;
}

static polynomial odd_function(poly_state *s, atom_kind kind, polynomial x)
{
    if (x == 0) {
        return 0;
    }
    return leads_negative(s, x) ? negate(s, function_of(s, kind, negate(s, x)))
                                : function_of(s, kind, x);
}

static polynomial erf_poly(void *k, polynomial x) { return odd_function(k, ATOM_ERF, x); }

static polynomial tanh_poly(void *k, polynomial x) { return odd_function(k, ATOM_TANH, x); }

static polynomial sigmoid_poly(void *k, polynomial x)
{
    if (!leads_negative(k, x)) {
        return function_of(k, ATOM_SIGMOID, x);
    }
    return difference_poly(k, lift_poly(k, 1), function_of(k, ATOM_SIGMOID, negate(k, x)));
}

static polynomial softmax_shift_poly(void *k, const polynomial *row, size_t count, size_t step)
{
    (void)k, (void)row, (void)count, (void)step;
    return 0;
}

#define NUM                       polynomial
#define ALG(f)                    f##_poly
#define RUN(k, op, call, in, out) run_poly[op](k, call, in, out)
#include "graph/meaning/operator_bodies.inc"
#include "verify/instances/sides.inc"

/* ---------------------------------------------------------------- comparing */

static const polynomial **make_variables(poly_state *s, const graft_instance *instance)
{
    const polynomial **vars = GRAFT_NEW(s->arena, const polynomial *, GRAFT_RULE_MAX_VARS);
    uint32_t element = 0;
    for (uint32_t v = 0; v < instance->rule->var_count; v++) {
        size_t count = (size_t)graft_shape_elements(&instance->point->vars[v]);
        polynomial *tensor = GRAFT_NEW(s->arena, polynomial, count);
        for (size_t i = 0; i < count; i++) {
            atom content = {.kind = ATOM_VAR, .member_count = 1, .members = {element++}};
            tensor[i] = single(s, fraction_one, atom_monomial(s, &content, 1));
        }
        vars[v] = tensor;
    }
    return vars;
}

/* Whether the polynomial has no atom but variables, none of them a divisor. */
static bool is_plain(const poly_state *s, polynomial p)
{
    uint32_t count = 0;
    const term *terms = terms_of(s, p, &count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t factor_count = 0;
        const power_of *factors = factors_of(s, terms[i].monomial, &factor_count);
        for (uint32_t k = 0; k < factor_count; k++) {
            if (atom_of(s, factors[k].atom)->kind != ATOM_VAR || factors[k].power < 0) {
                return false;
            }
        }
    }
    return true;
}

static graft_polynomial_verdict compare_outputs(const poly_state *s, const graft_instance *instance,
                                                const polynomial *const *left,
                                                const polynomial *const *right)
{
    graft_polynomial_verdict verdict = GRAFT_POLYNOMIAL_EQUAL;
    for (uint32_t o = 0; o < instance->rule->output_count && !s->failed; o++) {
        assert(left[o] != NULL && right[o] != NULL);
        const graft_shape *shape =
            graft_instance_shape(instance, &instance->source, instance->source.pattern->outputs[o]);
        size_t count = (size_t)graft_shape_elements(shape);
        for (size_t i = 0; i < count; i++) {
            if (left[o][i] == right[o][i]) {
                continue;
            }
            if (is_plain(s, left[o][i]) && is_plain(s, right[o][i])) {
                return GRAFT_POLYNOMIAL_DIFFERENT;
            }
            verdict = GRAFT_POLYNOMIAL_UNKNOWN;
        }
    }
    return s->failed ? GRAFT_POLYNOMIAL_UNKNOWN : verdict;
}

graft_polynomial_verdict graft_polynomial_compare(graft_env *env, const graft_instance *instance)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    poly_state *s = GRAFT_NEW(env->scratch, poly_state, 1);
    const polynomial *left[GRAFT_RULE_MAX_OUTPUTS] = {0};
    const polynomial *right[GRAFT_RULE_MAX_OUTPUTS] = {0};
    s->arena = env->scratch;
    (void)intern(s, &s->monomials, "", 0);   /* Monomial 0: the constant. */
    (void)intern(s, &s->polynomials, "", 0); /* Polynomial 0. */
    const polynomial **vars = make_variables(s, instance);
    evaluate_side_poly(s, s->arena, instance, &instance->source, vars, left);
    evaluate_side_poly(s, s->arena, instance, &instance->target, vars, right);
    graft_polynomial_verdict verdict = compare_outputs(s, instance, left, right);
    graft_arena_release(env->scratch, mark);
    return verdict;
}
