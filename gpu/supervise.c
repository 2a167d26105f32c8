/* supervise.c - stages in processes of their own (see check.h).
 *
 * A kernel that reads what is not there leaves its process without a GPU, for good; a library that
 * crashes takes the process along; a kernel that never ends keeps it waiting. The process that
 * waits here never touches the GPU, ends one that has said nothing for too long or overruns its
 * time, and starts another one that goes on behind the item at fault. How far a stage has come is
 * kept in STAGE.next, so that a run that runs out of time is gone on with by the next, as long as
 * the program is made of the same sources. */
#include "gpu/check.h"

#include "cost/device/backend.h"
#include "cost/measure/clock.h"
#include "graph/base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MOST = 20, WALL_CLOCK = 2, LOOK_MS = 50 };

/* What a stage may take beyond its time to end what it has begun. */
static const uint64_t grace_ns = 20000000000U;

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

const check_type check_types[CHECK_TYPES] = {
    {"fp16", CUDA_F16 },
    {"bf16", CUDA_BF16},
    {"tf32", CUDA_TF32},
    {"fp32", CUDA_F32 },
};

bool check_is_chosen(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0'; at += *at == ',') {
        size_t word = strcspn(at, ",");
        if (word == size && strncmp(at, name, size) == 0) {
            return true;
        }
        at += word;
    }
    return list == NULL;
}

const char *check_word(graft_arena *arena, const char *list, uint32_t i)
{
    for (; i > 0 && *list != '\0'; i--) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return *list == '\0' ? NULL : graft_arena_printf(arena, "%.*s", (int)strcspn(list, ","), list);
}

bool check_late(check_run *run)
{
    run->progress->beat_ns = graft_cost_clock_ns(WALL_CLOCK);
    return run->progress->beat_ns > run->deadline_ns || graft_interrupted();
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
    bool late = check_late(run);
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

/* Of a stage and what was chosen for it. */
static const char *progress_path(const check_run *run, const char *name)
{
    const char *list = run->list == NULL ? NULL : strrchr(run->list, '/');
    const char *chosen[4] = {run->types, run->models, run->batches,
                             list == NULL ? run->list : list + 1};
    const char *path = graft_arena_printf(run->env->life, "%s/%s", run->folder, name);
    for (uint32_t i = 0; i < 4; i++) {
        path =
            chosen[i] == NULL ? path : graft_arena_printf(run->env->life, "%s-%s", path, chosen[i]);
    }
    return graft_arena_printf(run->env->life, "%s.next", path);
}

/* True when an earlier run has finished the stage. What a program of other sources did does not
 * count. */
static bool load_progress(check_run *run, const char *name)
{
    char sources[128] = "";
    char line[64] = "";
    FILE *file = fopen(progress_path(run, name), "r");
    *run->progress = (check_progress){.next = 0};
    if (file == NULL) {
        return false;
    }
    (void)!fgets(line, sizeof(line), file);
    (void)!fgets(sources, sizeof(sources), file);
    (void)fclose(file);
    sources[strcspn(sources, "\n")] = '\0';
    if (sources[0] == '\0' || strcmp(sources, run->sources) != 0) {
        return false;
    }
    char *rest = line;
    run->progress->next = (uint32_t)strtoul(rest, &rest, 10);
    run->progress->failures = (uint32_t)strtoul(rest, &rest, 10);
    run->progress->unfinished = (uint32_t)strtoul(rest, &rest, 10);
    return strstr(line, "done") != NULL;
}

/* A stage that came to its end but left something out begins anew. */
static void save_progress(check_run *run, const char *name)
{
    const check_progress *p = run->progress;
    bool again = !p->is_cut && p->unfinished > 0;
    FILE *file = fopen(progress_path(run, name), "w");
    if (file != NULL) {
        (void)fprintf(file, "%u %u %u %s\n%s\n", again ? 0 : p->next, again ? 0 : p->failures,
                      again ? 0 : p->unfinished, p->is_cut || again ? "open" : "done",
                      run->sources);
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

/* Waits for the process, and ends it when it hangs or overruns. False: there is none to wait
 * for. */
static bool watch(check_run *run, const char *name, pid_t child, int *result)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    bool is_ended = false;
    for (;;) {
        pid_t ended = waitpid(child, result, WNOHANG);
        if (ended != 0 && !(ended < 0 && errno == EINTR)) {
            return ended == child;
        }
        uint64_t now_ns = graft_cost_clock_ns(WALL_CLOCK);
        bool hangs = now_ns > run->progress->beat_ns + run->hang_ns;
        bool overruns = now_ns > run->deadline_ns + grace_ns;
        if ((hangs || overruns) && !is_ended) {
            check_fail(run, "stage %s: item %u %s; its process is ended", name, run->progress->next,
                       overruns ? "takes longer than there is time" : "hangs");
            run->progress->is_cut = run->progress->is_cut || overruns;
            is_ended = kill(child, SIGKILL) == 0;
        }
        (void)nanosleep(&pause, NULL);
        if (graft_interrupted() && !is_ended) {
            (void)kill(child, SIGTERM); /* It may have a handler of its own, or be in a kernel. */
        }
    }
}

/* True when there is nothing left to go on with. */
static bool run_process(check_run *run, const char *name, graft_status (*stage)(check_run *run))
{
    int result = 0;
    uint32_t before = run->progress->next;
    (void)fflush(NULL);
    run->progress->is_lost = false;
    run->progress->beat_ns = graft_cost_clock_ns(WALL_CLOCK);
    pid_t child = fork();
    if (child == 0) {
        run_stage(run, name, stage);
        (void)fflush(NULL);
        _exit(EXIT_SUCCESS);
    }
    if (child < 0 || !watch(run, name, child, &result)) {
        check_fail(run, "stage %s: no process for it", name);
        run->progress->is_cut = true;
        return true;
    }
    if (WIFSIGNALED(result)) {
        check_fail(run, "stage %s: signal %d in item %u", name, WTERMSIG(result),
                   run->progress->next);
        /* It would do so again. */
        run->progress->is_cut = run->progress->is_cut || run->progress->next == before;
    }
    return run->progress->is_cut || !(WIFSIGNALED(result) || run->progress->is_lost);
}

void check_supervise(check_run *run, const char *name, graft_status (*stage)(check_run *run))
{
    bool is_done = false;
    if (run->is_short) { /* The memory checker watches one process. */
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
