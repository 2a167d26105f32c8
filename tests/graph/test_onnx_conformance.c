/* The operators' meaning, held against an implementation that is not ours: the ONNX project's own
 * conformance cases (numpy and PyTorch results), read by the ONNX reader, run by the float algebra.
 *
 * Every installed case is tried, as it is and frozen (onnx_data.h). A case counts for each operator
 * that it became. Opaque nodes that opaque.h runs count by their ONNX operator; cases with others
 * are skipped, with the reason. The whole account is in
 * operator_coverage.md beside this file, and is written by
 *
 *      GRAFT_WRITE_COVERAGE=tests/graph/operator_coverage.md \
 *          out/release/tests/graph/test_onnx_conformance */
#include "graph/base/file.h"
#include "graph/meaning/algebra_float.h"
#include "graph/opaque.h"
#include "tests/support/build.h"
#include "tests/support/onnx_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char coverage_path[] = "tests/graph/operator_coverage.md";

/* ------------------------------------------------------------- tolerances */

/* How far a result may be from the expected one: relative to the largest expected element, because
 * sums of terms of both signs lose that much. What is not listed must be equal to the last bit. */
typedef struct {
    const char *reason;
    double tolerance;
} allowance;

static const double unit = 5.9604644775390625e-8; /* Half a binary32 unit in the last place of 1. */

static allowance allowance_of(uint32_t op)
{
    switch (op) {
    case GRAFT_OP_conv:
    case GRAFT_OP_conv_bias:
    case GRAFT_OP_conv_bias_add:
    case GRAFT_OP_matmul:
    case GRAFT_OP_matmul_bias:
    case GRAFT_OP_conv_transpose:
    case GRAFT_OP_cumsum:
        return (allowance){"order of a sum", 16 * unit};
    case GRAFT_OP_avg_pool:
    case GRAFT_OP_global_avg_pool:
    case GRAFT_OP_reduce_mean:
    case GRAFT_OP_reduce_sum:
        return (allowance){"order of a sum", 8 * unit};
    case GRAFT_OP_layer_norm:
    case GRAFT_OP_instance_norm:
    case GRAFT_OP_rms_norm:
    case GRAFT_OP_log_softmax:
        return (allowance){"differences of sums", 32 * unit};
    case GRAFT_OP_scale_shift:
        return (allowance){"scale and shift are computed first", 16 * unit};
    case GRAFT_OP_softmax:
    case GRAFT_OP_sigmoid:
    case GRAFT_OP_tanh:
    case GRAFT_OP_exp:
    case GRAFT_OP_erf:
    case GRAFT_OP_gelu:
        return (allowance){"rounding of a function", 8 * unit};
    default:
        if ((graft_op(op)->flags & GRAFT_FLAG_COMPOSED) != 0) {
            return (allowance){"rounding of a function", 8 * unit};
        }
        return (allowance){"none", 0.0};
    }
}

/* ------------------------------------------------------------------ results */

enum { MOST_SKIPS = 1024, MOST_FAILURES = 64, MOST_VALUES = 12, MOST_OPAQUES = 128 };

typedef struct {
    int32_t values[MOST_VALUES]; /* Different values that were tried, ascending (as bits). */
    uint32_t count;
} tried_values;

typedef struct {
    uint32_t case_count;
    uint32_t alone_count; /* Cases in which it is the only operator. */
    uint32_t frozen_count;
    uint32_t failure_count;
    double largest_error; /* Of those in which it is alone. */
    const char *failures[MOST_FAILURES];
    tried_values attrs[GRAFT_MAX_ATTRS];
    uint32_t ranks; /* A bit for each rank of the first input (of the output, without inputs). */
} operator_result;

typedef struct {
    const char *name;
    const char *reason;
} skipped_case;

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
    skipped_case skipped[MOST_SKIPS];
    uint32_t skip_count;
    uint32_t installed_count;
    uint32_t run_count;
    uint32_t nodeless_count; /* Folded while reading; only outputs were compared. */
    uint32_t nodeless_failure_count;
    graft_env env;
} results;

