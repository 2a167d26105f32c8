/* test_onnx_write.c - what is written for a graph: the original where nothing changed, generated
 * nodes where rules were at work, names, weights and declarations in every case. */
#include "graph/base/file.h"
#include "graph/model.h"
#include "tests/support/onnx_text.h"
#include "tests/support/variants.h"

#include <string.h>

static const char *written_text(graft_env *env, const graft_model *model, const graft_graph *graph)
{
    return onnx_text_print_proto(env->unit, onnx_text_written(env, model, graph)->graph);
}

/* ----------------------------------------------------------------------- generated nodes */

typedef struct {
    const char *name;
    const char *model;
    const char *onnx;
} write_row;

/* Every node generated anew; each must say the same in the words of its opset. */
/* clang-format off */
static const write_row generated[] = {
    {"conv", "input x 1 2 5 6; weight w 4 1 3 3; node Conv x w -> y : strides=1,2 pads=0,1,2,3 dilations=1,1 group=2",
     "w: 4 1 3 3\nConv x w -> y : dilations=1,1 group=2 kernel_shape=3,3 pads=0,1,2,3 strides=1,2"},
    {"conv with bias", "input x 1 2 5 6; weight w 4 2 3 3; weight b 4; node Conv x w b -> y",
     "w: 4 2 3 3\nb: 4\nConv x w b -> y : dilations=1,1 group=1 kernel_shape=3,3 pads=0,0,0,0 strides=1,1"},
    {"gemm", "input x 1 3; weight w 2 3; weight b 2; node Gemm x w b -> y : transB=1",
     "b: 2\ngraft_transpose_0: 3 2\nGemm x graft_transpose_0 b -> y"},
    {"batch normalisation",
     "input x 1 2; weight s 2; weight b 2; weight m 2; weight v 2; node BatchNormalization x s b m v -> y",
     "graft_weight_0: 2\ngraft_weight_1: 2\ngraft_zeros_2: 2\ngraft_ones_3: 2\nBatchNormalization x graft_weight_0 "
     "graft_weight_1 graft_zeros_2 graft_ones_3 -> y : epsilon=0"},
    {"clip by inputs", "opset 11; input x 2; weight h = 6; node Clip x _ h -> y",
     "graft_high_0:\nClip x _ graft_high_0 -> y"},
    {"clip by attributes", "opset 10; input x 2; node Clip x -> y : min=-1.0", "Clip x -> y : min=-1"},
    {"sum of three", "input a 2; input b 2; input c 2; node Sum a b c -> y",
     "Add a b -> graft_add_0\nAdd graft_add_0 c -> y"},
    {"leaky relu", "input x 2; node LeakyRelu x -> y : alpha=0.25", "LeakyRelu x -> y : alpha=0.25"},
    {"softmax inside", "opset 13; input x 2 3 4; node Softmax x -> y : axis=1", "Softmax x -> y : axis=1"},
    {"old softmax over two axes", "opset 11; input x 2 3 4; node Softmax x -> y",
     "graft_shape_1: 2\ngraft_shape_3: 3\nReshape x graft_shape_1 -> graft_reshape_0\nSoftmax graft_reshape_0 -> "
     "graft_softmax_2 : axis=1\nReshape graft_softmax_2 graft_shape_3 -> y"},
    {"mean by attribute", "input x 2 3 4; node ReduceMean x -> y : axes=0,2 keepdims=0",
     "ReduceMean x -> y : axes=0,2 keepdims=0"},
    {"sum by attribute", "opset 12; input x 2 3; node ReduceSum x -> y : axes=1,",
     "ReduceSum x -> y : axes=1 keepdims=1"},
    {"gelu in its parts", "opset 13; input x 2; node Gelu x -> y",
     "graft_root_0:\ngraft_one_2:\ngraft_half_5:\nDiv x graft_root_0 -> graft_y_1\nErf graft_y_1 -> graft_y_3\nAdd "
     "graft_y_3 graft_one_2 -> graft_y_4\nMul x graft_y_4 -> graft_y_6\nMul graft_y_6 graft_half_5 -> y"},
    {"gelu by tanh in its parts", "opset 13; input x 2; node Gelu x -> y : approximate=tanh",
     "graft_exponent_0:\ngraft_rate_2:\ngraft_root_5:\ngraft_one_7:\ngraft_half_10:\nPow x graft_exponent_0 -> "
     "graft_y_1\nMul graft_y_1 graft_rate_2 -> graft_y_3\nAdd x graft_y_3 -> graft_y_4\nMul graft_y_4 graft_root_5 "
     "-> graft_y_6\nTanh graft_y_6 -> graft_y_8\nAdd graft_y_8 graft_one_7 -> graft_y_9\nMul x graft_half_10 -> "
     "graft_y_11\nMul graft_y_11 graft_y_9 -> y"},
    {"swish", "opset 24; input x 2; node Swish x -> y : alpha=0.5",
     "graft_alpha_0:\nMul x graft_alpha_0 -> graft_y_1\nSigmoid graft_y_1 -> graft_y_2\nMul x graft_y_2 -> y"},
    {"hard swish before there was one", "opset 13; input x 2; node HardSwish x -> y",
     "HardSigmoid x -> graft_y_0 : alpha=0.166667 beta=0.5\nMul x graft_y_0 -> y"},
    {"functions with numbers",
     "opset 20; input x 2; node HardSigmoid x -> a; node Elu a -> b : alpha=2.0; node Gelu b -> y : approximate=tanh",
     "HardSigmoid x -> graft_hard_sigmoid_0 : alpha=0.2 beta=0.5\nElu graft_hard_sigmoid_0 -> graft_elu_1 : "
     "alpha=2\nGelu graft_elu_1 -> y : approximate=tanh"},
    {"a slice with steps",
     "opset 13; input x 4; ints s = 1; ints e = 4; ints a = 0; ints t = 2; node Slice x s e a t -> y",
     "graft_starts_0: 1\ngraft_ends_1: 1\ngraft_axes_2: 1\ngraft_steps_3: 1\nSlice x graft_starts_0 graft_ends_1 "
     "graft_axes_2 graft_steps_3 -> y"},
    {"an axis turned around",
     "opset 13; input x 4; ints s = 3; ints e = -9; ints a = 0; ints t = -1; node Slice x s e a t -> y",
     "graft_starts_0: 1\ngraft_ends_1: 1\ngraft_axes_2: 1\nSlice x graft_starts_0 graft_ends_1 graft_axes_2 "
     "graft_starts_0 -> y"},
    {"booleans", "opset 13; input x 2; input z 2; node Greater x z -> a; node Equal x z -> b; node Or a b -> c; "
     "node Not c -> d; node And c d -> e; node Where e x z -> y", "Less z x -> graft_less_0\nEqual x z -> "
     "graft_equal_to_1\nOr graft_less_0 graft_equal_to_1 -> graft_max_2\nNot graft_max_2 -> graft_logical_not_3\nAnd "
     "graft_max_2 graft_logical_not_3 -> graft_min_4\nWhere graft_min_4 x z -> y"},
    {"sums along an axis", "opset 13; input x 2 3; ints a = 1; node CumSum x a -> y : exclusive=1",
     "graft_axis_0: 1\nCumSum x graft_axis_0 -> y : exclusive=1"},
    {"elements repeated", "opset 13; input x 1 1 2 2; weight k 4 = 1 1 1 2; node Resize x _ k -> y : mode=nearest",
     "graft_scales_0: 4\nResize x _ graft_scales_0 -> y : coordinate_transformation_mode=asymmetric mode=nearest "
     "nearest_mode=floor"},
    {"elements repeated, with a region of none",
     "opset 11; input x 1 1 2 2; weight k 4 = 1 1 1 2; node Resize x _ k -> y : mode=nearest",
     "graft_roi_0: 0\ngraft_scales_1: 4\nResize x graft_roi_0 graft_scales_1 -> y : "
     "coordinate_transformation_mode=asymmetric mode=nearest nearest_mode=floor"},
    {"a transposed convolution", "input x 1 2 3 3; weight w 2 4 3 3; node ConvTranspose x w -> y : strides=2,2",
     "w: 2 4 3 3\nConvTranspose x w -> y : kernel_shape=3,3 output_padding=0,0 pads=0,0,0,0 strides=2,2"},
    {"instance normalisation",
     "input x 1 2 3 3; weight s 2; weight b 2; node InstanceNormalization x s b -> y : epsilon=0.5",
     "s: 2\nb: 2\nInstanceNormalization x s b -> y : epsilon=0.5"},
    {"root of the mean square", "opset 23; input x 2 3; weight s 3; node RMSNormalization x s -> y : epsilon=0.5",
     "s: 3\nRMSNormalization x s -> y : epsilon=0.5"},
    {"root of the mean square in its parts",
     "opset 17; input x 2 3; weight s 3; node RMSNormalization x s -> y : epsilon=0.5",
     "s: 3\ngraft_exponent_0:\ngraft_epsilon_3:\nPow x graft_exponent_0 -> graft_y_1\nReduceMean graft_y_1 -> "
     "graft_y_2 : axes=1 keepdims=1\nAdd graft_y_2 graft_epsilon_3 -> graft_y_4\nSqrt graft_y_4 -> graft_y_5\nDiv x "
     "graft_y_5 -> graft_y_6\nMul graft_y_6 s -> y"},
    {"root of the mean square in its parts, axes by input",
     "opset 18; input x 2 3; weight s 3; node RMSNormalization x s -> y : epsilon=0.5",
     "s: 3\ngraft_exponent_0:\ngraft_axes_3: 1\ngraft_epsilon_4:\nPow x graft_exponent_0 -> graft_y_1\nReduceMean "
     "graft_y_1 graft_axes_3 -> graft_y_2 : keepdims=1\nAdd graft_y_2 graft_epsilon_4 -> graft_y_5\nSqrt graft_y_5 "
     "-> graft_y_6\nDiv x graft_y_6 -> graft_y_7\nMul graft_y_7 s -> y"},
    {"layer normalisation",
     "opset 17; input x 2 3; weight s 3; weight b 3; node LayerNormalization x s b -> y : epsilon=0.5",
     "s: 3\nb: 3\nLayerNormalization x s b -> y : axis=-1 epsilon=0.5"},
    {"layer normalisation in its parts",
     "opset 13; input x 2 3; weight s 3; weight b 3; node LayerNormalization x s b -> y : epsilon=0.5",
     "s: 3\nb: 3\ngraft_exponent_2:\ngraft_epsilon_5:\nReduceMean x -> graft_y_0 : axes=1 keepdims=1\nSub x "
     "graft_y_0 -> graft_y_1\nPow graft_y_1 graft_exponent_2 -> graft_y_3\nReduceMean graft_y_3 -> graft_y_4 : "
     "axes=1 keepdims=1\nAdd graft_y_4 graft_epsilon_5 -> graft_y_6\nSqrt graft_y_6 -> graft_y_7\nDiv graft_y_1 "
     "graft_y_7 -> graft_y_8\nMul graft_y_8 s -> graft_y_9\nAdd graft_y_9 b -> y"},
    {"largest by attribute", "input x 2 3; node ReduceMax x -> y : axes=0,", "ReduceMax x -> y : axes=0 keepdims=1"},
    {"mean by input", "opset 18; input x 2 3; ints a = 1; node ReduceMean x a -> y",
     "graft_axes_0: 1\nReduceMean x graft_axes_0 -> y : keepdims=1"},
    {"concat of four", "input a 2 1; input b 2 2; input c 2 3; input d 2 1; node Concat a b c d -> y : axis=1",
     "Concat a b c d -> y : axis=1"},
    {"concat whose first half is read twice", "input a 1; input b 1; input c 1; output y; output z; "
     "node Concat a b -> t : axis=0; node Concat t c -> y : axis=0; node Relu t -> z",
     "Concat a b -> graft_concat_0 : axis=0\nConcat graft_concat_0 c -> y : axis=0\nRelu graft_concat_0 -> z\nout y z"},
    {"split in three", "opset 12; input x 6; node Split x -> a b c : split=1,2,3; output a; output b; output c",
     "Split x -> a b c : axis=0 split=1,2,3\nout a b c"},
    {"split by input", "input x 1 6; node Split x -> a b : axis=1; output a; output b",
     "graft_split_0: 2\nSplit x graft_split_0 -> a b : axis=1\nout a b"},
    {"slice of two axes", "input x 4 5; ints s = 1 0; ints e = 3 4; node Slice x s e -> y",
     "graft_starts_0: 2\ngraft_ends_1: 2\ngraft_axes_2: 2\nSlice x graft_starts_0 graft_ends_1 graft_axes_2 -> y"},
    {"slice by attributes", "opset 9; input x 4 5; node Slice x -> y : starts=1,0 ends=3,4",
     "Slice x -> y : axes=0,1 ends=3,4 starts=1,0"},
    {"pad of two axes", "input x 4 5; ints p = 1 0 2 3; node Pad x p -> y",
     "graft_pads_0: 4\ngraft_value_1:\nPad x graft_pads_0 graft_value_1 -> y : mode=constant"},
    {"pad by attributes", "opset 10; input x 4; node Pad x -> y : pads=1,2 value=1.5",
     "Pad x -> y : mode=constant pads=1,2 value=1.5"},
    {"transpose", "input x 2 3 4; node Transpose x -> y : perm=1,2,0", "Transpose x -> y : perm=1,2,0"},
    {"flatten", "input x 2 3 4; node Flatten x -> y", "graft_shape_0: 2\nReshape x graft_shape_0 -> y"},
    {"max pool", "input x 1 1 6 6; node MaxPool x -> y : kernel_shape=3,3 dilations=2,1",
     "MaxPool x -> y : kernel_shape=3,3 pads=0,0,0,0 strides=1,1 dilations=2,1"},
    {"average pool", "input x 1 1 6 6; node AveragePool x -> y : kernel_shape=3,3 count_include_pad=1",
     "AveragePool x -> y : kernel_shape=3,3 pads=0,0,0,0 strides=1,1 count_include_pad=1"},
    {"plain ones", "input x 1 2 3 3; node Relu x -> a; node Sigmoid a -> b; node Tanh b -> c; node Exp c -> d; "
     "node Sqrt d -> e; node Erf e -> f; node Sub f x -> g; node Mul g x -> h; node Div h x -> i; node Max i x -> j; "
     "node Min j x -> k; node GlobalAveragePool k -> l; node Identity l -> y", "Relu x -> graft_relu_0\nSigmoid "
     "graft_relu_0 -> graft_sigmoid_1\nTanh graft_sigmoid_1 -> graft_tanh_2\nExp graft_tanh_2 -> graft_exp_3\nSqrt "
     "graft_exp_3 -> graft_sqrt_4\nErf graft_sqrt_4 -> graft_erf_5\nSub graft_erf_5 x -> graft_sub_6\nMul "
     "graft_sub_6 x -> graft_mul_7\nDiv graft_mul_7 x -> graft_div_8\nMax graft_div_8 x -> graft_max_9\nMin "
     "graft_max_9 x -> graft_min_10\nGlobalAveragePool graft_min_10 -> graft_global_avg_pool_11\nIdentity "
     "graft_global_avg_pool_11 -> y"},
    {"weights alone are computed", "input x 2; weight w 1 2; node Exp w -> e; node Squeeze e -> f; node Add x f -> y",
     "graft_reshape_0: 2\nAdd x graft_reshape_0 -> y"},
    {"a constant output", "input x 2; weight w 2; node Exp w -> y; node Relu x -> z; output y; output z",
     "graft_exp_0: 2\nRelu x -> z\nIdentity graft_exp_0 -> y\nout y z"},
    {"beside an opaque node", "input x 2; node Relu x -> a; node Magic a _ -> b; node Relu b -> y; info b 2",
     "Relu x -> graft_relu_0\nMagic graft_relu_0 _ -> b\nRelu b -> y"},
    {"weights of 8 bits stay what they are", "input x 2; weight w 2; weight s = 0.5; node QuantizeLinear w s -> q; "
     "node DequantizeLinear q s -> d; node Exp d -> e; node Add x e -> y; output y; output e",
     "w: 2\ns:\nQuantizeLinear w s -> q\nDequantizeLinear q s -> d\nExp d -> e\nAdd x e -> y\nout y e"},
    {"before opset 7", "opset 6; ir 3; input x 2 3; input b 3; weight b 3; node Add x b -> y : broadcast=1",
     "b: 3\nAdd x b -> y"},
};
/* clang-format on */

