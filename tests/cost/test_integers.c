/* Products and sums of 8-bit integers (cost/plan/integers.h): every implementation against what the
 * signature means, in each layout, those of ours on several threads, too; and the models of the zoo in 8 bits, where groups on integers
 * take the place of all products, against the same models in binary32. */
#include "cost/device/backend.h"
#include "cost/plan/executor.h"
#include "cost/plan/integers.h"
#include "graph/meaning/algebra_float.h"
#include "models/zoo.h"
#include "tests/support/build.h"
#include "tests/support/kernels.h"

#include <math.h>
#include <string.h>

enum {
    CONV = GRAFT_COST_INTEGER_CONV,
    MATMUL = GRAFT_COST_INTEGER_MATMUL,
    ADD = GRAFT_COST_INTEGER_ADD,
    GUARD_BYTES = 64,
    DRAWS = 12
};

typedef struct {
    const char *name;
    uint32_t op;
    int32_t left[4];
    int32_t right[4];
    int32_t attrs[9]; /* stride 2, pad 4, dilation 2, groups */
} row;

/* clang-format off */
static const row rows[] = {
    {"pointwise", CONV, {1, 64, 7, 9}, {32, 64, 1, 1}, {1, 1, 0, 0, 0, 0, 1, 1, 1}},
    {"strided pointwise", CONV, {2, 16, 8, 8}, {48, 16, 1, 1}, {2, 2, 0, 0, 0, 0, 1, 1, 1}},
    {"odd channels", CONV, {2, 17, 9, 11}, {23, 17, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {"stem", CONV, {1, 3, 32, 32}, {16, 3, 7, 7}, {2, 2, 3, 3, 3, 3, 1, 1, 1}},
    {"one channel", CONV, {1, 1, 12, 10}, {8, 1, 5, 4}, {2, 1, 2, 1, 2, 1, 1, 1, 1}},
    {"uneven padding", CONV, {1, 8, 13, 10}, {16, 8, 3, 3}, {2, 1, 0, 2, 1, 0, 1, 1, 1}},
    {"dilated", CONV, {1, 16, 15, 15}, {16, 16, 3, 3}, {1, 1, 2, 2, 2, 2, 2, 2, 1}},
    {"depthwise", CONV, {1, 32, 14, 14}, {32, 1, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 32}},
    {"depthwise odd", CONV, {1, 19, 7, 7}, {19, 1, 3, 3}, {2, 2, 1, 1, 1, 1, 1, 1, 19}},
    {"depthwise, few", CONV, {2, 7, 9, 8}, {7, 1, 3, 2}, {1, 2, 1, 0, 1, 1, 1, 1, 7}},
    {"depthwise, eight", CONV, {1, 8, 10, 11}, {8, 1, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 8}},
    {"depthwise, four", CONV, {2, 4, 9, 13}, {4, 1, 2, 3}, {2, 1, 0, 2, 1, 1, 2, 2, 4}},
    {"grouped", CONV, {1, 32, 14, 14}, {64, 8, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 4}},
    {"grouped odd", CONV, {1, 9, 6, 6}, {6, 3, 3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 3}},
    {"one row", MATMUL, {1, 64}, {64, 10}, {0}},
    {"matrix", MATMUL, {7, 33}, {33, 19}, {0}},
    {"batch", MATMUL, {2, 3, 5, 16}, {16, 32}, {0}},
    {"sum of images", ADD, {2, 5, 7, 3}, {2, 5, 7, 3}, {0}},
    {"sum of rows", ADD, {3, 41}, {3, 41}, {0}},
};
/* clang-format on */

/* A signature with its operands, row-major. */
typedef struct {
    graft_signature signature;
    graft_shape out;
    uint8_t *in[2];
    float *numbers;
    bool halves; /* Factors are powers of two: no result depends on how sums are rounded. */
    bool beyond; /* They are the next number each: what were halves lie just beyond. */
} trial;

static graft_shape shape_of(const int32_t *dims, uint32_t dtype)
{
    graft_shape shape = {.dtype = (uint8_t)dtype};
    while (shape.rank < 4 && dims[shape.rank] > 0) {
        shape.dims[shape.rank] = dims[shape.rank];
        shape.rank++;
    }
    return shape;
}

static uint32_t draw_type(graft_rng *rng)
{
    return graft_rng_below(rng, 2) == 0 ? GRAFT_DTYPE_I8 : GRAFT_DTYPE_U8;
}

static float draw_zero(graft_rng *rng, uint32_t type)
{
    return (float)graft_rng_below(rng, 256) - (type == GRAFT_DTYPE_I8 ? 128.0F : 0.0F);
}

static float draw_factor(graft_rng *rng, bool halves)
{
    const float power = ldexpf(1.0F, -(int)graft_rng_below(rng, 8) - 5);
    return halves ? power : power * (0.5F + (float)graft_rng_uniform(rng));
}

static void draw_numbers(graft_rng *rng, trial *t)
{
    const graft_signature *s = &t->signature;
    const uint32_t channels = graft_integers_channels(s);
    const uint32_t result = graft_signature_result(s);
    if (s->op == ADD) {
        for (uint32_t k = 0; k < 3; k++) {
            t->numbers[2 * k] = draw_factor(rng, t->halves) * (k == 2 ? 2.0F : 1.0F);
            t->numbers[2 * k + 1] = draw_zero(rng, k == 2 ? result : s->inputs[k].dtype);
        }
        t->numbers[GRAFT_SUM_MOST] = 0.25F;
        return;
    }
    t->numbers[GRAFT_PRODUCT_ZERO] = draw_zero(rng, s->inputs[0].dtype);
    t->numbers[GRAFT_PRODUCT_RESULT_ZERO] =
        result == GRAFT_DTYPE_F32 ? 0.0F : draw_zero(rng, result);
    t->numbers[GRAFT_PRODUCT_MOST] = 40.5F;
    for (uint32_t i = 0; i < channels; i++) {
        const float factor = draw_factor(rng, t->halves);
        t->numbers[GRAFT_PRODUCT_NUMBERS + i] = t->beyond ? nextafterf(factor, 1.0F) : factor;
        t->numbers[GRAFT_PRODUCT_NUMBERS + channels + i] = (float)graft_rng_below(rng, 4000) - 2e3F;
    }
}

static void draw_trial(graft_env *env, graft_rng *rng, const row *r, trial *t)
{
    static const uint32_t results[3] = {GRAFT_DTYPE_I8, GRAFT_DTYPE_U8, GRAFT_DTYPE_F32};
    const bool sums = r->op == ADD;
    const bool image = r->op != MATMUL && r->left[2] > 0;
    graft_signature *s = &t->signature;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    memset(t, 0, sizeof(*t));
    memcpy(s->attrs, r->attrs, r->op == CONV ? sizeof(r->attrs) : 0);
    graft_signature_set_integer(s, r->op, (int32_t)graft_rng_below(rng, 3),
                                results[graft_rng_below(rng, sums ? 2 : 3)]);
    const graft_shape left = shape_of(r->left, draw_type(rng));
    const graft_shape right = shape_of(r->right, sums ? draw_type(rng) : GRAFT_DTYPE_I8);
    graft_signature_set_input(s, 0, &left);
    graft_signature_set_input(s, 1, &right);
    const graft_shape numbers =
        shape_of((int32_t[4]){(int32_t)graft_integers_numbers(s)}, GRAFT_DTYPE_F32);
    graft_signature_set_input(s, 2, &numbers);
    s->const_mask = sums ? 4 : 6;
    s->in_layouts[0] = image ? GRAFT_LAYOUT_NHWC : GRAFT_LAYOUT_ROW;
    s->in_layouts[1] = image && sums ? GRAFT_LAYOUT_NHWC : GRAFT_LAYOUT_ROW;
    s->out_layouts[0] = s->in_layouts[0];
    CHECK_OK(graft_signature_outputs(s, outputs));
    t->out = outputs[0];
    t->halves = graft_rng_below(rng, 2) == 0;
    t->beyond = t->halves && !sums && graft_rng_below(rng, 2) == 0;
    for (uint32_t k = 0; k < 2; k++) {
        size_t count = (size_t)graft_shape_elements(&s->inputs[k]);
        t->in[k] = GRAFT_NEW(env->unit, uint8_t, count);
        for (size_t i = 0; i < count; i++) {
            t->in[k][i] = (uint8_t)graft_rng_below(rng, 256);
        }
    }
    t->numbers = GRAFT_NEW(env->unit, float, graft_integers_numbers(s));
    draw_numbers(rng, t);
}

/* Row-major to the layout, or back, in elements of `size` bytes. */
static void *arrange(graft_env *env, const graft_shape *shape, uint32_t layout, bool back,
                     const void *from, size_t size)
{
    const size_t count = (size_t)graft_shape_elements(shape);
    char *to = GRAFT_NEW(env->unit, char, count *size);
    for (size_t i = 0; i < count; i++) {
        const size_t at = check_place(shape, layout, i);
        memcpy(to + (back ? i : at) * size, (const char *)from + (back ? at : i) * size, size);
    }
    return to;
}

/* Runs one implementation; the result row-major. */
static const void *run_kernel(graft_env *env, graft_device *device, const trial *t,
                              const char *name)
{
    const graft_signature *s = &t->signature;
    const bool sums = s->op == ADD;
    const size_t size = t->out.dtype == GRAFT_DTYPE_F32 ? 4 : 1;
    const size_t bytes = (size_t)graft_shape_bytes(&t->out);
    graft_kernel *kernel = NULL;
    const void *right = t->in[1];
    const float *constants[GRAFT_MAX_INPUTS] = {NULL, sums ? NULL : right, t->numbers};
    const float *in[GRAFT_MAX_INPUTS] = {
        arrange(env, &s->inputs[0], s->in_layouts[0], false, t->in[0], 1),
        arrange(env, &s->inputs[1], s->in_layouts[1], false, t->in[1], 1)};
    CHECK_OK(graft_kernel_open(env, device, s, name, constants, &kernel));
    uint8_t *out = GRAFT_NEW(env->unit, uint8_t, bytes + 2 * GUARD_BYTES);
    uint8_t *aligned = out + (GUARD_BYTES - (uintptr_t)out % GUARD_BYTES) % GUARD_BYTES;
    memset(aligned, 0xa5, bytes + GUARD_BYTES);
    float *outputs[GRAFT_MAX_OUTPUTS] = {(float *)(void *)aligned};
    char *workspace = GRAFT_NEW(env->unit, char,
                                graft_kernel_facts_of(kernel)->workspace_bytes + 2 * GUARD_BYTES);
    workspace += (GUARD_BYTES - (uintptr_t)workspace % GUARD_BYTES) % GUARD_BYTES;
    CHECK_OK(graft_kernel_bind(env, kernel, in, outputs, workspace));
    CHECK_OK(graft_kernel_run(env, kernel));
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        assert_int_equal(aligned[bytes + i], 0xa5);
    }
    graft_kernel_close(kernel);
    return arrange(env, &t->out, s->out_layouts[0], true, aligned, size);
}

static double number_at(const graft_shape *shape, const void *data, size_t i)
{
    return shape->dtype == GRAFT_DTYPE_F32  ? (double)((const float *)data)[i]
           : shape->dtype == GRAFT_DTYPE_I8 ? ((const int8_t *)data)[i]
                                            : ((const uint8_t *)data)[i];
}

/* What a signature means, row-major: the operator on binary32, whose sums are exact here, of the
 * operands less their zero points. */
static void run_meaning(graft_env *env, const graft_signature *s, const void *const in[3],
                        void *out)
{
    const bool sums = s->op == GRAFT_COST_INTEGER_ADD;
    const float *n = in[2];
    const float *factors = n + GRAFT_PRODUCT_NUMBERS;
    const uint32_t channels = graft_integers_channels(s);
    const int32_t activation = graft_signature_activation(s);
    const uint32_t result = graft_signature_result(s);
    const float zero = n[sums ? 5 : GRAFT_PRODUCT_RESULT_ZERO];
    const float least = result == GRAFT_DTYPE_I8 ? -128.0F : 0.0F;
    graft_shape shapes[2] = {s->inputs[0], s->inputs[1]};
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    const float *operands[2];
    CHECK_OK(graft_signature_outputs(s, outputs));
    for (uint32_t k = 0; k < 2; k++) {
        const size_t count = (size_t)graft_shape_elements(&shapes[k]);
        float *numbers = GRAFT_NEW(env->unit, float, count);
        const double shift = sums ? n[2 * k + 1] : k == 0 ? n[GRAFT_PRODUCT_ZERO] : 0.0F;
        for (size_t i = 0; i < count; i++) {
            numbers[i] =
                (float)(number_at(&s->inputs[k], in[k], i) - shift) * (sums ? n[2 * k] : 1);
        }
        shapes[k].dtype = GRAFT_DTYPE_F32;
        operands[k] = numbers;
    }
    const size_t count = (size_t)graft_shape_elements(&outputs[0]);
    const size_t inner = outputs[0].rank == 4 && s->op == GRAFT_COST_INTEGER_CONV
                             ? (size_t)outputs[0].dims[2] * (size_t)outputs[0].dims[3]
                             : 1;
    float *x = GRAFT_NEW(env->unit, float, count);
    const graft_call call = {s->attrs, shapes, outputs};
    graft_float_run(sums                               ? GRAFT_OP_add
                    : s->op == GRAFT_COST_INTEGER_CONV ? GRAFT_OP_conv
                                                       : GRAFT_OP_matmul,
                    &call, operands, &x);
    for (size_t i = 0; i < count; i++) {
        const size_t channel = sums ? 0 : i / inner % channels;
        float y = sums ? x[i] : (x[i] + factors[channels + channel]) * factors[channel];
        y = activation == GRAFT_ACT_NONE ? y : fmaxf(y, 0.0F);
        y = activation == GRAFT_ACT_RELU6 ? fminf(y, n[sums ? GRAFT_SUM_MOST : GRAFT_PRODUCT_MOST])
                                          : y;
        if (result == GRAFT_DTYPE_F32) {
            ((float *)out)[i] = y;
            continue;
        }
        y = rintf(sums ? y / n[4] : y) + zero;
        ((uint8_t *)out)[i] = (uint8_t)(int32_t)fminf(fmaxf(y, least), least + 255.0F);
    }
}

/* The same but for one unit in few places, and in none where factors are nearly powers of two. */
static void check_result(graft_env *env, const trial *t, const char *name, const void *got,
                         const void *want)
{
    const size_t count = (size_t)graft_shape_elements(&t->out);
    const bool is_real = t->out.dtype == GRAFT_DTYPE_F32;
    graft_buffer text = {.arena = env->scratch};
    size_t others = 0;
    graft_signature_print(&t->signature, &text);
    for (size_t i = 0; i < count; i++) {
        const double a = number_at(&t->out, got, i);
        const double b = number_at(&t->out, want, i);
        const double most = t->halves && !(t->beyond && is_real) ? 0.0
                            : is_real                            ? fabs(b) * 1e-6
                                                                 : 1.0;
        others += a != b;
        if (!(fabs(a - b) <= most)) {
            fail_msg("%s by %s: element %zu is %g, should be %g", text.data, name, i, a, b);
        }
    }
    assert_true(is_real || others <= count / 200);
}

CHECK_CASE(test_kernels)
{
    graft_device *device = check_device_open(env);
    graft_device *shared = check_device_shared(env);
    graft_rng rng = check_rng(8);
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]) * DRAWS; r++) {
        graft_kernel_name names[GRAFT_KERNEL_MOST];
        uint32_t count = 0;
        trial t;
        draw_trial(env, &rng, &rows[r / DRAWS], &t);
        void *want = GRAFT_NEW(env->unit, char, (size_t)graft_shape_bytes(&t.out));
        run_meaning(env, &t.signature, (const void *[3]){t.in[0], t.in[1], t.numbers}, want);
        CHECK_OK(graft_kernel_list(env, device, &t.signature, names, &count));
        assert_true(count > 0);
        for (uint32_t i = 0; i < count; i++) {
            const void *got = run_kernel(env, device, &t, names[i].text);
            assert_null(strstr(names[i].text, ":ref"));
            check_result(env, &t, names[i].text, got, want);
            if (strstr(names[i].text, "plain") !=
                NULL) { /* The same bits on any number of threads. */
                assert_memory_equal(got, run_kernel(env, shared, &t, names[i].text),
                                    (size_t)graft_shape_bytes(&t.out));
            }
        }
        graft_arena_reset(env->unit);
    }
}

