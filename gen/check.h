/* check.h - whether a law holds on fresh samples.
 *
 * The tensors of a sample depend on the seed, the variable's number, its shape and kind, not on the
 * law: a checker remembers them, for thousands of laws are asked on the same samples. What both
 * sides compute alike is computed once. */
#ifndef GRAFT_GEN_CHECK_H
#define GRAFT_GEN_CHECK_H

#include "gen/law.h"

enum { GRAFT_GEN_MOST_REDRAWN = 4 }; /* Samples drawn, per sample that says something. */

/* For one thread. With zeros and `scratch` it remembers nothing; with `memory` too, an arena of its
 * own which it may empty, it does. */
typedef struct graft_gen_checker {
    graft_arena *scratch;
    graft_arena *memory;
    struct graft_gen_tensor *tensors;
    uint32_t count;
    uint32_t capacity;
    graft_gen_table table;
} graft_gen_checker;

/* Whether both sides agree on `sample_count` fresh samples of `seed`, at the shapes drawn. Samples
 * on which a number is undefined or an order cannot be told are drawn again; false when too many of
 * them are. The answer does not depend on what the checker remembers. */
bool graft_gen_law_holds(graft_gen_checker *checker, const graft_gen_law *law, uint64_t seed,
                         uint32_t sample_count);

#endif
