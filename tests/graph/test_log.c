/* Events and progress as they arrive on stderr: in a file, and on a terminal (a pseudo-terminal).
 */
#include "graph/base/log.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { TEXT_BYTES = 1 << 14 };

/* stderr goes to `end` while a body runs; what arrived is in `text` afterwards. */
typedef struct {
    int saved;
    int in;
    int out;
    char text[TEXT_BYTES];
} capture;

static void begin_capture(capture *c, int in, int out)
{
    (void)fflush(stderr);
    c->in = in;
    c->out = out;
    c->saved = dup(STDERR_FILENO);
    assert_true(c->saved >= 0);
    assert_true(dup2(out, STDERR_FILENO) >= 0);
}

static void begin_pipe(capture *c)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    begin_capture(c, ends[0], ends[1]);
}

static bool begin_terminal(capture *c, unsigned short columns)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        return false;
    }
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (slave < 0) {
        return false;
    }
    struct winsize window = {.ws_row = 24, .ws_col = columns};
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &window), 0);
    begin_capture(c, master, slave);
    return true;
}

static void end_capture(capture *c)
{
    (void)fflush(stderr);
    assert_true(dup2(c->saved, STDERR_FILENO) >= 0);
    (void)close(c->saved);
    assert_int_equal(fcntl(c->in, F_SETFL, O_NONBLOCK), 0);
    size_t have = 0;
    ssize_t got = 0;
    while ((got = read(c->in, c->text + have, TEXT_BYTES - 1 - have)) > 0) {
        have += (size_t)got;
    }
    c->text[have] = '\0';
    (void)close(c->out);
    (void)close(c->in);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

CHECK_CASE(test_levels)
{
    static const struct {
        int verbosity;
        const char *want;
    } rows[] = {
        {0, "graft: error 0\n"                                 },
        {1, "graft: error 0\ngraft: event 1\n"                 },
        {2, "graft: error 0\ngraft: event 1\ngraft: detail 2\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        capture c;
        env->verbosity = rows[i].verbosity;
        begin_pipe(&c);
        graft_log(env, 0, "error %d", 0);
        graft_log(env, 1, "event %d", 1);
        graft_log(env, 2, "detail %d", 2);
        end_capture(&c);
        assert_string_equal(c.text, rows[i].want);
    }
}

static void run_progress(graft_env *env, uint64_t total)
{
    graft_progress progress;
    graft_progress_start(&progress, env, "counting", "sheep", total);
    for (uint64_t i = 1; i <= total; i++) {
        graft_progress_update(&progress, i, i % 2 == 0 ? "even" : NULL);
    }
    graft_progress_finish(&progress);
}

/* In a file: one line for each tenth and one at the end, no control characters. */
CHECK_CASE(test_progress_in_a_file)
{
    env->verbosity = 1;
    capture c;
    begin_pipe(&c);
    run_progress(env, 1000);
    end_capture(&c);
    assert_int_equal(count_of(c.text, "\n"), 11);
    assert_int_equal(count_of(c.text, "graft: counting: "), 11);
    assert_non_null(strstr(c.text, "graft: counting: 10 %, 100/1000 sheep, "));
    assert_non_null(strstr(c.text, "graft: counting: 100 %, 1000/1000 sheep, "));
    assert_non_null(strstr(c.text, " left, even\n"));
    assert_non_null(strstr(c.text, "graft: counting: 1000 sheep in 0 s\n"));
    assert_null(strchr(c.text, '\r'));
    assert_null(strchr(c.text, '\033'));
}

CHECK_CASE(test_progress_of_few_steps)
{
    env->verbosity = 1;
    static const uint64_t totals[] = {0, 1, 3};
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
        capture c;
        begin_pipe(&c);
        run_progress(env, totals[i]);
        end_capture(&c);
        assert_int_equal(count_of(c.text, "\n"), totals[i] + 1);
    }
}

CHECK_CASE(test_progress_quiet)
{
    env->verbosity = 0;
    capture c;
    begin_pipe(&c);
    run_progress(env, 100);
    end_capture(&c);
    assert_string_equal(c.text, "");
}

/* On a terminal: redrawn in place, seldom, and never wider than the window. */
CHECK_CASE(test_progress_on_a_terminal)
{
    env->verbosity = 1;
    capture c;
    if (!begin_terminal(&c, 60)) {
        CHECK_SKIP("no pseudo-terminal can be had here");
    }
    run_progress(env, 1000);
    graft_log(env, 1, "an event");
    end_capture(&c);
    assert_in_range(count_of(c.text, "\r\033[K"), 4, 20); /* First, last, end, event: not 1000. */
    assert_non_null(strstr(c.text, "counting [####################] 1000/1000 sheep"));
    assert_non_null(strstr(c.text, "\r\033[Kgraft: counting: 1000 sheep in 0 s\r\n"));
    assert_non_null(strstr(c.text, "\r\033[Kgraft: an event\r\n"));
    char *rest = NULL;
    for (char *line = strtok_r(c.text, "\r\n", &rest); line != NULL;
         line = strtok_r(NULL, "\r\n", &rest)) {
        size_t invisible = strncmp(line, "\033[K", 3) == 0 ? 3 : 0;
        assert_true(strlen(line) - invisible < 60);
    }
}

CHECK_CASE(test_clock_advances)
{
    uint64_t before = graft_clock_ns();
    (void)usleep(2000);
    uint64_t after = graft_clock_ns();
    assert_true(after - before >= 2000000);
}

/* In a child: the first signal is noted, the second kills. */
CHECK_CASE(test_interrupts)
{
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < 2; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            graft_interrupt_install();
            if (graft_interrupted()) {
                _exit(1);
            }
            (void)raise(signals[i]);
            if (!graft_interrupted()) {
                _exit(2);
            }
            (void)raise(signals[1 - i]);
            _exit(3);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), signals[1 - i]);
    }
}
