/* Results of implementations on a GPU against the float reference on a part of the operator: right
 * ones pass, in every layout; a NaN anywhere, a result that was written in part, and a wrong one,
 * be it the first, do not. */
#include "cost/cuda/arbiter.h"
#include "graph/base/rng.h"
#include "graph/meaning/algebra_float.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <assert.h>
#include <math.h>

#define CONV                                                                                       \
    "stride_h=1, stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, "     \
    "dilation_w=1, groups="

static const struct {
    const char *signature;
    bool is_part;
} rows[] = {
    {"conv(" CONV "1) f32[1,96,28,28]@nhwc f32[96,96,3,3]@const -> nhwc",                   true },
    {"conv_bias_add(" CONV "1, activation=1) f32[1,96,28,28]@row f32[96,96,3,3]@const "
     "f32[96]@const f32[1,96,28,28]@row -> row",                                       true },
    {"conv(" CONV "4) f32[2,16,9,9]@nhwc f32[24,4,3,3]@const -> nhwc",                      false},
    {"matmul() f32[2,160,512]@row f32[512,256]@const -> row",                               true },
    {"matmul_bias(activation=4) f32[300,512]@row f32[512,256]@const f32[256]@const -> row", true },
    {"matmul() f32[2,1,9,7]@row f32[3,7,5]@row -> row",                                     false},
    {"softmax(axis=1) f32[1,19,8,8]@row -> row",                                            false},
    {"masked_attention(scale=0x3e000000, turned=5) f32[1,9,4,8]@row f32[1,4,8,6]@row "
     "f32[1,6,4,8]@row f32[6]@row -> row",                                             false},
    {"attention(scale=0x3e000000, turned=7) f32[1,256,40,64]@row f32[1,256,40,64]@row "
     "f32[1,256,40,64]@row -> row",                                                    true },
    {"global_avg_pool() f32[2,100,7,7]@nhwc -> nhwc",                                       false},
    {"split(axis=1, at=24) f32[2,40,6,6]@nhwc -> nhwc nhwc",                                false},
    {"reorder() f32[2,17,9,8]@nhwc -> row",                                                 false},
};

typedef struct {
    graft_signature s;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    float *host[GRAFT_MAX_INPUTS];
    float *results[GRAFT_MAX_OUTPUTS]; /* Right ones, in the layouts. */
} subject;

/* Element (b,h,i,j) of input `k` of an attention. */
static float at(const subject *t, const float *const in[], uint32_t k, const int32_t place[4])
{
    const int32_t *dims = t->s.inputs[k].dims;
    const int32_t turned[2][4] = {
        {place[0], place[2], place[1], place[3]},
        {place[0], place[3], place[1], place[2]}
    };
    const int32_t *i = (t->s.attrs[1] >> k & 1) == 0 ? place : turned[k == 1];
    return in[k][((i[0] * dims[1] + i[1]) * dims[2] + i[2]) * dims[3] + i[3]];
}

/* One row of an attention's output; the mask is a vector. */
static void attend_row(const subject *t, const float *const in[], int32_t place[4],
                       const int32_t sizes[2], float *out)
{
    double weights[256];
    double sum = 0.0;
    float scale = 0.0F;
    memcpy(&scale, t->s.attrs, sizeof(scale));
    for (int32_t j = 0; j < sizes[0]; j++) {
        double score = 0.0;
        for (int32_t d = 0; d < sizes[1]; d++) {
            const int32_t q[4] = {place[0], place[1], place[2], d};
            const int32_t k[4] = {place[0], place[1], d, j};
            score += (double)at(t, in, 0, q) * (double)at(t, in, 1, k);
        }
        score = score * (double)scale + (t->s.input_count == 4 ? (double)in[3][j] : 0.0);
        weights[j] = exp(score);
        sum += weights[j];
    }
    for (int32_t e = 0; e < t->outputs[0].dims[3]; e++) {
        double x = 0.0;
        for (int32_t j = 0; j < sizes[0]; j++) {
            const int32_t v[4] = {place[0], place[1], j, e};
            x += weights[j] / sum * (double)at(t, in, 2, v);
        }
        out[e] = (float)x;
    }
}

static void attend(const subject *t, const float *const in[], float *out)
{
    const int32_t *dims = t->outputs[0].dims;
    const int32_t *keys = t->s.inputs[1].dims;
    bool turned = (t->s.attrs[1] & 2) != 0;
    const int32_t sizes[2] = {keys[turned ? 1 : 3], keys[turned ? 3 : 2]};
    for (int32_t i = 0; i < dims[0] * dims[1] * dims[2]; i++) {
        int32_t place[4] = {i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]};
        attend_row(t, in, place, sizes, out + (size_t)i * (size_t)dims[3]);
    }
}

