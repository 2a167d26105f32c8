/* session.h - everything that optimising one model needs, opened in one call: the model, the rules
 * that the device can use, their costs, and the environment over them. */
#ifndef GRAFT_EMIT_SESSION_H
#define GRAFT_EMIT_SESSION_H

#include "cost/cost.h"
#include "graph/model.h"
#include "graph/rulefile.h"
#include "train/agent_settings.h"
#include "train/environment.h"

typedef struct graft_session_options {
    const char *model;    /* A zoo name or a path to an .onnx file. */
    const char *rules;    /* Path of a rule file. */
    const char *device;   /* "cpu", or the name of a recorded device. */
    const char *database; /* Path of the cost database; made when missing. */
    const char *settings; /* Path of a settings file. */
    bool exact;           /* Only rules that give identical results for every input. */
    bool survey;          /* Only rules that walks through the model's rewrites met (survey.h). */
} graft_session_options;

typedef struct graft_session {
    graft_agent_settings settings;
    graft_model *model;
    graft_ruleset rules; /* As read. */
    graft_xfers xfers;   /* Those that are used, in the file's order. */
    uint32_t refused;    /* Rules that the device or the numeric class cannot use... */
    uint32_t unmet;      /* ...and those that the survey left out. */
    graft_device *device;
    graft_cost *cost;
    graft_environment environment;
} graft_session;

/* Opens all of it in env->life; a model's measured operators are in the database afterwards. Fails
 * as its parts do, and with GRAFT_BAD_INPUT when a survey finds no place for any rule; close it
 * also then. */
GRAFT_MUST_USE graft_status graft_session_open(graft_env *env, const graft_session_options *options,
                                               graft_session *session);
/* Saves the cost database and frees what is not in an arena. */
GRAFT_MUST_USE graft_status graft_session_close(graft_env *env, graft_session *session);

#endif
