/* pool.c - the parent polls, the children work. See pool.h.
 *
 *   parent ──── index, what is sent ───► child          (one pipe each way and child)
 *          ◄───────── outcome ──────────   │ forks, where the job is fresh, and waits
 *          ◄═══════ file: answer ══════════╧ for the one who does the item
 *
 * Between ranks, whose parents all have what is sent:
 *
 *   rank 0 ◄── "I take 8 items" ──── rank 1             (once)
 *          ─────── index ──────────►                    (as long as it has room and items are left)
 *          ◄─ index, outcome, answer                    (which makes room for one more)
 *          ─────── "over" ─────────►                    (when all is known)
 *          ═══════ all answers ═════► all ranks
 */
#include "verify/pool.h"

#include "graph/base/log.h"
#include "graph/base/ranks.h"

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
#include <xxhash.h>

enum { CHILDREN_MOST = 64, POLL_MS = 200, NO_ITEM = -1, NO_FILE = -1 };
/* MPI is asked, not waited for. A rank has this many items for each child: one in hand, one
 * next. */
enum { RANK_POLL_MS = 2, ROOM_PER_CHILD = 2, ROOM = 255 };

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
    /* The first rank's, by rank: how many more items it takes, and how many ranks have said so. */
    uint32_t *rooms;
    uint32_t heard;
    /* Another rank's: items that it was given and no child has yet, and whether there are more. */
    uint32_t given[ROOM_PER_CHILD * CHILDREN_MOST];
    uint32_t given_count;
    bool is_over;
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
        p->env->ranks = NULL; /* MPI is the parent's. */
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

static void settle_item(pool *p, uint32_t item, graft_pool_outcome outcome)
{
    p->results[item].outcome = (uint8_t)outcome;
    p->results[item].is_there = true;
    p->done++;
    tell_results(p);
    graft_progress_update(&p->progress, p->done - p->known, NULL);
}

/* What one rank tells the first about an item, whose answer is behind it; or, once, how many items
 * it takes at a time. */
typedef struct {
    uint32_t item;
    uint32_t outcome; /* graft_pool_outcome, or ROOM: `item` is their number. */
} report;

/* Tells the first rank what became of an item, and forgets it. */
static graft_status report_item(pool *p, uint32_t item, graft_pool_outcome outcome)
{
    GRAFT_SCOPED(p->env->scratch);
    graft_buffer message = {.arena = p->env->scratch};
    const report about = {item, (uint32_t)outcome};
    graft_buffer_append(&message, &about, sizeof about);
    graft_buffer_append(&message, p->results[item].answer, p->results[item].bytes);
    graft_status status = graft_ranks_send(p->env, 0, &message);
    p->results[item] = (graft_pool_result){.answer = NULL};
    return status;
}

static graft_status finish_item(pool *p, worker *w, graft_pool_outcome outcome)
{
    uint32_t item = (uint32_t)w->item;
    w->item = NO_ITEM;
    if (graft_ranks_own(p->env) > 0) {
        return report_item(p, item, outcome);
    }
    settle_item(p, item, outcome);
    return GRAFT_OK;
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
        return finish_item(p, w, GRAFT_POOL_CRASHED);
    }
    return GRAFT_OK;
}

/* The last ones come first, unless somebody waits for them in their order. */
static uint32_t next_item(const pool *p)
{
    return p->job.take != NULL ? p->job.item_count - p->left : p->left - 1;
}

/* Takes the next item for a child or another rank; false when there is none. */
static bool take_item(pool *p, uint32_t *item)
{
    if (graft_ranks_own(p->env) > 0) {
        if (p->given_count > 0) {
            *item = p->given[--p->given_count];
            return true;
        }
        return false;
    }
    while (p->left > 0 && p->results[next_item(p)].is_there) {
        p->left--; /* An earlier run has done it. */
    }
    if (p->left == 0) {
        return false;
    }
    *item = next_item(p);
    p->left--;
    return true;
}

/* Hands the next item to an idle worker. */
static graft_status feed_worker(pool *p, worker *w)
{
    uint32_t item;
    return w->item == NO_ITEM && take_item(p, &item) ? hand_over(p, w, item) : GRAFT_OK;
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
    return finish_item(p, w, outcome);
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
            r->answer = GRAFT_COPY(p->arena, answer, r->bytes);
            r->is_there = true;
            p->known++;
        }
    }
    p->done = p->known;
}

static graft_status receive_answer(pool *p, worker *w)
{
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
        GRAFT_PASS(keep_answer(p, (uint32_t)w->item));
    }
    return finish_item(p, w, (graft_pool_outcome)outcome);
}

