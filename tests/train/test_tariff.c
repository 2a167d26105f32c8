/* Tables of node costs: numbers, keys, limits of bytes, what greedy over a table finds, by recorded
 * costs. */
#include "models/zoo.h"
#include "tests/support/build.h"
#include "tests/support/priced.h"
#include "train/tariff/roof.h"
#include "train/tariff/tariff_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TREES = 160, STEPS = 200 };

typedef struct {
    priced_model *p;
    graft_book book;
} fixture;

static void walk(fixture *f, graft_walk_kind kind, const graft_tariff *tariff,
                 const graft_plan_found *actions)
{
    const graft_walk walk = {.kind = kind,
                             .tariff = tariff,
                             .actions = actions,
                             .steps_most = 60,
                             .contexts_most = 1000,
                             .beside_most = 6};
    CHECK_OK(graft_tariff_walk(f->p->env, &f->p->environment, f->p->cost, &f->book, &walk));
}

static graft_tariff make(fixture *f, const graft_tariff_options *options)
{
    graft_tariff tariff;
    CHECK_OK(graft_tariff_make(f->p->env, f->p->env->unit, &f->book, options, &tariff));
    assert_null(graft_tariff_check(&tariff));
    return tariff;
}

/* A model of the zoo by recorded costs, and a book of walks through its rewrites. */
static fixture *open_fixture_on(graft_env *env, const char *device, const char *name)
{
    fixture *f = GRAFT_NEW(env->life, fixture, 1);
    f->p = priced_open(env, name,
                       &(priced_options){.device = device, .step_limit = STEPS, .level = true});
    graft_book_open(env->life, &f->book);
    walk(f, GRAFT_WALK_RANDOM, NULL, NULL);
    return f;
}

static fixture *open_fixture(graft_env *env, const char *name)
{
    fixture *f = open_fixture_on(env, NULL, name);
    assert_true(f->p->leveled > 0);
    return f;
}

CHECK_CASE(test_values)
{
    assert_int_equal(graft_tariff_value(0), 0);
    assert_int_equal(graft_tariff_encode(0.0), 0);
    assert_int_equal(graft_tariff_value(1), 1);
    assert_int_equal(graft_tariff_value(1 + 1024 * 46), INT64_C(1) << 46);
    assert_true(graft_tariff_value(UINT16_MAX) < UINT64_C(1) << 47);
    for (uint32_t v = 1; v <= 47 * 1024; v++) {
        double exact = exp2((v - 1) / 1024.0);
        double units = (double)graft_tariff_value(v);
        assert_true(fabs(units - exact) <= 0.5 + 1e-8 * exact);
    }
    for (uint32_t i = 0; i < 70; i++) {
        double ns = 0.5 * pow(1.37, i);
        double back = (double)graft_tariff_value(graft_tariff_encode(ns)) / GRAFT_COST_UNITS;
        assert_true(fabs(back / ns - 1.0) < 0.002);
        assert_true(ns < 100.0 || fabs(back / ns - 1.0) < 0.00035);
    }
}

/* The estimator of a graph that it has estimated, in `arena`. */
static graft_estimator estimate(graft_arena *arena, const graft_tariff *tariff,
                                const graft_graph *graph, const graft_order *order,
                                graft_estimated *estimated)
{
    graft_estimator e = build_estimator(arena, tariff, &graph->limits);
    CHECK_OK(graft_estimate(&e, graph, order, estimated));
    return e;
}

