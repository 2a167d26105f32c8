/* device_program.c - see device_program.h. A program is started without a shell, in a process group
 * of its own, and inherits standard error and no other descriptor. It should end when its standard
 * input does; who does not is killed. */
#include "cost/device/device_program.h"

#include "cost/device/backend.h"
#include "cost/device/device_answers.h"
#include "graph/base/env.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/log.h"
#include "models/operator.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct child_program {
    pid_t process; /* 0: none. */
    int orders;    /* Its standard input, for writing; does not block. */
    int answers;   /* Its standard output, for reading. */
} child_program;

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

/* Starts arguments[0], looked up in PATH when it has no slash; the list ends with NULL.
 * GRAFT_UNSUPPORTED, with the system's reason, when it cannot be run; GRAFT_IO when there are no
 * pipes. On failure `child` has no process. */
static graft_status start_child(graft_env *env, char *const *arguments, child_program *child)
{
    int orders[2];
    int answers[2];
    *child = (child_program){.process = 0};
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
        *child = (child_program){.process = 0};
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

/* Writes all of `size` bytes, or fails by `deadline_ns` (graft_clock_ns). GRAFT_IO when the child
 * reads no more, GRAFT_UNDECIDED when time is over, GRAFT_INTERRUPTED when the user asked to stop.
 * A child that has gone raises no SIGPIPE. */
static graft_status write_to_child(graft_env *env, const child_program *child, const char *data,
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

/* Reads one line into `line`, which has room for `most` bytes, and ends it with '\0' in place of
 * the newline; *size is without that. GRAFT_IO when the child's output ends first, GRAFT_BAD_INPUT
 * when the line is longer or something comes behind it (an answer is one line), GRAFT_UNDECIDED and
 * GRAFT_INTERRUPTED as above. */
static graft_status read_line(graft_env *env, const child_program *child, char *line, size_t most,
                              uint64_t deadline_ns, size_t *size)
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

/* Closes its standard input, waits for its end, `patience_ms` at most (0: not at all), then kills
 * its process group. Returns what waitpid says of it; -1 for none. `child` has no process then. */
static int end_child(child_program *child, uint32_t patience_ms)
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
    *child = (child_program){.process = 0};
    return ended;
}

enum { LINE_BYTES = 1 << 18, FAULTS_MOST = 3, PATIENCE_MS = 2000, SECONDS_MOST = 86400 };
enum { FOLDER_BYTES = 4096 };

/* For an answer: starting and loading a runtime; measuring; and whole models, round after round. */
enum { HELLO_SECONDS = 60, TIME_SECONDS = 120, MODELS_SECONDS = 1800 };
/* In place of all three. */
static const char seconds_variable[] = "GRAFT_DEVICE_SECONDS";

/* Operations a nanosecond that no machine does. */
static const double most_rate = 1e7;

typedef struct {
    graft_device_head head;
    graft_arena *arena; /* Its own, where it lies, too. */
    child_program child;
    graft_answer_hello hello;
    char *path;
    char *options;             /* NULL: none. */
    char folder[FOLDER_BYTES]; /* Of files that it is to read; "": not made yet. */
    char *line;                /* Of LINE_BYTES: its answers. */
    uint64_t second_count;     /* Instead of the limits above; 0: none. */
    uint32_t question;         /* The last one's number. */
    uint32_t faults;           /* In a row. */
} program_device;

static program_device *program_of(graft_device *device) { return (program_device *)(void *)device; }

/* ----------------------------------------------------------------- finding */

/* Where options begin: behind the first ':' of the last part of the path. */
static const char *find_options(const char *name)
{
    const char *slash = strrchr(name, '/');
    return strchr(slash == NULL ? name : slash, ':');
}

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

const char *graft_device_program_path(graft_env *env, const char *name)
{
    const char *colon = find_options(name);
    size_t size = colon == NULL ? strlen(name) : (size_t)(colon - name);
    const char *path = graft_arena_printf(env->life, "%.*s", (int)size, name);
    if (size == 0) {
        return NULL;
    }
    if (strchr(path, '/') == NULL) {
        path = graft_file_shipped(env, graft_arena_printf(env->life, "devices/%s", path));
    }
    return is_program(path) ? path : NULL;
}

/* ------------------------------------------------------------------ asking */

/* A question, to be finished by ask(). */
static void begin_question(graft_env *env, program_device *d, const char *ask, graft_json *json)
{
    graft_json_begin(json, env->scratch);
    graft_json_integer(json, "id", ++d->question);
    graft_json_string(json, "ask", ask);
}

/* *line is the answer, in d->line. Fails as write_to_child and read_line do. */
static graft_status ask(graft_env *env, program_device *d, graft_json *json, uint64_t second_count,
                        graft_answer_line *line)
{
    const uint64_t seconds = d->second_count > 0 ? d->second_count : second_count;
    const uint64_t deadline_ns = graft_clock_ns() + seconds * UINT64_C(1000000000);
    *line = (graft_answer_line){.text = d->line, .id = d->question};
    (void)graft_json_line(json);
    graft_status status =
        write_to_child(env, &d->child, json->text.data, json->text.size, deadline_ns);
    if (status == GRAFT_OK) {
        status = read_line(env, &d->child, d->line, LINE_BYTES, deadline_ns, &line->size);
    }
    if (status == GRAFT_UNDECIDED) {
        graft_env_clear(env);
        status = GRAFT_FAIL(env, GRAFT_IO, "no answer in %u s", (unsigned)seconds);
    }
    return status;
}

static graft_status ask_hello(graft_env *env, program_device *d, graft_answer_hello *hello)
{
    GRAFT_SCOPED(env->scratch);
    const char *refusal = NULL;
    graft_answer_line line;
    graft_json json;
    begin_question(env, d, "hello", &json);
    graft_json_integer(&json, "protocol", GRAFT_ANSWER_PROTOCOL);
    GRAFT_PASS(ask(env, d, &json, HELLO_SECONDS, &line));
    GRAFT_PASS(graft_answer_read_hello(env, env->scratch, &line, &refusal, hello));
    if (refusal != NULL) {
        return GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "it says: %s", refusal);
    }
    return GRAFT_OK;
}

