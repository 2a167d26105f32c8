/* shards.h - data parallelism whose result does not depend on the number of threads.
 *
 * A batch is cut into a fixed number of shards. Each has its own tape, arena and gradient; workers
 * take shards in any order; gradients are then added in shard order. Thread count decides only who
 * computes what, never what is computed.
 *
 *      batch --> shard 0 | shard 1 | shard 2 | shard 3      (fixed by the data)
 *                worker A  worker B  worker A  worker B     (fixed by nothing)
 *      gradient = ((0 + 1) + 2) + 3                         (fixed order)
 */
#pragma once

#include "train/nn/tape.h"

/* Changing this changes the results in their last bits. */
enum { GRAFT_SHARD_COUNT = 4 };

typedef struct {
    uint32_t thread_count;
    uint32_t set_count;
    graft_parameters *sets[GRAFT_TAPE_BINDINGS];
    graft_tape tapes[GRAFT_SHARD_COUNT];
    size_t arena_bytes[GRAFT_SHARD_COUNT]; /* First block of each tape's arena. */
} graft_shards;

/* `arena` holds the shards' gradients and outlives them; the sets are sealed. Aborts like an arena
 * when memory runs out. Close with graft_shards_close. */
void graft_shards_open(graft_shards *shards, graft_arena *arena, uint32_t thread_count,
                       graft_parameters *const sets[], uint32_t set_count);
/* Frees the tapes' arenas. */
void graft_shards_close(graft_shards *shards);

/* Rows [first, first + count) of `total` that belong to a shard: contiguous, sizes differ by one.
 */
typedef struct {
    uint32_t first;
    uint32_t count;
} graft_span;
graft_span graft_shards_span(uint32_t total, uint32_t shard);

/* Work on one shard; `tape` is empty. It may write only what belongs to its shard. */
typedef void graft_shard_work(void *context, uint32_t shard, graft_tape *tape);

/* Runs `work` once per shard, recording, with the shards' gradients zeroed first; then sums them, in
 * shard order, into the `gradient` of each set. `work` runs the tape backwards itself. */
void graft_shards_differentiate(graft_shards *shards, graft_shard_work *work, void *context);
