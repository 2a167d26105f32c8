/* rival.c - another runtime as a child process (see rival.h). */
#include "cost/measure/rival.h"

#include "cost/device/child.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { LINE_BYTES = 256, PATIENCE_MS = 10000 };

/* What is waited for may be an installation. */
static const uint64_t no_deadline = UINT64_MAX;

struct graft_rival {
    graft_child child;
};

/* The Python that has the runtime, as cost/rival/python.sh finds or makes it. */
static graft_status find_python(graft_env *env, char path[LINE_BYTES])
{
    char shell[] = "sh";
    char script[] = "cost/rival/python.sh";
    char folder[] = "out/venv";
    char *arguments[] = {shell, script, folder, NULL};
    graft_child finder;
    size_t size = 0;
    graft_status status = graft_child_start(env, arguments, &finder);
    bool read = status == GRAFT_OK && graft_child_read_line(env, &finder, path, LINE_BYTES,
                                                            no_deadline, &size) == GRAFT_OK;
    int ended = graft_child_end(&finder, PATIENCE_MS);
    if (!read || !WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
        graft_env_clear(env);
        status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED, "onnxruntime cannot be found or installed: %s",
                            read ? path : "cost/rival/python.sh says nothing");
    }
    return status;
}

static graft_status start_rival(graft_env *env, char *const *arguments, graft_rival *r)
{
    graft_status status = GRAFT_OK;
    char line[LINE_BYTES];
    size_t size = 0;
    GRAFT_CHECK(graft_child_start(env, arguments, &r->child));
    status = graft_child_read_line(env, &r->child, line, sizeof(line), no_deadline, &size);
    if (status != GRAFT_OK || strcmp(line, "ready") != 0) {
        graft_env_clear(env);
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
        (void)graft_child_end(&rival->child, PATIENCE_MS);
        free(rival);
    }
}

graft_status graft_rival_time(graft_env *env, graft_rival *rival, uint32_t runs, double *run_ns)
{
    graft_status status = GRAFT_OK;
    char line[LINE_BYTES];
    char *end = NULL;
    size_t size = (size_t)snprintf(line, sizeof(line), "%u\n", runs);
    GRAFT_TRY(env, graft_child_write(env, &rival->child, line, size, no_deadline), "onnxruntime");
    GRAFT_TRY(env,
              graft_child_read_line(env, &rival->child, line, sizeof(line), no_deadline, &size),
              "onnxruntime");
    *run_ns = strtod(line, &end);
    if (end == line || !(*run_ns > 0.0)) {
        status = GRAFT_FAIL(env, GRAFT_IO, "onnxruntime answers '%s'", line);
    }
done:
    return status;
}
