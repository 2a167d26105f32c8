/* The CUDA kernels' index arithmetic against the operator bodies: every operator of the table,
 * random attributes and shapes, row-major and channels last, every thread run on the processor. */
#include "cost/plan/groups.h"
#include "tests/cuda/host_threads.h"
#include "tests/support/cases.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { DRAWS = 200 };

typedef struct {
    graft_env *env;
    graft_rng rng;
    graft_signature s;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    float *rows[GRAFT_MAX_INPUTS]; /* Row-major. */
    float *wants[GRAFT_MAX_OUTPUTS];
    const void *in[GRAFT_MAX_INPUTS]; /* In the layouts and the type of the signature. */
    void *out[GRAFT_MAX_OUTPUTS];
    uint8_t *written[GRAFT_MAX_OUTPUTS];
    cuda_type type;
} trial;

static void *pack(trial *t, const graft_shape *shape, uint32_t layout, const float *row)
{
    size_t count = (size_t)graft_shape_elements(shape);
    size_t size = cuda_type_bytes(t->type);
    char *data = GRAFT_NEW(t->env->scratch, char, count *size);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = cuda_to_bits(t->type, row[i]);
        memcpy(data + check_place(shape, layout, i) * size, &bits, size);
    }
    return data;
}

static void prepare(trial *t)
{
    for (uint32_t k = 0; k < t->s.input_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->s.inputs[k]);
        t->rows[k] = GRAFT_NEW(t->env->scratch, float, count);
        for (size_t i = 0; i < count; i++) {
            float x = (float)graft_rng_normal(&t->rng);
            x = t->s.op == GRAFT_OP_sqrt || (t->s.op == GRAFT_OP_div && k == 1) ? fabsf(x) + 0.5F
                                                                                : x;
            t->rows[k][i] = cuda_from_bits(t->type, cuda_to_bits(t->type, x));
        }
        bool filter = k == 1 && t->s.op <= GRAFT_OP_conv_bias_add && t->s.op >= GRAFT_OP_conv;
        t->in[k] = pack(t, &t->s.inputs[k], filter ? 0U : t->s.in_layouts[k], t->rows[k]);
    }
    for (uint32_t k = 0; k < t->s.output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        size_t bytes = count * cuda_type_bytes(t->type);
        t->wants[k] = GRAFT_NEW(t->env->scratch, float, count);
        t->out[k] = GRAFT_NEW(t->env->scratch, char, bytes);
        t->written[k] = GRAFT_NEW(t->env->scratch, uint8_t, bytes);
        memset(t->out[k], 0xff, bytes); /* NaNs of every type. */
    }
}

static void compute_wants(trial *t)
{
    const float *in[GRAFT_MAX_INPUTS] = {t->rows[0], t->rows[1], t->rows[2], t->rows[3]};
    graft_signature_run(t->env->scratch, &t->s, t->outputs, in, t->wants);
}

static void compare(trial *t, bool moved)
{
    graft_buffer text = {.arena = t->env->scratch};
    graft_signature_print(&t->s, &text);
    for (uint32_t k = 0; k < t->s.output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        size_t size = cuda_type_bytes(t->type);
        float *got = GRAFT_NEW(t->env->scratch, float, count);
        for (size_t i = 0; i < count; i++) {
            size_t at = check_place(&t->outputs[k], t->s.out_layouts[k], i) * size;
            uint32_t bits = 0;
            memcpy(&bits, (const char *)t->out[k] + at, size);
            got[i] = cuda_from_bits(t->type, bits);
            if (moved && t->written[k][at] != 1) {
                fail_msg("%s: element %zu is written %u times", text.data, i, t->written[k][at]);
            }
        }
        check_close(got, t->wants[k], count, moved ? 0.0 : 2e-6, text.data);
    }
}

/* Whether a job is movement, which works on bits of any type. */
static bool is_movement(const cuda_job *job)
{
    return job->kind == CUDA_JOB_MOVE || job->kind == CUDA_JOB_TURN;
}

