/* builder_layers.c - layers of transformers and recurrent cells (see builder.h), in the parts in
 * which PyTorch's exporter writes them. */
#include "models/builder.h"

#include <math.h>
#include <string.h>

/* Sums, products and functions of them stay around 1; nothing downstream depends on more. */
graft_build_value graft_build_function(const char *op_type, graft_build_value x, const char *name)
{
    graft_build_value output = graft_build_node(op_type, name, &x, 1);
    output.mean_square = fmin(x.mean_square, 1.0);
    return output;
}

graft_build_value graft_build_relu6(graft_build_value x, const char *name)
{
    double deviation = sqrt(fmax(x.mean_square - x.mean * x.mean, 1e-12));
    const graft_build_value inputs[3] = {x, graft_build_scalar(x.builder, name, "min", 0.0F),
                                         graft_build_scalar(x.builder, name, "max", 6.0F)};
    graft_build_value output = graft_build_node("Clip", name, inputs, 3);
    output.mean = deviation / sqrt(2.0 * M_PI); /* Few elements lie above 6. */
    output.mean_square = 0.5 * x.mean_square;
    return output;
}

static int64_t dim_from_end(const graft_build_value *x, uint32_t back)
{
    return back < x->rank ? x->dims[x->rank - 1 - back] : 1;
}

/* Sizes of axes but the last `kept` ones, broadcast. */
static void broadcast(const graft_build_value *a, const graft_build_value *b, uint32_t kept,
                      graft_build_value *output)
{
    output->rank = a->rank > b->rank ? a->rank : b->rank;
    for (uint32_t back = kept; back < output->rank; back++) {
        int64_t size = dim_from_end(a, back);
        output->dims[output->rank - 1 - back] = size == 1 ? dim_from_end(b, back) : size;
    }
}

graft_build_value graft_build_pair(const char *op_type, graft_build_value a, graft_build_value b,
                                   const char *name)
{
    const graft_build_value inputs[2] = {a, b};
    graft_build_value output = graft_build_node(op_type, name, inputs, 2);
    broadcast(&a, &b, 0, &output);
    if (strcmp(op_type, "Mul") == 0) {
        output.mean = a.mean * b.mean;
        output.mean_square = a.mean_square * b.mean_square;
    } else if (strcmp(op_type, "Div") != 0) {
        output.mean = a.mean + b.mean;
        output.mean_square = a.mean_square + b.mean_square;
    }
    return output;
}

graft_build_value graft_build_matmul(graft_build_value a, graft_build_value b, const char *name)
{
    const graft_build_value inputs[2] = {a, b};
    graft_build_value output = graft_build_node("MatMul", name, inputs, 2);
    broadcast(&a, &b, 2, &output);
    output.dims[output.rank - 2] = dim_from_end(&a, 1);
    output.dims[output.rank - 1] = dim_from_end(&b, 0);
    output.mean = 0.0;
    output.mean_square = a.mean_square * b.mean_square * (double)dim_from_end(&a, 0);
    return output;
}

graft_build_value graft_build_dense(graft_build_value x, const char *name, int64_t outputs)
{
    const int64_t dims[2] = {dim_from_end(&x, 0), outputs};
    double deviation = sqrt(1.0 / (double)dims[0]);
    graft_build_value matrix = graft_build_weight(x.builder, name, "weight", dims, 2, deviation);
    graft_build_value bias = graft_build_vector(x.builder, name, "bias", outputs, 0.0, 0.05);
    x = graft_build_matmul(x, matrix, name);
    return graft_build_pair("Add", bias, x, name);
}

/* The node that gives `x` the sizes of `like`. */
static graft_build_value give_shape(graft_builder *builder, const char *op_type,
                                    graft_build_value x, const char *name,
                                    const graft_build_value *like)
{
    const char *part = graft_build_name(builder, "shape_of_%s", x.name);
    const graft_build_value inputs[2] = {
        x, graft_build_ints(builder, name, part, like->dims, like->rank)};
    graft_build_value output = graft_build_node(op_type, name, inputs, 2);
    memcpy(output.dims, like->dims, sizeof(output.dims));
    output.rank = like->rank;
    return output;
}

