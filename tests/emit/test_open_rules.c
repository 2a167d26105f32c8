/* test_open_rules.c - which rules apply to a file whose sizes stay open: such as apply at all
 * sizes, not such as apply at those that were looked at (1 and 3 of first axes, 320 and 448 of
 * images, 64 and 96 elsewhere). */
#include "emit/command/session.h"
#include "tests/support/build.h"
#include "tests/support/onnx_text.h"
#include "tests/support/rows.h"

typedef struct {
    const char *model;
    const char *rule;
    bool applies;
} open_row;

#define TWICE "node Relu x -> a; node Relu a -> y; output y"

/* clang-format off */
static const open_row rows[] = {
    {"input x N 3 H W; " TWICE, "relu(relu(a)) = relu(a)", true},
    {"input x N 3 H W; " TWICE, "relu(relu(a)) = relu(a) where rank(a) = 4", true},
    {"input x N 3 H W; " TWICE, "relu(relu(a)) = relu(a) where dim(a,1) = 3", true},
    {"input x N 3 H W; " TWICE, "relu(relu(a)) = relu(a) where 1 <= dim(a,0)", true},
    {"input x N 3 H W; " TWICE, "relu(relu(a)) = relu(a) where dim(a,0) <= 100", false},
    {"input x N 3 H W; " TWICE, "relu(relu(a)) = relu(a) where 64 <= dim(a,2)", false},
    {"input x N 3 H W; " TWICE, "relu(relu(a)) = relu(a) where divides(64,dim(a,2))", false},
    {"input x N 3 H W; " TWICE, "relu(relu(a)) = relu(a) where dim(a,2) = dim(a,3)", false},
    {"input x N 3 H H; " TWICE, "relu(relu(a)) = relu(a) where dim(a,2) = dim(a,3)", true},
    {"input x N 3 H W; " TWICE, "relu(relu(a)) = relu(a) where not const(a)", true},
    {"input x N 3; " TWICE, "relu(relu(a)) = reshape(relu(a),dim=[dim(a,0),3,0,0,0,0])", false},
    {"input x 2 3 W; " TWICE, "relu(relu(a)) = relu(transpose(transpose(relu(a),axis=[0,dim(a,0),1]),axis=[0,dim(a,0),1]))", true},
    {"input x 2 3 W; " TWICE, "relu(relu(a)) = pad(relu(a),axis=0,before=dim(a,1)-3,after=0,value=0)", true},
    {"input x N 3 W; " TWICE, "relu(relu(a)) = pad(relu(a),axis=0,before=dim(a,2)-dim(a,2),after=0,value=0)", true},
    {"input x N 8; input z M 8; node Relu x -> a; node Relu z -> b; node Concat a b -> y : axis=0; output y",
     "concat(relu(a),relu(b),axis=0) = relu(concat(a,b,axis=0)) where same_shape(a,b)", false},
    {"input x N 8; input z N 8; node Relu x -> a; node Relu z -> b; node Concat a b -> y : axis=0; output y",
     "concat(relu(a),relu(b),axis=0) = relu(concat(a,b,axis=0)) where same_shape(a,b)", true},
    /* Windows: 3 of stride 2 over a padded image have at least half as many places and at most as
     * many. */
    {"input x N 4 H W; weight w 4 4 3 3; node Conv x w -> a : pads=1,1,1,1 strides=2,2; node Relu a -> b; node Relu b -> y; output y",
     "relu(relu(a)) = relu(a) where 1 <= dim(a,2)", true},
    {"input x N 4 H W; node MaxPool x -> a : kernel_shape=2,2 strides=2,2; node MaxPool x -> b : kernel_shape=2,2 strides=2,2; node Relu a -> c; node Add c b -> y; output y",
     "add(relu(a),b) = add(b,relu(a)) where same_shape(a,b)", true},
    {"input x N 4 H W; node MaxPool x -> a : kernel_shape=2,2 strides=2,2; node Relu a -> b; node Concat b x -> y : axis=0; output y",
     "relu(a) = relu(relu(a)) where dim(a,2) = 160 or dim(a,2) = 224", false},
    /* What opaque nodes make: no two of its sizes are known to be the same, nor, where they read an
     * open axis, is any, whatever it was. */
    {"input x N 8; node Flatten x -> a; node Relu a -> b; node Relu b -> y; output y", "relu(relu(a)) = relu(a) where dim(a,1) = 8", false},
    {"input x N 8; node Flatten x -> a; node Relu a -> b; node Relu b -> y; output y", "relu(relu(a)) = relu(a)", true},
    {"input x N 8; node Flatten x -> a; node Relu a -> b; node Relu x -> c; node Concat b c -> y : axis=0; output y",
     "concat(relu(a),relu(b),axis=0) = relu(concat(a,b,axis=0)) where same_shape(a,b)", false},
    {"input x N 8; node Flatten x -> a; node Relu a -> b; node Relu b -> y; output y", "relu(relu(a)) = relu(a) where dim(a,0) <= 100", false},
    /* What the target needs, and that its outputs have one shape, is not the precondition's
     * alone. */
    {"input x N 4; input z M 4; node Relu x -> a; node Add a z -> b; node Relu b -> y; output y", "relu(add(relu(a),b)) = relu(add(b,relu(a)))", true},
    {"input x N 8; input z N 8; node Relu x -> a; node Add a z -> b; node Relu b -> y; output y",
     "add(relu(a),b) = slice(concat(relu(a),b,axis=1),axis=1,start=0,end=8)", true},
    {"input x 8 N; input z 8 N; node Relu x -> a; node Add a z -> b; node Relu b -> y; output y",
     "add(relu(a),b) = slice(concat(relu(a),b,axis=1),axis=1,start=0,end=64)", false},
    {"input x N 4; input z M 4; node Relu x -> a; node Add a z -> y; output y", "add(relu(a),b) = add(relu(a),relu(a))", false},
    {"input x N 8; input z M 8; node Relu x -> a; node Relu z -> b; node Concat a b -> y : axis=0; output y",
     "concat(relu(a),relu(b),axis=0) = add(concat(relu(a),relu(b),axis=0),reduce_sum(add(a,b),axes=3,keep=1))", false},
    {"input x N 8; input z N 8; node Relu x -> a; node Relu z -> b; node Concat a b -> y : axis=0; output y",
     "concat(relu(a),relu(b),axis=0) = add(concat(relu(a),relu(b),axis=0),reduce_sum(add(a,b),axes=3,keep=1))", true},
    {"input x N 8; node Softmax x -> a : axis=1; node Relu a -> y; output y", "softmax(a,axis=1) = softmax(a,axis=dim(a,0))", false},
    {"input x 1 N; node Softmax x -> a : axis=1; node Relu a -> y; output y", "softmax(a,axis=1) = softmax(a,axis=dim(a,0))", true},
    /* A file holds both sizes of a split as numbers. */
    {"input x 1 4; input z N 4; node Relu x -> a; node Relu z -> b; output a; output b",
     "[relu(a), relu(b)] = [split(relu(concat(a,b,axis=0)),axis=0,at=dim(a,0)).0, split(relu(concat(a,b,axis=0)),axis=0,at=dim(a,0)).1]", false},
    {"input x 1 N; input z 3 N; node Relu x -> a; node Relu z -> b; output a; output b",
     "[relu(a), relu(b)] = [split(relu(concat(a,b,axis=0)),axis=0,at=dim(a,0)).0, split(relu(concat(a,b,axis=0)),axis=0,at=dim(a,0)).1]", true},
};
/* clang-format on */

