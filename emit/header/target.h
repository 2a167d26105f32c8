/* target.h - how large the engine's structs are on processors other than this one.
 *
 * They are listed by their members and laid out for a target's pointers and ids. That the list is
 * right for this computer is asked with each header (ram.c), for others in
 * tests/emit/test_ram.sh. */
#pragma once

#include <stddef.h>

/* What matters of a processor and of how the engine is compiled for it. Integers of 64 bits lie at
 * multiples of 8, enums take 4 bytes: where either takes less, so does the whole. */
typedef struct graft_target {
    size_t pointer_bytes; /* Of size_t, too. */
    size_t id_bytes;      /* Of graft_index: 2 with GRAFT_SMALL_GRAPHS. */
} graft_target;

/* Bytes of those that hold ids or pointers and lie in memory. */
typedef struct graft_target_sizes {
    size_t id;
    size_t node;
    size_t value;
    size_t graph;
    size_t run; /* graft_optimize_run, a call in progress */
} graft_target_sizes;

graft_target_sizes graft_target_sizes_of(graft_target target);