static void run_trial(trial *t)
{
    GRAFT_SCOPED(t->env->scratch);
    cuda_job job;
    CHECK_OK(graft_signature_outputs(&t->s, t->outputs));
    if (!cuda_job_of(&t->s, t->outputs, t->type, &job)) {
        fail_msg("operator %u has no job", t->s.op);
    }
    if (t->type > CUDA_TF32 && !is_movement(&job)) {
        return;
    }
    prepare(t);
    compute_wants(t);
    host_threads_run(&job, t->in, t->out, t->written);
    if (t->s.op == GRAFT_OP_conv_bias || t->s.op == GRAFT_OP_conv_bias_add ||
        t->s.op == GRAFT_OP_matmul_bias) {
        cuda_job_of_finish(&t->s, &t->outputs[0], t->type, &job);
        const void *in[3] = {t->out[0], t->in[2], t->in[3]};
        host_threads_run(&job, in, t->out, t->written);
    }
    compare(t, is_movement(&job));
}

static graft_shape shape_of(const int32_t *dims, uint32_t rank)
{
    graft_shape shape = {.rank = (uint8_t)rank, .dtype = GRAFT_DTYPE_F32};
    memcpy(shape.dims, dims, rank * sizeof(dims[0]));
    return shape;
}

/* Products of few rows, with columns that can be read 16 bytes at once and that cannot. */
CHECK_CASE(test_thin_products)
{
    static const int32_t sizes[][3] = {
        {1, 300, 64  },
        {3, 7,   1000},
        {8, 129, 10  },
        {1, 64,  4096},
        {2, 1,   1   }
    };
    trial t = {.env = env};
    graft_rng_seed(&t.rng, 36);
    for (size_t i = 0; i < 30; i++) {
        const int32_t *size = sizes[i / 6];
        const bool fused = i % 2 == 1;
        const cuda_type type = i / 2 % 3 == 0 ? CUDA_F32 : i / 2 % 3 == 1 ? CUDA_F16 : CUDA_BF16;
        const graft_shape in[GRAFT_MAX_INPUTS] = {
            shape_of((const int32_t[]){size[0], 1, size[1]}, 3),
            shape_of((const int32_t[]){size[1], size[2]}, 2),
            shape_of((const int32_t[]){size[2]}, 1),
        };
        const int32_t attrs[GRAFT_MAX_ATTRS] = {fused ? GRAFT_ACT_TANH : 0};
        GRAFT_SCOPED(env->scratch);
        cuda_job job;
        t.s = check_signature(env, fused ? GRAFT_OP_matmul_bias : GRAFT_OP_matmul, attrs, in, 0, 0);
        CHECK_OK(graft_signature_outputs(&t.s, t.outputs));
        assert_true(cuda_job_of_thin(&t.s, t.outputs, type, &job));
        assert_int_equal(job.as.thin.width, size[2] % 8 == 0 ? 16 / cuda_type_bytes(type) : 1);
        prepare(&t); /* In binary32, whatever is read at once. */
        compute_wants(&t);
        host_threads_run(&job, t.in, t.out, NULL);
        compare(&t, false);
    }
}

