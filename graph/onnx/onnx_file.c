/* onnx_file.c - an ONNX message becomes bytes and a file, its weights beside it where they are
 * large (see onnx_write.h). */
#include "graph/base/file.h"
#include "graph/onnx/onnx_write.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

graft_status graft_model_pack(graft_env *env, graft_arena *arena, const graft_model *model,
                              const graft_graph *graph, uint8_t **data, size_t *size)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    Onnx__ModelProto proto;
    Onnx__GraphProto onnx_graph;
    GRAFT_CHECK(graft_onnx_make_message(env, model, graph, false, &proto, &onnx_graph));
    graft_wire_encode(arena, &proto.base, data, size);
done:
    if (arena != env->scratch) { /* There the result lies behind the mark. */
        graft_arena_release(env->scratch, mark);
    }
    return status;
}

/* Writes the weights beside the model. Their file is named by its content: whoever stops the
 * program between the two writes leaves an older model with its own weights. */
static graft_status write_weights(graft_env *env, const char *path, Onnx__GraphProto *graph)
{
    size_t size = graft_onnx_external_bytes(graph);
    if (size == 0) {
        return GRAFT_OK;
    }
    uint8_t *data = graft_arena_alloc(env->scratch, size);
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    graft_onnx_store_external(env->scratch, graph, "", data);
    char *location = graft_arena_printf(env->scratch, "%s.%016" PRIx64 ".data", base,
                                        (uint64_t)XXH3_64bits(data, size));
    for (size_t i = 0; i < graph->n_initializer; i++) {
        Onnx__TensorProto *tensor = graph->initializer[i];
        if (tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
            tensor->external_data[0]->value = location;
        }
    }
    char *file = graft_arena_printf(env->scratch, "%.*s%s", (int)(base - path), path, location);
    GRAFT_PASS_IN(env, graft_file_write(env, file, data, size), "while writing the weights of %s",
                  path);
    return GRAFT_OK;
}

graft_status graft_onnx_write_message(graft_env *env, const char *path, Onnx__ModelProto *proto,
                                      bool external)
{
    if (external || graft_onnx_external_bytes(proto->graph) > GRAFT_ONNX_INLINE_MOST) {
        GRAFT_PASS(write_weights(env, path, proto->graph));
    }
    GRAFT_PASS_IN(env, graft_wire_write(env, path, &proto->base), "while writing the model");
    return GRAFT_OK;
}

graft_status graft_model_write(graft_env *env, const graft_model *model, const graft_graph *graph,
                               const char *path, const graft_model_write_options *options)
{
    GRAFT_SCOPED(env->scratch);
    Onnx__ModelProto proto;
    Onnx__GraphProto onnx_graph;
    GRAFT_PASS(graft_onnx_make_message(env, model, graph, options != NULL && options->simplify,
                                       &proto, &onnx_graph));
    return graft_onnx_write_message(env, path, &proto, options != NULL && options->external_data);
}
