/* session_options.c - see session_options.h. */
#include "emit/command/session_options.h"

#include <string.h>

graft_session_options graft_session_defaults(graft_env *env)
{
    static const graft_option rows[] = {GRAFT_SESSION_OPTIONS(graft_session_options, )};
    graft_session_options options = {.model = NULL};
    graft_options_defaults(env, rows, sizeof rows / sizeof rows[0], &options);
    return options;
}

void graft_session_complete(graft_env *env, graft_session_options *options)
{
    if (options->database == NULL) {
        options->database = graft_device_database(env, options->device);
    }
}

graft_status graft_session_finish(graft_env *env, graft_session *session, graft_status status)
{
    if (status == GRAFT_OK) {
        return graft_session_close(env, session);
    }
    char message[GRAFT_MESSAGE_BYTES];
    memcpy(message, env->message, sizeof message);
    graft_env_clear(env);
    if (graft_session_close(env, session) != GRAFT_OK) {
        graft_env_clear(env); /* The first failure is the one to report. */
    }
    memcpy(env->message, message, sizeof message);
    return status;
}
