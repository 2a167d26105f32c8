// onnx_infer.cc - see onnx_infer.h.
#include "graph/onnx/onnx_infer.h"

#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

constexpr int64_t opset_last = 17; // Of the library.

// What is asked about. Missing are control flow, sequences, what draws at random, what only training
// has, and operators whose inference reads where it should not when a node is malformed.
const std::unordered_set<std::string> asked = {
    "And", "ArgMax", "ArgMin", "AveragePool", "BitShift", "Cast", "CastLike", "Compress", "Concat",
    "ConstantOfShape", "Conv", "ConvInteger", "ConvTranspose", "CumSum", "DepthToSpace", "Det",
    "DynamicQuantizeLinear", "Einsum", "Equal", "Expand", "Flatten", "GRU", "Gather",
    "GatherElements", "GatherND", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "Greater",
    "GreaterOrEqual", "GridSample", "IsInf", "IsNaN", "LSTM", "Less", "LessOrEqual", "LpPool",
    "MatMul", "MatMulInteger", "Max", "MaxPool", "Mean", "Min", "Mod", "NonMaxSuppression",
    "NonZero", "Not", "OneHot", "Or", "Pad", "Pow", "QLinearConv", "QLinearMatMul", "RNN", "Range", "ReduceL1", "ReduceL2",
    "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", "Reshape", "Resize", "ReverseSequence", "RoiAlign",
    "ScatterElements", "ScatterND", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze",
    "Sub", "Add", "Mul", "Div", "Sum", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze",
    "Upsample", "Where", "Xor"};

// Malformed nodes of these make the library read outside of its tables, or never come back.
bool is_sound_node(const onnx::NodeProto &node, const graft_infer_tensor *inputs)
{
    const std::string &op = node.op_type();
    if (op == "Conv" || op == "ConvInteger" || op == "ConvTranspose") {
        return inputs[0].known && inputs[1].known && inputs[0].rank == inputs[1].rank &&
               inputs[0].rank > 2;
    }
    if (op == "QLinearConv" || op == "QLinearMatMul") {
        bool known = true;
        for (int i = 0; i < 8; i++) { // As the form demands.
            known = known && inputs[i].known;
        }
        return known && (op == "QLinearMatMul" ? inputs[0].rank > 0 && inputs[3].rank > 0
                                               : inputs[0].rank == inputs[3].rank && inputs[0].rank > 2);
    }
    if (op == "ConstantOfShape" || op == "Expand") {
        return inputs[node.input_size() - 1].data != nullptr;
    }
    return true;
}

// Windows whose extent would be a division by zero, and such that runtimes count in other ways.
bool is_sound_attribute(const onnx::AttributeProto &attribute)
{
    bool window = attribute.name() == "strides" || attribute.name() == "dilations" ||
                  attribute.name() == "kernel_shape";
    for (int64_t item : attribute.ints()) {
        if (item > INT32_MAX || item < INT32_MIN || (window && item < 1)) {
            return false;
        }
    }
    return !attribute.has_g() && attribute.graphs_size() == 0 && attribute.ref_attr_name().empty() &&
           !(attribute.name() == "ceil_mode" && attribute.i() != 0) &&
           !(attribute.name() == "batch_dims" && attribute.i() != 0) &&
           attribute.name() != "output_shape";
}

// Whether the library's form of the operator covers the node.
bool is_covered(const onnx::OpSchema &schema, const onnx::NodeProto &node, int64_t opset)
{
    if (schema.deprecated() || (opset > opset_last && node.op_type() == "DFT") ||
        node.input_size() < schema.min_input() || node.input_size() > schema.max_input() ||
        node.output_size() < schema.min_output() || node.output_size() > schema.max_output()) {
        return false;
    }
    for (const auto &attribute : node.attribute()) {
        auto known = schema.attributes().find(attribute.name());
        if (known == schema.attributes().end() || known->second.type != attribute.type() ||
            !is_sound_attribute(attribute)) {
            return false;
        }
    }
    for (const auto &known : schema.attributes()) {
        bool given = false;
        for (const auto &attribute : node.attribute()) {
            given = given || attribute.name() == known.first;
        }
        if (known.second.required && !given) {
            return false;
        }
    }
    return true;
}

void describe(const graft_infer_tensor &input, onnx::TypeProto &type, onnx::TensorProto &data)
{
    type.mutable_tensor_type()->set_elem_type(input.dtype);
    onnx::TensorShapeProto *shape = type.mutable_tensor_type()->mutable_shape();
    data.set_data_type(input.dtype);
    for (uint32_t i = 0; i < input.rank; i++) {
        shape->add_dim()->set_dim_value(input.dims[i]);
        data.add_dims(input.dims[i]);
    }
    if (input.data != nullptr) {
        data.set_raw_data(input.data, input.data_bytes);
    }
}

void take(const onnx::TypeProto &type, graft_infer_tensor &output)
{
    if (!type.has_tensor_type() || !type.tensor_type().has_shape() ||
        type.tensor_type().shape().dim_size() > GRAFT_INFER_RANK_MOST) {
        return;
    }
    output.dtype = type.tensor_type().elem_type();
    output.rank = static_cast<uint32_t>(type.tensor_type().shape().dim_size());
    output.known = output.dtype != 0;
    for (uint32_t i = 0; i < output.rank; i++) {
        const auto &dim = type.tensor_type().shape().dim(static_cast<int>(i));
        output.dims[i] = dim.dim_value();
        output.known = output.known && dim.has_dim_value();
    }
}

void infer(const uint8_t *bytes, size_t size, int64_t opset, const graft_infer_tensor *inputs,
           size_t k, graft_infer_tensor &output)
{
    onnx::NodeProto node;
    if (size > INT32_MAX || !node.ParseFromArray(bytes, static_cast<int>(size)) ||
        asked.count(node.op_type()) == 0 || k >= static_cast<size_t>(node.output_size())) {
        return;
    }
    const onnx::OpSchema *schema = onnx::OpSchemaRegistry::Schema(
        node.op_type(), static_cast<int>(opset < opset_last ? opset : opset_last), "");
    if (schema == nullptr || !schema->has_type_and_shape_inference_function() ||
        !is_covered(*schema, node, opset) || !is_sound_node(node, inputs)) {
        return;
    }
    const auto count = static_cast<size_t>(node.input_size());
    std::vector<onnx::TypeProto> types(count);
    std::vector<onnx::TensorProto> data(count);
    std::unordered_map<std::string, onnx::TypeProto *> type_of;
    std::unordered_map<std::string, const onnx::TensorProto *> data_of;
    for (size_t i = 0; i < count; i++) {
        if (inputs[i].known) { // By place: what is not given has an empty name.
            describe(inputs[i], types[i], data[i]);
            type_of[node.input(static_cast<int>(i))] = &types[i];
            if (inputs[i].data != nullptr) {
                data_of[node.input(static_cast<int>(i))] = &data[i];
            }
        }
    }
    onnx::shape_inference::InferenceContextImpl context(node, type_of, data_of, {});
    schema->GetTypeAndShapeInferenceFunction()(context);
    take(*context.getOutputType(k), output);
}

} // namespace

void graft_onnx_infer(const uint8_t *node, size_t node_bytes, int64_t opset,
                      const graft_infer_tensor *inputs, size_t k, graft_infer_tensor *output)
{
    *output = {};
    try {
        infer(node, node_bytes, opset, inputs, k, *output);
    } catch (...) { // What does not infer is not known.
        *output = {};
    }
}
