/* Readings of one stage of a model whose sizes depend on data: what they share, and which of them
 * one executor runs. That they compute what onnxruntime does: tests/emit/test_stages.sh. */
#include "graph/model.h"
#include "tests/support/build.h"
#include "tests/support/onnx_text.h"

static const char text[] =
    "input x 6; weight a 1 3; weight w 2 3; ints s = -1 1; node NonZero x -> p; "
    "node Transpose p -> q; node GatherND x q -> v; node Reshape v s -> c; node MatMul c a -> m; "
    "node Gemm m w -> y : transB=1; output y";

/* The last stage, with the numbers of x that are not 0 in these places. */
static graft_model *read_last(graft_env *env, const graft_model *first, graft_folds *folds,
                              const int64_t *places, int32_t count)
{
    graft_model *next = NULL;
    float *in = GRAFT_NEW(env->life, float, 6);
    for (int32_t i = 0; i < count; i++) {
        in[places[i]] = (float)places[i] + 1.0F;
    }
    const graft_model_told told = {"x", SHAPE(6), in};
    const graft_model_options options = {.as_binary32 = true,
                                         .flows = true,
                                         .staged = true,
                                         .told = &told,
                                         .told_count = 1,
                                         .folds = folds};
    CHECK_OK(graft_model_read_rest(env, env->life, first, &options, &next));
    assert_null(next->rest);
    return next;
}

/* What the weight program makes. */
static const float *fold_of(graft_env *env, const graft_model *model)
{
    graft_weights weights;
    const float *found = NULL;
    CHECK_OK(graft_model_fold_weights(env, env->life, model, &model->graph, &weights));
    for (graft_index v = 0; v < model->graph.value_end; v++) {
        const graft_value *value = &model->graph.values[v];
        const bool made = value->kind == GRAFT_VALUE_COMPUTED && value->is_const;
        found = made && graft_weights_data(&weights, v) != NULL ? graft_weights_data(&weights, v)
                                                                : found;
    }
    assert_non_null(found);
    return found;
}

CHECK_CASE(test_readings)
{
    const graft_model_options options = {.as_binary32 = true, .flows = true, .staged = true};
    graft_model *first = NULL;
    CHECK_OK(onnx_text_read(env, onnx_text_message(env->life, text), &options, &first));
    assert_non_null(first->rest);
    graft_folds *folds = graft_folds_new(env->life, first);
    graft_model *a = read_last(env, first, folds, (const int64_t[]){0, 2}, 2);
    graft_model *b = read_last(env, first, folds, (const int64_t[]){1, 5}, 2);
    graft_model *c = read_last(env, first, folds, (const int64_t[]){1, 3, 4}, 3);
    assert_true(graft_model_is_alike(env->scratch, a, a));
    assert_true(graft_model_is_alike(env->scratch, a, b));
    assert_false(graft_model_is_alike(env->scratch, a, c));
    /* w', once for all of them. */
    const float *w = fold_of(env, a);
    for (uint32_t i = 0; i < 6; i++) {
        assert_float_equal(w[i], 0.5F * (float)(1 + i / 2 + i % 2 * 3), 0.0F);
    }
    assert_ptr_equal(fold_of(env, b), w);
    assert_ptr_equal(fold_of(env, c), w);
    graft_model *own = read_last(env, first, NULL, (const int64_t[]){0, 2}, 2);
    assert_ptr_not_equal(fold_of(env, own), w);
}
