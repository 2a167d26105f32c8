/* test_interop.c - what Graft writes, held against the ONNX project's own checker and against
 * onnxruntime: models of the zoo and the conformance cases, with every known node generated anew
 * and with fused nodes. The Python side is check_onnx.py; python.sh finds or installs what it
 * needs. */
#include "graph/file.h"
#include "models/zoo.h"
#include "tests/support/check.h"
#include "tests/support/onnx_data.h"
#include "tests/support/variants.h"

#include <stdlib.h>
#include <string.h>

/* Of the largest element: runtimes take sums in another order, weights are multiplied beforehand. */
static const char reassociated[] = "2e-4";

typedef struct {
    graft_env *env;
    char *folder;
    graft_buffer list; /* For check_onnx.py. */
    uint32_t pair_count;
} pair_list;

static const char *out_folder(void)
{
    const char *out = getenv("OUT");
    return out == NULL ? "out/release" : out;
}

/* The first line that a command prints, and whether it succeeded. */
static bool run_line(const char *command, char *line, size_t size)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    line[0] = '\0';
    if (fgets(line, (int)size, pipe) != NULL) {
        line[strcspn(line, "\n")] = '\0';
    }
    return pclose(pipe) == 0;
}

/* The Python to use, in env->life; skips the case when there is none. */
static const char *find_python(graft_env *env)
{
    char line[512];
    const char *command =
        graft_arena_printf(env->life, "FOLDER=%s/../venv sh tests/interop/python.sh", out_folder());
    if (!run_line(command, line, sizeof(line))) {
        CHECK_SKIP("%s", line);
    }
    return graft_arena_strdup(env->life, line);
}

static void add_pair(pair_list *pairs, const char *original, const char *variant,
                     const char *tolerance)
{
    graft_buffer_printf(&pairs->list, "%s\t%s\t%s\n", original, variant, tolerance);
    pairs->pair_count++;
}

/* Writes a graph of the model as "<folder>/<number>.<kind>.onnx"; NULL when the model's opset is
 * too old for what was made, which is said plainly. */
static const char *write_graph(pair_list *pairs, const graft_model *model, const graft_graph *graph,
                               const char *kind)
{
    const char *path = graft_arena_printf(pairs->env->life, "%s/%u.%s.onnx", pairs->folder,
                                          pairs->pair_count, kind);
    graft_status status = graft_model_write(pairs->env, model, graph, path, NULL);
    if (status == GRAFT_UNSUPPORTED) {
        assert_non_null(strstr(pairs->env->message, "opset"));
        graft_env_clear(pairs->env);
        return NULL;
    }
    assert_string_equal(pairs->env->message, "");
    assert_int_equal(status, GRAFT_OK);
    return path;
}

static void add_variants(pair_list *pairs, const graft_model *model)
{
    uint32_t fused = 0;
    graft_env *env = pairs->env;
    const char *original = write_graph(pairs, model, &model->graph, "original");
    const char *path =
        write_graph(pairs, model, variant_regenerated(env->unit, model), "generated");
    if (path != NULL) {
        add_pair(pairs, original, path, reassociated);
    }
    const graft_graph *graph = variant_fused(env, env->unit, model, &fused);
    path = fused > 0 ? write_graph(pairs, model, graph, "fused") : NULL;
    if (path != NULL) {
        add_pair(pairs, original, path, reassociated);
    }
}

/* Runs check_onnx.py; prints what failed. The result is how many pairs were run and compared. */
static uint32_t check_pairs(pair_list *pairs, const char *python)
{
    char line[1024];
    unsigned counts[3] = {0, 0, 1};
    char *path = graft_arena_printf(pairs->env->life, "%s/list", pairs->folder);
    assert_int_equal(graft_file_write(pairs->env, path, pairs->list.data, pairs->list.size),
                     GRAFT_OK);
    FILE *pipe = popen(graft_arena_printf(pairs->env->life,
                                          "%s tests/interop/check_onnx.py %s 2>&1", python, path),
                       "r");
    assert_non_null(pipe);
    while (fgets(line, sizeof(line), pipe) != NULL) {
        print_message("# %s", line);
        (void)sscanf(line, "%u pairs, %u compared, %u failed", &counts[0], &counts[1], &counts[2]);
    }
    assert_int_equal(pclose(pipe), 0);
    assert_int_equal(counts[0], pairs->pair_count);
    assert_int_equal(counts[2], 0);
    return counts[1];
}