static void note_value(tried_values *tried, int32_t value)
{
    uint32_t place = 0;
    while (place < tried->count && tried->values[place] < value) {
        place++;
    }
    if (tried->count == MOST_VALUES || (place < tried->count && tried->values[place] == value)) {
        return;
    }
    memmove(&tried->values[place + 1], &tried->values[place],
            (tried->count - place) * sizeof value);
    tried->values[place] = value;
    tried->count++;
}

static void note_node(operator_result *result, const graft_graph *graph, graft_index n)
{
    const graft_node *node = &graph->nodes[n];
    graft_index v =
        node->input_count > 0 ? graft_node_input(graph, n, 0) : graft_node_output(graph, n, 0);
    for (uint32_t i = 0; i < graft_op(node->op)->attr_count; i++) {
        note_value(&result->attrs[i], node->attrs[i]);
    }
    result->ranks |= 1u << graph->values[v].shape.rank;
}

static void note_skip(results *all, const char *name, const char *reason)
{
    assert_true(all->skip_count < MOST_SKIPS);
    all->skipped[all->skip_count++] = (skipped_case){name, reason};
}

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

/* NULL, or why the case cannot be run. */
static const char *place_values(const onnx_case *c, const float **values)
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
                return "an input's shape is not the declared one";
            }
            values[v] = tensor->data != NULL ? tensor->data : tensor->raw;
        }
    }
    return NULL;
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
static void book_case(results *all, const onnx_case *c, bool frozen, double error)
{
    const graft_graph *graph = &c->model->graph;
    bool seen[GRAFT_OP_COUNT] = {false};
    double tolerance = 0.0;
    uint32_t kinds = 0;
    for (graft_index n = 0; n < graph->node_end; n++) {
        if (graph->nodes[n].op != GRAFT_OP_NONE) {
            kinds += !seen[graph->nodes[n].op];
            seen[graph->nodes[n].op] = true;
            tolerance += allowance_of(graph->nodes[n].op).tolerance;
            note_node(&all->operators[graph->nodes[n].op], graph, n);
        }
    }
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        operator_result *result = &all->operators[op];
        if (!seen[op]) {
            continue;
        }
        result->case_count++;
        result->frozen_count += frozen;
        if (kinds == 1) {
            result->alone_count++;
            result->largest_error = fmax(result->largest_error, error);
        }
        if (error > tolerance && result->failure_count++ < MOST_FAILURES) {
            result->failures[result->failure_count - 1] =
                graft_arena_printf(all->env.life, "%s (relative error %.3g)", c->name, error);
        }
    }
    all->run_count++;
    all->nodeless_count += kinds == 0;
    all->nodeless_failure_count += kinds == 0 && error > 0.0;
}

