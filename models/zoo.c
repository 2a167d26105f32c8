/* zoo.c - the table of models, and opening one by name (see zoo.h). */
#include "models/zoo.h"
#include "graph/file.h"
#include "models/nets.h"

#include <string.h>

/* Old enough for every runtime in use, new enough for a Softmax with one axis. */
enum { ZOO_OPSET = 13 };

static const graft_zoo_entry zoo[] = {
    {"resnet50",   "ResNet-50 v1.5 for 224 x 224 images (He et al. 2016; as in torchvision)",
     graft_build_resnet50,   25557032, 4089000000, 1e6},
    {"squeezenet", "SqueezeNet 1.1 for 224 x 224 images (Iandola et al. 2016; as in torchvision)",
     graft_build_squeezenet, 1235496,  349000000,  1e6},
    {"dscnn",      "DS-CNN for keyword spotting (Zhang et al. 2017; as in MLPerf Tiny)",
     graft_build_dscnn,      23756,    2700000,    1e5},
};

const graft_zoo_entry *graft_zoo(uint32_t *count)
{
    *count = sizeof(zoo) / sizeof(zoo[0]);
    return zoo;
}

static const graft_zoo_entry *find_entry(const char *name)
{
    for (size_t i = 0; i < sizeof(zoo) / sizeof(zoo[0]); i++) {
        if (strcmp(zoo[i].name, name) == 0) {
            return &zoo[i];
        }
    }
    return NULL;
}

graft_status graft_zoo_find(graft_env *env, const char *name, const graft_zoo_entry **entry)
{
    const graft_zoo_entry *found = find_entry(name);
    if (found == NULL) {
        graft_mark mark = graft_arena_mark(env->scratch);
        graft_buffer names = {.arena = env->scratch};
        for (size_t i = 0; i < sizeof(zoo) / sizeof(zoo[0]); i++) {
            graft_buffer_printf(&names, "%s%s", i == 0 ? "" : ", ", zoo[i].name);
        }
        graft_status status =
            GRAFT_FAIL(env, GRAFT_BAD_INPUT, "no model '%s': it is neither a file nor one of %s",
                       name, names.data);
        graft_arena_release(env->scratch, mark);
        return status;
    }
    *entry = found;
    return GRAFT_OK;
}

static Onnx__ModelProto *build_entry(graft_arena *arena, const graft_zoo_entry *entry,
                                     uint64_t seed)
{
    graft_builder *builder = graft_builder_new(arena, entry->name, ZOO_OPSET, seed);
    entry->build(builder);
    return graft_builder_finish(builder);
}

graft_status graft_zoo_build(graft_env *env, const char *name, uint64_t seed, const char *path)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    const graft_zoo_entry *entry = NULL;
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_CHECK(graft_zoo_find(env, name, &entry));
    graft_wire_encode(env->scratch, &build_entry(env->scratch, entry, seed)->base, &data, &size);
    GRAFT_TRY(env, graft_file_write(env, path, data, size), "while writing the model %s", name);
done:
    graft_arena_release(env->scratch, mark);
    return status;
}

/* What is meant as a path: it says so, or there is a file of that name. */
static bool is_path(const char *name)
{
    size_t size = strlen(name);
    return strchr(name, '/') != NULL || (size > 5 && strcmp(name + size - 5, ".onnx") == 0) ||
           graft_file_exists(name);
}

graft_status graft_model_open(graft_env *env, graft_arena *arena, const char *name,
                              const graft_model_options *options, graft_model **model)
{
    graft_status status = GRAFT_OK;
    const graft_zoo_entry *entry = find_entry(name);
    if (entry == NULL && is_path(name)) {
        return graft_model_read(env, arena, name, options, model);
    }
    GRAFT_CHECK(graft_zoo_find(env, name, &entry));
    graft_onnx_source source = {.proto = build_entry(arena, entry, GRAFT_ZOO_SEED), .file = name};
    status = graft_onnx_read_message(env, arena, &source, options, model);
done:
    return status;
}