/* Fused by rules, and taken apart again where ONNX has no single operator. */
/* clang-format off */
static const write_row fused[] = {
    {"conv, normalisation, sum, relu", "input x 1 2 4 4; weight w 2 2 1 1; weight s 2; weight b 2; weight m 2; "
     "weight v 2; node Conv x w -> a; node BatchNormalization a s b m v -> c; node Add c x -> d; node Relu d -> y",
     "graft_weight_3: 2\ngraft_mul_2: 2 2 1 1\nConv x graft_mul_2 graft_weight_3 -> graft_y_0 : dilations=1,1 "
     "group=1 kernel_shape=1,1 pads=0,0,0,0 strides=1,1\nAdd graft_y_0 x -> graft_y_1\nRelu graft_y_1 -> y"},
    {"conv and clip to 6", "input x 1 1 4 4; weight w 1 1 1 1; weight b 1; weight l = 0; weight h = 6; "
     "node Conv x w b -> a; node Clip a l h -> y",
     "w: 1 1 1 1\nb: 1\ngraft_low_1:\ngraft_high_2:\nConv x w b -> graft_y_0 : dilations=1,1 group=1 "
     "kernel_shape=1,1 pads=0,0,0,0 strides=1,1\nClip graft_y_0 graft_low_1 graft_high_2 -> y"},
    {"gemm and relu", "input x 1 3; weight w 3 2; weight b 2; node Gemm x w b -> a; node Relu a -> y",
     "w: 3 2\nb: 2\nGemm x w b -> graft_y_0\nRelu graft_y_0 -> y"},
    {"identity before an output", "input x 2; node Relu x -> a; node Identity a -> y", "Relu x -> y"},
    {"identity before two outputs",
     "input x 2; node Relu x -> a; node Identity a -> y; node Identity a -> z; output a; output y; output z",
     "Relu x -> a\nIdentity a -> y\nIdentity a -> z\nout a y z"},
    {"identity between input and output", "input x 2; node Identity x -> y", "Identity x -> y"},
    {"identity of what a subgraph reads", "input x 2; input c; node Relu x -> a; node Identity a -> b; graph t; "
     "node Exp b -> r; output r; end; node If c -> y : then_branch=@t else_branch=@t",
     "Relu x -> b\nIf c -> y : then_branch=@t else_branch=@t"},
    {"identity of an input that a subgraph reads",
     "input x 2; input c; node Identity x -> b; graph t; node Exp b -> r; output r; end; "
     "node If c -> y : then_branch=@t else_branch=@t; node If c -> z : then_branch=@t else_branch=@t; output y; "
     "output z",
     "Identity x -> b\nIf c -> y : then_branch=@t else_branch=@t\nIf c -> z : then_branch=@t else_branch=@t\nout y z"},
    {"identity of an input that a subgraph reads and that is an output",
     "input x 2; input c; node Identity x -> b; graph t; node Exp b -> r; output r; end; "
     "node If c -> y : then_branch=@t else_branch=@t; node If c -> z : then_branch=@t else_branch=@t; output y; "
     "output b; output z", "Identity x -> b\nIf c -> y : then_branch=@t else_branch=@t\nIf c -> z : then_branch=@t "
     "else_branch=@t\nout y b z"},
    {"what stays is the original node", "input x 2 6; node Identity x -> i; ints s = 3 -1; node Reshape i s -> a; "
     "node Split a -> b c : axis=0 split=1,2; opset 12; output b; output c",
     "s: 2\nReshape x s -> a\nSplit a -> b c : axis=0 split=1,2\nout b c"},
    {"a target that was computed is stored",
     "input x 2 3; node Identity x -> i; scalar k = 0; ints a = 0; ints m = -1; node Shape x -> s; "
     "node Gather s k -> d; node Unsqueeze d a -> e; node Concat m e -> f : axis=0; node Reshape i f -> y",
     "graft_f_0: 2\nReshape x graft_f_0 -> y"},
    {"a number that was computed is stored",
     "input x 2; node Identity x -> i; weight a = 4; node Sqrt a -> b; node Mul i b -> y", "b:\nMul x b -> y"},
    {"an output of a split that nothing reads",
     "opset 12; input x 6; node Identity x -> i; node Split i -> a b c : split=1,2,3; output a; output b",
     "Split x -> a b c : split=1,2,3\nout a b"},
};
/* clang-format on */

