/* test_onnx_known.c - what reading finds out about nodes that no row of the table covers, held
 * against the results of the ONNX project's conformance cases: what nodes of constants compute, and
 * the shapes that libonnx tells. */
#include "tests/support/check.h"
#include "tests/support/onnx_data.h"
#include "tests/support/onnx_text.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *op_type;
    uint32_t least; /* Cases that have to be covered. */
    uint32_t count;
} covered_row;

static void count_case(covered_row *rows, size_t row_count, const char *op_type)
{
    for (size_t i = 0; i < row_count; i++) {
        rows[i].count += strcmp(rows[i].op_type, op_type) == 0;
    }
}

/* -------------------------------------------------------------------- constants */

/* Whole numbers, truth values and what is only moved are equal to the last bit. */
static void check_elements(const char *name, const graft_model_weight *have,
                           const onnx_tensor *want)
{
    const float *numbers = have->data;
    const float most = strstr(name, "gridsample") != NULL ? 1e-4F : 1e-5F; /* Recorded digits. */
    if (!graft_shape_equal(&have->shape, &want->shape)) {
        fail_msg("%s: another shape or type", name);
    }
    if (!graft_dtype_is_real(have->shape.dtype)) {
        assert_memory_equal(have->data, want->raw, have->data_bytes);
        return;
    }
    assert_non_null(want->data);
    for (size_t i = 0; i < have->data_bytes / sizeof(float); i++) {
        float difference = fabsf(numbers[i] - want->data[i]);
        bool same = numbers[i] == want->data[i] || (isnan(numbers[i]) && isnan(want->data[i]));
        if (!same && !(difference <= most * fmaxf(1.0F, fabsf(want->data[i])))) {
            fail_msg("%s: element %zu is %g, not %g", name, i, (double)numbers[i],
                     (double)want->data[i]);
        }
    }
}

/* Operators of which ONNX has cases that are worked out, and how many at least. */
static const covered_row known_rows[] = {
    {"Add",             1, 0},
    {"Mod",             1, 0},
    {"Equal",           2, 0},
    {"Less",            2, 0},
    {"Greater",         2, 0},
    {"LessOrEqual",     1, 0},
    {"GreaterOrEqual",  1, 0},
    {"And",             5, 0},
    {"Or",              5, 0},
    {"Xor",             5, 0},
    {"Where",           2, 0},
    {"ConstantOfShape", 2, 0},
    {"Range",           2, 0},
    {"Gather",          4, 0},
    {"ScatterND",       1, 0},
    {"Slice",           7, 0},
    {"Transpose",       7, 0},
    {"Reshape",         5, 0},
    {"Concat",          8, 0},
    {"Expand",          2, 0},
    {"Squeeze",         2, 0},
    {"Unsqueeze",       5, 0},
    {"Relu",            1, 0},
    {"Sub",             3, 0},
    {"Abs",             1, 0},
    {"Neg",             1, 0},
    {"Sign",            1, 0},
    {"Ceil",            1, 0},
    {"Floor",           1, 0},
    {"Round",           1, 0},
    {"Min",             1, 0},
    {"Max",             1, 0},
    {"Tile",            1, 0},
    {"Pad",             1, 0},
    {"Resize",          1, 0},
    {"LRN",             1, 0},
    {"Trilu",           2, 0},
};

/* Calls `look` for each case that can be read so; then as many must have been counted as rows want. */
static void look_at_cases(graft_env *env, onnx_data_form form, covered_row *rows, size_t row_count,
                          void (*look)(const onnx_case *c, covered_row *rows, size_t row_count))
{
    uint32_t count = 0;
    const char *const *names = onnx_data_list(env->life, &count);
    if (count == 0) {
        CHECK_SKIP("no conformance cases; install libonnx-testdata or set GRAFT_ONNX_TESTDATA");
    }
    for (uint32_t i = 0; i < count; i++) {
        onnx_case c;
        graft_arena_reset(env->unit);
        if (onnx_data_load_as(env, env->unit, names[i], form, &c) == GRAFT_OK) {
            look(&c, rows, row_count);
        }
        graft_env_clear(env);
    }
    for (size_t i = 0; i < row_count; i++) {
        if (rows[i].count < rows[i].least) {
            fail_msg("%s: %u cases, at least %u are wanted", rows[i].op_type, rows[i].count,
                     rows[i].least);
        }
    }
}

static void look_at_constant(const onnx_case *c, covered_row *rows, size_t row_count)
{
    const Onnx__GraphProto *graph = c->model->onnx->proto->graph;
    const uint32_t entry = graph->n_node == 1
                               ? graft_names_find(c->model->onnx->names, graph->node[0]->output[0])
                               : GRAFT_NONE;
    const graft_model_weight *known =
        entry == GRAFT_NONE ? NULL : c->model->onnx->entries[entry].known;
    if (known != NULL && (c->outputs[0].raw != NULL || c->outputs[0].data != NULL)) {
        check_elements(c->name, known, &c->outputs[0]);
        count_case(rows, row_count, graph->node[0]->op_type);
    }
}

CHECK_CASE(test_constants)
{
    enum { ROWS = sizeof(known_rows) / sizeof(known_rows[0]) };
    covered_row rows[ROWS];
    memcpy(rows, known_rows, sizeof rows);
    look_at_cases(env, ONNX_DATA_CONSTANT, rows, ROWS, look_at_constant);
}

/* ----------------------------------------------------------------------- shapes */

#ifdef GRAFT_WITH_LIBONNX
static void look_at_shapes(const onnx_case *c, covered_row *rows, size_t row_count)
{
    for (uint32_t k = 0; k < c->model->output_count && k < c->output_count; k++) {
        const graft_shape *shape = &c->model->outputs[k].shape;
        if (shape->rank != GRAFT_RANK_UNKNOWN && c->outputs[k].shape.rank <= GRAFT_MAX_RANK &&
            strstr(c->name, "BFLOAT16") == NULL && /* Stored as another type. */
            !graft_shape_equal(shape, &c->outputs[k].shape)) {
            fail_msg("%s: output %u has another shape or type", c->name, k);
        }
        if (shape->rank != GRAFT_RANK_UNKNOWN && k == 0 && c->model->opaque_count > 0) {
            count_case(rows, row_count, c->model->onnx->proto->graph->node[0]->op_type);
        }
    }
}
#endif

CHECK_CASE(test_shapes)
{
#ifdef GRAFT_WITH_LIBONNX
    covered_row rows[] = {
        {"ArgMax",          4,  0},
        {"ConvTranspose",   4,  0},
        {"CumSum",          3,  0},
        {"Einsum",          1,  0},
        {"GatherElements",  2,  0},
        {"GatherND",        1,  0},
        {"LSTM",            1,  0},
        {"Resize",          10, 0},
        {"ScatterElements", 2,  0},
        {"Tile",            1,  0},
        {"TopK",            2,  0},
        {"MaxPool",         3,  0},
        {"Pad",             2,  0},
    };
    look_at_cases(env, ONNX_DATA_UNDECLARED, rows, sizeof(rows) / sizeof(rows[0]), look_at_shapes);
#else
    CHECK_SKIP("built without libonnx-dev");
#endif
}
