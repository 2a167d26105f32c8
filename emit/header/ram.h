/* ram.h - what a product's memory has to hold for a graph and a policy, on processors other than
 * this one: the graph's struct and buffer and the workspace of graft_optimize.
 *
 * What the engine carves from its buffers is counted again with the target's sizes: its structs are
 * listed by their members and laid out for its pointers and ids. With this computer's own the
 * result has to be what the engine says, or nothing is told: a member or an array that the engine
 * gets and this lacks is noticed by the first header that is written. */
#pragma once

#include "graph/base/file.h"

/* What matters of a processor and of how the engine is compiled for it. Integers of 64 bits lie at
 * multiples of 8, enums take 4 bytes: where either takes less, so does the whole. */
typedef struct graft_target {
    size_t pointer_bytes; /* Of size_t, too. */
    size_t id_bytes;      /* Of graft_index: 2 with GRAFT_SMALL_GRAPHS. */
} graft_target;

typedef enum graft_ram_part {
    GRAFT_RAM_GRAPH,      /* The graph's struct, nodes, values, edges and outputs. */
    GRAFT_RAM_ORDER,      /* Nodes in topological order, and who reads what. */
    GRAFT_RAM_RUN,        /* The call in progress, the rule at hand and what it would make. */
    GRAFT_RAM_SEEN,       /* A hash of each graph so far. */
    GRAFT_RAM_CANDIDATES, /* Where rules can begin, and how many locations each has. */
    GRAFT_RAM_COSTS,      /* The estimator's tables. */
    GRAFT_RAM_NETWORK,
    GRAFT_RAM_PARTS
} graft_ram_part;

typedef struct graft_ram {
    size_t parts[GRAFT_RAM_PARTS];
    size_t buffer; /* graft_graph_bytes */
    size_t work;   /* graft_optimize_workspace_bytes */
    size_t total;  /* Of the parts: buffer, work and the graph's struct. */
} graft_ram;

/* "graph", "order"... */
const char *graft_ram_part_name(graft_ram_part part);
/* GRAFT_INTERNAL when the engine disagrees about this computer. */
GRAFT_MUST_USE graft_status graft_ram_measure(graft_env *env, const graft_policy *policy,
                                              const graft_limits *limits, uint32_t step_limit,
                                              graft_target target, graft_ram *ram);
