/* onnx_data.c - see onnx_data.h. */
#include "tests/support/onnx_data.h"

#include "graph/base/file.h"
#include "graph/base/half.h"
#include "graph/onnx/onnx.pb-c.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const char *data_folder(void)
{
    const char *folder = getenv("GRAFT_ONNX_TESTDATA");
    return folder == NULL ? "/usr/share/libonnx-testdata/data" : folder;
}

static const char *const groups[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};
enum { GROUP_COUNT = 4, MOST_CASES = 4096, MOST_TENSORS = 32 };

static int is_case(const struct dirent *entry) { return strncmp(entry->d_name, "test_", 5) == 0; }

const char *const *onnx_data_list(graft_arena *arena, uint32_t *count)
{
    const char **names = GRAFT_NEW(arena, const char *, MOST_CASES);
    *count = 0;
    for (uint32_t g = 0; g < GROUP_COUNT; g++) {
        struct dirent **entries = NULL;
        const char *path = graft_arena_printf(arena, "%s/%s", data_folder(), groups[g]);
        int found = scandir(path, &entries, is_case, alphasort);
        for (int i = 0; i < found; i++) {
            if (*count < MOST_CASES) {
                names[(*count)++] =
                    graft_arena_printf(arena, "%s/%s", groups[g], entries[i]->d_name);
            }
            free(entries[i]);
        }
        if (found >= 0) {
            free(entries);
        }
    }
    return names;
}

/* ----------------------------------------------------------------- tensors */

/* A protobuf-c allocator whose memory goes with the arena. */
static void *allocate_in(void *arena, size_t bytes) { return graft_arena_alloc(arena, bytes); }

static void leave_in(void *arena, void *memory) { (void)arena, (void)memory; }

/* Copies what fits into the engine's shapes; the rank is unknown otherwise. */
static graft_shape shape_of(const Onnx__TensorProto *tensor)
{
    graft_shape shape = {.rank = GRAFT_RANK_UNKNOWN, .dtype = (uint8_t)tensor->data_type};
    bool fits = tensor->n_dims <= GRAFT_MAX_RANK;
    for (size_t i = 0; fits && i < tensor->n_dims; i++) {
        fits = tensor->dims[i] > 0 && tensor->dims[i] <= INT32_MAX;
        shape.dims[i] = fits ? (int32_t)tensor->dims[i] : 0;
    }
    shape.rank = fits ? (uint8_t)tensor->n_dims : GRAFT_RANK_UNKNOWN;
    return shape;
}

static onnx_tensor view_tensor(graft_arena *arena, const Onnx__TensorProto *tensor)
{
    onnx_tensor view = {.name = tensor->name == NULL ? "" : tensor->name,
                        .shape = shape_of(tensor)};
    size_t bytes = (size_t)graft_shape_bytes(&view.shape);
    if (bytes > 0 && tensor->has_raw_data && tensor->raw_data.len == bytes) {
        void *copy = graft_arena_alloc(arena, bytes); /* Raw data may lie at any address. */
        memcpy(copy, tensor->raw_data.data, bytes);
        view.raw = copy;
    }
    if (graft_half_is((uint32_t)tensor->data_type) && view.raw != NULL) {
        float *wide = GRAFT_NEW(arena, float, bytes / sizeof(uint16_t));
        graft_half_widen((uint32_t)tensor->data_type, view.raw, bytes / sizeof(uint16_t), wide);
        view.data = wide;
    }
    if (tensor->data_type == GRAFT_DTYPE_F32 && bytes > 0) {
        bool listed = tensor->n_float_data * sizeof(float) == bytes;
        view.data = view.raw != NULL ? view.raw : listed ? tensor->float_data : NULL;
    }
    return view;
}

typedef struct {
    Onnx__TensorProto *items[MOST_TENSORS]; /* NULL past the last one. */
} tensor_list;

/* Reads PREFIX_0.pb, PREFIX_1.pb, ... of a case until there is none. */
static graft_status read_tensors(graft_env *env, graft_arena *arena, const char *prefix,
                                 tensor_list *list)
{
    graft_status status = GRAFT_OK;
    ProtobufCAllocator allocator = {allocate_in, leave_in, arena};
    for (uint32_t i = 0; i < MOST_TENSORS; i++) {
        const char *path = graft_arena_printf(arena, "%s_%u.pb", prefix, i);
        uint8_t *data = NULL;
        size_t size = 0;
        if (!graft_file_exists(path)) {
            break;
        }
        GRAFT_CHECK(graft_file_read(env, arena, path, &data, &size));
        list->items[i] = onnx__tensor_proto__unpack(&allocator, size, data);
        if (list->items[i] == NULL || list->items[i]->data_type == 0) {
            status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%s: not a tensor", path);
            goto done;
        }
    }
done:
    return status;
}

