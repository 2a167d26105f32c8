/* graphviz.c - see graphviz.h. Files instead of pipes: neither side can wait for the other. */
#include "emit/report/graphviz.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static graft_status fail_file(graft_env *env)
{
    return GRAFT_FAIL(env, GRAFT_IO, "no temporary file for Graphviz: %s", strerror(errno));
}

/* Runs it to its end; NULL, or why there is no result. */
static const char *run_dot(FILE *in, FILE *out)
{
    static char program[] = "dot";
    static char format[] = "-Tplain";
    char *const arguments[] = {program, format, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int how = 0;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO);
    int failed = posix_spawnp(&child, program, &actions, NULL, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        return "Graphviz (the program dot) is not installed";
    }
    while (waitpid(child, &how, 0) < 0) {
        if (errno != EINTR) {
            return "Graphviz was lost";
        }
    }
    return WIFEXITED(how) && WEXITSTATUS(how) == 0 ? NULL : "Graphviz (the program dot) failed";
}

static graft_status read_all(graft_env *env, graft_arena *arena, FILE *file, const char **text)
{
    graft_buffer all = {.arena = arena};
    char chunk[1 << 12];
    size_t got = 0;
    rewind(file);
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0) {
        graft_buffer_append(&all, chunk, got);
    }
    *text = all.size > 0 ? all.data : "";
    return ferror(file) ? fail_file(env) : GRAFT_OK;
}

graft_status graft_graphviz_plain(graft_env *env, graft_arena *arena, const graft_buffer *text,
                                  const char **plain, const char **reason)
{
    graft_status status = GRAFT_OK;
    FILE *in = tmpfile();
    FILE *out = tmpfile();
    *plain = NULL;
    if (in == NULL || out == NULL || fwrite(text->data, 1, text->size, in) != text->size ||
        fflush(in) != 0 || fseek(in, 0, SEEK_SET) != 0) {
        status = fail_file(env);
        goto done;
    }
    *reason = run_dot(in, out);
    if (*reason == NULL) {
        GRAFT_CHECK(read_all(env, arena, out, plain));
    }
done:
    if (in != NULL) {
        (void)fclose(in);
    }
    if (out != NULL) {
        (void)fclose(out);
    }
    return status;
}
