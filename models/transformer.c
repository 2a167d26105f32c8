/* transformer.c - BERT-base (Devlin et al., 2019) for sequences of 128 and ViT-base with patches of
 * 16 x 16 (Dosovitskiy et al., 2021), as PyTorch exports the models of Hugging Face's library:
 * layer normalisation and gelu in their parts, linear layers as MatMul and Add. */
#include "models/nets.h"

#include <math.h>

enum { HIDDEN = 768, HEADS = 12, HEAD = HIDDEN / HEADS, INNER = 3072, LAYERS = 12 };

static const float epsilon = 1e-12F;

static const char *inside(graft_builder *builder, const char *module, const char *part)
{
    return graft_build_name(builder, "%s.%s", module, part);
}

/* ------------------------------------------------------------------------------ attention */

/* (1,S,hidden) -> (1,heads,S,head), or (1,heads,head,S) when `turned`. */
static graft_build_value split_heads(graft_build_value x, const char *name, bool turned)
{
    static const int64_t apart[4] = {0, 2, 1, 3};
    static const int64_t apart_turned[4] = {0, 2, 3, 1};
    const int64_t dims[4] = {1, x.dims[1], HEADS, HEAD};
    x = graft_build_reshape(x, name, dims, 4);
    return graft_build_transpose(x, name, turned ? apart_turned : apart);
}

/* softmax(Q K / sqrt(head) + mask) V. `mask` may be NULL. */
static graft_build_value add_attention(graft_build_value x, const char *module,
                                       const graft_build_value *mask)
{
    static const int64_t together[4] = {0, 2, 1, 3};
    const int64_t dims[3] = {1, x.dims[1], HIDDEN};
    graft_build_value q = graft_build_dense(x, inside(x.builder, module, "query"), HIDDEN);
    graft_build_value k = graft_build_dense(x, inside(x.builder, module, "key"), HIDDEN);
    graft_build_value v = graft_build_dense(x, inside(x.builder, module, "value"), HIDDEN);
    q = split_heads(q, inside(x.builder, module, "query"), false);
    k = split_heads(k, inside(x.builder, module, "key"), true);
    v = split_heads(v, inside(x.builder, module, "value"), false);
    graft_build_value root = graft_build_scalar(x.builder, module, "root", sqrtf((float)HEAD));
    graft_build_value scores = graft_build_matmul(q, k, module);
    scores = graft_build_pair("Div", scores, root, module);
    if (mask != NULL) {
        scores = graft_build_pair("Add", scores, *mask, module);
    }
    graft_build_value weights = graft_build_softmax(scores, module);
    graft_build_value y = graft_build_matmul(weights, v, inside(x.builder, module, "mix"));
    y = graft_build_transpose(y, module, together);
    return graft_build_reshape(y, module, dims, 3);
}

/* The two linear layers with gelu between them. */
static graft_build_value add_inner(graft_build_value x, const char *module)
{
    const char *up = inside(x.builder, module, "intermediate.dense");
    x = graft_build_dense(x, up, INNER);
    x = graft_build_gelu(x, inside(x.builder, module, "intermediate.intermediate_act_fn"));
    return graft_build_dense(x, inside(x.builder, module, "output.dense"), HIDDEN);
}

/* ----------------------------------------------------------------------------------- BERT */

enum { SEQUENCE = 128, POSITIONS = 512, KINDS = 2, VOCABULARY = 30522 };

/* 0 where the mask is 1, else the least number: (1,S) of whole numbers -> (1,1,1,S). */
static graft_build_value add_mask(graft_build_value mask)
{
    static const int64_t axes[2] = {1, 2};
    enum { FLOAT_TYPE = 1 };
    const char *module = "mask";
    const graft_build_value inputs[2] = {mask,
                                         graft_build_ints(mask.builder, module, "axes", axes, 2)};
    mask = graft_build_node("Unsqueeze", module, inputs, 2);
    mask.rank = 4;
    mask.dims[3] = mask.dims[1];
    mask.dims[1] = 1;
    mask.dims[2] = 1;
    mask = graft_build_node("Cast", module, &mask, 1);
    graft_build_set_int(mask.builder, "to", FLOAT_TYPE);
    graft_build_value one = graft_build_scalar(mask.builder, module, "one", 1.0F);
    graft_build_value least = graft_build_scalar(mask.builder, module, "least", -3.40282347e+38F);
    mask = graft_build_pair("Sub", one, mask, module);
    mask = graft_build_pair("Mul", mask, least, module);
    mask.mean_square = 0.0;
    return mask;
}

/* Rows of a table. */
static graft_build_value add_rows(graft_builder *builder, const char *module, int64_t rows,
                                  graft_build_value places)
{
    const int64_t dims[2] = {rows, HIDDEN};
    const graft_build_value inputs[2] = {
        graft_build_weight(builder, module, "weight", dims, 2, 0.5), places};
    graft_build_value output = graft_build_node("Gather", module, inputs, 2);
    graft_build_set_int(builder, "axis", 0);
    output.rank = places.rank + 1;
    for (uint32_t i = 0; i < places.rank; i++) {
        output.dims[i] = places.dims[i];
    }
    output.dims[places.rank] = HIDDEN;
    return output;
}

