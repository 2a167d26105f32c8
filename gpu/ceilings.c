/* ceilings.c - what the GPU can do at most, and how near to it kernels come.
 *
 * Ceilings: the bandwidth of a copy of 1 GiB by our own kernel (bytes read and written), and the
 * rate of a product of matrices of 8192 rows and columns in each type. Movement and elementwise
 * operators on more than 64 MB should reach 80 % of the first. */
#include "gpu/check.h"

#include "cost/device/backend.h"
#include "cost/measure/measure.h"

enum { ROUNDS = 7 };

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

/* Heavy operators of the zoo: what is chosen among a few engines against the best that is listed
 * with the option "wide", which is the best of all only where the list is not full; and the same
 * with weights that the cache keeps. */
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

static const char copy[] = "identity() f32[134217728]@row -> row";
static const char product[] = "matmul() f32[8192,8192]@row f32[8192,8192]@const -> row";

enum {
    MOVED_COUNT = sizeof(moved) / sizeof(moved[0]),
    HEAVY_COUNT = sizeof(heavy) / sizeof(heavy[0]),
    ITEMS = 2 + MOVED_COUNT + HEAVY_COUNT /* Of a type. */
};

/* The devices of one type. */
typedef struct {
    check_run *run;
    const check_type *type;
    FILE *file;
    graft_device *device;
    graft_device *wide;
    graft_device *warm;
    double copied; /* GB/s; 0: not measured yet. */
} subject;

/* Of a GPU that is not here, what can be planned; nothing is measured. */
static graft_status plan_text(subject *t, const char *text)
{
    graft_signature signature;
    GRAFT_PASS(graft_signature_parse(t->run->env, text, &signature));
    const char *planned = check_plan(t->run, t->device, &signature, NULL);
    if (planned == NULL) {
        return GRAFT_UNSUPPORTED;
    }
    graft_json_print(t->run->env->scratch, t->file, "signature=%s type=%s planned=%s", text,
                     t->type->name, planned);
    return GRAFT_OK;
}

static graft_status measure_text(subject *t, graft_device *device, const char *text,
                                 graft_cost_entry *entry)
{
    graft_signature signature;
    const graft_measure_options options = {.rounds = ROUNDS, .batch_ns = 2000000, .quiet = true};
    (void)check_late(t->run);
    GRAFT_PASS(graft_signature_parse(t->run->env, text, &signature));
    return graft_measure(t->run->env, device, &signature, 1, &options, entry);
}

/* Bytes as the type stores them: signatures count binary32. */
static double real_bytes(const graft_cost_entry *entry, cuda_type type)
{
    return (double)entry->bytes * (double)cuda_type_bytes(type) / 4.0;
}

static void begin_line(subject *t, graft_json *json, const char *text,
                       const graft_cost_entry *entry)
{
    graft_json_begin(json, t->run->env->scratch);
    graft_json_add(json, "signature=%s type=%s implementation=%s ns=%g spread_ns=%g", text,
                   t->type->name, entry->implementation, entry->median_ns, entry->spread_ns);
}

/* The rate of a copy, of a product, or of what moves, which is set beside the copy's. */
static graft_status check_rate(subject *t, const char *text)
{
    const bool moves = text != copy && text != product;
    const char *unit = text == product ? "tflop_per_s" : "gb_per_s";
    graft_cost_entry entry = {.rounds = 0};
    graft_json json;
    GRAFT_PASS(measure_text(t, t->device, text, &entry));
    double rate = text == product ? (double)entry.flops / entry.median_ns / 1e3
                                  : real_bytes(&entry, t->type->type) / entry.median_ns;
    t->copied = text == copy ? rate : t->copied;
    begin_line(t, &json, text, &entry);
    graft_json_number(&json, unit, rate);
    if (moves) {
        graft_json_number(&json, "part_of_copy", rate / t->copied);
    }
    graft_json_end(&json, t->file);
    if (!moves) {
        (void)fprintf(stderr, "gpu-check: %s: %s %.*f %s\n", t->type->name,
                      text == copy ? "copies" : "products", text == copy ? 0 : 1, rate,
                      text == copy ? "GB/s" : "TFLOP/s");
    } else if (rate < wanted_part * t->copied) {
        (void)fprintf(stderr, "gpu-check: slow: %s %s: %.0f %% of the copy bandwidth\n",
                      t->type->name, text, 100.0 * rate / t->copied);
    }
    return GRAFT_OK;
}