static void fill(graft_env *env, const char *text, subject *t)
{
    graft_rng rng;
    float *in[GRAFT_MAX_INPUTS] = {NULL};
    float *out[GRAFT_MAX_OUTPUTS] = {NULL};
    CHECK_OK(graft_signature_parse(env, text, &t->s));
    CHECK_OK(graft_signature_outputs(&t->s, t->outputs));
    assert(t->s.input_count > 0 && t->s.output_count > 0);
    for (uint32_t k = 0; k < t->s.input_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->s.inputs[k]);
        bool is_const = ((uint32_t)t->s.const_mask >> k & 1U) != 0;
        graft_rng_derive(&rng, 77, k);
        in[k] = GRAFT_NEW(env->scratch, float, count);
        t->host[k] = GRAFT_NEW(env->scratch, float, count);
        for (size_t i = 0; i < count; i++) {
            in[k][i] = (float)graft_rng_normal(&rng);
            t->host[k][check_place(&t->s.inputs[k], is_const ? 0U : t->s.in_layouts[k], i)] =
                in[k][i];
        }
    }
    for (uint32_t k = 0; k < t->s.output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        out[k] = GRAFT_NEW(env->scratch, float, count);
        t->results[k] = GRAFT_NEW(env->scratch, float, count);
    }
    const graft_call call = {t->s.attrs, t->s.inputs, t->outputs};
    const float *given[GRAFT_MAX_INPUTS] = {in[0], in[1], in[2], in[3]};
    if (t->s.op == GRAFT_COST_REORDER) {
        out[0] = in[0];
    } else if (graft_signature_is_attention(&t->s)) {
        assert(t->s.input_count >= 3);
        attend(t, given, out[0]);
    } else {
        graft_float_run(t->s.op, &call, given, out);
    }
    for (uint32_t k = 0; k < t->s.output_count; k++) {
        for (size_t i = 0; i < (size_t)graft_shape_elements(&t->outputs[k]); i++) {
            t->results[k][check_place(&t->outputs[k], t->s.out_layouts[k], i)] = out[k][i];
        }
    }
}

static void check_row(graft_env *env, size_t row)
{
    subject t;
    cuda_arbiter arbiter;
    fill(env, rows[row].signature, &t);
    CHECK_OK(cuda_arbiter_open(env, &t.s, CUDA_F32, t.host, &arbiter));
    assert_true(arbiter.is_there);
    assert_int_equal(arbiter.pick_count > 0, rows[row].is_part);
    for (uint32_t k = 0; k < t.s.output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t.outputs[k]);
        float *got = t.results[k];
        assert_true(cuda_arbiter_agrees(&arbiter, k, got));
        float kept = got[count / 2];
        got[count / 2] = NAN; /* One in the middle. */
        assert_false(cuda_arbiter_agrees(&arbiter, k, got));
        assert_false(cuda_results_agree(got, got, count));
        got[count / 2] = kept;
        float last = got[count - 1];
        got[count - 1] += 100.0F; /* Of the last channel or row. */
        assert_false(cuda_arbiter_agrees(&arbiter, k, got));
        got[count - 1] = last;
        for (size_t i = 0; i < count; i++) { /* Wrong throughout, and agreeing with itself. */
            got[i] = 1.1F * got[i];
        }
        assert_true(cuda_results_agree(got, got, count));
        assert_false(cuda_arbiter_agrees(&arbiter, k, got));
        for (size_t i = count / 2; i < count; i++) { /* Written in part. */
            got[i] = NAN;
        }
        assert_false(cuda_arbiter_agrees(&arbiter, k, got));
    }
}

CHECK_CASE(test_results)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        GRAFT_SCOPED(env->scratch);
        check_row(env, i);
    }
}

/* Factors of 10 bits, as tensor cores take them: right where the type says so, wrong in fp32, where
 * an engine of cuDNN's that does so without a note was seen. */
CHECK_CASE(test_rounded_factors)
{
    subject t;
    cuda_arbiter arbiter;
    fill(env, "matmul() f32[128,768]@row f32[768,96]@const -> row", &t);
    size_t inner = 768;
    size_t columns = 96;
    for (size_t i = 0; i < 128 * columns; i++) {
        float sum = 0.0F;
        for (size_t k = 0; k < inner; k++) {
            float factors[2] = {t.host[0][i / columns * inner + k],
                                t.host[1][k * columns + i % columns]};
            for (uint32_t f = 0; f < 2; f++) {
                uint32_t bits = (uint32_t)graft_bits_of_float(factors[f]);
                bits = (bits + 0xfffU + (bits >> 13 & 1U)) & ~0x1fffU;
                factors[f] = graft_float_of_bits((int32_t)bits);
            }
            sum += factors[0] * factors[1];
        }
        t.results[0][i] = sum;
    }
    for (uint32_t type = 0; type < 2; type++) {
        CHECK_OK(cuda_arbiter_open(env, &t.s, (cuda_type)type, t.host, &arbiter));
        assert_int_equal(cuda_arbiter_agrees(&arbiter, 0, t.results[0]), type == CUDA_TF32);
    }
}

/* What is too large even in part is only looked through for NaN. */
CHECK_CASE(test_large)
{
    graft_signature s;
    cuda_arbiter arbiter;
    float *host[GRAFT_MAX_INPUTS] = {NULL};
    CHECK_OK(
        graft_signature_parse(env, "matmul() f32[8192,8192]@row f32[8192,8192]@const -> row", &s));
    CHECK_OK(cuda_arbiter_open(env, &s, CUDA_F16, host, &arbiter));
    assert_false(arbiter.is_there);
}
