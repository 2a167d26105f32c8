/* onnx_apart_tables.c - models of tables, ai.onnx.ml's linear ones and what prepares their columns
 * (see onnx_apart.h). Labels are whole numbers. */
#include "graph/onnx/onnx_apart.h"

/* An attribute of real numbers as a tensor of `rows` rows; NULL, and refused, where it has another
 * number of them than `count` or, where that is 0, no multiple of `rows`. */
static graft_tensor numbers_of(graft_apart *apart, const char *name, size_t rows, size_t count)
{
    const Onnx__AttributeProto *given = graft_onnx_attribute(apart->node, name);
    const size_t all = given == NULL ? 0 : given->n_floats;
    if (rows == 0 || all == 0 || all > INT32_MAX || all % rows != 0 ||
        (count > 0 && all != count)) {
        graft_apart_refuse(apart, "another number of coefficients");
        return NULL;
    }
    const int32_t dims[2] = {(int32_t)rows, (int32_t)(all / rows)};
    return graft_apart_real(apart, given->floats, dims, 2);
}

/* Input 0 in binary32, of rows and columns; *columns is 0 where it is none. */
static graft_tensor table_of(graft_apart *apart, size_t *columns)
{
    const graft_tensor x = graft_apart_input(apart, 0);
    const graft_shape shape = graft_apart_shape(apart, x);
    const bool fits = shape.rank == 2 && shape.dtype != GRAFT_DTYPE_F64;
    *columns = fits ? (size_t)shape.dims[1] : 0;
    graft_apart_refuse_if(apart, !fits, "an input that is no table of numbers");
    return shape.dtype == GRAFT_DTYPE_F32 ? x : GRAFT_APART(apart, "Cast to=1", x);
}

/* One number, or one for each column. */
static graft_tensor column_numbers(graft_apart *apart, const char *name, size_t columns)
{
    const Onnx__AttributeProto *given = graft_onnx_attribute(apart->node, name);
    return numbers_of(apart, name, 1, given != NULL && given->n_floats == 1 ? 1 : columns);
}

void graft_apart_scaler(graft_apart *apart)
{
    size_t columns = 0;
    const graft_tensor x = table_of(apart, &columns);
    const graft_tensor moved =
        GRAFT_APART(apart, "Sub", x, column_numbers(apart, "offset", columns));
    graft_apart_result(apart, 0,
                       GRAFT_APART(apart, "Mul", moved, column_numbers(apart, "scale", columns)));
}

void graft_apart_imputer(graft_apart *apart)
{
    size_t columns = 0;
    const graft_tensor x = table_of(apart, &columns);
    const float lacks = graft_apart_float(apart, "replaced_value_float", 0.0F);
    const graft_tensor lacking =
        lacks != lacks ? GRAFT_APART(apart, "IsNaN", x)
                       : GRAFT_APART(apart, "Equal", x, graft_apart_number(apart, lacks));
    graft_apart_result(apart, 0,
                       GRAFT_APART(apart, "Where", lacking,
                                   column_numbers(apart, "imputed_value_floats", columns), x));
}

/* By the largest number of a row, or the sum of all, or its root of squares, unless that is 0. */
void graft_apart_normalizer(graft_apart *apart)
{
    size_t columns = 0;
    const graft_tensor x = table_of(apart, &columns);
    const char *part = graft_onnx_says(apart->node, "norm", "L1", false)   ? "ReduceL1"
                       : graft_onnx_says(apart->node, "norm", "L2", false) ? "ReduceL2"
                                                                           : "ReduceMax";
    const graft_tensor size = graft_apart_reduced(apart, part, x, 1);
    const graft_tensor none = GRAFT_APART(apart, "Equal", size, graft_apart_number(apart, 0.0F));
    graft_apart_result(
        apart, 0,
        GRAFT_APART(apart, "Div", x,
                    GRAFT_APART(apart, "Where", none, graft_apart_number(apart, 1.0F), size)));
}

/* Rows by `count` coefficients each, and intercepts. */
static graft_tensor weigh(graft_apart *apart, size_t count)
{
    size_t columns = 0;
    const graft_tensor x = table_of(apart, &columns);
    const graft_tensor by = numbers_of(apart, "coefficients", count, count * columns);
    const graft_tensor y =
        GRAFT_APART(apart, "MatMul", x, GRAFT_APART(apart, "Transpose perm=1,0", by));
    return graft_onnx_attribute(apart->node, "intercepts") == NULL
               ? y
               : GRAFT_APART(apart, "Add", y, numbers_of(apart, "intercepts", 1, count));
}

void graft_apart_linear_regressor(graft_apart *apart)
{
    const int64_t targets = graft_onnx_int(apart->node, "targets", 1);
    if (!graft_onnx_says(apart->node, "post_transform", "NONE", true) || targets < 1) {
        graft_apart_refuse(apart, "a form that is not known");
    }
    graft_apart_result(apart, 0, weigh(apart, targets < 1 ? 0 : (size_t)targets));
}

/* Of as many rows of coefficients as there are labels. */
void graft_apart_linear_classifier(graft_apart *apart)
{
    const Onnx__AttributeProto *labels = graft_onnx_attribute(apart->node, "classlabels_ints");
    const bool plain = graft_onnx_says(apart->node, "post_transform", "NONE", true);
    const bool logistic = graft_onnx_says(apart->node, "post_transform", "LOGISTIC", false);
    const bool softmax = graft_onnx_says(apart->node, "post_transform", "SOFTMAX", false);
    if (labels == NULL || labels->n_ints < 2 || (!plain && !logistic && !softmax)) {
        graft_apart_refuse(apart, "a form that is not known");
        return;
    }
    const graft_tensor y = weigh(apart, labels->n_ints);
    const graft_tensor most = GRAFT_APART(apart, "ArgMax axis=1 keepdims=0", y);
    graft_apart_result(apart, 0,
                       GRAFT_APART(apart, "Gather axis=0",
                                   graft_apart_whole(apart, labels->ints, (uint32_t)labels->n_ints),
                                   most));
    graft_apart_result(apart, 1,
                       plain      ? y
                       : logistic ? GRAFT_APART(apart, "Sigmoid", y)
                                  : GRAFT_APART(apart, "Softmax axis=1", y));
}