/* What is no product of few rows: many rows or columns, a matrix for each, other operators. */
CHECK_CASE(test_not_thin)
{
    const graft_shape many[GRAFT_MAX_INPUTS] = {shape_of((const int32_t[]){9, 16}, 2),
                                                shape_of((const int32_t[]){16, 8}, 2)};
    const graft_shape each[GRAFT_MAX_INPUTS] = {shape_of((const int32_t[]){2, 1, 16}, 3),
                                                shape_of((const int32_t[]){2, 16, 8}, 3)};
    const graft_shape wide[GRAFT_MAX_INPUTS] = {
        shape_of((const int32_t[]){1, 2}, 2),
        shape_of((const int32_t[]){2, CUDA_THIN_COLUMNS + 8}, 2)};
    const int32_t attrs[GRAFT_MAX_ATTRS] = {0};
    graft_shape out[GRAFT_MAX_OUTPUTS];
    cuda_job job;
    graft_signature s = check_signature(env, GRAFT_OP_matmul, attrs, many, 0, 0);
    CHECK_OK(graft_signature_outputs(&s, out));
    assert_false(cuda_job_of_thin(&s, out, CUDA_F16, &job));
    s = check_signature(env, GRAFT_OP_matmul, attrs, wide, 0, 0);
    CHECK_OK(graft_signature_outputs(&s, out));
    assert_false(cuda_job_of_thin(&s, out, CUDA_F16, &job));
    s = check_signature(env, GRAFT_OP_matmul, attrs, each, 0, 0);
    CHECK_OK(graft_signature_outputs(&s, out));
    assert_false(cuda_job_of_thin(&s, out, CUDA_F16, &job));
    const graft_shape alike[GRAFT_MAX_INPUTS] = {many[0], many[0]};
    s = check_signature(env, GRAFT_OP_add, attrs, alike, 0, 0);
    CHECK_OK(graft_signature_outputs(&s, out));
    assert_false(cuda_job_of_thin(&s, out, CUDA_F16, &job));
}

/* GELU for 16 bits against the C library's error function. */
CHECK_CASE(test_near_gelu)
{
    (void)env;
    for (int32_t i = -40000; i <= 40000; i++) {
        const double x = i / 4096.0;
        const double want = 0.5 * x * erfc(-x / sqrt(2.0));
        const double error = fabs((double)host_threads_near_gelu((float)x) - want);
        if (!(error <= 2e-7 * fabs(x) + 1.2e-7 * fabs(want))) { /* The formula, and rounding. */
            fail_msg("gelu(%g): off by %g", x, error);
        }
    }
    assert_true(isinf(host_threads_near_gelu(INFINITY)));
    assert_true(host_threads_near_gelu(-INFINITY) == 0.0F);
    assert_true(isnan(host_threads_near_gelu(NAN)));
}

static bool is_run(uint32_t op)
{
    if (op > GRAFT_OP_reduce_max && (graft_op(op)->flags & GRAFT_FLAG_COMPOSED) == 0) {
        return false; /* They came without a kernel. */
    }
    return graft_op(op) != NULL && op != GRAFT_OP_reshape && op != GRAFT_OP_fill;
}

CHECK_CASE(test_operators)
{
    trial t = {.env = env};
    graft_rng_seed(&t.rng, 31);
    for (uint32_t op = 1; op < GRAFT_OP_COUNT; op++) {
        for (uint32_t draw = 0; draw < DRAWS && is_run(op); draw++) {
            check_case drawn;
            check_case_draw(&t.rng, op, &drawn);
            uint32_t mask = graft_rng_below(&t.rng, 1U << graft_op(op)->input_count) & 6U;
            t.s = check_signature(t.env, op, drawn.attrs, drawn.in, mask, draw % 2);
            t.type = draw % 3 == 0 ? CUDA_F16 : draw % 3 == 1 ? CUDA_F32 : CUDA_BF16;
            run_trial(&t);
        }
    }
}

typedef struct {
    uint32_t op;
    uint32_t rank;
    int32_t a[GRAFT_MAX_RANK];
    int32_t b[GRAFT_MAX_RANK];
    int32_t attrs[6];
} row;

