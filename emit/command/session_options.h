/* session_options.h - the arguments that the commands over a session share. */
#pragma once

#include "emit/command/session.h"
#include "graph/base/options.h"

/* The rows of what these commands share; `prefix` leads to a graft_session_options in `type`
 * ("options."), or is empty. */
#define GRAFT_SESSION_OPTIONS(type, prefix)                                                        \
    GRAFT_WORD(type, prefix model, "MODEL", "a name of the zoo or an ONNX file"),                  \
        GRAFT_SESSION_REST(type, prefix)
/* The same without the model. */
#define GRAFT_SESSION_REST(type, prefix)                                                           \
    GRAFT_TEXT(type, prefix device, "--device", "NAME", "cpu", "whose costs count"),               \
        GRAFT_SHIPPED(type, prefix rules, "--rules", "FILE", "rules/graft.rules", "the rule set"), \
        GRAFT_SHIPPED(type, prefix settings, "--settings", "FILE", "train/settings.yaml",          \
                      "of searches and training"),                                                 \
        GRAFT_TEXT(type, prefix database, "--database", "FILE", NULL,                              \
                   "where costs are kept (default: the device's, in out/ or ~/.cache/graft)"),     \
        GRAFT_FLAG(type, prefix exact, "--exact",                                                  \
                   "only rules that give the same bits for every input"),                          \
        GRAFT_FLAG(type, prefix within_bounds, "--accept-within-bounds",                           \
                   "also rules that hold within bounds only (graft rules --proof)")

/* The defaults of all of them: the committed rules, this CPU, train/settings.yaml. */
graft_session_options graft_session_defaults(graft_env *env);
/* Sets what depends on others: the device's database, where none is named. */
void graft_session_complete(graft_env *env, graft_session_options *options);
/* Starts the ranks of a command that shares its work over them (ranks.h). GRAFT_UNSUPPORTED where
 * costs would be measured on this machine, while other ranks work. */
GRAFT_MUST_USE graft_status graft_session_open_ranks(graft_env *env,
                                                     const graft_session_options *options);