static void check_row(graft_env *env, const write_row *row, bool fuse)
{
    uint32_t applied = 0;
    graft_model *model = onnx_text_model(env, row->model);
    graft_graph *graph = fuse ? variant_fused(env, env->life, model, &applied)
                              : variant_regenerated(env->life, model);
    assert_true(!fuse || applied > 0);
    onnx_text_is(env->unit, written_text(env, model, graph), row->onnx);
}

CHECK_ROWS(test_generated, generated) { check_row(env, place, false); }

CHECK_ROWS(test_fused, fused) { check_row(env, place, true); }

/* --------------------------------------------------------------------- what is not changed */

CHECK_CASE(test_unchanged_bytes)
{
    static const char *const models[] = {
        "input x N 3 ?; ints s = -1 3; node Reshape x s -> y; output y",
        "input x 2 3; weight w 2 3; node Shape x -> s; node Reshape w s -> a; node Add x a -> y;"
        "info a 2 3; output y 2 3",
        "opset 6; ir 3; input x 2 3; input w 3; weight w 3; node Add x w -> y : broadcast=1",
        "input x 6; node Split x -> a b : axis=0; node Dropout a -> c m; output b; output c",
        "input x 2; input c; graph t; node Relu x -> r; output r; end; node Magic x -> q;"
        "node If c -> y : then_branch=@t else_branch=@t; output y; output q",
        "input x 2; output x",
        "weight w 2; output w",
    };
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        uint8_t *before = NULL;
        uint8_t *after = NULL;
        size_t before_size = 0;
        size_t after_size = 0;
        graft_model *model = NULL;
        onnx_text_bytes(env->life, models[i], &before, &before_size);
        CHECK_OK(graft_model_parse(env, env->life, (graft_bytes){"x", before, before_size}, NULL,
                                   &model));
        CHECK_OK(graft_model_pack(env, env->life, model, &model->graph, &after, &after_size));
        assert_int_equal(before_size, after_size);
        assert_memory_equal(before, after, before_size);
    }
}