/* Shapes that reach the wide units, the tiles with ragged edges, and merged axes. */
static const row rows[] = {
    {GRAFT_OP_concat,      4, {2, 16, 7, 8},       {2, 24, 7, 8},  {1}                     },
    {GRAFT_OP_concat,      4, {2, 16, 7, 8},       {2, 16, 7, 16}, {3}                     },
    {GRAFT_OP_split,       4, {2, 40, 6, 6},       {0},            {1, 24}                 },
    {GRAFT_OP_split,       3, {3, 5, 64},          {0},            {2, 8}                  },
    {GRAFT_OP_slice,       4, {2, 40, 6, 6},       {0},            {1, 8, 32}              },
    {GRAFT_OP_slice,       3, {3, 50, 64},         {0},            {1, 7, 40}              },
    {GRAFT_OP_pad,         4, {2, 16, 9, 8},       {0},            {3, 8, 16, 0x40490000}  },
    {GRAFT_OP_pad,         4, {2, 16, 9, 8},       {0},            {2, 1, 0, 0}            },
    {GRAFT_OP_transpose,   4, {2, 40, 33, 3},      {0},            {0, 2, 3, 1}            },
    {GRAFT_OP_transpose,   4, {1, 128, 12, 64},    {0},            {0, 2, 1, 3}            },
    {GRAFT_OP_transpose,   3, {9, 70, 65},         {0},            {2, 1, 0}               },
    {GRAFT_OP_transpose,   3, {2, 1026, 770},      {0},            {0, 2, 1}               },
    {GRAFT_OP_transpose,   3, {2, 1026, 771},      {0},            {0, 2, 1}               },
    {GRAFT_OP_transpose,   6, {2, 3, 2, 4, 3, 40}, {0},            {5, 3, 1, 0, 2, 4}      },
    {GRAFT_OP_add,         4, {2, 16, 9, 8},       {2, 16, 9, 8},  {0}                     },
    {GRAFT_OP_add,         4, {2, 16, 9, 8},       {1, 16, 1, 1},  {0}                     },
    {GRAFT_OP_mul,         3, {4, 1, 64},          {1, 32, 1},     {0}                     },
    {GRAFT_OP_softmax,     4, {2, 40, 9, 8},       {0},            {1}                     },
    {GRAFT_OP_reduce_mean, 4, {2, 40, 9, 8},       {0},            {2, 0}                  },
    {GRAFT_OP_reduce_sum,  3, {2, 40, 4200},       {0},            {2, 1}                  },
    {GRAFT_OP_reduce_max,  4, {2, 40, 9, 8},       {0},            {12, 0}                 },
    {GRAFT_OP_gelu,        3, {2, 13, 104},        {0},            {0}                     },
    {GRAFT_OP_hard_swish,  3, {2, 13, 104},        {0},            {0}                     },
    {GRAFT_OP_gelu_tanh,   3, {2, 13, 104},        {0},            {0}                     },
    {GRAFT_OP_selu,        3, {2, 13, 104},        {0},            {0x3fd62d7d, 0x3f867d5f}},
    {GRAFT_OP_softplus,    3, {2, 13, 104},        {0},            {0}                     },
};

CHECK_CASE(test_larger)
{
    trial t = {.env = env};
    graft_rng_seed(&t.rng, 32);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const graft_shape in[GRAFT_MAX_INPUTS] = {shape_of(rows[i].a, rows[i].rank),
                                                  shape_of(rows[i].b, rows[i].rank)};
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        memcpy(attrs, rows[i].attrs, sizeof(rows[i].attrs));
        for (uint32_t way = 0; way < 6; way++) {
            t.s = check_signature(t.env, rows[i].op, attrs, in, 0, way % 2);
            t.type = way / 2 == 0 ? CUDA_F32 : way / 2 == 1 ? CUDA_F16 : CUDA_BF16;
            run_trial(&t);
        }
    }
}

CHECK_CASE(test_reorders)
{
    static const int32_t dims[][4] = {
        {1, 3,  20, 24},
        {2, 64, 7,  7 },
        {1, 17, 5,  3 },
        {3, 33, 9,  8 }
    };
    trial t = {.env = env};
    graft_rng_seed(&t.rng, 33);
    for (uint32_t way = 0; way < 24; way++) {
        const graft_shape shape = shape_of(dims[way % 4], 4);
        t.type = way / 8 == 0 ? CUDA_F32 : way / 8 == 1 ? CUDA_F16 : CUDA_BF16;
        graft_signature_of_reorder(&shape, way / 4 % 2, 1 - way / 4 % 2, &t.s);
        run_trial(&t);
    }
}

