/* device_cpu_conv.c - convolutions through oneDNN, fused or not, in several layouts and algorithms.
 *
 *   direct    in the layouts of the signature (channels last or blocked), the library's favourites;
 *             the only family of transposed convolutions, which are row-major as well
 *   binary    the same, with the residual as a second operand instead of a sum in place
 *   blocked   in the layout that the library likes best, operands converted at each run
 *   winograd  Winograd's algorithm, likewise: fewer multiplications, other rounding; without
 *             conversions where the signature is blocked, which is what it works on
 *   padded    direct, the image copied into zeros first: without AVX-512 the library has no loops
 *             for windows that reach far over its edges, and multiplies matrices of copies
 *   apart     as blocked, by matrix product, the activation in a run of its own: inside, the library
 *             applies it one element at a time, which can take as long as the convolution
 *
 * The residual input of conv_bias_add is summed into the output's memory. Where the signature is in
 * place it lies there already, elsewhere it is copied first. Which of these is fastest depends on
 * shapes and instruction set in ways that only measuring shows. */
#include "cost/cpu/program.h"

#include "graph/meaning/algebra.h"

#include <string.h>

enum { IMAGE = 0, FILTER = 1, BIAS = 2, RESIDUAL = 3 };
enum { DIRECT_VARIANTS = 2, BLOCKED_VARIANTS = 2, WINOGRAD_VARIANTS = 2, SEARCH_LIMIT = 8 };
enum { REACH = 4 }; /* So far over an edge the library's loops for AVX2 always go. */

typedef enum residual_mode { RESIDUAL_NONE, RESIDUAL_SUM, RESIDUAL_BINARY } residual_mode;

typedef struct {
    const char *family;
    bool winograd;
    bool any_layout; /* The library chooses the layouts of image and output. */
    bool apart;      /* The activation is a stage of its own. */
    bool padded;     /* The image is copied into zeros first. */
    residual_mode residual;
} conv_kind;

typedef struct {
    dnnl_memory_desc_t image;  /* As the signature has them... */
    dnnl_memory_desc_t padded; /* (the image with its padding) */
    dnnl_memory_desc_t filter;
    dnnl_memory_desc_t bias;
    dnnl_memory_desc_t output;
    dnnl_primitive_desc_t pd; /* ...and what was chosen for them. */
} conv_forms;

static bool is_transposed(const graft_kernel *kernel)
{
    return kernel->signature.op == GRAFT_OP_conv_transpose;
}

static bool has_bias(const graft_kernel *kernel)
{
    return kernel->signature.op != GRAFT_OP_conv && !is_transposed(kernel);
}

/* The library has the filter (I,O,kh,kw) of a transposed convolution as (O,I,kh,kw). */
static void describe_turned(const graft_shape *f, bool any, dnnl_memory_desc_t *desc)
{
    const dnnl_dims_t dims = {f->dims[1], f->dims[0], f->dims[2], f->dims[3]};
    const int64_t plane = dims[2] * dims[3];
    const dnnl_dims_t steps = {plane, dims[0] * plane, dims[3], 1};
    graft_program_describe_dims(4, dims, any, desc);
    if (!any) {
        (void)dnnl_memory_desc_init_by_strides(desc, 4, dims, dnnl_f32, steps);
    }
}

/* The filter as (groups, O/groups, I/groups, kh, kw), or without the first when there is one group;
 * row-major data is the same in both. */
static void describe_filter(const graft_kernel *kernel, bool any, dnnl_memory_desc_t *desc)
{
    if (is_transposed(kernel)) {
        describe_turned(&kernel->signature.inputs[FILTER], any, desc);
        return;
    }
    const graft_shape *f = &kernel->signature.inputs[FILTER];
    int64_t groups = kernel->signature.attrs[GRAFT_ATTR_conv_groups];
    int64_t dims[5] = {groups, f->dims[0] / groups, f->dims[1], f->dims[2], f->dims[3]};
    if (groups == 1) {
        graft_program_describe_dims(4, dims + 1, any, desc);
    } else {
        graft_program_describe_dims(5, dims, any, desc);
    }
}

