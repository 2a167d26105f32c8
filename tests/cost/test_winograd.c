/* Winograd's convolution of our own: sizes, paddings and channel counts that leave part of a tile,
 * of a vector or of a panel over, against the float reference; exact where its arithmetic is; and
 * what it must leave to others. */
#include "cost/cpu/winograd.h"
#include "graph/meaning/algebra_float.h"
#include "tests/support/check.h"
#include "tests/support/kernels.h"

#include <string.h>

typedef struct {
    const char *name;
    uint32_t op;
    int32_t image[4];
    int32_t outputs;
    int32_t pads[4]; /* top, left, bottom, right */
    int32_t activation;
    bool in_place;
} case_row;

static const case_row rows[] = {
    {"7x7",                GRAFT_OP_conv,          {1, 32, 7, 7},    64,  {1, 1, 1, 1}, 0, false},
    {"13x13, relu",        GRAFT_OP_conv_bias,     {1, 48, 13, 13},  96,  {1, 1, 1, 1}, 1, false},
    {"1xN",                GRAFT_OP_conv_bias,     {1, 16, 1, 19},   32,  {1, 1, 1, 1}, 2, false},
    {"Nx1",                GRAFT_OP_conv,          {2, 16, 11, 1},   16,  {1, 1, 1, 1}, 0, false},
    {"one pixel",          GRAFT_OP_conv_bias,     {1, 64, 1, 1},    64,  {1, 1, 1, 1}, 1, false},
    {"valid",              GRAFT_OP_conv,          {1, 32, 9, 10},   32,  {0, 0, 0, 0}, 0, false},
    {"one valid window",   GRAFT_OP_conv,          {1, 32, 3, 3},    32,  {0, 0, 0, 0}, 0, false},
    {"uneven padding",     GRAFT_OP_conv_bias,     {2, 32, 6, 9},    48,  {2, 0, 1, 3}, 1, false},
    {"empty windows",      GRAFT_OP_conv_bias,     {1, 16, 4, 4},    16,  {6, 5, 7, 4}, 0, false},
    {"one channel",        GRAFT_OP_conv,          {1, 1, 8, 8},     1,   {1, 1, 1, 1}, 0, false},
    {"odd channels",       GRAFT_OP_conv_bias,     {2, 17, 9, 11},   23,  {1, 1, 1, 1}, 2, false},
    {"half a panel over",  GRAFT_OP_conv,          {1, 8, 12, 12},   70,  {1, 1, 1, 1}, 0, false},
    {"panels over",        GRAFT_OP_conv_bias,     {1, 24, 10, 10},  225, {1, 1, 1, 1}, 1, false},
    {"several strips",     GRAFT_OP_conv_bias,     {1, 160, 45, 47}, 80,  {1, 1, 1, 1}, 1, false},
    {"strips over images", GRAFT_OP_conv,          {3, 100, 30, 29}, 33,  {1, 1, 1, 1}, 0, false},
    {"residual",           GRAFT_OP_conv_bias_add, {2, 32, 7, 9},    32,  {1, 1, 1, 1}, 1, false},
    {"residual in place",  GRAFT_OP_conv_bias_add, {1, 64, 14, 14},  64,  {1, 1, 1, 1}, 1, true },
    {"in place, strips",   GRAFT_OP_conv_bias_add, {1, 90, 57, 54},  90,  {1, 1, 1, 1}, 0, true },
};

static graft_shape image_shape(int32_t n, int32_t c, int32_t h, int32_t w)
{
    return (graft_shape){
        .rank = 4, .dtype = GRAFT_DTYPE_F32, .dims = {n, c, h, w}
    };
}

static graft_signature signature_of(graft_env *env, const case_row *row, uint32_t layout)
{
    const int32_t *p = row->pads;
    const int32_t *image = row->image;
    int32_t attrs[GRAFT_MAX_ATTRS] = {1, 1, p[0], p[1], p[2], p[3], 1, 1, 1, 0};
    graft_shape in[GRAFT_MAX_INPUTS] = {
        image_shape(image[0], image[1], image[2], image[3]),
        image_shape(row->outputs, image[1], 3, 3),
        {.rank = 1, .dtype = GRAFT_DTYPE_F32, .dims = {row->outputs}},
        image_shape(image[0], row->outputs, image[2] + p[0] + p[2] - 2,
                    image[3] + p[1] + p[3] - 2)
    };
    attrs[GRAFT_ATTR_conv_bias_activation] = row->activation;
    uint32_t mask = row->op == GRAFT_OP_conv ? 2U : 6U;
    graft_signature s = check_signature(env, row->op, attrs, in, mask, layout);
    s.in_place = row->in_place;
    return s;
}

static bool is_listed(graft_env *env, graft_device *device, const graft_signature *s,
                      const char *name)
{
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    bool found = false;
    CHECK_OK(graft_kernel_list(env, device, s, names, &count));
    for (uint32_t i = 0; i < count; i++) {
        found = found || strcmp(names[i].text, name) == 0;
    }
    return found;
}

