/* measure_cuda.c - how long operators take on a GPU (see measure.h for what is asked).
 *
 * Each signature by itself: a GPU that runs nothing else is quiet. Its implementations are run once
 * on outputs full of NaN and compared with the float reference (arbiter.h) and with each other;
 * those that fail, are wrong, or are clearly slower at first sight drop out. The rest take turns in
 * rounds, each a batch between two events, after a warm-up, replayed as a CUDA graph so that gaps
 * between launches do not count (device_cuda.c). Weights are cold: a replay reads one copy after
 * the other, as many as exceed twice the second-level cache, up to TURNS_MOST; with the device's
 * option "warm" there is one copy. The fastest median stands for the signature. */
#include "cost/cuda/arbiter.h"
#include "cost/cuda/device_cuda.h"

#include "cost/measure/clock.h"
#include "graph/base/log.h"
#include "graph/base/rng.h"

#include <math.h>
#include <string.h>

enum { DATA_SEED = 19, LEAST_ROUNDS = 3, RUNS_MOST = 4096, GLANCES = 4, WALL_CLOCK = 2 };

/* Slower than the best at first sight, with warm weights, and then with cold ones. */
static const double glance_factor = 1.5;
static const double slow_factor = 1.25;
/* A GPU lowers its clocks while the processor plans; they rise within a few milliseconds of work.
 */
static const double warm_ns = 3e6;
/* A run that takes longer says enough where something else is there: not the first one, in which
 * libraries load their code for tenths of a second, but one after it. */
static const double run_ns_most = 1e8;

typedef struct {
    graft_kernel *kernel;
    cuda_replay replay;
    double run_ns; /* First sight, then the fastest. */
    double *samples;
    uint32_t sample_count;
} contestant;

typedef struct {
    graft_env *env;
    graft_device *device;
    const graft_signature *signature;
    graft_shape outputs[GRAFT_MAX_OUTPUTS];
    float *host[GRAFT_MAX_INPUTS];
    void *in[GRAFT_MAX_INPUTS];
    void *out[GRAFT_MAX_OUTPUTS];
    void *workspace;
    cuda_arbiter arbiter;
    float *expected[GRAFT_MAX_OUTPUTS]; /* Of the first that the arbiter agrees with; in scratch. */
    contestant contestants[GRAFT_KERNEL_MOST];
    uint32_t count;
    double batch_ns;
} trial;

/* --------------------------------------------------------------------- data */

static void fill_numbers(const graft_signature *s, uint32_t k, float *data, size_t count)
{
    enum { DRAWN = 4093 };
    float drawn[DRAWN];
    graft_rng rng;
    bool positive = s->op == GRAFT_OP_sqrt || (s->op == GRAFT_OP_div && k == 1);
    graft_rng_derive(&rng, DATA_SEED, k);
    for (size_t i = 0; i < DRAWN; i++) {
        float x = (float)graft_rng_normal(&rng);
        drawn[i] = positive ? fabsf(x) + 0.5F : x;
    }
    for (size_t i = 0; i < count; i++) {
        data[i] = drawn[i % DRAWN];
    }
}

static graft_status allocate_operands(trial *t)
{
    const graft_signature *s = t->signature;
    uint32_t size = cuda_type_bytes(t->device->target.type);
    for (uint32_t k = 0; k < s->input_count; k++) {
        size_t count = (size_t)graft_shape_elements(&s->inputs[k]);
        t->host[k] = GRAFT_NEW(t->env->scratch, float, count);
        fill_numbers(s, k, t->host[k], count);
        GRAFT_PASS(cuda_device_allocate(t->env, t->device, count * size, &t->in[k]));
        GRAFT_PASS(cuda_device_write(t->env, t->device, t->in[k], t->host[k], count));
    }
    for (uint32_t k = 0; k < s->output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        GRAFT_PASS(cuda_device_allocate(t->env, t->device, count * size, &t->out[k]));
    }
    return GRAFT_OK;
}