static void describe_forms(const graft_kernel *kernel, conv_forms *forms)
{
    const int32_t *a = kernel->signature.attrs;
    graft_program_describe_input(kernel, IMAGE, &forms->image);
    graft_program_describe_output(kernel, 0, &forms->output);
    graft_shape padded = kernel->signature.inputs[IMAGE];
    padded.dims[2] += a[GRAFT_ATTR_conv_pad_top] + a[GRAFT_ATTR_conv_pad_bottom];
    padded.dims[3] += a[GRAFT_ATTR_conv_pad_left] + a[GRAFT_ATTR_conv_pad_right];
    graft_program_describe(&padded, kernel->signature.in_layouts[IMAGE], &forms->padded);
    describe_filter(kernel, false, &forms->filter);
    memset(&forms->bias, 0, sizeof(forms->bias));
    if (has_bias(kernel)) {
        graft_program_describe_input(kernel, BIAS, &forms->bias);
    }
}

static void describe_any(const graft_shape *shape, dnnl_memory_desc_t *desc)
{
    int64_t dims[4] = {shape->dims[0], shape->dims[1], shape->dims[2], shape->dims[3]};
    graft_program_describe_dims(4, dims, true, desc);
}

static graft_status describe_conv(graft_env *env, const graft_kernel *kernel, const conv_kind *kind,
                                  const conv_forms *forms, dnnl_convolution_desc_t *desc)
{
    const int32_t *a = kernel->signature.attrs;
    dnnl_memory_desc_t image = forms->image;
    dnnl_memory_desc_t output = forms->output;
    dnnl_memory_desc_t filter;
    describe_filter(kernel, true, &filter);
    if (kind->any_layout) {
        describe_any(&kernel->signature.inputs[IMAGE], &image);
        describe_any(&kernel->outputs[0], &output);
    }
    dnnl_dims_t strides = {a[GRAFT_ATTR_conv_stride_h], a[GRAFT_ATTR_conv_stride_w]};
    dnnl_dims_t dilates = {a[GRAFT_ATTR_conv_dilation_h] - 1, a[GRAFT_ATTR_conv_dilation_w] - 1};
    dnnl_dims_t none = {0};
    dnnl_dims_t before = {a[GRAFT_ATTR_conv_pad_top], a[GRAFT_ATTR_conv_pad_left]};
    dnnl_dims_t after = {a[GRAFT_ATTR_conv_pad_bottom], a[GRAFT_ATTR_conv_pad_right]};
    if (kind->padded) {
        image = forms->padded;
        memset(before, 0, sizeof(before));
        memset(after, 0, sizeof(after));
    }
    if (is_transposed(kernel)) { /* Strides and paddings are the same attributes. */
        after[0] -= a[GRAFT_ATTR_conv_transpose_extra_h];
        after[1] -= a[GRAFT_ATTR_conv_transpose_extra_w];
        return graft_program_status(env,
                                    dnnl_dilated_deconvolution_forward_desc_init(
                                        desc, dnnl_forward_inference, dnnl_deconvolution_direct,
                                        &image, &filter, NULL, &output, strides, none, before,
                                        after),
                                    "describing a transposed convolution");
    }
    dnnl_status_t result = dnnl_dilated_convolution_forward_desc_init(
        desc, dnnl_forward_inference,
        kind->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct, &image, &filter,
        has_bias(kernel) ? &forms->bias : NULL, &output, strides, dilates, before, after);
    return graft_program_status(env, result, "describing a convolution");
}

static graft_status describe_fusion(graft_env *env, const graft_kernel *kernel,
                                    const conv_kind *kind, const conv_forms *forms,
                                    program_attr *attr)
{
    if (kind->residual == RESIDUAL_SUM) {
        GRAFT_PASS(graft_program_attr_sum(env, attr));
    } else if (kind->residual == RESIDUAL_BINARY) {
        GRAFT_PASS(graft_program_attr_binary(env, attr, &forms->output));
    }
    if (!kind->apart) {
        GRAFT_PASS(graft_program_attr_activation(env, attr,
                                                 graft_signature_activation(&kernel->signature)));
    }
    return graft_program_attr_finish(env, attr);
}

/* Whether some window has no element of the image: it lies in the padding, or its taps step over a
 * small image. */
