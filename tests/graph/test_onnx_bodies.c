/* test_onnx_bodies.c - bodies of If, Loop and Scan as models of their own: what they are told of
 * the graph around, and what becomes of what comes back. */
#include "graph/base/file.h"
#include "tests/support/onnx_text.h"

#include <string.h>
#include <unistd.h>

/* Stands for whoever rewrites: notes the models that it is given, and writes them simplified, or
 * what a test has instead. */
typedef struct {
    char *seen; /* A line for each, in env->life. */
    const char *instead;
    graft_status status;
    graft_model_bodies bodies;
    uint32_t count;
    uint32_t dropped; /* How often what it did was not kept... */
    uint32_t kept;    /* ...and was. */
} rewriter;

static const char *print_inputs(graft_arena *arena, const graft_model *model)
{
    char *text = graft_arena_strdup(arena, "");
    for (uint32_t i = 0; i < model->input_count; i++) {
        const graft_shape *shape = &model->inputs[i].shape;
        text = graft_arena_printf(arena, "%s %s:", text, model->inputs[i].name);
        if (shape->rank == GRAFT_RANK_UNKNOWN) {
            text = graft_arena_printf(arena, "%s?", text);
        }
        for (uint32_t k = 0; shape->rank <= GRAFT_MAX_RANK && k < shape->rank; k++) {
            text = graft_arena_printf(arena, "%s%s%d", text, k > 0 ? "x" : "", shape->dims[k]);
        }
    }
    for (uint32_t i = 0; i < model->size_count; i++) {
        text = graft_arena_printf(arena, "%s %s=%d", text, model->sizes[i].name,
                                  model->sizes[i].value);
    }
    return text;
}

static graft_status rewrite(graft_env *env, void *context, const graft_model_body *body)
{
    rewriter *r = context;
    graft_model *model = NULL;
    const graft_model_options options = {
        .keep_open = true, .sizes = body->sizes, .size_count = body->size_count};
    const graft_model_write_options writing = {.simplify = true};
    const char *text = r->instead;
    r->count++;
    if (r->status != GRAFT_OK) {
        return GRAFT_FAIL(env, r->status, "no");
    }
    GRAFT_PASS(graft_model_read(env, env->life, body->path, &options, &model));
    r->seen =
        graft_arena_printf(env->life, "%s%s%s:%s\n%s\n", r->seen == NULL ? "" : r->seen,
                           body->where, body->lean ? " lean" : "", print_inputs(env->life, model),
                           onnx_text_print(env->life, model, &model->graph));
    if (text != NULL && !body->lean) {
        uint8_t *data = NULL;
        size_t size = 0;
        onnx_text_bytes(env->life, text, &data, &size);
        return graft_file_write(env, body->path, data, size);
    }
    return graft_model_write(env, model, &model->graph, body->path, &writing);
}

static void settle(void *context, bool kept)
{
    rewriter *r = context;
    r->kept += kept;
    r->dropped += !kept;
}

static graft_status read_rewritten(graft_env *env, rewriter *r, const char *text,
                                   graft_model **model)
{
    const graft_model_options options = {.keep_open = true, .settable = true, .bodies = &r->bodies};
    r->bodies = (graft_model_bodies){rewrite, settle, r, check_path("body.onnx")};
    graft_status status = onnx_text_read(env, onnx_text_message(env->life, text), &options, model);
    assert_int_not_equal(access(r->bodies.path, F_OK), 0);
    return status;
}

/* Body `k` of the node that computes the first output. */
static const Onnx__GraphProto *body_of(const graft_model *model, size_t k)
{
    const Onnx__GraphProto *graph = model->onnx->proto->graph;
    return graph->node[graph->n_node - 1]->attribute[k]->g;
}

static void check_seen(graft_env *env, const char *text, const char *seen)
{
    graft_model *model = NULL;
    rewriter r = {.seen = NULL};
    CHECK_OK(read_rewritten(env, &r, text, &model));
    assert_string_equal(r.seen, seen);
}

#define IF_T " node If c -> y : then_branch=@t else_branch=@t; output y"

