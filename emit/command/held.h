/* held.h - what is printed about bodies of If, Loop and Scan, held back until it is known that they
 * stay: where they would make the file grow, they are put back and rewritten again. */
#pragma once

#include "graph/base/env.h"

typedef struct graft_held {
    FILE *out;   /* Where the lines go in the end. */
    FILE *lines; /* Where they are printed. */
    char *text;
    size_t size;
} graft_held;

/* GRAFT_NO_MEMORY when the system has no memory for it. Closed by graft_held_close in any case. */
GRAFT_MUST_USE graft_status graft_held_open(graft_env *env, FILE *out, graft_held *held);
/* Passes on what was printed since the last call, or drops it. */
void graft_held_settle(graft_held *held, bool kept);
/* Drops what is not settled. */
void graft_held_close(graft_held *held);