CHECK_CASE(test_dead_parts_are_dropped)
{
    graft_model *model = onnx_text_model(
        env, "input x 2; input unused 3; weight w 2; weight gone 2; node Exp b -> y;"
             "node Add x w -> b; node Relu x -> dead; info dead 2; info b 2; output y");
    Onnx__GraphProto *graph = onnx_text_written(env, model, &model->graph)->graph;
    assert_string_equal(onnx_text_print_proto(env->unit, graph),
                        "w: 2\nAdd x w -> b\nExp b -> y\nout y");
    assert_int_equal(graph->n_input, 2);
    assert_int_equal(graph->n_value_info, 1);
    assert_string_equal(graph->value_info[0]->name, "b");
}

/* What Graft does not know of a message survives: here field 2000 of the model, the graph, a node.
 */
CHECK_CASE(test_unknown_fields)
{
    static const uint8_t payload[] = {0x03, 'a', 'b', 'c'};
    uint8_t *data = NULL;
    size_t size = 0;
    graft_model *model = NULL;
    Onnx__ModelProto *proto =
        onnx_text_message(env->life, "input x 2; node Relu x -> a; node Exp a -> y; output y");
    ProtobufCMessageUnknownField field = {
        .tag = 2000, .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED, .len = sizeof(payload)};
    field.data = (uint8_t *)graft_arena_alloc(env->life, sizeof(payload));
    memcpy(field.data, payload, sizeof(payload));
    ProtobufCMessage *holders[] = {&proto->base, &proto->graph->base, &proto->graph->node[0]->base};
    for (size_t i = 0; i < 3; i++) {
        holders[i]->n_unknown_fields = 1;
        holders[i]->unknown_fields = &field;
    }
    graft_wire_encode(env->life, &proto->base, &data, &size);
    CHECK_OK(graft_model_parse(env, env->life, (graft_bytes){"x", data, size}, NULL, &model));
    Onnx__ModelProto *out = onnx_text_written(env, model, &model->graph);
    ProtobufCMessage *kept[] = {&out->base, &out->graph->base, &out->graph->node[0]->base};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(kept[i]->n_unknown_fields, 1);
        assert_int_equal(kept[i]->unknown_fields[0].tag, 2000);
        assert_memory_equal(kept[i]->unknown_fields[0].data, payload, sizeof(payload));
    }
}

