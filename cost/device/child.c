/* child.c - see child.h. */
#include "cost/device/child.h"

#include "graph/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_FREE = 3, POLL_MS = 100, PAUSE_NS = 2000000 };

/* --------------------------------------------------------------- starting */

/* A pipe whose ends are no standard streams, also where those were closed. */
static bool open_pipe(int ends[2])
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) != 0) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, FIRST_FREE);
        (void)close(low[i]);
    }
    if (ends[0] >= 0 && ends[1] >= 0) {
        return true;
    }
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) {
            (void)close(ends[i]);
        }
    }
    return false;
}

/* The system's error number, or 0. */
static int spawn(char *const *arguments, int orders, int answers, pid_t *process)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, orders, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, answers, STDOUT_FILENO);
    (void)posix_spawn_file_actions_addclosefrom_np(&actions, FIRST_FREE);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    (void)sigemptyset(&signals);
    (void)posix_spawnattr_setsigmask(&attributes, &signals);
    (void)sigaddset(&signals, SIGPIPE);
    (void)posix_spawnattr_setsigdefault(&attributes, &signals);
    int failed = posix_spawnp(process, arguments[0], &actions, &attributes, arguments, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

graft_status graft_child_start(graft_env *env, char *const *arguments, graft_child *child)
{
    int orders[2];
    int answers[2];
    *child = (graft_child){.process = 0};
    if (!open_pipe(orders)) {
        return GRAFT_FAIL(env, GRAFT_IO, "no pipe can be opened: %s", strerror(errno));
    }
    if (!open_pipe(answers)) {
        (void)close(orders[0]);
        (void)close(orders[1]);
        return GRAFT_FAIL(env, GRAFT_IO, "no pipe can be opened: %s", strerror(errno));
    }
    int failed = spawn(arguments, orders[0], answers[1], &child->process);
    (void)close(orders[0]);
    (void)close(answers[1]);
    child->orders = orders[1];
    child->answers = answers[0];
    if (failed != 0) {
        (void)close(orders[1]);
        (void)close(answers[0]);
        *child = (graft_child){.process = 0};
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "%s: cannot be started: %s", arguments[0],
                          strerror(failed));
    }
    (void)fcntl(child->orders, F_SETFL, O_NONBLOCK);
    return GRAFT_OK;
}

/* ---------------------------------------------------------------- talking */

/* Waits until the descriptor is ready, or closed at its other end. */
static graft_status await(graft_env *env, int descriptor, short what, uint64_t deadline_ns)
{
    struct pollfd waiting = {.fd = descriptor, .events = what};
    while (poll(&waiting, 1, POLL_MS) <= 0) { /* Slices: a signal may come before the call. */
        GRAFT_PASS(graft_interrupted_while(env, "measuring"));
        if (graft_clock_ns() >= deadline_ns) {
            return GRAFT_FAIL(env, GRAFT_UNDECIDED, "no answer in time");
        }
    }
    return GRAFT_OK;
}

/* write() to a pipe that nobody reads, without the signal: it is blocked in this thread, and taken
 * away when it is pending. */
static ssize_t write_quietly(int descriptor, const char *data, size_t size)
{
    static const struct timespec now = {.tv_sec = 0};
    sigset_t pipe_signal;
    sigset_t before;
    (void)sigemptyset(&pipe_signal);
    (void)sigaddset(&pipe_signal, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t put = write(descriptor, data, size);
    int problem = errno;
    if (put < 0 && problem == EPIPE) {
        (void)sigtimedwait(&pipe_signal, NULL, &now);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = problem;
    return put;
}

graft_status graft_child_write(graft_env *env, const graft_child *child, const char *data,
                               size_t size, uint64_t deadline_ns)
{
    for (size_t done = 0; done < size;) {
        GRAFT_PASS(await(env, child->orders, POLLOUT, deadline_ns));
        ssize_t put = write_quietly(child->orders, data + done, size - done);
        if (put < 0 && errno != EAGAIN && errno != EINTR) {
            return GRAFT_FAIL(env, GRAFT_IO, "it has ended");
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return GRAFT_OK;
}

graft_status graft_child_read_line(graft_env *env, const graft_child *child, char *line,
                                   size_t most, uint64_t deadline_ns, size_t *size)
{
    const char *newline = NULL;
    size_t have = 0;
    while (newline == NULL) {
        if (have == most) {
            return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "its answer is longer than %zu bytes", most);
        }
        GRAFT_PASS(await(env, child->answers, POLLIN, deadline_ns));
        ssize_t got = read(child->answers, line + have, most - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return GRAFT_FAIL(env, GRAFT_IO,
                              have == 0 ? "it has ended" : "it has ended within its answer");
        }
        newline = memchr(line + have, '\n', (size_t)got);
        have += (size_t)got;
    }
    *size = (size_t)(newline - line);
    if (*size + 1 != have) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "it answers more than one line");
    }
    line[*size] = '\0';
    return GRAFT_OK;
}

/* ----------------------------------------------------------------- ending */

/* Whether it has ended; it is not waited for, so that its number stays its own. */
static bool has_ended(pid_t process)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == process;
}

int graft_child_end(graft_child *child, uint32_t patience_ms)
{
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const uint64_t deadline_ns = graft_clock_ns() + patience_ms * UINT64_C(1000000);
    int ended = -1;
    if (child->process == 0) {
        return -1;
    }
    (void)close(child->orders);
    (void)close(child->answers);
    while (!has_ended(child->process) && graft_clock_ns() < deadline_ns) {
        (void)nanosleep(&pause, NULL);
    }
    (void)kill(-child->process, SIGKILL); /* With what it started itself. */
    while (waitpid(child->process, &ended, 0) < 0 && errno == EINTR) {
    }
    *child = (graft_child){.process = 0};
    return ended;
}
