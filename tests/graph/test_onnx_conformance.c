/* The operators' meaning, held against an implementation that is not ours: the ONNX project's own
 * conformance cases (numpy and PyTorch results), read by the ONNX reader, run by the float algebra.
 *
 * Every installed case is tried, as it is and frozen (onnx_data.h). A case counts for each operator
 * that it became. Opaque nodes that opaque.h runs count by their ONNX operator; cases with others
 * are read once more, to be run, and count by the operator that comes apart then, or are skipped. */
#include "graph/meaning/algebra_float.h"
#include "graph/onnx/onnx.h"
#include "graph/opaque.h"
#include "tests/support/build.h"
#include "tests/support/onnx_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- tolerances */

/* How far a result may be from the expected one: relative to the largest expected element, because
 * sums of terms of both signs lose that much. What is not listed must be equal to the last bit. */
static const double unit = 5.9604644775390625e-8; /* Half a binary32 unit in the last place of 1. */

static double tolerance_of(uint32_t op)
{
    switch (op) {
    case GRAFT_OP_layer_norm: /* Differences of sums. */
    case GRAFT_OP_instance_norm:
    case GRAFT_OP_rms_norm:
    case GRAFT_OP_log_softmax:
        return 32 * unit;
    case GRAFT_OP_scale_shift: /* Both are computed first. */
    case GRAFT_OP_conv:        /* Sums in another order. */
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
    case GRAFT_OP_matmul:
    case GRAFT_OP_matmul_bias:
    case GRAFT_OP_conv_transpose:
    case GRAFT_OP_cumsum:
        return 16 * unit;
    case GRAFT_OP_avg_pool:
    case GRAFT_OP_global_avg_pool:
    case GRAFT_OP_reduce_mean:
    case GRAFT_OP_reduce_sum:
    case GRAFT_OP_softmax: /* Rounding of a function. */
    case GRAFT_OP_sigmoid:
    case GRAFT_OP_tanh:
    case GRAFT_OP_exp:
    case GRAFT_OP_erf:
    case GRAFT_OP_gelu:
        return 8 * unit;
    default:
        return (graft_op(op)->flags & GRAFT_FLAG_COMPOSED) != 0 ? 8 * unit : 0.0;
    }
}

/* ------------------------------------------------------------------ results */

enum { MOST_FAILURES = 64, MOST_OPAQUES = 128 };

typedef struct {
    uint32_t case_count;
    uint32_t failure_count;
    double largest_error; /* Of cases in which it is the only operator. */
    const char *failures[MOST_FAILURES];
} operator_result;

/* Cases whose opaque nodes run, by the ONNX operator of the first one. */
typedef struct {
    const char *op_type;
    uint32_t case_count;
    uint32_t failure_count;
    double largest_error;
} opaque_result;

typedef struct {
    operator_result operators[GRAFT_OP_COUNT];
    opaque_result opaques[MOST_OPAQUES];
    uint32_t opaque_count;
    uint32_t opaque_run_count;
    uint32_t skip_count;
    uint32_t installed_count;
    uint32_t run_count;
    uint32_t nodeless_failure_count; /* Folded while reading; only outputs were compared. */
    graft_env env;
} results;

/* ------------------------------------------------------------------ running */

/* The case's tensor for input `number` of the model: by name, else by place. */
static const onnx_tensor *find_input(const onnx_case *c, uint32_t number)
{
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (strcmp(c->inputs[i].name, c->model->inputs[number].name) == 0) {
            return &c->inputs[i];
        }
    }
    return number < c->input_count ? &c->inputs[number] : NULL;
}

/* Whether the case's inputs have the shapes that the model declares. */
static bool place_values(const onnx_case *c, const float **values)
{
    const graft_graph *graph = &c->model->graph;
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        if (value->kind == GRAFT_VALUE_WEIGHT) {
            values[v] = c->model->weights[value->source].data;
        }
        if (value->kind == GRAFT_VALUE_INPUT) {
            const onnx_tensor *tensor = find_input(c, value->source);
            if (tensor == NULL || !graft_shape_equal(&tensor->shape, &value->shape)) {
                return false;
            }
            values[v] = tensor->data != NULL ? tensor->data : tensor->raw;
        }
    }
    return true;
}

/* The largest difference, relative to the largest expected element; infinite when shapes differ or
 * one is NaN or infinite where the other is not. */
static double compare(const onnx_tensor *want, const graft_shape *shape, const float *got)
{
    double largest = 0.0;
    double difference = 0.0;
    if (got == NULL || !graft_shape_equal(&want->shape, shape)) {
        return (double)INFINITY;
    }
    if (want->data == NULL) { /* Whole numbers and truth values. */
        return memcmp(want->raw, got, (size_t)graft_shape_bytes(shape)) == 0 ? 0.0
                                                                             : (double)INFINITY;
    }
    for (size_t i = 0; i < graft_count(shape); i++) {
        double w = (double)want->data[i];
        double g = (double)got[i];
        bool same = w == g || (isnan(w) && isnan(g));
        if (!same && !(isfinite(w) && isfinite(g))) {
            return (double)INFINITY;
        }
        largest = isfinite(w) ? fmax(largest, fabs(w)) : largest;
        difference = same ? difference : fmax(difference, fabs(w - g));
    }
    return difference == 0.0 ? 0.0 : difference / largest;
}