static graft_status start(graft_env *env, program_device *d, graft_answer_hello *hello)
{
    char *arguments[] = {d->path, d->options, NULL};
    graft_status status = start_child(env, arguments, &d->child);
    status = status == GRAFT_OK ? ask_hello(env, d, hello) : status;
    if (status != GRAFT_OK) {
        (void)end_child(&d->child, 0);
    }
    return status;
}

/* Starts it again after a fault; it must still be what it was. */
static graft_status ensure_started(graft_env *env, program_device *d)
{
    graft_answer_hello hello;
    memset(&hello, 0, sizeof(hello));
    if (d->child.process > 0) {
        return GRAFT_OK;
    }
    GRAFT_PASS(start(env, d, &hello));
    if (strcmp(hello.name, d->hello.name) != 0 || strcmp(hello.version, d->hello.version) != 0 ||
        strcmp(hello.hardware, d->hello.hardware) != 0 ||
        strcmp(hello.options, d->hello.options) != 0 || hello.threads != d->hello.threads) {
        (void)end_child(&d->child, 0);
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "started again, it says that it is another");
    }
    return GRAFT_OK;
}

/* What became of a question: GRAFT_OK also after a fault of the device, which is logged and, where
 * `fault` is not NULL, told there in scratch. */
static graft_status settle(graft_env *env, program_device *d, const char *question,
                           graft_status status, const char **fault)
{
    if (status == GRAFT_OK) {
        d->faults = 0;
        return GRAFT_OK;
    }
    (void)end_child(&d->child, 0);
    if (status == GRAFT_INTERRUPTED || status == GRAFT_NO_MEMORY) {
        return status;
    }
    d->faults++;
    graft_log(env, 1, "device '%s': %s: %s", d->hello.name, question, env->message);
    if (d->faults == FAULTS_MOST) {
        graft_log(env, 1,
                  "device '%s' is given up after %u faults in a row: what is missing is estimated",
                  d->hello.name, d->faults);
    }
    if (fault != NULL) {
        *fault = graft_arena_strdup(env->scratch, env->message);
    }
    graft_env_clear(env);
    return GRAFT_OK;
}

/* ------------------------------------------------------------- opening, closing */

static void close_device(graft_device *device)
{
    program_device *d = program_of(device);
    (void)end_child(&d->child, PATIENCE_MS);
    if (d->folder[0] != '\0') {
        graft_file_remove_folder(d->folder);
    }
    graft_arena_free(d->arena);
}

