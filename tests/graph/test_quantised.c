/* test_quantised.c - quantised operators: the ONNX project's cases to the last bit, convolutions
 * products and maxima against our binary32 operators on whole numbers, rounding and saturation. */
#include "graph/base/rng.h"
#include "graph/meaning/algebra_float.h"
#include "graph/meaning/byte_pool.h"
#include "graph/meaning/quantised.h"
#include "tests/support/build.h"
#include "tests/support/check.h"
#include "tests/support/onnx_data.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ ONNX's own cases */

static void place_inputs(const onnx_case *c, const float **values)
{
    const graft_graph *graph = &c->model->graph;
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        for (uint32_t i = 0; value->kind == GRAFT_VALUE_INPUT && i < c->input_count; i++) {
            if (strcmp(c->model->inputs[value->source].name, c->inputs[i].name) == 0) {
                values[v] = c->inputs[i].raw;
            }
        }
    }
}

CHECK_CASE(test_onnx_cases)
{
    static const char *const names[] = {
        "node/test_quantizelinear",   "node/test_quantizelinear_axis",
        "node/test_dequantizelinear", "node/test_dequantizelinear_axis",
        "node/test_qlinearconv",      "node/test_qlinearmatmul_2D",
        "node/test_qlinearmatmul_3D",
    };
    uint32_t installed = 0;
    (void)onnx_data_list(env->life, &installed);
    if (installed == 0) {
        CHECK_SKIP("libonnx-testdata is not installed");
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        onnx_case c;
        print_message("# %s\n", names[i]);
        CHECK_OK(onnx_data_load(env, env->unit, names[i], false, &c));
        const graft_graph *graph = &c.model->graph;
        const float **values = GRAFT_NEW(env->unit, const float *, graph->value_end);
        graft_order order = build_order(env->unit, graph);
        place_inputs(&c, values);
        CHECK_OK(graft_float_model(env, env->unit, c.model, graph, &order, values));
        const graft_shape *shape = &graph->values[graph->outputs[0]].shape;
        assert_true(graft_shape_equal(shape, &c.outputs[0].shape));
        assert_non_null(c.outputs[0].raw);
        assert_memory_equal(values[graph->outputs[0]], c.outputs[0].raw,
                            (size_t)graft_shape_bytes(shape));
        graft_arena_reset(env->unit);
    }
}

/* --------------------------------------------------- against binary32 on whole numbers */

enum { ELEMENTS_MOST = 4096, CHANNELS_MOST = 16, TRIALS = 300 };

/* One operand: bytes, and the whole numbers that they stand for before scaling. */
typedef struct {
    graft_shape shape;
    uint8_t bytes[ELEMENTS_MOST];
    float numbers[ELEMENTS_MOST];
    float scales[CHANNELS_MOST];
    uint8_t zeros[CHANNELS_MOST];
    graft_shape scale_shape;
    graft_shape zero_shape;
} operand;

static int32_t number_of(uint32_t dtype, uint8_t byte)
{
    return dtype == GRAFT_DTYPE_I8 && byte >= 128 ? (int32_t)byte - 256 : (int32_t)byte;
}

/* `channels`: scales along the first axis; 1: of the whole tensor. */
static void draw_operand(graft_rng *rng, uint32_t channels, operand *x)
{
    size_t count = (size_t)graft_shape_elements(&x->shape);
    assert_true(count <= ELEMENTS_MOST && channels <= CHANNELS_MOST);
    x->shape.dtype = graft_rng_below(rng, 2) == 0 ? GRAFT_DTYPE_I8 : GRAFT_DTYPE_U8;
    x->scale_shape = (graft_shape){{(int32_t)channels}, 1, GRAFT_DTYPE_F32};
    x->zero_shape = (graft_shape){{(int32_t)channels}, 1, x->shape.dtype};
    for (uint32_t c = 0; c < channels; c++) {
        x->scales[c] = 0.001F + 0.01F * (float)graft_rng_uniform(rng);
        x->zeros[c] = (uint8_t)graft_rng_below(rng, 256);
    }
    for (size_t i = 0; i < count; i++) {
        x->bytes[i] = (uint8_t)graft_rng_below(rng, 256);
        uint8_t zero = x->zeros[channels == 1 ? 0 : i / (count / channels)];
        x->numbers[i] =
            (float)(number_of(x->shape.dtype, x->bytes[i]) - number_of(x->shape.dtype, zero));
    }
}

static uint8_t expect_byte(uint32_t dtype, double sum, float factor, uint8_t zero)
{
    double value = (double)rintf((float)sum * factor) + number_of(dtype, zero);
    double least = dtype == GRAFT_DTYPE_I8 ? -128.0 : 0.0;
    value = value < least ? least : value > least + 255.0 ? least + 255.0 : value;
    return (uint8_t)(int32_t)value;
}

static const graft_shape not_given = {.rank = GRAFT_RANK_UNKNOWN};