/* Greedy over the table finds what greedy over prices finds, and asks for none. */
CHECK_CASE(test_greedy_over_the_table)
{
    static const char *const models[] = {"dscnn", "mobilenetv1"};
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        fixture *f = open_fixture(env, models[m]);
        const graft_tariff_options options = {.models = 1, .rows = true};
        graft_plan_found greedy;
        graft_tariff_plan plan;
        graft_estimated again;
        CHECK_OK(graft_search_greedy(env, env->unit, &f->p->environment, NULL, &greedy));
        walk(f, GRAFT_WALK_PLAN, NULL, &greedy);
        for (uint32_t pass = 0; pass < 2; pass++) {
            graft_tariff tariff = make(f, &options);
            walk(f, GRAFT_WALK_TARIFF, &tariff, NULL);
        }
        graft_tariff tariff = make(f, &options);
        CHECK_OK(graft_search_tariff(env, env->unit, &f->p->environment, &tariff, &plan));
        if (plan.found.cost_ns > greedy.cost_ns * 1.0005) {
            fail_msg("%s: %f ns over the table, %f by prices", models[m], plan.found.cost_ns,
                     greedy.cost_ns);
        }
        assert_int_equal(plan.found.evaluations, 0);
        assert_int_equal(plan.guessed_steps, 0);
        assert_true(plan.last.cost < plan.first.cost);
        (void)estimate(env->unit, &tariff, &f->p->environment.state.graph,
                       &f->p->environment.state.order, &again);
        assert_memory_equal(&again, &plan.last, sizeof again);
    }
}

/* A row is the mean over all contexts. */
CHECK_CASE(test_rows_are_means)
{
    fixture *f = open_fixture(env, "dscnn");
    const graft_tariff_options options = {.models = 1, .rows = true};
    graft_tariff tariff = make(f, &options);
    assert_int_equal(tariff.row_count, f->book.row_count); /* One model: no two of one form. */
    for (uint32_t i = 0; i < f->book.row_count; i++) {
        const graft_book_row *row = &f->book.rows[i];
        uint32_t key = graft_tariff_key(tariff.seed, row->hash);
        uint32_t at = 0;
        while (at < tariff.row_count && tariff.keys[at] != key) {
            at++;
        }
        assert_true(at < tariff.row_count);
        assert_int_equal(tariff.values[at], graft_tariff_encode(row->sum_ns / row->count));
    }
}

/* What has no row seems to cost nothing, and steps that rest on that are counted. */
CHECK_CASE(test_missing_rows)
{
    fixture *f = open_fixture_on(env, "amd-epyc-26-2-avx512", "dscnn");
    const graft_tariff_options options = {.models = 1, .rows = true};
    graft_tariff_plan plan;
    graft_tariff tariff = make(f, &options);
    CHECK_OK(graft_search_tariff(env, env->unit, &f->p->environment, &tariff, &plan));
    assert_true(plan.guessed_steps > 0 && plan.guessed_steps < plan.found.step_count);
    tariff.row_count = 0;
    CHECK_OK(graft_search_tariff(env, env->unit, &f->p->environment, &tariff, &plan));
    assert_int_equal(plan.guessed_steps, plan.found.step_count);
}

static graft_estimated estimate_first(fixture *f, const graft_tariff *tariff)
{
    graft_estimated estimated;
    const graft_state *first = &f->p->environment.first;
    (void)estimate(f->p->env->unit, tariff, &first->graph, &first->order, &estimated);
    return estimated;
}

/* The table of a single graph estimates just what that graph costs. */
CHECK_CASE(test_one_graph)
{
    fixture *f = open_fixture(env, "resnet8");
    const graft_tariff_options options = {.models = 1, .rows = true};
    graft_book_open(env->life, &f->book);
    CHECK_OK(graft_book_note(env, &f->book, f->p->cost, &f->p->environment.first, 0, 1000));
    graft_tariff tariff = make(f, &options);
    graft_estimated estimated = estimate_first(f, &tariff);
    double ns = (double)estimated.cost / GRAFT_COST_UNITS;
    assert_int_equal(estimated.fallback_nodes, 0);
    assert_int_equal(f->book.priced, 1);
    assert_true(fabs(ns / f->p->environment.first_ns - 1.0) < 0.0005);
}

/* The worth of a row when there is no fallback. */
static double worth_of(const graft_book_row *row) { return row->share * row->sum_ns / row->count; }

static bool has_key(const graft_tariff *tariff, uint64_t hash)
{
    uint32_t key = graft_tariff_key(tariff->seed, hash);
    uint32_t at = 0;
    while (at < tariff->row_count && tariff->keys[at] != key) {
        at++;
    }
    return at < tariff->row_count;
}

