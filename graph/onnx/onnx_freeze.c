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
    if (info->type == NULL || info->type->tensor_type == NULL ||
        info->type->tensor_type->shape == NULL) {
        return;
    }
    const Onnx__TensorShapeProto *shape = info->type->tensor_type->shape;
    for (size_t i = 0; i < shape->n_dim; i++) {
        Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        const char *name = text_or_empty(dim->dim_param);
        if (name[0] == '\0') {
            name = graft_arena_printf(f->arena, "%s.%zu", text_or_empty(info->name), i);
        }
        if ((!dim->has_dim_value || dim->dim_value <= 0) && strcmp(name, f->size->name) == 0) {
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
    Onnx__StringStringEntryProto *entry = GRAFT_NEW(arena, Onnx__StringStringEntryProto, 1);
    Onnx__StringStringEntryProto **all =
        GRAFT_NEW(arena, Onnx__StringStringEntryProto *, proto->n_metadata_props + 1);
    onnx__string_string_entry_proto__init(entry);
    entry->key = graft_arena_printf(arena, "graft.frozen.%s", size->name);
    entry->value = graft_arena_printf(arena, "%d", size->value);
    if (proto->n_metadata_props > 0) {
        memcpy(all, proto->metadata_props, proto->n_metadata_props * sizeof(all[0]));
    }
    all[proto->n_metadata_props++] = entry;
    proto->metadata_props = all;
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
