/* command.c - `graft model` and `graft convert` (see command.h). */
#include "models/command.h"
#include "graph/base/json.h"
#include "models/zoo.h"

/* ------------------------------------------------------------------------------ graft model */

typedef struct {
    const char *name;
    const char *out;
    uint64_t seed;
} model_choices;

static const graft_option model_options[] = {
    GRAFT_WORD(model_choices, name, "[MODEL]", "one of the zoo; without it they are listed"),
    GRAFT_WORD(model_choices, out, "[OUT.onnx]", "the file to write"),
    GRAFT_NUMBER(model_choices, seed, "--seed", "N", "1", 0, UINT64_MAX, "of the weights"),
};

static void list_models(graft_env *env)
{
    uint32_t count = 0;
    const graft_zoo_entry *entries = graft_zoo(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (!env->json) {
            (void)printf("%-12s %s\n", entries[i].name, entries[i].title);
            continue;
        }
        graft_json_print(env->scratch, stdout,
                         "name=%s title=%s parameters=%lld multiply_adds=%lld", entries[i].name,
                         entries[i].title, (long long)entries[i].parameters,
                         (long long)entries[i].multiply_adds);
    }
}

static graft_status run_model(graft_env *env, void *choices)
{
    const model_choices *c = choices;
    if (c->name == NULL) {
        list_models(env);
    } else if (c->out == NULL) {
        const graft_zoo_entry *entry = NULL;
        GRAFT_PASS(graft_zoo_find(env, c->name, &entry));
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                          "model: OUT.onnx is missing; usage: graft model "
                          "NAME OUT.onnx [--seed N]");
    } else {
        return graft_zoo_build(env, c->name, c->seed, c->out);
    }
    return GRAFT_OK;
}

const graft_command graft_command_model = {
    .name = "model",
    .summary = "write a model of the zoo, or list them",
    .forms =
        "graft model                     list the zoo\n"
        "graft model NAME[@BATCH] OUT.onnx   write one of its models, for so many inputs at once",
    GRAFT_TAKES(model_choices, model_options),
    .run = run_model,
};

/* ---------------------------------------------------------------------------- graft convert */

typedef struct {
    const char *in;
    const char *out;
    graft_option_list sizes;
    bool external_data;
} convert_choices;

static const graft_option convert_options[] = {
    GRAFT_WORD(convert_choices, in, "MODEL", "a name of the zoo or an ONNX file"),
    GRAFT_WORD(convert_choices, out, "OUT.onnx", "the file to write"),
    GRAFT_LIST(convert_choices, sizes, "--size", "NAME=N,...",
               "a value for a size that the model leaves open"),
    GRAFT_FLAG(convert_choices, external_data, "--external-data",
               "large weights into a file beside it"),
};

/* One line: what was read. */
static void report_model(graft_env *env, const graft_model *model, const char *out)
{
    graft_index nodes = graft_graph_node_count(&model->graph);
    graft_index active = graft_graph_active_count(&model->graph);
    if (!env->json) {
        (void)printf(
            "%s: %u nodes in the file, %u of them opaque; %u operators run; written to %s\n",
            model->file, model->onnx->node_count, model->opaque_count, active, out);
        return;
    }
    graft_json_print(env->scratch, stdout, "model=%s out=%s nodes=%u const_nodes=%lld opaque=%u",
                     model->file, out, active, (long long)nodes - active, model->opaque_count);
}

static graft_status run_convert(graft_env *env, void *choices)
{
    const convert_choices *c = choices;
    graft_model_options read = {.size_count = 0};
    const graft_model_write_options write = {.external_data = c->external_data};
    graft_model *model = NULL;
    GRAFT_PASS(graft_options_sizes(env, "--size", 1, &c->sizes, &read.sizes, &read.size_count));
    GRAFT_PASS(graft_model_open(env, env->unit, c->in, &read, &model));
    GRAFT_PASS(graft_model_write(env, model, &model->graph, c->out, &write));
    report_model(env, model, c->out);
    return GRAFT_OK;
}

const graft_command graft_command_convert = {
    .name = "convert",
    .summary = "read an ONNX model and write it again",
    GRAFT_TAKES(convert_choices, convert_options),
    .run = run_convert,
};