/* Runs x and w through the quantised operator and through the binary32 one. */
static void check_product(graft_env *env, operand *x, operand *w, operand *y, const int32_t *bias,
                          uint32_t op, const int32_t *attrs)
{
    static float sums[ELEMENTS_MOST];
    uint8_t out[ELEMENTS_MOST];
    bool is_conv = op == GRAFT_OP_conv;
    graft_opaque opaque = {
        .kind = is_conv ? GRAFT_OPAQUE_QUANTISED_CONV : GRAFT_OPAQUE_QUANTISED_MATMUL,
        .in = {x->shape, x->scale_shape, x->zero_shape, w->shape, w->scale_shape, w->zero_shape,
               y->scale_shape, y->zero_shape, not_given},
        .out = y->shape
    };
    const void *in[GRAFT_OPAQUE_INPUTS_MOST] = {x->bytes, x->scales, x->zeros, w->bytes, w->scales,
                                                w->zeros, y->scales, y->zeros, bias};
    memcpy(opaque.attrs, attrs, sizeof(attrs[0]) * GRAFT_MAX_ATTRS);
    graft_quantised_run(env->scratch, &opaque, in, out);
    graft_shape shapes[2] = {x->shape, w->shape};
    graft_shape result;
    shapes[0].dtype = GRAFT_DTYPE_F32;
    shapes[1].dtype = GRAFT_DTYPE_F32;
    CHECK_OK(graft_infer_shapes(op, attrs, shapes, &result));
    const graft_call call = {attrs, shapes, &result};
    const float *const numbers[2] = {x->numbers, w->numbers};
    float *const to[1] = {sums};
    graft_float_run(op, &call, numbers, to);
    size_t places = is_conv ? (size_t)result.dims[2] * (size_t)result.dims[3] : 1;
    size_t filters = is_conv ? (size_t)result.dims[1] : 1;
    for (size_t i = 0; i < (size_t)graft_shape_elements(&result); i++) {
        size_t o = i / places % filters;
        float scale = w->scales[w->scale_shape.dims[0] > 1 ? o : 0];
        float factor = x->scales[0] * scale / y->scales[0];
        double sum = (double)sums[i] + (bias == NULL ? 0 : bias[o]);
        assert_int_equal(out[i], expect_byte(y->shape.dtype, sum, factor, y->zeros[0]));
    }
}

CHECK_CASE(test_convolutions)
{
    static operand x, w, y;
    graft_rng rng = check_rng(11);
    uint32_t tried = 0;
    while (tried < TRIALS) {
        int32_t groups = 1 + (int32_t)graft_rng_below(&rng, 3);
        int32_t channels = 1 + (int32_t)graft_rng_below(&rng, 3);
        int32_t filters = groups * (1 + (int32_t)graft_rng_below(&rng, 3));
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        int32_t bias[CHANNELS_MOST];
        x.shape = (graft_shape){
            {1 + (int32_t)graft_rng_below(&rng, 2), groups * channels,
             2 + (int32_t)graft_rng_below(&rng, 5), 2 + (int32_t)graft_rng_below(&rng, 5)},
            4,
            GRAFT_DTYPE_F32
        };
        w.shape = (graft_shape){
            {filters, channels, 1 + (int32_t)graft_rng_below(&rng, 3),
             1 + (int32_t)graft_rng_below(&rng, 3)},
            4,
            GRAFT_DTYPE_F32
        };
        for (uint32_t k = 0; k < 8; k++) { /* Strides, pads, dilations. */
            attrs[k] = (k >= 2 && k < 6 ? 0 : 1) + (int32_t)graft_rng_below(&rng, 3);
        }
        attrs[GRAFT_ATTR_conv_groups] = groups;
        const graft_shape shapes[2] = {x.shape, w.shape};
        if (graft_infer_shapes(GRAFT_OP_conv, attrs, shapes, &y.shape) != GRAFT_OK) {
            continue;
        }
        for (int32_t o = 0; o < filters; o++) {
            bias[o] = (int32_t)graft_rng_below(&rng, 20001) - 10000;
        }
        draw_operand(&rng, 1, &x);
        draw_operand(&rng, graft_rng_below(&rng, 2) == 0 ? 1 : (uint32_t)filters, &w);
        draw_operand(&rng, 1, &y);
        y.scales[0] *= 10.0F;
        check_product(env, &x, &w, &y, graft_rng_below(&rng, 2) == 0 ? bias : NULL, GRAFT_OP_conv,
                      attrs);
        tried++;
    }
}