static graft_status read_limit(graft_env *env, program_device *d)
{
    const char *text = getenv(seconds_variable);
    char *end = NULL;
    if (text == NULL) {
        return GRAFT_OK;
    }
    d->second_count = strtoull(text, &end, 10);
    return *end == '\0' && d->second_count > 0 && d->second_count <= SECONDS_MOST
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_BAD_INPUT, "%s is '%s', not a number from 1 to %d",
                            seconds_variable, text, SECONDS_MOST);
}

static graft_status make_folder(graft_env *env, program_device *d)
{
    const char *parent = getenv("TMPDIR");
    char text[FOLDER_BYTES];
    (void)snprintf(text, sizeof(text), "%s/graft-device-XXXXXX",
                   parent == NULL || parent[0] == '\0' ? "/tmp" : parent);
    if (mkdtemp(text) == NULL) {
        return GRAFT_FAIL(env, GRAFT_IO, "%s: cannot create the folder: %s", text, strerror(errno));
    }
    memcpy(d->folder, text, sizeof(text));
    return GRAFT_OK;
}

static void name_device(program_device *d)
{
    const graft_answer_hello *h = &d->hello;
    (void)snprintf(d->head.name, sizeof(d->head.name), "%s on %s, %u thread%s", h->name,
                   h->hardware, h->threads, h->threads == 1 ? "" : "s");
    (void)snprintf(d->head.library, sizeof(d->head.library), "%s %s%s%s" GRAFT_DEVICE_PROGRAM_MARK,
                   h->name, h->version, h->options[0] == '\0' ? "" : ", ", h->options);
    d->head.thread_count = h->threads;
    d->head.has = h->has;
}

/* What stands behind the ':' of its name; and how many threads, where the user says that apart. */
static void choose_options(program_device *d, const char *text, uint32_t thread_count)
{
    const char *colon = find_options(text);
    const char *options = colon == NULL ? "" : colon + 1;
    if (thread_count > 0 && strstr(options, "threads=") == NULL) {
        options = graft_arena_printf(d->arena, "%s%sthreads=%u", options,
                                     options[0] == '\0' ? "" : ",", thread_count);
    }
    d->options = options[0] == '\0' ? NULL : graft_arena_strdup(d->arena, options);
}

static graft_status open_device(graft_env *env, const char *text, uint32_t thread_count,
                                graft_device **device)
{
    const char *path = graft_device_program_path(env, text);
    graft_arena *arena = graft_arena_new(LINE_BYTES);
    program_device *d = GRAFT_NEW(arena, program_device, 1);
    *device = (graft_device *)(void *)d; /* Closed by the caller, also when this fails. */
    d->head.backend = &graft_backend_program;
    d->arena = arena;
    d->path = graft_arena_strdup(arena, path);
    d->line = graft_arena_alloc(arena, LINE_BYTES);
    choose_options(d, text, thread_count);
    GRAFT_PASS(read_limit(env, d));
    GRAFT_PASS(make_folder(env, d));
    graft_status status = start(env, d, &d->hello);
    if (status == GRAFT_OK && thread_count > 0 && d->hello.threads != thread_count) {
        status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "it has %u threads, not %u", d->hello.threads,
                            thread_count);
    }
    if (status != GRAFT_OK && status != GRAFT_INTERRUPTED) {
        const char *why = graft_arena_strdup(env->life, env->message);
        graft_env_clear(env);
        status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "device '%s': hello: %s", text, why);
    }
    name_device(d);
    return status;
}

static bool is_present(const graft_device *device)
{
    return ((const program_device *)(const void *)device)->faults < FAULTS_MOST;
}

/* --------------------------------------------------------------- operators */

/* Writes the operator into a file, whose path is in scratch. */
static graft_status write_operator(graft_env *env, const program_device *d,
                                   const graft_signature *s, const char **path)
{
    GRAFT_SCOPED(env->unit);
    uint8_t *data = NULL;
    size_t size = 0;
    const graft_operator of = {
        .op = s->op, .attrs = s->attrs, .inputs = s->inputs, .const_mask = s->const_mask};
    *path = graft_arena_printf(env->scratch, "%s/operator.onnx", d->folder);
    GRAFT_PASS(graft_operator_pack(env, env->unit, &of, &data, &size));
    return graft_file_write(env, *path, data, size);
}