/* Why a model's node is opaque, as far as it can be told from outside. */
static const char *reason_of_opaque(graft_env *env, const graft_model *model)
{
    const graft_graph *graph = &model->graph;
    for (graft_index n = 0; n < graph->node_end; n++) {
        const graft_node *node = &graph->nodes[n];
        if (node->op != GRAFT_OP_OPAQUE) {
            continue;
        }
        const char *type = graft_model_node_type(model, node);
        graft_index first = node->input_count > 0 ? graft_node_input(graph, n, 0) : GRAFT_NONE;
        if (first == GRAFT_NONE || graph->values[first].shape.rank > GRAFT_MAX_RANK) {
            return graft_arena_strdup(env->life, type);
        }
        const graft_shape *shape = &graph->values[first].shape;
        return shape->dtype != GRAFT_DTYPE_F32
                   ? graft_arena_printf(env->life, "%s, elements of type %u", type, shape->dtype)
                   : graft_arena_printf(env->life, "%s, input of rank %u", type, shape->rank);
    }
    return "no opaque node";
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

/* Weights of a Resize are rounded in more than one way; behind others may stand a sum. */
static double tolerance_of_opaque(const char *op_type)
{
    return strcmp(op_type, "Resize") == 0 ? 32 * unit : 8 * unit;
}

static void book_opaque(results *all, const onnx_case *c, double error)
{
    const graft_graph *graph = &c->model->graph;
    graft_index n = 0;
    uint32_t at = 0;
    while (graph->nodes[n].op != GRAFT_OP_OPAQUE) {
        n++;
    }
    const char *op_type = graft_model_node_type(c->model, &graph->nodes[n]);
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
    if (error > tolerance_of_opaque(op_type)) {
        print_message("# %s differs (relative error %.3g)\n", c->name, error);
        result->failure_count++;
    }
}

/* Their results were recorded with another pi, 3.1415 or so. */
static bool is_recorded_wrongly(const char *name)
{
    return strstr(name, "window") != NULL && strstr(name, "_expanded") != NULL;
}

static const char reason_unreadable[] = "the reader refuses the model";

/* Not why a case was not run, but that it was. */
static const char ran_opaque[] = "with opaque nodes";

/* NULL when it was run, `ran_opaque` when an opaque node was, else why not. */
static const char *try_case(results *all, const char *name, bool frozen)
{
    graft_env *env = &all->env;
    onnx_case c;
    graft_arena_reset(env->unit);
    graft_status status = onnx_data_load(env, env->unit, name, frozen, &c);
    if (status != GRAFT_OK) {
        graft_env_clear(env);
        return status == GRAFT_UNSUPPORTED ? "inputs or outputs that are not tensors"
                                           : reason_unreadable;
    }
    if (!runs(c.model)) {
        return reason_of_opaque(env, c.model);
    }
    if (is_recorded_wrongly(name)) {
        return "recorded with another pi";
    }
    for (uint32_t i = 0; i < c.output_count; i++) {
        if (c.outputs[i].data == NULL && c.outputs[i].raw == NULL) {
            return "an output of other numbers, or without elements";
        }
    }
    const float **values = GRAFT_NEW(env->unit, const float *, c.model->graph.value_end);
    const char *why = place_values(&c, values);
    if (why != NULL) {
        return why;
    }
    graft_order order = build_order(env->unit, &c.model->graph);
    status = graft_float_model(env, env->unit, c.model, &c.model->graph, &order, values);
    const double error = status == GRAFT_OK ? compare_outputs(&c, values) : (double)INFINITY;
    graft_env_clear(env);
    if (c.model->opaque_count == 0) {
        book_case(all, &c, frozen, error);
        return NULL;
    }
    if (status == GRAFT_BAD_INPUT) {
        return "numbers on which implementations differ";
    }
    book_opaque(all, &c, error);
    return ran_opaque;
}

static void run_all(results *all)
{
    all->env.verbosity = 0;
    const char *const *names = onnx_data_list(all->env.life, &all->installed_count);
    for (uint32_t i = 0; i < all->installed_count; i++) {
        const char *why = try_case(all, names[i], false);
        const char *frozen = why == NULL ? NULL : try_case(all, names[i], true);
        if (frozen != NULL && why != ran_opaque && frozen != ran_opaque) {
            note_skip(all, names[i], frozen == reason_unreadable ? why : frozen);
        }
    }
}

/* ----------------------------------------------------------------- coverage */

static void write_value(graft_buffer *text, const graft_attr_info *attr, int32_t value)
{
    float number = 0.0F;
    memcpy(&number, &value, sizeof number);
    if (attr->kind == GRAFT_ATTR_FLOAT) {
        graft_buffer_printf(text, " %g", (double)number);
    } else {
        graft_buffer_printf(text, " %d", value);
    }
}

/* Errors are given as the next power of two of half units in the last place. Those of functions are
 * left to the test's output: the last bit of exp and erf depends on the C library and processor. */
static void write_operator(graft_buffer *text, uint32_t op, const operator_result *result)
{
    const allowance allowed = allowance_of(op);
    graft_buffer_printf(text, "| %s | %u | %u | %u |", graft_op(op)->name, result->case_count,
                        result->alone_count, result->frozen_count);
    for (uint32_t rank = 0; rank <= GRAFT_MAX_RANK; rank++) {
        if ((result->ranks & (1u << rank)) != 0) {
            graft_buffer_printf(text, " %u", rank);
        }
    }
    double halves = 1.0;
    while (result->largest_error > halves * unit) {
        halves *= 2.0;
    }
    if (result->alone_count == 0 || (graft_op(op)->flags & GRAFT_FLAG_UNKNOWN_FN) != 0) {
        graft_buffer_printf(text, " | |");
    } else if (result->largest_error == 0.0) {
        graft_buffer_printf(text, " | equal |");
    } else {
        graft_buffer_printf(text, " | %g |", halves);
    }
    graft_buffer_printf(text, " %g | %s |\n", allowed.tolerance / unit,
                        allowed.tolerance > 0.0 ? allowed.reason : "");
}

static void write_attrs(graft_buffer *text, uint32_t op, const operator_result *result)
{
    for (uint32_t i = 0; i < graft_op(op)->attr_count; i++) {
        const graft_attr_info *attr = graft_op_attr(op, i);
        graft_buffer_printf(text, "| %s | %s |", graft_op(op)->name, attr->name);
        for (uint32_t j = 0; j < result->attrs[i].count; j++) {
            write_value(text, attr, result->attrs[i].values[j]);
        }
        graft_buffer_printf(text, "%s |\n",
                            result->attrs[i].count == 0   ? " **none**"
                            : result->attrs[i].count == 1 ? " **only**"
                                                          : "");
    }
}

/* Whether a reason names an operator that some row of the table is exported as, or imported from.
 */
static bool names_known_operator(const char *reason)
{
    static const char *const imported[] = {"Gemm", "Flatten",  "Squeeze", "Unsqueeze",
                                           "Sum",  "Constant", "Dropout"};
    size_t length = strcspn(reason, ",");
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        const char *onnx = graft_op(op)->onnx;
        if (strlen(onnx) == length && strncmp(onnx, reason, length) == 0) {
            return true;
        }
    }
    for (uint32_t i = 0; i < sizeof imported / sizeof imported[0]; i++) {
        if (strlen(imported[i]) == length && strncmp(imported[i], reason, length) == 0) {
            return true;
        }
    }
    return false;
}

