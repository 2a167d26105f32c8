/* primitives.c - every implementation of every operator against the float reference.
 *
 * Inputs are normal numbers as the type stores them, so that only the operator's own roundings
 * differ. Outputs and workspace are full of NaN beforehand. Tolerances, relative to 1 + the largest
 * element of the reference:
 *      fp32  3e-5: other orders of summation of up to some thousand products (as on the processor);
 *            1e-3 where cuDNN may use Winograd's algorithm
 *      tf32  4e-3: factors have 10 bits (2^-11 each), sums of some hundred products; 2e-2 behind
 *            tanh, whose results are at most 1 where those sums are 30
 *      fp16  4e-3: results have 11 bits (2^-11), and so has what two kernels hand on
 *      bf16  3e-2: results have 8 bits (2^-8) */
#include "gpu/check.h"

#include "cost/device/backend.h"
#include "cost/plan/groups.h"
#include "cost/plan/layout.h"
#include "graph/base/log.h"
#include "graph/base/rng.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const double tolerances[CUDA_TYPE_COUNT] = {3e-5, 4e-3, 4e-3, 3e-2};
static const double winograd_tolerance = 1e-3;
static const double tanh_tolerance = 2e-2;

#define CONV(stride, pad, groups)                                                                  \
    "(stride_h=" stride ", stride_w=" stride ", pad_top=" pad ", pad_left=" pad                    \
    ", pad_bottom=" pad ", pad_right=" pad ", dilation_h=1, dilation_w=1, groups=" groups
#define BIASED(activation)                                                                         \
    "conv_bias" CONV("1", "1",                                                                     \
                     "1") ", activation=" activation                                               \
                          ") f32[1,64,14,14]@nhwc f32[64,64,3,3]@const f32[64]@const -> nhwc"
#define POOL "stride_h=2, stride_w=2, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1"

