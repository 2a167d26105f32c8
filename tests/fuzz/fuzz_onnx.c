/* fuzz_onnx.c - any bytes as an ONNX file: an error with a message, or a model whose graph is sound
 * and which can be written, also with every node generated anew by other algorithms and with
 * recurrent cells as nets, and read again. */
#include "graph/algorithms.h"
#include "graph/rolled.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Writes the graph and reads what was written. */
static void write_and_read(graft_env *env, const graft_model *model, const graft_graph *graph)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    graft_model *again = NULL;
    graft_status status = graft_model_pack(env, env->life, model, graph, &bytes, &size);
    if (status != GRAFT_OK) {
        /* Bad input: constants that no runtime could compute, such as places outside of a table.
         * Capacity: a weight that does not fit into its type. */
        require((status == GRAFT_UNSUPPORTED || status == GRAFT_BAD_INPUT ||
                 status == GRAFT_CAPACITY) &&
                env->message[0] != '\0');
        graft_env_clear(env);
        return;
    }
    status = graft_model_parse(env, env->life, (graft_bytes){"again", bytes, size}, NULL, &again);
    require(status == GRAFT_OK);
    require(again->output_count == model->output_count);
    require(again->input_count == model->input_count);
}

/* The last algorithm of each class. */
static void check_algorithms(graft_env *env, const graft_model *model)
{
    const char *path = graft_arena_printf(env->life, "/tmp/fuzz_onnx.%d.onnx", (int)getpid());
    graft_algorithms found;
    graft_model *again = NULL;
    graft_algorithms_find(env, model, &found);
    for (uint32_t c = 0; c < found.count; c++) {
        for (graft_algorithm a = GRAFT_ALGORITHM_OWN; a < GRAFT_ALGORITHM_COUNT; a++) {
            found.classes[c].chosen =
                (found.classes[c].others >> a & 1U) != 0 ? a : found.classes[c].chosen;
        }
    }
    if (found.count > 0) {
        require(graft_algorithms_write(env, &found, path) == GRAFT_OK);
        require(graft_model_read(env, env->life, path, NULL, &again) == GRAFT_OK);
        require(again->output_count == model->output_count);
        require(unlink(path) == 0);
    }
}

/* Recurrent cells as one node each. */
static void check_rolled(graft_env *env, const graft_model *model)
{
    const char *path = graft_arena_printf(env->life, "/tmp/fuzz_onnx.%d.onnx", (int)getpid());
    graft_model *again = NULL;
    uint32_t cells = 0;
    if (graft_rolled_write(env, model, path, &cells) != GRAFT_OK) {
        require(env->message[0] != '\0'); /* Weights that no runtime could compute. */
        graft_env_clear(env);
    } else if (cells > 0) {
        require(graft_model_read(env, env->life, path, NULL, &again) == GRAFT_OK);
        require(again->output_count == model->output_count);
        require(unlink(path) == 0);
    }
}

static void check_model(graft_env *env, const graft_model *model)
{
    size_t bytes = graft_order_bytes(&model->graph.limits);
    require(graft_graph_check(&model->graph, graft_arena_alloc(env->life, bytes), bytes) == NULL);
    write_and_read(env, model, &model->graph);
    check_algorithms(env, model);
    check_rolled(env, model);
    graft_graph *graph = graft_model_graph_copy(env->life, &model->graph);
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (graph->nodes[n].op != GRAFT_OP_OPAQUE) {
            graph->nodes[n].source = GRAFT_NONE;
        }
    }
    write_and_read(env, model, graph);
}

/* Weights that are computed may be large although the file is small. */
static bool is_small(const graft_model *model)
{
    uint64_t elements = 0;
    for (graft_index v = 0; v < model->graph.value_end; v++) {
        elements += graft_shape_elements(&model->graph.values[v].shape);
        if (elements > 1U << 20) {
            return false;
        }
    }
    return true;
}

