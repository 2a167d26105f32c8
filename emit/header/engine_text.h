/* engine_text.h - the engine's own source, inside the program, so that a generated header can carry
 * it. */
#pragma once

#include "graph/base/file.h"

/* Appends graft.h with everything it includes from include/graft in place of the #include lines.
 * GRAFT_INTERNAL when it includes a file that is not embedded, which names it. */
GRAFT_MUST_USE graft_status graft_engine_text(graft_env *env, graft_buffer *text);