static void check_worth(const fixture *f, const graft_tariff *tariff)
{
    double least_kept = INFINITY;
    double most_left = 0.0;
    for (uint32_t i = 0; i < f->book.row_count; i++) {
        const graft_book_row *row = &f->book.rows[i];
        if (has_key(tariff, row->hash)) {
            least_kept = fmin(least_kept, worth_of(row));
        } else {
            most_left = fmax(most_left, worth_of(row));
        }
    }
    assert_true(least_kept >= most_left * (1.0 - 1e-12));
}

/* The rows that are left out are those worth least; bytes are kept to. */
CHECK_CASE(test_byte_limit)
{
    fixture *f = open_fixture(env, "dscnn");
    graft_tariff_options options = {.models = 1, .rows = true};
    uint32_t all = make(f, &options).row_count;
    options.bytes_most = 6 * 20 + 5;
    graft_tariff tariff = make(f, &options);
    assert_true(all > 20);
    assert_int_equal(tariff.row_count, 20);
    assert_int_equal(graft_tariff_bytes(&tariff), 120);
    check_worth(f, &tariff);
    options.rows = false;
    assert_int_equal(make(f, &options).row_count, 0);
}

static bool tariffs_equal(const graft_tariff *a, const graft_tariff *b)
{
    return memcmp(a->keys, b->keys, a->row_count * sizeof *a->keys) == 0 &&
           a->tree_count == b->tree_count && a->still == b->still &&
           memcmp(a->roofs, b->roofs, sizeof a->roofs) == 0 &&
           memcmp(a->tests, b->tests, (size_t)a->tree_count * GRAFT_TREE_TESTS) == 0 &&
           memcmp(a->bounds, b->bounds, sizeof(int16_t) * a->tree_count * GRAFT_TREE_TESTS) == 0 &&
           memcmp(a->leaves, b->leaves, sizeof(int16_t) * a->tree_count * GRAFT_TREE_LEAVES) == 0;
}

/* The fallback learns what it is shown. */
CHECK_CASE(test_fallback)
{
    fixture *f = open_fixture(env, "dscnn");
    const graft_tariff_options options = {.models = 1, .rows = true, .trees = TREES};
    double off = 0.0;
    graft_tariff tariff = make(f, &options);
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->book.row_count; i++) {
        const graft_book_row *row = &f->book.rows[i];
        double wanted = (double)graft_tariff_encode(fmax(row->sum_ns / row->count, 10.0));
        double given = (double)graft_tariff_guess(&tariff, row->inputs).value;
        if (row->inputs[GRAFT_TARIFF_STILL] == 0) {
            off += fabs(given - wanted) / 1024.0;
            count++;
        }
    }
    off /= count;
    print_message("fallback: mean error %.3f octaves\n", off);
    assert_true(off < 0.25);
}

static void set_dims(graft_shape *shape, uint8_t rank, const int32_t *dims)
{
    *shape = (graft_shape){.rank = rank, .dtype = GRAFT_DTYPE_F32};
    memcpy(shape->dims, dims, rank * sizeof dims[0]);
}

/* What the fallback sees of a binary operator; the shape of its second operand and result. */
static void see_binary(uint32_t op, const graft_shape *left, const graft_shape *right, int16_t *out)
{
    static const int32_t attrs[GRAFT_MAX_ATTRS];
    const graft_form form = {
        .op = (uint8_t)op,
        .attrs = attrs,
        .input_count = 2,
        .output_count = 1,
        .inputs = {left, right},
        .outputs = {left   },
        .input_elements = graft_shape_elements(left) + graft_shape_elements(right),
        .bytes = 2 * graft_shape_bytes(left) + graft_shape_bytes(right)
    };
    graft_tariff_inputs(&form, out);
}