/* Reductions that read 16 bytes at once, along the row or of rows side by side, and that cannot. */
CHECK_CASE(test_reductions)
{
    static const struct {
        row what;
        uint32_t layout;
        bool is_column;
        bool is_wide;
    } reductions[] = {
        {{GRAFT_OP_reduce_mean, 3, {3, 5, 64}, {0}, {4, 1}},        GRAFT_LAYOUT_ROW,  false, true },
        {{GRAFT_OP_reduce_max, 3, {3, 5, 4200}, {0}, {4, 0}},       GRAFT_LAYOUT_ROW,  false, true },
        {{GRAFT_OP_reduce_sum, 3, {3, 5, 63}, {0}, {4, 1}},         GRAFT_LAYOUT_ROW,  false, false},
        {{GRAFT_OP_reduce_mean, 4, {2, 3, 4, 8}, {0}, {12, 0}},     GRAFT_LAYOUT_ROW,  false, true },
        {{GRAFT_OP_reduce_sum, 4, {2, 3, 4, 8}, {0}, {10, 1}},      GRAFT_LAYOUT_ROW,  false, false},
        {{GRAFT_OP_reduce_sum, 3, {64, 6, 1024}, {0}, {2, 1}},      GRAFT_LAYOUT_ROW,  true,  true },
        {{GRAFT_OP_reduce_max, 3, {64, 6, 1022}, {0}, {2, 0}},      GRAFT_LAYOUT_ROW,  true,  false},
        {{GRAFT_OP_global_avg_pool, 4, {4, 128, 7, 7}, {0}, {0}},   GRAFT_LAYOUT_NHWC, true,  false},
        {{GRAFT_OP_global_avg_pool, 4, {16, 2048, 3, 3}, {0}, {0}}, GRAFT_LAYOUT_NHWC, true,  true },
    };
    trial t = {.env = env};
    graft_rng_seed(&t.rng, 35);
    for (size_t i = 0; i < 2 * sizeof(reductions) / sizeof(reductions[0]); i++) {
        const row *r = &reductions[i / 2].what;
        const graft_shape in[GRAFT_MAX_INPUTS] = {shape_of(r->a, r->rank)};
        int32_t attrs[GRAFT_MAX_ATTRS] = {0};
        GRAFT_SCOPED(t.env->scratch);
        cuda_type type = i % 2 == 0 ? CUDA_F32 : CUDA_F16;
        cuda_job job;
        memcpy(attrs, r->attrs, sizeof(r->attrs));
        t.s = check_signature(t.env, r->op, attrs, in, 0, reductions[i / 2].layout);
        CHECK_OK(graft_signature_outputs(&t.s, t.outputs));
        assert_true(cuda_job_of(&t.s, t.outputs, type, &job));
        assert_int_equal(job.as.rows.is_column, reductions[i / 2].is_column);
        assert_int_equal(job.as.rows.width,
                         reductions[i / 2].is_wide ? 16 / cuda_type_bytes(type) : 1);
        prepare(&t); /* In binary32: where elements lie is the same, counted in elements. */
        compute_wants(&t);
        host_threads_run(&job, t.in, t.out, t.written);
        compare(&t, false);
    }
}

