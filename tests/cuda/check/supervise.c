/* supervise.c - stages in processes of their own (see check.h).
 *
 * A kernel that reads what is not there leaves its process without a GPU, for good; a library that
 * crashes takes the process along. The process that waits here never touches the GPU, and starts
 * another one that goes on behind the item at fault. How far a stage has come is kept in
 * STAGE.next, so that a run that runs out of time is gone on with by the next. */
#include "tests/cuda/check/check.h"

#include "cost/backend.h"
#include "cost/clock.h"
#include "graph/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES_MOST = 20, WALL_CLOCK = 2 };

void check_fail(check_run *run, const char *format, ...)
{
    va_list arguments;
    run->progress->failures++;
    va_start(arguments, format);
    (void)fprintf(stderr, "gpu-check: FAILED: ");
    (void)vfprintf(stderr, format, arguments);
    (void)fprintf(stderr, "%s%s\n", run->env->message[0] == '\0' ? "" : ": ", run->env->message);
    va_end(arguments);
    graft_env_clear(run->env);
}

void *check_share(size_t bytes)
{
    /* cppcheck-suppress invalidFunctionArg */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    /* cppcheck-suppress memleak */
    return memory == MAP_FAILED ? NULL : memory; /* For as long as the program runs. */
}

bool check_begin(check_run *run, uint32_t item)
{
    if (item < run->progress->next || run->progress->is_lost) {
        return false;
    }
    run->progress->next = item + 1;
    return true;
}

bool check_cut(check_run *run, uint32_t item, uint32_t count)
{
    check_progress *p = run->progress;
    bool late = graft_cost_clock_ns(WALL_CLOCK) > run->deadline_ns || graft_interrupted();
    if (!late || item < p->next) {
        return false;
    }
    p->is_cut = true;
    (void)fprintf(stderr, "gpu-check: no time left for %u of %u; run it again to go on\n",
                  count - item, count);
    return true;
}

void check_probe(check_run *run, graft_device *device)
{
    const float number = 1.0F;
    void *memory = NULL;
    if (device == NULL || !graft_device_present(device)) {
        return;
    }
    graft_status status = graft_device_allocate(run->env, device, sizeof(number), &memory);
    if (status == GRAFT_OK) {
        status = graft_device_write(run->env, device, memory, &number, 1);
    }
    if (status != GRAFT_OK) {
        run->progress->is_lost = true;
        check_fail(run, "this process has lost the GPU");
    }
    graft_device_release(device, memory);
}

/* ------------------------------------------------------------- between runs */

static const char *progress_path(const check_run *run, const char *name)
{
    return graft_arena_printf(run->env->life, "%s/%s.next", run->folder, name);
}

/* True when an earlier run has finished the stage. What an older program did does not count. */
static bool load_progress(check_run *run, const char *name)
{
    struct stat program;
    struct stat saved;
    char line[64] = "";
    const char *path = progress_path(run, name);
    *run->progress = (check_progress){.next = 0};
    if (stat("/proc/self/exe", &program) != 0 || stat(path, &saved) != 0 ||
        saved.st_mtime < program.st_mtime) {
        return false;
    }
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        char *rest = line;
        (void)!fgets(line, sizeof(line), file);
        (void)fclose(file);
        run->progress->next = (uint32_t)strtoul(rest, &rest, 10);
        run->progress->failures = (uint32_t)strtoul(rest, &rest, 10);
        run->progress->unfinished = (uint32_t)strtoul(rest, &rest, 10);
    }
    return strstr(line, "done") != NULL;
}

/* A stage that came to its end but left something out begins anew. */
static void save_progress(check_run *run, const char *name)
{
    const check_progress *p = run->progress;
    bool again = !p->is_cut && p->unfinished > 0;
    FILE *file = fopen(progress_path(run, name), "w");
    if (file != NULL) {
        (void)fprintf(file, "%u %u %u %s\n", again ? 0 : p->next, again ? 0 : p->failures,
                      again ? 0 : p->unfinished, p->is_cut || again ? "open" : "done");
        (void)fclose(file);
    }
}

/* ---------------------------------------------------------------- processes */

static void run_stage(check_run *run, const char *name, graft_status (*stage)(check_run *run))
{
    if (stage(run) != GRAFT_OK) {
        check_fail(run, "stage %s ended early", name);
        run->progress->is_cut = true;
    }
}

/* True when there is nothing left to go on with. */
static bool run_process(check_run *run, const char *name, graft_status (*stage)(check_run *run))
{
    int result = 0;
    uint32_t before = run->progress->next;
    (void)fflush(NULL);
    run->progress->is_lost = false;
    pid_t child = fork();
    if (child == 0) {
        run_stage(run, name, stage);
        (void)fflush(NULL);
        _exit(EXIT_SUCCESS);
    }
    if (child < 0 || waitpid(child, &result, 0) != child) {
        check_fail(run, "stage %s: no process for it", name);
        run->progress->is_cut = true;
        return true;
    }
    if (WIFSIGNALED(result)) {
        check_fail(run, "stage %s: signal %d in item %u", name, WTERMSIG(result),
                   run->progress->next);
        run->progress->is_cut = run->progress->next == before; /* It would do so again. */
    }
    return run->progress->is_cut || !(WIFSIGNALED(result) || run->progress->is_lost);
}

void check_supervise(check_run *run, const char *name, graft_status (*stage)(check_run *run))
{
    bool is_done = false;
    if (run->is_short || run->described != NULL) { /* The memory checker watches one process. */
        *run->progress = (check_progress){.next = 0};
        run_stage(run, name, stage);
        return;
    }
    if (load_progress(run, name)) {
        (void)fprintf(stderr, "gpu-check: %s: done before, %u failures\n", name,
                      run->progress->failures);
        return;
    }
    for (uint32_t i = 0; i < PROCESSES_MOST && !is_done && !graft_interrupted(); i++) {
        is_done = run_process(run, name, stage);
    }
    run->progress->is_cut = run->progress->is_cut || !is_done;
    save_progress(run, name);
}