/* A sum costs the same whatever its sizes are called, but not where it repeats an operand. */
CHECK_CASE(test_sizes_of_sums)
{
    graft_shape image, rows, one, channels, columns;
    int16_t of_image[GRAFT_TARIFF_INPUTS];
    int16_t other[GRAFT_TARIFF_INPUTS];
    set_dims(&image, 4, (const int32_t[]){1, 8, 8, 64});
    set_dims(&rows, 2, (const int32_t[]){64, 64});
    set_dims(&one, 1, (const int32_t[]){1});
    set_dims(&channels, 4, (const int32_t[]){1, 8, 1, 1});
    set_dims(&columns, 1, (const int32_t[]){64});
    see_binary(GRAFT_OP_add, &image, &image, of_image);
    see_binary(GRAFT_OP_add, &rows, &rows, other);
    assert_memory_equal(of_image, other, sizeof other);
    see_binary(GRAFT_OP_mul, &rows, &rows, other);
    assert_memory_not_equal(of_image, other, sizeof other);
    see_binary(GRAFT_OP_add, &image, &one, of_image);
    see_binary(GRAFT_OP_add, &rows, &one, other);
    assert_memory_equal(of_image, other, sizeof other);
    see_binary(GRAFT_OP_add, &image, &channels, of_image);
    see_binary(GRAFT_OP_add, &rows, &columns, other);
    assert_memory_not_equal(of_image, other, sizeof other);
}

/* A fallback of fewer bytes is the beginning of a larger one. */
CHECK_CASE(test_first_trees)
{
    fixture *f = open_fixture(env, "dscnn");
    graft_tariff_options options = {.models = 1, .trees = TREES};
    graft_tariff all = make(f, &options);
    options.bytes_most = 2 * 37 * 77 + 1;
    graft_tariff few = make(f, &options);
    assert_int_equal(graft_tariff_bytes(&few), 32 * 77);
    all.tree_count = 32;
    assert_true(tariffs_equal(&all, &few));
    options.bytes_most = 2 * 9 * 77 + 1;
    few = make(f, &options);
    assert_int_equal(few.tree_count, 8);
    options.bytes_most = 2 * 77;
    few = make(f, &options);
    assert_int_equal(few.tree_count, 0); /* There are no halves of one. */
}

/* Trees of even numbers are one half, the others another: half of what these differ by is the
 * skew. */
CHECK_CASE(test_halves)
{
    static const uint8_t tests[2 * GRAFT_TREE_TESTS];
    static const int16_t bounds[2 * GRAFT_TREE_TESTS];
    int16_t inputs[GRAFT_TARIFF_INPUTS] = {0};
    int16_t leaves[2 * GRAFT_TREE_LEAVES];
    const graft_tariff tariff = {
        .tests = tests, .bounds = bounds, .leaves = leaves, .tree_count = 2};
    for (uint32_t i = 0; i < 2 * GRAFT_TREE_LEAVES; i++) {
        leaves[i] = i < GRAFT_TREE_LEAVES ? 80 : -50;
    }
    const graft_guess guess = graft_tariff_guess(&tariff, inputs);
    assert_int_equal(guess.value,
                     graft_tariff_base(&tariff, inputs) + 30); /* Halves: 160 and -100. */
    assert_int_equal(abs(guess.skew), 130);
}

static int16_t is_still(uint32_t op, int32_t axis, int32_t rows)
{
    const int32_t attrs[GRAFT_MAX_ATTRS] = {axis, 1};
    const graft_shape shape = {
        .dims = {1, rows, 6},
          .rank = 3, .dtype = GRAFT_DTYPE_F32
    };
    const graft_form form = {
        .op = (uint8_t)op,
        .attrs = attrs,
        .inputs = {&shape, &shape},
        .outputs = {&shape     },
        .input_count = 2,
        .output_count = 1
    };
    int16_t inputs[GRAFT_TARIFF_INPUTS];
    graft_tariff_inputs(&form, inputs);
    const uint8_t tests[GRAFT_TREE_TESTS] = {0};
    const int16_t bounds[GRAFT_TREE_TESTS] = {0};
    const int16_t leaves[GRAFT_TREE_LEAVES] = {0};
    const graft_tariff tariff = {
        .tests = tests, .bounds = bounds, .leaves = leaves, .tree_count = 1, .still = 7};
    uint32_t guess = graft_tariff_guess(&tariff, inputs).value;
    assert_int_equal(guess,
                     inputs[GRAFT_TARIFF_STILL] != 0 ? 7 : graft_tariff_base(&tariff, inputs));
    return inputs[GRAFT_TARIFF_STILL];
}

