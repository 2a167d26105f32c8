/* onnx_freeze.c - open sizes are fixed in a message before it is read: the file then is one that
 * never had them, but for a line of its metadata. */
#include "graph/base/log.h"
#include "graph/onnx/onnx.h"

#include <string.h>

/* One size, and how often it was found; without one, all that follow from those of the options. */
typedef struct {
    graft_arena *arena;
    const graft_model_options *options;
    const graft_model_size *size;
    uint32_t count;
} freezing;

static int32_t frozen_size(const freezing *f, const char *name)
{
    const graft_model_options *o = f->options;
    return f->size == NULL ? graft_onnx_evaluate_size(name, o->frozen, o->frozen_count)
           : strcmp(name, f->size->name) == 0 ? f->size->value
                                              : 0;
}

static void freeze_value(freezing *f, const Onnx__ValueInfoProto *info)
{
    const Onnx__TensorShapeProto *shape = graft_onnx_declared_shape(info->type);
    for (size_t i = 0; shape != NULL && i < shape->n_dim; i++) {
        Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        const char *name = graft_onnx_open_size(f->arena, info->name, shape, i);
        const int32_t value = name == NULL ? 0 : frozen_size(f, name);
        if (value > 0) {
            dim->has_dim_value = 1;
            dim->dim_value = value;
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

/* How often what is wanted was found among the inputs. */
static uint32_t freeze_graph(freezing *f, const Onnx__GraphProto *graph)
{
    freeze_values(f, graph->input, graph->n_input);
    const uint32_t count = f->count;
    freeze_values(f, graph->output, graph->n_output);
    freeze_values(f, graph->value_info, graph->n_value_info);
    return count;
}

graft_status graft_onnx_freeze(graft_env *env, graft_arena *arena, const graft_onnx_source *source,
                               const graft_model_options *options)
{
    Onnx__ModelProto *proto = source->proto;
    freezing f = {.arena = arena, .options = options};
    for (uint32_t i = 0; options != NULL && i < options->frozen_count; i++) {
        f.size = &options->frozen[i];
        f.count = 0;
        GRAFT_RETURN_IF(proto->graph == NULL || freeze_graph(&f, proto->graph) == 0,
                        GRAFT_FAIL(env, GRAFT_BAD_INPUT,
                                   "%s: has no open size '%s' among those of its inputs",
                                   source->file, f.size->name));
        add_metadata(arena, proto, f.size);
        graft_log(env, 1, "%s: the size '%s' is fixed at %d, in what is written too", source->file,
                  f.size->name, f.size->value);
    }
    if (f.size != NULL) {
        f.size = NULL;
        (void)freeze_graph(&f, proto->graph);
    }
    return GRAFT_OK;
}