CHECK_CASE(test_seen)
{
    /* Inputs and weights. */
    check_seen(env,
               "input c; input x 2 3; weight w 3; node Exp x -> a; graph t; node Relu a -> h; node "
               "Add h w -> r; output r; end;" IF_T,
               "then_branch of node 'n3' (If): a:2x3\nh = relu(a)\nr = add(h, w)\nout r\n"
               "else_branch of node 'n3' (If): a:2x3\nh = relu(a)\nr = add(h, w)\nout r\n");
    /* Weights that can be set are inputs. */
    check_seen(env,
               "input c; input x 3; input w 3; weight w 3; graph t; node Relu x -> h; node Mul h w "
               "-> r; output r; end; graph e; output x; end;"
               " node If c -> y : then_branch=@t else_branch=@e; output y",
               "then_branch of node 'n2' (If): x:3 w:3\nh = relu(x)\nr = mul(h, w)\nout r\n");
    /* Open sizes, as the file names them, and none that an opaque node may have changed. */
    check_seen(env,
               "input c; input x N 4; node Odd x -> a : domain=d; node Exp x -> b; info a N ?; "
               "graph t; node Relu a -> h; node Exp b -> r;"
               " output h; output r; end; node If c -> y z : then_branch=@t else_branch=@t; output "
               "y; output z",
               "then_branch of node 'n4' (If): a:1x64 b:1x4 N=1 a.1=64 b.0=1\nh = relu(a)\nr = "
               "exp(b)\nout h r\n"
               "else_branch of node 'n4' (If): a:1x64 b:1x4 N=1 a.1=64 b.0=1\nh = relu(a)\nr = "
               "exp(b)\nout h r\n");
    /* A state and what is gone through. */
    check_seen(
        env,
        "input s 3; input x 7 3 2; weight w 3; graph b; input h; input p; node Add h w -> g; node "
        "Relu p -> o; output g; output o; end;"
        " node Scan s x -> t o : body=@b num_scan_inputs=1 scan_input_axes=-2,; output t; output o",
        "body of node 'n2' (Scan): h:3 p:7x2\ng = add(h, w)\no = relu(p)\nout g o\n");
    /* Numbers that depend on open sizes are inputs. */
    check_seen(env,
               "input c; input x N 4; node Shape x -> s; graph t; node Relu x -> h; node Reshape h "
               "s -> r; output r; end; graph e; output x; end; node If c -> y : then_branch=@t "
               "else_branch=@e; output y",
               "then_branch of node 'n3' (If): x:1x4 s:1 N=1 s.0=1\nh = relu(x)\nr = Reshape(h, s) "
               "opaque\nout r\n");
    /* What is known of sizes. */
    check_seen(
        env,
        "input c; input x 2 6; node Shape x -> s; graph t; node Transpose x -> h; node Reshape h s "
        "-> r;"
        " output r; end;" IF_T,
        "then_branch of node 'n3' (If): x:2x6\nh = transpose(x) 1\nr = reshape(h) 2 6\nout r\n"
        "else_branch of node 'n3' (If): x:2x6\nh = transpose(x) 1\nr = reshape(h) 2 6\nout r\n");
}

/* ------------------------------------------------------------------------------ what comes back */

#define IF_OVER                                                                                    \
    "input c; input x 3; node Sqrt x -> graft_a; graph t; weight v 3; node Relu graft_a -> h;"     \
    "node Exp h -> r; output r; end; graph e; node Exp x -> h; node Exp h -> r; output r; end;"    \
    "node If c -> y : then_branch=@t else_branch=@e; output y"

/* New names are such as nothing else has, those of the body stay, and what came from outside is
 * left there, whatever comes back. */
CHECK_CASE(test_taken)
{
    graft_model *model = NULL;
    rewriter r = {.instead = "input graft_a 3; input x 3; weight graft_w 3 = 7 7 7;"
                             "node Mul x graft_w -> graft_b; node Exp graft_b -> r; output r"};
    CHECK_OK(read_rewritten(env, &r, IF_OVER, &model));
    assert_int_equal(r.count, 2);
    assert_string_equal(onnx_text_print_proto(env->life, body_of(model, 0)),
                        "Mul x graft_w -> graft_b\nExp graft_b -> r\nout r");
    assert_string_equal(onnx_text_print_proto(env->life, body_of(model, 1)),
                        "Mul x graft_w -> graft_body/graft_b\nExp graft_body/graft_b -> r\nout r");
    assert_string_equal(onnx_text_print_proto(env->life, model->onnx->proto->graph),
                        "graft_w: 3\nSqrt x -> graft_a\n"
                        "If c -> y : then_branch=@test else_branch=@test\nout y");
}