static void write_skipped(graft_buffer *text, const results *all)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < all->skip_count; i++) {
        if (names_known_operator(all->skipped[i].reason)) {
            graft_buffer_printf(text, "| %s | %s |\n", all->skipped[i].name,
                                all->skipped[i].reason);
        } else {
            others++;
        }
    }
    graft_buffer_printf(text,
                        "\n%u cases were skipped because of something else first, mostly operators "
                        "outside the table:\n\n| reason | cases |\n|---|---|\n",
                        others);
    for (uint32_t i = 0; i < all->skip_count; i++) {
        const char *reason = all->skipped[i].reason;
        size_t length = strcspn(reason, ",");
        uint32_t count = 0;
        bool is_first = !names_known_operator(reason);
        for (uint32_t j = 0; j < all->skip_count && is_first; j++) {
            const char *other = all->skipped[j].reason;
            bool same = strcspn(other, ",") == length && strncmp(other, reason, length) == 0;
            is_first = !same || j >= i;
            count += same;
        }
        if (is_first) {
            graft_buffer_printf(text, "| %.*s | %u |\n", (int)length, reason, count);
        }
    }
}

static int compare_opaques(const void *a, const void *b)
{
    return strcmp(((const opaque_result *)a)->op_type, ((const opaque_result *)b)->op_type);
}

