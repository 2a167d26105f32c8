/* test_onnx_whole.c - what no rule touched comes back as it was: every ONNX operator that reading
 * takes apart, alone, twice and three times in one model, where the copies share constants and
 * weights; untouched, with a rewrite elsewhere, with one right before, and all of them in one model
 * over one input, where parts of one node equal parts of another. */
#include "graph/base/file.h"
#include "graph/model.h"
#include "tests/support/onnx_text.h"
#include "tests/support/variants.h"

#include <string.h>

/* '%' is the number of the copy; `shared` stands once. */
typedef struct {
    const char *name;
    const char *opset;
    const char *x; /* The shape of x%. */
    const char *shared;
    const char *node;
    bool one_part; /* Reading makes one node of it, with weights of its own. */
} whole_row;

/* clang-format off */
static const whole_row rows[] = {
    {"Sum", "13", "1 4 4 4", "weight w 4; weight v 4", "node Sum x% w v -> y%", false},
    {"Max", "13", "1 4 4 4", "weight w 4; weight v 4", "node Max x% w v -> y%", false},
    {"Min", "13", "1 4 4 4", "weight w 4; weight v 4", "node Min x% w v -> y%", false},
    {"Mean", "13", "1 4 4 4", "weight w 4; weight v 4", "node Mean x% w v -> y%", false},
    {"Mean of one", "13", "1 4 4 4", "", "node Mean x% -> y%", false},
    {"Conv", "13", "1 4 4 4", "weight w 4 4 1 1", "node Conv x% w -> y% : auto_pad=VALID", true},
    {"Conv with bias", "13", "1 4 4 4", "weight w 4 4 3 3; weight b 4", "node Conv x% w b -> y% : auto_pad=SAME_UPPER", true},
    {"Gemm", "13", "4 4", "weight w 4 4; weight b 4", "node Gemm x% w b -> y% : transB=1", false},
    {"Gemm with factors", "13", "4 4", "weight w 4 4; weight b 1 4", "node Gemm x% w b -> y% : transA=1 alpha=0.5 beta=2.0", false},
    {"Gemm with a column", "13", "4 4", "weight w 4 4; weight b 4 1", "node Gemm x% w b -> y%", false},
    {"BatchNormalization", "13", "1 4 4 4", "weight s 4; weight b 4; weight m 4; weight v 4", "node BatchNormalization x% s b m v -> y% : momentum=0.5", true},
    {"Concat", "13", "1 4 4 4", "weight w 1 4 4 4", "node Concat x% w x% w -> y% : axis=1", false},
    {"Split", "12", "1 4 4 4", "", "node Split x% -> y% u% v% : axis=1 split=1,2,1", false},
    {"Split by input", "13", "1 4 4 4", "ints n = 1 1 2", "node Split x% n -> y% u% v% : axis=1", false},
    {"Slice", "13", "1 4 4 4", "ints s = 1 1; ints e = 3 4; ints a = 1 2", "node Slice x% s e a -> y%", false},
    {"Slice by attributes", "9", "1 4 4 4", "", "node Slice x% -> y% : starts=1,1 ends=3,4 axes=1,2", false},
    {"Pad", "13", "1 4 4 4", "ints p = 0 0 1 1 0 0 2 1", "node Pad x% p -> y%", false},
    {"Pad by attributes", "10", "1 4 4 4", "", "node Pad x% -> y% : pads=0,0,1,1,0,0,2,1 value=0.5", false},
    {"Softmax", "11", "2 4 4", "", "node Softmax x% -> y% : axis=1", false},
    {"ReduceMin", "13", "1 4 4 4", "", "node ReduceMin x% -> y% : axes=2,3", true},
    {"ReduceSumSquare", "13", "1 4 4 4", "", "node ReduceSumSquare x% -> y% : axes=2,3", false},
    {"ReduceL2", "13", "1 4 4 4", "", "node ReduceL2 x% -> y% : axes=2,3", false},
    {"ReduceL1", "13", "1 4 4 4", "", "node ReduceL1 x% -> y% : axes=2,3", false},
    {"ReduceL2 by input", "18", "1 4 4 4", "ints a = 2 3", "node ReduceL2 x% a -> y%", false},
    {"ReduceMean by input", "18", "1 4 4 4", "ints a = 2 3", "node ReduceMean x% a -> y%", true},
    {"GlobalMaxPool", "13", "1 4 4 4", "", "node GlobalMaxPool x% -> y%", true},
    {"LayerNormalization", "17", "2 4 4", "weight s 4 4; weight b 4 4", "node LayerNormalization x% s b -> y% : axis=1", false},
    {"LayerNormalization without bias", "17", "2 4 4", "weight s 4", "node LayerNormalization x% s -> y% : epsilon=0.5", false},
    {"LayerNormalization with statistics", "17", "2 4 4", "weight s 4; weight b 4", "node LayerNormalization x% s b -> y% u% v%; output u%; output v%", false},
    {"Gelu", "20", "1 4 4 4", "", "node Gelu x% -> y% : approximate=none", true},
    {"Pow 2", "13", "1 4 4 4", "weight e = 2", "node Pow x% e -> y%", true},
    {"Pow 3", "13", "1 4 4 4", "weight e = 3", "node Pow x% e -> y%", false},
    {"Pow 1/2", "13", "1 4 4 4", "weight e = 0.5", "node Pow x% e -> y%", true},
    {"Pow -1/2", "13", "1 4 4 4", "weight e = -0.5", "node Pow x% e -> y%", false},
    {"Pow -1", "13", "1 4 4 4", "scalar e = -1", "node Pow x% e -> y%", false},
    {"Reciprocal", "13", "1 4 4 4", "", "node Reciprocal x% -> y%", false},
    {"Neg", "13", "1 4 4 4", "", "node Neg x% -> y%", false},
    {"Abs", "13", "1 4 4 4", "", "node Abs x% -> y%", true},
    {"PRelu", "13", "1 4 4 4", "weight w 4 1 1", "node PRelu x% w -> y%", false},
    {"HardSigmoid", "13", "1 4 4 4", "", "node HardSigmoid x% -> y% : alpha=0.25", true},
    {"HardSigmoid as in HardSwish", "14", "1 4 4 4", "", "node HardSigmoid x% -> y% : alpha=0.16666667 beta=0.5", true},
    {"Slice with steps", "13", "1 4 4 4", "ints s = 1 0; ints e = 4 4; ints a = 2 3; ints t = 2 3", "node Slice x% s e a t -> y%", false},
    {"CumSum", "13", "1 4 4 4", "ints a = 1", "node CumSum x% a -> y% : exclusive=1", true},
    {"Resize", "13", "1 4 4 4", "weight k 4 = 1 1 2 2", "node Resize x% _ k -> y% : mode=nearest", false},
    {"ConvTranspose", "13", "1 4 4 4", "weight w 4 4 3 3; weight b 4", "node ConvTranspose x% w b -> y% : strides=2,2", false},
    {"InstanceNormalization", "13", "1 4 4 4", "weight s 4; weight b 4", "node InstanceNormalization x% s b -> y% : epsilon=0.5", true},
    {"LogSoftmax", "13", "1 4 4 4", "", "node LogSoftmax x% -> y% : axis=1", true},
    {"HardSwish", "14", "1 4 4 4", "", "node HardSwish x% -> y%", true},
    {"Swish", "24", "1 4 4 4", "", "node Swish x% -> y% : alpha=0.5", true},
    {"RMSNormalization", "23", "2 4 4", "weight s 4", "node RMSNormalization x% s -> y%", true},
    {"DepthToSpace", "13", "1 4 4 4", "", "node DepthToSpace x% -> y% : blocksize=2 mode=CRD", false},
    {"SpaceToDepth", "13", "1 4 4 4", "", "node SpaceToDepth x% -> y% : blocksize=2", false},
    {"Conv over one axis", "13", "1 4 8", "weight w 4 4 3; weight b 4", "node Conv x% w b -> y% : pads=1,1", false},
    {"Clip", "13", "1 4 4 4", "weight l = 0; weight h = 6", "node Clip x% l h -> y%", true},
    {"Gather", "13", "1 4 4 4", "scalar i = 2", "node Gather x% i -> y% : axis=1", false},
    {"Expand", "13", "1 4 4 4", "ints t = 3 4 4 4", "node Expand x% t -> y%", false},
    {"Flatten", "13", "1 4 4 4", "", "node Flatten x% -> y% : axis=2", true},
    {"Constants", "13", "1 4 4 4", "node Constant -> c : value_float=3.0", "node Pow x% c -> y%", false},
};
/* clang-format on */

