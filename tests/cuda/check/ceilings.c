/* ceilings.c - what the GPU can do at most, and how near to it kernels come.
 *
 * Ceilings: the bandwidth of a copy of 1 GiB by our own kernel (bytes read and written), and the
 * rate of a product of matrices of 8192 rows and columns in each type. Movement and elementwise
 * operators on more than 64 MB should reach 80 % of the first. */
#include "tests/cuda/check/check.h"

#include "cost/measure.h"

#include <string.h>

enum { ROUNDS = 7, FOUR_BYTES = 2 }; /* Types below this have 4 bytes. */

static const double wanted_part = 0.8;

static const char *const moved[] = {
    "add() f32[1,64,1024,512]@nhwc f32[1,64,1024,512]@nhwc -> nhwc",
    "add() f32[65536,768]@row f32[768]@const -> row",
    "relu() f32[1,64,1024,512]@nhwc -> nhwc",
    "gelu() f32[65536,768]@row -> row",
    "scale_shift() f32[1,64,1024,512]@nhwc f32[64]@const f32[64]@const -> nhwc",
    "concat(axis=1) f32[1,64,512,512]@nhwc f32[1,64,512,512]@nhwc -> nhwc",
    "split(axis=1, at=64) f32[1,128,512,512]@nhwc -> nhwc nhwc",
    "slice(axis=1, start=32, end=128) f32[1,128,512,512]@nhwc -> nhwc",
    "pad(axis=2, before=8, after=8, value=0x00000000) f32[1,128,512,512]@nhwc -> nhwc",
    "transpose(axis_0=1, axis_1=0, axis_2=0, axis_3=0, axis_4=0, axis_5=0) f32[8192,8192]@row -> "
    "row",
    "reorder() f32[8,128,256,256]@row -> nhwc",
    "softmax(axis=1) f32[65536,1024]@row -> row",
    "layer_norm(epsilon=0x3727c5ac) f32[65536,768]@row f32[768]@const f32[768]@const -> row",
    "reduce_mean(axes=2, keep=1) f32[65536,1024]@row -> row",
    "max_pool(kernel_h=2, kernel_w=2, stride_h=2, stride_w=2, pad_top=0, pad_left=0, pad_bottom=0, "
    "pad_right=0, dilation_h=1, dilation_w=1) f32[8,128,256,256]@nhwc -> nhwc",
};

/* Heavy operators of the zoo: what is chosen among a few engines against the best of all that cuDNN
 * proposes for them (as many as are listed with the option "wide"). */
static const char *const heavy[] = {
    "conv_bias(stride_h=1, stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, "
    "dilation_h=1, dilation_w=1, groups=1, activation=1) f32[1,64,56,56]@nhwc "
    "f32[64,64,3,3]@const f32[64]@const -> nhwc",
    "conv(stride_h=1, stride_w=1, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1, dilation_h=1, "
    "dilation_w=1, groups=1) f32[1,256,14,14]@nhwc f32[256,256,3,3]@const -> nhwc",
    "conv(stride_h=1, stride_w=1, pad_top=0, pad_left=0, pad_bottom=0, pad_right=0, dilation_h=1, "
    "dilation_w=1, groups=1) f32[1,1024,14,14]@nhwc f32[2048,1024,1,1]@const -> nhwc",
    "conv(stride_h=2, stride_w=2, pad_top=3, pad_left=3, pad_bottom=3, pad_right=3, dilation_h=1, "
    "dilation_w=1, groups=1) f32[1,3,224,224]@nhwc f32[64,3,7,7]@const -> nhwc",
    "matmul() f32[1,128,768]@row f32[768,3072]@const -> row",
    "matmul_bias(activation=0) f32[1,2048]@row f32[2048,1000]@const f32[1000]@const -> row",
};

static const double wanted_engine = 1.05;

static graft_status measure_text(check_run *run, graft_device *device, const char *text,
                                 graft_cost_entry *entry)
{
    graft_status status = GRAFT_OK;
    graft_signature signature;
    const graft_measure_options options = {.rounds = ROUNDS, .batch_ns = 2000000, .quiet = true};
    GRAFT_CHECK(graft_signature_parse(run->env, text, &signature));
    GRAFT_CHECK(graft_measure(run->env, device, &signature, 1, &options, entry));
done:
    return status;
}

/* What one signature reaches; `part` is that of the copy bandwidth, 0 for a product. */
typedef struct {
    const char *text;
    double rate;
    double part;
} reached;

