/* theoremlemma.c - see theoremlemma.h. */
#include "verify/export/theoremlemma.h"

#include <inttypes.h>
#include <stdio.h>

enum { FIRST = 64 };

/* ----------------------------------------------------------------- instances */

Z3_ast graft_lemmas_index(graft_lemmas *l)
{
    char name[16];
    (void)snprintf(name, sizeof name, "w%" PRIu32, l->fresh++);
    l->symbols = graft_arena_grow(l->arena, (void *)l->symbols, l->symbol_count,
                                  &l->symbol_capacity, FIRST, sizeof *l->symbols);
    l->symbols[l->symbol_count] = graft_sym_symbol(l->s, name);
    return l->symbols[l->symbol_count++];
}

Z3_ast graft_lemmas_body(graft_lemmas *l, Z3_ast fold, Z3_ast at)
{
    Z3_ast body = graft_sym_plain_expand(l->s, graft_sym_plain_at(l->s, fold, at, false));
    l->ground = graft_arena_grow(l->arena, (void *)l->ground, l->ground_count, &l->ground_capacity,
                                 FIRST, sizeof *l->ground);
    l->ground[l->ground_count++] = body;
    return body;
}

static void add_instance(graft_lemmas *l, uint32_t lemma, Z3_ast formula)
{
    l->instances = graft_arena_grow(l->arena, l->instances, l->count, &l->capacity, FIRST,
                                    sizeof *l->instances);
    l->instances[l->count++] = (graft_lemma_instance){(graft_lemma)lemma, formula};
}

/* A function of a fold, at an index or a size, and the fold's arguments. */
static Z3_ast apply(const graft_lemmas *l, Z3_func_decl decl, Z3_ast first, Z3_ast fold)
{
    Z3_ast args[GRAFT_SYM_PARAMS_MOST + 1] = {first};
    uint32_t count = graft_sym_arity(l->s, fold);
    for (uint32_t i = 1; i < count; i++) {
        args[i] = graft_sym_arg(l->s, fold, i);
    }
    return Z3_mk_app(l->s->z3, decl, count, args);
}

static Z3_ast body_of(const graft_lemmas *l, Z3_ast fold, Z3_ast at)
{
    return apply(l, graft_sym_plain_find(l->s, fold)->body_decl, at, fold);
}

static Z3_ast size_of(const graft_lemmas *l, Z3_ast fold) { return graft_sym_arg(l->s, fold, 0); }

static Z3_ast both(const graft_lemmas *l, Z3_ast a, Z3_ast b)
{
    return Z3_mk_and(l->s->z3, 2, (Z3_ast[]){a, b});
}

static Z3_ast differ(const graft_lemmas *l, Z3_ast a, Z3_ast b)
{
    return Z3_mk_not(l->s->z3, Z3_mk_eq(l->s->z3, a, b));
}

/* The sum of products; no factor: 1. */
static Z3_ast combine(const graft_lemmas *l, uint32_t count, const Z3_ast *factors,
                      const Z3_ast *terms)
{
    Z3_context z3 = l->s->z3;
    Z3_ast sum = l->s->term.zero;
    for (uint32_t i = 0; i < count; i++) {
        Z3_ast part = factors == NULL || factors[i] == NULL
                          ? terms[i]
                          : Z3_mk_mul(z3, 2, (Z3_ast[]){factors[i], terms[i]});
        sum = i == 0 ? part : Z3_mk_add(z3, 2, (Z3_ast[]){sum, part});
    }
    return sum;
}

void graft_lemma_linear(graft_lemmas *l, Z3_ast fold, Z3_ast at, uint32_t count,
                        const Z3_ast *factors, const Z3_ast *folds)
{
    Z3_context z3 = l->s->z3;
    Z3_ast ways[GRAFT_THEOREM_SUMMANDS_MOST + 2];
    Z3_ast bodies[GRAFT_THEOREM_SUMMANDS_MOST];
    uint32_t way_count = 0;
    Z3_ast n = size_of(l, fold);
    for (uint32_t i = 0; i < count; i++) {
        bodies[i] = body_of(l, folds[i], at);
    }
    ways[way_count++] = Z3_mk_eq(z3, fold, combine(l, count, factors, folds));
    ways[way_count++] = both(l, graft_sym_in_range(l->s, at, n),
                             differ(l, body_of(l, fold, at), combine(l, count, factors, bodies)));
    for (uint32_t i = 0; i < count; i++) {
        if (size_of(l, folds[i]) != n) {
            ways[way_count++] = differ(l, n, size_of(l, folds[i]));
        }
    }
    add_instance(l, GRAFT_LEMMA_LINEAR + count, Z3_mk_or(z3, way_count, ways));
}