/* As the database writes them. */
static const char *const signatures[] = {
    "conv" CONV("1", "0", "1") ") f32[1,64,14,14]@nhwc f32[32,64,1,1]@const -> nhwc",
    "conv" CONV("1", "1", "1") ") f32[2,64,28,28]@nhwc f32[64,64,3,3]@const -> nhwc",
    "conv" CONV("1", "1", "1") ") f32[1,64,28,28]@row f32[64,64,3,3]@const -> row",
    "conv" CONV("2", "3", "1") ") f32[1,3,64,64]@nhwc f32[64,3,7,7]@const -> nhwc",
    "conv" CONV("1", "1", "1") ") f32[1,17,9,11]@nhwc f32[23,17,3,3]@const -> nhwc",
    "conv" CONV("1", "1", "32") ") f32[1,32,14,14]@nhwc f32[32,1,3,3]@const -> nhwc",
    "conv" CONV("1", "1", "4") ") f32[1,32,14,14]@nhwc f32[64,8,3,3]@const -> nhwc",
    "conv(stride_h=2, stride_w=1, pad_top=0, pad_left=2, pad_bottom=1, pad_right=0, dilation_h=1, "
    "dilation_w=1, groups=1) f32[1,16,13,10]@nhwc f32[16,16,3,3]@const -> nhwc",
    "conv(stride_h=1, stride_w=1, pad_top=2, pad_left=2, pad_bottom=2, pad_right=2, dilation_h=2, "
    "dilation_w=2, groups=1) f32[1,16,15,15]@nhwc f32[16,16,3,3]@const -> nhwc",
    "conv" CONV("1", "1", "1") ") f32[1,16,9,9]@nhwc f32[16,16,3,3]@row -> nhwc",
    BIASED("0"),
    BIASED("1"),
    BIASED("2"),
    BIASED("3"),
    BIASED("4"),
    "conv_bias" CONV(
        "2", "1",
        "32") ", activation=1) f32[1,32,15,15]@nhwc f32[32,1,3,3]@const f32[32]@const -> nhwc",
    "conv_bias_add" CONV("1", "0",
                         "1") ", activation=1) f32[1,64,14,14]@nhwc f32[256,64,1,1]@const "
                              "f32[256]@const f32[1,256,14,14]@nhwc -> nhwc",
    "conv_bias_add" CONV("1", "0",
                         "1") ", activation=1) f32[1,64,14,14]@nhwc f32[256,64,1,1]@const "
                              "f32[256]@const f32[1,256,14,14]@nhwc -> nhwc in-place",
    "conv_bias_add" CONV("1", "1", "1") ", activation=0) f32[2,32,14,14]@row f32[32,32,3,3]@const "
                                        "f32[32]@const f32[2,32,14,14]@row -> row",
    "matmul() f32[1,128,768]@row f32[768,768]@const -> row",
    "matmul() f32[3,33,64]@row f32[64,48]@const -> row",
    "matmul() f32[1,12,128,64]@row f32[1,12,64,128]@row -> row",
    "matmul() f32[2,1,9,7]@row f32[3,7,5]@row -> row",
    "matmul() f32[12,20]@const f32[20,31]@row -> row",
    "matmul_bias(activation=0) f32[1,2048]@row f32[2048,1000]@const f32[1000]@const -> row",
    "matmul() f32[1,1280]@row f32[1280,10]@const -> row",
    "matmul() f32[2,3,300]@row f32[300,4096]@const -> row",
    "matmul_bias(activation=1) f32[4,256]@row f32[256,104]@const f32[104]@const -> row",
    "matmul_bias(activation=4) f32[1,16,512]@row f32[512,512]@const f32[512]@const -> row",
    "scale_shift() f32[1,37,14,14]@nhwc f32[37]@const f32[37]@const -> nhwc",
    "scale_shift() f32[2,64,14,14]@row f32[64]@const f32[64]@const -> row",
    "relu() f32[1,64,14,14]@nhwc -> nhwc",
    "relu() f32[1001]@row -> row",
    "clip(low=0x00000000, high=0x40c00000) f32[1,64,14,14]@nhwc -> nhwc",
    "sigmoid() f32[16,512]@row -> row",
    "tanh() f32[16,512]@row -> row",
    "exp() f32[16,512]@row -> row",
    "sqrt() f32[16,512]@row -> row",
    "erf() f32[16,512]@row -> row",
    "gelu() f32[1,128,768]@row -> row",
    "leaky_relu(slope=0x3dcccccd) f32[1,64,14,14]@nhwc -> nhwc",
    "add() f32[1,64,14,14]@nhwc f32[1,64,14,14]@nhwc -> nhwc",
    "add() f32[1,128,768]@row f32[768]@const -> row",
    "sub() f32[1,24,9,9]@row f32[24,1,1]@const -> row",
    "mul() f32[1,8,16,16]@row f32[1,1,1,16]@row -> row",
    "div() f32[1,8,16,16]@row f32[]@const -> row",
    "max() f32[4,1,64]@row f32[1,32,1]@row -> row",
    "min() f32[2,3,5,7]@row f32[2,3,5,7]@row -> row",
    "concat(axis=1) f32[1,64,14,14]@nhwc f32[1,24,14,14]@nhwc -> nhwc",
    "concat(axis=1) f32[1,64,14,14]@row f32[1,27,14,14]@row -> row",
    "concat(axis=2) f32[2,3,5]@row f32[2,3,6]@row -> row",
    "split(axis=1, at=24) f32[2,40,6,6]@nhwc -> nhwc nhwc",
    "split(axis=1, at=7) f32[3,50]@row -> row row",
    "slice(axis=1, start=8, end=32) f32[2,40,6,6]@nhwc -> nhwc",
    "slice(axis=0, start=1, end=3) f32[4,5,6]@row -> row",
    "pad(axis=3, before=8, after=16, value=0x40400000) f32[2,16,9,8]@row -> row",
    "pad(axis=2, before=1, after=0, value=0x00000000) f32[1,7,5,3]@nhwc -> nhwc",
    "transpose(axis_0=0, axis_1=2, axis_2=3, axis_3=1, axis_4=0, axis_5=0) f32[2,40,33,3]@row -> "
    "row",
    "transpose(axis_0=0, axis_1=2, axis_2=1, axis_3=3, axis_4=0, axis_5=0) f32[1,128,12,64]@row -> "
    "row",
    "transpose(axis_0=2, axis_1=1, axis_2=0, axis_3=0, axis_4=0, axis_5=0) f32[9,70,65]@row -> row",
    "max_pool(kernel_h=3, kernel_w=3, " POOL
    ", dilation_h=1, dilation_w=1) f32[1,64,28,28]@nhwc -> nhwc",
    "max_pool(kernel_h=3, kernel_w=3, " POOL
    ", dilation_h=1, dilation_w=1) f32[1,19,13,11]@row -> row",
    "avg_pool(kernel_h=3, kernel_w=3, " POOL ", count_pad=0) f32[1,32,14,14]@nhwc -> nhwc",
    "avg_pool(kernel_h=3, kernel_w=3, " POOL ", count_pad=1) f32[1,32,14,14]@nhwc -> nhwc",
    "global_avg_pool() f32[2,100,7,7]@nhwc -> nhwc",
    "softmax(axis=3) f32[1,12,128,128]@row -> row",
    "softmax(axis=1) f32[1,19,8,8]@row -> row",
    "softmax(axis=1) f32[3,1000]@row -> row",
    "softmax(axis=2) f32[2,37,197]@row -> row",
    "softmax(axis=1) f32[5,4200]@row -> row",
    "softmax(axis=1) f32[5,1537]@row -> row",
    "softmax(axis=1) f32[5,20000]@row -> row",
    "reduce_mean(axes=4, keep=1) f32[1,128,768]@row -> row",
    "reduce_mean(axes=12, keep=0) f32[2,64,7,7]@nhwc -> row",
    "reduce_sum(axes=2, keep=1) f32[2,64,4200]@row -> row",
    "reduce_max(axes=4, keep=1) f32[2,64,97]@row -> row",
    "layer_norm(epsilon=0x3727c5ac) f32[1,128,768]@row f32[768]@const f32[768]@const -> row",
    "layer_norm(epsilon=0x3727c5ac) f32[2,13,100]@row f32[100]@const f32[100]@const -> row",
    "rms_norm(epsilon=0x3727c5ac) f32[1,128,768]@row f32[768]@const -> row",
    "rms_norm(epsilon=0x2b8cbccc) f32[2,13,100]@row f32[100]@const -> row",
    "transpose(axis_0=0, axis_1=2, axis_2=1, axis_3=0, axis_4=0, axis_5=0) f32[3,1026,770]@row -> "
    "row",
    "reorder() f32[4,64,112,112]@row -> nhwc",
    "reorder() f32[1,64,56,56]@row -> nhwc",
    "reorder() f32[2,17,9,8]@nhwc -> row",
    "attention(scale=0x3e000000, turned=7) f32[1,197,12,64]@row f32[1,197,12,64]@row "
    "f32[1,197,12,64]@row -> row",
    "masked_attention(scale=0x3e000000, turned=0) f32[2,12,128,64]@row f32[2,12,64,128]@row "
    "f32[2,12,128,64]@row f32[2,1,1,128]@row -> row",
};

