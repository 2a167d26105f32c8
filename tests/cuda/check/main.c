/* main.c - the stages of a check, one after another (see check.h). */
#include "tests/cuda/check/check.h"

#include "cost/backend.h"
#include "cost/clock.h"
#include "graph/file.h"
#include "graph/log.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const check_types[CHECK_TYPES] = {"fp32", "tf32", "fp16", "bf16"};

/* The whole of `make gpu-check` has ten minutes; building and the memory checker take some. */
enum { SECONDS_DEFAULT = 420, WALL_CLOCK = 2 };

static const struct {
    const char *name;
    graft_status (*run)(check_run *run);
} stages[] = {
    {"primitives", check_primitives},
    {"ceilings",   check_ceilings  },
    {"models",     check_models    },
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

bool check_is_late(const check_run *run)
{
    return graft_cost_clock_ns(WALL_CLOCK) > run->deadline_ns || graft_interrupted();
}

graft_status check_file(check_run *run, const char *name, FILE **file)
{
    const char *path = graft_arena_printf(run->env->life, "%s/%s", run->folder, name);
    *file = fopen(path, "w");
    return *file != NULL ? GRAFT_OK : GRAFT_FAIL(run->env, GRAFT_IO, "%s cannot be written", path);
}

void check_fail(check_run *run, const char *format, ...)
{
    va_list arguments;
    run->failures++;
    va_start(arguments, format);
    (void)fprintf(stderr, "gpu-check: FAILED: ");
    (void)vfprintf(stderr, format, arguments);
    (void)fprintf(stderr, "%s%s\n", run->env->message[0] == '\0' ? "" : ": ", run->env->message);
    va_end(arguments);
    graft_env_clear(run->env);
}

void check_line(check_run *run, graft_json *json, FILE *file)
{
    (void)run;
    graft_json_end(json, file);
    (void)fflush(file);
}

static graft_status describe_run(check_run *run)
{
    graft_status status = GRAFT_OK;
    graft_device *device = NULL;
    FILE *file = NULL;
    graft_json json;
    GRAFT_CHECK(check_open(run, check_types[0], "", &device));
    (void)fprintf(stderr, "gpu-check: %s, %s\n", graft_device_name(device),
                  graft_device_library(device));
    GRAFT_CHECK(check_file(run, "device.json", &file));
    graft_json_begin(&json, run->env->scratch);
    graft_json_string(&json, "device", graft_device_name(device));
    graft_json_string(&json, "library", graft_device_library(device));
    check_line(run, &json, file);
done:
    if (file != NULL) {
        (void)fclose(file);
    }
    graft_device_close(device);
    return status;
}

static graft_status run_stages(check_run *run, const char *only)
{
    graft_status status = GRAFT_OK;
    GRAFT_CHECK(describe_run(run));
    for (uint32_t i = 0; i < STAGE_COUNT; i++) {
        if (only != NULL && strcmp(only, stages[i].name) != 0) {
            continue;
        }
        (void)fprintf(stderr, "gpu-check: %s\n", stages[i].name);
        status = stages[i].run(run);
        if (status != GRAFT_OK) {
            check_fail(run, "stage %s ended early", stages[i].name);
        }
    }
    status = GRAFT_OK;
done:
    return status;
}

static bool parse_arguments(int argc, char **argv, check_run *run, const char **only)
{
    uint64_t seconds = SECONDS_DEFAULT;
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--short") == 0) {
            run->is_short = true;
        } else if (strcmp(argv[i], "--out") == 0 && has_value) {
            run->folder = argv[++i];
        } else if (strcmp(argv[i], "--described") == 0 && has_value) {
            run->described = argv[++i];
        } else if (strcmp(argv[i], "--stage") == 0 && has_value) {
            *only = argv[++i];
        } else if (strcmp(argv[i], "--seconds") == 0 && has_value) {
            seconds = strtoull(argv[++i], NULL, 10);
        } else {
            return false;
        }
    }
    run->deadline_ns = graft_cost_clock_ns(WALL_CLOCK) + seconds * 1000000000U;
    return run->folder != NULL;
}

int main(int argc, char **argv)
{
    graft_env env;
    check_run run = {.env = &env};
    const char *only = NULL;
    if (!parse_arguments(argc, argv, &run, &only)) {
        (void)fprintf(stderr, "usage: graft-gpu --out FOLDER [--stage primitives|ceilings|models] "
                              "[--short] [--seconds N] [--described FILE]\n");
        return 2;
    }
    if (graft_env_open(&env) != GRAFT_OK) {
        (void)fprintf(stderr, "gpu-check: no memory left\n");
        return 70;
    }
    graft_interrupt_install();
    graft_status status = run_stages(&run, only);
    if (status != GRAFT_OK) {
        (void)fprintf(stderr, "gpu-check: %s\n", env.message);
    } else {
        (void)fprintf(stderr, "gpu-check: %u failures; results in %s\n", run.failures, run.folder);
    }
    graft_env_close(&env);
    return status == GRAFT_OK && run.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
