/* shards.c - see shards.h. Threads live for one call: starting one costs some 20 microseconds,
 * an update costs milliseconds. */
#include "train/nn/shards.h"

#include "train/nn/subnormal.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { ARENA_FIRST_BYTES = 1 << 20 };

void graft_shards_open(graft_shards *shards, graft_arena *arena, uint32_t thread_count,
                       graft_parameters *const sets[], uint32_t set_count)
{
    assert(thread_count > 0 && set_count <= GRAFT_TAPE_BINDINGS);
    memset(shards, 0, sizeof *shards);
    shards->thread_count = thread_count;
    shards->set_count = set_count;
    for (uint32_t k = 0; k < set_count; k++) {
        shards->sets[k] = sets[k];
    }
    for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
        shards->arena_bytes[s] = ARENA_FIRST_BYTES;
        graft_tape_init(&shards->tapes[s], graft_arena_new(ARENA_FIRST_BYTES), false);
        for (uint32_t k = 0; k < set_count; k++) {
            graft_tape_bind(&shards->tapes[s], sets[k], GRAFT_NEW(arena, float, sets[k]->size));
        }
    }
}

void graft_shards_close(graft_shards *shards)
{
    for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
        graft_arena_free(shards->tapes[s].arena);
        shards->tapes[s].arena = NULL;
    }
}

graft_span graft_shards_span(uint32_t total, uint32_t shard)
{
    uint32_t size = total / GRAFT_SHARD_COUNT;
    uint32_t longer = total % GRAFT_SHARD_COUNT;
    uint32_t first = shard * size + (shard < longer ? shard : longer);
    return (graft_span){first, size + (shard < longer ? 1U : 0U)};
}

/* What the workers share. */
typedef struct {
    graft_shards *shards;
    graft_shard_work *work;
    void *context;
    atomic_uint next;
} shard_job;

/* Empties the tape. An arena that needed more than its first block is replaced by one that holds
 * everything in a single block, so that later runs do not ask the system for memory again. */
static void empty_tape(graft_shards *shards, uint32_t shard)
{
    graft_tape *tape = &shards->tapes[shard];
    size_t used = graft_arena_used_bytes(tape->arena);
    graft_tape_reset(tape);
    if (used > shards->arena_bytes[shard]) {
        shards->arena_bytes[shard] = used + used / 4;
        graft_arena_free(tape->arena);
        tape->arena = graft_arena_new(shards->arena_bytes[shard]);
    }
}

static void *work_through(void *argument)
{
    shard_job *job = argument;
    for (;;) {
        uint32_t shard = atomic_fetch_add(&job->next, 1U);
        if (shard >= GRAFT_SHARD_COUNT) {
            return NULL;
        }
        job->work(job->context, shard, &job->shards->tapes[shard]);
        empty_tape(job->shards, shard);
    }
}

static void run_job(shard_job *job)
{
    uint32_t float_mode = graft_subnormal_flush(); /* Helpers inherit it. */
    pthread_t helpers[GRAFT_SHARD_COUNT - 1];
    uint32_t started = 0;
    while (started + 1 < job->shards->thread_count && started + 1 < GRAFT_SHARD_COUNT &&
           pthread_create(&helpers[started], NULL, work_through, job) == 0) {
        started++; /* A thread that cannot be started is only a loss of speed. */
    }
    (void)work_through(job);
    for (uint32_t k = 0; k < started; k++) {
        (void)pthread_join(helpers[k], NULL);
    }
    graft_subnormal_restore(float_mode);
}

void graft_shards_differentiate(graft_shards *shards, graft_shard_work *work, void *context)
{
    shard_job job = {.shards = shards, .work = work, .context = context};
    atomic_init(&job.next, 0U);
    for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
        shards->tapes[s].recording = true;
        for (uint32_t k = 0; k < shards->set_count; k++) {
            memset(shards->tapes[s].bindings[k].gradient, 0, shards->sets[k]->size * sizeof(float));
        }
    }
    run_job(&job);
    for (uint32_t k = 0; k < shards->set_count; k++) {
        float *total = shards->sets[k]->gradient;
        memset(total, 0, shards->sets[k]->size * sizeof(float));
        for (uint32_t s = 0; s < GRAFT_SHARD_COUNT; s++) {
            const float *part = shards->tapes[s].bindings[k].gradient;
            for (size_t i = 0; i < shards->sets[k]->size; i++) {
                total[i] += part[i];
            }
        }
    }
}
