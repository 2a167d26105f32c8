/* trial.c - one signature being measured (see trial.h, measure.h). */
#include "cost/measure/trial.h"

#include "cost/measure/clock.h"
#include "graph/base/log.h"
#include "graph/base/rng.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, MOST_COPIES = 1 << 15, FEW_COPIES = 4, DATA_SEED = 17 };
enum { GUARD_BYTES = 1024, GUARD_BYTE = 0xa5 };
enum { LEAST_PASSED_BYTES = 1 << 14 };
enum { QUALIFY_RUNS = 3, DISCARDED_MOST = 5, MOST_RUNS = 1000000 };

/* A contestant this much slower than the best at first sight, or after some rounds, will not win.
 */
static const double slow_factor = 1.25;
/* Weights are near at first sight: where they will come from memory, the order may change. */
static const double far_slow_factor = 1.6;
static const double behind_factor = 1.06;
static const uint64_t qualify_ns = 200000;
/* Part of a batch that is run beforehand and thrown away. */
static const double discarded_part = 0.25;
/* Results further apart than this, relative to the largest, are not roundings. */
static const float wrong_difference = 0.02F;

/* -------------------------------------------------------------------- data */

static graft_status allocate(graft_env *env, graft_trial *trial, size_t bytes, void **memory)
{
    size_t size = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *memory = aligned_alloc(ALIGNMENT, size + GUARD_BYTES);
    if (*memory == NULL) {
        return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for a tensor of %zu bytes", bytes);
    }
    assert(trial->guard_count < GRAFT_TRIAL_BLOCKS);
    trial->guards[trial->guard_count] = (unsigned char *)*memory + size;
    memset(trial->guards[trial->guard_count++], GUARD_BYTE, GUARD_BYTES);
    trial->bytes += size;
    return GRAFT_OK;
}

/* Whether nobody has written behind a block; makes the guards whole again. */
static bool check_guards(const graft_trial *trial)
{
    bool whole = true;
    for (uint32_t i = 0; i < trial->guard_count; i++) {
        for (uint32_t b = 0; b < GUARD_BYTES; b++) {
            whole = whole && trial->guards[i][b] == GUARD_BYTE;
        }
        memset(trial->guards[i], GUARD_BYTE, GUARD_BYTES);
    }
    return whole;
}

/* A few thousand normal numbers, repeated from a place that differs per tensor: normal enough for
 * timing, and quick. Radicands are kept away from 0. */
static void fill_tensor(float *data, size_t count, uint32_t k, bool positive)
{
    enum { DRAWN = 4093 };
    float drawn[DRAWN];
    graft_rng rng;
    graft_rng_derive(&rng, DATA_SEED, k);
    for (size_t i = 0; i < DRAWN; i++) {
        float x = (float)graft_rng_normal(&rng);
        drawn[i] = positive ? fabsf(x) + 0.5F : (fabsf(x) < 1e-3F ? 1e-3F : x);
    }
    for (size_t i = 0; i < count; i++) {
        data[i] = drawn[i % DRAWN];
    }
}

/* 1 and -1. */
static void keep_signs(float *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        data[i] = copysignf(1.0F, data[i]);
    }
}

static size_t align_count(size_t count)
{
    enum { UNIT = ALIGNMENT / sizeof(float) };
    return (count + UNIT - 1) / UNIT * UNIT;
}

/* Whether the result of a run can be the first input of the next one. Products are left alone:
 * their numbers would soon be infinite. */
static bool can_pass_on(const graft_signature *s, const graft_shape *outputs)
{
    return !graft_signature_is_product(s) && s->output_count == 1 && (s->const_mask & 1U) == 0 &&
           graft_shape_equal(&s->inputs[0], &outputs[0]) && s->in_layouts[0] == s->out_layouts[0] &&
           graft_shape_bytes(&outputs[0]) >= LEAST_PASSED_BYTES;
}

/* Scales and divisors, by which results that are passed on would grow or vanish. */
static bool multiplies(const graft_signature *s, uint32_t k)
{
    return k == 1 && (s->op == GRAFT_OP_mul || s->op == GRAFT_OP_div ||
                      s->op == GRAFT_OP_scale_shift || s->op == GRAFT_OP_rms_norm);
}