static bool has_empty_window(const graft_kernel *kernel)
{
    const graft_signature *s = &kernel->signature;
    const graft_call call = {s->attrs, s->inputs, kernel->outputs};
    for (uint32_t i = 0; i < 2; i++) {
        graft_window window = graft_window_of_conv(&call, i);
        for (int64_t p = 0; p < window.count; p++) {
            int64_t taps[2];
            graft_window_taps(&window, p, taps);
            if (taps[0] >= taps[1]) {
                return true;
            }
        }
    }
    return false;
}

/* Whether it is one of those that the kind is there for, and none of three faults of oneDNN 2.6
 * that tests/cost/test_kernels.c finds: the convolution by matrix product adds the wrong elements
 * of a second operand when there is more than one image, the depthwise one for processors without
 * AVX2 dies of a residual that is not aligned, and the batched one goes wrong, up to reading
 * through a null pointer, where a window has no element. */
static bool is_wanted(const graft_kernel *kernel, const conv_kind *kind,
                      const_dnnl_primitive_desc_t pd)
{
    const char *name = "";
    (void)dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    bool gemm = strstr(name, "gemm") != NULL;
    bool wrong = kind->residual == RESIDUAL_BINARY && gemm;
    bool dies = kernel->signature.op == GRAFT_OP_conv_bias_add && strcmp(name, "jit_dw:sse41") == 0;
    bool unsafe = strncmp(name, "br", 2) == 0 && has_empty_window(kernel);
    return (gemm || !kind->apart) && !(gemm && kind->padded) && !wrong && !dies && !unsafe;
}

/* The library may choose the very layouts that the direct family has already; that one is direct.
 */
static bool is_new(const conv_kind *kind, const conv_forms *forms, const_dnnl_primitive_desc_t pd)
{
    return !kind->any_layout || kind->winograd || kind->apart ||
           dnnl_memory_desc_equal(&forms->image, graft_program_query(pd, dnnl_query_src_md, 0)) ==
               0 ||
           dnnl_memory_desc_equal(&forms->output, graft_program_query(pd, dnnl_query_dst_md, 0)) ==
               0;
}

/* The `variant`-th implementation that is new. */
static graft_status choose_conv(graft_env *env, graft_kernel *kernel, const conv_kind *kind,
                                uint32_t variant, conv_forms *forms)
{
    dnnl_convolution_desc_t desc;
    PROGRAM_ATTR(attr);
    GRAFT_PASS(describe_fusion(env, kernel, kind, forms, &attr));
    GRAFT_PASS(describe_conv(env, kernel, kind, forms, &desc));
    uint32_t seen = 0;
    for (uint32_t i = 0; i < SEARCH_LIMIT; i++) {
        GRAFT_PASS(graft_program_choose(env, kernel, &desc, &attr, i, &forms->pd));
        if (is_wanted(kernel, kind, forms->pd) && is_new(kind, forms, forms->pd) &&
            seen++ == variant) {
            return GRAFT_OK;
        }
        (void)dnnl_primitive_desc_destroy(forms->pd);
        forms->pd = NULL;
    }
    return GRAFT_UNSUPPORTED;
}

/* Brings the residual to where the convolution adds its result, or to its second operand. */
static graft_status place_residual(graft_env *env, graft_kernel *kernel, const conv_kind *kind,
                                   const conv_forms *forms, uint32_t output, program_arg *arg)
{
    dnnl_memory_desc_t have;
    uint32_t residual = 0;
    graft_program_describe_input(kernel, RESIDUAL, &have);
    bool there = kernel->operands[output].role == ROLE_OUTPUT && kernel->signature.in_place != 0;
    if (kind->residual == RESIDUAL_SUM && there) {
        return GRAFT_OK;
    }
    if (kind->residual == RESIDUAL_BINARY) {
        GRAFT_PASS(graft_program_input(env, kernel, RESIDUAL, &have, &forms->output, &residual));
        *arg = (program_arg){DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, residual};
        return GRAFT_OK;
    }
    GRAFT_PASS(graft_program_input(env, kernel, RESIDUAL, &have, &have, &residual));
    return graft_program_reorder(env, kernel, residual, output);
}

