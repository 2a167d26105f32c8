/* traits.h - what can be told about a value before a pattern is laid on it.
 *
 * Idea. A pattern is a tree of configurations; a value shows a path of configurations and operand
 * positions when some node that computes it begins that path, and so on down through its arguments.
 * A pattern fits only where all its paths are shown. Sets of paths are words of 64 bits: a path's
 * bit is the sum of its steps' numbers modulo 64, so that putting one step before all paths of a
 * set is a rotation of the word. Arguments that may be exchanged count as one position.
 *
 * Traits only rule out: whatever they let through is looked at (match.c). Sets of paths as an index
 * for matching in equality graphs are in de Moura and Bjorner, Efficient E-Matching for SMT Solvers
 * (2007), section 4, where they say which patterns a merge can touch. */
#pragma once

#include "gen/law.h"

/* One side of a law, as something to look for. */
typedef struct graft_gen_pattern {
    const graft_gen_law *law;
    uint32_t side;
    graft_gen_trait of_vars[GRAFT_GEN_LAW_VARS];     /* What a value must show to stand for it; */
    graft_gen_trait of_outs[GRAFT_GEN_MAX_CLOSURE];  /* for any output of a node; */
    graft_gen_trait of_nodes[GRAFT_GEN_MAX_CLOSURE]; /* what a node must show (..._of_node). */
} graft_gen_pattern;

/* Whether what is there shows all that is wanted. */
static inline bool graft_gen_trait_shows(const graft_gen_trait *there, const graft_gen_trait *want)
{
    uint64_t missing = 0;
    for (uint32_t k = 0; k < GRAFT_GEN_TRAIT_LEVELS; k++) {
        missing |= want->paths[k] & ~there->paths[k];
    }
    return missing == 0;
}

/* Fills in space->traits for every value; the producers must be listed. */
void graft_gen_traits_list(graft_gen_space *space);
/* What a node shows below itself, its own configuration left out: paths[k] are those of k + 1
 * steps. */
graft_gen_trait graft_gen_trait_of_node(const graft_gen_space *space, const graft_gen_node *node);
/* Prepares a side. `law` must outlive it. */
void graft_gen_pattern_make(const graft_gen_law *law, uint32_t side, graft_gen_pattern *pattern);
/* What a value must show to stand for an operand of the side. */
static inline const graft_gen_trait *graft_gen_pattern_trait(const graft_gen_pattern *pattern,
                                                             uint8_t operand)
{
    return GRAFT_GEN_IS_OUT(operand) ? &pattern->of_outs[GRAFT_GEN_OUT_NODE(operand)]
                                     : &pattern->of_vars[operand];
}
