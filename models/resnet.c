/* resnet.c - residual networks as torchvision has them: ResNet-18 and ResNet-50 (He et al., Deep
 * Residual Learning for Image Recognition, 2016, section 4.1, version 1.5: the stride is in the
 * 3 x 3 convolution of a bottleneck), and ResNeXt-50 32x4d (Xie et al., Aggregated Residual
 * Transformations for Deep Neural Networks, 2017), whose 3 x 3 convolutions have 32 groups. */
#include "models/nets.h"

enum { STAGES = 4, WIDTH = 64, IMAGE = 224, CLASSES = 1000 };

static const double epsilon = 1e-5;
/* A trained network's last scale in a block is small: the sum stays near its first term. */
static const double residual_gain = 0.3;

typedef struct {
    int blocks[STAGES];
    int64_t groups;    /* Of the 3 x 3 convolutions of bottlenecks. */
    int64_t wider;     /* Their channels, in multiples of the stage's width. */
    int64_t expansion; /* Outputs of a block, likewise; 1: blocks of two 3 x 3 convolutions. */
} resnet;

/* Convolution without bias, and normalisation. */
static graft_build_value add_conv_norm(graft_build_value x, const char *norm_name, double gain,
                                       const graft_conv_layer *conv)
{
    return graft_build_batch_norm(graft_build_conv(x, conv), norm_name, epsilon, gain);
}

typedef struct {
    const resnet *net;
    const char *name;
    int64_t width;
    int64_t stride;
} resnet_block;

/* Convolution number `k` of a block; the last one has the small scale. */
static graft_build_value add_numbered(graft_build_value x, const resnet_block *block, int k,
                                      graft_conv_layer conv)
{
    int last = block->net->expansion == 1 ? 2 : 3;
    conv.name = graft_build_name(x.builder, "%s.conv%d", block->name, k);
    return add_conv_norm(x, graft_build_name(x.builder, "%s.bn%d", block->name, k),
                         k == last ? residual_gain : 1.0, &conv);
}

static graft_build_value add_relu(graft_build_value x, const resnet_block *block, int k)
{
    const char *relu = graft_build_name(x.builder, "%s.relu", block->name);
    return graft_build_relu(x, k == 0 ? relu : graft_build_name(x.builder, "%s_%d", relu, k));
}

/* Two 3 x 3 convolutions, the first with the stride. */
static graft_build_value add_basic(graft_build_value x, const resnet_block *block)
{
    graft_conv_layer first = {.channels = block->width,
                              .window = graft_build_centred(3, block->stride)};
    graft_conv_layer second = {.channels = block->width, .window = graft_build_centred(3, 1)};
    x = add_relu(add_numbered(x, block, 1, first), block, 0);
    return add_numbered(x, block, 2, second);
}

/* 1 x 1 down, 3 x 3 (with the stride), 1 x 1 up. */
static graft_build_value add_bottleneck(graft_build_value x, const resnet_block *block)
{
    const resnet *net = block->net;
    int64_t inner = block->width * net->wider;
    graft_conv_layer down = {.channels = inner, .window = graft_build_centred(1, 1)};
    graft_conv_layer middle = {
        .channels = inner, .groups = net->groups, .window = graft_build_centred(3, block->stride)};
    graft_conv_layer up = {.channels = net->expansion * block->width,
                           .window = graft_build_centred(1, 1)};
    x = add_relu(add_numbered(x, block, 1, down), block, 0);
    x = add_relu(add_numbered(x, block, 2, middle), block, 1);
    return add_numbered(x, block, 3, up);
}

/* The block, plus its input or a projection of it. */
static graft_build_value add_block(graft_build_value x, const resnet_block *block)
{
    int64_t outputs = block->net->expansion * block->width;
    bool basic = block->net->expansion == 1;
    graft_conv_layer project = {.name = graft_build_name(x.builder, "%s.downsample.0", block->name),
                                .channels = outputs,
                                .window = graft_build_centred(1, block->stride)};
    graft_build_value identity = x;
    graft_build_value y = basic ? add_basic(x, block) : add_bottleneck(x, block);
    if (block->stride != 1 || x.dims[1] != outputs) {
        identity = add_conv_norm(x, graft_build_name(x.builder, "%s.downsample.1", block->name),
                                 1.0, &project);
    }
    y = graft_build_add(y, identity, block->name);
    return add_relu(y, block, basic ? 1 : 2);
}

static void build_resnet(graft_builder *builder, const resnet *net)
{
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    graft_conv_layer stem = {
        .name = "conv1", .channels = WIDTH, .window = graft_build_centred(7, 2)};
    graft_window_size pool = graft_build_centred(3, 2);
    graft_build_value x = graft_build_input(builder, "input", dims, 4);
    x = add_conv_norm(x, "bn1", 1.0, &stem);
    x = graft_build_relu(x, "relu");
    x = graft_build_max_pool(x, "maxpool", &pool, false);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < net->blocks[stage]; i++) {
            const resnet_block block = {.net = net,
                                        .name =
                                            graft_build_name(builder, "layer%d.%d", stage + 1, i),
                                        .width = (int64_t)WIDTH << stage,
                                        .stride = stage > 0 && i == 0 ? 2 : 1};
            x = add_block(x, &block);
        }
    }
    x = graft_build_global_pool(x, "avgpool");
    x = graft_build_flatten(x, "flatten");
    graft_build_output(graft_build_linear(x, "fc", CLASSES), "output");
}

void graft_build_resnet18(graft_builder *builder)
{
    const resnet net = {
        .blocks = {2, 2, 2, 2},
          .groups = 1, .wider = 1, .expansion = 1
    };
    build_resnet(builder, &net);
}

void graft_build_resnet50(graft_builder *builder)
{
    const resnet net = {
        .blocks = {3, 4, 6, 3},
          .groups = 1, .wider = 1, .expansion = 4
    };
    build_resnet(builder, &net);
}

/* 32 groups of 4 channels in the first stage: twice its width. */
void graft_build_resnext50(graft_builder *builder)
{
    const resnet net = {
        .blocks = {3, 4, 6, 3},
          .groups = 32, .wider = 2, .expansion = 4
    };
    build_resnet(builder, &net);
}
