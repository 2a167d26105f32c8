/* test_passes.c - several passes over a model of which Graft cannot run every operator: predicted
 * costs decide, and what is tidied at no cost is taken all the same. */
#include "emit/command/written.h"
#include "emit/policy/refine.h"
#include "emit/run/runtime.h"
#include "graph/base/file.h"
#include "tests/support/onnx_text.h"
#include "train/search/search.h"

#include <math.h>
#include <string.h>

/* With a bias the convolution stays the operator that it was when the normalisation goes into its
 * weights: whatever times are measured, less is to be done. */
static const char model_text[] =
    "opset 14; ir 8; input x 1 4 8 8; weight w 4 4 3 3; weight t 4; weight s 4; weight v 4;"
    "node Magic x -> m; info m 1 4 8 8; node Identity m -> i;"
    "node Conv i w t -> a : pads=1,1,1,1; node BatchNormalization a s s s v -> b;"
    "node HardSwish b -> c; node Conv c w -> d : pads=1,1,1,1; node HardSwish d -> y;"
    "output y 1 4 8 8";

static void open_text(graft_env *env, const char *text, bool file, graft_session *session)
{
    const graft_session_options options = {.model = check_path("m.onnx"),
                                           .rules = "rules/graft.rules",
                                           .device = "cpu",
                                           .settings = "train/settings.yaml",
                                           .file = file};
    onnx_text_write(env, text, options.model);
    CHECK_OK(graft_session_open(env, &options, session));
}

static graft_status search(graft_env *env, void *context, graft_plan_found *found)
{
    graft_session *session = context;
    const graft_search_choice options = {.alpha = 1.05, .dequeues = 3};
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(graft_search_backtracking(env, env->life, &session->environment, &options, found));
    GRAFT_CHECK(graft_search_finish(env, env->life, &session->environment, found));
done:
    return status;
}

CHECK_CASE(test_opaque_nodes)
{
    graft_session session;
    graft_refine_report report;
    graft_plan_found best;
    open_text(env, model_text, true, &session);
    check_failed(env, graft_written_check_able(env, &session), GRAFT_UNSUPPORTED, "does not know");
    const graft_refine_options refine = {
        .search = search, .context = &session, .passes = 2, .rounds = 3};
    CHECK_OK(graft_refine(env, &session, &refine, &best, &report));
    assert_true(report.count >= 1 && report.passes[0].measured == 0.0);
    assert_true(best.cost_ns == session.environment.cost_ns);
    assert_true(best.cost_ns <= session.environment.first_ns);
    /* The Identity is gone and the normalisation is in the convolution's weights. */
    graft_model_form form;
    CHECK_OK(graft_model_form_of(env, session.model, &session.environment.state.graph, &form));
    assert_true(form.nodes <= 5);
    CHECK_OK(graft_session_finish(env, &session, GRAFT_OK));
}

/* A file that computes something else, and a model that cannot be run, are told apart from one that
 * is right. */
CHECK_CASE(test_check)
{
    static const char text[] = "input x 1 4; weight w 4 4%s; node Identity x -> i;"
                               "node MatMul i w -> a; node Relu a -> y; output y 1 4";
    static const char *const weights[2] = {"", " = 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"};
    graft_session session;
    open_text(env, graft_arena_printf(env->unit, text, weights[0]), true, &session);
    CHECK_OK(graft_written_check_able(env, &session));
    for (uint32_t i = 0; i < 2; i++) {
        graft_written written;
        double difference = -1.0;
        const char *path = check_path(i == 0 ? "0.onnx" : "1.onnx");
        onnx_text_write(env, graft_arena_printf(env->unit, text, weights[i]), path);
        CHECK_OK(graft_written_open(env, &session, path, &written));
        assert_true(written.total.ns == session.environment.first_ns);
        assert_int_equal(graft_written_operators(env, written.model), 3);
        graft_status status = graft_written_check(env, &session, &written, 2, &difference);
        if (i == 0) {
            CHECK_OK(status);
            assert_true(difference == 0.0);
        } else {
            check_failed(env, status, GRAFT_INTERNAL, "1.onnx: the outputs differ from those of");
        }
    }
    CHECK_OK(graft_session_finish(env, &session, GRAFT_OK));
}