void graft_lemma_split(graft_lemmas *l, Z3_ast fold, Z3_ast low, Z3_ast high)
{
    Z3_context z3 = l->s->z3;
    Z3_ast at = graft_lemmas_index(l);
    Z3_ast m = size_of(l, low);
    Z3_ast moved = Z3_mk_add(z3, 2, (Z3_ast[]){at, m});
    Z3_ast within =
        both(l, Z3_mk_le(z3, graft_sym_int(l->s, 0), m), Z3_mk_le(z3, m, size_of(l, fold)));
    Z3_ast ways[3] = {Z3_mk_eq(z3, fold, Z3_mk_add(z3, 2, (Z3_ast[]){low, high})),
                      Z3_mk_not(z3, within),
                      both(l, graft_sym_in_range(l->s, at, size_of(l, high)),
                           differ(l, body_of(l, high, at), body_of(l, fold, moved)))};
    add_instance(l, GRAFT_LEMMA_SPLIT, Z3_mk_or(z3, 3, ways));
}

void graft_lemma_exchange(graft_lemmas *l, Z3_ast fold, Z3_ast exchanged)
{
    Z3_context z3 = l->s->z3;
    Z3_ast r = graft_lemmas_index(l);
    Z3_ast q = graft_lemmas_index(l);
    Z3_ast inner = graft_sym_plain_at(l->s, fold, r, false);
    Z3_ast other = graft_sym_plain_at(l->s, exchanged, q, false);
    Z3_ast premises[3] = {differ(l, body_of(l, fold, r), inner),
                          differ(l, body_of(l, exchanged, q), other),
                          differ(l, body_of(l, inner, q), body_of(l, other, r))};
    Z3_ast range = both(l, graft_sym_in_range(l->s, r, size_of(l, fold)),
                        graft_sym_in_range(l->s, q, size_of(l, exchanged)));
    Z3_ast ways[2] = {Z3_mk_eq(z3, fold, exchanged), both(l, range, Z3_mk_or(z3, 3, premises))};
    add_instance(l, GRAFT_LEMMA_EXCHANGE, Z3_mk_or(z3, 2, ways));
}

void graft_lemma_count(graft_lemmas *l, Z3_ast fold)
{
    Z3_context z3 = l->s->z3;
    Z3_ast at = graft_lemmas_index(l);
    Z3_ast n = size_of(l, fold);
    Z3_ast ways[3] = {
        Z3_mk_eq(z3, fold, Z3_mk_int2real(z3, n)), Z3_mk_lt(z3, n, graft_sym_int(l->s, 0)),
        both(l, graft_sym_in_range(l->s, at, n), differ(l, body_of(l, fold, at), l->s->term.one))};
    add_instance(l, GRAFT_LEMMA_COUNT, Z3_mk_or(z3, 3, ways));
}

void graft_lemma_one(graft_lemmas *l, Z3_ast fold)
{
    Z3_context z3 = l->s->z3;
    Z3_ast single = Z3_mk_eq(z3, size_of(l, fold), graft_sym_int(l->s, 1));
    Z3_ast equal = Z3_mk_eq(z3, fold, body_of(l, fold, graft_sym_int(l->s, 0)));
    add_instance(l, GRAFT_LEMMA_ONE, Z3_mk_implies(z3, single, equal));
}