static bool has_runtime(graft_env *env, const char *python)
{
    char line[64];
    return run_line(graft_arena_printf(env->life, "%s -c 'import onnxruntime' 2>&1", python), line,
                    sizeof(line));
}

static void test_zoo(void **state)
{
    graft_env *env = *state;
    uint32_t count = 0;
    const char *python = find_python(env);
    const graft_zoo_entry *zoo = graft_zoo(&count);
    pair_list pairs = {.env = env, .folder = check_folder_make(), .list = {.arena = env->life}};
    for (uint32_t i = 0; i < count; i++) {
        graft_model *model = NULL;
        assert_int_equal(graft_model_open(env, env->unit, zoo[i].name, NULL, &model), GRAFT_OK);
        add_variants(&pairs, model);
        graft_arena_reset(env->unit);
    }
    uint32_t compared = check_pairs(&pairs, python);
    assert_int_equal(compared, has_runtime(env, python) ? 2 * count : 0);
    check_folder_remove(pairs.folder);
}

static void test_conformance_cases(void **state)
{
    graft_env *env = *state;
    uint32_t count = 0;
    const char *python = find_python(env);
    const char *const *names = onnx_data_list(env->life, &count);
    if (count == 0) {
        CHECK_SKIP("no conformance cases; install libonnx-testdata or set GRAFT_ONNX_TESTDATA");
    }
    pair_list pairs = {.env = env, .folder = check_folder_make(), .list = {.arena = env->life}};
    for (uint32_t i = 0; i < count; i++) {
        onnx_case loaded;
        if (onnx_data_load(env, env->unit, names[i], true, &loaded) == GRAFT_OK) {
            add_variants(&pairs, loaded.model);
        }
        graft_env_clear(env);
        graft_arena_reset(env->unit);
    }
    uint32_t compared = check_pairs(&pairs, python);
    assert_true(compared > pairs.pair_count / 2 || !has_runtime(env, python));
    check_folder_remove(pairs.folder);
}

/* A check that finds nothing is worth nothing: a changed weight must be seen. */
static void test_differences_are_found(void **state)
{
    graft_env *env = *state;
    graft_model *model = NULL;
    const char *python = find_python(env);
    pair_list pairs = {.env = env, .folder = check_folder_make(), .list = {.arena = env->life}};
    char *other = graft_arena_printf(env->life, "%s/other.onnx", pairs.folder);
    assert_int_equal(graft_model_open(env, env->unit, "dscnn", NULL, &model), GRAFT_OK);
    const char *original = write_graph(&pairs, model, &model->graph, "original");
    assert_int_equal(graft_zoo_build(env, "dscnn", GRAFT_ZOO_SEED + 1, other), GRAFT_OK);
    add_pair(&pairs, original, other, reassociated);
    char *path = graft_arena_printf(env->life, "%s/list", pairs.folder);
    char line[1024];
    assert_int_equal(graft_file_write(env, path, pairs.list.data, pairs.list.size), GRAFT_OK);
    bool passed = run_line(
        graft_arena_printf(env->life, "%s tests/interop/check_onnx.py %s 2>&1", python, path), line,
        sizeof(line));
    check_folder_remove(pairs.folder);
    if (has_runtime(env, python)) {
        assert_false(passed);
        assert_non_null(strstr(line, "output 0 differs"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(test_zoo),
        CHECK_TEST(test_conformance_cases),
        CHECK_TEST(test_differences_are_found),
    };
    return cmocka_run_group_tests_name("interop", tests, NULL, NULL);
}
