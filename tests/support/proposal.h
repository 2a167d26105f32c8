/* proposal.h - an application of an operator that is drawn around what is already known of it: the
 * shapes of some operands, the values of some attributes. What is drawn fits often, not always;
 * graft_infer_shapes decides. */
#pragma once

#include "graft/graft.h"
#include "graph/base/rng.h"

typedef struct proposal {
    int32_t attrs[GRAFT_MAX_ATTRS];
    graft_shape in[GRAFT_MAX_INPUTS];
    bool attr_known[GRAFT_MAX_ATTRS];
    bool in_known[GRAFT_MAX_INPUTS];
    uint32_t op;
} proposal;

/* Draws what is not known: sizes up to 7, at most PROPOSAL_ELEMENTS elements, ranks 0 to 5, few of
 * them 0 or 5. Convolutions and pools are plain half of the time. */
void proposal_draw(graft_rng *rng, proposal *drawn);

/* Most elements that proposal_draw gives to an operand. */
enum { PROPOSAL_ELEMENTS = 192 };

/* A number from least to most. */
int32_t proposal_between(graft_rng *rng, int32_t least, int32_t most);
/* True once in `times`. */
bool proposal_once_in(graft_rng *rng, uint32_t times);
