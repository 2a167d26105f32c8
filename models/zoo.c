/* zoo.c - the table of models, and opening one by name (see zoo.h). */
#include "models/zoo.h"
#include "graph/base/file.h"
#include "graph/base/options.h"
#include "models/nets.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Old enough for every runtime in use, new enough for a Softmax with one axis. */
enum { ZOO_OPSET = 13 };

/* clang-format off */
static const graft_zoo_entry zoo[] = {
    {"resnet18", "ResNet-18 for 224 x 224 images (He et al. 2016; as in torchvision)",
     graft_build_resnet18, NULL, false, 11689512, 1814000000, 1e6},
    {"resnet50", "ResNet-50 v1.5 for 224 x 224 images (He et al. 2016; as in torchvision)",
     graft_build_resnet50, NULL, false, 25557032, 4089000000, 1e6},
    {"resnext50", "ResNeXt-50 32x4d for 224 x 224 images (Xie et al. 2017; as in torchvision)",
     graft_build_resnext50, NULL, false, 25028904, 4230000000, 1e7},
    {"squeezenet", "SqueezeNet 1.1 for 224 x 224 images (Iandola et al. 2016; as in torchvision)",
     graft_build_squeezenet, NULL, false, 1235496, 349000000, 1e6},
    {"mobilenetv2", "MobileNetV2 for 224 x 224 images (Sandler et al. 2018; as in torchvision)",
     graft_build_mobilenetv2, NULL, false, 3504872, 300000000, 1e7},
    {"inceptionv3", "Inception v3 for 299 x 299 images (Szegedy et al. 2016; as in torchvision)",
     graft_build_inceptionv3, NULL, false, 23834568, 5710000000, 1e7},
    {"nasnet", "NASNet-A mobile for 224 x 224 images (Zoph et al. 2018; as in Cadene's port)",
     graft_build_nasnet, NULL, false, 5289978, 564000000, 4e7},
    {"bert", "BERT-base for 128 tokens (Devlin et al. 2019; as in Hugging Face's library)",
     graft_build_bert, graft_build_bert_small, false, 109482240, 11200000000, 1e8},
    {"vit", "ViT-base/16 for 224 x 224 images (Dosovitskiy et al. 2021; as in Hugging Face's library)",
     graft_build_vit, graft_build_vit_small, false, 86567656, 17560000000, 1e7},
    {"lstm", "LSTM of 256 units over 16 steps (Hochreiter and Schmidhuber 1997; as in Keras)",
     graft_build_lstm256, NULL, false, 525312, 8388608, 1},
    {"lstm512", "LSTM of 512 units over 16 steps (Hochreiter and Schmidhuber 1997; as in Keras)",
     graft_build_lstm512, NULL, false, 2099200, 33554432, 1},
    {"nasrnn", "NasRNN of 256 units over 5 steps (Zoph and Le 2017; as in TASO)",
     graft_build_nasrnn256, NULL, false, 1048576, 5242880, 1},
    {"nasrnn512", "NasRNN of 512 units over 5 steps (Zoph and Le 2017; as in TASO)",
     graft_build_nasrnn512, NULL, false, 4194304, 20971520, 1},
    {"dscnn", "DS-CNN for keyword spotting (Zhang et al. 2017; as in MLPerf Tiny)",
     graft_build_dscnn, NULL, false, 23756, 2700000, 1e5},
    {"resnet8", "ResNet-8 for 32 x 32 images (as in MLPerf Tiny)",
     graft_build_resnet8, NULL, false, 78186, 12500000, 1e5},
    {"mobilenetv1", "MobileNetV1 0.25 for 96 x 96 images (Howard et al. 2017; as in MLPerf Tiny)",
     graft_build_mobilenetv1, NULL, false, 216322, 7490000, 1e4},
    {"autoencoder", "Autoencoder for sounds of machines (as in MLPerf Tiny)",
     graft_build_autoencoder, NULL, false, 267928, 264192, 1},
    {"dscnn_int8", "DS-CNN in 8-bit numbers (as in MLPerf Tiny)",
     graft_build_dscnn, NULL, true, 22604, 2700000, 1e5},
    {"resnet8_int8", "ResNet-8 in 8-bit numbers (as in MLPerf Tiny)",
     graft_build_resnet8, NULL, true, 77706, 12500000, 1e5},
    {"mobilenetv1_int8", "MobileNetV1 0.25 in 8-bit numbers (as in MLPerf Tiny)",
     graft_build_mobilenetv1, NULL, true, 210850, 7490000, 1e4},
    {"autoencoder_int8", "Autoencoder for sounds in 8-bit numbers (as in MLPerf Tiny)",
     graft_build_autoencoder, NULL, true, 265864, 264192, 1},
};
/* clang-format on */

