/* test_halves.c - float16 and bfloat16: numbers are rounded as the compiler rounds them; the engine
 * takes either type and no mixture; models are read as in binary32, and new weights of what is
 * written are rounded once, or refused. */
#include "graph/base/bits.h"
#include "graph/base/half.h"

#include "graph/base/rng.h"
#include "graph/meaning/algebra_half.h"
#include "graph/model.h"
#include "tests/support/build.h"
#include "tests/support/onnx_text.h"
#include "tests/support/rows.h"
#include "tests/support/variants.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const uint8_t types[] = {GRAFT_DTYPE_F16, GRAFT_DTYPE_BF16};

/* ------------------------------------------------------------------ numbers */

enum { NUMBERS = 65536, DRAWS = 400000 };

static float float_of(uint32_t bits) { return graft_float_of_bits((int32_t)bits); }

static uint16_t narrow(uint32_t dtype, float x)
{
    uint16_t bits = 0;
    (void)graft_half_narrow(dtype, &x, 1, &bits);
    return bits;
}

static float widen(uint32_t dtype, uint16_t bits)
{
    float x = 0.0F;
    graft_half_widen(dtype, &bits, 1, &x);
    return x;
}

/* Every number of 16 bits, NaN with its payload, goes there and back. */
CHECK_CASE(test_there_and_back)
{
    for (uint32_t t = 0; t < 2; t++) {
        for (uint32_t i = 0; i < NUMBERS; i++) {
            assert_int_equal(narrow(types[t], widen(types[t], (uint16_t)i)), i);
        }
    }
    assert_int_equal(graft_bits_of_float(widen(GRAFT_DTYPE_F16, 0x3c01)),
                     graft_bits_of_float(1.0F + 0x1p-10F));
    assert_int_equal(graft_bits_of_float(widen(GRAFT_DTYPE_F16, 0x8001)),
                     graft_bits_of_float(-0x1p-24F));
    assert_int_equal(graft_bits_of_float(widen(GRAFT_DTYPE_BF16, 0x3f81)),
                     graft_bits_of_float(1.0F + 0x1p-7F));
}

/* The nearest bfloat16, ties to even: of the two beside it the nearer one. */
static float nearest_bfloat16(float x)
{
    const uint32_t below = (uint32_t)graft_bits_of_float(x) & 0xffff0000U;
    const double down = fabs((double)x - (double)float_of(below));
    const double up = fabs((double)float_of(below + 0x10000U) - (double)x);
    const bool even = (below & 0x10000U) == 0;
    return float_of(down < up || (down == up && even) ? below : below + 0x10000U);
}

static void check_rounded(float x)
{
    const float half = graft_half_round((double)x);
    assert_int_equal(graft_bits_of_float(widen(GRAFT_DTYPE_F16, narrow(GRAFT_DTYPE_F16, x))),
                     graft_bits_of_float(half));
    if (fabsf(x) < 0x1p127F) {
        assert_int_equal(graft_bits_of_float(widen(GRAFT_DTYPE_BF16, narrow(GRAFT_DTYPE_BF16, x))),
                         graft_bits_of_float(nearest_bfloat16(x)));
    }
}

CHECK_CASE(test_rounded)
{
    graft_rng rng = check_rng(1);
    for (uint32_t i = 0; i < DRAWS; i++) {
        const float x = float_of((uint32_t)graft_rng_next(&rng));
        if (isfinite(x)) {
            check_rounded(x);
            check_rounded(ldexpf(x, -(int)lround(log2(fabs((double)x) + 1e-45)) - 14));
        }
    }
    for (uint32_t i = 0; i < NUMBERS; i++) { /* Ties, and beside them. */
        const float x = widen(GRAFT_DTYPE_F16, (uint16_t)i);
        if (isfinite(x)) {
            check_rounded(x * (1.0F + 0x1p-11F));
            check_rounded(x * (1.0F + 0x1p-11F) * (1.0F + 0x1p-22F));
            check_rounded(x * (1.0F + 0x1p-11F) * (1.0F - 0x1p-22F));
            check_rounded(x + 0x1p-25F);
        }
    }
}

