/* check.h - whether a law holds on fresh samples.
 *
 * A fresh sample is a number, its draw: it gives every input of the set a tensor, and every cut
 * variable of a law, whatever the law. So a draw on which the two graphs of a pair differ is a
 * sample for the whole space (refine.h).
 *
 * Where no order is asked both sides are quotients of polynomials, and two of them that differ
 * agree at random arguments with a chance of about their degree by the number of arguments to
 * choose from (Schwartz, Fast Probabilistic Algorithms for Verification of Polynomial Identities,
 * J. ACM 27(4), 1980, corollary 1): a few samples tell. Where order decides, both sides may differ
 * in a corner that samples seldom meet: there all samples are looked at.
 *
 * The tensors of a sample depend on the seed, the variable's number, its shape and kind, not on the
 * law: a checker remembers them, for thousands of laws are asked on the same samples. What both
 * sides compute alike is computed once. */
#pragma once

#include "gen/law.h"

enum { GRAFT_GEN_MOST_REDRAWN = 4 }; /* Samples drawn, per sample that says something. */

/* Draws from this one on take no heed of the operators of the set: magnitudes that functions cannot
 * bear. They are for laws without functions, and no samples of a space. */
#define GRAFT_GEN_WIDE_DRAWS (1u << 30)

/* Fresh samples: `count` that say something, from draw `first` on. */
typedef struct graft_gen_fresh {
    uint64_t seed;
    uint32_t first;
    uint32_t count;
} graft_gen_fresh;

/* For one thread. With zeros and `scratch` it remembers nothing; with `memory` too, an arena of its
 * own which it may empty, it does. */
typedef struct graft_gen_checker {
    graft_arena *scratch;
    graft_arena *memory;
    struct graft_gen_tensor *tensors;
    uint32_t count;
    uint32_t capacity;
    graft_table table;
} graft_gen_checker;

/* Whether both sides agree on fresh samples, at the shapes drawn. Samples on which a number is
 * undefined or an order cannot be told are drawn again; false when too many of them are. `told` may
 * be NULL; it is set to the draw on which the sides differ, GRAFT_GEN_NONE when there is none. The
 * answer does not depend on what the checker remembers. */
bool graft_gen_law_holds(graft_gen_checker *checker, const graft_gen_law *law,
                         const graft_gen_fresh *fresh, uint32_t *told);
/* Whether both sides are defined on one draw and, where `agree`, equal there, or else differ. */
bool graft_gen_law_shows(graft_gen_checker *checker, const graft_gen_law *law, uint64_t seed,
                         uint32_t draw, bool agree);
