/* test_zoo.c - the models of the zoo have the published sizes, open by name, survive the ONNX
 * writer byte for byte, and compute something: outputs finite, neither vanishing nor exploding. */
#include "models/zoo.h"
#include "tests/support/check.h"
#include "tests/support/variants.h"

#include <math.h>
#include <string.h>

/* Multiply-adds that go into one element of a node's output, as publications count them: those of
 * convolutions and matrix products. */
static uint64_t multiply_adds_of(const graft_graph *graph, graft_index n)
{
    const graft_node *node = &graph->nodes[n];
    const graft_shape *left = NULL;
    const graft_shape *right = NULL;
    switch (node->op) {
    case GRAFT_OP_conv:
    case GRAFT_OP_conv_bias:
        right = &graph->values[graft_node_input(graph, n, 1)].shape;
        return (uint64_t)right->dims[1] * (uint64_t)right->dims[2] * (uint64_t)right->dims[3];
    case GRAFT_OP_matmul:
    case GRAFT_OP_matmul_bias:
        left = &graph->values[graft_node_input(graph, n, 0)].shape;
        return (uint64_t)left->dims[left->rank - 1];
    default:
        return 0;
    }
}

static uint64_t count_multiply_adds(const graft_graph *graph)
{
    uint64_t sum = 0;
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (graph->nodes[n].op != GRAFT_OP_NONE && graph->nodes[n].op != GRAFT_OP_OPAQUE) {
            const graft_shape *out = &graph->values[graft_node_output(graph, n, 0)].shape;
            sum += multiply_adds_of(graph, n) * graft_shape_elements(out);
        }
    }
    return sum;
}

/* Weights of 8 bits, which are stored and changed to binary32 when a model is loaded. */
static uint32_t count_quantised(const Onnx__GraphProto *graph)
{
    uint32_t count = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        bool stored = false;
        for (size_t k = 0; k < graph->n_initializer; k++) {
            stored = stored || strcmp(graph->initializer[k]->name, graph->node[i]->input[0]) == 0;
        }
        count += stored && strcmp(graph->node[i]->op_type, "DequantizeLinear") == 0;
    }
    return count;
}

/* What Graft does not know in a model: whole-number inputs of BERT go through three operators, and
 * weights of 8 bits are left alone. */
static uint32_t opaque_expected(const graft_zoo_entry *entry, const graft_model *model)
{
    uint32_t quantised = count_quantised(model->onnx->proto->graph);
    assert_int_equal(quantised > 0, entry->is_quantised);
    return strcmp(entry->name, "bert") == 0 ? 4 : quantised;
}

CHECK_CASE(test_published_sizes)
{
    uint32_t count = 0;
    const graft_zoo_entry *zoo = graft_zoo(&count);
    assert_true(count >= 21);
    for (uint32_t i = 0; i < count; i++) {
        graft_model *model = NULL;
        graft_builder *builder = graft_builder_new(env->unit, zoo[i].name, 13, 1);
        if (zoo[i].is_quantised) {
            builder->quantises = true;
        }
        zoo[i].build(builder);
        graft_onnx_source source = {.proto = builder->model, .file = zoo[i].name};
        CHECK_OK(graft_onnx_read_message(env, env->unit, &source, NULL, &model));
        double multiply_adds = (double)count_multiply_adds(&model->graph);
        print_message("# %s: %llu parameters, %.0f multiply-adds, %u nodes\n", zoo[i].name,
                      (unsigned long long)builder->parameter_count, multiply_adds,
                      graft_graph_active_count(&model->graph));
        assert_int_equal(builder->parameter_count, zoo[i].parameters);
        assert_true(fabs(multiply_adds - (double)zoo[i].multiply_adds) <=
                    0.5 * zoo[i].multiply_adds_unit);
        assert_int_equal(model->opaque_count, opaque_expected(&zoo[i], model));
        graft_arena_reset(env->unit);
    }
}

static const uint64_t most_copied = 20000000;