/* Whether a number fits is said of finite ones only. */
CHECK_CASE(test_fits)
{
    static const struct {
        float x;
        bool fits[2];
    } rows[] = {
        {65504.0F,  {true, true}  },
        {65519.0F,  {true, true}  },
        {65520.0F,  {false, true} },
        {-65520.0F, {false, true} },
        {3.38e38F,  {false, true} },
        {3.4e38F,   {false, false}},
        {INFINITY,  {true, true}  },
        {NAN,       {true, true}  },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint32_t t = 0; t < 2; t++) {
            uint16_t bits = 0;
            float x = rows[i].x;
            assert_int_equal(graft_half_narrow(types[t], &x, 1, &bits), rows[i].fits[t]);
            assert_int_equal(graft_half_round_all(types[t], &x, 1), rows[i].fits[t]);
            assert_true((isinf(x) != 0) == (isinf(rows[i].x) != 0 || !rows[i].fits[t]));
        }
    }
}

/* ------------------------------------------------------------------- engine */

static graft_shape typed(graft_shape shape, uint8_t dtype)
{
    shape.dtype = dtype;
    return shape;
}

CHECK_CASE(test_engine_takes_one_type)
{
    const graft_shape plain = SHAPE(3, 3);
    for (uint32_t t = 0; t < 2; t++) {
        graft_graph *graph = build_graph(env->life);
        graft_index node = GRAFT_NONE;
        const graft_index a = build_input(graph, typed(plain, types[t]), 0);
        const graft_index b = build_weight(graph, typed(plain, types[t]), 0);
        const graft_index c = build_weight(graph, plain, 1);
        const graft_index d = build_weight(graph, typed(plain, types[1 - t]), 2);
        const graft_index y = build_node(graph, GRAFT_OP_matmul, NULL, a, b, 0);
        assert_int_equal(graph->values[y].shape.dtype, types[t]);
        assert_int_equal(
            graft_graph_add_node(graph, GRAFT_OP_add, NULL, (graft_index[]){y, c}, 0, &node),
            GRAFT_BAD_INPUT);
        assert_int_equal(
            graft_graph_add_node(graph, GRAFT_OP_add, NULL, (graft_index[]){d, y}, 0, &node),
            GRAFT_BAD_INPUT);
        const graft_shape whole = typed(plain, GRAFT_DTYPE_I32);
        graft_shape out = plain;
        assert_int_equal(
            graft_infer_shapes(GRAFT_OP_relu, (int32_t[GRAFT_MAX_ATTRS]){0}, &whole, &out),
            GRAFT_BAD_INPUT);
        assert_non_null(graft_infer_explain(GRAFT_OP_relu, (int32_t[GRAFT_MAX_ATTRS]){0}, &whole));
        CHECK_OK(graft_graph_add_output(graph, y));
        build_check(env->scratch, graph);
    }
}

/* What `fill` makes has the graph's type, also in a copy; so a rule that needs one fits where that
 * is the type of the match, and nowhere else. */
CHECK_CASE(test_constants_have_a_type)
{
    const graft_shape plain = SHAPE(3, 3);
    const graft_rule rule = rows_parse(env, "mul(a, b) = add(mul(a, b), fill(value=0.0, dim=[]))");
    for (uint32_t fits = 0; fits < 2; fits++) {
        graft_graph *graph = build_graph(env->life);
        graph->dtype = fits == 1 ? GRAFT_DTYPE_F16 : GRAFT_DTYPE_F32;
        const graft_index a = build_input(graph, typed(plain, GRAFT_DTYPE_F16), 0);
        const graft_index b = build_input(graph, typed(plain, GRAFT_DTYPE_F16), 1);
        const graft_index y = build_node(graph, GRAFT_OP_mul, NULL, a, b, 0);
        CHECK_OK(graft_graph_add_output(graph, y));
        graft_graph *copy = graft_model_graph_copy(env->life, graph);
        assert_int_equal(copy->dtype, graph->dtype);
        const graft_order order = build_order(env->scratch, copy);
        (void)build_match(copy, &rule, &order);
        assert_int_equal(build_apply(env->scratch, copy, &rule), fits);
        build_check(env->scratch, copy);
        assert_int_equal(copy->values[copy->outputs[0]].shape.dtype, GRAFT_DTYPE_F16);
    }
}

/* ------------------------------------------------------------------- models */

static void narrow_tensor(graft_arena *arena, Onnx__TensorProto *tensor, uint8_t dtype)
{
    if (tensor->data_type == GRAFT_DTYPE_F32) {
        const size_t count = tensor->raw_data.len / sizeof(float);
        uint16_t *bits = GRAFT_NEW(arena, uint16_t, count);
        (void)graft_half_narrow(dtype, (const float *)(const void *)tensor->raw_data.data, count,
                                bits);
        tensor->data_type = dtype;
        tensor->raw_data.data = (uint8_t *)bits;
        tensor->raw_data.len = count * sizeof(uint16_t);
    }
}

