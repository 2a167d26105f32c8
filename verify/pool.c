/* pool.c - the parent polls, the children work. See pool.h.
 *
 *   parent ──── index, what is sent ───► child          (one pipe each way and child)
 *          ◄───────── outcome ──────────   │ forks, where the job is fresh, and waits
 *          ◄═══════ file: answer ══════════╧ for the one who does the item
 */
#include "verify/pool.h"

#include "graph/base/log.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_MOST = 64, POLL_MS = 200, NO_ITEM = -1, NO_FILE = -1 };

typedef struct {
    pid_t pid;  /* 0: not running. */
    int to;     /* Items. */
    int from;   /* Outcomes. */
    int answer; /* The file of the last answer; open as long as the pool is. */
    int64_t item;
    uint64_t start_ns;
    uint32_t served; /* Items that this child was given before. */
} worker;

struct graft_pool {
    graft_env *env;
    graft_pool_job job; /* The one in hand. */
    graft_arena *arena; /* Of its answers. */
    graft_pool_result *results;
    worker workers[CHILDREN_MOST];
    uint32_t worker_count;
    uint32_t left;  /* Items not handed out: those before this one, or the last ones. */
    uint32_t taken; /* Told to job.take. */
    uint32_t known; /* Done by an earlier run. */
    uint32_t done;  /* These included. */
    graft_progress progress;
};

typedef graft_pool pool;

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
        if (fgets(line, sizeof line, file) == NULL) {
            line[0] = '\0'; /* Counts as none. */
        }
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

typedef struct {
    graft_env *env;
    const graft_pool_job *job;
    int from;
    int to;
    int answer;
} child;

typedef struct {
    uint32_t index;
    uint64_t size;
} item_header;

/* Reads an item, does it and leaves the answer in the file. False when there are no more. */
static bool do_item(const child *c)
{
    item_header header;
    graft_arena_reset(c->env->unit);
    graft_buffer answer = {.arena = c->env->unit};
    if (!read_all(c->from, &header, sizeof header)) {
        return false;
    }
    uint8_t *data = graft_arena_alloc(c->env->unit, header.size);
    if (!read_all(c->from, data, header.size)) {
        return false;
    }
    const graft_pool_item item = {header.index, data, header.size};
    /* Emptied before: what ends in the middle leaves no answer of another item's. */
    bool is_written = ftruncate(c->answer, 0) == 0 && lseek(c->answer, 0, SEEK_SET) == 0;
    c->job->run(c->env, c->job->context, &item, &answer);
    is_written = is_written && write_all(c->answer, answer.data, answer.size);
    if (!is_written) { /* The file is memory. */
        _exit(GRAFT_EXIT_NO_MEMORY);
    }
    return true;
}

/* What became of a process that has ended. */
static graft_pool_outcome outcome_of(pid_t pid)
{
    int how = 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(how)) {
        return GRAFT_POOL_CRASHED;
    }
    return WEXITSTATUS(how) == 0                      ? GRAFT_POOL_DONE
           : WEXITSTATUS(how) == GRAFT_EXIT_NO_MEMORY ? GRAFT_POOL_EXHAUSTED
                                                      : GRAFT_POOL_CRASHED;
}

/* Has a process of its own read and do the next item. */
static graft_pool_outcome do_item_apart(const child *c)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(do_item(c) ? 0 : 1);
    }
    if (pid < 0) { /* The item is still in the pipe: end with it. */
        _exit(GRAFT_EXIT_NO_MEMORY);
    }
    return outcome_of(pid);
}

/* Waits for an item without a look at it; false when there are no more. */
static bool is_item_there(int from)
{
    struct pollfd file = {.fd = from, .events = POLLIN};
    while (poll(&file, 1, -1) < 0 && errno == EINTR) {
    }
    return (file.revents & POLLIN) != 0;
}

#ifdef __GLIBC__
/* A new context of Z3 begins with tables of 17 MB, and a process of its own takes a fault for each
 * page of them: let the heap grow into huge pages. */
static void widen_heap(void)
{
    static const uintptr_t huge_bytes = (uintptr_t)2 << 20;
    static const int room_bytes = 256 << 20;
    static const int large_bytes = 32 << 20; /* As much as glibc keeps in a heap. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) {
        return; /* Room that is not there would be refused, and with it what is needed. */
    }
    (void)mallopt(M_TOP_PAD, room_bytes);
    (void)mallopt(M_MMAP_THRESHOLD, large_bytes);
    (void)mallopt(M_TRIM_THRESHOLD, 2 * room_bytes);
    uint8_t *volatile piece = malloc((size_t)large_bytes / 2); /* From here on it is new. */
    uint8_t *end = sbrk(0);
    if (piece == NULL) {
        return;
    }
    uint8_t *begin = piece + (huge_bytes - (uintptr_t)piece % huge_bytes);
    if (begin < end) { /* The heap is the C library's. */
        (void)madvise(begin, (uintptr_t)(end - begin) / huge_bytes * huge_bytes,
                      MADV_HUGEPAGE); /* Or do without. */
    }
    free(piece);
}
#else
static void widen_heap(void) {}
#endif