/* Halves, ends of the range and bias by hand: 3 x + bias, and (a - 3) / 2 + (b - 1) / 4. */
CHECK_CASE(test_meaning)
{
    trial t;
    graft_rng rng = check_rng(1);
    const row product = {
        "", MATMUL, {6,  1},
          {1,  1},
          {0}
    };
    const row sum = {"", ADD, {4}, {4}, {0}};
    int8_t out[6];
    draw_trial(env, &rng, &product, &t);
    graft_signature_set_integer(&t.signature, product.op, GRAFT_ACT_RELU, GRAFT_DTYPE_I8);
    t.signature.inputs[0].dtype = GRAFT_DTYPE_U8;
    const uint8_t x[6] = {7, 8, 9, 10, 250, 0};
    const int8_t w = 1;
    const float numbers[5] = {7.0F, 1.0F, 0.0F, 0.5F, 1.0F}; /* ((x - 7) + 1) / 2 + 1 */
    run_meaning(env, &t.signature, (const void *[3]){x, &w, numbers}, out);
    assert_memory_equal(out, ((const int8_t[6]){1, 2, 3, 3, 123, 1}), 6);
    draw_trial(env, &rng, &sum, &t);
    graft_signature_set_integer(&t.signature, sum.op, GRAFT_ACT_NONE, GRAFT_DTYPE_I8);
    t.signature.inputs[0].dtype = GRAFT_DTYPE_U8;
    t.signature.inputs[1].dtype = GRAFT_DTYPE_I8;
    const uint8_t a[4] = {4, 5, 255, 0};
    const int8_t b[4] = {1, -1, 127, -128};
    const float scales[7] = {0.5F, 3.0F, 0.25F, 1.0F, 1.0F, -3.0F, 0.0F};
    run_meaning(env, &t.signature, (const void *[3]){a, b, scales}, out);
    assert_memory_equal(out, ((const int8_t[4]){-3, -3, 127, -37}),
                        4); /* 0.5, 0.5, 157.5, -33.75 */
}

