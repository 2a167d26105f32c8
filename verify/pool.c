/* pool.c - the parent polls, the children work. See pool.h.
 *
 *   parent ──── item number ───► child          (one pipe each way and child)
 *          ◄─── header, answer ──
 */
#include "verify/pool.h"

#include "graph/log.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_MOST = 64, POLL_MS = 200, NO_ITEM = -1 };

typedef struct {
    pid_t pid; /* 0: not running. */
    int to;    /* Item numbers. */
    int from;  /* Answers. */
    int64_t item;
    uint64_t start_ns;
    uint32_t served; /* Items that this child was given before. */
} worker;

typedef struct {
    graft_env *env;
    graft_arena *arena;
    const graft_pool_job *job;
    graft_pool_result *results;
    worker workers[CHILDREN_MOST];
    uint32_t worker_count;
    uint32_t left; /* Items not handed out: those before this one. */
    uint32_t done;
    graft_progress progress;
} pool;

/* ------------------------------------------------------------------- pipes */

/* All bytes or nothing useful: false at the end of the pipe or on an error. */
static bool read_all(int file, void *data, size_t size)
{
    uint8_t *bytes = data;
    while (size > 0) {
        ssize_t got = read(file, bytes, size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        bytes += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int file, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    while (size > 0) {
        ssize_t put = write(file, bytes, size);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        bytes += put;
        size -= (size_t)put;
    }
    return true;
}

/* ------------------------------------------------------------------- child */

/* The size of this process's address space. */
static uint64_t mapped_bytes(void)
{
    char line[128] = "";
    FILE *file = fopen("/proc/self/statm", "r"); /* The first number: pages of it. */
    if (file != NULL) {
        (void)fgets(line, sizeof line, file);
        (void)fclose(file);
    }
    return strtoull(line, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What is asked for past the limit is refused; arenas and the solver end the process then. */
static void limit_memory(uint64_t bytes)
{
    struct rlimit limit;
    uint64_t most = mapped_bytes() + bytes;
    if (bytes > 0 && getrlimit(RLIMIT_AS, &limit) == 0 && most < limit.rlim_cur) {
        limit.rlim_cur = most;
        (void)setrlimit(RLIMIT_AS, &limit);
    }
}

static void work_in_child(graft_env *env, const graft_pool_job *job, int from, int to)
{
    uint32_t item = 0;
    limit_memory(job->memory_bytes);
    while (read_all(from, &item, sizeof item)) {
        graft_arena_reset(env->unit);
        graft_buffer answer = {.arena = env->unit};
        job->run(env, job->context, item, &answer);
        uint64_t size = answer.size;
        if (!write_all(to, &size, sizeof size) || !write_all(to, answer.data, answer.size)) {
            return;
        }
    }
}

/* A child must not hold the parent's ends of other children's pipes: they would never see the end.
 */
static void close_others(const pool *p)
{
    for (uint32_t i = 0; i < p->worker_count; i++) {
        if (p->workers[i].pid != 0) {
            (void)close(p->workers[i].to);
            (void)close(p->workers[i].from);
        }
    }
}

static bool start_worker(pool *p, worker *w)
{
    int down[2];
    int up[2];
    if (pipe(down) != 0) {
        return false;
    }
    if (pipe(up) != 0) {
        (void)close(down[0]);
        (void)close(down[1]);
        return false;
    }
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(down[1]);
        (void)close(up[0]);
        close_others(p);
        work_in_child(p->env, p->job, down[0], up[1]);
        _exit(0);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    if (pid < 0) {
        (void)close(down[1]);
        (void)close(up[0]);
        return false;
    }
    *w = (worker){.pid = pid, .to = down[1], .from = up[0], .item = NO_ITEM};
    return true;
}

/* ------------------------------------------------------------------ parent */

const char *graft_pool_outcome_name(uint32_t outcome)
{
    static const char *const names[] = {"is done", "crashed", "ran out of memory",
                                        "ran out of time"};
    return outcome < sizeof names / sizeof names[0] ? names[outcome] : "?";
}

/* Ends a child; what has become of it where nobody killed it. */
static graft_pool_outcome stop_worker(worker *w, bool kill_it)
{
    int how = 0;
    if (w->pid == 0) {
        return GRAFT_POOL_DONE;
    }
    if (kill_it) {
        (void)kill(w->pid, SIGKILL);
    }
    (void)close(w->to);
    (void)close(w->from);
    while (waitpid(w->pid, &how, 0) < 0 && errno == EINTR) {
    }
    w->pid = 0;
    bool exhausted = WIFEXITED(how) && WEXITSTATUS(how) == GRAFT_EXIT_NO_MEMORY;
    return exhausted ? GRAFT_POOL_EXHAUSTED : GRAFT_POOL_CRASHED;
}

static void finish_item(pool *p, worker *w, graft_pool_outcome outcome)
{
    p->results[w->item].outcome = (uint8_t)outcome;
    w->item = NO_ITEM;
    p->done++;
    graft_progress_update(&p->progress, p->done, NULL);
}

/* Hands an item to a worker, starting it if need be. */
static graft_status hand_over(pool *p, worker *w, uint32_t item)
{
    if (w->pid == 0 && !start_worker(p, w)) {
        return GRAFT_FAIL(p->env, GRAFT_NO_MEMORY, "%s: cannot start a child process: %s",
                          p->job->label, strerror(errno));
    }
    w->item = item;
    w->start_ns = graft_clock_ns();
    if (!write_all(w->to, &item, sizeof item)) { /* It died between two items. */
        (void)stop_worker(w, true);
        finish_item(p, w, GRAFT_POOL_CRASHED);
    }
    return GRAFT_OK;
}

/* Hands the next item to an idle worker. */
static graft_status feed_worker(pool *p, worker *w)
{
    bool idle = p->left > 0 && w->item == NO_ITEM;
    return idle ? hand_over(p, w, --p->left) : GRAFT_OK;
}

/* A child has died of its item. Memory that earlier items have left behind must not decide: for
 * want of memory an item fails in a child of its own only. */
static graft_status take_death(pool *p, worker *w)
{
    uint32_t item = (uint32_t)w->item;
    bool first = w->served == 0;
    graft_pool_outcome outcome = stop_worker(w, true);
    if (outcome == GRAFT_POOL_EXHAUSTED && !first) {
        return hand_over(p, w, item);
    }
    finish_item(p, w, outcome);
    return GRAFT_OK;
}

static graft_status receive_answer(pool *p, worker *w)
{
    uint64_t size = 0;
    graft_pool_result *result = &p->results[w->item];
    if (read_all(w->from, &size, sizeof size)) {
        result->answer = graft_arena_alloc(p->arena, size);
        result->bytes = size;
        if (read_all(w->from, result->answer, size)) {
            w->served++;
            finish_item(p, w, GRAFT_POOL_DONE);
            return GRAFT_OK;
        }
    }
    *result = (graft_pool_result){0};
    return take_death(p, w);
}

static void kill_late(pool *p)
{
    uint64_t now = graft_clock_ns();
    for (uint32_t i = 0; i < p->worker_count; i++) {
        worker *w = &p->workers[i];
        if (w->item != NO_ITEM && p->job->limit_ns != 0 && now - w->start_ns > p->job->limit_ns) {
            (void)stop_worker(w, true);
            finish_item(p, w, GRAFT_POOL_KILLED);
        }
    }
}

/* Waits for answers and takes them. */
static graft_status take_answers(pool *p)
{
    graft_status status = GRAFT_OK;
    struct pollfd files[CHILDREN_MOST];
    for (uint32_t i = 0; i < p->worker_count; i++) {
        bool busy = p->workers[i].item != NO_ITEM;
        files[i] = (struct pollfd){.fd = busy ? p->workers[i].from : -1, .events = POLLIN};
    }
    if (poll(files, p->worker_count, POLL_MS) > 0) {
        for (uint32_t i = 0; i < p->worker_count; i++) {
            if ((files[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                GRAFT_CHECK(receive_answer(p, &p->workers[i]));
            }
        }
    }
    kill_late(p);
done:
    return status;
}

graft_status graft_pool_run(graft_env *env, graft_arena *arena, const graft_pool_job *job,
                            graft_pool_result *results)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    pool *p = GRAFT_NEW(env->scratch, pool, 1);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    p->env = env;
    p->arena = arena;
    p->job = job;
    p->results = results;
    p->left = job->item_count;
    p->worker_count = env->thread_count < CHILDREN_MOST ? env->thread_count : CHILDREN_MOST;
    memset(results, 0, job->item_count * sizeof *results);
    for (uint32_t i = 0; i < p->worker_count; i++) {
        p->workers[i].item = NO_ITEM;
    }
    (void)sigaction(SIGPIPE, &ignore, &before); /* A dead child is noticed by the failed write. */
    graft_progress_start(&p->progress, env, job->label, job->unit, job->item_count);
    while (p->done < job->item_count) {
        for (uint32_t i = 0; i < p->worker_count; i++) {
            GRAFT_CHECK(feed_worker(p, &p->workers[i]));
        }
        GRAFT_CHECK(take_answers(p));
        if (graft_interrupted()) {
            status = GRAFT_FAIL(env, GRAFT_INTERRUPTED, "%s: interrupted", job->label);
            goto done;
        }
    }
    graft_progress_finish(&p->progress);
done:
    for (uint32_t i = 0; i < p->worker_count; i++) {
        (void)stop_worker(&p->workers[i], status != GRAFT_OK);
    }
    (void)sigaction(SIGPIPE, &before, NULL);
    graft_arena_release(env->scratch, mark);
    return status;
}