static void work_in_child(const child *c)
{
    uint8_t outcome = GRAFT_POOL_DONE;
    if (c->job->is_fresh) {
        widen_heap();
    }
    limit_memory(c->job->memory_bytes);
    while (c->job->is_fresh ? is_item_there(c->from) : do_item(c)) {
        if (c->job->is_fresh) {
            outcome = (uint8_t)do_item_apart(c);
        }
        if (!write_all(c->to, &outcome, sizeof outcome)) {
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
    if (w->answer == NO_FILE) {
        w->answer = memfd_create("answer", MFD_CLOEXEC);
    }
    if (w->answer == NO_FILE || pipe(down) != 0) {
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
        const child c = {p->env, &p->job, down[0], up[1], w->answer};
        work_in_child(&c);
        _exit(0);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    if (pid < 0) {
        (void)close(down[1]);
        (void)close(up[0]);
        return false;
    }
    w->pid = pid;
    w->to = down[1];
    w->from = up[0];
    w->item = NO_ITEM;
    w->served = 0;
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
    if (w->pid == 0) {
        return GRAFT_POOL_DONE;
    }
    if (kill_it) {
        (void)kill(w->pid, SIGKILL);
    }
    (void)close(w->to);
    (void)close(w->from);
    graft_pool_outcome outcome = outcome_of(w->pid);
    w->pid = 0;
    return outcome == GRAFT_POOL_EXHAUSTED ? outcome : GRAFT_POOL_CRASHED;
}

/* Tells what is known of items whose turn has come. */
static void tell_results(pool *p)
{
    while (p->job.take != NULL && p->taken < p->job.item_count && p->results[p->taken].is_there) {
        graft_progress_hide(&p->progress);
        p->job.take(p->job.taker, p->taken, &p->results[p->taken]);
        p->taken++;
    }
}

static void finish_item(pool *p, worker *w, graft_pool_outcome outcome)
{
    p->results[w->item].outcome = (uint8_t)outcome;
    p->results[w->item].is_there = true;
    w->item = NO_ITEM;
    p->done++;
    tell_results(p);
    graft_progress_update(&p->progress, p->done - p->known, NULL);
}

/* Hands an item to a worker, starting it if need be. */
static graft_status hand_over(pool *p, worker *w, uint32_t item)
{
    const graft_buffer nothing = {0};
    const graft_buffer *sent = p->job.sent != NULL ? &p->job.sent[item] : &nothing;
    const item_header header = {item, sent->size};
    if (w->pid == 0 && !start_worker(p, w)) {
        return GRAFT_FAIL(p->env, GRAFT_NO_MEMORY, "%s: cannot start a child process: %s",
                          p->job.label, strerror(errno));
    }
    w->item = item;
    w->start_ns = graft_clock_ns();
    if (!write_all(w->to, &header, sizeof header) ||
        !write_all(w->to, sent->data, sent->size)) { /* It died between two items. */
        (void)stop_worker(w, true);
        finish_item(p, w, GRAFT_POOL_CRASHED);
    }
    return GRAFT_OK;
}

/* The last ones come first, unless somebody waits for them in their order. */
static uint32_t next_item(const pool *p)
{
    return p->job.take != NULL ? p->job.item_count - p->left : p->left - 1;
}

/* Hands the next item to an idle worker. */
static graft_status feed_worker(pool *p, worker *w)
{
    while (p->left > 0 && p->results[next_item(p)].is_there) {
        p->left--; /* An earlier run has done it. */
    }
    if (p->left == 0 || w->item != NO_ITEM) {
        return GRAFT_OK;
    }
    uint32_t item = next_item(p);
    p->left--;
    return hand_over(p, w, item);
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

static graft_status keep_answer(pool *p, uint32_t item)
{
    const graft_pool_result *r = &p->results[item];
    return p->job.kept == NULL ? GRAFT_OK
                               : graft_kept_add(p->env, p->job.kept, p->job.label,
                                                &p->job.sent[item], r->answer, r->bytes);
}

/* Takes the answers that an earlier run has left. */
static void take_kept(pool *p)
{
    for (uint32_t i = 0; p->job.kept != NULL && i < p->job.item_count; i++) {
        graft_pool_result *r = &p->results[i];
        const uint8_t *answer =
            graft_kept_find(p->job.kept, p->job.label, &p->job.sent[i], &r->bytes);
        if (answer != NULL) {
            r->answer = graft_arena_alloc(p->arena, r->bytes);
            memcpy(r->answer, answer, r->bytes);
            r->is_there = true;
            p->known++;
        }
    }
    p->done = p->known;
}

static graft_status receive_answer(pool *p, worker *w)
{
    graft_status status = GRAFT_OK;
    uint8_t outcome = GRAFT_POOL_DONE;
    struct stat file;
    graft_pool_result *result = &p->results[w->item];
    if (!read_all(w->from, &outcome, sizeof outcome)) {
        return take_death(p, w);
    }
    w->served++;
    if (outcome == GRAFT_POOL_DONE) {
        bool is_read = fstat(w->answer, &file) == 0 && lseek(w->answer, 0, SEEK_SET) == 0;
        result->bytes = is_read ? (size_t)file.st_size : 0;
        result->answer = graft_arena_alloc(p->arena, result->bytes);
        if (!is_read || !read_all(w->answer, result->answer, result->bytes)) {
            return GRAFT_FAIL(p->env, GRAFT_IO, "%s: cannot read an answer: %s", p->job.label,
                              strerror(errno));
        }
        GRAFT_CHECK(keep_answer(p, (uint32_t)w->item));
    }
    finish_item(p, w, (graft_pool_outcome)outcome);
done:
    return status;
}

static void kill_late(pool *p)
{
    uint64_t now = graft_clock_ns();
    for (uint32_t i = 0; i < p->worker_count; i++) {
        worker *w = &p->workers[i];
        if (w->item != NO_ITEM && p->job.limit_ns != 0 && now - w->start_ns > p->job.limit_ns) {
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

/* A pool whose children are not started yet. */
static pool *make_pool(graft_env *env, graft_arena *arena, const graft_pool_job *job)
{
    pool *p = GRAFT_NEW(arena, pool, 1);
    p->env = env;
    p->job = *job;
    p->worker_count = env->thread_count < CHILDREN_MOST ? env->thread_count : CHILDREN_MOST;
    for (uint32_t i = 0; i < p->worker_count; i++) {
        p->workers[i] = (worker){.item = NO_ITEM, .answer = NO_FILE};
    }
    return p;
}

graft_status graft_pool_open(graft_env *env, graft_arena *arena, const graft_pool_job *job,
                             graft_pool **opened)
{
    graft_status status = GRAFT_OK;
    pool *p = make_pool(env, arena, job);
    for (uint32_t i = 0; i < p->worker_count; i++) {
        if (!start_worker(p, &p->workers[i])) {
            status = GRAFT_FAIL(env, GRAFT_NO_MEMORY, "cannot start a child process: %s",
                                strerror(errno));
            graft_pool_close(p);
            return status;
        }
    }
    *opened = p;
    return status;
}

static graft_status do_items(pool *p)
{
    graft_status status = GRAFT_OK;
    take_kept(p);
    graft_progress_start(&p->progress, p->env, p->job.label, p->job.unit,
                         p->job.item_count - p->known);
    tell_results(p);
    while (p->done < p->job.item_count) {
        for (uint32_t i = 0; i < p->worker_count; i++) {
            GRAFT_CHECK(feed_worker(p, &p->workers[i]));
        }
        GRAFT_CHECK(take_answers(p));
        if (graft_interrupted()) {
            status = GRAFT_FAIL(p->env, GRAFT_INTERRUPTED, "%s: interrupted", p->job.label);
            goto done;
        }
    }
    graft_progress_finish(&p->progress);
done:
    return status;
}

graft_status graft_pool_do(graft_pool *p, graft_arena *arena, const graft_pool_job *job,
                           graft_pool_result *results)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    const graft_pool_job children = p->job;
    p->job = *job;
    p->job.memory_bytes = children.memory_bytes;
    p->job.is_fresh = children.is_fresh;
    p->job.run = children.run;
    p->job.context = children.context;
    p->arena = arena;
    p->results = results;
    p->left = job->item_count;
    p->known = 0;
    p->taken = 0;
    memset(results, 0, job->item_count * sizeof *results);
    (void)sigaction(SIGPIPE, &ignore, &before); /* A dead child is noticed by the failed write. */
    graft_status status = do_items(p);
    (void)sigaction(SIGPIPE, &before, NULL);
    return status;
}

void graft_pool_close(graft_pool *p)
{
    for (uint32_t i = 0; p != NULL && i < p->worker_count; i++) {
        worker *w = &p->workers[i];
        (void)stop_worker(w, w->item != NO_ITEM);
        if (w->answer != NO_FILE) {
            (void)close(w->answer);
        }
    }
}

graft_status graft_pool_run(graft_env *env, graft_arena *arena, const graft_pool_job *job,
                            graft_pool_result *results)
{
    graft_mark mark = graft_arena_mark(env->scratch);
    pool *p = make_pool(env, env->scratch, job);
    graft_status status = graft_pool_do(p, arena, job, results);
    graft_pool_close(p);
    graft_arena_release(env->scratch, mark);
    return status;
}