enum { SIGNATURE_COUNT = sizeof(signatures) / sizeof(signatures[0]), SHORT_STEP = 4 };

typedef struct {
    check_run *run;
    graft_device *device;
    cuda_type type;
    const char *type_name;
    graft_signature s;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    float *rows[GRAFT_MAX_INPUTS];     /* Row-major, as the type stores them. */
    float *arranged[GRAFT_MAX_INPUTS]; /* In the signature's layouts. */
    float *wants[GRAFT_MAX_OUTPUTS];
    void *in[GRAFT_MAX_INPUTS];
    void *out[GRAFT_MAX_OUTPUTS];
} subject;

/* Row-major to the layout, or back. */
static void arrange(const graft_shape *shape, uint32_t layout, bool back, const float *from,
                    float *to)
{
    size_t count = (size_t)graft_shape_elements(shape);
    for (size_t i = 0; i < count; i++) {
        size_t at = graft_layout_place(shape, layout, i);
        to[back ? i : at] = from[back ? at : i];
    }
}

static graft_status prepare_inputs(subject *t)
{
    graft_arena *scratch = t->run->env->scratch;
    graft_rng rng;
    for (uint32_t k = 0; k < t->s.input_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->s.inputs[k]);
        bool positive = t->s.op == GRAFT_OP_sqrt || (t->s.op == GRAFT_OP_div && k == 1);
        t->rows[k] = GRAFT_NEW(scratch, float, count);
        t->arranged[k] = GRAFT_NEW(scratch, float, count);
        graft_rng_derive(&rng, 41, k);
        for (size_t i = 0; i < count; i++) {
            float x = (float)graft_rng_normal(&rng);
            x = positive ? fabsf(x) + 0.5F : x;
            t->rows[k][i] = cuda_from_bits(t->type, cuda_to_bits(t->type, x));
        }
        arrange(&t->s.inputs[k], t->s.in_layouts[k], false, t->rows[k], t->arranged[k]);
        GRAFT_PASS(graft_device_allocate(t->run->env, t->device, count * sizeof(float), &t->in[k]));
        GRAFT_PASS(graft_device_write(t->run->env, t->device, t->in[k], t->arranged[k], count));
    }
    return GRAFT_OK;
}