static uint32_t count_copies(const trial *t)
{
    size_t bytes = 0;
    for (uint32_t k = 0; k < t->signature->input_count; k++) {
        bool is_const = (t->signature->const_mask >> k & 1U) != 0;
        size_t size = (size_t)graft_shape_elements(&t->signature->inputs[k]) *
                      cuda_type_bytes(t->device->target.type);
        bytes += is_const && size >= CUDA_LEAST_COPIED ? size : 0;
    }
    return t->device->is_warm ? 1 : cuda_kernel_turns(bytes, t->device->cache_bytes);
}

/* A failure that leaves the others their chance: the engine's, or of what it needs besides the
 * operands, not the GPU's. */
static bool is_passed_over(graft_env *env, graft_status status, const char *name)
{
    if (status != GRAFT_UNSUPPORTED && status != GRAFT_NO_MEMORY) {
        return false;
    }
    graft_log(env, env->message[0] == '\0' ? 2 : 1, "%s is not used: %s", name,
              env->message[0] == '\0' ? "cuDNN does not support it here" : env->message);
    graft_env_clear(env);
    return true;
}

static graft_status open_contestant(trial *t, const char *name)
{
    graft_kernel *kernel = NULL;
    const float *constants[GRAFT_MAX_INPUTS];
    memcpy(constants, t->host, sizeof(constants));
    GRAFT_PASS(cuda_kernel_open(t->env, t->device, t->signature, name, constants, &kernel));
    graft_status status = cuda_kernel_copy_weights(t->env, kernel, count_copies(t), 1.0);
    if (status == GRAFT_OK) {
        t->contestants[t->count++] = (contestant){.kernel = kernel};
    } else {
        cuda_kernel_close(kernel);
    }
    return status;
}

static void close_contestant(contestant *c)
{
    cuda_replay_close(&c->replay);
    cuda_kernel_close(c->kernel);
}

static void drop_contestant(trial *t, uint32_t i)
{
    close_contestant(&t->contestants[i]);
    t->count--;
    for (; i < t->count; i++) {
        t->contestants[i] = t->contestants[i + 1];
    }
}

/* Last resorts are opened only when nothing else can be. */
static graft_status open_contestants(trial *t)
{
    graft_kernel_name names[GRAFT_KERNEL_MOST];
    uint32_t count = 0;
    GRAFT_PASS(cuda_kernel_list(t->env, t->device, t->signature, names, &count));
    for (uint32_t pass = 0; pass < 2 && t->count == 0; pass++) {
        for (uint32_t i = 0; i < count; i++) {
            if (cuda_family_is_last_resort(t->signature, names[i].text) != (pass == 1)) {
                continue;
            }
            graft_status status = open_contestant(t, names[i].text);
            if (!is_passed_over(t->env, status, names[i].text)) {
                GRAFT_PASS(status);
            }
        }
    }
    return GRAFT_OK;
}

/* The contestant that needs the largest workspace, and how large that is. */
static uint32_t find_largest(const trial *t, size_t *bytes)
{
    uint32_t largest = 0;
    *bytes = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        size_t wanted = t->contestants[i].kernel->facts.workspace_bytes;
        if (wanted > *bytes) {
            *bytes = wanted;
            largest = i;
        }
    }
    return largest;
}

/* One workspace for all; those whose workspace the GPU does not have drop out. */
static graft_status allocate_workspace(trial *t)
{
    graft_status status = GRAFT_NO_MEMORY;
    while (status == GRAFT_NO_MEMORY) {
        size_t bytes = 0;
        uint32_t largest = find_largest(t, &bytes);
        status = cuda_device_allocate(t->env, t->device, bytes, &t->workspace);
        if (status != GRAFT_NO_MEMORY || bytes == 0) {
            break;
        }
        (void)is_passed_over(t->env, status, t->contestants[largest].kernel->facts.name);
        drop_contestant(t, largest);
    }
    return status;
}