void graft_lemma_sign(graft_lemmas *l, Z3_ast fold)
{
    Z3_context z3 = l->s->z3;
    Z3_ast zero = l->s->term.zero;
    Z3_ast n = size_of(l, fold);
    Z3_ast at = graft_lemmas_index(l);
    Z3_ast body = body_of(l, fold, at);
    Z3_ast range = graft_sym_in_range(l->s, at, n);
    Z3_ast ways[3] = {Z3_mk_le(z3, zero, fold), both(l, range, Z3_mk_lt(z3, body, zero))};
    add_instance(l, GRAFT_LEMMA_SIGN, Z3_mk_or(z3, 2, ways));
    (void)graft_lemmas_body(l, fold, at);
    at = graft_lemmas_index(l);
    body = body_of(l, fold, at);
    range = graft_sym_in_range(l->s, at, n);
    ways[0] = Z3_mk_lt(z3, zero, fold);
    ways[1] = both(l, range, Z3_mk_le(z3, body, zero));
    ways[2] = Z3_mk_lt(z3, n, graft_sym_int(l->s, 1));
    add_instance(l, GRAFT_LEMMA_SIGN, Z3_mk_or(z3, 3, ways));
    (void)graft_lemmas_body(l, fold, at);
}

static Z3_ast any_of(const graft_lemmas *l, Z3_ast fold)
{
    return apply(l, graft_sym_plain_find(l->s, fold)->any, size_of(l, fold), fold);
}

static Z3_ast guarded_range(const graft_lemmas *l, Z3_ast fold, Z3_ast at)
{
    return both(l, graft_sym_in_range(l->s, at, size_of(l, fold)),
                apply(l, graft_sym_plain_find(l->s, fold)->guard_decl, at, fold));
}

void graft_lemma_bound(graft_lemmas *l, Z3_ast fold, Z3_ast at)
{
    Z3_context z3 = l->s->z3;
    Z3_ast above = both(l, any_of(l, fold), Z3_mk_ge(z3, fold, body_of(l, fold, at)));
    add_instance(l, GRAFT_LEMMA_BOUND, Z3_mk_implies(z3, guarded_range(l, fold, at), above));
}

Z3_ast graft_lemma_attained(graft_lemmas *l, Z3_ast fold)
{
    Z3_context z3 = l->s->z3;
    Z3_ast at = graft_lemmas_index(l);
    Z3_ast there = both(l, guarded_range(l, fold, at), Z3_mk_eq(z3, fold, body_of(l, fold, at)));
    add_instance(l, GRAFT_LEMMA_ATTAINED, Z3_mk_implies(z3, any_of(l, fold), there));
    return at;
}

/* --------------------------------------------------------------------- files */

static const char *const names[GRAFT_LEMMA_LINEAR] = {
    "split", "exchange", "count", "one", "sign", "bound", "attained",
};

const char *graft_lemma_name(graft_arena *arena, uint32_t lemma)
{
    return lemma < GRAFT_LEMMA_LINEAR
               ? names[lemma]
               : graft_arena_printf(arena, "linear%" PRIu32, lemma - GRAFT_LEMMA_LINEAR);
}

const char *graft_lemma_names(graft_arena *arena, uint32_t lemmas)
{
    graft_buffer text = {.arena = arena};
    for (uint32_t i = 0; i < GRAFT_LEMMA_KINDS; i++) {
        if ((lemmas >> i & 1u) != 0) {
            graft_buffer_printf(&text, "%s%s", text.size > 0 ? "," : "",
                                graft_lemma_name(arena, i));
        }
    }
    return text.size > 0 ? text.data : "-";
}

/* F is the sum of f: its definition at n and n + 1. */
#define SUM_AT_N                                                                                   \
    "(declare-const n Int)\n"                                                                      \
    "(declare-fun f (Int) Real)\n"                                                                 \
    "(declare-fun F (Int) Real) ; the sum of f over 0 <= r < n\n"                                  \
    "(assert (=> (<= n 0) (= (F n) 0.0)))\n"                                                       \
    "(assert (=> (<= 0 n) (= (F (+ n 1)) (+ (F n) (f n)))))\n"