static graft_status prepare(subject *t)
{
    graft_arena *scratch = t->run->env->scratch;
    GRAFT_PASS(prepare_inputs(t));
    for (uint32_t k = 0; k < t->s.output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        t->wants[k] = GRAFT_NEW(scratch, float, count);
        GRAFT_PASS(
            graft_device_allocate(t->run->env, t->device, count * sizeof(float), &t->out[k]));
    }
    const float *in[GRAFT_MAX_INPUTS] = {t->rows[0], t->rows[1], t->rows[2], t->rows[3]};
    graft_signature_run(scratch, &t->s, t->outputs, in, t->wants);
    return GRAFT_OK;
}

/* Fills device memory with NaN; an output in place gets the residual. */
static graft_status poison(subject *t, void *memory, size_t count)
{
    float *nans = GRAFT_NEW(t->run->env->scratch, float, count);
    for (size_t i = 0; i < count; i++) {
        nans[i] = NAN;
    }
    return graft_device_write(t->run->env, t->device, memory, nans, count);
}

/* The largest difference, relative; infinite where one is not a number. */
static double distance(const float *got, const float *want, size_t count)
{
    double largest = 1.0;
    double furthest = 0.0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, 1.0 + fabs((double)want[i]));
    }
    for (size_t i = 0; i < count; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        furthest = isnan(d) ? (double)INFINITY : fmax(furthest, d);
    }
    return furthest / largest;
}

static graft_status compare(subject *t, double *error)
{
    *error = 0.0;
    for (uint32_t k = 0; k < t->s.output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        float *got = GRAFT_NEW(t->run->env->scratch, float, count);
        float *row = GRAFT_NEW(t->run->env->scratch, float, count);
        GRAFT_PASS(graft_device_read(t->run->env, t->device, got, t->out[k], count));
        arrange(&t->outputs[k], t->s.out_layouts[k], true, got, row);
        *error = fmax(*error, distance(row, t->wants[k], count));
    }
    return GRAFT_OK;
}

