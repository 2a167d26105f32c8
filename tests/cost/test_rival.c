/* test_rival.c - the other runtime as a child process: it answers, and what it cannot do is said.
 */
#include "cost/measure/rival.h"
#include "models/zoo.h"
#include "tests/support/check.h"

static void test_answers(void **state)
{
    graft_env *env = *state;
    graft_rival *rival = NULL;
    double run_ns = 0.0;
    char *folder = check_folder_make();
    char *path = graft_arena_printf(env->life, "%s/dscnn.onnx", folder);
    assert_int_equal(graft_zoo_build(env, "dscnn", GRAFT_ZOO_SEED, path), GRAFT_OK);
    graft_status status = graft_rival_open(env, path, true, &rival);
    check_folder_remove(folder);
    if (status == GRAFT_UNSUPPORTED) {
        CHECK_SKIP("%s", env->message);
    }
    assert_int_equal(status, GRAFT_OK);
    for (uint32_t runs = 1; runs <= 100; runs *= 10) {
        assert_int_equal(graft_rival_time(env, rival, runs, &run_ns), GRAFT_OK);
        assert_true(run_ns > 1e3 && run_ns < 1e9);
    }
    graft_rival_close(rival);
    graft_rival_close(NULL);
}

static void test_model_that_is_not_there(void **state)
{
    graft_env *env = *state;
    graft_rival *rival = NULL;
    check_failed(env, graft_rival_open(env, "/nonexistent/none.onnx", false, &rival),
                 GRAFT_UNSUPPORTED, "onnxruntime");
    assert_null(rival);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_answers),
        CHECK_TEST(test_model_that_is_not_there),
    };
    return cmocka_run_group_tests_name("rival", tests, NULL, NULL);
}
