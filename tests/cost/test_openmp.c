/* The program's own threads for kernels (cost/openmp/openmp.c), as gcc's `parallel` calls them: each
 * part is done once, whoever does it; regions from several threads, within each other, after a fork
 * and with barriers. tests/tests.mk links them here in place of libgomp. */
#include "graph/base/share.h"
#include "tests/support/check.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void GOMP_barrier(void); /* As `#pragma omp barrier` calls it. */

enum { PARTS_MOST = 9, REGIONS = 2000 };

typedef struct {
    _Atomic uint32_t done[PARTS_MOST];
    _Atomic uint32_t wrong;
} tally;

static void count_part(const void *work, uint32_t part, uint32_t parts)
{
    tally *t = *(tally *const *)work;
    atomic_fetch_add(&t->done[part], 1);
    atomic_fetch_add(&t->wrong,
                     omp_get_num_threads() != (int)parts || omp_in_parallel() != (parts > 1));
}

static bool each_once(uint32_t parts)
{
    tally t = {0};
    tally *const work = &t;
    graft_share((int)parts, count_part, &work);
    bool right = t.wrong == 0;
    for (uint32_t i = 0; i < PARTS_MOST; i++) {
        right = right && t.done[i] == (i < parts);
    }
    return right;
}

static bool many_regions(void)
{
    bool right = true;
    for (uint32_t i = 0; i < REGIONS && right; i++) {
        right = each_once(1 + i % PARTS_MOST);
    }
    return right && omp_get_num_threads() == 1 && omp_get_thread_num() == 0 && !omp_in_parallel();
}

CHECK_CASE(test_each_part_is_done_once)
{
    (void)env;
    assert_true(many_regions());
    omp_set_num_threads(3);
    assert_int_equal(omp_get_max_threads(), 3);
}

static void *call_from(void *right)
{
    *(bool *)right = many_regions();
    return NULL;
}

CHECK_CASE(test_several_callers)
{
    enum { CALLERS = 3 };
    pthread_t threads[CALLERS];
    bool right[CALLERS] = {false};
    (void)env;
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call_from, &right[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(right[i]);
    }
}

/* A region within a region has one part, and leaves the outer one as it was. */
static void nest(const void *work, uint32_t part, uint32_t parts)
{
    tally inner = {0};
    tally *const inside = &inner;
    tally *t = *(tally *const *)work;
    graft_share(4, count_part, &inside);
    atomic_fetch_add(&t->done[part], inner.done[0] == 1 && inner.done[1] == 0 &&
                                         omp_get_thread_num() == (int)part &&
                                         omp_get_num_threads() == (int)parts);
}

CHECK_CASE(test_nested_regions)
{
    tally t = {0};
    tally *const work = &t;
    (void)env;
    graft_share(4, nest, &work);
    for (uint32_t i = 0; i < PARTS_MOST; i++) {
        assert_int_equal(t.done[i], i < 4);
    }
}

/* What all have written before a barrier, each reads behind it, several times. */
static void meet(const void *work, uint32_t part, uint32_t parts)
{
    tally *t = *(tally *const *)work;
    for (uint32_t round = 1; round <= 5; round++) {
        atomic_fetch_add(&t->done[part], 1);
        GOMP_barrier();
        for (uint32_t i = 0; i < parts; i++) {
            atomic_fetch_add(&t->wrong, t->done[i] < round);
        }
        GOMP_barrier();
        atomic_fetch_add(&t->wrong, t->done[part] != round);
    }
}

CHECK_CASE(test_barriers)
{
    (void)env;
    for (uint32_t i = 0; i < 50; i++) {
        tally t = {0};
        tally *const work = &t;
        graft_share((int)(2 + i % 4), meet, &work);
        assert_int_equal(t.wrong, 0);
    }
    GOMP_barrier(); /* Of one thread. */
}

CHECK_CASE(test_after_a_fork)
{
    int status = -1;
    (void)env;
    assert_true(many_regions());
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(many_regions() ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(many_regions());
}