static void fill_input(const graft_trial *trial, uint32_t k)
{
    const graft_signature *s = trial->signature;
    size_t count = align_count((size_t)graft_shape_elements(&s->inputs[k]));
    fill_tensor(trial->inputs[k], count, k, s->op == GRAFT_OP_sqrt);
    if (multiplies(s, k)) {
        keep_signs(trial->inputs[k], count);
    }
}

static graft_status fill_operands(graft_env *env, graft_trial *trial)
{
    const graft_signature *s = trial->signature;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    void *memory = NULL;
    if (graft_signature_outputs(s, outputs) != GRAFT_OK) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the operands of a signature do not fit together");
    }
    trial->passes_on = can_pass_on(s, outputs);
    for (uint32_t k = 0; k < s->input_count; k++) {
        size_t count = align_count((size_t)graft_shape_elements(&s->inputs[k]));
        GRAFT_PASS(allocate(env, trial, count * sizeof(float), &memory));
        trial->inputs[k] = memory;
        fill_input(trial, k);
    }
    for (uint32_t k = 0; k < s->output_count; k++) {
        trial->output_counts[k] = (size_t)graft_shape_elements(&outputs[k]);
        size_t bytes = align_count(trial->output_counts[k]) * sizeof(float);
        GRAFT_PASS(allocate(env, trial, bytes, &memory));
        trial->outputs[k] = memory;
        memset(memory, 0, bytes);
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------- life of a trial */

/* How many copies of weights, and how far apart: see graft_kernel_copy_weights. */
typedef struct {
    uint32_t count;
    double part;
    size_t bytes; /* Of all. */
} copy_plan;

/* What comes from memory does so in the form that the implementation has packed it into, which may
 * be several times as large as the weights. Few copies overlap, so that they take what is wanted
 * and not half as much again. */
static copy_plan plan_copies(const graft_signature *s, const graft_kernel *kernel)
{
    size_t bytes = 0;
    for (uint32_t k = 0; k < s->input_count; k++) {
        size_t size = (size_t)graft_shape_bytes(&s->inputs[k]);
        size_t lines = (size + ALIGNMENT - 1) / ALIGNMENT;
        bytes += (s->const_mask >> k & 1u) != 0 ? lines * ALIGNMENT : 0;
    }
    if (s->distance == GRAFT_DISTANCE_MEMORY) {
        size_t packed = graft_kernel_facts_of(kernel)->packed_bytes;
        bytes = packed > bytes ? packed : bytes;
    }
    size_t wanted = graft_distance_copies_bytes(s->distance);
    copy_plan plan = {.count = 1, .part = 1.0, .bytes = bytes};
    if (bytes == 0 || wanted <= bytes) {
        return plan;
    }
    if (wanted < FEW_COPIES * bytes) {
        plan.count = (uint32_t)((wanted + bytes - 1) / bytes);
        plan.part = (double)(wanted - bytes) / (double)bytes / (double)(plan.count - 1);
        plan.bytes = wanted;
        return plan;
    }
    size_t count = (wanted + bytes / 2) / bytes;
    plan.count = (uint32_t)(count > MOST_COPIES ? MOST_COPIES : count);
    plan.bytes = plan.count * bytes;
    return plan;
}

static graft_status open_contestants(graft_env *env, graft_trial *trial, const char *only,
                                     double *samples, uint32_t rounds_most)
{
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    const float *constants[GRAFT_MAX_INPUTS] = {NULL};
    uint32_t count = 0;
    size_t workspace = 0;
    for (uint32_t k = 0; k < trial->signature->input_count; k++) {
        constants[k] = trial->inputs[k];
    }
    GRAFT_PASS(graft_kernel_list(env, trial->device, trial->signature, names, &count));
    for (uint32_t i = 0; i < count; i++) {
        graft_contestant *c = &trial->contestants[trial->contestant_count];
        if (only != NULL && strcmp(names[i].text, only) != 0) {
            continue;
        }
        graft_status status = graft_kernel_open(env, trial->device, trial->signature, names[i].text,
                                                constants, &c->kernel);
        if (status == GRAFT_UNSUPPORTED) { /* Listed, but it cannot be created: not a candidate. */
            graft_env_clear(env);
            continue;
        }
        GRAFT_PASS(status);
        memcpy(c->name, names[i].text, sizeof(c->name));
        c->samples = samples + (size_t)trial->contestant_count * 2 * rounds_most;
        c->factors = c->samples + rounds_most;
        trial->contestant_count++;
        size_t bytes = graft_kernel_facts_of(c->kernel)->workspace_bytes;
        workspace = bytes > workspace ? bytes : workspace;
    }
    GRAFT_PASS(allocate(env, trial, workspace, &trial->workspace));
    memset(trial->workspace, 0, workspace);
    return GRAFT_OK;
}

/* `turned`: the first input and the result have changed places. */
static graft_status bind_operands(graft_env *env, const graft_trial *trial, graft_kernel *kernel,
                                  bool turned)
{
    const float *inputs[GRAFT_MAX_INPUTS] = {NULL};
    float *outputs[GRAFT_MAX_OUTPUTS] = {NULL};
    for (uint32_t k = 0; k < trial->signature->input_count; k++) {
        inputs[k] = trial->inputs[k];
    }
    for (uint32_t k = 0; k < trial->signature->output_count; k++) {
        outputs[k] = trial->outputs[k];
    }
    if (turned) {
        inputs[0] = trial->outputs[0];
        outputs[0] = trial->inputs[0];
    }
    if (trial->signature->in_place != 0) {
        inputs[3] = outputs[0];
    }
    return graft_kernel_bind(env, kernel, inputs, outputs, trial->workspace);
}

graft_status graft_trial_open(graft_env *env, graft_device *device,
                              const graft_signature *signature, const char *only, double *samples,
                              uint32_t rounds_most, graft_trial *trial)
{
    memset(trial, 0, sizeof(*trial));
    trial->signature = signature;
    trial->device = device;
    GRAFT_PASS(fill_operands(env, trial));
    GRAFT_PASS(open_contestants(env, trial, only, samples, rounds_most));
    for (uint32_t i = 0; i < trial->contestant_count; i++) {
        GRAFT_PASS(bind_operands(env, trial, trial->contestants[i].kernel, false));
    }
    return GRAFT_OK;
}

bool graft_kernel_is_direct(const char *name)
{
    return strncmp(name, "winograd:", 9) != 0 && strncmp(name, "blocked:", 8) != 0 &&
           strncmp(name, "panels:", 7) != 0 && strncmp(name, "apart:", 6) != 0;
}

void graft_trial_restrict(graft_trial *trial)
{
    bool any = false;
    for (uint32_t i = 0; i < trial->contestant_count; i++) {
        any = any || graft_kernel_is_direct(trial->contestants[i].name);
    }
    for (uint32_t i = 0; i < trial->contestant_count && any; i++) {
        trial->contestants[i].dropped = !graft_kernel_is_direct(trial->contestants[i].name);
    }
}

void graft_trial_close(graft_trial *trial)
{
    for (uint32_t i = 0; i < trial->contestant_count; i++) {
        graft_kernel_close(trial->contestants[i].kernel);
    }
    for (uint32_t k = 0; k < GRAFT_MAX_INPUTS; k++) {
        free(trial->inputs[k]);
    }
    for (uint32_t k = 0; k < GRAFT_MAX_OUTPUTS; k++) {
        free(trial->outputs[k]);
    }
    free(trial->workspace);
    memset(trial, 0, sizeof(*trial));
}

/* ------------------------------------------------------------------- timing */

static graft_status run_batch(graft_env *env, graft_trial *trial, graft_kernel *kernel,
                              uint32_t runs, double *run_ns)
{
    uint32_t threads = graft_device_threads(trial->device);
    uint64_t start_ns = graft_cost_clock_ns(threads);
    for (uint32_t i = 0; i < runs; i++) {
        graft_kernel_turn(kernel);
        if (trial->passes_on) {
            trial->turned = !trial->turned;
            GRAFT_PASS(bind_operands(env, trial, kernel, trial->turned));
        }
        GRAFT_PASS(graft_kernel_run(env, kernel));
    }
    *run_ns = (double)(graft_cost_clock_ns(threads) - start_ns) / (double)runs;
    return GRAFT_OK;
}

/* The same for all; the residual of an in-place signature is its output. */
static void reset_operands(graft_trial *trial)
{
    if (trial->passes_on) {
        fill_input(trial, 0); /* Which other runs have written to, */
        trial->turned = true; /* and the next one reads. */
    }
    for (uint32_t k = 0; k < trial->signature->output_count; k++) {
        memset(trial->outputs[k], 0, trial->output_counts[k] * sizeof(float));
    }
}

static bool agrees(const graft_trial *trial, float *const *expected)
{
    float largest = 0.0F;
    float furthest = 0.0F;
    for (uint32_t k = 0; k < trial->signature->output_count; k++) {
        assert(expected[k] != NULL);
        for (size_t i = 0; i < trial->output_counts[k]; i++) {
            float difference = fabsf(trial->outputs[k][i] - expected[k][i]);
            largest = fmaxf(largest, fabsf(expected[k][i]));
            furthest = difference > furthest || isnan(difference) ? difference : furthest;
        }
    }
    return furthest <= wrong_difference * largest; /* False for NaN. */
}

/* Compares a first run with the first contestant's. The fault would be the library's. */
static graft_status check_result(graft_env *env, graft_trial *trial, graft_contestant *contestant,
                                 float **expected)
{
    reset_operands(trial);
    GRAFT_PASS(bind_operands(env, trial, contestant->kernel, false));
    GRAFT_PASS(graft_kernel_run(env, contestant->kernel));
    if (expected[0] != NULL) {
        contestant->dropped = !agrees(trial, expected);
        if (contestant->dropped) {
            graft_log(env, 1, "implementation %s gives other results than %s: not used",
                      contestant->name, trial->contestants[0].name);
        }
        return GRAFT_OK;
    }
    for (uint32_t k = 0; k < trial->signature->output_count; k++) {
        expected[k] = GRAFT_NEW(env->scratch, float, trial->output_counts[k]);
        memcpy(expected[k], trial->outputs[k], trial->output_counts[k] * sizeof(float));
    }
    return GRAFT_OK;
}

static graft_status look_at(graft_env *env, graft_trial *trial, graft_contestant *contestant)
{
    double run_ns = 0.0;
    GRAFT_PASS(run_batch(env, trial, contestant->kernel, 1, &contestant->run_ns));
    uint32_t runs = (uint32_t)((double)qualify_ns / (contestant->run_ns + 1.0)) / QUALIFY_RUNS + 1;
    for (uint32_t i = 0; i < QUALIFY_RUNS; i++) {
        GRAFT_PASS(run_batch(env, trial, contestant->kernel, runs, &run_ns));
        contestant->run_ns = fmin(contestant->run_ns, run_ns);
    }
    return GRAFT_OK;
}

graft_status graft_trial_qualify(graft_env *env, graft_trial *trial)
{
    GRAFT_SCOPED(env->scratch);
    float *expected[GRAFT_MAX_OUTPUTS] = {NULL};
    double best_ns = (double)INFINITY;
    for (uint32_t i = 0; i < trial->contestant_count; i++) {
        graft_contestant *c = &trial->contestants[i];
        if (!c->dropped) {
            GRAFT_PASS(check_result(env, trial, c, expected));
        }
        if (!c->dropped) {
            GRAFT_PASS(look_at(env, trial, c));
        }
        if (!check_guards(trial)) {
            c->dropped = true;
            graft_log(env, 1, "implementation %s writes past its operands: not used", c->name);
        }
        best_ns = c->dropped ? best_ns : fmin(best_ns, c->run_ns);
    }
    for (uint32_t i = 0; i < trial->contestant_count; i++) {
        graft_contestant *c = &trial->contestants[i];
        bool far = trial->signature->distance == GRAFT_DISTANCE_MEMORY;
        c->dropped = c->dropped || c->run_ns > best_ns * (far ? far_slow_factor : slow_factor);
        if (!c->dropped) {
            const copy_plan plan = plan_copies(trial->signature, c->kernel);
            trial->bytes += plan.bytes;
            GRAFT_PASS(graft_kernel_copy_weights(env, c->kernel, plan.count, plan.part));
        }
    }
    reset_operands(trial);
    return GRAFT_OK;
}

/* What a run takes as far as is known, and at least what no processor is faster than: while a
 * virtual machine is moved its clock may stand still, and after a run of 0 ns batches would be of a
 * million. */
static double expect_ns(const graft_trial *trial, const graft_contestant *contestant)
{
    static const double most_per_ns = 1e4; /* Operations and bytes. */
    uint64_t work =
        graft_signature_flops(trial->signature) + graft_signature_bytes(trial->signature);
    return fmax(contestant->run_ns, fmax(1.0, (double)work / most_per_ns));
}

static graft_status time_slices(graft_env *env, graft_trial *trial, graft_contestant *contestant,
                                graft_slices *slices)
{
    double runs = ceil((double)GRAFT_SLICE_NS / expect_ns(trial, contestant));
    double run_ns = 0.0;
    while (graft_slices_want_more(slices)) {
        GRAFT_PASS(
            run_batch(env, trial, contestant->kernel, (uint32_t)fmin(runs, MOST_RUNS), &run_ns));
        graft_slices_add(slices, run_ns, fmin(runs, MOST_RUNS));
    }
    return GRAFT_OK;
}

graft_status graft_trial_round(graft_env *env, graft_trial *trial, graft_contestant *contestant,
                               uint64_t batch_ns, graft_anchor *anchor)
{
    double wanted = (double)batch_ns / expect_ns(trial, contestant);
    double discarded = fmin(wanted * discarded_part + 1.0, DISCARDED_MOST);
    double run_ns = 0.0;
    double factor = 1.0;
    if (trial->signature->distance != GRAFT_DISTANCE_MEMORY) {
        graft_kernel_recall(contestant->kernel); /* Other contestants' took their places. */
    }
    GRAFT_PASS(run_batch(env, trial, contestant->kernel, (uint32_t)discarded, &run_ns));
    if (anchor != NULL) {
        graft_slices slices;
        graft_slices_begin(&slices, anchor, (double)batch_ns);
        GRAFT_PASS(time_slices(env, trial, contestant, &slices));
        run_ns = graft_slices_result(&slices, &factor);
    } else {
        uint32_t runs = (uint32_t)fmin(ceil(wanted), MOST_RUNS);
        GRAFT_PASS(run_batch(env, trial, contestant->kernel, runs, &run_ns));
    }
    contestant->factors[contestant->sample_count] = factor;
    contestant->samples[contestant->sample_count++] = run_ns;
    contestant->run_ns = fmin(contestant->run_ns, fmax(run_ns, 1.0));
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- result */

int graft_compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, uint32_t count, double part)
{
    double place = part * (double)(count - 1);
    uint32_t below = (uint32_t)place;
    uint32_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

double graft_cost_quantile(double *samples, uint32_t count, double part)
{
    qsort(samples, count, sizeof(samples[0]), graft_compare_doubles);
    return quantile(samples, count, part);
}

void graft_cost_median(double *samples, uint32_t count, double *median, double *spread)
{
    qsort(samples, count, sizeof(samples[0]), graft_compare_doubles);
    *median = quantile(samples, count, 0.5);
    *spread = quantile(samples, count, 0.75) - quantile(samples, count, 0.25);
}

uint32_t graft_trial_quiet_rounds(const graft_trial *trial)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < trial->contestant_count; i++) {
        const graft_contestant *c = &trial->contestants[i];
        uint32_t count = graft_anchor_quiet(c->factors, c->sample_count);
        least = !c->dropped && count < least ? count : least;
    }
    return least;
}