/* What need not move a number. */
CHECK_CASE(test_still)
{
    assert_int_equal(is_still(GRAFT_OP_concat, 1, 4), 1);
    assert_int_equal(is_still(GRAFT_OP_concat, 2, 4), 0);
    assert_int_equal(is_still(GRAFT_OP_concat, 2, 1), 1);
    assert_int_equal(is_still(GRAFT_OP_split, 2, 4), 0);
    assert_int_equal(is_still(GRAFT_OP_slice, 0, 4), 1);
    assert_int_equal(is_still(GRAFT_OP_identity, 2, 4), 1);
    assert_int_equal(is_still(GRAFT_OP_add, 0, 4), 0);
}

/* Weights that are read once lie as far away as all are large, and what a node costs is guessed by
 * that. */
CHECK_CASE(test_reach)
{
    static const int32_t widths[] = {511, 512, 725, 1024, 1449, 2048, 4096};
    static const uint8_t reaches[] = {0, 1, 2, 3, 4, 5, 5};
    uint8_t tests[GRAFT_TREE_TESTS];
    int16_t bounds[GRAFT_TREE_TESTS];
    int16_t leaves[GRAFT_TREE_LEAVES] = {0};
    memset(tests, GRAFT_TARIFF_INPUTS - 1, sizeof tests);
    for (uint32_t i = 0; i < GRAFT_TREE_TESTS; i++) {
        bounds[i] = 2;
    }
    leaves[GRAFT_TREE_LEAVES - 1] = 1024; /* An octave where the reach is above 2. */
    const graft_tariff tariff = {
        .tests = tests, .bounds = bounds, .leaves = leaves, .tree_count = 1};
    for (uint32_t i = 0; i < sizeof reaches; i++) {
        const graft_graph *graph = /* v is one that nothing reads. */
            build_text(
                env->unit,
                "x = input 1 %d; w = weight %d %d; v = weight 8192 8192; y = matmul x w; out y",
                widths[i], widths[i], widths[i])
                .graph;
        const graft_order order = build_order(env->unit, graph);
        int16_t inputs[GRAFT_TARIFF_INPUTS];
        graft_estimated estimated;
        graft_form form;
        const graft_estimator estimator = estimate(env->unit, &tariff, graph, &order, &estimated);
        graft_estimator_form(&estimator, order.order[0], &form);
        assert_int_equal(form.reach, reaches[i]);
        graft_tariff_inputs(&form, inputs);
        const int32_t base = graft_tariff_base(&tariff, inputs) + (reaches[i] > 2 ? 1024 : 0);
        assert_int_equal(estimated.cost, graft_tariff_value((uint32_t)base));
    }
}

/* Weights that each of three steps reads, of width x width, and one that is read once, four times
 * as large. */
static graft_graph *build_loop(graft_arena *arena, int32_t width, uint32_t weight_count)
{
    built b =
        build_text(arena, "v = weight %d %d; w = weight %d %d; o = weight %d %d; x = input 1 %d",
                   width, width, width, width, width, 4 * width, width);
    for (uint32_t i = 0; i < 3 * weight_count; i++) {
        build_more(&b, "x = matmul x %c", i % weight_count == 0 ? 'v' : 'w');
    }
    build_more(&b, "x = matmul x o; out x");
    return b.graph;
}

/* A weight that is read again lies as far away as all that is read in between, one that is read
 * once as all weights; what is made of a weight as far as it. */