static graft_status kill_late(pool *p)
{
    uint64_t now = graft_clock_ns();
    for (uint32_t i = 0; i < p->worker_count; i++) {
        worker *w = &p->workers[i];
        if (w->item != NO_ITEM && p->job.limit_ns != 0 && now - w->start_ns > p->job.limit_ns) {
            (void)stop_worker(w, true);
            GRAFT_PASS(finish_item(p, w, GRAFT_POOL_KILLED));
        }
    }
    return GRAFT_OK;
}

/* Waits for answers and takes them. */
static graft_status take_answers(pool *p)
{
    struct pollfd files[CHILDREN_MOST];
    for (uint32_t i = 0; i < p->worker_count; i++) {
        bool busy = p->workers[i].item != NO_ITEM;
        files[i] = (struct pollfd){.fd = busy ? p->workers[i].from : -1, .events = POLLIN};
    }
    if (poll(files, p->worker_count, p->env->ranks == NULL ? POLL_MS : RANK_POLL_MS) > 0) {
        for (uint32_t i = 0; i < p->worker_count; i++) {
            if ((files[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
                GRAFT_PASS(receive_answer(p, &p->workers[i]));
            }
        }
    }
    return kill_late(p);
}

/* ------------------------------------------------------------------- ranks */

/* Fails where ranks are at different jobs: the input was not the same, or the program is wrong. */
static graft_status compare_jobs(const pool *p)
{
    uint64_t hash = XXH3_64bits_withSeed(p->job.label, strlen(p->job.label), p->job.item_count);
    for (uint32_t i = 0; p->job.sent != NULL && i < p->job.item_count; i++) {
        hash = XXH3_64bits_withSeed(p->job.sent[i].data, p->job.sent[i].size, hash);
    }
    return graft_ranks_agree(p->env, p->job.label, hash);
}

/* Tells the first rank how many items this one takes at a time. */
static graft_status ask_for_items(pool *p)
{
    report room = {.item = ROOM_PER_CHILD * p->worker_count, .outcome = ROOM};
    const graft_buffer message = {.data = (char *)&room, .size = sizeof room};
    p->given_count = 0;
    p->is_over = false;
    return graft_ranks_send(p->env, 0, &message);
}

/* Gives the other ranks items as far as they have room. */
static graft_status feed_ranks(pool *p)
{
    uint32_t item = 0;
    for (uint32_t r = 1; r < graft_ranks_count(p->env); r++) {
        while (p->rooms[r] > 0 && take_item(p, &item)) {
            const graft_buffer message = {.data = (char *)&item, .size = sizeof item};
            p->rooms[r]--;
            GRAFT_PASS(graft_ranks_send(p->env, r, &message));
        }
    }
    return GRAFT_OK;
}

/* Takes what a rank tells the first one: how much room it has, or what became of an item. */
static graft_status take_report(pool *p, uint32_t rank, const graft_buffer *message)
{
    report about;
    memcpy(&about, message->data, sizeof about);
    if (about.outcome == ROOM) {
        p->rooms[rank] = about.item;
        p->heard++;
        return GRAFT_OK;
    }
    graft_pool_result *result = &p->results[about.item];
    p->rooms[rank]++;
    if (about.outcome == GRAFT_POOL_DONE) {
        result->bytes = message->size - sizeof about;
        result->answer = GRAFT_COPY(p->arena, message->data + sizeof about, result->bytes);
        GRAFT_PASS(keep_answer(p, about.item));
    }
    settle_item(p, about.item, (graft_pool_outcome)about.outcome);
    return GRAFT_OK;
}

/* Takes an item that the first rank gives this one, or that there are no more. */
static void take_given(pool *p, const graft_buffer *message)
{
    p->is_over = message->size == 0;
    if (!p->is_over) {
        memcpy(&p->given[p->given_count++], message->data, sizeof p->given[0]);
    }
}

/* Takes the messages that are there. */
static graft_status take_messages(pool *p)
{
    graft_status status = GRAFT_OK;
    graft_buffer message;
    uint32_t from;
    graft_mark mark = graft_arena_mark(p->env->scratch);
    while (!p->is_over && graft_ranks_receive(p->env, p->env->scratch, &from, &message)) {
        if (graft_ranks_own(p->env) > 0) {
            take_given(p, &message);
        } else {
            GRAFT_CHECK(take_report(p, from, &message));
        }
        graft_arena_release(p->env->scratch, mark);
    }
done:
    graft_arena_release(p->env->scratch, mark);
    return status;
}

/* Gives all ranks all results. */
static void share_results(pool *p)
{
    graft_arena *scratch = p->env->scratch;
    GRAFT_SCOPED(scratch);
    uint32_t count = p->job.item_count;
    uint64_t *about = GRAFT_NEW(scratch, uint64_t, (size_t)2 * count);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        about[2 * i] = p->results[i].outcome;
        about[2 * i + 1] = p->results[i].bytes;
    }
    graft_ranks_share(p->env, about, (size_t)2 * count * sizeof *about);
    for (uint32_t i = 0; i < count; i++) {
        bytes += about[2 * i + 1];
    }
    bool is_first = graft_ranks_own(p->env) == 0;
    uint8_t *all = graft_arena_alloc(is_first ? scratch : p->arena, bytes);
    uint8_t *at = all;
    for (uint32_t i = 0; is_first && i < count; at += p->results[i++].bytes) {
        memcpy(at, p->results[i].answer, p->results[i].bytes);
    }
    graft_ranks_share(p->env, all, bytes);
    for (uint32_t i = 0; !is_first && i < count; i++) {
        bool is_done = about[2 * i] == GRAFT_POOL_DONE;
        p->results[i] = (graft_pool_result){.answer = is_done ? at : NULL,
                                            .bytes = about[2 * i + 1],
                                            .outcome = (uint8_t)about[2 * i],
                                            .is_there = true};
        at += about[2 * i + 1];
    }
}

static graft_status begin_ranks(pool *p)
{
    GRAFT_PASS(compare_jobs(p));
    if (graft_ranks_own(p->env) > 0) {
        return ask_for_items(p);
    }
    p->rooms = GRAFT_NEW(p->arena, uint32_t, graft_ranks_count(p->env));
    p->heard = 1;
    return GRAFT_OK;
}

static graft_status end_ranks(pool *p)
{
    const graft_buffer over = {.size = 0};
    for (uint32_t r = 1; graft_ranks_own(p->env) == 0 && r < graft_ranks_count(p->env); r++) {
        GRAFT_PASS(graft_ranks_send(p->env, r, &over));
    }
    share_results(p);
    return GRAFT_OK;
}

/* ------------------------------------------------------------------- whole */

/* Whether there is nothing more to do or to wait for. */
static bool is_finished(const pool *p)
{
    return graft_ranks_own(p->env) > 0
               ? p->is_over
               : p->done == p->job.item_count &&
                     (p->env->ranks == NULL || p->heard == graft_ranks_count(p->env));
}

/* A turn with the other ranks. */
static graft_status meet_ranks(pool *p)
{
    GRAFT_PASS(take_messages(p));
    if (graft_ranks_own(p->env) == 0) {
        GRAFT_PASS(feed_ranks(p));
    }
    return GRAFT_OK;
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
    pool *p = make_pool(env, arena, job);
    for (uint32_t i = 0; i < p->worker_count; i++) {
        if (!start_worker(p, &p->workers[i])) {
            int why = errno;
            graft_pool_close(p);
            return GRAFT_FAIL(env, GRAFT_NO_MEMORY, "cannot start a child process: %s",
                              strerror(why));
        }
    }
    *opened = p;
    return GRAFT_OK;
}

static graft_status do_items(pool *p)
{
    take_kept(p);
    graft_progress_start(&p->progress, p->env, p->job.label, p->job.unit,
                         p->job.item_count - p->known);
    tell_results(p);
    if (p->env->ranks != NULL) {
        GRAFT_PASS(begin_ranks(p));
    }
    while (!is_finished(p)) {
        for (uint32_t i = 0; i < p->worker_count; i++) {
            GRAFT_PASS(feed_worker(p, &p->workers[i]));
        }
        if (p->env->ranks != NULL) {
            GRAFT_PASS(meet_ranks(p));
        }
        GRAFT_PASS(take_answers(p));
        if (graft_interrupted()) {
            return GRAFT_FAIL(p->env, GRAFT_INTERRUPTED, "%s: interrupted", p->job.label);
        }
    }
    graft_progress_finish(&p->progress);
    if (p->env->ranks != NULL) {
        GRAFT_PASS(end_ranks(p));
    }
    return GRAFT_OK;
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
    GRAFT_SCOPED(env->scratch);
    pool *p = make_pool(env, env->scratch, job);
    graft_status status = graft_pool_do(p, arena, job, results);
    graft_pool_close(p);
    return status;
}
