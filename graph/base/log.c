/* log.c - events, the progress bar and Ctrl-C (see log.h). */
#include "graph/base/log.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    BAR_CELLS = 20,
    LINE_BYTES = 512,
    REDRAW_NS = 100 * 1000 * 1000,
    DEFAULT_COLUMNS = 80,
    MINUTE_S = 60,
    HOUR_S = 3600
};

static const uint64_t ns_per_second = 1000000000;

/* The program's only mutable state outside a struct: signal handlers have no argument to hang it
 * on. */
static volatile sig_atomic_t interrupted;

uint64_t graft_clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * ns_per_second + (uint64_t)now.tv_nsec;
}

/* --- Events ------------------------------------------------------------------------------------
 */

static bool is_terminal(void) { return isatty(STDERR_FILENO) == 1; }

void graft_log(const graft_env *env, int level, const char *format, ...)
{
    if (env->verbosity < level) {
        return;
    }
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    /* One call, so that lines of several threads do not mix; a live bar is redrawn below. */
    (void)fprintf(stderr, "%sgraft: %s\n", is_terminal() ? "\r\033[K" : "", line);
}

/* --- Progress ----------------------------------------------------------------------------------
 */

/* "7 s", "3:05 min", "2:03 h". */
static void print_duration(char *out, size_t size, double seconds)
{
    uint64_t s = (uint64_t)(seconds + 0.5);
    if (s < MINUTE_S) {
        (void)snprintf(out, size, "%" PRIu64 " s", s);
    } else if (s < HOUR_S) {
        (void)snprintf(out, size, "%" PRIu64 ":%02" PRIu64 " min", s / MINUTE_S, s % MINUTE_S);
    } else {
        (void)snprintf(out, size, "%" PRIu64 ":%02" PRIu64 " h", s / HOUR_S, s % HOUR_S / MINUTE_S);
    }
}

/* What is said behind the bar: counts, rate, time left, note. */
static void print_state(const graft_progress *p, char *out, size_t size, uint64_t now_ns,
                        const char *note)
{
    double elapsed = (double)(now_ns - p->start_ns) / (double)ns_per_second;
    double rate = elapsed > 0.0 ? (double)p->done / elapsed : 0.0;
    char spent[32];
    char left[32] = "?";
    print_duration(spent, sizeof(spent), elapsed);
    if (p->done > 0 && p->total >= p->done) {
        print_duration(left, sizeof(left), (double)(p->total - p->done) / rate);
    }
    (void)snprintf(out, size, "%" PRIu64 "/%" PRIu64 " %s, %.3g/s, %s, %s left%s%s", p->done,
                   p->total, p->unit, rate, spent, left, note == NULL ? "" : ", ",
                   note == NULL ? "" : note);
}

static uint32_t share_of(const graft_progress *p, uint32_t parts)
{
    if (p->total == 0 || p->done >= p->total) {
        return parts;
    }
    return (uint32_t)((double)p->done / (double)p->total * (double)parts);
}

static size_t terminal_columns(void)
{
    struct winsize window;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) {
        return window.ws_col;
    }
    return DEFAULT_COLUMNS;
}

/* Redraws in place; cut to the width of the terminal, because a wrapped line cannot be redrawn. */
static void draw_bar(const graft_progress *p, uint64_t now_ns, const char *note)
{
    char state[LINE_BYTES];
    char cells[BAR_CELLS + 1];
    char line[2 * LINE_BYTES];
    print_state(p, state, sizeof(state), now_ns, note);
    uint32_t full = share_of(p, BAR_CELLS);
    memset(cells, '.', BAR_CELLS);
    memset(cells, '#', full);
    cells[BAR_CELLS] = '\0';
    int length = snprintf(line, sizeof(line), "%s [%s] %s", p->label, cells, state);
    size_t columns = terminal_columns() - 1;
    if (length > 0 && (size_t)length > columns && columns < sizeof(line)) {
        line[columns] = '\0';
    }
    (void)fprintf(stderr, "\r\033[K%s", line);
    (void)fflush(stderr);
}

void graft_progress_start(graft_progress *progress, const graft_env *env, const char *label,
                          const char *unit, uint64_t total)
{
    *progress = (graft_progress){
        .env = env, .label = label, .unit = unit, .total = total, .start_ns = graft_clock_ns()};
}

void graft_progress_update(graft_progress *progress, uint64_t done, const char *note)
{
    progress->done = done;
    if (progress->env->verbosity < 1) {
        return;
    }
    uint64_t now_ns = graft_clock_ns();
    uint32_t tenths = share_of(progress, 10);
    if (!is_terminal()) {
        if (tenths > progress->drawn_tenths) {
            progress->drawn_tenths = tenths;
            char state[LINE_BYTES];
            print_state(progress, state, sizeof(state), now_ns, note);
            (void)fprintf(stderr, "graft: %s: %" PRIu32 " %%, %s\n", progress->label,
                          share_of(progress, 100), state);
        }
        return;
    }
    if (now_ns - progress->drawn_ns >= REDRAW_NS || done >= progress->total) {
        progress->drawn_ns = now_ns;
        draw_bar(progress, now_ns, note);
    }
}

void graft_progress_hide(graft_progress *progress)
{
    if (progress->drawn_ns != 0 && is_terminal()) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
    progress->drawn_ns = 0;
}

/* Leaves one line that says what was done and how long it took. */
void graft_progress_finish(graft_progress *progress)
{
    uint64_t spent_ns = graft_clock_ns() - progress->start_ns;
    char spent[32];
    print_duration(spent, sizeof(spent), (double)spent_ns / (double)ns_per_second);
    graft_log(progress->env, 1, "%s: %" PRIu64 " %s in %s", progress->label, progress->done,
              progress->unit, spent);
}

/* --- Interrupts --------------------------------------------------------------------------------
 */

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
}

void graft_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = note_interrupt;
    action.sa_flags = SA_RESTART;
    (void)sigemptyset(&action.sa_mask);
    interrupted = 0;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool graft_interrupted(void) { return interrupted != 0; }

graft_status graft_interrupted_while(graft_env *env, const char *doing)
{
    return graft_interrupted() ? GRAFT_FAIL(env, GRAFT_INTERRUPTED, "interrupted while %s", doing)
                               : GRAFT_OK;
}