#define MAX_AT_N                                                                                   \
    "(declare-const n Int)\n"                                                                      \
    "(declare-fun f (Int) Real)\n"                                                                 \
    "(declare-fun g (Int) Bool) ; the guard\n"                                                     \
    "(declare-fun A (Int) Bool) ; whether g holds at some 0 <= r < n\n"                            \
    "(declare-fun M (Int) Real) ; the largest f(r) among those\n"                                  \
    "(assert (=> (<= n 0) (not (A n))))\n"                                                         \
    "(assert (=> (<= 0 n) (= (A (+ n 1)) (or (A n) (g n)))))\n"                                    \
    "(assert (=> (<= 0 n) (= (M (+ n 1)) (ite (not (g n)) (M n) (ite (and (A n) (>= (M n) (f "     \
    "n))) "                                                                                        \
    "(M n) (f n))))))\n"

static const struct {
    uint32_t checks;
    const char *text;
} proofs[GRAFT_LEMMA_LINEAR] = {
    [GRAFT_LEMMA_SPLIT] =
        {2, "; g(r) = f(r + m) for 0 <= r < n - m, 0 <= m <= n: F(n) = F(m) + G(n - m)\n" SUM_AT_N
            "(declare-const m Int)\n"
            "(declare-fun g (Int) Real)\n"
            "(declare-fun G (Int) Real)\n"
            "(assert (= (G 0) 0.0))\n"
            "(assert (=> (<= m n) (= (G (- (+ n 1) m)) (+ (G (- n m)) (g (- n m))))))\n"
            "(assert (<= 0 m))\n"
            "(assert (forall ((r Int)) (=> (and (<= 0 r) (< r (- (+ n 1) m))) (= (g r) (f (+ r "
            "m))))))\n"
            "(push 1) ; n = m\n"
            "(assert (= n m))\n"
            "(assert (not (= (F n) (+ (F m) (G (- n m))))))\n"
            "(check-sat)\n(pop 1)\n"
            "(push 1) ; from n to n + 1\n"
            "(assert (<= m n))\n"
            "(assert (= (F n) (+ (F m) (G (- n m)))))\n"
            "(assert (= (g (- n m)) (f (+ (- n m) m)))) ; the premise at r = n - m\n"
            "(assert (not (= (F (+ n 1)) (+ (F m) (G (- (+ n 1) m))))))\n"
            "(check-sat)\n(pop 1)\n"       },
    [GRAFT_LEMMA_EXCHANGE] =
        {2, "; the sum over r < n of P(r) = sum over q < m of f(r, q) is the sum over q < m of\n"
            "; Q(n, q) = sum over r < n of f(r, q). Used: linear0 and linear2, at m.\n"
            "(declare-const n Int)\n"
            "(declare-const m Int)\n"
            "(declare-fun f (Int Int) Real)\n"
            "(declare-fun P (Int) Real) ; the sum over q < m of f(r, q)\n"
            "(declare-fun F (Int) Real) ; the sum over r < n of P(r)\n"
            "(declare-fun Q (Int Int) Real)\n"
            "(declare-fun X (Int) Real) ; the sum over q < m of Q(n, q), by n\n"
            "(assert (=> (<= n 0) (= (F n) 0.0)))\n"
            "(assert (=> (<= 0 n) (= (F (+ n 1)) (+ (F n) (P n)))))\n"
            "(assert (forall ((q Int)) (=> (<= n 0) (= (Q n q) 0.0))))\n"
            "(assert (forall ((q Int)) (=> (<= 0 n) (= (Q (+ n 1) q) (+ (Q n q) (f n q))))))\n"
            "; linear0: a sum of zeros\n"
            "(assert (=> (forall ((q Int)) (=> (and (<= 0 q) (< q m)) (= (Q n q) 0.0))) (= (X n) "
            "0.0)))\n"
            "; linear2\n"
            "(assert (=> (forall ((q Int)) (=> (and (<= 0 q) (< q m)) (= (Q (+ n 1) q) (+ (Q n q) "
            "(f n "
            "q))))) (= (X (+ n 1)) (+ (X n) (P n)))))\n"
            "(push 1) ; n <= 0\n"
            "(assert (<= n 0))\n"
            "(assert (not (= (F n) (X n))))\n"
            "(check-sat)\n(pop 1)\n"
            "(push 1) ; from n to n + 1\n"
            "(assert (<= 0 n))\n"
            "(assert (= (F n) (X n)))\n"
            "(assert (not (= (F (+ n 1)) (X (+ n 1)))))\n"
            "(check-sat)\n(pop 1)\n"       },
    [GRAFT_LEMMA_COUNT] =
        {2, "; f(r) = 1 for 0 <= r < n, 0 <= n: F(n) = n\n" SUM_AT_N
            "(assert (forall ((r Int)) (=> (and (<= 0 r) (< r (+ n 1))) (= (f r) 1.0))))\n"
            "(push 1) ; n = 0\n"
            "(assert (= n 0))\n"
            "(assert (not (= (F n) (to_real n))))\n"
            "(check-sat)\n(pop 1)\n"
            "(push 1) ; from n to n + 1\n"
            "(assert (<= 0 n))\n"
            "(assert (= (F n) (to_real n)))\n"
            "(assert (not (= (F (+ n 1)) (to_real (+ n 1)))))\n"
            "(check-sat)\n(pop 1)\n"       },
    [GRAFT_LEMMA_ONE] = {1, "; F(1) = f(0)\n" SUM_AT_N "(assert (= n 0))\n"
                            "(assert (not (= (F 1) (f 0))))\n"
                            "(check-sat)\n"},
    [GRAFT_LEMMA_SIGN] =
        {4, "; 0 <= f(r) for 0 <= r < n: 0 <= F(n); 0 < f(r), 1 <= n: 0 < F(n)\n" SUM_AT_N
            "(push 1) ; n <= 0\n"
            "(assert (<= n 0))\n"
            "(assert (not (<= 0.0 (F n))))\n"
            "(check-sat)\n(pop 1)\n"
            "(push 1) ; from n to n + 1\n"
            "(assert (forall ((r Int)) (=> (and (<= 0 r) (< r (+ n 1))) (<= 0.0 (f r)))))\n"
            "(assert (<= 0 n))\n"
            "(assert (<= 0.0 (F n)))\n"
            "(assert (not (<= 0.0 (F (+ n 1)))))\n"
            "(check-sat)\n(pop 1)\n"
            "(push 1) ; strictly, n = 1\n"
            "(assert (= n 0))\n"
            "(assert (< 0.0 (f 0)))\n"
            "(assert (not (< 0.0 (F (+ n 1)))))\n"
            "(check-sat)\n(pop 1)\n"
            "(push 1) ; strictly, from n to n + 1\n"
            "(assert (forall ((r Int)) (=> (and (<= 0 r) (< r (+ n 1))) (< 0.0 (f r)))))\n"
            "(assert (<= 1 n))\n"
            "(assert (< 0.0 (F n)))\n"
            "(assert (not (< 0.0 (F (+ n 1)))))\n"
            "(check-sat)\n(pop 1)\n"       },
    [GRAFT_LEMMA_BOUND] =
        {2, "; g(t), 0 <= t < n: A(n) and M(n) >= f(t)\n" MAX_AT_N "(declare-const t Int)\n"
            "(push 1) ; n <= 0: there is no such t\n"
            "(assert (<= n 0))\n"
            "(assert (and (<= 0 t) (< t n) (g t)))\n"
            "(assert (not (and (A n) (>= (M n) (f t)))))\n"
            "(check-sat)\n(pop 1)\n"
            "(push 1) ; from n to n + 1\n"
            "(assert (<= 0 n))\n"
            "(assert (=> (and (<= 0 t) (< t n) (g t)) (and (A n) (>= (M n) (f t)))))\n"
            "(assert (and (<= 0 t) (< t (+ n 1)) (g t)))\n"
            "(assert (not (and (A (+ n 1)) (>= (M (+ n 1)) (f t)))))\n"
            "(check-sat)\n(pop 1)\n"       },
    [GRAFT_LEMMA_ATTAINED] =
        {2, "; A(n): there is a 0 <= u < n with g(u) and M(n) = f(u)\n" MAX_AT_N
            "(push 1) ; n <= 0: A(n) does not hold\n"
            "(assert (<= n 0))\n"
            "(assert (A n))\n"
            "(check-sat)\n(pop 1)\n"
            "(push 1) ; from n to n + 1; u is what there is for n, if A(n)\n"
            "(declare-const u Int)\n"
            "(assert (<= 0 n))\n"
            "(assert (=> (A n) (and (<= 0 u) (< u n) (g u) (= (M n) (f u)))))\n"
            "(assert (A (+ n 1)))\n"
            "; neither u nor n will do for n + 1\n"
            "(assert (not (and (<= 0 u) (< u (+ n 1)) (g u) (= (M (+ n 1)) (f u)))))\n"
            "(assert (not (and (g n) (= (M (+ n 1)) (f n)))))\n"
            "(check-sat)\n(pop 1)\n"       },
};