static graft_build_value add_embeddings(graft_build_value ids, graft_build_value kinds,
                                        int64_t vocabulary)
{
    int64_t places[SEQUENCE];
    for (int64_t i = 0; i < SEQUENCE; i++) {
        places[i] = i;
    }
    const char *module = "embeddings";
    graft_build_value positions =
        graft_build_ints(ids.builder, module, "position_ids", places, SEQUENCE);
    graft_build_value x =
        add_rows(ids.builder, inside(ids.builder, module, "word_embeddings"), vocabulary, ids);
    graft_build_value y =
        add_rows(ids.builder, inside(ids.builder, module, "token_type_embeddings"), KINDS, kinds);
    graft_build_value z = add_rows(ids.builder, inside(ids.builder, module, "position_embeddings"),
                                   POSITIONS, positions);
    x = graft_build_pair("Add", x, y, module);
    x = graft_build_pair("Add", x, z, module);
    return graft_build_layer_norm(x, inside(ids.builder, module, "LayerNorm"), epsilon);
}

static graft_build_value add_bert_layer(graft_build_value x, const char *module,
                                        const graft_build_value *mask)
{
    const char *output = inside(x.builder, module, "attention.output");
    graft_build_value y = add_attention(x, inside(x.builder, module, "attention.self"), mask);
    y = graft_build_dense(y, inside(x.builder, output, "dense"), HIDDEN);
    y = graft_build_pair("Add", y, x, output);
    x = graft_build_layer_norm(y, inside(x.builder, output, "LayerNorm"), epsilon);
    y = graft_build_pair("Add", add_inner(x, module), x, inside(x.builder, module, "output"));
    return graft_build_layer_norm(y, inside(x.builder, module, "output.LayerNorm"), epsilon);
}

static void build_bert(graft_builder *builder, int layers, int64_t vocabulary)
{
    const int64_t dims[2] = {1, SEQUENCE};
    graft_build_value ids = graft_build_int_input(builder, "input_ids", dims, 2);
    graft_build_value attended = graft_build_int_input(builder, "attention_mask", dims, 2);
    graft_build_value kinds = graft_build_int_input(builder, "token_type_ids", dims, 2);
    graft_build_value mask = add_mask(attended);
    graft_build_value x = add_embeddings(ids, kinds, vocabulary);
    for (int i = 0; i < layers; i++) {
        x = add_bert_layer(x, graft_build_name(builder, "encoder.layer.%d", i), &mask);
    }
    graft_build_output(x, "last_hidden_state");
    x.name = "last_hidden_state";
    x = graft_build_pick(x, "pooler", 1, 0);
    x = graft_build_linear(x, "pooler.dense", HIDDEN);
    x = graft_build_function("Tanh", x, "pooler.activation");
    graft_build_output(x, "pooler_output");
}

void graft_build_bert(graft_builder *builder) { build_bert(builder, LAYERS, VOCABULARY); }

void graft_build_bert_small(graft_builder *builder) { build_bert(builder, 2, 1000); }

/* ------------------------------------------------------------------------------------ ViT */

enum { IMAGE = 224, PATCH = 16, PATCHES = (IMAGE / PATCH) * (IMAGE / PATCH), CLASSES = 1000 };

/* x(1,3,224,224) -> (1,197,768): patches behind the class's own row, plus positions. */
static graft_build_value add_patches(graft_build_value x)
{
    static const int64_t last[3] = {0, 2, 1};
    const int64_t columns[3] = {1, HIDDEN, PATCHES};
    const int64_t row[3] = {1, 1, HIDDEN};
    const int64_t rows[3] = {1, PATCHES + 1, HIDDEN};
    graft_conv_layer conv = {.name = "embeddings.patch_embeddings.projection",
                             .channels = HIDDEN,
                             .has_bias = true,
                             .window = graft_build_window(PATCH, PATCH, PATCH)};
    x = graft_build_conv(x, &conv);
    x = graft_build_reshape(x, "embeddings.patch_embeddings", columns, 3);
    x = graft_build_transpose(x, "embeddings.patch_embeddings", last);
    graft_build_value token = graft_build_weight(x.builder, "embeddings", "cls_token", row, 3, 0.5);
    const graft_build_value parts[2] = {graft_build_repeat(token, "embeddings"), x};
    x = graft_build_concat_all(parts, 2, 1, "embeddings");
    graft_build_value positions =
        graft_build_weight(x.builder, "embeddings", "position_embeddings", rows, 3, 0.5);
    return graft_build_pair("Add", x, positions, "embeddings");
}

static graft_build_value add_vit_layer(graft_build_value x, const char *module)
{
    graft_build_value y =
        graft_build_layer_norm(x, inside(x.builder, module, "layernorm_before"), epsilon);
    y = add_attention(y, inside(x.builder, module, "attention.attention"), NULL);
    y = graft_build_dense(y, inside(x.builder, module, "attention.output.dense"), HIDDEN);
    x = graft_build_pair("Add", y, x, module);
    y = graft_build_layer_norm(x, inside(x.builder, module, "layernorm_after"), epsilon);
    return graft_build_pair("Add", add_inner(y, module), x, inside(x.builder, module, "output"));
}

static void build_vit(graft_builder *builder, int layers)
{
    const int64_t dims[4] = {1, 3, IMAGE, IMAGE};
    graft_build_value x = add_patches(graft_build_input(builder, "pixel_values", dims, 4));
    for (int i = 0; i < layers; i++) {
        x = add_vit_layer(x, graft_build_name(builder, "encoder.layer.%d", i));
    }
    x = graft_build_layer_norm(x, "layernorm", epsilon);
    x = graft_build_pick(x, "pick", 1, 0);
    graft_build_output(graft_build_linear(x, "classifier", CLASSES), "logits");
}

void graft_build_vit(graft_builder *builder) { build_vit(builder, LAYERS); }

void graft_build_vit_small(graft_builder *builder) { build_vit(builder, 2); }