/* Fails where the device does, or says what cannot be. */
static graft_status ask_time(graft_env *env, program_device *d, const graft_signature *s,
                             const char *path, const char **refusal, graft_cost_entry *entry)
{
    const char *weights[GRAFT_MAX_INPUTS];
    uint32_t weight_count = 0;
    graft_answer_line line;
    graft_answer_time time;
    graft_json json;
    for (uint32_t k = 0; k < s->input_count; k++) {
        if ((s->const_mask >> k & 1U) != 0) {
            weights[weight_count++] = graft_arena_printf(env->scratch, "w%u", k);
        }
    }
    GRAFT_PASS(ensure_started(env, d));
    begin_question(env, d, "time", &json);
    graft_json_string(&json, "operator", graft_signature_operator(s));
    graft_json_string(&json, "model", path);
    graft_json_strings(&json, "weights", weights, weight_count);
    graft_json_integer(&json, "apart_bytes",
                       weight_count == 0 ? 0 : (int64_t)graft_distance_copies_bytes(s->distance));
    GRAFT_PASS(ask(env, d, &json, TIME_SECONDS, &line));
    GRAFT_PASS(graft_answer_read_time(env, env->scratch, &line, refusal, &time));
    if (*refusal != NULL) {
        return GRAFT_OK;
    }
    const double flops = (double)graft_signature_flops(s);
    if (flops / time.median_ns > most_rate) {
        return GRAFT_FAIL(env, GRAFT_BAD_INPUT, "its answer: %g ns for %.0f operations cannot be",
                          time.median_ns, flops);
    }
    *entry = graft_cost_measured(s, time.median_ns, time.spread_ns, time.rounds, d->hello.name);
    return GRAFT_OK;
}

/* An entry without rounds: the device does not have the operator, or failed at it. */
static graft_status measure_one(graft_env *env, program_device *d, const graft_signature *s,
                                graft_cost_entry *entry)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    graft_buffer name = {.arena = env->scratch};
    const char *path = NULL;
    const char *refusal = NULL;
    graft_signature_print(s, &name);
    status = write_operator(env, d, s, &path);
    if (status == GRAFT_UNSUPPORTED) {
        refusal = graft_arena_strdup(env->scratch, env->message);
        graft_env_clear(env);
        status = GRAFT_OK;
    } else if (status == GRAFT_OK) {
        status = ask_time(env, d, s, path, &refusal, entry);
        status =
            settle(env, d, graft_arena_printf(env->scratch, "time of %s", name.data), status, NULL);
    }
    if (refusal != NULL) {
        graft_log(env, 2, "device '%s' does not have %s: %s", d->hello.name, name.data, refusal);
    }
    return status;
}

static graft_status measure(graft_env *env, graft_device *device, const graft_signature *signatures,
                            uint32_t count, const graft_measure_options *options,
                            graft_cost_entry *entries)
{
    graft_status status = GRAFT_OK;
    graft_env quiet = *env;
    graft_progress progress;
    quiet.verbosity = options->quiet ? 0 : env->verbosity;
    graft_progress_start(&progress, &quiet, "measuring", "operators", count);
    for (uint32_t i = 0; i < count && is_present(device); i++) {
        GRAFT_CHECK(graft_interrupted_while(env, "measuring"));
        graft_progress_hide(&progress);
        GRAFT_CHECK(measure_one(env, program_of(device), &signatures[i], &entries[i]));
        graft_progress_update(&progress, i + 1, NULL);
    }
done:
    graft_progress_finish(&progress);
    return status;
}

/* ------------------------------------------------------------ whole models */

bool graft_device_times_models(const graft_device *device)
{
    const graft_device_head *head = graft_device_head_at(device);
    return head->backend == &graft_backend_program &&
           ((const program_device *)(const void *)device)->hello.times_models;
}

const char *const *graft_device_fuses(const graft_device *device, uint32_t *count)
{
    if (graft_device_head_at(device)->backend != &graft_backend_program) {
        *count = 0;
        return NULL;
    }
    const graft_answer_hello *hello = &((const program_device *)(const void *)device)->hello;
    *count = hello->fuse_count;
    return hello->fuses;
}

const char *graft_device_rules(graft_env *env, const graft_device *device)
{
    if (graft_device_head_at(device)->backend != &graft_backend_program) {
        return NULL;
    }
    const char *name = ((const program_device *)(const void *)device)->hello.name;
    const char *path =
        graft_file_shipped(env, graft_arena_printf(env->life, "rules/%s.rules", name));
    return strchr(name, '/') == NULL && graft_file_exists(path) ? path : NULL;
}