static double compare_outputs(const onnx_case *c, const float *const *values)
{
    const graft_graph *graph = &c->model->graph;
    double error = c->output_count == graph->output_count ? 0.0 : (double)INFINITY;
    for (uint32_t i = 0; i < c->output_count && i < graph->output_count; i++) {
        graft_index v = graph->outputs[i];
        error = fmax(error, compare(&c->outputs[i], &graph->values[v].shape, values[v]));
    }
    return error;
}

/* Books a case that ran: for each operator in it, once. */
static void book_case(results *all, const onnx_case *c, double error)
{
    const graft_graph *graph = &c->model->graph;
    bool seen[GRAFT_OP_COUNT] = {false};
    double tolerance = 0.0;
    uint32_t kinds = 0;
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (graph->nodes[n].op != GRAFT_OP_NONE) {
            kinds += !seen[graph->nodes[n].op];
            seen[graph->nodes[n].op] = true;
            tolerance += tolerance_of(graph->nodes[n].op);
        }
    }
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        operator_result *result = &all->operators[op];
        if (!seen[op]) {
            continue;
        }
        result->case_count++;
        result->largest_error =
            kinds == 1 ? fmax(result->largest_error, error) : result->largest_error;
        if (error > tolerance && result->failure_count++ < MOST_FAILURES) {
            result->failures[result->failure_count - 1] =
                graft_arena_printf(all->env.life, "%s (relative error %.3g)", c->name, error);
        }
    }
    all->run_count++;
    all->nodeless_failure_count += kinds == 0 && error > 0.0;
}

/* Whether every opaque node of a model can be run. */
static bool runs(const graft_model *model)
{
    bool all = true;
    graft_opaque opaque;
    for (graft_index n = 0; n < model->graph.node_end && all; n++) {
        all = model->graph.nodes[n].op != GRAFT_OP_OPAQUE ||
              graft_opaque_find(model, &model->graph, n, &opaque);
    }
    return all;
}

/* Weights of a Resize are rounded in more than one way; behind others may stand a sum, and what comes
 * apart is one of many numbers, and roots and powers of it. Of RoiAlign and GridSample four
 * decimals were recorded. */
static double tolerance_of_opaque(const graft_model *model, const char *op_type)
{
    return graft_onnx_lists("RoiAlign GridSample", op_type)    ? 1e-4
           : model->is_apart || strcmp(op_type, "Resize") == 0 ? 32 * unit
                                                               : 8 * unit;
}

static void book_opaque(results *all, const onnx_case *c, double error)
{
    const graft_graph *graph = &c->model->graph;
    graft_index n = 0;
    uint32_t at = 0;
    while (!c->model->is_apart && graph->nodes[n].op != GRAFT_OP_OPAQUE) {
        n++;
    }
    const char *op_type = c->model->is_apart ? c->model->onnx->proto->graph->node[0]->op_type
                                             : graft_model_node_type(c->model, &graph->nodes[n]);
    while (at < all->opaque_count && strcmp(all->opaques[at].op_type, op_type) != 0) {
        at++;
    }
    opaque_result *result = &all->opaques[at];
    assert_true(at < MOST_OPAQUES);
    if (at == all->opaque_count) {
        result->op_type = graft_arena_strdup(all->env.life, op_type);
        all->opaque_count++;
    }
    result->case_count++;
    all->opaque_run_count++;
    result->largest_error = fmax(result->largest_error, error);
    if (error > tolerance_of_opaque(c->model, op_type)) {
        print_message("# %s differs (relative error %.3g)\n", c->name, error);
        result->failure_count++;
    }
}

/* Their results were recorded with another pi, 3.1415 or so. */
static bool is_recorded_wrongly(const char *name) { return strstr(name, "window") != NULL; }

typedef enum { SKIPPED, RAN, RAN_OPAQUE } outcome;