CHECK_CASE(test_reach_of_loops)
{
    static const struct {
        int32_t width;
        uint32_t weight_count;
        uint8_t again;
        uint8_t once;
    } rows[] = {
        {256,  2, 0, 1}, /* 0.5 MB in between, 1.5 MB in all. */
        {384,  2, 1, 2}, /* 1.1 of 3.4 MB */
        {512,  1, 2, 3}, /* 1 of 5 MB, one weight alone */
        {512,  2, 2, 3}, /* 2 of 6 MB */
        {1024, 2, 4, 5}  /* 8 of 24 MB */
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static const graft_tariff nothing;
        graft_graph *graph = build_loop(env->unit, rows[i].width, rows[i].weight_count);
        const graft_order order = build_order(env->unit, graph);
        graft_estimated estimated;
        graft_form form;
        const graft_estimator e = estimate(env->unit, &nothing, graph, &order, &estimated);
        for (uint32_t k = 0; k < order.count; k++) {
            graft_estimator_form(&e, order.order[k], &form);
            assert_int_equal(form.reach, k + 1 < order.count ? rows[i].again : rows[i].once);
        }
    }
}

static void check_cores(const graft_form *a, const graft_form *b, bool equal)
{
    int16_t inputs[2][GRAFT_TARIFF_INPUTS];
    graft_tariff_inputs(a, inputs[0]);
    graft_tariff_inputs(b, inputs[1]);
    assert_int_equal(memcmp(inputs[0], inputs[1], sizeof inputs[0]) == 0, equal);
}

/* A product is guessed to cost the same whatever is added to it and however it is clipped; another
 * one is not. */
CHECK_CASE(test_cores)
{
    const int32_t attrs[3][GRAFT_MAX_ATTRS] = {
        {1,  1, 1, 1, 1, 1, 1, 1, 1              },
        { 1, 1, 1, 1, 1, 1, 1, 1, 1, GRAFT_ACT_RELU6},
        { 2, 2, 1, 1, 1, 1, 1, 1, 1, GRAFT_ACT_RELU6}
    };
    const graft_shape image = SHAPE(1, 32, 14, 14);
    const graft_shape filter = SHAPE(32, 32, 3, 3);
    const graft_shape bias = SHAPE(32);
    const uint64_t image_elements = graft_shape_elements(&image);
    const uint64_t filter_elements = graft_shape_elements(&filter);
    const graft_form conv = {
        .op = GRAFT_OP_conv,
        .const_mask = 2,
        .input_count = 2,
        .output_count = 1,
        .attrs = attrs[0],
        .inputs = {&image, &filter},
        .outputs = {&image     },
        .weight = &filter,
        .input_elements = image_elements,
        .weight_elements = filter_elements,
        .bytes = 4 * (2 * image_elements + filter_elements)
    };
    graft_form fused = conv;
    fused.op = GRAFT_OP_conv_bias_add;
    fused.const_mask = 6;
    fused.input_count = 4;
    fused.attrs = attrs[1];
    fused.inputs[2] = &bias;
    fused.inputs[3] = &image;
    fused.input_elements += image_elements;
    fused.weight_elements += 32;
    fused.bytes += 4 * (image_elements + 32);
    check_cores(&conv, &fused, true);
    fused.attrs = attrs[2];
    check_cores(&conv, &fused, false);
    fused.attrs = attrs[1];
    fused.const_mask = 4;
    check_cores(&conv, &fused, false);

    /* A kernel that is computed costs twice as much, by a guess. */
    static const uint8_t tests[GRAFT_TREE_TESTS] = {0};
    static const int16_t numbers[GRAFT_TREE_LEAVES] = {0};
    const graft_tariff level = {
        .tree_count = 1, .tests = tests, .bounds = numbers, .leaves = numbers};
    const uint64_t known = graft_tariff_price(&level, &conv).cost;
    graft_form made = conv;
    made.const_mask = 0;
    made.weight = NULL;
    assert_true(known > 0);
    assert_int_equal(graft_tariff_price(&level, &made).cost, 2 * known);
    made.op = GRAFT_OP_matmul;
    assert_true(graft_tariff_price(&level, &made).cost < 2 * known);
}

