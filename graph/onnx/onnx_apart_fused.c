/* onnx_apart_fused.c - what runtimes made one of several operators, com.microsoft's, comes apart
 * again (see onnx_apart.h). */
#include "graph/onnx/onnx_apart.h"
#include "graph/opaque.h"

/* The sum with input `k`, where that is given. */
static graft_tensor plus_input(graft_apart *apart, graft_tensor x, uint32_t k)
{
    const graft_tensor other = graft_apart_input(apart, k);
    return other == NULL ? x : GRAFT_APART(apart, "Add", x, other);
}

/* ---------------------------------------------------------------------------- normalisations */

/* The sum of input, skip and what may be input `bias`; it is output 3, too. */
static graft_tensor sum_inputs(graft_apart *apart, uint32_t bias)
{
    const graft_tensor x = plus_input(apart, graft_apart_input(apart, 0), 1);
    const graft_tensor sum = plus_input(apart, x, bias);
    graft_apart_result(apart, 3, sum);
    return sum;
}

void graft_apart_skip_norm(graft_apart *apart)
{
    const double epsilon = (double)graft_apart_float(apart, "epsilon", 1e-12F);
    const graft_tensor sum = sum_inputs(apart, 4);
    const char *part = graft_apart_text(apart, "LayerNormalization axis=-1 epsilon=%a", epsilon);
    graft_apart_result(
        apart, 0,
        GRAFT_APART(apart, part, sum, graft_apart_input(apart, 2), graft_apart_input(apart, 3)));
}

static graft_tensor norm_by_squares(graft_apart *apart, graft_tensor x, graft_tensor scale)
{
    const double epsilon = (double)graft_apart_float(apart, "epsilon", 1e-5F);
    const int axis = (int)graft_onnx_int(apart->node, "axis", -1);
    const char *part =
        graft_apart_text(apart, "RMSNormalization axis=%d epsilon=%a", axis, epsilon);
    return GRAFT_APART(apart, part, x, scale);
}

void graft_apart_skip_rms_norm(graft_apart *apart)
{
    const graft_tensor sum = sum_inputs(apart, 3);
    graft_apart_result(apart, 0, norm_by_squares(apart, sum, graft_apart_input(apart, 2)));
}

void graft_apart_simplified_norm(graft_apart *apart)
{
    graft_apart_result(
        apart, 0, norm_by_squares(apart, graft_apart_input(apart, 0), graft_apart_input(apart, 1)));
}

/* Rows of the table that is input `table` at the places that are input `k`. */
static graft_tensor look_up(graft_apart *apart, uint32_t table, uint32_t k)
{
    return GRAFT_APART(apart, "Gather axis=0", graft_apart_input(apart, table),
                       graft_apart_input(apart, k));
}

/* Rows of words, of positions and of segments are summed and normalised. Output 1 has how many
 * places a mask has. */
void graft_apart_embedding(graft_apart *apart)
{
    enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_TABLE, GAMMA, BETA, MASK, PLACES };
    const double epsilon = (double)graft_apart_float(apart, "epsilon", 1e-12F);
    const graft_shape places = graft_apart_shape(apart, graft_apart_input(apart, POSITIONS));
    const graft_tensor words = graft_apart_input(apart, IDS);
    graft_tensor mask = graft_apart_input(apart, MASK);
    const graft_shape ids = graft_apart_shape(apart, words);
    if (ids.rank != 2 || places.rank != 2 || places.dims[0] < ids.dims[1]) {
        graft_apart_refuse(apart, "words or positions that are no matrix");
        return;
    }
    const graft_tensor at =
        graft_apart_input(apart, PLACES) != NULL
            ? look_up(apart, POSITIONS, PLACES)
            : graft_apart_slice(apart, graft_apart_input(apart, POSITIONS), 0, 0, ids.dims[1]);
    graft_tensor sum = GRAFT_APART(apart, "Add", look_up(apart, WORDS, IDS), at);
    if (graft_apart_input(apart, SEGMENTS) != NULL) {
        sum = GRAFT_APART(apart, "Add", sum, look_up(apart, SEGMENT_TABLE, SEGMENTS));
    }
    const char *part = graft_apart_text(apart, "LayerNormalization axis=-1 epsilon=%a", epsilon);
    graft_apart_result(apart, 0,
                       GRAFT_APART(apart, part, sum, graft_apart_input(apart, GAMMA),
                                   graft_apart_input(apart, BETA)));
    if (graft_apart_is_read(apart, 1)) {
        mask = mask != NULL ? mask : GRAFT_APART(apart, "Sub", words, words); /* None. */
        graft_apart_result(apart, 1, graft_apart_reduced(apart, "ReduceSum keepdims=0", mask, 1));
    }
    graft_apart_result(apart, 2, sum);
}