const char *graft_device_file(graft_env *env, const graft_device *device, const char *name)
{
    const program_device *d = (const program_device *)(const void *)device;
    return graft_arena_printf(env->life, "%s/%s", d->folder, name);
}

/* {"x": [1, 3, 224, 224], ...}: inputs whose shapes are known. */
static const char *list_inputs(graft_env *env, const graft_model *model)
{
    graft_json json;
    graft_json_begin(&json, env->scratch);
    for (uint32_t i = 0; i < model->input_count; i++) {
        const graft_shape *shape = &model->inputs[i].shape;
        graft_buffer dims = {.arena = env->scratch};
        graft_buffer_append(&dims, "[", 1);
        for (uint32_t k = 0; shape->rank != GRAFT_RANK_UNKNOWN && k < shape->rank; k++) {
            graft_buffer_printf(&dims, "%s%d", k == 0 ? "" : ", ", (int)shape->dims[k]);
        }
        graft_buffer_append(&dims, "]", 1);
        if (shape->rank != GRAFT_RANK_UNKNOWN) {
            graft_json_raw(&json, model->inputs[i].name, dims.data);
        }
    }
    (void)graft_json_line(&json);
    json.text.data[json.text.size - 1] = '\0'; /* The newline. */
    return json.text.data;
}

static graft_status ask_models(graft_env *env, program_device *d, const graft_device_turns *turns,
                               const char *const *paths, const char **refusal)
{
    graft_answer_line line;
    graft_json json;
    GRAFT_PASS(ensure_started(env, d));
    begin_question(env, d, "time_models", &json);
    graft_json_strings(&json, "models", paths, turns->count);
    graft_json_raw(&json, "inputs", list_inputs(env, turns->model));
    graft_json_integer(&json, "rounds", turns->rounds);
    GRAFT_PASS(ask(env, d, &json, MODELS_SECONDS, &line));
    return graft_answer_read_turns(env, env->scratch, &line, refusal, turns->count, turns->rounds,
                                   turns->times);
}

/* Absolute paths, in scratch; the model itself is written. */
static graft_status find_files(graft_env *env, const program_device *d,
                               const graft_device_turns *turns, const char **whole)
{
    const char *own = graft_arena_printf(env->scratch, "%s/model.onnx", d->folder);
    bool written = false;
    for (uint32_t k = 0; k < turns->count; k++) {
        const char *path = turns->paths[k];
        if (path == NULL && !written) {
            GRAFT_PASS(graft_model_write(env, turns->model, &turns->model->graph, own, NULL));
            written = true;
        }
        char *absolute = path == NULL ? NULL : realpath(path, NULL);
        whole[k] = absolute == NULL ? own : graft_arena_strdup(env->scratch, absolute);
        free(absolute);
    }
    return GRAFT_OK;
}

graft_status graft_device_time_models(graft_env *env, graft_device *device,
                                      const graft_device_turns *turns, const char **refusal)
{
    program_device *d = program_of(device);
    const char **whole = GRAFT_NEW(env->scratch, const char *, turns->count);
    *refusal = NULL;
    GRAFT_PASS(find_files(env, d, turns, whole));
    graft_status status = ask_models(env, d, turns, whole, refusal);
    return settle(env, d, "time of whole models", status, refusal);
}

/* ----------------------------------------------------------------- kernels */

/* It times what it is given and runs nothing for Graft. */
static graft_status refuse_list(graft_env *env, graft_device *device, const graft_signature *s,
                                graft_kernel_name names[GRAFT_KERNEL_MOST], uint32_t *count)
{
    (void)s;
    (void)names;
    *count = 0;
    return GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                      "device '%s' is a program, which times models and runs none for Graft",
                      graft_device_name(device));
}

static graft_status refuse_open(graft_env *env, graft_device *device, const graft_signature *s,
                                const char *name, const float *const *constants,
                                graft_kernel **kernel)
{
    uint32_t count = 0;
    (void)name;
    (void)constants;
    (void)kernel;
    return refuse_list(env, device, s, NULL, &count);
}

const graft_backend graft_backend_program = {
    .abi = GRAFT_BACKEND_ABI,
    .open = open_device,
    .close = close_device,
    .present = is_present,
    .kernel_list = refuse_list,
    .kernel_open = refuse_open,
    .measure = measure,
};
