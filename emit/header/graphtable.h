/* graphtable.h - writes a graph as a C header: one table of integers, which graft_graph_load reads.
 * For products that know their model when they are compiled. */
#pragma once

#include "emit/header/fit.h"

/* Writes the header. `name` becomes part of identifiers, as in identifier.h. The table lists
 * inputs, weights, then nodes in topological order, so nodes are numbered by their place in that
 * order; graft_graph_renumber gives the same numbers to a graph on the host, and with them the same
 * numbering of locations. `fit`, which may be NULL, says the limits and what memory they take; else
 * they have all room. GRAFT_BAD_INPUT for a bad name or a cycle; GRAFT_UNSUPPORTED for an opaque
 * node with more than GRAFT_TABLE_MAX_OPERANDS. */
GRAFT_MUST_USE graft_status graft_graphtable_write(graft_env *env, const graft_graph *graph,
                                                   const char *name, const graft_fit *fit,
                                                   const char *path);

/* What a loader needs, and `room` parts of GRAFT_GRAPHTABLE_ROOM of the room for rewriting, which
 * is half as much again and a little. */
enum { GRAFT_GRAPHTABLE_ROOM = 16 };
graft_limits graft_graphtable_limits(const graft_graph *graph, uint32_t room);

/* `graph` with its nodes and values numbered as the loader numbers them, in `arena`, with the same
 * limits; one that no table can hold keeps its numbers. GRAFT_BAD_INPUT when it has a cycle. */
GRAFT_MUST_USE graft_status graft_graph_renumber(graft_env *env, graft_arena *arena,
                                                 const graft_graph *graph,
                                                 graft_graph **renumbered);