/* Applies the activation to an operand of the form `desc`, in place. */
static graft_status activate(graft_env *env, graft_kernel *kernel, const dnnl_memory_desc_t *desc,
                             uint32_t operand)
{
    const program_function *f =
        graft_program_activation(graft_signature_activation(&kernel->signature));
    const program_arg args[2] = {
        {DNNL_ARG_SRC, operand},
        {DNNL_ARG_DST, operand}
    };
    dnnl_eltwise_desc_t eltwise;
    PROGRAM_CHOSEN(pd);
    PROGRAM_ATTR(attr);
    GRAFT_PASS(graft_program_attr_finish(env, &attr));
    GRAFT_PASS(
        graft_program_status(env,
                             dnnl_eltwise_forward_desc_init(&eltwise, dnnl_forward_inference,
                                                            f->kind, desc, f->alpha, f->beta),
                             "describing an activation"));
    GRAFT_PASS(graft_program_choose(env, kernel, &eltwise, &attr, 0, &pd));
    return graft_program_stage(env, kernel, pd, args, 2);
}

static graft_status build_conv(graft_env *env, graft_kernel *kernel, const conv_kind *kind,
                               const conv_forms *forms)
{
    const int32_t *a = kernel->signature.attrs;
    const dnnl_memory_desc_t *image = graft_program_query(forms->pd, dnnl_query_src_md, 0);
    const dnnl_memory_desc_t *filter = graft_program_query(forms->pd, dnnl_query_weights_md, 0);
    const dnnl_memory_desc_t *output = graft_program_query(forms->pd, dnnl_query_dst_md, 0);
    program_arg args[5] = {{.arg = DNNL_ARG_SRC}, {.arg = DNNL_ARG_WEIGHTS}, {.arg = DNNL_ARG_DST}};
    uint32_t count = 3;
    if (kind->padded) {
        const dnnl_dims_t before = {0, 0, a[GRAFT_ATTR_conv_pad_top], a[GRAFT_ATTR_conv_pad_left]};
        GRAFT_PASS(graft_program_padded(env, kernel, IMAGE, &forms->image, image, before,
                                        &args[0].operand));
    } else {
        GRAFT_PASS(graft_program_input(env, kernel, IMAGE, &forms->image, image, &args[0].operand));
    }
    GRAFT_PASS(graft_program_input(env, kernel, FILTER, &forms->filter, filter, &args[1].operand));
    args[2].operand = graft_program_output(kernel, &forms->output, output);
    if (has_bias(kernel)) {
        args[count].arg = DNNL_ARG_BIAS;
        GRAFT_PASS(graft_program_input(env, kernel, BIAS, &forms->bias, &forms->bias,
                                       &args[count].operand));
        count++;
    }
    if (kind->residual != RESIDUAL_NONE) {
        GRAFT_PASS(place_residual(env, kernel, kind, forms, args[2].operand, &args[count]));
        count += kind->residual == RESIDUAL_BINARY;
    }
    GRAFT_PASS(graft_program_stage(env, kernel, forms->pd, args, count));
    if (kind->apart) {
        GRAFT_PASS(activate(env, kernel, output, args[2].operand));
    }
    return graft_program_deliver(env, kernel, &forms->output, args[2].operand);
}

static void swap_numbers(int32_t *a, int32_t *b)
{
    const int32_t first = *a;
    *a = *b;
    *b = first;
}

/* Makes the height of an image of width 1 its width, or the other way round. */
static void turn_image(graft_kernel *kernel)
{
    graft_signature *s = &kernel->signature;
    int32_t *a = s->attrs;
    graft_shape *shapes[4] = {&s->inputs[IMAGE], &s->inputs[FILTER], &kernel->outputs[0],
                              &s->inputs[RESIDUAL]};
    for (uint32_t i = 0; i < (s->op == GRAFT_OP_conv_bias_add ? 4 : 3); i++) {
        swap_numbers(&shapes[i]->dims[2], &shapes[i]->dims[3]);
    }
    swap_numbers(&a[GRAFT_ATTR_conv_stride_h], &a[GRAFT_ATTR_conv_stride_w]);
    swap_numbers(&a[GRAFT_ATTR_conv_dilation_h], &a[GRAFT_ATTR_conv_dilation_w]);
    swap_numbers(&a[GRAFT_ATTR_conv_pad_top], &a[GRAFT_ATTR_conv_pad_left]);
    swap_numbers(&a[GRAFT_ATTR_conv_pad_bottom], &a[GRAFT_ATTR_conv_pad_right]);
}

static residual_mode mode_of(const graft_kernel *kernel)
{
    return kernel->signature.op == GRAFT_OP_conv_bias_add ? RESIDUAL_SUM : RESIDUAL_NONE;
}