CHECK_CASE(test_texts_of_the_model)
{
    uint32_t applied = 0;
    Onnx__ModelProto *proto =
        onnx_text_message(env->life, "input x 2; node Relu x -> a; node Identity a -> y; output y");
    Onnx__StringStringEntryProto entry;
    Onnx__StringStringEntryProto *entries[1] = {&entry};
    onnx__string_string_entry_proto__init(&entry);
    entry.key = graft_arena_strdup(env->life, "author");
    entry.value = graft_arena_strdup(env->life, "somebody");
    proto->doc_string = graft_arena_strdup(env->life, "of the model");
    proto->graph->doc_string = graft_arena_strdup(env->life, "of the graph");
    proto->graph->node[0]->doc_string = graft_arena_strdup(env->life, "of the node");
    proto->n_metadata_props = 1;
    proto->metadata_props = entries;
    graft_model *model = NULL;
    CHECK_OK(onnx_text_read(env, proto, NULL, &model));
    graft_graph *graph = variant_fused(env, env->life, model, &applied);
    Onnx__ModelProto *out = onnx_text_written(env, model, graph);
    assert_string_equal(out->doc_string, "of the model");
    assert_string_equal(out->graph->doc_string, "of the graph");
    assert_string_equal(out->graph->name, "test");
    assert_string_equal(out->graph->node[0]->doc_string, "of the node");
    assert_string_equal(out->graph->node[0]->name, "n0");
    assert_string_equal(out->metadata_props[0]->value, "somebody");
}

/* A new node is called as its output is, unless a node that stays has that name: runtimes refuse
 * two of one name. */
CHECK_CASE(test_no_two_nodes_of_one_name)
{
    uint32_t applied = 0;
    graft_model *model = onnx_text_model(
        env, "input x 2; node Exp x -> e; node Identity x -> n0; node Identity x -> y; output e;"
             "output n0; output y");
    graft_graph *graph = variant_fused(env, env->life, model, &applied);
    Onnx__GraphProto *out = onnx_text_written(env, model, graph)->graph;
    assert_string_equal(onnx_text_print_proto(env->unit, out),
                        "Exp x -> e\nIdentity x -> n0\nIdentity x -> y\nout e n0 y");
    assert_string_equal(out->node[0]->name, "n0");
    assert_string_equal(out->node[1]->name, "graft_n0_0");
    assert_string_equal(out->node[2]->name, "y");
}

/* A rule that reads what was inside an ONNX node breaks the node up. */
CHECK_CASE(test_inner_value_is_read)
{
    graft_index node = GRAFT_NONE;
    graft_model *model =
        onnx_text_model(env, "input a 2; input b 2; input c 2; node Sum a b c -> y; output y");
    graft_graph *graph = graft_model_graph_copy(env->life, &model->graph);
    graft_index inner = graft_node_output(graph, 0, 0);
    CHECK_OK(graft_graph_add_node(graph, GRAFT_OP_relu, NULL, &inner, GRAFT_NONE, &node));
    graft_index inputs[2] = {graph->outputs[0], graft_node_output(graph, node, 0)};
    CHECK_OK(graft_graph_add_node(graph, GRAFT_OP_mul, NULL, inputs, GRAFT_NONE, &node));
    graph->outputs[0] = graft_node_output(graph, node, 0);
    assert_string_equal(written_text(env, model, graph),
                        "Add a b -> graft_add_0\nAdd graft_add_0 c -> graft_y_1\n"
                        "Relu graft_add_0 -> graft_relu_2\nMul graft_y_1 graft_relu_2 -> y\nout y");
}

/* ------------------------------------------------------------------- sizes, weights, opsets */

static int64_t size_of(const Onnx__ValueInfoProto *port, size_t axis)
{
    return port->type->tensor_type->shape->dim[axis]->dim_value;
}

CHECK_CASE(test_bound_sizes)
{
    uint32_t applied = 0;
    const graft_model_size sizes[] = {
        {.name = "N",   .value = 4},
        {.name = "x.2", .value = 5}
    };
    const graft_model_options options = {.sizes = sizes, .size_count = 2};
    graft_model *model = NULL;
    Onnx__ModelProto *proto = onnx_text_message(
        env->life, "input x N 3 ?; node Identity x -> a; node Relu a -> y; output y N 3 M");
    CHECK_OK(onnx_text_read(env, proto, &options, &model));
    assert_int_equal(model->size_count, 2);
    assert_int_equal(model->graph.values[model->graph.outputs[0]].shape.dims[0], 4);
    assert_int_equal(model->graph.values[model->graph.outputs[0]].shape.dims[2], 5);
    Onnx__GraphProto *same = onnx_text_written(env, model, &model->graph)->graph;
    assert_string_equal(same->input[0]->type->tensor_type->shape->dim[0]->dim_param, "N");
    graft_graph *graph = variant_fused(env, env->life, model, &applied);
    Onnx__GraphProto *out = onnx_text_written(env, model, graph)->graph;
    assert_int_equal(size_of(out->input[0], 0), 4);
    assert_null(out->input[0]->type->tensor_type->shape->dim[0]->dim_param);
    assert_int_equal(size_of(out->input[0], 2), 5);
    assert_int_equal(size_of(out->output[0], 0), 4);
    assert_string_equal(out->output[0]->type->tensor_type->shape->dim[2]->dim_param, "M");
}

