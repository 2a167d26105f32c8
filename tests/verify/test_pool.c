/* Work in children that crash, hang, take all the memory or answer. */
#include "verify/pool.h"

#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ITEMS = 40 };

static const graft_pool_job forty = {.label = "test", .unit = "items", .item_count = ITEMS};

/* Item 7 of 10 aborts, item 9 never ends, the others answer with as many bytes as their number. */
static void misbehave(graft_env *env, void *context, const graft_pool_item *task,
                      graft_buffer *answer)
{
    const bool *hang = context;
    const uint32_t item = task->index;
    (void)env;
    if (item % 10 == 7) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        abort();
    }
    for (; *hang && item % 10 == 9;) {
        (void)pause();
    }
    for (uint32_t i = 0; i < item; i++) {
        const uint8_t byte = (uint8_t)item;
        graft_buffer_append(answer, &byte, 1);
    }
}

/* With `is_fresh` in children that are there before the job. */
static void run(graft_env *env, uint32_t threads, bool hang, bool is_fresh,
                graft_pool_result *results)
{
    graft_pool *pool = NULL;
    const graft_pool_job crew = {.is_fresh = true, .run = misbehave, .context = &hang};
    graft_pool_job job = forty;
    job.limit_ns = hang ? UINT64_C(100000000) : 0;
    env->thread_count = threads;
    if (is_fresh) {
        CHECK_OK(graft_pool_open(env, env->life, &crew, &pool));
        CHECK_OK(graft_pool_do(pool, env->life, &job, results));
        graft_pool_close(pool);
    } else {
        job.run = misbehave;
        job.context = &hang;
        CHECK_OK(graft_pool_run(env, env->life, &job, results));
    }
}

static void check_outcomes(const graft_pool_result *results)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint8_t want = i % 10 == 7   ? GRAFT_POOL_CRASHED
                       : i % 10 == 9 ? GRAFT_POOL_KILLED
                                     : GRAFT_POOL_DONE;
        assert_int_equal(results[i].outcome, want);
        if (want != GRAFT_POOL_DONE) {
            assert_null(results[i].answer);
            continue;
        }
        assert_int_equal(results[i].bytes, i);
        for (uint32_t k = 0; k < i; k++) {
            assert_int_equal(results[i].answer[k], i);
        }
    }
}

CHECK_CASE(test_outcomes)
{
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        graft_pool_result results[ITEMS];
        run(env, threads, true, false, results);
        check_outcomes(results);
        run(env, threads, true, true, results);
        check_outcomes(results);
    }
}

static const uint64_t little_bytes = UINT64_C(256) << 20;
static const size_t much_bytes = (size_t)150 << 20;

/* Item 3 of 10 takes memory without end; item 4 leaves much behind, so that another one of 4 or 5
 * finds too little in the same child, and enough in one of its own. */
static void devour(graft_env *env, void *context, const graft_pool_item *task, graft_buffer *answer)
{
    static const size_t piece_bytes = (size_t)1 << 20;
    const uint32_t item = task->index;
    (void)context;
    for (uint64_t taken = 0; item % 10 == 3 && taken < 2 * little_bytes; taken += piece_bytes) {
        (void)graft_arena_alloc(env->unit, piece_bytes);
    }
    if (item % 10 == 4 || item % 10 == 5) {
        (void)graft_arena_alloc(item % 10 == 4 ? env->life : env->unit, much_bytes);
    }
    graft_buffer_append(answer, &item, sizeof item);
}

#ifdef __SANITIZE_ADDRESS__
static const bool is_watched = true;
#else
static const bool is_watched = false;
#endif

CHECK_CASE(test_memory)
{
    if (is_watched) {
        skip(); /* The sanitizer's allocator ends the program in its own way. */
    }
    for (uint32_t way = 0; way < 6; way++) {
        graft_pool_result results[ITEMS];
        graft_pool_job job = forty;
        job.memory_bytes = little_bytes;
        job.is_fresh = way >= 3;
        job.run = devour;
        env->thread_count = 1 + way % 3;
        CHECK_OK(graft_pool_run(env, env->life, &job, results));
        for (uint32_t i = 0; i < ITEMS; i++) {
            bool exhausted = i % 10 == 3;
            assert_int_equal(results[i].outcome,
                             exhausted ? GRAFT_POOL_EXHAUSTED : GRAFT_POOL_DONE);
            assert_int_equal(results[i].bytes, exhausted ? 0 : sizeof i);
        }
    }
}

/* More children than items, and no limit of time. */
CHECK_CASE(test_many_children)
{
    graft_pool_result results[ITEMS];
    run(env, 2 * ITEMS, false, false, results);
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(results[i].outcome, i % 10 == 7 ? GRAFT_POOL_CRASHED : GRAFT_POOL_DONE);
    }
}

/* Counts in static memory, and says what it was sent. */
static void count_up(graft_env *env, void *context, const graft_pool_item *item,
                     graft_buffer *answer)
{
    static uint32_t times = 0;
    (void)env;
    (void)context;
    times++;
    graft_buffer_append(answer, &times, sizeof times);
    graft_buffer_append(answer, item->data, item->size);
}

static uint32_t times_of(const graft_pool_result *result)
{
    uint32_t times;
    assert_int_equal(result->outcome, GRAFT_POOL_DONE);
    assert_true(result->bytes >= sizeof times);
    memcpy(&times, result->answer, sizeof times);
    return times;
}

/* Whether a process does one item after another. */
CHECK_CASE(test_freshness)
{
    env->thread_count = 1;
    for (uint32_t fresh = 0; fresh < 2; fresh++) {
        graft_pool_result results[ITEMS];
        graft_pool_job job = forty;
        job.is_fresh = fresh == 1;
        job.run = count_up;
        CHECK_OK(graft_pool_run(env, env->life, &job, results));
        for (uint32_t i = 0; i < ITEMS; i++) { /* The last item comes first. */
            assert_int_equal(times_of(&results[i]), fresh == 1 ? 1 : ITEMS - i);
        }
    }
}

/* Children that were there before what they are sent: nothing, or more than a pipe holds. */
CHECK_CASE(test_sent)
{
    graft_pool *pool = NULL;
    const graft_pool_job crew = {.is_fresh = true, .run = count_up};
    env->thread_count = 2;
    CHECK_OK(graft_pool_open(env, env->life, &crew, &pool));
    for (uint32_t round = 0; round < 2; round++) {
        graft_buffer sent[ITEMS];
        graft_pool_result results[ITEMS];
        graft_pool_job job = forty;
        job.sent = sent;
        for (uint32_t i = 0; i < ITEMS; i++) {
            sent[i] = (graft_buffer){.arena = env->life};
            for (uint32_t k = 0; k < i * i * 31; k++) {
                const uint32_t word = (round * ITEMS + i) * 100000 + k;
                graft_buffer_append(&sent[i], &word, sizeof word);
            }
        }
        CHECK_OK(graft_pool_do(pool, env->life, &job, results));
        for (uint32_t i = 0; i < ITEMS; i++) {
            assert_int_equal(times_of(&results[i]), 1);
            assert_int_equal(results[i].bytes, sizeof(uint32_t) + sent[i].size);
            if (sent[i].size > 0) {
                assert_memory_equal(results[i].answer + sizeof(uint32_t), sent[i].data,
                                    sent[i].size);
            }
        }
    }
    graft_pool_close(pool);
}