static void write_opaques(graft_buffer *text, const results *all)
{
    opaque_result sorted[MOST_OPAQUES];
    memcpy(sorted, all->opaques, sizeof sorted);
    qsort(sorted, all->opaque_count, sizeof sorted[0], compare_opaques);
    graft_buffer_printf(text,
                        "\n## Operators that only run\n\n"
                        "Nodes that rules never see, run all the same (graph/opaque.h): cases "
                        "by the first such node, %u times, as they are or frozen.\n\n"
                        "| ONNX operator | times |\n|---|---|\n",
                        all->opaque_run_count);
    for (uint32_t i = 0; i < all->opaque_count; i++) {
        graft_buffer_printf(text, "| %s | %u |\n", sorted[i].op_type, sorted[i].case_count);
    }
}

/* The first text takes the numbers of cases: installed, run, folded, skipped. */
static const char text_head[] =
    "# Operator coverage\n\n"
    "How the meaning of each operator was held against an implementation that is not ours: the "
    "conformance cases of ONNX 1.12 (Debian's libonnx-testdata), read by the ONNX reader and run "
    "by "
    "the float algebra. Written by tests/graph/test_onnx_conformance.c, which fails when this file "
    "is not what it finds.\n\n"
    "%u cases are installed; %u ran (%u of them without a node left: computed while reading), %u "
    "were skipped. A case counts for every operator that it became; *alone* are those that became "
    "nothing else, and errors are theirs. *Frozen*: inputs other than the first are initializers, "
    "as they are in exported models. Errors are relative to the largest expected element, in "
    "halves "
    "of a binary32 unit in the last place; *equal* means equal to the last bit. In a case with "
    "several operators allowances add up.\n\n"
    "| operator | cases | alone | frozen | ranks | error at most | allowed | because of |\n"
    "|---|---|---|---|---|---|---|---|\n";

static const char text_attrs[] =
    "\nOperators without a case, and activations inside fused ones, exist in no ONNX case; "
    "tests/graph/test_algebras.c holds them against the plain operators that they fuse. The three "
    "forms of a convolution share one body, so what is tried in one form is tried in all.\n\n"
    "## Attribute values that were tried\n\n"
    "At most %u of each; **only** marks attributes of which no second value was tried.\n\n"
    "| operator | attribute | values |\n|---|---|---|\n";

static const char text_skipped[] =
    "\n## Cases that were skipped\n\n"
    "Of operators that the table has, in other forms (element types as ONNX numbers them):\n\n"
    "| case | stays opaque |\n|---|---|\n";

static graft_buffer write_coverage(const results *all)
{
    graft_buffer text = {.arena = all->env.life};
    graft_buffer_printf(&text, text_head, all->installed_count, all->run_count, all->nodeless_count,
                        all->skip_count);
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        write_operator(&text, op, &all->operators[op]);
    }
    graft_buffer_printf(&text, text_attrs, (unsigned)MOST_VALUES);
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        write_attrs(&text, op, &all->operators[op]);
    }
    write_opaques(&text, all);
    graft_buffer_append(&text, text_skipped, strlen(text_skipped));
    write_skipped(&text, all);
    return text;
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

static void test_coverage_is_current(void **state)
{
    const operator_test *test = *state;
    graft_env env = test->all->env;
    graft_buffer text = write_coverage(test->all);
    const char *target = getenv("GRAFT_WRITE_COVERAGE");
    if (target != NULL) {
        CHECK_OK(graft_file_write(&env, target, text.data, text.size));
    }
    uint8_t *data = NULL;
    size_t size = 0;
    CHECK_OK(graft_file_read(&env, env.life, coverage_path, &data, &size));
    if (size != text.size || memcmp(data, text.data, size) != 0) {
        fail_msg("%s is not what the cases give: run this program with GRAFT_WRITE_COVERAGE=%s",
                 coverage_path, coverage_path);
    }
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
    tests[GRAFT_OP_COUNT] = (struct CMUnitTest){"coverage is current", test_coverage_is_current,
                                                NULL, NULL, &states[0]};
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