/* A branch that was chosen holds for the sizes that chose it, though nothing was rewritten. */
CHECK_CASE(test_chosen_sizes)
{
    graft_model *model = onnx_text_model(
        env, "input x N 3; scalar i = 0; scalar two = 2; node Shape x -> s; node Gather s i -> n;"
             "node Less n two -> c; graph t; node Relu x -> r; output r; end;"
             "graph e; node Exp x -> r; output r; end;"
             "node If c -> y : then_branch=@t else_branch=@e; output y N 3");
    Onnx__GraphProto *out = onnx_text_written(env, model, &model->graph)->graph;
    assert_string_equal(onnx_text_print_proto(env->unit, out), "Relu x -> y\nout y");
    assert_int_equal(size_of(out->input[0], 0), 1);
    assert_int_equal(size_of(out->output[0], 0), 1);
}

/* Before IR version 4 initializers are inputs too; one that is gone is no input any more, and new
 * ones need the later version. */
CHECK_CASE(test_old_initializers)
{
    graft_model *model = onnx_text_model(
        env, "opset 8; ir 3; input x 2; input w 2; input gone 2; weight w 2; weight gone 2;"
             "node Exp w -> e; node Add x e -> y; output y");
    assert_int_equal(model->input_count, 1);
    Onnx__ModelProto *same = onnx_text_written(env, model, &model->graph);
    assert_int_equal(same->ir_version, 3);
    assert_int_equal(same->graph->n_input, 2);
    Onnx__ModelProto *out = onnx_text_written(env, model, variant_regenerated(env->life, model));
    assert_int_equal(out->ir_version, 4);
    assert_int_equal(out->graph->n_input, 1);
    assert_string_equal(out->graph->initializer[0]->name, "graft_exp_0");
}

/* What makes much of little is not stored; what a rule makes of it is. */
CHECK_CASE(test_large_constants_stay_nodes)
{
    uint32_t applied = 0;
    graft_model *model = onnx_text_model(
        env,
        "opset 9; input x 1 8 4 4; weight s 8; weight v 8; ints d = 8 8 3 3; ints e = 2 2;"
        "node ConstantOfShape d -> w; node ConstantOfShape d -> u; node ConstantOfShape e -> c;"
        "node Identity x -> i; node Conv i w -> a; node Conv x u -> b;"
        "node BatchNormalization b s s s v -> n; node Add a n -> t; node Add t c -> y;"
        "output y");
    graft_graph *graph = variant_fused(env, env->life, model, &applied);
    assert_int_equal(applied, 3);
    graft_model_form form;
    CHECK_OK(graft_model_form_of(env, model, graph, &form));
    assert_int_equal(form.nodes, 4); /* The constants are none. */
    assert_int_equal(form.made, 2);
    assert_string_equal(
        written_text(env, model, graph),
        "d: 4\ngraft_weight_3: 8\ngraft_mul_2: 8 8 3 3\nc: 2 2\nConstantOfShape d -> w\n"
        "Conv x w -> a\nConv x graft_mul_2 graft_weight_3 -> graft_conv_bias_add_0_1 :"
        " dilations=1,1 group=1 kernel_shape=3,3 pads=0,0,0,0 strides=1,1\n"
        "Add graft_conv_bias_add_0_1 a -> graft_conv_bias_add_0\n"
        "Add graft_conv_bias_add_0 c -> y\nout y");
}

/* A node that reads a single number, which is an operator too, is one node of the file. */
CHECK_CASE(test_nodes_with_numbers_count)
{
    graft_model *model = onnx_text_model(
        env, "input x 2; weight h = 0.5; node Mul x h -> a; node Exp a -> y; output y");
    graft_model_form form;
    CHECK_OK(graft_model_form_of(env, model, &model->graph, &form));
    assert_int_equal(form.nodes, 2);
    assert_int_equal(form.made, 0);
}

/* More numbers than a node's longest plan has parts: each is an operator, and there is room. */
CHECK_CASE(test_many_numbers)
{
    enum { NUMBERS = 32 };
    graft_buffer text = {.arena = env->life};
    graft_buffer_printf(&text, "input x 2; weight c = 1; node Sum x");
    for (uint32_t i = 0; i < NUMBERS; i++) {
        graft_buffer_printf(&text, " c");
    }
    graft_buffer_printf(&text, " -> y; output y");
    const graft_model *model = onnx_text_model(env, text.data);
    assert_int_equal(model->opaque_count, 0);
    assert_int_equal(graft_graph_node_count(&model->graph), 2 * NUMBERS);
}

/* A node that is not touched finds what a ConstantOfShape gave it as a weight. */
CHECK_CASE(test_fills_of_settings_are_stored)
{
    uint32_t applied = 0;
    graft_model *model = onnx_text_model(
        env, "opset 9; input x 1 2 4 4; weight w 2 2 3 3; weight p 2; weight v 2; ints d = 2;"
             "node ConstantOfShape d -> s; node BatchNormalization x s s s v -> n;"
             "node Conv n w -> a; node BatchNormalization a p p p v -> y; output y");
    graft_graph *graph = variant_fused(env, env->life, model, &applied);
    assert_true(applied > 0);
    assert_string_equal(
        written_text(env, model, graph),
        "v: 2\ns: 2\ngraft_weight_1: 2\ngraft_mul_0: 2 2 3 3\nBatchNormalization x s s s v -> n\n"
        "Conv n graft_mul_0 graft_weight_1 -> y :"
        " dilations=1,1 group=1 kernel_shape=3,3 pads=0,0,0,0 strides=1,1\nout y");
}

/* Weights are no inputs of a changed graph, whatever the version: a caller could set them, and
 * runtimes would not count on them. Version 3 alone has them there as a matter of form, and stays
 * when there are no new weights. */
