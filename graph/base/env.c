/* env.c - the error in flight and the three arenas of a run (see env.h). */
#include "graph/base/env.h"

#include <stdarg.h>
#include <string.h>

/* First blocks are only reserved, not touched: an idle arena costs address space, no memory. */
enum { LIFE_BYTES = 1 << 20, UNIT_BYTES = 1 << 20, SCRATCH_BYTES = 1 << 20 };

graft_status graft_env_open(graft_env *env)
{
    memset(env, 0, sizeof(*env));
    env->verbosity = 1;
    env->thread_count = 1;
    env->life = graft_arena_new(LIFE_BYTES);
    env->unit = graft_arena_new(UNIT_BYTES);
    env->scratch = graft_arena_new(SCRATCH_BYTES);
    return GRAFT_OK;
}

void graft_env_close(graft_env *env)
{
    graft_arena_free(env->life);
    graft_arena_free(env->unit);
    graft_arena_free(env->scratch);
    env->life = NULL;
    env->unit = NULL;
    env->scratch = NULL;
}

/* A message is one line whatever is in it: names that come from files may hold anything. */
__attribute__((format(printf, 2, 0))) static void append_text(graft_env *env, const char *format,
                                                              va_list arguments)
{
    static const char cut[] = "...";
    size_t start = strlen(env->message);
    size_t room = sizeof(env->message) - start;
    int length = vsnprintf(env->message + start, room, format, arguments);
    if (length < 0 || (size_t)length >= room) {
        memcpy(env->message + sizeof(env->message) - sizeof(cut), cut, sizeof(cut));
    }
    for (char *c = env->message + start; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
}

graft_status graft_env_fail(graft_env *env, graft_status status, const char *format, ...)
{
    if (env->message[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        append_text(env, format, arguments);
        va_end(arguments);
    }
    return status;
}

void graft_env_frame(graft_env *env, const char *format, ...)
{
    const char *joint = env->message[0] == '\0' ? "failed without a message, " : ", ";
    size_t start = strlen(env->message);
    (void)snprintf(env->message + start, sizeof(env->message) - start, "%s", joint);
    va_list arguments;
    va_start(arguments, format);
    append_text(env, format, arguments);
    va_end(arguments);
}

void graft_env_clear(graft_env *env) { env->message[0] = '\0'; }
