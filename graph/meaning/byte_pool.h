/* byte_pool.h - max_pool of operators.def on numbers of 8 bits. */
#pragma once

#include "graph/base/arena.h"
#include "graph/meaning/algebra.h"

/* Row-major, all of one type. */
void graft_byte_max_pool(graft_arena *scratch, const graft_call *call, const void *in, void *out);
