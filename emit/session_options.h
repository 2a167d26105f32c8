/* session_options.h - the arguments that the commands over a session share. */
#ifndef GRAFT_EMIT_SESSION_OPTIONS_H
#define GRAFT_EMIT_SESSION_OPTIONS_H

#include "emit/session.h"
#include "graph/options.h"

/* The committed rules, this CPU, that device's database, train/settings.yaml. */
graft_session_options graft_session_defaults(graft_env *env);
/* Parses MODEL, --device, --rules, --settings, --database, --exact and a command's own options. */
GRAFT_MUST_USE graft_status graft_session_parse(graft_env *env, int argc, char **argv,
                                                graft_session_options *options,
                                                const graft_option *own, uint32_t own_count);
/* Closes the session and returns the first failure: `status`, or closing's own. */
GRAFT_MUST_USE graft_status graft_session_finish(graft_env *env, graft_session *session,
                                                 graft_status status);

#endif