static graft_status run_kernel(subject *t, graft_kernel *kernel, void *workspace, double *error)
{
    const float *in[GRAFT_MAX_INPUTS] = {NULL};
    float *out[GRAFT_MAX_OUTPUTS] = {NULL};
    for (uint32_t k = 0; k < t->s.input_count; k++) {
        in[k] = t->in[k];
    }
    for (uint32_t k = 0; k < t->s.output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        GRAFT_PASS(poison(t, t->out[k], count));
        out[k] = t->out[k];
    }
    if (t->s.in_place != 0) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[0]);
        GRAFT_PASS(graft_device_write(t->run->env, t->device, t->out[0], t->arranged[3], count));
        in[3] = out[0];
    }
    GRAFT_PASS(graft_kernel_bind(t->run->env, kernel, in, out, workspace));
    GRAFT_PASS(graft_kernel_run(t->run->env, kernel));
    return compare(t, error);
}

static void report(subject *t, FILE *file, const char *name, double error, bool wrong)
{
    graft_arena *scratch = t->run->env->scratch;
    graft_buffer text = {.arena = scratch};
    graft_signature_print(&t->s, &text);
    graft_json_print(scratch, file, "signature=%s type=%s implementation=%s error=%g verdict=%s",
                     text.data, t->type_name, name, error, wrong ? "WRONG" : "right");
    if (wrong) {
        check_fail(t->run, "%s by %s: wrong by %g", text.data, name, error);
    }
}

static double find_tolerance(const subject *t, const char *name)
{
    if (t->type == CUDA_F32 && !graft_signature_is_matmul(&t->s) &&
        strncmp(name, "graft", 5) != 0) {
        return winograd_tolerance;
    }
    return t->type == CUDA_TF32 && graft_signature_activation(&t->s) == GRAFT_ACT_TANH
               ? tanh_tolerance
               : tolerances[t->type];
}

/* An implementation that cuDNN lists and cannot run is noted; a wrong one is a failure. */
static graft_status try_name(subject *t, const char *name, FILE *file)
{
    graft_status status = GRAFT_OK;
    graft_env *env = t->run->env;
    graft_kernel *kernel = NULL;
    void *workspace = NULL;
    double error = 0.0;
    const float *constants[GRAFT_MAX_INPUTS] = {t->rows[0], t->rows[1], t->rows[2], t->rows[3]};
    GRAFT_CHECK(graft_kernel_open(env, t->device, &t->s, name, constants, &kernel));
    size_t bytes = graft_kernel_facts_of(kernel)->workspace_bytes;
    GRAFT_CHECK(graft_device_allocate(env, t->device, bytes + sizeof(float), &workspace));
    GRAFT_CHECK(poison(t, workspace, bytes / sizeof(float)));
    GRAFT_CHECK(run_kernel(t, kernel, workspace, &error));
    report(t, file, name, error, error > find_tolerance(t, name));
done:
    if (status == GRAFT_UNSUPPORTED) {
        graft_log(env, 2, "%s: %s", name, env->message);
        graft_env_clear(env);
        status = GRAFT_OK;
    }
    graft_kernel_close(kernel);
    graft_device_release(t->device, workspace);
    return status;
}

static void release(subject *t)
{
    for (uint32_t k = 0; k < GRAFT_MAX_INPUTS; k++) {
        graft_device_release(t->device, t->in[k]);
    }
    for (uint32_t k = 0; k < GRAFT_MAX_OUTPUTS; k++) {
        graft_device_release(t->device, t->out[k]);
    }
}