CHECK_CASE(test_shapes)
{
    graft_device *device = check_device_open(env);
    graft_rng rng = check_rng(21);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (uint32_t layout = GRAFT_LAYOUT_NHWC; layout < GRAFT_LAYOUT_COUNT; layout++) {
            graft_signature s = signature_of(env, &rows[i], layout);
            if (!is_listed(env, device, &s, "winograd:plain_2x3") ||
                !is_listed(env, device, &s, "winograd:plain_4x3")) {
                fail_msg("%s: not listed", rows[i].name);
            }
            (void)check_kernels(env, device, &rng, &s);
        }
    }
}

/* Whole numbers, and filters of multiples of 4, which G divides by 2 twice: no rounding at all. */
CHECK_CASE(test_exact)
{
    graft_device *device = check_device_open(env);
    graft_kernel *kernel = NULL;
    graft_signature s = signature_of(env, &rows[0], GRAFT_LAYOUT_ROW); /* Channels last. */
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    CHECK_OK(graft_signature_outputs(&s, outputs));
    size_t count = (size_t)graft_shape_elements(outputs);
    const float *data[GRAFT_MAX_INPUTS] = {NULL};
    float *want = GRAFT_NEW(env->scratch, float, count);
    float *out = GRAFT_NEW(env->scratch, float, count);
    for (uint32_t k = 0; k < 2; k++) {
        size_t size = (size_t)graft_shape_elements(&s.inputs[k]);
        float *values = GRAFT_NEW(env->scratch, float, size);
        for (size_t i = 0; i < size; i++) {
            values[i] =
                (float)((int32_t)(i * 2654435761U >> 13 & 15U) - 8) * (k == 0 ? 1.0F : 4.0F);
        }
        data[k] = values;
    }
    size_t pixels = (size_t)outputs[0].dims[2] * (size_t)outputs[0].dims[3];
    size_t channels = (size_t)s.inputs[0].dims[1];
    float *last = GRAFT_NEW(env->scratch, float, channels *pixels);
    for (size_t i = 0; i < channels * pixels; i++) {
        last[i % pixels * channels + i / pixels] = data[0][i];
    }
    graft_call call = {s.attrs, s.inputs, outputs};
    graft_float_run(s.op, &call, data, &want);
    CHECK_OK(graft_kernel_open(env, device, &s, "winograd:plain_2x3", data, &kernel));
    const float *in[GRAFT_MAX_INPUTS] = {last};
    void *work = graft_arena_alloc(env->scratch, graft_kernel_facts_of(kernel)->workspace_bytes);
    CHECK_OK(graft_kernel_bind(env, kernel, in, &out, work));
    CHECK_OK(graft_kernel_run(env, kernel));
    for (size_t i = 0; i < count; i++) {
        size_t c = i / pixels;
        float got = out[i % pixels * (size_t)outputs[0].dims[1] + c];
        assert_memory_equal(&got, &want[i], sizeof(got)); /* No -0 arises here. */
    }
    graft_kernel_close(kernel);
}

/* What it cannot run is not offered. */
CHECK_CASE(test_refusals)
{
    static const struct {
        const char *name;
        uint32_t attr;
        int32_t value;
        uint32_t const_mask;
    } refused[] = {
        {"stride",          GRAFT_ATTR_conv_stride_h,        2, 6},
        {"stride w",        GRAFT_ATTR_conv_stride_w,        2, 6},
        {"dilation",        GRAFT_ATTR_conv_dilation_w,      2, 6},
        {"sigmoid",         GRAFT_ATTR_conv_bias_activation, 3, 6},
        {"tanh",            GRAFT_ATTR_conv_bias_activation, 4, 6},
        {"computed filter", GRAFT_ATTR_conv_bias_activation, 1, 4},
    };
    graft_winograd plan;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        graft_signature s = signature_of(env, &rows[1], GRAFT_LAYOUT_NHWC);
        CHECK_OK(graft_signature_outputs(&s, outputs));
        assert_true(graft_winograd_plan(&s, outputs, 2, 1, &plan));
        s.attrs[refused[i].attr] = refused[i].value;
        s.const_mask = (uint8_t)refused[i].const_mask;
        CHECK_OK(graft_signature_outputs(&s, outputs));
        if (graft_winograd_plan(&s, outputs, 2, 1, &plan)) {
            fail_msg("%s: offered", refused[i].name);
        }
    }
    graft_signature s = signature_of(env, &rows[1], GRAFT_LAYOUT_NHWC);
    CHECK_OK(graft_signature_outputs(&s, outputs));
    s.in_layouts[0] = GRAFT_LAYOUT_ROW;
    assert_false(graft_winograd_plan(&s, outputs, 2, 1, &plan));
}