/* ------------------------------------------------------------------- models */

/* A unit that differs in one layer is a part of a percent of the next one's numbers. */
static const double unit_tolerance = 0.01;

typedef struct {
    const char *name;
    uint32_t products;
    uint32_t sums;
    uint32_t changes; /* To and from 8 bits that are left. */
} model_row;

static const model_row models[] = {
    {"dscnn_int8",       10, 0, 6},
    {"resnet8_int8",     10, 3, 6},
    {"mobilenetv1_int8", 28, 0, 6},
    {"autoencoder_int8", 10, 0, 1},
};

/* What the model's operators compute one by one, from the same inputs. */
static const float *run_reference(graft_env *env, const graft_model *model, const float *input)
{
    const graft_graph *graph = &model->graph;
    const float **values = GRAFT_NEW(env->unit, const float *, graph->value_end);
    graft_weights weights;
    const graft_order order = build_order(env->unit, graph);
    CHECK_OK(graft_model_fold_weights(env, env->unit, model, graph, &weights));
    for (graft_index v = 0; v < graph->value_end; v++) {
        const graft_value *value = &graph->values[v];
        values[v] = value->kind == GRAFT_VALUE_WEIGHT  ? graft_weights_data(&weights, v)
                    : value->kind == GRAFT_VALUE_INPUT ? input
                                                       : NULL;
    }
    CHECK_OK(graft_float_model(env, env->unit, model, graph, &order, values));
    return values[graph->outputs[0]];
}