/* How many places a rule has; `judge` is NULL where the sizes are taken for fixed. */
static uint32_t count_places(graft_env *env, const graft_session *session,
                             const graft_rewrite_judge *judge, const graft_rule *rule)
{
    static const char *const name = "rule of a test";
    const graft_apply_options options = {.weight_bytes_limit = UINT64_MAX};
    const graft_graph *graph = &session->model->graph;
    graft_state on;
    graft_xfers xfers;
    graft_matches matches;
    CHECK_OK(graft_state_make(env, env->unit, graph, &on));
    graft_xfers_index(env->unit, rule, &name, 1, &xfers);
    xfers.judge = judge;
    graft_matches_open(env->unit, &xfers, 10, &matches);
    graft_matches_find(&matches, &on, &options);
    return matches.count;
}

CHECK_CASE(test_rows)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const graft_model_options reading = {.keep_open = true};
        graft_session session = {.device = NULL};
        const graft_rule rule = rows_parse(env, rows[i].rule);
        graft_status status = onnx_text_read(env, onnx_text_message(env->life, rows[i].model),
                                             &reading, &session.model);
        assert_string_equal(env->message, "");
        CHECK_OK(status);
        graft_session_open_judge(env, &session);
        assert_non_null(session.open);
        const uint32_t fixed = count_places(env, &session, NULL, &rule);
        const uint32_t open = count_places(env, &session, session.judge, &rule);
        if (fixed == 0 || (open > 0) != rows[i].applies) {
            fail_msg("%s\n%s: %u places, %u with open sizes", rows[i].model, rows[i].rule, fixed,
                     open);
        }
        graft_open_sizes_forget(session.open);
        assert_int_equal(count_places(env, &session, session.judge, &rule), open);
        graft_open_sizes_close(session.open);
    }
}