static void print_rate(check_run *run, FILE *file, uint32_t type, const graft_cost_entry *entry,
                       const reached *what)
{
    graft_json json;
    graft_json_begin(&json, run->env->scratch);
    graft_json_string(&json, "signature", what->text);
    graft_json_string(&json, "type", check_types[type]);
    graft_json_string(&json, "implementation", entry->implementation);
    graft_json_number(&json, "ns", entry->median_ns);
    graft_json_number(&json, "spread_ns", entry->spread_ns);
    graft_json_number(&json, what->part > 0.0 ? "gb_per_s" : "rate", what->rate);
    if (what->part > 0.0) {
        graft_json_number(&json, "part_of_copy", what->part);
    }
    check_line(run, &json, file);
}

/* Bytes as the type stores them: signatures count binary32. */
static double real_bytes(const graft_cost_entry *entry, uint32_t type)
{
    return (double)entry->bytes * (type < FOUR_BYTES ? 1.0 : 0.5);
}

static graft_status check_type(check_run *run, graft_device *device, uint32_t type, FILE *file)
{
    static const char copy[] = "identity() f32[134217728]@row -> row";
    static const char product[] = "matmul() f32[8192,8192]@row f32[8192,8192]@const -> row";
    graft_status status = GRAFT_OK;
    graft_cost_entry entry = {.rounds = 0};
    GRAFT_CHECK(measure_text(run, device, copy, &entry));
    double copied = real_bytes(&entry, type) / entry.median_ns;
    print_rate(run, file, type, &entry, &(reached){copy, copied, 1.0});
    GRAFT_CHECK(measure_text(run, device, product, &entry));
    print_rate(run, file, type, &entry,
               &(reached){product, (double)entry.flops / entry.median_ns, 0.0});
    (void)fprintf(stderr, "gpu-check: %s: copies %.0f GB/s, products %.1f TFLOP/s\n",
                  check_types[type], copied, (double)entry.flops / entry.median_ns / 1e3);
    for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++) {
        status = measure_text(run, device, moved[i], &entry);
        if (status != GRAFT_OK) {
            check_fail(run, "%s: %s", check_types[type], moved[i]);
            check_probe(run, device);
            continue;
        }
        double rate = real_bytes(&entry, type) / entry.median_ns;
        print_rate(run, file, type, &entry, &(reached){moved[i], rate, rate / copied});
        if (rate < wanted_part * copied) {
            (void)fprintf(stderr, "gpu-check: slow: %s %s: %.0f %% of the copy bandwidth\n",
                          check_types[type], moved[i], 100.0 * rate / copied);
        }
    }
    status = GRAFT_OK;
done:
    return status;
}

/* How much longer the choice takes than the best of the wide list. */
static graft_status check_engines(check_run *run, graft_device *device, uint32_t type, FILE *file)
{
    graft_status status = GRAFT_OK;
    graft_device *wide = NULL;
    graft_cost_entry chosen = {.rounds = 0};
    graft_cost_entry best = {.rounds = 0};
    graft_json json;
    GRAFT_CHECK(check_open(run, check_types[type], ",wide", &wide));
    for (size_t i = 0; i < sizeof(heavy) / sizeof(heavy[0]); i++) {
        GRAFT_CHECK(measure_text(run, device, heavy[i], &chosen));
        GRAFT_CHECK(measure_text(run, wide, heavy[i], &best));
        double ratio = chosen.median_ns / best.median_ns;
        graft_json_begin(&json, run->env->scratch);
        graft_json_string(&json, "signature", heavy[i]);
        graft_json_string(&json, "type", check_types[type]);
        graft_json_string(&json, "chosen", chosen.implementation);
        graft_json_number(&json, "chosen_ns", chosen.median_ns);
        graft_json_string(&json, "best", best.implementation);
        graft_json_number(&json, "best_ns", best.median_ns);
        check_line(run, &json, file);
        if (ratio > wanted_engine) {
            (void)fprintf(stderr, "gpu-check: %s: %.0f %% behind the best engine: %s\n",
                          check_types[type], 100.0 * (ratio - 1.0), heavy[i]);
        }
    }
done:
    graft_device_close(wide);
    return status;
}

graft_status check_ceilings(check_run *run)
{
    graft_status status = GRAFT_OK;
    FILE *file = NULL;
    graft_device *device = NULL;
    GRAFT_CHECK(check_file(run, "ceilings.jsonl", &file));
    for (uint32_t type = 0; type < CHECK_TYPES && !check_cut(run, type, CHECK_TYPES); type++) {
        if (!check_begin(run, type)) {
            continue;
        }
        GRAFT_CHECK(check_open(run, check_types[type], "", &device));
        if (check_type(run, device, type, file) != GRAFT_OK) {
            check_fail(run, "ceilings of %s", check_types[type]);
            check_probe(run, device);
        }
        if (!run->progress->is_lost && check_engines(run, device, type, file) != GRAFT_OK) {
            check_fail(run, "engines of %s", check_types[type]);
            check_probe(run, device);
        }
        graft_device_close(device);
        device = NULL;
    }
done:
    graft_device_close(device);
    if (file != NULL) {
        (void)fclose(file);
    }
    return status;
}