CHECK_CASE(test_round_trip_of_files)
{
    uint32_t count = 0;
    const graft_zoo_entry *zoo = graft_zoo(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (zoo[i].parameters > most_copied) {
            continue; /* Hundreds of megabytes would show nothing new. */
        }
        char *built = graft_arena_printf(env->life, "%s/%s.onnx", check_folder(), zoo[i].name);
        char *copied =
            graft_arena_printf(env->life, "%s/%s.copy.onnx", check_folder(), zoo[i].name);
        graft_model *model = NULL;
        CHECK_OK(graft_zoo_build(env, zoo[i].name, 5, built));
        CHECK_OK(graft_model_open(env, env->unit, built, NULL, &model));
        CHECK_OK(graft_model_write(env, model, &model->graph, copied, NULL));
        check_same_files(built, copied);
        graft_arena_reset(env->unit);
    }
}

CHECK_CASE(test_unknown_name)
{
    graft_model *model = NULL;
    check_failed(env, graft_model_open(env, env->life, "resnet51", NULL, &model), GRAFT_BAD_INPUT,
                 "no model 'resnet51': it is neither a file nor one of resnet18, resnet50, ");
    check_failed(env, graft_model_open(env, env->life, "dscnn@0", NULL, &model), GRAFT_BAD_INPUT,
                 "no model 'dscnn@0'");
    check_failed(env, graft_model_open(env, env->life, "dscnn@2x", NULL, &model), GRAFT_BAD_INPUT,
                 "no model 'dscnn@2x'");
    check_failed(env, graft_model_open(env, env->life, "none.onnx", NULL, &model), GRAFT_IO,
                 "none.onnx: cannot open");
    check_failed(env, graft_zoo_build(env, "vgg", 1, "/nonexistent/x"), GRAFT_BAD_INPUT,
                 "no model 'vgg'");
    assert_null(model);
}

CHECK_CASE(test_lists)
{
    const char *path = check_path("a.onnx");
    const char **names = NULL;
    uint32_t count = 0;
    CHECK_OK(graft_zoo_build(env, "dscnn", 1, path));
    CHECK_OK(graft_model_names(
        env, env->life, graft_arena_printf(env->life, ",bert@8,%s,,dscnn,", path), &names, &count));
    assert_int_equal(count, 3);
    assert_string_equal(names[0], "bert@8");
    assert_string_equal(names[1], path);
    assert_string_equal(names[2], "dscnn");
    check_failed(env, graft_model_names(env, env->life, "dscnn,bert@0", &names, &count),
                 GRAFT_BAD_INPUT, "no model 'bert@0': it is neither a file nor one of resnet18, ");
    check_failed(env, graft_model_names(env, env->life, "dscnn,none.onnx,vgg", &names, &count),
                 GRAFT_IO, "none.onnx: cannot open");
    check_failed(env, graft_model_names(env, env->life, check_folder(), &names, &count), GRAFT_IO,
                 "cannot read: is a folder");
    check_failed(env, graft_model_names(env, env->life, ",", &names, &count), GRAFT_BAD_INPUT,
                 "',' names no model");
    check_failed(env, graft_model_names(env, env->life, "dscnn,bert,dscnn", &names, &count),
                 GRAFT_BAD_INPUT, "'dscnn,bert,dscnn' names dscnn twice");
    assert_int_equal(count, 3); /* Untouched. */
}

/* Runs a model; the first output lies in env->unit. */
static const float *run_model(graft_env *env, const graft_model *model, size_t *count)
{
    const graft_graph *graph = &model->graph;
    *count = (size_t)graft_shape_elements(&graph->values[graph->outputs[0]].shape);
    return variant_run(env, model, graph, 11)[graph->outputs[0]];
}

