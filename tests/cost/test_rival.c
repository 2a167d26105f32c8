/* test_rival.c - the other runtime as a child process: it answers, and what it cannot do is said.
 */
#include "cost/measure/rival.h"
#include "models/zoo.h"
#include "tests/support/check.h"

CHECK_CASE(test_answers)
{
    graft_rival *rival = NULL;
    double run_ns = 0.0;
    char *path = check_path("dscnn.onnx");
    CHECK_OK(graft_zoo_build(env, "dscnn", GRAFT_ZOO_SEED, path));
    graft_status status = graft_rival_open(env, path, true, &rival);
    if (status == GRAFT_UNSUPPORTED) {
        CHECK_SKIP("%s", env->message);
    }
    CHECK_OK(status);
    for (uint32_t runs = 1; runs <= 100; runs *= 10) {
        CHECK_OK(graft_rival_time(env, rival, runs, &run_ns));
        assert_true(run_ns > 1e3 && run_ns < 1e9);
    }
    graft_rival_close(rival);
    graft_rival_close(NULL);
}

CHECK_CASE(test_model_that_is_not_there)
{
    graft_rival *rival = NULL;
    check_failed(env, graft_rival_open(env, "/nonexistent/none.onnx", false, &rival),
                 GRAFT_UNSUPPORTED, "onnxruntime");
    assert_null(rival);
}
