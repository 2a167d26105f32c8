/* run.c - a small runtime for convolutional nets: reads an ONNX file, lets Graft's policy rewrite the
 * graph when it is loaded, and runs both graphs with XNNPACK (the C API of 2022, Debian's package).
 *
 *      run MODEL.onnx
 *
 * Prints what the policy did and what it took, how long each graph takes (medians of runs in turns),
 * and how far outputs are apart; exit status 1 when that is more than rounding. The policy was made
 * for oneDNN on another processor, so its estimates are not XNNPACK's times. Rules that make
 * operators which XNNPACK does not have are switched off. */
#include "cost/measure/clock.h"
#include "examples/xnnpack/lower.h"
#include "graph/base/rng.h"

#include <math.h>

/* The engine is compiled in Graft's own library: here only the tables of the policy are. */
#define GRAFT_IMPLEMENTATION
#include "graft_policy.h"

enum { ROUNDS = 15, STEPS_MOST = 4096 };
static const double difference_most = 1e-3; /* Of the largest output. */

/* Rewrites a copy of the model's graph. */
static graft_status rewrite(graft_env *env, const graft_model *model, graft_graph **result)
{
    graft_status status = GRAFT_OK;
    uint8_t operators[LOWERING_OPERATOR_BYTES];
    graft_graph *graph = graft_model_graph_copy(env->life, &model->graph);
    graft_optimize_options options = graft_optimize_options_default();
    uint8_t *skipped = GRAFT_NEW(env->life, uint8_t, (size_t)GRAFT_POLICY.rule_count / 8 + 1);
    graft_report report = {.decisions = NULL};
    size_t bytes = graft_optimize_workspace_bytes(&GRAFT_POLICY, &graph->limits, STEPS_MOST);
    lowering_operators(operators);
    GRAFT_CHECK(graft_policy_skip_unrunnable(&GRAFT_POLICY, operators, skipped));
    options.skipped_rules = skipped;
    options.weight_bytes_limit = UINT64_MAX; /* lower.c runs the weight program. */
    options.step_limit = STEPS_MOST;
    uint64_t start_ns = graft_cost_clock_ns(1);
    GRAFT_TRY(env,
              graft_optimize(graph, &GRAFT_POLICY, &options, graft_arena_alloc(env->life, bytes),
                             bytes, &report),
              "while rewriting %s", model->file);
    double ms = (double)(graft_cost_clock_ns(1) - start_ns) / 1e6;
    (void)printf("graft: %u rewrites in %.1f ms, %u operators -> %u\n", report.step_count, ms,
                 report.active_before, report.active_after);
    *result = graph;
done:
    return status;
}

static graft_status run_once(graft_env *env, const lowered *net, double *ms)
{
    const uint64_t start_ns = graft_cost_clock_ns(1);
    const graft_status status = lowered_run(env, net);
    *ms = (double)(graft_cost_clock_ns(1) - start_ns) / 1e6;
    return status;
}

/* The largest distance of both outputs, in parts of the largest element. */
static double compare(const lowered nets[2])
{
    const lowered_port *out[2] = {&nets[0].ports[1], &nets[1].ports[1]};
    double apart = 0.0;
    double most = 0.0;
    for (size_t i = 0; i < out[0]->count; i++) {
        double distance = fabs((double)out[0]->data[i] - (double)out[1]->data[i]);
        apart = distance <= apart ? apart : distance; /* NaN stays. */
        most = fmax(most, fabs((double)out[0]->data[i]));
    }
    return apart / most;
}

static graft_status run_in_turns(graft_env *env, const lowered nets[2])
{
    graft_status status = GRAFT_OK;
    double times[2][ROUNDS];
    double median[2];
    double spread[2];
    graft_rng rng;
    graft_rng_seed(&rng, 1);
    for (size_t i = 0; i < nets[0].ports[0].count; i++) { /* No order of axes to keep to. */
        nets[0].ports[0].data[i] = (float)(graft_rng_uniform(&rng) * 2.0 - 1.0);
        nets[1].ports[0].data[i] = nets[0].ports[0].data[i];
    }
    for (uint32_t r = 0; r < 2 * ROUNDS + 2; r++) { /* The first two warm up. */
        uint32_t k = (r ^ r >> 1) & 1U;             /* Each is first in half of the turns. */
        GRAFT_CHECK(run_once(env, &nets[k], &times[k][r < 2 ? 0 : r / 2 - 1]));
    }
    for (uint32_t k = 0; k < 2; k++) {
        graft_cost_median(times[k], ROUNDS, &median[k], &spread[k]);
        (void)printf("xnnpack %s: %u nodes, %.3f ms (quartiles %.3f apart)\n",
                     k == 0 ? "before" : "after ", nets[k].node_count, median[k], spread[k]);
    }
    double apart = compare(nets);
    (void)printf("speed %.3f, outputs apart by %.1e of the largest\n", median[0] / median[1],
                 apart);
    if (!(apart <= difference_most)) {
        status = GRAFT_FAIL(env, GRAFT_REFUTED, "the outputs are not the same");
    }
done:
    return status;
}

static graft_status run(graft_env *env, const char *path)
{
    graft_status status = GRAFT_OK;
    graft_model *model = NULL;
    graft_graph *rewritten = NULL;
    lowered nets[2] = {{.runtime = NULL}, {.runtime = NULL}};
    const lowering_options once = {.copy_count = 1};
    GRAFT_CHECK(graft_model_read(env, env->life, path, NULL, &model));
    if (model->input_count != 1 || model->output_count != 1) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%s: not one input and one output", path);
    }
    if (xnn_initialize(NULL) != xnn_status_success) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "XNNPACK does not know this processor");
    }
    GRAFT_CHECK(lower_graph(env, model, &model->graph, &once, &nets[0]));
    GRAFT_CHECK(rewrite(env, model, &rewritten));
    GRAFT_CHECK(lower_graph(env, model, rewritten, &once, &nets[1]));
    GRAFT_CHECK(run_in_turns(env, nets));
done:
    lowered_close(&nets[0]);
    lowered_close(&nets[1]);
    (void)xnn_deinitialize();
    return status;
}

int main(int argc, char **argv)
{
    graft_env env;
    if (argc != 2) {
        (void)fprintf(stderr, "usage: run MODEL.onnx\n");
        return 2;
    }
    graft_status status = graft_env_open(&env);
    status = status == GRAFT_OK ? run(&env, argv[1]) : status;
    if (status != GRAFT_OK) {
        (void)fprintf(stderr, "run: %s\n", env.message);
    }
    graft_env_close(&env);
    return status == GRAFT_OK ? 0 : status == GRAFT_REFUTED ? 1 : 2;
}