static outcome try_case(results *all, const char *name, onnx_data_form form)
{
    graft_env *env = &all->env;
    onnx_case c;
    graft_arena_reset(env->unit);
    if (onnx_data_load_as(env, env->unit, name, form, &c) != GRAFT_OK) {
        graft_env_clear(env); /* Or its inputs or outputs are no tensors. */
        return SKIPPED;
    }
    if (!runs(c.model) || is_recorded_wrongly(name) ||
        (form == ONNX_DATA_TO_RUN && !c.model->is_apart)) {
        return SKIPPED;
    }
    for (uint32_t i = 0; i < c.output_count; i++) {
        if (c.outputs[i].data == NULL && c.outputs[i].raw == NULL) {
            return SKIPPED; /* Other numbers, or no elements. */
        }
    }
    const float **values = GRAFT_NEW(env->unit, const float *, c.model->graph.value_end);
    if (!place_values(&c, values)) {
        return SKIPPED;
    }
    graft_order order = build_order(env->unit, &c.model->graph);
    graft_status status =
        graft_float_model(env, env->unit, c.model, &c.model->graph, &order, values);
    const double error = status == GRAFT_OK ? compare_outputs(&c, values) : (double)INFINITY;
    graft_env_clear(env);
    if (c.model->opaque_count == 0 && !c.model->is_apart) {
        book_case(all, &c, error);
        return RAN;
    }
    if (status == GRAFT_BAD_INPUT) {
        return SKIPPED; /* Numbers on which implementations differ. */
    }
    book_opaque(all, &c, error);
    return RAN_OPAQUE;
}

static void run_all(results *all)
{
    all->env.verbosity = 0;
    const char *const *names = onnx_data_list(all->env.life, &all->installed_count);
    for (uint32_t i = 0; i < all->installed_count; i++) {
        outcome plain = try_case(all, names[i], ONNX_DATA_AS_IS);
        outcome frozen = plain == RAN ? RAN : try_case(all, names[i], ONNX_DATA_FROZEN);
        all->skip_count += plain == SKIPPED && frozen == SKIPPED &&
                           try_case(all, names[i], ONNX_DATA_TO_RUN) == SKIPPED;
    }
}

/* -------------------------------------------------------------------- tests */

typedef struct {
    const results *all;
    uint32_t op;
} operator_test;

static void test_operator(void **state)
{
    const operator_test *test = *state;
    const operator_result *result = &test->all->operators[test->op];
    if (result->case_count == 0) {
        CHECK_SKIP("no ONNX case becomes the operator %s", graft_op(test->op)->name);
    }
    print_message("# %s: %u cases, relative error at most %.3g\n", graft_op(test->op)->name,
                  result->case_count, result->largest_error);
    for (uint32_t i = 0; i < result->failure_count && i < MOST_FAILURES; i++) {
        print_message("# %s differs: %s\n", graft_op(test->op)->name, result->failures[i]);
    }
    assert_int_equal(result->failure_count, 0);
}

static void test_folded_cases(void **state)
{
    const operator_test *test = *state;
    assert_int_equal(test->all->nodeless_failure_count, 0);
}

static void test_opaque_cases(void **state)
{
    const operator_test *test = *state;
    uint32_t failures = 0;
    for (uint32_t i = 0; i < test->all->opaque_count; i++) {
        const opaque_result *result = &test->all->opaques[i];
        print_message("# %s: %u cases, relative error at most %.3g\n", result->op_type,
                      result->case_count, result->largest_error);
        failures += result->failure_count;
    }
    assert_int_equal(failures, 0);
}

/* Of the cases of ONNX 1.12 (Debian's libonnx-testdata): none is lost unseen. */
static void test_as_many_as_before(void **state)
{
    const operator_test *test = *state;
    if (test->all->installed_count != 1072) {
        CHECK_SKIP("%u cases, of another version of ONNX", test->all->installed_count);
    }
    uint32_t for_operators = 0;
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        for_operators += test->all->operators[op].case_count;
    }
    assert_int_equal(test->all->run_count, 525);
    assert_int_equal(for_operators, 960);
    assert_int_equal(test->all->opaque_run_count, 528);
    assert_int_equal(test->all->skip_count, 332);
}

static void test_cases_are_installed(void **state)
{
    (void)state;
    CHECK_SKIP("no conformance cases; install libonnx-testdata or set GRAFT_ONNX_TESTDATA");
}

static int report_tests(const results *all)
{
    if (all->installed_count == 0) {
        const struct CMUnitTest missing[] = {cmocka_unit_test(test_cases_are_installed)};
        return cmocka_run_group_tests(missing, NULL, NULL);
    }
    struct CMUnitTest tests[GRAFT_OP_COUNT + 2];
    operator_test states[GRAFT_OP_COUNT];
    for (uint32_t op = 0; op < GRAFT_OP_COUNT; op++) {
        states[op] = (operator_test){all, op};
        tests[op] = (struct CMUnitTest){"folded", test_folded_cases, NULL, NULL, &states[op]};
        if (op > 0) {
            tests[op].name = graft_op(op)->name;
            tests[op].test_func = test_operator;
        }
    }
    tests[GRAFT_OP_COUNT] =
        (struct CMUnitTest){"as many as before", test_as_many_as_before, NULL, NULL, &states[0]};
    tests[GRAFT_OP_COUNT + 1] =
        (struct CMUnitTest){"operators that only run", test_opaque_cases, NULL, NULL, &states[0]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    results *all = calloc(1, sizeof *all);
    if (all == NULL || graft_env_open(&all->env) != GRAFT_OK) {
        return EXIT_FAILURE;
    }
    run_all(all);
    int failed = report_tests(all);
    graft_env_close(&all->env);
    free(all);
    return failed;
}
