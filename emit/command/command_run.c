/* command_run.c - `graft run`: a model in, its outputs out, by Graft's executor. */
#include "emit/command/command.h"
#include "emit/report/outputs.h"
#include "emit/run/run.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/npz.h"
#include "graph/names.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MOST = 100000, SEED_MOST = 10000000 };

typedef struct {
    const char *model;
    const char *inputs; /* Files; NULL: none. */
    const char *outputs;
    const char *policy;
    const char *database;
    graft_option_list sizes;
    bool tune;
    bool bench;
    bool steps;
    uint32_t rounds;
    uint64_t seed;
} run_choices;

static graft_status read_inputs(graft_env *env, const char *path, graft_run_tensor **tensors,
                                uint32_t *count)
{
    uint8_t *data = NULL;
    size_t size = 0;
    if (path != NULL) {
        GRAFT_PASS(graft_file_read(env, env->unit, path, &data, &size));
        GRAFT_PASS(
            graft_npz_parse(env, env->life, (graft_bytes){path, data, size}, tensors, count));
        graft_arena_reset(env->unit);
    }
    return GRAFT_OK;
}

/* Adds those that were not given, drawn at random. */
static void draw_others(graft_env *env, const graft_run *run, uint64_t seed,
                        graft_run_tensor **tensors, uint32_t *count)
{
    const uint32_t given = *count;
    graft_run_tensor *all =
        GRAFT_NEW(env->life, graft_run_tensor, given + graft_run_input_count(run));
    graft_rng rng;
    graft_rng_seed(&rng, seed);
    if (given > 0) {
        memcpy(all, *tensors, given * sizeof *all);
    }
    for (uint32_t k = 0; k < graft_run_input_count(run); k++) {
        uint32_t i = 0;
        while (i < given && strcmp(all[i].name, graft_run_input(run, k)->name) != 0) {
            i++;
        }
        if (i == given) {
            all[*count] = *graft_run_input(run, k);
            all[*count].data = graft_outputs_draw_tensor(env->life, &all[*count].shape, &rng);
            (*count)++;
        }
    }
    *tensors = all;
}

/* An output that the model has twice is written once. */
static graft_status write_outputs(graft_env *env, const char *path, const graft_run *run,
                                  const graft_run_tensor *outputs)
{
    graft_bytes bytes = {.file = path};
    graft_names *met = graft_names_new(env->life);
    graft_run_tensor *once = GRAFT_NEW(env->life, graft_run_tensor, graft_run_output_count(run));
    uint32_t count = 0;
    for (uint32_t k = 0; k < graft_run_output_count(run); k++) {
        if (graft_names_add(met, outputs[k].name, count)) {
            once[count++] = outputs[k];
        }
    }
    if (path != NULL) {
        GRAFT_PASS(graft_npz_pack(env, env->life, once, count, &bytes));
        GRAFT_PASS(graft_file_write(env, path, bytes.data, bytes.size));
    }
    return GRAFT_OK;
}

static void print_outputs(graft_env *env, const graft_run *run)
{
    for (uint32_t k = 0; k < graft_run_output_count(run); k++) {
        const graft_run_tensor *tensor = graft_run_output(run, k);
        const char *shape = graft_shape_text(env->life, &tensor->shape);
        if (env->json) {
            graft_json_print(env->scratch, stdout, "output=%s shape=%s", tensor->name, shape);
        } else {
            (void)printf("  %-24s %s\n", tensor->name, shape);
        }
    }
}

static graft_status bench(graft_env *env, const run_choices *choices, graft_run *run,
                          const graft_run_tensor *inputs, uint32_t input_count)
{
    graft_timing timing;
    GRAFT_PASS(graft_run_time(env, run, inputs, input_count, choices->rounds, &timing));
    if (env->json) {
        graft_json_print(env->scratch, stdout,
                         "model=%s device=%s median_ns=%g spread_ns=%g rounds=%u tuned=%c",
                         choices->model, graft_device_name(run->device), timing.median_ns,
                         timing.spread_ns, timing.rounds, choices->tune);
    } else {
        (void)printf("%s: %.3f ms (quartiles %.3f apart, %u rounds) on %s\n", choices->model,
                     timing.median_ns / 1e6, timing.spread_ns / 1e6, timing.rounds,
                     graft_device_name(run->device));
    }
    return GRAFT_OK;
}

typedef struct {
    uint32_t step;
    double ns;
} step_time;

static int compare_steps(const void *a, const void *b)
{
    const step_time *x = a;
    const step_time *y = b;
    return x->ns == y->ns ? (x->step > y->step) - (x->step < y->step) : x->ns < y->ns ? 1 : -1;
}

static void print_step(graft_env *env, const graft_run *run, const step_time *time)
{
    GRAFT_SCOPED(env->scratch);
    graft_buffer text = {.arena = env->scratch};
    const graft_step *step = &graft_executor_schedule(run->plan.executor)->steps[time->step];
    const char *implementation = graft_executor_implementation(run->plan.executor, time->step);
    graft_signature_print(&step->signature, &text);
    if (env->json) {
        graft_json_print(env->scratch, stdout, "step=%u ns=%g implementation=%s signature=%s",
                         time->step, time->ns, implementation, text.data);
    } else {
        (void)printf("%10.1f us  %4u  %-40s %s\n", time->ns / 1e3, time->step, implementation,
                     text.data);
    }
}