/* What merges convolutions has to cut their result apart again: a runtime copies the parts. */
CHECK_CASE(test_files_have_no_views)
{
    static const char text[] = "input x 1 8 4 4; node Exp x -> a; node Sqrt x -> b;"
                               "node Concat a b -> y : axis=1; output y";
    for (uint32_t file = 0; file < 2; file++) {
        graft_session session;
        graft_schedule schedule;
        open_text(env, text, file == 1, &session);
        const graft_state *first = &session.environment.first;
        CHECK_OK(
            graft_session_plan(env, &session, env->unit, &first->graph, &first->order, &schedule));
        assert_int_equal(schedule.step_count, 2 + file);
        CHECK_OK(graft_session_finish(env, &session, GRAFT_OK));
    }
}

/* A gain has to be more than what kernels of runtimes differ by. */
CHECK_CASE(test_kernels_differ)
{
    static const char text[] = "input x 16 64 64; node Transpose x -> t : perm=0,2,1;"
                               "node Exp t -> y; output y";
    graft_session session;
    graft_state bare;
    double ns[2] = {0.0, 0.0};
    double noise_ns[2] = {0.0, 0.0};
    open_text(env, text, true, &session);
    const graft_state *first = &session.environment.first;
    const graft_model *model = onnx_text_model(env, "input x 16 64 64; node Exp x -> y; output y");
    graft_state_open(env->unit, &model->graph.limits, &bare);
    CHECK_OK(graft_state_set(env, &bare, &model->graph));
    CHECK_OK(graft_session_price(env, &session, &first->graph, &first->order, &ns[0]));
    CHECK_OK(graft_session_price(env, &session, &bare.graph, &bare.order, &ns[1]));
    CHECK_OK(graft_session_noise(env, &session, first, &bare, &noise_ns[0]));
    session.runtime = NULL;
    CHECK_OK(graft_session_noise(env, &session, first, &bare, &noise_ns[1]));
    assert_true(noise_ns[0] > noise_ns[1]);
    assert_true(noise_ns[0] > 0.09 * (ns[0] - ns[1])); /* The transpose alone tells them apart. */
    CHECK_OK(graft_session_finish(env, &session, GRAFT_OK));
}

/* What saves a few nanoseconds and no call is no gain, nor is it one to call more kernels for it;
 * two products of one tensor that are merged have to be split again. */
CHECK_CASE(test_calls_cost)
{
    static const struct {
        const char *model;
        const char *more; /* Computes the same by... */
        uint32_t calls;   /* ...so many calls more. */
    } pairs[] = {
        {"input x 1 8; node Relu x -> y; output y",
         "input x 1 8; weight z = 0; node Max x z -> y; output y",                           0},
        {"input x 1 8; weight v 8 4; weight w 8 4; node MatMul x v -> y; node MatMul x w -> z;"
         "output y; output z",             "input x 1 8; weight w 8 8; node MatMul x w -> m; node Split m -> y z : axis=1;"
         "output y; output z",                        0},
        {"input x 1 8; node Exp x -> y; output y",
         "input x 1 8; weight w = 2; node Exp x -> e; node Mul e w -> a; node Div a w -> y", 2},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        graft_session session;
        graft_cost_total bare[2];
        graft_cost_total called[2];
        graft_state states[2];
        double noise_ns = 0.0;
        open_text(env, pairs[i].model, true, &session);
        for (size_t k = 0; k < 2; k++) {
            const graft_model *model =
                onnx_text_model(env, k == 0 ? pairs[i].model : pairs[i].more);
            graft_state_open(env->unit, &model->graph.limits, &states[k]);
            CHECK_OK(graft_state_set(env, &states[k], &model->graph));
            CHECK_OK(graft_session_total(env, &session, model, &states[k].graph, &states[k].order,
                                         &called[k]));
            CHECK_OK(
                graft_cost_graph(env, session.cost, &states[k].graph, &states[k].order, &bare[k]));
        }
        const double more_ns = (called[1].ns - bare[1].ns) - (called[0].ns - bare[0].ns);
        assert_true(fabs(more_ns - GRAFT_CALL_NS * pairs[i].calls) < 1.0);
        CHECK_OK(graft_session_noise(env, &session, &states[0], &states[1], &noise_ns));
        assert_true(noise_ns > 125.0);
        CHECK_OK(graft_session_finish(env, &session, GRAFT_OK));
    }
}