static void check_steps(const graft_executor *executor, const model_row *m)
{
    const graft_schedule *schedule = graft_executor_schedule(executor);
    uint32_t products = 0;
    uint32_t sums = 0;
    uint32_t changes = 0;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
        const graft_signature *s = &schedule->steps[i].signature;
        assert_false(graft_signature_is_product(s));
        sums += s->op == ADD;
        products += graft_signature_is_integer(s) && s->op != ADD;
        changes += s->op == GRAFT_COST_QUANTISE || s->op == GRAFT_COST_DEQUANTISE;
    }
    print_message("# %s: %u products, %u sums, %u changes\n", m->name, products, sums, changes);
    assert_int_equal(products, m->products);
    assert_int_equal(sums, m->sums);
    assert_int_equal(changes, m->changes);
}

CHECK_CASE(test_models)
{
    graft_device *device = check_device_open(env);
    graft_cost *cost = check_cost_open(env, device, NULL);
    CHECK_OK(graft_cost_borrow(env, cost, NULL));
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        const graft_zoo_entry *entry = NULL;
        graft_model *model = NULL;
        graft_executor *executor = NULL;
        graft_rng rng = check_rng(i);
        CHECK_OK(graft_zoo_find(env, models[i].name, &entry));
        CHECK_OK(graft_zoo_open(env, env->unit, entry, false, &model));
        graft_cost_set_model(cost, model);
        CHECK_OK(graft_executor_open_folded(env, env->unit, cost, model, &model->graph, &executor));
        check_steps(executor, &models[i]);
        const graft_shape *in = &model->graph.values[graft_executor_input(executor, 0)].shape;
        const graft_shape *shape = &model->graph.values[model->graph.outputs[0]].shape;
        const size_t count = (size_t)graft_shape_elements(shape);
        float *input = GRAFT_NEW(env->unit, float, (size_t)graft_shape_elements(in));
        float *output = GRAFT_NEW(env->unit, float, count);
        for (uint64_t k = 0; k < graft_shape_elements(in); k++) {
            input[k] = (float)graft_rng_normal(&rng);
        }
        CHECK_OK(
            graft_executor_run(env, executor, (const float *[1]){input}, (float *[1]){output}));
        check_close(output, run_reference(env, model, input), count, unit_tolerance,
                    models[i].name);
        graft_executor_close(executor);
        graft_arena_reset(env->unit);
    }
}
