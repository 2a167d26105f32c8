/* graphviz.h - where Graphviz puts the nodes of graphs: `dot` as a child process. */
#pragma once

#include "graph/base/file.h"

/* Hands `text`, one digraph or several, to `dot -Tplain`; *plain, in `arena`, is what it printed.
 * Where there is no such program, or it fails, *plain is NULL and *reason says why: no failure.
 * GRAFT_IO when there is no temporary file. */
GRAFT_MUST_USE graft_status graft_graphviz_plain(graft_env *env, graft_arena *arena,
                                                 const graft_buffer *text, const char **plain,
                                                 const char **reason);