static graft_status bind_contestants(trial *t)
{
    const float *inputs[GRAFT_MAX_INPUTS] = {NULL};
    float *outputs[GRAFT_MAX_OUTPUTS] = {NULL};
    GRAFT_PASS(allocate_workspace(t));
    for (uint32_t k = 0; k < t->signature->input_count; k++) {
        inputs[k] = t->in[k];
    }
    for (uint32_t k = 0; k < t->signature->output_count; k++) {
        outputs[k] = t->out[k];
    }
    inputs[3] = t->signature->in_place != 0 ? outputs[0] : inputs[3];
    for (uint32_t i = 0; i < t->count; i++) {
        GRAFT_PASS(
            cuda_kernel_bind(t->env, t->contestants[i].kernel, inputs, outputs, t->workspace));
    }
    return GRAFT_OK;
}

static void close_trial(trial *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        close_contestant(&t->contestants[i]);
    }
    for (uint32_t k = 0; k < GRAFT_MAX_INPUTS; k++) {
        cuda_device_release(t->device, t->in[k]);
    }
    for (uint32_t k = 0; k < GRAFT_MAX_OUTPUTS; k++) {
        cuda_device_release(t->device, t->out[k]);
    }
    cuda_device_release(t->device, t->workspace);
}

/* ------------------------------------------------------------------ results */

/* All bits set are a NaN in every type. A residual in place is given anew. */
static graft_status poison(trial *t)
{
    for (uint32_t k = 0; k < t->signature->output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        GRAFT_PASS(cuda_status(t->env,
                               cudaMemsetAsync(t->out[k], 0xff,
                                               count * cuda_type_bytes(t->device->target.type),
                                               t->device->stream),
                               "poisoning an output"));
        if (t->signature->in_place != 0) {
            GRAFT_PASS(cuda_device_write(t->env, t->device, t->out[k], t->host[3], count));
        }
    }
    return GRAFT_OK;
}

/* Runs it alone and waits for it; `ns` by the clock on the wall. */
static graft_status run_once(trial *t, graft_kernel *kernel, double *ns)
{
    const uint64_t start_ns = graft_cost_clock_ns(WALL_CLOCK);
    GRAFT_PASS(cuda_kernel_run(t->env, kernel));
    GRAFT_PASS(cuda_device_wait(t->env, t->device, kernel->facts.name));
    *ns = (double)(graft_cost_clock_ns(WALL_CLOCK) - start_ns);
    return GRAFT_OK;
}

/* Against the float reference as far as that goes, and whole against the first that passed it.
 * `*first_ns`: how long the run took by the wall clock. */
static graft_status check_result(trial *t, contestant *c, bool *wrong, double *first_ns)
{
    float *got[GRAFT_MAX_OUTPUTS] = {NULL};
    *wrong = false;
    GRAFT_PASS(poison(t));
    GRAFT_PASS(run_once(t, c->kernel, first_ns));
    for (uint32_t k = 0; k < t->signature->output_count; k++) {
        size_t count = (size_t)graft_shape_elements(&t->outputs[k]);
        got[k] = GRAFT_NEW(t->env->scratch, float, count);
        GRAFT_PASS(cuda_device_read(t->env, t->device, got[k], t->out[k], count));
        *wrong = *wrong || !cuda_arbiter_agrees(&t->arbiter, k, got[k]) ||
                 (t->expected[k] != NULL && !cuda_results_agree(got[k], t->expected[k], count));
    }
    if (!*wrong && t->expected[0] == NULL) {
        memcpy(t->expected, got, sizeof(t->expected));
    }
    return GRAFT_OK;
}

static graft_status run_contestant(graft_env *env, void *context)
{
    graft_kernel *kernel = context;
    cuda_kernel_turn(kernel);
    return cuda_kernel_run(env, kernel);
}

static uint32_t count_runs(double batch_ns, double run_ns)
{
    double runs = ceil(batch_ns / run_ns);
    return runs < 1.0 ? 1 : runs > RUNS_MOST ? RUNS_MOST : (uint32_t)runs;
}