/* Written with every node generated, and with fused nodes, DS-CNN computes what it did. */
CHECK_CASE(test_rewritten_model_computes_the_same)
{
    graft_model *model = NULL;
    uint32_t applied = 0;
    size_t count = 0;
    CHECK_OK(graft_model_open(env, env->life, "dscnn", NULL, &model));
    const float *expected = run_model(env, model, &count);
    const graft_graph *graphs[2] = {variant_regenerated(env->life, model),
                                    variant_fused(env, env->life, model, &applied)};
    assert_int_equal(graft_graph_active_count(graphs[1]), 13);
    float sum = 0.0F;
    for (size_t i = 0; i < count; i++) {
        sum += expected[i];
        assert_true(expected[i] > 0.001F && expected[i] < 0.9F);
    }
    assert_true(fabsf(sum - 1.0F) < 1e-5F);
    for (uint32_t g = 0; g < 2; g++) {
        uint8_t *data = NULL;
        size_t size = 0;
        graft_model *again = NULL;
        CHECK_OK(graft_model_pack(env, env->life, model, graphs[g], &data, &size));
        CHECK_OK(
            graft_model_parse(env, env->life, (graft_bytes){"again", data, size}, NULL, &again));
        const float *outputs = run_model(env, again, &count);
        for (size_t i = 0; i < count; i++) {
            assert_true(fabsf(outputs[i] - expected[i]) <= (g == 0 ? 0.0F : 1e-6F));
        }
    }
}

/* Models whose outputs are numbers of any size, and quick in plain loops. */
CHECK_CASE(test_outputs_are_lively)
{
    static const char *const names[] = {"squeezenet", "mobilenetv2", "nasnet",          "lstm",
                                        "nasrnn",     "autoencoder", "autoencoder_int8"};
    for (size_t m = 0; m < sizeof(names) / sizeof(names[0]); m++) {
        graft_model *model = NULL;
        size_t count = 0;
        double squares = 0.0;
        uint32_t nonzero = 0;
        CHECK_OK(graft_model_open(env, env->unit, names[m], NULL, &model));
        const float *outputs = run_model(env, model, &count);
        for (size_t i = 0; i < count; i++) {
            assert_true(isfinite(outputs[i]));
            squares += (double)outputs[i] * (double)outputs[i];
            nonzero += outputs[i] != 0.0F;
        }
        double deviation = sqrt(squares / (double)count);
        print_message("# %s: deviation %.3g\n", names[m], deviation);
        assert_true(deviation > 0.1 && deviation < 10.0);
        assert_true(nonzero > count / 2);
        graft_arena_reset(env->unit);
    }
}

/* Of several inputs at once: every model has its outputs for each and the same operators, and the
 * first input's outputs are what it has alone. */
CHECK_CASE(test_batches)
{
    uint32_t count = 0;
    const graft_zoo_entry *zoo = graft_zoo(&count);
    for (uint32_t i = 0; i < count; i++) {
        graft_model *models[2] = {NULL};
        for (uint32_t b = 0; b < 2; b++) {
            const char *name = graft_arena_printf(env->unit, "%s@%u", zoo[i].name, 2 * b + 1);
            CHECK_OK(graft_model_open(env, env->unit, name, NULL, &models[b]));
        }
        const graft_graph *one = &models[0]->graph;
        const graft_graph *three = &models[1]->graph;
        uint32_t opaque[2] = {0};
        for (uint32_t b = 0; b < 2; b++) {
            const graft_graph *graph = &models[b]->graph;
            for (graft_index n = 0; n < graph->node_end; n++) {
                opaque[b] += graph->nodes[n].op == GRAFT_OP_OPAQUE;
            }
        }
        assert_int_equal(opaque[0], opaque[1]);
        for (uint32_t k = 0; k < one->output_count; k++) {
            const graft_shape *single = &one->values[one->outputs[k]].shape;
            const graft_shape *several = &three->values[three->outputs[k]].shape;
            assert_int_equal(several->dims[0], 3);
            assert_int_equal(graft_shape_elements(several), 3 * graft_shape_elements(single));
        }
        graft_arena_reset(env->unit);
    }
    static const char *const names[2] = {"dscnn", "dscnn@2"};
    const float *outputs[2];
    size_t sizes[2] = {0};
    for (uint32_t b = 0; b < 2; b++) {
        graft_model *model = NULL;
        CHECK_OK(graft_model_open(env, env->life, names[b], NULL, &model));
        outputs[b] = run_model(env, model, &sizes[b]);
    }
    assert_int_equal(sizes[1], 2 * sizes[0]);
    assert_memory_equal(outputs[0], outputs[1], sizes[0] * sizeof(float));
    assert_memory_not_equal(outputs[0], outputs[1] + sizes[0], sizes[0] * sizeof(float));
}
