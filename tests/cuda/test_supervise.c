/* Stages of `make gpu-check` that crash, lose the GPU or run out of time: what is left is done. */
#include "cost/measure/clock.h"
#include "gpu/check.h"
#include "tests/support/check.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 10, CRASHES = 3, LOSES = 5, HANGS = 7, WALL_CLOCK = 2 };

/* Shared with the processes of the stages: how often each item was begun. */
typedef struct {
    check_progress progress;
    uint32_t begun[ITEMS];
    bool is_faulty;
    bool is_hanging;
    uint32_t slow; /* The item during which time runs out. */
} shared_page;

static shared_page *page;

static graft_status stage(check_run *run)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (check_cut(run, i, ITEMS)) {
            break;
        }
        if (!check_begin(run, i)) {
            continue;
        }
        page->begun[i]++;
        if (i == page->slow) {
            run->progress->unfinished++;
            run->deadline_ns = 0;
        }
        if (page->is_faulty && i == CRASHES) {
            (void)raise(SIGKILL);
        }
        if (page->is_hanging && i == HANGS) {
            (void)pause();
        }
        if (page->is_faulty && i == LOSES) {
            run->progress->is_lost = true;
            check_fail(run, "lost");
        }
    }
    return GRAFT_OK;
}

static check_run begin(graft_env *env, bool is_faulty, uint32_t slow)
{
    if (page == NULL) {
        page = check_share(sizeof(*page));
        assert_non_null(page);
    }
    memset(page, 0, sizeof(*page));
    page->is_faulty = is_faulty;
    page->slow = slow;
    return (check_run){.env = env,
                       .progress = &page->progress,
                       .folder = check_folder(),
                       .sources = "one",
                       .hang_ns = 60000000000U,
                       .deadline_ns = graft_cost_clock_ns(WALL_CLOCK) + 60000000000U};
}

static void check_begun_once(void)
{
    for (uint32_t i = 0; i < ITEMS; i++) {
        assert_int_equal(page->begun[i], 1);
    }
}

CHECK_CASE(test_faults)
{
    check_run run = begin(env, true, ITEMS);
    check_supervise(&run, "faults", stage);
    check_begun_once();
    assert_int_equal(page->progress.failures, 2);
    assert_false(page->progress.is_cut);
    memset(page->begun, 0, sizeof(page->begun));
    check_supervise(&run, "faults", stage); /* It is known to be done, and how. */
    assert_int_equal(page->begun[0], 0);
    assert_int_equal(page->progress.failures, 2);
}

CHECK_CASE(test_time)
{
    check_run run = begin(env, false, 4);
    check_supervise(&run, "time", stage);
    assert_true(page->progress.is_cut);
    assert_int_equal(page->progress.next, 5);
    page->slow = ITEMS;
    check_supervise(&run, "time", stage);
    check_begun_once();
    assert_false(page->progress.is_cut);
    assert_int_equal(page->progress.failures, 0);
    memset(page->begun, 0, sizeof(page->begun));
    check_supervise(&run, "time", stage); /* For the one that was done by halves. */
    check_begun_once();
    memset(page->begun, 0, sizeof(page->begun));
    check_supervise(&run, "time", stage);
    assert_int_equal(page->begun[0], 0);
}

/* A kernel that never ends: its process is ended, and the next one goes on behind it. */
CHECK_CASE(test_hang)
{
    check_run run = begin(env, false, ITEMS);
    page->is_hanging = true;
    run.hang_ns = 300000000U;
    check_supervise(&run, "hang", stage);
    check_begun_once();
    assert_true(page->progress.failures >= 1);
    assert_false(page->progress.is_cut);
}

/* What a program of other sources did does not count, what one of the same did does, however often
 * it was built; every choice of types has a file of its own. */
CHECK_CASE(test_sources)
{
    check_run run = begin(env, false, ITEMS);
    check_supervise(&run, "sources", stage);
    check_supervise(&run, "sources", stage);
    check_begun_once();
    run.types = "fp16,bf16";
    check_supervise(&run, "sources", stage);
    assert_int_equal(page->begun[0], 2);
    run.sources = "two";
    check_supervise(&run, "sources", stage);
    assert_int_equal(page->begun[0], 3);
}

CHECK_CASE(test_choices)
{
    assert_true(check_is_chosen(NULL, "fp16"));
    assert_true(check_is_chosen("fp16,bf16", "bf16"));
    assert_true(check_is_chosen("fp16", "fp16"));
    assert_false(check_is_chosen("fp16,bf16", "fp1"));
    assert_false(check_is_chosen("bert,resnet50", "resnet"));
    assert_false(check_is_chosen("", "fp16"));
    assert_string_equal(check_types[0].name, "fp16"); /* What users want first. */
    assert_string_equal(check_types[1].name, "bf16");
    assert_string_equal(check_word(env->scratch, "1,8,32", 0), "1");
    assert_string_equal(check_word(env->scratch, "1,8,32", 2), "32");
    assert_null(check_word(env->scratch, "1,8,32", 3));
}