/* ------------------------------------------------------------------------------- activations */

void graft_apart_biased_gelu(graft_apart *apart)
{
    const graft_tensor x = plus_input(apart, graft_apart_input(apart, 0), 1);
    graft_apart_result(apart, 0, GRAFT_APART(apart, "Gelu", x));
}

void graft_apart_fast_gelu(graft_apart *apart)
{
    const graft_tensor x = plus_input(apart, graft_apart_input(apart, 0), 1);
    graft_apart_result(apart, 0, GRAFT_APART(apart, "Gelu approximate=tanh", x));
}

/* x sigmoid(alpha x) */
void graft_apart_quick_gelu(graft_apart *apart)
{
    const float alpha = graft_apart_float(apart, "alpha", 1.702F);
    const graft_tensor x = graft_apart_input(apart, 0);
    const graft_tensor open = GRAFT_APART(apart, "Sigmoid", graft_apart_scaled(apart, x, alpha));
    graft_apart_result(apart, 0, GRAFT_APART(apart, "Mul", x, open));
}

/* The activation that the node names, with its numbers. */
static graft_tensor activate(graft_apart *apart, graft_tensor x, float first, float second)
{
    const Onnx__NodeProto *node = apart->node;
    static const char *const plain[] = {"Relu", "Sigmoid", "Tanh", "Softplus"};
    for (uint32_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        if (graft_onnx_says(node, "activation", plain[i], false)) {
            return GRAFT_APART(apart, plain[i], x);
        }
    }
    if (graft_onnx_says(node, "activation", "LeakyRelu", false)) {
        const char *part = graft_apart_text(apart, "LeakyRelu alpha=%a", (double)first);
        return GRAFT_APART(apart, part, x);
    }
    if (graft_onnx_says(node, "activation", "HardSigmoid", false)) {
        const char *part =
            graft_apart_text(apart, "HardSigmoid alpha=%a beta=%a", (double)first, (double)second);
        return GRAFT_APART(apart, part, x);
    }
    if (graft_onnx_says(node, "activation", "Clip", false)) {
        x = GRAFT_APART(apart, "Max", x, graft_apart_number(apart, first));
        return GRAFT_APART(apart, "Min", x, graft_apart_number(apart, second));
    }
    graft_apart_refuse_if(apart, graft_onnx_attribute(node, "activation") != NULL,
                          "an activation that is not known");
    return x;
}

/* ---------------------------------------------------------------------------------- products */

/* The last two axes change places where the attribute says so. */
static graft_tensor transposed(graft_apart *apart, uint32_t k, const char *name)
{
    static const char *const swaps[] = {"Transpose perm=1,0", "Transpose perm=0,2,1",
                                        "Transpose perm=0,1,3,2", "Transpose perm=0,1,2,4,3",
                                        "Transpose perm=0,1,2,3,5,4"};
    const graft_tensor x = graft_apart_input(apart, k);
    const uint32_t rank = graft_apart_shape(apart, x).rank;
    const bool turned = graft_onnx_int(apart->node, name, 0) != 0 && rank >= 2;
    return turned && rank <= GRAFT_MAX_RANK ? GRAFT_APART(apart, swaps[rank - 2], x) : x;
}

void graft_apart_fused_product(graft_apart *apart)
{
    const float alpha = graft_apart_float(apart, "alpha", 1.0F);
    if (graft_onnx_int(apart->node, "transBatchA", 0) != 0 ||
        graft_onnx_int(apart->node, "transBatchB", 0) != 0) {
        graft_apart_refuse(apart, "a transposed batch");
    }
    const graft_tensor y = GRAFT_APART(apart, "MatMul", transposed(apart, 0, "transA"),
                                       transposed(apart, 1, "transB"));
    graft_apart_result(apart, 0, alpha == 1.0F ? y : graft_apart_scaled(apart, y, alpha));
}

void graft_apart_fused_gemm(graft_apart *apart)
{
    const graft_tensor y =
        GRAFT_APART(apart, "Gemm alpha beta transA transB", graft_apart_input(apart, 0),
                    graft_apart_input(apart, 1), graft_apart_input(apart, 2));
    graft_apart_result(apart, 0,
                       activate(apart, y, graft_apart_float(apart, "activation_alpha", 0.01F),
                                graft_apart_float(apart, "activation_beta", 0.5F)));
}