static void narrow_port(Onnx__ValueInfoProto *port, uint8_t dtype)
{
    Onnx__TypeProto__Tensor *type = port->type == NULL ? NULL : port->type->tensor_type;
    if (type != NULL && type->elem_type == GRAFT_DTYPE_F32) {
        type->elem_type = dtype;
    }
}

/* A text's message, all binary32 in it as another type. */
static Onnx__ModelProto *narrow_text(graft_env *env, const char *text, uint8_t dtype)
{
    Onnx__ModelProto *proto = onnx_text_message(env->life, text);
    Onnx__GraphProto *graph = proto->graph;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        narrow_tensor(env->life, graph->initializer[i], dtype);
    }
    for (size_t i = 0; i < graph->n_input; i++) {
        narrow_port(graph->input[i], dtype);
    }
    for (size_t i = 0; i < graph->n_output; i++) {
        narrow_port(graph->output[i], dtype);
    }
    return proto;
}

static graft_model *read_narrow(graft_env *env, const char *text, uint8_t dtype)
{
    graft_model *model = NULL;
    graft_status status = onnx_text_read(env, narrow_text(env, text, dtype), NULL, &model);
    assert_string_equal(env->message, "");
    CHECK_OK(status);
    return model;
}

static const char *const understood[] = {
    "input x 1 2 5 6; weight w 4 2 3 3; weight s 4; weight b 4; weight m 4; weight v 4; output y;"
    "node Conv x w -> c; node BatchNormalization c s b m v -> n; node Relu n -> y",
    "input x 1 3; weight w 2 3; weight b 2; node Gemm x w b -> y : transB=1 alpha=2.0; output y",
    "input x 2 4; node Neg x -> n; node Abs n -> a; node HardSigmoid a -> h; "
    "node Reciprocal h -> y",
    "input x 2 4; weight l = 0; weight h = 6; node Clip x l h -> y; output y",
    "input x 2 4; weight e = 2; node Pow x e -> y; output y",
    "opset 17; input x 2 4; weight s 4; weight b 4; node LayerNormalization x s b -> y; output y",
    "input x 2 4; weight s 4; node PRelu x s -> p; node Softmax p -> y; output y",
    "input x 1 2 4 4; node MaxPool x -> p : kernel_shape=2,2; node GlobalAveragePool p -> y",
    "input x 2 4; ints r = 4 2; node Reshape x r -> t; node Transpose t -> u; "
    "node Concat u u -> y : axis=1",
    "input x 2 4; node Identity x -> i; ints p = 0 1 0 1; weight v = 3; node Pad i p v -> y",
    "input x 2 1; ints t = 2 4; node Expand x t -> y; output y",
    "input x 2 4; weight a = 0.5; weight b 1 = -0.0; weight c 1 1 = 3; node Mul x a -> p;"
    "node Add b p -> q; node Div q c -> y; output y",
    "input x 2 3 1; weight w 1 8 1; weight r 1 8 2; weight b 1 16; node LSTM x w r b -> y :"
    " hidden_size=2; output y",
};

/* What is read is what would be read in binary32, but for the types. */
CHECK_CASE(test_read_as_binary32)
{
    for (size_t i = 0; i < sizeof understood / sizeof understood[0]; i++) {
        const graft_model *plain = onnx_text_model(env, understood[i]);
        const char *want = onnx_text_print(env->life, plain, &plain->graph);
        for (uint32_t t = 0; t < 2; t++) {
            const graft_model *model = read_narrow(env, understood[i], types[t]);
            const graft_graph *graph = &model->graph;
            assert_string_equal(onnx_text_print(env->life, model, graph), want);
            assert_int_equal(graph->dtype, types[t]);
            assert_true(model->has_halves && !plain->has_halves);
            for (graft_index v = 0; v < graph->value_end; v++) {
                const uint8_t dtype = graph->values[v].shape.dtype;
                assert_true(!graft_dtype_is_real(dtype) || dtype == types[t]);
            }
            build_check(env->scratch, graph);
        }
    }
}

static graft_status pack_anew(graft_env *env, const graft_model *model, Onnx__ModelProto **proto)
{
    uint8_t *data = NULL;
    size_t size = 0;
    graft_status status = graft_model_pack(env, env->life, model,
                                           variant_regenerated(env->life, model), &data, &size);
    *proto = status == GRAFT_OK ? onnx_text_unpack(env, data, size) : NULL;
    return status;
}

