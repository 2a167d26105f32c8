/* session_options.c - see session_options.h. */
#include "emit/session_options.h"

#include "graph/file.h"

#include <string.h>

enum { SHARED_COUNT = 6, OWN_MOST = 10 };

graft_session_options graft_session_defaults(graft_env *env)
{
    return (graft_session_options){.rules = graft_file_shipped(env, "rules/graft.rules"),
                                   .device = "cpu",
                                   .settings = graft_file_shipped(env, "train/settings.yaml")};
}

graft_status graft_session_parse(graft_env *env, int argc, char **argv,
                                 graft_session_options *options, const graft_option *own,
                                 uint32_t own_count)
{
    graft_option all[SHARED_COUNT + OWN_MOST] = {
        {.name = "MODEL", .value = &options->model, .required = true},
        {.name = "--device",               .value = &options->device                     },
        {.name = "--rules",               .value = &options->rules },
        {.name = "--settings",               .value = &options->settings                  },
        {.name = "--database",               .value = &options->database },
        {.name = "--exact",               .flag = &options->exact                     },
    };
    if (own_count > OWN_MOST) {
        return GRAFT_FAIL(env, GRAFT_INTERNAL, "%s has too many options", argv[0]);
    }
    memcpy(&all[SHARED_COUNT], own, own_count * sizeof *own);
    graft_status status = graft_options_parse(env, argc, argv, all, SHARED_COUNT + own_count);
    if (status == GRAFT_OK && options->database == NULL) {
        options->database = graft_device_database(options->device);
    }
    return status;
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
