/* command_graph.c - `graft emit-graph` (see command.h). */
#include "emit/command.h"
#include "emit/graphtable.h"
#include "graph/json.h"
#include "graph/log.h"
#include "models/zoo.h"

#include <string.h>

/* A model's name without folder and ending. */
static const char *base_name(graft_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name);
    return graft_arena_printf(arena, "%.*s", (int)length, name);
}

static graft_status parse(graft_env *env, int argc, char **argv, const char *words[2],
                          const char **name)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--name") == 0 && i + 1 < argc) {
            *name = argv[++i];
        } else if (argv[i][0] == '-' || count == 2) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "emit-graph does not understand '%s'", argv[i]);
        } else {
            words[count++] = argv[i];
        }
    }
    if (count < 2) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "emit-graph needs a model and the header to write");
    }
    return GRAFT_OK;
}

graft_status graft_command_emit_graph(graft_env *env, int argc, char **argv)
{
    graft_status status = GRAFT_OK;
    const char *words[2] = {NULL, NULL};
    const char *name = NULL;
    graft_model *model = NULL;
    GRAFT_CHECK(parse(env, argc, argv, words, &name));
    GRAFT_CHECK(graft_model_open(env, env->life, words[0], NULL, &model));
    name = name != NULL ? name : base_name(env->life, words[0]);
    GRAFT_CHECK(graft_graphtable_write(env, &model->graph, name, words[1]));
    graft_log(env, 1, "wrote %s: %u nodes, %u of them opaque", words[1],
              graft_graph_node_count(&model->graph), model->opaque_count);
    if (env->json) {
        graft_json json;
        graft_json_begin(&json, env->scratch);
        graft_json_string(&json, "file", words[1]);
        graft_json_integer(&json, "nodes", graft_graph_node_count(&model->graph));
        graft_json_integer(&json, "opaque", model->opaque_count);
        graft_json_end(&json, stdout);
    }
done:
    return status;
}