/* Samples of a node that takes the largest of three terms, of which two in five take an octave more or
 * less: the median does not see these. */
static void draw_samples(graft_env *env, uint32_t op, graft_roof roof, uint32_t count,
                         graft_tariff_sample *samples)
{
    graft_rng rng;
    graft_rng_derive(&rng, 7, op);
    for (uint32_t i = 0; i < count; i++) {
        int16_t *inputs = GRAFT_NEW(env->life, int16_t, GRAFT_TARIFF_INPUTS);
        inputs[GRAFT_FEATURE_operator + op] = 1;
        inputs[GRAFT_FEATURE_COUNT] = (int16_t)graft_rng_below(&rng, 30 * 64);
        inputs[GRAFT_FEATURE_COUNT + 1] = (int16_t)graft_rng_below(&rng, 25 * 64);
        const int32_t flops = roof.flop + 16 * inputs[GRAFT_FEATURE_COUNT];
        const int32_t bytes = roof.byte + 16 * inputs[GRAFT_FEATURE_COUNT + 1];
        int32_t value = flops > bytes ? flops : bytes;
        value = value > roof.node ? value : roof.node;
        value += i % 5 == 0 ? 1024 : i % 5 == 1 ? -1024 : 0;
        samples[i] = (graft_tariff_sample){inputs, (uint16_t)value};
    }
}

static void check_roof(const graft_roof *roof, const graft_roof *wanted)
{
    assert_in_range(roof->node - wanted->node + 64, 0, 128);
    assert_in_range(roof->byte - wanted->byte + 64, 0, 128);
    assert_in_range(roof->flop - wanted->flop + 64, 0, 128);
}

/* Roofs are found again in samples of them; a kind without samples takes the other's. */
CHECK_CASE(test_roofs)
{
    enum { COUNT = 400 };
    const graft_roof products = {18000, 4000, 3000};
    const graft_roof others = {15000, 3500, 5500};
    graft_tariff_sample *samples = GRAFT_NEW(env->life, graft_tariff_sample, 2 * COUNT);
    graft_tariff tariff = {.row_count = 0};
    draw_samples(env, GRAFT_OP_conv, products, COUNT, samples);
    draw_samples(env, GRAFT_OP_relu, others, COUNT, samples + COUNT);
    graft_tariff_fit_roofs(env, samples, 2 * COUNT, &tariff);
    check_roof(&tariff.roofs[0], &products);
    check_roof(&tariff.roofs[1], &others);
    const int32_t off = graft_tariff_base(&tariff, samples[2].inputs) - samples[2].value;
    assert_in_range(off + 64, 0, 128);
    graft_tariff_fit_roofs(env, samples + COUNT, COUNT, &tariff);
    check_roof(&tariff.roofs[0], &others);
    check_roof(&tariff.roofs[1], &others);
}

/* A model that is left out teaches nothing: no rows, and of no samples no trees. */
CHECK_CASE(test_held_out)
{
    fixture *f = open_fixture(env, "dscnn");
    const graft_tariff_options none = {.models = 2, .rows = true, .trees = TREES};
    const graft_tariff tariff = make(f, &none);
    assert_int_equal(tariff.row_count, 0);
    assert_int_equal(tariff.tree_count, 0);
}

CHECK_CASE(test_broken_tables)
{
    const uint32_t keys[3] = {1, 2, 2};
    const uint16_t values[3] = {1, 1, 1};
    graft_tariff tariff = {.keys = keys, .values = values, .row_count = 2};
    assert_null(graft_tariff_check(&tariff));
    tariff.row_count = 3;
    assert_non_null(graft_tariff_check(&tariff));
    tariff.row_count = 2;
    const uint8_t tests[GRAFT_TREE_TESTS] = {[14] = GRAFT_TARIFF_INPUTS};
    tariff.tests = tests;
    tariff.tree_count = 1;
    assert_non_null(graft_tariff_check(&tariff));
}
