/* theoremlemma.h - laws that an exported theorem may rest on (theorem.h).
 *
 * Of sums F(n) = sum over 0 <= r < n of f(r), G likewise of g, and maxima M over those r at which a
 * guard holds:
 *      linear<k>  f(r) = c1 g1(r) + ... + ck gk(r) for 0 <= r < n: F(n) = c1 G1(n) + ... + ck Gk(n)
 *      split      g(r) = f(r + m), 0 <= m <= n: F(n) = F(m) + G(n - m)
 *      exchange   the sum over r of the sum over q of f(r, q) is the one over q of the one over r
 *      count      f(r) = 1, 0 <= n: F(n) = n
 *      one        F(1) = f(0)
 *      sign       0 <= f(r) for 0 <= r < n: 0 <= F(n); the same with <, where 1 <= n
 *      bound      M(n) is at least the body at each r within the range at which the guard holds,
 *      attained   and is the body at one such r, if there is any
 * Each has a file of its own that proves it by induction over n, for functions that nothing is
 * known of. An instance of linear<k> that is about some n holds, or there is an r at which the
 * premise fails: a constant that occurs in no other instance stands for that r; likewise for the r
 * of `attained`. So an instance says nothing that is not true, whatever the bodies are; which are
 * written is a matter of finding (theoremfind.c), not of trust. */
#ifndef GRAFT_THEOREMLEMMA_H
#define GRAFT_THEOREMLEMMA_H

#include "graph/base/file.h"
#include "verify/sizes/symplain.h"

enum { GRAFT_THEOREM_SUMMANDS_MOST = 12 };

/* linear<k> is GRAFT_LEMMA_LINEAR + k. */
typedef enum graft_lemma {
    GRAFT_LEMMA_SPLIT = 0,
    GRAFT_LEMMA_EXCHANGE = 1,
    GRAFT_LEMMA_COUNT = 2,
    GRAFT_LEMMA_ONE = 3,
    GRAFT_LEMMA_SIGN = 4,
    GRAFT_LEMMA_BOUND = 5,
    GRAFT_LEMMA_ATTAINED = 6,
    GRAFT_LEMMA_LINEAR = 7,
    GRAFT_LEMMA_KINDS = GRAFT_LEMMA_LINEAR + GRAFT_THEOREM_SUMMANDS_MOST + 1
} graft_lemma;

typedef struct graft_lemma_instance {
    graft_lemma lemma;
    Z3_ast formula;
} graft_lemma_instance;

/* Instances about one case, in the order in which they were found. */
typedef struct graft_lemmas {
    graft_sym *s;
    graft_arena *arena;
    graft_lemma_instance *instances;
    uint32_t count;
    uint32_t capacity;
    Z3_ast *symbols; /* Constants that stand for indices. */
    uint32_t symbol_count;
    uint32_t symbol_capacity;
    const Z3_ast *sizes; /* Of the first of them: what they are below. */
    uint32_t size_count;
    Z3_ast *ground; /* Bodies at such indices, written out: laws of functions are for these. */
    uint32_t ground_count;
    uint32_t ground_capacity;
    uint32_t fresh;
    bool signs; /* Signs of sums are wanted. */
} graft_lemmas;

/* Finds instances that may help to prove the case that was read, given terms of its claim, written
 * out, whose indices are in l->symbols. */
void graft_lemmas_find(graft_lemmas *l, uint32_t count, const Z3_ast *terms);

/* Instances. Folds are applications of definitions (symplain.h). */
void graft_lemma_linear(graft_lemmas *l, Z3_ast fold, Z3_ast at, uint32_t count,
                        const Z3_ast *factors, const Z3_ast *folds);
void graft_lemma_split(graft_lemmas *l, Z3_ast fold, Z3_ast low, Z3_ast high);
void graft_lemma_exchange(graft_lemmas *l, Z3_ast fold, Z3_ast exchanged);
void graft_lemma_count(graft_lemmas *l, Z3_ast fold);
void graft_lemma_one(graft_lemmas *l, Z3_ast fold);
void graft_lemma_sign(graft_lemmas *l, Z3_ast fold);
void graft_lemma_bound(graft_lemmas *l, Z3_ast fold, Z3_ast at);
/* Returns the index. */
Z3_ast graft_lemma_attained(graft_lemmas *l, Z3_ast fold);

/* A constant that stands for an index. */
Z3_ast graft_lemmas_index(graft_lemmas *l);
/* The body of a fold at an index, written out and noted as ground. */
Z3_ast graft_lemmas_body(graft_lemmas *l, Z3_ast fold, Z3_ast at);

/* "linear2", in `arena`. */
const char *graft_lemma_name(graft_arena *arena, uint32_t lemma);
/* Of a set of bits: "linear2,split", or "-" for none. */
const char *graft_lemma_names(graft_arena *arena, uint32_t lemmas);
/* The file that proves a lemma; returns the check-sats in it. */
uint32_t graft_lemma_print(graft_buffer *out, uint32_t lemma);

/* Notes, in `laws`, the laws of exp, sqrt, erf, sigmoid and tanh (term.h) for the arguments that
 * they have in a term. */
void graft_theorem_note_laws(const graft_sym *s, graft_term_state *laws, Z3_ast term);

#endif
