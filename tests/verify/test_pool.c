/* Work in children that crash, hang or answer. */
#include "verify/pool.h"

#include "tests/support/check.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ITEMS = 40 };

/* Item 7 of 10 aborts, item 9 never ends, the others answer with as many bytes as their number. */
static void misbehave(graft_env *env, void *context, uint32_t item, graft_buffer *answer)
{
    const bool *hang = context;
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

static void run(graft_env *env, uint32_t threads, bool hang, graft_pool_result *results)
{
    graft_pool_job job = {.label = "test",
                          .unit = "items",
                          .item_count = ITEMS,
                          .limit_ns = hang ? UINT64_C(100000000) : 0,
                          .run = misbehave,
                          .context = &hang};
    env->thread_count = threads;
    assert_int_equal(graft_pool_run(env, env->life, &job, results), GRAFT_OK);
}

static void test_outcomes(void **state)
{
    for (uint32_t threads = 1; threads <= 5; threads += 2) {
        graft_pool_result results[ITEMS];
        run(*state, threads, true, results);
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
}

/* More children than items, and no limit of time. */
static void test_many_children(void **state)
{
    graft_pool_result results[ITEMS];
    run(*state, 2 * ITEMS, false, results);
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(results[i].outcome, i % 10 == 7 ? GRAFT_POOL_CRASHED : GRAFT_POOL_DONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_outcomes),
        CHECK_TEST(test_many_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