CHECK_CASE(test_weights_among_inputs)
{
    enum { IR_NEWEST = 13 };
    for (uint32_t ir = 3; ir <= IR_NEWEST; ir++) {
        for (uint32_t folds = 0; folds < 2; folds++) {
            graft_model *model = onnx_text_model(
                env, graft_arena_printf(
                         env->unit,
                         "opset 8; ir %u; input x 1 2 3 3; input w 2 2 1 1; weight w 2 2 1 1;"
                         "input s 2; weight s 2; input t 2; weight t 2; node Identity x -> a;"
                         "node Constant -> c : value_float=2.0; node Conv a w -> b;"
                         "node %s -> d; node Mul d c -> y; output y",
                         ir, folds == 1 ? "BatchNormalization b s s t t" : "Sum b w"));
            uint32_t applied = 0;
            Onnx__ModelProto *same = onnx_text_written(env, model, &model->graph);
            assert_int_equal(same->ir_version, ir);
            assert_int_equal(same->graph->n_input, folds == 1 ? 4 : 2);
            graft_graph *graph = variant_fused(env, env->unit, model, &applied);
            assert_true(applied > 0);
            Onnx__ModelProto *out = onnx_text_written(env, model, graph);
            assert_int_equal(out->ir_version, ir == 3 && folds == 1 ? 4 : ir);
            assert_int_equal(out->graph->n_input, ir == 3 && folds == 0 ? 2 : 1);
            assert_string_equal(out->graph->input[0]->name, "x");
        }
    }
}

/* Where the options ask for it, an initializer that is an input too is one that a caller may set:
 * what is computed from it is not known, and it is written as both; not so in files of IR version
 * 3. */
CHECK_CASE(test_settable_weights)
{
    static const char text[] =
        "opset 8; ir %u; input x 2 3; input w 3; weight w 3 = 1 2 3; weight v 3 = 4 5 6;"
        "input u 2; weight u 2; node Mul w v -> z; node Relu x -> a; node Add a z -> y; output y";
    const graft_model_options options = {.settable = true, .keep_open = true};
    for (uint32_t ir = 3; ir <= 4; ir++) {
        graft_model *model = NULL;
        Onnx__ModelProto *proto =
            onnx_text_message(env->life, graft_arena_printf(env->life, text, ir));
        CHECK_OK(onnx_text_read(env, proto, &options, &model));
        assert_int_equal(model->input_count, ir == 3 ? 1 : 3);
        const Onnx__ModelProto *out =
            onnx_text_written(env, model, variant_regenerated(env->unit, model));
        assert_int_equal(out->graph->n_input, ir == 3 ? 1 : 3);
        assert_int_equal(out->graph->n_node, ir == 3 ? 2 : 3);
        assert_int_equal(out->graph->n_initializer, ir == 3 ? 1 : 3);
        if (ir == 4) {
            assert_string_equal(out->graph->input[1]->name, "w");
            assert_string_equal(out->graph->initializer[1]->name, "w");
            assert_string_equal(out->graph->initializer[2]->name, "u");
        }
    }
    Onnx__ModelProto *twice = onnx_text_message(env->life, graft_arena_printf(env->life, text, 4U));
    graft_model *model = NULL;
    twice->graph->initializer[2]->name = twice->graph->initializer[0]->name;
    assert_int_equal(onnx_text_read(env, twice, &options, &model), GRAFT_BAD_INPUT);
    assert_non_null(strstr(env->message, "the name 'w' is given twice"));
    graft_env_clear(env);
}

/* The same of sparse ones. */
CHECK_CASE(test_settable_sparse)
{
    for (uint32_t settable = 0; settable < 2; settable++) {
        const graft_model_options options = {.settable = settable == 1, .keep_open = true};
        graft_model *model = NULL;
        Onnx__ModelProto *proto = onnx_text_message(
            env->life, "opset 17; ir 8; input x 3; input w 3; weight w 1 = 2; weight i 1;"
                       "node Mul x w -> y; output y");
        Onnx__GraphProto *graph = proto->graph;
        Onnx__SparseTensorProto *sparse = GRAFT_NEW(env->life, Onnx__SparseTensorProto, 1);
        onnx__sparse_tensor_proto__init(sparse);
        sparse->values = graph->initializer[0];
        sparse->indices = graph->initializer[1];
        graph->sparse_initializer = &sparse;
        graph->n_sparse_initializer = 1;
        graph->n_initializer = 0;
        CHECK_OK(onnx_text_read(env, proto, &options, &model));
        assert_int_equal(model->input_count, settable == 1 ? 2 : 1);
        const Onnx__ModelProto *out = onnx_text_written(env, model, &model->graph);
        assert_int_equal(out->graph->n_sparse_initializer, 1);
        assert_string_equal(out->graph->sparse_initializer[0]->values->name, "w");
        out = onnx_text_written(env, model, variant_regenerated(env->unit, model));
        assert_int_equal(out->graph->n_sparse_initializer, 1);
    }
}

CHECK_CASE(test_old_opsets)
{
    uint8_t *data = NULL;
    size_t size = 0;
    static const char *const models[] = {
        "opset 6; input x 2; node Relu x -> a; node Magic a -> y; output y",
        "opset 7; input x 2; input z 1; node Max x z -> y; output y",
        "opset 9; input x 1 1 3 3; node MaxPool x -> y : kernel_shape=2,2 dilations=2,1; output y",
    };
    static const char *const messages[] = {"opset 6 is too old to write a changed graph",
                                           "Max or Min of unequal shapes needs opset 8",
                                           "MaxPool with dilations needs opset 10"};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        graft_model *model = onnx_text_model(env, models[i]);
        check_failed(env,
                     graft_model_pack(env, env->unit, model, variant_regenerated(env->life, model),
                                      &data, &size),
                     GRAFT_UNSUPPORTED, messages[i]);
        assert_null(data);
    }
}

CHECK_CASE(test_forms_of_old_opsets)
{
    static const struct {
        uint32_t op;
        int opset; /* The first that has it. */
    } firsts[] = {
        {GRAFT_OP_erf,        9 },
        {GRAFT_OP_gelu,       9 },
        {GRAFT_OP_max,        8 },
        {GRAFT_OP_cumsum,     11},
        {GRAFT_OP_swish,      7 },
        {GRAFT_OP_hard_swish, 7 },
        {GRAFT_OP_gelu_tanh,  7 },
        {GRAFT_OP_mish,       18},
        {GRAFT_OP_conv,       7 }
    };
    for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        for (int opset = 7; opset < 13; opset++) {
            const graft_model *model = onnx_text_model(
                env, graft_arena_printf(env->unit,
                                        "opset %d; input x 2; node Relu x -> y; output y", opset));
            assert_int_equal(graft_model_has_form(model, firsts[i].op), opset >= firsts[i].opset);
        }
    }
}

