/* session_options.c - see session_options.h. */
#include "emit/command/session_options.h"

#include "graph/base/ranks.h"

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

graft_status graft_session_open_ranks(graft_env *env, const graft_session_options *options)
{
    graft_status status = GRAFT_OK;
    graft_device *device = NULL;
    if (graft_ranks_ask().count == 1) {
        return GRAFT_OK;
    }
    GRAFT_CHECK(graft_device_open(env, options->device, 0, &device));
    if (graft_device_present(device)) {
        status = GRAFT_FAIL(env, GRAFT_UNSUPPORTED,
                            "--device: '%s' is here and would be measured while other ranks work: "
                            "name a recorded one, or start without mpirun",
                            options->device);
    } else {
        status = graft_ranks_open(env);
    }
done:
    graft_device_close(device);
    return status;
}