static Onnx__ModelProto *packed_anew(graft_env *env, const graft_model *model)
{
    Onnx__ModelProto *proto = NULL;
    CHECK_OK(pack_anew(env, model, &proto));
    assert(proto != NULL);
    return proto;
}

/* Every node generated anew: no tensor of binary32, and the graph that is read again is the
 * same. */
CHECK_CASE(test_written_in_their_type)
{
    for (size_t i = 0; i < sizeof understood / sizeof understood[0]; i++) {
        for (uint32_t t = 0; t < 2; t++) {
            const graft_model *model = read_narrow(env, understood[i], types[t]);
            graft_model *again = NULL;
            Onnx__ModelProto *proto = packed_anew(env, model);
            for (size_t k = 0; k < proto->graph->n_initializer; k++) {
                assert_int_not_equal(proto->graph->initializer[k]->data_type, GRAFT_DTYPE_F32);
            }
            CHECK_OK(onnx_text_read(env, proto, NULL, &again));
            assert_int_equal(again->opaque_count, model->opaque_count);
            assert_int_equal(again->inputs[0].shape.dtype, types[t]);
            assert_int_equal(again->outputs[0].shape.dtype, types[t]);
        }
    }
}

/* ((a b) c) is rounded once: a product rounded after each step is another number. */
CHECK_CASE(test_weights_are_rounded_once)
{
    static const char text[] = "input x 2; weight a 2 = 1.0009765625 1.0009765625;"
                               "weight b 2 = 1.0009765625 1.0009765625; weight c 2 = 1.25 1.25;"
                               "node Mul a b -> p; node Mul p c -> q; node Add x q -> y; output y";
    const graft_model *model = read_narrow(env, text, GRAFT_DTYPE_F16);
    const Onnx__ModelProto *proto = packed_anew(env, model);
    assert_int_equal(proto->graph->n_initializer, 1);
    uint16_t bits = 0;
    memcpy(&bits, proto->graph->initializer[0]->raw_data.data, sizeof bits);
    const double exact = 1.0009765625 * 1.0009765625 * 1.25;
    const float steps =
        graft_half_round((double)graft_half_round(1.0009765625 * 1.0009765625) * 1.25);
    assert_true(widen(GRAFT_DTYPE_F16, bits) == graft_half_round(exact));
    assert_true(steps != graft_half_round(exact));
}

/* Single numbers that two-input functions read are operators, as in binary32; where a rule takes
 * one up, the tensor that is written is the one that was read, and a node that stays has its
 * own. */
CHECK_CASE(test_numbers_come_back)
{
    static const char text[] =
        "input x 2; weight a = 0.1; weight b 1 = -0.0; weight c 1 1 = 6e-8; weight d = 65504;"
        "node Mul x a -> p; node Add b p -> q; node Max q c -> r; node Min d r -> s;"
        "node Reshape s n -> y; ints n = 1 2; output y";
    for (uint32_t t = 0; t < 2; t++) {
        const graft_model *model = read_narrow(env, text, types[t]);
        const Onnx__GraphProto *before = model->onnx->proto->graph;
        uint32_t found = 0;
        assert_int_equal(model->opaque_count, 0);
        assert_non_null(strstr(onnx_text_print(env->life, model, &model->graph), "fill"));
        const Onnx__ModelProto *proto = packed_anew(env, model);
        for (size_t k = 0; k < 4; k++) {
            const Onnx__TensorProto *from = before->initializer[k];
            for (size_t i = 0; i < proto->graph->n_initializer; i++) {
                const Onnx__TensorProto *to = proto->graph->initializer[i];
                found += to->data_type == types[t] && to->n_dims == from->n_dims &&
                         to->raw_data.len == 2 &&
                         memcmp(to->raw_data.data, from->raw_data.data, 2) == 0;
            }
        }
        assert_int_equal(found, 4);
    }
}

/* A weight that does not fit is refused by name; what fits in bfloat16 is written there. A node
 * that came so with the file stays as it was. */
CHECK_CASE(test_weights_that_do_not_fit)
{
    static const char text[] = "input x 1; weight a 1 = 300; weight b 1 = 300; node Mul a b -> p;"
                               "node Add x p -> y; output y";
    Onnx__ModelProto *proto = NULL;
    const graft_model *model = read_narrow(env, text, GRAFT_DTYPE_F16);
    check_failed(env, pack_anew(env, model, &proto), GRAFT_CAPACITY,
                 "test.onnx: the rewritten weight 'graft_mul_0' does not fit into float16");
    uint8_t *data = NULL;
    size_t size = 0;
    CHECK_OK(graft_model_pack(env, env->life, model, &model->graph, &data, &size));
    model = read_narrow(env, text, GRAFT_DTYPE_BF16);
    (void)packed_anew(env, model);
}