enum { COPIES_MOST = 3 };

typedef enum { UNTOUCHED, REWRITE_ELSEWHERE, REWRITE_BEFORE, SITUATIONS } situation;

static void append(graft_buffer *text, const char *part, uint32_t copy)
{
    for (const char *at = part; *at != '\0'; at++) {
        if (*at == '%') {
            graft_buffer_printf(text, "%u", copy);
        } else {
            graft_buffer_printf(text, "%c", *at);
        }
    }
}

static char *text_of_row(graft_arena *arena, const whole_row *row, uint32_t copies, situation where)
{
    graft_buffer text = {.arena = arena};
    graft_buffer_printf(&text, "opset %s; %s;", row->opset, row->shared);
    for (uint32_t c = 0; c < copies; c++) {
        append(&text, where == REWRITE_BEFORE ? "input p% " : "input x% ", c);
        graft_buffer_printf(&text, "%s;", row->x);
        append(&text, where == REWRITE_BEFORE ? "node Identity p% -> x%;" : "", c);
        append(&text, row->node, c);
        append(&text, ";output y%;", c);
    }
    if (where == REWRITE_ELSEWHERE) {
        graft_buffer_printf(&text, "input q 2; node Identity q -> r; node Relu r -> z; output z");
    }
    graft_buffer_printf(&text, "%c", '\0');
    return (char *)text.data;
}