const graft_zoo_entry *graft_zoo(uint32_t *count)
{
    *count = sizeof(zoo) / sizeof(zoo[0]);
    return zoo;
}

/* "NAME" or "NAME@BATCH"; NULL when it is neither. */
static const graft_zoo_entry *find_entry(const char *name, int64_t *batch)
{
    enum { BATCH_MOST = 1024 };
    size_t size = strcspn(name, "@");
    char *end = NULL;
    long number = name[size] == '@' ? strtol(name + size + 1, &end, 10) : 1;
    bool fits = end == NULL || (end != name + size + 1 && *end == '\0' && number >= 1 &&
                                number <= BATCH_MOST && isdigit((unsigned char)name[size + 1]));
    *batch = number;
    for (size_t i = 0; fits && i < sizeof(zoo) / sizeof(zoo[0]); i++) {
        if (strlen(zoo[i].name) == size && strncmp(zoo[i].name, name, size) == 0) {
            return &zoo[i];
        }
    }
    return NULL;
}

graft_status graft_zoo_find(graft_env *env, const char *name, const graft_zoo_entry **entry)
{
    int64_t batch = 1;
    const graft_zoo_entry *found = find_entry(name, &batch);
    if (found == NULL) {
        GRAFT_SCOPED(env->scratch);
        graft_buffer names = {.arena = env->scratch};
        for (size_t i = 0; i < sizeof(zoo) / sizeof(zoo[0]); i++) {
            graft_buffer_printf(&names, "%s%s", i == 0 ? "" : ", ", zoo[i].name);
        }
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "no model '%s': it is neither a file nor one of %s",
                          name, names.data);
    }
    *entry = found;
    return GRAFT_OK;
}

static Onnx__ModelProto *build_entry(graft_arena *arena, const graft_zoo_entry *entry,
                                     uint64_t seed, int64_t batch, bool small)
{
    graft_builder *builder = graft_builder_new(arena, entry->name, ZOO_OPSET, seed);
    builder->batch = batch;
    builder->quantises = entry->is_quantised;
    if (small && entry->build_small != NULL) {
        entry->build_small(builder);
    } else {
        entry->build(builder);
    }
    return builder->model;
}

graft_status graft_zoo_open(graft_env *env, graft_arena *arena, const graft_zoo_entry *entry,
                            bool small, graft_model **model)
{
    graft_onnx_source source = {.proto = build_entry(arena, entry, GRAFT_ZOO_SEED, 1, small),
                                .file = entry->name};
    return graft_onnx_read_message(env, arena, &source, NULL, model);
}

graft_status graft_zoo_build(graft_env *env, const char *name, uint64_t seed, const char *path)
{
    GRAFT_SCOPED(env->scratch);
    const graft_zoo_entry *entry = NULL;
    uint8_t *data = NULL;
    size_t size = 0;
    int64_t batch = 1;
    GRAFT_PASS(graft_zoo_find(env, name, &entry));
    (void)find_entry(name, &batch);
    graft_wire_encode(env->scratch, &build_entry(env->scratch, entry, seed, batch, false)->base,
                      &data, &size);
    GRAFT_PASS_IN(env, graft_file_write(env, path, data, size), "while writing the model %s", name);
    return GRAFT_OK;
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
    int64_t batch = 1;
    const graft_zoo_entry *entry = find_entry(name, &batch);
    if (entry == NULL && is_path(name)) {
        return graft_model_read(env, arena, name, options, model);
    }
    GRAFT_PASS(graft_zoo_find(env, name, &entry));
    graft_onnx_source source = {.proto = build_entry(arena, entry, GRAFT_ZOO_SEED, batch, false),
                                .file = name};
    return graft_onnx_read_message(env, arena, &source, options, model);
}

/* That graft_model_open would find it. */
static graft_status check_name(graft_env *env, const char *name)
{
    int64_t batch = 1;
    const graft_zoo_entry *entry = find_entry(name, &batch);
    if (entry == NULL && is_path(name)) {
        return graft_file_check_readable(env, name);
    }
    return graft_zoo_find(env, name, &entry);
}

graft_status graft_model_names(graft_env *env, graft_arena *arena, const char *list,
                               const char ***names, uint32_t *count)
{
    uint32_t found_count = 0;
    const char **found = graft_options_names(arena, list, &found_count);
    for (uint32_t i = 0; i < found_count; i++) {
        GRAFT_PASS(check_name(env, found[i]));
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(found[k], found[i]) == 0) {
                return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "'%s' names %s twice", list, found[i]);
            }
        }
    }
    if (found_count == 0) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "'%s' names no model", list);
    }
    *names = found;
    *count = found_count;
    return GRAFT_OK;
}