/* Whether a move of this size is made of units of 16 bytes, and a reorder of tiles. */
CHECK_CASE(test_widths)
{
    const graft_shape in[GRAFT_MAX_INPUTS] = {shape_of(rows[0].a, 4), shape_of(rows[0].b, 4)};
    graft_shape out[GRAFT_MAX_OUTPUTS];
    int32_t attrs[GRAFT_MAX_ATTRS] = {1};
    graft_signature s = check_signature(env, GRAFT_OP_concat, attrs, in, 0, GRAFT_LAYOUT_NHWC);
    cuda_job job;
    CHECK_OK(graft_signature_outputs(&s, out));
    assert_true(cuda_job_of(&s, out, CUDA_F16, &job));
    assert_int_equal(job.as.move.unit_bytes, 16);
    graft_signature_of_reorder(&in[0], GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC, &s);
    assert_true(cuda_job_of(&s, in, CUDA_F16, &job));
    assert_int_equal(job.kind, CUDA_JOB_TURN);
    assert_int_equal(job.as.turn.tile, CUDA_TILE);
    for (int32_t odd = 0; odd < 2; odd++) { /* Many tiles: of pairs, where these are aligned. */
        const graft_shape large = {
            .rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {8, 64, 64 + odd, 64 + odd}
        };
        graft_signature_of_reorder(&large, GRAFT_LAYOUT_ROW, GRAFT_LAYOUT_NHWC, &s);
        assert_true(cuda_job_of(&s, &large, CUDA_F16, &job));
        assert_int_equal(job.as.turn.tile, odd == 0 ? 2 * CUDA_TILE : CUDA_TILE);
    }
    const graft_shape matrix = {
        .rank = 2, .dtype = GRAFT_DTYPE_F32, .dims = {2048, 1024}
    };
    const int32_t swap[GRAFT_MAX_ATTRS] = {1, 0};
    s = check_signature(env, GRAFT_OP_transpose, swap, &matrix, 0, GRAFT_LAYOUT_ROW);
    CHECK_OK(graft_signature_outputs(&s, out));
    assert_true(cuda_job_of(&s, out, CUDA_F16, &job));
    assert_int_equal(job.as.turn.tile, 2 * CUDA_TILE); /* Of one box, too. */
    const graft_shape pair[GRAFT_MAX_INPUTS] = {in[0], in[0]};
    attrs[0] = 0;
    s = check_signature(env, GRAFT_OP_add, attrs, pair, 0, GRAFT_LAYOUT_ROW);
    assert_true(cuda_job_of(&s, in, CUDA_F32, &job));
    assert_int_equal(job.as.point.width, 4);
    assert_int_equal(job.as.point.walk.rank, 1);
    for (uint32_t layout = 0; layout < 2; layout++) { /* Channel scale-and-shift. */
        const graft_shape image[GRAFT_MAX_INPUTS] = {
            {.rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {2, 64, 14, 14}},
            {.rank = 1, .dtype = GRAFT_DTYPE_F32, .dims = {64}           },
            {.rank = 1, .dtype = GRAFT_DTYPE_F32, .dims = {64}           },
        };
        s = check_signature(env, GRAFT_OP_scale_shift, attrs, image, 6,
                            layout == 0 ? GRAFT_LAYOUT_ROW : GRAFT_LAYOUT_NHWC);
        assert_true(cuda_job_of(&s, image, CUDA_F32, &job));
        assert_int_equal(job.as.point.width, 4);
    }
}

/* What is finite stays so: the least binary32, of which masks are made, times 0 is no NaN. */
CHECK_CASE(test_halves)
{
    assert_int_equal(cuda_to_bits(CUDA_F16, 65519.0F), 0x7bff);
    assert_int_equal(cuda_to_bits(CUDA_F16, 65520.0F), 0x7bff);
    assert_int_equal(cuda_to_bits(CUDA_F16, -FLT_MAX), 0xfbff);
    assert_int_equal(cuda_to_bits(CUDA_F16, INFINITY), 0x7c00);
    assert_int_equal(cuda_to_bits(CUDA_BF16, -FLT_MAX), 0xff7f);
    assert_int_equal(cuda_to_bits(CUDA_BF16, -INFINITY), 0xff80);
    assert_int_equal(cuda_to_bits(CUDA_F16, 0x1p-25F), 0);
    assert_int_equal(cuda_to_bits(CUDA_F16, 0x1.8p-25F), 1);
    assert_int_equal(cuda_to_bits(CUDA_BF16, 0x1.01p0F), 0x3f80);
    assert_int_equal(cuda_to_bits(CUDA_BF16, 0x1.03p0F), 0x3f82);
    assert_true(isnan(cuda_from_bits(CUDA_F16, cuda_to_bits(CUDA_F16, NAN))));
    assert_true(cuda_from_bits(CUDA_BF16, 0x3f82) == 0x1.04p0F);
}