/* Stands for whoever rewrites bodies: writes what was read of one. */
static graft_status rewrite_body(graft_env *env, void *context, const graft_model_body *body)
{
    const graft_model_bodies inner = {rewrite_body, NULL, context,
                                      graft_arena_printf(env->life, "%s.in", body->path)};
    const graft_model_options options = {
        .keep_open = true, .sizes = body->sizes, .size_count = body->size_count, .bodies = &inner};
    const graft_model_write_options writing = {.simplify = true};
    graft_model *model = NULL;
    GRAFT_PASS(graft_model_read(env, env->life, body->path, &options, &model));
    if (!is_small(model)) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "too large");
    }
    return graft_model_write(env, model, &model->graph, body->path, &writing);
}

/* What can be read as `options` say is whole; of what cannot there is a message. */
static void check_read(graft_env *env, const uint8_t *data, size_t size,
                       const graft_model_options *options)
{
    graft_model *model = NULL;
    graft_env_clear(env);
    if (graft_model_parse(env, env->life, (graft_bytes){"fuzz", data, size}, options, &model) ==
        GRAFT_OK) {
        if (is_small(model)) {
            check_model(env, model);
        }
    } else {
        require(env->message[0] != '\0' && model == NULL);
    }
}

/* What a stage hands on, as if it had run: small whole numbers, or next to nothing. */
static graft_model_told *make_told(graft_env *env, const graft_model *model, uint32_t *count)
{
    graft_model_told *told =
        GRAFT_NEW(env->life, graft_model_told, model->told_count + model->output_count);
    *count = 0;
    for (uint32_t k = 0; k < model->told_count; k++) {
        told[(*count)++] = model->told[k];
    }
    for (uint32_t k = 0; k < model->output_count; k++) {
        const graft_shape *shape = &model->outputs[k].shape;
        const size_t bytes = (size_t)graft_shape_bytes(shape);
        uint8_t *data = graft_arena_alloc(env->life, bytes);
        for (size_t i = 0; i < bytes; i += 8) {
            data[i] = (uint8_t)(i / 8 % 3);
        }
        if (bytes > 0) {
            told[(*count)++] = (graft_model_told){model->outputs[k].name, *shape, data};
        }
    }
    return told;
}

/* To be run in stages: each is whole, and of what cannot be read there is a message. */
static void check_stages(graft_env *env, const uint8_t *data, size_t size)
{
    enum { STAGES = 6 };
    graft_model_options options = {.as_binary32 = true, .flows = true, .staged = true};
    graft_model *model = NULL;
    graft_env_clear(env);
    graft_status status =
        graft_model_parse(env, env->life, (graft_bytes){"fuzz", data, size}, &options, &model);
    for (uint32_t i = 0; i < STAGES && status == GRAFT_OK && is_small(model); i++) {
        const size_t bytes = graft_order_bytes(&model->graph.limits);
        graft_model *next = NULL;
        require(graft_graph_check(&model->graph, graft_arena_alloc(env->life, bytes), bytes) ==
                NULL);
        if (model->rest == NULL) {
            return;
        }
        options.told = make_told(env, model, &options.told_count);
        status = graft_model_read_rest(env, env->life, model, &options, &next);
        model = next;
    }
    require(status == GRAFT_OK || env->message[0] != '\0');
}

/* With its sizes fixed; with those that the file leaves open kept so, and bodies rewritten; to be
 * run, with what bodies run, also in stages. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    graft_env env;
    require(graft_env_open(&env) == GRAFT_OK);
    env.verbosity = 0;
    const graft_model_bodies bodies = {
        rewrite_body, NULL, NULL,
        graft_arena_printf(env.life, "/tmp/fuzz_onnx.%d.body", (int)getpid())};
    const graft_model_options open = {.keep_open = true, .bodies = &bodies};
    const graft_model_options run = {.as_binary32 = true, .flows = true};
    check_read(&env, data, size, NULL);
    check_read(&env, data, size, &open);
    check_read(&env, data, size, &run);
    check_stages(&env, data, size);
    graft_env_close(&env);
    return 0;
}