static Onnx__GraphProto *write_graph(graft_env *env, const graft_model *model,
                                     const graft_graph *graph)
{
    const graft_model_write_options options = {.simplify = true};
    const char *path = check_path("x.onnx");
    uint8_t *data = NULL;
    size_t size = 0;
    graft_status status = graft_model_write(env, model, graph, path, &options);
    assert_string_equal(env->message, "");
    CHECK_OK(status);
    CHECK_OK(graft_file_read(env, env->unit, path, &data, &size));
    return onnx_text_unpack(env, data, size)->graph;
}

/* Inputs that an Identity node gave are now read where they come from. */
static void rename_inputs(graft_arena *arena, Onnx__NodeProto *node)
{
    for (size_t k = 0; k < node->n_input; k++) {
        if (node->input[k][0] == 'x') {
            node->input[k] = graft_arena_printf(arena, "p%s", node->input[k] + 1);
        }
    }
}

/* The node of that name in what was written has the same bytes. */
static void check_same_node(graft_env *env, const Onnx__GraphProto *graph, Onnx__NodeProto *node)
{
    uint8_t *want = NULL;
    uint8_t *have = NULL;
    size_t want_size = 0;
    size_t have_size = 0;
    graft_wire_encode(env->unit, &node->base, &want, &want_size);
    for (size_t i = 0; i < graph->n_node && have == NULL; i++) {
        if (strcmp(graph->node[i]->name, node->name) == 0) {
            graft_wire_encode(env->unit, &graph->node[i]->base, &have, &have_size);
        }
    }
    if (have == NULL || have_size != want_size || memcmp(have, want, want_size) != 0) {
        fail_msg("%s '%s' is not as it was:\n%s", node->op_type, node->name,
                 onnx_text_print_proto(env->unit, graph));
    }
}

static void check_row(graft_env *env, const whole_row *row, uint32_t copies, situation where)
{
    uint32_t applied = 0;
    uint32_t kept = 0;
    graft_model *model = onnx_text_model(env, text_of_row(env->unit, row, copies, where));
    assert_int_equal(model->opaque_count, 0);
    assert_true(row->one_part || model->record_count > model->onnx->node_count ||
                strcmp(row->name, "Constants") == 0);
    const graft_graph *graph = &model->graph;
    if (where != UNTOUCHED) {
        graph = variant_fused(env, env->unit, model, &applied);
        assert_int_equal(applied, where == REWRITE_BEFORE ? copies : 1);
    }
    Onnx__GraphProto *out = write_graph(env, model, graph);
    const Onnx__GraphProto *in = model->onnx->proto->graph;
    for (size_t i = 0; i < in->n_node; i++) {
        if (strcmp(in->node[i]->op_type, "Identity") != 0 &&
            strcmp(in->node[i]->op_type, "Relu") != 0) {
            if (where == REWRITE_BEFORE) {
                rename_inputs(env->unit, in->node[i]);
            }
            check_same_node(env, out, in->node[i]);
            kept++;
        }
    }
    assert_int_equal(out->n_node, kept + (where == REWRITE_ELSEWHERE));
}