/* First sight: correct, and about how fast when nothing is cold. */
static graft_status glance(trial *t, contestant *c)
{
    bool wrong = false;
    double once_ns = 0.0;
    bool is_alone = t->expected[0] == NULL;
    graft_log(t->env, 2, "first run: %s", c->kernel->facts.name); /* It may never end. */
    GRAFT_PASS(check_result(t, c, &wrong, &once_ns));
    if (wrong) {
        return GRAFT_FAIL(t->env, GRAFT_UNSUPPORTED, "%s gives wrong results",
                          c->kernel->facts.name);
    }
    if (once_ns > run_ns_most && !is_alone) {
        GRAFT_PASS(run_once(t, c->kernel, &once_ns));
    }
    if (once_ns > run_ns_most && !is_alone) {
        return GRAFT_FAIL(t->env, GRAFT_UNSUPPORTED, "%s takes %.1f s to run once",
                          c->kernel->facts.name, once_ns / 1e9);
    }
    return cuda_device_time(t->env, t->device, run_contestant, c->kernel, GLANCES, &c->run_ns);
}

/* Captures a batch, in which each copy of the weights is read once, and replays it. */
static graft_status look(trial *t, contestant *c)
{
    uint32_t runs = count_runs(t->batch_ns, c->run_ns);
    uint32_t turns = cuda_kernel_turn_count(c->kernel);
    GRAFT_PASS(cuda_replay_open(t->env, t->device, run_contestant, c->kernel,
                                runs < turns ? turns : runs, &c->replay));
    return cuda_replay_time(t->env, &c->replay, 1, &c->run_ns);
}

/* Lets each through a test; those that fail, and those that are slower than the best by more than
 * `factor` after it, drop out. */