/* A rule's weight that is no number, of such as are: also of binary32. */
CHECK_CASE(test_weights_that_are_no_numbers)
{
    static const char text[] = "input x 1; weight a 1 = 3e38; weight b 1 = 3e38; node Add a b -> p;"
                               "node Add x p -> y; output y";
    Onnx__ModelProto *proto = NULL;
    const graft_model *model = onnx_text_model(env, text);
    check_failed(env, pack_anew(env, model, &proto), GRAFT_CAPACITY, "does not fit into binary32");
    uint8_t *data = NULL;
    size_t size = 0;
    CHECK_OK(graft_model_pack(env, env->life, model, &model->graph, &data, &size));
}

/* A rule's weight that is too small for its type, of such as are not, gives other results: all of it,
 * or of a divisor one number. */
CHECK_CASE(test_weights_that_are_too_small)
{
    enum { F16 = GRAFT_DTYPE_F16, BF16 = GRAFT_DTYPE_BF16, F32 = GRAFT_DTYPE_F32 };
    /* clang-format off */
    static const struct {
        const char *text;
        uint8_t dtype;
        bool fits;
    } rows[] = {
        {"weight a 2 = 1e-4 2e-4; weight b 2 = 1e-4 1e-4; node Mul a b -> p; node Mul x p -> y", F16, false},
        {"weight a 2 = 1e-4 2e-4; weight b 2 = 1e-4 1e-4; node Mul a b -> p; node Mul x p -> y", BF16, true},
        {"weight a 2 = 1e-4 1; weight b 2 = 1e-4 1; node Mul a b -> p; node Mul x p -> y", F16, true},
        {"weight a 2 = 1e-4 1; weight b 2 = 1e-4 1; node Mul a b -> p; node Div x p -> y", F16, false},
        {"weight a 1 = 3e-7; ints k = 1 1; node Reshape a k -> p; node Mul x p -> y", F16, true},
        {"weight a 2 2 = 1e-25 0 0 1e-25; weight b 2 2 = 1e-25 1e-25 0 0; node MatMul a b -> p;node MatMul x p -> y",
         F32, false},
        {"weight a 2 2 = 1e-25 0 0 1; weight b 2 2 = 1e-25 1e-25 0 1; node MatMul a b -> p;node MatMul x p -> y", F32,
         true},
        {"weight a 2 = 1e-20 1; weight b 2 = 1e-20 1; node Mul a b -> p; node Mul x p -> y", F32, true},
        {"weight a 2 = 1e-20 1; weight b 2 = 1e-20 1; node Mul a b -> p; node Div x p -> y", F32, false},
        {"weight a 2 = 1e-20 1; weight b 2 = 1e-20 1; node Mul a b -> p; ints k = 1 2;node Reshape p k -> q; "
         "node Div x q -> y", F32, false},
        {"weight a 2 = 0 0; weight b 2 = 1 2; node Mul a b -> p; node Div x p -> y", F32, true},
        {"weight a 2 = 1 2; weight b 2 = 1 2; node Sub a b -> p; node Add x p -> y", F32, true},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = graft_arena_printf(env->life, "input x 1 2; %s; output y", rows[i].text);
        Onnx__ModelProto *proto = NULL;
        const graft_model *model = rows[i].dtype == F32 ? onnx_text_model(env, text)
                                                        : read_narrow(env, text, rows[i].dtype);
        const graft_status status = pack_anew(env, model, &proto);
        print_message("# %s\n", text);
        assert_int_equal(status, rows[i].fits ? GRAFT_OK : GRAFT_CAPACITY);
        graft_env_clear(env);
    }
}

/* Nodes of one type each are understood; one of two types is opaque, and so is a Cast. */
CHECK_CASE(test_mixtures)
{
    static const char text[] =
        "input x 2 4; weight w 4 4; input z 2 4; node MatMul x w -> a; node Cast a -> b : to=1;"
        "node Add b z -> c; node Relu c -> d; node Neg d -> e; node Add a z -> y; output y;"
        "output e";
    graft_model *model = NULL;
    Onnx__ModelProto *proto = onnx_text_message(env->life, text);
    narrow_port(proto->graph->input[0], GRAFT_DTYPE_F16);
    narrow_tensor(env->life, proto->graph->initializer[0], GRAFT_DTYPE_F16);
    CHECK_OK(onnx_text_read(env, proto, NULL, &model));
    assert_int_equal(model->graph.dtype, GRAFT_DTYPE_F16);
    assert_int_equal(model->opaque_count, 3); /* Cast, Neg with its constant, the last Add. */
    build_check(env->scratch, &model->graph);
}