/* Whether the wide list has room left: all engines are in it then. */
static graft_status has_all_engines(subject *t, const char *text, bool *all)
{
    graft_signature signature;
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    GRAFT_PASS(graft_signature_parse(t->run->env, text, &signature));
    GRAFT_PASS(graft_kernel_list(t->run->env, t->wide, &signature, names, &count));
    *all = count + 1 < GRAFT_KERNEL_MOST;
    return GRAFT_OK;
}

/* How much longer the choice takes than the best of the wide list, and than with warm weights. */
static graft_status check_heavy(subject *t, const char *text)
{
    graft_cost_entry chosen = {.rounds = 0};
    graft_cost_entry best = {.rounds = 0};
    graft_cost_entry warm = {.rounds = 0};
    graft_json json;
    bool all = false;
    GRAFT_PASS(measure_text(t, t->device, text, &chosen));
    GRAFT_PASS(measure_text(t, t->wide, text, &best));
    GRAFT_PASS(measure_text(t, t->warm, text, &warm));
    GRAFT_PASS(has_all_engines(t, text, &all));
    begin_line(t, &json, text, &chosen);
    graft_json_add(&json, "warm_ns=%g warm=%s", warm.median_ns, warm.implementation);
    graft_json_string(&json, all ? "best_of_all" : "best_of_a_cut_list", best.implementation);
    graft_json_number(&json, all ? "best_of_all_ns" : "best_of_a_cut_list_ns", best.median_ns);
    graft_json_end(&json, t->file);
    double ratio = chosen.median_ns / best.median_ns;
    if (ratio > wanted_engine) {
        (void)fprintf(stderr, "gpu-check: %s: %.0f %% behind the best engine%s: %s\n",
                      t->type->name, 100.0 * (ratio - 1.0), all ? "" : " of a cut list", text);
    }
    return GRAFT_OK;
}

static const char *item_text(uint32_t item)
{
    return item == 0                ? copy
           : item == 1              ? product
           : item < 2 + MOVED_COUNT ? moved[item - 2]
                                    : heavy[item - 2 - MOVED_COUNT];
}

static graft_status check_item(subject *t, uint32_t item)
{
    if (!graft_device_present(t->device)) {
        return plan_text(t, item_text(item));
    }
    if (item >= 2 + MOVED_COUNT) {
        return check_heavy(t, item_text(item));
    }
    if (item != 1 && t->copied <= 0.0) { /* Once by each process that needs it. */
        GRAFT_PASS(check_rate(t, copy));
    }
    return item == 0 ? GRAFT_OK : check_rate(t, item_text(item));
}

static graft_status open_type(subject *t)
{
    GRAFT_PASS(check_open(t->run, t->type->name, "", &t->device));
    GRAFT_PASS(check_open(t->run, t->type->name, ",wide", &t->wide));
    return check_open(t->run, t->type->name, ",warm", &t->warm);
}

static graft_status check_one_type(check_run *run, check_part part, void *context)
{
    graft_status status = GRAFT_OK;
    subject t = {.run = run, .type = part.type, .file = part.file};
    (void)context;
    if (run->progress->next >= part.first + ITEMS) {
        return GRAFT_OK;
    }
    GRAFT_CHECK(open_type(&t));
    for (uint32_t i = 0; i < ITEMS && !run->progress->is_lost; i++) {
        uint32_t item = part.first + i;
        if (check_cut(run, item, CHECK_TYPES * ITEMS)) {
            break;
        }
        if (check_begin(run, item) && check_item(&t, i) != GRAFT_OK) {
            check_fail(run, "%s: %s", t.type->name, item_text(i));
            check_probe(run, t.device);
        }
    }
done:
    graft_device_close(t.device);
    graft_device_close(t.wide);
    graft_device_close(t.warm);
    return status;
}

graft_status check_ceilings(check_run *run)
{
    return check_each_type(run, "ceilings.jsonl", ITEMS, check_one_type, NULL);
}