static graft_status sift(trial *t, graft_status (*test)(trial *t, contestant *c), double factor)
{
    double best_ns = (double)INFINITY;
    for (uint32_t i = 0; i < t->count;) {
        contestant *c = &t->contestants[i];
        graft_status status = test(t, c);
        if (is_passed_over(t->env, status, c->kernel->facts.name)) {
            drop_contestant(t, i);
            continue;
        }
        GRAFT_PASS(status);
        best_ns = fmin(best_ns, c->run_ns);
        i++;
    }
    for (uint32_t i = t->count; i-- > 0;) {
        if (t->contestants[i].run_ns > best_ns * factor) {
            drop_contestant(t, i);
        }
    }
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- rounds */

static graft_status run_rounds(trial *t, const graft_measure_options *options)
{
    double thrown_away = 0.0;
    for (uint32_t i = 0; i < t->count; i++) {
        t->contestants[i].samples = GRAFT_NEW(t->env->scratch, double, options->rounds);
    }
    contestant *first = &t->contestants[0];
    GRAFT_PASS(
        cuda_replay_time(t->env, &first->replay, count_runs(warm_ns, first->run_ns), &thrown_away));
    for (uint32_t round = 0; round < options->rounds; round++) {
        for (uint32_t i = 0; i < t->count; i++) {
            contestant *c = &t->contestants[(i + round) % t->count];
            double ns = 0.0;
            GRAFT_PASS(
                cuda_replay_time(t->env, &c->replay, count_runs(t->batch_ns, c->run_ns), &ns));
            c->samples[c->sample_count++] = ns;
            c->run_ns = fmin(c->run_ns, ns);
        }
        GRAFT_PASS(graft_interrupted_while(t->env, "measuring"));
    }
    return GRAFT_OK;
}

/* An entry without rounds stays one without: there is never a cost of 0. */
static void finish_entry(const trial *t, graft_cost_entry *entry)
{
    double best_ns = (double)INFINITY;
    for (uint32_t i = 0; i < t->count; i++) {
        const contestant *c = &t->contestants[i];
        double median = 0.0;
        double spread = 0.0;
        if (c->sample_count < LEAST_ROUNDS) {
            continue;
        }
        graft_cost_median(c->samples, c->sample_count, &median, &spread);
        if (median < best_ns) {
            best_ns = median;
            *entry = graft_cost_measured(t->signature, median, spread, c->sample_count,
                                         c->kernel->facts.name);
        }
    }
}

static graft_status measure_one(graft_env *env, graft_device *device,
                                const graft_signature *signature,
                                const graft_measure_options *options, graft_cost_entry *entry)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    graft_buffer text = {.arena = env->scratch};
    trial t = {.env = env,
               .device = device,
               .signature = signature,
               .batch_ns = (double)options->batch_ns};
    uint64_t start_ns = graft_cost_clock_ns(WALL_CLOCK);
    graft_signature_print(signature, &text);
    graft_log(env, 2, "measuring %s", text.data);
    status = graft_signature_outputs(signature, t.outputs);
    if (status != GRAFT_OK) {
        status =
            GRAFT_FAIL(env, GRAFT_BAD_INPUT, "the operands of a signature do not fit together");
        goto done;
    }
    GRAFT_TRY(env, allocate_operands(&t), "while measuring %s", text.data);
    GRAFT_CHECK(cuda_arbiter_open(env, signature, device->target.type, t.host, &t.arbiter));
    GRAFT_TRY(env, open_contestants(&t), "while measuring %s", text.data);
    GRAFT_TRY(env, bind_contestants(&t), "while measuring %s", text.data);
    GRAFT_TRY(env, sift(&t, glance, glance_factor), "while measuring %s", text.data);
    GRAFT_TRY(env, sift(&t, look, slow_factor), "while measuring %s", text.data);
    if (t.count == 0) {
        status =
            GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "device '%s': every implementation of %s failed",
                       device->head.name, text.data);
        goto done;
    }
    GRAFT_TRY(env, run_rounds(&t, options), "while measuring %s", text.data);
    finish_entry(&t, entry);
    graft_log(env, 2, "measured in %.0f ms, %u of its implementations to the end",
              (double)(graft_cost_clock_ns(WALL_CLOCK) - start_ns) / 1e6, t.count);
done:
    close_trial(&t);
    return status;
}

static void plan(graft_env *env, graft_device *device, const graft_signature *signatures,
                 uint32_t count)
{
    uint64_t start_ns = graft_cost_clock_ns(WALL_CLOCK);
    graft_log(env, 2, "planning %u operators", count);
    uint32_t planned = cuda_plan_ahead(env, device, signatures, count);
    graft_log(env, 2, "planned %u of %u operators in %.0f ms", planned, count,
              (double)(graft_cost_clock_ns(WALL_CLOCK) - start_ns) / 1e6);
}

graft_status cuda_measure(graft_env *env, graft_device *device, const graft_signature *signatures,
                          uint32_t count, const graft_measure_options *options,
                          graft_cost_entry *entries)
{
    graft_status status = GRAFT_OK;
    graft_env quiet = *env;
    graft_progress progress;
    graft_measure_options own = *options;
    uint32_t ahead = 2 * cuda_planner_count(); /* Fewer than the cache keeps. */
    own.rounds = own.rounds < LEAST_ROUNDS ? LEAST_ROUNDS : own.rounds;
    quiet.verbosity = options->quiet ? 0 : env->verbosity;
    graft_progress_start(&progress, &quiet, "measuring", "operators", count);
    for (uint32_t i = 0; i < count; i++) {
        if (i % ahead == 0) {
            plan(env, device, &signatures[i], count - i < ahead ? count - i : ahead);
        }
        GRAFT_CHECK(measure_one(env, device, &signatures[i], &own, &entries[i]));
        if (own.beat != NULL) {
            own.beat(own.beat_context);
        }
        graft_progress_update(&progress, i + 1, NULL);
    }
done:
    graft_progress_finish(&progress);
    return status;
}
