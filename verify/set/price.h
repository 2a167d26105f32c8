/* price.h - which way a rule pays: what each side costs, counted, not measured.
 *
 * At one instance the operators are counted by the tables that every stage uses: graft_op_flops and
 * the bytes of the shapes that inference gives. */
#pragma once

#include "graph/rule/rulefile.h"
#include "verify/instances/instance.h"

/* One side of an instance, for one inference. Operators that depend on weights alone run once, when
 * the model is loaded, and count only as `operators`. */
typedef struct graft_price {
    uint64_t flops;
    uint64_t bytes;        /* Read and written by operators, each on its own. */
    uint64_t weight_bytes; /* Of tensors read that are known before inference, each once. */
    uint32_t operators;
    uint32_t launches;
} graft_price;

/* `weights` has bit v set when variable v is a weight. */
graft_price graft_price_side(const graft_instance *instance, const graft_side *side,
                             uint32_t weights);
/* The variables that are weights in the best case: with the fewest launches after the rule compared
 * to before, and as few weights as possible. Bits; 0 when none need be. */
uint32_t graft_price_weights(const graft_rule *rule);
/* Operators that a rule saves per inference then. INT32_MIN when its outputs depend on no variable,
 * so that the engine never matches it. */
int32_t graft_rule_gain(const graft_rule *rule);