CHECK_CASE(test_external_data)
{
    const graft_model_write_options options = {.external_data = true};
    char *path = check_path("deep/x.onnx");
    graft_model *model = onnx_text_model(
        env, "input x 40 40; weight w 40 40; weight b 40; weight v 40 40; node Add x w -> a;"
             "node Add a b -> c; node Mul c v -> y; output y");
    graft_model *again = NULL;
    CHECK_OK(graft_model_write(env, model, &model->graph, path, &options));
    uint8_t *data = NULL;
    size_t size = 0;
    CHECK_OK(graft_file_read(env, env->life, path, &data, &size));
    assert_true(size < 2000);
    CHECK_OK(graft_model_read(env, env->life, path, NULL, &again));
    assert_int_equal(again->weight_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(again->weights[i].data_bytes, model->weights[i].data_bytes);
        assert_memory_equal(again->weights[i].data, model->weights[i].data,
                            model->weights[i].data_bytes);
    }
    /* Read from memory the other file is out of reach; cut short it does not fit. */
    graft_model *none = NULL;
    check_failed(env,
                 graft_model_parse(env, env->life, (graft_bytes){"m", data, size}, NULL, &none),
                 GRAFT_BAD_INPUT, "m: tensor 'w' lies in another file, 'x.onnx.");
    Onnx__ModelProto *proto = onnx_text_written(env, model, &model->graph);
    assert_non_null(proto);
    const char *start = memmem(data, size, "x.onnx.", 7);
    assert_non_null(start);
    char *weights = graft_arena_printf(env->life, "%s/deep/%.*s", check_folder(), 28, start);
    CHECK_OK(graft_file_write(env, weights, "short", 5));
    check_failed(env, graft_model_read(env, env->life, path, NULL, &none), GRAFT_BAD_INPUT,
                 "tensor 'w' lies at 0 to 6400");
}

CHECK_CASE(test_weights_of_a_graph)
{
    graft_weights weights;
    graft_model *model = onnx_text_model(
        env, "input x 2; weight w 2 = 1 4; weight u 2 = 3 3; ints n = 1; node Sqrt w -> r; "
             "node Mul r u -> p; node Add x p -> y; node Exp u -> q; node Sub x q -> dead");
    CHECK_OK(graft_model_fold_weights(env, env->life, model, &model->graph, &weights));
    for (graft_index v = 0; v < model->graph.value_end; v++) {
        const char *name = graft_model_value_name(model, &model->graph, v);
        const float *data = graft_weights_data(&weights, v);
        if (strcmp(name, "p") == 0) {
            assert_true(data[0] == 3.0F && data[1] == 6.0F);
        } else if (strcmp(name, "q") == 0) { /* What reads it is not read itself. */
            assert_non_null(data);
        } else if (strcmp(name, "x") == 0 || strcmp(name, "y") == 0) {
            assert_null(data);
        }
    }
    assert_null(graft_weights_data(&weights, 1000));
}

/* Const nodes that compute the same share the result; the file holds it once. */
CHECK_CASE(test_equal_weights_are_shared)
{
    graft_weights weights;
    graft_model *model = onnx_text_model(
        env, "input x 1 2; weight w 2 2; weight u 2 2; node Gemm x w -> a : transB=1;"
             "node Gemm a w -> b : transB=1; node Gemm b u -> y : transB=1; output y");
    const graft_graph *graph = &model->graph;
    const float *seen[3] = {NULL};
    uint32_t count = 0;
    CHECK_OK(graft_model_fold_weights(env, env->life, model, graph, &weights));
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (graph->nodes[n].op == GRAFT_OP_transpose) {
            seen[count++] = graft_weights_data(&weights, graft_node_output(graph, n, 0));
        }
    }
    assert_int_equal(count, 3);
    assert_true(seen[0] != NULL && seen[0] == seen[1] && seen[1] != seen[2]);
    assert_string_equal(written_text(env, model, variant_regenerated(env->unit, model)),
                        "graft_transpose_1: 2 2\ngraft_transpose_3: 2 2\n"
                        "MatMul x graft_transpose_1 -> graft_matmul_0\n"
                        "MatMul graft_matmul_0 graft_transpose_1 -> graft_matmul_2\n"
                        "MatMul graft_matmul_2 graft_transpose_3 -> y\nout y");
}

/* What is written when the second of two products of one weight, each by its transpose, is anew. */
static const char *written_beside(graft_env *env, const char *opset, uint32_t op)
{
    const graft_model *model = onnx_text_model(
        env, graft_arena_printf(env->unit,
                                "%s input x 1 3; input z 1 3; weight w 2 3; weight b 2;"
                                "node Gemm x w b -> a : transB=1; node Gemm z w b -> c : transB=1;"
                                "output a; output c",
                                opset));
    graft_graph *graph = graft_model_graph_copy(env->life, &model->graph);
    graft_index old = GRAFT_NONE, node = GRAFT_NONE;
    graft_index inputs[3];
    for (graft_index n = 0; n < graph->node_end; n++) {
        old = graph->nodes[n].op == GRAFT_OP_matmul_bias ? n : old;
    }
    for (uint32_t k = 0; k < 3; k++) {
        inputs[k] = graft_node_input(graph, old, k);
    }
    CHECK_OK(graft_graph_add_node(graph, op, graph->nodes[old].attrs, inputs, GRAFT_NONE, &node));
    graph->outputs[1] = graft_node_output(graph, node, 0);
    return written_text(env, model, graph);
}

CHECK_CASE(test_a_weight_that_stays_is_not_stored_transposed)
{
    assert_string_equal(written_beside(env, "", GRAFT_OP_matmul),
                        "w: 2 3\nb: 2\nGemm x w b -> a : transB=1\nGemm z w -> c : transB=1\n"
                        "out a c");
    assert_string_equal(written_beside(env, "", GRAFT_OP_matmul_bias),
                        "w: 2 3\nb: 2\nGemm x w b -> a : transB=1\nGemm z w b -> c : transB=1\n"
                        "out a c");
    /* A Gemm without a sum is of opset 11. */
    assert_non_null(
        strstr(written_beside(env, "opset 10;", GRAFT_OP_matmul), "MatMul z graft_transpose_"));
}
