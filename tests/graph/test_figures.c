/* A benchmark's figures are in their file as soon as they are flushed, whole lines only, and stay
 * there however the benchmark ends. */
#include "graph/base/figures.h"

#include "graph/base/file.h"
#include "tests/support/check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void check_text(graft_env *env, const char *path, const char *want)
{
    uint8_t *data = NULL;
    size_t size = 0;
    CHECK_OK(graft_file_read(env, env->unit, path, &data, &size));
    assert_string_equal((const char *)data, want);
}

CHECK_CASE(test_grows_by_lines)
{
    graft_figures figures;
    const char *path = check_path("a/b.json");
    CHECK_OK(graft_figures_open(env, path, &figures));
    assert_false(graft_file_exists(path));
    (void)fputs("one\ntwo\nthr", figures.stream);
    assert_false(graft_file_exists(path));
    (void)fflush(figures.stream);
    check_text(env, path, "one\ntwo\n");
    (void)fputs("ee\n", figures.stream);
    (void)fflush(figures.stream);
    check_text(env, path, "one\ntwo\nthree\n");
    (void)fputs("four\n", figures.stream);
    assert_int_equal(graft_figures_close(&figures, GRAFT_INTERRUPTED), GRAFT_INTERRUPTED);
    check_text(env, path, "one\ntwo\nthree\nfour\n");
}

CHECK_CASE(test_more_than_a_buffer)
{
    graft_figures figures;
    graft_buffer want = {.arena = env->unit};
    const char *path = check_path("b.json");
    CHECK_OK(graft_figures_open(env, path, &figures));
    for (uint32_t i = 0; i < 5000; i++) {
        (void)fprintf(figures.stream, "line %u\n", i);
        graft_buffer_printf(&want, "line %u\n", i);
    }
    CHECK_OK(graft_figures_close(&figures, GRAFT_OK));
    check_text(env, path, want.data);
}

CHECK_CASE(test_none_replaces_the_last)
{
    graft_figures figures;
    const char *path = check_path("c.json");
    CHECK_OK(graft_file_write(env, path, "old\n", 4));
    CHECK_OK(graft_figures_open(env, path, &figures));
    assert_int_equal(graft_figures_close(&figures, GRAFT_BAD_INPUT), GRAFT_BAD_INPUT);
    check_text(env, path, "old\n"); /* It failed before its first figure. */
    CHECK_OK(graft_figures_open(env, path, &figures));
    CHECK_OK(graft_figures_close(&figures, GRAFT_OK));
    check_text(env, path, "");
}

CHECK_CASE(test_killed)
{
    const char *path = check_path("d.json");
    pid_t child = fork();
    if (child == 0) {
        graft_figures figures;
        if (graft_figures_open(env, path, &figures) == GRAFT_OK) {
            (void)fputs("one\n", figures.stream);
            (void)fflush(figures.stream);
            (void)fputs("two\n", figures.stream);
            (void)raise(SIGKILL);
        }
        _exit(1);
    }
    int ended = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended));
    check_text(env, path, "one\n");
}

CHECK_CASE(test_failure_to_write)
{
    graft_figures figures;
    const char *path = check_path("e.json");
    CHECK_OK(graft_file_make_folders(
        env, graft_arena_printf(env->unit, "%s/x", path))); /* A folder is in the way. */
    CHECK_OK(graft_figures_open(env, path, &figures));
    (void)fputs("one\n", figures.stream);
    (void)fflush(figures.stream);
    assert_int_equal(graft_figures_close(&figures, GRAFT_OK), GRAFT_IO);
    assert_non_null(strstr(env->message, path));
}

CHECK_CASE(test_figures_as_lines)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const graft_figure figure = {"a.b", "ms", 1.5, 0.25, 21};
    double sorted[] = {3.0, -1.0, 2.0};
    assert_non_null(out);
    graft_figure_print(env, out, &figure);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text,
                        "{\"name\": \"a.b\", \"unit\": \"ms\", \"median\": 1.5, \"spread\": 0.25, "
                        "\"rounds\": 21}\n");
    free(text);
    qsort(sorted, 3, sizeof sorted[0], graft_compare_doubles);
    assert_true(sorted[0] == -1.0 && sorted[1] == 2.0 && sorted[2] == 3.0);
}
