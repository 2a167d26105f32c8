/* rival.c - another runtime as a child process (see rival.h). */
#include "cost/rival.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_BYTES = 256 };

struct graft_rival {
    pid_t child;
    FILE *orders; /* To the child. */
    FILE *answers;
};

typedef struct {
    int orders[2]; /* Ends of pipes: for reading, for writing. */
    int answers[2];
} rival_pipes;

static void close_pipes(const rival_pipes *pipes)
{
    for (int i = 0; i < 2; i++) {
        (void)close(pipes->orders[i]);
        (void)close(pipes->answers[i]);
    }
}

static graft_status open_pipes(graft_env *env, rival_pipes *pipes)
{
    if (pipe2(pipes->orders, O_CLOEXEC) != 0) {
        return GRAFT_FAIL(env, GRAFT_IO, "no pipe can be opened");
    }
    if (pipe2(pipes->answers, O_CLOEXEC) != 0) {
        (void)close(pipes->orders[0]);
        (void)close(pipes->orders[1]);
        return GRAFT_FAIL(env, GRAFT_IO, "no pipe can be opened");
    }
    return GRAFT_OK;
}

static graft_status start_child(graft_env *env, const rival_pipes *pipes, char *const *arguments,
                                pid_t *child)
{
    posix_spawn_file_actions_t actions;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, pipes->orders[0], STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, pipes->answers[1], STDOUT_FILENO);
    int failed = posix_spawnp(child, arguments[0], &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed == 0 ? GRAFT_OK
                       : GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "cannot start %s", arguments[0]);
}

/* Keeps our ends of the pipes. */
static graft_status keep_ends(graft_env *env, const rival_pipes *pipes, graft_rival *r)
{
    int orders = fcntl(pipes->orders[1], F_DUPFD_CLOEXEC, 0);
    int answers = fcntl(pipes->answers[0], F_DUPFD_CLOEXEC, 0);
    r->orders = orders < 0 ? NULL : fdopen(orders, "w");
    r->answers = answers < 0 ? NULL : fdopen(answers, "r");
    return r->orders != NULL && r->answers != NULL
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_IO, "no stream can be opened");
}

/* A program that answers on a stream of ours; to be ended by end_process, also after a failure. */
static graft_status start_process(graft_env *env, char *const *arguments, graft_rival *r)
{
    graft_status status = GRAFT_OK;
    rival_pipes pipes;
    GRAFT_CHECK(open_pipes(env, &pipes));
    status = start_child(env, &pipes, arguments, &r->child);
    if (status == GRAFT_OK) {
        status = keep_ends(env, &pipes, r);
    }
    close_pipes(&pipes);
done:
    return status;
}

/* Without orders the child ends by itself. True when it did so in good order. */
static bool end_process(const graft_rival *r)
{
    int status = -1;
    if (r->orders != NULL) {
        (void)fclose(r->orders);
    }
    if (r->answers != NULL) {
        (void)fclose(r->answers);
    }
    return r->child > 0 && waitpid(r->child, &status, 0) == r->child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* The Python that has the runtime, as cost/rival/python.sh finds or makes it. */
static graft_status find_python(graft_env *env, char path[LINE_BYTES])
{
    char shell[] = "sh";
    char script[] = "cost/rival/python.sh";
    char folder[] = "out/venv";
    char *arguments[] = {shell, script, folder, NULL};
    graft_rival finder = {.child = 0};
    graft_status status = start_process(env, arguments, &finder);
    bool read = status == GRAFT_OK && fgets(path, LINE_BYTES, finder.answers) != NULL;
    bool ended = end_process(&finder);
    if (status == GRAFT_OK && !(read && ended)) {
        status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "onnxruntime cannot be found or installed: %s",
                            read ? path : "cost/rival/python.sh says nothing");
    }
    path[strcspn(path, "\n")] = '\0';
    return status;
}

static graft_status start_rival(graft_env *env, char *const *arguments, graft_rival *r)
{
    graft_status status = GRAFT_OK;
    char line[LINE_BYTES];
    GRAFT_CHECK(start_process(env, arguments, r));
    if (fgets(line, sizeof(line), r->answers) == NULL || strcmp(line, "ready\n") != 0) {
        status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "onnxruntime does not take %s", arguments[2]);
    }
done:
    return status;
}

graft_status graft_rival_open(graft_env *env, const char *model, bool optimised,
                              graft_rival **rival)
{
    graft_status status = GRAFT_OK;
    graft_mark mark = graft_arena_mark(env->scratch);
    char python[LINE_BYTES] = "";
    char script[] = "cost/rival/time_onnx.py";
    char all[] = "all";
    char off[] = "off";
    char *arguments[] = {python, script, graft_arena_printf(env->scratch, "%s", model),
                         optimised ? all : off, NULL};
    graft_rival *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        status = GRAFT_FAIL(env, GRAFT_NO_MEMORY, "no memory left for another runtime");
        goto done;
    }
    GRAFT_CHECK(find_python(env, python));
    GRAFT_CHECK(start_rival(env, arguments, r));
done:
    graft_arena_release(env->scratch, mark);
    if (status == GRAFT_OK) {
        *rival = r;
    } else {
        graft_rival_close(r);
    }
    return status;
}

void graft_rival_close(graft_rival *rival)
{
    if (rival != NULL) {
        (void)end_process(rival);
        free(rival);
    }
}

graft_status graft_rival_time(graft_env *env, graft_rival *rival, uint32_t runs, double *run_ns)
{
    char line[LINE_BYTES];
    char *end = NULL;
    if (fprintf(rival->orders, "%u\n", runs) < 0 || fflush(rival->orders) != 0 ||
        fgets(line, sizeof(line), rival->answers) == NULL) {
        return GRAFT_FAIL(env, GRAFT_IO, "onnxruntime has ended");
    }
    *run_ns = strtod(line, &end);
    return end != line && *run_ns > 0.0
               ? GRAFT_OK
               : GRAFT_FAIL(env, GRAFT_IO, "onnxruntime answers '%s'", line);
}