static graft_status bench_steps(graft_env *env, const run_choices *choices, graft_run *run)
{
    const uint32_t count = graft_executor_schedule(run->plan.executor)->step_count;
    double *step_ns = GRAFT_NEW(env->life, double, count);
    step_time *times = GRAFT_NEW(env->life, step_time, count);
    GRAFT_PASS(graft_run_time_steps(env, run, choices->rounds, step_ns));
    for (uint32_t i = 0; i < count; i++) {
        times[i] = (step_time){i, step_ns[i]};
    }
    qsort(times, count, sizeof(*times), compare_steps);
    for (uint32_t i = 0; i < count; i++) {
        print_step(env, run, &times[i]);
    }
    return GRAFT_OK;
}

/* What the session says becomes what the command says. */
static graft_status tell(graft_env *env, const char *file, const graft_run *run,
                         graft_status status)
{
    return status == GRAFT_OK ? GRAFT_OK
                              : GRAFT_FAIL(env, status, "%s%s%s", file == NULL ? "" : file,
                                           file == NULL ? "" : ": ", graft_run_message(run));
}

static graft_status run_model(graft_env *env, void *taken)
{
    graft_status status = GRAFT_OK;
    const run_choices *choices = taken;
    graft_run_options options = {.thread_count = env->thread_count,
                                 .tune = choices->tune,
                                 .database = choices->database,
                                 .policy = choices->policy,
                                 .sizes = choices->sizes.items,
                                 .size_count = choices->sizes.count};
    graft_run *run = NULL;
    graft_run_tensor *inputs = NULL;
    uint32_t input_count = 0;
    GRAFT_CHECK(read_inputs(env, choices->inputs, &inputs, &input_count));
    options.inputs = inputs;
    options.input_count = input_count;
    status = graft_run_open(choices->model, &options, &run);
    GRAFT_CHECK(tell(env, NULL, run, status));
    const uint32_t output_count = graft_run_output_count(run);
    graft_run_tensor *outputs = GRAFT_NEW(env->life, graft_run_tensor, output_count);
    for (uint32_t k = 0; k < output_count && run->plan.stages == NULL; k++) {
        outputs[k] = *graft_run_output(run, k);
        outputs[k].data =
            graft_arena_alloc(env->life, (size_t)graft_shape_bytes(&outputs[k].shape));
    }
    if (choices->bench || choices->steps) {
        draw_others(env, run, choices->seed, &inputs, &input_count);
    }
    status = graft_run_once(run, inputs, input_count, outputs,
                            run->plan.stages == NULL ? output_count : 0);
    GRAFT_CHECK(tell(env, choices->inputs, run, status));
    for (uint32_t k = 0; k < output_count && run->plan.stages != NULL; k++) {
        outputs[k] = *graft_run_output(run, k); /* Whose sizes are known now. */
    }
    GRAFT_CHECK(write_outputs(env, choices->outputs, run, outputs));
    print_outputs(env, run);
    if (choices->bench) {
        GRAFT_CHECK(bench(env, choices, run, inputs, input_count));
    }
    if (choices->steps) {
        GRAFT_CHECK(bench_steps(env, choices, run));
    }
done:
    graft_run_close(run);
    return status;
}

static const graft_option options_taken[] = {
    GRAFT_WORD(run_choices, model, "MODEL", "a name of the zoo or an ONNX file"),
    GRAFT_TEXT(run_choices, inputs, "--inputs", "FILE.npz", NULL,
               "its inputs, as numpy.savez writes them"),
    GRAFT_OUTPUT(run_choices, outputs, "--outputs", "FILE.npz", "where its outputs go"),
    GRAFT_FLAG(run_choices, bench, "--bench", "time it; inputs that are not given are random"),
    GRAFT_FLAG(run_choices, steps, "--steps", "time every step, and list them, slowest first"),
    GRAFT_NUMBER(run_choices, rounds, "--rounds", "N", "21", 3, ROUNDS_MOST, "of timing"),
    GRAFT_NUMBER(run_choices, seed, "--seed", "N", "1", 1, SEED_MOST, "of random inputs"),
    GRAFT_TEXT(run_choices, policy, "--policy", "FILE", NULL,
               "rewrite the model as this policy.graft says first"),
    GRAFT_FLAG(run_choices, tune, "--tune", "layouts too, measured with care and kept for later"),
    GRAFT_TEXT(run_choices, database, "--database", "FILE", NULL,
               "where costs are kept (default: the processor's, in out/ or ~/.cache/graft)"),
    GRAFT_LIST(run_choices, sizes, "--size", "NAME=N,...",
               "values for open sizes that the inputs do not say"),
};

const graft_command graft_command_run = {
    .name = "run",
    .summary = "run a model in Graft's executor",
    GRAFT_TAKES(run_choices, options_taken),
    .run = run_model,
};