/* The library's loops are along the width: an image of width 1 is one of height 1 to it, which lies
 * in memory as it did. */
static graft_status open_conv(graft_env *env, graft_kernel *kernel, const conv_kind *kind,
                              uint32_t variant)
{
    graft_status status = GRAFT_OK;
    conv_forms forms = {.pd = NULL};
    const graft_signature *s = &kernel->signature;
    const bool turns = graft_signature_is_conv(s) && s->inputs[IMAGE].dims[3] == 1 &&
                       s->inputs[FILTER].dims[3] == 1 && kernel->outputs[0].dims[3] == 1;
    if (turns) {
        turn_image(kernel);
    }
    describe_forms(kernel, &forms);
    GRAFT_CHECK(choose_conv(env, kernel, kind, variant, &forms));
    graft_program_name(kernel, kind->family, forms.pd);
    if (!kernel->dry) {
        GRAFT_CHECK(build_conv(env, kernel, kind, &forms));
    }
done:
    if (turns) {
        turn_image(kernel);
    }
    (void)dnnl_primitive_desc_destroy(forms.pd);
    return status;
}

bool graft_cpu_conv_reaches_far(graft_env *env, graft_kernel *kernel)
{
    const int32_t *a = kernel->signature.attrs;
    const conv_kind direct = {.family = "direct", .residual = mode_of(kernel)};
    graft_kernel named = *kernel;
    int32_t reach = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const int32_t pad = a[GRAFT_ATTR_conv_pad_top + i];
        reach = pad > reach ? pad : reach;
    }
    named.dry = true;
    return graft_signature_is_conv(&kernel->signature) && reach >= REACH &&
           open_conv(env, &named, &direct, 0) == GRAFT_OK &&
           strstr(named.facts.name, "gemm") != NULL;
}

graft_status graft_cpu_open_conv_padded(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const conv_kind kind = {.family = "padded", .padded = true, .residual = mode_of(kernel)};
    const bool fits = variant == 0 && graft_cpu_conv_reaches_far(env, kernel) &&
                      (kernel->signature.const_mask & 1U << IMAGE) == 0;
    return fits ? open_conv(env, kernel, &kind, variant) : GRAFT_UNSUPPORTED;
}

graft_status graft_cpu_open_conv_direct(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const conv_kind kind = {.family = "direct", .residual = mode_of(kernel)};
    const bool fits = graft_signature_is_conv(&kernel->signature) || is_transposed(kernel);
    return fits && variant < DIRECT_VARIANTS ? open_conv(env, kernel, &kind, variant)
                                             : GRAFT_UNSUPPORTED;
}

graft_status graft_cpu_open_conv_binary(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const conv_kind kind = {.family = "binary", .residual = RESIDUAL_BINARY};
    const bool fits =
        kernel->signature.op == GRAFT_OP_conv_bias_add && kernel->signature.in_place == 0;
    return fits && variant < DIRECT_VARIANTS ? open_conv(env, kernel, &kind, variant)
                                             : GRAFT_UNSUPPORTED;
}

/* In layouts that the library chooses. */
static graft_status open_freely(graft_env *env, graft_kernel *kernel, conv_kind kind,
                                uint32_t variant, uint32_t variants)
{
    kind.any_layout = true;
    kind.residual = mode_of(kernel);
    return graft_signature_is_conv(&kernel->signature) && variant < variants
               ? open_conv(env, kernel, &kind, variant)
               : GRAFT_UNSUPPORTED;
}

graft_status graft_cpu_open_conv_blocked(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    return open_freely(env, kernel, (conv_kind){.family = "blocked"}, variant, BLOCKED_VARIANTS);
}

graft_status graft_cpu_open_conv_winograd(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    return open_freely(env, kernel, (conv_kind){.family = "winograd", .winograd = true}, variant,
                       WINOGRAD_VARIANTS);
}

graft_status graft_cpu_open_conv_apart(graft_env *env, graft_kernel *kernel, uint32_t variant)
{
    const bool active = graft_signature_activation(&kernel->signature) != GRAFT_ACT_NONE;
    return open_freely(env, kernel, (conv_kind){.family = "apart", .apart = true}, variant,
                       active ? 1 : 0);
}