void graft_trial_prune(graft_arena *scratch, graft_trial *trial)
{
    double medians[GRAFT_KERNEL_MOST];
    double best_ns = (double)INFINITY;
    double spread = 0.0;
    for (uint32_t i = 0; i < trial->contestant_count; i++) {
        medians[i] = (double)INFINITY;
        if (!trial->contestants[i].dropped) {
            (void)graft_anchor_summarise(scratch, trial->contestants[i].samples,
                                         trial->contestants[i].factors,
                                         trial->contestants[i].sample_count, &medians[i], &spread);
        }
        best_ns = fmin(best_ns, medians[i]);
    }
    for (uint32_t i = 0; i < trial->contestant_count; i++) {
        graft_contestant *c = &trial->contestants[i];
        c->dropped = c->dropped || (c->sample_count > 0 && medians[i] > best_ns * behind_factor);
    }
}

void graft_trial_finish(graft_arena *scratch, const graft_trial *trial, uint32_t least_rounds,
                        graft_cost_entry *entry)
{
    double best_ns = (double)INFINITY;
    memset(entry, 0, sizeof(*entry));
    for (uint32_t i = 0; i < trial->contestant_count; i++) {
        const graft_contestant *c = &trial->contestants[i];
        double median = 0.0;
        double spread = 0.0;
        if (c->dropped || c->sample_count < least_rounds || c->sample_count == 0) {
            continue;
        }
        uint32_t rounds = graft_anchor_summarise(scratch, c->samples, c->factors, c->sample_count,
                                                 &median, &spread);
        if (median < best_ns) {
            best_ns = median;
            *entry = graft_cost_measured(trial->signature, median, spread, rounds, c->name);
        }
    }
}
