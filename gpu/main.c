/* main.c - the stages of a check, one after another (see check.h). */
#include "gpu/check.h"

#include "cost/device/backend.h"
#include "cost/measure/clock.h"
#include "graph/base/log.h"
#include "models/zoo.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The whole of `make gpu-check` has ten minutes; building and the memory checker take some. */
enum { SECONDS_DEFAULT = 390, HANG_SECONDS = 120, WALL_CLOCK = 2 };

/* Each stage ends when its percentage of the time has passed, and leaves the others theirs. */
static const struct {
    const char *name;
    graft_status (*run)(check_run *run);
    uint32_t until;
} stages[] = {
    {"primitives", check_primitives, 35 },
    {"ceilings",   check_ceilings,   55 },
    {"costs",      check_costs,      65 },
    {"models",     check_models,     100},
};

enum { STAGE_COUNT = sizeof(stages) / sizeof(stages[0]) };

graft_status check_open(check_run *run, const char *type, const char *options,
                        graft_device **device)
{
    const char *name = run->described == NULL
                           ? graft_arena_printf(run->env->life, "cuda:%s%s", type, options)
                           : graft_arena_printf(run->env->life, "cuda:%s%s,described=%s", type,
                                                options, run->described);
    return graft_device_open(run->env, name, 1, device);
}

graft_status check_file(check_run *run, const char *name, FILE **file)
{
    const char *path = graft_arena_printf(run->env->life, "%s/%s", run->folder, name);
    *file = fopen(path, "a");
    return *file != NULL ? GRAFT_OK : GRAFT_FAIL(run->env, GRAFT_IO, "%s cannot be written", path);
}

graft_status check_each_type(check_run *run, const char *name, uint32_t items,
                             graft_status (*body)(check_run *run, check_part part, void *context),
                             void *context)
{
    graft_status status = GRAFT_OK;
    check_part part = {.file = NULL};
    GRAFT_PASS(check_file(run, name, &part.file));
    for (uint32_t t = 0; t < CHECK_TYPES && status == GRAFT_OK && !run->progress->is_cut; t++) {
        part.type = &check_types[t];
        part.first = t * items;
        if (check_is_chosen(run->types, part.type->name)) {
            status = body(run, part, context);
        }
    }
    (void)fclose(part.file);
    return status;
}

const char *check_plan(check_run *run, graft_device *device, const graft_signature *signature,
                       const char *name)
{
    static const float *const constants[GRAFT_MAX_INPUTS];
    graft_kernel *kernel = NULL;
    if (graft_kernel_open(run->env, device, signature, name, constants, &kernel) != GRAFT_OK) {
        return NULL;
    }
    const char *planned =
        graft_arena_strdup(run->env->scratch, graft_kernel_facts_of(kernel)->name);
    graft_kernel_close(kernel);
    return planned;
}

static graft_status describe_run(check_run *run)
{
    graft_status status = GRAFT_OK;
    graft_device *device = NULL;
    FILE *file = NULL;
    GRAFT_CHECK(check_open(run, check_types[0].name, "", &device));
    (void)fprintf(stderr, "gpu-check: %s, %s\n", graft_device_name(device),
                  graft_device_library(device));
    GRAFT_CHECK(check_file(run, "device.json", &file));
    graft_json_print(run->env->scratch, file, "device=%s library=%s", graft_device_name(device),
                     graft_device_library(device));
done:
    if (file != NULL) {
        (void)fclose(file);
    }
    graft_device_close(device);
    return status;
}

static bool try_device(check_run *run)
{
    bool found = describe_run(run) == GRAFT_OK;
    if (!found) {
        (void)fprintf(stderr, "gpu-check: %s\n", run->env->message);
    }
    return found;
}

/* In a process of its own, so that this one never opens the GPU (see supervise.c); the memory
 * checker watches one process. */
static bool find_device(check_run *run)
{
    int result = 0;
    if (run->is_short) {
        return try_device(run);
    }
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        _exit(try_device(run) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    return child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result) &&
           WEXITSTATUS(result) == EXIT_SUCCESS;
}