graft_tensor graft_apart_of_bytes(graft_apart *apart, graft_apart_bytes a, graft_apart_bytes b)
{
    const graft_tensor sums = GRAFT_APART(
        apart, "Cast to=1", GRAFT_APART(apart, "MatMulInteger", a.x, b.x, a.zero, b.zero));
    return GRAFT_APART(apart, "Mul", sums, GRAFT_APART(apart, "Mul", a.scale, b.scale));
}

void graft_apart_integer_product(graft_apart *apart)
{
    enum { A, B, A_SCALE, B_SCALE, A_ZERO, B_ZERO, BIAS };
    const graft_apart_bytes a = {graft_apart_input(apart, A), graft_apart_input(apart, A_ZERO),
                                 graft_apart_input(apart, A_SCALE)};
    const graft_apart_bytes b = {graft_apart_input(apart, B), graft_apart_input(apart, B_ZERO),
                                 graft_apart_input(apart, B_SCALE)};
    graft_apart_result(apart, 0, plus_input(apart, graft_apart_of_bytes(apart, a, b), BIAS));
}

/* The first operand becomes bytes by a scale that is found then. */
void graft_apart_dynamic_product(graft_apart *apart)
{
    enum { A, B, B_SCALE, B_ZERO, BIAS };
    const graft_tensor x = graft_apart_input(apart, A);
    graft_tensor made[3]; /* Bytes, scale, zero point. */
    graft_apart_add_all(apart, "DynamicQuantizeLinear", &x, 1, made, 3);
    const graft_apart_bytes a = {made[0], made[2], made[1]};
    const graft_apart_bytes b = {graft_apart_input(apart, B), graft_apart_input(apart, B_ZERO),
                                 graft_apart_input(apart, B_SCALE)};
    graft_apart_result(apart, 0, plus_input(apart, graft_apart_of_bytes(apart, a, b), BIAS));
}

/* What bytes, scale and zero point from input `k` on stand for. */
static graft_tensor numbers_at(graft_apart *apart, uint32_t k)
{
    return GRAFT_APART(apart, "DequantizeLinear", graft_apart_input(apart, k),
                       graft_apart_input(apart, k + 1), graft_apart_input(apart, k + 2));
}

/* The node gives y as bytes, of the scale and zero point from input `k` on. */
static void give_bytes(graft_apart *apart, graft_tensor y, uint32_t k)
{
    graft_apart_result(apart, 0,
                       GRAFT_APART(apart, "QuantizeLinear", y, graft_apart_input(apart, k),
                                   graft_apart_input(apart, k + 1)));
}

/* The mean of windows of what the bytes stand for. */
void graft_apart_byte_pool(graft_apart *apart)
{
    graft_apart_refuse_if(apart, graft_onnx_int(apart->node, "channels_last", 0) != 0,
                          "channels that come last");
    const graft_tensor x = numbers_at(apart, 0);
    give_bytes(apart,
               GRAFT_APART(apart,
                           "AveragePool auto_pad ceil_mode count_include_pad kernel_shape pads "
                           "strides",
                           x),
               3);
}

/* Of more tensors than one node of bytes reads: as in a DenseNet. */
void graft_apart_byte_join(graft_apart *apart)
{
    const size_t count = apart->node->n_input;
    if (count <= GRAFT_OPAQUE_INPUTS_MOST) {
        graft_apart_refuse(apart, "few tensors, which are joined as bytes");
        return;
    }
    const size_t parts = (count - 2) / 3;
    graft_tensor *x = GRAFT_NEW(apart->reader->arena, graft_tensor, parts);
    for (uint32_t i = 0; i < parts; i++) {
        x[i] = numbers_at(apart, 2 + 3 * i);
    }
    give_bytes(apart, graft_apart_add(apart, "Concat axis", x, parts), 0);
}

/* Input 3 is added before the activation. */
void graft_apart_fused_conv(graft_apart *apart)
{
    const Onnx__AttributeProto *given = graft_onnx_attribute(apart->node, "activation_params");
    const size_t count = given == NULL ? 0 : given->n_floats;
    graft_tensor y = GRAFT_APART(apart, "Conv auto_pad dilations group kernel_shape pads strides",
                                 graft_apart_input(apart, 0), graft_apart_input(apart, 1),
                                 graft_apart_input(apart, 2));
    y = plus_input(apart, y, 3);
    graft_apart_result(apart, 0,
                       activate(apart, y, count > 0 ? given->floats[0] : 0.01F,
                                count > 1 ? given->floats[1] : 0.5F));
}
