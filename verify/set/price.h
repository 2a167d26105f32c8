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

/* Which nodes of a pattern depend on one of the variables in `vars` (bit v: variable v); bit n of
 * the result is node n. */
uint32_t graft_pattern_reached(const graft_pattern *pattern, uint32_t vars);
