/* opensizes.h - whether a rule that matches at some sizes applies at all of them.
 *
 * Sizes that a file leaves open are symbols, whole numbers of at least 1; those of one name are one
 * symbol. From the inputs on, every value of a graph has sizes that are terms over these symbols,
 * by the shape functions that proofs for all sizes use (symshape.h); what an opaque node makes has
 * symbols of its own. Of a match, the engine's checks at one set of sizes become claims about such
 * terms: Z3 is asked whether the rule's precondition and all that its target needs can fail where
 * the matched nodes can be computed, and whether an attribute of the target can be another number
 * than it is here. Only its `unsat` is a yes. */
#pragma once

#include "graph/base/env.h"
#include "graph/model.h"

typedef struct graft_open_sizes graft_open_sizes;

/* In env->life. `model` has sizes that stay open, and outlives it. */
graft_open_sizes *graft_open_sizes_open(graft_env *env, const graft_model *model);
void graft_open_sizes_close(graft_open_sizes *o);
/* Leaves all answers and terms so far; done by itself where they have half the solver's memory. */
void graft_open_sizes_forget(graft_open_sizes *o);
/* The graph is another, or has changed: a rewritten copy of the model's, and its order. */
void graft_open_sizes_look_at(void *sizes, const graft_graph *graph, const graft_order *order);
/* Whether a match in the graph that was looked at last, which the engine accepts, would be accepted
 * at all sizes, and give the same nodes. */
bool graft_open_sizes_hold(void *sizes, const graft_rule *rule, const graft_match *match);