/* The failures of all stages; one that had no time for something counts as one more. */
static uint32_t run_stages(check_run *run, const char *only, uint64_t seconds)
{
    uint32_t failures = 0;
    uint64_t start_ns = graft_cost_clock_ns(WALL_CLOCK);
    for (uint32_t i = 0; i < STAGE_COUNT; i++) {
        bool chosen = only != NULL ? strcmp(only, stages[i].name) == 0
                                   : stages[i].run != check_costs || run->list != NULL;
        if (!chosen) {
            continue;
        }
        (void)fprintf(stderr, "gpu-check: %s\n", stages[i].name);
        run->deadline_ns = start_ns + seconds * (only == NULL ? stages[i].until : 100) * 10000000U;
        check_supervise(run, stages[i].name, stages[i].run);
        failures += run->progress->failures + run->progress->is_cut;
    }
    return failures;
}

typedef struct {
    const char *only; /* NULL: all stages. */
    const char *seconds;
    const char *hang;
} arguments;

static bool parse_arguments(int argc, char **argv, check_run *run, arguments *given)
{
    const struct {
        const char *name;
        const char **value;
    } options[] = {
        {"--out",       &run->folder   },
        {"--described", &run->described},
        {"--stage",     &given->only   },
        {"--seconds",   &given->seconds},
        {"--hang",      &given->hang   },
        {"--types",     &run->types    },
        {"--models",    &run->models   },
        {"--batches",   &run->batches  },
        {"--list",      &run->list     },
        {"--sources",   &run->sources  },
    };
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < sizeof(options) / sizeof(options[0]) && strcmp(argv[i], options[k].name) != 0) {
            k++;
        }
        if (strcmp(argv[i], "--short") == 0) {
            run->is_short = true;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            run->env->verbosity = 2;
        } else if (k < sizeof(options) / sizeof(options[0]) && i + 1 < argc) {
            *options[k].value = argv[++i];
        } else {
            return false;
        }
    }
    return run->folder != NULL;
}

static const char *type_name(uint32_t i) { return i < CHECK_TYPES ? check_types[i].name : NULL; }

static const char *model_name(uint32_t i)
{
    uint32_t count = 0;
    const graft_zoo_entry *zoo = graft_zoo(&count);
    return i < count ? zoo[i].name : NULL;
}

/* Whether each word of a list (NULL: there is none) is a name; says the first that is not. */
static bool are_names(const check_run *run, const char *option, const char *list,
                      const char *(*name)(uint32_t i))
{
    const char *word = NULL;
    for (uint32_t i = 0; list != NULL && (word = check_word(run->env->life, list, i)) != NULL;
         i++) {
        uint32_t k = 0;
        while (name(k) != NULL && strcmp(name(k), word) != 0) {
            k++;
        }
        if (name(k) == NULL) {
            (void)fprintf(stderr, "gpu-check: %s: there is no '%s'\n", option, word);
            return false;
        }
    }
    return true;
}

static const char usage[] =
    "usage: graft-gpu --out FOLDER [--stage primitives|ceilings|costs|models] \n"
    "                 [--types fp16,bf16,...] [--list FILE] [--models resnet50,...] [--batches "
    "1,8,...] [--seconds N] [--hang N]\n"
    "                 [--short] [--verbose] [--described FILE] [--sources HASH]\n";

int main(int argc, char **argv)
{
    graft_env env;
    check_run run = {.env = &env, .sources = ""};
    arguments given = {.only = NULL};
    if (graft_env_open(&env) != GRAFT_OK) {
        (void)fprintf(stderr, "gpu-check: no memory left\n");
        return 70;
    }
    if (!parse_arguments(argc, argv, &run, &given)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    if (!are_names(&run, "--types", run.types, type_name) ||
        !are_names(&run, "--models", run.models, model_name)) {
        return 2;
    }
    run.progress = check_share(sizeof(*run.progress));
    if (run.progress == NULL) {
        (void)fprintf(stderr, "gpu-check: no memory left\n");
        return 70;
    }
    uint64_t seconds = given.seconds == NULL ? SECONDS_DEFAULT : strtoull(given.seconds, NULL, 10);
    run.hang_ns =
        (given.hang == NULL ? HANG_SECONDS : strtoull(given.hang, NULL, 10)) * 1000000000U;
    graft_interrupt_install();
    uint32_t failures = 1;
    if (find_device(&run)) {
        failures = run_stages(&run, given.only, seconds);
        (void)fprintf(stderr, "gpu-check: %u failures; results in %s\n", failures, run.folder);
    }
    graft_env_close(&env);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