static const onnx_tensor *view_tensors(graft_arena *arena, const tensor_list *list, uint32_t *count)
{
    onnx_tensor *views = GRAFT_NEW(arena, onnx_tensor, MOST_TENSORS);
    for (*count = 0; *count < MOST_TENSORS && list->items[*count] != NULL; ++*count) {
        views[*count] = view_tensor(arena, list->items[*count]);
    }
    return views;
}

/* ------------------------------------------------------------------- cases */

static bool has_initializer(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        if (strcmp(graph->initializer[i]->name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Appends the case's inputs to the model's initializers, under the names of the graph's inputs. */
static void freeze_inputs(graft_arena *arena, Onnx__GraphProto *graph, const tensor_list *list,
                          onnx_data_form form)
{
    Onnx__TensorProto **all =
        GRAFT_NEW(arena, Onnx__TensorProto *, graph->n_initializer + graph->n_input);
    size_t total = graph->n_initializer;
    if (total > 0) {
        memcpy(all, graph->initializer, total * sizeof *all);
    }
    uint32_t next = 0;
    for (size_t i = 0; i < graph->n_input && next < MOST_TENSORS; i++) {
        if (has_initializer(graph, graph->input[i]->name)) {
            continue;
        }
        Onnx__TensorProto *tensor = list->items[next++];
        if (tensor != NULL &&
            (form == ONNX_DATA_CONSTANT || next > 1 || tensor->data_type != GRAFT_DTYPE_F32)) {
            tensor->name = graft_arena_strdup(arena, graph->input[i]->name);
            all[total++] = tensor;
        }
    }
    graph->initializer = all;
    graph->n_initializer = total;
}

static void raise_opset(const Onnx__ModelProto *proto)
{
    bool same = proto->graph->n_node == 1 &&
                strcmp(proto->graph->node[0]->op_type, "GlobalAveragePool") == 0;
    for (size_t i = 0; same && i < proto->n_opset_import; i++) {
        if (proto->opset_import[i]->version < 7) {
            proto->opset_import[i]->version = 7;
        }
    }
}

static graft_status read_model(graft_env *env, graft_arena *arena, const char *path,
                               onnx_data_form form, const tensor_list *inputs, graft_model **model)
{
    graft_status status = GRAFT_OK;
    static const graft_model_options to_run = {.as_binary32 = true};
    ProtobufCAllocator allocator = {allocate_in, leave_in, arena};
    uint8_t *data = NULL;
    size_t size = 0;
    GRAFT_CHECK(graft_file_read(env, arena, path, &data, &size));
    if (form != ONNX_DATA_AS_IS) {
        Onnx__ModelProto *proto = onnx__model_proto__unpack(&allocator, size, data);
        if (proto == NULL || proto->graph == NULL) {
            status = GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s: not a model", path);
            goto done;
        }
        freeze_inputs(arena, proto->graph, inputs, form);
        for (size_t i = 0; form == ONNX_DATA_UNDECLARED && i < proto->graph->n_output; i++) {
            proto->graph->output[i]->type = NULL;
        }
        raise_opset(proto);
        size = onnx__model_proto__get_packed_size(proto);
        data = graft_arena_alloc(arena, size);
        (void)onnx__model_proto__pack(proto, data);
    }
    GRAFT_CHECK(graft_model_parse(env, arena, (graft_bytes){path, data, size},
                                  form == ONNX_DATA_TO_RUN ? &to_run : NULL, model));
done:
    return status;
}

graft_status onnx_data_load(graft_env *env, graft_arena *arena, const char *name, bool frozen,
                            onnx_case *loaded)
{
    return onnx_data_load_as(env, arena, name, frozen ? ONNX_DATA_FROZEN : ONNX_DATA_AS_IS, loaded);
}

graft_status onnx_data_load_as(graft_env *env, graft_arena *arena, const char *name,
                               onnx_data_form form, onnx_case *loaded)
{
    graft_status status = GRAFT_OK;
    tensor_list inputs = {{NULL}};
    tensor_list outputs = {{NULL}};
    onnx_case result = {.name = name};
    const char *folder = graft_arena_printf(arena, "%s/%s", data_folder(), name);
    const char *data = graft_arena_printf(arena, "%s/test_data_set_0", folder);
    GRAFT_CHECK(read_tensors(env, arena, graft_arena_printf(arena, "%s/input", data), &inputs));
    GRAFT_CHECK(read_tensors(env, arena, graft_arena_printf(arena, "%s/output", data), &outputs));
    GRAFT_CHECK(read_model(env, arena, graft_arena_printf(arena, "%s/model.onnx", folder), form,
                           &inputs, &result.model));
    result.inputs = view_tensors(arena, &inputs, &result.input_count);
    result.outputs = view_tensors(arena, &outputs, &result.output_count);
    *loaded = result;
done:
    return status;
}
