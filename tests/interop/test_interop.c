/* test_interop.c - what Graft writes, held against the ONNX project's own checker and against
 * onnxruntime: models of the zoo and the conformance cases, with every known node generated anew
 * and with fused nodes. The Python side is check_onnx.py; python.sh finds or installs what it
 * needs. */
#include "graph/base/file.h"
#include "models/zoo.h"
#include "tests/support/check.h"
#include "tests/support/onnx_data.h"
#include "tests/support/onnx_text.h"
#include "tests/support/variants.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the largest element: runtimes take sums in another order, weights are multiplied beforehand.
 */
static const char reassociated[] = "2e-4";

typedef struct {
    graft_env *env;
    graft_buffer list; /* For check_onnx.py. */
    uint32_t pair_count;
} pair_list;

static const char *out_folder(void)
{
    const char *out = getenv("OUT");
    return out == NULL ? "out/release" : out;
}

/* Runs a program to its end; what it prints is in *text. True when it succeeded. */
static bool run_program(char *const *arguments, const char **text)
{
    pid_t child = 0;
    int status = 0;
    posix_spawn_file_actions_t actions;
    char *log = check_path("log");
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log,
                                                      O_WRONLY | O_CREAT | O_TRUNC, 0600),
                     0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO), 0);
    assert_int_equal(posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(posix_spawn_file_actions_destroy(&actions), 0);
    *text = check_text(log);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The Python to use, in env->life; skips the case when there is none. */
static char *find_python(graft_env *env)
{
    char script[] = "cost/rival/python.sh";
    char shell[] = "sh";
    char *arguments[] = {shell, script, graft_arena_printf(env->life, "%s/../venv", out_folder()),
                         NULL};
    const char *text = NULL;
    bool found = run_program(arguments, &text);
    char *line = graft_arena_printf(env->life, "%.*s", (int)strcspn(text, "\n"), text);
    if (!found) {
        CHECK_SKIP("%s", line);
    }
    return line;
}

/* What check_onnx.py says of the list. */
static bool run_check(pair_list *pairs, char *python, const char *kind, const char **text)
{
    char script[] = "tests/interop/check_onnx.py";
    char *path = check_path("list");
    char *arguments[] = {python, script, graft_arena_strdup(pairs->env->life, kind), path, NULL};
    CHECK_OK(graft_file_write(pairs->env, path, pairs->list.data, pairs->list.size));
    return run_program(arguments, text);
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
    const char *path = graft_arena_printf(pairs->env->life, "%s/%u.%s.onnx", check_folder(),
                                          pairs->pair_count, kind);
    graft_status status = graft_model_write(pairs->env, model, graph, path, NULL);
    if (status == GRAFT_UNSUPPORTED) {
        assert_non_null(strstr(pairs->env->message, "opset"));
        graft_env_clear(pairs->env);
        return NULL;
    }
    assert_string_equal(pairs->env->message, "");
    CHECK_OK(status);
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

/* Checks all lines; prints what failed. The result is how many were run and compared. */
static uint32_t check_all(pair_list *pairs, char *python, const char *kind)
{
    const char *text = NULL;
    bool passed = run_check(pairs, python, kind, &text);
    print_message("# %s", text);
    assert_true(passed);
    char *all = graft_arena_printf(pairs->env->life, "%u %s, ", pairs->pair_count, kind);
    const char *counts = strstr(text, all); /* The last line. */
    assert_non_null(counts);
    return (uint32_t)strtoul(counts + strlen(all), NULL, 10);
}

static bool has_runtime(char *python)
{
    char option[] = "-c";
    char script[] = "import onnxruntime";
    char *arguments[] = {python, option, script, NULL};
    const char *text = NULL;
    return run_program(arguments, &text);
}

CHECK_CASE(test_zoo)
{
    uint32_t count = 0;
    char *python = find_python(env);
    const graft_zoo_entry *zoo = graft_zoo(&count);
    pair_list pairs = {.env = env, .list = {.arena = env->life}};
    for (uint32_t i = 0; i < count; i++) {
        graft_model *model = NULL;
        CHECK_OK(graft_zoo_open(env, env->unit, &zoo[i], true, &model));
        add_variants(&pairs, model);
        graft_arena_reset(env->unit);
    }
    uint32_t compared = check_all(&pairs, python, "pairs");
    assert_true(pairs.pair_count >= count);
    assert_int_equal(compared, has_runtime(python) ? pairs.pair_count : 0);
}

CHECK_CASE(test_conformance_cases)
{
    uint32_t count = 0;
    char *python = find_python(env);
    const char *const *names = onnx_data_list(env->life, &count);
    if (count == 0) {
        CHECK_SKIP("no conformance cases; install libonnx-testdata or set GRAFT_ONNX_TESTDATA");
    }
    pair_list pairs = {.env = env, .list = {.arena = env->life}};
    for (uint32_t i = 0; i < count; i++) {
        onnx_case loaded;
        if (onnx_data_load(env, env->unit, names[i], true, &loaded) == GRAFT_OK) {
            add_variants(&pairs, loaded.model);
        }
        graft_env_clear(env);
        graft_arena_reset(env->unit);
    }
    uint32_t compared = check_all(&pairs, python, "pairs");
    assert_true(compared > pairs.pair_count / 2 || !has_runtime(python));
}

/* Files of IR version 3 from the onnx package, their weights made by ConstantOfShape and listed
 * among the inputs: they come back with the same inputs, as large as before, and compute the same.
 */
CHECK_CASE(test_old_files)
{
    static const char *const names[] = {"squeezenet", "shufflenet", "inception_v2"};
    char *python = find_python(env);
    char option[] = "-c";
    char script[] = "import onnx.backend.test.data.light as l; print(list(l.__path__)[0])";
    char *arguments[] = {python, option, script, NULL};
    const char *text = NULL;
    if (!run_program(arguments, &text)) {
        CHECK_SKIP("this onnx package has no light models");
    }
    const char *folder = graft_arena_printf(env->life, "%.*s", (int)strcspn(text, "\n"), text);
    pair_list pairs = {.env = env, .list = {.arena = env->life}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *path = graft_arena_printf(env->life, "%s/light_%s.onnx", folder, names[i]);
        graft_model *model = NULL;
        graft_model *again = NULL;
        uint32_t applied = 0;
        uint8_t *data = NULL;
        size_t before = 0;
        size_t after = 0;
        CHECK_OK(graft_model_read(env, env->unit, path, NULL, &model));
        const char *out =
            write_graph(&pairs, model, variant_fused(env, env->unit, model, &applied), names[i]);
        assert_true(out != NULL && applied > 0);
        CHECK_OK(graft_model_read(env, env->unit, out, NULL, &again));
        assert_int_equal(again->onnx->proto->graph->n_input,
                         again->onnx->proto->ir_version == 3
                             ? again->input_count + again->onnx->proto->graph->n_initializer
                             : again->input_count);
        CHECK_OK(graft_file_read(env, env->unit, path, &data, &before));
        CHECK_OK(graft_file_read(env, env->unit, out, &data, &after));
        print_message("# %s: IR %d -> %d, %zu -> %zu bytes, %u rewrites\n", names[i],
                      (int)model->onnx->proto->ir_version, (int)again->onnx->proto->ir_version,
                      before, after, applied);
        add_pair(&pairs, path, out, reassociated);
        graft_arena_reset(env->unit);
    }
    assert_int_equal(check_all(&pairs, python, "pairs"),
                     has_runtime(python) ? pairs.pair_count : 0);
}

/* A check that finds nothing is worth nothing: a changed weight must be seen. */
CHECK_CASE(test_differences_are_found)
{
    graft_model *model = NULL;
    char *python = find_python(env);
    pair_list pairs = {.env = env, .list = {.arena = env->life}};
    char *other = check_path("other.onnx");
    CHECK_OK(graft_model_open(env, env->unit, "dscnn", NULL, &model));
    const char *original = write_graph(&pairs, model, &model->graph, "original");
    CHECK_OK(graft_zoo_build(env, "dscnn", GRAFT_ZOO_SEED + 1, other));
    add_pair(&pairs, original, other, reassociated);
    const char *text = NULL;
    bool passed = run_check(&pairs, python, "pairs", &text);
    if (has_runtime(python)) {
        assert_false(passed);
        assert_non_null(strstr(text, "output 0 differs"));
    }
}

/* ------------------------------------------------------------------------------ outputs */

static void write_values(pair_list *list, const char *path, const graft_shape *shape,
                         const void *data)
{
    CHECK_OK(graft_file_write(list->env, path, data, (size_t)graft_shape_bytes(shape)));
}

/* Runs the model with the reference executor; its inputs and outputs go into files, and what is
 * written for `form` of its graph, unless the model's opset is too old for that. */
static void add_outputs(pair_list *list, const graft_model *model, const graft_graph *form)
{
    graft_env *env = list->env;
    const graft_graph *graph = &model->graph;
    const char *base = graft_arena_printf(env->life, "%s/m%u", check_folder(), list->pair_count);
    const graft_status status =
        graft_model_write(env, model, form, graft_arena_printf(env->life, "%s.onnx", base), NULL);
    if (status == GRAFT_UNSUPPORTED) {
        assert_non_null(strstr(env->message, "opset"));
        graft_env_clear(env);
        return;
    }
    CHECK_OK(status);
    list->pair_count++;
    const float **values = variant_run(env, model, graph, 31);
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        if (value->kind == GRAFT_VALUE_INPUT) {
            write_values(list, graft_arena_printf(env->life, "%s.in%u", base, value->source),
                         &value->shape, values[v]);
        }
    }
    for (uint32_t k = 0; k < graph->output_count; k++) {
        graft_index v = graph->outputs[k];
        write_values(list, graft_arena_printf(env->life, "%s.out%u", base, k),
                     &graph->values[v].shape, values[v]);
    }
    graft_buffer_printf(&list->list, "%s\t%s\n", base, reassociated);
}

/* Operators that no conformance case of this age has, in the forms of later opsets. */
/* clang-format off */
static const char *const later_operators[] = {
    "opset 20; input x 3 40; node Gelu x -> y; output y 3 40",
    "opset 17; input x 2 3 40; weight s 40; weight b 40; node LayerNormalization x s b -> y; output y 2 3 40",
    "opset 18; input x 2 3 40; ints a = 1; node ReduceSum x a -> y : keepdims=0; output y 2 40",
    "opset 18; input x 2 3 40; ints a = 0 2; node ReduceMax x a -> y; output y 1 3 1",
    "opset 14; input x 2 30; node HardSwish x -> y; output y 2 30",
};
/* clang-format on */

/* What the reference executor computes for the zoo is what onnxruntime computes. */
CHECK_CASE(test_outputs)
{
    uint32_t count = 0;
    char *python = find_python(env);
    const graft_zoo_entry *zoo = graft_zoo(&count);
    pair_list list = {.env = env, .list = {.arena = env->life}};
    if (!has_runtime(python)) {
        CHECK_SKIP("onnxruntime cannot be installed");
    }
    for (uint32_t i = 0; i < count; i++) {
        graft_model *model = NULL;
        CHECK_OK(graft_zoo_open(env, env->unit, &zoo[i], true, &model));
        add_outputs(&list, model, &model->graph);
        graft_arena_reset(env->unit);
    }
    for (size_t i = 0; i < sizeof(later_operators) / sizeof(later_operators[0]); i++) {
        graft_model *model = onnx_text_model(env, later_operators[i]);
        assert_int_equal(model->opaque_count, 0);
        add_outputs(&list, model, &model->graph);
    }
    (void)check_all(&list, python, "outputs");
}

/* Operators that opsets say in different words, or older ones in parts; reading does not ask
 * whether the opset has them. */
/* clang-format off */
static const char *const worded_operators[] = {
    "input x 3 40; node Gelu x -> y; output y 3 40",
    "input x 2 3 40; weight s 40; weight b 40; node LayerNormalization x s b -> y; output y 2 3 40",
    "input x 2 3 40; weight s 40; node RMSNormalization x s -> y : epsilon=0.001; output y 2 3 40",
    "input x 2 30; node HardSwish x -> y; output y 2 30",
    "input x 2 30; node Swish x -> y : alpha=0.5; output y 2 30",
    "input x 2 30; node Mish x -> y; output y 2 30",
    "input x 2 3 40; node ReduceSum x -> y : keepdims=0; output y",
    "input x 2 3 40; node ReduceMean x -> y; output y 1 1 1",
    "input x 2 3 40; node ReduceMax x -> y; output y 1 1 1",
    "input x 2 3 40; node Softmax x -> y : axis=2; output y 2 3 40",
    "input x 2 3 40; node LogSoftmax x -> y : axis=2; output y 2 3 40",
    "input x 2 30; node Neg x -> t; node Abs t -> a; node Softplus a -> y; output y 2 30",
    "input x 2 4 6 6; node GlobalMaxPool x -> t; node Flatten t -> y; output y 2 4",
    "input x 2 4 6 6; node SpaceToDepth x -> y : blocksize=2; output y 2 16 3 3",
};
/* clang-format on */

/* In every opset that is written, onnxruntime computes of them what the reference executor does. */
CHECK_CASE(test_words_of_opsets)
{
    char *python = find_python(env);
    pair_list list = {.env = env, .list = {.arena = env->life}};
    if (!has_runtime(python)) {
        CHECK_SKIP("onnxruntime cannot be installed");
    }
    for (size_t i = 0; i < sizeof worded_operators / sizeof worded_operators[0]; i++) {
        for (int opset = GRAFT_ONNX_OPSET_WRITE; opset <= GRAFT_ONNX_OPSET_LAST; opset++) {
            graft_model *model = onnx_text_model(
                env, graft_arena_printf(env->unit, "opset %d; %s", opset, worded_operators[i]));
            if (model->opaque_count == 0) {
                add_outputs(&list, model, variant_regenerated(env->unit, model));
            }
            graft_arena_reset(env->unit);
        }
    }
    (void)check_all(&list, python, "outputs");
    assert_true(list.pair_count > 150);
}
