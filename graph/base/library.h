/* library.h - libraries of Graft's own that are loaded when they are asked for, so that nobody
 * needs what they are linked with who does not use them. */
#pragma once

#include "graph/base/env.h"

typedef struct graft_library {
    const char *file; /* "graft-cuda.so". */
    const char
        *variable;      /* Of the environment: its path, for programs that do not lie beside it. */
    const char *symbol; /* The function that it is loaded for. */
    const char *what;   /* For messages: "back end for NVIDIA GPUs". */
    const char *advice; /* What to do when it is missing. */
    bool is_open;       /* What it is linked with has plug-ins, which look for its symbols. */
} graft_library;

/* Loads it from where the environment says, from beside the running program or, when that is
 * PREFIX/bin/graft, from PREFIX/lib/graft, and copies its function's address to `function`, a
 * pointer to a function. It stays loaded. GRAFT_UNSUPPORTED when it is missing or does not load. */
GRAFT_MUST_USE graft_status graft_library_load(graft_env *env, const graft_library *library,
                                               void *function);