CHECK_CASE(test_products)
{
    static operand a, b, y;
    static const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    graft_rng rng = check_rng(12);
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        int32_t inner = 1 + (int32_t)graft_rng_below(&rng, 9);
        int32_t stack = 1 + (int32_t)graft_rng_below(&rng, 3);
        a.shape = (graft_shape){
            {2, stack, 3, inner},
            4, GRAFT_DTYPE_F32
        };
        b.shape = (graft_shape){
            {stack, inner, 4},
            3, GRAFT_DTYPE_F32
        };
        if (trial % 3 == 0) {
            a.shape = (graft_shape){
                {3, inner},
                2, GRAFT_DTYPE_F32
            };
        }
        const graft_shape shapes[2] = {a.shape, b.shape};
        CHECK_OK(graft_infer_shapes(GRAFT_OP_matmul, attrs, shapes, &y.shape));
        draw_operand(&rng, 1, &a);
        draw_operand(&rng, 1, &b);
        draw_operand(&rng, 1, &y);
        y.scales[0] *= 10.0F;
        check_product(env, &a, &b, &y, NULL, GRAFT_OP_matmul, attrs);
    }
}

/* --------------------------------------------------------------------------- maxima */

/* Bytes against numbers of binary32, wherever a place sees a tap. */
CHECK_CASE(test_max_pool)
{
    graft_rng rng = check_rng(3);
    uint32_t pooled = 0;
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        graft_shape in = {.rank = 4, .dtype = GRAFT_DTYPE_F32};
        graft_shape out;
        for (uint32_t i = 0; i < 4; i++) {
            in.dims[i] = 1 + (int32_t)graft_rng_below(&rng, i < 2 ? 3 : 9);
        }
        for (uint32_t i = 0; i < 2; i++) {
            const int32_t kernel = 1 + (int32_t)graft_rng_below(&rng, 4);
            attrs[GRAFT_ATTR_max_pool_kernel_h + i] = kernel;
            attrs[GRAFT_ATTR_max_pool_stride_h + i] = 1 + (int32_t)graft_rng_below(&rng, 3);
            attrs[GRAFT_ATTR_max_pool_dilation_h + i] = 1 + (int32_t)graft_rng_below(&rng, 2);
            attrs[GRAFT_ATTR_max_pool_pad_top + i] =
                (int32_t)graft_rng_below(&rng, (uint32_t)kernel);
            attrs[GRAFT_ATTR_max_pool_pad_bottom + i] =
                (int32_t)graft_rng_below(&rng, (uint32_t)kernel);
        }
        if (graft_infer_shapes(GRAFT_OP_max_pool, attrs, &in, &out) != GRAFT_OK) {
            continue;
        }
        const uint32_t dtype = graft_rng_below(&rng, 2) == 0 ? GRAFT_DTYPE_I8 : GRAFT_DTYPE_U8;
        const size_t count = (size_t)graft_shape_elements(&in);
        const size_t made = (size_t)graft_shape_elements(&out);
        uint8_t *bytes = GRAFT_NEW(env->unit, uint8_t, count);
        uint8_t *got = GRAFT_NEW(env->unit, uint8_t, made);
        float *numbers = GRAFT_NEW(env->unit, float, count);
        float *want = GRAFT_NEW(env->unit, float, made);
        for (size_t i = 0; i < count; i++) {
            bytes[i] = (uint8_t)graft_rng_below(&rng, 256);
            numbers[i] = (float)number_of(dtype, bytes[i]);
        }
        const graft_call call = {attrs, &in, &out};
        graft_float_run(GRAFT_OP_max_pool, &call, (const float *const[]){numbers}, &want);
        graft_shape typed = in;
        typed.dtype = (uint8_t)dtype;
        graft_byte_max_pool(env->scratch, &(graft_call){attrs, &typed, &out}, bytes, got);
        for (size_t i = 0; i < made; i++) {
            if (isfinite(want[i])) {
                assert_int_equal(number_of(dtype, got[i]), (int32_t)want[i]);
                pooled++;
            }
        }
        graft_arena_reset(env->unit);
    }
    assert_true(pooled > 2000);
}

/* ----------------------------------------------------------------- rounding, saturation */

CHECK_CASE(test_rounding)
{
    static const float numbers[8] = {0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 1e30F, -INFINITY, NAN};
    static const int8_t signed_bytes[8] = {1, 3, 3, 1, -1, 127, -128, -128};
    static const uint8_t unsigned_bytes[8] = {0, 2, 2, 0, 0, 255, 0, 0};
    static const float scale = 1.0F;
    static const int8_t zero = 1;
    const graft_shape one = {.rank = 0, .dtype = GRAFT_DTYPE_F32};
    const graft_shape one_byte = {.rank = 0, .dtype = GRAFT_DTYPE_I8};
    uint8_t out[8];
    graft_opaque opaque = {
        .kind = GRAFT_OPAQUE_QUANTISE,
        .in = {{{8}, 1, GRAFT_DTYPE_F32}, one, one_byte      },
        .out = {{8},                       1,   GRAFT_DTYPE_I8}
    };
    graft_quantised_run(env->scratch, &opaque, (const void *const[]){numbers, &scale, &zero}, out);
    assert_memory_equal(out, signed_bytes, sizeof(out));
    opaque.in[2] = not_given;
    opaque.out.dtype = GRAFT_DTYPE_U8;
    graft_quantised_run(env->scratch, &opaque, (const void *const[]){numbers, &scale, NULL}, out);
    assert_memory_equal(out, unsigned_bytes, sizeof(out));
}