/* A rule that a runtime would see nothing of takes no part: a bias of zeros. Putting a
 * normalisation together does, also where it can only be written by its steps. */
CHECK_CASE(test_idle_rules)
{
    static const struct {
        int opset;
        bool file;
        bool biases; /* There is a rule that makes a bias of zeros... */
        bool normal; /* ...and one that makes a normalisation. */
    } cases[] = {
        {13, false, true,  true},
        {13, true,  false, true},
        {17, true,  false, true}
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        graft_session session;
        bool biases = false;
        bool normal = false;
        open_text(env,
                  graft_arena_printf(env->unit, "opset %d; input x 1 4; node Exp x -> y; output y",
                                     cases[i].opset),
                  cases[i].file, &session);
        for (uint32_t r = 0; r < session.xfers.count; r++) {
            const char *name = session.xfers.names[r];
            biases = biases || strcmp(name, "matmul=>fill-matmul_bias") == 0;
            normal = normal || strncmp(name, "reduce_mean-sub-fill-mul-", 25) == 0;
        }
        assert_int_equal(biases, cases[i].biases);
        assert_int_equal(normal, cases[i].normal);
        CHECK_OK(graft_session_finish(env, &session, GRAFT_OK));
    }
}

/* Two layers as exporters write them and simplifiers leave them: with shared constants. */
#define LAYER(x, y, p)                                                                             \
    "node MatMul " x " w -> " p "m; node Add " p "m b -> " p "h; node Div " p "h r -> " p "d;"     \
    "node Erf " p "d -> " p "e; node Add " p "e one -> " p "f; node Mul " p "h " p "f -> " p "g;"  \
    "node Mul " p "g half -> " p "u; node MatMul " p "u w -> " p "v; node Add " p "v b -> " p "o;" \
    "node Add " p "o " x " -> " p "s; node ReduceMean " p "s -> " p "a : axes=-1,;"                \
    "node Sub " p "s " p "a -> " p "c; node Pow " p "c two -> " p "q;"                             \
    "node ReduceMean " p "q -> " p "i : axes=-1,; node Add " p "i eps -> " p "j;"                  \
    "node Sqrt " p "j -> " p "k; node Div " p "c " p "k -> " p "l; node Mul " p "l n -> " p "t;"   \
    "node Add " p "t b -> " y ";"

static uint32_t count_kernels(graft_env *env, const graft_session *session,
                              const graft_state *state, uint32_t op)
{
    const graft_graph *graph = &state->graph;
    const graft_order *order = &state->order;
    uint32_t count = 0;
    CHECK_OK(graft_runtime_fuse(env, env->unit, &session->runtime->priced, &graph, &order));
    for (graft_index i = 0; i < order->count; i++) {
        count += graph->nodes[order->order[i]].op == op;
    }
    return count;
}

CHECK_CASE(test_layers_keep_their_kernels)
{
    static const char text[] =
        "opset 14; input x 1 16 32; weight w 32 32; weight b 32; weight n 32; weight r = 1.4142135;"
        "weight one = 1; weight half = 0.5; weight two = 2; weight eps = 0.00001;" LAYER(
            "x", "z", "p") LAYER("z", "y", "q") "output y";
    graft_session session;
    graft_plan_found found;
    open_text(env, text, true, &session);
    CHECK_OK(graft_search_greedy(env, env->life, &session.environment, NULL, &found));
    CHECK_OK(graft_search_finish(env, env->life, &session.environment, &found));
    const graft_state *last = &session.environment.state;
    assert_int_equal(count_kernels(env, &session, last, GRAFT_OP_gelu), 2);
    assert_int_equal(count_kernels(env, &session, last, GRAFT_OP_layer_norm), 2);
    CHECK_OK(graft_session_finish(env, &session, GRAFT_OK));
}