CHECK_ROWS(test_row, rows)
{
    const whole_row *row = place;
    for (uint32_t copies = 1; copies <= COPIES_MOST; copies++) {
        for (int where = 0; where < SITUATIONS; where++) {
            check_row(env, row, copies, (situation)where);
            graft_arena_reset(env->unit);
        }
    }
}

/* Pairs over one input: of two nodes that begin alike neither is written with the other's parts;
 * two that are equal throughout are written once. */
CHECK_CASE(test_pairs)
{
    static const char *const nodes[] = {
        "HardSwish x -> %",
        "HardSigmoid x -> % : alpha=0.16666667 beta=0.5",
        "HardSigmoid x -> %",
        "Neg x -> %",
        "Abs x -> %",
        "Pow x two -> %",
        "Pow x three -> %",
        "ReduceL2 x -> % : axes=1,",
        "ReduceL1 x -> % : axes=1,",
        "ReduceSumSquare x -> % : axes=1,",
        "ReduceMin x -> % : axes=1,",
        "Sum x w v -> %",
        "Sum x w -> %",
        "Mean x w v -> %",
        "Relu x -> %",
        "PRelu x w -> %",
        "Concat x w v -> % : axis=0",
        "Concat x w -> % : axis=0",
    };
    enum { NODES = sizeof(nodes) / sizeof(nodes[0]) };
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint32_t j = 0; j < NODES; j++) {
            graft_buffer text = {.arena = env->unit};
            uint32_t applied = 0;
            graft_buffer_printf(&text, "opset 14; input x 2 3; weight w 1 3; weight v 1 3;"
                                       "weight two = 2; weight three = 3; input q 2;"
                                       "node Identity q -> r; node Relu r -> z; output z; node ");
            append(&text, nodes[i], 0);
            graft_buffer_printf(&text, "; node ");
            append(&text, nodes[j], 1);
            graft_buffer_printf(&text, "; node Exp 0 -> a; node Tanh 1 -> b; output a; output b%c",
                                '\0');
            graft_model *model = onnx_text_model(env, (char *)text.data);
            Onnx__GraphProto *in = model->onnx->proto->graph;
            Onnx__GraphProto *out =
                write_graph(env, model, variant_fused(env, env->unit, model, &applied));
            check_same_node(env, out, in->node[2]);
            if (i != j) {
                check_same_node(env, out, in->node[3]);
            }
            assert_int_equal(out->n_node, i == j ? 4 : 5);
            graft_arena_reset(env->unit);
        }
    }
}

/* What a rule made may equal what an ONNX node gives: then it is that. Nothing is left of what only
 * the one that went had read. */
CHECK_CASE(test_made_and_read)
{
    graft_index node = GRAFT_NONE;
    graft_model *model =
        onnx_text_model(env, "input x 2; node Neg x -> m; node Relu m -> a; node Abs x -> b;"
                             "node Exp a -> y; node Exp b -> z; output y; output z");
    graft_graph *graph = graft_model_graph_copy(env->unit, &model->graph);
    graft_index neg = GRAFT_NONE;
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (strcmp(graft_model_node_name(model, &graph->nodes[n]), "n0") == 0 &&
            graph->nodes[n].op == GRAFT_OP_mul) {
            neg = n;
        }
    }
    assert_int_not_equal(neg, GRAFT_NONE);
    graft_index inputs[2] = {graft_node_input(graph, neg, 0), graft_node_input(graph, neg, 1)};
    CHECK_OK(graft_graph_add_node(graph, GRAFT_OP_mul, NULL, inputs, GRAFT_NONE, &node));
    graft_index made = graft_node_output(graph, node, 0);
    CHECK_OK(graft_graph_add_node(graph, GRAFT_OP_relu, NULL, &made, GRAFT_NONE, &node));
    made = graft_node_output(graph, node, 0);
    CHECK_OK(graft_graph_add_node(graph, GRAFT_OP_exp, NULL, &made, GRAFT_NONE, &node));
    graph->outputs[1] = graft_node_output(graph, node, 0);
    assert_string_equal(onnx_text_print_proto(env->unit, write_graph(env, model, graph)),
                        "Neg x -> m\nRelu m -> a\nExp a -> y\nIdentity y -> z\nout y z");
}