graft_build_value graft_build_reshape(graft_build_value x, const char *name, const int64_t *dims,
                                      uint32_t rank)
{
    graft_build_value output = x;
    memcpy(output.dims, dims, rank * sizeof(dims[0]));
    output.dims[0] *= x.builder->batch;
    output.rank = rank;
    return give_shape(x.builder, "Reshape", x, name, &output);
}

graft_build_value graft_build_repeat(graft_build_value x, const char *name)
{
    graft_build_value output = x;
    output.dims[0] *= x.builder->batch;
    return x.builder->batch == 1 ? x : give_shape(x.builder, "Expand", x, name, &output);
}

graft_build_value graft_build_transpose(graft_build_value x, const char *name, const int64_t *axes)
{
    graft_build_value output = graft_build_node("Transpose", name, &x, 1);
    graft_build_set_ints(x.builder, "perm", axes, x.rank);
    for (uint32_t i = 0; i < x.rank; i++) {
        output.dims[i] = x.dims[axes[i]];
    }
    return output;
}

graft_build_value graft_build_pick(graft_build_value x, const char *name, int64_t axis,
                                   int64_t index)
{
    const char *part = graft_build_name(x.builder, "place_in_%s", x.name);
    const graft_build_value inputs[2] = {x, graft_build_int(x.builder, name, part, index)};
    graft_build_value output = graft_build_node("Gather", name, inputs, 2);
    graft_build_set_int(x.builder, "axis", axis);
    output.rank--;
    for (uint32_t i = (uint32_t)axis; i < output.rank; i++) {
        output.dims[i] = x.dims[i + 1];
    }
    return output;
}

graft_build_value graft_build_slice(graft_build_value x, const char *name, int64_t axis,
                                    const int64_t range[2])
{
    const graft_build_value inputs[4] = {x,
                                         graft_build_ints(x.builder, name, "starts", &range[0], 1),
                                         graft_build_ints(x.builder, name, "ends", &range[1], 1),
                                         graft_build_ints(x.builder, name, "axes", &axis, 1)};
    graft_build_value output = graft_build_node("Slice", name, inputs, 4);
    output.dims[axis] = range[1] - range[0];
    return output;
}

static graft_build_value add_mean(graft_build_value x, const char *name)
{
    const int64_t last = -1;
    graft_build_value output = graft_build_node("ReduceMean", name, &x, 1);
    graft_build_set_ints(x.builder, "axes", &last, 1);
    output.dims[output.rank - 1] = 1;
    return output;
}

graft_build_value graft_build_layer_norm(graft_build_value x, const char *name, float epsilon)
{
    int64_t size = dim_from_end(&x, 0);
    graft_build_value scale = graft_build_vector(x.builder, name, "weight", size, 1.0, 0.1);
    graft_build_value shift = graft_build_vector(x.builder, name, "bias", size, 0.0, 0.1);
    graft_build_value two = graft_build_scalar(x.builder, name, "exponent", 2.0F);
    graft_build_value least = graft_build_scalar(x.builder, name, "epsilon", epsilon);
    graft_build_value d = graft_build_pair("Sub", x, add_mean(x, name), name);
    graft_build_value variance = graft_build_pair("Pow", d, two, name);
    variance = add_mean(variance, name);
    variance = graft_build_pair("Add", variance, least, name);
    variance = graft_build_function("Sqrt", variance, name);
    graft_build_value y = graft_build_pair("Div", d, variance, name);
    y.mean = 0.0;
    y.mean_square = 1.0;
    y = graft_build_pair("Mul", y, scale, name);
    return graft_build_pair("Add", y, shift, name);
}

graft_build_value graft_build_gelu(graft_build_value x, const char *name)
{
    graft_build_value root = graft_build_scalar(x.builder, name, "root", 1.41421354F);
    graft_build_value one = graft_build_scalar(x.builder, name, "one", 1.0F);
    graft_build_value half = graft_build_scalar(x.builder, name, "half", 0.5F);
    graft_build_value y = graft_build_pair("Div", x, root, name);
    y = graft_build_function("Erf", y, name);
    y = graft_build_pair("Add", y, one, name);
    y = graft_build_pair("Mul", x, y, name);
    y = graft_build_pair("Mul", y, half, name);
    y.mean_square = 0.5 * x.mean_square;
    return y;
}
