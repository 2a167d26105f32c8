/* command.c - `graft model` and `graft convert` (see command.h). */
#include "models/command.h"
#include "graph/json.h"
#include "models/zoo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES_MOST = 32 };

static graft_status parse_number(graft_env *env, const char *option, const char *text,
                                 uint64_t most, uint64_t *number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = text == NULL ? 0 : strtoull(text, &end, 10);
    if (text == NULL || text[0] < '0' || text[0] > '9' || errno != 0 || *end != '\0' ||
        value > most) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s needs a number up to %" PRIu64 ", has '%s'",
                          option, most, text == NULL ? "" : text);
    }
    *number = value;
    return GRAFT_OK;
}

/* ------------------------------------------------------------------------------ graft model */

static void list_models(graft_env *env)
{
    uint32_t count = 0;
    const graft_zoo_entry *entries = graft_zoo(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (!env->json) {
            (void)printf("%-12s %s\n", entries[i].name, entries[i].title);
            continue;
        }
        graft_json json;
        graft_json_begin(&json, env->scratch);
        graft_json_string(&json, "name", entries[i].name);
        graft_json_string(&json, "title", entries[i].title);
        graft_json_integer(&json, "parameters", (int64_t)entries[i].parameters);
        graft_json_integer(&json, "multiply_adds", (int64_t)entries[i].multiply_adds);
        graft_json_end(&json, stdout);
    }
}

graft_status graft_command_model(graft_env *env, int argc, char **argv)
{
    graft_status status = GRAFT_OK;
    uint64_t seed = GRAFT_ZOO_SEED;
    const char *words[2] = {NULL, NULL};
    int count = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0) {
            GRAFT_CHECK(
                parse_number(env, "--seed", i + 1 < argc ? argv[i + 1] : NULL, UINT64_MAX, &seed));
            i++;
        } else if (argv[i][0] == '-' || count == 2) {
            status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "model does not understand '%s'", argv[i]);
            goto done;
        } else {
            words[count++] = argv[i];
        }
    }
    if (count == 0) {
        list_models(env);
    } else if (count == 1) {
        const graft_zoo_entry *entry = NULL;
        GRAFT_CHECK(graft_zoo_find(env, words[0], &entry));
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "usage: graft model NAME OUT.onnx [--seed N]");
    } else {
        status = graft_zoo_build(env, words[0], seed, words[1]);
    }
done:
    return status;
}

/* ---------------------------------------------------------------------------- graft convert */

typedef struct {
    const char *words[2]; /* Input and output. */
    int word_count;
    graft_model_size sizes[SIZES_MOST];
    graft_model_options read;
    graft_model_write_options write;
} convert_options;

/* NAME=N; the text is cut at the last '='. */
static graft_status parse_size(graft_env *env, char *text, convert_options *options)
{
    char *equals = text == NULL ? NULL : strrchr(text, '=');
    uint64_t value = 0;
    if (equals == NULL || equals == text || options->read.size_count == SIZES_MOST) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "--size needs NAME=N, at most %d times, has '%s'",
                          SIZES_MOST, text == NULL ? "" : text);
    }
    graft_status status = parse_number(env, "--size", equals + 1, INT32_MAX, &value);
    if (status == GRAFT_OK) {
        *equals = '\0';
        options->sizes[options->read.size_count++] =
            (graft_model_size){.name = text, .value = (int32_t)value};
    }
    return status;
}

static graft_status parse_convert(graft_env *env, int argc, char **argv, convert_options *options)
{
    graft_status status = GRAFT_OK;
    options->read.sizes = options->sizes;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--size") == 0) {
            GRAFT_CHECK(parse_size(env, i + 1 < argc ? argv[i + 1] : NULL, options));
            i++;
        } else if (strcmp(argv[i], "--external-data") == 0) {
            options->write.external_data = true;
        } else if (argv[i][0] == '-' || options->word_count == 2) {
            status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "convert does not understand '%s'", argv[i]);
            goto done;
        } else {
            options->words[options->word_count++] = argv[i];
        }
    }
    if (options->word_count != 2) {
        status = GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                            "usage: graft convert IN OUT.onnx [--size NAME=N] [--external-data]");
    }
done:
    return status;
}

/* One line: what was read. */
static void report_model(graft_env *env, const graft_model *model, const char *out)
{
    graft_index nodes = graft_graph_node_count(&model->graph);
    graft_index active = graft_graph_active_count(&model->graph);
    if (!env->json) {
        (void)printf("%s: %u nodes, %u of them opaque, written to %s\n", model->file, active,
                     model->opaque_count, out);
        return;
    }
    graft_json json;
    graft_json_begin(&json, env->scratch);
    graft_json_string(&json, "model", model->file);
    graft_json_string(&json, "out", out);
    graft_json_integer(&json, "nodes", active);
    graft_json_integer(&json, "const_nodes", (int64_t)nodes - active);
    graft_json_integer(&json, "opaque", model->opaque_count);
    graft_json_end(&json, stdout);
}

graft_status graft_command_convert(graft_env *env, int argc, char **argv)
{
    graft_status status = GRAFT_OK;
    convert_options options = {.word_count = 0};
    graft_model *model = NULL;
    GRAFT_CHECK(parse_convert(env, argc, argv, &options));
    GRAFT_CHECK(graft_model_open(env, env->unit, options.words[0], &options.read, &model));
    GRAFT_CHECK(graft_model_write(env, model, &model->graph, options.words[1], &options.write));
    report_model(env, model, options.words[1]);
done:
    return status;
}