/* Of a GPU that is not here: which of what is listed can be planned. */
static void plan_names(subject *t, const char *text, const graft_kernel_name *names, uint32_t count,
                       FILE *file)
{
    graft_env *env = t->run->env;
    uint32_t planned = 0;
    for (uint32_t i = 0; i < count && !check_late(t->run); i++) {
        planned += check_plan(t->run, t->device, &t->s, names[i].text) != NULL;
        graft_env_clear(env);
    }
    graft_json_print(env->scratch, file, "signature=%s type=%s listed=%u planned=%u", text,
                     t->type_name, count, planned);
    if (planned == 0) {
        check_fail(t->run, "%s: nothing can be planned for %s", t->type_name, text);
    }
}

static graft_status check_signature(check_run *run, graft_device *device, const check_type *type,
                                    const char *text, FILE *file)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(run->env->scratch);
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    subject t = {.run = run, .device = device, .type = type->type, .type_name = type->name};
    GRAFT_TRY(run->env, graft_signature_parse(run->env, text, &t.s), "in '%s'", text);
    GRAFT_CHECK(graft_signature_outputs(&t.s, t.outputs));
    if (graft_signature_is_attention(&t.s) && type->type < CUDA_F16) {
        goto done; /* Only in 16 bits. */
    }
    GRAFT_CHECK(graft_kernel_list(run->env, device, &t.s, names, &count));
    if (!graft_device_present(device)) {
        plan_names(&t, text, names, count, file);
        goto done;
    }
    GRAFT_CHECK(prepare(&t));
    for (uint32_t i = 0; i < count && !check_late(run); i++) {
        if (!run->is_short || i == 0 || i + 1 == count || strchr(names[i].text, ':') == NULL) {
            GRAFT_CHECK(try_name(&t, names[i].text, file));
        }
    }
    run->progress->unfinished += check_late(run);
done:
    release(&t);
    return status;
}

/* Signatures are planned as many at a time as there are processors. */
enum { AHEAD_MOST = 32 };

static uint32_t plan_ahead(check_run *run, graft_device *device, uint32_t from)
{
    graft_signature all[AHEAD_MOST];
    uint32_t count = 0;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t most = processors < 1            ? 1
                    : processors > AHEAD_MOST ? (uint32_t)AHEAD_MOST
                                              : (uint32_t)processors;
    most = from + most < SIGNATURE_COUNT ? most : SIGNATURE_COUNT - from;
    for (uint32_t i = from; i < from + most; i++) {
        if (graft_signature_parse(run->env, signatures[i], &all[count]) == GRAFT_OK) {
            count++;
        }
        graft_env_clear(run->env); /* It fails again when its turn comes. */
    }
    (void)graft_device_prepare(run->env, device, all, count);
    return from + most;
}

static void check_all(check_run *run, graft_device *device, check_part part)
{
    uint32_t planned = 0;
    /* Of the short selection each type has another quarter. */
    for (uint32_t i = run->is_short ? part.first / SIGNATURE_COUNT : 0; i < SIGNATURE_COUNT;
         i += run->is_short ? SHORT_STEP : 1) {
        uint32_t item = part.first + i;
        if (check_cut(run, item, CHECK_TYPES * SIGNATURE_COUNT)) {
            break;
        }
        if (!check_begin(run, item)) {
            continue;
        }
        if (!run->is_short && i >= planned) {
            planned = plan_ahead(run, device, i);
        }
        if (check_signature(run, device, part.type, signatures[i], part.file) != GRAFT_OK) {
            check_fail(run, "%s: %s", part.type->name, signatures[i]);
            check_probe(run, device);
        }
    }
}

static graft_status check_one_type(check_run *run, check_part part, void *context)
{
    graft_device *device = NULL;
    (void)context;
    if (run->progress->next < part.first + SIGNATURE_COUNT) {
        GRAFT_PASS(check_open(run, part.type->name, "", &device));
        check_all(run, device, part);
        graft_device_close(device);
    }
    return GRAFT_OK;
}

graft_status check_primitives(check_run *run)
{
    return check_each_type(run, run->is_short ? "primitives-short.jsonl" : "primitives.jsonl",
                           SIGNATURE_COUNT, check_one_type, NULL);
}