/* c1 G1_n + ... */
static const char *combination(graft_arena *arena, uint32_t k, const char *form)
{
    graft_buffer text = {.arena = arena};
    graft_buffer_printf(&text, k > 1 ? "(+" : k == 0 ? "0.0" : "");
    for (uint32_t i = 1; i <= k; i++) {
        graft_buffer_printf(&text, "%s(* c%" PRIu32 " ", k > 1 ? " " : "", i);
        for (const char *at = form; *at != '\0'; at++) {
            if (*at == '#') {
                graft_buffer_printf(&text, "%" PRIu32, i);
            } else {
                graft_buffer_append(&text, at, 1);
            }
        }
        graft_buffer_printf(&text, ")");
    }
    graft_buffer_printf(&text, k > 1 ? ")" : "");
    return text.data;
}

static uint32_t print_linear(graft_buffer *out, uint32_t k)
{
    graft_arena *arena = out->arena;
    graft_buffer_printf(
        out,
        "; f(r) = c1 g1(r) + ... for 0 <= r < n: F(n) = c1 G1(n) + ...; %" PRIu32 " summands\n"
        "; F_n is F(n), f_n is f(n), and so on; F(n + 1) is F_n + f_n where 0 <= n, "
        "and F(n) 0 where n <= 0\n"
        "(declare-const F_n Real)\n(declare-const f_n Real)\n",
        k);
    for (uint32_t i = 1; i <= k; i++) {
        graft_buffer_printf(out,
                            "(declare-const c%" PRIu32 " Real)\n"
                            "(declare-const G%" PRIu32 "_n Real)\n"
                            "(declare-const g%" PRIu32 "_n Real)\n",
                            i, i, i);
    }
    graft_buffer_printf(out,
                        "(push 1) ; n <= 0\n"
                        "(assert (not (= 0.0 %s)))\n"
                        "(check-sat)\n(pop 1)\n"
                        "(push 1) ; from n to n + 1\n"
                        "(assert (= F_n %s))\n"
                        "(assert (= f_n %s)) ; the premise at r = n\n"
                        "(assert (not (= (+ F_n f_n) %s)))\n"
                        "(check-sat)\n(pop 1)\n",
                        combination(arena, k, "0.0"), combination(arena, k, "G#_n"),
                        combination(arena, k, "g#_n"), combination(arena, k, "(+ G#_n g#_n)"));
    return 2;
}

uint32_t graft_lemma_print(graft_buffer *out, uint32_t lemma)
{
    graft_buffer_printf(out,
                        "(set-info :smt-lib-version 2.6)\n"
                        "; lemma %s\n"
                        "; By induction; each check-sat must be unsat.\n"
                        "(set-option :produce-models false)\n(set-logic ALL)\n",
                        graft_lemma_name(out->arena, lemma));
    if (lemma >= GRAFT_LEMMA_LINEAR) {
        return print_linear(out, lemma - GRAFT_LEMMA_LINEAR);
    }
    graft_buffer_printf(out, "%s", proofs[lemma].text);
    return proofs[lemma].checks;
}

/* --------------------------------------------------------- laws of functions */

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

void graft_theorem_note_laws(const graft_sym *s, graft_term_state *laws, Z3_ast term)
{
    law_search l = {.s = s, .laws = laws};
    graft_sym_walk(s, term, visit_function, &l);
}