/* In binary32 for who runs it; the ports still know what the file declares. */
CHECK_CASE(test_taken_for_binary32)
{
    const graft_model_options options = {.as_binary32 = true};
    for (size_t i = 0; i < sizeof understood / sizeof understood[0]; i++) {
        graft_model *model = NULL;
        Onnx__ModelProto *proto = narrow_text(env, understood[i], GRAFT_DTYPE_BF16);
        CHECK_OK(onnx_text_read(env, proto, &options, &model));
        assert_int_equal(model->graph.dtype, GRAFT_DTYPE_F32);
        assert_false(model->has_halves);
        assert_int_equal(model->inputs[0].shape.dtype, GRAFT_DTYPE_F32);
        assert_int_equal(model->inputs[0].dtype, GRAFT_DTYPE_BF16);
    }
}

/* Elements in the list of whole numbers, and data of a wrong size. */
CHECK_CASE(test_forms_of_data)
{
    static const char text[] = "input x 2; weight w 2 = 1.5 -2; node Add x w -> y; output y";
    graft_model *model = NULL;
    for (uint32_t t = 0; t < 2; t++) {
        Onnx__ModelProto *proto = narrow_text(env, text, types[t]);
        Onnx__TensorProto *tensor = proto->graph->initializer[0];
        int32_t items[2] = {narrow(types[t], 1.5F), narrow(types[t], -2.0F)};
        tensor->n_float_data = 1; /* Of no meaning here. */
        tensor->float_data = (float[]){7.0F};
        CHECK_OK(onnx_text_read(env, proto, NULL, &model));
        assert_true(((const float *)model->weights[0].data)[0] == 1.5F);
        tensor->n_float_data = 0;
        tensor->float_data = NULL;
        tensor->raw_data.len = 3;
        check_failed(env, onnx_text_read(env, proto, NULL, &model), GRAFT_BAD_INPUT,
                     "initializer 'w' has 3 bytes where its shape needs 4");
        tensor->has_raw_data = 0;
        tensor->raw_data.len = 0;
        tensor->n_int32_data = 2;
        tensor->int32_data = items;
        CHECK_OK(onnx_text_read(env, proto, NULL, &model));
        const float *data = model->weights[0].data;
        assert_true(data[0] == 1.5F && data[1] == -2.0F);
        CHECK_OK(onnx_text_read(env, proto, NULL, &model));
        assert_true(data == model->weights[0].data); /* Widened once. */
        tensor->n_int32_data = 1;
        check_failed(env, onnx_text_read(env, proto, NULL, &model), GRAFT_BAD_INPUT,
                     "has 1 elements where its shape needs 2");
    }
}

/* An island of another type, as normalisations are exported: the graph's constants have the type of
 * most of it, so the numbers of the island stay weights, and its nodes are understood. */
CHECK_CASE(test_numbers_of_another_type)
{
    static const char text[] =
        "input x 2 4; weight w 4 4; weight v 4; weight e = 0.5; weight k = 2; node MatMul x w -> a;"
        "node Add a v -> b; node Cast b -> c : to=1; node Add c e -> d; node Div d c -> f;"
        "node Cast f -> g : to=10; node Mul g k -> y; output y; output f";
    graft_model *model = NULL;
    Onnx__ModelProto *proto = onnx_text_message(env->life, text);
    for (size_t i = 0; i < 4; i++) {
        if (i != 2) {
            narrow_tensor(env->life, proto->graph->initializer[i], GRAFT_DTYPE_F16);
        }
    }
    narrow_port(proto->graph->input[0], GRAFT_DTYPE_F16);
    narrow_port(proto->graph->output[0], GRAFT_DTYPE_F16);
    CHECK_OK(onnx_text_read(env, proto, NULL, &model));
    assert_int_equal(model->graph.dtype, GRAFT_DTYPE_F16);
    assert_int_equal(model->opaque_count, 2); /* The casts. */
    build_check(env->scratch, &model->graph);
    CHECK_OK(pack_anew(env, model, &proto));
}
