/* onnx_freeze.c - open sizes are fixed in a message before it is read: the file then is one that
 * never had them, but for a line of its metadata. */
#include "graph/base/log.h"
#include "graph/onnx/onnx.h"

#include <string.h>

/* One size, and how often it was found. */
typedef struct {
    graft_arena *arena;
    const graft_model_size *size;
    uint32_t count;
} freezing;

static void freeze_value(freezing *f, const Onnx__ValueInfoProto *info)
{
    const Onnx__TensorShapeProto *shape = graft_onnx_declared_shape(info->type);
    for (size_t i = 0; shape != NULL && i < shape->n_dim; i++) {
        Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        const char *name = graft_onnx_open_size(f->arena, info->name, shape, i);
        if (name != NULL && strcmp(name, f->size->name) == 0) {
            dim->has_dim_value = 1;
            dim->dim_value = f->size->value;
            dim->dim_param = NULL;
            f->count++;
        }
    }
}

static void freeze_values(freezing *f, Onnx__ValueInfoProto *const *infos, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        freeze_value(f, infos[i]);
    }
}

/* "graft.frozen.NAME" = the size. */
static void add_metadata(graft_arena *arena, Onnx__ModelProto *proto, const graft_model_size *size)
{
    Onnx__StringStringEntryProto *entry =
        graft_onnx_make_entry(arena, graft_arena_printf(arena, "graft.frozen.%s", size->name),
                              graft_arena_printf(arena, "%d", size->value));
    proto->metadata_props =
        graft_onnx_append(arena, proto->metadata_props, proto->n_metadata_props++, entry);
}

graft_status graft_onnx_freeze(graft_env *env, graft_arena *arena, const graft_onnx_source *source,
                               const graft_model_options *options)
{
    Onnx__ModelProto *proto = source->proto;
    for (uint32_t i = 0; options != NULL && i < options->frozen_count; i++) {
        freezing f = {.arena = arena, .size = &options->frozen[i]};
        if (proto->graph != NULL) {
            freeze_values(&f, proto->graph->input, proto->graph->n_input);
        }
        if (f.count == 0) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                              "%s: has no open size '%s' among those of its inputs", source->file,
                              f.size->name);
        }
        freeze_values(&f, proto->graph->output, proto->graph->n_output);
        freeze_values(&f, proto->graph->value_info, proto->graph->n_value_info);
        add_metadata(arena, proto, f.size);
        graft_log(env, 1, "%s: the size '%s' is fixed at %d, in what is written too", source->file,
                  f.size->name, f.size->value);
    }
    return GRAFT_OK;
}
