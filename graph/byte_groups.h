/* byte_groups.h - what runtimes compute in 8 bits, and a file has to keep as it is.
 *
 * A runtime looks for DequantizeLinear, an operator and QuantizeLinear, as quantising tools write
 * them, and calls one integer kernel for the three; operators that only move elements it runs on
 * bytes. Costs here know nothing of that: changes and operator are priced one by one. Whoever takes
 * a part of such a group away, shares it or moves something into it leaves the runtime with the
 * rest in binary32, at twice the time and more, whatever was promised. */
#pragma once

#include "graph/model.h"

/* By node of `graph`, which is model->graph or a rewritten copy: whether it is a change to or from
 * 8 bits, reads from one or writes into one, maybe through nodes that move elements, or is a part
 * of what a node of the file became that does. In `arena`; NULL: there are no changes. */
const bool *graft_byte_groups_find(graft_arena *arena, const graft_model *model,
                                   const graft_graph *graph, const graft_order *order);