/* Weights from outside stay there. */
CHECK_CASE(test_outside)
{
    graft_model *model = NULL;
    rewriter r = {.seen = NULL};
    CHECK_OK(
        read_rewritten(env, &r,
                       "input c; input x 3; weight w 3; graph t; weight v 3; node Mul x w -> h;"
                       "node Add h v -> r; output r; end;" IF_T,
                       &model));
    assert_string_equal(onnx_text_print_proto(env->life, body_of(model, 0)),
                        "v: 3\nMul x w -> h\nAdd h v -> r\nout r");
}

/* A body whose rewriter says that it cannot stays; other failures say where. */
CHECK_CASE(test_refused)
{
    graft_model *model = NULL;
    rewriter r = {.status = GRAFT_UNSUPPORTED};
    CHECK_OK(read_rewritten(env, &r, IF_OVER, &model));
    assert_int_equal(r.count, 2);
    assert_string_equal(onnx_text_print_proto(env->life, body_of(model, 0)),
                        "v: 3\nRelu graft_a -> h\nExp h -> r\nout r");
    r = (rewriter){.status = GRAFT_INTERNAL};
    check_failed(env, read_rewritten(env, &r, IF_OVER, &model), GRAFT_INTERNAL,
                 "in then_branch of node 'n5' (If) of test.onnx");
}

/* New weights that do not replace what others still read would make the file grow: bodies are
 * rewritten once more, without any. */
CHECK_CASE(test_growth)
{
    static const char text[] =
        "input c; input x 3 64; weight w 64 200; graph t; node MatMul x w -> h; "
        "node Exp h -> r; output r; end; graph e; node MatMul x w -> h; node Relu h -> r; "
        "output r; end; node If c -> y : then_branch=@t else_branch=@e";
    graft_model *model = NULL;
    rewriter r = {.instead = "input x 3 64; weight v 64 201; node MatMul x v -> r; output r"};
    CHECK_OK(read_rewritten(env, &r, text, &model));
    assert_int_equal(r.count, 2); /* Both made the same, which is stored once; nothing reads w. */
    assert_int_equal(r.kept, 1);
    assert_int_equal(r.dropped, 0);
    assert_string_equal(onnx_text_print_proto(env->life, body_of(model, 0)),
                        "MatMul x v -> r\nout r");
    r = (rewriter){.instead = r.instead};
    CHECK_OK(read_rewritten(
        env, &r, graft_arena_printf(env->life, "node MatMul x w -> z; %s; output z", text),
        &model));
    assert_int_equal(r.count, 4);
    assert_int_equal(r.kept, 1);
    assert_int_equal(r.dropped, 1);
    assert_non_null(strstr(r.seen, "else_branch of node 'n5' (If) lean: x:3x64"));
    assert_string_equal(onnx_text_print_proto(env->life, body_of(model, 0)),
                        "MatMul x w -> h\nExp h -> r\nout r");
    assert_int_equal(model->onnx->proto->graph->n_initializer, 1);
}

/* What a node of weights alone reads is stored when that node is written, as one is that would make
 * more than 1 MiB out of less. */
CHECK_CASE(test_stored)
{
    enum { WEIGHT_BYTES = 30000 * 4 };
    static const char head[] = "input x 1 30000; weight w 1 30000; weight v 40 1; node Exp w -> e;"
                               "node Mul x e -> z; output z;";
    graft_model *model = onnx_text_model(env, head);
    assert_false(graft_onnx_swells(env, model, WEIGHT_BYTES));
    model = onnx_text_model(env,
                            graft_arena_printf(env->life, "%s node Less w v -> m; output m", head));
    assert_true(graft_onnx_swells(env, model, WEIGHT_BYTES));
    assert_false(graft_onnx_swells(env, model, 2 * WEIGHT_BYTES));
}

/* The same for a body inside of a body: it is the business of whoever reads the outer one's model,
 * which has what the inner one reads. */
CHECK_CASE(test_nested)
{
    graft_model *model = NULL;
    rewriter r = {.seen = NULL};
    CHECK_OK(read_rewritten(env, &r,
                            "input c; input x 3; weight w 3; graph u; node Mul x w -> p; node Exp "
                            "p -> q; output q; end;"
                            "graph t; node Relu x -> d; node If c -> r : then_branch=@u "
                            "else_branch=@u; output r; end;" IF_T,
                            &model));
    assert_string_equal(
        r.seen,
        "then_branch of node 'n4' (If): x:3 c:?\nd = relu(x)\nr = If(c, x, w) opaque\nout r\n"
        "else_branch of node 'n4' (If): x:3 c:?\nd = relu(x)\nr = If(c, x, w) opaque\nout r\n");
}
